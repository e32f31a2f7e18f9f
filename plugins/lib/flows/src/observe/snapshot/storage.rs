//! What the API servers of a cluster tell of their storage.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::ListParams;
use ocm_api::parts::Lease;
use ocm_checks::snapshot::{Observed, StorageFacts};
use ocm_kube::{Cluster, access};

use super::facts::lease_facts;
use super::kinds::LEASES;
use super::listing::list;

/// The label of the leases that API servers renew, each its own, and its value: KEP-1965.
const IDENTITY: (&str, &str) = ("apiserver.kubernetes.io/identity", "kube-apiserver");
/// Where they are.
const KUBE_SYSTEM: &str = "kube-system";

/// What the API servers of a cluster tell of their storage.
pub(super) async fn storage(cluster: &Cluster) -> Observed<StorageFacts> {
    let api: Api<Lease> = Api::namespaced(cluster.client.clone(), KUBE_SYSTEM);
    let facts = |lease: Lease| {
        let label = lease.metadata.labels.as_ref().and_then(|labels| labels.get(IDENTITY.0));
        let is_servers = label.is_some_and(|who| who == IDENTITY.1);
        Some((is_servers, lease_facts(lease)))
    };
    let listed = match list(cluster, LEASES, Some(KUBE_SYSTEM), &api, ListParams::default(), facts).await {
        Ok(listed) => listed,
        Err(trouble) => return Observed::Trouble(trouble),
    };
    let (servers, others): (Vec<_>, Vec<_>) = listed.into_iter().partition(|(is_servers, _)| *is_servers);
    Observed::Read(StorageFacts {
        leases: servers.into_iter().map(|(_, lease)| lease).collect(),
        others: others.into_iter().filter_map(|(_, lease)| lease.renewed).max_by_key(|time| time.0),
        // After the leases: none of them can be from later on.
        now: access::clock(cluster).await.ok().map(Time),
    })
}
