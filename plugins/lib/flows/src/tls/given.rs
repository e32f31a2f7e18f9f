//! What the user names: an address, a Secret, a file of certificates or a kubeconfig.

use std::path::Path;

use futures::StreamExt as _;
use kube::config::{Cluster as ClusterEntry, Kubeconfig};
use ocm_checks::snapshot::{Side, Trouble};
use ocm_checks::tls::{Client, Inventory, Place, Purpose, Relation, Trust, Unseen, Use};
use ocm_core::certificate::{self, Certificate};
use ocm_core::{Failure, Reason};
use ocm_kube::{Cluster, kubeconfig};
use ocm_net::{Endpoint, Way};
use secrecy::ExposeSecret as _;

use super::clock::empty;
use super::handshake::{Dialled, dial};
use super::kubeconfig::Server;
use super::material::{self, certificates, chain, der, of_secret, place, plain, value};
use crate::registry::FEW;

/// What a server presents. It is reached as the environment says, and trusted by these authorities, or by the system's.
///
/// # Errors
/// A usage failure for what is no `HOST:PORT`.
pub async fn address(text: &str, name: Option<&str>, authorities: Option<&[Vec<u8>]>) -> Result<Inventory, Failure> {
    let url = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    let endpoint = Endpoint::parse(&url, name)?;
    let mut inventory = empty();
    let dialled = Dialled {
        endpoint: &endpoint,
        name: name.map_or_else(|| endpoint.host.clone(), str::to_owned),
        way: &Way::Environment,
        authorities,
        insecure: false,
    };
    dial(dialled, &mut inventory, |relation| relation).await;
    Ok(inventory)
}

/// What a Secret holds: its certificates, and the servers of the kubeconfig in it.
///
/// # Errors
/// When there is no such Secret, or it cannot be read.
pub async fn secret(cluster: &Cluster, namespace: &str, name: &str) -> Result<Inventory, Failure> {
    let found = material::secret(cluster, namespace, name).await.map_err(|unreadable| unreadable.failure)?;
    let Some(secret) = found else {
        let sentence = format!("there is no Secret {namespace}/{name} ({})", cluster.label());
        return Err(Failure::new(Reason::NotFound, sentence).hint("secrets are named as secret/NAMESPACE/NAME"));
    };
    let mut inventory = empty();
    let own = of_secret(Side::Hub, &secret);
    let authorities = value(&secret, "ca.crt").map(certificates).unwrap_or_default();
    if let Some(own) = own {
        let trust = if authorities.is_empty() { Trust::Unknown } else { Trust::Authorities(der(authorities)) };
        inventory.relations.push(Relation { trust, ..own });
    }
    for (key, content) in secret.data.iter().flatten().filter(|(key, _)| key.as_str() != "tls.crt") {
        let place = || place(Side::Hub, ocm_checks::tls::ObjectKind::Secret, Some(namespace), name, key);
        match std::str::from_utf8(&content.0).ok().and_then(|text| kubeconfig::parse(text).ok()) {
            Some(kubeconfig) if !kubeconfig.clusters.is_empty() => {
                kubeconfig_of(&kubeconfig, &place(), None, &mut inventory).await;
            }
            _ => inventory.relations.extend(each(certificates(&content.0), &place())),
        }
    }
    if inventory.relations.is_empty() && inventory.unseen.is_empty() {
        let sentence = format!("Secret {namespace}/{name} holds neither certificates nor a kubeconfig");
        return Err(Failure::new(Reason::NotFound, sentence));
    }
    Ok(inventory)
}

/// What a file or stdin holds: certificates as PEM, with or without their private key, or a kubeconfig. Certificates are
/// verified by these authorities, and for this name.
///
/// # Errors
/// A usage failure when it is neither.
pub async fn content(
    origin: &str,
    folder: Option<&Path>,
    content: &[u8],
    name: Option<&str>,
    authorities: Option<&[Vec<u8>]>,
) -> Result<Inventory, Failure> {
    let mut inventory = empty();
    let place = Place::Input(origin.to_owned());
    match certificate::from_pem(content) {
        // Authorities are a list, in which each stands for itself.
        Ok(chain) if chain.first().and_then(|own| Certificate::read(own)).is_some_and(|own| own.is_ca) => {
            inventory.relations = each(chain, &place);
            return Ok(inventory);
        }
        Ok(chain) => {
            let holds_key = chain.first().and_then(|own| ocm_net::key::belongs(content, own));
            let trust = authorities.map_or(Trust::Unknown, |list| Trust::Authorities(der(list.to_vec())));
            let names = name.map(str::to_owned).into_iter().collect();
            inventory.relations.push(Relation { holds_key, trust, names, ..plain(chain, place) });
            return Ok(inventory);
        }
        Err(certificate::NotCertificates::None) => {}
        Err(broken) => return Err(Failure::usage(format!("{origin} cannot be read")).because(broken)),
    }
    let kubeconfig = std::str::from_utf8(content).ok().and_then(|text| kubeconfig::parse(text).ok());
    match kubeconfig.filter(|kubeconfig| !kubeconfig.clusters.is_empty()) {
        Some(kubeconfig) => kubeconfig_of(&kubeconfig, &place, folder, &mut inventory).await,
        None => {
            return Err(Failure::usage(format!("{origin} holds neither certificates as PEM nor a kubeconfig"))
                .hint("name a file, - for stdin, HOST:PORT, or secret/NAMESPACE/NAME"));
        }
    }
    Ok(inventory)
}

/// Every certificate of a bundle, each for itself.
fn each(bundle: Vec<Vec<u8>>, place: &Place) -> Vec<Relation> {
    bundle.into_iter().map(|certificate| plain(vec![certificate], place.clone())).collect()
}

/// The servers of a kubeconfig, a few at a time, and the client certificates in it.
async fn kubeconfig_of(kubeconfig: &Kubeconfig, place: &Place, folder: Option<&Path>, inventory: &mut Inventory) {
    let entries = kubeconfig.clusters.iter().filter_map(|named| Some((&named.name, named.cluster.as_ref()?)));
    let servers = futures::stream::iter(entries).map(|(name, cluster)| server(name, cluster, place, folder));
    let servers: Vec<Inventory> = servers.buffered(FEW).collect().await;
    servers.into_iter().for_each(|server| inventory.add(server));
    for named in &kubeconfig.auth_infos {
        let Some(user) = &named.auth_info else { continue };
        let data = user.client_certificate_data.as_deref().map(|data| decode(data).unwrap_or_default());
        let Some(pem) = data.or_else(|| read(folder, user.client_certificate.as_deref()?)) else { continue };
        let chain = chain(&pem);
        let key = user.client_key_data.as_ref().and_then(|data| decode(data.expose_secret()));
        let key = key.or_else(|| read(folder, user.client_key.as_deref()?));
        let holds_key = key.zip(chain.first()).and_then(|(key, own)| ocm_net::key::belongs(&key, own));
        let relation = plain(chain, place.clone());
        inventory.relations.push(Relation {
            presenter: format!("user {:?} of {place}", named.name),
            verifier: "the API server".to_owned(),
            client: Some(Client::Go),
            usage: Use::Client,
            holds_key,
            ..relation
        });
    }
}

/// The API server of a cluster of a kubeconfig.
async fn server(name: &str, cluster: &ClusterEntry, place: &Place, folder: Option<&Path>) -> Inventory {
    let mut inventory = empty();
    let server = match Server::of(cluster, folder) {
        Ok(server) => server,
        Err(failure) => {
            let what = format!("cluster {name:?} of {place}");
            inventory.unseen.push(Unseen { what, cluster: None, trouble: Trouble::of(&failure, None) });
            return inventory;
        }
    };
    let verifier = format!("whoever uses the cluster {name:?} of the kubeconfig");
    dial(server.dialled(), &mut inventory, |relation| Relation {
        purpose: Purpose::Given,
        presenter: format!("the API server of {name:?}"),
        verifier,
        client: Some(Client::Go),
        ..relation
    })
    .await;
    inventory
}

/// A file that a kubeconfig names, relative to its own folder; none on stdin, which has no folder.
fn read(folder: Option<&Path>, file: &str) -> Option<Vec<u8>> {
    std::fs::read(folder?.join(file)).ok()
}

/// Base64 of a certificate, or of a private key, which is told to nobody.
fn decode(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text.trim()).ok()
}
