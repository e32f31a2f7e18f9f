//! Proxies that connect, or fail in a way that a test chooses: HTTP, the same over TLS, and SOCKS 5.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener as Listener};
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A name that only proxies find, and for which every server with TLS has a certificate.
pub const BEHIND: &str = "behind.example";

/// Whom the proxies know.
const USER: &str = "me";
const PASSWORD: &str = "s3cr@t:/%";
/// The same, as a URL has it.
pub const CREDENTIALS: &str = "me:s3cr%40t%3A%2F%25@";

/// What a proxy speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// RFC 9110 section 9.3.6.
    Http,
    /// The same over TLS.
    Https,
    /// RFC 1928 with RFC 1929.
    Socks,
}

impl Kind {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Http, Self::Https, Self::Socks];

    /// The scheme of its URL.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks => "socks5",
        }
    }
}

/// What a proxy does with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It connects whoever shows the right credentials.
    Connects,
    /// It lets nobody through to this server.
    Forbids,
    /// It cannot reach the server.
    Fails,
    /// It says nothing.
    Silent,
    /// It closes the connection as soon as it is asked.
    Closes,
    /// It speaks something else.
    Babbles,
}

/// A proxy on a port of its own. It serves until the process ends.
pub struct Proxy {
    kind: Kind,
    address: SocketAddr,
    authority: String,
    passed: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// Starts a proxy that only this machine reaches. For it, names that end with `.example` are this machine.
    ///
    /// # Panics
    /// When there is no free port.
    pub fn start(kind: Kind, manner: Manner) -> Self {
        Self::start_at(Ipv4Addr::LOCALHOST.into(), kind, manner)
    }

    /// Starts a proxy at an address of this machine at which others reach it, too.
    ///
    /// # Panics
    /// When the address has no free port.
    pub fn start_at(address: IpAddr, kind: Kind, manner: Manner) -> Self {
        let listener = Listener::bind((address, 0)).expect("a port can be had");
        listener.set_nonblocking(true).expect("a listener can be asked");
        let address = listener.local_addr().expect("it has an address");
        let (acceptor, authority) = tls(address.ip());
        let passed = Arc::new(Mutex::new(Vec::new()));
        let seen = passed.clone();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be made").block_on(async {
                let listener = TcpListener::from_std(listener).expect("it is a listener");
                while let Ok((stream, _)) = listener.accept().await {
                    let (acceptor, seen) = (acceptor.clone(), seen.clone());
                    // A client that goes away in the middle is none of the proxy's business.
                    tokio::spawn(async move {
                        match kind {
                            Kind::Https if !matches!(manner, Manner::Silent | Manner::Babbles) => {
                                serve(acceptor.accept(stream).await?, kind, manner, &seen).await
                            }
                            _ => serve(stream, kind, manner, &seen).await,
                        }
                    });
                }
            });
        });
        Self { kind, address, authority, passed }
    }

    /// Host and port.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Its URL, with these credentials: `USER:PASSWORD@`, or none.
    pub fn url(&self, credentials: &str) -> String {
        format!("{}://{credentials}{}", self.kind.scheme(), self.address())
    }

    /// The certificate, as PEM, of the authority that vouches for it.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The servers that it connected to.
    ///
    /// # Panics
    /// When a connection has panicked.
    pub fn passed(&self) -> Vec<String> {
        self.passed.lock().expect("nobody panics").clone()
    }
}

/// A certificate for an address of this machine and for [`BEHIND`], and who vouches for it.
fn tls(address: IpAddr) -> (TlsAcceptor, String) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "proxies");
    let key = KeyPair::generate().expect("a key is made");
    let authority = params.self_signed(&key).expect("a certificate is made").pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().expect("a key is made");
    let names = vec![address.to_string(), BEHIND.to_owned()];
    let params = CertificateParams::new(names).expect("an address is a name");
    let certificate = params.signed_by(&key, &issuer).expect("a certificate is signed");
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions are known")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )
        .expect("the certificate fits its key");
    (TlsAcceptor::from(Arc::new(config)), authority)
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut client: S,
    kind: Kind,
    manner: Manner,
    seen: &Mutex<Vec<String>>,
) -> io::Result<()> {
    match manner {
        Manner::Silent => return std::future::pending().await,
        Manner::Closes => return client.read_u8().await.map(drop),
        Manner::Babbles => return client.write_all(b"220 mail.example ESMTP\r\n").await,
        Manner::Connects | Manner::Forbids | Manner::Fails => {}
    }
    let asked = match kind {
        Kind::Http | Kind::Https => http(&mut client).await?,
        Kind::Socks => socks(&mut client).await?,
    };
    let Some(asked) = asked else { return client.shutdown().await };
    let (granted, forbidden, failed) = match kind {
        Kind::Socks => (
            &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0][..],
            &[5, 2, 0, 1, 0, 0, 0, 0, 0, 0][..],
            &[5, 5, 0, 1, 0, 0, 0, 0, 0, 0][..],
        ),
        _ => (
            &b"HTTP/1.1 200 Connection established\r\nVia: 1.1 test\r\n\r\n"[..],
            &b"HTTP/1.1 403 Forbidden\r\nContent-Length: 5\r\n\r\nnever"[..],
            &b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 5\r\n\r\nlater"[..],
        ),
    };
    match manner {
        Manner::Forbids => client.write_all(forbidden).await?,
        Manner::Fails => client.write_all(failed).await?,
        _ => {
            let (host, port) = asked.rsplit_once(':').unwrap_or((&asked, ""));
            let host = if host.ends_with(".example") { "127.0.0.1" } else { host };
            let mut server = TcpStream::connect(format!("{host}:{port}")).await?;
            seen.lock().expect("nobody panics").push(asked.clone());
            client.write_all(granted).await?;
            // How they part is theirs.
            copy_bidirectional(&mut client, &mut server).await?;
        }
    }
    client.shutdown().await
}

/// The server that is asked for, if the credentials are right (RFC 7617).
async fn http<S: AsyncRead + AsyncWrite + Unpin>(client: &mut S) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut words = head.split(' ');
    let (method, server) = (words.next(), words.next().unwrap_or_default());
    if method != Some("CONNECT") {
        client.write_all(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n").await?;
        return Ok(None);
    }
    let shown = head.lines().find_map(|line| line.strip_prefix("Proxy-Authorization: Basic "));
    if shown == Some(STANDARD.encode(format!("{USER}:{PASSWORD}")).as_str()) {
        return Ok(Some(server.to_owned()));
    }
    client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n").await?;
    Ok(None)
}

/// The server that is asked for, if the credentials are right.
async fn socks<S: AsyncRead + AsyncWrite + Unpin>(client: &mut S) -> io::Result<Option<String>> {
    async fn text<S: AsyncRead + Unpin>(client: &mut S) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; client.read_u8().await?.into()];
        client.read_exact(&mut bytes).await.map(|_| bytes)
    }
    client.read_u8().await?;
    if !text(client).await?.contains(&2) {
        client.write_all(&[5, 255]).await?;
        return Ok(None);
    }
    client.write_all(&[5, 2]).await?;
    client.read_u8().await?;
    let right = (text(client).await?, text(client).await?) == (USER.into(), PASSWORD.into());
    client.write_all(&[1, u8::from(!right)]).await?;
    if !right {
        return Ok(None);
    }
    let mut request = [0; 4];
    client.read_exact(&mut request).await?;
    let host = match request[3] {
        1 => Ipv4Addr::from(client.read_u32().await?).to_string(),
        3 => String::from_utf8_lossy(&text(client).await?).into_owned(),
        _ => return Ok(None),
    };
    Ok(Some(format!("{host}:{}", client.read_u16().await?)))
}
