//! Gateway API on a cluster, as far as a hub uses it: definitions of the two kinds with the fields that are used, and, in the place
//! of a controller, what that would write into their status.

use control_plane::Cluster;
use serde_json::{Value, json};

use crate::manifests::apply;
use crate::until;

const GROUP: &str = "gateway.networking.k8s.io";
/// The namespace of the Gateways.
pub const SPACE: &str = "infra";
/// The route of the hub's gRPC server, for kubectl.
pub const ROUTE: [&str; 3] =
    ["tlsroutes.gateway.networking.k8s.io", "cluster-manager-grpc-server", "--namespace=open-cluster-management-hub"];

/// Has a cluster serve Gateways, and TLSRoutes in this version. Source: the schemas of `config/crd` of
/// sigs.k8s.io/gateway-api v1.5.
///
/// # Panics
///
/// When it does not serve them.
pub fn serve(cluster: &Cluster, version: &str) {
    let text = json!({"type": "string"});
    let with_default = |default: &str| json!({"type": "string", "default": default});
    let port = json!({"type": "integer", "minimum": 1, "maximum": 65535});
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let listener = json!({"type": "object", "required": ["name", "port", "protocol"], "properties": {
        "name": text, "hostname": text, "port": port, "protocol": text,
        "tls": {"type": "object", "properties": {"mode": with_default("Terminate")}},
        "allowedRoutes": {"type": "object", "default": {"namespaces": {"from": "Same"}}, "properties": {
            "namespaces": {"type": "object", "default": {"from": "Same"}, "properties": {
                "from": {"type": "string", "default": "Same", "enum": ["All", "Selector", "Same", "None"]},
                "selector": open}},
            "kinds": {"type": "array", "items": open}}}}});
    let gateway = json!({"type": "object", "required": ["gatewayClassName", "listeners"], "properties": {
        "gatewayClassName": text,
        "listeners": {"type": "array", "minItems": 1, "items": listener, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"]}}});
    let parent = json!({"type": "object", "required": ["name"], "properties": {
        "group": with_default(GROUP), "kind": with_default("Gateway"), "namespace": text, "name": text,
        "sectionName": text, "port": port}});
    let backend = json!({"type": "object", "required": ["name"], "properties": {
        "group": with_default(""), "kind": with_default("Service"), "namespace": text, "name": text, "port": port,
        "weight": {"type": "integer", "default": 1}}});
    let rule = json!({"type": "object", "required": ["backendRefs"], "properties": {
        "name": text,
        "backendRefs": {"type": "array", "minItems": 1, "maxItems": 16, "items": backend, "x-kubernetes-list-type": "atomic"}}});
    let host = "^(\\*\\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
    let route = json!({"type": "object", "required": ["hostnames", "rules"], "properties": {
        "parentRefs": {"type": "array", "maxItems": 32, "items": parent, "x-kubernetes-list-type": "atomic"},
        "hostnames": {"type": "array", "minItems": 1, "maxItems": 16, "x-kubernetes-list-type": "atomic",
            "items": {"type": "string", "pattern": host}},
        "rules": {"type": "array", "minItems": 1, "maxItems": 1, "items": rule, "x-kubernetes-list-type": "atomic"}}});
    for (kind, plural, version, spec) in
        [("Gateway", "gateways", "v1", gateway), ("TLSRoute", "tlsroutes", version, route)]
    {
        let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": spec, "status": open}});
        let served = json!({"name": version, "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": schema}});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{GROUP}"),
                "annotations": {"api-approved.kubernetes.io": "unapproved, of tests"}},
            "spec": {"group": GROUP, "scope": "Namespaced", "versions": [served],
                "names": {"kind": kind, "plural": plural}},
        });
        apply(cluster, &definition);
        let served = format!("{plural}.{version}.{GROUP}");
        until("the kind is served", || cluster.kubectl(&["get", &served, "--all-namespaces"]).is_ok());
    }
}

/// A Gateway with one listener that passes TLS through at port 8443, with these members besides, and this address.
///
/// # Panics
///
/// When it cannot be made.
pub fn gateway(cluster: &Cluster, name: &str, members: &Value, address: &Value) {
    let mut listener = json!({"name": "tls", "port": 8443, "protocol": "TLS", "tls": {"mode": "Passthrough"}});
    for (member, value) in members.as_object().expect("members") {
        listener[member] = value.clone();
    }
    apply(cluster, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}));
    let spec = json!({"gatewayClassName": "none", "listeners": [listener]});
    let metadata = json!({"name": name, "namespace": SPACE});
    apply(
        cluster,
        &json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Gateway", "metadata": metadata, "spec": spec}),
    );
    let space = format!("--namespace={SPACE}");
    status(cluster, &["gateways.gateway.networking.k8s.io", name, &space], &json!({"addresses": [address]}));
}

/// Has the Gateway of the hub's route accept it, or not, and another Gateway say the opposite.
///
/// # Panics
///
/// When the route is not there.
pub fn accepts(cluster: &Cluster, accepted: bool) {
    let text = cluster.kubectl(&[&["get"][..], &ROUTE, &["--output=json"]].concat()).expect("the route is there");
    let route: Value = serde_json::from_str(&text).expect("JSON");
    let says = |parent: &Value, accepted: bool| {
        let (status_of, reason) = if accepted { ("True", "Accepted") } else { ("False", "NotAllowedByListeners") };
        let condition = json!({"type": "Accepted", "status": status_of, "reason": reason, "message": "as the test has it",
            "observedGeneration": route["metadata"]["generation"]});
        json!({"parentRef": parent, "controllerName": "test.example/gateways", "conditions": [condition]})
    };
    let own = &route["spec"]["parentRefs"][0];
    let mut other = own.clone();
    other["name"] = json!("other");
    status(cluster, &ROUTE, &json!({"parents": [says(&other, !accepted), says(own, accepted)]}));
}

fn status(cluster: &Cluster, object: &[&str], status: &Value) {
    let patch = format!("--patch={}", json!({ "status": status }));
    let words = [&["patch"][..], object, &["--subresource=status", "--type=merge", patch.as_str()]].concat();
    cluster.kubectl(&words).expect("its status is written");
}
