//! By whom the versions of a kind are converted.

use k8s_openapi::ByteString;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, ServiceReference,
};
use kube::Api;
use kube::core::{ApiResource, NotUsed, Object};
use ocm_kube::Cluster;
use serde::{Deserialize, Serialize};

/// A CustomResourceDefinition with nothing but its conversion: a whole one would bring the code for every field of
/// schemas into the binary.
type Definition = Object<DefinitionSpec, NotUsed>;

#[derive(Clone, Debug, Deserialize, Serialize)]
struct DefinitionSpec {
    conversion: Option<CustomResourceConversion>,
}

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
    let kind = ApiResource::erase::<CustomResourceDefinition>(&());
    let api: Api<Definition> = Api::all_with(cluster.client.clone(), &kind);
    let found = api.get_opt(definition).await?;
    let webhook = |found: Definition| {
        let client = found.spec.conversion?.webhook?.client_config?;
        Some(Webhook { service: client.service, ca_bundle: client.ca_bundle.unwrap_or_default() })
    };
    Ok(found.and_then(webhook))
}
