//! Agents change of their own objects what they have to, and nothing else. The rules are those of `ocm-rules`.

use ocm_policy_sdk::rules::cluster::{self, AgentSettings};
use ocm_policy_sdk::rules::{Code, Violation, glob};
use ocm_policy_sdk::serde_json::{self, Value};
use ocm_policy_sdk::{
    Answer, Cluster, ManifestBuilder, Operation, Policy, Request, Requester, allow, deny, hub, manifest, no_opinion,
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
    /// Names, as patterns, of the clusters that register by gRPC.
    grpc_clusters: Vec<String>,
    #[serde(skip)]
    rules: AgentSettings,
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
        let rules = AgentSettings {
            annotations: settings.annotations.clone().unwrap_or(usual.annotations),
            client_configs: settings.client_configs.unwrap_or(usual.client_configs),
        };
        let patterns = rules.annotations.iter().chain(&settings.grpc_clusters);
        let wrong: Vec<String> = patterns.filter_map(|pattern| glob::check(pattern).err()).collect();
        if wrong.is_empty() { Ok(Self { rules, ..settings }) } else { Err(wrong) }
    }

    fn decide(&self, request: &Request<'_>) -> Answer {
        self.judge(request)
    }
}

/// Who writes.
enum Writer<'a> {
    /// An agent of this cluster, or of one of its add-ons.
    Agent(&'a str),
    /// Some agent behind the hub's gRPC server, which does not name it.
    Grpc,
    /// Somebody with a name of the hub's that is no agent's.
    Unclear,
}

impl<'a> Writer<'a> {
    fn of(requester: &'a Requester<'_>) -> Option<Self> {
        let user = &*requester.username;
        if user == hub::GRPC_SERVER {
            return Some(Self::Grpc);
        }
        if let Some(cluster) = hub::cluster_of_agent(user) {
            return Some(Self::Agent(cluster));
        }
        // Agents with an AWS identity are named as their cluster alone; whoever has the rights of several is no agent.
        let facts = hub::requester_facts(requester);
        let mut clusters = facts.clusters();
        match clusters.next() {
            Some(cluster) if clusters.all(|other| other == cluster) => Some(Self::Agent(cluster)),
            Some(_) => Some(Self::Unclear),
            None => user.starts_with(hub::PREFIX).then_some(Self::Unclear),
        }
    }
}

impl Writer<'_> {
    /// Why this one may not write there.
    fn refusal(&self, place: &str) -> String {
        match self {
            Self::Grpc => {
                "the hub's gRPC server writes only to clusters that the setting grpcClusters names".to_owned()
            }
            Self::Agent(_) | Self::Unclear => format!("an agent may not write {place}"),
        }
    }
}

impl AgentSelfEdit {
    fn judge(&self, request: &Request<'_>) -> Answer {
        let Some(writer) = Writer::of(request.requester()) else { return no_opinion() };
        match request.operation() {
            Operation::Admit => self.work(request, &writer),
            // Outside of admission nobody writes: somebody asks whether a cluster may be accepted.
            Operation::Accept if request.previous().is_none() => no_opinion(),
            _ => self.update(request, &writer),
        }
    }

    /// Whether somebody may write to what is a cluster's.
    fn may_write(&self, writer: &Writer<'_>, cluster: &str) -> bool {
        match writer {
            Writer::Agent(own) => *own == cluster,
            Writer::Grpc => glob::any(&self.grpc_clusters, cluster),
            Writer::Unclear => false,
        }
    }

    fn update(&self, request: &Request<'_>, writer: &Writer<'_>) -> Answer {
        let missing = |what: &str| deny(Code::PreviousMissing.word(), what);
        let Some(cluster) = request.cluster() else { return missing("there is no cluster to compare") };
        if !self.may_write(writer, &cluster.name) {
            return deny(Code::OtherCluster.word(), writer.refusal("to another cluster")).at("metadata.name");
        }
        // What an agent reports of its cluster is its own.
        if request.resource().and_then(|resource| resource.subresource.as_deref()) == Some("status") {
            return no_opinion();
        }
        let Some(before) = request.previous() else { return missing("there is no earlier cluster to compare with") };
        let (Some(old), Some(new)) = (request.previous_object(), request.object()) else {
            return missing("the whole objects are not there to compare");
        };
        let (Some(old), Some(new)) = (rest(old), rest(new)) else { return missing("the objects cannot be read") };
        hub::violated_by(self.changes(before, cluster, &old, &new)).unwrap_or_else(allow)
    }

    fn changes(&self, before: &Cluster<'_>, after: &Cluster<'_>, old: &Rest, new: &Rest) -> Vec<Violation> {
        let mut found = hub::with_cluster_facts(before, |before| {
            hub::with_cluster_facts(after, |after| {
                let other_fields = if old.fields == new.fields { before.other_fields } else { "changed" };
                let after = cluster::Cluster { other_fields, ..*after };
                cluster::agent_change(before, &after, &self.rules)
            })
        });
        // The facts leave something out, or a fact that they do not have has changed.
        let mut also = |code, field, changed: bool, what: &str| {
            if changed && !found.iter().any(|violation| violation.code == code) {
                found.push(Violation::new(code, field, format!("an agent may not change the {what} of its cluster")));
            }
        };
        let cut = |member: &str| before.truncated.iter().chain(&after.truncated).any(|cut| cut == member);
        also(Code::OwnerReferences, "metadata.ownerReferences", old.owners != new.owners, "owners");
        also(Code::Taints, "spec.taints", old.taints != new.taints, "taints");
        also(Code::Labels, "metadata.labels", cut("labels"), "labels");
        also(Code::Annotations, "metadata.annotations", cut("annotations"), "annotations");
        also(Code::Finalizers, "metadata.finalizers", cut("finalizers"), "finalizers");
        found
    }

    /// A ManifestWork is the hub's word; its agent only says that it is done with it.
    fn work(&self, request: &Request<'_>, writer: &Writer<'_>) -> Answer {
        let Some(resource) = request.resource() else { return no_opinion() };
        if resource.group != "work.open-cluster-management.io" || resource.resource != "manifestworks" {
            return no_opinion();
        }
        if !resource.namespace.as_ref().is_some_and(|namespace| self.may_write(writer, namespace)) {
            return deny(Code::OtherCluster.word(), writer.refusal("to another cluster's works"))
                .at("metadata.namespace");
        }
        if resource.subresource.as_deref() == Some("status") {
            return no_opinion();
        }
        let refused = |what: &str| deny(Code::ManifestWork.word(), what);
        let (Some(before), Some(after), "UPDATE") = (request.previous_object(), request.object(), &*resource.operation)
        else {
            return refused("an agent may not make or remove works");
        };
        match (bare(before), bare(after)) {
            (Some(before), Some(after)) if before == after => allow(),
            _ => refused("an agent may only change the finalizers of a work"),
        }
    }
}

/// What of a cluster is compared whole.
struct Rest {
    owners: Option<Value>,
    taints: Option<Value>,
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
    let taints = members.get_mut("spec").and_then(Value::as_object_mut).and_then(|spec| {
        for known in ["hubAcceptsClient", "leaseDurationSeconds", "managedClusterClientConfigs"] {
            spec.remove(known);
        }
        spec.remove("taints")
    });
    // Go leaves out what is empty, or writes it as null.
    let some = |value: Option<Value>| value.filter(|value| !value.is_null() && *value != Value::Array(Vec::new()));
    Some(Rest { owners: some(owners), taints: some(taints), fields })
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
