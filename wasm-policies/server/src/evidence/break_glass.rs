//! Approvals with breakGlass, by which their authors pass over policies.

use std::sync::Arc;

use ocm_policy_abi::{EvidenceSource, Operation, Query, Request};
use ocm_policy_rules::{break_glass_approval, review};
use serde_json::Value;

use super::guard;
use super::knowledge::{Knowledge, OLDEST};
use super::store::Store;

/// What has to be followed for it: approvals with what proves them, the clusters that they are of, and who asks for those.
pub(crate) fn queries() -> Vec<Query> {
    let sources = [EvidenceSource::Approvals, EvidenceSource::Clusters, EvidenceSource::Csrs];
    sources.map(|source| Query::new("breakGlass", source, [""; 0])).into()
}

impl Knowledge {
    /// The approval with breakGlass by which whoever makes this request may pass over policies, as facts. None also where
    /// it cannot be told: then no policy is passed over.
    pub(crate) fn break_glass_approval(&self, request: &Request<'_>) -> Option<Value> {
        let cluster = review::cluster_of(request)?;
        let live = self.find(&EvidenceSource::Clusters)?.object_of(cluster, OLDEST)?;
        let uid = live.pointer("/metadata/uid")?.as_str()?;
        let author = &*request.requester.username;
        let mut approvals = self.approvals_with_break_glass();
        approvals.retain(|approval| approval["approver"] == author && approval["cluster"] == cluster);
        // Most have given none, and of a name strangers may have made thousands of requests.
        if approvals.is_empty() {
            return None;
        }
        // Whoever approves a certificate request shows whose it is; whoever accepts a cluster does not.
        let requests = match request.operation {
            Operation::Accept => self.requests_naming(cluster).ok()?,
            _ => Vec::new(),
        };
        break_glass_approval(request, uid, &requests, &approvals).cloned()
    }

    /// Approvals with breakGlass whose authors are proved, as facts.
    pub fn approvals_with_break_glass(&self) -> Vec<Value> {
        let since = guard::proves_since(|source| self.find(source), OLDEST);
        let store: Option<Arc<Store>> = self.find(&EvidenceSource::Approvals);
        let (Some(since), Some(store)) = (since, store) else { return Vec::new() };
        let counts = |row: &Value| {
            row["breakGlass"].as_bool() == Some(true) && row["created"].as_i64().is_some_and(|created| created > since)
        };
        store.rows(counts, OLDEST)
    }
}
