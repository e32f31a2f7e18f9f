//! By whom the versions of a kind are converted.

use k8s_openapi::ByteString;
use kube::Api;
use ocm_api::parts::{CustomResourceDefinition, ServiceReference};
use ocm_kube::Cluster;

/// A webhook that converts.
pub struct Webhook {
    /// The Service behind it; none: it is asked by URL.
    pub service: Option<ServiceReference>,
    /// The certificates, as PEM, with which the API server verifies it; empty: its own.
    pub ca_bundle: ByteString,
}

/// The webhook that converts between the versions of a definition; none where nothing is converted, or no such
/// definition is there.
///
/// # Errors
/// The failure of the request.
pub async fn webhook(cluster: &Cluster, definition: &str) -> kube::Result<Option<Webhook>> {
    let api: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    let found = api.get_opt(definition).await?;
    let webhook = |found: CustomResourceDefinition| {
        let client = found.spec.conversion?.webhook?.client_config?;
        Some(Webhook { service: client.service, ca_bundle: client.ca_bundle.unwrap_or_default() })
    };
    Ok(found.and_then(webhook))
}
