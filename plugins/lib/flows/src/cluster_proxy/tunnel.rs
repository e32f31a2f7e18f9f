//! Connections to the API servers of managed clusters through the proxy servers of a hub.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use ocm_core::cluster_proxy::{CA_SECRET, PORT, Servers};
use ocm_core::{Failure, Reason, certificate};
use ocm_kube::{Cluster, forward};
use ocm_net::konnectivity::Client;
use ocm_net::{Identity, Stream};

/// A proxy server, or the agent behind it, that does not answer for so long is not going to.
const LIMIT: Duration = Duration::from_secs(10);

/// The way to the proxy servers of a hub.
pub struct Tunnel {
    hub: Cluster,
    namespace: String,
    pods: Vec<String>,
    client: Client,
}

impl Tunnel {
    /// The way through these pods of proxy servers, with the credentials that the hub keeps for their clients.
    ///
    /// # Errors
    /// When a Secret cannot be read, or holds something else.
    pub async fn new(hub: &Cluster, servers: &Servers, pods: Vec<String>) -> Result<Self, Failure> {
        let Servers { namespace, client_secret, .. } = servers;
        let (ca, client) = futures::join!(secret(hub, namespace, CA_SECRET), secret(hub, namespace, client_secret));
        let unusable = |name: &str, why: &dyn std::fmt::Display| {
            Failure::other(format!("Secret {namespace}/{name} of the proxy servers cannot be used")).because(why)
        };
        let authorities = certificate::from_pem(&entry(&ca?, "ca.crt")).map_err(|error| unusable(CA_SECRET, &error))?;
        let client = client?;
        let identity = Identity::from_pem(&entry(&client, "tls.crt"), &entry(&client, "tls.key"))
            .map_err(|error| unusable(client_secret, &error))?;
        let client = Client::new(&authorities, identity).map_err(|error| unusable(client_secret, &error))?;
        Ok(Self { hub: hub.clone(), namespace: namespace.clone(), pods, client })
    }

    /// Opens a connection to the API server of a cluster, by the first proxy server that has a way to it.
    ///
    /// # Errors
    /// Why the last one has none.
    pub async fn open(&self, cluster: &str) -> Result<Box<dyn Stream>, Failure> {
        let mut last = Failure::new(Reason::Unreachable, "no proxy server is ready");
        for pod in &self.pods {
            let stream = match forward::to_pod(&self.hub, &self.namespace, pod, PORT).await {
                Ok(stream) => stream,
                Err(failure) => {
                    last = failure;
                    continue;
                }
            };
            // The name by which agents of the cluster are known, and which they resolve to their own API server.
            match self.client.open(stream, &format!("{cluster}:443"), LIMIT).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Failure::new(Reason::Unreachable, format!("pod {pod}: {error}")),
            }
        }
        Err(last)
    }
}

async fn secret(hub: &Cluster, namespace: &str, name: &str) -> Result<Secret, Failure> {
    let api: Api<Secret> = Api::namespaced(hub.client.clone(), namespace);
    api.get(name).await.map_err(|error| hub.explain(format_args!("read Secret {namespace}/{name}"), error))
}

/// A value of a Secret; empty if it is not there.
pub(super) fn entry(secret: &Secret, key: &str) -> Vec<u8> {
    secret.data.as_ref().and_then(|data| data.get(key)).map(|value| value.0.clone()).unwrap_or_default()
}
