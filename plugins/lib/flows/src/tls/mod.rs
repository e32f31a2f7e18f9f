//! Inventories of certificates: of a hub, of a managed cluster, and of whatever the user names. What is wrong with them is
//! judged in `ocm_checks`.
//!
//! Only what is public is kept of Secrets: certificates, addresses, whether a private key belongs to its certificate, and of
//! tokens who they are of and how long they are valid.

mod clock;
mod given;
mod grpc;
mod handshake;
mod hub;
mod kubeconfig;
mod managed;
mod material;
mod proxies;
mod unreadable;

pub use given::{address, content, secret};
pub(crate) use grpc::{GrpcConfig, grpc_config};
pub use hub::hub;
pub use managed::managed;

use ocm_checks::tls::Inventory;
use ocm_kube::Cluster;

/// Everything that a cluster has: what a hub has, and what a managed cluster has. Most are one of both.
pub async fn both(cluster: &Cluster) -> Inventory {
    let (mut hub, managed) = futures::join!(hub(cluster), managed(cluster));
    // Its agents are clients of a hub of their own, which may be another cluster.
    hub.clients = None;
    hub.add(managed);
    hub
}
