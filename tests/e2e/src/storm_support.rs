//! A hub before which many clusters come at once, and what its audit log tells of those that were let in.

use std::collections::{BTreeMap, BTreeSet};

use control_plane::Spec;
use fleet_sim::Report;
use serde_json::{Value, json};

use crate::accept_support::Hub;
use crate::controller_support::{approving, hub_as, let_in};
use crate::webhook_support::{Webhook, policy};

/// A hub that asks the webhook about everything that registers clusters, with policies about hygiene and one that approves.
pub fn hub(spec: &Spec) -> (Hub, Webhook) {
    let hub = hub_as(spec, true);
    policy(&hub.cluster, "cluster-hygiene", json!({"module": {"builtin": "cluster-hygiene"}}));
    let webhook = Webhook::start(&hub.cluster, &[]);
    webhook.configure_and_wait(&hub.cluster);
    grant_agents(&hub);
    (hub, webhook)
}

/// What agents may do once they are in is up to the hub's own controllers; here nothing but admission refuses it.
pub fn grant_agents(hub: &Hub) {
    hub.grant(&json!([
        {"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclusters"], "verbs": ["get"]},
        {"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclusters/status"], "verbs": ["patch"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]},
        {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"], "verbs": ["create", "get", "watch"]},
    ]));
}

/// Another version of the policy that approves, which lets in clusters whose names begin with `c`.
pub fn approving_otherwise() -> Value {
    let mut other = approving(true);
    other["settings"]["rules"][0]["names"] = json!(["c*"]);
    other
}

/// What a hub holds that lets clusters in, by the names of clusters and of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LetIn {
    /// The clusters.
    pub clusters: BTreeSet<String>,
    /// The requests.
    pub requests: BTreeSet<String>,
}

impl LetIn {
    /// What a hub holds now.
    pub fn on(hub: &Hub) -> Self {
        Self { clusters: hub.accepted(), requests: hub.approved() }
    }

    /// What it should hold after a storm: all right clusters with the requests that they joined with.
    pub fn by(report: &Report) -> Self {
        Self {
            clusters: report.agents.iter().map(|agent| agent.name.clone()).collect(),
            requests: report.agents.iter().flat_map(|agent| agent.requests.clone()).collect(),
        }
    }

    /// One more.
    pub fn and(mut self, cluster: &str, request: String) -> Self {
        self.clusters.insert(cluster.to_owned());
        self.requests.insert(request);
        self
    }

    /// Compares this with what the audit log of a hub tells of the controller's writes.
    pub fn written(&self, hub: &Hub) -> Written {
        let [approved, accepted] = let_in(hub, &["controller"]);
        let mut written = Written::default();
        written.compare(&approved, &self.requests);
        written.compare(&accepted, &self.clusters);
        written
    }
}

/// What an audit log tells of the writes that let clusters in, where it is not that each was written once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Written more than once, or what should not have been written.
    pub wrong: Vec<String>,
    /// Not in the log, which does not tell how a request ended whose client or server is gone.
    pub missing: Vec<String>,
}

impl Written {
    fn compare(&mut self, written: &BTreeMap<String, usize>, names: &BTreeSet<String>) {
        let wrong = written.iter().filter(|(name, times)| **times != 1 || !names.contains(*name));
        self.wrong.extend(wrong.map(|(name, times)| format!("{name}: {times} times")));
        self.missing.extend(names.iter().filter(|name| !written.contains_key(*name)).cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_twice_or_should_not_have_been_is_wrong_and_what_was_not_is_missing() {
        let written: BTreeMap<String, usize> =
            [("once", 1), ("twice", 2), ("other", 1)].map(|(name, times)| (name.to_owned(), times)).into();
        let names: BTreeSet<String> = ["once", "twice", "never"].map(str::to_owned).into();
        let mut found = Written::default();
        found.compare(&written, &names);
        assert_eq!(found.wrong, ["other: 1 times", "twice: 2 times"]);
        assert_eq!(found.missing, ["never"]);
    }
}
