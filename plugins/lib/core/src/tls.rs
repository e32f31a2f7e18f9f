//! What a TLS server presents, and why it is not trusted: facts, and one table of errors for every connection.

use std::fmt;
use std::str::FromStr;

use ocm_api::member::Member;
use serde::Serialize;

use crate::certificate::Certificate;
use crate::{Failure, Reason};

/// What a server presents in a handshake, seen from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFacts {
    /// The proxy that the connection went through, without credentials.
    pub proxy: Option<String>,
    /// Its certificates, its own first, as far as they can be read.
    pub chain: Vec<Certificate>,
    /// Whether the authorities that were asked about vouch for it, all together.
    pub trust: Result<(), TlsFault>,
    /// Whether each of them alone does.
    pub authorities: Vec<(Vec<u8>, Result<(), TlsFault>)>,
}

impl TlsFacts {
    /// The authorities that vouch for the server: others in the same file may be of other servers. All of them where none
    /// does alone, but all together do.
    ///
    /// # Errors
    /// None of them does.
    pub fn vouching(&self) -> Result<Vec<Vec<u8>>, &TlsFault> {
        self.trust.as_ref()?;
        let alone: Vec<_> = self.authorities.iter().filter(|(_, trust)| trust.is_ok()).collect();
        let vouching = if alone.is_empty() { self.authorities.iter().collect() } else { alone };
        Ok(vouching.into_iter().map(|(authority, _)| authority.clone()).collect())
    }
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Member)]
pub enum Version {
    /// TLS 1.0.
    #[serde(rename = "TLS1.0")]
    Tls10,
    /// TLS 1.1.
    #[serde(rename = "TLS1.1")]
    Tls11,
    /// TLS 1.2.
    #[serde(rename = "TLS1.2")]
    Tls12,
    /// TLS 1.3.
    #[serde(rename = "TLS1.3")]
    Tls13,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tls10 => "TLS 1.0",
            Self::Tls11 => "TLS 1.1",
            Self::Tls12 => "TLS 1.2",
            Self::Tls13 => "TLS 1.3",
        })
    }
}

/// Why a text is no version of TLS.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no version of TLS: that is VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13")]
pub struct NotAVersion {
    text: String,
}

impl FromStr for Version {
    type Err = NotAVersion;

    /// Reads the names of Go's constants and of OpenShift's profiles, which Open Cluster Management takes as aliases.
    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        Ok(match text {
            "VersionTLS10" | "TLSv1" | "TLSv1.0" => Self::Tls10,
            "VersionTLS11" | "TLSv1.1" => Self::Tls11,
            "VersionTLS12" | "TLSv1.2" => Self::Tls12,
            "VersionTLS13" | "TLSv1.3" => Self::Tls13,
            _ => return Err(NotAVersion { text: text.to_owned() }),
        })
    }
}

/// Why a server is not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFault {
    /// What it is.
    pub kind: TlsError,
    /// The words of the TLS library.
    pub cause: String,
}

impl TlsFault {
    /// It as a failure. `subject` is the server as messages name it.
    pub fn failure(&self, subject: impl fmt::Display) -> Failure {
        let failure = Failure::new(Reason::Tls, format!("{subject} {}", self.kind.sentence()));
        let failure = if self.kind == TlsError::UnknownIssuer { failure } else { failure.because(&self.cause) };
        match self.kind.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// Why a TLS connection did not come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsError {
    /// The server's certificate is not signed by a CA that is trusted for it.
    UnknownIssuer,
    /// The server's certificate is not valid for the host name or address.
    WrongName,
    /// The server's certificate has expired.
    Expired,
    /// The server's certificate is not valid yet.
    NotYetValid,
    /// The server's certificate is wrong in another way.
    InvalidCertificate,
    /// A CA certificate to verify it with cannot be used, or there is none.
    UnusableAuthority,
    /// The server ended the handshake.
    HandshakeRefused,
    /// The server does not speak TLS.
    NotTls,
    /// Something else.
    Other,
}

impl TlsError {
    /// A sentence about the server.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::UnknownIssuer => "presents a certificate that the trusted CA did not sign",
            Self::WrongName => "presents a certificate that is not valid for this hostname",
            Self::Expired => "presents a certificate that has expired",
            Self::NotYetValid => "presents a certificate that is not valid yet",
            Self::InvalidCertificate => "presents a certificate that cannot be trusted",
            Self::UnusableAuthority => "cannot be verified with the CA certificate that is there",
            Self::HandshakeRefused => "refused the TLS handshake",
            Self::NotTls => "does not speak TLS",
            Self::Other => "cannot be reached by TLS",
        }
    }

    /// What to do next, where there is something.
    pub fn hint(self) -> Option<&'static str> {
        match self {
            Self::UnknownIssuer => Some(
                "is it the right server, and is the CA the one of this address? A load balancer may have another, and a CA may have been replaced",
            ),
            Self::WrongName => Some("use an address that the certificate names, or say which name to expect"),
            Self::Expired => Some("renew it, and check this machine's clock"),
            Self::NotYetValid => Some("check this machine's clock and the server's"),
            Self::NotTls => Some("is the port right? http and https differ"),
            Self::InvalidCertificate | Self::UnusableAuthority | Self::HandshakeRefused | Self::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_authorities_those_that_vouch_alone_count() {
        let fault = TlsFault { kind: TlsError::UnknownIssuer, cause: String::new() };
        let facts = |trust: &[bool], together: bool| TlsFacts {
            proxy: None,
            chain: Vec::new(),
            trust: together.then_some(()).ok_or(fault.clone()),
            authorities: (0u8..)
                .zip(trust)
                .map(|(index, vouches)| (vec![index], vouches.then_some(()).ok_or(fault.clone())))
                .collect(),
        };
        assert_eq!(facts(&[false, true, true], true).vouching(), Ok(vec![vec![1], vec![2]]));
        assert_eq!(facts(&[false, false], true).vouching(), Ok(vec![vec![0], vec![1]]));
        assert_eq!(facts(&[false, false], false).vouching(), Err(&fault));
    }
}
