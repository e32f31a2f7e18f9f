//! The managed cluster's side: its Klusterlet goes, what the agent has put there, and the operator if nobody needs it; with
//! access to the hub, all that this holds of the cluster first, while the agent is there to clean up.

use std::sync::Arc;
use std::time::Instant;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use ocm_api::names::{annotations, finalizers, namespaces, operators};
use ocm_api::work::AppliedManifestResourceMeta;
use ocm_api::{AppliedManifestWork, Klusterlet, Manifest};
use ocm_core::kubeconfig::{HubAddress, Likeness};
use ocm_core::leave::hub::Agent;
use ocm_core::leave::klusterlet::{self as rules, Known};
use ocm_core::leave::space::Operator;
use ocm_core::leave::{row, some};
use ocm_core::{Applied, DryRun, Event, Failure, Narrator, Outcome, Plan, Reason, Remedy, Stage};
use ocm_kube::access::{self, Right};
use ocm_kube::remove::{self, Dependents};
use ocm_kube::triggers::{Triggers, named};
use ocm_kube::wait::{Check, until, until_triggered};
use ocm_kube::{Cluster, apply};

use super::guest;
use super::hub::{self, Detached, Held};
use super::operator::{any, delete, objects_of, operators_namespace, pods_gone, trouble};
use super::{Leaving, PAUSE, namespace_gone, noted};
use crate::observe::managed as observe;
use crate::{hub as address, workload};

/// What becomes of the objects that works have put on the cluster, where the hub does not have them removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Works {
    /// They are deleted.
    Delete,
    /// They stay, and nothing says any more where they come from.
    Keep,
}

/// What is wanted.
#[derive(Clone, Debug)]
pub struct UnjoinRequest {
    /// Name of the cluster on its hub; none: the only one that there is.
    pub cluster: Option<String>,
    /// Name of the Klusterlet, where several are of clusters of that name.
    pub klusterlet: Option<String>,
    /// What becomes of what works have put there, where the hub is not asked.
    pub works: Option<Works>,
    /// Whether the operator stays although no Klusterlet is left.
    pub keep_operator: bool,
    /// How it leaves.
    pub leaving: Leaving,
}

/// What was found.
#[derive(Clone)]
pub struct Seen {
    /// The Klusterlet that goes, if there is one.
    pub known: Option<Known>,
    /// How many others there are.
    pub others: usize,
    /// The records of works of its agent.
    pub applied: Vec<AppliedManifestWork>,
    /// The managed cluster, where it is another one and can be reached.
    guest: Option<Cluster>,
    /// The UID of the operator's Deployment.
    operator: Option<String>,
    /// Whether something else of the operator is there: a run that was killed leaves it.
    residue: bool,
    /// Whether the operator of a hub is on the same cluster.
    pub beside_hub: bool,
    /// Where the hub of its agent is, as far as that can be read.
    pub address: Option<HubAddress>,
    /// What its hub holds of the cluster, with access to it.
    pub held: Option<Held>,
}

/// What is left of the operator, or was.
#[derive(Clone, Debug, Default)]
pub struct Departure {
    /// Why the operators' namespace is still there, if it is and the operator is not.
    pub namespace_kept: Option<String>,
    /// Definitions that stay, because there are objects of their kind.
    pub definitions_kept: Vec<String>,
}

/// What an unjoin came to.
#[derive(Clone, Debug, Default)]
pub struct Unjoined {
    /// What became of it on the hub, if the hub was asked.
    pub hub: Option<Detached>,
    /// What became of the operator; none if it stays.
    pub operator: Option<Departure>,
    /// How many records of works were deleted, and what became of their objects.
    pub works: Option<(usize, Works)>,
    /// Definitions that stay on the managed cluster of a hosted Klusterlet.
    pub guest: Vec<String>,
}

impl Seen {
    /// Name of the cluster on its hub.
    pub fn cluster(&self) -> Option<&str> {
        self.known.as_ref().and_then(|known| known.cluster.as_deref())
    }

    /// Whether the operator goes, too.
    pub fn operator_goes(&self, request: &UnjoinRequest) -> bool {
        self.others == 0 && !request.keep_operator
    }

    /// Whether there is nothing at all.
    pub fn is_empty(&self) -> bool {
        self.known.is_none()
            && self.operator.is_none()
            && !self.residue
            && self.held.as_ref().is_none_or(Held::is_empty)
    }
}

/// The rights on the managed cluster.
async fn check_rights(managed: &Cluster, known: Option<&Known>, request: &UnjoinRequest) -> Result<(), Failure> {
    let (group, works) = ("operator.open-cluster-management.io", "work.open-cluster-management.io");
    let mut rights = vec![
        Right::new("list", group, "klusterlets"),
        Right::new("delete", group, "klusterlets"),
        Right::new("list", works, "appliedmanifestworks"),
        Right::new("delete", works, "appliedmanifestworks"),
        Right::new("get", "", "namespaces"),
        Right::new("delete", "", "namespaces"),
        Right::new("list", "", "pods").within(namespaces::OPERATOR),
        Right::new("list", "rbac.authorization.k8s.io", "clusterroles"),
    ];
    if request.leaving.force {
        rights.push(Right::new("patch", group, "klusterlets"));
        rights.push(Right::new("patch", works, "appliedmanifestworks"));
        let agents = known.map(|known| rules::rights_of_agents(known.name())).unwrap_or_default();
        rights.extend(access::to_remove(&Plan::new([Stage::new("the agents", agents)])));
    }
    if !request.keep_operator {
        let mut all = rules::of_operator(false);
        all.push(rules::operator());
        all.extend(rules::definitions().into_iter().map(|(manifest, ..)| manifest));
        rights.extend(access::to_remove(&Plan::new([Stage::new("the operator", all)])));
    }
    access::require(managed, "unjoin the cluster", &rights).await
}

/// Finds out what there is. Nothing is deleted yet.
///
/// # Errors
/// When it cannot be told which Klusterlet is meant, its hub is another one, or it must not go yet; the failure of a request.
pub async fn see(
    managed: &Cluster,
    hub: Option<&Cluster>,
    request: &UnjoinRequest,
    narrator: Arc<dyn Narrator>,
) -> Result<Seen, Failure> {
    narrator.tell(Event::now(format!("looking at {}", managed.label())));
    let mut all = Vec::new();
    for klusterlet in observe::klusterlets(managed).await? {
        let mut known = Known { klusterlet, cluster: None };
        let named = known.klusterlet.spec.cluster_name.clone().filter(|name| !name.is_empty());
        known.cluster = match named {
            Some(named) => Some(named),
            None => observe::identity(managed, known.agents()).await?.cluster,
        };
        all.push(known);
    }
    let label = managed.label();
    let known = rules::choose(&all, request.cluster.as_deref(), request.klusterlet.as_deref(), &label)?.cloned();
    let others = all.len() - usize::from(known.is_some());
    if request.leaving.dry_run == DryRun::No {
        narrator.tell(Event::now("checking your rights"));
        check_rights(managed, known.as_ref(), request).await?;
    }
    let deployments: Api<Deployment> = Api::namespaced(managed.client.clone(), namespaces::OPERATOR);
    let (operator, hubs) = futures::join!(
        deployments.get_metadata_opt(operators::KLUSTERLET),
        deployments.get_metadata_opt(operators::CLUSTER_MANAGER),
    );
    let explained = |error| managed.explain("read the operator's Deployment", error);
    let (operator, beside_hub) = (operator.map_err(explained)?, hubs.map_err(explained)?.is_some());
    let (mut applied, mut guest, mut found) = (Vec::new(), None, None);
    if let Some(known) = &known {
        if known.is_hosted() {
            (guest, applied) = of_guest(managed, known, narrator.clone()).await;
        } else {
            applied = of_agent(managed, known).await?;
        }
        found = agents_hub(managed, known).await?;
    }
    let mut seen = Seen {
        known,
        others,
        applied,
        guest,
        operator: operator.and_then(|operator| operator.metadata.uid),
        residue: any(managed, &residue(beside_hub)).await?,
        beside_hub,
        address: found,
        held: None,
    };
    if let Some(hub) = hub {
        let name = seen.cluster().or(request.cluster.as_deref());
        let name = name.ok_or_else(|| {
            Failure::usage(format!("{label} does not say which cluster it is on its hub"))
                .hint("kubectl ocm unjoin CLUSTER")
        })?;
        is_its_hub(hub, &seen, &label).await?;
        let held = hub::look(hub, name).await.map_err(|failure| match failure.reason {
            Reason::KindNotServed => failure.hint(Remedy::WithoutHub),
            _ => failure,
        })?;
        // With the wrong cluster before it, this would take one away whose agent goes on.
        if seen.known.is_none() && held.cluster.is_some() && held.agent == Agent::Heard {
            return Err(Failure::refused(format!(
                "the agent of cluster {name:?} is heard of on its hub, but {label} has no Klusterlet: nothing was deleted"
            ))
            .hint(Remedy::NameCluster)
            .hint(Remedy::Detach(name.to_owned())));
        }
        if request.leaving.dry_run == DryRun::No {
            hub::check_rights_to_detach(hub, std::slice::from_ref(&held.name), request.leaving.force).await?;
        }
        hub::refuse(&held, request.leaving.force, &*narrator)?;
        seen.held = Some(held);
    } else {
        say_works(&seen, request, &label)?;
    }
    if seen.operator.is_none() && seen.known.as_ref().is_some_and(has_own_finalizers) && !request.leaving.force {
        let told = seen.known.as_ref().map(Known::told).unwrap_or_default();
        return Err(Failure::refused(format!(
            "{told} waits for the operator, which is not there: nothing was deleted ({label})"
        ))
        .because(format!("finalizers {}", own_finalizers().join(", ")))
        .hint(Remedy::Force));
    }
    Ok(seen)
}

/// What is left of an operator whose Deployment is gone.
fn residue(beside_hub: bool) -> Vec<Manifest> {
    let mut all = rules::of_operator(beside_hub);
    all.extend(rules::definitions().into_iter().map(|(manifest, ..)| manifest).take(1));
    if !beside_hub {
        all.push(rules::namespace(namespaces::OPERATOR));
    }
    all
}

const fn own_finalizers() -> [&'static str; 2] {
    [finalizers::KLUSTERLET, finalizers::KLUSTERLET_HOSTED]
}

fn has_own_finalizers(known: &Known) -> bool {
    let all = known.klusterlet.metadata.finalizers.iter().flatten();
    all.into_iter().any(|one| own_finalizers().contains(&one.as_str()))
}

/// The managed cluster of a hosted Klusterlet, and the records of works there. Where it cannot be reached, the operator cannot
/// either, or it can from where it is: that is told, and nothing there is looked at.
async fn of_guest(
    host: &Cluster,
    known: &Known,
    narrator: Arc<dyn Narrator>,
) -> (Option<Cluster>, Vec<AppliedManifestWork>) {
    let found = async {
        let guest = guest::connect(host, known, narrator.clone()).await?;
        let applied = of_agent(&guest, known).await?;
        Ok::<_, Failure>((guest, applied))
    };
    match found.await {
        Ok((guest, applied)) => (Some(guest), applied),
        Err(failure) => {
            let told = format!("what works have put on the hosted cluster is not looked at: {failure}");
            narrator.tell(Event::warning(told));
            (None, Vec::new())
        }
    }
}

/// The records of works of this Klusterlet's agent on this cluster.
async fn of_agent(managed: &Cluster, known: &Known) -> Result<Vec<AppliedManifestWork>, Failure> {
    let api: Api<AppliedManifestWork> = Api::all(managed.client.clone());
    let uid = known.klusterlet.metadata.uid.as_deref().unwrap_or_default();
    match api.list(&ListParams::default()).await {
        Ok(list) => Ok(list.items.into_iter().filter(|work| work.spec.agent_id == uid).collect()),
        Err(error) => {
            let failure = managed.explain("list AppliedManifestWorks", error);
            match failure.reason {
                Reason::NotFound | Reason::KindNotServed => Ok(Vec::new()),
                _ => Err(failure),
            }
        }
    }
}

/// The hub of an agent: as it was let in, else as it registers.
async fn agents_hub(managed: &Cluster, known: &Known) -> Result<Option<HubAddress>, Failure> {
    let space = known.agents();
    let (identity, bootstrap) = futures::join!(observe::identity(managed, space), observe::bootstrap(managed, space));
    let (identity, bootstrap) = (identity?.hub, bootstrap?.map(|bootstrap| bootstrap.hub));
    Ok(match (identity, bootstrap) {
        (Some(mut identity), Some(bootstrap)) => {
            if identity.is_at(&bootstrap.server) {
                identity.uid = bootstrap.uid;
            }
            Some(identity)
        }
        (identity, bootstrap) => identity.or(bootstrap),
    })
}

/// Refuses a hub that is not the agent's: a cluster of that name there is another one.
async fn is_its_hub(hub: &Cluster, seen: &Seen, label: &str) -> Result<(), Failure> {
    let Some(known) = &seen.address else { return Ok(()) };
    let wanted = HubAddress {
        server: hub.server.clone(),
        ca: hub.ca.clone().unwrap_or_default(),
        proxy: None,
        uid: address::uid(hub).await,
    };
    match known.likeness(&wanted) {
        Likeness::Same | Likeness::OtherAddress => Ok(()),
        Likeness::OtherCa | Likeness::OtherHub => Err(Failure::refused(format!(
            "the agent on {label} belongs to the hub at {}, not to {}: nothing was deleted",
            known.server,
            hub.label()
        ))
        .hint(Remedy::NameItsHub)),
    }
}

/// Refuses to leave what works have put on the cluster without anybody having said what becomes of it.
fn say_works(seen: &Seen, request: &UnjoinRequest, label: &str) -> Result<(), Failure> {
    if seen.applied.is_empty() || request.works.is_some() {
        return Ok(());
    }
    let names: Vec<String> = seen.applied.iter().map(|work| work.spec.manifest_work_name.clone()).collect();
    let failure = Failure::refused(format!(
        "works of the hub have put objects on {label} ({}): nothing was deleted",
        some(&names)
    ))
    .hint(Remedy::WithHub);
    Err(match seen.cluster() {
        Some(name) => failure.hint(Remedy::Detach(name.to_owned())).hint(Remedy::SayWorks),
        None => failure.hint(Remedy::SayWorks),
    })
}

/// Takes the agent away. `each` hears of every object.
///
/// # Errors
/// [`Reason::TimedOut`] with what holds it up; the failure of a request.
pub async fn unjoin(
    managed: &Cluster,
    hub: Option<&Cluster>,
    seen: &Seen,
    request: &UnjoinRequest,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Unjoined, Failure> {
    let leaving = request.leaving;
    let each = &noted(leaving, narrator, each);
    let mut unjoined = Unjoined::default();
    if let (Some(hub), Some(held)) = (hub, &seen.held) {
        hub::drain(hub, held, leaving, narrator, each).await?;
    }
    if let Some(known) = &seen.known {
        klusterlet(managed, known, seen, leaving, narrator, each).await?;
        match (&seen.guest, known.is_hosted()) {
            (Some(guest), _) => {
                unjoined.works = works(guest, known, seen, request, narrator, each).await?;
                let mut departure = Departure::default();
                definitions(guest, seen, leaving, &mut departure, each).await?;
                unjoined.guest = departure.definitions_kept;
            }
            (None, true) => {}
            (None, false) => unjoined.works = works(managed, known, seen, request, narrator, each).await?,
        }
    }
    if seen.operator_goes(request) {
        unjoined.operator = Some(operator(managed, seen, leaving, narrator, each).await?);
    }
    if let (Some(hub), Some(held)) = (hub, &seen.held) {
        unjoined.hub = Some(hub::residue(hub, held, leaving, narrator, each).await?);
    }
    Ok(unjoined)
}

/// Deletes the Klusterlet and waits until its agents and their namespaces are gone.
async fn klusterlet(
    managed: &Cluster,
    known: &Known,
    seen: &Seen,
    leaving: Leaving,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    let manifest = rules::klusterlet(known.name());
    let mut spaces = vec![known.agents().to_owned()];
    if !known.is_hosted() && seen.others == 0 {
        spaces.push(namespaces::AGENT_ADDON.to_owned());
    }
    let mut there = Vec::new();
    let api: Api<Namespace> = Api::all(managed.client.clone());
    for space in spaces {
        let found = api.get_metadata_opt(&space).await;
        let found = found.map_err(|error| managed.explain(format_args!("read namespace {space:?}"), error))?;
        there.extend(found.and_then(|found| found.metadata.uid).map(|uid| (space, uid)));
    }
    let uid = known.klusterlet.metadata.uid.as_deref().unwrap_or_default();
    narrator.tell(Event::now(format!("{} {}", leaving.verb(), known.told())));
    let deleted = remove::known(managed, &manifest, uid, Dependents::Usual, leaving.dry_run).await?;
    if let Outcome::Kept(why) = &deleted.outcome {
        return Err(Failure::new(Reason::Conflict, format!("{} stays: {why}", known.told())).hint(Remedy::RunAgain));
    }
    leaving.goes(manifest.reference(), narrator);
    if leaving.dry_run == DryRun::No {
        let forced = klusterlet_gone(managed, known, seen, leaving, narrator).await?;
        if forced {
            by_hand(managed, known, &there, each).await?;
        }
        for (space, _) in &there {
            let doing = format!("waiting until namespace {space:?} of the agent is gone");
            namespace_gone(managed, space, &doing, Instant::now() + leaving.timeout, narrator)
                .await
                .map_err(|failure| failure.hint(Remedy::RunAgain))?;
        }
    }
    each(&row(manifest, Outcome::Deleted));
    for (space, _) in there {
        each(&row(rules::namespace(&space), Outcome::Deleted));
    }
    Ok(())
}

/// Waits until a Klusterlet is gone. Whether its finalizers had to be taken off.
async fn klusterlet_gone(
    managed: &Cluster,
    known: &Known,
    seen: &Seen,
    leaving: Leaving,
    narrator: &dyn Narrator,
) -> Result<bool, Failure> {
    let manifest = rules::klusterlet(known.name());
    let uid = &known.klusterlet.metadata.uid;
    let api: Api<Klusterlet> = Api::all(managed.client.clone());
    let (mut forced, mut deadline) = (leaving.force && seen.operator.is_none(), Instant::now() + leaving.timeout);
    let mut released = false;
    loop {
        let triggers = Triggers::default()
            .of(api.clone(), named(known.name()))
            .of(workload::deployments(managed, namespaces::OPERATOR), named(operators::KLUSTERLET));
        let doing = format!("waiting until {} is gone", known.told());
        let waited = until_triggered(&doing, deadline, PAUSE, triggers, narrator, async || {
            let found = api.get_opt(known.name()).await;
            let found = match found.map_err(|error| managed.explain("read the Klusterlet", error)) {
                Ok(found) => found,
                // Somebody took the definition away, too.
                Err(failure) if failure.reason == Reason::KindNotServed => None,
                Err(failure) => return Err(failure),
            };
            let Some(found) = found.filter(|found| &found.metadata.uid == uid) else { return Ok(Check::Ready(None)) };
            if forced && found.metadata.finalizers.iter().flatten().any(|one| own_finalizers().contains(&one.as_str()))
            {
                return Ok(Check::Ready(Some(found)));
            }
            Ok(Check::NotYet(hold_up(managed, &found).await?))
        })
        .await;
        match waited {
            Ok(None) => return Ok(released),
            Ok(Some(found)) => {
                let all = found.metadata.finalizers.unwrap_or_default();
                let left: Vec<String> =
                    all.into_iter().filter(|one| !own_finalizers().contains(&one.as_str())).collect();
                let version = found.metadata.resource_version.unwrap_or_default();
                if remove::release(managed, &manifest, &version, &left).await? {
                    released = true;
                    narrator.tell(Event::note(format!("took {} off {}", own_finalizers().join(", "), known.told())));
                }
            }
            Err(failure) if failure.reason == Reason::TimedOut && leaving.force && !forced => {
                (forced, deadline) = (true, Instant::now() + leaving.timeout);
                narrator.tell(Event::warning(format!("{failure}; going on without the operator")));
            }
            Err(failure) if failure.reason == Reason::TimedOut => {
                return Err(failure.hint(Remedy::RunAgain).hint(Remedy::Force));
            }
            Err(failure) => return Err(failure),
        }
    }
}

/// Why a Klusterlet that is being deleted is still there.
async fn hold_up(managed: &Cluster, klusterlet: &Klusterlet) -> Result<String, Failure> {
    let since = klusterlet.metadata.annotations.as_ref().and_then(|all| all.get(annotations::EVICTION));
    if let Some(since) = since {
        return Ok(format!("the operator does not reach the managed cluster since {since}"));
    }
    Ok(match trouble(managed, Operator::Klusterlet).await? {
        None => {
            let all = klusterlet.metadata.finalizers.iter().flatten().cloned().collect::<Vec<_>>();
            format!("the operator removes the agent (finalizers {})", all.join(", "))
        }
        Some(because) => format!("the operator, which removes the agent, is not ready: {because}"),
    })
}

/// Deletes what the operator would have deleted: the agents' namespaces and their rights.
async fn by_hand(
    managed: &Cluster,
    known: &Known,
    spaces: &[(String, String)],
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    for manifest in rules::rights_of_agents(known.name()) {
        delete(managed, &manifest, DryRun::No, each).await?;
    }
    for (space, uid) in spaces {
        remove::known(managed, &rules::namespace(space), uid, Dependents::Usual, DryRun::No).await?;
    }
    Ok(())
}

/// Deletes the records of works that are left, and waits until their objects are gone if they are to go.
async fn works(
    managed: &Cluster,
    known: &Known,
    seen: &Seen,
    request: &UnjoinRequest,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Option<(usize, Works)>, Failure> {
    let leaving = request.leaving;
    // With the hub they are gone by now, unless something was forced.
    let left = match leaving.dry_run {
        DryRun::No => of_agent(managed, known).await?,
        _ if seen.held.is_some() => Vec::new(),
        _ => seen.applied.clone(),
    };
    if left.is_empty() {
        return Ok(None);
    }
    let works = request.works.unwrap_or(Works::Keep);
    narrator.tell(Event::now(format!("{} {} records of works", leaving.verb(), left.len())));
    for work in &left {
        let manifest = rules::applied_work(work.metadata.name.as_deref().unwrap_or_default());
        let dependents = if works == Works::Keep { Dependents::Stay } else { Dependents::Usual };
        let uid = work.metadata.uid.as_deref().unwrap_or_default();
        each(&remove::known(managed, &manifest, uid, dependents, leaving.dry_run).await?);
        // The operator takes its finalizer off when it removes the agent; where it was not there, nobody has.
        if leaving.dry_run == DryRun::No {
            release(managed, &manifest).await?;
        }
    }
    if works == Works::Delete && leaving.dry_run == DryRun::No {
        let objects: Vec<AppliedManifestResourceMeta> = left
            .iter()
            .flat_map(|work| work.status.iter().flat_map(|status| status.applied_resources.clone()))
            .collect();
        objects_gone(managed, objects, Instant::now() + leaving.timeout, narrator).await?;
    }
    Ok(Some((left.len(), works)))
}

/// Takes the agent's finalizer off a record, whose version has changed since by being deleted.
async fn release(managed: &Cluster, manifest: &Manifest) -> Result<(), Failure> {
    let api: Api<AppliedManifestWork> = Api::all(managed.client.clone());
    for _ in 0..3 {
        let found = api.get_metadata_opt(manifest.name()).await;
        let Some(found) = found.map_err(|error| managed.explain("read an AppliedManifestWork", error))? else {
            return Ok(());
        };
        let mut left = found.metadata.finalizers.unwrap_or_default();
        let before = left.len();
        left.retain(|one| one != finalizers::APPLIED_MANIFEST_WORK);
        if left.len() == before {
            return Ok(());
        }
        if remove::release(managed, manifest, &found.metadata.resource_version.unwrap_or_default(), &left).await? {
            return Ok(());
        }
    }
    Ok(())
}

/// Waits until objects are gone that Kubernetes deletes with their owner.
async fn objects_gone(
    managed: &Cluster,
    mut left: Vec<AppliedManifestResourceMeta>,
    deadline: Instant,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    until("waiting until the objects of works are gone", deadline, PAUSE, narrator, async || {
        let mut still = Vec::new();
        for object in &left {
            if is_there(managed, object).await? {
                still.push(object.clone());
            }
        }
        left = still;
        let names: Vec<String> = left.iter().map(|object| format!("{}/{}", object.resource, object.name)).collect();
        Ok(if names.is_empty() { Check::Ready(()) } else { Check::Unwatched(format!("{} to go", some(&names))) })
    })
    .await
}

async fn is_there(managed: &Cluster, object: &AppliedManifestResourceMeta) -> Result<bool, Failure> {
    let resource = ApiResource {
        group: object.group.clone(),
        version: object.version.clone(),
        api_version: if object.group.is_empty() {
            object.version.clone()
        } else {
            format!("{}/{}", object.group, object.version)
        },
        kind: String::new(),
        plural: object.resource.clone(),
    };
    let api: Api<DynamicObject> = match object.namespace.as_str() {
        "" => Api::all_with(managed.client.clone(), &resource),
        space => Api::namespaced_with(managed.client.clone(), space, &resource),
    };
    match api.get_metadata_opt(&object.name).await {
        Ok(found) => Ok(found.is_some_and(|found| object.uid.is_none() || found.metadata.uid == object.uid)),
        Err(error) => {
            let failure = managed.explain(format_args!("read {}/{}", object.resource, object.name), error);
            if failure.reason == Reason::KindNotServed { Ok(false) } else { Err(failure) }
        }
    }
}

/// Deletes the operator, and what only it needed.
async fn operator(
    managed: &Cluster,
    seen: &Seen,
    leaving: Leaving,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Departure, Failure> {
    let dry_run = leaving.dry_run;
    if let Some(uid) = &seen.operator {
        narrator.tell(Event::now(format!("{} the operator", leaving.verb())));
        each(&remove::known(managed, &rules::operator(), uid, Dependents::Usual, dry_run).await?);
    }
    if dry_run == DryRun::No {
        pods_gone(managed, Operator::Klusterlet, leaving, narrator).await?;
    }
    for manifest in rules::of_operator(seen.beside_hub) {
        delete(managed, &manifest, dry_run, each).await?;
    }
    let mut departure = Departure::default();
    definitions(managed, seen, leaving, &mut departure, each).await?;
    if !seen.beside_hub {
        departure.namespace_kept = operators_namespace(managed, Operator::Klusterlet, leaving, narrator, each).await?;
    }
    Ok(departure)
}

/// Deletes the definitions of a managed cluster of which there are no objects, unless another agent needs them.
async fn definitions(
    cluster: &Cluster,
    seen: &Seen,
    leaving: Leaving,
    departure: &mut Departure,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    let dry_run = leaving.dry_run;
    let own = seen.known.as_ref().filter(|_| dry_run != DryRun::No).map(Known::name);
    let others = other_agents(cluster, own).await?;
    for (manifest, plural, group) in rules::definitions() {
        if apply::read(cluster, &manifest).await?.is_none() {
            continue;
        }
        let held = objects_of(cluster, plural, group, &manifest).await?.len();
        // In a dry run what goes before it is still there.
        let expected = match (dry_run, plural) {
            (DryRun::No, _) => 0,
            (_, "klusterlets") => usize::from(seen.known.is_some()),
            (_, "appliedmanifestworks") => seen.applied.len(),
            _ => 0,
        };
        let kept = match others.first() {
            _ if held > expected => Some(format!("there are {held} {plural}")),
            Some(other) => Some(format!("the agent of another Klusterlet, {other:?}, works there, too")),
            None => None,
        };
        if let Some(why) = kept {
            departure.definitions_kept.push(manifest.name().to_owned());
            each(&row(manifest, Outcome::Kept(why)));
        } else {
            delete(cluster, &manifest, dry_run, each).await?;
        }
    }
    Ok(())
}

/// Names of Klusterlets whose agents have rights on a cluster, wherever the Klusterlets are.
async fn other_agents(cluster: &Cluster, own: Option<&str>) -> Result<Vec<String>, Failure> {
    let api: Api<ClusterRole> = Api::all(cluster.client.clone());
    let all = api.list_metadata(&ListParams::default()).await;
    let all = all.map_err(|error| cluster.explain("list ClusterRoles", error))?;
    let names = all.items.into_iter().filter_map(|role| role.metadata.name);
    let agents = names.filter_map(|name| rules::klusterlet_of_role(&name).map(str::to_owned));
    Ok(agents.filter(|name| Some(name.as_str()) != own).collect())
}
