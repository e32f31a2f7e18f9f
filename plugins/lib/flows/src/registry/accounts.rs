//! Who may register clusters at a hub.

use kube::Api;
use kube::api::ListParams;
use ocm_api::parts::ClusterRoleBinding;
use ocm_core::csr::Request;
use ocm_core::{Failure, bootstrap};
use ocm_kube::Cluster;

use super::pages::{all, unless_forbidden};

/// Users besides the usual ones whom the hub lets register clusters. It is asked only if some of the requests need that:
/// a hub has a binding for every cluster, too.
///
/// # Errors
/// When the hub cannot be read. Who may not read bindings goes by the usual users.
pub async fn bound_accounts(
    hub: &Cluster,
    requests: impl IntoIterator<Item = &Request>,
) -> Result<Vec<String>, Failure> {
    if !requests.into_iter().any(bootstrap::needs_binding) {
        return Ok(Vec::new());
    }
    unless_forbidden(all_bound_accounts(hub).await)
}

/// The same, whoever asks.
///
/// # Errors
/// When the bindings cannot be read.
pub async fn all_bound_accounts(hub: &Cluster) -> Result<Vec<String>, Failure> {
    let api: Api<ClusterRoleBinding> = Api::all(hub.client.clone());
    let bindings = all(hub, &api, ListParams::default(), "list cluster role bindings").await?;
    Ok(bootstrap::bound_accounts(&bindings).into_iter().collect())
}
