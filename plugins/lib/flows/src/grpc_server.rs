//! Where a hub says that agents find its gRPC server. Whoever may not read what says it knows nothing of it.

use kube::Api;
use kube::api::ListParams;
use ocm_api::ClusterManager;
use ocm_api::names::namespaces;
use ocm_api::operator::ClusterManagerMode;
use ocm_api::parts::Service;
use ocm_core::grpc::{self, Address};
use ocm_core::{Failure, Reason};
use ocm_kube::Cluster;

/// The hub's ClusterManager; none where there is none on this cluster, or it may not be read.
///
/// # Errors
/// The failure of the request.
pub(crate) async fn manager(hub: &Cluster) -> Result<Option<ClusterManager>, Failure> {
    let api: Api<ClusterManager> = Api::all(hub.client.clone());
    let all = match api.list(&ListParams::default()).await {
        Ok(list) => list.items,
        Err(error) => {
            let failure = hub.explain("list ClusterManagers", error);
            return match failure.reason {
                Reason::Forbidden | Reason::NotFound | Reason::KindNotServed => Ok(None),
                _ => Err(failure),
            };
        }
    };
    // A hosted one is of another hub.
    let is_own = |manager: &ClusterManager| {
        manager.spec.deploy_option.as_ref().is_none_or(|option| option.mode == ClusterManagerMode::Default)
    };
    Ok(all.into_iter().find(is_own))
}

/// Where agents find the server, as this ClusterManager and its Services say; none: they do not say it, or may not be read.
///
/// # Errors
/// The failure of a request.
pub(crate) async fn published(hub: &Cluster, manager: &ClusterManager) -> Result<Option<Address>, Failure> {
    let name = manager.metadata.name.as_deref().unwrap_or_default();
    let (own, exposed) = (grpc::service(name), grpc::exposed_service(name));
    let (own, exposed) = futures::join!(service(hub, &own), service(hub, &exposed));
    Ok(grpc::published(manager, own?.as_ref(), exposed?.as_ref()))
}

/// A Service of the hub; none where it is not there, or may not be read.
async fn service(hub: &Cluster, name: &str) -> Result<Option<Service>, Failure> {
    let api: Api<Service> = Api::namespaced(hub.client.clone(), namespaces::HUB);
    match api.get_opt(name).await {
        Ok(found) => Ok(found),
        Err(error) => {
            let failure = hub.explain(format_args!("read Service {}/{name}", namespaces::HUB), error);
            if failure.reason == Reason::Forbidden { Ok(None) } else { Err(failure) }
        }
    }
}
