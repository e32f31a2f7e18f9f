//! Handshakes, and what goes wrong in them.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::rt::TokioIo;
use ocm_core::tls::{TlsError, TlsFault};
use ocm_core::{Failure, Reason};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower_service::Service as _;

use crate::Endpoint;
use crate::proxy::{Proxy, UnusableProxy};
use crate::socks;
use crate::tls_error::fault;

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

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
}

/// Makes a whole handshake and notes what the server presents, whoever vouches for it. Nothing else is sent; the
/// connection is closed at once. The TLS connection to an https proxy is trusted by `authorities`, or by those of the
/// system where there are none, as kubectl does it.
///
/// # Errors
/// Why there was no handshake.
pub async fn present(endpoint: &Endpoint, authorities: &[Vec<u8>], limit: Duration) -> Result<Presented, ConnectError> {
    let recorder = Recorder::new();
    let Opened { proxy, .. } = open(endpoint, recorder.clone(), authorities, limit).await?;
    Ok(Presented { endpoint: endpoint.clone(), proxy, chain: recorder.chain() })
}

impl Presented {
    /// Whether these authorities vouch for the server: issuer, name and time.
    ///
    /// # Errors
    /// Why they do not.
    pub fn verify(&self, authorities: &[Vec<u8>]) -> Result<(), TlsFault> {
        verify_chain(&self.endpoint, &self.chain, authorities)
    }
}

/// The usual verifier, for these authorities.
fn verifier(authorities: &[Vec<u8>]) -> Result<Arc<WebPkiServerVerifier>, TlsFault> {
    let unusable = |cause: String| TlsFault { kind: TlsError::UnusableAuthority, cause };
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(CertificateDer::from(authority.as_slice())).map_err(|error| unusable(error.to_string()))?;
    }
    let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build();
    built.map_err(|error| unusable(error.to_string()))
}

/// Verifies a recorded chain: issuer, name and time.
pub(crate) fn verify_chain(endpoint: &Endpoint, chain: &[Vec<u8>], authorities: &[Vec<u8>]) -> Result<(), TlsFault> {
    let verifier = verifier(authorities)?;
    let chain: Vec<CertificateDer<'_>> = chain.iter().map(|der| CertificateDer::from(der.as_slice())).collect();
    let Some((leaf, intermediates)) = chain.split_first() else {
        return Err(fault(&Error::NoCertificatesPresented));
    };
    match verifier.verify_server_cert(leaf, intermediates, &endpoint.name, &[], UnixTime::now()) {
        Ok(_) => Ok(()),
        Err(error) => Err(fault(&error)),
    }
}

/// Why there is no TLS connection to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// The environment names a proxy that cannot be used.
    UnusableProxy(UnusableProxy),
    /// The proxy on the way does not let it through.
    Proxy {
        /// Its address, without credentials.
        address: String,
        /// What about it.
        fault: ProxyFault,
        /// The cause.
        cause: String,
    },
    /// Its name cannot be resolved.
    Unresolved(String),
    /// Nobody listens there.
    Refused(String),
    /// There is no way there.
    NoRoute(String),
    /// It does not answer in this time.
    Unanswered(Duration),
    /// The connection failed or broke.
    Failed(String),
    /// The connection broke in the handshake.
    Broken(String),
    /// It closed the connection in the handshake.
    Closed(String),
    /// The handshake failed.
    Tls(TlsFault),
    /// This side cannot speak TLS.
    Setup(String),
}

/// What is wrong with a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyFault {
    /// It cannot be reached.
    Unreachable,
    /// Its certificate is not trusted.
    Untrusted,
    /// It refuses.
    Refuses,
    /// Its name cannot be one of a certificate.
    Unusable,
    /// It cannot be asked for this server.
    Unaskable,
}

impl ConnectError {
    /// It as a failure about this server.
    pub fn failure(&self, endpoint: &Endpoint) -> Failure {
        const NETWORK: &str = "check network, VPN and firewall";
        let unreachable = |what: &str, cause: &dyn std::fmt::Display| {
            Failure::new(Reason::Unreachable, format!("{endpoint} cannot be reached: {what}")).because(cause)
        };
        match self {
            Self::UnusableProxy(error) => unreachable("the proxy of HTTPS_PROXY cannot be used", error),
            Self::Proxy { address, fault, cause } => {
                let what = match fault {
                    ProxyFault::Unreachable => "cannot be reached",
                    ProxyFault::Untrusted => "is not trusted",
                    ProxyFault::Refuses => "does not let it through",
                    ProxyFault::Unusable => "cannot be used",
                    ProxyFault::Unaskable => "cannot be asked",
                };
                unreachable(&format!("the proxy {address} {what}"), cause)
                    .hint("check HTTPS_PROXY; addresses that need no proxy belong into NO_PROXY")
            }
            Self::Unresolved(cause) => {
                unreachable("its name cannot be resolved", cause).hint("check the host name and the DNS")
            }
            Self::Refused(cause) => {
                unreachable("connection refused", cause).hint("is the API server up, and is the port right?")
            }
            Self::NoRoute(cause) => unreachable("no route to host", cause).hint(NETWORK),
            Self::Unanswered(limit) => {
                let cause = format!("nothing within {}", ocm_core::duration::human(*limit));
                unreachable("it does not answer", &cause).hint(NETWORK)
            }
            Self::Failed(cause) => unreachable("the connection failed", cause).hint(NETWORK),
            Self::Broken(cause) => unreachable("the connection broke", cause),
            Self::Closed(cause) => {
                Failure::new(Reason::Tls, format!("{endpoint} closed the connection instead of speaking TLS"))
                    .because(cause)
            }
            Self::Tls(fault) => fault.failure(endpoint),
            Self::Setup(cause) => Failure::other("TLS cannot be set up").because(cause),
        }
    }
}

/// A connection: plain, or TLS to a proxy.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection after its handshake.
pub(crate) struct Opened {
    /// The connection.
    pub(crate) stream: TlsStream<Box<dyn Stream>>,
    /// The proxy that it goes through, without credentials.
    pub(crate) proxy: Option<String>,
}

/// Connects and shakes hands within `limit`. The TLS connection to an https proxy is trusted by `authorities`, or by
/// those of the system where there are none, as kubectl does it.
pub(crate) async fn open(
    endpoint: &Endpoint,
    verifier: Arc<dyn ServerCertVerifier>,
    authorities: &[Vec<u8>],
    limit: Duration,
) -> Result<Opened, ConnectError> {
    let proxy = endpoint.proxy().map_err(ConnectError::UnusableProxy)?;
    let work = async {
        let stream = match &proxy {
            Some(proxy) => through(endpoint, proxy, authorities).await?,
            None => Box::new(direct(&endpoint.host, endpoint.port).await?),
        };
        let connector = TlsConnector::from(Arc::new(client_config(verifier)?));
        let stream = connector.connect(endpoint.name.clone(), stream).await.map_err(handshake)?;
        Ok(Opened { stream, proxy: proxy.map(|proxy| proxy.to_string()) })
    };
    tokio::time::timeout(limit, work).await.unwrap_or(Err(ConnectError::Unanswered(limit)))
}

fn client_config(verifier: Arc<dyn ServerCertVerifier>) -> Result<ClientConfig, ConnectError> {
    Ok(ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| ConnectError::Setup(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth())
}

async fn direct(host: &str, port: u16) -> Result<TcpStream, ConnectError> {
    let addresses = tokio::net::lookup_host((host, port)).await;
    let addresses: Vec<_> = addresses.map_err(|error| ConnectError::Unresolved(error.to_string()))?.collect();
    TcpStream::connect(addresses.as_slice()).await.map_err(|error| {
        let kind = match error.kind() {
            io::ErrorKind::ConnectionRefused => ConnectError::Refused,
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => ConnectError::NoRoute,
            _ => ConnectError::Failed,
        };
        kind(error.to_string())
    })
}

/// Asks a proxy for a tunnel (`CONNECT`, RFC 9110 section 9.3.6, or SOCKS 5, RFC 1928); it resolves the name.
async fn through(endpoint: &Endpoint, proxy: &Proxy, authorities: &[Vec<u8>]) -> Result<Box<dyn Stream>, ConnectError> {
    let address = proxy.address();
    let refused = |fault: ProxyFault, cause: String| ConnectError::Proxy { address: proxy.to_string(), fault, cause };
    let (host, port) = proxy.host_and_port();
    let mut stream: Box<dyn Stream> = match direct(host, port).await {
        Ok(stream) => Box::new(stream),
        Err(error) => return Err(refused(ProxyFault::Unreachable, error.failure(endpoint).causes.join(": "))),
    };
    if address.scheme_str() == Some("https") {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|error| refused(ProxyFault::Unusable, error.to_string()))?;
        let connector = TlsConnector::from(Arc::new(client_config(proxy_verifier(authorities)?)?));
        let secure = connector.connect(name, stream).await;
        stream = Box::new(secure.map_err(|error| refused(ProxyFault::Untrusted, error.to_string()))?);
    }
    if proxy.is_socks() {
        let (credentials, host, port) = (proxy.intercept().raw_auth(), &endpoint.host, endpoint.port);
        let granted = socks::connect(&mut stream, credentials, host, port).await;
        return granted.map(|()| stream).map_err(|error| refused(ProxyFault::Refuses, error.to_string()));
    }
    let target = endpoint.to_string().parse::<Uri>();
    let target = target.map_err(|error| refused(ProxyFault::Unaskable, error.to_string()))?;
    let mut stream = Some(TokioIo::new(stream));
    let once = tower::service_fn(move |_: Uri| {
        let stream = stream.take().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected));
        std::future::ready(stream)
    });
    let mut tunnel = Tunnel::new(address.clone(), once);
    if let Some(auth) = proxy.intercept().basic_auth() {
        tunnel = tunnel.with_auth(auth.clone());
    }
    let tunnelled = tunnel.call(target).await;
    Ok(tunnelled.map_err(|error| refused(ProxyFault::Refuses, causes(&error)))?.into_inner())
}

fn proxy_verifier(authorities: &[Vec<u8>]) -> Result<Arc<dyn ServerCertVerifier>, ConnectError> {
    if !authorities.is_empty() {
        return Ok(verifier(authorities).map_err(ConnectError::Tls)?);
    }
    let system = rustls_platform_verifier::Verifier::new(provider());
    Ok(Arc::new(system.map_err(|error| ConnectError::Setup(format!("the system's CAs cannot be used: {error}")))?))
}

/// An error with everything behind it.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn handshake(error: io::Error) -> ConnectError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(error) => ConnectError::Tls(fault(error)),
        None if error.kind() == io::ErrorKind::UnexpectedEof => ConnectError::Closed(error.to_string()),
        None => ConnectError::Broken(error.to_string()),
    }
}

/// Notes what a server presents instead of judging it. The server still has to prove that it holds the key of its
/// certificate, so that a later judgement of the chain is one of the connection.
#[derive(Debug)]
pub(crate) struct Recorder {
    provider: Arc<CryptoProvider>,
    chain: Mutex<Vec<Vec<u8>>>,
}

impl Recorder {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { provider: provider(), chain: Mutex::default() })
    }

    /// The recorded chain, the server's own certificate first.
    pub(crate) fn chain(&self) -> Vec<Vec<u8>> {
        self.chain.lock().map(|chain| chain.clone()).unwrap_or_default()
    }
}

impl ServerCertVerifier for Recorder {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Ok(mut chain) = self.chain.lock() {
            *chain = std::iter::once(end_entity).chain(intermediates).map(|certificate| certificate.to_vec()).collect();
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
