//! What a hub holds of sets, and which placements would lose clusters.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::Api;
use kube::api::ListParams;
use kube::core::NamespaceResourceScope;
use ocm_api::{ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Placement, PlacementDecision};
use ocm_core::cluster_sets::{Facts, Lost, Selection, lost, selections};
use ocm_core::order::Collect as _;
use ocm_core::{Failure, Reason};
use ocm_kube::Cluster;

use crate::get::unknown_name;
use crate::observe::registration::not_a_hub;
use crate::registry;

/// How long nobody is asked again who could not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// Names what is no hub.
pub(crate) fn of_hub(hub: &Cluster) -> impl Fn(Failure) -> Failure {
    |failure| match failure.reason {
        Reason::KindNotServed => not_a_hub(&hub.server),
        _ => failure,
    }
}

/// All sets.
pub(super) async fn sets(hub: &Cluster) -> Result<Vec<ManagedClusterSet>, Failure> {
    of_sets(hub, ListParams::default()).await
}

/// Those sets that are asked for.
pub(super) async fn of_sets(hub: &Cluster, params: ListParams) -> Result<Vec<ManagedClusterSet>, Failure> {
    let api: Api<ManagedClusterSet> = Api::all(hub.client.clone());
    registry::all(hub, &api, params, "list sets of clusters").await.map_err(of_hub(hub))
}

/// The set of this name, if there is one.
pub(super) async fn set(hub: &Cluster, name: &str) -> Result<Option<ManagedClusterSet>, Failure> {
    let found = registry::some(hub, &[name.to_owned()], "set of clusters").await.map_err(of_hub(hub))?;
    Ok(found.into_iter().next())
}

/// The set of this name.
pub(super) async fn known_set(hub: &Cluster, name: &str) -> Result<ManagedClusterSet, Failure> {
    match set(hub, name).await? {
        Some(set) => Ok(set),
        None => Err(unknown_name::<ManagedClusterSet>(hub, "set of clusters", name).await),
    }
}

async fn bindings(hub: &Cluster) -> Result<Vec<ManagedClusterSetBinding>, Failure> {
    let api: Api<ManagedClusterSetBinding> = Api::all(hub.client.clone());
    registry::all(hub, &api, ListParams::default(), "list bindings of sets").await.map_err(of_hub(hub))
}

/// Everything of sets.
///
/// # Errors
/// When the hub cannot be read, or is none.
pub(crate) async fn facts(hub: &Cluster) -> Result<Facts, Failure> {
    let (sets, bindings, clusters) = futures::join!(sets(hub), bindings(hub), registry::clusters(hub, None));
    Ok(Facts { sets: sets?, bindings: bindings?, clusters: clusters? })
}

/// An API of this namespace, or, if none is given, of all.
pub(crate) fn scoped<K>(hub: &Cluster, namespace: Option<&str>) -> Api<K>
where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced(hub.client.clone(), namespace),
        None => Api::all(hub.client.clone()),
    }
}

/// What was decided about the placements of a namespace, or of all.
///
/// # Errors
/// When the hub cannot be read, or is none.
pub(crate) async fn decisions(hub: &Cluster, namespace: Option<&str>) -> Result<Vec<PlacementDecision>, Failure> {
    let api = scoped(hub, namespace);
    registry::all(hub, &api, ListParams::default(), "list placement decisions").await.map_err(of_hub(hub))
}

/// The placements of a namespace, or of all, with the clusters that they select.
///
/// # Errors
/// When the hub cannot be read, or is none.
pub(crate) async fn selected_by(
    hub: &Cluster,
    namespace: Option<&str>,
    selector: Option<&str>,
) -> Result<Vec<Selection>, Failure> {
    let params = selector.into_iter().fold(ListParams::default(), |params, selector| params.labels(selector));
    let api: Api<Placement> = scoped(hub, namespace);
    let placements = registry::all(hub, &api, params, "list placements");
    let (placements, decisions) = futures::join!(placements, decisions(hub, namespace));
    Ok(selections(placements.map_err(of_hub(hub))?, &decisions?))
}

/// What a change takes away from placements.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// Placements and the clusters that they would select no longer.
    pub lost: Vec<Lost>,
    /// Why that cannot be told, if the user may not read it.
    pub unread: Option<String>,
}

impl Effects {
    /// Whether somebody has to be asked first.
    pub fn is_any(&self) -> bool {
        !self.lost.is_empty() || self.unread.is_some()
    }
}

/// What placements would lose. `changed` says what the hub would hold then; `clusters` are those that it is about, or,
/// if there are none, all that placements select now.
pub(super) async fn effects(
    hub: &Cluster,
    sets: Vec<ManagedClusterSet>,
    clusters: Option<Vec<ManagedCluster>>,
    changed: impl Fn(&Facts) -> Facts,
) -> Result<Effects, Failure> {
    let read = async {
        let (bindings, selections) = futures::join!(bindings(hub), selected_by(hub, None, None));
        let (bindings, selections) = (bindings?, selections?);
        let clusters = match clusters {
            Some(clusters) => clusters,
            None => selected(hub, &selections).await?,
        };
        Ok::<_, Failure>((Facts { sets, bindings, clusters }, selections))
    };
    match read.await {
        Ok((facts, selections)) => Ok(Effects { lost: lost(&selections, &facts, &changed(&facts)), unread: None }),
        Err(failure) if failure.reason == Reason::Forbidden => {
            Ok(Effects { lost: Vec::new(), unread: Some(failure.to_string()) })
        }
        Err(failure) => Err(failure),
    }
}

/// The clusters that placements select: one by one if they are few, else out of a list of all.
async fn selected(hub: &Cluster, selections: &[Selection]) -> Result<Vec<ManagedCluster>, Failure> {
    let names: BTreeSet<&String> = selections.iter().flat_map(|selection| &selection.clusters).collect_set();
    if names.len() <= registry::FEW {
        let names: Vec<String> = names.into_iter().cloned().collect();
        return registry::some_clusters(hub, &names).await;
    }
    registry::clusters(hub, None).await
}

/// Reads until the hub answers, as a watch goes on that was interrupted. `refusals` is how often it may refuse before: an API
/// server that starts again does until it has read the roles.
pub(crate) async fn patient<T>(mut refusals: u32, read: impl AsyncFn() -> Result<T, Failure>) -> Result<T, Failure> {
    loop {
        match read().await {
            Err(failure) if failure.reason.is_transient() => tokio::time::sleep(PAUSE).await,
            Err(failure) if failure.reason == Reason::Forbidden && refusals > 0 => {
                refusals -= 1;
                tokio::time::sleep(PAUSE).await;
            }
            answer => return answer,
        }
    }
}
