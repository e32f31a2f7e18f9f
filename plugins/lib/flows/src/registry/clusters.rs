//! Managed clusters of a hub.

use kube::Api;
use kube::api::ListParams;
use ocm_api::ManagedCluster;
use ocm_api::conditions::{self, managed_cluster};
use ocm_core::{Failure, Reason, Remedy};
use ocm_kube::Cluster;

use super::pages::{all, some};

/// Managed clusters, all or those that match a selector.
///
/// # Errors
/// When the hub cannot be read.
pub async fn clusters(hub: &Cluster, selector: Option<&str>) -> Result<Vec<ManagedCluster>, Failure> {
    let mut params = ListParams::default();
    if let Some(selector) = selector {
        params = params.labels(selector);
    }
    let api: Api<ManagedCluster> = Api::all(hub.client.clone());
    all(hub, &api, params, "list managed clusters").await.map_err(no_hub)
}

/// Managed clusters by their names, those that exist.
///
/// # Errors
/// When the hub cannot be read.
pub async fn some_clusters(hub: &Cluster, names: &[String]) -> Result<Vec<ManagedCluster>, Failure> {
    some(hub, names, "managed cluster").await.map_err(no_hub)
}

/// Whether the agent of a cluster has joined.
pub(crate) fn has_joined(cluster: &ManagedCluster) -> bool {
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let joined = conditions::find(conditions, managed_cluster::JOINED);
    joined.is_some_and(|condition| condition.status == conditions::TRUE)
}

/// A cluster that does not know managed clusters is no hub.
fn no_hub(failure: Failure) -> Failure {
    match failure.reason {
        Reason::KindNotServed => {
            failure.context("this cluster is no Open Cluster Management hub").hint(Remedy::NameHub)
        }
        _ => failure,
    }
}
