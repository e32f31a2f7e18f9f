//! What a ManagedCluster was registered with, as facts for the rules of [`ocm_rules::cluster`].

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, OwnerReference};
use ocm_api::cluster::{ManagedCluster, TaintEffect};
use ocm_rules::aws;
use ocm_rules::cluster::{self, Cluster, Owner, Settings, Taint};

use crate::csr::Violation;

/// What whoever registered the cluster brought that only administrators give (rule M2). What was added since counts as
/// an administrator's or the hub's: those who register clusters may create them, not change them.
pub fn violations(object: &ManagedCluster, cluster_sets: &[String]) -> Vec<Violation> {
    let brought = Brought::of(object);
    let labels = brought.entries(object.metadata.labels.as_ref(), "f:labels");
    let annotations = brought.entries(object.metadata.annotations.as_ref(), "f:annotations");
    let owners: Vec<Owner<'_>> = match brought.has(&["f:metadata", "f:ownerReferences"]) {
        true => object.metadata.owner_references.iter().flatten().map(owner).collect(),
        false => Vec::new(),
    };
    let effect = |effect: &TaintEffect| match effect {
        TaintEffect::NoSelect => "NoSelect",
        TaintEffect::PreferNoSelect => "PreferNoSelect",
        TaintEffect::NoSelectIfNew => "NoSelectIfNew",
        _ => "",
    };
    let taints: Vec<Taint<'_>> = match brought.has(&["f:spec", "f:taints"]) {
        true => object
            .spec
            .taints
            .iter()
            .map(|taint| Taint {
                key: &taint.key,
                value: taint.value.as_deref().unwrap_or_default(),
                effect: effect(&taint.effect),
            })
            .collect(),
        false => Vec::new(),
    };
    let finalizers = match brought.has(&["f:metadata", "f:finalizers"]) {
        true => object.metadata.finalizers.as_deref().unwrap_or_default(),
        false => &[],
    };
    let facts = Cluster {
        name: object.metadata.name.as_deref().unwrap_or_default(),
        labels: &labels,
        annotations: &annotations,
        finalizers,
        owners: &owners,
        taints: &taints,
        lease_duration_seconds: object.spec.lease_duration_seconds.map(i64::from),
        // Whether it is accepted is what is being decided.
        accepted: false,
        client_configs: &[],
        other_fields: "",
    };
    let settings = Settings { cluster_sets: cluster_sets.to_vec(), after_hub: true, ..Settings::default() };
    let mut found = cluster::registration(&facts, &settings);
    found.extend(cluster::creation(&facts, &settings));
    found
}

/// The AWS identity that a cluster registers with; none if it registers with a certificate.
pub fn aws_identity(object: &ManagedCluster) -> Option<Result<&str, Violation>> {
    let annotations = object.metadata.annotations.as_ref()?;
    let get = |key: &str| annotations.get(key).map(String::as_str);
    aws::identity(get(aws::CLUSTER_ARN), get(aws::ROLE_SUFFIX))
}

fn owner(owner: &OwnerReference) -> Owner<'_> {
    Owner {
        api_version: &owner.api_version,
        kind: &owner.kind,
        name: &owner.name,
        uid: &owner.uid,
        controller: owner.controller,
        block_owner_deletion: owner.block_owner_deletion,
    }
}

/// Which fields were there when the object was created, as the API server recorded.
struct Brought<'a> {
    /// The fields of all who wrote in that second: of whoever created it, and perhaps of the hub's controllers.
    creation: Vec<&'a serde_json::Value>,
}

impl<'a> Brought<'a> {
    fn of(object: &'a ManagedCluster) -> Self {
        let created = object.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let at_creation = |entry: &&ManagedFieldsEntry| {
            entry.subresource.as_deref().unwrap_or_default().is_empty()
                && entry.time.as_ref().map(|time| time.0) <= created
        };
        let entries = object.metadata.managed_fields.iter().flatten().filter(at_creation);
        Self { creation: entries.filter_map(|entry| entry.fields_v1.as_ref().map(|fields| &fields.0)).collect() }
    }

    /// Whether a field was brought; where that is not known, it was.
    fn has(&self, path: &[&str]) -> bool {
        let has =
            |fields: &&serde_json::Value| path.iter().try_fold(*fields, |fields, part| fields.get(part)).is_some();
        // Who wrote again under the same name has a later entry only: then nobody knows what was brought.
        self.creation.is_empty() || self.creation.iter().any(has)
    }

    fn entries(&self, all: Option<&'a BTreeMap<String, String>>, field: &str) -> Vec<(&'a str, &'a str)> {
        all.into_iter()
            .flatten()
            .filter(|(key, _)| self.has(&["f:metadata", field, &format!("f:{key}")]))
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect()
    }
}
