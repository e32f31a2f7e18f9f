//! Handshakes, and their troubles as sentences.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::rt::TokioIo;
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

use crate::proxy::Proxy;
use crate::socks;
use crate::{Endpoint, tls_failure};

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Makes a whole handshake and verifies the server with these authorities: issuer, name and time. Nothing else is
/// sent; the connection is closed at once.
///
/// # Errors
/// [`Reason::Unreachable`] or [`Reason::Tls`], with a sentence of its own for each trouble.
pub async fn verify(endpoint: &Endpoint, authorities: &[Vec<u8>], limit: Duration) -> Result<(), Failure> {
    let verifier = verifier(authorities)?;
    open(endpoint, verifier, authorities, limit).await.map(drop)
}

/// The usual verifier, for these authorities.
pub(crate) fn verifier(authorities: &[Vec<u8>]) -> Result<Arc<WebPkiServerVerifier>, Failure> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots
            .add(CertificateDer::from(authority.as_slice()))
            .map_err(|error| Failure::new(Reason::Tls, "a CA certificate cannot be used").because(error))?;
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
        .build()
        .map_err(|error| Failure::new(Reason::Tls, "there is no CA certificate to verify with").because(error))
}

/// Verifies a recorded chain as [`verify`] would have done: issuer, name and time.
pub(crate) fn verify_chain(endpoint: &Endpoint, chain: &[Vec<u8>], authorities: &[Vec<u8>]) -> Result<(), Failure> {
    let verifier = verifier(authorities)?;
    let chain: Vec<CertificateDer<'_>> = chain.iter().map(|der| CertificateDer::from(der.as_slice())).collect();
    let Some((leaf, intermediates)) = chain.split_first() else {
        return Err(Failure::new(Reason::Tls, format!("{endpoint} presented no certificate")));
    };
    match verifier.verify_server_cert(leaf, intermediates, &endpoint.name, &[], UnixTime::now()) {
        Ok(_) => Ok(()),
        Err(error) => Err(tls_failure(endpoint, &error)),
    }
}

/// A connection: plain, or TLS to a proxy.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Connects and shakes hands within `limit`. The TLS connection to an https proxy is trusted by `authorities`, or by
/// those of the system where there are none, as kubectl does it.
pub(crate) async fn open(
    endpoint: &Endpoint,
    verifier: Arc<dyn ServerCertVerifier>,
    authorities: &[Vec<u8>],
    limit: Duration,
) -> Result<TlsStream<Box<dyn Stream>>, Failure> {
    let proxy =
        endpoint.proxy().map_err(|error| unreachable(endpoint, "the proxy of HTTPS_PROXY cannot be used", error))?;
    let work = async {
        let stream = match proxy {
            Some(proxy) => through(endpoint, &proxy, authorities).await?,
            None => Box::new(direct(endpoint, &endpoint.host, endpoint.port).await?),
        };
        let connector = TlsConnector::from(Arc::new(client_config(verifier)?));
        connector.connect(endpoint.name.clone(), stream).await.map_err(|error| handshake(endpoint, error))
    };
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
        Err(unreachable(endpoint, "it does not answer", format!("nothing within {}", ocm_core::duration::human(limit)))
            .hint("check network, VPN and firewall"))
    })
}

fn client_config(verifier: Arc<dyn ServerCertVerifier>) -> Result<ClientConfig, Failure> {
    Ok(ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::other("TLS cannot be set up").because(error))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth())
}

async fn direct(endpoint: &Endpoint, host: &str, port: u16) -> Result<TcpStream, Failure> {
    let addresses: Vec<_> = tokio::net::lookup_host((host, port))
        .await
        .map_err(|error| {
            unreachable(endpoint, "its name cannot be resolved", error).hint("check the host name and the DNS")
        })?
        .collect();
    TcpStream::connect(addresses.as_slice()).await.map_err(|error| tcp(endpoint, error))
}

/// Asks a proxy for a tunnel (`CONNECT`, RFC 9110 section 9.3.6, or SOCKS 5, RFC 1928); it resolves the name.
async fn through(endpoint: &Endpoint, proxy: &Proxy, authorities: &[Vec<u8>]) -> Result<Box<dyn Stream>, Failure> {
    let address = proxy.address();
    let refused = |what: &str, cause: &dyn std::fmt::Display| {
        unreachable(endpoint, &format!("the proxy {proxy} {what}"), cause)
            .hint("check HTTPS_PROXY; addresses that need no proxy belong into NO_PROXY")
    };
    let (host, port) = proxy.host_and_port();
    let mut stream: Box<dyn Stream> = match direct(endpoint, host, port).await {
        Ok(stream) => Box::new(stream),
        Err(failure) => return Err(refused("cannot be reached", &failure.causes.join(": "))),
    };
    if address.scheme_str() == Some("https") {
        let name = ServerName::try_from(host.to_owned()).map_err(|error| refused("cannot be used", &error))?;
        let connector = TlsConnector::from(Arc::new(client_config(proxy_verifier(authorities)?)?));
        let secure = connector.connect(name, stream).await;
        stream = Box::new(secure.map_err(|error| refused("is not trusted", &error))?);
    }
    if proxy.is_socks() {
        let (credentials, host, port) = (proxy.intercept().raw_auth(), &endpoint.host, endpoint.port);
        let granted = socks::connect(&mut stream, credentials, host, port).await;
        return granted.map(|()| stream).map_err(|error| refused("does not let it through", &error));
    }
    let target = endpoint.to_string().parse().map_err(|error| refused("cannot be asked", &error))?;
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
    Ok(tunnelled.map_err(|error| refused("does not let it through", &causes(&error)))?.into_inner())
}

fn proxy_verifier(authorities: &[Vec<u8>]) -> Result<Arc<dyn ServerCertVerifier>, Failure> {
    if !authorities.is_empty() {
        return Ok(verifier(authorities)?);
    }
    let system = rustls_platform_verifier::Verifier::new(provider());
    Ok(Arc::new(system.map_err(|error| Failure::new(Reason::Tls, "the system's CAs cannot be used").because(error))?))
}

/// An error with everything behind it.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn unreachable(endpoint: &Endpoint, what: &str, cause: impl std::fmt::Display) -> Failure {
    Failure::new(Reason::Unreachable, format!("{endpoint} cannot be reached: {what}")).because(cause)
}

fn tcp(endpoint: &Endpoint, error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            unreachable(endpoint, "connection refused", error).hint("is the API server up, and is the port right?")
        }
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            unreachable(endpoint, "no route to host", error).hint("check network, VPN and firewall")
        }
        _ => unreachable(endpoint, "the connection failed", error).hint("check network, VPN and firewall"),
    }
}

fn handshake(endpoint: &Endpoint, error: io::Error) -> Failure {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(error) => tls_failure(endpoint, error),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            Failure::new(Reason::Tls, format!("{endpoint} closed the connection instead of speaking TLS"))
                .because(error)
        }
        None => unreachable(endpoint, "the connection broke", error),
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
