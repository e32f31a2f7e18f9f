//! Columns of works and add-ons, and what is below them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use ocm_api::conditions::{managed_cluster_add_on, manifest_work};
use ocm_api::{Condition, ManagedClusterAddOn, ManifestWork};
use ocm_cli::list::{NONE, Tree, View, age};
use ocm_core::delivery;
use ocm_core::work::{ObjectStanding, objects};
use ocm_flows::deliveries::DeliveryRow;
use serde_json::{Value, json};

fn word(all: &[Condition], kind: &str) -> String {
    delivery::status(all, kind).unwrap_or(NONE).to_owned()
}

fn why(why: Option<&String>) -> String {
    why.cloned().unwrap_or_default()
}

/// Something with the status of its conditions, and below it what keeps it from being there.
fn tree(what: &str, conditions: &[(&str, Option<&str>)], why: Option<&String>) -> Tree {
    let told = conditions.iter().map(|(kind, status)| format!("{kind}: {}", status.unwrap_or(NONE)));
    let line = format!("{what}  {}", told.collect::<Vec<_>>().join(", "));
    Tree::new(line, why.map(|why| Tree::leaf(format!("WHY: {why}"))).into_iter().collect())
}

/// The object with what keeps it from being there.
fn document(mut object: Value, why: Option<&String>) -> Value {
    if let (Some(object), Some(why)) = (object.as_object_mut(), why) {
        object.insert("standing".to_owned(), json!({ "why": why }));
    }
    object
}

/// What the hub brings to clusters.
pub(crate) struct Works;

impl View for Works {
    type Row = DeliveryRow<ManifestWork>;

    // The sentence is long, so it comes last.
    const HEADINGS: &'static [&'static str] =
        &["CLUSTER", "NAME", "APPLIED", "AVAILABLE", "OBJECTS", "AGE", "WHY", "PROGRESSING", "DEGRADED", "COMPLETE"];
    const NARROW: usize = 7;
    const NOTHING: &'static str = "the hub has no works";
    const NO_MATCH: &'static str = "no work matches";
    const COLUMNS: &'static [&'static str] = &["cluster", "name", "applied", "available", "age"];

    fn cells(row: &Self::Row, now: Timestamp) -> Vec<String> {
        let all = row.object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let (available, objects) = delivery::objects(&row.object);
        vec![
            row.cluster().to_owned(),
            row.name().to_owned(),
            word(all, manifest_work::APPLIED),
            word(all, manifest_work::AVAILABLE),
            format!("{available}/{objects}"),
            age(now, row.created()),
            why(row.why.as_ref()),
            word(all, manifest_work::PROGRESSING),
            word(all, manifest_work::DEGRADED),
            word(all, manifest_work::COMPLETE),
        ]
    }

    fn reference(row: &Self::Row) -> String {
        format!("manifestwork.work.open-cluster-management.io/{}", row.name())
    }

    fn document(row: &Self::Row) -> Value {
        document(Self::object(row), row.why.as_ref())
    }

    fn object(row: &Self::Row) -> Value {
        serde_json::to_value(&row.object).unwrap_or_default()
    }

    fn created(row: &Self::Row) -> Option<Timestamp> {
        row.created()
    }

    fn trees(rows: &[Self::Row], _: Timestamp) -> Vec<Tree> {
        let object = |one: ObjectStanding| {
            let ObjectStanding { object, applied, available, why, feedback, .. } = one;
            let conditions =
                [(manifest_work::APPLIED, applied.as_deref()), (manifest_work::AVAILABLE, available.as_deref())];
            let mut tree = tree(&object, &conditions, why.as_ref());
            tree.below.extend(feedback.iter().map(|(name, value)| Tree::leaf(format!("{name}: {value}"))));
            tree
        };
        let work = |row: &Self::Row| {
            let all = row.object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
            let conditions =
                [manifest_work::APPLIED, manifest_work::AVAILABLE].map(|kind| (kind, delivery::status(all, kind)));
            // What keeps the first object from being there is told below that object.
            let mut work = tree(&format!("{}/{}", row.cluster(), row.name()), &conditions, None);
            work.below.extend(objects(&row.object).into_iter().map(object));
            if row.object.metadata.deletion_timestamp.is_some() {
                work.below.extend(row.why.as_ref().map(|why| Tree::leaf(format!("WHY: {why}"))));
            }
            work
        };
        rows.iter().map(work).collect()
    }
}

/// Add-ons of clusters.
pub(crate) struct AddOns;

impl View for AddOns {
    type Row = DeliveryRow<ManagedClusterAddOn>;

    const HEADINGS: &'static [&'static str] =
        &["CLUSTER", "NAME", "AVAILABLE", "AGE", "WHY", "NAMESPACE", "CONFIGURED", "REGISTERED", "APPLIED", "DEGRADED"];
    const NARROW: usize = 5;
    const NOTHING: &'static str = "the hub has no add-ons on clusters";
    const NO_MATCH: &'static str = "no add-on on a cluster matches";
    const COLUMNS: &'static [&'static str] = &["cluster", "name", "available", "age"];

    fn cells(row: &Self::Row, now: Timestamp) -> Vec<String> {
        let status = row.object.status.clone().unwrap_or_default();
        let all = &status.conditions;
        vec![
            row.cluster().to_owned(),
            row.name().to_owned(),
            word(all, managed_cluster_add_on::AVAILABLE),
            age(now, row.created()),
            why(row.why.as_ref()),
            status.namespace.clone().unwrap_or_else(|| NONE.to_owned()),
            word(all, managed_cluster_add_on::CONFIGURED),
            word(all, managed_cluster_add_on::REGISTRATION_APPLIED),
            word(all, managed_cluster_add_on::MANIFEST_APPLIED),
            word(all, managed_cluster_add_on::DEGRADED),
        ]
    }

    fn reference(row: &Self::Row) -> String {
        format!("managedclusteraddon.addon.open-cluster-management.io/{}", row.name())
    }

    fn document(row: &Self::Row) -> Value {
        document(Self::object(row), row.why.as_ref())
    }

    fn object(row: &Self::Row) -> Value {
        serde_json::to_value(&row.object).unwrap_or_default()
    }

    fn created(row: &Self::Row) -> Option<Timestamp> {
        row.created()
    }

    fn trees(rows: &[Self::Row], _: Timestamp) -> Vec<Tree> {
        let cluster = |row: &Self::Row| {
            let all = row.object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
            let kind = managed_cluster_add_on::AVAILABLE;
            tree(row.cluster(), &[(kind, delivery::status(all, kind))], row.why.as_ref())
        };
        let mut all: BTreeMap<&str, Vec<Tree>> = BTreeMap::new();
        rows.iter().for_each(|row| all.entry(row.name()).or_default().push(cluster(row)));
        all.into_iter().map(|(name, clusters)| Tree::new(name, clusters)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(kind: &str, status: &str) -> Value {
        json!({"type": kind, "status": status, "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    fn lines(trees: &[Tree]) -> Vec<String> {
        trees.iter().flat_map(Tree::lines).collect()
    }

    #[test]
    fn below_a_work_are_its_objects_with_their_conditions() {
        let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": name}});
        let meta = |name: &str| {
            json!({"group": "", "version": "v1", "kind": "ConfigMap", "resource": "configmaps", "namespace": "default",
                "name": name, "ordinal": 0})
        };
        let status = |name: &str, applied: &str| json!({"resourceMeta": meta(name), "conditions": [condition("Applied", applied), condition("Available", "True")]});
        let object = json!({"metadata": {"namespace": "c1", "name": "web"},
            "spec": {"workload": {"manifests": [map("a"), map("b"), map("c")]}},
            "status": {"conditions": [condition("Applied", "False")],
                "resourceStatus": {"manifests": [status("a", "True"), status("b", "False")]}}});
        let object: ManifestWork = serde_json::from_value(object).unwrap();
        let rows = [DeliveryRow { why: delivery::work(&object), object }];
        assert_eq!(
            lines(&Works::trees(&rows, Timestamp::UNIX_EPOCH)),
            [
                "c1/web  Applied: False, Available: <none>",
                "├── ConfigMap default/a  Applied: True, Available: True",
                "├── ConfigMap default/b  Applied: False, Available: True",
                "│   └── WHY: R: m",
                "└── ConfigMap default/c  Applied: <none>, Available: <none>",
                "    └── WHY: the agent has not looked at it yet",
            ]
        );
    }

    #[test]
    fn below_an_add_on_are_its_clusters() {
        let row = |cluster: &str, name: &str, conditions: Value| {
            let object = json!({"metadata": {"namespace": cluster, "name": name}, "spec": {},
                "status": {"conditions": conditions}});
            let object: ManagedClusterAddOn = serde_json::from_value(object).unwrap();
            DeliveryRow { why: delivery::addon(&object), object }
        };
        let available = json!([condition("Available", "True")]);
        let rows = [
            row("c1", "hello", available.clone()),
            row("c1", "proxy", available),
            row("c2", "hello", json!([condition("Available", "False")])),
        ];
        assert_eq!(
            lines(&AddOns::trees(&rows, Timestamp::UNIX_EPOCH)),
            [
                "hello",
                "├── c1  Available: True",
                "└── c2  Available: False",
                "    └── WHY: Available: R: m",
                "proxy",
                "└── c1  Available: True",
            ]
        );
    }
}
