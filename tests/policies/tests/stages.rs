//! Both stages of admission: what policies write at the first is no reason for others to refuse at the second.

mod support;

use std::sync::Arc;

use ocm_policy_abi::{EditGrant, Query, Request, Row, Stage, Table};
use ocm_policy_engine::{Ceiling, Deadline, EvidenceReader, Final, Policy, PolicyError, Registry, evaluate};
use ocm_policy_rules::review::{self, Asking};
use ocm_policy_rules::{Answer, Scope, edits};
use serde_json::{Value, json};

/// A hub with an inventory of one cluster, which has no namespace yet.
struct Hub;

impl EvidenceReader for Hub {
    fn table(&self, _: &str, query: &Query, _: &Request<'_>, _: &Deadline) -> Result<Arc<Table<'static>>, PolicyError> {
        let entry = json!({"labels": {"env": "prod"}, "clusterSet": "eu"}).to_string();
        let row = Row { namespace: None, name: "eu-1".into(), values: vec![json!(entry)], complete: true };
        let rows = if query.name == "inventory" { vec![row] } else { Vec::new() };
        Ok(Arc::new(Table { revision: "1".into(), complete: true, rows }))
    }
}

fn registry() -> Registry {
    let registry = Registry::default();
    let names = ["inventory", "cluster-set-routing", "cluster-hygiene"];
    let settings = ["{}", r#"{"rules":[{"clusterSet":"eu","names":["eu-*"]}]}"#, "{}"];
    let (engine, ceiling) = (support::engine(), Ceiling::default());
    for ((name, settings), ours) in names.into_iter().zip(settings).zip(support::ours(&names)) {
        let artifact = support::compiled(&ours.module, settings).expect("it compiles");
        let granted = [EditGrant::Label { key: "*".to_owned() }, EditGrant::ClusterSet];
        let policy = Policy::load_as(name, &engine, &artifact, &ceiling, &granted, Scope::default());
        registry.install(registry.begin(name), policy, |_| Ok(())).expect("it is taken");
    }
    registry
}

/// Somebody with a bootstrap token creates this cluster.
fn ask(registry: &Registry, object: &Value, asking: Asking) -> Final {
    let review = json!({
        "uid": "1",
        "kind": {"group": "cluster.open-cluster-management.io", "version": "v1", "kind": "ManagedCluster"},
        "resource": {"group": "cluster.open-cluster-management.io", "version": "v1", "resource": "managedclusters"},
        "operation": "CREATE",
        "name": "eu-1",
        "userInfo": {"username": "system:serviceaccount:open-cluster-management:agent-registration-bootstrap"},
        "object": object,
    });
    let asking = Asking { wants_object: true, ..asking };
    let request = review::from_admission(&review, &asking).expect("it is a review").into_owned();
    evaluate(registry, request, &Hub, &Deadline::NONE)
}

#[test]
fn what_policies_write_is_no_violation_at_the_next_stage() {
    let registry = registry();
    let created = |labels: Value| {
        json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
               "metadata": {"name": "eu-1", "labels": labels}, "spec": {"leaseDurationSeconds": 60}})
    };
    let mut object = created(json!({}));
    let mutating = Asking { stage: Some(Stage::Mutating), ..Asking::default() };
    let first = ask(&registry, &object, mutating.clone()).answer;
    assert_eq!(first.verdict, Answer::Allow, "{:?} {:?}", first.reasons, first.errors);
    let patch: json_patch::Patch = serde_json::from_value(json!(first.patch)).expect("it is a patch");
    json_patch::patch(&mut object, &patch).expect("it fits the object");
    let set = json!({"env": "prod", "cluster.open-cluster-management.io/clusterset": "eu"});
    assert_eq!(object["metadata"]["labels"], set);

    let validating = |set_by_policies| Asking { stage: Some(Stage::Validating), set_by_policies, ..Asking::default() };
    let second = ask(&registry, &object, validating(edits::values(&first.edits))).answer;
    assert_eq!((second.verdict, second.patch.len()), (Answer::Allow, 0), "{:?}", second.reasons);
    // The same labels of somebody who joins are refused, at either stage.
    for asking in [mutating, validating(ocm_policy_abi::Map::default())] {
        let refused = ask(&registry, &created(set.clone()), asking).answer;
        let codes: Vec<&str> = refused.reasons.iter().map(|given| given.reason.code.as_str()).collect();
        assert!(refused.verdict == Answer::Deny && codes.contains(&"ClusterSet"), "{codes:?}");
    }
}
