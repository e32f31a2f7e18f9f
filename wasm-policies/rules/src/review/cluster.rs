//! The facts of a ManagedCluster.

use std::collections::BTreeSet;

use k8s_openapi::ByteString;
use ocm_policy_abi::{CHANGES_SHOWN, Claim, ClientConfig, Cluster, Condition, Map, Owner, Taint, Text};
use ocm_rules::cluster::TELLING;
use serde_json::{Value, json};

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

/// The facts of a ManagedCluster that is updated, and of it as it was, as policies are shown them where somebody updates it.
///
/// # Errors
/// Names the field that is missing or of a wrong type.
pub fn versions<'a>(object: &'a Value, previous: &'a Value) -> Result<[Cluster<'a>; 2], Unusable> {
    let at = |value: &'a Value, path: &str| At { value, path: path.to_owned() };
    read_update(&at(object, "object"), &at(previous, "oldObject"))
}

pub(super) fn read_cluster<'a>(at: &At<'a>) -> Result<Cluster<'a>, Unusable> {
    read(at, &mut Cut::default())
}

/// A cluster that is updated, and as it was. Of labels and annotations those come first that the update changes, and of the others
/// both show the same; the cluster tells of which members that were cut before, too, all changes are shown.
pub(super) fn read_update<'a>(new: &At<'a>, old: &At<'a>) -> Result<[Cluster<'a>; 2], Unusable> {
    let mut cuts = [old, new].map(|other| Cut { other: Some(other.value), ..Cut::default() });
    let [of_new, of_old] = &mut cuts;
    let (mut cluster, previous) = (read(new, of_new)?, read(old, of_old)?);
    let hides = |member: &str| {
        let place = PLACES.iter().find(|(known, _)| *known == member).map(|(_, place)| *place);
        match place {
            Some(place) => new.value.pointer(place) != old.value.pointer(place),
            // Whoever inflates a cluster is not told apart from who hides something.
            None => cuts.iter().any(|cut| cut.hides.contains(member)) || !cuts[1].exceeds.contains(member),
        }
    };
    let cut: BTreeSet<&str> = cuts.iter().flat_map(|cut| &cut.members).copied().collect();
    let shown: Vec<&str> = cut.into_iter().filter(|member| !hides(member)).collect();
    if !shown.is_empty() {
        cluster.more.insert(CHANGES_SHOWN, json!(shown));
    }
    Ok([cluster, previous])
}

/// Where members stand that are cut in the order in which they are written.
const PLACES: [(&str, &str); 7] = [
    ("finalizers", "/metadata/finalizers"),
    ("owners", "/metadata/ownerReferences"),
    ("taints", "/spec/taints"),
    ("clientConfigs", "/spec/managedClusterClientConfigs"),
    ("claims", "/status/clusterClaims"),
    ("conditions", "/status/conditions"),
    ("kubernetesVersion", "/status/version/kubernetes"),
];

fn read<'a>(at: &At<'a>, cut: &mut Cut<'_>) -> Result<Cluster<'a>, Unusable> {
    let metadata = at.needed("metadata")?;
    let nothing = At { value: &Value::Null, path: String::new() };
    let spec = at.member("spec")?.unwrap_or_else(|| nothing.clone());
    let status = at.member("status")?.unwrap_or_else(|| nothing.clone());
    let version = status.member("version")?.unwrap_or(nothing);
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
            added: cut.readable(taint.time("timeAdded"), "taints"),
        });
    }
    for config in cut.items(spec.items("managedClusterClientConfigs")?, "clientConfigs") {
        let bundle = config.typed("caBundle", "base64", |value| serde_json::from_value(value.clone()).ok());
        let bundle =
            cut.readable(bundle, "clientConfigs").map(|ByteString(bytes)| bytes).filter(|bytes| !bytes.is_empty());
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
            since: cut.readable(condition.time("lastTransitionTime"), "conditions"),
        });
    }
    cluster.truncated = cut.members.iter().copied().map(Text::from).collect();
    Ok(cluster)
}

/// Keeps facts within bounds, and remembers what it cut: whoever inflates an object must not make policies run out of
/// fuel when somebody else writes to it. Nor must whoever writes what an API server keeps and nobody can read.
#[derive(Default)]
struct Cut<'o> {
    members: BTreeSet<&'static str>,
    /// The object before or after an update.
    other: Option<&'o Value>,
    /// Members that have more entries than are shown, whatever the other object has.
    exceeds: BTreeSet<&'static str>,
    /// Members of which an entry that differs from the other object is not shown.
    hides: BTreeSet<&'static str>,
}

impl Cut<'_> {
    fn items<T>(&mut self, mut items: Vec<T>, member: &'static str) -> Vec<T> {
        if items.len() > MOST_ITEMS {
            items.truncate(MOST_ITEMS);
            self.members.insert(member);
        }
        items
    }

    fn entries<'a>(&mut self, entries: Map<'a, Text<'a>>, member: &'static str) -> Map<'a, Text<'a>> {
        let other = self.other.map(|other| other["metadata"][member].as_object());
        let others_entries =
            other.flatten().map_or(0, |other| other.values().filter(|value| value.is_string()).count());
        if entries.len().max(others_entries) <= MOST_ENTRIES {
            return entries;
        }
        let all = entries.len();
        if all > MOST_ENTRIES {
            self.exceeds.insert(member);
        }
        let stays = |key: &str, value: &str| {
            other.is_none_or(|other| other.and_then(|other| other.get(key)).and_then(Value::as_str) == Some(value))
        };
        // Whoever writes many others hides none of these.
        let (telling, others): (Vec<_>, Vec<_>) =
            entries.into_entries().partition(|(key, _)| TELLING.contains(&key.as_str()));
        let (mut same, changed): (Vec<_>, Vec<_>) = others.into_iter().partition(|(key, value)| stays(key, value));
        let first = telling.len() + changed.len();
        if first > MOST_ENTRIES {
            self.hides.insert(member);
        }
        // The other object has these as well, and shows those of them that this one shows: none of them looks new or removed.
        let others_first = others_entries.saturating_sub(same.len());
        same.sort_unstable();
        same.truncate(MOST_ENTRIES.saturating_sub(first.max(others_first)));
        let shown: Map<'a, Text<'a>> = telling.into_iter().chain(changed).take(MOST_ENTRIES).chain(same).collect();
        if shown.len() < all {
            self.members.insert(member);
        }
        shown
    }

    /// What can be read; what cannot is left out.
    fn readable<T>(&mut self, read: Result<Option<T>, Unusable>, member: &'static str) -> Option<T> {
        read.unwrap_or_else(|_| {
            self.members.insert(member);
            None
        })
    }

    fn text<'a>(&mut self, text: Text<'a>, member: &'static str) -> Text<'a> {
        if text.len() <= MOST_BYTES {
            return text;
        }
        self.members.insert(member);
        text[..text.floor_char_boundary(MOST_BYTES)].to_owned().into()
    }
}
