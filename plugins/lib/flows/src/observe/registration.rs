//! What a hub shows of one cluster: the managed cluster, the requests in its name, the lease that its agent renews.

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::Api;
use kube::api::{ListParams, WatchParams};
use ocm_api::ManagedCluster;
use ocm_api::names::{hub as names, labels};
use ocm_api::parts::Lease;
use ocm_core::csr::Request;
use ocm_core::managed::RegistrationFacts;
use ocm_core::{Failure, Reason, Remedy};
use ocm_kube::Cluster;
use ocm_kube::triggers::{Triggers, named};

use crate::registry::pages_of_requests;

/// Reads everything that a hub shows of the cluster.
pub async fn observe(hub: &Cluster, name: &str) -> RegistrationFacts {
    let leases: Api<Lease> = Api::namespaced(hub.client.clone(), name);
    let (cluster, requests, lease) =
        futures::join!(cluster(hub, name), requests(hub, name), leases.get_opt(names::MANAGED_CLUSTER_LEASE));
    let lease = lease.map_err(|error| hub.explain("read the lease of the agent", error));
    RegistrationFacts { cluster, requests, lease }
}

/// Changes of what [`observe`] reads.
pub fn triggers(hub: &Cluster, name: &str) -> Triggers {
    let leases: Api<Lease> = Api::namespaced(hub.client.clone(), name);
    asking_triggers(hub, name).of(leases, named(names::MANAGED_CLUSTER_LEASE))
}

/// Changes of the managed cluster and of the requests that carry its label.
pub(crate) fn asking_triggers(hub: &Cluster, name: &str) -> Triggers {
    let clusters: Api<ManagedCluster> = Api::all(hub.client.clone());
    let requests: Api<CertificateSigningRequest> = Api::all(hub.client.clone());
    let of_cluster = WatchParams::default().labels(&of_cluster(name));
    Triggers::default().of(clusters, named(name)).of(requests, of_cluster)
}

/// The managed cluster.
///
/// # Errors
/// The failure of the request, also of one to a cluster that is no hub.
pub async fn cluster(hub: &Cluster, name: &str) -> Result<Option<ManagedCluster>, Failure> {
    let api: Api<ManagedCluster> = Api::all(hub.client.clone());
    match api.get(name).await {
        Ok(found) => Ok(Some(found)),
        Err(error) => {
            let failure = hub.explain(format_args!("read managed cluster {name:?}"), error);
            match failure.reason {
                Reason::NotFound => Ok(None),
                Reason::KindNotServed => Err(not_a_hub(&hub.server)),
                _ => Err(failure),
            }
        }
    }
}

/// The requests that carry the cluster's label, for whatever signer: strangers count, too.
///
/// # Errors
/// The failure of the request.
pub async fn requests(hub: &Cluster, name: &str) -> Result<Vec<Request>, Failure> {
    let params = ListParams::default().labels(&of_cluster(name));
    pages_of_requests(hub, params, |object| Some(Request::read(&object))).await
}

/// Selects the objects that carry the cluster's label.
fn of_cluster(name: &str) -> String {
    format!("{}={name}", labels::CLUSTER_NAME)
}

/// A cluster that serves no managed clusters.
pub(crate) fn not_a_hub(server: &str) -> Failure {
    Failure::new(
        Reason::KindNotServed,
        format!("{server} is a Kubernetes cluster, but no hub: it has no managed clusters"),
    )
    .hint(Remedy::InstallHub)
}
