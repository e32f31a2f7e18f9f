//! Whether the placement controller has decided about a placement as it is now.

use jiff::Timestamp;
use ocm_api::ManagedCluster;
use ocm_api::cluster::TaintEffect;
use ocm_api::conditions::{self, placement as conditions_of};

use super::membership::Facts;
use super::placements::{Match, Pool, Standing, choices, matches, tolerates, why};
use super::selections::Selection;
use crate::delivery::find;
use crate::leave::some;

/// Why the decisions about a placement may not be final; none if they are. Its status does not tell which version of it the
/// placement controller has looked at: with facts, the decisions are compared with what it may select. `now` is the time of
/// the hub.
pub fn undecided(selection: &Selection, facts: Option<&Facts>, now: Timestamp) -> Option<String> {
    let placement = &selection.placement;
    let all = placement.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let is_wrong = find(all, conditions_of::MISCONFIGURED).is_some_and(|one| one.status == conditions::TRUE);
    if is_wrong || find(all, conditions_of::SATISFIED).is_none() {
        return why(selection, facts, now);
    }
    let facts = facts?;
    let gone = no_longer(selection, facts, now);
    if !gone.is_empty() {
        return Some(format!("it still selects what it may not select any more ({})", some(&gone)));
    }
    let wanted = placement.spec.number_of_clusters.and_then(|wanted| usize::try_from(wanted).ok());
    if let Some(wanted) = wanted.filter(|wanted| selection.clusters.len() > *wanted) {
        return Some(format!("it still selects {} clusters, and is to select {wanted}", selection.clusters.len()));
    }
    let awaited = choices(selection, facts, now).into_iter().filter(|choice| choice.standing == Standing::Awaited);
    let awaited: Vec<String> = awaited.map(|choice| choice.cluster).collect();
    if !awaited.is_empty() {
        return Some(format!("clusters that it can select wait for the placement controller ({})", some(&awaited)));
    }
    // Upstream: `schedulingController.syncPlacement` writes the decisions first, and the conditions with this number later.
    let counted = placement.status.as_ref()?.number_of_selected_clusters.and_then(|all| usize::try_from(all).ok())?;
    let named = selection.clusters.len();
    (counted != named).then(|| format!("its status still counts {counted} as selected, and its decisions name {named}"))
}

/// Names of clusters that are selected, and that the placement may not select as it is now.
fn no_longer(selection: &Selection, facts: &Facts, now: Timestamp) -> Vec<String> {
    let placement = &selection.placement;
    let pool = Pool::of(placement, facts);
    let drives_out = |cluster: &ManagedCluster| {
        let mut taints = cluster.spec.taints.iter().filter(|taint| taint.effect == TaintEffect::NoSelect);
        taints.any(|taint| !placement.spec.tolerations.iter().any(|one| tolerates(one, taint, now)))
    };
    let may = |cluster: &ManagedCluster| {
        pool.holds(cluster) && !matches!(matches(placement, cluster), Match::No(_)) && !drives_out(cluster)
    };
    let is_lost = |name: &&String| {
        let found = facts.clusters.iter().find(|cluster| cluster.metadata.name.as_ref() == Some(*name));
        !found.is_some_and(may)
    };
    selection.clusters.iter().filter(is_lost).cloned().collect()
}
