//! Inventories of certificates: of a hub, of a managed cluster, and of whatever the user names. What is wrong with them is
//! judged in `ocm_checks`.
//!
//! Only what is public is kept of Secrets: certificates, addresses, whether a private key belongs to its certificate, and of
//! tokens who they are of and how long they are valid.

mod given;
mod handshake;
mod hub;
mod kubeconfig;
mod managed;
mod material;
mod proxies;

pub use given::{address, content, secret};
pub use hub::hub;
pub use managed::managed;
pub(crate) use managed::{GrpcConfig, grpc_config};

use jiff::Timestamp;
use ocm_checks::snapshot::{PolicyRule, Trouble};
use ocm_checks::tls::{Inventory, Unseen};
use ocm_core::Failure;
use ocm_kube::{Cluster, access};

/// Everything that a cluster has: what a hub has, and what a managed cluster has. Most are one of both.
pub async fn both(cluster: &Cluster) -> Inventory {
    let (mut hub, managed) = futures::join!(hub(cluster), managed(cluster));
    // Its agents are clients of a hub of their own, which may be another cluster.
    hub.clients = None;
    hub.add(managed);
    hub
}

/// Differences of clocks below this are those of whole seconds and of requests that take their time.
const TOLERANCE: i64 = 5;

/// How far the clock of a cluster is ahead of ours, in seconds; 0 where it does not tell.
async fn clock_ahead(cluster: &Cluster) -> i64 {
    let Ok(time) = access::clock(cluster).await else { return 0 };
    let ahead = time.as_second() - Timestamp::now().as_second();
    if ahead.abs() < TOLERANCE { 0 } else { ahead }
}

/// One with nothing in it, as of now.
fn empty() -> Inventory {
    Inventory::new(Timestamp::now())
}

impl From<Unreadable> for Unseen {
    fn from(unreadable: Unreadable) -> Self {
        let Unreadable { what, failure, rule } = unreadable;
        Self { what, cluster: None, trouble: Trouble::of(&failure, rule) }
    }
}

/// Something that could not be read.
struct Unreadable {
    what: String,
    failure: Failure,
    rule: Option<PolicyRule>,
}
