//! Agents change of their own objects what they have to, and nothing else.

use ocm_policy_sdk::serde_json::Value;
use ocm_policy_sdk::{
    Answer, Cluster, Decision, Manifest, Map, Operation, Policy, Request, Text, allow, deny, hub, manifest, no_opinion,
};
use serde::Deserialize;

/// The policy with its settings.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AgentSelfEdit {
    /// Whether agents say how their clusters are reached.
    client_configs: bool,
    /// Starts of the keys of annotations that are theirs.
    annotations: Vec<String>,
}

impl Default for AgentSelfEdit {
    fn default() -> Self {
        Self { client_configs: true, annotations: vec!["agent.open-cluster-management.io/".to_owned()] }
    }
}

impl Policy for AgentSelfEdit {
    type Settings = Self;

    fn manifest() -> impl Into<Manifest> {
        manifest("agent-self-edit", env!("CARGO_PKG_VERSION"), "Lets agents change what is theirs, and nothing else")
            .judges([Operation::Update, Operation::Admit])
            .wants_object()
            .gives("foreign-cluster", "An agent writes to another cluster")
            .gives("object-missing", "There is nothing to compare with")
            .gives("labels", "Labels are changed")
            .gives("annotations", "Annotations are changed that are not the agent's")
            .gives("taints", "Taints are changed")
            .gives("finalizers", "Finalizers are changed")
            .gives("owners", "Owners are changed")
            .gives("lease-duration", "The lease duration is changed")
            .gives("acceptance", "The acceptance of the cluster is changed")
            .gives("client-configs", "How the cluster is reached is changed")
            .gives("work", "More of a ManifestWork is changed than its finalizers")
            .settings_schema(include_str!("../settings.schema.json"))
    }

    fn configure(settings: Self) -> Result<Self, Vec<String>> {
        match settings.annotations.iter().any(String::is_empty) {
            true => Err(vec!["an empty start is that of every annotation".to_owned()]),
            false => Ok(settings),
        }
    }

    fn decide(&self, request: &Request<'_>) -> impl Into<Decision> {
        self.judge(request)
    }
}

impl AgentSelfEdit {
    fn judge(&self, request: &Request<'_>) -> Answer {
        let user = &*request.requester.username;
        let agent = hub::cluster_of_agent(user);
        if request.operation == Operation::Admit {
            return agent.map_or_else(no_opinion, |agent| work(request, agent));
        }
        // Behind the gRPC server the agent is not named: it may do what any agent may.
        if agent.is_none() && user != hub::GRPC_SERVER {
            return no_opinion();
        }
        let Some(cluster) = &request.cluster else { return deny("object-missing", "there is no cluster to compare") };
        if agent.is_some_and(|agent| cluster.name != agent) {
            return deny("foreign-cluster", "an agent may not write to another cluster").at("metadata.name");
        }
        // What an agent reports of its cluster is its own.
        if request.resource.as_ref().and_then(|resource| resource.subresource.as_deref()) == Some("status") {
            return no_opinion();
        }
        let Some(before) = &request.previous else {
            return deny("object-missing", "there is no earlier cluster to compare with");
        };
        let mut wrong = self.changes(before, cluster).into_iter();
        match wrong.next() {
            None => allow(),
            Some((code, field)) => wrong.fold(deny(code, message(code)).at(field), |answer, (code, field)| {
                answer.because(code, message(code)).at(field)
            }),
        }
    }

    fn changes(&self, before: &Cluster<'_>, after: &Cluster<'_>) -> Vec<(&'static str, &'static str)> {
        let mut found = Vec::new();
        let mut rule = |broken: bool, code, field| {
            if broken {
                found.push((code, field));
            }
        };
        let own = |key: &str| self.annotations.iter().any(|start| key.starts_with(start.as_str()));
        rule(differ(&before.labels, &after.labels, |_| false), "labels", "metadata.labels");
        rule(differ(&before.annotations, &after.annotations, own), "annotations", "metadata.annotations");
        rule(before.taints != after.taints, "taints", "spec.taints");
        rule(before.finalizers != after.finalizers, "finalizers", "metadata.finalizers");
        rule(before.owners != after.owners, "owners", "metadata.ownerReferences");
        let lease = before.lease_duration_seconds != after.lease_duration_seconds;
        rule(lease, "lease-duration", "spec.leaseDurationSeconds");
        rule(before.accepted != after.accepted, "acceptance", "spec.hubAcceptsClient");
        let configs = !self.client_configs && before.client_configs != after.client_configs;
        rule(configs, "client-configs", "spec.managedClusterClientConfigs");
        found
    }
}

fn message(code: &str) -> String {
    format!("an agent may not change the {} of its cluster", code.replace('-', " "))
}

/// Whether any entry differs but those that may.
fn differ(before: &Map<'_, Text<'_>>, after: &Map<'_, Text<'_>>, may: impl Fn(&str) -> bool) -> bool {
    let gone = |one: &Map<'_, Text<'_>>, other: &Map<'_, Text<'_>>| {
        one.iter().any(|(key, value)| !may(key) && other.get(key).is_none_or(|other| **other != **value))
    };
    gone(before, after) || gone(after, before)
}

/// A ManifestWork is the hub's word; its agent only says that it is done with it.
fn work(request: &Request<'_>, agent: &str) -> Answer {
    let Some(resource) = &request.resource else { return no_opinion() };
    if resource.group != "work.open-cluster-management.io" || resource.resource != "manifestworks" {
        return no_opinion();
    }
    if resource.namespace.as_ref().is_none_or(|namespace| *namespace != agent) {
        return deny("foreign-cluster", "an agent may not write to another cluster's works").at("metadata.namespace");
    }
    if resource.subresource.as_deref() == Some("status") {
        return no_opinion();
    }
    let (Some(before), Some(after), "UPDATE") = (&request.previous_object, &request.object, &*resource.operation)
    else {
        return deny("work", "an agent may not make or remove works");
    };
    if bare(before) == bare(after) {
        allow()
    } else {
        deny("work", "an agent may only change the finalizers of a work")
    }
}

/// A work without what its agent or the server writes.
fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(members) = object.as_object_mut() {
        members.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for member in ["finalizers", "managedFields", "resourceVersion", "generation"] {
            metadata.remove(member);
        }
    }
    object
}

ocm_policy_sdk::export!(AgentSelfEdit);
