//! Handshakes: what a server presents, which versions of TLS it accepts, and whom its verifier trusts.

use ocm_checks::snapshot::Trouble;
use ocm_checks::tls::{Handshake, Inventory, Place, Relation, Trust, Unseen};
use ocm_core::redact::redact;
use ocm_core::tls::{TlsError, Version};
use ocm_net::{Endpoint, Presented, Way, present_by};

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

/// Dials a server, and adds what it presents to the inventory with what is known of it.
pub(super) async fn dial(dialled: Dialled<'_>, inventory: &mut Inventory, known: impl FnOnce(Relation) -> Relation) {
    let Dialled { endpoint, name, way, authorities, insecure } = dialled;
    // An https proxy on the way may be vouched for by the same authorities.
    let proxy_authorities = authorities.unwrap_or_default();
    let presented = present_by(endpoint, way, &ocm_net::VERSIONS, proxy_authorities, HANDSHAKE).await;
    let presented = match presented {
        Ok(presented) => presented,
        Err(error) => {
            let trouble = Trouble::of(&error.failure(endpoint), None);
            inventory.unseen.push(Unseen { what: endpoint.to_string(), cluster: None, trouble });
            return;
        }
    };
    let handshake = Handshake {
        address: endpoint.to_string(),
        proxy: presented.proxy.clone(),
        version: presented.version,
        cipher: presented.cipher.clone(),
        accepted: accepted(endpoint, way, proxy_authorities, presented.version).await,
    };
    let trust = if insecure { Trust::Nobody } else { trust(&presented, authorities) };
    let relation = plain(presented.chain, Place::Address(endpoint.to_string()));
    inventory.relations.push(known(Relation {
        names: vec![name],
        usage: ocm_checks::tls::Use::Server,
        trust,
        handshake: Some(handshake),
        ..relation
    }));
}

/// The versions of TLS that a server accepts: that of the first handshake, and the older ones if it does.
async fn accepted(endpoint: &Endpoint, way: &Way, authorities: &[Vec<u8>], agreed: Option<Version>) -> Vec<Version> {
    let old = async |version| ocm_net::accepts(endpoint, way, version, authorities, HANDSHAKE).await.unwrap_or(false);
    let tls12 = async {
        agreed == Some(Version::Tls13)
            && present_by(endpoint, way, &[Version::Tls12], authorities, HANDSHAKE).await.is_ok()
    };
    let (tls10, tls11, tls12) = futures::join!(old(Version::Tls10), old(Version::Tls11), tls12);
    let older = [(Version::Tls10, tls10), (Version::Tls11, tls11), (Version::Tls12, tls12)];
    let older = older.into_iter().filter_map(|(version, accepts)| accepts.then_some(version));
    older.chain(agreed).collect()
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
