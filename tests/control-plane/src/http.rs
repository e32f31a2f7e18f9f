//! As much of an HTTPS client as waiting for a cluster takes; starting kubectl for every look would be slower than
//! what it waits for.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::error::Error;
use crate::pki::Pair;

/// A client with the certificate of an administrator.
pub(crate) struct Client {
    address: SocketAddr,
    config: Arc<ClientConfig>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr, ca: &str, pair: &Pair) -> Result<Self, Error> {
        let bad = |error: &dyn std::fmt::Display| Error::host(format!("reading our own certificates failed: {error}"));
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).map_err(|e| bad(&e))?).map_err(|e| bad(&e))?;
        let certificate = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).map_err(|e| bad(&e))?;
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).map_err(|e| bad(&e))?;
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|e| bad(&e))?
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![certificate], key)
            .map_err(|e| bad(&e))?;
        Ok(Self { address, config: Arc::new(config) })
    }

    /// The body of a successful answer to a GET; anything else is "not yet" to the one who waits.
    pub(crate) fn get(&self, path: &str) -> Option<String> {
        let name = ServerName::from(self.address.ip());
        let connection = ClientConnection::new(Arc::clone(&self.config), name).ok()?;
        let socket = TcpStream::connect_timeout(&self.address, Duration::from_secs(1)).ok()?;
        socket.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        let mut stream = StreamOwned::new(connection, socket);
        // HTTP/1.0 keeps the answer in one piece: neither chunks nor a connection that stays open.
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {}\r\nAccept: application/json\r\n\r\n", self.address).ok()?;
        let mut answer = Vec::new();
        // The server may close without the closing message of TLS; what matters has arrived by then.
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n")?;
        (head.split_whitespace().nth(1)? == "200").then(|| body.to_owned())
    }
}
