//! What several checks advise to do next.

use crate::finding::Finding;
use crate::snapshot::Side;
use crate::text;

/// What makes the operator act anew, in its namespace.
pub(super) const RESTART: &str = "kubectl rollout restart deployment/cluster-manager -n {}";

/// The log of the agent that registers, in its namespace.
pub(super) const AGENT_LOGS: &str = "kubectl logs -n {} -l app=klusterlet-registration-agent --tail=20";

/// The next look at a cluster's requests.
pub(super) fn requests(finding: Finding, name: &str) -> Finding {
    finding.run(Side::Hub, "kubectl ocm get csr {} -o wide", &[name])
}

/// How one of several keys is accepted.
pub(super) fn by_fingerprint(finding: Finding, name: &str) -> Finding {
    finding.run(Side::Hub, "kubectl ocm accept {} --fingerprint sha256:KEY_OF_THE_AGENT", &[name])
}

/// What to do where one side alone does not tell enough.
pub(super) fn look_at_both(cluster: &str) -> String {
    let line = text::command("kubectl ocm troubleshoot {} --context MANAGED --hub-context HUB", &[cluster]);
    format!("look at both clusters: {line}")
}
