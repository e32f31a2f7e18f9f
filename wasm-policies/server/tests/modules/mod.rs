//! Modules that the hub holds: what is read of it, how often, and what stays in force while it cannot be read.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use ocm_api::policy::UrlSource;
use ocm_policy_server::{Candidate, Key, Policies, Source, Wanted, With, store};
use serde_json::{Value, json};

use crate::support::{names, parts_of};

/// A hub that holds ConfigMaps, and counts who reads them.
#[derive(Default)]
struct Hub {
    maps: Mutex<BTreeMap<String, Value>>,
    reads: Mutex<Vec<String>>,
    running: AtomicUsize,
    most: AtomicUsize,
    is_down: AtomicBool,
}

impl Hub {
    fn policies(self: &Arc<Self>) -> Arc<Policies> {
        let hub = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let hub = hub.clone();
            async move {
                let name = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
                let running = hub.running.fetch_add(1, Ordering::SeqCst) + 1;
                hub.most.fetch_max(running, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(10)).await;
                hub.running.fetch_sub(1, Ordering::SeqCst);
                hub.reads.lock().unwrap().push(name.clone());
                let found = hub.maps.lock().unwrap().get(&name).cloned();
                let (code, answer) = match found {
                    _ if hub.is_down.load(Ordering::SeqCst) => (503, status(503, "ServiceUnavailable")),
                    Some(map) => (200, map),
                    None => (404, status(404, "NotFound")),
                };
                let answer = Body::from(serde_json::to_vec(&answer)?);
                Ok::<_, tower::BoxError>(Response::builder().status(code).body(answer)?)
            }
        });
        parts_of(Client::new(service, "default")).policies
    }

    /// Keeps a module as the policy controller does.
    fn keep(&self, module: &[u8]) {
        for part in store::parts(module).unwrap() {
            self.maps.lock().unwrap().insert(part.metadata.name.clone().unwrap(), json!(part));
        }
    }

    /// Puts the module into a ConfigMap.
    fn put(&self, name: &str) {
        let content = base64::engine::general_purpose::STANDARD.encode(module());
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
                         "binaryData": {"module": content}});
        self.maps.lock().unwrap().insert(name.to_owned(), map);
    }

    /// What was read since the last time.
    fn reads(&self) -> Vec<String> {
        std::mem::take(&mut self.reads.lock().unwrap())
    }
}

fn status(code: u16, reason: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, "reason": reason,
           "message": "no"})
}

fn module() -> &'static [u8] {
    ocm_policy_builtin::find("name-pattern").unwrap().module
}

fn fetched(module: &[u8]) -> Source {
    let sha256 = ocm_policy_engine::digest(module);
    Source::Url(UrlSource { url: "https://r.example/p".to_owned(), sha256, ca_certificates: None })
}

fn config_map(namespace: &str, name: &str) -> Source {
    Source::ConfigMap(Key { namespace: namespace.to_owned(), name: name.to_owned(), key: "module".to_owned() })
}

#[tokio::test]
async fn a_candidate_that_was_fetched_is_read_once_and_tried_while_the_hub_cannot_be_read() {
    let hub = Arc::new(Hub::default());
    hub.keep(module());
    let policies = hub.policies();
    let mut wanted = names("names", "prod-*");
    let settings = r#"{"patterns": ["dev-*"]}"#.to_owned();
    wanted.candidate = Some(Candidate { source: fetched(module()), sha256: None, settings, tests: None, share: 0 });
    let failed = |policies: &Policies| policies.states()["names"].candidate.clone().unwrap().failed;
    policies.apply(std::slice::from_ref(&wanted)).await;
    assert_eq!(failed(&policies), None);
    assert!(!hub.reads().is_empty());
    let generation = policies.generation();
    for down in [false, true] {
        hub.is_down.store(down, Ordering::SeqCst);
        wanted.candidate.as_mut().unwrap().share = u8::from(down);
        policies.apply(std::slice::from_ref(&wanted)).await;
        assert_eq!((failed(&policies), hub.reads()), (None, Vec::new()));
        assert_eq!(policies.states()["names"].candidate.as_ref().unwrap().share, u8::from(down));
    }
    assert_ne!(policies.generation(), generation, "it decides for more");
    // Another one is read, and is not tried where it cannot be.
    wanted.candidate.as_mut().unwrap().settings = "{}".to_owned();
    policies.apply(&[wanted]).await;
    assert!(failed(&policies).is_some() && !hub.reads().is_empty());
}

#[tokio::test]
async fn while_one_module_is_waited_for_those_of_others_are_not_read_again() {
    let hub = Arc::new(Hub::default());
    hub.put("own");
    let policies = hub.policies();
    let own = Wanted { source: config_map("n", "own"), ..names("own", "prod-*") };
    let coming = Wanted { source: fetched(module()), ..names("coming", "prod-*") };
    let wanted = [own, coming];
    policies.apply(&wanted).await;
    let state = |name: &str| policies.states()[name].clone();
    assert_eq!((state("own").failed, state("coming").with), (None, With::Fetching));
    assert!(hub.reads().contains(&"own".to_owned()));
    policies.apply_fetched(&wanted).await;
    assert!(!hub.reads().contains(&"own".to_owned()));
    hub.keep(module());
    policies.apply_fetched(&wanted).await;
    assert_eq!((state("coming").failed, state("coming").with), (None, With::Policy));
    assert!(!hub.reads().contains(&"own".to_owned()));
    policies.apply_fetched(&wanted).await;
    assert_eq!(hub.reads(), Vec::<String>::new(), "nothing is waited for");
}

#[tokio::test]
async fn of_many_modules_two_are_read_at_once() {
    let hub = Arc::new(Hub::default());
    let wanted: Vec<Wanted> = (0..12)
        .map(|index| Wanted { source: config_map("n", "none"), ..names(&format!("p{index}"), "prod-*") })
        .collect();
    let policies = hub.policies();
    policies.apply(&wanted).await;
    assert_eq!((hub.reads().len(), policies.failed().len(), hub.most.load(Ordering::SeqCst)), (12, 12, 2));
}

#[tokio::test]
async fn where_the_policy_controller_writes_a_module_needs_its_digest() {
    let hub = Arc::new(Hub::default());
    hub.put("own");
    let policies = hub.policies();
    let mut wanted = Wanted { source: config_map("ocm-policy-engine", "own"), ..names("names", "prod-*") };
    policies.apply(std::slice::from_ref(&wanted)).await;
    assert!(policies.failed()[0].1.contains("its module needs sha256"), "{:?}", policies.failed());
    wanted.sha256 = Some(ocm_policy_engine::digest(module()));
    policies.apply(&[wanted]).await;
    assert_eq!(policies.failed(), []);
}
