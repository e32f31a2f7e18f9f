//! Connections to ports of pods, which the API server passes on (the subresource `portforward`).

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use ocm_core::Failure;
use ocm_net::Stream;

use crate::Cluster;

/// Opens a connection to a port of a pod.
///
/// # Errors
/// When the API server does not pass it on.
pub async fn to_pod(cluster: &Cluster, namespace: &str, pod: &str, port: u16) -> Result<Box<dyn Stream>, Failure> {
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), namespace);
    let cannot = format!("open a connection to port {port} of pod {namespace}/{pod}");
    let mut forwarder = pods.portforward(pod, &[port]).await.map_err(|error| cluster.explain(&cannot, error))?;
    let stream = forwarder.take_stream(port).ok_or_else(|| Failure::other(format!("cannot {cannot}")))?;
    Ok(Box::new(stream))
}
