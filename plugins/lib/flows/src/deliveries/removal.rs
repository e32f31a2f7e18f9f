//! Deleting works and add-ons of clusters: what waits for their agents, and what is made anew by somebody else.

use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use ocm_api::names::hub as names;
use ocm_api::work::DeletePropagationPolicy;
use ocm_api::{ManagedCluster, ManagedClusterAddOn, Manifest, ManifestWork};
use ocm_core::leave::hub::{Agent, Kind, Remaining, hold_up, may_leave};
use ocm_core::leave::row;
use ocm_core::work::keeper;
use ocm_core::{Applied, DryRun, Event, Failure, Narrator, Outcome, Reason, Remedy};
use ocm_kube::access::{self, Right};
use ocm_kube::remove::{self, Dependents};
use ocm_kube::triggers::{Triggers, named};
use ocm_kube::wait::{Check, until_triggered};
use ocm_kube::{Cluster, apply};
use serde_json::Value;

use crate::leave::last_heard;
use crate::observe::registration;

/// Time between two looks where no watch tells of changes.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a hub may take after what an agent would have to clean up was forced.
const AFTER_FORCE: Duration = Duration::from_secs(60);
/// Each right is asked for one by one: for a fleet, all clusters at once.
const ONE_BY_ONE: usize = 10;

/// What goes of one cluster.
#[derive(Clone, Debug)]
pub struct ToDelete {
    /// The cluster.
    pub cluster: String,
    /// What there is of what was named.
    pub remaining: Vec<Remaining>,
    /// Names of those whose objects stay on the cluster.
    pub orphaning: Vec<String>,
    /// Those that something on the hub would make anew, and what that is.
    pub made_by: Vec<(String, String)>,
    /// The managed cluster, for what is known of its agent.
    managed: Option<ManagedCluster>,
    agent: Agent,
}

impl ToDelete {
    /// The cluster, and the names of those that are there; none if nothing is.
    pub fn there(&self) -> Option<(&str, Vec<String>)> {
        let names: Vec<String> = self.remaining.iter().map(|one| one.name.clone()).collect();
        (!names.is_empty()).then_some((self.cluster.as_str(), names))
    }

    /// Those of these names that are not there.
    pub fn missing(&self, names: &[String]) -> Vec<String> {
        let is_missing = |name: &&String| !self.remaining.iter().any(|one| one.name == **name);
        names.iter().filter(is_missing).cloned().collect()
    }
}

/// How they are deleted.
#[derive(Clone, Copy, Debug)]
pub struct Removing {
    /// Whether finalizers for which an agent is needed that is not there are taken off.
    pub force: bool,
    /// How much of it is only tried.
    pub dry_run: DryRun,
    /// How long each cluster is waited for.
    pub timeout: Duration,
}

fn resource(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::AddOn => ("addon.open-cluster-management.io", "managedclusteraddons"),
        Kind::Work => ("work.open-cluster-management.io", "manifestworks"),
    }
}

fn manifest(kind: Kind, cluster: &str, name: &str) -> Manifest {
    let metadata =
        ObjectMeta { namespace: Some(cluster.to_owned()), name: Some(name.to_owned()), ..ObjectMeta::default() };
    match kind {
        Kind::AddOn => Manifest::with::<ManagedClusterAddOn>(&metadata, Value::Null),
        Kind::Work => Manifest::with::<ManifestWork>(&metadata, Value::Null),
    }
}

/// What is needed to delete these of these clusters.
///
/// # Errors
/// The rights that are missing.
pub async fn check_rights_to_remove(
    hub: &Cluster,
    kind: Kind,
    names: &[String],
    clusters: &[String],
    force: bool,
) -> Result<(), Failure> {
    let (group, plural) = resource(kind);
    let patch = force.then_some("patch");
    let verbs = || ["get", "delete"].into_iter().chain(patch);
    let lease = Right::new("get", "coordination.k8s.io", "leases").on(names::MANAGED_CLUSTER_LEASE);
    let mut rights = vec![Right::new("get", "cluster.open-cluster-management.io", "managedclusters")];
    if names.len() * clusters.len() > ONE_BY_ONE {
        rights.push(lease);
        rights.extend(verbs().map(|verb| Right::new(verb, group, plural)));
    } else {
        for cluster in clusters {
            rights.push(lease.clone().within(cluster));
            for name in names {
                rights.extend(verbs().map(|verb| Right::new(verb, group, plural).within(cluster).on(name)));
            }
        }
    }
    access::require(hub, &format!("delete {plural}"), &rights).await
}

/// What there is of these names, for each cluster. Nothing is deleted yet.
///
/// # Errors
/// The failure of a request, also of one to a cluster that is no hub.
pub async fn inspect(
    hub: &Cluster,
    kind: Kind,
    names: &[String],
    clusters: &[String],
    at_once: usize,
) -> Result<Vec<ToDelete>, Failure> {
    // The hub's clock: a wrong one here would have a living agent taken for a dead one.
    let now = access::clock(hub).await?;
    futures::stream::iter(clusters)
        .map(|cluster| inspect_one(hub, kind, names, cluster, now))
        .buffered(at_once)
        .try_collect()
        .await
}

async fn inspect_one(
    hub: &Cluster,
    kind: Kind,
    names: &[String],
    cluster: &str,
    now: Timestamp,
) -> Result<ToDelete, Failure> {
    let (managed, heard) = futures::join!(registration::cluster(hub, cluster), last_heard(hub, cluster));
    let managed = managed?;
    let mut of_cluster = ToDelete {
        cluster: cluster.to_owned(),
        remaining: Vec::new(),
        orphaning: Vec::new(),
        made_by: Vec::new(),
        agent: Agent::of(managed.as_ref(), heard?, now),
        managed,
    };
    for name in names {
        let Some(live) = apply::read(hub, &manifest(kind, cluster, name)).await? else { continue };
        let policy = live.pointer("/spec/deleteOption/propagationPolicy").and_then(Value::as_str);
        if kind == Kind::Work && policy == Some(DeletePropagationPolicy::Orphan.as_str()) {
            of_cluster.orphaning.push(name.clone());
        }
        let keeper = keeper(&live).filter(|_| kind == Kind::Work);
        of_cluster.made_by.extend(keeper.map(|keeper| (name.clone(), keeper)));
        of_cluster.remaining.push(remaining(kind, &live));
    }
    Ok(of_cluster)
}

fn remaining(kind: Kind, live: &Value) -> Remaining {
    let metadata: ObjectMeta = serde_json::from_value(live["metadata"].clone()).unwrap_or_default();
    Remaining::of(kind, &metadata)
}

/// Refuses what must not be begun, and tells what will be forced.
///
/// # Errors
/// A refusal: something on the hub would make one anew; an agent is not there to clean up, and nobody said that this is to be
/// forced.
pub fn refuse(all: &[ToDelete], force: bool, narrator: &dyn Narrator) -> Result<(), Failure> {
    let made_by =
        || all.iter().flat_map(|of_cluster| of_cluster.made_by.iter().map(move |kept| (&of_cluster.cluster, kept)));
    if let Some((cluster, (name, keeper))) = made_by().next() {
        let sentence = format!(
            "work {name:?} of cluster {cluster:?} belongs to {keeper}, which would create it again: nothing was deleted"
        );
        return Err(Failure::refused(sentence).hint("delete what it belongs to"));
    }
    let now = Timestamp::now();
    let mut refused: Option<Failure> = None;
    for ToDelete { cluster, remaining, agent, .. } in all {
        match may_leave(cluster, remaining, *agent, force, now) {
            Ok(forced) => {
                for finalizers in forced {
                    narrator.tell(Event::warning(format!(
                        "cluster {cluster:?}: finalizers are taken off {finalizers}; what was applied stays on the cluster"
                    )));
                }
            }
            Err(failure) => {
                refused = Some(match refused {
                    None => failure,
                    Some(first) => failure.causes.iter().fold(first.because(&failure.message), Failure::because),
                });
            }
        }
    }
    refused.map_or(Ok(()), Err)
}

/// Deletes what was looked at, and waits until it is gone; `at_once` clusters at a time. What fails for one cluster does not
/// hold up the others. `each` hears of every object that is gone.
pub async fn remove_all(
    hub: &Cluster,
    all: &[ToDelete],
    removing: Removing,
    at_once: usize,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Vec<Result<(), Failure>> {
    let one = |of_cluster| remove_of(hub, of_cluster, removing, narrator, each);
    futures::stream::iter(all).map(one).buffered(at_once).collect().await
}

async fn remove_of(
    hub: &Cluster,
    of_cluster: &ToDelete,
    removing: Removing,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    let verb = if removing.dry_run == DryRun::No { "deleting" } else { "checking" };
    for one in &of_cluster.remaining {
        narrator.tell(Event::now(format!("{verb} {} of cluster {:?}", one.told(), of_cluster.cluster)));
        if one.leaving {
            continue;
        }
        let deleted = remove::known(hub, &one.manifest(), &one.uid, Dependents::Usual, removing.dry_run).await?;
        if let Outcome::Kept(_) = deleted.outcome {
            return Err(made_anew(one, &of_cluster.cluster));
        }
        if removing.dry_run == DryRun::No {
            narrator.tell(Event::done(format!("{} of cluster {:?} deleted", one.told(), of_cluster.cluster)));
        }
    }
    if removing.dry_run == DryRun::No && !of_cluster.remaining.is_empty() {
        until_gone(hub, of_cluster, removing, narrator).await?;
    }
    of_cluster.remaining.iter().for_each(|one| each(&row(one.manifest(), Outcome::Deleted)));
    Ok(())
}

fn made_anew(one: &Remaining, cluster: &str) -> Failure {
    let sentence = format!("{} of cluster {cluster:?} was created again while it was being deleted", one.told());
    Failure::new(Reason::Conflict, sentence).hint(Remedy::RunAgain)
}

async fn until_gone(
    hub: &Cluster,
    of_cluster: &ToDelete,
    removing: Removing,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let ToDelete { cluster, remaining: all, managed, .. } = of_cluster;
    let watch = |triggers: Triggers, one: &Remaining| {
        let name = named(&one.name);
        match one.kind {
            Kind::AddOn => triggers.of(Api::<ManagedClusterAddOn>::namespaced(hub.client.clone(), cluster), name),
            Kind::Work => triggers.of(Api::<ManifestWork>::namespaced(hub.client.clone(), cluster), name),
        }
    };
    let names: Vec<String> = all.iter().map(Remaining::told).collect();
    let doing = format!("waiting until {} of cluster {cluster:?} is gone", ocm_core::leave::some(&names));
    let mut deadline = Instant::now() + removing.timeout;
    // An agent that is there gets the time that was given.
    let mut forced = removing.force && of_cluster.agent != Agent::Heard;
    loop {
        let triggers = all.iter().fold(Triggers::default(), watch);
        let gone = until_triggered(&doing, deadline, PAUSE, triggers, narrator, async || {
            let left = left(hub, all, cluster).await?;
            if left.is_empty() {
                return Ok(Check::Ready(()));
            }
            if forced {
                release(hub, &left, cluster, narrator).await?;
            }
            let (heard, now) = futures::join!(last_heard(hub, cluster), access::clock(hub));
            let now = now?;
            let held_up = hold_up(&left, Agent::of(managed.as_ref(), heard?, now), now);
            let finalizers: Vec<String> = left.iter().flat_map(|one| one.finalizers.clone()).collect();
            Ok(Check::NotYet(format!("{held_up}; finalizers: {}", finalizers.join(", "))))
        })
        .await;
        match gone {
            Err(failure) if failure.reason == Reason::TimedOut && removing.force && !forced => {
                (forced, deadline) = (true, Instant::now() + AFTER_FORCE);
                narrator.tell(Event::warning(format!("{failure}; going on without the agent")));
            }
            Err(failure) if failure.reason == Reason::TimedOut => return Err(failure.hint(Remedy::RunAgain)),
            gone => return gone,
        }
    }
}

/// Those that are still there.
async fn left(hub: &Cluster, all: &[Remaining], cluster: &str) -> Result<Vec<Remaining>, Failure> {
    let mut left = Vec::new();
    for one in all {
        let Some(live) = apply::read(hub, &one.manifest()).await? else { continue };
        let now = remaining(one.kind, &live);
        if now.uid != one.uid {
            return Err(made_anew(one, cluster));
        }
        left.push(now);
    }
    Ok(left)
}

/// Takes off the finalizers for which the agent would be needed.
async fn release(hub: &Cluster, left: &[Remaining], cluster: &str, narrator: &dyn Narrator) -> Result<(), Failure> {
    for one in left.iter().filter(|one| one.leaving) {
        let finalizers: Vec<&str> = one.agents().collect();
        if !finalizers.is_empty() && remove::release(hub, &one.manifest(), &one.version, &one.others()).await? {
            let told = format!("took {} off {} of cluster {cluster:?}", finalizers.join(", "), one.told());
            narrator.tell(Event::note(told.clone()));
            narrator.tell(Event::done(told));
        }
    }
    Ok(())
}
