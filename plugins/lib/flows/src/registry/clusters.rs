//! Managed clusters of a hub.

use kube::Api;
use kube::api::ListParams;
use ocm_api::ManagedCluster;
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

/// A cluster that does not know managed clusters is no hub.
fn no_hub(failure: Failure) -> Failure {
    match failure.reason {
        Reason::KindNotServed => {
            failure.context("this cluster is no Open Cluster Management hub").hint(Remedy::NameHub)
        }
        _ => failure,
    }
}
