//! What a check is about: a cluster, and why it is skipped where that is not there; or a hub, and not another one.

use ocm_api::ClusterManager;
use ocm_core::managed;

use crate::facts::{Cluster, is_own_manager};
use crate::finding::Finding;
use crate::snapshot::HubSide;

/// Why an agent that registers by AWS IAM has no requests.
pub(super) const NO_CERTIFICATE: &str = "the agent registers by AWS IAM, without certificates";

/// The cluster on the hub; one that is not there or is leaving is for other checks.
macro_rules! staying {
    ($cluster:expr) => {
        match $cluster.object {
            None => return Outcome::skip("the hub does not know the cluster"),
            Some(_) if $cluster.is_leaving() => return Outcome::skip("the cluster is being removed from the hub"),
            Some(object) => object,
        }
    };
}
pub(super) use staying;

/// The agent of a cluster; without one the managed cluster has none of this name.
macro_rules! agent {
    ($cluster:expr) => {
        match $cluster.agent {
            Some(agent) => agent,
            None => return Outcome::skip("the managed cluster was not looked at"),
        }
    };
}
pub(super) use agent;

/// A finding about a ClusterManager. One about another hub, whose pods run beside the hub's own, explains nothing of this one.
pub(super) fn of_manager(hub: &HubSide, manager: &ClusterManager, finding: Finding) -> Finding {
    let managers = hub.managers.read().map(Vec::as_slice).unwrap_or_default();
    if is_own_manager(managers, manager) { finding } else { finding.apart() }
}

/// Whether an agent has ever joined, as its hub tells.
pub(super) fn has_joined(cluster: &Cluster<'_>) -> bool {
    cluster.object.is_some_and(managed::has_joined)
}
