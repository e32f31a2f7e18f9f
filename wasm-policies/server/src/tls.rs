//! The serving certificate: read from files, and read again when they change.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use ocm_core::certificate::Certificate as Facts;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, version};

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

    /// How to serve with it. HTTP/1.1 alone: it is what API servers speak to webhooks
    /// (`k8s.io/apiserver/pkg/util/webhook/client.go`).
    ///
    /// # Errors
    /// When the TLS library cannot serve at all.
    pub fn config(self: &Arc<Self>) -> Result<ServerConfig, rustls::Error> {
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13, &version::TLS12])?
            .with_no_client_auth()
            .with_cert_resolver(self.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.now())
    }
}

fn read(files: &CertificateFiles) -> Result<CertifiedKey, Unusable> {
    let bytes = |path: &PathBuf| std::fs::read(path).map_err(|error| Unusable::File { path: path.clone(), error });
    let content = |path: &PathBuf, why: String| Unusable::Content { path: path.clone(), why };
    let CertificateFiles { certificate, key } = files;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes(certificate)?).collect();
    let chain = chain.map_err(|error| content(certificate, error.to_string()))?;
    if chain.is_empty() {
        return Err(content(certificate, "it holds no certificate".to_owned()));
    }
    // The error must not quote what it could not read: it is a key.
    let private = PrivateKeyDer::from_pem_slice(&bytes(key)?)
        .map_err(|_| content(key, "it holds no private key in PEM".to_owned()))?;
    let signing = ring::sign::any_supported_type(&private)
        .map_err(|_| content(key, "keys of this kind cannot be used".to_owned()))?;
    let certified = CertifiedKey::new(chain, signing);
    certified.keys_match().map_err(|_| Unusable::Mismatch { key: key.clone(), certificate: certificate.clone() })?;
    Ok(certified)
}
