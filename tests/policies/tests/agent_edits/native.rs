//! What the rules say to a write, by facts of typed objects, as commands have them.

use std::collections::BTreeMap;

use ocm_api::{ManagedCluster, ManifestWork};
use ocm_rules::Violation;
use ocm_rules::agent::{self, ClusterWrite, Incomparable, Settings, WorkWrite, Writer};
use ocm_rules::cluster::{ClientConfig, Cluster, Member, Owner, Taint};
use ocm_rules::identity::Requester;
use serde_json::Value;

use crate::made::{Kind, MOST_ENTRIES, MOST_ITEMS, Write};

/// What the rules have against a write; none where no rule is about it.
pub(crate) fn judge(write: &Write, settings: &Settings) -> Option<Vec<Violation>> {
    let (user, groups) = write.who.user();
    let writer = Writer::of(&Requester { user, uid: None, groups, credential_ids: &[] })?;
    match write.kind {
        Kind::Cluster => cluster(write, writer, settings),
        Kind::Work => work(write, writer),
    }
}

fn cluster(write: &Write, writer: Writer<'_>, settings: &Settings) -> Option<Vec<Violation>> {
    let [before, after] = [&write.before, &write.after].map(|object| object.as_ref().map(Typed::of));
    let [old, new] = [&before, &after].map(|typed| typed.as_ref().map(Facts::of));
    let [old, new] = [&old, &new].map(|facts| facts.as_ref().map(Facts::cluster));
    let facts = ClusterWrite { writer, subresource: write.subresource, before: old.as_ref(), after: new.as_ref() };
    agent::cluster_write(&facts, settings, || match (&before, &after) {
        (Some(before), Some(after)) if write.shows_objects => Ok(beyond(&before.object, &after.object)),
        _ => Err(Incomparable::Missing),
    })
}

fn work(write: &Write, writer: Writer<'_>) -> Option<Vec<Violation>> {
    let object = write.after.as_ref().or(write.before.as_ref());
    let namespace = object.and_then(|object| object["metadata"]["namespace"].as_str());
    let facts = WorkWrite { writer, namespace, subresource: write.subresource, operation: write.operation };
    agent::work_write(&facts, || match (&write.before, &write.after) {
        (Some(before), Some(after)) if write.shows_objects => Ok(bare(before) == bare(after)),
        _ => Err(Incomparable::Missing),
    })
}

/// A work without what its agent and the API server write.
fn bare(object: &Value) -> ManifestWork {
    let mut work: ManifestWork = serde_json::from_value(object.clone()).expect("it is a work");
    work.status = None;
    work.metadata.finalizers = None;
    work.metadata.managed_fields = None;
    work.metadata.resource_version = None;
    work.metadata.generation = None;
    work
}

/// A cluster, typed.
struct Typed {
    object: ManagedCluster,
    /// What the facts have no place for.
    other: String,
}

impl Typed {
    fn of(object: &Value) -> Self {
        let other = format!("{} {}", object["spec"]["newField"], object["metadata"]["generateName"]);
        Self { object: serde_json::from_value(object.clone()).expect("it is a cluster"), other }
    }
}

/// The lists that the facts of a cluster borrow from.
struct Facts<'a> {
    typed: &'a Typed,
    labels: Vec<(&'a str, &'a str)>,
    annotations: Vec<(&'a str, &'a str)>,
    finalizers: Vec<&'a str>,
    owners: Vec<Owner<'a>>,
    taints: Vec<Taint<'a>>,
    client_configs: Vec<ClientConfig<'a>>,
}

impl<'a> Facts<'a> {
    fn of(typed: &'a Typed) -> Self {
        let (metadata, spec) = (&typed.object.metadata, &typed.object.spec);
        let owners = metadata.owner_references.iter().flatten().map(|owner| Owner {
            api_version: &owner.api_version,
            kind: &owner.kind,
            name: &owner.name,
            uid: &owner.uid,
            controller: owner.controller,
            block_owner_deletion: owner.block_owner_deletion,
        });
        let taints = spec.taints.iter().map(|taint| Taint {
            key: &taint.key,
            value: taint.value.as_deref().unwrap_or_default(),
            effect: taint.effect.as_str(),
        });
        let client_configs = spec.managed_cluster_client_configs.iter().map(|config| {
            let bundle = config.ca_bundle.as_ref().map(|bundle| std::str::from_utf8(&bundle.0).expect("it is text"));
            ClientConfig { url: &config.url, ca: bundle.unwrap_or_default() }
        });
        Self {
            typed,
            labels: entries(metadata.labels.as_ref()),
            annotations: entries(metadata.annotations.as_ref()),
            finalizers: metadata.finalizers.iter().flatten().map(String::as_str).collect(),
            owners: owners.collect(),
            taints: taints.collect(),
            client_configs: client_configs.collect(),
        }
    }

    fn cluster(&self) -> Cluster<'_, &'a str> {
        let object = &self.typed.object;
        Cluster {
            name: object.metadata.name.as_deref().unwrap_or_default(),
            labels: &self.labels,
            annotations: &self.annotations,
            finalizers: &self.finalizers,
            owners: &self.owners,
            taints: &self.taints,
            lease_duration_seconds: object.spec.lease_duration_seconds.map(i64::from),
            accepted: object.spec.hub_accepts_client.unwrap_or(false),
            client_configs: &self.client_configs,
            other_fields: &self.typed.other,
        }
    }
}

fn entries(all: Option<&BTreeMap<String, String>>) -> Vec<(&str, &str)> {
    all.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

/// What differs in what the facts leave out, or is more than a policy is shown.
fn beyond(before: &ManagedCluster, after: &ManagedCluster) -> Vec<Member> {
    let most = |count: fn(&ManagedCluster) -> usize| count(before).max(count(after));
    let labels = most(|cluster| cluster.metadata.labels.as_ref().map_or(0, BTreeMap::len));
    let annotations = most(|cluster| cluster.metadata.annotations.as_ref().map_or(0, BTreeMap::len));
    let finalizers = most(|cluster| cluster.metadata.finalizers.as_ref().map_or(0, Vec::len));
    let members = [
        // Facts do not say when a taint was added.
        (Member::Taints, before.spec.taints != after.spec.taints),
        (Member::Labels, labels > MOST_ENTRIES),
        (Member::Annotations, annotations > MOST_ENTRIES),
        (Member::Finalizers, finalizers > MOST_ITEMS),
    ];
    members.into_iter().filter_map(|(member, differs)| differs.then_some(member)).collect()
}
