//! Proxies that people set for the agents of add-ons: AddOnDeploymentConfigs, and what refers to them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ocm_api::addon::AddOnConfig;
use ocm_api::{ManagedClusterAddOn, Manifest};
use ocm_core::addon::proxy::{
    CONFIG_NAME, ProxyOptions, api_server_behind_proxy, config_kind, config_reference, proxy_config, service_addresses,
};
use ocm_core::addon::{
    AddOnOptions, Configured, Level, Place, configurations, manifest, of_kind, placements, referred, referring,
};
use ocm_core::cluster_sets::decided_for;
use ocm_core::order::Collect as _;
use ocm_core::plan::{Applied, Found, Mode, Plan, Stage};
use ocm_core::{Event, Failure, Narrator, Outcome, Reason, Remedy};
use ocm_kube::access::{self, Right};
use ocm_kube::{Cluster, apply};
use serde_json::Value;

use super::definitions;
use super::effect::{rights_to_see, until_in_effect};
use super::enable::require_taken;
use super::referrers::{defined, on_clusters, place_told};
use super::status;
use super::status::{AddOnStatus, decided};
use crate::deliveries::{read_present, require_accepted};
use crate::objects::{Sought, objects};

const GROUP: &str = "addon.open-cluster-management.io";
/// How many objects are read at once.
const AT_ONCE: usize = 8;
/// Each right is asked for one by one: of more objects, for all at once.
const ONE_BY_ONE: usize = 10;

/// What refers to the AddOnDeploymentConfig.
#[derive(Clone, Debug)]
pub enum Target {
    /// The add-ons of these clusters.
    Clusters {
        /// Their names.
        names: Vec<String>,
        /// Namespace and name of the AddOnDeploymentConfig that all share; none: each has one in its namespace.
        config: Option<(String, String)>,
    },
    /// The definitions of the add-ons.
    Definition {
        /// Where in them.
        place: Place,
        /// Namespace and name of the AddOnDeploymentConfig.
        config: (String, String),
    },
}

/// What is wanted.
#[derive(Clone, Debug)]
pub struct ProxyRequest {
    /// Names of add-ons.
    pub names: Vec<String>,
    /// What refers to it.
    pub target: Target,
    /// What is said of proxies.
    pub options: ProxyOptions,
    /// What is done with the plan.
    pub mode: Mode,
    /// Wait until it is in effect, for so long.
    pub wait: Option<Duration>,
}

impl Target {
    /// The configurations, each once.
    fn references(&self) -> Vec<AddOnConfig> {
        match self {
            Self::Clusters { names, config: None } => {
                names.iter().map(|cluster| config_reference(cluster, CONFIG_NAME)).collect()
            }
            Self::Clusters { config: Some((namespace, name)), .. }
            | Self::Definition { config: (namespace, name), .. } => vec![config_reference(namespace, name)],
        }
    }

    /// The configuration that the add-ons of a cluster refer to.
    fn of_cluster(&self, cluster: &str) -> AddOnConfig {
        match self {
            Self::Clusters { config: None, .. } => config_reference(cluster, CONFIG_NAME),
            Self::Clusters { config: Some((namespace, name)), .. }
            | Self::Definition { config: (namespace, name), .. } => config_reference(namespace, name),
        }
    }

    /// The clusters that are named; none: all.
    fn clusters(&self) -> &[String] {
        match self {
            Self::Clusters { names, .. } => names,
            Self::Definition { .. } => &[],
        }
    }
}

/// Addresses of a managed cluster's API server as its pods dial it, and the networks of its Services, as far as they may be
/// read.
///
/// # Errors
/// When the Service cannot be read.
pub async fn services_of(cluster: &Cluster) -> Result<Vec<String>, Failure> {
    let sought = |api_version: &str, resource: &str, name: Option<&str>| Sought {
        api_version: api_version.to_owned(),
        resource: resource.to_owned(),
        namespace: name.map(|_| "default".to_owned()),
        name: name.map(str::to_owned),
    };
    let service = objects(cluster, &sought("v1", "services", Some("kubernetes"))).await?;
    let networks = match objects(cluster, &sought("networking.k8s.io/v1", "servicecidrs", None)).await {
        // Kubernetes has them since 1.33, and the address alone is enough.
        Err(failure) if matches!(failure.reason, Reason::KindNotServed | Reason::NotFound | Reason::Forbidden) => {
            Vec::new()
        }
        networks => networks?,
    };
    Ok(service_addresses(service.first(), &networks))
}

/// Looks at add-ons, and plans the AddOnDeploymentConfigs and what refers to them.
///
/// # Errors
/// A refusal, if an add-on is not defined on the hub, is not on a cluster, takes no AddOnDeploymentConfig or refers to
/// another one; a usage failure, if a proxy is to be taken away where none was ever set; the failure of a request.
pub async fn plan_proxy(hub: &Cluster, request: &ProxyRequest, narrator: &dyn Narrator) -> Result<Plan, Failure> {
    let ProxyRequest { names, target, options, .. } = request;
    narrator.tell(Event::now(format!("looking at add-ons ({})", hub.label())));
    let definitions = known(hub, names, &target.references()).await?;
    let referring = match target {
        Target::Clusters { names: clusters, .. } => {
            require_accepted(hub, clusters).await?;
            of_clusters(hub, (clusters.as_slice(), target), &definitions, narrator).await?
        }
        Target::Definition { place, config: (namespace, name) } => {
            of_definitions(&definitions, place, &config_reference(namespace, name))?
        }
    };
    let draft = |config: &AddOnConfig| {
        proxy_config(config.namespace.as_deref().unwrap_or_default(), &config.name, options, None)
    };
    let drafts: Vec<Manifest> = target.references().iter().map(draft).collect();
    let mut configs = Vec::new();
    for Found { manifest, live } in read_present(hub, &drafts, AT_ONCE).await? {
        let namespace = manifest.namespace().unwrap_or_default();
        if live.is_none() && options.only_takes_away() {
            return Err(nothing_to_take_away(namespace, manifest.name()));
        }
        let planned = proxy_config(namespace, manifest.name(), options, live.as_ref());
        if let Some(why) = api_server_behind_proxy(&planned, live.as_ref()) {
            let told = format!("AddOnDeploymentConfig {namespace}/{}: {why}", manifest.name());
            narrator.tell(Event::warning(format!(
                "{told}; see the address there: kubectl get service kubernetes -n default"
            )));
        }
        configs.push(planned);
    }
    Ok(Plan::new([Stage::new("configurations", configs), Stage::new("add-ons", referring)]))
}

/// An empty proxy where there is none: more likely a variable that is not set than what somebody wants.
fn nothing_to_take_away(namespace: &str, name: &str) -> Failure {
    Failure::usage(format!(
        "the proxy is empty, and there is no AddOnDeploymentConfig {namespace}/{name} that one could be taken away from: nothing \
         was changed"
    ))
    .hint("say the URL of the proxy; if the add-ons have one by another AddOnDeploymentConfig, name that one")
}

/// The definitions of add-ons, each with its name, if they take AddOnDeploymentConfigs.
async fn known(hub: &Cluster, names: &[String], configs: &[AddOnConfig]) -> Result<Vec<(String, Value)>, Failure> {
    let all = defined(hub, names).await?;
    for (name, definition) in &all {
        require_taken(name, definition, configs.get(..1).unwrap_or_default())?;
    }
    Ok(all)
}

async fn of_clusters(
    hub: &Cluster,
    (clusters, target): (&[String], &Target),
    definitions: &[(String, Value)],
    narrator: &dyn Narrator,
) -> Result<Vec<Manifest>, Failure> {
    let mut all = Vec::new();
    for (name, definition) in definitions {
        let (decisions, _) = decided(hub, &placements(definition)).await?;
        let selected = decided_for(&decisions);
        for (cluster, live) in on_clusters(hub, name, clusters).await? {
            let config = target.of_cluster(&cluster);
            refuse_other(
                of_kind(&live["spec"]["configs"], &config).as_ref(),
                &config,
                &format!("add-on {name:?} of cluster {cluster:?}"),
            )?;
            let addon: ManagedClusterAddOn = serde_json::from_value(live.clone()).unwrap_or_default();
            let effective =
                configurations(definition, &addon, &selected).into_iter().map(|one| (one.resource, one.effective));
            for (_, replaced) in effective.filter(|(kind, one)| *kind == config_kind() && one.level != Level::Cluster) {
                narrator.tell(Event::warning(format!(
                    "of add-on {name:?} on cluster {cluster:?} it takes the place of AddOnDeploymentConfig {} ({}), with all \
                     that this one says",
                    replaced.object, replaced.level
                )));
            }
            let options = AddOnOptions { configs: vec![config], ..AddOnOptions::default() };
            all.push(manifest(name, &cluster, &options, Some(&live)));
        }
    }
    Ok(all)
}

fn of_definitions(
    definitions: &[(String, Value)],
    place: &Place,
    config: &AddOnConfig,
) -> Result<Vec<Manifest>, Failure> {
    let mut all = Vec::new();
    for (name, definition) in definitions {
        let what = place_told(name, definition, place)?;
        refuse_other(referred(definition, place, config).as_ref(), config, &what)?;
        all.push(referring(name, definition, place, std::slice::from_ref(config)));
    }
    Ok(all)
}

/// An add-on takes one of a kind: another one would lose all that it says.
fn refuse_other(there: Option<&AddOnConfig>, config: &AddOnConfig, what: &str) -> Result<(), Failure> {
    let Some(other) = there.filter(|there| *there != config) else { return Ok(()) };
    let object = match &other.namespace {
        Some(namespace) => format!("{namespace}/{}", other.name),
        None => other.name.clone(),
    };
    let sentence = format!("{what} refers to AddOnDeploymentConfig {object}, and takes one: nothing was changed");
    Err(Failure::refused(sentence).hint(Remedy::IntoConfiguration(object)))
}

/// Applies a plan, or does with it what the request says. `each` hears of every object.
///
/// # Errors
/// The rights that are missing; the first failure of a request, what was applied before it stays; [`Reason::TimedOut`] if
/// it waits and the configuration is not in effect in time.
pub async fn configure_proxy(
    hub: &Cluster,
    request: &ProxyRequest,
    plan: &Plan,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Vec<Applied>, Failure> {
    let ProxyRequest { mode, wait, .. } = request;
    if mode.changes() {
        narrator.tell(Event::now("checking your rights"));
        let mut rights = rights(plan);
        if wait.is_some() && matches!(request.target, Target::Definition { .. }) {
            let all = definitions(hub, &request.names).await?;
            rights.extend(rights_to_see(all.iter().filter_map(|(_, definition)| definition.as_ref())));
        }
        access::require(hub, "set the proxies of add-ons", &rights).await?;
    }
    let wait = wait.filter(|_| mode.changes());
    let before = match wait {
        Some(_) => desired(hub, request).await?,
        None => BTreeMap::new(),
    };
    let applied = apply::plan(hub, plan, mode.dry_run(), narrator, each).await?;
    if let Some(timeout) = wait {
        let is_changed =
            |one: &&Applied| one.manifest.kind() == "AddOnDeploymentConfig" && one.outcome == Outcome::Configured;
        let changed: BTreeSet<String> =
            applied.iter().filter(is_changed).map(|one| object_of(&one.manifest)).collect_set();
        let ours: BTreeSet<String> = request.target.references().iter().map(reference).collect_set();
        let of_one = |name: &str, one: &Configured| {
            if one.resource != config_kind() || !ours.contains(&one.effective.object) {
                return None;
            }
            // Of one that has changed, the hub first has to want another hash than before.
            let key = (name.to_owned(), one.cluster.clone());
            let is_old = changed.contains(&one.effective.object) && before.get(&key) == Some(&one.desired);
            one.why.clone().or_else(|| is_old.then(|| "the hub has not read its content yet".to_owned()))
        };
        let why_not = |seen: &AddOnStatus| {
            seen.configurations.iter().find_map(|one| Some((one.cluster.clone(), of_one(&seen.name, one)?)))
        };
        let whose = (request.names.as_slice(), request.target.clusters());
        until_in_effect(hub, whose, &why_not, timeout, narrator).await?;
    }
    Ok(applied)
}

fn reference(config: &AddOnConfig) -> String {
    format!("{}/{}", config.namespace.as_deref().unwrap_or_default(), config.name)
}

fn object_of(manifest: &Manifest) -> String {
    format!("{}/{}", manifest.namespace().unwrap_or_default(), manifest.name())
}

/// What is needed to apply a plan. What refers to a configuration is there already: it is not made.
fn rights(plan: &Plan) -> Vec<Right> {
    if plan.objects().count() > ONE_BY_ONE {
        let configs = ["get", "create", "patch"].map(|verb| Right::new(verb, GROUP, "addondeploymentconfigs"));
        return configs.into_iter().chain([Right::new("patch", GROUP, "managedclusteraddons")]).collect();
    }
    let is_there = |right: &Right| right.resource != "addondeploymentconfigs";
    access::to_apply(plan).into_iter().filter(|right| !(is_there(right) && right.verb == "create")).collect()
}

/// By add-on and cluster, the hash that the hub wants of the configuration.
type Desired = BTreeMap<(String, String), Option<String>>;

async fn desired(hub: &Cluster, request: &ProxyRequest) -> Result<Desired, Failure> {
    let mut all = Desired::new();
    for name in &request.names {
        let found = status(hub, name, request.target.clusters()).await?.configurations.into_iter();
        let of_kind = found.filter(|one| one.resource == config_kind());
        all.extend(of_kind.map(|one| ((name.clone(), one.cluster), one.desired)));
    }
    Ok(all)
}
