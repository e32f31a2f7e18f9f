//! The clusters that something is meant for.

use ocm_api::ManagedCluster;
use ocm_core::work::decided;
use ocm_core::{Event, Failure, Narrator, Reason, Remedy};
use ocm_kube::Cluster;

use crate::get::unknown_name;
use crate::objects::{Sought, objects};
use crate::registry;

/// API of placements and their decisions.
const PLACEMENTS: &str = "cluster.open-cluster-management.io/v1beta1";

/// Which clusters are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Targets {
    /// These.
    Clusters(Vec<String>),
    /// Those that a placement has decided for.
    Placement {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// The names of the clusters. Those of a placement are the decisions of this moment, and are told.
///
/// # Errors
/// [`Reason::NotFound`] for a placement that is not there; a refusal of one that has decided for no cluster; the failure of
/// a request.
pub async fn clusters_of(hub: &Cluster, targets: &Targets, narrator: &dyn Narrator) -> Result<Vec<String>, Failure> {
    let (namespace, name) = match targets {
        Targets::Clusters(names) => return Ok(names.clone()),
        Targets::Placement { namespace, name } => (namespace, name),
    };
    narrator.tell(Event::now(format!("reading the decisions of placement {namespace}/{name}")));
    let decisions = sought("placementdecisions", namespace, None);
    let (placement, decisions) = futures::join!(known_placement(hub, namespace, name), objects(hub, &decisions));
    placement?;
    let clusters = decided(&decisions?, name);
    if clusters.is_empty() {
        return Err(Failure::refused(format!("placement {namespace}/{name} selects no cluster: nothing was changed"))
            .hint(Remedy::ExplainPlacement { namespace: namespace.clone(), name: name.clone() }));
    }
    narrator.tell(Event::note(format!(
        "placement {namespace}/{name} selects {} now; what it decides later changes nothing here",
        ocm_core::leave::some(&clusters)
    )));
    Ok(clusters)
}

fn sought(resource: &str, namespace: &str, name: Option<&str>) -> Sought {
    Sought {
        api_version: PLACEMENTS.to_owned(),
        resource: resource.to_owned(),
        namespace: Some(namespace.to_owned()),
        name: name.map(str::to_owned),
    }
}

/// Makes sure that there is such a placement.
///
/// # Errors
/// [`Reason::NotFound`]; the failure of the request.
pub(crate) async fn known_placement(hub: &Cluster, namespace: &str, name: &str) -> Result<(), Failure> {
    if objects(hub, &sought("placements", namespace, Some(name))).await?.is_empty() {
        return Err(Failure::new(Reason::NotFound, format!("the hub has no placement {namespace}/{name}"))
            .hint(Remedy::SeePlacements));
    }
    Ok(())
}

/// Makes sure that there are such clusters, that the hub has let them in, and that they are not leaving.
///
/// # Errors
/// [`Reason::NotFound`], or a refusal that names the first that is not; the failure of a request.
pub async fn require_accepted(hub: &Cluster, names: &[String]) -> Result<(), Failure> {
    let found = registry::some_clusters(hub, names).await?;
    for name in names {
        let of_name = |cluster: &&ManagedCluster| cluster.metadata.name.as_ref() == Some(name);
        let Some(cluster) = found.iter().find(of_name) else {
            return Err(unknown_name::<ManagedCluster>(hub, "managed cluster", name).await);
        };
        if cluster.metadata.deletion_timestamp.is_some() {
            return Err(Failure::refused(format!("cluster {name:?} is leaving the hub: nothing was changed")));
        }
        if cluster.spec.hub_accepts_client != Some(true) {
            return Err(Failure::refused(format!("the hub has not accepted cluster {name:?}: nothing was changed"))
                .hint(Remedy::Accept(name.clone())));
        }
    }
    Ok(())
}
