//! From files to the hub's side of an add-on.

use std::time::{Duration, Instant};

use kube::api::WatchParams;
use ocm_api::Manifest;
use ocm_api::names::namespaces as names;
use ocm_core::hub_addon::{
    Content, Kinds, Rank, Settled, Standing, WAS_THERE, is_marked, labelled, namespace, namespaces, plan, settled,
    standing, tried,
};
use ocm_core::leave::{row, some};
use ocm_core::order;
use ocm_core::plan::{Applied, Found, Mode, Outcome, Plan};
use ocm_core::{DryRun, Event, Failure, Narrator, Reason, Remedy};
use ocm_kube::access::{self, Right};
use ocm_kube::triggers::Triggers;
use ocm_kube::wait::{Check, until_triggered};
use ocm_kube::{Cluster, apply, contents};
use serde_json::Value;

use crate::addons::definitions;
use crate::deliveries::read_present;
use crate::workload;

/// What the rights are needed for.
const PURPOSE: &str = "install the hub's side of an add-on";
/// How many objects are read at once.
const AT_ONCE: usize = 8;
/// Time between two looks where no watch tells of changes.
const PAUSE: Duration = Duration::from_secs(1);

/// What is wanted.
#[derive(Clone, Debug)]
pub struct HubAddOnRequest {
    /// The name by which it is uninstalled.
    pub name: String,
    /// What stands in the files.
    pub content: Content,
    /// The namespace of objects that need one and name none.
    pub namespace: String,
    /// Whether namespaces are made that are not there.
    pub create_namespace: bool,
    /// Whether objects that others have written are changed.
    pub overwrite: bool,
    /// What is done with the plan.
    pub mode: Mode,
    /// Wait until it runs, for so long.
    pub wait: Option<Duration>,
}

/// What an installation came to.
#[derive(Debug)]
pub struct HubAddOnInstalled {
    /// Every object with what became of it.
    pub applied: Vec<Applied>,
    /// Names of the add-ons that it offers to clusters.
    pub addons: Vec<String>,
    /// Whether it runs, or why not; none if nobody waited for it.
    pub running: Option<Result<(), Failure>>,
}

/// The plan for a hub at which nobody looks: of kinds that neither Kubernetes nor the files define it is not known whether
/// they need a namespace.
///
/// # Errors
/// What cannot be in an add-on.
pub fn new_hub_addon(request: &HubAddOnRequest, narrator: &dyn Narrator) -> Result<Plan, Failure> {
    let HubAddOnRequest { name, content, create_namespace, .. } = request;
    tell_left_out(content, narrator);
    let Settled { mut manifests, unsure } = settled(content, &request.namespace, &Kinds::of(content))?;
    if !unsure.is_empty() {
        narrator.tell(Event::note(format!(
            "whether these need a namespace only the hub knows, so they stand as they are written: {}",
            some(&unsure)
        )));
    }
    if *create_namespace {
        // Every hub has the one of the operators.
        let missing = namespaces(&manifests).into_iter().filter(|one| one != names::OPERATOR);
        let missing: Vec<Manifest> = missing.map(|one| namespace(&one)).collect();
        manifests.extend(missing);
    }
    let manifests: Vec<Manifest> = manifests.iter().map(|manifest| labelled(manifest, name, false)).collect();
    Ok(plan(&manifests))
}

/// Installs the hub's side of an add-on, or does with its plan what the request says. `each` hears of every object.
///
/// # Errors
/// What cannot be in an add-on; the rights that are missing; a cluster that is no hub, or does not serve a kind; a namespace
/// that is not there; a refusal, if an object is somebody else's; the failure of a request, what was applied before it stays.
pub async fn install_hub_addon(
    hub: &Cluster,
    request: &HubAddOnRequest,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<HubAddOnInstalled, Failure> {
    let HubAddOnRequest { name, content, mode, .. } = request;
    tell_left_out(content, narrator);
    narrator.tell(Event::now(format!("looking at {}", hub.label())));
    let (mut manifests, unserved) = settle(hub, request).await?;
    if mode.changes() && unserved.is_empty() {
        narrator.tell(Event::now("checking your rights"));
        access::require(hub, PURPOSE, &rights(name, &manifests)).await?;
    }
    definitions(hub, std::slice::from_ref(name)).await?;
    if !unserved.is_empty() {
        let sentence =
            format!("neither the hub nor the files define {} ({}): nothing was changed", some(&unserved), hub.label());
        return Err(Failure::new(Reason::KindNotServed, sentence)
            .hint("install what defines it first, or put its CustomResourceDefinition into the files"));
    }
    let made = missing_namespaces(hub, request, &manifests).await?;
    if mode.changes() && !made.is_empty() {
        access::require(hub, PURPOSE, &access::to_apply(&plan(&made))).await?;
    }
    manifests.extend(made);
    let found = read_present(hub, &manifests, AT_ONCE).await?;
    let (wanted, mut applied) = sort_out(found, request)?;
    applied.iter().for_each(each);
    applied.extend(carry_out(hub, request, wanted, narrator, each).await?);
    let offered = |manifest: &&Manifest| Rank::of(manifest.group(), manifest.kind()) == Rank::AddOns;
    let addons = manifests.iter().filter(offered).map(|manifest| manifest.name().to_owned()).collect();
    let running = match request.wait.filter(|_| mode.changes()) {
        Some(timeout) => Some(running(hub, name, &manifests, timeout, narrator).await),
        None => None,
    };
    Ok(HubAddOnInstalled { applied, addons, running })
}

fn tell_left_out(content: &Content, narrator: &dyn Narrator) {
    if !content.left_out().is_empty() {
        narrator.tell(Event::note(format!(
            "left out, as Helm applies them at another moment than an installation: {}",
            some(content.left_out())
        )));
    }
}

/// The objects with their kinds, and kinds that neither the hub nor the files know.
async fn settle(hub: &Cluster, request: &HubAddOnRequest) -> Result<(Vec<Manifest>, Vec<String>), Failure> {
    let HubAddOnRequest { content, namespace, .. } = request;
    let mut kinds = Kinds::of(content);
    let missing = kinds.missing(content);
    let mut unserved = Vec::new();
    if !missing.is_empty() {
        for ((api_version, kind), served) in missing.iter().zip(contents::kinds(hub, &missing).await?) {
            match served {
                Some(known) => kinds.learn(api_version, kind, known),
                None => unserved.push(format!("{kind} of {api_version}")),
            }
        }
    }
    Ok((settled(content, namespace, &kinds)?.manifests, unserved))
}

fn rights(name: &str, manifests: &[Manifest]) -> Vec<Right> {
    let mut rights = access::to_apply(&plan(manifests));
    rights.push(Right::new("get", "addon.open-cluster-management.io", "clustermanagementaddons").on(name));
    rights.extend(namespaces(manifests).iter().map(|one| Right::new("get", "", "namespaces").on(one)));
    rights
}

/// Namespaces that objects need, and that are to be made.
async fn missing_namespaces(
    hub: &Cluster,
    request: &HubAddOnRequest,
    manifests: &[Manifest],
) -> Result<Vec<Manifest>, Failure> {
    let needed: Vec<Manifest> = namespaces(manifests).iter().map(|one| namespace(one)).collect();
    let found = read_present(hub, &needed, AT_ONCE).await?;
    let missing: Vec<Manifest> =
        found.into_iter().filter(|found| found.live.is_none()).map(|found| found.manifest).collect();
    if missing.is_empty() || request.create_namespace {
        return Ok(missing);
    }
    let names: Vec<String> = missing.iter().map(|one| one.name().to_owned()).collect();
    let sentence = format!(
        "objects are to be in namespaces that are not there ({}): {}; nothing was changed",
        hub.label(),
        some(&names)
    );
    Err(Failure::new(Reason::NotFound, sentence).hint(Remedy::CreateNamespace))
}

/// What is applied, each object with what there is, and what stays because it is somebody else's and says the same.
fn sort_out(found: Vec<Found>, request: &HubAddOnRequest) -> Result<(Vec<Found>, Vec<Applied>), Failure> {
    let (mut wanted, mut kept) = (Vec::new(), Vec::new());
    let (mut refused, mut of_another) = (Vec::new(), false);
    for Found { manifest, live } in found {
        let mut apply = |was_there: bool, live: Option<Value>| {
            wanted.push(Found { manifest: labelled(&manifest, &request.name, was_there), live });
        };
        match standing(&manifest, live.as_ref(), &request.name) {
            Standing::New | Standing::Ours => apply(false, live),
            Standing::Shared => apply(true, live),
            Standing::Theirs(_) if request.overwrite => apply(true, live),
            Standing::Same(whose) => {
                kept.push(row(manifest, Outcome::Kept(format!("it {whose}, and will stay when the add-on goes"))));
            }
            Standing::Theirs(whose) => refused.push(format!("{} {whose}", told(&manifest))),
            Standing::Another(other) => {
                of_another = true;
                refused.push(format!("{} belongs to hub add-on {other:?}", told(&manifest)));
            }
        }
    }
    let Some((first, more)) = refused.split_first() else { return Ok((wanted, kept)) };
    let failure = Failure::refused(format!("{first} and says something else: nothing was changed"));
    let failure = more.iter().fold(failure, Failure::because);
    Err(if of_another {
        failure.hint("leave it out of the files of one of the two, or make both say the same")
    } else {
        failure.hint(Remedy::Overwrite)
    })
}

fn told(manifest: &Manifest) -> String {
    match manifest.namespace() {
        Some(namespace) => format!("{} {namespace}/{}", manifest.kind(), manifest.name()),
        None => format!("{} {}", manifest.kind(), manifest.name()),
    }
}

async fn carry_out(
    hub: &Cluster,
    request: &HubAddOnRequest,
    wanted: Vec<Found>,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Vec<Applied>, Failure> {
    let manifests: Vec<Manifest> = wanted.iter().map(|found| found.manifest.clone()).collect();
    let plan = plan(&manifests);
    let dry_run = request.mode.dry_run();
    if dry_run == DryRun::Client {
        let live = |planned: &Manifest| {
            wanted.iter().find(|found| found.manifest == *planned).and_then(|found| found.live.clone())
        };
        let try_one = |planned: &Manifest| {
            let before = live(planned);
            let outcome = tried(planned, before.as_ref());
            let applied = Applied { manifest: planned.clone(), outcome, before, after: planned.body().clone() };
            each(&applied);
            applied
        };
        return Ok(plan.objects().map(try_one).collect());
    }
    let mut taken = Vec::new();
    let note = |applied: &Applied| {
        each(applied);
        if dry_run == DryRun::No && was_taken(applied, &request.name) {
            taken.push(applied.manifest.clone());
        }
    };
    let applied = apply::plan(hub, &plan, dry_run, narrator, note).await;
    // Also where the plan has failed half-way: the next run would take them for its own.
    let given_back = give_back(hub, &request.name, &taken, narrator).await;
    let applied = applied?;
    given_back.map(|()| applied)
}

/// Whether an object was changed that somebody has made between the look and the apply.
fn was_taken(applied: &Applied, name: &str) -> bool {
    let Applied { manifest, outcome, before, .. } = applied;
    let is_noted = manifest.body()["metadata"]["annotations"].get(WAS_THERE).is_some();
    let was_theirs = before.as_ref().is_some_and(|before| !is_marked(before, name));
    was_theirs && !is_noted && !matches!(outcome, Outcome::Kept(_))
}

/// Notes down of these objects that somebody else had made them: they are not deleted with the add-on.
async fn give_back(hub: &Cluster, name: &str, taken: &[Manifest], narrator: &dyn Narrator) -> Result<(), Failure> {
    for manifest in taken {
        apply::one(hub, &labelled(manifest, name, true), DryRun::No).await?;
        narrator.tell(Event::warning(format!(
            "somebody else has made {} meanwhile: it was changed, and will stay when the add-on goes",
            told(manifest)
        )));
    }
    Ok(())
}

/// Waits until the add-ons are offered and every Deployment has rolled out.
async fn running(
    hub: &Cluster,
    name: &str,
    manifests: &[Manifest],
    timeout: Duration,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let offered: Vec<&Manifest> =
        manifests.iter().filter(|one| Rank::of(one.group(), one.kind()) == Rank::AddOns).collect();
    let is_deployment = |one: &&Manifest| (one.group(), one.kind()) == ("apps", "Deployment");
    let place = |one: &Manifest| (one.namespace().unwrap_or_default().to_owned(), one.name().to_owned());
    let deployments: Vec<(String, String)> = manifests.iter().filter(is_deployment).map(place).collect();
    let mut spaces: Vec<&String> = deployments.iter().map(|(namespace, _)| namespace).collect();
    order::sort(&mut spaces);
    spaces.dedup();
    let triggers = spaces.into_iter().fold(Triggers::default(), |triggers, namespace| {
        triggers.of(workload::deployments(hub, namespace), WatchParams::default())
    });
    let doing = format!("waiting until hub add-on {name:?} runs");
    until_triggered(&doing, Instant::now() + timeout, PAUSE, triggers, narrator, async || {
        for one in &offered {
            if apply::read(hub, one).await?.is_none() {
                return Ok(Check::NotYet(format!("there is no {}", told(one))));
            }
        }
        for (namespace, deployment) in &deployments {
            let health = workload::deployment(hub, namespace, deployment).await?;
            if let Some(because) = health.because() {
                return Ok(Check::NotYet(format!("Deployment {namespace}/{deployment}: {because}")));
            }
        }
        Ok(Check::Ready(()))
    })
    .await
}
