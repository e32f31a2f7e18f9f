//! Handshakes: what a server presents, which versions and cipher suites of TLS it accepts, and whom its verifier trusts.

use ocm_checks::snapshot::Trouble;
use ocm_checks::tls::{Handshake, Inventory, Place, Purpose, Relation, Trust, Unseen};
use ocm_core::redact::redact;
use ocm_core::tls::{TlsError, Version};
use ocm_net::{ConnectError, Endpoint, Presented, Way, present_by};

use super::material::{der, plain};
use crate::observe::tls::HANDSHAKE;

/// A server, as somebody dials it.
pub(super) struct Dialled<'a> {
    /// Where it is, and what its certificate is for.
    pub(super) endpoint: &'a Endpoint,
    /// The name that its certificate has to be valid for.
    pub(super) name: String,
    /// How it is reached.
    pub(super) way: &'a Way,
    /// Who vouches for it; none: the authorities of this machine's system.
    pub(super) authorities: Option<&'a [Vec<u8>]>,
    /// Whether nobody is asked who vouches for it.
    pub(super) insecure: bool,
}

/// Dials a server, and adds what it presents to the inventory with what is known of it. A proxy on the way that speaks TLS is
/// a server of its own.
pub(super) async fn dial(dialled: Dialled<'_>, inventory: &mut Inventory, known: impl FnOnce(Relation) -> Relation) {
    let known = known(nothing_yet(dialled.endpoint));
    let of_proxy = |relation: Relation| Relation {
        purpose: Purpose::Proxy,
        cluster: known.cluster.clone(),
        verifier: known.verifier.clone(),
        client: known.client,
        ..relation
    };
    let (server, proxy) = futures::join!(look(&dialled, known.clone()), proxy(&dialled, of_proxy));
    match (server, proxy) {
        // The server cannot be told from the proxy where neither answers.
        (Err(unseen), None | Some(Err(_))) => inventory.unseen.push(unseen),
        (server, proxy) => {
            for found in [Some(server), proxy].into_iter().flatten() {
                match found {
                    Ok((relation, open)) => {
                        inventory.relations.push(relation);
                        inventory.unseen.extend(open);
                    }
                    Err(unseen) => inventory.unseen.push(unseen),
                }
            }
        }
    }
}

/// What the proxy on the way presents; none: there is none, or connections to it are not TLS. Whoever goes through it trusts it
/// like the server: by the same authorities, and for the name in the kubeconfig if that has one (`addTLS` in Go's `net/http`).
async fn proxy(
    dialled: &Dialled<'_>,
    known: impl FnOnce(Relation) -> Relation,
) -> Option<Result<(Relation, Vec<Unseen>), Unseen>> {
    let name = Some(dialled.name.as_str()).filter(|name| *name != dialled.endpoint.host);
    let (endpoint, way) = dialled.way.to_proxy(dialled.endpoint, name)?;
    let name = name.map_or_else(|| endpoint.host.clone(), str::to_owned);
    let presenter = format!("the proxy {endpoint}");
    let known = Relation { presenter, ..known(nothing_yet(&endpoint)) };
    Some(look(&Dialled { endpoint: &endpoint, name, way: &way, ..*dialled }, known).await)
}

/// A server of which nothing is known but its address.
fn nothing_yet(endpoint: &Endpoint) -> Relation {
    plain(Vec::new(), Place::Address(endpoint.to_string()))
}

/// What a server presents, with what is known of it; and what it may accept besides.
async fn look(dialled: &Dialled<'_>, known: Relation) -> Result<(Relation, Vec<Unseen>), Unseen> {
    let Dialled { endpoint, ref name, way, authorities, insecure } = *dialled;
    // An https proxy on the way may be vouched for by the same authorities.
    let proxy_authorities = authorities.unwrap_or_default();
    let presented = present_by(endpoint, way, &ocm_net::VERSIONS, proxy_authorities, HANDSHAKE).await;
    let presented = presented.map_err(|error| unseen(endpoint.to_string(), endpoint, &error))?;
    let Accepted { versions, suites, open } = accepted(endpoint, way, proxy_authorities, presented.version).await;
    let handshake = Handshake {
        address: endpoint.to_string(),
        proxy: presented.proxy.clone(),
        version: presented.version,
        cipher: presented.cipher.clone(),
        older_cipher: suites.first().filter(|_| presented.version != Some(Version::Tls12)).cloned(),
        accepted: versions,
        suites,
    };
    let trust = if insecure { Trust::Nobody } else { trust(&presented, authorities) };
    let relation = Relation {
        names: vec![name.clone()],
        usage: ocm_checks::tls::Use::Server,
        chain: der(presented.chain),
        trust,
        handshake: Some(handshake),
        ..known
    };
    Ok((relation, open))
}

/// What of a server could not be looked at.
fn unseen(what: String, endpoint: &Endpoint, error: &ConnectError) -> Unseen {
    Unseen { what, cluster: None, trouble: Trouble::of(&error.failure(endpoint), None) }
}

/// What a server accepts.
struct Accepted {
    /// Versions of TLS: that of the first handshake, behind the older ones.
    versions: Vec<Version>,
    /// Cipher suites of TLS 1.2.
    suites: Vec<String>,
    /// What it may accept besides: the connection broke.
    open: Vec<Unseen>,
}

/// The versions of TLS that a server accepts, that of the first handshake, and the older ones if it does; and the cipher suites of
/// TLS 1.2 that it accepts.
async fn accepted(endpoint: &Endpoint, way: &Way, authorities: &[Vec<u8>], agreed: Option<Version>) -> Accepted {
    let old = async |version| ocm_net::accepts(endpoint, way, version, authorities, HANDSHAKE).await;
    let suites = ocm_net::suites(endpoint, way, authorities, HANDSHAKE);
    let (tls10, tls11, suites) = futures::join!(old(Version::Tls10), old(Version::Tls11), suites);
    let (mut versions, mut open) = (Vec::new(), Vec::new());
    for (version, answer) in [(Version::Tls10, tls10), (Version::Tls11, tls11)] {
        match answer {
            Ok(true) => versions.push(version),
            Ok(false) => {}
            Err(error) => open.push(unseen(format!("whether {endpoint} accepts {version}"), endpoint, &error)),
        }
    }
    if let Some(error) = &suites.open {
        let what = format!("which cipher suites of {} {endpoint} accepts", Version::Tls12);
        open.push(unseen(what, endpoint, error));
    }
    if !suites.accepted.is_empty() && agreed != Some(Version::Tls12) {
        versions.push(Version::Tls12);
    }
    versions.extend(agreed);
    Accepted { versions, suites: suites.accepted.into_iter().map(str::to_owned).collect(), open }
}

/// Whom the verifier trusts. Name and time are judged with the rest, so of the system's answer only the issuer counts.
fn trust(presented: &Presented, authorities: Option<&[Vec<u8>]>) -> Trust {
    if let Some(authorities) = authorities {
        return Trust::Authorities(der(authorities.to_vec()));
    }
    let refusal = presented
        .verify_by_system()
        .err()
        .filter(|fault| !matches!(fault.kind, TlsError::WrongName | TlsError::Expired | TlsError::NotYetValid));
    Trust::System { refusal: refusal.map(|fault| redact(&fault.cause)) }
}
