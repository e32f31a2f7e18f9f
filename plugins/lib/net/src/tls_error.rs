//! Errors of TLS: one table for every connection.

use ocm_core::{Failure, Reason};
use rustls::{CertificateError, Error};

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
    /// The server ended the handshake.
    HandshakeRefused,
    /// The server does not speak TLS.
    NotTls,
    /// Something else.
    Other,
}

impl From<&Error> for TlsError {
    fn from(error: &Error) -> Self {
        use CertificateError as Certificate;
        match error {
            Error::InvalidCertificate(certificate) => match certificate {
                Certificate::UnknownIssuer | Certificate::BadSignature => Self::UnknownIssuer,
                Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => Self::WrongName,
                Certificate::Expired | Certificate::ExpiredContext { .. } => Self::Expired,
                Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => Self::NotYetValid,
                _ => Self::InvalidCertificate,
            },
            Error::AlertReceived(_) => Self::HandshakeRefused,
            Error::InvalidMessage(_) => Self::NotTls,
            _ => Self::Other,
        }
    }
}

impl TlsError {
    /// A sentence about the server.
    fn sentence(self) -> &'static str {
        match self {
            Self::UnknownIssuer => "presents a certificate that the trusted CA did not sign",
            Self::WrongName => "presents a certificate that is not valid for this hostname",
            Self::Expired => "presents a certificate that has expired",
            Self::NotYetValid => "presents a certificate that is not valid yet",
            Self::InvalidCertificate => "presents a certificate that cannot be trusted",
            Self::HandshakeRefused => "refused the TLS handshake",
            Self::NotTls => "does not speak TLS",
            Self::Other => "cannot be reached by TLS",
        }
    }

    /// What to do next, where there is something.
    fn hint(self) -> Option<&'static str> {
        match self {
            Self::UnknownIssuer => Some(
                "is it the right server, and is the CA the one of this address? A load balancer may have another, and a CA may have been replaced",
            ),
            Self::WrongName => Some("use an address that the certificate names, or say which name to expect"),
            Self::Expired => Some("renew it, and check this machine's clock"),
            Self::NotYetValid => Some("check this machine's clock and the server's"),
            Self::NotTls => Some("is the port right? http and https differ"),
            Self::InvalidCertificate | Self::HandshakeRefused | Self::Other => None,
        }
    }
}

/// An error of TLS as a failure. `subject` is the server as messages name it.
pub fn tls_failure(subject: impl std::fmt::Display, error: &Error) -> Failure {
    let kind = TlsError::from(error);
    let failure = Failure::new(Reason::Tls, format!("{subject} {}", kind.sentence()));
    let failure = if kind == TlsError::UnknownIssuer { failure } else { failure.because(error) };
    match kind.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
