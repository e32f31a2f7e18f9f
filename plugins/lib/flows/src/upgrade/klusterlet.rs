//! The upgrade of one Klusterlet and of the operator that serves it.

use std::time::{Duration, Instant};

use kube::Api;
use kube::api::{ApiResource, DynamicObject, WatchParams};
use ocm_api::Klusterlet;
use ocm_api::names::{hub as names, namespaces, operators};
use ocm_api::parts::Lease;
use ocm_core::agent_lease::{is_recent, last_renewal, renewed};
use ocm_core::images::Source;
use ocm_core::leave::klusterlet::{Known, choose};
use ocm_core::leave::some;
use ocm_core::plan::{Applied, Mode};
use ocm_core::release::Bundle;
use ocm_core::upgrade::{self as rules, KLUSTERLET_DEFINITIONS, Target, Upgrade};
use ocm_core::{Event, Failure, Narrator, Reason, Remedy};
use ocm_kube::Cluster;
use ocm_kube::access::{self, Right};
use ocm_kube::triggers::{Triggers, named};
use ocm_kube::wait::{Check, until_triggered};

use super::apply::{PAUSE, carry_out, changed};
use super::installed;
use crate::install::preflight;
use crate::leave::{agents_hub, all_known, is_hub_at};
use crate::observe::registration;
use crate::workload;

/// What the rights are needed for.
const PURPOSE: &str = "upgrade the agent";

/// What is wanted.
#[derive(Clone, Debug)]
pub struct KlusterletRequest {
    /// Name of the cluster on its hub; none: the only one whose Klusterlet is there.
    pub cluster: Option<String>,
    /// Name of the Klusterlet, where several are of clusters of that name.
    pub klusterlet: Option<String>,
    /// The release; none: that of the hub, or the default one where the hub is not looked at.
    pub bundle: Option<Bundle>,
    /// From where the images are taken.
    pub source: Source,
    /// Whether it may be older than what runs.
    pub downgrade: bool,
    /// What is done with the plan.
    pub mode: Mode,
    /// Wait until everything has rolled out, for so long.
    pub wait: Option<Duration>,
}

/// Everything that is known before anything is touched.
#[derive(Debug)]
pub struct Prepared {
    /// What is planned, and what runs.
    pub upgrade: Upgrade,
    /// The release that it leads to.
    pub bundle: Bundle,
    /// Name of the cluster on its hub, if it is known.
    pub cluster: Option<String>,
    /// The names of the agents' Deployments.
    agents: Vec<String>,
    /// Their namespace.
    namespace: String,
}

/// What an upgrade came to.
#[derive(Debug)]
pub struct KlusterletUpgraded {
    /// Every object of the plan with what became of it; empty where it is only rendered.
    pub applied: Vec<Applied>,
    /// Whether anything has changed, or would.
    pub changed: bool,
    /// Whether everything has rolled out, or why not; none if nobody waited for it.
    pub rolled_out: Option<Result<(), Failure>>,
}

/// Looks at the cluster and, with access to it, at its hub; plans and judges. Nothing is changed.
///
/// # Errors
/// When it cannot be told which Klusterlet is meant, or it is refused; the failure of a request.
pub async fn prepare(
    managed: &Cluster,
    hub: Option<&Cluster>,
    request: &KlusterletRequest,
    narrator: &dyn Narrator,
) -> Result<Prepared, Failure> {
    narrator.tell(Event::now(format!("looking at {}", managed.label())));
    let prepared = match look_and_judge(managed, hub, request, narrator).await {
        Err(failure) if failure.reason == Reason::Forbidden => {
            // All rights that are missing are named at once.
            access::require(managed, PURPOSE, &rights_to_look(hub.is_some())).await?;
            if let Some(hub) = hub {
                access::require(hub, PURPOSE, &rights_on_hub(None)).await?;
            }
            return Err(failure);
        }
        prepared => prepared?,
    };
    if request.mode.changes() {
        preflight::may_apply(managed, &prepared.upgrade.plan(), PURPOSE, narrator).await?;
        if let Some(hub) = hub {
            access::require(hub, PURPOSE, &rights_on_hub(prepared.cluster.as_deref())).await?;
        }
    }
    Ok(prepared)
}

async fn look_and_judge(
    managed: &Cluster,
    hub: Option<&Cluster>,
    request: &KlusterletRequest,
    narrator: &dyn Narrator,
) -> Result<Prepared, Failure> {
    let label = managed.label();
    let all = all_known(managed).await?;
    let known = choose(&all, request.cluster.as_deref(), request.klusterlet.as_deref(), &label)?;
    let known = known.ok_or_else(|| {
        Failure::refused(format!("there is no Klusterlet: {label} is no managed cluster")).hint(Remedy::NameCluster)
    })?;
    if known.klusterlet.metadata.deletion_timestamp.is_some() {
        return Err(Failure::refused(format!("{} is being deleted: nothing was changed ({label})", known.told())));
    }
    let names = KLUSTERLET_DEFINITIONS.iter().map(|(name, _)| *name);
    let (klusterlet, operator, stored, of_hub) = futures::try_join!(
        as_it_is(managed, known.name()),
        installed::operator(managed, operators::KLUSTERLET),
        // Of a hosted one, all but the first are on another cluster.
        installed::stored_versions(
            managed,
            names.take(if known.is_hosted() { 1 } else { KLUSTERLET_DEFINITIONS.len() })
        ),
        async {
            match hub {
                Some(hub) => {
                    is_its_hub(managed, hub, known).await?;
                    installed::parts_of_hub(hub).await
                }
                None => Ok(None),
            }
        }
    )?;
    let bundle = request.bundle.clone().or_else(|| of_hub.as_ref()?.oldest()).unwrap_or_default();
    let target = Target { bundle, downgrade: request.downgrade };
    let upgrade = rules::klusterlet::plan(&klusterlet, operator.as_ref(), &target.bundle, &request.source, &label)?;
    let who = format!("{} ({label})", known.told());
    let mode = known.klusterlet.mode();
    narrator.tell(Event::note(format!("{who}, in mode {}, runs {}", mode.as_str(), upgrade.before.told())));
    let mut warnings = rules::direction(&upgrade.before, &target, &who)?;
    match (hub, &of_hub) {
        (Some(hub), Some(parts)) => warnings.extend(rules::skew(&target.bundle, parts, &hub.label())?),
        (Some(hub), None) => warnings.push(format!(
            "which release the hub ({}) runs cannot be seen there: agents should not be newer than their hub",
            hub.label()
        )),
        (None, _) => narrator.tell(Event::note("the hub is not looked at: agents should not be newer than their hub")),
    }
    warnings.extend(rules::check(KLUSTERLET_DEFINITIONS, &stored, &target.bundle)?);
    warnings.extend(upgrade.unpinned.clone());
    warnings.extend(rules::of_klusterlet(&klusterlet));
    warnings.iter().for_each(|warning| narrator.tell(Event::warning(warning)));
    let others: Vec<String> = all.iter().filter(|other| other.name() != known.name()).map(Known::told).collect();
    if !others.is_empty() {
        narrator
            .tell(Event::note(format!("the operator serves {}, too, whose agents keep their images", some(&others))));
    }
    Ok(Prepared {
        upgrade,
        bundle: target.bundle,
        cluster: known.cluster.clone(),
        agents: known.klusterlet.agents(),
        namespace: known.agents().to_owned(),
    })
}

/// The Klusterlet as it is: what we do not know of it must not get lost.
async fn as_it_is(managed: &Cluster, name: &str) -> Result<serde_json::Value, Failure> {
    let api: Api<DynamicObject> = Api::all_with(managed.client.clone(), &ApiResource::erase::<Klusterlet>(&()));
    let found = api.get(name).await.map_err(|error| managed.explain("read the Klusterlet", error))?;
    installed::value(&found)
}

/// Refuses a hub that is not the agent's.
async fn is_its_hub(managed: &Cluster, hub: &Cluster, known: &Known) -> Result<(), Failure> {
    let Some(address) = agents_hub(managed, known).await? else { return Ok(()) };
    if is_hub_at(hub, &address).await? {
        return Ok(());
    }
    Err(Failure::refused(format!(
        "the agent on {} belongs to the hub at {}, not to {}: nothing was changed",
        managed.label(),
        address.server,
        hub.label()
    ))
    .hint(Remedy::NameItsHub))
}

/// What it takes on the managed cluster to find out what there is.
fn rights_to_look(with_hub: bool) -> Vec<Right> {
    let group = "operator.open-cluster-management.io";
    let mut rights = vec![
        Right::new("list", group, "klusterlets"),
        Right::new("get", group, "klusterlets"),
        Right::new("get", "apps", "deployments").within(namespaces::OPERATOR).on(operators::KLUSTERLET),
    ];
    rights.extend(
        KLUSTERLET_DEFINITIONS
            .iter()
            .map(|(name, _)| Right::new("get", "apiextensions.k8s.io", "customresourcedefinitions").on(name)),
    );
    if with_hub {
        use ocm_api::names::secrets::{BOOTSTRAP_HUB_KUBECONFIG, HUB_KUBECONFIG};
        rights.extend([BOOTSTRAP_HUB_KUBECONFIG, HUB_KUBECONFIG].map(|name| Right::new("get", "", "secrets").on(name)));
    }
    rights
}

/// What it takes on the hub: its release, and the lease that the agent of this cluster renews.
fn rights_on_hub(cluster: Option<&str>) -> Vec<Right> {
    let mut rights = vec![
        Right::new("list", "operator.open-cluster-management.io", "clustermanagers"),
        Right::new("get", "apps", "deployments").within(namespaces::OPERATOR).on(operators::CLUSTER_MANAGER),
    ];
    if let Some(cluster) = cluster {
        rights.push(Right::new("get", "cluster.open-cluster-management.io", "managedclusters").on(cluster));
        let lease = Right::new("get", "coordination.k8s.io", "leases").within(cluster);
        rights.push(lease.on(names::MANAGED_CLUSTER_LEASE));
    }
    rights
}

/// Carries out what was prepared, or does with the plan what the request says. `each` hears of every object as soon as it is
/// there.
///
/// # Errors
/// The failure of a request.
pub async fn upgrade_klusterlet(
    managed: &Cluster,
    hub: Option<&Cluster>,
    request: &KlusterletRequest,
    prepared: &Prepared,
    narrator: &dyn Narrator,
    mut each: impl FnMut(&Applied),
) -> Result<KlusterletUpgraded, Failure> {
    if request.mode == Mode::Render {
        return Ok(KlusterletUpgraded { applied: Vec::new(), changed: false, rolled_out: None });
    }
    let deadline = request.wait.filter(|_| request.mode.changes()).map(|timeout| Instant::now() + timeout);
    let operator = operators::KLUSTERLET;
    let (applied, stopped) =
        carry_out(managed, &prepared.upgrade, operator, request.mode, deadline, narrator, &mut each).await?;
    let changed = changed(&applied);
    let rolled_out = match (deadline, stopped) {
        (_, Some(failure)) => Some(Err(failure)),
        (Some(deadline), None) => Some(rolled_out(managed, hub, prepared, changed, deadline, narrator).await),
        (None, None) => None,
    };
    Ok(KlusterletUpgraded { changed, applied, rolled_out })
}

/// Waits until the agents run as planned and, with access to the hub, until one has reported there: since, if anything has
/// `changed`.
async fn rolled_out(
    managed: &Cluster,
    hub: Option<&Cluster>,
    prepared: &Prepared,
    changed: bool,
    deadline: Instant,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let Prepared { upgrade, agents, namespace, cluster, .. } = prepared;
    let klusterlets: Api<Klusterlet> = Api::all(managed.client.clone());
    let triggers = Triggers::default()
        .of(klusterlets.clone(), named(&upgrade.name))
        .of(workload::deployments(managed, namespaces::OPERATOR), named(operators::KLUSTERLET))
        .of(workload::deployments(managed, namespace), WatchParams::default());
    until_triggered("waiting for the agents to roll out", deadline, PAUSE, triggers, narrator, async || {
        let (klusterlet, operator, running) = futures::join!(
            klusterlets.get(&upgrade.name),
            workload::deployment(managed, namespaces::OPERATOR, operators::KLUSTERLET),
            installed::running(managed, namespace, Some(agents)),
        );
        let klusterlet = klusterlet.map_err(|error| managed.explain("read the Klusterlet", error))?;
        let lacks = rules::rollout::agents_lack(&klusterlet, &operator?, agents, &running?, &upgrade.images);
        Ok(lacks.map_or(Check::Ready(()), Check::NotYet))
    })
    .await
    .map_err(|failure| failure.hint(Remedy::RunAgain))?;
    match (hub, cluster) {
        (Some(hub), Some(cluster)) => reported(hub, cluster, changed, deadline, narrator).await,
        _ => Ok(()),
    }
}

/// Waits until the agent renews its lease on the hub: the agents of before have ended, so it is the new one that does. If
/// nothing has `changed`, a lease that was renewed of late will do.
async fn reported(
    hub: &Cluster,
    name: &str,
    changed: bool,
    deadline: Instant,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let leases: Api<Lease> = Api::namespaced(hub.client.clone(), name);
    let lease = async || {
        let found = leases.get_opt(names::MANAGED_CLUSTER_LEASE).await;
        let found = found.map_err(|error| hub.explain(format_args!("read the lease of {name:?}"), error))?;
        Ok::<_, Failure>(found.unwrap_or_default())
    };
    let cluster = registration::cluster(hub, name).await?;
    let cluster = cluster.filter(|cluster| cluster.spec.hub_accepts_client == Some(true));
    let (Some(cluster), Some(before)) = (cluster, renewed(&lease().await?)) else {
        narrator.tell(Event::note(format!("the hub ({}) has not heard of the agent of {name:?} before", hub.label())));
        return Ok(());
    };
    // The hub's clock: a wrong one here would have a living agent taken for a dead one.
    let began = access::clock(hub).await?;
    let since = if changed { "since the agents rolled out" } else { "of late" };
    let doing = format!("waiting for the agent of {name} to report to the hub");
    let triggers = Triggers::default().of(leases.clone(), named(names::MANAGED_CLUSTER_LEASE));
    until_triggered(&doing, deadline, PAUSE, triggers, narrator, async || {
        let lease = lease().await?;
        // The clock of another node may be behind.
        let has_renewed = renewed(&lease).is_some_and(|now| now != before);
        let is_heard = || last_renewal(&lease).is_some_and(|heard| is_recent(&cluster, heard, began));
        let has_reported = has_renewed || (!changed && is_heard());
        Ok(match has_reported {
            true => Check::Ready(()),
            false => Check::NotYet(format!("its lease was not renewed {since}")),
        })
    })
    .await
    .map_err(|failure| failure.hint(Remedy::FindCause))
}

#[cfg(test)]
mod tests {
    use jiff::{Timestamp, ToSpan as _};
    use ocm_core::Silent;
    use serde_json::json;

    use super::*;
    use crate::accept::test_hub::hub;

    #[tokio::test]
    async fn what_an_agent_reports_of_late_is_judged_by_the_hubs_clock() {
        let now = Timestamp::now();
        let long_ago = now - 10.minutes();
        for (renewed, written, is_heard) in [(long_ago, now, true), (now, long_ago, false)] {
            let (hub, _) = hub(move |asked| match asked.line.split_once(' ') {
                Some(("GET", path)) if path.contains("/leases/") => {
                    let fields = json!({"f:spec": {"f:renewTime": {}}});
                    let metadata = json!({"name": "l", "managedFields": [{"time": written, "fieldsV1": fields}]});
                    (200, json!({"metadata": metadata, "spec": {"renewTime": renewed}}))
                }
                Some(("GET", path)) if path.contains("/managedclusters/") => {
                    (200, json!({"metadata": {"name": "c1"}, "spec": {"hubAcceptsClient": true}}))
                }
                Some(("POST", _)) => (201, json!({"metadata": {"creationTimestamp": now.to_string()}})),
                _ => (200, json!({"metadata": {}, "items": []})),
            });
            let deadline = Instant::now() + Duration::from_secs(2);
            let waited = reported(&hub, "c1", false, deadline, &Silent).await;
            assert_eq!(waited.map_err(|failure| failure.reason), if is_heard { Ok(()) } else { Err(Reason::TimedOut) });
        }
    }
}
