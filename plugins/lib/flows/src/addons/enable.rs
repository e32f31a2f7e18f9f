//! Add-ons that people enable on clusters.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use ocm_api::addon::AddOnConfig;
use ocm_api::{ManagedClusterAddOn, Manifest};
use ocm_core::addon::{AddOnOptions, Several, manifest, placements, several_in, supported, unsupported};
use ocm_core::plan::{Applied, Mode, Plan, Stage};
use ocm_core::{DryRun, Event, Failure, Narrator, Reason, Remedy};
use ocm_kube::access::{self, Right};
use ocm_kube::{Cluster, apply};
use serde_json::Value;

use crate::deliveries::{Waited, read_present, require_accepted, send, until_there};
use crate::objects::{Sought, objects};
use crate::observe::registration::not_a_hub;

const GROUP: &str = "addon.open-cluster-management.io";
/// How many definitions are read at once.
const AT_ONCE: usize = 8;
/// Each right is asked for one by one: for a fleet, all clusters at once.
const ONE_BY_ONE: usize = 10;

/// What is wanted.
#[derive(Clone, Debug)]
pub struct EnableRequest {
    /// Names of add-ons.
    pub names: Vec<String>,
    /// Names of clusters.
    pub clusters: Vec<String>,
    /// What is said of them.
    pub options: AddOnOptions,
    /// Whether an add-on may be one that nothing on the hub defines.
    pub without_definition: bool,
    /// What is done with the plan.
    pub mode: Mode,
    /// Wait until they are well, for so long.
    pub wait: Option<Duration>,
    /// How many clusters are worked on at once.
    pub at_once: usize,
}

/// What it came to.
#[derive(Debug)]
pub struct AddOnsEnabled {
    /// What became of each: cluster, name, and the object.
    pub sent: Vec<(String, String, Result<Applied, Failure>)>,
    /// The add-ons that were waited for; none if nobody waited.
    pub waited: Option<Waited<ManagedClusterAddOn>>,
}

impl EnableRequest {
    /// What would be applied where nothing is there yet.
    pub fn plan(&self) -> Plan {
        let of = |cluster: &String| {
            self.names.iter().map(|name| manifest(name, cluster, &self.options, None)).collect::<Vec<Manifest>>()
        };
        Plan::new([Stage::new("add-ons", self.clusters.iter().flat_map(of).collect())])
    }
}

/// Enables add-ons, or does with the plan what the request says. `each` hears of every object in the order of the plan.
///
/// # Errors
/// The rights that are missing; a refusal, if an add-on is not defined on the hub or does not take a configuration, a
/// configuration could take the place of several, or a cluster is not accepted; the failure of a request before anything was
/// sent.
pub async fn enable(
    hub: &Cluster,
    request: &EnableRequest,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<AddOnsEnabled, Failure> {
    let EnableRequest { names, clusters, options, at_once, .. } = request;
    let plan = request.plan();
    if request.mode.changes() {
        narrator.tell(Event::now("checking your rights"));
        access::require(hub, "enable add-ons", &rights(request, &plan)).await?;
    }
    narrator.tell(Event::now(format!("looking at add-ons ({})", hub.label())));
    require_accepted(hub, clusters).await?;
    for (name, definition) in definitions(hub, names).await? {
        check(&name, definition.as_ref(), request, narrator)?;
    }
    let planned: Vec<Manifest> = plan.objects().cloned().collect();
    let found = read_present(hub, &planned, *at_once).await?;
    let manifests = found.iter().map(|found| on_live(&found.manifest, found.live.as_ref(), options));
    let manifests: Vec<Manifest> = manifests.collect::<Result<_, _>>()?;
    let dry_run = request.mode.dry_run();
    let one = async |index: usize, planned: &Manifest| {
        let live = found.get(index).and_then(|found| found.live.clone());
        enable_one(hub, planned, live, options, dry_run).await
    };
    let answers = send(&one, &manifests, (dry_run, *at_once), narrator, each).await;
    let place = |manifest: &Manifest| (manifest.namespace().unwrap_or_default().to_owned(), manifest.name().to_owned());
    let sent = manifests.iter().map(place).zip(answers);
    let sent: Vec<(String, String, Result<Applied, Failure>)> =
        sent.map(|((cluster, name), answer)| (cluster, name, answer)).collect();
    let waited = match request.wait.filter(|_| dry_run == DryRun::No) {
        Some(timeout) => {
            let is_sent = |sent: &&(String, String, Result<Applied, Failure>)| sent.2.is_ok();
            let wanted: Vec<(String, String)> =
                sent.iter().filter(is_sent).map(|(cluster, name, _)| (cluster.clone(), name.clone())).collect();
            Some(until_there(hub, &wanted, timeout, narrator).await)
        }
        None => None,
    };
    Ok(AddOnsEnabled { sent, waited })
}

/// Enables an add-on on a cluster. The list of configurations is replaced as a whole: it is made of exactly the version that it
/// is sent to.
async fn enable_one(
    hub: &Cluster,
    planned: &Manifest,
    live: Option<Value>,
    options: &AddOnOptions,
    dry_run: DryRun,
) -> Result<Applied, Failure> {
    // While others of a fleet had their turn, the hub may have made it.
    let live = match live {
        Some(live) => Some(live),
        None => apply::read(hub, planned).await?,
    };
    let Some(live) = live else { return apply::one(hub, planned, dry_run).await };
    match apply::planned(hub, live, &|live| on_live(planned, Some(live), options), dry_run).await {
        // One that was being deleted is gone now.
        Err(failure) if failure.reason == Reason::NotFound => {
            apply::one(hub, &on_live(planned, None, options)?, dry_run).await
        }
        answer => answer,
    }
}

/// The planned ManagedClusterAddOn, with the configurations that the live one refers to besides.
fn on_live(planned: &Manifest, live: Option<&Value>, options: &AddOnOptions) -> Result<Manifest, Failure> {
    let (name, cluster) = (planned.name(), planned.namespace().unwrap_or_default());
    if let Some(live) = live {
        let several = several_in(&options.configs, &live["spec"]["configs"]);
        refuse_several(name, &format!("add-on {name:?} of cluster {cluster:?}"), several)?;
    }
    Ok(manifest(name, cluster, options, live))
}

fn rights(request: &EnableRequest, plan: &Plan) -> Vec<Right> {
    let EnableRequest { names, clusters, .. } = request;
    let look = Right::new("get", "cluster.open-cluster-management.io", "managedclusters");
    let defined = names.iter().map(|name| Right::new("get", GROUP, "clustermanagementaddons").on(name));
    if names.len() * clusters.len() > ONE_BY_ONE {
        let of = |verb| Right::new(verb, GROUP, "managedclusteraddons");
        return [look].into_iter().chain(defined).chain(["get", "create", "patch"].map(of)).collect();
    }
    let looks = clusters.iter().map(|cluster| look.clone().on(cluster));
    looks.chain(defined).chain(access::to_apply(plan)).collect()
}

/// The ClusterManagementAddOns of these names, each with its name; none where there is none.
///
/// # Errors
/// The failure of a request, also of one to a cluster that is no hub.
pub async fn definitions(hub: &Cluster, names: &[String]) -> Result<Vec<(String, Option<Value>)>, Failure> {
    futures::stream::iter(names).map(|name| definition(hub, name)).buffered(AT_ONCE).try_collect().await
}

async fn definition(hub: &Cluster, name: &str) -> Result<(String, Option<Value>), Failure> {
    let sought = Sought {
        api_version: format!("{GROUP}/v1alpha1"),
        resource: "clustermanagementaddons".to_owned(),
        namespace: None,
        name: Some(name.to_owned()),
    };
    let found = objects(hub, &sought).await.map_err(|failure| match failure.reason {
        Reason::KindNotServed => not_a_hub(&hub.server),
        _ => failure,
    })?;
    Ok((name.to_owned(), found.into_iter().next()))
}

/// Whether an add-on can be enabled as it is defined.
fn check(
    name: &str,
    definition: Option<&Value>,
    request: &EnableRequest,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let Some(definition) = definition else {
        let sentence = format!("the hub has no ClusterManagementAddOn {name:?}");
        if request.without_definition {
            narrator.tell(Event::warning(format!("{sentence}: unless something else installs it, nothing happens")));
            return Ok(());
        }
        return Err(Failure::refused(format!("{sentence}: nobody would install it, and nothing was changed"))
            .hint("see which there are: kubectl get clustermanagementaddons")
            .hint(Remedy::WithoutDefinition));
    };
    require_taken(name, definition, &request.options.configs)?;
    tell_of_placements(name, definition, "takes it from clusters that these do not select", narrator);
    Ok(())
}

/// Refuses configurations of kinds that an add-on does not take.
pub(super) fn require_taken(name: &str, definition: &Value, configs: &[AddOnConfig]) -> Result<(), Failure> {
    let unsupported = unsupported(definition, configs);
    if unsupported.is_empty() {
        return Ok(());
    }
    let sentence = format!("add-on {name:?} takes no configuration of {}: nothing was changed", unsupported.join(", "));
    Err(Failure::refused(sentence).hint(format!("it takes those of: {}", taken(definition))))
}

/// The kinds of configuration that an add-on takes, for people.
pub(super) fn taken(definition: &Value) -> String {
    let supported = supported(definition);
    if supported.is_empty() { "none".to_owned() } else { supported.join(", ") }
}

/// Refuses a configuration that could take the place of several. `what` refers to these, for people.
pub(super) fn refuse_several(name: &str, what: &str, several: Option<Several>) -> Result<(), Failure> {
    let Some(Several { kind, objects }) = several else { return Ok(()) };
    let sentence = format!("{what} refers to several {kind}: {}: it was not changed", objects.join(", "));
    Err(Failure::refused(sentence).hint(Remedy::UnsetConfigurations { name: name.to_owned(), kind }))
}

/// Tells of an add-on that the hub itself gives to clusters and takes from them.
pub fn tell_of_placements(name: &str, definition: &Value, what: &str, narrator: &dyn Narrator) {
    let placements = placements(definition);
    if !placements.is_empty() {
        narrator.tell(Event::warning(format!(
            "the hub installs add-on {name:?} by placements ({}), and {what}",
            placements.join(", ")
        )));
    }
}
