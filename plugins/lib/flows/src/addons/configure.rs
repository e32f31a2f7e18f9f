//! Configurations that people have add-ons refer to, or not any more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt;
use ocm_api::addon::AddOnConfig;
use ocm_api::{ClusterManagementAddOn, ManagedClusterAddOn, Manifest};
use ocm_core::addon::{
    AddOnOptions, Configured, Place, TakenAway, Unwanted, addon_loses_template, addon_without,
    definition_loses_template, definition_without, has_default_template, kind_and_object, manifest, placements,
    referring, several_at, several_in, supported,
};
use ocm_core::cluster_sets::decided_for;
use ocm_core::order::Collect as _;
use ocm_core::plan::{Applied, Mode, Plan, Stage};
use ocm_core::{DryRun, Event, Failure, Narrator, Reason, Remedy};
use ocm_kube::access::{self, Right};
use ocm_kube::{Cluster, apply};
use serde_json::{Value, json};

use super::effect::{rights_to_see, until_in_effect};
use super::enable::{refuse_several, require_taken, taken};
use super::referrers::{defined, on_clusters, place_told};
use super::status::{AddOnStatus, decided};
use crate::cluster_sets::named;
use crate::deliveries::require_accepted;
use crate::objects::{Sought, objects};

const GROUP: &str = "addon.open-cluster-management.io";
/// How many objects are changed at once.
const AT_ONCE: usize = 8;
/// Each right is asked for one by one: of more objects, for all at once.
const ONE_BY_ONE: usize = 10;

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
    /// They refer to these, each in the place of the one of its kind that is there.
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
    /// What else decides on what it may be.
    seen: Seen,
}

/// What is known of an add-on besides what refers.
#[derive(Clone, Debug)]
struct Seen {
    /// Its definition.
    definition: Value,
    /// The clusters of each placement, by its namespace and name; only where a template depends on it.
    selected: BTreeMap<String, BTreeSet<String>>,
}

impl ConfigRequest {
    /// The clusters that are named; none: all.
    fn clusters(&self) -> &[String] {
        match &self.referrer {
            Referrer::Clusters(names) => names,
            Referrer::Definition(_) => &[],
        }
    }

    /// What is made of a live object of what refers.
    fn planned(&self, live: &Value, seen: &Seen) -> Result<Manifest, Failure> {
        match &self.change {
            Change::Set(configs) => self.with(live, configs),
            Change::Unset(unwanted) => self.without(live, unwanted, seen),
        }
    }

    /// A live object of what refers, with what is set.
    fn with(&self, live: &Value, configs: &[AddOnConfig]) -> Result<Manifest, Failure> {
        let name = &self.name;
        match &self.referrer {
            Referrer::Clusters(_) => {
                let cluster = live["metadata"]["namespace"].as_str().unwrap_or_default();
                let what = format!("add-on {name:?} of cluster {cluster:?}");
                refuse_several(name, &what, several_in(configs, &live["spec"]["configs"]))?;
                let options = AddOnOptions { configs: configs.to_vec(), ..AddOnOptions::default() };
                Ok(manifest(name, cluster, &options, Some(live)))
            }
            Referrer::Definition(place) => {
                require_taken(name, live, configs)?;
                let what = place_told(name, live, place)?;
                refuse_several(name, &what, several_at(live, place, configs))?;
                Ok(referring(name, live, place, configs))
            }
        }
    }

    /// A live object of what refers, without what is taken away.
    fn without(&self, live: &Value, unwanted: &[Unwanted], seen: &Seen) -> Result<Manifest, Failure> {
        let name = &self.name;
        match &self.referrer {
            Referrer::Clusters(_) => {
                let cluster = live["metadata"]["namespace"].as_str();
                let spec = addon_without(live, unwanted);
                if addon_loses_template(live, &spec, &seen.definition, &seen.selected) {
                    return Err(last_template(name, &format!("cluster {:?}", cluster.unwrap_or_default())));
                }
                Ok(Manifest::with::<ManagedClusterAddOn>(&named(cluster, name), json!({"spec": spec})))
            }
            Referrer::Definition(place) => {
                let spec = definition_without(live, place, unwanted);
                if definition_loses_template(live, place, &spec) {
                    return Err(last_template(name, "clusters"));
                }
                Ok(Manifest::with::<ClusterManagementAddOn>(&named(None, name), json!({"spec": spec})))
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

    /// Why a configuration is not gone that the request takes away; none if it is another one.
    fn why_not_gone(&self, one: &TakenAway) -> Option<String> {
        let Change::Unset(unwanted) = &self.change else { return None };
        unwanted.iter().any(|unwanted| unwanted.kind() == one.resource).then(|| {
            let TakenAway { resource, object, .. } = one;
            format!("{resource} {object}: {}", TakenAway::WHY)
        })
    }

    /// What keeps the request from being in effect, and on which cluster; none if nothing does.
    fn why_not_done(&self, seen: &AddOnStatus) -> Option<(String, String)> {
        let configured = seen.configurations.iter();
        let not_in_effect = configured.filter_map(|one| Some((one.cluster.clone(), self.why_not(one)?)));
        let left = seen.taken_away.iter();
        let mut all = not_in_effect.chain(left.filter_map(|one| Some((one.cluster.clone(), self.why_not_gone(one)?))));
        all.next()
    }

    /// Whether placements may decide what takes effect then.
    fn depends_on_placements(&self) -> bool {
        !matches!((&self.change, &self.referrer), (Change::Set(_), Referrer::Clusters(_)))
    }
}

/// Refuses to take the last template away: the hub's add-on manager looks only after add-ons that have one, and would neither
/// change nor clean up what it has put on clusters.
fn last_template(name: &str, whose: &str) -> Failure {
    let sentence = format!("add-on {name:?} would have no AddOnTemplate on {whose} any more: nothing was changed");
    Failure::refused(sentence)
        .because("the hub looks after none that has no template: it would neither change nor clean up what is there")
        .hint(Remedy::SetTemplate(name.to_owned()))
}

/// Looks at an add-on and at what it is to refer to, and plans what refers to it.
///
/// # Errors
/// A refusal, if the add-on is not defined on the hub, is not on a cluster, does not take a configuration, would lose its last
/// template, or a configuration could take the place of several; [`Reason::NotFound`] for a configuration that is not there; the
/// failure of a request.
pub async fn plan_configure(
    hub: &Cluster,
    request: &ConfigRequest,
    narrator: &dyn Narrator,
) -> Result<ConfigPlan, Failure> {
    let ConfigRequest { name, referrer, change, .. } = request;
    narrator.tell(Event::now(format!("looking at add-on {name:?} ({})", hub.label())));
    let names = [name.clone()];
    let definition =
        defined(hub, &names).await?.into_iter().map(|(_, definition)| definition).next().unwrap_or_default();
    if let Change::Set(configs) = change {
        require_taken(name, &definition, configs)?;
    }
    if let Referrer::Definition(place) = referrer {
        place_told(name, &definition, place)?;
    }
    if let Change::Set(configs) = change {
        for config in configs {
            require_there(hub, config, narrator).await?;
        }
    }
    let lives: Vec<Value> = match referrer {
        Referrer::Clusters(clusters) => {
            require_accepted(hub, clusters).await?;
            on_clusters(hub, name, clusters).await?.into_iter().map(|(_, live)| live).collect()
        }
        Referrer::Definition(_) => vec![definition.clone()],
    };
    let selected = match (change, referrer) {
        (Change::Unset(unwanted), Referrer::Clusters(_))
            if unwanted.iter().any(Unwanted::is_template) && !has_default_template(&definition) =>
        {
            selected(hub, &definition).await?
        }
        _ => BTreeMap::new(),
    };
    let seen = Seen { definition, selected };
    if let Change::Unset(unwanted) = change {
        tell_of_unknown(request, unwanted, (&lives, &seen), narrator);
    }
    let manifests: Vec<Manifest> =
        lives.iter().map(|live| request.planned(live, &seen)).collect::<Result<_, Failure>>()?;
    Ok(ConfigPlan { plan: Plan::new([Stage::new("add-ons", manifests)]), lives, seen })
}

/// Warns of kinds that are to be taken away and that the add-on neither takes nor refers to: nothing happens, and a kind that is
/// mistyped would not be seen.
fn tell_of_unknown(
    request: &ConfigRequest,
    unwanted: &[Unwanted],
    (lives, seen): (&[Value], &Seen),
    narrator: &dyn Narrator,
) {
    let supported = supported(&seen.definition);
    let is_there = |one: &Unwanted| {
        let without = |live: &Value| request.without(live, std::slice::from_ref(one), seen);
        lives.iter().any(|live| without(live).map_or(true, |manifest| manifest.body()["spec"] != live["spec"]))
    };
    let unknown = unwanted.iter().filter(|one| !supported.contains(&one.kind()) && !is_there(one));
    let unknown: Vec<String> = unknown.map(Unwanted::kind).collect();
    if !unknown.is_empty() {
        narrator.tell(Event::warning(format!(
            "add-on {:?} neither takes nor has a configuration of {}; it takes those of: {}",
            request.name,
            unknown.join(", "),
            taken(&seen.definition)
        )));
    }
}

/// The clusters of each placement by which the hub installs an add-on.
async fn selected(hub: &Cluster, definition: &Value) -> Result<BTreeMap<String, BTreeSet<String>>, Failure> {
    match decided(hub, &placements(definition)).await? {
        (decisions, None) => Ok(decided_for(&decisions)),
        (_, Some(unread)) => {
            let sentence = "it cannot be told whether clusters would have a template still: nothing was changed";
            Err(Failure::new(Reason::Forbidden, sentence).because(unread))
        }
    }
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
            Err(Failure::new(Reason::NotFound, sentence).hint(Remedy::MakeConfiguration(kind.to_string())))
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
    let ConfigRequest { name, mode, wait, .. } = request;
    if mode.changes() {
        narrator.tell(Event::now("checking your rights"));
        let mut rights = rights(&planned.plan);
        if wait.is_some() && request.depends_on_placements() {
            rights.extend(rights_to_see(std::iter::once(&planned.seen.definition)));
        }
        access::require(hub, "configure add-ons", &rights).await?;
    }
    let applied = change_all(hub, request, planned, narrator, each).await?;
    if let Some(timeout) = wait.filter(|_| mode.changes()) {
        let names = [name.clone()];
        let why_not = |seen: &AddOnStatus| request.why_not_done(seen);
        until_in_effect(hub, (names.as_slice(), request.clusters()), &why_not, timeout, narrator).await?;
    }
    Ok(applied)
}

/// What is needed to change what refers: it is there already.
fn rights(plan: &Plan) -> Vec<Right> {
    let kinds: BTreeSet<&str> = plan.objects().map(Manifest::plural).collect_set();
    if plan.objects().count() > ONE_BY_ONE {
        return kinds
            .into_iter()
            .flat_map(|plural| ["get", "patch"].map(|verb| Right::new(verb, GROUP, plural)))
            .collect();
    }
    access::to_apply(plan).into_iter().filter(|right| right.verb != "create").collect()
}

/// Changes objects that were looked at, each as it is then.
async fn change_all(
    hub: &Cluster,
    request: &ConfigRequest,
    planned: &ConfigPlan,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Vec<Applied>, Failure> {
    let dry_run = request.mode.dry_run();
    narrator.tell(Event::now(if dry_run == DryRun::No { "changing add-ons" } else { "comparing add-ons" }));
    let ConfigPlan { lives, seen, .. } = planned;
    let answers = futures::stream::iter(lives).map(|live| change_one(hub, request, live, seen)).buffered(AT_ONCE);
    apply::told(answers, dry_run, narrator, each).await
}

/// What is set is applied; what others have written goes, too, of what is unset, so that it is no apply. Either is sent to the
/// version that it was planned for: a list of configurations is replaced as a whole.
async fn change_one(hub: &Cluster, request: &ConfigRequest, live: &Value, seen: &Seen) -> Result<Applied, Failure> {
    let dry_run = request.mode.dry_run();
    let plan = |live: &Value| request.planned(live, seen);
    match request.change {
        Change::Set(_) => apply::planned(hub, live.clone(), &plan, dry_run).await,
        Change::Unset(_) => apply::replanned(hub, live.clone(), &plan, dry_run).await,
    }
}
