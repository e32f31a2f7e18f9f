//! The hub's gRPC server: where agents find it, and what they register there with.

use std::fmt;

use ocm_api::ClusterManager;
use ocm_api::operator::{EndpointExposure, EndpointProtocol, EndpointType, RegistrationAuthType};
use ocm_api::parts::Service;
use serde_json::Value;

use crate::certificate;

/// Port of the server in its pods. Upstream: `manifests/cluster-manager/management/grpc-server`.
pub const PORT: u16 = 8090;
/// Port of whoever says none: that of https.
pub const USUAL_PORT: u16 = 443;
/// Port of the hub's nodes at which the server is exposed unless another one is given.
pub const NODE_PORT: u16 = 30443;
/// Annotation of a ClusterManager: the port at which agents find the gRPC server. The ClusterManager has no field for it,
/// and the certificate of the server is made for whatever stands in the field of the host.
pub const PORT_ANNOTATION: &str = "kubectl-ocm/grpc-port";
/// Annotation of a ClusterManager: the Gateway by which agents find the gRPC server, as `NAMESPACE/NAME[/LISTENER]`; empty where
/// they are led to it in another way again.
pub const GATEWAY_ANNOTATION: &str = "kubectl-ocm/grpc-gateway";

/// Host and port of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Host name or IP address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl Address {
    /// Takes `HOST[:PORT]` apart, also behind `https://`; none where it is not that.
    pub fn parse(text: &str) -> Option<(String, Option<u16>)> {
        let text = text.trim();
        let text = text.strip_prefix("https://").unwrap_or(text);
        let text = text.strip_suffix('/').unwrap_or(text);
        let (host, port) = match text.strip_prefix('[') {
            Some(bracketed) => {
                let (host, rest) = bracketed.split_once(']')?;
                let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) };
                (host, port)
            }
            None => match text.split_once(':') {
                // An IPv6 address without brackets.
                Some((_, rest)) if rest.contains(':') => (text, None),
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        let port = match port {
            Some(port) => Some(port.parse().ok().filter(|port| *port != 0)?),
            None => None,
        };
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':');
        (!host.is_empty() && host.bytes().all(is_host)).then(|| (host.to_owned(), port))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// The hub's gRPC server as an agent reaches and trusts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Where it is.
    pub address: Address,
    /// Certificates (DER) that vouch for it.
    pub ca: Vec<Vec<u8>>,
}

impl Server {
    /// The file `config.yaml` with which an agent registers. Upstream: `GRPCConfig` of sdk-go, whose `caData` is base64 of
    /// PEM.
    pub fn config(&self, token: &str) -> String {
        // JSON strings are YAML strings.
        let quoted = |text: &str| Value::from(text).to_string();
        format!(
            "caData: {}\nkeepAliveConfig: {{}}\ntoken: {}\nurl: {}\n",
            certificate::to_pem_base64(&self.ca),
            quoted(token),
            quoted(&self.address.to_string())
        )
    }
}

/// Whether clusters may register at a hub in this way. A ClusterManager that lists no way means csr. Upstream:
/// `registrationDrivers`.
pub fn offers(manager: &ClusterManager, driver: &RegistrationAuthType) -> bool {
    let drivers = manager.spec.registration_configuration.iter().flat_map(|of| &of.registration_drivers);
    let mut drivers = drivers.map(|one| &one.auth_type).peekable();
    if drivers.peek().is_none() {
        return *driver == RegistrationAuthType::Csr;
    }
    drivers.any(|one| one == driver)
}

/// Name of the Service that the operator makes for the server. Upstream: `manifests/cluster-manager/hub/grpc-server`.
pub fn service(manager: &str) -> String {
    format!("{manager}-grpc-server")
}

/// Name of the Service of ours that exposes the server.
pub fn exposed_service(manager: &str) -> String {
    format!("{manager}-grpc-server-external")
}

/// Where a hub says that agents find its gRPC server; none: it does not, or its load balancer has no address yet. `own` is
/// the operator's Service, `exposed` ours.
pub fn published(manager: &ClusterManager, own: Option<&Service>, exposed: Option<&Service>) -> Option<Address> {
    let exposures = manager.spec.server_configuration.iter().flat_map(|server| &server.endpoints_exposure);
    let is_for_agents = |one: &&EndpointExposure| {
        one.protocol == EndpointProtocol::Grpc && one.usage.as_deref().is_none_or(|usage| usage != "consumer")
    };
    let endpoint = exposures.filter(is_for_agents).find_map(|one| one.grpc.as_ref())?;
    let said = match endpoint.type_ {
        EndpointType::LoadBalancer => {
            let typed = endpoint.load_balancer.as_ref().and_then(|of| of.host.clone());
            let host = typed.filter(|host| !host.is_empty()).or_else(|| balanced(own?))?;
            return Address::parse(&host).map(|(host, port)| Address { host, port: port.unwrap_or(USUAL_PORT) });
        }
        EndpointType::Route => endpoint.route.as_ref()?.host.clone()?,
        _ => endpoint.hostname.as_ref()?.host.clone(),
    };
    let (host, port) = Address::parse(&said)?;
    let annotation = |key: &str| manager.metadata.annotations.as_ref()?.get(key).filter(|value| !value.is_empty());
    let noted = || annotation(PORT_ANNOTATION)?.parse().ok();
    // A Service of ours may be left from before there was a Gateway.
    let exposed = exposed.filter(|_| annotation(GATEWAY_ANNOTATION).is_none());
    let port = port.or_else(|| port_of(exposed?)).or_else(noted).unwrap_or(USUAL_PORT);
    Some(Address { host, port })
}

/// The address that a load balancer has got.
fn balanced(service: &Service) -> Option<String> {
    let ingress = service.status.as_ref()?.load_balancer.as_ref()?.ingress.as_ref()?.first()?;
    let said = ingress.hostname.as_ref().or(ingress.ip.as_ref())?;
    Some(said.clone()).filter(|said| !said.is_empty())
}

/// The port at which a Service is reached from outside of its cluster.
fn port_of(service: &Service) -> Option<u16> {
    let spec = &service.spec;
    let port = spec.ports.as_ref()?.first()?;
    let number = match spec.type_.as_deref() {
        Some("NodePort") => port.node_port?,
        Some("LoadBalancer") => port.port,
        _ => return None,
    };
    u16::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn manager(spec: Value, annotations: Value) -> ClusterManager {
        let body = json!({"metadata": {"name": "cluster-manager", "annotations": annotations}, "spec": spec});
        serde_json::from_value(body).unwrap()
    }

    fn exposing(endpoint: Value, annotations: Value) -> ClusterManager {
        let exposures = json!([{"protocol": "https", "https": {"type": "hostname", "hostname": {"host": "other"}}},
            {"protocol": "grpc", "usage": "consumer", "grpc": {"type": "hostname", "hostname": {"host": "consumer"}}},
            {"protocol": "grpc", "usage": "agentToHub", "grpc": endpoint}]);
        manager(json!({"serverConfiguration": {"endpointsExposure": exposures}}), annotations)
    }

    fn service(spec: Value, status: Value) -> Service {
        serde_json::from_value(json!({"metadata": {"name": "s"}, "spec": spec, "status": status})).unwrap()
    }

    #[test]
    fn addresses_are_taken_apart() {
        let parse = Address::parse;
        assert_eq!(parse("hub.example"), Some(("hub.example".to_owned(), None)));
        assert_eq!(parse("https://hub.example:30090/"), Some(("hub.example".to_owned(), Some(30090))));
        assert_eq!(parse("[fd00::1]:443"), Some(("fd00::1".to_owned(), Some(443))));
        assert_eq!(parse("fd00::1"), Some(("fd00::1".to_owned(), None)));
        for wrong in
            ["", ":443", "hub:", "hub:0", "hub:x", "hub:65536", "http://hub", "u@hub", "hub/path", "[::1", "[::1]x"]
        {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        let address = |host: &str| Address { host: host.to_owned(), port: 1 }.to_string();
        assert_eq!((address("h"), address("::1")), ("h:1".to_owned(), "[::1]:1".to_owned()));
    }

    #[test]
    fn the_file_is_what_agents_read() {
        let address = Address { host: "hub.example".to_owned(), port: 30090 };
        let text = Server { address, ca: vec![b"ca".to_vec()] }.config("to.ken");
        let read: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(read["url"], "hub.example:30090");
        assert_eq!(read["token"], "to.ken");
        assert_eq!(read["keepAliveConfig"], json!({}));
        assert!(read["caData"].as_str().is_some_and(|data| data.starts_with("LS0t")), "{text}");
    }

    #[test]
    fn a_hub_that_lists_no_driver_means_csr() {
        let drivers =
            |list: Value| manager(json!({"registrationConfiguration": {"registrationDrivers": list}}), json!({}));
        let offered = |manager: &ClusterManager| {
            [RegistrationAuthType::Csr, RegistrationAuthType::Grpc].map(|driver| offers(manager, &driver))
        };
        assert_eq!(offered(&manager(json!({}), json!({}))), [true, false]);
        assert_eq!(offered(&drivers(json!([]))), [true, false]);
        assert_eq!(offered(&drivers(json!([{"authType": "grpc"}]))), [false, true]);
        assert_eq!(offered(&drivers(json!([{"authType": "csr"}, {"authType": "grpc"}]))), [true, true]);
    }

    #[test]
    fn the_address_is_the_one_for_agents() {
        let hostname = |host: &str| json!({"type": "hostname", "hostname": {"host": host}});
        let found = |manager: &ClusterManager, exposed: Option<&Service>| {
            published(manager, None, exposed).map(|address| address.to_string())
        };
        let plain = exposing(hostname("hub.example"), json!({}));
        assert_eq!(found(&plain, None).as_deref(), Some("hub.example:443"));
        let noted = exposing(hostname("hub.example"), json!({PORT_ANNOTATION: "30443"}));
        assert_eq!(found(&noted, None).as_deref(), Some("hub.example:30443"));
        let node = service(json!({"type": "NodePort", "ports": [{"port": 443, "nodePort": 30090}]}), json!({}));
        assert_eq!(found(&noted, Some(&node)).as_deref(), Some("hub.example:30090"));
        let by_gateway = |gateway: &str| json!({PORT_ANNOTATION: "8443", GATEWAY_ANNOTATION: gateway});
        let led = exposing(hostname("hub.example"), by_gateway("infra/public"));
        assert_eq!(found(&led, Some(&node)).as_deref(), Some("hub.example:8443"));
        let led_no_more = exposing(hostname("hub.example"), by_gateway(""));
        assert_eq!(found(&led_no_more, Some(&node)).as_deref(), Some("hub.example:30090"));
        assert_eq!(
            found(&exposing(hostname("hub.example:8443"), json!({})), Some(&node)).as_deref(),
            Some("hub.example:8443")
        );
        assert_eq!(found(&manager(json!({}), json!({})), Some(&node)), None);
        let route = exposing(json!({"type": "route", "route": {"host": "r.example"}}), json!({}));
        assert_eq!(found(&route, None).as_deref(), Some("r.example:443"));
    }

    #[test]
    fn a_load_balancer_is_found_once_it_has_an_address() {
        let balancer = exposing(json!({"type": "loadBalancer"}), json!({}));
        let at = |status: Value| {
            let own = service(json!({"type": "LoadBalancer", "ports": [{"port": 443}]}), status);
            published(&balancer, Some(&own), None).map(|address| address.to_string())
        };
        assert_eq!(at(json!({"loadBalancer": {}})), None);
        assert_eq!(at(json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}})).as_deref(), Some("192.0.2.1:443"));
        let named = json!({"loadBalancer": {"ingress": [{"hostname": "lb.example"}]}});
        assert_eq!(at(named).as_deref(), Some("lb.example:443"));
        assert_eq!(published(&balancer, None, None), None);
    }
}
