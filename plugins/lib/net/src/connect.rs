//! Handshakes, and their troubles as sentences.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Intercept;
use ocm_core::{Failure, Reason};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower_service::Service as _;

use crate::Endpoint;

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
    open(endpoint, verifier, limit).await.map(drop)
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
        Err(error) => Err(tls(endpoint, &error)),
    }
}

/// Connects and shakes hands within `limit`.
pub(crate) async fn open(
    endpoint: &Endpoint,
    verifier: Arc<dyn ServerCertVerifier>,
    limit: Duration,
) -> Result<TlsStream<TcpStream>, Failure> {
    let work = async {
        let stream = match endpoint.proxy() {
            Some(proxy) => through(endpoint, &proxy).await?,
            None => direct(endpoint).await?,
        };
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| Failure::other("TLS cannot be set up").because(error))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        let connector = TlsConnector::from(Arc::new(config));
        connector.connect(endpoint.name.clone(), stream).await.map_err(|error| handshake(endpoint, error))
    };
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
        Err(unreachable(endpoint, "it does not answer", format!("nothing within {}", ocm_core::duration::human(limit)))
            .hint("check network, VPN and firewall"))
    })
}

async fn direct(endpoint: &Endpoint) -> Result<TcpStream, Failure> {
    let addresses: Vec<_> = tokio::net::lookup_host((endpoint.host.as_str(), endpoint.port))
        .await
        .map_err(|error| {
            unreachable(endpoint, "its name cannot be resolved", error).hint("check the host name and the DNS")
        })?
        .collect();
    TcpStream::connect(addresses.as_slice()).await.map_err(|error| tcp(endpoint, error))
}

/// Asks a proxy for a tunnel (`CONNECT`, RFC 9110 section 9.3.6); it resolves the name.
async fn through(endpoint: &Endpoint, proxy: &Intercept) -> Result<TcpStream, Failure> {
    const HINT: &str = "check HTTPS_PROXY; addresses that need no proxy belong into NO_PROXY";
    let by = proxy.uri().authority().map(ToString::to_string).unwrap_or_default();
    let refused = |what: &str, cause: &dyn std::fmt::Display| {
        unreachable(endpoint, &format!("the proxy {by} {what}"), cause).hint(HINT)
    };
    if proxy.uri().scheme_str() != Some("http") {
        let scheme = proxy.uri().scheme_str().unwrap_or_default();
        return Err(refused("cannot be used", &format!("this check speaks to http proxies, and not to {scheme}")));
    }
    let mut tunnel = Tunnel::new(proxy.uri().clone(), HttpConnector::new());
    if let Some(auth) = proxy.basic_auth() {
        tunnel = tunnel.with_auth(auth.clone());
    }
    let address = endpoint.to_string().parse().map_err(|error| refused("cannot be asked", &error))?;
    match tunnel.call(address).await {
        Ok(stream) => Ok(stream.into_inner()),
        Err(error) => {
            let causes: Vec<String> = std::iter::successors(std::error::Error::source(&error), |cause| cause.source())
                .map(ToString::to_string)
                .collect();
            let causes = std::iter::once(error.to_string()).chain(causes).collect::<Vec<_>>().join(": ");
            Err(refused("does not let it through", &causes))
        }
    }
}

fn unreachable(endpoint: &Endpoint, what: &str, cause: impl std::fmt::Display) -> Failure {
    Failure::new(Reason::Unreachable, format!("{endpoint} cannot be reached: {what}")).because(cause)
}

fn tcp(endpoint: &Endpoint, error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            unreachable(endpoint, "nothing listens there", error).hint("is the API server up, and is the port right?")
        }
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            unreachable(endpoint, "there is no way to it", error).hint("check network, VPN and firewall")
        }
        _ => unreachable(endpoint, "the connection failed", error).hint("check network, VPN and firewall"),
    }
}

fn handshake(endpoint: &Endpoint, error: io::Error) -> Failure {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>()) {
        Some(error) => tls(endpoint, error),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            Failure::new(Reason::Tls, format!("{endpoint} closed the connection instead of speaking TLS"))
                .because(error)
        }
        None => unreachable(endpoint, "the connection broke", error),
    }
}

/// A TLS error as a sentence about the endpoint.
pub(crate) fn tls(endpoint: &Endpoint, error: &TlsError) -> Failure {
    let failure = |sentence: &str| Failure::new(Reason::Tls, format!("{endpoint} {sentence}"));
    match error {
        TlsError::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            failure("presents a certificate that the given CA did not sign")
                .hint("is it the right server, and is the CA the one of this address? A load balancer may have another")
        }
        TlsError::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => failure("presents a certificate that is made out for another name")
            .because(error)
            .hint("use an address that the certificate names"),
        TlsError::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            failure("presents a certificate that has expired")
                .because(error)
                .hint("renew it, and check this machine's clock")
        }
        TlsError::InvalidCertificate(CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. }) => {
            failure("presents a certificate that is not valid yet")
                .because(error)
                .hint("check this machine's clock and the server's")
        }
        TlsError::InvalidMessage(_) => {
            failure("does not speak TLS").because(error).hint("is the port right? http and https differ")
        }
        TlsError::AlertReceived(_) => failure("broke off the TLS handshake").because(error),
        _ => failure("cannot be trusted").because(error),
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
    ) -> Result<ServerCertVerified, TlsError> {
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
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
