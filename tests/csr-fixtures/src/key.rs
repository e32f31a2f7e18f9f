//! Keys of every kind, and signatures by them.

use std::sync::Arc;

use der::Encode as _;
use der::asn1::{Any, BitString, ObjectIdentifier};
use getrandom::SysRng;
use getrandom::rand_core::UnwrapErr;
use p256::pkcs8::EncodePrivateKey as _;
use rsa::pkcs1::EncodeRsaPublicKey as _;
use rsa::signature::hazmat::PrehashSigner as _;
use rsa::signature::{SignatureEncoding as _, Signer as _};
use sha2::Digest as _;
use spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};

use crate::pem::pem;

/// Kinds of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// ECDSA on NIST P-256.
    P256,
    /// ECDSA on NIST P-384.
    P384,
    /// ECDSA on NIST P-521.
    P521,
    /// ECDSA on secp256k1, which certificates do not use.
    Secp256k1,
    /// Ed25519.
    Ed25519,
    /// RSA with so many bits.
    Rsa(usize),
}

/// What a signature digests with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// What belongs to the kind of key.
    Usual,
    /// SHA-1; RSA and P-256 only.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

/// A key pair.
#[derive(Clone, Debug)]
pub struct Key(Arc<Secret>);

#[derive(Debug)]
enum Secret {
    P256(p256::ecdsa::SigningKey),
    P384(p384::ecdsa::SigningKey),
    P521(p521::ecdsa::SigningKey),
    Secp256k1(k256::ecdsa::SigningKey),
    Ed25519(ed25519_dalek::SigningKey),
    Rsa(Box<rsa::RsaPrivateKey>),
}

const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

impl Key {
    /// A new key.
    pub fn new(kind: Kind) -> Self {
        let mut random = UnwrapErr(SysRng);
        let mut seed = [0u8; 66];
        getrandom::fill(&mut seed).unwrap();
        // Below the order of the curve, which starts with 0x01ff.
        seed[0] = 0;
        Self(Arc::new(match kind {
            Kind::P256 => Secret::P256(p256::ecdsa::SigningKey::from_slice(&seed[..32]).unwrap()),
            Kind::P384 => Secret::P384(p384::ecdsa::SigningKey::from_slice(&seed[..48]).unwrap()),
            Kind::P521 => Secret::P521(p521::ecdsa::SigningKey::from_slice(&seed).unwrap()),
            Kind::Secp256k1 => Secret::Secp256k1(k256::ecdsa::SigningKey::from_slice(&seed[..32]).unwrap()),
            Kind::Ed25519 => Secret::Ed25519(ed25519_dalek::SigningKey::from_bytes(&seed[..32].try_into().unwrap())),
            Kind::Rsa(bits) => Secret::Rsa(Box::new(rsa::RsaPrivateKey::new(&mut random, bits).unwrap())),
        }))
    }

    /// A new key on P-256, and the same as PEM (PKCS #8), for whoever is to use a certificate of it.
    pub fn p256_with_pem() -> (Self, String) {
        let mut seed = [0u8; 32];
        getrandom::fill(&mut seed).unwrap();
        let secret = p256::ecdsa::SigningKey::from_slice(&seed).unwrap();
        let pem = pem("PRIVATE KEY", secret.to_pkcs8_der().unwrap().as_bytes());
        (Self(Arc::new(Secret::P256(secret))), pem)
    }

    /// The public key, as certificates carry it.
    pub fn spki(&self) -> SubjectPublicKeyInfoOwned {
        let curve = |oid: &str, point: &[u8]| {
            let curve = Any::from(ObjectIdentifier::new_unwrap(oid));
            (AlgorithmIdentifierOwned { oid: EC, parameters: Some(curve) }, point.to_vec())
        };
        let (algorithm, bytes) = match &*self.0 {
            Secret::P256(key) => curve("1.2.840.10045.3.1.7", key.verifying_key().to_sec1_point(false).as_bytes()),
            Secret::P384(key) => curve("1.3.132.0.34", key.verifying_key().to_sec1_point(false).as_bytes()),
            Secret::P521(key) => curve("1.3.132.0.35", key.verifying_key().to_sec1_point(false).as_bytes()),
            Secret::Secp256k1(key) => curve("1.3.132.0.10", key.verifying_key().to_sec1_point(false).as_bytes()),
            Secret::Ed25519(key) => {
                (AlgorithmIdentifierOwned { oid: ED25519, parameters: None }, key.verifying_key().to_bytes().to_vec())
            }
            Secret::Rsa(key) => (
                AlgorithmIdentifierOwned { oid: RSA, parameters: Some(Any::null()) },
                key.to_public_key().to_pkcs1_der().unwrap().as_bytes().to_vec(),
            ),
        };
        SubjectPublicKeyInfoOwned { algorithm, subject_public_key: BitString::from_bytes(&bytes).unwrap() }
    }

    /// The fingerprint as people see it: `sha256:` and the digest of the public key.
    pub fn fingerprint(&self) -> String {
        let digest = sha2::Sha256::digest(self.spki().to_der().unwrap());
        digest.iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"))
    }

    /// Signs a message; returns the algorithm and the signature.
    pub(crate) fn sign(&self, hash: Hash, message: &[u8]) -> (AlgorithmIdentifierOwned, Vec<u8>) {
        let digest = match hash {
            Hash::Usual => Vec::new(),
            Hash::Sha1 => sha1::Sha1::digest(message).to_vec(),
            Hash::Sha256 => sha2::Sha256::digest(message).to_vec(),
            Hash::Sha512 => sha2::Sha512::digest(message).to_vec(),
        };
        // Each takes its usual digest itself; with another one, it is given the digest.
        macro_rules! ecdsa {
            ($key:expr, $curve:ident, $usual:expr) => {{
                let signature: $curve::ecdsa::Signature = match hash {
                    Hash::Usual => $key.sign(message),
                    _ => $key.sign_prehash(&digest).unwrap(),
                };
                (ecdsa_oid(hash, $usual), None, signature.to_der().as_bytes().to_vec())
            }};
        }
        let (oid, parameters, signature) = match &*self.0 {
            Secret::P256(key) => ecdsa!(key, p256, Hash::Sha256),
            Secret::P384(key) => ecdsa!(key, p384, Hash::Usual),
            Secret::P521(key) => ecdsa!(key, p521, Hash::Sha512),
            Secret::Secp256k1(key) => ecdsa!(key, k256, Hash::Sha256),
            Secret::Ed25519(key) => {
                use ed25519_dalek::Signer as _;
                ("1.3.101.112", None, key.sign(message).to_bytes().to_vec())
            }
            Secret::Rsa(key) => {
                let key = (**key).clone();
                let (oid, signature) = match hash {
                    Hash::Sha1 => {
                        ("1.2.840.113549.1.1.5", rsa::pkcs1v15::SigningKey::<sha1::Sha1>::new(key).sign(message))
                    }
                    Hash::Sha512 => {
                        ("1.2.840.113549.1.1.13", rsa::pkcs1v15::SigningKey::<sha2::Sha512>::new(key).sign(message))
                    }
                    _ => ("1.2.840.113549.1.1.11", rsa::pkcs1v15::SigningKey::<sha2::Sha256>::new(key).sign(message)),
                };
                (oid, Some(Any::null()), signature.to_vec())
            }
        };
        (AlgorithmIdentifierOwned { oid: ObjectIdentifier::new_unwrap(oid), parameters }, signature)
    }
}

/// ECDSA with a digest; `usual` is the one of the curve, where [`Hash::Usual`] stands for SHA-384.
fn ecdsa_oid(hash: Hash, usual: Hash) -> &'static str {
    match if hash == Hash::Usual { usual } else { hash } {
        Hash::Sha1 => "1.2.840.10045.4.1",
        Hash::Sha256 => "1.2.840.10045.4.3.2",
        Hash::Usual => "1.2.840.10045.4.3.3",
        Hash::Sha512 => "1.2.840.10045.4.3.4",
    }
}
