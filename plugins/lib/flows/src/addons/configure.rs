//! Configurations that people have add-ons refer to, or not any more.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use ocm_api::addon::AddOnConfig;
use ocm_api::{ClusterManagementAddOn, ManagedClusterAddOn, Manifest};
use ocm_core::addon::{
    AddOnOptions, Configured, Place, Unwanted, addon_without, definition_without, kind_and_object, manifest, referring,
};
use ocm_core::leave::row;
use ocm_core::plan::{Applied, Mode, Plan, Stage};
use ocm_core::{DryRun, Event, Failure, Narrator, Outcome, Reason};
use ocm_kube::access::{self, Right};
use ocm_kube::{Cluster, apply};
use serde_json::{Value, json};

use super::effect::until_in_effect;
use super::enable::require_taken;
use super::referrers::{defined, on_clusters, place_told};
use crate::cluster_sets::named;
use crate::deliveries::require_accepted;
use crate::objects::{Sought, objects};

const GROUP: &str = "addon.open-cluster-management.io";
/// How many objects are changed at once.
const AT_ONCE: usize = 8;
/// Each right is asked for one by one: of more objects, for all at once.
const ONE_BY_ONE: usize = 10;
/// How often an object is read and changed that others change at the same time.
const TRIES: u32 = 8;

/// What refers to the configurations.
#[derive(Clone, Debug)]
pub enum Referrer {
    /// The add-ons of these clusters.
    Clusters(Vec<String>),
    /// The definition of the add-on.
    Definition(Place),
}

/// What is done.
#[derive(Clone, Debug)]
pub enum Change {
    /// They refer to these, each in the place of the one of its kind.
    Set(Vec<AddOnConfig>),
    /// They do not refer to these any more.
    Unset(Vec<Unwanted>),
}

/// What is wanted.
#[derive(Clone, Debug)]
pub struct ConfigRequest {
    /// Name of the add-on.
    pub name: String,
    /// What refers to the configurations.
    pub referrer: Referrer,
    /// What is done.
    pub change: Change,
    /// What is done with the plan.
    pub mode: Mode,
    /// Wait until it is in effect, for so long.
    pub wait: Option<Duration>,
}

/// What refers to configurations, as it is to be and as it is.
#[derive(Clone, Debug)]
pub struct ConfigPlan {
    /// As it is to be.
    pub plan: Plan,
    /// As it is, in the same order.
    lives: Vec<Value>,
}

impl ConfigRequest {
    /// The clusters that are named; none: all.
    fn clusters(&self) -> &[String] {
        match &self.referrer {
            Referrer::Clusters(names) => names,
            Referrer::Definition(_) => &[],
        }
    }

    /// A live object of what refers, without what is taken away.
    fn without(&self, live: &Value, unwanted: &[Unwanted]) -> Manifest {
        match &self.referrer {
            Referrer::Clusters(_) => {
                let cluster = live["metadata"]["namespace"].as_str();
                let spec = json!({"spec": addon_without(live, unwanted)});
                Manifest::with::<ManagedClusterAddOn>(&named(cluster, &self.name), spec)
            }
            Referrer::Definition(place) => {
                let spec = json!({"spec": definition_without(live, place, unwanted)});
                Manifest::with::<ClusterManagementAddOn>(&named(None, &self.name), spec)
            }
        }
    }

    /// What keeps a configuration from being in effect that the request is about; none if nothing does.
    fn why_not(&self, one: &Configured) -> Option<String> {
        let is_meant = match (&self.change, &self.referrer) {
            (Change::Set(configs), Referrer::Definition(_)) => configs
                .iter()
                .any(|config| kind_and_object(config) == (one.resource.clone(), one.effective.object.clone())),
            (Change::Set(configs), Referrer::Clusters(_)) => {
                configs.iter().any(|config| kind_and_object(config).0 == one.resource)
            }
            (Change::Unset(unwanted), _) => unwanted.iter().any(|unwanted| unwanted.kind() == one.resource),
        };
        one.why.clone().filter(|_| is_meant)
    }
}

/// Looks at an add-on and at what it is to refer to, and plans what refers to it.
///
/// # Errors
/// A refusal, if the add-on is not defined on the hub, is not on a cluster, or does not take a configuration;
/// [`Reason::NotFound`] for a configuration that is not there; the failure of a request.
pub async fn plan_configure(
    hub: &Cluster,
    request: &ConfigRequest,
    narrator: &dyn Narrator,
) -> Result<ConfigPlan, Failure> {
    let ConfigRequest { name, referrer, change, .. } = request;
    narrator.tell(Event::now(format!("looking at add-on {name:?} ({})", hub.label())));
    let names = [name.clone()];
    let mut lives: Vec<Value> = defined(hub, &names).await?.into_iter().map(|(_, definition)| definition).collect();
    for definition in &lives {
        if let Change::Set(configs) = change {
            require_taken(name, definition, configs)?;
        }
        if let Referrer::Definition(place) = referrer {
            place_told(name, definition, place)?;
        }
    }
    if let Change::Set(configs) = change {
        for config in configs {
            require_there(hub, config, narrator).await?;
        }
    }
    if let Referrer::Clusters(clusters) = referrer {
        require_accepted(hub, clusters).await?;
        lives = on_clusters(hub, name, clusters).await?.into_iter().map(|(_, live)| live).collect();
    }
    let of = |live: &Value| match (change, referrer) {
        (Change::Set(configs), Referrer::Clusters(_)) => {
            let options = AddOnOptions { configs: configs.clone(), ..AddOnOptions::default() };
            manifest(name, live["metadata"]["namespace"].as_str().unwrap_or_default(), &options, Some(live))
        }
        (Change::Set(configs), Referrer::Definition(place)) => referring(name, live, place, configs),
        (Change::Unset(unwanted), _) => request.without(live, unwanted),
    };
    let plan = Plan::new([Stage::new("add-ons", lives.iter().map(of).collect())]);
    Ok(ConfigPlan { plan, lives })
}

/// Makes sure that there is an object that an add-on is to refer to: with one that is missing, its rollout would stand still.
/// Of one that may not be read it is told that it is not known.
async fn require_there(hub: &Cluster, config: &AddOnConfig, narrator: &dyn Narrator) -> Result<(), Failure> {
    let (kind, object) = kind_and_object(config);
    let found = match version_of(hub, config).await? {
        None => Ok(Vec::new()),
        Some(api_version) => {
            let (resource, namespace) = (config.resource.clone(), config.namespace.clone());
            let sought = Sought { api_version, resource, namespace, name: Some(config.name.clone()) };
            objects(hub, &sought).await
        }
    };
    match found {
        Ok(all) if !all.is_empty() => Ok(()),
        Err(failure) if failure.reason == Reason::Forbidden => {
            narrator.tell(Event::note(format!("it cannot be told whether there is {kind} {object}: {failure}")));
            Ok(())
        }
        Err(failure) if failure.reason != Reason::KindNotServed => Err(failure),
        Ok(_) | Err(_) => {
            let sentence = format!("the hub has no {kind} {object}: nothing was changed");
            Err(Failure::new(Reason::NotFound, sentence)
                .hint(format!("make it first, or see which there are: kubectl get {kind} -A")))
        }
    }
}

/// Group and version by which the hub serves a kind of configuration; none if it does not.
async fn version_of(hub: &Cluster, config: &AddOnConfig) -> Result<Option<String>, Failure> {
    let AddOnConfig { group, resource, .. } = config;
    match group.as_str() {
        "" => return Ok(Some("v1".to_owned())),
        GROUP => return Ok(Some(format!("{GROUP}/v1alpha1"))),
        _ => {}
    }
    match kube::discovery::group(&hub.client, group).await {
        Ok(found) => {
            let all = found.resources_by_stability();
            Ok(all.into_iter().find(|(kind, _)| kind.plural == *resource).map(|(kind, _)| kind.api_version))
        }
        Err(kube::Error::Discovery(_)) => Ok(None),
        Err(error) => Err(hub.explain(format_args!("see which kinds {group} has"), error)),
    }
}

/// Carries out a plan, or does with it what the request says. `each` hears of every object.
///
/// # Errors
/// The rights that are missing; the first failure of a request, what was changed before it stays; [`Reason::TimedOut`] if it
/// waits and the configuration is not in effect in time.
pub async fn configure(
    hub: &Cluster,
    request: &ConfigRequest,
    planned: &ConfigPlan,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Vec<Applied>, Failure> {
    let ConfigRequest { name, change, mode, wait, .. } = request;
    let ConfigPlan { plan, lives } = planned;
    if mode.changes() {
        narrator.tell(Event::now("checking your rights"));
        access::require(hub, "configure add-ons", &rights(plan)).await?;
    }
    let applied = match change {
        Change::Set(_) => apply::plan(hub, plan, mode.dry_run(), narrator, each).await?,
        Change::Unset(unwanted) => unset(hub, (request, unwanted), lives, narrator, each).await?,
    };
    if let Some(timeout) = wait.filter(|_| mode.changes()) {
        let names = [name.clone()];
        let why_not = |_: &str, one: &Configured| request.why_not(one);
        until_in_effect(hub, (names.as_slice(), request.clusters()), &why_not, timeout, narrator).await?;
    }
    Ok(applied)
}

/// What is needed to change what refers: it is there already.
fn rights(plan: &Plan) -> Vec<Right> {
    let kinds: BTreeSet<&str> = plan.objects().map(Manifest::plural).collect();
    if plan.objects().count() > ONE_BY_ONE {
        return kinds
            .into_iter()
            .flat_map(|plural| ["get", "patch"].map(|verb| Right::new(verb, GROUP, plural)))
            .collect();
    }
    access::to_apply(plan).into_iter().filter(|right| right.verb != "create").collect()
}

/// Takes references away from objects that were looked at. What others have written goes, too, so it is no apply.
async fn unset(
    hub: &Cluster,
    (request, unwanted): (&ConfigRequest, &[Unwanted]),
    lives: &[Value],
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Vec<Applied>, Failure> {
    let dry_run = request.mode.dry_run();
    narrator.tell(Event::now(if dry_run == DryRun::No { "changing add-ons" } else { "comparing add-ons" }));
    let mut answers =
        futures::stream::iter(lives).map(|live| unset_one(hub, (request, unwanted), live)).buffered(AT_ONCE);
    let mut all = Vec::new();
    while let Some(answer) = answers.next().await {
        let applied = answer?;
        each(&applied);
        if dry_run == DryRun::No && applied.outcome.is_change() {
            narrator.tell(Event::done(format!("{} {}", applied.manifest.reference(), applied.outcome.word())));
        }
        all.push(applied);
    }
    Ok(all)
}

async fn unset_one(
    hub: &Cluster,
    (request, unwanted): (&ConfigRequest, &[Unwanted]),
    live: &Value,
) -> Result<Applied, Failure> {
    let (mut live, mut tries) = (live.clone(), 1);
    loop {
        let manifest = request.without(&live, unwanted);
        if manifest.body()["spec"] == live["spec"] {
            return Ok(Applied { before: Some(live.clone()), after: live, ..row(manifest, Outcome::Unchanged) });
        }
        match apply::changed(hub, &manifest, live, request.mode.dry_run()).await {
            // The hub writes to it while it rolls something out.
            Err(failure) if failure.reason == Reason::Conflict && tries < TRIES => {
                live = apply::read(hub, &manifest).await?.ok_or(failure)?;
                tries += 1;
            }
            answer => return answer,
        }
    }
}
