//! What a hub has: its API server, its own authority and what that has signed, the bundles that have to agree, and the
//! policy engine's webhook. A bounded number of requests, however many clusters there are.

use k8s_openapi::ByteString;
use kube::Api;
use kube::api::ListParams;
use ocm_api::cert_manager::INJECT_CA_FROM;
use ocm_api::names::{namespaces, operators, secrets, webhooks};
use ocm_api::operator::{EndpointProtocol, EndpointType};
use ocm_api::parts::{MutatingWebhookConfiguration, Service, ValidatingWebhookConfiguration, WebhookClient};
use ocm_api::{ClusterManager, ManagedCluster};
use ocm_checks::snapshot::{PolicyRule, Side};
use ocm_checks::tls::{
    Client, Clients, Copied, Copy, Inventory, ObjectKind, Place, Purpose, Relation, Renewal, Setting, TlsSettings,
    Trust, Use,
};
use ocm_core::install::{hosted, mode};
use ocm_core::redact::redact;
use ocm_core::{Reason, grpc, policy_engine};
use ocm_kube::Cluster;
use ocm_net::{Endpoint, Way};

use super::clock::{clock_ahead, empty};
use super::handshake::{Dialled, dial};
use super::kubeconfig::{Holder, external};
use super::material::{certificates, config_map, copy, der, noted, of_secret, place, secret, value};
use super::proxies;
use super::unreadable::Unreadable;
use crate::hub::{cluster_info, root_ca};
use crate::observe::conversion;
use crate::registry::pages;

/// ConfigMap in which API servers publish the authorities of their clients.
const CLIENT_AUTHORITIES: &str = "extension-apiserver-authentication";

/// When the hub's operator renews what it signs, in percent of its life.
const OPERATOR_RENEWS: u8 = 80;

/// Managed clusters of one page.
const PAGE: u32 = 500;

/// API group of webhook configurations.
const ADMISSION: &str = "admissionregistration.k8s.io";

/// Reads what a hub has; nothing but its API server of a cluster that is none.
pub async fn hub(cluster: &Cluster) -> Inventory {
    let mut inventory = empty();
    api_server(cluster, &mut inventory).await;
    let managers = noted(managers(cluster).await.map(Some), &mut inventory).unwrap_or_default();
    let hubs = hubs(&managers);
    if hubs.is_empty() {
        return inventory;
    }
    let is_here = hubs.iter().any(|hub| !hub.is_hosted);
    let settings_in: Vec<&str> = hubs.iter().map(|hub| hub.namespace).collect();
    // The managed clusters of a hosted hub are on its own API server.
    let reported = async || if is_here { reported(cluster).await } else { empty() };
    let (clients, published, own, copies, reported, settings, addons, engine, clock_ahead_seconds) = futures::join!(
        config_map(cluster, "kube-system", CLIENT_AUTHORITIES),
        root_ca(cluster),
        futures::future::join_all(hubs.iter().map(|hub| of_hub(cluster, hub))),
        webhook_bundles(cluster),
        reported(),
        settings(cluster, &settings_in),
        proxies::of_addons(cluster),
        policy_webhook(cluster),
        clock_ahead(cluster),
    );
    for part in own.into_iter().chain([copies, reported, settings, addons, engine]) {
        inventory.add(part);
    }
    let clients = noted(clients, &mut inventory).and_then(|map| map.data?.remove("client-ca-file"));
    // The gRPC server verifies its clients with the hub's own bundle.
    let bundle = inventory.copies.iter().filter(|copy| copy.what == Copied::Bundle);
    // Whoever may not read what it publishes has what it was given.
    let mut server_authorities = cluster.ca.clone().unwrap_or_default();
    server_authorities.extend(published.unwrap_or_default());
    inventory.clients = Some(Clients {
        server: redact(&cluster.server),
        server_authorities: server_authorities.into_iter().map(ByteString).collect(),
        // Agents come to the API server of a hosted hub, which is another one.
        authorities: clients.filter(|_| is_here).map(|pem| der(certificates(pem.as_bytes()))).unwrap_or_default(),
        grpc_authorities: bundle.flat_map(|copy| copy.authorities.clone()).collect(),
        clock_ahead_seconds,
    });
    for relation in &mut inventory.relations {
        if matches!(relation.purpose, Purpose::Webhook | Purpose::PolicyWebhook) {
            relation.clock_ahead_seconds = clock_ahead_seconds;
        }
    }
    inventory
}

/// A hub whose pods run on a cluster.
struct Hub<'a> {
    manager: &'a ClusterManager,
    /// The namespace of its pods.
    namespace: &'a str,
    /// Whether its API server is that of another cluster.
    is_hosted: bool,
}

/// The hubs of these ClusterManagers. Two in one namespace would have the same Secrets, which are looked at once.
fn hubs(managers: &[ClusterManager]) -> Vec<Hub<'_>> {
    let mut hubs: Vec<Hub<'_>> = Vec::new();
    for manager in managers {
        let (is_hosted, namespace) = (mode::is_hosted(manager), mode::namespace_of(manager));
        if hubs.iter().all(|hub| hub.namespace != namespace) {
            hubs.push(Hub { manager, namespace, is_hosted });
        }
    }
    hubs
}

/// What one of the hubs of a cluster has in its namespace.
async fn of_hub(cluster: &Cluster, hub: &Hub<'_>) -> Inventory {
    let mut inventory = signed(cluster, hub.manager, hub.namespace).await;
    if hub.is_hosted {
        inventory.add(hosted_for(cluster, hub.namespace).await);
    }
    inventory
}

/// The ClusterManagers of a cluster: of the hub that it is, and of those whose pods run here. Whoever may not list them may still
/// read one that has a usual name.
async fn managers(cluster: &Cluster) -> Result<Vec<ClusterManager>, Unreadable> {
    let api: Api<ClusterManager> = Api::all(cluster.client.clone());
    let listed = api.list(&ListParams::default()).await.map_err(|error| cluster.explain("list ClusterManagers", error));
    match listed {
        Ok(listed) => Ok(listed.items),
        Err(failure) if matches!(failure.reason, Reason::KindNotServed | Reason::NotFound) => Ok(Vec::new()),
        Err(failure) if failure.reason == Reason::Forbidden => Ok(manager(cluster).await?.into_iter().collect()),
        Err(failure) => {
            let rule = PolicyRule::new("list", "operator.open-cluster-management.io", "clustermanagers", None);
            Err(Unreadable { what: "ClusterManagers".to_owned(), failure, rule: Some(rule) })
        }
    }
}

/// The ClusterManager that has a usual name.
async fn manager(cluster: &Cluster) -> Result<Option<ClusterManager>, Unreadable> {
    let api: Api<ClusterManager> = Api::all(cluster.client.clone());
    for name in [operators::CLUSTER_MANAGER_OBJECT, hosted::NAME] {
        match api.get_opt(name).await.map_err(|error| cluster.explain("read the ClusterManager", error)) {
            Ok(None) => {}
            Ok(found) => return Ok(found),
            Err(failure) if matches!(failure.reason, Reason::KindNotServed | Reason::NotFound) => {}
            Err(failure) => {
                let rule = PolicyRule::new("get", "operator.open-cluster-management.io", "clustermanagers", None);
                return Err(Unreadable { what: "the ClusterManager".to_owned(), failure, rule: Some(rule) });
            }
        }
    }
    Ok(None)
}

/// The authorities of managed clusters' API servers, as agents reported them.
async fn reported(cluster: &Cluster) -> Inventory {
    let mut inventory = empty();
    let api: Api<ManagedCluster> = Api::all(cluster.client.clone());
    let of_one = |found: ManagedCluster| {
        let name = found.metadata.name.unwrap_or_default();
        let place = place(Side::Hub, ObjectKind::ManagedCluster, None, &name, "spec.managedClusterClientConfigs");
        let copies = found.spec.managed_cluster_client_configs.into_iter().filter_map(|config| {
            let pem = config.ca_bundle?;
            let copy = copy(Copied::Reported, place.clone(), &pem.0);
            Some(Copy { cluster: Some(name.clone()), server: Some(redact(&config.url)), ..copy })
        });
        Some(copies.collect::<Vec<_>>()).filter(|copies| !copies.is_empty())
    };
    match pages(cluster, &api, ListParams::default(), || PAGE, "list managed clusters", of_one).await {
        Ok(copies) => inventory.copies = copies.into_iter().flatten().collect(),
        Err(failure) => {
            let rule = Some(PolicyRule::new("list", "cluster.open-cluster-management.io", "managedclusters", None));
            inventory.unseen.push(Unreadable { what: "ManagedClusters".to_owned(), failure, rule }.into());
        }
    }
    inventory
}

/// The API server as this kubeconfig dials it, and as the hub publishes it to agents.
async fn api_server(cluster: &Cluster, inventory: &mut Inventory) {
    let name = cluster.tls_server_name.as_deref();
    let Ok(endpoint) = Endpoint::parse(&cluster.server, name) else { return };
    let known = |verifier: String, presenter: String| {
        move |relation: Relation| Relation {
            purpose: Purpose::HubApi,
            presenter,
            verifier,
            client: Some(Client::Go),
            ..relation
        }
    };
    let dialled = Dialled {
        endpoint: &endpoint,
        name: name.map_or_else(|| endpoint.host.clone(), str::to_owned),
        way: &cluster.way,
        authorities: cluster.ca.as_deref(),
        insecure: cluster.insecure,
    };
    let verifier = format!("kubectl with {}", cluster.label());
    dial(dialled, inventory, known(verifier, format!("the API server {endpoint}"))).await;
    // Agents of clusters that join from now on are told this address.
    let Ok(Some(published)) = cluster_info(cluster).await else { return };
    let Ok(endpoint) = Endpoint::parse(&published.server, None) else { return };
    if published.server == cluster.server || endpoint.is_loopback() || published.ca.is_empty() {
        return;
    }
    let dialled = Dialled {
        endpoint: &endpoint,
        name: endpoint.host.clone(),
        way: &Way::Environment,
        authorities: Some(&published.ca),
        insecure: false,
    };
    let presenter = format!("the API server {endpoint}, which kube-public/cluster-info names,");
    dial(dialled, inventory, known("whoever joins by it".to_owned(), presenter)).await;
}

/// The API server of a hub whose pods are on this cluster and not on the hub itself, as they dial it, and what they come with.
async fn hosted_for(cluster: &Cluster, namespace: &str) -> Inventory {
    let mut inventory = empty();
    // What the operator has comes first: it makes the others of it.
    let names = std::iter::once(secrets::EXTERNAL_HUB_KUBECONFIG).chain(secrets::HOSTED_HUB_KUBECONFIGS);
    let found = futures::future::join_all(names.map(async |name| (name, secret(cluster, namespace, name).await))).await;
    let mut dialled = Vec::new();
    for (name, found) in found {
        let Some(found) = noted(found, &mut inventory) else { continue };
        let of_operator = name == secrets::EXTERNAL_HUB_KUBECONFIG;
        let holder = Holder {
            purpose: Purpose::Hosted,
            cluster: None,
            name: if of_operator { "the operator of the hosted hub" } else { "the pods of the hosted hub" }.to_owned(),
            server: "the hub's API server".to_owned(),
            place: place(Side::Hub, ObjectKind::Secret, Some(namespace), name, secrets::KUBECONFIG_KEY),
            renewal: if of_operator { Renewal::Unknown } else { Renewal::AtPercent(OPERATOR_RENEWS) },
        };
        inventory.add(external(&found, Copied::HostedHub, &holder, &mut dialled).await);
    }
    inventory
}

/// The Secrets with what the hub's authority signs for the hub's servers, the Services that they are for, and what they are.
/// Webhooks are asked by Services that have the same names on each hub, and the names of the others begin with that of the
/// ClusterManager (`certrotationcontroller` of `pkg/operator/operators/clustermanager`).
fn servers(manager: &str) -> [(&'static str, String, Purpose); 5] {
    [
        (secrets::REGISTRATION_WEBHOOK_CERT, webhooks::REGISTRATION_SERVICE.to_owned(), Purpose::Webhook),
        (secrets::WORK_WEBHOOK_CERT, webhooks::WORK_SERVICE.to_owned(), Purpose::Webhook),
        (secrets::ADDON_WEBHOOK_CERT, webhooks::ADDON_SERVICE.to_owned(), Purpose::Webhook),
        ("grpc-server-serving-cert", grpc::service(manager), Purpose::Grpc),
        ("placement-debug-serving-cert", format!("{manager}-placement"), Purpose::Placement),
    ]
}

/// The hub's own authority, its bundle, and what it has signed for the hub's servers.
async fn signed(cluster: &Cluster, manager: &ClusterManager, namespace: &str) -> Inventory {
    let mut inventory = empty();
    let servers = servers(manager.metadata.name.as_deref().unwrap_or_default());
    let serving = servers.into_iter().map(async |(name, service, purpose)| {
        let found = secret(cluster, namespace, name).await;
        (service, purpose, found)
    });
    let (signer, bundle, balancer, serving) = futures::join!(
        secret(cluster, namespace, secrets::SIGNER),
        config_map(cluster, namespace, secrets::CA_BUNDLE_CONFIGMAP),
        balancer(cluster, manager, namespace),
        futures::future::join_all(serving),
    );
    let signer = noted(signer, &mut inventory);
    if let Some(relation) = signer.as_ref().and_then(|signer| of_secret(Side::Hub, signer)) {
        let pem = signer.as_ref().and_then(|signer| value(signer, secrets::TLS_CERT_KEY)).unwrap_or_default();
        inventory.copies.push(copy(Copied::Signer, relation.place.clone(), pem));
        inventory.relations.push(Relation {
            purpose: Purpose::Signer,
            presenter: "the hub's own authority".to_owned(),
            verifier: "whoever has the hub's bundle".to_owned(),
            client: Some(Client::Go),
            usage: Use::Authority,
            renewal: Renewal::AtPercent(OPERATOR_RENEWS),
            ..relation
        });
    }
    let bundle = noted(bundle, &mut inventory).and_then(|bundle| bundle.data?.remove(secrets::CA_BUNDLE_KEY));
    let bundle = bundle.map(|pem| {
        let place = place(Side::Hub, ObjectKind::ConfigMap, Some(namespace), secrets::CA_BUNDLE_CONFIGMAP, "");
        copy(Copied::Bundle, place, pem.as_bytes())
    });
    let trust = bundle.as_ref().map_or(Trust::Unknown, |bundle| Trust::Authorities(bundle.authorities.clone()));
    inventory.copies.extend(bundle);
    let balancer = noted(balancer, &mut inventory);
    for (service, purpose, found) in serving {
        let Some(relation) = noted(found, &mut inventory).and_then(|found| of_secret(Side::Hub, &found)) else {
            continue;
        };
        let mut names = vec![format!("{service}.{namespace}.svc")];
        let verifier = match purpose {
            Purpose::Grpc => {
                names.extend(grpc_hosts(manager, balancer.as_ref()));
                "agents that register over gRPC"
            }
            Purpose::Placement => "whoever looks at placements",
            _ => "the hub's API server",
        };
        inventory.relations.push(Relation {
            purpose,
            presenter: format!("the Service {service}"),
            verifier: verifier.to_owned(),
            client: Some(Client::Go),
            usage: Use::Server,
            trust: trust.clone(),
            names,
            renewal: Renewal::AtPercent(OPERATOR_RENEWS),
            ..relation
        });
    }
    inventory
}

/// The ways to the gRPC server of a hub, as its ClusterManager says.
fn endpoints(manager: &ClusterManager) -> impl Iterator<Item = &ocm_api::operator::Endpoint> {
    let exposures = manager.spec.server_configuration.iter().flat_map(|server| &server.endpoints_exposure);
    exposures.filter(|one| one.protocol == EndpointProtocol::Grpc).filter_map(|one| one.grpc.as_ref())
}

/// The Service of a hub's gRPC server; none where no load balancer is in front of it.
async fn balancer(cluster: &Cluster, manager: &ClusterManager, namespace: &str) -> Result<Option<Service>, Unreadable> {
    if endpoints(manager).all(|endpoint| endpoint.type_ != EndpointType::LoadBalancer) {
        return Ok(None);
    }
    let api: Api<Service> = Api::namespaced(cluster.client.clone(), namespace);
    let name = grpc::service(manager.metadata.name.as_deref().unwrap_or_default());
    let what = format!("Service {namespace}/{name}");
    api.get_opt(&name).await.map_err(|error| Unreadable {
        failure: cluster.explain(format_args!("read {what}"), error),
        rule: Some(PolicyRule::new("get", "", "services", Some(namespace))),
        what,
    })
}

/// The names under which agents dial the hub's gRPC server from elsewhere. The operator makes its certificate for them
/// (`GRPCServerHostNames` of `pkg/operator/helpers`), except for that of a route, which it leaves out. `balancer` is the
/// Service of the server where a load balancer is in front of it.
fn grpc_hosts(manager: &ClusterManager, balancer: Option<&Service>) -> Vec<String> {
    let mut said: Vec<Option<String>> = Vec::new();
    for endpoint in endpoints(manager) {
        match endpoint.type_ {
            EndpointType::Hostname => said.push(endpoint.hostname.as_ref().map(|config| config.host.clone())),
            EndpointType::LoadBalancer => {
                said.push(endpoint.load_balancer.as_ref().and_then(|config| config.host.clone()));
                let status = balancer.and_then(|service| service.status.as_ref()?.load_balancer.as_ref());
                // The operator looks at the first one alone.
                if let Some(ingress) = status.and_then(|status| status.ingress.as_ref()?.first()) {
                    said.extend([ingress.ip.clone(), ingress.hostname.clone()]);
                }
            }
            EndpointType::Route => said.push(endpoint.route.as_ref().and_then(|config| config.host.clone())),
            EndpointType::Other(_) => {}
        }
    }
    let mut hosts: Vec<String> = Vec::new();
    for host in said.into_iter().flatten() {
        if !host.trim().is_empty() && !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    hosts
}

/// The bundles with which the API server verifies webhooks and conversions.
async fn webhook_bundles(cluster: &Cluster) -> Inventory {
    let mut inventory = empty();
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(cluster.client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client.clone());
    let unreadable = |kind: ObjectKind, group: &str, plural: &str, name: &str, error| {
        let what = format!("{} {name}", kind.word());
        let failure = cluster.explain(format_args!("read {what}"), error);
        Unreadable { what, failure, rule: Some(PolicyRule::new("get", group, plural, None)) }
    };
    let bundles = |clients: Vec<&WebhookClient>| -> Vec<ByteString> {
        clients.iter().map(|client| client.ca_bundle.clone().unwrap_or_default()).collect()
    };
    let (mutating, validating, definitions) = futures::join!(
        futures::future::join_all(webhooks::MUTATING.iter().map(async |(name, _)| {
            let kind = ObjectKind::MutatingWebhookConfiguration;
            let found = mutating.get_opt(name).await;
            let found =
                found.map_err(|error| unreadable(kind, ADMISSION, "mutatingwebhookconfigurations", name, error));
            let hooks = found.map(|found| found.map(|found| found.webhooks));
            (
                kind,
                *name,
                hooks.map(|hooks| hooks.map(|hooks| bundles(hooks.iter().map(|hook| &hook.client_config).collect()))),
            )
        })),
        futures::future::join_all(webhooks::VALIDATING.iter().map(async |(name, _)| {
            let kind = ObjectKind::ValidatingWebhookConfiguration;
            let found = validating.get_opt(name).await;
            let found =
                found.map_err(|error| unreadable(kind, ADMISSION, "validatingwebhookconfigurations", name, error));
            let hooks = found.map(|found| found.map(|found| found.webhooks));
            (
                kind,
                *name,
                hooks.map(|hooks| hooks.map(|hooks| bundles(hooks.iter().map(|hook| &hook.client_config).collect()))),
            )
        })),
        futures::future::join_all(webhooks::CONVERTED.iter().map(async |name| {
            let kind = ObjectKind::CustomResourceDefinition;
            let found = conversion::webhook(cluster, name).await;
            let found = found
                .map_err(|error| unreadable(kind, "apiextensions.k8s.io", "customresourcedefinitions", name, error));
            // Where nothing is converted there is nothing to trust.
            (kind, *name, found.map(|found| found.map(|webhook| vec![webhook.ca_bundle])))
        })),
    );
    for (kind, name, found) in mutating.into_iter().chain(validating).chain(definitions) {
        let mut bundles = noted(found, &mut inventory).unwrap_or_default();
        // The webhooks of one configuration usually have the same.
        bundles.dedup();
        let place = || place(Side::Hub, kind, None, name, "caBundle");
        inventory.copies.extend(bundles.iter().map(|pem| copy(Copied::WebhookBundle, place(), &pem.0)));
    }
    inventory
}

/// The TLS profile in the namespace where the operator reads it, and in those of hubs, where documents put it.
async fn settings(cluster: &Cluster, others: &[&str]) -> Inventory {
    let mut inventory = empty();
    let others = others.iter().map(|other| (*other, false));
    for (namespace, is_read) in std::iter::once((namespaces::OPERATOR, true)).chain(others) {
        let found = config_map(cluster, namespace, secrets::TLS_PROFILE_CONFIGMAP).await;
        let Some(map) = noted(found, &mut inventory) else { continue };
        let mut data = map.data.unwrap_or_default();
        inventory.settings.push(Setting {
            place: place(Side::Hub, ObjectKind::ConfigMap, Some(namespace), secrets::TLS_PROFILE_CONFIGMAP, ""),
            is_read,
            settings: TlsSettings {
                min_tls_version: data.remove("minTLSVersion"),
                cipher_suites: data.remove("cipherSuites"),
            },
        });
    }
    inventory
}

/// What the policy engine's webhook presents to the API server, and by which authorities it is verified there; nothing on a hub
/// without one.
async fn policy_webhook(cluster: &Cluster) -> Inventory {
    let mut inventory = empty();
    let (namespace, name) = (policy_engine::NAMESPACE, policy_engine::WEBHOOK);
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(cluster.client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client.clone());
    let (serving, issued, authority, mutating, validating) = futures::join!(
        secret(cluster, namespace, policy_engine::SERVING_SECRET),
        secret(cluster, namespace, policy_engine::ISSUED_SECRET),
        secret(cluster, namespace, policy_engine::AUTHORITY_SECRET),
        mutating.get_opt(name),
        validating.get_opt(name),
    );
    let bundle = |client: WebhookClient| client.ca_bundle.unwrap_or_default();
    let mutating = mutating.map(|found| {
        let hooks = |found: MutatingWebhookConfiguration| {
            let hooks = found.webhooks.into_iter().map(|hook| bundle(hook.client_config));
            (found.metadata.annotations.unwrap_or_default(), hooks.collect::<Vec<_>>())
        };
        found.map(hooks)
    });
    let validating = validating.map(|found| {
        let hooks = |found: ValidatingWebhookConfiguration| {
            let hooks = found.webhooks.into_iter().map(|hook| bundle(hook.client_config));
            (found.metadata.annotations.unwrap_or_default(), hooks.collect::<Vec<_>>())
        };
        found.map(hooks)
    });
    let mut is_injected = false;
    for (kind, plural, found) in [
        (ObjectKind::ValidatingWebhookConfiguration, "validatingwebhookconfigurations", validating),
        (ObjectKind::MutatingWebhookConfiguration, "mutatingwebhookconfigurations", mutating),
    ] {
        let found = found.map_err(|error| {
            let what = format!("{} {name}", kind.word());
            let failure = cluster.explain(format_args!("read {what}"), error);
            Unreadable { what, failure, rule: Some(PolicyRule::new("get", ADMISSION, plural, None)) }
        });
        let Some((annotations, mut bundles)) = noted(found, &mut inventory) else { continue };
        is_injected |= annotations.contains_key(INJECT_CA_FROM);
        bundles.dedup();
        let place = || place(Side::Hub, kind, None, name, "caBundle");
        inventory.copies.extend(bundles.iter().map(|pem| copy(Copied::PolicyBundle, place(), &pem.0)));
    }
    // The API server verifies it by each of these lists; they are usually the same.
    let mut trusts: Vec<(String, Trust)> = Vec::new();
    for copy in &inventory.copies {
        let trust = Trust::Authorities(copy.authorities.clone());
        if trusts.iter().all(|(_, known)| *known != trust) {
            trusts.push((format!("the hub's API server, by {},", copy.place), trust));
        }
    }
    let authority = noted(authority, &mut inventory);
    if let [(verifier, _)] = trusts.as_mut_slice() {
        "the hub's API server".clone_into(verifier);
    }
    if trusts.is_empty() {
        let authorities = authority.as_ref().and_then(|found| value(found, secrets::TLS_CERT_KEY)).map(certificates);
        let trust = authorities.map_or(Trust::Unknown, |list| Trust::Authorities(der(list)));
        trusts.push(("the hub's API server".to_owned(), trust));
    }
    let (serving, issued) = (noted(serving, &mut inventory), noted(issued, &mut inventory));
    let served = issued.filter(|_| is_injected).or(serving);
    let Some(served) = served.and_then(|found| of_secret(Side::Hub, &found)) else { return inventory };
    for (verifier, trust) in trusts {
        inventory.relations.push(Relation {
            purpose: Purpose::PolicyWebhook,
            presenter: "the webhook of the policy engine".to_owned(),
            verifier,
            client: Some(Client::Go),
            usage: Use::Server,
            trust,
            names: vec![policy_engine::SERVER_NAME.to_owned()],
            ..served.clone()
        });
    }
    inventory
}

/// Where a Secret of a managed cluster is.
pub(super) fn managed_place(namespace: &str, name: &str, key: &str) -> Place {
    place(Side::Managed, ObjectKind::Secret, Some(namespace), name, key)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_cluster_manager_is_a_hub_in_its_own_namespace() {
        let managers: Vec<ClusterManager> = [("a", "Hosted"), ("b", "Hosted"), ("cluster-manager", "Default")]
            .into_iter()
            .map(|(name, mode)| json!({"metadata": {"name": name}, "spec": {"deployOption": {"mode": mode}}}))
            .map(|manager| serde_json::from_value(manager).unwrap())
            .collect();
        let found = hubs(&managers);
        let found: Vec<(&str, bool)> = found.iter().map(|hub| (hub.namespace, hub.is_hosted)).collect();
        assert_eq!(found, [("a", true), ("b", true), (namespaces::HUB, false)]);
        // One that says no mode is in mode Default.
        let plain = [exposing(json!([]))];
        assert_eq!(hubs(&plain)[0].namespace, namespaces::HUB);
    }

    /// A ClusterManager with these ways to its gRPC server.
    fn exposing(exposures: Value) -> ClusterManager {
        let spec = json!({"serverConfiguration": {"endpointsExposure": exposures}});
        serde_json::from_value(json!({"metadata": {"name": "hub1"}, "spec": spec})).unwrap()
    }

    #[test]
    fn servers_are_asked_by_services_of_their_cluster_manager() {
        let of = |manager: &str| {
            let [_, _, addons, grpc, placement] = servers(manager).map(|(_, service, _)| service);
            [addons, grpc, placement]
        };
        assert_eq!(
            of("cluster-manager"),
            ["cluster-manager-addon-webhook", "cluster-manager-grpc-server", "cluster-manager-placement"]
        );
        assert_eq!(of("hub1"), ["cluster-manager-addon-webhook", "hub1-grpc-server", "hub1-placement"]);
    }

    #[test]
    fn the_certificate_of_the_grpc_server_is_for_what_agents_dial() {
        let hosts = |endpoint: Value, balancer: Option<&Service>| {
            grpc_hosts(&exposing(json!([{"protocol": "grpc", "grpc": endpoint}])), balancer)
        };
        let balanced = |host: Value| json!({"type": "loadBalancer", "loadBalancer": {"host": host}});
        let at = |ingress: Value| -> Service {
            serde_json::from_value(json!({"spec": {}, "status": {"loadBalancer": {"ingress": ingress}}})).unwrap()
        };
        let both = at(json!([{"ip": "192.0.2.1", "hostname": "lb.example"}, {"ip": "192.0.2.2"}]));
        assert_eq!(hosts(balanced(json!("hub.example")), Some(&both)), ["hub.example", "192.0.2.1", "lb.example"]);
        assert_eq!(hosts(balanced(json!("lb.example")), Some(&both)), ["lb.example", "192.0.2.1"]);
        assert_eq!(hosts(balanced(Value::Null), Some(&at(json!([{"ip": "192.0.2.1"}])))), ["192.0.2.1"]);
        assert_eq!(hosts(balanced(json!("hub.example")), None), ["hub.example"]);
        // What is said of another way than the one that is taken is not dialled.
        let named = json!({"type": "hostname", "hostname": {"host": "hub.example"}, "loadBalancer": {"host": "lb"}});
        assert_eq!(hosts(named, Some(&both)), ["hub.example"]);
        let other = json!([{"protocol": "https", "grpc": {"type": "hostname", "hostname": {"host": "hub.example"}}}]);
        assert_eq!(grpc_hosts(&exposing(other), Some(&both)), [""; 0]);
    }
}
