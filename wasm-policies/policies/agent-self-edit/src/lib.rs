//! Agents change of their own objects what they have to, and nothing else. The rules are those of `ocm-rules`.

use ocm_policy_sdk::rules::agent::{self, ClusterWrite, Incomparable, Settings, WorkWrite, Writer};
use ocm_policy_sdk::rules::cluster::{self, AgentSettings, Member};
use ocm_policy_sdk::rules::{Code, Violation, glob};
use ocm_policy_sdk::serde_json::{self, Value};
use ocm_policy_sdk::{
    Answer, Cluster, ManifestBuilder, Operation, Policy, Request, Text, allow, hub, manifest, no_opinion,
};
use serde::Deserialize;

/// The policy with its settings.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AgentSelfEdit {
    /// Whether agents say how their clusters are reached.
    client_configs: Option<bool>,
    /// Keys, as patterns, of annotations that are theirs.
    annotations: Option<Vec<String>>,
    /// Names, as patterns, of the clusters that the gRPC server may update.
    grpc_clusters: Vec<String>,
    #[serde(skip)]
    rules: Settings,
}

/// What the rules may find.
const CODES: [Code; 12] = [
    Code::OtherCluster,
    Code::PreviousMissing,
    Code::Labels,
    Code::Annotations,
    Code::Taints,
    Code::Finalizers,
    Code::OwnerReferences,
    Code::LeaseDuration,
    Code::HubAcceptsClient,
    Code::ClientConfigs,
    Code::OtherFields,
    Code::ManifestWork,
];

impl Policy for AgentSelfEdit {
    type Settings = Self;

    fn manifest() -> ManifestBuilder {
        manifest("agent-self-edit", env!("CARGO_PKG_VERSION"), "Lets agents change what is theirs, and nothing else")
            .judges([Operation::Update, Operation::Accept, Operation::Admit])
            .wants_object()
            .gives_codes(CODES)
            .settings_schema(include_str!("../settings.schema.json"))
    }

    fn configure(settings: Self) -> Result<Self, Vec<String>> {
        let usual = AgentSettings::default();
        let changes = AgentSettings {
            annotations: settings.annotations.clone().unwrap_or(usual.annotations),
            client_configs: settings.client_configs.unwrap_or(usual.client_configs),
        };
        let rules = Settings { changes, grpc_clusters: settings.grpc_clusters.clone() };
        let patterns = rules.changes.annotations.iter().chain(&rules.grpc_clusters);
        let wrong: Vec<String> = patterns.filter_map(|pattern| glob::check(pattern).err()).collect();
        if wrong.is_empty() { Ok(Self { rules, ..settings }) } else { Err(wrong) }
    }

    fn decide(&self, request: &Request<'_>) -> Answer {
        let Some(writer) = Writer::of(&hub::requester_facts(request.requester())) else { return no_opinion() };
        let found = match request.operation() {
            Operation::Admit => work(request, writer),
            // Outside of admission nobody writes: somebody asks whether a cluster may be accepted.
            Operation::Accept if request.previous().is_none() => None,
            _ => self.cluster(request, writer),
        };
        match found {
            Some(violations) => hub::violated_by(violations).unwrap_or_else(allow),
            None => no_opinion(),
        }
    }
}

impl AgentSelfEdit {
    fn cluster(&self, request: &Request<'_>, writer: Writer<'_>) -> Option<Vec<Violation>> {
        let subresource = request.resource().and_then(|resource| resource.subresource.as_deref());
        with_facts(request.previous(), |before| {
            with_facts(request.cluster(), |after| {
                let write = ClusterWrite { writer, subresource, before, after };
                agent::cluster_write(&write, &self.rules, || beyond_facts(request))
            })
        })
    }
}

fn work(request: &Request<'_>, writer: Writer<'_>) -> Option<Vec<Violation>> {
    let resource = request.resource()?;
    if resource.group != "work.open-cluster-management.io" || resource.resource != "manifestworks" {
        return None;
    }
    let write = WorkWrite {
        writer,
        namespace: resource.namespace.as_deref(),
        subresource: resource.subresource.as_deref(),
        operation: &resource.operation,
    };
    agent::work_write(&write, || both(request, bare).map(|(before, after)| before == after))
}

/// A cluster, if there is one, as facts of the rules.
fn with_facts<'a, T>(
    cluster: Option<&Cluster<'a>>,
    judge: impl FnOnce(Option<&cluster::Cluster<'_, Text<'a>>>) -> T,
) -> T {
    match cluster {
        Some(cluster) => hub::with_cluster_facts(cluster, |facts| judge(Some(facts))),
        None => judge(None),
    }
}

/// Both whole objects, the earlier one first.
fn both<T>(request: &Request<'_>, read: impl Fn(&str) -> Option<T>) -> Result<(T, T), Incomparable> {
    let objects = request.previous_object().zip(request.object());
    let (before, after) = objects.ok_or(Incomparable::Missing)?;
    read(before).zip(read(after)).ok_or(Incomparable::Unreadable)
}

/// What differs in what the facts of a cluster leave out, or cannot be told because something was cut off.
fn beyond_facts(request: &Request<'_>) -> Result<Vec<Member>, Incomparable> {
    let (old, new) = both(request, rest)?;
    let cut = |member: &str| {
        let clusters = request.previous().into_iter().chain(request.cluster());
        clusters.flat_map(|cluster| &cluster.truncated).any(|cut| cut == member)
    };
    let members = [
        (Member::OtherFields, old.fields != new.fields),
        (Member::OwnerReferences, old.owners != new.owners),
        (Member::Taints, old.taints != new.taints),
        (Member::ClientConfigs, old.client_configs != new.client_configs),
        (Member::Labels, cut("labels")),
        (Member::Annotations, cut("annotations")),
        (Member::Finalizers, cut("finalizers")),
    ];
    Ok(members.into_iter().filter_map(|(member, differs)| differs.then_some(member)).collect())
}

/// What of a cluster is compared whole.
struct Rest {
    owners: Option<Value>,
    taints: Option<Value>,
    client_configs: Option<Value>,
    /// All fields that nothing else compares: those that this policy does not know are among them.
    fields: Value,
}

fn rest(json: &str) -> Option<Rest> {
    let mut fields = bare(json)?;
    let members = fields.as_object_mut()?;
    let metadata = members.get_mut("metadata").and_then(Value::as_object_mut);
    let owners = metadata.and_then(|metadata| {
        metadata.remove("labels");
        metadata.remove("annotations");
        metadata.remove("ownerReferences")
    });
    let mut spec = members.get_mut("spec").and_then(Value::as_object_mut);
    let mut taken = |field: &str| spec.as_mut().and_then(|spec| spec.remove(field));
    let [taints, mut client_configs] = ["taints", "managedClusterClientConfigs"].map(&mut taken);
    // The facts have these as they are.
    for known in ["hubAcceptsClient", "leaseDurationSeconds"] {
        taken(known);
    }
    // Go leaves out what is empty, or writes it as null.
    for config in client_configs.iter_mut().filter_map(Value::as_array_mut).flatten() {
        if let Some(members) = config.as_object_mut() {
            members.retain(|_, value| !value.is_null() && *value != "");
        }
    }
    let some = |value: Option<Value>| value.filter(|value| !value.is_null() && *value != Value::Array(Vec::new()));
    Some(Rest { owners: some(owners), taints: some(taints), client_configs: some(client_configs), fields })
}

/// An object without what its agent or the server writes.
fn bare(json: &str) -> Option<Value> {
    let mut object: Value = serde_json::from_str(json).ok()?;
    if let Some(members) = object.as_object_mut() {
        members.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for member in ["finalizers", "managedFields", "resourceVersion", "generation"] {
            metadata.remove(member);
        }
    }
    Some(object)
}

ocm_policy_sdk::export!(AgentSelfEdit);
