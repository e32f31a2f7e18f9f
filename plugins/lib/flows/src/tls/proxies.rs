//! The proxies that a hub tells add-ons to go through.

use futures::StreamExt as _;
use k8s_openapi::ByteString;
use kube::Api;
use kube::api::ListParams;
use kube::core::{ApiResource, NotUsed, Object};
use ocm_checks::snapshot::{PolicyRule, Side, Trouble};
use ocm_checks::tls::{Client, Copied, Copy, Inventory, ObjectKind, Purpose, Relation, Unseen};
use ocm_core::{Failure, Reason};
use ocm_kube::Cluster;
use ocm_net::proxy::{Origin, Proxy};
use ocm_net::{Endpoint, Way};
use serde::Deserialize;

use super::clock::empty;
use super::handshake::{Dialled, dial};
use super::material::{copy, place};
use super::unreadable::Unreadable;
use crate::registry::{FEW, pages};

/// API group of add-ons.
const ADDONS: &str = "addon.open-cluster-management.io";

/// Plural of the kind that has their settings.
const SETTINGS: &str = "addondeploymentconfigs";

/// Settings of one page.
const PAGE: u32 = 500;

/// The specification of an AddOnDeploymentConfig, as far as it is about proxies.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Settings {
    proxy_config: ProxyConfig,
}

/// A proxy of add-ons. Upstream: `ProxyConfig` of `addon/v1alpha1`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ProxyConfig {
    https_proxy: String,
    ca_bundle: ByteString,
}

/// A proxy that speaks TLS.
struct Named {
    /// The settings that name it.
    by: String,
    url: String,
    /// Who vouches for it: DER; none: the authorities of the system.
    authorities: Option<Vec<Vec<u8>>>,
}

/// The proxies that add-ons are told to go through, and the authorities by which they trust them. Each is dialled once, however
/// many settings name it.
pub(super) async fn of_addons(cluster: &Cluster) -> Inventory {
    let mut inventory = empty();
    let kind = ApiResource {
        group: ADDONS.to_owned(),
        version: "v1alpha1".to_owned(),
        api_version: format!("{ADDONS}/v1alpha1"),
        kind: ObjectKind::AddOnDeploymentConfig.word().to_owned(),
        plural: SETTINGS.to_owned(),
    };
    let api: Api<Object<Settings, NotUsed>> = Api::all_with(cluster.client.clone(), &kind);
    let listed = pages(cluster, &api, ListParams::default(), || PAGE, "list AddOnDeploymentConfigs", of_one).await;
    let found = match listed {
        Ok(found) => found,
        Err(failure) if matches!(failure.reason, Reason::KindNotServed | Reason::NotFound) => return inventory,
        Err(failure) => {
            let rule = Some(PolicyRule::new("list", ADDONS, SETTINGS, None));
            inventory.unseen.push(Unreadable { what: "AddOnDeploymentConfigs".to_owned(), failure, rule }.into());
            return inventory;
        }
    };
    let mut proxies: Vec<Named> = Vec::new();
    for (named, bundle) in found {
        let is_known = |named: &Named| {
            proxies.iter().any(|known| (&known.url, &known.authorities) == (&named.url, &named.authorities))
        };
        proxies.extend(named.filter(|named| !is_known(named)));
        inventory.copies.extend(bundle);
    }
    let seen: Vec<Inventory> = futures::stream::iter(&proxies).map(dialled).buffered(FEW).collect().await;
    seen.into_iter().for_each(|seen| inventory.add(seen));
    inventory
}

/// What is wanted of one of the settings; nothing of those without such a proxy.
fn of_one(settings: Object<Settings, NotUsed>) -> Option<(Option<Named>, Option<Copy>)> {
    let ProxyConfig { https_proxy: url, ca_bundle } = settings.spec.proxy_config;
    let (namespace, name) = (settings.metadata.namespace, settings.metadata.name.unwrap_or_default());
    let at = |key: &str| place(Side::Hub, ObjectKind::AddOnDeploymentConfig, namespace.as_deref(), &name, key);
    let has_bundle = !ca_bundle.0.is_empty();
    let bundle = has_bundle.then(|| copy(Copied::Proxy, at("spec.proxyConfig.caBundle"), &ca_bundle.0));
    let authorities = bundle.as_ref().map(|bundle| bundle.authorities.iter().map(|der| der.0.clone()).collect());
    // Others are no TLS servers.
    let is_tls = url.to_ascii_lowercase().starts_with("https://");
    let named = is_tls.then(|| Named { by: at("").to_string(), url, authorities });
    (named.is_some() || bundle.is_some()).then_some((named, bundle))
}

/// What a proxy presents.
async fn dialled(proxy: &Named) -> Inventory {
    let mut inventory = empty();
    let Named { by, url, authorities } = proxy;
    // It takes credentials out of the URL.
    let read = Proxy::parse(url, Origin::Kubeconfig).ok();
    let Some(endpoint) = read.and_then(|read| Endpoint::parse(&format!("https://{read}"), None).ok()) else {
        let failure = Failure::new(Reason::Kubeconfig, "its httpsProxy is no URL of a proxy");
        let what = format!("the proxy that {by} names");
        inventory.unseen.push(Unseen { what, cluster: None, trouble: Trouble::of(&failure, None) });
        return inventory;
    };
    let dialled = Dialled {
        endpoint: &endpoint,
        name: endpoint.host.clone(),
        way: &Way::Direct,
        authorities: authorities.as_deref(),
        insecure: false,
    };
    let presenter = format!("the proxy {endpoint}");
    dial(dialled, &mut inventory, |relation| Relation {
        purpose: Purpose::Proxy,
        presenter,
        verifier: format!("add-ons with {by}"),
        client: Some(Client::Go),
        ..relation
    })
    .await;
    inventory
}
