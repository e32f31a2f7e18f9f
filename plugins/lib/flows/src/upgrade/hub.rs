//! The upgrade of a hub.

use std::time::{Duration, Instant};

use ocm_api::names::{namespaces, operators};
use ocm_api::{ClusterManager, Klusterlet};
use ocm_core::images::Source;
use ocm_core::install::hosted;
use ocm_core::install::mode::namespace_of;
use ocm_core::plan::{Applied, Mode};
use ocm_core::upgrade::{self as rules, HUB_DEFINITIONS, Parts, Target, Upgrade};
use ocm_core::{Event, Failure, Narrator, Reason, Remedy};
use ocm_kube::access::{self, Right};
use ocm_kube::{Cluster, apply as objects};
use serde_json::Value;

use super::apply::{carry_out, changed};
use super::installed;
use crate::install::preflight;
use crate::install::survey::survey;
use crate::observe::managed;
use crate::usable::Awaited;

/// What the rights are needed for.
const PURPOSE: &str = "upgrade the hub";

/// What is wanted.
#[derive(Clone, Debug)]
pub struct HubRequest {
    /// Where it leads.
    pub target: Target,
    /// From where the images are taken.
    pub source: Source,
    /// What is done with the plan.
    pub mode: Mode,
    /// Wait until everything has rolled out, for so long.
    pub wait: Option<Duration>,
}

/// What an upgrade came to.
#[derive(Debug)]
pub struct HubUpgraded {
    /// What was planned, and what ran before.
    pub upgrade: Upgrade,
    /// Every object of the plan with what became of it; empty where it is only rendered.
    pub applied: Vec<Applied>,
    /// Whether anything has changed, or would.
    pub changed: bool,
    /// Whether everything has rolled out, or why not; none if nobody waited for it.
    pub rolled_out: Option<Result<(), Failure>>,
}

/// Upgrades a hub, or does with the plan what the request says. `each` hears of every object as soon as it is there.
///
/// # Errors
/// A refusal before anything is touched; the failure of a request.
pub async fn upgrade_hub(
    cluster: &Cluster,
    request: &HubRequest,
    narrator: &dyn Narrator,
    mut each: impl FnMut(&Applied),
) -> Result<HubUpgraded, Failure> {
    let upgrade = prepare(cluster, request, narrator).await?;
    if request.mode == Mode::Render {
        return Ok(HubUpgraded { upgrade, applied: Vec::new(), changed: false, rolled_out: None });
    }
    if request.mode.changes() {
        preflight::may_apply(cluster, &upgrade.plan(), PURPOSE, narrator).await?;
    }
    let deadline = request.wait.filter(|_| request.mode.changes()).map(|timeout| Instant::now() + timeout);
    let operator = operators::CLUSTER_MANAGER;
    let (applied, stopped) =
        carry_out(cluster, &upgrade, operator, request.mode, deadline, narrator, &mut each).await?;
    let rolled_out = match (deadline, stopped) {
        (_, Some(failure)) => Some(Err(failure)),
        (Some(deadline), None) => Some(rolled_out(cluster, &upgrade, deadline, narrator).await),
        (None, None) => None,
    };
    Ok(HubUpgraded { changed: changed(&applied), upgrade, applied, rolled_out })
}

/// Looks at the hub, plans, and judges.
async fn prepare(cluster: &Cluster, request: &HubRequest, narrator: &dyn Narrator) -> Result<Upgrade, Failure> {
    narrator.tell(Event::now(format!("looking at {}", cluster.label())));
    match look_and_judge(cluster, request, narrator).await {
        Err(failure) if failure.reason == Reason::Forbidden => {
            // All rights that are missing are named at once.
            access::require(cluster, PURPOSE, &rights_to_look()).await?;
            Err(failure)
        }
        judged => judged,
    }
}

async fn look_and_judge(cluster: &Cluster, request: &HubRequest, narrator: &dyn Narrator) -> Result<Upgrade, Failure> {
    let HubRequest { target, source, .. } = request;
    let live = survey(cluster).await?;
    let label = cluster.label();
    let mut upgrade = rules::hub::plan(&live, &target.bundle, source, &label)?;
    let who = format!("the hub ({label})");
    narrator.tell(Event::note(format!("{who} runs {}", upgrade.before.told())));
    let mut warnings = rules::direction(&upgrade.before, target, &who)?;
    let manager = live.cluster_manager.unwrap_or_default();
    let is_hosted = manager.pointer("/spec/deployOption/mode").and_then(Value::as_str) == Some("Hosted");
    // Of a hub that is hosted there, the others are on another cluster.
    let rows = if is_hosted { &HUB_DEFINITIONS[..1] } else { HUB_DEFINITIONS };
    if is_hosted {
        let note = "the hub's definitions are on another cluster: the versions that they store are not checked";
        narrator.tell(Event::note(note));
    }
    let (stored, addons, agents, present) = futures::try_join!(
        installed::stored_versions(cluster, rows.iter().map(|(name, _)| *name)),
        installed::addons(cluster),
        agents(cluster),
        present_roles(cluster, &upgrade)
    )?;
    warnings.extend(rules::check(rows, &stored, &target.bundle)?);
    warnings.extend(rules::newer_agents(&target.bundle, agents.iter().map(|(told, parts)| (told.as_str(), parts))));
    warnings.extend(upgrade.unpinned.clone());
    warnings.extend(rules::of_manager(&manager));
    warnings.extend(hosted::moved_ports(&manager, &target.bundle));
    warnings.extend(rules::of_addons(&addons.0, &addons.1));
    warnings.iter().for_each(|warning| narrator.tell(Event::warning(warning)));
    upgrade.retain(|object| !object.kind().starts_with("ClusterRole") || present.contains(&object.reference()));
    Ok(upgrade)
}

/// The roles and bindings of the plan that the hub has. One without the role of registering agents does without it on purpose.
async fn present_roles(cluster: &Cluster, upgrade: &Upgrade) -> Result<Vec<String>, Failure> {
    let plan = upgrade.plan();
    let roles = plan.objects().filter(|object| object.kind().starts_with("ClusterRole"));
    let each = roles.map(async |role| {
        // The operator needs its own.
        let is_there = role.name() == operators::CLUSTER_MANAGER || objects::read(cluster, role).await?.is_some();
        Ok::<_, Failure>(is_there.then(|| role.reference()))
    });
    Ok(futures::future::try_join_all(each).await?.into_iter().flatten().collect())
}

/// The agents whose Klusterlets are on the hub's own cluster, its own and hosted ones, and what they run.
async fn agents(cluster: &Cluster) -> Result<Vec<(String, Parts)>, Failure> {
    let klusterlets = managed::klusterlets(cluster).await?;
    if klusterlets.is_empty() {
        return Ok(Vec::new());
    }
    let operator = installed::operator(cluster, operators::KLUSTERLET).await?;
    let one = |klusterlet: &Klusterlet| {
        let name = klusterlet.metadata.name.as_deref().unwrap_or_default();
        Ok((
            format!("Klusterlet {name:?} on the same cluster"),
            rules::klusterlet::parts(&installed::value(klusterlet)?, operator.as_ref()),
        ))
    };
    klusterlets.iter().map(one).collect()
}

/// What it takes to find out what there is.
fn rights_to_look() -> Vec<Right> {
    let (operators_group, addons) = ("operator.open-cluster-management.io", "addon.open-cluster-management.io");
    let mut rights = vec![
        Right::new("list", operators_group, "clustermanagers"),
        Right::new("list", operators_group, "klusterlets"),
        Right::new("list", addons, "clustermanagementaddons"),
        Right::new("list", addons, "managedclusteraddons"),
        Right::new("get", "apps", "deployments").within(namespaces::OPERATOR).on(operators::CLUSTER_MANAGER),
    ];
    rights.extend(
        HUB_DEFINITIONS
            .iter()
            .map(|(name, _)| Right::new("get", "apiextensions.k8s.io", "customresourcedefinitions").on(name)),
    );
    rights
}

/// Waits until the hub is usable, and every Deployment of its operator has the image that was planned.
async fn rolled_out(
    cluster: &Cluster,
    upgrade: &Upgrade,
    deadline: Instant,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let hub = Awaited { cluster, api: None, hub: &upgrade.name, doing: "waiting for the hub to roll out" };
    let old = async |manager: &ClusterManager| {
        let running = installed::running(cluster, namespace_of(manager), None).await?;
        let status = manager.status.clone().unwrap_or_default();
        Ok(rules::rollout::not_yet_updated(&status, &running, &upgrade.images))
    };
    hub.until(deadline, narrator, old).await.map_err(|failure| failure.hint(Remedy::RunAgain))
}
