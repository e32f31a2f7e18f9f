//! Another version of a policy on a real hub: compared, deciding for a share, promoted and rolled back while others ask.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use e2e_tests::accept_support::Hub;
use e2e_tests::controller_support::{Controller, registration, shared};
use e2e_tests::roles::{user_with, users_without_one_right};
use e2e_tests::webhook_support::{Webhook, policy};
use e2e_tests::{Said, kubectl_ocm, object, run, until};
use ocm_core::policy_engine::FailurePolicy;
use serde_json::{Value, json};

fn ocm_policy(hub: &Hub, words: &[&str]) -> Said {
    run(kubectl_ocm("policy", hub.cluster.kubeconfig()).args(words))
}

#[track_caller]
fn right(hub: &Hub, words: &[&str]) -> Said {
    let said = ocm_policy(hub, words);
    assert_eq!(said.code, Some(0), "{words:?}: {said:?}");
    said
}

/// Whether the hub lets a cluster of this name be registered, in a dry run; a panic where the answer is no policy's.
fn registers(hub: &Hub, name: &str) -> bool {
    let cluster = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": {"name": name},
        "spec": {"hubAcceptsClient": false},
    });
    let file = hub.cluster.dir().expect("a folder").join(format!("{name}.json"));
    std::fs::write(&file, cluster.to_string()).expect("it is written");
    let words = ["create", "--dry-run=server", "--filename", file.to_str().expect("text")];
    let said = run(hub.cluster.kubectl_command().args(words));
    assert!(said.code == Some(0) || said.stderr.contains("policy names: "), "{name}: {said:?}");
    said.code == Some(0)
}

fn candidate(hub: &Hub) -> Value {
    let policy = object(&hub.cluster, &["hpol", "names"]);
    match policy["status"]["observedGeneration"] == policy["metadata"]["generation"] {
        true => policy["status"]["candidate"].clone(),
        false => Value::Null,
    }
}

fn with_candidate(candidate: Value) -> Value {
    json!({"module": {"builtin": "name-pattern"}, "settings": {"patterns": ["prod-*"]}, "candidate": candidate})
}

fn wider() -> Value {
    with_candidate(json!({"settings": {"patterns": ["prod-*", "dev-*"]}}))
}

#[test]
fn a_candidate_is_compared_promoted_and_rolled_back_while_others_ask() {
    let hub = shared(true);
    let webhook = Webhook::start(&hub.cluster, &[]);
    webhook.configure_as_installed(&hub.cluster, FailurePolicy::Fail);
    let _controller = Controller::start(&hub);
    policy(&hub.cluster, "names", json!({"module": {"builtin": "name-pattern"}, "settings": {"patterns": ["prod-*"]}}));
    until("names refuses", || !registers(&hub, "dev-1"));
    let said = ocm_policy(&hub, &["promote", "names", "--yes"]);
    assert!(said.code == Some(3) && said.stderr.contains("policy \"names\" has no candidate"), "{said:?}");

    // Compared with what was decided about those who asked, and who ask now.
    hub.join("prod-1");
    until("prod-1 is accepted", || registration(&hub, "prod-1")["verdict"] == "Allow");
    policy(&hub.cluster, "names", wider());
    until("the candidate is loaded", || candidate(&hub)["sha256"].is_string());
    // The webhook loads it by itself, at its own time.
    until("the webhook tells that it differs", || {
        assert!(!registers(&hub, "dev-1"), "it decides nothing");
        webhook.get("/metrics").contains(r#"ocm_policy_candidate_comparisons_total{policy="names",differs="true"}"#)
    });
    let lines = webhook.decisions("dev-1");
    let line = lines.iter().rev().find_map(|line| line["candidates"].get(0)).expect("it stands in the log");
    assert_eq!((&line["name"], &line["verdict"], &line["inForce"]), (&json!("names"), &json!("allow"), &json!("deny")));
    // What was decided was said by what is in force.
    let said = right(&hub, &["explain", "prod-1"]);
    assert!(!said.stdout.contains("another module"), "{said:?}");
    let said = right(&hub, &["describe", "names"]);
    assert!(said.stdout.contains("Candidate:        other settings; decides for none; differs for "), "{said:?}");

    // Whoever asks while versions come and go is judged by one of them.
    let (ends, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                assert!(registers(&hub, "prod-x") && !registers(&hub, "test-x"));
                asked.fetch_add(2, Ordering::Relaxed);
            }
        });
        for _ in 0..3 {
            right(&hub, &["promote", "names", "--share", "100", "--yes"]);
            until("the candidate decides for all", || registers(&hub, "dev-1"));
            right(&hub, &["pause", "names"]);
            until("the candidate decides for none", || !registers(&hub, "dev-1"));
            until("the candidate is looked at", || candidate(&hub)["share"] == 0);
            right(&hub, &["promote", "names", "--yes"]);
            until("the candidate is in force", || registers(&hub, "dev-1"));
            let said = right(&hub, &["rollback", "names", "--yes"]);
            assert_eq!(said.stdout, "hubpolicy.policy.kubectl-ocm.dev/names configured\n");
            until("the former version is in force", || !registers(&hub, "dev-1"));
            policy(&hub.cluster, "names", wider());
            until("the candidate is loaded", || candidate(&hub)["sha256"].is_string());
        }
        ends.store(true, Ordering::Relaxed);
    });
    assert!(asked.load(Ordering::Relaxed) > 20, "{asked:?}");

    // Given up, there is nothing else to go back to: the last promotion was rolled back.
    right(&hub, &["rollback", "names", "--yes"]);
    assert_eq!(object(&hub.cluster, &["hpol", "names"])["spec"].get("candidate"), None);
    let said = ocm_policy(&hub, &["rollback", "names", "--yes"]);
    assert!(said.code == Some(3) && said.stderr.contains("no version of it was promoted"), "{said:?}");
}

#[test]
fn what_cannot_decide_is_not_promoted() {
    let hub = shared(false);
    // Nobody has looked at it.
    policy(&hub.cluster, "names", wider());
    let said = ocm_policy(&hub, &["promote", "names", "--yes"]);
    assert!(said.code == Some(3) && said.stderr.contains("has not looked at the candidate"), "{said:?}");
    let controller = Controller::start(&hub);
    until("the candidate is loaded", || candidate(&hub)["sha256"].is_string());
    assert_eq!(ocm_policy(&hub, &["promote", "names"]).code, Some(2), "nobody can be asked");
    for words in
        [&["promote", "names", "--dry-run"][..], &["promote", "names", "--dry-run=server"], &["pause", "names"]]
    {
        right(&hub, words);
    }
    assert_eq!(object(&hub.cluster, &["hpol", "names"])["metadata"]["generation"], 1);
    policy(&hub.cluster, "names", with_candidate(json!({"settings": {"pattern": "x"}, "share": 10})));
    until("the candidate fails", || candidate(&hub)["failed"].is_string());
    for words in [&["promote", "names", "--yes"][..], &["promote", "names", "--share", "20", "--yes"]] {
        let said = ocm_policy(&hub, words);
        assert!(said.code == Some(3) && said.stderr.contains("unknown field `pattern`"), "{said:?}");
    }
    right(&hub, &["pause", "names"]);
    drop(controller);

    // What makes no sense is refused by the hub itself.
    for (candidate, why) in [
        (json!({}), "candidate must have another module, other settings, or both"),
        (json!({"settings": {}, "share": 101}), "should be less than or equal to 100"),
        (json!({"settings": {}, "sha256": "0".repeat(64)}), "sha256 must be that of a module"),
        (json!({"module": {}}), "module must have exactly one of"),
    ] {
        let patch = json!({"spec": {"candidate": null}}).to_string();
        hub.cluster.kubectl(&["patch", "hpol", "names", "--type=merge", "--patch", &patch]).expect("it is patched");
        let patch = json!({"spec": {"candidate": candidate}}).to_string();
        let said =
            run(hub.cluster.kubectl_command().args(["patch", "hpol", "names", "--type=merge", "--patch", &patch]));
        assert!(said.code != Some(0) && said.stderr.contains(why), "{why}: {said:?}");
    }
}

#[test]
fn whoever_changes_versions_needs_the_documented_rights_and_no_others() {
    let hub = shared(false);
    policy(&hub.cluster, "names", wider());
    let keeper = user_with(&hub.cluster, "policy-keeper", &["policy-enable.yaml"]);
    let said = run(kubectl_ocm("policy", &keeper).args(["rollback", "names", "--yes"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    policy(&hub.cluster, "names", wider());
    for (user, missing) in users_without_one_right(&hub.cluster, "policy-enable.yaml") {
        for verb in ["rollback", "promote"] {
            let said = ocm_policy(&hub, &[verb, "names", "--yes", "--as", &user]);
            assert!(said.code == Some(1) && said.stderr.contains(&format!("{missing} \"names\"")), "{said:?}");
        }
    }
}
