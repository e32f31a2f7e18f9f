//! HubPolicies of a hub that answers no longer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use ocm_policy_server::follow;
use serde_json::json;

use crate::support::parts_of;

#[tokio::test]
async fn policies_that_cannot_be_read_grow_old() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    // The first list is answered, and nothing afterwards.
    let service = tower::service_fn(move |_: Request<Body>| {
        let is_first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            let (code, answer) = match is_first {
                true => (
                    200,
                    json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}),
                ),
                false => (
                    403,
                    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 403,
                           "reason": "Forbidden", "message": "no"}),
                ),
            };
            Ok::<_, tower::BoxError>(Response::builder().status(code).body(Body::from(serde_json::to_vec(&answer)?))?)
        }
    });
    let client = Client::new(service, "default");
    let policies = parts_of(client.clone()).policies;
    let following = tokio::spawn(follow(client, policies.clone(), |_| {}));
    let begun = Instant::now();
    let wait = async |done: &dyn Fn() -> bool| {
        while !done() {
            assert!(begun.elapsed() < Duration::from_secs(30), "{}", asked.load(Ordering::SeqCst));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    wait(&|| policies.age().is_some()).await;
    let read = Instant::now();
    // The first list, the watch of it, and two more lists.
    wait(&|| asked.load(Ordering::SeqCst) >= 4).await;
    // In this order: the age may only be more.
    let least = read.elapsed();
    let age = policies.age().unwrap();
    assert!(age >= least && least > Duration::from_secs(1), "{age:?} {least:?}");
    following.abort();
}
