//! In which mode a hub is deployed, and where its pods are.

use ocm_api::ClusterManager;
use ocm_api::names::namespaces;
use ocm_api::operator::ClusterManagerMode;

/// Whether the hub's pods run here and everything else is on another cluster.
pub fn is_hosted(manager: &ClusterManager) -> bool {
    manager.spec.deploy_option.as_ref().is_some_and(|option| option.mode == ClusterManagerMode::Hosted)
}

/// The namespace of the pods of a hub. Upstream: `ClusterManagerNamespace`.
pub fn namespace_of(manager: &ClusterManager) -> &str {
    match is_hosted(manager) {
        true => manager.metadata.name.as_deref().unwrap_or_default(),
        false => namespaces::HUB,
    }
}
