//! What a cluster was registered with, and how many a word of a person counts for.

mod common;

use common::*;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry, OwnerReference, Time};
use ocm_api::ManagedCluster;
use ocm_core::accept::{Chosen, Decision, Help, Options};
use ocm_core::csr::Code;
use serde_json::{Value, json};

const SET: &str = "cluster.open-cluster-management.io/clusterset";

fn label(key: &'static str, value: &'static str) -> impl Fn(&mut ManagedCluster) {
    move |cluster| {
        cluster.metadata.labels.get_or_insert_default().insert(key.to_owned(), value.to_owned());
    }
}

fn annotation(key: &'static str, value: &'static str) -> impl Fn(&mut ManagedCluster) {
    move |cluster| {
        cluster.metadata.annotations.get_or_insert_default().insert(key.to_owned(), value.to_owned());
    }
}

/// What is decided about a cluster that was changed, and asks rightly.
fn with(changes: &[&dyn Fn(&mut ManagedCluster)], options: &Options) -> Decision {
    let mut cluster = cluster();
    changes.iter().for_each(|change| change(&mut cluster));
    decide_with(&cluster, &[asks("r", 110, &key())], options)
}

fn in_bulk() -> Options {
    Options { chosen: Chosen::InBulk, ..Options::default() }
}

fn as_registered() -> Options {
    Options { as_registered: true, ..Options::default() }
}

#[test]
fn what_a_cluster_brings_is_judged() {
    let plain = Options::default();
    assert_eq!(with(&[&label(SET, "default")], &plain), lets_in(0));
    assert_refused(&with(&[&label(SET, "prod")], &plain), Code::ClusterSet);
    assert_refused(&with(&[&label("env", "prod")], &plain), Code::Labels);
    assert_refused(&with(&[&|cluster| cluster.spec.lease_duration_seconds = Some(0)], &plain), Code::LeaseDuration);
    let allowed = Options { cluster_sets: vec!["prod".to_owned()], ..Options::default() };
    assert_eq!(with(&[&label(SET, "prod")], &allowed), lets_in(0));
    assert_eq!(with(&[&label("env", "prod")], &as_registered()), lets_in(0));
}

/// An entry of `managedFields` with the fields of the metadata that it owns.
fn entry(manager: &str, second: i64, fields: Value) -> ManagedFieldsEntry {
    ManagedFieldsEntry {
        manager: Some(manager.to_owned()),
        operation: Some("Update".to_owned()),
        time: Some(Time(at(second))),
        fields_v1: Some(FieldsV1(json!({"f:metadata": fields}))),
        ..ManagedFieldsEntry::default()
    }
}

#[test]
fn only_what_others_are_proven_to_have_added_was_not_brought() {
    let with = |entries: &[ManagedFieldsEntry]| {
        let fields = |cluster: &mut ManagedCluster| cluster.metadata.managed_fields = Some(entries.to_vec());
        with(&[&label("env", "prod"), &fields], &Options::default())
    };
    let later = REGISTERED + 5;
    let added = json!({"f:labels": {"f:env": {}}});
    let creation = entry("agent", REGISTERED, json!({"f:finalizers": {".": {}, "v:\"x\"": {}}}));
    assert_eq!(with(&[creation.clone(), entry("kubectl-label", later, added.clone())]), lets_in(0));
    // As an API server stored them for who registered with the label, and chose all the rest.
    for (why, entries) in [
        ("nobody owns it", vec![creation.clone()]),
        ("no entry is left", vec![]),
        (
            "somebody of the creator's name came later",
            vec![entry("x", later, json!({"f:labels": {".": {}, "f:env": {}}}))],
        ),
        (
            "too many entries were one",
            vec![entry("ancient-changes", later, json!({"f:labels": {".": {}, "f:env": {}}}))],
        ),
        (
            "it owns a part of the label",
            vec![entry("kubectl-label", later, json!({"f:labels": {"f:env": {"f:x": {}}}}))],
        ),
        ("it owns the map", vec![entry("x", later, json!({"f:labels": {}}))]),
        ("it owns another label", vec![entry("x", later, json!({"f:labels": {"f:environment": {}}}))]),
        ("it owns the annotation", vec![entry("x", later, json!({"f:annotations": {"f:env": {}}}))]),
        (
            "it is of the status",
            vec![ManagedFieldsEntry { subresource: Some("status".to_owned()), ..entry("x", later, added.clone()) }],
        ),
    ] {
        match with(&entries) {
            Decision::Refused(refusal) => assert_eq!(refusal.code, Code::Labels, "{why}"),
            other => panic!("{why}: {other:?}"),
        }
    }
}

#[test]
fn taints_and_owners_are_judged_whoever_wrote_them() {
    let by_hub = |cluster: &mut ManagedCluster| {
        let spec = json!({"taints": [{"key": "cluster.open-cluster-management.io/unreachable", "effect": "NoSelect", "timeAdded": null}]});
        cluster.spec = serde_json::from_value(spec).expect("a spec");
        let finalizers = ["cluster.open-cluster-management.io/resource-cleanup", "example.com/later"];
        cluster.metadata.finalizers = Some(finalizers.map(str::to_owned).to_vec());
        let added = entry("x", REGISTERED, json!({"f:finalizers": {"v:\"example.com/later\"": {}}}));
        cluster.metadata.managed_fields = Some(vec![added]);
    };
    assert_eq!(with(&[&by_hub], &Options::default()), lets_in(0));
    let tainted = |cluster: &mut ManagedCluster| {
        let taint = json!({"key": "example.com/t", "effect": "NoSelect", "timeAdded": null});
        cluster.spec.taints.push(serde_json::from_value(taint).expect("a taint"));
        let fields = Some(FieldsV1(json!({"f:spec": {"f:taints": {}}})));
        cluster.metadata.managed_fields =
            Some(vec![ManagedFieldsEntry { fields_v1: fields, ..entry("registration", REGISTERED + 5, json!({})) }]);
    };
    assert_refused(&with(&[&tainted], &Options::default()), Code::Taints);
    let owned =
        |cluster: &mut ManagedCluster| cluster.metadata.owner_references = Some(vec![OwnerReference::default()]);
    assert_refused(&with(&[&owned], &Options::default()), Code::OwnerReferences);
    let foreign = |cluster: &mut ManagedCluster| cluster.metadata.finalizers = Some(vec!["example.com/f".to_owned()]);
    assert_refused(&with(&[&foreign], &Options::default()), Code::Finalizers);
}

#[test]
fn consent_is_given_to_what_was_shown_and_sets_have_a_word_of_their_own() {
    let brought: [&dyn Fn(&mut ManagedCluster); 3] =
        [&label("region", "eu"), &annotation("example.com/owner", "eve"), &|cluster| {
            cluster.metadata.finalizers = Some(vec!["example.com/f".to_owned()])
        }];
    let Decision::Refused(refusal) = with(&brought, &Options::default()) else { panic!("it is refused") };
    assert_eq!((refusal.code, refusal.help), (Code::Labels, Some(Help::AsRegistered)));
    for what in ["\"region\"", "\"example.com/owner\"", "\"example.com/f\""] {
        assert!(refusal.detail.contains(what), "{}", refusal.detail);
    }
    assert_eq!(with(&brought, &as_registered()), lets_in(0));
    let set = label(SET, "prod");
    let with_set: Vec<&dyn Fn(&mut ManagedCluster)> = brought.into_iter().chain([&set as _]).collect();
    assert_refused(&with(&with_set, &as_registered()), Code::ClusterSet);
    let allowed = Options { cluster_sets: vec!["prod".to_owned()], ..Options::default() };
    assert_refused(&with(&with_set, &allowed), Code::Labels);
    assert_eq!(with(&with_set, &Options { as_registered: true, ..allowed }), lets_in(0));
}

#[test]
fn what_the_hub_accepts_by_itself_nobody_has_looked_at() {
    let gives = Decision::Act { approve: Some(0), stands_on: Some(0), accept: false };
    let by_person = |cluster: &mut ManagedCluster| cluster.spec.hub_accepts_client = Some(true);
    let by_hub = |cluster: &mut ManagedCluster| {
        by_person(cluster);
        annotation("open-cluster-management.io/automatically-accepted-on", "2026-09-21T00:00:00Z")(cluster);
    };
    for options in [Options::default(), in_bulk()] {
        assert_eq!(with(&[&by_hub], &options), gives);
        assert_refused(&with(&[&by_hub, &label("env", "prod")], &options), Code::Labels);
    }
    assert_eq!(with(&[&by_hub, &label("env", "prod")], &as_registered()), gives);
    // A person looked at it, and somebody who names it means it; a selector does not know for which key it was.
    assert_eq!(with(&[&by_person, &label("env", "prod")], &Options::default()), gives);
    assert_refused(&with(&[&by_person], &in_bulk()), Code::NameTaken);
    // Its request was denied; it asks again with another key.
    let mut no = asks("no", 105, &key());
    conclude_at(&mut no, "Denied", REGISTERED + 6);
    let again = asks("again", 110, &key());
    let mut hubs = cluster();
    by_hub(&mut hubs);
    assert_refused(&decide_with(&hubs, &[no.clone(), again.clone()], &in_bulk()), Code::DeniedBefore);
    let named = Decision::Act { approve: Some(1), stands_on: Some(1), accept: false };
    assert_eq!(decide_with(&hubs, &[no, again], &Options::default()), named);
}
