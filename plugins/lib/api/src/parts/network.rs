//! Services, what is behind them, and who may connect to where.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

part_object! {
    /// A Service.
    pub struct Service {
        /// What is wanted.
        required "spec" => spec: ServiceSpec,
        /// What was last observed.
        "status" => status: Option<ServiceStatus>,
    }
    group "", version "v1", plural "services", scope NamespaceResourceScope
}

part! {
    /// How a Service is exposed.
    pub struct ServiceSpec {
        /// `ClusterIP`, `NodePort`, `LoadBalancer` or `ExternalName`.
        "type" => type_: Option<String>,
        /// Its ports.
        "ports" => ports: Option<Vec<ServicePort>>,
    }

    /// A port of a Service.
    pub struct ServicePort {
        /// Its number.
        "port" => port: i32,
        /// The port of the nodes that leads to it.
        "nodePort" => node_port: Option<i32>,
    }

    /// What was observed of a Service.
    pub struct ServiceStatus {
        /// The load balancer in front of it.
        "loadBalancer" => load_balancer: Option<LoadBalancerStatus>,
    }

    /// Where a load balancer is.
    pub struct LoadBalancerStatus {
        /// Its addresses.
        "ingress" => ingress: Option<Vec<LoadBalancerIngress>>,
    }

    /// An address of a load balancer.
    pub struct LoadBalancerIngress {
        /// Its host name.
        "hostname" => hostname: Option<String>,
        /// Its IP address.
        "ip" => ip: Option<String>,
    }
}

part_object! {
    /// Some of what is behind a Service.
    pub struct EndpointSlice {
        /// What is behind it.
        "endpoints" => endpoints: Vec<Endpoint>,
        /// The ports of each of them.
        "ports" => ports: Option<Vec<EndpointPort>>,
    }
    group "discovery.k8s.io", version "v1", plural "endpointslices", scope NamespaceResourceScope
}

part! {
    /// One that is behind a Service.
    pub struct Endpoint {
        /// Its addresses.
        "addresses" => addresses: Vec<String>,
        /// How it is.
        "conditions" => conditions: Option<EndpointConditions>,
    }

    /// How an endpoint is.
    pub struct EndpointConditions {
        /// Whether it takes connections; not known where it says nothing.
        "ready" => ready: Option<bool>,
    }

    /// A port of endpoints.
    pub struct EndpointPort {
        /// Its number.
        "port" => port: Option<i32>,
    }
}

part_object! {
    /// A NetworkPolicy.
    pub struct NetworkPolicy {
        /// What is wanted.
        "spec" => spec: Option<NetworkPolicySpec>,
    }
    group "networking.k8s.io", version "v1", plural "networkpolicies", scope NamespaceResourceScope
}

part! {
    /// Where pods may connect to.
    pub struct NetworkPolicySpec {
        /// Of which pods.
        "podSelector" => pod_selector: Option<LabelSelector>,
        /// What it limits: `Ingress`, `Egress`.
        "policyTypes" => policy_types: Option<Vec<String>>,
        /// Where they may connect to.
        "egress" => egress: Option<Vec<EgressRule>>,
    }

    /// Where pods may connect to.
    pub struct EgressRule {
        /// At which ports; none: at all of them.
        "ports" => ports: Option<Vec<NetworkPolicyPort>>,
    }

    /// A port that pods may connect to, or several that follow each other.
    pub struct NetworkPolicyPort {
        /// `TCP`, `UDP` or `SCTP`; none: TCP.
        "protocol" => protocol: Option<String>,
        /// Its number or its name; none: all of them.
        "port" => port: Option<IntOrString>,
        /// The last one.
        "endPort" => end_port: Option<i32>,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1 as core;
    use k8s_openapi::api::discovery::v1 as discovery;
    use k8s_openapi::api::networking::v1 as networking;
    use serde_json::json;

    use super::super::tests::{both, damaged, refused};
    use super::*;

    #[test]
    fn of_a_service_it_is_read_how_it_is_exposed() {
        let (part, whole): (Service, core::Service) = both(json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "cluster-manager-grpc-server", "namespace": "open-cluster-management-hub"},
            "spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "selector": {"app": "x"},
                "ipFamilies": ["IPv4"], "sessionAffinity": "None", "ports": [
                    {"name": "grpc", "port": 443, "targetPort": 8090, "nodePort": 30443, "protocol": "TCP"}, {"port": 80, "targetPort": "http"}]},
            "status": {"loadBalancer": {"ingress": [{"hostname": "lb.example", "ports": [{"port": 443, "protocol": "TCP"}]},
                {"ip": "192.0.2.1", "ipMode": "VIP"}]}},
        }));
        assert_eq!(part.metadata, whole.metadata);
        let (spec, of_whole) = (part.spec, whole.spec.unwrap());
        assert_eq!(spec.type_, of_whole.type_);
        let of_whole =
            of_whole.ports.unwrap().into_iter().map(|one| ServicePort { port: one.port, node_port: one.node_port });
        assert_eq!(spec.ports.unwrap(), of_whole.collect::<Vec<_>>());
        let ingress = part.status.unwrap().load_balancer.unwrap().ingress.unwrap().into_iter();
        let of_whole = whole.status.unwrap().load_balancer.unwrap().ingress.unwrap().into_iter();
        let of_whole = of_whole.map(|one| LoadBalancerIngress { hostname: one.hostname, ip: one.ip });
        assert_eq!(ingress.collect::<Vec<_>>(), of_whole.collect::<Vec<_>>());
        let (part, _): (Service, core::Service) =
            both(json!({"metadata": {}, "spec": {}, "status": {"loadBalancer": {}}}));
        assert_eq!(part.spec, ServiceSpec::default());
        damaged::<Service>();
        for wrong in [
            json!({"spec": {"type": 1}}),
            json!({"spec": {"ports": [{"port": "443"}]}}),
            json!({"spec": {"ports": [{"port": 99_999_999_999_u64}]}}),
            json!({"status": {"loadBalancer": {"ingress": [{"ip": 1}]}}}),
            json!({"status": "x"}),
        ] {
            refused::<Service, core::Service>(wrong);
        }
    }

    #[test]
    fn of_a_slice_it_is_read_what_is_ready_and_where() {
        let (part, whole): (EndpointSlice, discovery::EndpointSlice) = both(json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": "kubernetes", "namespace": "default", "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "endpoints": [
                {"addresses": ["192.0.2.1"], "conditions": {"ready": true, "serving": true, "terminating": false}, "nodeName": "n",
                    "targetRef": {"kind": "Pod", "name": "p"}, "zone": "z"},
                {"addresses": ["192.0.2.2", "192.0.2.3"], "conditions": {"ready": false}},
                {"addresses": null, "conditions": {}}, {"conditions": null},
            ],
            "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}, {"name": "all", "port": null}],
        }));
        assert_eq!(part.metadata, whole.metadata);
        let ready = |conditions: Option<discovery::EndpointConditions>| {
            conditions.map(|conditions| EndpointConditions { ready: conditions.ready })
        };
        let of_whole = whole.endpoints.into_iter();
        let of_whole = of_whole.map(|one| Endpoint { addresses: one.addresses, conditions: ready(one.conditions) });
        assert_eq!(part.endpoints, of_whole.collect::<Vec<_>>());
        let of_whole = whole.ports.unwrap().into_iter().map(|one| EndpointPort { port: one.port });
        assert_eq!(part.ports.unwrap(), of_whole.collect::<Vec<_>>());
        // As API servers answer that nothing is behind a Service.
        let (part, _): (EndpointSlice, discovery::EndpointSlice) =
            both(json!({"metadata": {}, "endpoints": null, "ports": null, "addressType": "IPv4"}));
        assert_eq!((part.endpoints.len(), part.ports), (0, None));
        for wrong in [
            json!({"endpoints": {}}),
            json!({"endpoints": [{"addresses": "192.0.2.1"}]}),
            json!({"endpoints": [{"conditions": {"ready": "true"}}]}),
            json!({"ports": [{"port": true}]}),
        ] {
            refused::<EndpointSlice, discovery::EndpointSlice>(wrong);
        }
    }

    #[test]
    fn of_a_network_policy_it_is_read_where_pods_may_connect_to() {
        let (part, whole): (NetworkPolicy, networking::NetworkPolicy) = both(json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "p", "namespace": "n"},
            "spec": {
                "podSelector": {"matchLabels": {"app": "klusterlet-agent"}}, "policyTypes": ["Ingress", "Egress"],
                "ingress": [{"from": [{"podSelector": {}}], "ports": [{"port": 8443}]}],
                "egress": [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}], "ports": [
                    {"port": 443}, {"port": 53, "protocol": "UDP"}, {"port": 6000, "endPort": 7000, "protocol": "TCP"}, {"port": "https"},
                    {}]}, {}, {"ports": null}],
            },
        }));
        assert_eq!(part.metadata, whole.metadata);
        let (part, whole) = (part.spec.unwrap(), whole.spec.unwrap());
        assert_eq!((part.pod_selector, part.policy_types), (whole.pod_selector, whole.policy_types));
        let port = |one: networking::NetworkPolicyPort| NetworkPolicyPort {
            protocol: one.protocol,
            port: one.port,
            end_port: one.end_port,
        };
        let rule = |one: networking::NetworkPolicyEgressRule| EgressRule {
            ports: one.ports.map(|ports| ports.into_iter().map(port).collect()),
        };
        assert_eq!(part.egress.unwrap(), whole.egress.unwrap().into_iter().map(rule).collect::<Vec<_>>());
        for wrong in [
            json!({"spec": {"policyTypes": "Egress"}}),
            json!({"spec": {"podSelector": {"matchLabels": []}}}),
            json!({"spec": {"egress": [{"ports": [{"port": 1.5}]}]}}),
            json!({"spec": {"egress": [{"ports": [{"endPort": "7000"}]}]}}),
        ] {
            refused::<NetworkPolicy, networking::NetworkPolicy>(wrong);
        }
    }
}
