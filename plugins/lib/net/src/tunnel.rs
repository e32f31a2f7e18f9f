//! Connections through a proxy: HTTP (`CONNECT`, RFC 9110 section 9.3.6), the same over TLS, or SOCKS 5. Servers without
//! TLS are reached the same way as those with it.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use ocm_core::tls::{TlsError, TlsFault};
use ocm_core::{Failure, Reason};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;

use crate::connect::{ConnectError, handshake};
use crate::proxy::{Proxy, ProxyName, without_brackets};
use crate::socks::{self, SocksError};
use crate::vantage::Vantage;

/// The head of an answer is not longer.
const LONGEST_HEAD: usize = 8 << 10;

/// A connection: to a server, or through a proxy that may speak TLS itself.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// The way through a proxy.
#[derive(Clone)]
pub struct Tunnel {
    proxy: Proxy,
    /// From where the proxy is dialled.
    from: Vantage,
    /// How a proxy is trusted that speaks TLS.
    tls: Option<TlsConnector>,
}

impl Tunnel {
    /// The way from somewhere through `proxy`. Only for one that speaks TLS `tls` is asked how it is trusted.
    ///
    /// # Errors
    /// Those of `tls`.
    pub fn new<E>(proxy: Proxy, from: Vantage, tls: impl FnOnce() -> Result<ClientConfig, E>) -> Result<Self, E> {
        let tls = if proxy.is_tls() { Some(TlsConnector::from(Arc::new(tls()?))) } else { None };
        Ok(Self { proxy, from, tls })
    }

    /// Opens a connection to a server, whose name the proxy resolves, within `limit`.
    ///
    /// # Errors
    /// Why there is none: the proxy cannot be reached, is not trusted, or does not let it through.
    pub async fn open(&self, host: &str, port: u16, limit: Duration) -> Result<Box<dyn Stream>, ProxyError> {
        let host = without_brackets(host);
        let server = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let work = async {
            let mut stream = self.reach().await?;
            if self.proxy.is_socks() {
                socks::connect(&mut stream, self.proxy.intercept().raw_auth(), host, port).await?;
            } else {
                let credentials = self.proxy.intercept().basic_auth();
                ask(&mut stream, &server, credentials.map(http::HeaderValue::as_bytes)).await?;
            }
            Ok(stream)
        };
        let opened = tokio::time::timeout(limit, work).await.unwrap_or(Err(ProxyFault::Unanswered(limit)));
        opened.map_err(|fault| ProxyError { proxy: self.proxy.name(), server, fault })
    }

    /// Connects to the proxy.
    async fn reach(&self) -> Result<Box<dyn Stream>, ProxyFault> {
        let (host, port) = self.proxy.host_and_port();
        let stream = self.from.open(host, port).await.map_err(ProxyFault::of)?;
        let Some(connector) = &self.tls else { return Ok(stream) };
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|error| TlsFault { kind: TlsError::WrongName, cause: error.to_string() })?;
        let secure = connector.connect(name, stream).await.map_err(|error| ProxyFault::of(handshake(error)))?;
        Ok(Box::new(secure))
    }
}

/// Asks an HTTP proxy for a connection to a server.
async fn ask(stream: &mut Box<dyn Stream>, server: &str, credentials: Option<&[u8]>) -> Result<(), ProxyFault> {
    let mut request = format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n").into_bytes();
    if let Some(credentials) = credentials {
        request.extend([b"Proxy-Authorization: ", credentials, b"\r\n"].concat());
    }
    request.extend(b"\r\n");
    stream.write_all(&request).await?;
    stream.flush().await?;
    // What follows the head is the server's, so nothing more may be read.
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && !head.ends_with(b"\n\n") {
        head.push(stream.read_u8().await?);
        let is_http = head.iter().zip(b"HTTP/1.").all(|(seen, expected)| seen == expected);
        if !is_http || head.len() > LONGEST_HEAD {
            return Err(ProxyFault::NotHttp);
        }
    }
    let status = head.split(u8::is_ascii_whitespace).nth(1);
    match status.and_then(|status| StatusCode::from_bytes(status).ok()).ok_or(ProxyFault::NotHttp)? {
        status if status.is_success() => Ok(()),
        StatusCode::PROXY_AUTHENTICATION_REQUIRED if credentials.is_some() => Err(ProxyFault::WrongCredentials),
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => Err(ProxyFault::NeedsCredentials),
        StatusCode::FORBIDDEN => Err(ProxyFault::Forbids),
        status => Err(ProxyFault::Status(status)),
    }
}

/// Why there is no connection to a server through a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyError {
    /// The proxy.
    pub proxy: ProxyName,
    /// Host and port of the server.
    pub server: String,
    /// What is wrong.
    pub fault: ProxyFault,
}

/// What is wrong with a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyFault {
    /// There is no connection to it, and why.
    Unreachable(&'static str, String),
    /// It does not answer in this time.
    Unanswered(Duration),
    /// The connection to it broke.
    Broken(String),
    /// It speaks TLS, and is not trusted or does not speak it well.
    Tls(TlsFault),
    /// It lets nobody through without a user name and a password.
    NeedsCredentials,
    /// It does not accept the user name and the password.
    WrongCredentials,
    /// It does not let anybody through to this server.
    Forbids,
    /// An HTTP proxy answers with another status.
    Status(StatusCode),
    /// It does not speak HTTP.
    NotHttp,
    /// A SOCKS proxy does not let it through.
    Socks(String),
}

impl ProxyFault {
    /// What a failed connection to a proxy means.
    fn of(error: ConnectError) -> Self {
        match error {
            ConnectError::Unresolved(cause) => Self::Unreachable("its name cannot be resolved", cause),
            ConnectError::Refused(cause) => Self::Unreachable("connection refused", cause),
            ConnectError::NoRoute(cause) => Self::Unreachable("no route to host", cause),
            ConnectError::Unanswered(limit) => Self::Unanswered(limit),
            ConnectError::Tls(fault) => Self::Tls(fault),
            ConnectError::Proxy(error) => error.fault,
            ConnectError::UnusableProxy(error) => Self::Unreachable("it cannot be used", error.to_string()),
            ConnectError::Closed(cause) | ConnectError::Broken(cause) => Self::Broken(cause),
            ConnectError::Failed(cause) | ConnectError::Setup(cause) => {
                Self::Unreachable("the connection failed", cause)
            }
        }
    }
}

impl From<io::Error> for ProxyFault {
    fn from(error: io::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

impl From<TlsFault> for ProxyFault {
    fn from(fault: TlsFault) -> Self {
        Self::Tls(fault)
    }
}

impl From<SocksError> for ProxyFault {
    fn from(error: SocksError) -> Self {
        match error {
            SocksError::Io(error) => error.into(),
            SocksError::NeedsCredentials => Self::NeedsCredentials,
            SocksError::Credentials => Self::WrongCredentials,
            other => Self::Socks(other.to_string()),
        }
    }
}

impl ProxyError {
    /// It as a failure about the proxy.
    pub fn failure(&self) -> Failure {
        let Self { proxy, server, fault } = self;
        let about = |what: &dyn fmt::Display| Failure::new(Reason::Unreachable, format!("{proxy} {what}"));
        let failure = match fault {
            ProxyFault::Unreachable(what, cause) => about(&format!("cannot be reached: {what}")).because(cause),
            ProxyFault::Unanswered(limit) => {
                about(&"does not answer").because(format!("nothing within {}", ocm_core::duration::human(*limit)))
            }
            ProxyFault::Broken(cause) => about(&"closed the connection").because(cause),
            ProxyFault::Tls(fault) => {
                let failure = about(&fault.kind.sentence()).because(&fault.cause);
                match tls_hint(fault.kind) {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                }
            }
            ProxyFault::NeedsCredentials => about(&"wants a user name and a password").hint(format!(
                "write them into {}, percent-encoded: {}://USER:PASSWORD@{}",
                proxy.origin, proxy.scheme, proxy.address
            )),
            ProxyFault::WrongCredentials => about(&"does not accept the user name and the password")
                .hint(format!("correct them in {}; special characters are percent-encoded", proxy.origin)),
            ProxyFault::Forbids => about(&format!("forbids connections to {server}"))
                .because("it answers CONNECT with HTTP 403")
                .hint(format!("ask its administrator to allow CONNECT to {server}")),
            ProxyFault::Status(status) => {
                about(&format!("cannot connect to {server}")).because(format!("it answers CONNECT with HTTP {status}"))
            }
            ProxyFault::NotHttp => about(&"does not speak HTTP")
                .hint("its URL begins with https:// or socks5:// if it speaks one of these"),
            ProxyFault::Socks(cause) => about(&format!("does not let a connection to {server} through")).because(cause),
        };
        let names_origin = matches!(fault, ProxyFault::NeedsCredentials | ProxyFault::WrongCredentials);
        if names_origin { failure } else { failure.hint(proxy.hint(server)) }
    }
}

/// What to do about a proxy that speaks TLS, or should.
fn tls_hint(kind: TlsError) -> Option<&'static str> {
    match kind {
        TlsError::UnknownIssuer | TlsError::UnusableAuthority => Some(
            "an https proxy is verified with the same CA as the server behind it, or with the system's where none is named",
        ),
        TlsError::WrongName => Some("name the proxy as its certificate does"),
        TlsError::NotTls => Some("its URL begins with http:// if it speaks no TLS"),
        other => other.hint(),
    }
}
