//! The TLS side of a client that sends requests: whom it trusts, and what it shows itself with.

use std::sync::{Arc, Mutex};

use ocm_core::tls::{TlsError, TlsFault, Version};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WantsClientCert, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, InconsistentKeys, RootCertStore, SignatureScheme,
};

/// The versions of TLS that handshakes are made with.
pub const VERSIONS: [Version; 2] = [Version::Tls12, Version::Tls13];

/// Whom a client trusts.
#[derive(Clone, Copy, Debug)]
pub enum Trust<'a> {
    /// Whom the authorities of this machine's system vouch for.
    System,
    /// Whom these authorities (DER) vouch for. None of them: nobody.
    Authorities(&'a [Vec<u8>]),
    /// Whoever answers, where the user asked for that.
    Anybody,
}

/// A certificate and its key, with which a client shows itself. Its key is never shown.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// Why a certificate and a key are no [`Identity`]. Holds nothing of either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableIdentity {
    /// There is no certificate in PEM.
    #[error("there is no certificate in its client-certificate")]
    NoCertificate,
    /// There is no key in PEM.
    #[error("there is no private key in its client-key")]
    NoKey,
    /// The key is encrypted (PKCS #8, or RFC 1421 as OpenSSL writes it).
    #[error("its client-key is encrypted, and cannot be read without a password")]
    EncryptedKey,
    /// The certificate is no PEM.
    #[error("its client-certificate is not PEM")]
    CertificateNotPem,
    /// The key is no PEM.
    #[error("its client-key is not PEM")]
    KeyNotPem,
}

/// Why a client cannot speak TLS as it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableTls {
    /// A certificate of an authority that it trusts cannot be used.
    #[error("a certificate of its CA cannot be used: {0}")]
    Authority(String),
    /// The authorities of the system cannot be read, or TLS cannot be set up.
    #[error("{0}")]
    Setup(String),
    /// The certificate that it shows cannot be used, or belongs to another key.
    #[error("its client certificate cannot be used: {0}")]
    Identity(String),
}

/// What the label, or the headers, of an encrypted key in PEM say.
const ENCRYPTED: &[u8] = b"ENCRYPTED";

impl Identity {
    /// Reads a chain, the client's own certificate first, and a key. Other parts of either file are passed over: some tools
    /// keep both in one.
    ///
    /// # Errors
    /// What is missing.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, UnusableIdentity> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.map_err(|_| UnusableIdentity::CertificateNotPem)?;
        if chain.is_empty() {
            return Err(UnusableIdentity::NoCertificate);
        }
        let is_encrypted = key.windows(ENCRYPTED.len()).any(|part| part == ENCRYPTED);
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
            _ if is_encrypted => UnusableIdentity::EncryptedKey,
            PemError::NoItemsFound => UnusableIdentity::NoKey,
            _ => UnusableIdentity::KeyNotPem,
        })?;
        Ok(Self { chain, key })
    }

    /// It as a client shows it. Whether its certificate can be verified is for the server to say, which may take one of X.509
    /// version 1, as Go does.
    fn shown(self) -> Result<SingleCertAndKey, UnusableTls> {
        let unusable = |error: Error| UnusableTls::Identity(error.to_string());
        let key = provider().key_provider.load_private_key(self.key).map_err(unusable)?;
        let shown = CertifiedKey::new(self.chain, key);
        match shown.keys_match() {
            Err(error @ Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => Err(unusable(error)),
            _ => Ok(SingleCertAndKey::from(shown)),
        }
    }
}

/// How a client speaks TLS that trusts so, and shows itself with its certificate to those who ask for one.
///
/// # Errors
/// When an authority, or the certificate, cannot be used.
pub fn client_config(trust: Trust<'_>, identity: Option<Identity>) -> Result<ClientConfig, UnusableTls> {
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::System => trusted_by(&[])?,
        Trust::Authorities([]) => return Err(UnusableTls::Authority("there is none".to_owned())),
        Trust::Authorities(authorities) => trusted_by(authorities)?,
        Trust::Anybody => Arc::new(Anybody),
    };
    let builder = builder(verifier, &VERSIONS)?;
    match identity {
        Some(identity) => Ok(builder.with_client_cert_resolver(Arc::new(identity.shown()?))),
        None => Ok(builder.with_no_client_auth()),
    }
}

/// How a proxy is trusted that the environment names: by those who vouch for the server behind it, as kubectl does it, and by the
/// system's authorities, to which companies add those of their proxies. The server behind it is verified as always.
///
/// # Errors
/// As of [`client_config`].
pub(crate) fn proxy_config(trust: Trust<'_>) -> Result<ClientConfig, UnusableTls> {
    let (Trust::Authorities(authorities @ [_, ..]), Ok(system)) = (trust, trusted_by(&[])) else {
        return client_config(trust, None);
    };
    let either = Either { servers: trusted_by(authorities)?, system };
    Ok(builder(Arc::new(either), &VERSIONS)?.with_no_client_auth())
}

/// A client that asks this verifier, and speaks these versions.
pub(crate) fn builder(
    verifier: Arc<dyn ServerCertVerifier>,
    versions: &[Version],
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, UnusableTls> {
    let known = [(Version::Tls12, &rustls::version::TLS12), (Version::Tls13, &rustls::version::TLS13)];
    let versions: Vec<_> = known.into_iter().filter(|(version, _)| versions.contains(version)).collect();
    let versions: Vec<_> = versions.into_iter().map(|(_, version)| version).collect();
    Ok(ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&versions)
        .map_err(|error| UnusableTls::Setup(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier))
}

/// Whom these authorities vouch for, or those of the system where there are none.
pub(crate) fn trusted_by(authorities: &[Vec<u8>]) -> Result<Arc<dyn ServerCertVerifier>, UnusableTls> {
    if !authorities.is_empty() {
        return Ok(verifier(authorities).map_err(|fault| UnusableTls::Authority(fault.cause))?);
    }
    let system = rustls_platform_verifier::Verifier::new(provider());
    Ok(Arc::new(system.map_err(|error| UnusableTls::Setup(format!("the system's CAs cannot be used: {error}")))?))
}

/// The usual verifier, for these authorities.
pub(crate) fn verifier(authorities: &[Vec<u8>]) -> Result<Arc<WebPkiServerVerifier>, TlsFault> {
    let unusable = |cause: String| TlsFault { kind: TlsError::UnusableAuthority, cause };
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(CertificateDer::from(authority.as_slice())).map_err(|error| unusable(error.to_string()))?;
    }
    let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build();
    built.map_err(|error| unusable(error.to_string()))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Trusts whom one of two trusts. Of a failure the first one tells why.
#[derive(Debug)]
struct Either {
    servers: Arc<dyn ServerCertVerifier>,
    system: Arc<dyn ServerCertVerifier>,
}

impl ServerCertVerifier for Either {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let by = |verifier: &Arc<dyn ServerCertVerifier>| {
            verifier.verify_server_cert(certificate, intermediates, name, ocsp, now)
        };
        by(&self.servers).or_else(|why| by(&self.system).map_err(|_| why))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.servers.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.servers.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.servers.supported_verify_schemes()
    }
}

/// Judges nothing, as the user asked for. Not even that the server holds the key of its certificate: who takes any
/// certificate learns nothing from that, and certificates that only few libraries read, like those of X.509 version 1, are
/// what the user may have asked for.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    /// Those that servers use (RFC 8446, section 4.2.3): what is not verified need not be known.
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![
            SignatureScheme::ECDSA_NISTP256_SHA256,
            SignatureScheme::ECDSA_NISTP384_SHA384,
            SignatureScheme::ECDSA_NISTP521_SHA512,
            SignatureScheme::ED25519,
            SignatureScheme::ED448,
            SignatureScheme::RSA_PSS_SHA256,
            SignatureScheme::RSA_PSS_SHA384,
            SignatureScheme::RSA_PSS_SHA512,
            SignatureScheme::RSA_PKCS1_SHA256,
            SignatureScheme::RSA_PKCS1_SHA384,
            SignatureScheme::RSA_PKCS1_SHA512,
            SignatureScheme::RSA_PKCS1_SHA1,
            SignatureScheme::ECDSA_SHA1_Legacy,
        ]
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

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    fn refused(chain: &str, key: &str) -> Option<UnusableIdentity> {
        Identity::from_pem(chain.as_bytes(), key.as_bytes()).err()
    }

    #[test]
    fn an_identity_is_a_certificate_and_its_key() {
        let (chain, key) = made();
        let both = format!("{key}{chain}");
        for (chain, key) in [(&chain, &key), (&both, &both)] {
            let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
            let config = client_config(Trust::Anybody, Some(identity)).unwrap();
            assert!(config.client_auth_cert_resolver.has_certs());
        }
        assert_eq!(refused(&key, &key), Some(UnusableIdentity::NoCertificate));
        assert_eq!(refused(&chain, &chain), Some(UnusableIdentity::NoKey));
        let encrypted = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
        assert_eq!(refused(&chain, &encrypted), Some(UnusableIdentity::EncryptedKey));
        let broken = |pem: &str| pem.replacen("-----END", "----", 1);
        assert_eq!(refused(&broken(&chain), &key), Some(UnusableIdentity::CertificateNotPem));
        assert_eq!(refused(&chain, &broken(&key)), Some(UnusableIdentity::KeyNotPem));
    }

    #[test]
    fn a_key_of_another_certificate_is_told_before_anything_is_sent() {
        let ((chain, _), (_, key)) = (made(), made());
        let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
        let error = client_config(Trust::Anybody, Some(identity)).unwrap_err();
        assert!(matches!(&error, UnusableTls::Identity(_)), "{error:?}");
    }

    /// The content of each element in a DER sequence, with its header.
    fn elements(mut der: &[u8]) -> Vec<&[u8]> {
        let mut found = Vec::new();
        while let [_, first, ..] = der {
            let (head, length) = match first {
                0x81 => (3, usize::from(der[2])),
                0x82 => (4, usize::from(der[2]) << 8 | usize::from(der[3])),
                short => (2, usize::from(*short)),
            };
            found.push(&der[..head + length]);
            der = &der[head + length..];
        }
        found
    }

    fn inner(der: &[u8]) -> &[u8] {
        let head = match der[1] {
            0x81 => 3,
            0x82 => 4,
            _ => 2,
        };
        &der[head..]
    }

    fn sequence(parts: &[&[u8]]) -> Vec<u8> {
        let body = parts.concat();
        let length = u16::try_from(body.len()).unwrap().to_be_bytes();
        [&[0x30, 0x82, length[0], length[1]], &body[..]].concat()
    }

    /// X.509 version 1: neither the version nor extensions. Its signature is none any more.
    fn of_version_1() -> Identity {
        let made = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap();
        let [signed, algorithm, signature] = elements(inner(made.cert.der()))[..] else { panic!() };
        let members = elements(inner(signed));
        let first = sequence(&members[1..members.len() - 1]);
        let chain = vec![CertificateDer::from(sequence(&[&first, algorithm, signature]))];
        Identity { chain, key: PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes()).unwrap() }
    }

    #[tokio::test]
    async fn whoever_takes_anybody_takes_certificates_that_nobody_can_verify() {
        // Who shows it need not verify it, either.
        let shown = of_version_1().shown().unwrap();
        assert!(client_config(Trust::Anybody, Some(of_version_1())).unwrap().client_auth_cert_resolver.has_certs());
        let server = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(shown));
        let server = tokio_rustls::TlsAcceptor::from(Arc::new(server));
        for (trust, comes) in [(Trust::Anybody, true), (Trust::System, false)] {
            let client = tokio_rustls::TlsConnector::from(Arc::new(client_config(trust, None).unwrap()));
            let (near, far) = tokio::io::duplex(1 << 14);
            let name = ServerName::try_from("a").unwrap();
            let (served, connected) = tokio::join!(server.accept(far), client.connect(name, near));
            assert_eq!((served.is_ok(), connected.is_ok()), (comes, comes), "{trust:?}");
        }
    }

    #[test]
    fn no_authority_is_not_the_system() {
        assert!(matches!(client_config(Trust::Authorities(&[]), None), Err(UnusableTls::Authority(_))));
        let wrong = [b"no certificate".to_vec()];
        assert!(matches!(client_config(Trust::Authorities(&wrong), None), Err(UnusableTls::Authority(_))));
    }
}
