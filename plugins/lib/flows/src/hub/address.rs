//! The hub's address and authority as its agents need them.
//!
//! What this machine dials and what a pod of another cluster dials may differ in address, and with it in certificate.
//! Every authority that goes to an agent was seen to vouch for the very address that goes with it, wherever that
//! address can be reached from here.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use ocm_api::parts::EndpointSlice;
use ocm_core::kubeconfig::HubAddress;
use ocm_core::{Event, Failure, Narrator, Reason, Remedy, certificate};
use ocm_kube::Cluster;
use ocm_net::{Endpoint, Way};
use serde_json::Value;

use super::kubeconfig::parse;
use crate::observe::tls;

/// Namespace of what everybody may read.
const PUBLIC: &str = "kube-public";
/// ConfigMap in it with a kubeconfig without credentials.
const CLUSTER_INFO: &str = "cluster-info";
/// ConfigMap in every namespace with the certificate of the cluster's own authority.
pub(crate) const ROOT_CA: &str = "kube-root-ca.crt";
/// Where `CLUSTER_INFO` is fetched without credentials.
pub const CLUSTER_INFO_PATH: &str = "/api/v1/namespaces/kube-public/configmaps/cluster-info";

/// What the user said about the address.
#[derive(Clone, Debug, Default)]
pub struct AddressOptions {
    /// The address that agents dial; none: the kubeconfig's.
    pub server: Option<String>,
    /// Prefer the address that the hub publishes for use inside its network.
    pub internal: bool,
    /// Certificates of the authority; empty: those of the kubeconfig or of the hub.
    pub ca: Vec<Vec<u8>>,
    /// Whether a hub may be believed that nobody verified, because the user said so.
    pub unverified: bool,
}

/// Where agents find the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundAddress {
    /// The address and who vouches for it.
    pub address: HubAddress,
    /// Whether it could be reached from here, and so was checked to be vouched for.
    pub is_checked: bool,
}

/// Where agents find the hub, as somebody sees it who holds its kubeconfig.
///
/// # Errors
/// When the address cannot be used by agents, or nothing that we hold vouches for it.
pub async fn address(
    hub: &Cluster,
    options: &AddressOptions,
    narrator: &dyn Narrator,
) -> Result<FoundAddress, Failure> {
    // With a CA that was given, whoever connects verifies the hub with that; what is sent to one that is not, anybody may hear.
    if hub.insecure {
        let sentence = format!("{} is not verified: its kubeconfig says insecure-skip-tls-verify", hub.label());
        if !options.unverified {
            return Err(Failure::new(Reason::Tls, format!("{sentence}; nothing was changed"))
                .because("the CA that it tells would be pinned and given to agents, whoever answered")
                .hint(Remedy::HubCa)
                .hint(Remedy::SkipVerification(hub.role)));
        }
        narrator.tell(Event::warning(format!("{sentence}; whoever answers there can put another hub in its place")));
    }
    let given = options.server.clone().unwrap_or_else(|| hub.server.clone());
    let mut endpoint = Endpoint::parse(&given, None)?;
    let mut server = given;
    let mut published = None;
    if options.internal || (options.server.is_none() && endpoint.is_loopback()) {
        published = cluster_info(hub).await?;
        let usable = published.as_ref().and_then(|info| Endpoint::parse(&info.server, None).ok().zip(Some(info)));
        match usable.filter(|(endpoint, _)| !endpoint.is_loopback()) {
            Some((found, info)) => {
                narrator
                    .tell(Event::note(format!("agents dial {}, the address in kube-public/cluster-info", info.server)));
                (endpoint, server) = (found, info.server.clone());
            }
            None if options.internal => {
                return Err(Failure::new(Reason::NotFound, "the hub publishes no address for use inside its network")
                    .because("kube-public/cluster-info is not there or names none")
                    .hint(Remedy::HubAddress));
            }
            None => {}
        }
    }
    if endpoint.is_loopback() {
        return Err(Failure::usage(format!(
            "agents cannot reach the hub at {server}: to a pod that is the pod itself"
        ))
        .hint(Remedy::HubAddress));
    }
    if !options.ca.is_empty() {
        return checked(server, &endpoint, &options.ca, hub, narrator).await;
    }
    let mut candidates: Vec<Vec<Vec<u8>>> = Vec::new();
    let mut propose = |ca: Vec<Vec<u8>>| {
        if !ca.is_empty() && !candidates.contains(&ca) {
            candidates.push(ca);
        }
    };
    propose(hub.ca.clone().unwrap_or_default());
    if hub.ca.is_none() || server != hub.server {
        propose(published.map(|info| info.ca).unwrap_or_default());
        propose(root_ca(hub).await?);
    }
    let mut trouble = None;
    for candidate in &candidates {
        match checked(server.clone(), &endpoint, candidate, hub, narrator).await {
            Ok(found) => return Ok(found),
            Err(failure) => trouble = trouble.or(Some(failure)),
        }
    }
    match trouble {
        // The kubeconfig trusts what the system trusts, and so can the agents.
        _ if hub.ca.is_none() && !hub.insecure && server == hub.server => {
            Ok(FoundAddress { address: HubAddress { server, ..HubAddress::default() }, is_checked: true })
        }
        Some(failure) => Err(failure.hint(Remedy::HubCa)),
        None => Err(Failure::new(Reason::Tls, format!("no CA is known that vouches for {server}")).hint(Remedy::HubCa)),
    }
}

/// The address with those of the authorities that were seen to vouch for it. What cannot be reached from here may still
/// be reachable for agents.
async fn checked(
    server: String,
    endpoint: &Endpoint,
    ca: &[Vec<u8>],
    hub: &Cluster,
    narrator: &dyn Narrator,
) -> Result<FoundAddress, Failure> {
    let at = |server, ca, is_checked| FoundAddress {
        address: HubAddress { server, ca, ..HubAddress::default() },
        is_checked,
    };
    match vouching_by_either(endpoint, ca, hub).await {
        Ok(vouching) => Ok(at(server, vouching, true)),
        Err(failure) if failure.reason == Reason::Unreachable && (server != hub.server || hub.proxy.is_some()) => {
            narrator
                .tell(Event::warning(format!("agents are told to dial {server}, which cannot be checked: {failure}")));
            Ok(at(server, ca.to_vec(), false))
        }
        Err(failure) => Err(failure),
    }
}

/// Of a file with several authorities those that vouch for the address: the others may be of other hubs.
///
/// # Errors
/// [`Reason::Unreachable`]; or [`Reason::Tls`] when they do not, all together.
pub async fn vouching(endpoint: &Endpoint, ca: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, Failure> {
    vouching_by(endpoint, ca, &Way::Environment).await
}

/// The same for an address of this cluster, which the proxy of its kubeconfig may be the only way to from here.
///
/// # Errors
/// As [`vouching`], without that proxy.
pub(crate) async fn vouching_by_either(
    endpoint: &Endpoint,
    ca: &[Vec<u8>],
    cluster: &Cluster,
) -> Result<Vec<Vec<u8>>, Failure> {
    match vouching(endpoint, ca).await {
        Err(failure) if failure.reason == Reason::Unreachable && cluster.proxy.is_some() => {
            // A proxy may connect to anything, or close: only what is seen through it counts.
            vouching_by(endpoint, ca, &cluster.way).await.map_err(|_| failure)
        }
        found => found,
    }
}

async fn vouching_by(endpoint: &Endpoint, ca: &[Vec<u8>], way: &Way) -> Result<Vec<Vec<u8>>, Failure> {
    let facts = tls::observe(endpoint, ca, way).await.map_err(|error| error.failure(endpoint))?;
    facts.vouching().map_err(|fault| fault.failure(endpoint))
}

/// The UID of a cluster's namespace `kube-system`, which no other cluster has; none where it may not be read.
pub async fn uid(cluster: &Cluster) -> Option<String> {
    known_uid(cluster).await.ok().flatten()
}

/// The same, where not to have an answer is an error.
///
/// # Errors
/// When the cluster cannot be asked.
pub(crate) async fn known_uid(cluster: &Cluster) -> Result<Option<String>, Failure> {
    let api: Api<Namespace> = Api::all(cluster.client.clone());
    match api.get_metadata_opt("kube-system").await {
        Ok(found) => Ok(found.and_then(|found| found.metadata.uid)),
        Err(error) => {
            let failure = cluster.explain("read namespace kube-system", error);
            if failure.reason == Reason::Forbidden { Ok(None) } else { Err(failure) }
        }
    }
}

/// The address and authority that a hub publishes; none if it does not.
///
/// # Errors
/// When the hub cannot be asked.
pub async fn cluster_info(hub: &Cluster) -> Result<Option<HubAddress>, Failure> {
    let Some(info) = public(hub, CLUSTER_INFO).await? else { return Ok(None) };
    let text = info.data.as_ref().and_then(|data| data.get("kubeconfig"));
    Ok(text.and_then(|text| parse(text)).map(|kubeconfig| kubeconfig.hub))
}

/// The certificates of the hub's own authority, as the hub tells them; empty if it does not.
///
/// # Errors
/// When the hub cannot be asked.
pub async fn root_ca(hub: &Cluster) -> Result<Vec<Vec<u8>>, Failure> {
    Ok(authority(public(hub, ROOT_CA).await?))
}

/// The same, where not to be allowed to read them is an error, too.
///
/// # Errors
/// When the hub cannot be asked, or does not answer this user.
pub(crate) async fn readable_root_ca(hub: &Cluster) -> Result<Vec<Vec<u8>>, Failure> {
    Ok(authority(published_map(hub, ROOT_CA).await?))
}

fn authority(map: Option<ConfigMap>) -> Vec<Vec<u8>> {
    let pem = map.as_ref().and_then(|map| map.data.as_ref()).and_then(|data| data.get("ca.crt"));
    pem.and_then(|pem| certificate::from_pem(pem.as_bytes()).ok()).unwrap_or_default()
}

/// Where the API servers of a cluster answer in its own network, each as its IP address and port: what they keep themselves in
/// the slice of their Service `kubernetes`. Nothing where that may not be read.
///
/// # Errors
/// When the cluster cannot be asked.
pub(crate) async fn servers(cluster: &Cluster) -> Result<Vec<(IpAddr, u16)>, Failure> {
    let api: Api<EndpointSlice> = Api::namespaced(cluster.client.clone(), "default");
    match api.get_opt("kubernetes").await {
        Ok(slice) => Ok(slice.as_ref().map(servers_of).unwrap_or_default()),
        Err(error) => {
            let failure = cluster.explain("read the endpoints of the Service kubernetes", error);
            if failure.reason == Reason::Forbidden { Ok(Vec::new()) } else { Err(failure) }
        }
    }
}

fn servers_of(slice: &EndpointSlice) -> Vec<(IpAddr, u16)> {
    let ports = slice.ports.iter().flatten().filter_map(|port| u16::try_from(port.port?).ok());
    let hosts = slice.endpoints.iter().flat_map(|endpoint| &endpoint.addresses);
    let hosts: Vec<IpAddr> = hosts.filter_map(|address| address.parse().ok()).collect();
    ports.flat_map(|port| hosts.iter().map(move |host| (*host, port))).collect()
}

async fn public(hub: &Cluster, name: &str) -> Result<Option<ConfigMap>, Failure> {
    match published_map(hub, name).await {
        Err(failure) if failure.reason == Reason::Forbidden => Ok(None),
        found => found,
    }
}

async fn published_map(hub: &Cluster, name: &str) -> Result<Option<ConfigMap>, Failure> {
    let api: Api<ConfigMap> = Api::namespaced(hub.client.clone(), PUBLIC);
    api.get_opt(name).await.map_err(|error| hub.explain(format_args!("read {PUBLIC}/{name}"), error))
}

/// Takes certificates out of a ConfigMap `cluster-info` as the API server answers it. Only parses.
pub fn published(body: &[u8]) -> Vec<Vec<u8>> {
    let map: Option<Value> = serde_json::from_slice(body).ok();
    let text = map.as_ref().and_then(|map| map.pointer("/data/kubeconfig")).and_then(Value::as_str);
    text.and_then(parse).map(|kubeconfig| kubeconfig.hub.ca).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use ocm_core::kubeconfig::Bootstrap;
    use serde_json::json;

    use super::*;
    use crate::accept::test_hub::hub_at;
    use crate::heard::Heard;

    #[tokio::test]
    async fn a_hub_that_nobody_verifies_is_refused_also_where_a_ca_is_given_of_its_address() {
        let hub = Cluster { insecure: true, ..hub_at("https://127.0.0.1:1") };
        let server = Some("https://hub:6443".to_owned());
        let options = AddressOptions { server, ca: vec![b"a certificate".to_vec()], ..AddressOptions::default() };
        let refused = address(&hub, &options, &ocm_core::Silent).await.unwrap_err();
        assert_eq!(refused.reason, Reason::Tls);
        assert!(refused.message.contains("is not verified: its kubeconfig says insecure-skip-tls-verify"), "{refused}");
        let heard = Heard::default();
        let server = Some(hub.server.clone());
        let unusable = address(&hub, &AddressOptions { server, unverified: true, ..options }, &heard).await;
        assert_eq!(unusable.unwrap_err().reason, Reason::Usage);
        let heard = heard.0.lock().unwrap();
        assert!(
            matches!(&heard[..], [Event::Warning(told)] if told.contains("put another hub in its place")),
            "{heard:?}"
        );
    }

    #[test]
    fn certificates_are_taken_out_of_what_a_hub_publishes() {
        let ca = vec![rcgen::generate_simple_self_signed(vec!["hub".to_owned()]).unwrap().cert.der().to_vec()];
        let hub = HubAddress { server: "https://hub:6443".to_owned(), ca: ca.clone(), ..HubAddress::default() };
        let map = json!({ "data": { "kubeconfig": Bootstrap { hub, ..Bootstrap::default() }.to_yaml() } });
        assert_eq!(published(map.to_string().as_bytes()), ca);
        assert!(published(b"not json").is_empty() && published(b"{}").is_empty());
    }
}
