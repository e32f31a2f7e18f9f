//! Writes that are made up: who writes, to what, and how it was before. What they come to is known while they are made.

use std::collections::BTreeSet;
use std::fmt;

use ocm_rules::Code;
use ocm_rules::agent::Settings;
use ocm_rules::cluster::{AgentSettings, CLUSTER_SET, DEFAULT_SET};
use ocm_rules::identity::{GRPC_SERVER_USER, MANAGED_CLUSTERS_GROUP};
use serde_json::{Map, Value, json};

use crate::support::Random;

/// What is written to, and the namespace of its works.
const CLUSTER: &str = "c1";

/// The most labels and annotations that a policy is shown.
pub(crate) const MOST_ENTRIES: usize = 1024;
/// The most finalizers that a policy is shown.
pub(crate) const MOST_ITEMS: usize = 128;

/// How a cluster is reached.
const CLIENT_CONFIGS: &str = "managedClusterClientConfigs";

/// What of an object is written to; what is no status is judged as the whole object is.
const SUBRESOURCES: [Option<&str>; 10] =
    [None, None, None, None, None, None, None, None, Some("status"), Some("scale")];

/// What an administrator chose.
#[derive(Debug)]
pub(crate) struct Chosen {
    client_configs: bool,
    annotations: Option<&'static str>,
    grpc_clusters: Option<&'static str>,
}

impl Chosen {
    pub(crate) fn new(random: &mut Random) -> Self {
        Self {
            client_configs: random.once_in(2),
            annotations: *random.one(&[None, Some("example.com/*")]),
            grpc_clusters: *random.one(&[None, Some("c*"), Some("c*"), Some("c2")]),
        }
    }

    /// As settings of the policy.
    pub(crate) fn json(&self) -> Value {
        let grpc_clusters: Vec<&str> = self.grpc_clusters.into_iter().collect();
        let mut settings = json!({"clientConfigs": self.client_configs, "grpcClusters": grpc_clusters});
        if let Some(pattern) = self.annotations {
            settings["annotations"] = json!([pattern]);
        }
        settings
    }

    /// As settings of the rules.
    pub(crate) fn rules(&self) -> Settings {
        let mut changes = AgentSettings { client_configs: self.client_configs, ..AgentSettings::default() };
        if let Some(pattern) = self.annotations {
            changes.annotations = vec![pattern.to_owned()];
        }
        Settings { changes, grpc_clusters: self.grpc_clusters.into_iter().map(str::to_owned).collect() }
    }
}

/// Who writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    OwnAgent,
    OwnAddon,
    OwnAwsIdentity,
    OwnGroup,
    GrpcServer,
    OtherAgent,
    OtherAddon,
    OtherAwsIdentity,
    UnclearName,
    TwoClusters,
    Person,
    ServiceAccount,
}

impl Who {
    pub(crate) const ALL: [Self; 12] = [
        Self::OwnAgent,
        Self::OwnAddon,
        Self::OwnAwsIdentity,
        Self::OwnGroup,
        Self::GrpcServer,
        Self::OtherAgent,
        Self::OtherAddon,
        Self::OtherAwsIdentity,
        Self::UnclearName,
        Self::TwoClusters,
        Self::Person,
        Self::ServiceAccount,
    ];

    /// Name and groups.
    pub(crate) fn user(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::OwnAgent => (
                "system:open-cluster-management:c1:a1",
                &["system:open-cluster-management:c1", MANAGED_CLUSTERS_GROUP, "system:authenticated"],
            ),
            Self::OwnAddon => {
                ("system:open-cluster-management:cluster:c1:addon:app:agent:x", &["system:authenticated"])
            }
            Self::OwnAwsIdentity => ("c1", &["open-cluster-management:c1", "system:authenticated"]),
            Self::OwnGroup => ("eve", &[MANAGED_CLUSTERS_GROUP, "system:open-cluster-management:c1"]),
            Self::GrpcServer => (GRPC_SERVER_USER, &["system:serviceaccounts", "system:authenticated"]),
            Self::OtherAgent => ("system:open-cluster-management:c10:a1", &["system:open-cluster-management:c10"]),
            Self::OtherAddon => ("system:open-cluster-management:cluster:c2:addon:app", &[]),
            Self::OtherAwsIdentity => ("c2", &["open-cluster-management:c2"]),
            Self::UnclearName => ("system:open-cluster-management:c1:a1:b", &[]),
            Self::TwoClusters => ("eve", &["system:open-cluster-management:c1", "open-cluster-management:c2"]),
            Self::Person => ("alice", &["system:masters"]),
            Self::ServiceAccount => {
                ("system:serviceaccount:open-cluster-management-hub:work", &["system:serviceaccounts"])
            }
        }
    }

    /// Whether this one may write to the cluster, or take part in its works; none where the rules are not about it.
    fn may_write(self, kind: Kind, chosen: &Chosen) -> Option<bool> {
        match self {
            Self::OwnAgent | Self::OwnAddon | Self::OwnAwsIdentity | Self::OwnGroup => Some(true),
            Self::GrpcServer => Some(kind == Kind::Work || chosen.grpc_clusters == Some("c*")),
            Self::OtherAgent | Self::OtherAddon | Self::OtherAwsIdentity | Self::UnclearName | Self::TwoClusters => {
                Some(false)
            }
            Self::Person | Self::ServiceAccount => None,
        }
    }
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Cluster,
    Work,
}

/// A write.
pub(crate) struct Write {
    pub(crate) who: Who,
    pub(crate) kind: Kind,
    pub(crate) operation: &'static str,
    pub(crate) subresource: Option<&'static str>,
    /// Whether whole objects are shown.
    pub(crate) shows_objects: bool,
    pub(crate) before: Option<Value>,
    pub(crate) after: Option<Value>,
    /// Whether more changes than what the API server writes.
    pub(crate) changes: bool,
    /// Of what there is more than a policy is shown.
    crowded: Option<&'static str>,
    /// Whether what is not shown of that changes, though it is not the agent's.
    changes_beyond: bool,
    /// What an agent of the cluster may not do of it.
    codes: BTreeSet<Code>,
}

impl Write {
    pub(crate) fn new(chosen: &Chosen, random: &mut Random) -> Self {
        let kind = if random.once_in(3) { Kind::Work } else { Kind::Cluster };
        let (mut before, edits) = match kind {
            Kind::Cluster => (cluster(random), CLUSTER_EDITS),
            Kind::Work => (work(random), WORK_EDITS),
        };
        let mut codes = BTreeSet::new();
        let crowded = (kind == Kind::Cluster).then(|| crowd(&mut before, random)).flatten();
        codes.extend(crowded.and_then(|(_, code)| code));
        let crowded = crowded.map(|(field, _)| field);
        let mut after = before.clone();
        // Each once at most, for the second would undo what the first did.
        let mut edits: BTreeSet<usize> = (0..random.below(4)).map(|_| random.below(edits)).collect();
        if crowded == Some(CLIENT_CONFIGS) && random.once_in(2) {
            edits.insert(ANOTHER_CONFIG);
        }
        let changes_beyond =
            crowded == Some(CLIENT_CONFIGS) && edits.contains(&ANOTHER_CONFIG) && !chosen.client_configs;
        for edit in edits {
            codes.extend(match kind {
                Kind::Cluster => edit_cluster(edit, &mut after, chosen),
                Kind::Work => edit_work(edit, &mut after),
            });
        }
        let changes = after != before;
        by_server(&mut after);
        let mut write = Self {
            who: if random.once_in(2) { Who::OwnAgent } else { *random.one(&Who::ALL) },
            kind,
            operation: "UPDATE",
            subresource: *random.one(&SUBRESOURCES),
            shows_objects: !random.once_in(25),
            before: Some(before),
            after: Some(after),
            changes,
            crowded,
            changes_beyond,
            codes,
        };
        match kind {
            Kind::Work => match random.below(12) {
                0 => (write.operation, write.before) = ("CREATE", None),
                1 => (write.operation, write.after) = ("DELETE", None),
                2 => write.before = None,
                _ => {}
            },
            // Who asks whether a cluster may be accepted shows no earlier one, either.
            Kind::Cluster if random.once_in(20) && !write.accepts() => write.before = None,
            Kind::Cluster => {}
        }
        write
    }

    fn accepts(&self) -> bool {
        self.after.as_ref().is_some_and(|after| after["spec"]["hubAcceptsClient"] == true)
    }

    /// The codes that it comes to; none where the rules are not about it.
    pub(crate) fn expected(&self, chosen: &Chosen) -> Option<BTreeSet<String>> {
        let only = |code: Code| Some(BTreeSet::from([code.to_string()]));
        if !self.who.may_write(self.kind, chosen)? {
            return only(Code::OtherCluster);
        }
        if self.subresource == Some("status") {
            return None;
        }
        match self.kind {
            Kind::Cluster if !self.is_comparable() => only(Code::PreviousMissing),
            Kind::Work if !self.is_comparable() => only(Code::ManifestWork),
            Kind::Cluster | Kind::Work => Some(self.codes.iter().map(Code::to_string).collect()),
        }
    }

    fn is_comparable(&self) -> bool {
        self.shows_objects && self.before.is_some() && self.after.is_some()
    }

    /// What is rare of a write that is compared.
    pub(crate) fn rarities(&self, chosen: &Chosen) -> Vec<String> {
        let may_write = self.who.may_write(self.kind, chosen) == Some(true);
        if !may_write || self.subresource == Some("status") || !self.is_comparable() {
            return Vec::new();
        }
        let crowded = self.crowded.map(|field| format!("crowded, {field}"));
        let beyond = self.changes_beyond.then(|| "changed beyond what is shown".to_owned());
        let subresource = self.subresource.map(|subresource| format!("{subresource}, {:?}", self.kind));
        crowded.into_iter().chain(beyond).chain(subresource).collect()
    }

    /// The request of the admission review that the API server makes of it.
    pub(crate) fn review(&self) -> Value {
        let (user, groups) = self.who.user();
        let (group, kind, resource, name, namespace) = match self.kind {
            Kind::Cluster => {
                ("cluster.open-cluster-management.io", "ManagedCluster", "managedclusters", CLUSTER, Value::Null)
            }
            Kind::Work => ("work.open-cluster-management.io", "ManifestWork", "manifestworks", "w", json!(CLUSTER)),
        };
        json!({
            "uid": "q",
            "kind": {"group": group, "version": "v1", "kind": kind},
            "resource": {"group": group, "version": "v1", "resource": resource},
            "subResource": self.subresource,
            "name": name,
            "namespace": namespace,
            "operation": self.operation,
            "userInfo": {"username": user, "groups": groups},
            "object": self.after,
            "oldObject": self.before,
            "dryRun": false,
        })
    }
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, whole objects: {}, codes: {:?}\n{:#}", self.who, self.shows_objects, self.codes, self.review())
    }
}

/// What the API server writes into every object.
fn metadata(name: &str) -> Value {
    json!({
        "name": name, "uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z",
        "resourceVersion": "7", "generation": 1,
        "managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}],
    })
}

/// What the API server changes with every write.
fn by_server(object: &mut Value) {
    let metadata = &mut object["metadata"];
    metadata["resourceVersion"] = json!("8");
    metadata["generation"] = json!(2);
    metadata["managedFields"] = json!([]);
}

/// A cluster as it was before. What is empty is written as such, or left out.
fn cluster(random: &mut Random) -> Value {
    let mut metadata = metadata(CLUSTER);
    let mut labels = json!({});
    for (key, value) in [("env", "prod"), ("team", "a")] {
        if random.once_in(2) {
            labels[key] = json!(value);
        }
    }
    if let Some(set) = *random.one(&[None, Some(""), Some(DEFAULT_SET), Some("prod")]) {
        labels[CLUSTER_SET] = json!(set);
    }
    let mut annotations = json!({});
    for key in ["agent.open-cluster-management.io/a", "example.com/a", "note"] {
        if random.once_in(2) {
            annotations[key] = json!("x");
        }
    }
    metadata["labels"] = labels;
    metadata["annotations"] = annotations;
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"});
    for (field, entry) in [("finalizers", json!("example.com/f")), ("ownerReferences", owner)] {
        match random.below(3) {
            0 => metadata[field] = json!([]),
            1 => metadata[field] = json!([entry]),
            _ => {}
        }
    }
    let mut spec = json!({});
    let taint = json!({"key": "a", "value": "b", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"});
    let config = json!({"url": "https://one", "caBundle": "b25l"});
    for (field, entry) in [("taints", taint), ("managedClusterClientConfigs", config)] {
        match random.below(3) {
            0 => spec[field] = json!([]),
            1 => spec[field] = json!([entry]),
            _ => {}
        }
    }
    for (field, value) in [("leaseDurationSeconds", json!(60)), ("newField", json!(1))] {
        if random.once_in(2) {
            spec[field] = value;
        }
    }
    if let Some(accepted) = *random.one(&[None, Some(false), Some(true), Some(true)]) {
        spec["hubAcceptsClient"] = json!(accepted);
    }
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": metadata, "spec": spec, "status": {"version": {"kubernetes": "v1.35.0"}},
    })
}

/// Once in a while, more than a policy is shown. Of most members nobody can tell then whether they have changed.
fn crowd(object: &mut Value, random: &mut Random) -> Option<(&'static str, Option<Code>)> {
    let (field, code) = match random.below(120) {
        0 => ("labels", Code::Labels),
        1 => ("annotations", Code::Annotations),
        2..4 => {
            let more = (0..=MOST_ITEMS).map(|number| json!(format!("example.com/f{number}")));
            list(object, "metadata", "finalizers").extend(more);
            return Some(("finalizers", Some(Code::Finalizers)));
        }
        // These can be compared whole.
        4..10 => {
            let more = (0..=MOST_ITEMS).map(|number| json!({"url": format!("https://{number}")}));
            list(object, "spec", CLIENT_CONFIGS).extend(more);
            return Some((CLIENT_CONFIGS, None));
        }
        _ => return None,
    };
    let more = (0..=MOST_ENTRIES).map(|number| (format!("agent.open-cluster-management.io/{number}"), json!("x")));
    map(object, field).extend(more);
    Some((field, Some(code)))
}

const CLUSTER_EDITS: usize = 19;
/// The change that adds a client config behind all others.
const ANOTHER_CONFIG: usize = 13;

/// A change of a cluster, and what of it is not an agent's.
fn edit_cluster(number: usize, object: &mut Value, chosen: &Chosen) -> Option<Code> {
    let (agents, others) = (chosen.annotations.is_none(), chosen.annotations.is_some());
    match number {
        0 => {
            map(object, "labels").insert("env".to_owned(), json!("changed"));
            Some(Code::Labels)
        }
        1 => map(object, "labels").remove("team").map(|_| Code::Labels),
        2 => {
            // The hub's webhook does this to what is in no set, whoever writes.
            let old = map(object, "labels").insert(CLUSTER_SET.to_owned(), json!(DEFAULT_SET));
            old.filter(|old| *old != "" && *old != DEFAULT_SET).map(|_| Code::Labels)
        }
        3 => {
            map(object, "annotations").insert("agent.open-cluster-management.io/a".to_owned(), json!("changed"));
            (!agents).then_some(Code::Annotations)
        }
        4 => {
            map(object, "annotations").insert("example.com/a".to_owned(), json!("changed"));
            (!others).then_some(Code::Annotations)
        }
        5 => map(object, "annotations").remove("note").map(|_| Code::Annotations),
        6 => {
            list(object, "spec", "taints").push(json!({"key": "t", "effect": "NoSelect"}));
            Some(Code::Taints)
        }
        7 => {
            list(object, "spec", "taints").first_mut()?["timeAdded"] = json!("2026-02-01T00:00:00Z");
            Some(Code::Taints)
        }
        8 => {
            list(object, "metadata", "finalizers").push(json!("example.com/new"));
            Some(Code::Finalizers)
        }
        9 => {
            list(object, "metadata", "ownerReferences").first_mut()?["uid"] = json!("2");
            Some(Code::OwnerReferences)
        }
        10 => {
            list(object, "metadata", "ownerReferences").first_mut()?["blockOwnerDeletion"] = json!(true);
            Some(Code::OwnerReferences)
        }
        11 => {
            object["spec"]["leaseDurationSeconds"] = json!(61);
            Some(Code::LeaseDuration)
        }
        12 => {
            let accepted = object["spec"]["hubAcceptsClient"] == true;
            object["spec"]["hubAcceptsClient"] = json!(!accepted);
            Some(Code::HubAcceptsClient)
        }
        ANOTHER_CONFIG => {
            list(object, "spec", CLIENT_CONFIGS).push(json!({"url": "https://two"}));
            (!chosen.client_configs).then_some(Code::ClientConfigs)
        }
        14 => {
            let config = list(object, "spec", CLIENT_CONFIGS).first_mut()?;
            config["caBundle"] = json!("b3RoZXI=");
            (!chosen.client_configs).then_some(Code::ClientConfigs)
        }
        15 => {
            object["spec"]["newField"] = json!(2);
            Some(Code::OtherFields)
        }
        16 => {
            object["metadata"]["generateName"] = json!("c");
            Some(Code::OtherFields)
        }
        17 => {
            object["status"]["version"]["kubernetes"] = json!("v1.36.0");
            None
        }
        // What is empty is left out, or written as null.
        _ => {
            for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
                if is_empty(&object["metadata"][field]) {
                    object["metadata"][field] = Value::Null;
                }
            }
            for field in ["taints", "managedClusterClientConfigs"] {
                if is_empty(&object["spec"][field])
                    && let Some(spec) = object["spec"].as_object_mut()
                {
                    spec.remove(field);
                }
            }
            None
        }
    }
}

/// A work as it was before.
fn work(random: &mut Random) -> Value {
    let mut metadata = metadata("w");
    metadata["namespace"] = json!(CLUSTER);
    if random.once_in(2) {
        metadata["finalizers"] = json!(["example.com/f"]);
    }
    if random.once_in(2) {
        metadata["labels"] = json!({"a": "b"});
    }
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "default"}});
    json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": metadata, "spec": {"workload": {"manifests": [manifest]}},
    })
}

const WORK_EDITS: usize = 7;

/// A change of a work, and what of it is not an agent's.
fn edit_work(number: usize, object: &mut Value) -> Option<Code> {
    match number {
        0 => {
            list(object, "metadata", "finalizers").push(json!("example.com/new"));
            return None;
        }
        1 => {
            list(object, "metadata", "finalizers").clear();
            return None;
        }
        2 => {
            object["status"] = json!({"conditions": []});
            return None;
        }
        3 => object["spec"]["workload"]["manifests"] = json!([]),
        4 => object["metadata"]["labels"] = json!({"a": "changed"}),
        5 => object["metadata"]["annotations"] = json!({"a": "b"}),
        _ => {
            let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"});
            object["metadata"]["ownerReferences"] = json!([owner]);
        }
    }
    Some(Code::ManifestWork)
}

/// A map of the metadata, made where there is none.
fn map<'v>(object: &'v mut Value, field: &str) -> &'v mut Map<String, Value> {
    let value = &mut object["metadata"][field];
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("it is a map")
}

/// A list, made where there is none.
fn list<'v>(object: &'v mut Value, part: &str, field: &str) -> &'v mut Vec<Value> {
    let value = &mut object[part][field];
    if !value.is_array() {
        *value = json!([]);
    }
    value.as_array_mut().expect("it is a list")
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
}
