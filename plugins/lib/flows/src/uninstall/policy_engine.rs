//! `uninstall policy-engine`: the API server stops asking, and then what answered goes.
//!
//! ```text
//! rights ─▶ find (whose is it?) ─▶ the caller asks ─▶ delete what renews certificates, then configurations ─▶ pause
//!                                                                                 ─▶ delete the rest ─▶ wait
//! ```

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use ocm_api::{HubPolicy, ManagedCluster};
use ocm_core::plan::{Applied, Found, Outcome, Plan};
use ocm_core::policy_engine::{self as engine, Removal};
use ocm_core::{DryRun, Event, Failure, Narrator};
use ocm_kube::access::Right;
use ocm_kube::wait::{Check, until};
use ocm_kube::{Cluster, access, apply, remove};
use ocm_policy_certificates::look;
use ocm_rules::cluster::{ACCEPTED_BY_HUB, HELD};

use crate::install::asked_for;
use crate::registry::{PAGE, pages};
use crate::served::or_nothing;

/// What the rights are needed for.
const PURPOSE: &str = "uninstall the policy engine";
/// How long an API server may take to learn that it asks nobody any more.
const LEARNS: Duration = Duration::from_secs(5);
/// How many clusters are named.
const NAMED: usize = 10;

/// What is wanted.
#[derive(Clone, Copy, Debug)]
pub struct EngineRequest {
    /// Whether HubPolicies, Registrations, their definitions and the namespace go, too.
    pub purge: bool,
    /// How much of it is only tried.
    pub dry_run: DryRun,
    /// Wait until the pods are gone, for so long.
    pub wait: Option<Duration>,
}

/// What there is of a policy engine.
#[derive(Debug)]
pub struct EngineFound {
    certificates: Vec<Found>,
    configurations: Vec<Found>,
    engine: Vec<Found>,
    policies: usize,
}

/// What a removal came to.
#[derive(Debug)]
pub struct EngineUninstalled {
    /// Every object with what became of it.
    pub applied: Vec<Applied>,
    /// Whether everything was seen to be gone, or why not; none if nobody waited for it.
    pub gone: Option<Result<(), Failure>>,
}

impl EngineFound {
    /// Whether there is anything.
    pub fn is_there(&self) -> bool {
        [&self.certificates, &self.configurations, &self.engine].into_iter().flatten().any(|found| found.live.is_some())
    }

    /// How many HubPolicies go along.
    pub fn policies(&self) -> usize {
        self.policies
    }
}

/// What there is of the policy engine. Nothing is deleted yet.
///
/// # Errors
/// When a right is missing, or somebody else made an object of such a name; the failure of a request.
pub async fn find_policy_engine(
    cluster: &Cluster,
    request: EngineRequest,
    narrator: &dyn Narrator,
) -> Result<EngineFound, Failure> {
    // Who may not see what cert-manager is asked for is told of the right that is missing.
    let certified = asked_for(cluster).await?.is_some() || look(cluster).await.is_ok_and(|seen| seen.is_injected());
    let Removal { certificates, configurations, engine } = engine::removal(request.purge, certified);
    let policies = Right::new("list", "policy.kubectl-ocm.dev", "hubpolicies");
    if request.dry_run == DryRun::No {
        narrator.tell(Event::now("checking your rights"));
        let mut rights = [&certificates, &configurations, &engine].map(access::to_remove).concat();
        rights.extend(request.purge.then_some(policies));
        rights.push(Right::new("list", "cluster.open-cluster-management.io", "managedclusters"));
        rights.extend(request.wait.map(|_| Right::new("list", "", "pods").within(engine::NAMESPACE)));
        access::require(cluster, PURPOSE, &rights).await?;
    }
    narrator.tell(Event::now(format!("looking at {}", cluster.label())));
    Ok(EngineFound {
        certificates: remove::find(cluster, &certificates).await?,
        configurations: remove::find(cluster, &configurations).await?,
        engine: remove::find(cluster, &engine).await?,
        policies: if request.purge { count(cluster).await? } else { 0 },
    })
}

/// How many HubPolicies there are.
async fn count(cluster: &Cluster) -> Result<usize, Failure> {
    let api: Api<HubPolicy> = Api::all(cluster.client.clone());
    let listed = api.list_metadata(&ListParams::default()).await;
    let listed = listed.map(|list| list.items).map_err(|error| cluster.explain("list HubPolicies", error));
    Ok(or_nothing(listed)?.len())
}

/// Deletes what was found. `each` hears of every object as soon as it is gone.
///
/// # Errors
/// The failure of a request; what was deleted before it is gone.
pub async fn uninstall_policy_engine(
    cluster: &Cluster,
    found: EngineFound,
    request: EngineRequest,
    narrator: &dyn Narrator,
    mut each: impl FnMut(&Applied),
) -> Result<EngineUninstalled, Failure> {
    let EngineFound { certificates, configurations, engine, policies: _ } = found;
    let mut applied = remove::all(cluster, certificates, request.dry_run, narrator, &mut each).await?;
    let configurations = remove::all(cluster, configurations, request.dry_run, narrator, &mut each).await?;
    let asked = configurations.iter().any(|one| one.outcome == Outcome::Deleted);
    applied.extend(configurations);
    if request.dry_run == DryRun::No && asked {
        narrator.tell(Event::now("waiting until every API server has stopped to ask"));
        tokio::time::sleep(LEARNS).await;
    }
    applied.extend(remove::all(cluster, engine, request.dry_run, narrator, each).await?);
    if request.dry_run == DryRun::No && applied.iter().any(|one| one.outcome == Outcome::Deleted) {
        tell_held(cluster, narrator).await;
    }
    let gone = match request.wait.filter(|_| request.dry_run == DryRun::No) {
        Some(timeout) => Some(gone(cluster, request.purge, timeout, narrator).await),
        None => None,
    };
    Ok(EngineUninstalled { applied, gone })
}

/// Tells which clusters the hub still does not accept by itself, because they were held: nobody releases them any more.
async fn tell_held(cluster: &Cluster, narrator: &dyn Narrator) {
    let api: Api<ManagedCluster> = Api::all(cluster.client.clone());
    let held = |one: ManagedCluster| {
        // One that was accepted since keeps the annotation, and is not held by it.
        let accepted = one.spec.hub_accepts_client.unwrap_or_default();
        let is_held = !accepted && one.annotations().get(ACCEPTED_BY_HUB).is_some_and(|value| value == HELD);
        is_held.then(|| one.name_any())
    };
    let listed = pages(cluster, &api, ListParams::default(), || PAGE, "list ManagedClusters", held).await;
    let names = match listed {
        Ok(names) => names,
        Err(why) => {
            narrator
                .tell(Event::warning(format!("which clusters stay held from being accepted cannot be told: {why}")));
            return;
        }
    };
    if names.is_empty() {
        return;
    }
    let some = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    narrator.tell(Event::warning(format!(
        "the hub still accepts none of these by itself: {some}{more}; `kubectl annotate managedcluster NAME \
         {ACCEPTED_BY_HUB}-` releases one"
    )));
}

/// Waits until no pod is left, and, where it was deleted, the namespace neither.
async fn gone(cluster: &Cluster, purge: bool, timeout: Duration, narrator: &dyn Narrator) -> Result<(), Failure> {
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), engine::NAMESPACE);
    let pause = Duration::from_millis(500);
    let last = if purge { engine::removal(true, false).engine } else { Plan::default() };
    until("waiting until the pods are gone", Instant::now() + timeout, pause, narrator, async || {
        let ours = ListParams::default().labels(engine::PODS);
        let left = pods.list_metadata(&ours).await.map_err(|error| cluster.explain("list pods", error))?.items.len();
        if left > 0 {
            return Ok(Check::Unwatched(format!("{left} still there: they answer what they were asked before")));
        }
        for object in last.objects().filter(|object| matches!(object.kind(), "Namespace" | "CustomResourceDefinition"))
        {
            if apply::read(cluster, object).await?.is_some() {
                return Ok(Check::Unwatched(format!("{} is still there", object.reference())));
            }
        }
        Ok(Check::Ready(()))
    })
    .await
}
