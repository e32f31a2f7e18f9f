//! Errors of the TLS library: one table for every connection.

use ocm_core::Failure;
use ocm_core::tls::{TlsError, TlsFault};
use rustls::{CertificateError, Error};

/// Which of them an error of the TLS library is.
fn kind(error: &Error) -> TlsError {
    use CertificateError as Certificate;
    match error {
        Error::InvalidCertificate(certificate) => match certificate {
            Certificate::UnknownIssuer | Certificate::BadSignature => TlsError::UnknownIssuer,
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => TlsError::WrongName,
            Certificate::Expired | Certificate::ExpiredContext { .. } => TlsError::Expired,
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => TlsError::NotYetValid,
            _ => TlsError::InvalidCertificate,
        },
        Error::AlertReceived(_) => TlsError::HandshakeRefused,
        Error::InvalidMessage(_) => TlsError::NotTls,
        _ => TlsError::Other,
    }
}

/// Why a server is not trusted, from an error of the TLS library.
pub(crate) fn fault(error: &Error) -> TlsFault {
    TlsFault { kind: kind(error), cause: error.to_string() }
}

/// An error of the TLS library as a failure. `subject` is the server as messages name it.
pub fn tls_failure(subject: impl std::fmt::Display, error: &Error) -> Failure {
    fault(error).failure(subject)
}
