//! What a cluster that is to be a hub holds.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use ocm_api::ClusterManager;
use ocm_api::names::{namespaces, operators};
use ocm_core::Failure;
use ocm_core::install::Live;
use ocm_kube::Cluster;
use serde_json::Value;

use crate::registry::{PAGE, pages};
use crate::served::or_nothing;

/// Reads what an installation depends on.
///
/// # Errors
/// When the cluster cannot be read, or holds more than one hub.
pub(crate) async fn survey(cluster: &Cluster) -> Result<Live, Failure> {
    let managers: Api<DynamicObject> =
        Api::all_with(cluster.client.clone(), &ApiResource::erase::<ClusterManager>(&()));
    // As it is, unread: what we do not know of it must not get lost.
    let deployments: Api<DynamicObject> =
        Api::namespaced_with(cluster.client.clone(), namespaces::OPERATOR, &ApiResource::erase::<Deployment>(&()));
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let (all, two) = (ListParams::default(), ListParams::default().limit(2));
    let (managers, operator, nodes) =
        futures::join!(managers.list(&all), deployments.get_opt(operators::CLUSTER_MANAGER), nodes.list_metadata(&two));
    let managers = managers.map(|list| list.items).map_err(|error| cluster.explain("list ClusterManagers", error));
    let managers = or_nothing(managers)?;
    let names: Vec<&str> = managers.iter().filter_map(|manager| manager.metadata.name.as_deref()).collect();
    if names.len() > 1 {
        return Err(Failure::refused(format!("there are several ClusterManagers: {}", names.join(", ")))
            .hint("a cluster is one hub; remove those that are not meant"));
    }
    let operator = operator.map_err(|error| cluster.explain("read the operator's Deployment", error))?;
    if !managers.is_empty() && operator.is_none() {
        refuse_second_operator(cluster).await?;
    }
    Ok(Live {
        cluster_manager: managers.into_iter().next().map(|manager| value(&manager)).transpose()?,
        operator: operator.map(|operator| value(&operator)).transpose()?,
        // Not everybody may see nodes; then the number of replicas is the usual one.
        nodes: nodes.ok().map(|list| list.items.len()),
    })
}

/// A hub whose operator runs elsewhere belongs to another installer: two operators would fight over it.
async fn refuse_second_operator(cluster: &Cluster) -> Result<(), Failure> {
    let api: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &ApiResource::erase::<Deployment>(&()));
    let runs = |deployment: &DynamicObject| {
        let containers = deployment.data.pointer("/spec/template/spec/containers").and_then(Value::as_array);
        containers.into_iter().flatten().any(|container| {
            let words = ["command", "args"].into_iter().filter_map(|part| container[part].as_array()).flatten();
            let words: Vec<&str> = words.filter_map(Value::as_str).collect();
            words.iter().any(|word| word.ends_with("registration-operator")) && words.contains(&"hub")
        })
    };
    let operator = |deployment: DynamicObject| runs(&deployment).then_some(deployment);
    let what = "look for the operator of this hub";
    let found = pages(cluster, &api, ListParams::default(), || PAGE, what, operator).await?;
    let Some(other) = found.first() else { return Ok(()) };
    let (namespace, name) = (&other.metadata.namespace, &other.metadata.name);
    let place = format!("{}/{}", namespace.as_deref().unwrap_or_default(), name.as_deref().unwrap_or_default());
    Err(Failure::refused(format!("this hub has an operator already, Deployment {place}; nothing was changed"))
        .hint("whoever installed it there has to change it; a second operator would fight with it"))
}

fn value<T: serde::Serialize>(object: &T) -> Result<Value, Failure> {
    serde_json::to_value(object).map_err(|error| Failure::other("the server's answer cannot be read").because(error))
}
