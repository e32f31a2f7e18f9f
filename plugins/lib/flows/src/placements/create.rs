//! Placements that people create.

use std::time::Duration;

use kube::api::ListParams;
use ocm_api::ManagedClusterSetBinding;
use ocm_core::leave::some;
use ocm_core::placement::unbound;
use ocm_core::plan::{Applied, Mode, Plan};
use ocm_core::{DryRun, Event, Failure, Narrator, Remedy};
use ocm_kube::Cluster;
use ocm_kube::access::{self, Right};

use super::wait::{Decided, until_decided};
use crate::cluster_sets::{of_hub, scoped};
use crate::registry;
use crate::whole::apply_whole;

const GROUP: &str = "cluster.open-cluster-management.io";

/// What is wanted.
#[derive(Clone, Debug)]
pub struct CreateRequest {
    /// Namespace of the placement.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The placement.
    pub plan: Plan,
    /// Names of the sets that it selects from; empty: all that are bound to the namespace.
    pub cluster_sets: Vec<String>,
    /// Whether a placement that others have written is replaced.
    pub overwrite: bool,
    /// What is done with the plan.
    pub mode: Mode,
    /// Wait until it has been decided, for so long.
    pub wait: Option<Duration>,
}

/// What it came to.
#[derive(Debug)]
pub struct PlacementCreated {
    /// What became of the placement.
    pub applied: Vec<Applied>,
    /// What was decided; none if nobody waited.
    pub decided: Option<Decided>,
}

/// Creates or changes a placement, or does with the plan what the request says. `each` hears of it.
///
/// # Errors
/// The rights that are missing; a refusal, if a set is not bound to the namespace, or the placement is somebody else's; the
/// failure of a request.
pub async fn create(
    hub: &Cluster,
    request: &CreateRequest,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<PlacementCreated, Failure> {
    let CreateRequest { namespace, name, plan, cluster_sets, overwrite, mode, wait } = request;
    if mode.changes() {
        narrator.tell(Event::now("checking your rights"));
        access::require(hub, "create placements", &rights(request)).await?;
    }
    narrator.tell(Event::now(format!("looking at the sets of namespace {namespace} ({})", hub.label())));
    check_sets(hub, namespace, cluster_sets, narrator).await?;
    let applied = apply_whole(hub, plan, (*overwrite, *mode), narrator, each).await?;
    let decided = match wait.filter(|_| mode.dry_run() == DryRun::No) {
        Some(timeout) => Some(until_decided(hub, namespace, name, timeout, narrator).await?),
        None => None,
    };
    Ok(PlacementCreated { applied, decided })
}

fn rights(request: &CreateRequest) -> Vec<Right> {
    let mut rights = access::to_apply(&request.plan);
    let list = |resource: &str| Right::new("list", GROUP, resource).within(&request.namespace);
    rights.push(list("managedclustersetbindings"));
    if request.wait.is_some() {
        rights.extend(["placements", "placementdecisions"].map(list));
    }
    rights
}

/// Whether a placement can select from these sets.
async fn check_sets(hub: &Cluster, namespace: &str, sets: &[String], narrator: &dyn Narrator) -> Result<(), Failure> {
    let api = scoped::<ManagedClusterSetBinding>(hub, Some(namespace));
    let bindings =
        registry::all(hub, &api, ListParams::default(), "list bindings of sets").await.map_err(of_hub(hub))?;
    if sets.is_empty() && bindings.is_empty() {
        narrator.tell(Event::warning(format!(
            "no set is bound to namespace {namespace}: the placement selects nothing until one is"
        )));
    }
    let unbound = unbound(sets, &bindings);
    if unbound.is_empty() {
        return Ok(());
    }
    let (verb, names) = (if unbound.len() == 1 { "is" } else { "are" }, some(&unbound));
    let sentence = format!("set {names} {verb} not bound to namespace {namespace}: nothing was changed");
    let failure = Failure::refused(sentence);
    let bind = |set| Remedy::BindSet { set, namespace: namespace.to_owned(), context: hub.context.clone() };
    Err(unbound.into_iter().map(bind).fold(failure, Failure::hint))
}
