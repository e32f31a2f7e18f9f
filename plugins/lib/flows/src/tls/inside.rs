//! Servers inside of a cluster: the API server passes connections on to their pods.

use std::fmt;

use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::Api;
use kube::api::ListParams;
use ocm_checks::tls::{Inventory, Relation, Trust};
use ocm_core::{Failure, Reason};
use ocm_kube::{Cluster, forward};
use ocm_net::{ConnectError, Dial, Endpoint, Opening, Vantage, Way};

use super::clock::empty;
use super::handshake::{Dialled, dial};

/// A server inside of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    /// What it is named by.
    pub by: By,
    /// The namespace.
    pub namespace: String,
    /// The name of the pod or the Service.
    pub name: String,
    /// The port of the pod or the Service.
    pub port: u16,
}

/// What a server inside of a cluster is named by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Its pod. Under which names it is dialled is not known.
    Pod,
    /// A Service: one of the pods behind it that are ready, dialled as the Service.
    Service,
}

impl By {
    /// The name of the kind.
    const fn word(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::Service => "Service",
        }
    }
}

impl fmt::Display for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}:{}", self.by.word(), self.namespace, self.name, self.port)
    }
}

/// A port of a pod, to which an API server passes connections on.
struct Forward {
    cluster: Cluster,
    namespace: String,
    pod: String,
    port: u16,
}

impl Dial for Forward {
    fn dial<'a>(&'a self, _host: &'a str, _port: u16) -> Opening<'a> {
        Box::pin(async move {
            let opened = forward::to_pod(&self.cluster, &self.namespace, &self.pod, self.port).await;
            opened.map_err(|failure| ConnectError::Failed(failure.to_string()))
        })
    }
}

/// What a server inside of a cluster presents. It is trusted by these authorities; without any nothing is said about that.
///
/// # Errors
/// When there is no such Service or port, or no pod behind it is ready.
pub async fn inside(cluster: &Cluster, server: &Inside, authorities: Option<&[Vec<u8>]>) -> Result<Inventory, Failure> {
    let Inside { by, namespace, name, port } = server;
    let (pod, of_pod) = match by {
        By::Pod => (name.clone(), *port),
        By::Service => behind(cluster, server).await?,
    };
    let host = match by {
        By::Pod => format!("{name}.{namespace}.pod"),
        By::Service => format!("{name}.{namespace}.svc"),
    };
    let endpoint = Endpoint::of(&host, *port)
        .map_err(|_| Failure::usage(format!("{server} has a name that no {} can have", by.word())))?;
    let place = Forward { cluster: cluster.clone(), namespace: namespace.clone(), pod, port: of_pod };
    let way = Way::From(Vantage::elsewhere(place), None);
    let dialled = Dialled { endpoint: &endpoint, name: host, way: &way, authorities, insecure: false };
    let mut inventory = empty();
    dial(dialled, &mut inventory, |relation| Relation { presenter: server.to_string(), ..relation }).await;
    for relation in &mut inventory.relations {
        if authorities.is_none() {
            relation.trust = Trust::Unknown;
        }
        if *by == By::Pod {
            relation.names.clear();
        }
    }
    Ok(inventory)
}

/// A pod behind a Service that is ready, and the port of it that a port of the Service stands for.
async fn behind(cluster: &Cluster, server: &Inside) -> Result<(String, u16), Failure> {
    let Inside { namespace, name, port, .. } = server;
    let services: Api<Service> = Api::namespaced(cluster.client.clone(), namespace);
    let found = services.get_opt(name).await;
    let found = found.map_err(|error| cluster.explain(format_args!("read Service {namespace}/{name}"), error))?;
    let missing = || {
        let sentence = format!("there is no Service {namespace}/{name} ({})", cluster.label());
        Failure::new(Reason::NotFound, sentence).hint("services are named as service/NAMESPACE/NAME:PORT")
    };
    let spec = found.and_then(|service| service.spec).ok_or_else(missing)?;
    let ports = spec.ports.unwrap_or_default();
    let Some(of_service) = ports.iter().find(|one| one.port == i32::from(*port)) else {
        let known: Vec<String> = ports.iter().map(|one| one.port.to_string()).collect();
        let sentence = format!("Service {namespace}/{name} has no port {port}, but {}", known.join(", "));
        return Err(Failure::new(Reason::NotFound, sentence));
    };
    let labels: Vec<String> =
        spec.selector.unwrap_or_default().iter().map(|(label, value)| format!("{label}={value}")).collect();
    let none = || Failure::new(Reason::Unreachable, format!("no pod of Service {namespace}/{name} is ready"));
    if labels.is_empty() {
        return Err(none().because("it selects none by labels"));
    }
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), namespace);
    let listed = pods.list(&ListParams::default().labels(&labels.join(","))).await;
    let listed = listed.map_err(|error| cluster.explain(format_args!("list the pods of {namespace}"), error))?;
    let pod = listed.items.into_iter().find(is_ready).ok_or_else(none)?;
    let target = match &of_service.target_port {
        Some(IntOrString::Int(number)) => u16::try_from(*number).ok(),
        Some(IntOrString::String(named)) => port_named(&pod, named),
        None => Some(*port),
    };
    let of_pod = pod.metadata.name.unwrap_or_default();
    let target = target.ok_or_else(|| {
        Failure::new(Reason::NotFound, format!("pod {namespace}/{of_pod} has no such port as {server} stands for"))
    })?;
    Ok((of_pod, target))
}

/// Whether a pod takes connections.
fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let is_ready = conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    is_ready && pod.metadata.deletion_timestamp.is_none()
}

/// The port of this name of a pod.
fn port_named(pod: &Pod, name: &str) -> Option<u16> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
    let found = ports.find(|port| port.name.as_deref() == Some(name))?;
    u16::try_from(found.container_port).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_takes_connections_once_it_is_ready_and_until_it_is_deleted() {
        let pod = |status: &str, deleted: Option<&str>| -> Pod {
            let metadata = json!({"name": "p", "deletionTimestamp": deleted});
            let conditions = json!([{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": status}]);
            serde_json::from_value(json!({"metadata": metadata, "status": {"conditions": conditions}})).unwrap()
        };
        assert!(is_ready(&pod("True", None)));
        assert!(!is_ready(&pod("False", None)) && !is_ready(&pod("True", Some("2026-01-01T00:00:00Z"))));
        assert!(!is_ready(&Pod::default()));
    }

    #[test]
    fn a_port_is_found_by_its_name() {
        let containers = json!([
            {"name": "a", "ports": [{"containerPort": 8000}]},
            {"name": "b", "ports": [{"containerPort": 8080, "name": "health"}, {"containerPort": 9443, "name": "webhook"}]},
        ]);
        let pod: Pod = serde_json::from_value(json!({"spec": {"containers": containers}})).unwrap();
        assert_eq!((port_named(&pod, "webhook"), port_named(&pod, "grpc")), (Some(9443), None));
    }
}
