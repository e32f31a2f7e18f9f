//! The ports of nodes at which the webhooks of a hosted hub are to be reached: whether they are free, and whether the addresses are
//! those of nodes.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Node, Service};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use ocm_api::Manifest;
use ocm_core::{Event, Failure, Narrator, Plan, Reason};
use ocm_kube::Cluster;
use serde_json::Value;

use crate::registry::{PAGE, pages};

/// Checks them, of a plan for the hosting cluster. Who may not look finds out later.
///
/// # Errors
/// A refusal where another Service has such a port; the failure of a request.
pub(super) async fn check(hosting: &Cluster, plan: &Plan, narrator: &dyn Narrator) -> Result<(), Failure> {
    let ports = |body: &Value| body["spec"]["ports"].as_array().cloned().unwrap_or_default();
    let node_ports = |body: &Value| ports(body).iter().filter_map(|port| port["nodePort"].as_u64()).collect::<Vec<_>>();
    let services = plan.objects().filter(|object| object.kind() == "Service");
    let wanted: Vec<(&Manifest, u64)> =
        services.flat_map(|service| node_ports(service.body()).into_iter().map(move |port| (service, port))).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let (services, nodes) =
        futures::join!(all(hosting, ApiResource::erase::<Service>(&())), all(hosting, ApiResource::erase::<Node>(&())));
    for service in services?.unwrap_or_default() {
        let of = |text: Option<&String>| text.cloned().unwrap_or_default();
        let (space, name) = (of(service.metadata.namespace.as_ref()), of(service.metadata.name.as_ref()));
        let taken = node_ports(&service.data);
        let is_other = |planned: &Manifest| planned.name() != name || planned.namespace() != Some(space.as_str());
        if let Some((_, port)) = wanted.iter().find(|(planned, port)| taken.contains(port) && is_other(planned)) {
            return Err(Failure::refused(format!(
                "port {port} of the nodes of {} is that of Service {space}/{name} already; nothing was changed",
                hosting.label()
            ))
            .hint("name another port beside the address of that webhook, or delete the Service"));
        }
    }
    let Some(nodes) = nodes? else { return Ok(()) };
    let of_node = |node: &DynamicObject| node.data["status"]["addresses"].as_array().cloned().unwrap_or_default();
    let known: Vec<Value> = nodes.iter().flat_map(of_node).map(|one| one["address"].clone()).collect();
    let managers = plan.objects().filter(|object| object.kind() == "ClusterManager");
    let hosted = managers.filter_map(|manager| manager.body()["spec"]["deployOption"]["hosted"].as_object());
    for address in hosted.flat_map(|hosted| hosted.values()).map(|webhook| &webhook["address"]) {
        let is_ip = address.as_str().is_some_and(|text| text.parse::<IpAddr>().is_ok());
        if is_ip && !known.contains(address) {
            narrator.tell(Event::warning(format!(
                "no node of {} has the address {}: something has to lead from there to a port of its nodes",
                hosting.label(),
                address.as_str().unwrap_or_default()
            )));
        }
    }
    Ok(())
}

/// All objects of a kind; none where they may not be listed.
async fn all(cluster: &Cluster, kind: ApiResource) -> Result<Option<Vec<DynamicObject>>, Failure> {
    let api: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &kind);
    match pages(cluster, &api, ListParams::default(), || PAGE, "look at ports and addresses of nodes", Some).await {
        Err(failure) if failure.reason == Reason::Forbidden => Ok(None),
        found => found.map(Some),
    }
}
