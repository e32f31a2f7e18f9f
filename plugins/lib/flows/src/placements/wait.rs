//! Waiting until the placement controller has decided.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube::Api;
use kube::api::WatchParams;
use ocm_api::names::labels;
use ocm_api::{Placement, PlacementDecision};
use ocm_core::cluster_sets::undecided;
use ocm_core::{Failure, Narrator, Reason};
use ocm_kube::Cluster;
use ocm_kube::triggers::{Triggers, named};
use ocm_kube::wait::{Check, until_triggered};

use super::list::{PlacementRow, read_facts};
use crate::cluster_sets::selected_by;

/// How often it is looked where nothing tells of changes.
const PAUSE: Duration = Duration::from_secs(1);

/// What a wait came to.
#[derive(Debug)]
pub struct Decided {
    /// The placement as it was seen last, with the clusters that it selects; none if it was never seen.
    pub row: Option<PlacementRow>,
    /// Why it can only be told what the placement controller says, if the user may read no more.
    pub unread: Option<String>,
    /// Why it is not decided.
    pub late: Option<Failure>,
}

/// Waits until the placement controller has decided about a placement as it is now.
///
/// # Errors
/// The failure of a request; that the time is over is none.
pub(super) async fn until_decided(
    hub: &Cluster,
    namespace: &str,
    name: &str,
    timeout: Duration,
    narrator: &dyn Narrator,
) -> Result<Decided, Failure> {
    let placements: Api<Placement> = Api::namespaced(hub.client.clone(), namespace);
    let decisions: Api<PlacementDecision> = Api::namespaced(hub.client.clone(), namespace);
    let of_placement = WatchParams::default().labels(&format!("{}={name}", labels::PLACEMENT));
    let triggers = Triggers::default().of(placements, named(name)).of(decisions, of_placement);
    let doing = format!("waiting until the hub has decided about placement {namespace}/{name}");
    let (mut row, mut unread) = (None, None);
    let waited = until_triggered(&doing, Instant::now() + timeout, PAUSE, triggers, narrator, async || {
        let found = selected_by(hub, Some(namespace), None).await?;
        let Some(selection) = found.into_iter().find(|one| one.name() == name) else {
            return Err(Failure::new(Reason::NotFound, format!("somebody has deleted placement {namespace}/{name}")));
        };
        let (facts, why) = read_facts(hub).await?;
        unread = why;
        let pending = undecided(&selection, facts.as_ref(), Timestamp::now());
        row = Some(PlacementRow::of(selection, facts.as_ref()));
        Ok(pending.map_or(Check::Ready(()), Check::NotYet))
    })
    .await;
    match waited {
        Ok(()) => Ok(Decided { row, unread, late: None }),
        Err(failure) if failure.reason == Reason::TimedOut => Ok(Decided { row, unread, late: Some(failure) }),
        Err(failure) => Err(failure),
    }
}
