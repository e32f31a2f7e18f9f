//! What a ManagedCluster was registered with, as facts for the rules of [`ocm_rules::cluster`].

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, OwnerReference};
use ocm_api::cluster::{ManagedCluster, TaintEffect};
use ocm_rules::aws;
use ocm_rules::cluster::{self, Cluster, Owner, Settings, Taint};
use serde_json::{Value, json};

use crate::csr::Violation;

/// What whoever registered the cluster brought that only administrators give (rule M2), all of it. Labels, annotations
/// and finalizers that somebody else is proven to have added since are no violation: those who register clusters may
/// create them, not change them. Taints are one field whoever wrote them, and owners are nobody's afterthought.
pub fn violations(object: &ManagedCluster, cluster_sets: &[String]) -> Vec<Violation> {
    let metadata = &object.metadata;
    let later = Later::of(metadata.managed_fields.as_deref().unwrap_or_default());
    let labels = brought(metadata.labels.as_ref(), |key| later.added("f:labels", &format!("f:{key}")));
    let annotations = brought(metadata.annotations.as_ref(), |key| later.added("f:annotations", &format!("f:{key}")));
    let finalizers = metadata.finalizers.iter().flatten();
    let finalizers: Vec<&String> =
        finalizers.filter(|name| !later.added("f:finalizers", &format!("v:{}", json!(name)))).collect();
    let owners: Vec<Owner<'_>> = metadata.owner_references.iter().flatten().map(owner).collect();
    let effect = |effect: &TaintEffect| match effect {
        TaintEffect::NoSelect => "NoSelect",
        TaintEffect::PreferNoSelect => "PreferNoSelect",
        TaintEffect::NoSelectIfNew => "NoSelectIfNew",
        _ => "",
    };
    let taints: Vec<Taint<'_>> = object
        .spec
        .taints
        .iter()
        .map(|taint| Taint {
            key: &taint.key,
            value: taint.value.as_deref().unwrap_or_default(),
            effect: effect(&taint.effect),
        })
        .collect();
    let facts = Cluster {
        name: metadata.name.as_deref().unwrap_or_default(),
        labels: &labels,
        annotations: &annotations,
        finalizers: &finalizers,
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

/// What of an object's metadata others than its creator are proven to have added.
///
/// Of `managedFields` a client chooses nearly everything when it creates an object: entries of any managers with any
/// times, and the name of its own manager, whose entry takes a new time as soon as anybody of that name changes
/// anything. With more than ten entries its own one even goes into another, with the time of a third. Two things it
/// cannot do: whatever field is there at its creation, the API server takes from every entry but the one of that
/// request; and whoever brings the first label also owns the map of labels itself (`.`), which nobody takes over. So an
/// entry that owns a label and not the map is of somebody who found the map there. Whatever is not proven, such as what
/// webhooks add, which no entry tells of, counts as brought.
struct Later<'a>(Vec<&'a Value>);

impl<'a> Later<'a> {
    fn of(entries: &'a [ManagedFieldsEntry]) -> Self {
        let of_object = |entry: &&ManagedFieldsEntry| entry.subresource.as_deref().unwrap_or_default().is_empty();
        let fields = entries.iter().filter(of_object).filter_map(|entry| entry.fields_v1.as_ref());
        Self(fields.filter_map(|fields| fields.0.get("f:metadata")).collect())
    }

    /// Whether somebody added this member to a map or list that was there.
    fn added(&self, all: &str, member: &str) -> bool {
        // What has members is owned itself only where it says so.
        let owned =
            |fields: &Value| matches!(fields, Value::Object(fields) if fields.is_empty() || fields.contains_key("."));
        self.0.iter().filter_map(|fields| fields.get(all)).any(|all| !owned(all) && all.get(member).is_some_and(owned))
    }
}

/// The entries of a map that are not proven to be added later.
fn brought(all: Option<&BTreeMap<String, String>>, added: impl Fn(&str) -> bool) -> Vec<(&str, &str)> {
    let all = all.into_iter().flatten().filter(|(key, _)| !added(key));
    all.map(|(key, value)| (key.as_str(), value.as_str())).collect()
}
