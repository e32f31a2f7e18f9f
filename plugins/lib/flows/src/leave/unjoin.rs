//! The managed cluster's side: its Klusterlet goes, what the agent has put there, and the operator if nobody needs it; with
//! access to the hub, all that this holds of the cluster first, while the agent is there to clean up.

use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt;
use futures::future::join_all;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use ocm_api::names::{annotations, finalizers, namespaces, operators, secrets};
use ocm_api::work::AppliedManifestResourceMeta;
use ocm_api::{AppliedManifestWork, Klusterlet, Manifest, ManifestWork};
use ocm_core::kubeconfig::{HubAddress, Likeness};
use ocm_core::leave::hub::has_joined;
use ocm_core::leave::klusterlet::{self as rules, Known};
use ocm_core::leave::space::Operator;
use ocm_core::leave::works::{of_hub, with_their_objects};
use ocm_core::leave::{row, some};
use ocm_core::{Applied, DryRun, Event, Failure, Narrator, Outcome, Plan, Reason, Remedy, Stage};
use ocm_kube::access::{self, Right};
use ocm_kube::remove::{self, Dependents};
use ocm_kube::triggers::{Triggers, named};
use ocm_kube::wait::{Check, until, until_triggered};
use ocm_kube::{Cluster, apply};

use super::guest;
use super::hub::{self, Detached, Held};
use super::leaving::{Leaving, noted};
use super::namespace::{PAUSE, namespace_gone};
use super::operator::{any, delete, objects_of, operators_namespace, pods_gone, trouble};
use crate::observe::managed as observe;
use crate::registry::{self, PAGE, pages};
use crate::served::or_nothing;
use crate::{grpc_server, hub as address, workload};

/// How many objects are read at once.
const AT_ONCE: usize = 8;

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
    /// The addresses at which its agent has found that hub, as far as they are known.
    addresses: Vec<String>,
    /// By what records name the works that the hub removes with all of their objects.
    removed: Vec<String>,
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
    /// The namespace on the managed cluster of a hosted Klusterlet, where nobody could look, that may hold the operator's account.
    pub account_left: Option<String>,
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
            && self.applied.is_empty()
            && !self.residue
            && self.held.as_ref().is_none_or(Held::is_empty)
    }
}

/// All Klusterlets, each with the name of its cluster.
///
/// # Errors
/// The failure of a request.
pub(crate) async fn all_known(managed: &Cluster) -> Result<Vec<Known>, Failure> {
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
    Ok(all)
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
    let all = all_known(managed).await?;
    let label = managed.label();
    // A run that was killed may have taken the Klusterlet away, and not yet its cluster.
    let begun = |failure: Failure| match &request.cluster {
        Some(cluster) if failure.reason == Reason::Refused => failure.hint(Remedy::GoOnAtHub(cluster.clone())),
        _ => failure,
    };
    let known = rules::choose(&all, request.cluster.as_deref(), request.klusterlet.as_deref(), &label);
    let known = known.map_err(begun)?.cloned();
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
    if known.is_none() && others == 0 {
        applied = left_behind(managed).await?;
    }
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
        addresses: Vec::new(),
        removed: Vec::new(),
    };
    if let Some(hub) = hub {
        let Some(name) = seen.cluster().or(request.cluster.as_deref()) else {
            if is_passed_over(hub, &seen, &label, &*narrator) {
                return Ok(seen);
            }
            return Err(Failure::usage(format!("{label} does not say which cluster it is on its hub"))
                .hint("kubectl ocm unjoin CLUSTER"));
        };
        if let Some(known) = &seen.address {
            is_its_hub(hub, known, &label).await?;
        }
        let held = hub::look(hub, name).await.map_err(|failure| match failure.reason {
            Reason::KindNotServed => failure.hint(Remedy::WithoutHub),
            _ => failure,
        })?;
        // Without a Klusterlet there is no agent to be mistaken for another one. Of one that is being deleted the operator takes
        // away what says so; and where the hub has no cluster any more, a run that was killed may have begun that.
        let begun = |known: &Known| is_being_deleted(known) && held.cluster.is_none();
        if seen.address.is_none() && seen.known.as_ref().is_some_and(|known| !begun(known)) && !held.is_empty() {
            let sentence = format!("the agent on {label} does not say which hub it belongs to: nothing was deleted");
            return Err(Failure::refused(sentence).hint(Remedy::Detach(name.to_owned())).hint(Remedy::WithoutHub));
        }
        // With the wrong cluster before it, this would take one away whose agent goes on.
        if seen.known.is_none() && held.is_at_work() {
            return Err(Failure::refused(format!(
                "the agent of cluster {name:?} is heard of on its hub, but {label} has no Klusterlet: nothing was deleted"
            ))
            .hint(Remedy::NameCluster)
            .hint(Remedy::Detach(name.to_owned())));
        }
        // A Klusterlet can say any name: only an agent that was let in under it may have that cluster taken away.
        if let Some(known) = &seen.known
            && held.cluster.as_ref().is_some_and(has_joined)
        {
            was_let_in(managed, known, name).await?;
        }
        if request.leaving.dry_run == DryRun::No {
            hub::check_rights_to_detach(hub, std::slice::from_ref(&held.name), request.leaving.force).await?;
        }
        hub::refuse(&held, request.leaving.force, &*narrator)?;
        if seen.known.is_some() && held.cluster.is_some() && !seen.applied.is_empty() {
            seen.addresses = addresses(hub, seen.address.as_ref()).await?;
            seen.removed = removed(hub, &held.name).await?;
        }
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

/// Whether a hub is left alone because nothing on the cluster says any more what it is called there, as after a run that has ended
/// well, or that was killed late: that is told.
pub(super) fn is_passed_over(hub: &Cluster, seen: &Seen, label: &str, narrator: &dyn Narrator) -> bool {
    let is_passed_over = seen.known.is_none() && seen.others == 0 && seen.applied.is_empty();
    if is_passed_over {
        narrator.tell(Event::warning(format!(
            "{label} has no Klusterlet that says which cluster it is: {} is not looked at unless you name the cluster",
            hub.label()
        )));
    }
    is_passed_over
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

pub(super) fn is_being_deleted(known: &Known) -> bool {
    known.klusterlet.metadata.deletion_timestamp.is_some()
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
    let uid = known.klusterlet.metadata.uid.as_deref().unwrap_or_default();
    Ok(records(managed).await?.into_iter().filter(|work| work.spec.agent_id == uid).collect())
}

/// All records of works on a cluster.
async fn records(managed: &Cluster) -> Result<Vec<AppliedManifestWork>, Failure> {
    let api: Api<AppliedManifestWork> = Api::all(managed.client.clone());
    or_nothing(registry::all(managed, &api, ListParams::default(), "list AppliedManifestWorks").await)
}

/// Records of works on a cluster without any Klusterlet, which a run that was killed has left. Where an agent of a Klusterlet
/// elsewhere works, they are its.
async fn left_behind(managed: &Cluster) -> Result<Vec<AppliedManifestWork>, Failure> {
    let all = records(managed).await?;
    if all.is_empty() {
        return Ok(all);
    }
    let (agents, gone) = (observe::other_agents(managed, None).await?, without_accounts(managed).await?);
    Ok(if agents.iter().all(|agent| gone.contains(agent)) { all } else { Vec::new() })
}

/// The hub of an agent: as it was let in, else as it registers.
///
/// # Errors
/// The failure of a request.
pub(crate) async fn agents_hub(managed: &Cluster, known: &Known) -> Result<Option<HubAddress>, Failure> {
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

/// The addresses of an agent's hub, in the words in which agents dial it: the one that the agent has, ours, and that of the
/// hub's gRPC server. An agent that has gone over from one to another has records of both.
async fn addresses(hub: &Cluster, known: Option<&HubAddress>) -> Result<Vec<String>, Failure> {
    let mut all: Vec<String> = known.map(|known| known.server.clone()).into_iter().collect();
    all.push(hub.server.clone());
    if let Some(manager) = grpc_server::manager(hub).await? {
        all.extend(grpc_server::published(hub, &manager).await?.map(|address| address.to_string()));
    }
    Ok(all)
}

/// By what records name the works of a cluster that its hub removes with all of their objects.
async fn removed(hub: &Cluster, cluster: &str) -> Result<Vec<String>, Failure> {
    let api: Api<ManifestWork> = Api::namespaced(hub.client.clone(), cluster);
    // Works hold whatever they apply, of which nothing is kept.
    let words = |work: ManifestWork| Some(with_their_objects(&[work]));
    let words = pages(hub, &api, ListParams::default(), || PAGE, "list works", words).await;
    Ok(or_nothing(words)?.into_iter().flatten().collect())
}

/// Whether a cluster is the hub at the address that an agent knows.
///
/// # Errors
/// The failure of a request.
pub(crate) async fn is_hub_at(hub: &Cluster, known: &HubAddress) -> Result<bool, Failure> {
    let wanted = HubAddress {
        server: hub.server.clone(),
        ca: hub.ca.clone().unwrap_or_default(),
        uid: address::uid(hub).await,
        ..HubAddress::default()
    };
    Ok(match known.likeness(&wanted) {
        Likeness::Same => true,
        Likeness::OtherAddress if known.uid.is_some() && wanted.uid.is_some() => true,
        // Several hubs can be behind one authority, but not behind the one that a cluster has made for itself.
        Likeness::OtherAddress => {
            let own = address::readable_root_ca(hub).await?;
            !known.ca.is_empty() && known.ca.iter().all(|certificate| own.contains(certificate))
        }
        Likeness::OtherCa | Likeness::OtherHub => false,
    })
}

/// Refuses a hub that is not the agent's: a cluster of that name there is another one.
async fn is_its_hub(hub: &Cluster, known: &HubAddress, label: &str) -> Result<(), Failure> {
    if is_hub_at(hub, known).await? {
        return Ok(());
    }
    Err(Failure::refused(format!(
        "the agent on {label} belongs to the hub at {}, not to {}: nothing was deleted",
        known.server,
        hub.label()
    ))
    .hint(Remedy::NameItsHub)
    .hint(Remedy::WithoutHub))
}

/// Refuses an agent that was not let in under the name of a cluster that has joined.
async fn was_let_in(managed: &Cluster, known: &Known, name: &str) -> Result<(), Failure> {
    let space = known.agents();
    let because = match observe::identity(managed, space).await?.cluster {
        Some(own) if own == name => return Ok(()),
        Some(own) => format!("Secret {space}/{} is of cluster {own:?}", secrets::HUB_KUBECONFIG),
        None => format!("Secret {space}/{} names no cluster, or is not there", secrets::HUB_KUBECONFIG),
    };
    Err(Failure::refused(format!(
        "the hub has a cluster {name:?} that has joined, and the agent on {} was not let in under that name: \
         it is another one; nothing was deleted",
        managed.label()
    ))
    .because(because)
    .hint(Remedy::WithoutHub))
}

/// Refuses to leave what works have put on the cluster without anybody having said what becomes of it.
fn say_works(seen: &Seen, request: &UnjoinRequest, label: &str) -> Result<(), Failure> {
    if request.works.is_some() {
        return Ok(());
    }
    // A run that was forced and killed has taken away by what the cluster could be reached.
    let is_begun = request.leaving.force && seen.known.as_ref().is_some_and(is_being_deleted);
    let is_hidden = seen.guest.is_none() && !is_begun && seen.known.as_ref().is_some_and(Known::is_hosted);
    if seen.applied.is_empty() && !is_hidden {
        return Ok(());
    }
    if is_hidden {
        let name = seen.cluster().unwrap_or_default();
        let sentence =
            format!("whether works have put something on hosted cluster {name:?} cannot be seen: nothing was deleted");
        return Err(Failure::refused(sentence).hint(Remedy::WithHub).hint(Remedy::SayWorks));
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
    if let (Some(guest), Some(known), DryRun::No) = (&seen.guest, &seen.known, leaving.dry_run)
        && !matches!(guest::own_namespace(guest, known).await, Ok(None))
    {
        // With the Klusterlet goes what leads there.
        narrator.tell(Event::note(format!(
            "on the managed cluster the operator's account goes last, with its namespace {:?}: if this run is interrupted, see that \
             it does",
            known.name()
        )));
    }
    if let Some(known) = &seen.known {
        klusterlet(managed, known, seen, leaving, narrator, each).await?;
    }
    let is_hosted = seen.known.as_ref().is_some_and(Known::is_hosted);
    match (&seen.guest, is_hosted) {
        (Some(guest), _) => {
            unjoined.works = works(guest, seen, request, narrator, each).await?;
            let mut departure = Departure::default();
            definitions(guest, true, seen, leaving, &mut departure, each).await?;
            unjoined.guest = departure.definitions_kept;
            if let Some(known) = &seen.known {
                guest::account(guest, known, leaving.dry_run, each).await?;
            }
        }
        (None, true) => {
            let known = seen.known.as_ref().filter(|_| leaving.dry_run == DryRun::No);
            unjoined.account_left = known.map(|known| known.name().to_owned());
        }
        (None, false) => unjoined.works = works(managed, seen, request, narrator, each).await?,
    }
    if seen.operator_goes(request) {
        unjoined.operator = operator(managed, seen, leaving, narrator, each).await?;
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
    if leaving.dry_run == DryRun::No && !has_own_finalizers(known) {
        // No operator has seen it: it is gone at once, and nothing would say any more that there is a token.
        for (space, uid) in there.iter().filter(|(space, _)| space == known.agents()) {
            remove::known(managed, &rules::namespace(space), uid, Dependents::Usual, DryRun::No).await?;
        }
    }
    let deleted = remove::known(managed, &manifest, uid, Dependents::Usual, leaving.dry_run).await?;
    if let Outcome::Kept(why) = &deleted.outcome {
        return Err(Failure::new(Reason::Conflict, format!("{} stays: {why}", known.told())).hint(Remedy::RunAgain));
    }
    leaving.goes(manifest.reference(), narrator);
    if leaving.dry_run != DryRun::No {
        each(&row(manifest, Outcome::Deleted));
        there.iter().for_each(|(space, _)| each(&row(rules::namespace(space), Outcome::Deleted)));
        return Ok(());
    }
    klusterlet_gone(managed, known, seen, &there, leaving, narrator, each).await?;
    each(&row(manifest, Outcome::Deleted));
    for (space, uid) in there {
        space_gone(managed, known, (&space, &uid), leaving, narrator, each).await?;
    }
    Ok(())
}

/// Waits until a namespace of agents is gone. That of a Klusterlet which no operator has ever seen nobody deletes but us.
async fn space_gone(
    managed: &Cluster,
    known: &Known,
    (space, uid): (&str, &str),
    leaving: Leaving,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    let manifest = rules::namespace(space);
    let still = apply::read(managed, &manifest).await?.filter(|found| found["metadata"]["uid"] == uid);
    if still.is_some_and(|found| found["metadata"]["deletionTimestamp"].is_null()) {
        if space != known.agents() {
            let why = "agents of other Klusterlets may need it".to_owned();
            each(&row(manifest, Outcome::Kept(why)));
            return Ok(());
        }
        remove::known(managed, &manifest, uid, Dependents::Usual, DryRun::No).await?;
    }
    let doing = format!("waiting until namespace {space:?} of the agent is gone");
    namespace_gone(managed, space, &doing, Instant::now() + leaving.timeout, narrator)
        .await
        .map_err(|failure| failure.hint(Remedy::RunAgain))?;
    each(&row(manifest, Outcome::Deleted));
    Ok(())
}

/// Waits until a Klusterlet is gone. Where its finalizers have to be taken off, what the operator would have removed goes before:
/// a run that is killed in between finds the Klusterlet again.
async fn klusterlet_gone(
    managed: &Cluster,
    known: &Known,
    seen: &Seen,
    there: &[(String, String)],
    leaving: Leaving,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    let manifest = rules::klusterlet(known.name());
    let uid = &known.klusterlet.metadata.uid;
    let api: Api<Klusterlet> = Api::all(managed.client.clone());
    let (mut forced, mut deadline) = (leaving.force && seen.operator.is_none(), Instant::now() + leaving.timeout);
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
            Ok(None) => return Ok(()),
            Ok(Some(found)) => {
                let all = found.metadata.finalizers.unwrap_or_default();
                let left: Vec<String> =
                    all.into_iter().filter(|one| !own_finalizers().contains(&one.as_str())).collect();
                let version = found.metadata.resource_version.unwrap_or_default();
                by_hand(managed, known, there, each).await?;
                if remove::release(managed, &manifest, &version, &left).await? {
                    let told = format!("took {} off {}", own_finalizers().join(", "), known.told());
                    narrator.tell(Event::note(told.clone()));
                    narrator.tell(Event::done(told));
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
    // As the operator: add-ons of a Klusterlet on another cluster are there, too. Upstream: `hasActiveKlusterletAgentNamespaces`.
    let is_shared = !observe::other_agents(managed, Some(known.name())).await?.is_empty();
    for (space, uid) in spaces.iter().filter(|(space, _)| !is_shared || space != namespaces::AGENT_ADDON) {
        remove::known(managed, &rules::namespace(space), uid, Dependents::Usual, DryRun::No).await?;
    }
    Ok(())
}

/// Deletes the records of works that are left, and waits until their objects are gone if they are to go.
async fn works(
    cluster: &Cluster,
    seen: &Seen,
    request: &UnjoinRequest,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Option<(usize, Works)>, Failure> {
    let leaving = request.leaving;
    // With the hub they are gone by now, unless something was forced.
    let left = match leaving.dry_run {
        DryRun::No => match &seen.known {
            Some(known) => of_agent(cluster, known).await?,
            None => seen.applied.clone(),
        },
        _ if seen.held.is_some() => Vec::new(),
        _ => seen.applied.clone(),
    };
    // The hub has its works removed, and by records of a former way to it their objects stay. What it has let go before, or left
    // to stay, is not for us to delete.
    let (of_hub, left) = match (&seen.held, request.works) {
        (Some(_), None) if !leaving.force => of_hub(left, &seen.addresses, &seen.removed),
        _ => (Vec::new(), left),
    };
    let gone = forget(cluster, of_hub, Works::Delete, leaving, narrator, each).await?;
    let kept = forget(cluster, left, request.works.unwrap_or(Works::Keep), leaving, narrator, each).await?;
    Ok(kept.or(gone))
}

/// Deletes these records of works, and waits until their objects are gone if they are to go.
async fn forget(
    cluster: &Cluster,
    left: Vec<AppliedManifestWork>,
    works: Works,
    leaving: Leaving,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Option<(usize, Works)>, Failure> {
    if left.is_empty() {
        return Ok(None);
    }
    let mut objects = Vec::new();
    if works == Works::Delete && leaving.dry_run == DryRun::No {
        objects = owned(cluster, &left, narrator).await?;
    }
    let what = if left.len() == 1 { "record" } else { "records" };
    narrator.tell(Event::now(format!("{} {} {what} of works", leaving.verb(), left.len())));
    for work in &left {
        let manifest = rules::applied_work(work.metadata.name.as_deref().unwrap_or_default());
        let dependents = if works == Works::Keep { Dependents::Stay } else { Dependents::Usual };
        let uid = work.metadata.uid.as_deref().unwrap_or_default();
        each(&remove::known(cluster, &manifest, uid, dependents, leaving.dry_run).await?);
        // The operator takes its finalizer off when it removes the agent; where it was not there, nobody has.
        if leaving.dry_run == DryRun::No {
            release(cluster, &manifest).await?;
        }
    }
    objects_gone(cluster, objects, Instant::now() + leaving.timeout, narrator).await?;
    Ok(Some((left.len(), works)))
}

/// Those objects of works that Kubernetes deletes with their record: it is their only owner. What a work only reads, or
/// leaves behind, is not among them. What cannot be read is not waited for.
async fn owned(
    cluster: &Cluster,
    works: &[AppliedManifestWork],
    narrator: &dyn Narrator,
) -> Result<Vec<AppliedManifestResourceMeta>, Failure> {
    let all = works.iter().flat_map(|work| {
        let objects = work.status.iter().flat_map(|status| &status.applied_resources);
        objects.map(|object| (work.metadata.uid.clone().unwrap_or_default(), object.clone()))
    });
    let found: Vec<_> = futures::stream::iter(all)
        .map(async |(uid, object)| {
            let owners = find(cluster, &object).await?.and_then(|found| found.owner_references).unwrap_or_default();
            let is_owned = !owners.is_empty() && owners.iter().all(|owner| owner.uid == uid);
            Ok::<_, Failure>(is_owned.then_some(object))
        })
        .buffered(AT_ONCE)
        .collect()
        .await;
    let (mut objects, mut unseen) = (Vec::new(), None);
    for one in found {
        match one {
            Ok(object) => objects.extend(object),
            Err(failure) if failure.reason == Reason::Forbidden => unseen = Some(failure),
            Err(failure) => return Err(failure),
        }
    }
    if let Some(failure) = unseen {
        narrator.tell(Event::warning(format!("not every object of works is waited for: {failure}")));
    }
    Ok(objects)
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
    cluster: &Cluster,
    mut left: Vec<AppliedManifestResourceMeta>,
    deadline: Instant,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    if left.is_empty() {
        return Ok(());
    }
    until("waiting until the objects of works are gone", deadline, PAUSE, narrator, async || {
        let still: Vec<_> = futures::stream::iter(std::mem::take(&mut left))
            .map(async |object| (find(cluster, &object).await, object))
            .buffered(AT_ONCE)
            .collect()
            .await;
        for (found, object) in still {
            match found {
                Ok(None) => {}
                Ok(Some(found)) if object.uid.is_some() && found.uid != object.uid => {}
                Ok(Some(_)) | Err(_) => left.push(object),
            }
        }
        let names: Vec<String> = left.iter().map(|object| format!("{}/{}", object.resource, object.name)).collect();
        Ok(if names.is_empty() { Check::Ready(()) } else { Check::Unwatched(format!("{} to go", some(&names))) })
    })
    .await
    .map_err(|failure| failure.hint(Remedy::RunAgain))
}

/// The metadata of an object of a work, if there is one.
async fn find(cluster: &Cluster, object: &AppliedManifestResourceMeta) -> Result<Option<ObjectMeta>, Failure> {
    let api_version = match object.group.as_str() {
        "" => object.version.clone(),
        group => format!("{group}/{}", object.version),
    };
    let resource = ApiResource {
        group: object.group.clone(),
        version: object.version.clone(),
        api_version,
        kind: String::new(),
        plural: object.resource.clone(),
    };
    let api: Api<DynamicObject> = match object.namespace.as_str() {
        "" => Api::all_with(cluster.client.clone(), &resource),
        space => Api::namespaced_with(cluster.client.clone(), space, &resource),
    };
    match api.get_metadata_opt(&object.name).await {
        Ok(found) => Ok(found.map(|found| found.metadata)),
        Err(error) => {
            let failure = cluster.explain(format_args!("read {}/{}", object.resource, object.name), error);
            if failure.reason == Reason::KindNotServed { Ok(None) } else { Err(failure) }
        }
    }
}

/// A Klusterlet that somebody has made since the one that was looked at is gone: it needs the operator.
async fn made_meanwhile(managed: &Cluster, dry_run: DryRun) -> Result<Option<String>, Failure> {
    if dry_run != DryRun::No {
        return Ok(None);
    }
    let api: Api<Klusterlet> = Api::all(managed.client.clone());
    let listed = api.list_metadata(&ListParams::default().limit(1)).await.map(|list| list.items);
    let found = or_nothing(listed.map_err(|error| managed.explain("list Klusterlets", error)))?;
    Ok(found.into_iter().next().and_then(|one| one.metadata.name))
}

/// Deletes the operator, and what only it needed; none: it stays, because somebody has made another Klusterlet.
async fn operator(
    managed: &Cluster,
    seen: &Seen,
    leaving: Leaving,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Option<Departure>, Failure> {
    let dry_run = leaving.dry_run;
    let stays = |name: &str, what: &str| {
        narrator.tell(Event::warning(format!("somebody has made Klusterlet {name:?} meanwhile: {what}")));
    };
    if let Some(name) = made_meanwhile(managed, dry_run).await? {
        stays(&name, "the operator stays");
        return Ok(None);
    }
    if let Some(uid) = &seen.operator {
        narrator.tell(Event::now(format!("{} the operator", leaving.verb())));
        each(&remove::known(managed, &rules::operator(), uid, Dependents::Usual, dry_run).await?);
    }
    if dry_run == DryRun::No {
        pods_gone(managed, Operator::Klusterlet, leaving, narrator).await?;
        let left = match &seen.known {
            Some(known) if known.is_hosted() => Vec::new(),
            Some(known) => vec![known.name().to_owned()],
            // A run that was killed has taken the Klusterlet away.
            None => without_accounts(managed).await?,
        };
        for klusterlet in left {
            rights_left(managed, &klusterlet, narrator, each).await?;
        }
    }
    const LEFT: &str = "what is left of the operator stays; `kubectl ocm join` again puts back what it lacks";
    if let Some(name) = made_meanwhile(managed, dry_run).await? {
        stays(&name, LEFT);
        return Ok(None);
    }
    for manifest in rules::of_operator(seen.beside_hub) {
        delete(managed, &manifest, dry_run, each).await?;
    }
    let mut departure = Departure::default();
    definitions(managed, false, seen, leaving, &mut departure, each).await?;
    if let Some(name) = made_meanwhile(managed, dry_run).await? {
        stays(&name, LEFT);
        return Ok(None);
    }
    if !seen.beside_hub {
        departure.namespace_kept = operators_namespace(managed, Operator::Klusterlet, leaving, narrator, each).await?;
    }
    Ok(Some(departure))
}

/// Deletes the rights of the agents of a Klusterlet that is gone. Its operator has deleted them, and may have applied them once
/// more: its controllers run beside each other, each with what it has read before. It has ended now.
async fn rights_left(
    managed: &Cluster,
    klusterlet: &str,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    let is_listed = observe::other_agents(managed, None).await?.iter().any(|name| name == klusterlet);
    let all = rules::rights_of_agents(klusterlet);
    // Any of them may be what is left.
    let found = join_all(all.iter().map(|manifest| apply::read(managed, manifest))).await;
    for (manifest, found) in all.iter().zip(found) {
        let is_there = match found {
            // Whoever may not look cannot tell.
            Err(failure) if failure.reason == Reason::Forbidden => is_listed,
            found => found?.is_some(),
        };
        if !is_there {
            continue;
        }
        match delete(managed, manifest, DryRun::No, each).await {
            Err(failure) if failure.reason == Reason::Forbidden => {
                let told = format!("the operator has left {}, which you may not delete", manifest.reference());
                narrator.tell(Event::warning(told));
            }
            deleted => drop(deleted?),
        }
    }
    Ok(())
}

/// Klusterlets whose agents have rights on a cluster, and no namespace in which their accounts would be, or one that goes. That of
/// a Klusterlet on another cluster is here as long as its agents work. Whoever may not look finds none.
async fn without_accounts(managed: &Cluster) -> Result<Vec<String>, Failure> {
    let spaces: Api<Namespace> = Api::all(managed.client.clone());
    let mut all = Vec::new();
    for klusterlet in observe::other_agents(managed, None).await? {
        let binding = match apply::read(managed, &rules::binding_of_agent(&klusterlet)).await {
            Err(failure) if failure.reason == Reason::Forbidden => continue,
            binding => binding?,
        };
        // What is left without it gives nobody a right.
        let Some(binding) = binding else {
            all.push(klusterlet);
            continue;
        };
        let space = binding.pointer("/subjects/0/namespace").and_then(|space| space.as_str());
        let Some(space) = space else { continue };
        let found = spaces.get_metadata_opt(space).await;
        let found = found.map_err(|error| managed.explain(format_args!("read namespace {space:?}"), error))?;
        if found.is_none_or(|found| found.metadata.deletion_timestamp.is_some()) {
            all.push(klusterlet);
        }
    }
    Ok(all)
}

/// Deletes the definitions of a managed cluster of which there are no objects, unless another agent needs them.
async fn definitions(
    cluster: &Cluster,
    is_guest: bool,
    seen: &Seen,
    leaving: Leaving,
    departure: &mut Departure,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    let dry_run = leaving.dry_run;
    let own = seen.known.as_ref().filter(|_| dry_run != DryRun::No).map(Known::name);
    let others = observe::other_agents(cluster, own).await?;
    // By the first of them a run that goes on from here sees that something is left: it goes last.
    for (manifest, plural, group) in rules::definitions().into_iter().rev() {
        // The operator of a hosted Klusterlet has not made that one on the managed cluster.
        if (is_guest && plural == "klusterlets") || apply::read(cluster, &manifest).await?.is_none() {
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
