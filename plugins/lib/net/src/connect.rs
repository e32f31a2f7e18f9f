//! Handshakes, and what goes wrong in them.

use std::sync::Arc;
use std::time::Duration;

use ocm_core::address::{is_link_local, is_local, is_loopback};
use ocm_core::tls::{TlsError, TlsFault, Version};
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::{ClientConfig, Error, ProtocolVersion};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::Endpoint;
use crate::client::{Recorder, Trust, VERSIONS, builder, trusted_by, verifier};
use crate::connect_error::{ConnectError, handshake};
use crate::direct::{dial, resolved};
use crate::proxy::Proxy;
use crate::stream::Stream;
use crate::tls_error::fault;
use crate::tunnel::Tunnel;
use crate::vantage::Vantage;

/// What a server presents in a handshake.
///
/// The server has proved that it holds the key of its certificate: a judgement of the chain is one of the connection.
#[derive(Clone, Debug)]
pub struct Presented {
    endpoint: Endpoint,
    /// The proxy that the connection went through, without credentials.
    pub proxy: Option<String>,
    /// Its certificates in DER, its own first.
    pub chain: Vec<Vec<u8>>,
    /// The version that both ends agreed on.
    pub version: Option<Version>,
    /// The cipher suite that both ends agreed on, by its IANA name.
    pub cipher: Option<String>,
}

/// The way to a server.
#[derive(Clone, Debug, Default)]
pub enum Way {
    /// As the environment says.
    #[default]
    Environment,
    /// As the environment says, for a server that others have named: without a proxy no address is dialled that is one of this
    /// machine or of its link, whatever the name is resolved to.
    Remote,
    /// Without a proxy, whatever the environment says.
    Direct,
    /// Through this proxy.
    Through(Proxy),
    /// From another place, whose environment says what proxy it goes through, if any.
    From(Vantage, Option<Proxy>),
}

impl Way {
    /// The proxy on the way to a server as a server of its own, and the way to it; none: there is no proxy, or connections to it
    /// are not TLS. `name` is the one that its certificate is verified for, if that is not its host.
    pub fn to_proxy(&self, endpoint: &Endpoint, name: Option<&str>) -> Option<(Endpoint, Self)> {
        let (proxy, way) = match self {
            Self::Environment | Self::Remote => (endpoint.proxy().ok()??, Self::Direct),
            Self::Direct => return None,
            Self::Through(proxy) => (proxy.clone(), Self::Direct),
            Self::From(from, proxy) => (proxy.clone()?, Self::From(from.clone(), None)),
        };
        if !proxy.is_tls() {
            return None;
        }
        Some((Endpoint::parse(&format!("https://{proxy}"), name).ok()?, way))
    }
}

/// Makes a whole handshake and notes what the server presents, whoever vouches for it. Nothing else is sent; the
/// connection is closed at once. The TLS connection to an https proxy is trusted by `authorities`, or by those of the
/// system where there are none, as kubectl does it.
///
/// # Errors
/// Why there was no handshake.
pub async fn present(endpoint: &Endpoint, authorities: &[Vec<u8>], limit: Duration) -> Result<Presented, ConnectError> {
    present_by(endpoint, &Way::Environment, &VERSIONS, authorities, limit).await
}

/// [`present`] by a way of one's own, with these versions of TLS alone; those that are not among [`VERSIONS`] are passed over.
///
/// # Errors
/// Why there was no handshake.
pub async fn present_by(
    endpoint: &Endpoint,
    way: &Way,
    versions: &[Version],
    authorities: &[Vec<u8>],
    limit: Duration,
) -> Result<Presented, ConnectError> {
    let recorder = Recorder::new();
    let Opened { stream, proxy } = open_by(endpoint, way, versions, recorder.clone(), authorities, limit).await?;
    let connection = stream.get_ref().1;
    let version = connection.protocol_version().and_then(|version| match version {
        ProtocolVersion::TLSv1_2 => Some(Version::Tls12),
        ProtocolVersion::TLSv1_3 => Some(Version::Tls13),
        _ => None,
    });
    // The library writes the suites of TLS 1.3 with their version; IANA does not.
    let cipher = connection.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str());
    let cipher = cipher.map(|name| name.replacen("TLS13_", "TLS_", 1));
    Ok(Presented { endpoint: endpoint.clone(), proxy, chain: recorder.chain(), version, cipher })
}

impl Presented {
    /// Whether these authorities vouch for the server: issuer, name and time.
    ///
    /// # Errors
    /// Why they do not.
    pub fn verify(&self, authorities: &[Vec<u8>]) -> Result<(), TlsFault> {
        verify_chain(&self.endpoint, &self.chain, authorities)
    }

    /// Whether the authorities of this machine's system vouch for the server: issuer, name and time.
    ///
    /// # Errors
    /// Why they do not.
    pub fn verify_by_system(&self) -> Result<(), TlsFault> {
        let unusable = |cause: String| TlsFault { kind: TlsError::UnusableAuthority, cause };
        let verifier = trusted_by(&[]).map_err(|error| unusable(error.to_string()))?;
        verify_with(&*verifier, &self.endpoint, &self.chain)
    }
}

/// Verifies a recorded chain: issuer, name and time.
pub(crate) fn verify_chain(endpoint: &Endpoint, chain: &[Vec<u8>], authorities: &[Vec<u8>]) -> Result<(), TlsFault> {
    verify_with(&*verifier(authorities)?, endpoint, chain)
}

fn verify_with(verifier: &dyn ServerCertVerifier, endpoint: &Endpoint, chain: &[Vec<u8>]) -> Result<(), TlsFault> {
    let chain: Vec<CertificateDer<'_>> = chain.iter().map(|der| CertificateDer::from(der.as_slice())).collect();
    let Some((leaf, intermediates)) = chain.split_first() else {
        return Err(fault(&Error::NoCertificatesPresented));
    };
    match verifier.verify_server_cert(leaf, intermediates, &endpoint.name, &[], UnixTime::now()) {
        Ok(_) => Ok(()),
        Err(error) => Err(fault(&error)),
    }
}

/// Opens a TLS connection to a server that these authorities vouch for, or those of the system where there are none: issuer,
/// name and time. It goes through the proxy that the environment names.
///
/// # Errors
/// Why there is none.
pub async fn secure(
    endpoint: &Endpoint,
    authorities: &[Vec<u8>],
    limit: Duration,
) -> Result<Box<dyn Stream>, ConnectError> {
    let Opened { stream, .. } = open(endpoint, trusted_by(authorities)?, authorities, limit).await?;
    Ok(Box::new(stream))
}

/// Opens a connection without TLS, for an address that only the machine itself reaches, whatever names are said to be.
///
/// # Errors
/// Why there is none; no other address is dialled.
pub async fn plain(host: &str, port: u16, limit: Duration) -> Result<Box<dyn Stream>, ConnectError> {
    if !is_loopback(host) {
        return Err(ConnectError::Failed("only loopback addresses are reached without TLS".to_owned()));
    }
    let stream = tokio::time::timeout(limit, async {
        let mut addresses = resolved(host, port).await?;
        // A DNS server may say anything of names such as x.localhost.
        addresses.retain(|address| is_local(address.ip()));
        if addresses.is_empty() {
            let why = format!("{host} is no address of this machine, and only those are reached without TLS");
            return Err(ConnectError::Failed(why));
        }
        dial(addresses).await
    })
    .await;
    Ok(Box::new(stream.map_err(|_| ConnectError::Unanswered(limit))??))
}

/// A connection after its handshake.
pub(crate) struct Opened {
    /// The connection.
    pub(crate) stream: TlsStream<Box<dyn Stream>>,
    /// The proxy that it goes through, without credentials.
    pub(crate) proxy: Option<String>,
}

/// Connects and shakes hands within `limit`. The TLS connection to an https proxy is trusted by `authorities`, or by
/// those of the system where there are none, as kubectl does it; one that the environment names by those of the system, too.
pub(crate) async fn open(
    endpoint: &Endpoint,
    verifier: Arc<dyn ServerCertVerifier>,
    authorities: &[Vec<u8>],
    limit: Duration,
) -> Result<Opened, ConnectError> {
    open_by(endpoint, &Way::Environment, &VERSIONS, verifier, authorities, limit).await
}

/// [`open`] by a way of one's own, with these versions of TLS.
async fn open_by(
    endpoint: &Endpoint,
    way: &Way,
    versions: &[Version],
    verifier: Arc<dyn ServerCertVerifier>,
    authorities: &[Vec<u8>],
    limit: Duration,
) -> Result<Opened, ConnectError> {
    let until = tokio::time::Instant::now() + limit;
    let (stream, proxy) = reach(endpoint, way, authorities, limit).await?;
    let connector = TlsConnector::from(Arc::new(client_config(verifier, versions)?));
    match tokio::time::timeout_at(until, connector.connect(endpoint.name.clone(), stream)).await {
        Ok(stream) => Ok(Opened { stream: stream.map_err(handshake)?, proxy }),
        Err(_) => Err(ConnectError::Unanswered(limit)),
    }
}

/// Connects to a server within `limit`; nothing is said to it yet. Returns the name of the proxy on the way, too.
pub(crate) async fn reach(
    endpoint: &Endpoint,
    way: &Way,
    authorities: &[Vec<u8>],
    limit: Duration,
) -> Result<(Box<dyn Stream>, Option<String>), ConnectError> {
    let here = Vantage::default();
    let (from, proxy) = match way {
        Way::Environment | Way::Remote => (here, endpoint.proxy().map_err(ConnectError::UnusableProxy)?),
        Way::Direct => (here, None),
        Way::Through(proxy) => (here, Some(proxy.clone())),
        Way::From(from, proxy) => (from.clone(), proxy.clone()),
    };
    let name = proxy.as_ref().map(ToString::to_string);
    let stream: Box<dyn Stream> = match proxy {
        Some(proxy) => {
            let trust = if authorities.is_empty() { Trust::System } else { Trust::Authorities(authorities) };
            let tunnel = Tunnel::new(proxy, from, trust)?;
            let opened = tunnel.open(&endpoint.host, endpoint.port, limit).await;
            opened.map_err(|error| ConnectError::Proxy(Box::new(error)))?
        }
        None => {
            let opening = async {
                match way {
                    Way::Remote => remote(&endpoint.host, endpoint.port).await,
                    _ => from.open(&endpoint.host, endpoint.port).await,
                }
            };
            let stream = tokio::time::timeout(limit, opening).await;
            stream.map_err(|_| ConnectError::Unanswered(limit))??
        }
    };
    Ok((stream, name))
}

/// Opens a TCP connection to another machine, and not to one of the link of this one.
async fn remote(host: &str, port: u16) -> Result<Box<dyn Stream>, ConnectError> {
    let mut addresses = resolved(host, port).await?;
    addresses.retain(|address| !is_local(address.ip()) && !is_link_local(address.ip()));
    if addresses.is_empty() {
        return Err(ConnectError::Failed(format!(
            "{host} is an address of this machine or of its link, and is not dialled"
        )));
    }
    Ok(Box::new(dial(addresses).await?))
}

fn client_config(verifier: Arc<dyn ServerCertVerifier>, versions: &[Version]) -> Result<ClientConfig, ConnectError> {
    Ok(builder(verifier, versions)?.with_no_client_auth())
}
