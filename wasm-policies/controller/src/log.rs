//! The decision log: one line of JSON for each decision about a join.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use ocm_api::registration::RegistrationStatus;
use ocm_policy_server::DecisionLog;
use serde_json::json;

/// Writes lines. Neither evidence nor settings are in them.
#[derive(Clone)]
pub(crate) struct Log(pub(crate) Arc<DecisionLog>);

impl Log {
    /// What was to be done was refused, or nothing could be written.
    pub(crate) fn refused(&self, cluster: &str, why: &str) {
        self.undone(cluster, "Refused", why);
    }

    /// What came to no end, by a word for its outcome.
    pub(crate) fn undone(&self, cluster: &str, outcome: &str, why: &str) {
        let line = json!({
            "time": Timestamp::now().to_string(),
            "operation": "join",
            "cluster": cluster,
            "outcome": outcome,
            "message": why,
        });
        self.0.add(line.to_string(), Duration::ZERO);
    }

    pub(crate) fn decided(&self, cluster: &str, outcome: &str, status: &RegistrationStatus) {
        let decision = status.decision.as_ref();
        let line = json!({
            "time": Timestamp::now().to_string(),
            "operation": "join",
            "cluster": cluster,
            "clusterUid": status.cluster_uid,
            "outcome": outcome,
            "verdict": status.verdict.as_str(),
            "waitingFor": status.waiting_for,
            "requester": status.requester,
            "request": status.request,
            "approvedBy": status.approved_by,
            "policies": decision.map(|decision| &decision.policies),
            "recordSha256": decision.and_then(|decision| decision.record_sha256.as_ref()),
        });
        // Registrations hold the same; nobody waits for a reader of stdout.
        self.0.add(line.to_string(), Duration::ZERO);
    }
}
