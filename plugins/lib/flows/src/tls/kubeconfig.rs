//! Servers of kubeconfigs, as whoever has the file dials them.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use kube::config::Cluster as ClusterEntry;
use ocm_api::names::secrets;
use ocm_checks::snapshot::Trouble;
use ocm_checks::tls::{Client, Inventory, Place, Relation, Unseen};
use ocm_core::{Failure, Reason, certificate};
use ocm_net::proxy::{Origin, Proxy};
use ocm_net::{Endpoint, Way};

use super::empty;
use super::handshake::{Dialled, dial};
use super::material::text;

/// What the entry of a cluster says of the way to its server.
pub(super) struct Server {
    endpoint: Endpoint,
    name: String,
    way: Way,
    insecure: bool,
    /// The authorities in it; none: the system's.
    pub(super) authorities: Option<Vec<Vec<u8>>>,
    /// How many blocks among the authorities cannot be read.
    pub(super) unreadable: usize,
}

impl Server {
    /// Reads an entry. Files that it names are in `folder`, if they may be read at all.
    ///
    /// # Errors
    /// When there is no way to such a server, or its authorities cannot be had.
    pub(super) fn of(entry: &ClusterEntry, folder: Option<&Path>) -> Result<Self, Failure> {
        let name = entry.tls_server_name.as_deref().filter(|name| !name.is_empty());
        let endpoint = Endpoint::parse(entry.server.as_deref().unwrap_or_default(), name)?;
        let way = match proxy(entry) {
            Some(proxy) => Way::Through(proxy.map_err(|error| {
                Failure::new(Reason::Kubeconfig, "the proxy-url of the kubeconfig cannot be used").because(error)
            })?),
            None => Way::Environment,
        };
        let (authorities, unreadable) = match pem(entry, folder)?.map(|pem| certificate::readable(&pem)) {
            Some((authorities, unreadable)) => (Some(authorities), unreadable),
            None => (None, 0),
        };
        Ok(Self {
            name: name.map_or_else(|| endpoint.host.clone(), str::to_owned),
            endpoint,
            way,
            insecure: entry.insecure_skip_tls_verify.unwrap_or_default(),
            authorities,
            unreadable,
        })
    }

    /// The server, ready to be dialled.
    pub(super) fn dialled(&self) -> Dialled<'_> {
        Dialled {
            endpoint: &self.endpoint,
            name: self.name.clone(),
            way: &self.way,
            authorities: self.authorities.as_deref(),
            insecure: self.insecure,
        }
    }

    /// Its address, without what else a URL can have.
    pub(super) fn address(&self) -> String {
        self.endpoint.to_string()
    }
}

/// The server of a kubeconfig that a Secret holds so that an operator reaches another cluster.
pub(super) async fn external(
    secret: &Secret,
    place: Place,
    server: String,
    known: impl FnOnce(Relation) -> Relation,
) -> Inventory {
    let mut inventory = empty();
    let entry = text(secret, secrets::KUBECONFIG_KEY).and_then(|text| Some(crate::hub::entries(&text)?.0));
    let entry = entry.ok_or_else(|| Failure::new(Reason::Kubeconfig, "it holds no kubeconfig of one cluster"));
    match entry.and_then(|entry| Server::of(&entry, None)) {
        Ok(found) => {
            let presenter = format!("{server} {}", found.address());
            let known = |relation| known(Relation { presenter, client: Some(Client::Go), ..relation });
            dial(found.dialled(), &mut inventory, known).await;
        }
        Err(failure) => {
            let what = format!("{server}, which {place} names");
            inventory.unseen.push(Unseen { what, cluster: None, trouble: Trouble::of(&failure, None) });
        }
    }
    inventory
}

/// The proxy of an entry; none: it names none.
pub(super) fn proxy(entry: &ClusterEntry) -> Option<Result<Proxy, ocm_net::proxy::UnusableProxy>> {
    let url = entry.proxy_url.as_deref().filter(|proxy| !proxy.is_empty())?;
    Some(Proxy::parse(url, Origin::Kubeconfig))
}

/// The authorities of an entry as PEM; none: it names none.
fn pem(entry: &ClusterEntry, folder: Option<&Path>) -> Result<Option<Vec<u8>>, Failure> {
    if let Some(data) = entry.certificate_authority_data.as_deref().filter(|data| !data.is_empty()) {
        let pem = STANDARD.decode(data.trim());
        return pem.map(Some).map_err(|_| {
            Failure::new(Reason::Kubeconfig, "the certificate-authority-data of the kubeconfig is not base64")
        });
    }
    let Some(file) = entry.certificate_authority.as_deref().filter(|file| !file.is_empty()) else { return Ok(None) };
    let wrong = || Failure::new(Reason::Kubeconfig, format!("cannot read {file}, the authority of the kubeconfig"));
    match folder {
        Some(folder) => std::fs::read(folder.join(file)).map(Some).map_err(|error| wrong().because(error)),
        None => Err(wrong().because("it is a file of another machine")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(yaml: &str) -> ClusterEntry {
        let text = format!("apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster: {yaml}\n");
        crate::hub::entries(&text).unwrap().0
    }

    #[test]
    fn who_vouches_is_told_apart_from_nobody_and_everybody() {
        let of = |yaml: &str| Server::of(&entry(yaml), None);
        let plain = of("{server: 'https://hub:6443'}").unwrap();
        assert_eq!((plain.authorities, plain.insecure), (None, false));
        let hello = of("{server: 'https://hub', certificate-authority-data: aGVsbG8=}").unwrap();
        assert_eq!(hello.authorities, Some(vec![]), "nobody, and not the system");
        assert!(of("{server: 'https://hub', insecure-skip-tls-verify: true}").unwrap().insecure);
        for wrong in [
            "{server: 'https://hub', certificate-authority-data: '%'}",
            "{server: 'https://hub', certificate-authority: /etc/passwd}",
            "{server: 'https://hub', proxy-url: 'gopher://p'}",
            "{server: 'http://hub'}",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        let named = of("{server: 'https://10.0.0.1:6443', tls-server-name: hub}").unwrap();
        assert_eq!((named.name.as_str(), named.address().as_str()), ("hub", "https://10.0.0.1:6443"));
    }
}
