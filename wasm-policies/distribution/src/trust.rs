//! Which servers are trusted: by the CA certificates that a HubPolicy names, or by those of the system.

use crate::error::{Error, ErrorKind};

/// Whom to trust.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// CA certificates in DER; none: those of the system.
    pub authorities: Vec<Vec<u8>>,
}

impl Trust {
    /// The CA certificates of a text in PEM.
    ///
    /// # Errors
    /// When there is none in it.
    pub fn pem(text: &str) -> Result<Self, Error> {
        let found = pem::parse_many(text).unwrap_or_default();
        let certificates = found.into_iter().filter(|one| one.tag() == "CERTIFICATE");
        let authorities: Vec<Vec<u8>> = certificates.map(pem::Pem::into_contents).collect();
        if authorities.is_empty() {
            let why = "the CA certificates hold none in PEM, which begins with -----BEGIN CERTIFICATE-----";
            return Err(Error::new(ErrorKind::Invalid, why));
        }
        Ok(Self { authorities })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_needed_where_some_are_named() {
        assert_eq!(
            Trust::pem("none").map(|trust| trust.authorities.len()).map_err(|error| error.kind),
            Err(ErrorKind::Invalid)
        );
        let two = format!("{0}{0}", pem::encode(&pem::Pem::new("CERTIFICATE", [1])));
        assert_eq!(Trust::pem(&two).map(|trust| trust.authorities.len()), Ok(2));
    }
}
