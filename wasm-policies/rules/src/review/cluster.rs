//! The facts of a ManagedCluster.

use std::collections::BTreeSet;

use k8s_openapi::ByteString;
use ocm_policy_abi::{Claim, ClientConfig, Cluster, Condition, Map, Owner, Taint, Text};
use ocm_rules::cluster::TELLING;
use serde_json::Value;

use super::value::{At, Unusable};
use crate::json::sha256_hex;

/// How much of what agents and others write a policy is shown: of each list so many items, of each text so many bytes.
pub(super) const MOST_ENTRIES: usize = 1024;
pub(super) const MOST_ITEMS: usize = 128;
pub(super) const MOST_BYTES: usize = 1024;

/// The facts of a ManagedCluster.
///
/// # Errors
/// Names the field that is missing or of a wrong type.
pub fn cluster(object: &Value) -> Result<Cluster<'_>, Unusable> {
    read_cluster(&At { value: object, path: "object".to_owned() })
}

pub(super) fn read_cluster<'a>(at: &At<'a>) -> Result<Cluster<'a>, Unusable> {
    let metadata = at.needed("metadata")?;
    let nothing = At { value: &Value::Null, path: String::new() };
    let spec = at.member("spec")?.unwrap_or_else(|| nothing.clone());
    let status = at.member("status")?.unwrap_or_else(|| nothing.clone());
    let version = status.member("version")?.unwrap_or(nothing);
    let mut cut = Cut::default();
    let mut cluster = Cluster {
        // Empty where the server has yet to generate it.
        name: metadata.text("name")?.unwrap_or_default().into(),
        uid: metadata.text("uid")?.map(Text::from),
        resource_version: metadata.text("resourceVersion")?.map(Text::from),
        generation: metadata.number("generation")?,
        labels: cut.entries(metadata.map("labels")?, "labels"),
        annotations: cut.entries(metadata.map("annotations")?, "annotations"),
        finalizers: cut.items(metadata.texts("finalizers")?, "finalizers"),
        created: metadata.time("creationTimestamp")?,
        deleting: metadata.time("deletionTimestamp")?.is_some(),
        accepted: spec.flag("hubAcceptsClient")?.unwrap_or(false),
        lease_duration_seconds: spec.number("leaseDurationSeconds")?,
        kubernetes_version: version.text("kubernetes")?.map(|text| cut.text(text.into(), "kubernetesVersion")),
        ..Cluster::default()
    };
    let text = |at: &At<'a>, name: &str| at.text(name).map(|text| Text::from(text.unwrap_or_default()));
    for owner in cut.items(metadata.items("ownerReferences")?, "owners") {
        cluster.owners.push(Owner {
            api_version: text(&owner, "apiVersion")?,
            kind: text(&owner, "kind")?,
            name: text(&owner, "name")?,
            uid: text(&owner, "uid")?,
            controller: owner.flag("controller")?.unwrap_or(false),
        });
    }
    for taint in cut.items(spec.items("taints")?, "taints") {
        cluster.taints.push(Taint {
            key: text(&taint, "key")?,
            value: text(&taint, "value")?,
            effect: text(&taint, "effect")?,
            added: taint.time("timeAdded")?,
        });
    }
    for config in cut.items(spec.items("managedClusterClientConfigs")?, "clientConfigs") {
        let bundle = config.typed("caBundle", "base64", |value| serde_json::from_value(value.clone()).ok())?;
        let bundle = bundle.map(|ByteString(bytes)| bytes).filter(|bytes| !bytes.is_empty());
        cluster.client_configs.push(ClientConfig {
            url: cut.text(text(&config, "url")?, "clientConfigs"),
            ca_sha256: bundle.map(|bytes| sha256_hex(&bytes).into()),
        });
    }
    for claim in cut.items(status.items("clusterClaims")?, "claims") {
        cluster.claims.push(Claim {
            name: cut.text(text(&claim, "name")?, "claims"),
            value: cut.text(text(&claim, "value")?, "claims"),
        });
    }
    for condition in cut.items(status.items("conditions")?, "conditions") {
        cluster.conditions.push(Condition {
            kind: cut.text(text(&condition, "type")?, "conditions"),
            status: cut.text(text(&condition, "status")?, "conditions"),
            reason: cut.text(text(&condition, "reason")?, "conditions"),
            message: cut.text(text(&condition, "message")?, "conditions"),
            since: condition.time("lastTransitionTime")?,
        });
    }
    cluster.truncated = cut.0.into_iter().map(Text::from).collect();
    Ok(cluster)
}

/// Keeps facts within bounds, and remembers what it cut: whoever inflates an object must not make policies run out of
/// fuel when somebody else writes to it.
#[derive(Default)]
struct Cut(BTreeSet<&'static str>);

impl Cut {
    fn items<T>(&mut self, mut items: Vec<T>, member: &'static str) -> Vec<T> {
        if items.len() > MOST_ITEMS {
            items.truncate(MOST_ITEMS);
            self.0.insert(member);
        }
        items
    }

    fn entries<'a>(&mut self, entries: Map<'a, Text<'a>>, member: &'static str) -> Map<'a, Text<'a>> {
        if entries.len() <= MOST_ENTRIES {
            return entries;
        }
        self.0.insert(member);
        // Whoever writes many others hides none of these.
        let (telling, others): (Vec<_>, Vec<_>) =
            entries.into_entries().partition(|(key, _)| TELLING.contains(&key.as_str()));
        let room = MOST_ENTRIES.saturating_sub(telling.len());
        telling.into_iter().chain(others.into_iter().take(room)).collect()
    }

    fn text<'a>(&mut self, text: Text<'a>, member: &'static str) -> Text<'a> {
        if text.len() <= MOST_BYTES {
            return text;
        }
        self.0.insert(member);
        text[..text.floor_char_boundary(MOST_BYTES)].to_owned().into()
    }
}
