//! `get hub-info`, `get klusterlet-info`: what runs of Open Cluster Management on a cluster, and how it is. Only reads.

use futures::future::try_join_all;
use kube::api::ApiResource;
use ocm_api::names::{namespaces, operators};
use ocm_api::{ClusterManager, Klusterlet};
use ocm_core::info::{self, Definition, Hub, Info};
use ocm_core::install::Live;
use ocm_core::join::fallback;
use ocm_core::upgrade::rollout::Running;
use ocm_core::upgrade::{HUB_DEFINITIONS, KLUSTERLET_DEFINITIONS, hub, klusterlet};
use ocm_core::{Failure, Reason};
use ocm_kube::{Cluster, apply};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::observe::managed as observe;
use crate::upgrade::installed;

/// The hubs of a cluster: one, or those that are hosted there; none where there is no ClusterManager.
///
/// # Errors
/// The failure of a request.
pub async fn hubs(cluster: &Cluster) -> Result<Vec<Info>, Failure> {
    let (managers, operator) = futures::try_join!(
        installed::all_of(cluster, ApiResource::erase::<ClusterManager>(&())),
        installed::operator(cluster, operators::CLUSTER_MANAGER),
    )?;
    if managers.is_empty() {
        return Ok(Vec::new());
    }
    let (running, definitions) =
        futures::try_join!(operator_of(cluster, operators::CLUSTER_MANAGER), definitions(cluster, HUB_DEFINITIONS))?;
    let (operator, running, definitions) = (&operator, &running, &definitions);
    try_join_all(managers.into_iter().map(async |object| {
        let manager: ClusterManager = typed(&object)?;
        let live = Live { cluster_manager: Some(object.clone()), operator: operator.clone(), nodes: None };
        let deployments = installed::running(cluster, &info::namespace_of_hub(&manager), None).await?;
        Ok(info::of_hub(manager, object, hub::parts(&live), running.clone(), deployments, definitions.clone()))
    }))
    .await
}

/// The Klusterlets of a cluster, those of clusters that it hosts among them.
///
/// # Errors
/// The failure of a request.
pub async fn klusterlets(cluster: &Cluster) -> Result<Vec<Info>, Failure> {
    let (klusterlets, operator) = futures::try_join!(
        installed::all_of(cluster, ApiResource::erase::<Klusterlet>(&())),
        installed::operator(cluster, operators::KLUSTERLET),
    )?;
    if klusterlets.is_empty() {
        return Ok(Vec::new());
    }
    let (running, definitions) =
        futures::try_join!(operator_of(cluster, operators::KLUSTERLET), definitions(cluster, KLUSTERLET_DEFINITIONS))?;
    let (operator, running, definitions) = (&operator, &running, &definitions);
    try_join_all(klusterlets.into_iter().map(async |object| {
        let typed: Klusterlet = typed(&object)?;
        let parts = klusterlet::parts(&object, operator.as_ref());
        let namespace = info::namespace_of_agents(&typed);
        let agents = installed::running(cluster, &namespace, Some(&typed.agents())).await?;
        let hubs = hubs_of(cluster, &namespace, &object).await?;
        let info = info::of_klusterlet(&typed, object, parts, running.clone(), agents, definitions.clone());
        Ok(Info { hubs, ..info })
    }))
    .await
}

/// The hubs that an agent turns to; none where it has one. Who may not read its Secrets sees their names.
async fn hubs_of(cluster: &Cluster, namespace: &str, klusterlet: &Value) -> Result<Vec<Hub>, Failure> {
    let Some(listing) = fallback::listing(klusterlet) else { return Ok(Vec::new()) };
    let (listed, identity) =
        futures::join!(observe::listed(cluster, namespace, &listing), observe::identity(cluster, namespace));
    let identity = match identity {
        Ok(identity) => Some(identity),
        Err(failure) if failure.reason == Reason::Forbidden => None,
        Err(failure) => return Err(failure),
    };
    Ok(info::hubs(&listed?, identity.as_ref().map(|identity| identity.hub.as_ref())))
}

fn typed<T: DeserializeOwned>(object: &Value) -> Result<T, Failure> {
    T::deserialize(object).map_err(|error| Failure::other("the server's answer cannot be read").because(error))
}

/// How the operator of this name is; none where it is not there.
async fn operator_of(cluster: &Cluster, name: &str) -> Result<Option<Running>, Failure> {
    Ok(installed::running(cluster, namespaces::OPERATOR, Some(&[name.to_owned()])).await?.pop())
}

/// The definitions that are there, of those of a table.
async fn definitions(cluster: &Cluster, rows: &[(&'static str, &[&str])]) -> Result<Vec<Definition>, Failure> {
    let each = rows.iter().map(async |(name, _)| {
        let found = apply::read(cluster, &installed::definition(name)).await?;
        Ok::<_, Failure>(found.map(|found| Definition::read(name, &found)))
    });
    Ok(try_join_all(each).await?.into_iter().flatten().collect())
}
