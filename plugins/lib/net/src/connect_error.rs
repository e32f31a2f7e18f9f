//! What goes wrong on the way to a server, and in the handshake with it.

use std::fmt;
use std::io;
use std::time::Duration;

use ocm_core::tls::{TlsError, TlsFault};
use ocm_core::{Failure, Reason};
use rustls::Error;

use crate::client::UnusableTls;
use crate::proxy::UnusableProxy;
use crate::proxy_error::ProxyError;
use crate::tls_error::fault;

/// Why there is no TLS connection to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// The environment names a proxy that cannot be used.
    UnusableProxy(UnusableProxy),
    /// There is no way through the proxy.
    Proxy(Box<ProxyError>),
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

impl From<UnusableTls> for ConnectError {
    fn from(error: UnusableTls) -> Self {
        match error {
            UnusableTls::Authority(cause) => Self::Tls(TlsFault { kind: TlsError::UnusableAuthority, cause }),
            UnusableTls::Setup(cause) | UnusableTls::Identity(cause) => Self::Setup(cause),
        }
    }
}

impl ConnectError {
    /// It as a failure about a server, by the name that messages have for it: an [`crate::Endpoint`], unless it is spoken to
    /// without TLS.
    pub fn failure(&self, server: impl fmt::Display) -> Failure {
        match self {
            Self::Tls(fault) => fault.failure(&server),
            _ => self.unreached(&server),
        }
    }

    /// It as a failure about whoever was dialled, by whatever words.
    pub fn unreached(&self, who: &dyn fmt::Display) -> Failure {
        const NETWORK: &str = "check network, VPN, proxy and firewall";
        let unreachable = |what: &str, cause: &dyn fmt::Display| {
            Failure::new(Reason::Unreachable, format!("{who} cannot be reached: {what}")).because(cause)
        };
        match self {
            Self::UnusableProxy(error) => unreachable("the proxy of HTTPS_PROXY cannot be used", error),
            Self::Proxy(error) => {
                let failure = error.failure();
                Failure { message: format!("{who} cannot be reached: {}", failure.message), ..failure }
            }
            Self::Unresolved(cause) => {
                unreachable("its name cannot be resolved", cause).hint("check the host name and the DNS")
            }
            Self::Refused(cause) => unreachable("connection refused", cause)
                .hint("is the API server up, and is this its address as seen from here?"),
            Self::NoRoute(cause) => unreachable("no route to host", cause).hint(NETWORK),
            Self::Unanswered(limit) => {
                let cause = format!("nothing within {}", ocm_core::duration::human(*limit));
                unreachable("it does not answer", &cause).hint(NETWORK)
            }
            Self::Failed(cause) => unreachable("the connection failed", cause).hint(NETWORK),
            Self::Broken(cause) => unreachable("the connection broke", cause),
            Self::Closed(cause) => {
                let sentence = format!("{who} closed the connection instead of speaking TLS");
                Failure::new(Reason::Tls, sentence).because(cause)
            }
            Self::Tls(TlsFault { cause, .. }) => {
                Failure::new(Reason::Tls, format!("the TLS handshake with {who} failed")).because(cause)
            }
            Self::Setup(cause) => Failure::other("TLS cannot be set up").because(cause),
        }
    }
}

/// What a failed handshake means.
pub(crate) fn handshake(error: io::Error) -> ConnectError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(error) => ConnectError::Tls(fault(error)),
        None if error.kind() == io::ErrorKind::UnexpectedEof => ConnectError::Closed(error.to_string()),
        None => ConnectError::Broken(error.to_string()),
    }
}
