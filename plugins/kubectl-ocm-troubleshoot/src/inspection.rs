//! Inspects the same clusters, again and again.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ocm_checks::judge::{Report, judge};
use ocm_checks::snapshot::Snapshot;
use ocm_checks::suppress::Suppression;
use ocm_cli::Ui;
use ocm_core::Failure;
use ocm_flows::in_cluster::InCluster;
use ocm_flows::troubleshoot::{Probed, Sides, observe};

/// Time between two inspections.
pub(crate) const PAUSE: Duration = Duration::from_secs(3);
/// How long it goes by what the hub has answered to the credentials of agents: a token is not sent every time.
const PROBES: Duration = Duration::from_secs(30);

/// The clusters that are inspected, and what was found out of them before.
pub(crate) struct Inspection {
    pub(crate) sides: Sides,
    pub(crate) clusters: Vec<String>,
    pub(crate) all_clusters: bool,
    pub(crate) suppressions: Vec<Suppression>,
    /// When the hub was last asked with credentials of agents, and what it answered.
    pub(crate) probed: RefCell<Option<(Instant, Probed)>>,
    /// How the hub is seen from beside the agents; none: not at all.
    pub(crate) in_cluster: Option<InCluster>,
    pub(crate) ui: Arc<Ui>,
}

impl Inspection {
    /// What the clusters show now, and what that means.
    pub(crate) async fn inspect(&self) -> Result<(Snapshot, Report), Failure> {
        let is_known = |(at, probed): &(Instant, Probed)| {
            at.elapsed() < PROBES && !(probed.here.is_empty() && probed.in_cluster.is_empty())
        };
        let known = self.probed.borrow().clone().filter(is_known);
        let known = known.map(|(_, probed)| probed);
        let is_asked = known.is_none();
        let within = self.in_cluster.as_ref();
        let snapshot = observe(&self.sides, &self.clusters, self.all_clusters, known, within, self.ui.clone()).await?;
        if is_asked {
            let probed = Probed { here: snapshot.probes.clone(), in_cluster: snapshot.in_cluster.clone() };
            *self.probed.borrow_mut() = Some((Instant::now(), probed));
        }
        let report = judge(&snapshot, &self.suppressions);
        Ok((snapshot, report))
    }

    /// Has the hub asked anew the next time: what it answered before counts no longer.
    pub(crate) fn forget(&self) {
        *self.probed.borrow_mut() = None;
    }
}
