//! Public keys: algorithm and strength.

use std::fmt;

use ocm_api::member::Member;
use ocm_rules::csr as rules;
use serde::Serialize;
use x509_parser::oid_registry as oid;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

/// A public key's algorithm and strength.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Member)]
pub enum Key {
    /// NIST P-256.
    P256,
    /// NIST P-384.
    P384,
    /// NIST P-521.
    P521,
    /// Ed25519.
    Ed25519,
    /// RSA with the bits of its modulus.
    Rsa(usize),
    /// Anything else, by name.
    Other(String),
}

impl Key {
    /// Reads the algorithm and the strength of a key.
    pub(crate) fn of(spki: &SubjectPublicKeyInfo<'_>) -> Self {
        let algorithm = &spki.algorithm.algorithm;
        if *algorithm == oid::OID_SIG_ED25519 {
            return Key::Ed25519;
        }
        if *algorithm == oid::OID_KEY_TYPE_EC_PUBLIC_KEY {
            let curve = spki.algorithm.parameters.as_ref().and_then(|parameters| parameters.as_oid().ok());
            return match curve {
                Some(curve) if curve == oid::OID_EC_P256 => Key::P256,
                Some(curve) if curve == oid::OID_NIST_EC_P384 => Key::P384,
                Some(curve) if curve == oid::OID_NIST_EC_P521 => Key::P521,
                Some(curve) => Key::Other(format!("ECDSA on curve {}", curve.to_id_string())),
                None => Key::Other("ECDSA on an unnamed curve".to_owned()),
            };
        }
        match spki.parsed() {
            Ok(PublicKey::RSA(rsa)) => Key::Rsa(bits(rsa.modulus)),
            _ => Key::Other(format!("algorithm {}", algorithm.to_id_string())),
        }
    }

    /// The facts that the rules judge.
    pub(crate) fn facts(&self) -> rules::Key<'_> {
        match self {
            Self::P256 => rules::Key::P256,
            Self::P384 => rules::Key::P384,
            Self::P521 => rules::Key::P521,
            Self::Ed25519 => rules::Key::Ed25519,
            Self::Rsa(bits) => rules::Key::Rsa(u32::try_from(*bits).unwrap_or(u32::MAX)),
            Self::Other(name) => rules::Key::Other(name),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.facts().fmt(f)
    }
}

/// Bits of a number, whatever zeros stand in front.
fn bits(number: &[u8]) -> usize {
    match number.iter().position(|byte| *byte != 0) {
        Some(first) => (number.len() - first) * 8 - number[first].leading_zeros() as usize,
        None => 0,
    }
}
