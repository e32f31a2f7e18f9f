//! Sets of works that follow a placement: ManifestWorkReplicaSets.

use kube::Api;
use kube::api::ListParams;
use ocm_api::ClusterManager;
use ocm_core::install::feature_gates::REPLICA_SETS;
use ocm_core::install::feature_gates::follows_replica_sets;
use ocm_core::plan::{Applied, Mode, Plan};
use ocm_core::{Event, Failure, Narrator, Reason, Remedy};
use ocm_kube::Cluster;
use ocm_kube::access::{self, Right};

use crate::deliveries::known_placement;
use crate::registry;
use crate::whole::apply_whole;

/// What is wanted.
#[derive(Clone, Debug)]
pub struct ReplicaSetRequest {
    /// The set.
    pub plan: Plan,
    /// Namespace of the set and of the placement.
    pub namespace: String,
    /// Name of the placement.
    pub placement: String,
    /// Whether a set that others have written is replaced.
    pub overwrite: bool,
    /// What is done with the plan.
    pub mode: Mode,
}

/// Creates or changes a set of works, or does with the plan what the request says. `each` hears of it.
///
/// # Errors
/// The rights that are missing; a refusal, if the hub does not make works of such sets, or the set is somebody else's;
/// [`Reason::NotFound`] for a placement that is not there; the failure of a request.
pub async fn create(
    hub: &Cluster,
    request: &ReplicaSetRequest,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Vec<Applied>, Failure> {
    let ReplicaSetRequest { plan, namespace, placement, overwrite, mode } = request;
    if mode.changes() {
        narrator.tell(Event::now("checking your rights"));
        let mut rights = access::to_apply(plan);
        let look = Right::new("get", "cluster.open-cluster-management.io", "placements");
        rights.push(look.on(placement).within(namespace));
        access::require(hub, "create sets of works", &rights).await?;
    }
    narrator.tell(Event::now(format!("looking at the hub ({})", hub.label())));
    check_gate(hub, narrator).await?;
    known_placement(hub, namespace, placement).await?;
    apply_whole(hub, plan, (*overwrite, *mode), narrator, each).await
}

/// Whether the hub makes works of such sets, as far as it can be told.
async fn check_gate(hub: &Cluster, narrator: &dyn Narrator) -> Result<(), Failure> {
    let api: Api<ClusterManager> = Api::all(hub.client.clone());
    let unknown = match registry::all(hub, &api, ListParams::default(), "list ClusterManagers").await {
        Ok(managers) => match follows_replica_sets(&managers) {
            Some(true) => return Ok(()),
            Some(false) => {
                let sentence = format!(
                    "the hub makes no works of ManifestWorkReplicaSets: its feature gate {REPLICA_SETS} is off"
                );
                return Err(Failure::refused(format!("{sentence}, and nothing was changed"))
                    .hint(Remedy::EnableGate(REPLICA_SETS)));
            }
            None => "its ClusterManager is on another cluster".to_owned(),
        },
        Err(failure) if failure.reason == Reason::KindNotServed => {
            "its ClusterManager is on another cluster".to_owned()
        }
        Err(failure) if failure.reason == Reason::Forbidden => failure.to_string(),
        Err(failure) => return Err(failure),
    };
    narrator.tell(Event::warning(format!(
        "it cannot be told whether the hub's feature gate {REPLICA_SETS} is on, without which nothing happens: {unknown}"
    )));
    Ok(())
}
