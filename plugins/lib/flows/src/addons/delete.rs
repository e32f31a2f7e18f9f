//! Deleting add-ons that people have defined on the hub: the definition, our templates, and what clusters have of them.

use std::time::{Duration, Instant};

use ocm_api::{AddOnTemplate, ClusterManagementAddOn, ManagedClusterAddOn, Manifest};
use ocm_core::addon::{Template, placements, templates, why_not_deleted};
use ocm_core::hub_addon::{enabled_on, installed_by};
use ocm_core::leave::hub::Kind;
use ocm_core::leave::row;
use ocm_core::plan::{Applied, Outcome, Plan, Stage};
use ocm_core::{DryRun, Event, Failure, Narrator, Remedy};
use ocm_kube::Cluster;
use ocm_kube::access::{self, Right};
use ocm_kube::wait::{Check, until};
use serde_json::Value;

use super::definitions;
use crate::cluster_sets::{delete_known, named};
use crate::deliveries::{
    self, Removing, ToDelete, Wanted, check_rights_to_remove, deliveries as deliveries_of, remove_all,
};
use crate::gone::until_gone;
use crate::objects::{Sought, objects};
use crate::served::or_nothing;

const GROUP: &str = "addon.open-cluster-management.io";
/// How often it is looked which clusters have an add-on.
const PAUSE: Duration = Duration::from_secs(1);

/// What there is of an add-on.
#[derive(Clone, Debug)]
pub struct AddOnFound {
    /// Its name.
    pub name: String,
    /// UID of its ClusterManagementAddOn; none if there is none.
    definition: Option<String>,
    /// Who has written it, for people, if it was not only us.
    pub written_by: Option<String>,
    /// The placements by which the hub installs it, `NAMESPACE/NAME`.
    pub placements: Vec<String>,
    /// Its templates: those that go, and those that stay.
    pub templates: Vec<Template>,
    /// The clusters that have it.
    pub clusters: Vec<String>,
    /// What goes of them.
    on_clusters: Vec<ToDelete>,
}

impl AddOnFound {
    /// Whether there is anything to delete.
    pub fn is_there(&self) -> bool {
        self.is_defined() || self.ours().next().is_some() || !self.clusters.is_empty()
    }

    /// Whether the hub has a ClusterManagementAddOn of its name.
    pub fn is_defined(&self) -> bool {
        self.definition.is_some()
    }

    /// Its templates that go.
    pub fn ours(&self) -> impl Iterator<Item = &Template> {
        self.templates.iter().filter(|template| template.kept.is_none())
    }

    fn manifest(&self) -> Manifest {
        Manifest::with::<ClusterManagementAddOn>(&named(None, &self.name), Value::Null)
    }
}

fn template(name: &str) -> Manifest {
    Manifest::with::<AddOnTemplate>(&named(None, name), Value::Null)
}

/// What there is of these add-ons. Nothing is deleted yet.
///
/// # Errors
/// A cluster that is no hub; a refusal, if clusters have one of them and nobody said that it goes all the same, or something
/// would make one anew; the rights that are missing; the failure of a request.
pub async fn find(
    hub: &Cluster,
    names: &[String],
    removing: Removing,
    at_once: usize,
    narrator: &dyn Narrator,
) -> Result<Vec<AddOnFound>, Failure> {
    narrator.tell(Event::now(format!("looking at add-ons ({})", hub.label())));
    let sought = Sought {
        api_version: format!("{GROUP}/v1alpha1"),
        resource: "addontemplates".to_owned(),
        namespace: None,
        name: None,
    };
    let (defined, listed, addons) = futures::join!(definitions(hub, names), objects(hub, &sought), on_clusters(hub));
    let (defined, listed, addons) = (defined?, or_nothing(listed)?, addons?);
    let mut all = Vec::new();
    for (name, definition) in defined {
        let clusters = enabled_on(&addons, std::slice::from_ref(&name)).remove(&name).unwrap_or_default();
        all.push(AddOnFound {
            definition: definition.as_ref().and_then(|live| live["metadata"]["uid"].as_str()).map(str::to_owned),
            written_by: definition.as_ref().and_then(written_by),
            placements: definition.as_ref().map(placements).unwrap_or_default(),
            templates: templates(&name, &listed),
            clusters,
            on_clusters: Vec::new(),
            name: name.clone(),
        });
        if let Some(failure) = definition.as_ref().and_then(|definition| why_not_deleted(&name, definition)) {
            return Err(failure);
        }
    }
    // Nothing is touched if one of them must not go.
    let mut refused = all.iter().filter_map(|one| refuse(one, removing.force).err());
    if let Some(first) = refused.next() {
        return Err(refused.fold(first, |first, other| first.because(other)));
    }
    for one in all.iter_mut().filter(|one| !one.clusters.is_empty()) {
        let names = [one.name.clone()];
        one.on_clusters = deliveries::inspect(hub, Kind::AddOn, &names, &one.clusters, at_once).await?;
        let (name, clusters) = (&one.name, one.clusters.join(", "));
        narrator.tell(Event::warning(format!("add-on {name:?} goes from the clusters that have it: {clusters}")));
        deliveries::refuse(&one.on_clusters, removing.force, narrator)?;
    }
    if removing.dry_run == DryRun::No {
        narrator.tell(Event::now("checking your rights"));
        check_rights(hub, &all, removing.force).await?;
    }
    Ok(all)
}

/// The add-ons of all clusters.
async fn on_clusters(hub: &Cluster) -> Result<Vec<ManagedClusterAddOn>, Failure> {
    let rows = deliveries_of::<ManagedClusterAddOn>(hub, &Wanted::default()).await?;
    Ok(rows.into_iter().map(|row| row.object).collect())
}

/// Who has written a definition, unless it was us alone.
fn written_by(definition: &Value) -> Option<String> {
    installed_by(definition).filter(|managers| managers != ocm_core::reconcile::FIELD_MANAGER)
}

/// Refuses to delete what clusters have.
fn refuse(found: &AddOnFound, force: bool) -> Result<(), Failure> {
    let AddOnFound { name, clusters, placements, .. } = found;
    if force || clusters.is_empty() {
        return Ok(());
    }
    let sentence = match clusters.as_slice() {
        [only] => format!("cluster {only:?} has add-on {name:?}: nothing was deleted"),
        several => {
            format!("{} clusters have add-on {name:?}: {}: nothing was deleted", several.len(), several.join(", "))
        }
    };
    let failure = Failure::refused(sentence);
    let failure = match placements.as_slice() {
        [] => failure.hint(Remedy::DisableAddOn { name: name.clone(), clusters: clusters.join(",") }),
        some => failure.because(format!(
            "the hub installs it by placements ({}): where it is disabled, it comes back as long as these select the cluster",
            some.join(", ")
        )),
    };
    Err(failure.hint(Remedy::WithClusters))
}

async fn check_rights(hub: &Cluster, all: &[AddOnFound], force: bool) -> Result<(), Failure> {
    let defined = all.iter().filter(|one| one.is_defined()).map(AddOnFound::manifest);
    let templates = all.iter().flat_map(AddOnFound::ours).map(|one| template(&one.name));
    let plan = Plan::new([Stage::new("what goes", defined.chain(templates).collect())]);
    let rights: Vec<Right> = access::to_remove(&plan);
    access::require(hub, "delete add-ons", &rights).await?;
    for one in all.iter().filter(|one| !one.clusters.is_empty()) {
        let names = [one.name.clone()];
        check_rights_to_remove(hub, Kind::AddOn, &names, &one.clusters, force).await?;
    }
    Ok(())
}

/// Deletes an add-on that was looked at, each object by the UID that was read, and waits until it is gone. `each` hears of
/// every object.
///
/// # Errors
/// A refusal, if a cluster has got it meanwhile; [`ocm_core::Reason::TimedOut`] with what is still there; the failure of a
/// request. What was deleted before it is gone.
pub async fn delete(
    hub: &Cluster,
    found: &AddOnFound,
    removing: Removing,
    at_once: usize,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    if removing.dry_run == DryRun::No && !removing.force && found.is_there() {
        let clusters = clusters_with(hub, &found.name).await?;
        refuse(&AddOnFound { clusters, ..found.clone() }, false)?;
    }
    // As long as it is defined, the hub adds it again where its placements select a cluster. Of one that people enable it goes
    // from the clusters first: what looks after it there may need the definition.
    if found.placements.is_empty() {
        from_clusters(hub, found, removing, at_once, narrator, each).await?;
        definition(hub, found, removing, narrator, each).await?;
    } else {
        definition(hub, found, removing, narrator, each).await?;
        from_clusters(hub, found, removing, at_once, narrator, each).await?;
    }
    if removing.dry_run == DryRun::No && found.ours().next().is_some() {
        until_nowhere(hub, &found.name, removing.timeout, narrator).await?;
    }
    let ours: Vec<(Manifest, &str)> = found.ours().map(|one| (template(&one.name), one.uid.as_str())).collect();
    for one in &found.templates {
        match &one.kept {
            Some(whose) => each(&row(template(&one.name), Outcome::Kept(format!("it {whose}")))),
            None => delete_known(hub, &template(&one.name), &one.uid, removing.dry_run, narrator, each).await?,
        }
    }
    match removing.dry_run {
        DryRun::No if !ours.is_empty() => until_gone(hub, &ours, "templates", removing.timeout, narrator).await,
        _ => Ok(()),
    }
}

/// The clusters that have an add-on.
async fn clusters_with(hub: &Cluster, name: &str) -> Result<Vec<String>, Failure> {
    let name = name.to_owned();
    Ok(enabled_on(&on_clusters(hub).await?, std::slice::from_ref(&name)).remove(&name).unwrap_or_default())
}

/// Waits until no cluster has an add-on, also none that got it after it was looked: agents need the templates to clean up.
async fn until_nowhere(hub: &Cluster, name: &str, timeout: Duration, narrator: &dyn Narrator) -> Result<(), Failure> {
    let doing = format!("waiting until no cluster has add-on {name:?}, which needs its templates to go");
    until(&doing, Instant::now() + timeout, PAUSE, narrator, async || {
        let clusters = clusters_with(hub, name).await?;
        Ok(match clusters.is_empty() {
            true => Check::Ready(()),
            false => Check::Unwatched(format!("these have it still: {}", clusters.join(", "))),
        })
    })
    .await
    .map_err(|failure| failure.hint(Remedy::RunAgain))
}

async fn definition(
    hub: &Cluster,
    found: &AddOnFound,
    removing: Removing,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    let manifest = found.manifest();
    let Some(uid) = &found.definition else {
        each(&row(manifest, Outcome::Absent));
        return Ok(());
    };
    delete_known(hub, &manifest, uid, removing.dry_run, narrator, each).await?;
    match removing.dry_run {
        DryRun::No => until_gone(hub, &[(manifest, uid.as_str())], "definitions", removing.timeout, narrator).await,
        DryRun::Client | DryRun::Server => Ok(()),
    }
}

async fn from_clusters(
    hub: &Cluster,
    found: &AddOnFound,
    removing: Removing,
    at_once: usize,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    let all = &found.on_clusters;
    let answers = remove_all(hub, all, removing, at_once, narrator, each).await;
    let of = |(of_cluster, answer): (&ToDelete, Result<(), Failure>)| Some((of_cluster.cluster.clone(), answer.err()?));
    let failed: Vec<(String, Failure)> = all.iter().zip(answers).filter_map(of).collect();
    let sentence =
        |failed: usize| format!("add-on {:?} is not gone from {failed} of {} clusters", found.name, all.len());
    Failure::of_several(all.len(), failed, sentence).map_or(Ok(()), Err)
}
