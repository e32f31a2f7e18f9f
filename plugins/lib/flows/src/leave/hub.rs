//! The hub's side: what it holds of a cluster, and how that goes.

use std::time::Instant;

use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, DynamicObject, ListParams, WatchParams};
use kube::{Api, Resource};
use ocm_api::names::{hub as names, labels};
use ocm_api::parts::Lease;
use ocm_api::{ManagedCluster, ManagedClusterAddOn, Manifest, ManifestWork};
use ocm_core::agent_lease::last_renewal;
use ocm_core::join::lease;
use ocm_core::leave::hub::{Agent, Kind, Remaining, hold_up, may_leave, next};
use ocm_core::leave::{klusterlet, row, space};
use ocm_core::{Applied, DryRun, Event, Failure, Narrator, Outcome, Reason, Remedy};
use ocm_kube::access::{self, Right};
use ocm_kube::remove::{self, Dependents};
use ocm_kube::triggers::{Triggers, named};
use ocm_kube::wait::{Check, until_triggered};
use ocm_kube::{Cluster, contents};
use serde_json::Value;

use super::leaving::{Leaving, noted};
use super::namespace::{PAUSE, namespace_gone};
use crate::observe::registration;
use crate::registry::pages_of_metadata;
use crate::served::or_nothing;

/// How many objects are deleted at once.
const AT_ONCE: usize = 8;
/// How long a hub may take after what an agent would have to clean up was forced.
const AFTER_FORCE: std::time::Duration = std::time::Duration::from_secs(60);

/// What a hub holds of one cluster.
#[derive(Clone, Debug)]
pub struct Held {
    /// Name of the cluster.
    pub name: String,
    /// The ManagedCluster.
    pub cluster: Option<ManagedCluster>,
    /// Its add-ons and works.
    pub remaining: Vec<Remaining>,
    /// The requests in its name: their names and UIDs.
    pub requests: Vec<(String, String)>,
    /// The namespace of its name, as far as it is the cluster's.
    pub namespace: Option<ObjectMeta>,
    /// Whether its agent is there.
    pub agent: Agent,
}

/// What became of one cluster on its hub.
#[derive(Clone, Debug, Default)]
pub struct Detached {
    /// Why its namespace is still there, if it is.
    pub kept: Option<String>,
}

impl Held {
    /// Whether the agent of a cluster that nobody has begun to delete is heard of.
    pub(super) fn is_at_work(&self) -> bool {
        let stays = |cluster: &ManagedCluster| cluster.metadata.deletion_timestamp.is_none();
        self.agent == Agent::Heard && self.cluster.as_ref().is_some_and(stays)
    }

    /// Whether there is nothing of it.
    pub fn is_empty(&self) -> bool {
        self.cluster.is_none() && self.remaining.is_empty() && self.requests.is_empty() && self.namespace.is_none()
    }
}

fn meta(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

fn managed_cluster(name: &str) -> Manifest {
    Manifest::with::<ManagedCluster>(&meta(name), Value::Null)
}

fn request(name: &str) -> Manifest {
    Manifest::with::<CertificateSigningRequest>(&meta(name), Value::Null)
}

fn of_cluster(name: &str) -> ListParams {
    ListParams::default().labels(&format!("{}={name}", labels::CLUSTER_NAME))
}

/// What is needed to detach these clusters.
///
/// # Errors
/// The rights that are missing.
pub async fn check_rights_to_detach(hub: &Cluster, clusters: &[String], force: bool) -> Result<(), Failure> {
    let mut rights = vec![
        Right::new("list", "certificates.k8s.io", "certificatesigningrequests"),
        Right::new("delete", "certificates.k8s.io", "certificatesigningrequests"),
    ];
    // Each right is asked for one by one: for a fleet, all clusters at once.
    const ONE_BY_ONE: usize = 10;
    let all = [String::new()];
    let clusters = if clusters.len() > ONE_BY_ONE { &all } else { clusters };
    for name in clusters {
        let of = |right: Right| if name.is_empty() { right } else { right.on(name) };
        let within = |right: Right| if name.is_empty() { right } else { right.within(name) };
        let (addons, works) = (
            ("addon.open-cluster-management.io", "managedclusteraddons"),
            ("work.open-cluster-management.io", "manifestworks"),
        );
        for verb in ["get", "delete"] {
            rights.push(of(Right::new(verb, "cluster.open-cluster-management.io", "managedclusters")));
            rights.push(of(Right::new(verb, "", "namespaces")));
            rights.push(within(Right::new(verb, "coordination.k8s.io", "leases").on(names::MANAGED_CLUSTER_LEASE)));
        }
        let patch = force.then_some("patch");
        for verb in ["list", "delete"].into_iter().chain(patch) {
            rights.push(within(Right::new(verb, addons.0, addons.1)));
            rights.push(within(Right::new(verb, works.0, works.1)));
        }
    }
    access::require(hub, "detach clusters", &rights).await
}

/// What there is of a cluster. Nothing is deleted yet.
///
/// # Errors
/// The failure of a request, also of one to a cluster that is no hub.
pub async fn inspect(hub: &Cluster, name: &str) -> Result<Held, Failure> {
    let spaces: Api<Namespace> = Api::all(hub.client.clone());
    let (cluster, remaining, requests, namespace, agent, now) = futures::join!(
        registration::cluster(hub, name),
        remaining(hub, name),
        requests(hub, name),
        spaces.get_metadata_opt(name),
        last_heard(hub, name),
        // The hub's clock: a wrong one here would have a living agent taken for a dead one.
        access::clock(hub),
    );
    let namespace = namespace.map_err(|error| hub.explain(format_args!("read namespace {name:?}"), error))?;
    let namespace = namespace.map(|found| found.metadata);
    let cluster = cluster?;
    // A namespace of that name that has nothing to do with a managed cluster is none of ours.
    let is_its = |namespace: &ObjectMeta| {
        namespace.labels.as_ref().is_some_and(|all| all.get(labels::CLUSTER_NAME).is_some_and(|of| of == name))
    };
    Ok(Held {
        name: name.to_owned(),
        agent: Agent::of(cluster.as_ref(), agent?, now?),
        namespace: namespace.filter(|namespace| is_its(namespace)),
        remaining: remaining?,
        requests: requests?,
        cluster,
    })
}

/// When the agent of a cluster has renewed its lease last, by the hub's clock where the lease tells: clocks differ.
pub(crate) async fn last_heard(hub: &Cluster, name: &str) -> Result<Option<Timestamp>, Failure> {
    let leases: Api<Lease> = Api::namespaced(hub.client.clone(), name);
    let found = leases.get_opt(names::MANAGED_CLUSTER_LEASE).await;
    let found = found.map_err(|error| hub.explain("read the lease of the agent", error))?;
    Ok(found.as_ref().and_then(last_renewal))
}

async fn remaining(hub: &Cluster, name: &str) -> Result<Vec<Remaining>, Failure> {
    let (addons, works) = futures::join!(
        metadata::<ManagedClusterAddOn>(hub, Some(name), ListParams::default(), "list add-ons"),
        metadata::<ManifestWork>(hub, Some(name), ListParams::default(), "list works"),
    );
    let of = |kind: Kind, all: Vec<ObjectMeta>| all.into_iter().map(move |metadata| Remaining::of(kind, &metadata));
    Ok(of(Kind::AddOn, or_nothing(addons)?).chain(of(Kind::Work, or_nothing(works)?)).collect())
}

async fn requests(hub: &Cluster, name: &str) -> Result<Vec<(String, String)>, Failure> {
    let what = "list certificate signing requests";
    let all = metadata::<CertificateSigningRequest>(hub, None, of_cluster(name), what).await?;
    Ok(all.into_iter().filter_map(|metadata| Some((metadata.name?, metadata.uid?))).collect())
}

/// The metadata of the objects of a kind, in a namespace or in all. One function reads it, whatever the kind: each that knew its
/// kind would be compiled by itself.
pub(crate) fn metadata<'a, K: Resource<DynamicType = ()>>(
    hub: &'a Cluster,
    namespace: Option<&str>,
    params: ListParams,
    what: &'a str,
) -> impl Future<Output = Result<Vec<ObjectMeta>, Failure>> + use<'a, K> {
    untyped(hub, erased(hub, namespace, &ApiResource::erase::<K>(&())), params, what)
}

/// The objects of a kind, in a namespace or in all.
fn erased(hub: &Cluster, namespace: Option<&str>, kind: &ApiResource) -> Api<DynamicObject> {
    match namespace {
        Some(namespace) => Api::namespaced_with(hub.client.clone(), namespace, kind),
        None => Api::all_with(hub.client.clone(), kind),
    }
}

async fn untyped(
    hub: &Cluster,
    api: Api<DynamicObject>,
    params: ListParams,
    what: &str,
) -> Result<Vec<ObjectMeta>, Failure> {
    pages_of_metadata(hub, &api, params, what, |item| Some(item.metadata)).await
}

/// Refuses what must not be begun, and tells what will be forced.
///
/// # Errors
/// A refusal, if the agent is not there to clean up and nobody said that this is to be forced.
pub fn refuse(held: &Held, force: bool, narrator: &dyn Narrator) -> Result<(), Failure> {
    let Held { name, remaining, agent, .. } = held;
    for finalizers in may_leave(name, remaining, *agent, force, Timestamp::now())? {
        narrator.tell(Event::warning(format!(
            "cluster {name:?}: finalizers are taken off {finalizers}; what was applied stays on the cluster"
        )));
    }
    Ok(())
}

/// Takes away everything that a hub holds of a cluster: the ManagedCluster, which waits for add-ons and works, and then what
/// they leave. `each` hears of every object.
///
/// # Errors
/// [`Reason::TimedOut`] with what holds it up; the failure of a request.
pub async fn detach(
    hub: &Cluster,
    held: &Held,
    leaving: Leaving,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Detached, Failure> {
    let each = &noted(leaving, narrator, each);
    drain(hub, held, leaving, narrator, each).await?;
    residue(hub, held, leaving, narrator, each).await
}

/// What has to be done next.
enum Next {
    /// Nothing: it is gone.
    Nothing,
    /// These have to be deleted: the hub does not do it.
    Delete(Vec<Remaining>),
    /// These have to be let go.
    Release(Vec<Remaining>),
}

/// Deletes the ManagedCluster, and waits until it, its add-ons and its works are gone.
pub(super) async fn drain(
    hub: &Cluster,
    held: &Held,
    leaving: Leaving,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    let Held { name, cluster, remaining, .. } = held;
    if let Some(cluster) = cluster.as_ref().filter(|cluster| cluster.metadata.deletion_timestamp.is_none()) {
        narrator.tell(Event::now(format!("{} cluster {name:?} on the hub", leaving.verb())));
        let uid = cluster.metadata.uid.as_deref().unwrap_or_default();
        let deleted = remove::known(hub, &managed_cluster(name), uid, Dependents::Usual, leaving.dry_run).await?;
        if let Outcome::Kept(_) = deleted.outcome {
            return Err(made_anew(name));
        }
        leaving.goes(managed_cluster(name).reference(), narrator);
    }
    if leaving.dry_run == DryRun::No {
        until_gone(hub, held, leaving, narrator).await?;
    }
    for one in remaining {
        each(&row(one.manifest(), Outcome::Deleted));
    }
    if let Some(cluster) = cluster {
        if cluster.metadata.deletion_timestamp.is_some() {
            // Somebody else has begun to delete it.
            leaving.goes(managed_cluster(name).reference(), narrator);
        }
        each(&row(managed_cluster(name), Outcome::Deleted));
    }
    Ok(())
}

fn made_anew(name: &str) -> Failure {
    Failure::new(Reason::Conflict, format!("cluster {name:?} has registered again while it was being deleted"))
        .hint(Remedy::Unjoin(name.to_owned()))
}

async fn until_gone(hub: &Cluster, held: &Held, leaving: Leaving, narrator: &dyn Narrator) -> Result<(), Failure> {
    let mut deadline = Instant::now() + leaving.timeout;
    // An agent that is there gets the time that was given.
    let mut forced = leaving.force && held.agent != Agent::Heard;
    loop {
        match step(hub, held, forced, deadline, narrator).await {
            Ok(Next::Nothing) => return Ok(()),
            Ok(Next::Delete(all)) => {
                in_time(deadline, &held.name)?;
                for one in all {
                    remove::known(hub, &one.manifest(), &one.uid, Dependents::Usual, DryRun::No).await?;
                }
                tokio::time::sleep(PAUSE).await;
            }
            Ok(Next::Release(all)) => {
                in_time(deadline, &held.name)?;
                for one in all {
                    let finalizers: Vec<&str> = one.agents().collect();
                    if remove::release(hub, &one.manifest(), &one.version, &one.others()).await? {
                        let told =
                            format!("took {} off {} of cluster {:?}", finalizers.join(", "), one.told(), held.name);
                        narrator.tell(Event::note(told.clone()));
                        narrator.tell(Event::done(told));
                    }
                }
            }
            Err(failure) if failure.reason == Reason::TimedOut && leaving.force && !forced => {
                (forced, deadline) = (true, Instant::now() + AFTER_FORCE);
                narrator.tell(Event::warning(format!("{failure}; going on without the agent")));
            }
            Err(failure) if failure.reason == Reason::TimedOut => return Err(failure.hint(Remedy::RunAgain)),
            Err(failure) => return Err(failure),
        }
    }
}

/// Whoever makes works anew as quickly as they are deleted would be followed for ever.
fn in_time(deadline: Instant, name: &str) -> Result<(), Failure> {
    if Instant::now() < deadline {
        return Ok(());
    }
    let sentence = format!("gave up deleting what cluster {name:?} has left on the hub");
    Err(Failure::new(Reason::TimedOut, sentence).because("somebody creates it again").hint(Remedy::RunAgain))
}

async fn step(
    hub: &Cluster,
    held: &Held,
    forced: bool,
    deadline: Instant,
    narrator: &dyn Narrator,
) -> Result<Next, Failure> {
    let name = held.name.as_str();
    let uid = held.cluster.as_ref().and_then(|cluster| cluster.metadata.uid.clone());
    let triggers = Triggers::default()
        .of(erased(hub, None, &ApiResource::erase::<ManagedCluster>(&())), named(name))
        .of(erased(hub, Some(name), &ApiResource::erase::<ManifestWork>(&())), WatchParams::default())
        .of(erased(hub, Some(name), &ApiResource::erase::<ManagedClusterAddOn>(&())), WatchParams::default());
    let doing = format!("waiting until cluster {name:?} is gone from the hub");
    until_triggered(&doing, deadline, PAUSE, triggers, narrator, async || {
        let (cluster, remaining, heard, now) = futures::join!(
            registration::cluster(hub, name),
            remaining(hub, name),
            last_heard(hub, name),
            access::clock(hub),
        );
        let (cluster, remaining) = (cluster?, remaining?);
        if cluster.as_ref().is_some_and(|cluster| cluster.metadata.uid != uid) {
            return Err(made_anew(name));
        }
        if cluster.is_none() {
            if remaining.is_empty() {
                return Ok(Check::Ready(Next::Nothing));
            }
            let due: Vec<Remaining> = next(&remaining).into_iter().filter(|one| !one.leaving).cloned().collect();
            if !due.is_empty() {
                return Ok(Check::Ready(Next::Delete(due)));
            }
        }
        if forced {
            let held_up = |one: &&Remaining| one.leaving && one.agents().next().is_some();
            let due: Vec<Remaining> = remaining.iter().filter(held_up).cloned().collect();
            if !due.is_empty() {
                return Ok(Check::Ready(Next::Release(due)));
            }
        }
        // Who has let its cluster go is known by the one that was there before.
        let now = now?;
        let agent = Agent::of(cluster.as_ref().or(held.cluster.as_ref()), heard?, now);
        Ok(Check::NotYet(hold_up(&remaining, agent, now)))
    })
    .await
}

/// Deletes what a cluster that is gone leaves on its hub: the requests in its name, its lease, and its namespace, if the hub
/// made it and nothing of anybody else's is in it.
pub(super) async fn residue(
    hub: &Cluster,
    held: &Held,
    leaving: Leaving,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Detached, Failure> {
    let name = held.name.as_str();
    still_gone(hub, name, leaving).await?;
    let asked = requests(hub, name).await?;
    if !asked.is_empty() {
        narrator.tell(Event::now(format!(
            "{} {} certificate requests of cluster {name:?}",
            leaving.verb(),
            asked.len()
        )));
    }
    let deleted = futures::stream::iter(asked)
        .map(async |(one, uid)| remove::known(hub, &request(&one), &uid, Dependents::Usual, leaving.dry_run).await)
        .buffered(AT_ONCE);
    deleted
        .try_for_each(async |applied| {
            each(&applied);
            Ok(())
        })
        .await?;
    let Some(namespace) = &held.namespace else { return Ok(Detached::default()) };
    narrator.tell(Event::now(format!("looking at namespace {name:?} on the hub")));
    let kept = if leaving.purge { None } else { why_kept(hub, namespace, held, leaving.dry_run).await? };
    let manifest = klusterlet::namespace(name);
    if let Some(why) = kept {
        drop_lease(hub, name, leaving.dry_run, each).await?;
        each(&row(manifest, Outcome::Kept(why.clone())));
        return Ok(Detached { kept: Some(why) });
    }
    still_gone(hub, name, leaving).await?;
    let uid = namespace.uid.as_deref().unwrap_or_default();
    let deleted = remove::known(hub, &manifest, uid, Dependents::Usual, leaving.dry_run).await?;
    if leaving.dry_run == DryRun::No {
        let doing = format!("waiting until namespace {name:?} is gone from the hub");
        namespace_gone(hub, name, &doing, Instant::now() + leaving.timeout, narrator).await?;
    }
    each(&deleted);
    Ok(Detached::default())
}

/// What carries the name of a cluster that has registered anew is its own.
async fn still_gone(hub: &Cluster, name: &str, leaving: Leaving) -> Result<(), Failure> {
    if leaving.dry_run == DryRun::No && registration::cluster(hub, name).await?.is_some() {
        return Err(made_anew(name));
    }
    Ok(())
}

/// Why the namespace of a cluster stays; none if it may go.
async fn why_kept(
    hub: &Cluster,
    namespace: &ObjectMeta,
    held: &Held,
    dry_run: DryRun,
) -> Result<Option<String>, Failure> {
    let name = held.name.as_str();
    if !space::is_made_by_hub(namespace, name) {
        return Ok(Some("it was there before the cluster".to_owned()));
    }
    let mut found = match contents::of(hub, name).await {
        Ok(found) => found,
        Err(failure) if failure.reason.is_transient() => return Err(failure),
        Err(failure) => return Ok(Some(format!("what else is in it cannot be seen: {failure}"))),
    };
    // In a dry run they are still there.
    if dry_run != DryRun::No {
        found.retain(|content| !matches!(content.kind.as_str(), "ManifestWork" | "ManagedClusterAddOn"));
    }
    let foreign = space::foreign_of_cluster(&found, name);
    Ok((!foreign.is_empty()).then(|| format!("it also holds {}", ocm_core::leave::some(&foreign))))
}

async fn drop_lease(hub: &Cluster, name: &str, dry_run: DryRun, each: &dyn Fn(&Applied)) -> Result<(), Failure> {
    let leases: Api<Lease> = Api::namespaced(hub.client.clone(), name);
    let found = leases.get_metadata_opt(names::MANAGED_CLUSTER_LEASE).await;
    let found = found.map_err(|error| hub.explain("read the lease of the agent", error))?;
    if let Some(uid) = found.and_then(|found| found.metadata.uid) {
        let manifest = lease::manifest(name, names::MANAGED_CLUSTER_LEASE);
        each(&remove::known(hub, &manifest, &uid, Dependents::Usual, dry_run).await?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan as _;
    use serde_json::json;

    use super::*;
    use crate::accept::test_hub::hub;

    #[tokio::test]
    async fn an_agent_is_judged_by_the_hubs_clock() {
        let now = Timestamp::now();
        let long_ago = now - 10.minutes();
        for (renewed, written, is_heard) in [(long_ago, now, true), (now, long_ago, false)] {
            let (hub, _) = hub(move |asked| match asked.line.split_once(' ') {
                Some(("GET", path)) if path.contains("/leases/") => (200, lease(renewed, written)),
                Some(("GET", path)) if path.contains("/managedclusters/") => (200, joined()),
                Some(("GET", path)) if path.contains("/namespaces/c1?") || path.ends_with("/namespaces/c1") => (
                    404,
                    json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": "no"}),
                ),
                Some(("POST", _)) => (201, json!({"metadata": {"creationTimestamp": now.to_string()}})),
                _ => (200, json!({"metadata": {}, "items": []})),
            });
            let held = inspect(&hub, "c1").await.unwrap();
            assert_eq!(held.agent == Agent::Heard, is_heard, "{:?}", held.agent);
        }
    }

    fn joined() -> Value {
        json!({"metadata": {"name": "c1"}, "status": {"conditions": [{"type": "ManagedClusterJoined", "status": "True",
            "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
    }

    fn lease(renewed: Timestamp, written: Timestamp) -> Value {
        json!({"metadata": {"name": names::MANAGED_CLUSTER_LEASE, "managedFields": [
                {"time": written, "fieldsV1": {"f:spec": {"f:renewTime": {}}}}]},
            "spec": {"renewTime": renewed}})
    }
}
