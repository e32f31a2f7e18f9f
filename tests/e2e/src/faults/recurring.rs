//! Changes that several faults consist of.

use serde_json::{Value, json};

use super::change::Change;
use super::pair::On;
use crate::trouble_support::AGENTS;

/// The namespace of the hub's components.
pub(super) const HUB: &str = "open-cluster-management-hub";
/// The namespace of operators.
pub(super) const OPERATOR: &str = "open-cluster-management";

/// A change of the Klusterlet.
pub(super) fn klusterlet(spec: Value) -> Vec<Change> {
    vec![Change::Patch(On::Managed, vec!["klusterlet", "klusterlet"], json!({ "spec": spec }))]
}

/// A change of the ClusterManager.
pub(super) fn manager(spec: Value) -> Vec<Change> {
    vec![Change::Patch(On::Hub, vec!["clustermanager", "cluster-manager"], json!({ "spec": spec }))]
}

/// Pods that are made anew.
pub(super) fn replaced(on: On, namespace: &'static str, selector: &'static str) -> Change {
    let words = vec!["delete", "pods", "--wait=false", "--namespace", namespace, "--selector", selector];
    Change::Kubectl(on, words, vec![])
}

/// The pods of the hub's registration controller, made anew.
pub(super) fn controllers() -> Change {
    replaced(On::Hub, HUB, "app=clustermanager-registration-controller")
}

/// The pods of the registration agent, made anew.
pub(super) fn agents() -> Change {
    replaced(On::Managed, AGENTS, "app=klusterlet-registration-agent")
}

/// No new pod may run on a node.
pub(super) fn cordoned(on: On) -> Change {
    let taint = |taint| vec!["taint", "nodes", "--all", taint];
    Change::Kubectl(on, taint("example.com/none=:NoSchedule"), taint("example.com/none-"))
}

/// No new pod may be made in a namespace.
pub(super) fn quota(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": namespace},
        "spec": {"hard": {"pods": "0"}},
    })
}

/// A quota is enforced once what it limits has been counted.
pub(super) fn counted(on: On, namespace: &'static str, quota: &'static str) -> Change {
    let is_counted = "--for=jsonpath={.status.hard}";
    Change::Kubectl(on, vec!["wait", quota, "--namespace", namespace, is_counted, "--timeout=60s"], vec![])
}

/// Less for each container than any of Open Cluster Management asks for.
pub(super) fn limits(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "little", "namespace": namespace},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "1m"}}]},
    })
}

/// A namespace that takes no pods but of the strictest standard.
pub(super) fn restricted() -> Value {
    json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
}
