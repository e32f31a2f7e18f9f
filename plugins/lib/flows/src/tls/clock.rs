//! The time of an inventory, and the clocks of clusters.

use jiff::Timestamp;
use ocm_checks::tls::Inventory;
use ocm_kube::{Cluster, access};

/// An inventory with nothing in it, as of now.
pub(super) fn empty() -> Inventory {
    Inventory::new(Timestamp::now())
}

/// Differences of clocks below this are those of whole seconds and of requests that take their time.
const TOLERANCE: i64 = 5;

/// How far the clock of a cluster is ahead of ours, in seconds; 0 where it does not tell.
pub(super) async fn clock_ahead(cluster: &Cluster) -> i64 {
    let Ok(time) = access::clock(cluster).await else { return 0 };
    let ahead = time.as_second() - Timestamp::now().as_second();
    if ahead.abs() < TOLERANCE { 0 } else { ahead }
}
