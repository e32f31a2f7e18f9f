//! What an upgrade depends on besides the custom resource: definitions, add-ons, Deployments, the hub's release.

use futures::future::try_join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use ocm_api::names::{namespaces, operators};
use ocm_api::parts::Deployment;
use ocm_api::{ClusterManager, ManagedClusterAddOn, Manifest};
use ocm_core::Failure;
use ocm_core::install::Live;
use ocm_core::upgrade::rollout::Running;
use ocm_core::upgrade::{Parts, Stored, hub, stored};
use ocm_kube::{Cluster, apply};
use serde_json::Value;

use crate::registry;
use crate::served::or_nothing;
use crate::workload;

/// A definition by its name alone.
pub(crate) fn definition(name: &str) -> Manifest {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    Manifest::with::<CustomResourceDefinition>(&metadata, Value::Null)
}

/// The versions in which objects of these definitions may be stored; of those that are there.
///
/// # Errors
/// The failure of a request.
pub(crate) async fn stored_versions(
    cluster: &Cluster,
    names: impl Iterator<Item = &'static str>,
) -> Result<Vec<Stored>, Failure> {
    let each = names.map(async |name| {
        let found = apply::read(cluster, &definition(name)).await?;
        Ok::<_, Failure>(found.map(|found| stored(name, &found)))
    });
    Ok(try_join_all(each).await?.into_iter().flatten().collect())
}

/// All objects of a kind as they are; none where the kind is not served.
pub(crate) async fn all_of(cluster: &Cluster, resource: ApiResource) -> Result<Vec<Value>, Failure> {
    let api: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &resource);
    let listed = registry::all(cluster, &api, ListParams::default(), &format!("list {}", resource.plural)).await;
    or_nothing(listed)?.iter().map(value).collect()
}

/// The add-ons of a hub and those of its clusters.
///
/// # Errors
/// The failure of a request.
pub(super) async fn addons(cluster: &Cluster) -> Result<(Vec<Value>, Vec<Value>), Failure> {
    let of_clusters = ApiResource::erase::<ManagedClusterAddOn>(&());
    let of_hub = ApiResource {
        kind: "ClusterManagementAddOn".to_owned(),
        plural: "clustermanagementaddons".to_owned(),
        ..of_clusters.clone()
    };
    futures::try_join!(all_of(cluster, of_hub), all_of(cluster, of_clusters))
}

/// An object as it is: what we do not know of it must not get lost.
pub(super) fn value<T: serde::Serialize>(object: &T) -> Result<Value, Failure> {
    serde_json::to_value(object).map_err(|error| Failure::other("the server's answer cannot be read").because(error))
}

/// The Deployment of an operator as it is.
///
/// # Errors
/// The failure of the request.
pub(crate) async fn operator(cluster: &Cluster, name: &str) -> Result<Option<Value>, Failure> {
    let resource = ApiResource::erase::<k8s_openapi::api::apps::v1::Deployment>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), namespaces::OPERATOR, &resource);
    let found = api.get_opt(name).await;
    let found = found.map_err(|error| cluster.explain("read the operator's Deployment", error))?;
    found.as_ref().map(value).transpose()
}

/// What runs on a hub; none where that cannot be seen there: its operator is elsewhere, or there are several hubs.
///
/// # Errors
/// The failure of a request.
pub(super) async fn parts_of_hub(hub: &Cluster) -> Result<Option<Parts>, Failure> {
    let (mut managers, operator) = futures::try_join!(
        all_of(hub, ApiResource::erase::<ClusterManager>(&())),
        operator(hub, operators::CLUSTER_MANAGER)
    )?;
    managers.retain(|manager| manager.pointer("/spec/deployOption/mode").and_then(Value::as_str) != Some("Hosted"));
    let (Some(manager), true) = (managers.pop(), managers.is_empty()) else { return Ok(None) };
    Ok(Some(hub::parts(&Live { cluster_manager: Some(manager), operator, nodes: None })))
}

/// The Deployments of a namespace, with how they are: those of these names, or all.
///
/// # Errors
/// The failure of a request.
pub(crate) async fn running(
    cluster: &Cluster,
    namespace: &str,
    names: Option<&[String]>,
) -> Result<Vec<Running>, Failure> {
    let api = workload::deployments(cluster, namespace);
    let failed = |error| cluster.explain(format_args!("read the Deployments of {namespace}"), error);
    let found: Vec<Deployment> = match names {
        None => api.list(&ListParams::default()).await.map_err(failed)?.items,
        Some(names) => {
            let each = names.iter().map(|name| api.get_opt(name));
            try_join_all(each).await.map_err(failed)?.into_iter().flatten().collect()
        }
    };
    let each = found.iter().map(async |deployment| {
        let containers = &deployment.spec.template.spec.containers;
        Ok(Running {
            name: deployment.metadata.name.clone().unwrap_or_default(),
            health: workload::of(cluster, deployment).await?,
            images: containers.iter().filter_map(|container| container.image.clone()).collect(),
            wanted: deployment.spec.replicas.unwrap_or(1),
            ready: deployment.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or_default(),
        })
    });
    try_join_all(each).await
}
