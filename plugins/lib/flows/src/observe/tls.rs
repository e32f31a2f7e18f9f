//! What a TLS server presents: its certificates, the proxy on the way, and which authorities vouch for it.

use std::time::Duration;

use ocm_core::certificate::Certificate;
use ocm_core::tls::TlsFacts;
use ocm_net::{ConnectError, Endpoint, VERSIONS, Way, present_by};

/// How long one handshake may take.
pub const HANDSHAKE: Duration = Duration::from_secs(10);

/// Reads what a server presents, and whether these authorities vouch for it, together and each alone: one handshake.
///
/// # Errors
/// Why there was no handshake.
pub async fn observe(endpoint: &Endpoint, authorities: &[Vec<u8>], way: &Way) -> Result<TlsFacts, ConnectError> {
    let presented = present_by(endpoint, way, &VERSIONS, authorities, HANDSHAKE).await?;
    let alone = |authority: &Vec<u8>| (authority.clone(), presented.verify(std::slice::from_ref(authority)));
    Ok(TlsFacts {
        trust: presented.verify(authorities),
        authorities: authorities.iter().map(alone).collect(),
        chain: presented.chain.iter().filter_map(|der| Certificate::read(der)).collect(),
        proxy: presented.proxy,
    })
}
