//! Columns of works and add-ons.

use jiff::Timestamp;
use ocm_api::conditions::{managed_cluster_add_on, manifest_work};
use ocm_api::{Condition, ManagedClusterAddOn, ManifestWork};
use ocm_cli::list::{NONE, View, age};
use ocm_core::delivery;
use ocm_flows::deliveries::DeliveryRow;
use serde_json::{Value, json};

fn word(all: &[Condition], kind: &str) -> String {
    delivery::status(all, kind).unwrap_or(NONE).to_owned()
}

fn why(why: Option<&String>) -> String {
    why.cloned().unwrap_or_default()
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
}

/// Add-ons of clusters.
pub(crate) struct AddOns;

impl View for AddOns {
    type Row = DeliveryRow<ManagedClusterAddOn>;

    const HEADINGS: &'static [&'static str] =
        &["CLUSTER", "NAME", "AVAILABLE", "AGE", "WHY", "NAMESPACE", "CONFIGURED", "REGISTERED", "APPLIED", "DEGRADED"];
    const NARROW: usize = 5;
    const NOTHING: &'static str = "the hub has no add-ons on clusters";
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
}
