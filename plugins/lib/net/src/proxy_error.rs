//! What goes wrong on the way through a proxy.

use std::fmt;
use std::io;
use std::time::Duration;

use http::StatusCode;
use ocm_core::tls::{TlsError, TlsFault};
use ocm_core::{Failure, Reason};

use crate::proxy::ProxyName;
use crate::socks::SocksError;

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
