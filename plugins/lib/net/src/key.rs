//! Private keys: nothing is told of one but whether it belongs to a certificate.

use ocm_core::pin::Pin;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;

/// Whether the private key in a PEM file belongs to a certificate in DER; none if there is no key of a known kind.
pub fn belongs(pem: &[u8], certificate: &[u8]) -> Option<bool> {
    let key = any_supported_type(&PrivateKeyDer::from_pem_slice(pem).ok()?).ok()?;
    Some(Pin::of_key(&key.public_key()?) == Pin::of(certificate)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_belongs_to_its_own_certificate() {
        let make = || rcgen::generate_simple_self_signed(vec!["hub".to_owned()]).unwrap();
        let (own, other) = (make(), make());
        let pem = own.signing_key.serialize_pem();
        assert_eq!(belongs(pem.as_bytes(), own.cert.der()), Some(true));
        assert_eq!(belongs(pem.as_bytes(), other.cert.der()), Some(false));
        assert_eq!(belongs(own.cert.pem().as_bytes(), own.cert.der()), None, "no key");
    }
}
