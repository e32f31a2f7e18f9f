//! What of the add-on is on a hub.

use ocm_core::cluster_proxy::{ADDON, Servers};
use ocm_core::{Failure, Reason};
use ocm_kube::Cluster;
use serde_json::Value;

use crate::addons::definitions;
use crate::objects::{Sought, objects};

/// What of the add-on is on a hub.
pub(super) struct Installed {
    pub(super) definition: Value,
    pub(super) servers: Servers,
}

/// Looks for the add-on on a hub.
///
/// # Errors
/// [`Reason::NotFound`], if it is not installed; the failure of a request.
pub(super) async fn installed(hub: &Cluster) -> Result<Installed, Failure> {
    let names = [ADDON.to_owned()];
    let missing = |what: &str| {
        Failure::new(Reason::NotFound, format!("the hub has no {what}: the add-on {ADDON} is not installed"))
            .hint("install its Helm chart, cluster-proxy of Open Cluster Management, on the hub")
    };
    let found = definitions(hub, &names).await?.into_iter().find_map(|(_, definition)| definition);
    let definition = found.ok_or_else(|| missing("ClusterManagementAddOn \"cluster-proxy\""))?;
    let sought = Sought {
        api_version: "proxy.open-cluster-management.io/v1alpha1".to_owned(),
        resource: "managedproxyconfigurations".to_owned(),
        namespace: None,
        name: Some(ADDON.to_owned()),
    };
    let config = match objects(hub, &sought).await {
        Err(failure) if failure.reason == Reason::KindNotServed => Vec::new(),
        found => found?,
    };
    let config = config.first().ok_or_else(|| missing("ManagedProxyConfiguration \"cluster-proxy\""))?;
    Ok(Installed { definition, servers: Servers::of(config) })
}
