//! What a managed cluster has: what its agents register with, what they were let in with, and how they reach the hub.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::Api;
use kube::api::{ListParams, PartialObjectMeta};
use ocm_api::names::{labels, namespaces, secrets};
use ocm_api::{Klusterlet, ManagedClusterAddOn};
use ocm_checks::snapshot::{PolicyRule, Side, Trouble};
use ocm_checks::tls::{
    Client, Copied, Copy, Identity, Inventory, ObjectKind, Place, Purpose, Relation, Renewal, Trust, Unseen, Use,
};
use ocm_core::join::fallback;
use ocm_core::name::is_dns_label;
use ocm_core::order::Collect as _;
use ocm_core::redact::redact;
use ocm_core::{Failure, Reason};
use ocm_kube::Cluster;
use ocm_net::{Endpoint, Way};

use super::clock::{clock_ahead, empty};
use super::grpc::{GrpcConfig, grpc_config};
use super::handshake::{Dialled, dial};
use super::hub::managed_place;
use super::kubeconfig::{Dialling, Holder, Server, external, proxy};
use super::material::{config_map, copy, der, noted, of_secret, place, secret, text, value};
use super::unreadable::Unreadable;
use crate::hub::ROOT_CA;
use crate::observe::managed::{Names, klusterlets};
use crate::registry::{FEW, pages, pages_of_metadata};

/// Secrets of one page: they may be large.
const PAGE: u32 = 100;

/// When agents renew their certificate at the latest, in percent of its life.
const AGENTS_RENEW: u8 = 80;

/// Reads what a managed cluster has; nothing of a cluster that is none. Its `hub`, if there is access to it, knows where its
/// add-ons are.
pub async fn managed(cluster: &Cluster, hub: Option<&Cluster>) -> Inventory {
    let mut inventory = empty();
    let found = match klusterlets(cluster).await {
        Ok(found) => found,
        Err(failure) => {
            let rule = PolicyRule::new("list", "operator.open-cluster-management.io", "klusterlets", None);
            inventory.unseen.push(Unreadable { what: "Klusterlets".to_owned(), failure, rule: Some(rule) }.into());
            return inventory;
        }
    };
    for klusterlet in &found {
        inventory.add(agent(cluster, klusterlet).await);
    }
    if !found.is_empty() {
        let namespaces = addon_namespaces(cluster, hub, &mut inventory).await;
        let addons = futures::stream::iter(&namespaces).map(|namespace| in_namespace(cluster, namespace)).buffered(FEW);
        let (addons, clock_ahead_seconds) = futures::join!(addons.collect::<Vec<_>>(), clock_ahead(cluster));
        addons.into_iter().for_each(|addons| inventory.add(addons));
        for relation in &mut inventory.relations {
            // What the hub verifies is judged by its clock, and of whom nothing is known, by ours.
            if matches!(relation.trust, Trust::Authorities(_) | Trust::System { .. }) {
                relation.clock_ahead_seconds = clock_ahead_seconds;
            }
        }
    }
    inventory
}

/// The namespaces of the add-ons of a cluster: the usual one, those that a label says are such, and those that its hub knows.
async fn addon_namespaces(cluster: &Cluster, hub: Option<&Cluster>, inventory: &mut Inventory) -> BTreeSet<String> {
    let mut found = [namespaces::AGENT_ADDON.to_owned()].collect_set();
    let api: Api<Namespace> = Api::all(cluster.client.clone());
    let labelled = ListParams::default().labels(&format!("{}=true", labels::ADDON_NAMESPACE));
    let name = |namespace: PartialObjectMeta<Namespace>| namespace.metadata.name;
    let what = "the namespaces of add-ons";
    match pages_of_metadata(cluster, &api, labelled, &format!("list {what}"), name).await {
        Ok(names) => found.extend(names),
        Err(failure) => {
            let rule = Some(PolicyRule::new("list", "", "namespaces", None));
            inventory.unseen.push(Unreadable { what: what.to_owned(), failure, rule }.into());
        }
    }
    let Some(hub) = hub else { return found };
    let of_copies = inventory.copies.iter().filter_map(|copy| copy.cluster.clone());
    let of_relations = inventory.relations.iter().filter_map(|relation| relation.cluster.clone());
    // Whoever has written the Klusterlet may have written anything, and it becomes a part of an address.
    let clusters: BTreeSet<String> = of_copies.chain(of_relations).filter(|name| is_dns_label(name)).collect_set();
    for cluster in clusters {
        match on_hub(hub, &cluster).await {
            Ok(names) => found.extend(names),
            Err(unreadable) => inventory.unseen.push(unreadable.into()),
        }
    }
    found
}

/// The namespaces in which a hub knows the add-ons of a cluster to be; none on a hub without add-ons.
async fn on_hub(hub: &Cluster, cluster: &str) -> Result<Vec<String>, Unreadable> {
    let api: Api<ManagedClusterAddOn> = Api::namespaced(hub.client.clone(), cluster);
    let what = format!("the add-ons of {cluster}");
    let namespace = |addon: ManagedClusterAddOn| Some(addon.agent_namespace().to_owned());
    match pages(hub, &api, ListParams::default(), || PAGE, &format!("list {what}"), namespace).await {
        Err(failure) if matches!(failure.reason, Reason::KindNotServed | Reason::NotFound) => Ok(Vec::new()),
        found => found.map_err(|failure| {
            let (group, plural) = ("addon.open-cluster-management.io", "managedclusteraddons");
            Unreadable { what, failure, rule: Some(PolicyRule::new("list", group, plural, Some(cluster))) }
        }),
    }
}

/// What add-ons have in a namespace.
async fn in_namespace(cluster: &Cluster, namespace: &str) -> Inventory {
    let (mut addons, bundles) = futures::join!(addons(cluster, namespace), proxy_bundles(cluster, namespace));
    addons.add(bundles);
    addons
}

/// The authorities by which add-ons in a namespace trust their proxy, as the hub has put them beside them.
async fn proxy_bundles(cluster: &Cluster, namespace: &str) -> Inventory {
    let mut inventory = empty();
    let api: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), namespace);
    let what = format!("the ConfigMaps of {namespace}");
    let wanted = |found: ConfigMap| {
        let name = found.metadata.name.filter(|name| name.ends_with(secrets::PROXY_CA_SUFFIX))?;
        let pem = found.data?.remove(secrets::CA_BUNDLE_KEY)?;
        let place = place(Side::Managed, ObjectKind::ConfigMap, Some(namespace), &name, secrets::CA_BUNDLE_KEY);
        Some(copy(Copied::Proxy, place, pem.as_bytes()))
    };
    match pages(cluster, &api, ListParams::default(), || PAGE, &format!("list {what}"), wanted).await {
        Ok(copies) => inventory.copies = copies,
        Err(failure) => {
            let rule = Some(PolicyRule::new("list", "", "configmaps", Some(namespace)));
            inventory.unseen.push(Unreadable { what, failure, rule }.into());
        }
    }
    inventory
}

/// What one agent has.
async fn agent(cluster: &Cluster, klusterlet: &Klusterlet) -> Inventory {
    let mut inventory = empty();
    let names = Names::of(std::slice::from_ref(klusterlet));
    let own = klusterlet.metadata.name.as_deref().unwrap_or_default();
    // A hosted agent is in the namespace named as its Klusterlet (`AgentNamespace` of `pkg/operator/helpers`).
    let namespace = if klusterlet.mode().is_hosted() { own } else { names.namespace.as_str() };
    let several = serde_json::to_value(klusterlet).ok().as_ref().and_then(fallback::listing);
    let hubs = match &several {
        Some(listing) => listing.secrets.iter().map(String::as_str).collect(),
        None => vec![secrets::BOOTSTRAP_HUB_KUBECONFIG],
    };
    let (registers, accepted, own_authority) = futures::join!(
        futures::future::join_all(hubs.iter().map(|name| secret(cluster, namespace, name))),
        secret(cluster, namespace, secrets::HUB_KUBECONFIG),
        own_authority(cluster, klusterlet, namespace),
    );
    let mut held_by = Vec::new();
    for (name, found) in hubs.into_iter().zip(registers) {
        let Ok(found) = found else {
            held_by.extend(noted(found, &mut inventory));
            continue;
        };
        // Without one of several its pods do not start.
        if several.is_some() && found.as_ref().is_none_or(|found| value(found, secrets::KUBECONFIG_KEY).is_none()) {
            let what = format!("the kubeconfig in Secret {namespace}/{name}, which Klusterlet {own} lists");
            let trouble = Trouble::of(&Failure::new(Reason::NotFound, format!("{what}, is not there")), None);
            inventory.unseen.push(Unseen { what, cluster: None, trouble });
        }
        held_by.extend(found);
    }
    let registers: Vec<Secret> = held_by;
    let accepted = noted(accepted, &mut inventory);
    let noted_name = accepted.as_ref().and_then(|found| text(found, secrets::CLUSTER_NAME_KEY));
    let wanted = klusterlet.spec.cluster_name.clone().filter(|name| !name.is_empty());
    let known = wanted.or(noted_name);
    let name = known.clone().unwrap_or_else(|| own.to_owned());
    let own_authority = noted(own_authority, &mut inventory);
    inventory.copies.extend(own_authority.map(|copy| Copy { cluster: Some(name.clone()), ..copy }));
    let address = |found: &Secret| Some(crate::hub::parse(&text(found, secrets::KUBECONFIG_KEY)?)?.hub);
    // Over gRPC it was given no kubeconfig.
    let given = [secrets::KUBECONFIG_KEY, secrets::TLS_CERT_KEY];
    let is_let_in = accepted.as_ref().is_some_and(|found| given.iter().any(|key| value(found, key).is_some()));
    let mut held: Vec<(Copied, &Secret)> = accepted.iter().map(|found| (Copied::Accepted, found)).collect();
    // With several hubs it may be at any of them, and the kubeconfig of that one is what it has registered with.
    let at = accepted.as_ref().and_then(address).filter(|_| several.is_some());
    let own = registers.iter().position(|found| match (&at, address(found)) {
        (Some(at), Some(there)) => there.is_at(&at.server),
        (at, _) => at.is_none(),
    });
    let each = registers.iter().enumerate();
    held.extend(each.map(|(n, found)| (if own == Some(n) { Copied::Bootstrap } else { Copied::Further }, found)));
    let mut dialled = Vec::new();
    // What it works with comes first, and what it registers with is dialled only if that differs.
    for (what, found) in held {
        let secret_name = found.metadata.name.as_deref().unwrap_or_default();
        let place = managed_place(namespace, secret_name, secrets::KUBECONFIG_KEY);
        if let Some(kubeconfig) = text(found, secrets::KUBECONFIG_KEY) {
            hub_api(&name, what, place.clone(), &kubeconfig, &mut dialled, &mut inventory).await;
        }
        if let Some(config) = text(found, secrets::GRPC_CONFIG_KEY) {
            grpc(&name, namespace, secret_name, &config, what == Copied::Accepted, &mut inventory).await;
        }
        // One that turns to several hubs needs what it registers with whenever it starts.
        if what != Copied::Accepted && (!is_let_in || several.is_some()) {
            registers_with(found, &name, what, place, &mut inventory);
        }
    }
    if let Some(relation) = accepted.as_ref().and_then(|found| of_secret(Side::Managed, found)) {
        let by_grpc = accepted.as_ref().is_some_and(|found| value(found, secrets::GRPC_CONFIG_KEY).is_some());
        inventory.relations.push(Relation {
            purpose: Purpose::Agent,
            cluster: Some(name.clone()),
            presenter: format!("the agent of {name}"),
            verifier: if by_grpc { "the hub's gRPC server" } else { "the hub's API server" }.to_owned(),
            client: Some(Client::Go),
            usage: Use::Client,
            trust: if by_grpc { Trust::GrpcClients } else { Trust::HubClients },
            identity: known.map(|cluster| Identity {
                cluster,
                agent: accepted.as_ref().and_then(|found| text(found, secrets::AGENT_NAME_KEY)),
                add_on: None,
            }),
            renewal: Renewal::AtPercent(AGENTS_RENEW),
            ..relation
        });
    }
    if klusterlet.mode().is_hosted() {
        inventory.add(hosted_for(cluster, namespace, &name).await);
    }
    inventory
}

/// The API server of the managed cluster that an agent is hosted for, as operator and agent dial it, and what they come with.
async fn hosted_for(cluster: &Cluster, namespace: &str, name: &str) -> Inventory {
    let mut inventory = empty();
    // What the operator has comes first: it makes the others of it.
    let names = std::iter::once(secrets::EXTERNAL_MANAGED_KUBECONFIG).chain(secrets::HOSTED_AGENT_KUBECONFIGS);
    let found = futures::future::join_all(names.map(async |name| (name, secret(cluster, namespace, name).await))).await;
    let mut dialled = Vec::new();
    for (secret_name, found) in found {
        let Some(found) = noted(found, &mut inventory) else { continue };
        let of_operator = secret_name == secrets::EXTERNAL_MANAGED_KUBECONFIG;
        let who = if of_operator { "the operator of the hosted agent of" } else { "the hosted agent of" };
        let holder = Holder {
            purpose: Purpose::Hosted,
            cluster: Some(name.to_owned()),
            name: format!("{who} {name}"),
            server: format!("the API server of {name}"),
            place: managed_place(namespace, secret_name, secrets::KUBECONFIG_KEY),
            renewal: if of_operator { Renewal::Unknown } else { Renewal::AtPercent(AGENTS_RENEW) },
        };
        inventory.add(external(&found, Copied::HostedApi, &holder, &mut dialled).await);
    }
    inventory
}

/// What an agent registers with: a token, or a certificate. Once it was let in, one with a single hub needs it no more.
fn registers_with(secret: &Secret, name: &str, what: Copied, place: Place, inventory: &mut Inventory) {
    let read = text(secret, secrets::KUBECONFIG_KEY).and_then(|text| crate::hub::entries(&text));
    let Some((_, user)) = read else { return };
    let holder = Holder {
        purpose: Purpose::Agent,
        cluster: Some(name.to_owned()),
        name: format!("the agent of {name}, {}", when(what)),
        server: "the hub's API server".to_owned(),
        place,
        renewal: Renewal::Unknown,
    };
    holder.credentials(secret, user.as_ref(), inventory);
}

/// When an agent uses what it registers with.
fn when(what: Copied) -> &'static str {
    if what == Copied::Further { "when it turns to another hub" } else { "when it registers" }
}

/// The authorities of the cluster's own API server, as its pods get them.
async fn own_authority(
    cluster: &Cluster,
    klusterlet: &Klusterlet,
    namespace: &str,
) -> Result<Option<Copy>, Unreadable> {
    // What hosts an agent is not the cluster that the agent is for.
    if klusterlet.mode().is_hosted() {
        return Ok(None);
    }
    let map = config_map(cluster, namespace, ROOT_CA).await?;
    let pem = map.and_then(|map| map.data?.remove("ca.crt"));
    let place = place(Side::Managed, ObjectKind::ConfigMap, Some(namespace), ROOT_CA, "ca.crt");
    Ok(pem.map(|pem| copy(Copied::OwnApi, place, pem.as_bytes())))
}

/// The hub's API server as the agents of this cluster dial it by a kubeconfig of theirs.
async fn hub_api(
    name: &str,
    what: Copied,
    place: Place,
    kubeconfig: &str,
    dialled: &mut Vec<Dialling>,
    inventory: &mut Inventory,
) {
    let entry = crate::hub::entries(kubeconfig).map(|(entry, _)| entry);
    let entry = entry.ok_or_else(|| Failure::new(Reason::Kubeconfig, "it holds no kubeconfig of one cluster"));
    let (server, proxy) = match entry.and_then(|entry| Ok((Server::of(&entry, None)?, entry))) {
        Ok((server, entry)) => {
            let proxy = proxy(&entry).and_then(Result::ok).map(|proxy| proxy.to_string());
            inventory.copies.push(Copy {
                what,
                cluster: Some(name.to_owned()),
                place,
                authorities: der(server.authorities.clone().unwrap_or_default()),
                unreadable: server.unreadable,
                server: Some(redact(entry.server.as_deref().unwrap_or_default())),
                proxy: proxy.clone(),
                vouches: None,
            });
            (server, proxy)
        }
        Err(failure) => {
            let what = format!("the hub of {name}, which {place} names");
            let trouble = Trouble::of(&failure, None);
            inventory.unseen.push(Unseen { what, cluster: Some(name.to_owned()), trouble });
            return;
        }
    };
    // Both kubeconfigs usually say the same, and one handshake is enough then.
    let dialling = (server.address(), server.authorities.clone(), proxy);
    if dialled.contains(&dialling) {
        return;
    }
    dialled.push(dialling);
    let again = if what == Copied::Accepted { String::new() } else { format!(", {},", when(what)) };
    let presenter = format!("the hub's API server {}", server.address());
    dial(server.dialled(), inventory, |relation| Relation {
        purpose: Purpose::HubApi,
        cluster: Some(name.to_owned()),
        presenter,
        verifier: format!("the agent of {name}{again}"),
        client: Some(Client::Go),
        ..relation
    })
    .await;
}

/// The hub's gRPC server as the agents of this cluster dial it.
async fn grpc(name: &str, namespace: &str, secret: &str, config: &str, is_in_use: bool, inventory: &mut Inventory) {
    let place = managed_place(namespace, secret, secrets::GRPC_CONFIG_KEY);
    let read = grpc_config(config).ok_or_else(|| Failure::new(Reason::Kubeconfig, "it names no gRPC server"));
    let found = read.and_then(|read| Ok((Endpoint::parse(&format!("https://{}", read.url), None)?, read)));
    let (endpoint, GrpcConfig { url: _, pem, token: _ }) = match found {
        Ok(found) => found,
        Err(failure) => {
            let what = format!("the gRPC server of {name}, which {place} names");
            let trouble = Trouble::of(&failure, None);
            inventory.unseen.push(Unseen { what, cluster: Some(name.to_owned()), trouble });
            return;
        }
    };
    let mut copy = copy(Copied::GrpcBundle, place, pem.as_deref().unwrap_or_default());
    (copy.cluster, copy.server) = (Some(name.to_owned()), Some(endpoint.to_string()));
    let authorities: Option<Vec<Vec<u8>>> =
        pem.is_some().then(|| copy.authorities.iter().map(|der| der.0.clone()).collect());
    inventory.copies.push(copy);
    // Before it was let in, an agent dials by what it registers with.
    if is_in_use || inventory.relations.iter().all(|relation| relation.purpose != Purpose::Grpc) {
        let dialled = Dialled {
            endpoint: &endpoint,
            name: endpoint.host.clone(),
            way: &Way::Environment,
            authorities: authorities.as_deref(),
            insecure: false,
        };
        dial(dialled, inventory, |relation| Relation {
            purpose: Purpose::Grpc,
            cluster: Some(name.to_owned()),
            presenter: format!("the hub's gRPC server {endpoint}"),
            verifier: format!("the agent of {name}"),
            client: Some(Client::Go),
            ..relation
        })
        .await;
    }
}

/// The end of the names of Secrets with which add-ons come to the hub's API server. Others are for servers of their own.
const TOWARDS_HUB: &str = "-hub-kubeconfig";

/// The end of the names of Secrets with which add-ons come to others, by certificates of a signer that the add-on names.
const OF_SIGNER: &str = "-client-cert";

/// Who renews the client certificate in a Secret of this name: the registration agent, where it makes such Secrets
/// (`getRegistrationConfigs` of `pkg/registration/spoke/addon`): `ADDON-hub-kubeconfig`, and `ADDON-SIGNER-client-cert`
/// with `-` for each `/` of the signer. The name of a signer begins with a domain, and so has a dot. Of others nothing is
/// known: whoever makes them renews them when it likes.
fn renewal(secret: &str) -> Renewal {
    let of_agent =
        secret.ends_with(TOWARDS_HUB) || secret.strip_suffix(OF_SIGNER).is_some_and(|rest| rest.contains('.'));
    if of_agent { Renewal::AtPercent(AGENTS_RENEW) } else { Renewal::Unknown }
}

/// The certificates with which add-ons in a namespace come to the hub.
async fn addons(cluster: &Cluster, namespace: &str) -> Inventory {
    let mut inventory = empty();
    let api: Api<Secret> = Api::namespaced(cluster.client.clone(), namespace);
    let what = format!("the Secrets of {namespace}");
    // Of each page only what is public is kept.
    let wanted = |found: Secret| {
        let name = found.metadata.name.as_deref().unwrap_or_default();
        // Those of the cluster's own agent are told of with it, wherever add-ons are.
        if [secrets::BOOTSTRAP_HUB_KUBECONFIG, secrets::HUB_KUBECONFIG].contains(&name) {
            return None;
        }
        let add_on = name.strip_suffix(TOWARDS_HUB);
        let towards_hub = add_on.is_some();
        let holder = |key: &str| {
            let place = managed_place(namespace, name, key);
            Holder {
                purpose: Purpose::AddOn,
                cluster: text(&found, secrets::CLUSTER_NAME_KEY),
                name: format!("the add-on of {place}"),
                server: if towards_hub { "the hub's API server" } else { "the add-on's own server" }.to_owned(),
                place,
                renewal: renewal(name),
            }
        };
        let token = text(&found, secrets::TOKEN_KEY).filter(|_| towards_hub);
        let token = token.and_then(|token| holder(secrets::TOKEN_KEY).token(&token));
        // Servers' certificates are of the add-ons' own, of which nothing is known.
        let relation = of_secret(Side::Managed, &found).filter(|relation| relation.usage == Use::Client);
        let relation = relation.map(|relation| {
            let Holder { purpose, cluster, name, server, place: _, renewal } = holder(secrets::TLS_CERT_KEY);
            let identity = cluster.clone().zip(add_on).map(|(cluster, add_on)| Identity {
                cluster,
                agent: None,
                add_on: Some(add_on.to_owned()),
            });
            Relation {
                identity,
                purpose,
                cluster,
                presenter: name,
                verifier: server,
                client: Some(Client::Go),
                trust: if towards_hub { Trust::HubClients } else { Trust::Unknown },
                renewal,
                ..relation
            }
        });
        (relation.is_some() || token.is_some()).then_some((relation, token))
    };
    match pages(cluster, &api, ListParams::default(), || PAGE, &format!("list {what}"), wanted).await {
        Ok(found) => {
            for (relation, token) in found {
                inventory.relations.extend(relation);
                inventory.tokens.extend(token);
            }
        }
        Err(failure) => {
            let rule = Some(PolicyRule::new("list", "", "secrets", Some(namespace)));
            inventory.unseen.push(Unreadable { what, failure, rule }.into());
        }
    }
    inventory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registration_agent_renews_what_it_makes_and_nothing_else() {
        let (own, none) = (Renewal::AtPercent(AGENTS_RENEW), Renewal::Unknown);
        for (secret, expected) in [
            ("cluster-proxy-hub-kubeconfig", own),
            ("cluster-proxy-open-cluster-management.io-proxy-agent-signer-client-cert", own),
            ("cluster-proxy-client-cert", none),
            ("postgres-client", none),
            ("hub-kubeconfig", none),
            ("client-cert", none),
        ] {
            assert_eq!(renewal(secret), expected, "{secret}");
        }
    }
}
