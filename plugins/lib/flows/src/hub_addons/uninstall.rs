//! The hub's side of add-ons goes: what was made for them, in the opposite order.

use std::collections::BTreeMap;
use std::time::Instant;

use kube::Api;
use kube::api::{ListParams, WatchParams};
use ocm_api::{ManagedClusterAddOn, Manifest};
use ocm_core::hub_addon::{Fate, LABEL, Labelled, Rank, display_name, enabled_on, fate, installed_by, order};
use ocm_core::leave::space::foreign_of_addon;
use ocm_core::leave::{row, some};
use ocm_core::plan::{Applied, Outcome, Plan, Stage};
use ocm_core::{DryRun, Event, Failure, Narrator, Remedy};
use ocm_kube::access;
use ocm_kube::remove::{self, Dependents};
use ocm_kube::triggers::Triggers;
use ocm_kube::wait::{Check, until_triggered};
use ocm_kube::{Cluster, contents};

use crate::addons::definitions;
use crate::deliveries::{Wanted, deliveries};
use crate::gone::until_gone;
use crate::leave::{Leaving, PAUSE, namespace_gone, noted};
use crate::registry;

/// What the rights are needed for.
const PURPOSE: &str = "uninstall the hub's side of an add-on";

/// What is wanted.
#[derive(Clone, Copy, Debug)]
pub struct HubAddOnRemoval {
    /// How they go: whether although clusters have them, whether namespaces go with whatever else is in them, how much is only
    /// tried, and how long each step is waited for.
    pub leaving: Leaving,
    /// Whether definitions go, and with them all objects of their kinds.
    pub definitions: bool,
}

/// What there is of the hub's side of an add-on.
#[derive(Clone, Debug)]
pub struct HubAddOnFound {
    /// The name by which it was installed.
    pub name: String,
    /// What goes, in this order.
    pub objects: Vec<Labelled>,
    /// What carries its label and stays, and why.
    pub kept: Vec<(Labelled, String)>,
    /// The clusters on which its add-ons are enabled, by name of the add-on.
    pub enabled: BTreeMap<String, Vec<String>>,
}

/// What a removal came to.
#[derive(Clone, Debug, Default)]
pub struct HubAddOnUninstalled {
    /// Namespaces that stay, and why.
    pub namespaces_kept: Vec<(String, String)>,
}

impl HubAddOnFound {
    /// Whether there is anything to delete.
    pub fn is_there(&self) -> bool {
        !self.objects.is_empty()
    }

    /// Names of the add-ons that go: clusters cannot have them any more.
    fn offered(&self) -> Vec<String> {
        let offered = self.objects.iter().filter(|found| found.rank() == Rank::AddOns);
        let mut names: Vec<String> = offered.filter_map(|found| found.metadata.name.clone()).collect();
        if self.is_there() && !names.contains(&self.name) {
            names.push(self.name.clone());
        }
        names
    }
}

/// What there is of these add-ons. Nothing is deleted yet.
///
/// # Errors
/// A cluster that is no hub; the rights that are missing; a refusal, if clusters have one of them and nobody said that it goes
/// all the same; the failure of a request.
pub async fn find_hub_addons(
    hub: &Cluster,
    names: &[String],
    removal: HubAddOnRemoval,
    narrator: &dyn Narrator,
) -> Result<Vec<HubAddOnFound>, Failure> {
    narrator.tell(Event::now(format!("looking at {}", hub.label())));
    let addons = on_clusters(hub).await?;
    let all = contents::labelled(hub, &format!("{LABEL} in ({})", names.join(","))).await?;
    let of = |name: &String| {
        let is_its = |found: &&Labelled| {
            found.metadata.labels.as_ref().and_then(|labels| labels.get(LABEL)).is_some_and(|value| value == name)
        };
        let (mut objects, mut kept) = (Vec::new(), Vec::new());
        for found in all.iter().filter(is_its) {
            match fate(found, name, removal.definitions) {
                Fate::Delete => objects.push(found.clone()),
                Fate::Keep(why) => kept.push((found.clone(), why)),
            }
        }
        order(&mut objects);
        let mut one = HubAddOnFound { name: name.clone(), objects, kept, enabled: BTreeMap::new() };
        one.enabled = enabled_on(&addons, &one.offered());
        one
    };
    let found: Vec<HubAddOnFound> = names.iter().map(of).collect();
    for one in &found {
        if !one.is_there() && one.kept.is_empty() {
            tell_of_others(hub, &one.name, narrator).await?;
        }
        refuse(one, removal.leaving.force, narrator)?;
    }
    if removal.leaving.dry_run == DryRun::No {
        let manifests = found.iter().flat_map(|one| &one.objects).filter_map(Labelled::manifest).collect();
        let rights = access::to_remove(&Plan::new([Stage::new("what goes", manifests)]));
        if !rights.is_empty() {
            narrator.tell(Event::now("checking your rights"));
            access::require(hub, PURPOSE, &rights).await?;
        }
    }
    Ok(found)
}

/// The add-ons of all clusters.
async fn on_clusters(hub: &Cluster) -> Result<Vec<ManagedClusterAddOn>, Failure> {
    let rows = deliveries::<ManagedClusterAddOn>(hub, &Wanted::default()).await?;
    Ok(rows.into_iter().map(|row| row.object).collect())
}

/// Says of an add-on of which nothing of ours is there who else has installed it.
async fn tell_of_others(hub: &Cluster, name: &str, narrator: &dyn Narrator) -> Result<(), Failure> {
    let names = [name.to_owned()];
    for definition in definitions(hub, &names).await?.into_iter().filter_map(|(_, definition)| definition) {
        let shown = display_name(&definition).map(|shown| format!(" ({shown})")).unwrap_or_default();
        let who = installed_by(&definition).unwrap_or_else(|| "somebody else".to_owned());
        narrator.tell(Event::note(format!("ClusterManagementAddOn {name:?}{shown} was installed by {who}: it stays")));
    }
    Ok(())
}

/// Refuses to take away what clusters have, or tells of it.
fn refuse(found: &HubAddOnFound, force: bool, narrator: &dyn Narrator) -> Result<(), Failure> {
    let HubAddOnFound { name, enabled, .. } = found;
    for (addon, clusters) in enabled {
        let sentence = match clusters.as_slice() {
            [only] => format!("add-on {addon:?} is enabled on cluster {only:?}"),
            several => format!("add-on {addon:?} is enabled on {} clusters: {}", several.len(), some(several)),
        };
        if !force {
            let (name, clusters) = (addon.clone(), clusters.join(","));
            return Err(Failure::refused(format!("{sentence}; nothing was deleted"))
                .hint(Remedy::DisableAddOn { name, clusters })
                .hint(Remedy::WithClusters));
        }
        narrator.tell(Event::warning(format!("{sentence}; hub add-on {name:?} goes all the same")));
    }
    Ok(())
}

/// Deletes what was made for an add-on, each object by the UID that was read. `each` hears of every object.
///
/// # Errors
/// A refusal, if a cluster has got it meanwhile; [`ocm_core::Reason::TimedOut`] with what is still there; the failure of a
/// request. What was deleted before it is gone.
pub async fn uninstall_hub_addon(
    hub: &Cluster,
    found: &HubAddOnFound,
    removal: HubAddOnRemoval,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<HubAddOnUninstalled, Failure> {
    let leaving = removal.leaving;
    let each = &noted(leaving, narrator, each);
    if leaving.dry_run == DryRun::No && !leaving.force && found.is_there() {
        let enabled = enabled_on(&on_clusters(hub).await?, &found.offered());
        refuse(&HubAddOnFound { enabled, ..found.clone() }, false, narrator)?;
    }
    let mut uninstalled = HubAddOnUninstalled::default();
    for (kept, why) in &found.kept {
        if let Some(manifest) = kept.manifest() {
            each(&row(manifest, Outcome::Kept(why.clone())));
        }
    }
    for rank in Rank::ALL.into_iter().rev() {
        let its: Vec<(Manifest, &str)> = found
            .objects
            .iter()
            .filter(|one| one.rank() == rank)
            .filter_map(|one| Some((one.manifest()?, one.uid())))
            .collect();
        if its.is_empty() {
            continue;
        }
        narrator.tell(Event::now(format!("{} {}", leaving.verb(), rank.name())));
        if rank == Rank::Namespaces {
            for (manifest, uid) in its {
                if let Some(why) = space(hub, found, (&manifest, uid), leaving, narrator, each).await? {
                    uninstalled.namespaces_kept.push((manifest.name().to_owned(), why));
                }
            }
            continue;
        }
        // Pods go before the rights that they use; those of a Job would stay.
        let dependents = if rank == Rank::Workloads { Dependents::First } else { Dependents::Usual };
        for (manifest, uid) in &its {
            each(&remove::known(hub, manifest, uid, dependents, leaving.dry_run).await?);
        }
        if leaving.dry_run == DryRun::No {
            // Who looks after them, or needs them, goes later.
            until_gone(hub, &its, rank.name(), leaving.timeout, narrator).await?;
            if rank == Rank::AddOns {
                gone_from_clusters(hub, &its, leaving, narrator).await?;
            }
        }
    }
    Ok(uninstalled)
}

/// Waits until the hub has taken from clusters what belongs to these ClusterManagementAddOns: controllers of the add-on may be
/// needed for it.
async fn gone_from_clusters(
    hub: &Cluster,
    its: &[(Manifest, &str)],
    leaving: Leaving,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let api: Api<ManagedClusterAddOn> = Api::all(hub.client.clone());
    let triggers = Triggers::default().of(api.clone(), WatchParams::default());
    let belongs = |addon: &ManagedClusterAddOn| {
        let owners = addon.metadata.owner_references.as_deref().unwrap_or_default();
        owners.iter().any(|owner| its.iter().any(|(_, uid)| owner.uid == *uid))
    };
    let deadline = Instant::now() + leaving.timeout;
    until_triggered("waiting until clusters have let go of it", deadline, PAUSE, triggers, narrator, async || {
        let all = registry::all(hub, &api, ListParams::default(), "list add-ons of clusters").await?;
        let left: Vec<String> =
            all.iter().filter(|addon| belongs(addon)).filter_map(|addon| addon.metadata.namespace.clone()).collect();
        Ok(match left.as_slice() {
            [] => Check::Ready(()),
            left => Check::NotYet(format!("it is still on {}", some(left))),
        })
    })
    .await
    .map_err(|failure| failure.hint(Remedy::RunAgain))
}

/// Deletes a namespace that was made for the add-on, unless something of somebody else's is in it. Why it stays, if it does.
async fn space(
    hub: &Cluster,
    found: &HubAddOnFound,
    (manifest, uid): (&Manifest, &str),
    leaving: Leaving,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Option<String>, Failure> {
    let name = manifest.name();
    let is_its = |uid: &str| found.objects.iter().any(|one| one.uid() == uid);
    let foreign = match leaving.purge {
        true => Vec::new(),
        false => {
            foreign_of_addon(&contents::of(hub, name).await?, |metadata| metadata.uid.as_deref().is_some_and(is_its))
        }
    };
    if !foreign.is_empty() {
        let why = format!("it also holds {}", some(&foreign));
        each(&row(manifest.clone(), Outcome::Kept(why.clone())));
        return Ok(Some(why));
    }
    each(&remove::known(hub, manifest, uid, Dependents::Usual, leaving.dry_run).await?);
    if leaving.dry_run == DryRun::No {
        let doing = format!("waiting until namespace {name:?} is gone");
        namespace_gone(hub, name, &doing, Instant::now() + leaving.timeout, narrator)
            .await
            .map_err(|failure| failure.hint(Remedy::RunAgain))?;
    }
    Ok(None)
}
