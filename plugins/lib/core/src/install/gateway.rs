//! The Gateway by which agents reach the hub's gRPC server: how people name it, whether it takes our route, and where agents find
//! the server behind it.
//!
//! TLS is passed through to the server, which wants to see the certificates of agents. So it is the name in a handshake alone by
//! which it is told from other servers. Source: <https://gateway-api.sigs.k8s.io/reference/spec/>.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use ocm_api::Manifest;
use ocm_api::names::namespaces;
use serde_json::{Value, json};

use crate::cluster_sets::selector;
use crate::grpc::{self, Address, GATEWAY_ANNOTATION, PORT, PORT_ANNOTATION};
use crate::order;

/// API group of Gateways and of their routes.
pub const GROUP: &str = "gateway.networking.k8s.io";
/// Kind of routes by the name in a TLS handshake.
pub const ROUTE: &str = "TLSRoute";
/// Resource name of such routes.
pub const ROUTES: &str = "tlsroutes";
/// The API version of such a route where no cluster was asked which one it serves.
const USUAL_VERSION: &str = "gateway.networking.k8s.io/v1";

/// A Gateway, or one of its listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The listener; none: any that takes the route.
    pub listener: Option<String>,
}

impl Gateway {
    /// Takes `NAMESPACE/NAME[/LISTENER]` apart; none where it is not that.
    pub fn parse(text: &str) -> Option<Self> {
        let is_name = |part: &str| {
            let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
            !part.is_empty() && part.bytes().all(is_inner)
        };
        let parts: Vec<String> = text.split('/').filter(|part| is_name(part)).map(str::to_owned).collect();
        if parts.len() != text.split('/').count() {
            return None;
        }
        let mut parts = parts.into_iter();
        let found = Self { namespace: parts.next()?, name: parts.next()?, listener: parts.next() };
        parts.next().is_none().then_some(found)
    }

    /// The one by which agents reach the server of a hub, as its ClusterManager notes it; none: it notes none.
    pub fn noted(manager: &Value) -> Option<Self> {
        Self::parse(manager["metadata"]["annotations"][GATEWAY_ANNOTATION].as_str()?)
    }
}

impl fmt::Display for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)?;
        self.listener.iter().try_for_each(|listener| write!(f, "/{listener}"))
    }
}

/// Why a Gateway leads no agent to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// Nothing tells under which name agents ask for the server.
    NoHost,
    /// None of its listeners takes the route, for this reason.
    NoListener(String),
}

/// Where agents find the server behind a Gateway. `labels` are those of the namespace of the route, `typed` the host and the port
/// that were typed, and `there` the ClusterManager that is there, with the host for which the server's certificate is made now.
///
/// # Errors
/// Why they do not find it.
pub fn address(
    wanted: &Gateway,
    live: &Value,
    labels: &BTreeMap<String, String>,
    typed: Option<(String, Option<u16>)>,
    there: Option<&Value>,
) -> Result<Address, Unfit> {
    let (host, port) = typed.unzip();
    let port = port.flatten();
    let name = there.and_then(grpc_host);
    // What is noted for this Gateway and this name stays.
    let same = there.filter(|there| host.is_none() && Gateway::noted(there).as_ref() == Some(wanted));
    let noted = |host: &str| same.filter(|_| name == Some(host)).and_then(noted_port);
    let listeners = live["spec"]["listeners"].as_array().into_iter().flatten();
    let named = listeners.filter(|one| wanted.listener.as_deref().is_none_or(|name| one["name"] == name));
    let mut passing: Vec<&Value> =
        named.filter(|one| one["protocol"] == "TLS" && one["tls"]["mode"] == "Passthrough").collect();
    // One at the port that was typed is meant rather than another one.
    order::sort_by_key(&mut passing, |one| port.is_some() && one["port"].as_u64() != port.map(u64::from));
    let mut trouble = match &wanted.listener {
        Some(name) => format!("it has no listener {name:?} with protocol TLS and tls.mode Passthrough"),
        None => "none of its listeners has protocol TLS and tls.mode Passthrough".to_owned(),
    };
    for (count, listener) in passing.into_iter().enumerate() {
        match host_of(listener, wanted, live, labels, host.as_deref(), name) {
            Ok(Some(host)) => {
                let own = listener["port"].as_u64().and_then(|port| u16::try_from(port).ok());
                let port = port.or_else(|| noted(&host)).or(own).unwrap_or(grpc::USUAL_PORT);
                return Ok(Address { host, port });
            }
            Ok(None) => return Err(Unfit::NoHost),
            Err(why) if count == 0 => trouble = why,
            Err(_) => {}
        }
    }
    Err(Unfit::NoListener(trouble))
}

/// The name under which agents ask for the server at a listener; none: nothing tells one.
fn host_of(
    listener: &Value,
    wanted: &Gateway,
    live: &Value,
    labels: &BTreeMap<String, String>,
    host: Option<&str>,
    there: Option<&str>,
) -> Result<Option<String>, String> {
    let name = listener["name"].as_str().unwrap_or_default();
    let allowed = &listener["allowedRoutes"];
    let mut kinds = allowed["kinds"].as_array().into_iter().flatten().peekable();
    if kinds.peek().is_some() && !kinds.any(|kind| kind["kind"] == ROUTE) {
        return Err(format!("its listener {name:?} takes no TLSRoutes"));
    }
    let from = allowed["namespaces"]["from"].as_str().unwrap_or("Same");
    let lacks = match from {
        "All" => None,
        "Same" if wanted.namespace == namespaces::HUB => None,
        "Selector" => {
            let wanted: LabelSelector =
                serde_json::from_value(allowed["namespaces"]["selector"].clone()).unwrap_or_default();
            selector::unmet(&wanted, labels)
        }
        _ => Some("it is another one".to_owned()),
    };
    if let Some(lacks) = lacks {
        return Err(format!(
            "its listener {name:?} takes no routes of the namespace {}: allowedRoutes.namespaces.from is {from}, and {lacks}",
            namespaces::HUB
        ));
    }
    let own = listener["hostname"].as_str().filter(|own| !own.is_empty());
    let takes = |host: &&str| own.is_none_or(|own| is_for(own, host));
    if let Some(host) = host {
        return match takes(&host) {
            true => Ok(Some(host.to_owned())),
            false => Err(format!("its listener {name:?} is for {}, not for {host}", own.unwrap_or_default())),
        };
    }
    let there = there.filter(|there| !is_ip(there) && takes(there));
    let known = own.filter(|own| !own.starts_with("*.")).or(there);
    let mut addresses = live["status"]["addresses"].as_array().into_iter().flatten();
    let told = || addresses.find(|one| one["type"] == "Hostname").and_then(|one| one["value"].as_str()).filter(takes);
    Ok(known.or_else(told).map(str::to_owned))
}

/// Whether a host, which may begin with a wildcard for one or more labels, is the name that is asked for.
fn is_for(host: &str, name: &str) -> bool {
    let (host, name) = (host.to_ascii_lowercase(), name.to_ascii_lowercase());
    match host.strip_prefix('*') {
        Some(end) => name.strip_suffix(end).is_some_and(|rest| !rest.is_empty()),
        None => host == name,
    }
}

/// Whether a host is an IP address, of which no handshake tells.
pub(super) fn is_ip(host: &str) -> bool {
    host.parse::<IpAddr>().is_ok()
}

/// The port that a ClusterManager notes.
pub(super) fn noted_port(manager: &Value) -> Option<u16> {
    manager["metadata"]["annotations"][PORT_ANNOTATION].as_str()?.parse().ok()
}

/// The host for which a ClusterManager has the certificate of the server made, where it names one.
pub(super) fn grpc_host(manager: &Value) -> Option<&str> {
    let exposures = manager.pointer("/spec/serverConfiguration/endpointsExposure")?.as_array()?;
    let endpoint = exposures.iter().find(|one| one["protocol"] == "grpc")?;
    endpoint.pointer("/grpc/hostname/host").and_then(Value::as_str)
}

/// The addresses of a Gateway.
pub fn addresses(live: &Value) -> Vec<&str> {
    let all = live["status"]["addresses"].as_array().into_iter().flatten();
    all.filter_map(|one| one["value"].as_str()).collect()
}

/// The route of a hub from a Gateway to the operator's Service of the server, for those who ask for this host. `version` is the API
/// version in which the hub serves such routes, where that is known.
pub(super) fn route(hub: &str, gateway: Option<&Gateway>, host: &str, version: Option<&str>) -> Option<Manifest> {
    // What the API server fills in is said, too: the route is compared as it is.
    let parent = gateway.map(|gateway| {
        let mut parent =
            json!({"group": GROUP, "kind": "Gateway", "namespace": gateway.namespace, "name": gateway.name});
        if let Some(listener) = &gateway.listener {
            parent["sectionName"] = json!(listener);
        }
        parent
    });
    let service = json!({"group": "", "kind": "Service", "name": grpc::service(hub), "port": PORT, "weight": 1});
    let spec = json!({
        "parentRefs": parent.into_iter().collect::<Vec<Value>>(),
        "hostnames": [host.to_ascii_lowercase()],
        "rules": [{"backendRefs": [service]}],
    });
    let body = json!({
        "apiVersion": version.unwrap_or(USUAL_VERSION),
        "kind": ROUTE,
        "metadata": {"namespace": namespaces::HUB, "name": grpc::service(hub)},
        "spec": spec,
    });
    Manifest::written(ROUTES, body).map(Manifest::exactly)
}

/// Why a Gateway does not lead along a route yet; none: it does. `wanted` is the route as it is applied, `live` as it is there.
/// What other Gateways say of it does not count, nor what was said of an earlier generation.
pub fn lacks(wanted: &Value, live: &Value) -> Option<String> {
    let (own, space) = (&wanted["spec"]["parentRefs"][0], wanted["metadata"]["namespace"].as_str());
    let parents = live["status"]["parents"].as_array().into_iter().flatten();
    // Of several controllers that speak of one Gateway it is enough that one leads along the route.
    let refusals: Option<Vec<String>> = parents
        .filter(|parent| is_same(own, &parent["parentRef"], space))
        .map(|parent| refusal(&parent["conditions"], live["metadata"]["generation"].as_i64()))
        .collect();
    refusals?.into_iter().next().or_else(|| refusal(&Value::Null, None))
}

/// Whether two references of a route in a namespace are to the same listener, or to the same Gateway as a whole. Upstream:
/// `ParentReference`, with its defaults.
fn is_same(one: &Value, other: &Value, space: Option<&str>) -> bool {
    let members = [
        ("group", Some(GROUP)),
        ("kind", Some("Gateway")),
        ("namespace", space),
        ("name", None),
        ("sectionName", None),
    ];
    let of = |reference: &Value, member: &str| reference[member].as_str().map(str::to_owned);
    let is_equal = |(member, usual): (&str, Option<&str>)| {
        let usual = || usual.map(str::to_owned);
        of(one, member).or_else(usual) == of(other, member).or_else(usual)
    };
    members.into_iter().all(is_equal) && one["port"] == other["port"]
}

/// Why conditions of a route of this generation do not say that it is followed; none: they do. A condition without a generation is
/// taken for one of this generation.
fn refusal(conditions: &Value, generation: Option<i64>) -> Option<String> {
    let is_current = |condition: &&Value| condition["observedGeneration"].as_i64() >= generation;
    let is_of_any = |condition: &&Value| condition["observedGeneration"].is_null();
    let conditions = conditions.as_array().into_iter().flatten();
    let conditions: Vec<&Value> = conditions.filter(|one| is_of_any(one) || is_current(one)).collect();
    let of = |kind: &str| conditions.iter().find(|condition| condition["type"] == kind);
    let is = |condition: &Value, status: &str| condition["status"] == status;
    let bad = match (of("Accepted"), of("ResolvedRefs")) {
        (None, _) => return Some("no controller has looked at the TLSRoute of the gRPC server as it is".to_owned()),
        (Some(accepted), _) if !is(accepted, "True") => accepted,
        (_, Some(resolved)) if is(resolved, "False") => resolved,
        _ => return None,
    };
    let text = |member: &str| bad[member].as_str().unwrap_or_default();
    let (kind, reason, message) = (text("type"), text("reason"), text("message"));
    Some(format!("the TLSRoute of the gRPC server is not {kind}: {reason}: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gateway(text: &str) -> Gateway {
        Gateway::parse(text).unwrap()
    }

    fn listener(members: Value) -> Value {
        let mut listener = json!({"name": "tls", "port": 8443, "protocol": "TLS", "tls": {"mode": "Passthrough"},
            "allowedRoutes": {"namespaces": {"from": "All"}}});
        for (member, value) in members.as_object().unwrap() {
            listener[member] = value.clone();
        }
        listener
    }

    fn of(listeners: Vec<Value>, addresses: Value) -> Value {
        json!({"spec": {"listeners": listeners}, "status": {"addresses": addresses}})
    }

    fn found(
        live: &Value,
        name: &str,
        typed: Option<(&str, Option<u16>)>,
        there: Option<&str>,
    ) -> Result<String, Unfit> {
        let labels = BTreeMap::from([("kubernetes.io/metadata.name".to_owned(), namespaces::HUB.to_owned())]);
        let typed = typed.map(|(host, port)| (host.to_owned(), port));
        let there = there.map(|host| manager(host, json!({})));
        address(&gateway(name), live, &labels, typed, there.as_ref()).map(|address| address.to_string())
    }

    fn manager(host: &str, annotations: Value) -> Value {
        let grpc = json!({"type": "hostname", "hostname": {"host": host}});
        let exposures = json!([{"protocol": "grpc", "grpc": grpc}]);
        json!({"metadata": {"annotations": annotations},
            "spec": {"serverConfiguration": {"endpointsExposure": exposures}}})
    }

    #[test]
    fn a_port_that_was_typed_once_stays_beside_its_gateway_and_its_name() {
        let live = of(vec![listener(json!({}))], json!([]));
        let noted = |port: &str| json!({PORT_ANNOTATION: port, GATEWAY_ANNOTATION: "i/g"});
        let there = manager("hub.example", noted("443"));
        let at = |name: &str, typed: Option<&str>| {
            let typed = typed.map(|host| (host.to_owned(), None));
            address(&gateway(name), &live, &BTreeMap::new(), typed, Some(&there)).map(|address| address.to_string())
        };
        assert_eq!(at("i/g", None).unwrap(), "hub.example:443");
        assert_eq!(at("i/other", None).unwrap(), "hub.example:8443");
        assert_eq!(at("i/g", Some("other.example")).unwrap(), "other.example:8443");
    }

    fn refused(live: &Value, name: &str, typed: Option<(&str, Option<u16>)>) -> String {
        match found(live, name, typed, None) {
            Err(Unfit::NoListener(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_gateway_is_named_with_its_namespace() {
        let listener = Some("tls".to_owned());
        let expected = Gateway { namespace: "infra".to_owned(), name: "public".to_owned(), listener };
        assert_eq!(gateway("infra/public/tls"), expected);
        assert_eq!(gateway("infra/public").listener, None);
        for text in ["infra/public", "infra/public/tls"] {
            assert_eq!(gateway(text).to_string(), text);
        }
        for wrong in ["", "public", "/public", "infra/", "infra/public/", "a/b/c/d", "Infra/public", "infra/pub lic"] {
            assert_eq!(Gateway::parse(wrong), None, "{wrong:?}");
        }
        let manager = json!({"metadata": {"annotations": {GATEWAY_ANNOTATION: "infra/public"}}});
        assert_eq!(Gateway::noted(&manager), Some(gateway("infra/public")));
        assert_eq!(Gateway::noted(&json!({"metadata": {"annotations": {GATEWAY_ANNOTATION: ""}}})), None);
        assert_eq!(Gateway::noted(&json!({})), None);
    }

    #[test]
    fn the_host_is_the_one_that_was_typed_or_that_the_gateway_tells() {
        let ip = json!([{"type": "IPAddress", "value": "192.0.2.1"}]);
        let named = json!([{"type": "IPAddress", "value": "192.0.2.1"}, {"type": "Hostname", "value": "lb.example"}]);
        let any = |addresses: &Value| of(vec![listener(json!({}))], addresses.clone());
        let typed = Some(("hub.example", None));
        assert_eq!(found(&any(&ip), "i/g", typed, None).unwrap(), "hub.example:8443");
        assert_eq!(found(&any(&ip), "i/g", Some(("hub.example", Some(443))), None).unwrap(), "hub.example:443");
        assert_eq!(found(&any(&ip), "i/g", None, None), Err(Unfit::NoHost), "no handshake tells an address");
        assert_eq!(found(&any(&ip), "i/g", None, Some("10.0.0.1")), Err(Unfit::NoHost));
        assert_eq!(found(&any(&ip), "i/g", None, Some("hub.example")).unwrap(), "hub.example:8443");
        assert_eq!(found(&any(&named), "i/g", None, None).unwrap(), "lb.example:8443");
        let one = of(vec![listener(json!({"hostname": "grpc.example"}))], named.clone());
        assert_eq!(found(&one, "i/g", None, Some("hub.example")).unwrap(), "grpc.example:8443");
        let several = of(vec![listener(json!({"hostname": "*.example"}))], named);
        assert_eq!(found(&several, "i/g", None, Some("hub.other")).unwrap(), "lb.example:8443");
        assert_eq!(found(&several, "i/g", Some(("a.b.example", None)), None).unwrap(), "a.b.example:8443");
        assert_eq!(addresses(&any(&ip)), ["192.0.2.1"]);
    }

    #[test]
    fn a_listener_passes_tls_through_and_takes_the_route() {
        let typed = Some(("hub.example", None));
        let with = |members: Value| of(vec![listener(members)], json!([]));
        let ended = with(json!({"tls": {"mode": "Terminate"}}));
        assert!(refused(&ended, "i/g", typed).starts_with("none of its listeners has protocol TLS"));
        assert!(refused(&of(vec![], json!([])), "i/g", typed).starts_with("none of its listeners"));
        assert!(
            refused(&with(json!({})), "i/g/other", typed).starts_with("it has no listener \"other\" with protocol")
        );
        let kinds = with(json!({"allowedRoutes": {"kinds": [{"kind": "TCPRoute"}], "namespaces": {"from": "All"}}}));
        assert_eq!(refused(&kinds, "i/g", typed), "its listener \"tls\" takes no TLSRoutes");
        assert_eq!(
            refused(&with(json!({"hostname": "*.other"})), "i/g", typed),
            "its listener \"tls\" is for *.other, not for hub.example"
        );
        assert!(refused(&with(json!({"hostname": "*.hub.example"})), "i/g", typed).contains("not for hub.example"));
        // Only those of its own namespace, unless it says something else.
        let same = with(json!({"allowedRoutes": Value::Null}));
        assert!(refused(&same, "i/g", typed).contains("takes no routes of the namespace open-cluster-management-hub"));
        assert_eq!(found(&same, "open-cluster-management-hub/g", typed, None).unwrap(), "hub.example:8443");
        let chosen = |labels: Value| {
            with(json!({"allowedRoutes": {"namespaces": {"from": "Selector", "selector": {"matchLabels": labels}}}}))
        };
        let hub = chosen(json!({"kubernetes.io/metadata.name": "open-cluster-management-hub"}));
        assert_eq!(found(&hub, "i/g", typed, None).unwrap(), "hub.example:8443");
        assert!(refused(&chosen(json!({"team": "edge"})), "i/g", typed).ends_with("and it has no label team"));
    }

    #[test]
    fn of_several_listeners_one_that_takes_it_is_enough_and_the_typed_port_comes_first() {
        let second = listener(json!({"name": "second", "port": 443}));
        let live = of(vec![listener(json!({"hostname": "other.example"})), second], json!([]));
        assert_eq!(found(&live, "i/g", Some(("hub.example", None)), None).unwrap(), "hub.example:443");
        let both = of(
            vec![listener(json!({})), listener(json!({"name": "second", "port": 443, "hostname": "x.example"}))],
            json!([]),
        );
        assert_eq!(found(&both, "i/g", None, Some("hub.example")).unwrap(), "hub.example:8443");
        let port = Some(("x.example", Some(443)));
        assert_eq!(found(&both, "i/g", port, None).unwrap(), "x.example:443");
    }

    #[test]
    fn a_route_is_followed_when_its_gateway_says_so() {
        let wanted = route("h", Some(&gateway("infra/public/tls")), "hub.example", None).unwrap().body().clone();
        let own = || json!({"namespace": "infra", "name": "public", "sectionName": "tls"});
        let live = |parents: Value| json!({"metadata": {"generation": 2}, "status": {"parents": parents}});
        let with = |conditions: Value| live(json!([{"parentRef": own(), "conditions": conditions}]));
        let one = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "R", "message": "m"});
        let lacks = |live: &Value| lacks(&wanted, live);
        assert!(lacks(&json!({})).unwrap().starts_with("no controller"));
        let refused = lacks(&with(json!([one("Accepted", "False")]))).unwrap();
        assert!(refused.ends_with("is not Accepted: R: m"), "{refused}");
        let unresolved = lacks(&with(json!([one("Accepted", "True"), one("ResolvedRefs", "False")]))).unwrap();
        assert!(unresolved.ends_with("is not ResolvedRefs: R: m"), "{unresolved}");
        assert_eq!(lacks(&with(json!([one("Accepted", "True"), one("ResolvedRefs", "True")]))), None);
        // What another Gateway or another listener says is nothing of ours.
        let says = |parent: Value, status: &str| json!({"parentRef": parent, "conditions": [one("Accepted", status)]});
        let mut others = vec![own(), own(), own(), own()];
        others[0]["name"] = json!("other");
        others[1]["sectionName"] = json!("other");
        others[2].as_object_mut().unwrap().remove("sectionName");
        others[3].as_object_mut().unwrap().remove("namespace");
        for other in others {
            let told = lacks(&live(json!([says(other.clone(), "True")]))).unwrap();
            assert!(told.starts_with("no controller"), "{other}: {told}");
            assert!(lacks(&live(json!([says(other.clone(), "True"), says(own(), "False")]))).is_some(), "{other}");
            assert_eq!(lacks(&live(json!([says(other, "False"), says(own(), "True")]))), None);
        }
        let mut whole = own();
        whole["group"] = json!(GROUP);
        whole["kind"] = json!("Gateway");
        assert_eq!(lacks(&live(json!([says(whole, "True")]))), None, "these are the defaults");
        // What was said of an earlier generation may be otherwise now.
        let of = |generation: i64| {
            let mut accepted = one("Accepted", "True");
            accepted["observedGeneration"] = json!(generation);
            with(json!([accepted]))
        };
        assert!(lacks(&of(1)).unwrap().starts_with("no controller"));
        assert_eq!(lacks(&of(2)), None);
    }
}
