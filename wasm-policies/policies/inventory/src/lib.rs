//! Only clusters that stand in an inventory come in, and as it says.

use std::borrow::Cow;
use std::collections::BTreeMap;

use ocm_policy_sdk::rules::csr::Asked;
use ocm_policy_sdk::serde_json::{self, Value};
use ocm_policy_sdk::{
    Answer, Edit, EditGrant, EvidenceSource, ManifestBuilder, Operation, Policy, Request, Row, Stage, allow, deny,
    hold, hub, manifest, no_opinion,
};
use serde::Deserialize;

/// The policy with its settings.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Inventory {
    /// Whether labels and cluster set of the inventory are given to the cluster.
    set_labels: bool,
    /// Whether a person decides about names that are not in the inventory.
    hold_unknown: bool,
}

impl Default for Inventory {
    fn default() -> Self {
        Self { set_labels: true, hold_unknown: false }
    }
}

/// What the inventory says of a cluster.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Entry {
    /// Who brings it in.
    requester: Option<String>,
    /// Labels that it gets.
    labels: BTreeMap<String, String>,
    /// The set that it gets into.
    cluster_set: Option<String>,
    /// The fingerprint of its agent's key, with or without `sha256:`.
    spki_sha256: Option<String>,
}

const TABLE: &str = "inventory";
/// The certificate requests that name the cluster, by whatever means.
const REQUESTS: &str = "requests";
/// Of a certificate request, in the order of [`Granted::read`].
const REQUEST_FIELDS: [&str; 7] =
    ["/state", "/askedBy", "/spkiSha256", "/signer", "/unreadable", "/commonNames", "/organizations"];

impl Policy for Inventory {
    type Settings = Self;

    fn manifest() -> ManifestBuilder {
        let source = EvidenceSource::ConfigMap {
            namespace: "open-cluster-management".to_owned(),
            name: "cluster-inventory".to_owned(),
        };
        manifest("inventory", env!("CARGO_PKG_VERSION"), "Lets in clusters that stand in an inventory, as it says")
            .judges([Operation::Create, Operation::Join, Operation::Accept, Operation::Request, Operation::Approve])
            .needs_of_cluster(TABLE, source, "/metadata/name", &["/value"])
            .needs_of_cluster(REQUESTS, EvidenceSource::Csrs, "/clusters", &REQUEST_FIELDS)
            .may_edit(EditGrant::Label { key: "*".to_owned() })
            .may_edit(EditGrant::ClusterSet)
            .gives_codes(hub::CLUSTER_CODES)
            .gives("InventoryIncomplete", "The inventory could not be read, or not to its end")
            .gives("NotInInventory", "The inventory has no cluster of this name")
            .gives("EntryUnreadable", "What the inventory says of the cluster cannot be read")
            .gives("RequesterUnexpected", "Somebody else should bring in this cluster")
            .gives("KeyUnexpected", "The inventory names another key")
            .gives("KeyUnknown", "The inventory names a key, and no certificate request shows one")
            .gives("RequestsUnknown", "The certificate requests of the cluster could not be read to the end")
            .settings_schema(include_str!("../settings.schema.json"))
    }

    fn configure(settings: Self) -> Result<Self, Vec<String>> {
        Ok(settings)
    }

    fn decide(&self, request: &Request<'_>) -> Answer {
        self.judge(request)
    }
}

impl Inventory {
    fn judge(&self, request: &Request<'_>) -> Answer {
        if hub::is_denial(request) || hub::is_renewal(request) || hub::is_addons(request) {
            return no_opinion();
        }
        let name = match hub::cluster_name(request) {
            Err(violation) => return hub::violated(violation),
            // It has nothing to do with clusters.
            Ok(None) if request.csr().is_some() => return no_opinion(),
            Ok(None) => return deny("NotInInventory", "the cluster has no name yet").at("metadata.name"),
            Ok(Some(name)) => name,
        };
        let Some(table) = request.evidence(TABLE) else {
            return hold("InventoryIncomplete", "the inventory cannot be read").again_in(60);
        };
        let Some(row) = table.rows.iter().find(|row| row.name == name) else {
            return match (table.complete, self.hold_unknown) {
                (false, _) => hold("InventoryIncomplete", "the inventory is too large to be read").again_in(300),
                (true, true) => hold("NotInInventory", "the inventory has no cluster of this name").at("metadata.name"),
                (true, false) => {
                    deny("NotInInventory", "the inventory has no cluster of this name").at("metadata.name")
                }
            };
        };
        match read(row.values.first()) {
            Ok(entry) => match wrong(request, name, &entry) {
                None => self.give(request, &entry),
                Some(answer) => answer,
            },
            Err(wrong) => hold("EntryUnreadable", format!("the inventory's entry cannot be read: {wrong}")),
        }
    }

    /// Lets it in, with what the inventory gives it.
    fn give(&self, request: &Request<'_>, entry: &Entry) -> Answer {
        let Some(cluster) = request.cluster().filter(|_| self.set_labels) else { return allow() };
        // What is said again at this stage is known at the next one as what this policy wants, not as somebody's claim.
        let again = request.stage() == Some(Stage::Mutating);
        let mut answer = allow();
        for (key, value) in &entry.labels {
            if again || cluster.labels.get(key).is_none_or(|now| *now != value.as_str()) {
                answer = answer.label(key, value);
            }
        }
        match &entry.cluster_set {
            Some(set) if again || hub::cluster_set(cluster) != Some(set) => {
                answer.edit(Edit::SetClusterSet { name: set.clone() })
            }
            _ => answer,
        }
    }
}

/// What is not as the inventory says.
fn wrong(request: &Request<'_>, name: &str, entry: &Entry) -> Option<Answer> {
    let key = entry.spki_sha256.as_deref().map(|key| key.strip_prefix("sha256:").unwrap_or(key));
    if request.operation() == Operation::Accept && request.csr().is_none() {
        return wrong_approval(request, name, entry.requester.as_deref(), key);
    }
    if entry.requester.as_deref().is_some_and(|expected| expected != hub::asking_user(request)) {
        return Some(deny("RequesterUnexpected", "the inventory expects another requester").at("username"));
    }
    match (key, request.csr()) {
        (Some(key), Some(csr)) if !csr.spki_sha256.eq_ignore_ascii_case(key) => {
            Some(deny("KeyUnexpected", "the inventory names another key").at("spec.request"))
        }
        // Without its acceptance a cluster may be there: its key is looked at when it asks for a certificate.
        (Some(_), None)
            if request.operation() != Operation::Create || request.cluster().is_some_and(|c| c.accepted) =>
        {
            Some(hold("KeyUnknown", "the key that the inventory names has not been shown"))
        }
        _ => None,
    }
}

/// Whoever accepts a cluster shows neither who asked for its certificate nor with which key, and each request is judged when
/// it is approved. What was approved already, by others or before this policy, would come in with the acceptance.
fn wrong_approval(request: &Request<'_>, name: &str, requester: Option<&str>, key: Option<&str>) -> Option<Answer> {
    if requester.is_none() && key.is_none() {
        return None;
    }
    let Some(table) = request.evidence(REQUESTS).filter(|table| table.complete) else {
        let why = "the certificate requests of the cluster cannot be read to the end";
        return Some(hold("RequestsUnknown", why).again_in(60));
    };
    for row in &table.rows {
        let Some(granted) = Granted::read(row) else {
            return Some(hold("RequestsUnknown", "a certificate request of the cluster cannot be read").again_in(60));
        };
        if !granted.lets_into(name) {
            continue;
        }
        if requester.is_some_and(|expected| expected != granted.asked_by) {
            let why = "a certificate was approved for another requester than the inventory expects";
            return Some(deny("RequesterUnexpected", why));
        }
        if key.is_some_and(|key| !granted.key.is_some_and(|shown| shown.eq_ignore_ascii_case(key))) {
            return Some(deny("KeyUnexpected", "a certificate was approved for another key than the inventory names"));
        }
    }
    None
}

/// A certificate request as the hub tells of it.
struct Granted<'r> {
    state: &'r str,
    asked_by: &'r str,
    key: Option<&'r str>,
    signer: &'r str,
    is_readable: bool,
    common_names: Vec<&'r str>,
    organizations: Vec<&'r str>,
}

impl<'r> Granted<'r> {
    fn read(row: &'r Row<'_>) -> Option<Self> {
        let [state, asked_by, key, signer, unreadable, common_names, organizations] = &row.values[..] else {
            return None;
        };
        let text = |value: &'r Value| value.as_str().unwrap_or_default();
        let texts = |value: &'r Value| value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        row.complete.then(|| Self {
            state: text(state),
            asked_by: text(asked_by),
            key: key.as_str(),
            signer: text(signer),
            is_readable: unreadable.is_null(),
            common_names: texts(common_names),
            organizations: texts(organizations),
        })
    }

    /// Whether it was approved, and its certificate gives the rights of the cluster's agent to somebody who had none of it.
    fn lets_into(&self, cluster: &str) -> bool {
        let Self { signer, asked_by, is_readable, .. } = *self;
        let (common_names, organizations) = (&self.common_names[..], &self.organizations[..]);
        let asked = Asked { signer, asked_by, is_readable, common_names, organizations };
        matches!(self.state, "Approved" | "Issued") && asked.lets_into(cluster)
    }
}

/// Entries are JSON, as a text or as an object; an empty text says only that the name is known.
fn read(value: Option<&Value>) -> Result<Entry, String> {
    let value = match value {
        None | Some(Value::Null) => return Ok(Entry::default()),
        Some(Value::String(text)) if text.trim().is_empty() => return Ok(Entry::default()),
        Some(Value::String(text)) => {
            Cow::Owned(serde_json::from_str(text).map_err(|_| "it is not valid JSON".to_owned())?)
        }
        Some(other) => Cow::Borrowed(other),
    };
    if !value.is_object() {
        return Err("it must be an object".to_owned());
    }
    let entry = Entry::deserialize(&*value).map_err(|error| error.to_string().chars().take(200).collect::<String>())?;
    match entry.labels.keys().find(|key| hub::is_system_key(key)) {
        Some(_) => Err("it sets a label of the hub".to_owned()),
        None => Ok(entry),
    }
}

ocm_policy_sdk::export!(Inventory);
