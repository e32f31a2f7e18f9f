//! Connections through a proxy: HTTP (`CONNECT`, RFC 9110 section 9.3.6), the same over TLS, or SOCKS 5. Servers without
//! TLS are reached the same way as those with it.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use ocm_core::tls::{TlsError, TlsFault};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;

use crate::client::{Trust, UnusableTls, client_config, proxy_config};
use crate::connect_error::{ConnectError, handshake};
use crate::proxy::{Origin, Proxy, without_brackets};
use crate::proxy_error::{ProxyError, ProxyFault};
use crate::socks;
use crate::stream::Stream;
use crate::vantage::Vantage;

/// The head of an answer is not longer.
const LONGEST_HEAD: usize = 8 << 10;

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
    /// The way from somewhere through `proxy` to a server that is trusted so. A proxy that speaks TLS is trusted alike; one that
    /// the environment names, and no kubeconfig that an agent may have, also by the system's authorities.
    ///
    /// # Errors
    /// When an authority cannot be used.
    pub fn new(proxy: Proxy, from: Vantage, trust: Trust<'_>) -> Result<Self, UnusableTls> {
        let config = match proxy.name().origin {
            _ if !proxy.is_tls() => None,
            Origin::Variable(_) => Some(proxy_config(trust)?),
            Origin::Kubeconfig => Some(client_config(trust, None)?),
        };
        Ok(Self { proxy, from, tls: config.map(|config| TlsConnector::from(Arc::new(config))) })
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
