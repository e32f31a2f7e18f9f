//! The hub: how it is reached, and who vouches for it.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use ocm_core::kubeconfig::HubAddress;
use ocm_core::pin::Pin;
use ocm_core::{Event, Failure, Narrator, Reason, Remedy, token};
use ocm_kube::Cluster;
use ocm_net::{Endpoint, Source};
use secrecy::{ExposeSecret as _, SecretString};

use super::client::{dial, dial_unverified};
use super::hub_access::{HubAccess, Trust, TrustedBy};
use super::request::Request;
use super::session::{Access, HubSession};
use crate::hub::{self, AddressOptions, CLUSTER_INFO_PATH};
use crate::observe::tls::HANDSHAKE;

/// Finds the hub and who vouches for it.
pub(super) async fn reach(request: &Request, narrator: Arc<dyn Narrator>) -> Result<HubSession, Failure> {
    match &request.access {
        HubAccess::Kubeconfig { hub, address } => {
            let (found, uid) = futures::join!(hub::address(hub, address, narrator.as_ref()), hub::uid(hub));
            let trusted_by = match () {
                () if !address.ca.is_empty() => TrustedBy::Ca,
                () if hub.insecure => TrustedBy::Nothing,
                () => TrustedBy::Kubeconfig,
            };
            let address = HubAddress { uid, ..found?.address };
            Ok(HubSession { address, trusted_by, access: Access::Admin((**hub).clone()) })
        }
        HubAccess::Token { token, server, trust } => {
            token::check(token.expose_secret(), Timestamp::now())?;
            let endpoint = Endpoint::parse(server, None)?;
            if endpoint.is_loopback() && !request.internal {
                return Err(Failure::usage(format!(
                    "agents cannot reach the hub at {server}: to a pod that is the pod itself"
                ))
                .hint(Remedy::HubAddress)
                .hint(Remedy::PublishedAddress));
            }
            let ca = authority(&endpoint, trust, narrator.as_ref()).await?;
            let mut address = HubAddress { server: server.clone(), ca, ..HubAddress::default() };
            if trust.skip {
                address.ca = unverified_authority(&address, &endpoint, token, narrator.clone()).await?;
            } else if address.ca.is_empty() {
                address.ca = published_authority(&address, &endpoint, token, narrator.clone()).await?;
            }
            if request.internal {
                address = internal(address, token, narrator.clone()).await?;
            }
            let client = dial(&address, token.clone(), narrator).await?;
            Ok(HubSession { address, trusted_by: trust.by(), access: Access::Token { token: token.clone(), client } })
        }
    }
}

/// Whether the cluster that is to join is the hub: it has the hub's address, or is the same cluster under another one.
pub async fn is_itself(managed: &Cluster, access: &HubAccess) -> bool {
    let vouches = async |endpoint: &Endpoint, ca: &[Vec<u8>]| hub::vouching(endpoint, ca).await.is_ok();
    match access {
        HubAccess::Token { server, .. } => at(&managed.server).is_at(server) || is_own(managed, server, vouches).await,
        HubAccess::Kubeconfig { hub, .. } => are_one(managed, hub).await,
    }
}

/// Whether two connections lead to the same cluster: at the same address, or to one with the same UID.
pub async fn are_one(one: &Cluster, other: &Cluster) -> bool {
    if at(&one.server).is_at(&other.server) {
        return true;
    }
    let (one, other) = futures::join!(hub::uid(one), hub::uid(other));
    one.is_some() && one == other
}

/// Whether a cluster publishes this address as its own, and its own CA vouches for whoever answers there. Another cluster may
/// have the same address in a network of its own, and several may have one CA. With the rights of a token no cluster tells its UID.
async fn is_own(cluster: &Cluster, server: &str, vouches: impl AsyncFn(&Endpoint, &[Vec<u8>]) -> bool) -> bool {
    let Ok(endpoint) = Endpoint::parse(server, None) else { return false };
    let (info, servers, ca) = futures::join!(hub::cluster_info(cluster), hub::servers(cluster), hub::root_ca(cluster));
    let info = info.ok().flatten().unwrap_or_default();
    let ip = endpoint.host.parse::<IpAddr>().ok();
    let is_server = ip.is_some_and(|ip| servers.is_ok_and(|servers| servers.contains(&(ip, endpoint.port))));
    let ca = ca.ok().filter(|ca| !ca.is_empty()).unwrap_or_else(|| info.ca.clone());
    (is_server || info.is_at(server)) && !ca.is_empty() && vouches(&endpoint, &ca).await
}

fn at(server: &str) -> HubAddress {
    HubAddress { server: server.to_owned(), ..HubAddress::default() }
}

/// Narrows what a cluster knows of its hub down to the authorities that vouch for it, where the hub can be reached.
pub(super) async fn narrow(known: &mut HubAddress, wanted: &HubAddress) {
    if known.ca.len() > 1
        && !known.is_at(&wanted.server)
        && let Ok(endpoint) = Endpoint::parse(&known.server, None)
    {
        known.ca = hub::vouching(&endpoint, &known.ca).await.unwrap_or_else(|_| known.ca.clone());
    }
}

/// The certificates that vouch for the endpoint, as the user said to trust it; empty: the system's.
async fn authority(endpoint: &Endpoint, trust: &Trust, narrator: &dyn Narrator) -> Result<Vec<Vec<u8>>, Failure> {
    let Trust { pins, ca, skip: _ } = trust;
    if !ca.is_empty() {
        let mut trusted = ca.clone();
        if !pins.is_empty() {
            // Both were said, so both must hold.
            trusted.retain(|certificate| Pin::of(certificate).is_some_and(|pin| pins.contains(&pin)));
            if trusted.is_empty() {
                return Err(Failure::new(Reason::Tls, "the CA that was given does not have the pinned key")
                    .hint(Remedy::CaAndPin));
            }
        }
        return hub::vouching(endpoint, &trusted).await;
    }
    if !pins.is_empty() {
        let learned = ocm_net::learn(endpoint, pins, CLUSTER_INFO_PATH, hub::published, HANDSHAKE).await?;
        let how = match learned.source {
            Source::Handshake => "presents",
            Source::Published => "publishes",
        };
        narrator.tell(Event::note(format!("{endpoint} {how} the CA with the pinned key")));
        return Ok(learned.authorities);
    }
    Ok(Vec::new())
}

/// The system's authorities vouch for the endpoint, or nobody does. Agents may have none of them, so an authority is
/// looked for that can be written into their kubeconfig.
async fn published_authority(
    address: &HubAddress,
    endpoint: &Endpoint,
    token: &SecretString,
    narrator: Arc<dyn Narrator>,
) -> Result<Vec<Vec<u8>>, Failure> {
    let unverified = |failure: Failure| {
        if failure.reason != Reason::Tls {
            return failure;
        }
        // What was tried does not matter, and what to do about a hub of one's own differs from what the certificate's
        // error would suggest.
        let sentence = format!("{endpoint} is not verified, so the token was not sent: nothing says whose hub it is");
        let failure = failure.causes.into_iter().fold(Failure::new(Reason::Tls, sentence), Failure::because);
        failure.hint(Remedy::HubPin).hint(Remedy::HubCa)
    };
    let hub = dial(address, token.clone(), narrator.clone()).await?;
    let info = hub::cluster_info(&hub).await.map_err(unverified)?;
    let mut candidates = vec![info.map(|info| info.ca).unwrap_or_default()];
    candidates.push(hub::root_ca(&hub).await.unwrap_or_default());
    for candidate in candidates.into_iter().filter(|candidate| !candidate.is_empty()) {
        if let Ok(vouching) = hub::vouching(endpoint, &candidate).await {
            return Ok(vouching);
        }
    }
    narrator.tell(Event::note(format!("agents verify {endpoint} with the authorities of their own system")));
    Ok(Vec::new())
}

/// The authority that whoever answers calls its own. From then on everything is verified with it, also by the agents.
async fn unverified_authority(
    address: &HubAddress,
    endpoint: &Endpoint,
    token: &SecretString,
    narrator: Arc<dyn Narrator>,
) -> Result<Vec<Vec<u8>>, Failure> {
    narrator
        .tell(Event::warning(format!("{endpoint} is not verified, which is vulnerable to man-in-the-middle attacks")));
    let hub = dial_unverified(address, token.clone(), narrator).await?;
    let info = hub::cluster_info(&hub).await?.map(|info| info.ca).unwrap_or_default();
    for candidate in [info, hub::root_ca(&hub).await?].into_iter().filter(|candidate| !candidate.is_empty()) {
        if let Ok(vouching) = hub::vouching(endpoint, &candidate).await {
            return Ok(vouching);
        }
    }
    Err(Failure::new(
        Reason::Tls,
        format!("{endpoint} tells no CA that vouches for it, and agents do not join without"),
    )
    .hint(Remedy::HubCa))
}

/// The address that the hub publishes for its own network, verified as well as the first one.
async fn internal(
    address: HubAddress,
    token: &SecretString,
    narrator: Arc<dyn Narrator>,
) -> Result<HubAddress, Failure> {
    let hub = dial(&address, token.clone(), narrator.clone()).await?;
    let options = AddressOptions { server: None, internal: true, ca: address.ca, unverified: false };
    Ok(hub::address(&hub, &options, narrator.as_ref()).await?.address)
}

#[cfg(test)]
mod tests {
    use ocm_core::kubeconfig::Bootstrap;
    use serde_json::json;

    use super::*;
    use crate::accept::test_hub::hub;

    #[tokio::test]
    async fn a_cluster_is_the_hub_where_an_address_of_its_own_is_the_hubs_and_its_ca_vouches_for_it() {
        let made = rcgen::generate_simple_self_signed(vec!["hub".to_owned()]).unwrap();
        let own = vec![made.cert.der().to_vec()];
        let (pem, info) =
            (made.cert.pem(), Bootstrap { hub: at("https://hub-control-plane:6443"), ..Bootstrap::default() });
        let (cluster, _) = hub(move |asked| match () {
            () if asked.line.contains("/configmaps/kube-root-ca.crt") => {
                (200, json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}, "data": {"ca.crt": pem}}))
            }
            () if asked.line.contains("/configmaps/cluster-info") => (
                200,
                json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}, "data": {"kubeconfig": info.to_yaml()}}),
            ),
            () if asked.line.contains("/namespaces/default/endpointslices/kubernetes") => {
                let slice = json!({
                    "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                    "metadata": {"name": "kubernetes"}, "addressType": "IPv4",
                    "endpoints": [{"addresses": ["172.18.0.2"]}, {"addresses": ["172.18.0.3"]}],
                    "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
                });
                (200, slice)
            }
            () => (
                404,
                json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}),
            ),
        });
        let by_own = async |_: &Endpoint, ca: &[Vec<u8>]| ca == own;
        for server in ["https://172.18.0.2:6443", "https://172.18.0.3:6443/", "https://HUB-control-plane:6443"] {
            assert!(is_own(&cluster, server, by_own).await, "{server}");
            // A cluster of another network has that address, too.
            assert!(!is_own(&cluster, server, async |_: &Endpoint, _: &[Vec<u8>]| false).await, "{server}");
        }
        // Another cluster whose certificates are of the same CA.
        for server in ["https://172.18.0.4:6443", "https://172.18.0.2:6444", "https://hub:6443", "no address"] {
            assert!(!is_own(&cluster, server, by_own).await, "{server}");
        }
    }
}
