//! Whether a certificate request is signed with the key that is in it.

use ocm_rules::csr::Signature;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::oid_registry as oid;

use crate::key::Key;

/// The same for ECDSA, by a crate of the curve.
macro_rules! ecdsa {
    ($curve:ident, $request:expr, $digest:expr) => {{
        use $curve::ecdsa::signature::hazmat::PrehashVerifier as _;
        let info = &$request.certification_request_info;
        let digest = ring::digest::digest($digest, info.raw);
        // A digest that is longer than the order is cut by the crate; a shorter one stands for the same number.
        let digest = if stringify!($curve) == "p521" { number(digest.as_ref()) } else { digest.as_ref().to_vec() };
        let key = $curve::ecdsa::VerifyingKey::from_sec1_bytes(&info.subject_pki.subject_public_key.data);
        let signature = $curve::ecdsa::Signature::from_der(&$request.signature_value.data);
        match (key, signature) {
            (Ok(key), Ok(signature)) if key.verify_prehash(&digest, &signature).is_ok() => Signature::Valid,
            _ => Signature::Invalid,
        }
    }};
}

/// Verifies the signature of a request with the key in it.
pub(super) fn signature(request: &X509CertificationRequest<'_>, key: &Key) -> Signature {
    let algorithm = &request.signature_algorithm.algorithm;
    if *algorithm == oid::OID_PKCS1_SHA1WITHRSA || *algorithm == oid::OID_SHA1_WITH_RSA {
        return Signature::Unverifiable;
    }
    match (key, digest_of(algorithm)) {
        // The pairings that ring does not know; signers take any (RFC 5758 section 3.2).
        (Key::P256, Some(digest)) if *algorithm == oid::OID_SIG_ECDSA_WITH_SHA512 => ecdsa!(p256, request, digest),
        (Key::P384, Some(digest)) if *algorithm == oid::OID_SIG_ECDSA_WITH_SHA512 => ecdsa!(p384, request, digest),
        (Key::P521, Some(digest)) => ecdsa!(p521, request, digest),
        (Key::P521, None) => Signature::Unverifiable,
        _ => match request.verify_signature() {
            Ok(()) => Signature::Valid,
            Err(x509_parser::error::X509Error::SignatureUnsupportedAlgorithm) => Signature::Unverifiable,
            Err(_) => Signature::Invalid,
        },
    }
}

/// What an ECDSA signature digests with; none for weak digests.
fn digest_of(algorithm: &oid::Oid<'_>) -> Option<&'static ring::digest::Algorithm> {
    match algorithm {
        algorithm if *algorithm == oid::OID_SIG_ECDSA_WITH_SHA256 => Some(&ring::digest::SHA256),
        algorithm if *algorithm == oid::OID_SIG_ECDSA_WITH_SHA384 => Some(&ring::digest::SHA384),
        algorithm if *algorithm == oid::OID_SIG_ECDSA_WITH_SHA512 => Some(&ring::digest::SHA512),
        _ => None,
    }
}

/// The digest as a number of at least 64 bytes: the crates refuse one that is much shorter than the curve's order.
fn number(digest: &[u8]) -> Vec<u8> {
    let mut number = vec![0; 64_usize.saturating_sub(digest.len())];
    number.extend(digest);
    number
}
