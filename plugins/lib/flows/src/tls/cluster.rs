//! Everything that a cluster has.

use ocm_checks::tls::Inventory;
use ocm_kube::Cluster;

use super::hub::hub;
use super::managed::managed;

/// Everything that a cluster has: what a hub has, and what a managed cluster has. Most are one of both. `of` is the hub of the
/// managed cluster, if there is access to it.
pub async fn both(cluster: &Cluster, of: Option<&Cluster>) -> Inventory {
    let (mut hub, managed) = futures::join!(hub(cluster), managed(cluster, of));
    // Its agents are clients of a hub of their own, which may be another cluster.
    hub.clients = None;
    hub.add(managed);
    hub
}
