//! The serving certificate, and whose certificates clients need: read from files, and read again when they change.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use ocm_core::certificate::Certificate as Facts;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme, version};

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// A file cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file holds something else.
    #[error("{}: {why}", path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Key and certificate do not belong together.
    #[error("{} is not the key of the certificate {}", key.display(), certificate.display())]
    Mismatch {
        /// The key's file.
        key: PathBuf,
        /// The certificate's file.
        certificate: PathBuf,
    },
}

/// Where a serving certificate lies.
#[derive(Clone, Debug)]
pub struct CertificateFiles {
    /// The certificate and those between it and its CA (PEM).
    pub certificate: PathBuf,
    /// Its private key (PEM).
    pub key: PathBuf,
}

/// The certificate that connections are served with. One that is put in serves the next connection; those that stand are
/// not touched.
#[derive(Debug)]
pub struct Certificate {
    now: RwLock<Arc<CertifiedKey>>,
}

impl Certificate {
    /// Reads the files.
    ///
    /// # Errors
    /// Says which file cannot be used, and why.
    pub fn read(files: &CertificateFiles) -> Result<Self, Unusable> {
        Ok(Self { now: RwLock::new(Arc::new(read(files)?)) })
    }

    /// Reads the files again. What cannot be used, such as a key that is newer than its certificate while both are being
    /// written, changes nothing. Whether it changed something.
    ///
    /// # Errors
    /// As [`Certificate::read`].
    pub fn reread(&self, files: &CertificateFiles) -> Result<bool, Unusable> {
        let read = read(files)?;
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        let changed = now.cert != read.cert;
        if changed {
            *now = Arc::new(read);
        }
        Ok(changed)
    }

    /// What it says; none where that cannot be read.
    pub fn facts(&self) -> Option<Facts> {
        Facts::read(self.now().cert.first()?)
    }

    fn now(&self) -> Arc<CertifiedKey> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How to serve with it whoever connects, or only clients with a certificate of a CA. HTTP/1.1 alone: it is what API servers
    /// speak to webhooks (`k8s.io/apiserver/pkg/util/webhook/client.go`).
    ///
    /// # Errors
    /// When the TLS library cannot serve at all.
    pub fn config(self: &Arc<Self>, clients: Option<Arc<ClientCa>>) -> Result<ServerConfig, rustls::Error> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13, &version::TLS12])?;
        let is_open = clients.is_none();
        let builder = match clients {
            Some(clients) => builder.with_client_cert_verifier(clients),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(self.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        if !is_open {
            // A session that is resumed shows no certificate again, whatever has become of its CA.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(config)
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.now())
    }
}

/// The CA of which clients have to show a certificate. One that is put in judges the next connection; those that stand are not
/// touched.
#[derive(Debug)]
pub struct ClientCa {
    now: RwLock<Arc<Judging>>,
}

#[derive(Debug)]
struct Judging {
    authorities: Vec<CertificateDer<'static>>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl ClientCa {
    /// Reads a file of certificates (PEM).
    ///
    /// # Errors
    /// Says why it cannot be used.
    pub fn read(file: &Path) -> Result<Self, Unusable> {
        Ok(Self { now: RwLock::new(Arc::new(Judging::read(file)?)) })
    }

    /// Reads the file again. What cannot be used changes nothing. Whether it changed something.
    ///
    /// # Errors
    /// As [`ClientCa::read`].
    pub fn reread(&self, file: &Path) -> Result<bool, Unusable> {
        let read = Judging::read(file)?;
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        let changed = now.authorities != read.authorities;
        if changed {
            *now = Arc::new(read);
        }
        Ok(changed)
    }

    fn now(&self) -> Arc<Judging> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Judging {
    fn read(file: &Path) -> Result<Self, Unusable> {
        let content = |why: String| content(file, why);
        let authorities = certificates(file)?;
        let mut roots = RootCertStore::empty();
        for authority in &authorities {
            roots.add(authority.clone()).map_err(|error| content(error.to_string()))?;
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
        Ok(Self { authorities, verifier: verifier.map_err(|error| content(error.to_string()))? })
    }
}

/// As the verifier of the moment says. No connection is served without a certificate: that is the default of the trait.
impl ClientCertVerifier for ClientCa {
    /// None: a client shows what it has.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.now().verifier.verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.now().verifier.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.now().verifier.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.now().verifier.supported_verify_schemes()
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, Unusable> {
    std::fs::read(path).map_err(|error| Unusable::File { path: path.to_owned(), error })
}

fn content(path: &Path, why: String) -> Unusable {
    Unusable::Content { path: path.to_owned(), why }
}

/// The certificates in a file, of which there is one at least.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Unusable> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes(path)?).collect();
    let all = all.map_err(|error| content(path, error.to_string()))?;
    if all.is_empty() {
        return Err(content(path, "it holds no certificate".to_owned()));
    }
    Ok(all)
}

fn read(files: &CertificateFiles) -> Result<CertifiedKey, Unusable> {
    let CertificateFiles { certificate, key } = files;
    let chain = certificates(certificate)?;
    // The error must not quote what it could not read: it is a key.
    let private = PrivateKeyDer::from_pem_slice(&bytes(key)?)
        .map_err(|_| content(key, "it holds no private key in PEM".to_owned()))?;
    let signing = ring::sign::any_supported_type(&private)
        .map_err(|_| content(key, "keys of this kind cannot be used".to_owned()))?;
    let certified = CertifiedKey::new(chain, signing);
    certified.keys_match().map_err(|_| Unusable::Mismatch { key: key.clone(), certificate: certificate.clone() })?;
    Ok(certified)
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
    use rustls::ClientConfig;
    use rustls::pki_types::ServerName;
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    use super::*;

    /// A CA that tests issue certificates of.
    struct Authority {
        pem: String,
        issuer: Issuer<'static, KeyPair>,
    }

    impl Authority {
        fn new() -> Self {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::default();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let pem = params.self_signed(&key).unwrap().pem();
            Self { pem, issuer: Issuer::new(params, key) }
        }

        /// A certificate and its key, as PEM.
        fn issue(&self, usage: ExtendedKeyUsagePurpose) -> (String, String) {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
            params.extended_key_usages = vec![usage];
            (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
        }
    }

    /// Whether a server takes the connection of a client that trusts it, and shows this certificate.
    async fn takes(config: &ServerConfig, trusted: &Authority, shown: Option<&(String, String)>) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(trusted.pem.as_bytes()).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
        let client = match shown {
            Some((certificate, key)) => {
                let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
                builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap()).unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        let (near, far) = tokio::io::duplex(1 << 16);
        let name = ServerName::try_from("localhost").unwrap();
        let client = TlsConnector::from(Arc::new(client)).connect(name, near);
        let server = TlsAcceptor::from(Arc::new(config.clone())).accept(far);
        let (_client, server) = tokio::join!(client, server);
        server.is_ok()
    }

    #[tokio::test]
    async fn with_a_client_ca_only_clients_with_a_certificate_of_it_are_served() {
        let folder = tempfile::tempdir().unwrap();
        let (authority, ours, theirs) = (Authority::new(), Authority::new(), Authority::new());
        let files = CertificateFiles { certificate: folder.path().join("tls.crt"), key: folder.path().join("tls.key") };
        let (certificate, key) = authority.issue(ExtendedKeyUsagePurpose::ServerAuth);
        std::fs::write(&files.certificate, certificate).unwrap();
        std::fs::write(&files.key, key).unwrap();
        let certificate = Arc::new(Certificate::read(&files).unwrap());
        let client = ours.issue(ExtendedKeyUsagePurpose::ClientAuth);
        let open = certificate.config(None).unwrap();
        assert!(takes(&open, &authority, None).await && takes(&open, &authority, Some(&client)).await);

        let file = folder.path().join("clients.crt");
        std::fs::write(&file, &ours.pem).unwrap();
        let clients = Arc::new(ClientCa::read(&file).unwrap());
        let config = certificate.config(Some(clients.clone())).unwrap();
        assert!(takes(&config, &authority, Some(&client)).await);
        let wrong = [
            ("none", None),
            ("another CA's", Some(theirs.issue(ExtendedKeyUsagePurpose::ClientAuth))),
            ("the serving CA's", Some(authority.issue(ExtendedKeyUsagePurpose::ClientAuth))),
            ("one for servers", Some(ours.issue(ExtendedKeyUsagePurpose::ServerAuth))),
        ];
        for (what, shown) in &wrong {
            assert!(!takes(&config, &authority, shown.as_ref()).await, "{what}");
        }

        // What cannot be used changes nothing, and another CA is the one from the next connection on.
        for nothing in ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            std::fs::write(&file, nothing).unwrap();
            let why = clients.reread(&file).unwrap_err().to_string();
            assert!(why.contains("clients.crt"), "{why}");
            assert!(ClientCa::read(&file).is_err());
        }
        assert!(takes(&config, &authority, Some(&client)).await);
        std::fs::write(&file, &ours.pem).unwrap();
        assert!(!clients.reread(&file).unwrap());
        std::fs::write(&file, &theirs.pem).unwrap();
        assert!(clients.reread(&file).unwrap());
        assert!(!takes(&config, &authority, Some(&client)).await);
        assert!(takes(&config, &authority, wrong[1].1.as_ref()).await);
    }
}
