//! What several checks advise to do next.

use ocm_api::names::namespaces;

use crate::facts::Facts;
use crate::finding::Finding;
use crate::snapshot::{HubSide, Side};
use crate::text;

/// What makes the operator act anew, in its namespace.
pub(super) const RESTART: &str = "kubectl rollout restart deployment/cluster-manager -n {}";

/// The namespace of the hub's operator. One that was installed by a catalog is in another than the usual one.
pub(super) fn hub_operator(hub: &HubSide) -> &str {
    hub.operator.read().map_or(namespaces::OPERATOR, |operator| &operator.namespace)
}

/// The namespace of the operator of the managed cluster that was looked at.
pub(super) fn operator<'a>(facts: &Facts<'a>) -> &'a str {
    let operator = facts.snapshot.managed.as_ref().and_then(|managed| managed.operator.read());
    operator.map_or(namespaces::OPERATOR, |operator| &operator.namespace)
}

/// The pods of the agent that registers: in the Singleton modes one pod does the work of all agents. Upstream:
/// `manifests/klusterlet/management`.
pub(super) const AGENT: &str = "app in (klusterlet-registration-agent,klusterlet-agent)";

/// The log of that agent, in its namespace, by [`AGENT`].
pub(super) const AGENT_LOGS: &str = "kubectl logs -n {} -l {} --tail=20";

/// What starts it anew, in its namespace, by [`AGENT`].
pub(super) const RESTART_AGENT: &str = "kubectl delete pods -n {} -l {}";

/// The next look at a cluster's requests.
pub(super) fn requests(finding: Finding, name: &str) -> Finding {
    finding.run(Side::Hub, "kubectl ocm get csr {} -o wide", &[name])
}

/// How one of several keys is accepted.
pub(super) fn by_fingerprint(finding: Finding, name: &str) -> Finding {
    finding.run(Side::Hub, "kubectl ocm accept {} --fingerprint sha256:KEY_OF_THE_AGENT", &[name])
}

/// What to do where one side alone does not tell enough.
pub(super) fn inspect_both(cluster: &str) -> String {
    let line = text::command("kubectl ocm troubleshoot {} --context MANAGED --hub-context HUB", &[cluster]);
    format!("look at both clusters: {line}")
}
