//! The gRPC server of a hub as agents find it: the Service that exposes it, and its port.

use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ocm_api::Manifest;
use ocm_api::names::namespaces;
use serde_json::{Value, json};

use super::gateway::{self, Gateway};
use super::{Driver, GrpcExposure, Options, OptionsError};
use crate::grpc::{self, Address, NODE_PORT, PORT, USUAL_PORT};

/// Host and port that were typed for the gRPC server.
///
/// # Errors
/// What is no address.
pub(super) fn typed(options: &Options) -> Result<Option<(String, Option<u16>)>, OptionsError> {
    let Some(text) = &options.grpc_server else { return Ok(None) };
    Address::parse(text).map(Some).ok_or_else(|| OptionsError::NotAnAddress(text.clone()))
}

/// The port at which agents find the server, where one is to be noted: as typed, else as noted before, else the usual one
/// of what exposes it.
///
/// # Errors
/// What is no address.
pub(super) fn port(options: &Options, live: Option<&Value>) -> Result<Option<u16>, OptionsError> {
    let noted = live.and_then(gateway::noted_port);
    let on_nodes = options.expose_grpc == Some(GrpcExposure::NodePort);
    // That of a Gateway is none of nodes.
    let of_gateway = live.is_some_and(|live| Gateway::noted(live).is_some());
    Ok(match typed(options)? {
        Some((_, Some(port))) => Some(port),
        _ if on_nodes => noted.filter(|_| !of_gateway).or(Some(NODE_PORT)),
        Some((_, None)) => noted.map(|_| USUAL_PORT),
        None => noted,
    })
}

/// The Gateway by which agents reach the server after an installation whose ClusterManager this is: as typed, else as noted
/// before; none: they reach it in another way.
///
/// # Errors
/// A Gateway that is not named, or that has no use.
pub(super) fn gateway(
    options: &Options,
    (manager, live): (&Value, Option<&Value>),
) -> Result<Option<Gateway>, OptionsError> {
    let noted = || live.and_then(Gateway::noted);
    match (options.expose_grpc, &options.grpc_gateway) {
        (Some(GrpcExposure::Gateway), typed) => typed.clone().or_else(noted).map(Some).ok_or(OptionsError::Gateway),
        (_, Some(_)) => Err(OptionsError::Gateway),
        (None, None) if is_on(manager) && !is_balanced(manager, live) => Ok(noted()),
        (_, None) => Ok(None),
    }
}

/// What a ClusterManager notes of that Gateway; none: nothing, and nothing was noted.
///
/// # Errors
/// As [`gateway()`].
pub(super) fn noted(options: &Options, managers: (&Value, Option<&Value>)) -> Result<Option<String>, OptionsError> {
    let was_noted = managers.1.is_some_and(|live| Gateway::noted(live).is_some());
    let gateway = gateway(options, managers)?.map(|gateway| gateway.to_string());
    // What we have applied once stays unless it is applied otherwise.
    Ok(gateway.or(was_noted.then(String::new)))
}

/// The hub's namespace, which the operator would make later, and in it the Service, or the route of a Gateway. Both go when the
/// operator removes the hub. None where nothing was typed, or the operator's own Service has a load balancer.
pub(super) fn objects(
    hub: &str,
    options: &Options,
    (manager, live): (&Value, Option<&Value>),
    port: Option<u16>,
) -> Option<[Manifest; 2]> {
    let exposure = options.expose_grpc?;
    if exposure == GrpcExposure::LoadBalancer && is_balanced(manager, live) {
        return None;
    }
    let meta = |namespace: Option<&str>, name: &str| ObjectMeta {
        namespace: namespace.map(str::to_owned),
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    };
    let space = Manifest::with::<Namespace>(&meta(None, namespaces::HUB), Value::Null);
    let mut entry = json!({"name": "grpc", "protocol": "TCP", "port": USUAL_PORT, "targetPort": PORT});
    let type_ = match exposure {
        GrpcExposure::NodePort => {
            entry["nodePort"] = json!(port.unwrap_or(NODE_PORT));
            "NodePort"
        }
        GrpcExposure::LoadBalancer => "LoadBalancer",
        GrpcExposure::Gateway => {
            let gateway = Gateway::noted(manager)?;
            let name = gateway::grpc_host(manager).or_else(|| gateway::grpc_host(live?))?;
            return Some([space, gateway::route(hub, Some(&gateway), name, options.route_version.as_deref())?]);
        }
    };
    let spec = json!({"type": type_, "selector": {"app": grpc::service(hub)}, "ports": [entry]});
    let service = meta(Some(namespaces::HUB), &grpc::exposed_service(hub));
    // A port of nodes goes when there is a load balancer in its place.
    Some([space, Manifest::with::<Service>(&service, json!({"spec": spec})).exactly()])
}

/// What of ours, by its name alone, a ClusterManager leads no agent to any more: the Service where none registers over gRPC, the
/// operator's own Service has a load balancer, or there is a Gateway; the route where there is no Gateway any more.
pub(super) fn unneeded(hub: &str, manager: &Value, live: Option<&Value>, version: Option<&str>) -> Vec<Manifest> {
    let meta = ObjectMeta {
        namespace: Some(namespaces::HUB.to_owned()),
        name: Some(grpc::exposed_service(hub)),
        ..ObjectMeta::default()
    };
    let by_gateway = Gateway::noted(manager).is_some();
    let is_left = by_gateway || !is_on(manager) || is_balanced(manager, live);
    let service = is_left.then(|| Manifest::with::<Service>(&meta, Value::Null));
    let was_noted = live.is_some_and(|live| Gateway::noted(live).is_some());
    let route = (was_noted && !by_gateway).then(|| gateway::route(hub, None, "", version)).flatten();
    service.into_iter().chain(route).collect()
}

/// Whether clusters may register over gRPC, as a ClusterManager says.
fn is_on(manager: &Value) -> bool {
    let drivers = manager.pointer("/spec/registrationConfiguration/registrationDrivers").and_then(Value::as_array);
    drivers.into_iter().flatten().any(|entry| entry["authType"] == Driver::Grpc.word())
}

/// Whether a ClusterManager has the operator make a Service with a load balancer. What it does not say is as on the live one.
fn is_balanced(manager: &Value, live: Option<&Value>) -> bool {
    let exposures = |manager: &Value| manager.pointer("/spec/serverConfiguration/endpointsExposure").cloned();
    let exposures = exposures(manager).or_else(|| exposures(live?)).unwrap_or_default();
    let first = exposures.as_array().into_iter().flatten().find(|one| one["protocol"] == "grpc");
    first.is_some_and(|one| one.pointer("/grpc/type").and_then(Value::as_str) == Some("loadBalancer"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::{GATEWAY_ANNOTATION, PORT_ANNOTATION};
    use crate::install::{DriverSetting, GrpcEndpoint, Live, plan};

    fn options(server: Option<&str>, expose: Option<GrpcExposure>) -> Options {
        Options {
            registration_drivers: Some(vec![Driver::Csr, Driver::Grpc]),
            grpc_server: server.map(str::to_owned),
            expose_grpc: expose,
            ..Options::default()
        }
    }

    fn found(options: &Options, live: &Live) -> (Value, Option<Value>) {
        let plan = plan(options, live).unwrap().plan;
        let of = |kind: &str| plan.objects().find(|object| object.kind() == kind).map(|object| object.body().clone());
        (of("ClusterManager").unwrap(), of("Service"))
    }

    const EXPOSURE: &str = "/spec/serverConfiguration/endpointsExposure/0/grpc";

    #[test]
    fn a_port_is_no_part_of_the_host_that_the_certificate_is_for() {
        let (manager, service) = found(&options(Some("hub.example:8443"), None), &Live::default());
        let exposure = manager.pointer(EXPOSURE).unwrap();
        assert_eq!(exposure, &json!({"type": "hostname", "hostname": {"host": "hub.example"}}));
        assert_eq!(manager["metadata"]["annotations"], json!({PORT_ANNOTATION: "8443"}));
        assert_eq!(service, None);
        // A second run without flags says it again, another host without a port does not.
        let live = Live { cluster_manager: Some(manager), ..Live::default() };
        let (again, _) = found(&Options::default(), &live);
        assert_eq!(again["metadata"]["annotations"], json!({PORT_ANNOTATION: "8443"}));
        let (other, _) = found(&options(Some("other.example"), None), &live);
        assert_eq!(other["metadata"]["annotations"], json!({PORT_ANNOTATION: "443"}));
        // What somebody has chosen beside the name stays with the name.
        let mut trusted = live.clone();
        let bundle = json!({"host": "hub.example", "caBundle": "Y2E="});
        *trusted.cluster_manager.as_mut().unwrap().pointer_mut(EXPOSURE).unwrap() =
            json!({"type": "hostname", "hostname": bundle});
        let (same, _) = found(&options(Some("hub.example"), None), &trusted);
        assert_eq!(same.pointer(EXPOSURE).unwrap()["hostname"], bundle);
        let (other, _) = found(&options(Some("other.example"), None), &trusted);
        assert_eq!(other.pointer(EXPOSURE).unwrap()["hostname"], json!({"host": "other.example"}));
        let (plain, _) = found(&options(Some("hub.example"), None), &Live::default());
        assert_eq!(plain["metadata"], json!({"name": "cluster-manager"}));
        let wrong = plan(&options(Some("http://hub"), None), &Live::default()).unwrap_err();
        assert_eq!(wrong, OptionsError::NotAnAddress("http://hub".to_owned()));
    }

    #[test]
    fn a_port_of_the_nodes_is_given_or_fixed() {
        let node = Some(GrpcExposure::NodePort);
        for (server, port) in [("10.0.0.1", 30443), ("10.0.0.1:30090", 30090)] {
            let (manager, service) = found(&options(Some(server), node), &Live::default());
            let service = service.unwrap();
            assert_eq!(service["metadata"]["namespace"], "open-cluster-management-hub");
            assert_eq!(service["metadata"]["name"], "cluster-manager-grpc-server-external");
            assert_eq!(service["spec"]["type"], "NodePort");
            assert_eq!(service["spec"]["selector"], json!({"app": "cluster-manager-grpc-server"}));
            let entry = &service["spec"]["ports"][0];
            assert_eq!(
                (&entry["port"], &entry["targetPort"], &entry["nodePort"]),
                (&json!(443), &json!(8090), &json!(port))
            );
            assert_eq!(manager["metadata"]["annotations"], json!({PORT_ANNOTATION: port.to_string()}));
            // The same again keeps the port.
            let live = Live { cluster_manager: Some(manager), ..Live::default() };
            let (_, again) = found(&Options { expose_grpc: node, ..Options::default() }, &live);
            assert_eq!(again.unwrap()["spec"]["ports"][0]["nodePort"], port);
        }
    }

    #[test]
    fn of_two_load_balancers_one_is_enough() {
        let balancer = Some(GrpcExposure::LoadBalancer);
        let (manager, service) = found(&options(None, balancer), &Live::default());
        assert_eq!(manager.pointer(EXPOSURE).unwrap(), &json!({"type": "loadBalancer"}));
        assert_eq!(service, None, "the operator makes it");
        let live = Live { cluster_manager: Some(manager), ..Live::default() };
        for again in [options(None, balancer), Options { expose_grpc: balancer, ..Options::default() }] {
            assert_eq!(found(&again, &live).1, None, "it has made it");
        }
        let (manager, service) = found(&options(Some("hub.example"), balancer), &Live::default());
        assert_eq!(manager.pointer(EXPOSURE).unwrap()["type"], "hostname");
        let service = service.unwrap();
        assert_eq!(service["spec"]["type"], "LoadBalancer");
        assert_eq!(service["spec"]["ports"][0].get("nodePort"), None);
        let typed =
            Options { grpc_endpoint: Some(GrpcEndpoint::LoadBalancer), ..options(Some("hub.example"), balancer) };
        assert_eq!(found(&typed, &Live::default()).1, None);
    }

    #[test]
    fn a_service_that_no_agent_is_led_to_is_told() {
        let node = options(Some("10.0.0.1"), Some(GrpcExposure::NodePort));
        let (manager, service) = found(&node, &Live::default());
        let live = Live { cluster_manager: Some(manager), ..Live::default() };
        let unneeded = |options: &Options, live: &Live| plan(options, live).unwrap().unneeded;
        for needed in [&node, &Options::default()] {
            assert!(unneeded(needed, &live).is_empty(), "{needed:?}");
        }
        let balanced = options(None, Some(GrpcExposure::LoadBalancer));
        let balanced = Options { grpc_endpoint: Some(GrpcEndpoint::LoadBalancer), ..balanced };
        let without = Options { registration_drivers: Some(vec![Driver::Csr]), ..Options::default() };
        for left in [&balanced, &without] {
            let told = unneeded(left, &live).pop().unwrap();
            assert_eq!(told.name(), service.as_ref().unwrap()["metadata"]["name"], "{left:?}");
            assert_eq!(told.namespace(), Some(namespaces::HUB));
            assert!(unneeded(left, &Live::default()).is_empty(), "a new hub has none");
        }
        // With another load balancer the Service is that.
        let other = options(Some("hub.example"), Some(GrpcExposure::LoadBalancer));
        assert!(unneeded(&other, &live).is_empty());
    }

    fn by_gateway(server: Option<&str>, gateway: Option<&str>) -> Options {
        let gateway = gateway.map(|text| Gateway::parse(text).unwrap());
        Options { grpc_gateway: gateway, ..options(server, Some(GrpcExposure::Gateway)) }
    }

    #[test]
    fn a_gateway_leads_to_the_server_by_a_route() {
        let installed = |options: &Options, live: &Live| {
            let plan = plan(options, live).unwrap();
            let of =
                |kind: &str| plan.plan.objects().find(|object| object.kind() == kind).map(|one| one.body().clone());
            (of("ClusterManager").unwrap(), of("TLSRoute"), plan.unneeded)
        };
        let typed = by_gateway(Some("Hub.example:8443"), Some("infra/public/tls"));
        let (manager, route, unneeded) = installed(&typed, &Live::default());
        assert!(unneeded.is_empty());
        assert_eq!(manager.pointer(EXPOSURE).unwrap()["hostname"]["host"], "Hub.example");
        let annotations = json!({PORT_ANNOTATION: "8443", GATEWAY_ANNOTATION: "infra/public/tls"});
        assert_eq!(manager["metadata"]["annotations"], annotations);
        let route = route.unwrap();
        assert_eq!(route["apiVersion"], "gateway.networking.k8s.io/v1");
        assert_eq!(route["metadata"]["namespace"], namespaces::HUB);
        let parent = &route["spec"]["parentRefs"][0];
        let of_parent = [&parent["namespace"], &parent["name"], &parent["sectionName"]];
        assert_eq!(of_parent, ["infra", "public", "tls"]);
        assert_eq!(route["spec"]["hostnames"], json!(["hub.example"]));
        let backend = &route["spec"]["rules"][0]["backendRefs"][0];
        assert_eq!((&backend["name"], &backend["port"]), (&json!("cluster-manager-grpc-server"), &json!(8090)));
        // It stays noted, is found again without its name, and is served as the hub serves it.
        let live = Live { cluster_manager: Some(manager), ..Live::default() };
        let (again, route, _) = installed(&Options::default(), &live);
        assert_eq!((&again["metadata"]["annotations"], route), (&annotations, None));
        let older = Options {
            route_version: Some("gateway.networking.k8s.io/v1alpha2".to_owned()),
            ..by_gateway(Some("hub.example:443"), None)
        };
        let (_, route, unneeded) = installed(&older, &live);
        let route = route.unwrap();
        assert_eq!(route["apiVersion"], "gateway.networking.k8s.io/v1alpha2");
        assert_eq!(route["spec"]["parentRefs"][0]["name"], "public");
        // A Service of before leads nobody any more, and neither does the route after it.
        let names = |unneeded: &[Manifest]| unneeded.iter().map(Manifest::reference).collect::<Vec<_>>();
        assert_eq!(names(&unneeded), ["service/cluster-manager-grpc-server-external"]);
        let node = options(Some("10.0.0.1"), Some(GrpcExposure::NodePort));
        let (manager, _, unneeded) = installed(&node, &live);
        assert_eq!(names(&unneeded), ["tlsroute.gateway.networking.k8s.io/cluster-manager-grpc-server"]);
        assert_eq!(manager["metadata"]["annotations"], json!({PORT_ANNOTATION: "30443", GATEWAY_ANNOTATION: ""}));
        let without = Options { registration_drivers: Some(vec![Driver::Csr]), ..Options::default() };
        assert_eq!(installed(&without, &live).2.len(), 2);
    }

    #[test]
    fn a_gateway_is_named_once_and_asked_for_a_name() {
        let refused = |options: &Options| plan(options, &Live::default()).unwrap_err();
        let (gateway, host) = (Some("infra/public"), Some("hub.example"));
        assert_eq!(refused(&by_gateway(host, None)), OptionsError::Gateway);
        let elsewhere = Options { expose_grpc: None, ..by_gateway(host, gateway) };
        assert_eq!(refused(&elsewhere), OptionsError::Gateway);
        assert_eq!(refused(&by_gateway(None, gateway)), OptionsError::NoGrpcAddress);
        let address = "192.0.2.1".to_owned();
        assert_eq!(refused(&by_gateway(Some(&address), gateway)), OptionsError::NotAName(address));
        let balanced = Options { grpc_endpoint: Some(GrpcEndpoint::LoadBalancer), ..by_gateway(host, gateway) };
        assert_eq!(refused(&balanced), OptionsError::BalancedGateway);
    }

    #[test]
    fn another_name_of_a_load_balancer_leaves_it_one() {
        let balancer = |settings: Value| json!({"type": "loadBalancer", "loadBalancer": settings});
        let at = |exposure: &Value| {
            let (mut manager, _) = found(&options(None, Some(GrpcExposure::LoadBalancer)), &Live::default());
            *manager.pointer_mut(EXPOSURE).unwrap() = exposure.clone();
            Live { cluster_manager: Some(manager), ..Live::default() }
        };
        let exposed = |options: &Options, live: &Live| found(options, live).0.pointer(EXPOSURE).unwrap().clone();
        let live = at(&balancer(json!({"host": "hub.example", "caBundle": "Y2E="})));
        let (same, other) = (options(Some("hub.example:443"), None), options(Some("other.example"), None));
        assert_eq!(exposed(&same, &live), balancer(json!({"host": "hub.example", "caBundle": "Y2E="})));
        assert_eq!(exposed(&other, &live), balancer(json!({"host": "other.example"})));
        assert_eq!(exposed(&other, &at(&json!({"type": "loadBalancer"}))), balancer(json!({"host": "other.example"})));
        // The type alone keeps the name, and another one that is typed is another one.
        let type_ = |type_| Options { grpc_endpoint: Some(type_), ..options(None, None) };
        let kept = exposed(&type_(GrpcEndpoint::LoadBalancer), &live);
        assert_eq!(kept, balancer(json!({"host": "hub.example", "caBundle": "Y2E="})));
        let typed = Options { grpc_server: Some("hub.example".to_owned()), ..type_(GrpcEndpoint::Hostname) };
        assert_eq!(exposed(&typed, &live), json!({"type": "hostname", "hostname": {"host": "hub.example"}}));
        let node = exposed(&options(Some("10.0.0.1"), Some(GrpcExposure::NodePort)), &live);
        assert_eq!(node, json!({"type": "hostname", "hostname": {"host": "10.0.0.1"}}));
    }

    #[test]
    fn what_is_exposed_has_a_driver_and_a_host() {
        let node = Some(GrpcExposure::NodePort);
        let without = Options { expose_grpc: node, ..Options::default() };
        let error = plan(&without, &Live::default()).unwrap_err();
        assert_eq!(error, OptionsError::DriverIsOff(Driver::Grpc, DriverSetting::Exposure));
        assert_eq!(plan(&options(None, node), &Live::default()).unwrap_err(), OptionsError::NoGrpcAddress);
        let stages = plan(&options(Some("h"), node), &Live::default()).unwrap().plan.stages;
        let at = |kind: &str, name: &str| {
            let holds = |object: &Manifest| object.kind() == kind && object.name() == name;
            stages.iter().position(|stage| stage.objects.iter().any(holds)).unwrap()
        };
        let (space, service) = (namespaces::HUB, "cluster-manager-grpc-server-external");
        assert!(at("Namespace", space) < at("Service", service));
    }
}
