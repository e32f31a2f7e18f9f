//! How plans are applied on a real API server: what others add at the same time stays.
//!
//! `cargo test -p e2e-tests --test e2e apply::`; it needs no root.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use e2e_tests::shared_hub::hub;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, Subject};
use kube::Api;
use kube::api::PostParams;
use ocm_api::Manifest;
use ocm_core::{DryRun, Reason};
use ocm_kube::apply;
use serde_json::json;

/// A binding of the plan: its subjects are one value to the server.
fn binding(user: &str) -> Manifest {
    let object: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": {"name": "raced", "labels": {"round": user}},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }))
    .expect("a binding");
    Manifest::of(&object)
}

fn names(binding: &ClusterRoleBinding) -> Vec<String> {
    binding.subjects.iter().flatten().map(|subject| subject.name.clone()).collect()
}

#[test]
fn what_others_add_while_a_plan_is_applied_stays() {
    const COUNT: usize = 60;
    let hub = hub();
    let cluster = hub.connection();
    let api: Api<ClusterRoleBinding> = Api::all(hub.admin.clone());
    hub.wait(async {
        apply::one(&cluster, &binding("plan"), DryRun::No).await.expect("it is applied");
        let ended = Arc::new(AtomicBool::new(false));
        // Somebody adds one user after the other, each to what is there.
        let somebody = async {
            for index in 0..COUNT {
                loop {
                    let mut live = api.get("raced").await.expect("it is there");
                    let user = Subject {
                        api_group: Some("rbac.authorization.k8s.io".to_owned()),
                        kind: "User".to_owned(),
                        name: format!("user{index}"),
                        namespace: None,
                    };
                    live.subjects.get_or_insert_default().push(user);
                    match api.replace("raced", &PostParams::default(), &live).await {
                        Ok(_) => break,
                        Err(kube::Error::Api(status)) if status.is_conflict() => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            ended.store(true, Ordering::Relaxed);
        };
        let plan = async {
            let mut rounds = 0;
            while !ended.load(Ordering::Relaxed) {
                rounds += 1;
                let manifest = binding(&format!("plan{rounds}"));
                // On a busy machine somebody may come between all its tries: it says so then, and may be run again.
                while let Err(failure) = apply::one(&cluster, &manifest, DryRun::No).await {
                    assert_eq!(failure.reason, Reason::Conflict, "{failure}");
                }
            }
            rounds
        };
        let ((), rounds) = futures::join!(somebody, plan);
        let live = names(&api.get("raced").await.expect("it is there"));
        let lost: Vec<usize> = (0..COUNT).filter(|index| !live.contains(&format!("user{index}"))).collect();
        assert!(lost.is_empty(), "of {COUNT}, lost in {rounds} rounds: {lost:?}");
        assert!((1..=rounds).all(|round| live.contains(&format!("plan{round}"))));
    });
}
