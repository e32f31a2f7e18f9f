//! Which configuration of an add-on takes effect on each cluster, and how far the hub has come with it.

use std::collections::{BTreeMap, BTreeSet};

use ocm_api::{ManagedClusterAddOn, PlacementDecision};
use ocm_core::addon::{
    Configured, Progress, RolloutStage, TakenAway, configurations, is_hubs, placements, progress, rollout, taken_away,
};
use ocm_core::cluster_sets::decided_for;
use ocm_core::order::Collect as _;
use ocm_core::{Failure, Reason, Remedy};
use ocm_kube::{Cluster, access};

use super::definitions;
use crate::cluster_sets::decisions;
use crate::deliveries::{DeliveryRow, Wanted, those_there};

/// What is known about an add-on.
#[derive(Debug)]
pub struct AddOnStatus {
    /// Its name.
    pub name: String,
    /// The clusters that have it, with what keeps it from being well there.
    pub addons: Vec<DeliveryRow<ManagedClusterAddOn>>,
    /// The configurations of each of them, by cluster and kind.
    pub configurations: Vec<Configured>,
    /// What was taken away of them, and is not gone yet; empty if what placements select may not be read, or the add-on has a
    /// controller of its own.
    pub taken_away: Vec<TakenAway>,
    /// How far the hub has come, by placement.
    pub progress: Vec<Progress>,
    /// The same by the stages of their rollouts; empty if it was looked at some clusters only, or what placements select may
    /// not be read.
    pub rollout: Vec<RolloutStage>,
    /// Why it cannot be told which placements select a cluster, if the user may not read it.
    pub unread: Option<String>,
}

/// Looks at an add-on of these clusters; if there are none, of all that have it.
///
/// # Errors
/// [`Reason::NotFound`] for an add-on that nothing on the hub defines; the failure of a request.
pub async fn status(hub: &Cluster, name: &str, clusters: &[String]) -> Result<AddOnStatus, Failure> {
    let wanted = Wanted { clusters: clusters.to_vec(), names: vec![name.to_owned()], selector: None };
    let (found, addons) =
        futures::join!(definitions(hub, &wanted.names), those_there::<ManagedClusterAddOn>(hub, &wanted));
    let Some(definition) = found?.into_iter().find_map(|(_, definition)| definition) else {
        return Err(Failure::new(Reason::NotFound, format!("the hub has no ClusterManagementAddOn {name:?}"))
            .hint(Remedy::SeeAddOns));
    };
    let addons = addons?;
    let (decisions, unread) = decided(hub, &placements(&definition)).await?;
    let selected = decided_for(&decisions);
    let (mut told, mut left) = (Vec::new(), Vec::new());
    for row in &addons {
        let all = configurations(&definition, &row.object, &selected);
        if unread.is_none() && is_hubs(&definition) {
            left.extend(taken_away(&row.object, &all));
        }
        told.extend(all);
    }
    let rollout = match clusters.is_empty() && unread.is_none() && !placements(&definition).is_empty() {
        true => {
            let by_cluster: BTreeMap<&str, &ManagedClusterAddOn> =
                addons.iter().map(|row| (row.cluster(), &row.object)).collect_map();
            // What takes too long, the hub tells by its own clock.
            rollout(&definition, &by_cluster, &decisions, access::clock(hub).await?)
        }
        false => Vec::new(),
    };
    let progress = progress(&definition);
    let name = name.to_owned();
    Ok(AddOnStatus { name, addons, configurations: told, taken_away: left, progress, rollout, unread })
}

/// The decisions of the namespaces of placements, `NAMESPACE/NAME`, as far as they may be read.
pub(super) async fn decided(
    hub: &Cluster,
    placements: &[String],
) -> Result<(Vec<PlacementDecision>, Option<String>), Failure> {
    let namespaces: BTreeSet<&str> = placements
        .iter()
        .filter_map(|placement| placement.split_once('/'))
        .map(|(namespace, _)| namespace)
        .collect_set();
    let (mut all, mut unread) = (Vec::new(), None);
    for namespace in namespaces {
        match decisions(hub, Some(namespace)).await {
            Ok(found) => all.extend(found),
            Err(failure) if failure.reason == Reason::Forbidden => unread = Some(failure.to_string()),
            Err(failure) => return Err(failure),
        }
    }
    Ok((all, unread))
}
