//! Signatures of images as cosign makes them with a key: of a payload that names the digest of the image.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ED25519,
    EcdsaKeyPair, KeyPair as _, UnparsedPublicKey, VerificationAlgorithm,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use x509_parser::oid_registry as oid;
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::SubjectPublicKeyInfo;

use crate::digest::Digest;
use crate::error::{Error, ErrorKind};
use crate::reference::Reference;

/// The media type of a payload, and the annotation of its layer that holds the signature.
pub(crate) const PAYLOAD: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
pub(crate) const ANNOTATION: &str = "dev.cosignproject.cosign/signature";
/// What the payload says that it is.
const TYPE: &str = "cosign container image signature";

/// A payload and the signature of it. Whose, and of what, is seen when it is verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// The payload, base64.
    payload: String,
    /// The signature, base64.
    signature: String,
}

/// Why an image is not signed as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unverified {
    /// There is no signature.
    #[error("it is not signed")]
    Unsigned,
    /// None is by this key.
    #[error("none of its signatures is by this key")]
    OtherKey,
    /// Those that are by this key are of other images.
    #[error("the signatures by this key are of another image")]
    OtherImage,
}

/// Why a text is no key that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is no public key in PEM.
    #[error("it is no public key in PEM, which begins with -----BEGIN PUBLIC KEY-----")]
    NotPublic,
    /// Its algorithm is none of those that are known.
    #[error("it is of none of the algorithms ECDSA with P-256, ECDSA with P-384 and Ed25519")]
    Algorithm,
    /// It is no private key in PEM.
    #[error("it is no private key in PEM (PKCS #8), which begins with -----BEGIN PRIVATE KEY-----")]
    NotPrivate,
    /// It is protected by a password.
    #[error("it is protected by a password, and only one that is not can be used; cosign sign takes those of cosign")]
    Encrypted,
    /// It is not of the one algorithm that signs.
    #[error("it is not of the algorithm ECDSA with P-256")]
    NotP256,
}

/// The key by which signatures are verified.
#[derive(Clone, Debug)]
pub struct PublicKey {
    key: Vec<u8>,
    /// Tools differ in the hash that goes with P-384.
    algorithms: Vec<&'static dyn VerificationAlgorithm>,
}

impl PublicKey {
    /// Reads a key in PEM, such as `cosign.pub`.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let found = pem::parse_many(text).map_err(|_| KeyError::NotPublic)?;
        let [one] = found.as_slice() else { return Err(KeyError::NotPublic) };
        if one.tag() != "PUBLIC KEY" {
            return Err(KeyError::NotPublic);
        }
        let (rest, info) = SubjectPublicKeyInfo::from_der(one.contents()).map_err(|_| KeyError::NotPublic)?;
        let algorithm = &info.algorithm;
        let curve = algorithm.parameters.as_ref().and_then(|parameters| parameters.as_oid().ok());
        let algorithms: Vec<&'static dyn VerificationAlgorithm> = if algorithm.algorithm == oid::OID_SIG_ED25519 {
            vec![&ED25519]
        } else if algorithm.algorithm != oid::OID_KEY_TYPE_EC_PUBLIC_KEY || !rest.is_empty() {
            return Err(KeyError::Algorithm);
        } else if curve.as_ref() == Some(&oid::OID_EC_P256) {
            vec![&ECDSA_P256_SHA256_ASN1]
        } else if curve.as_ref() == Some(&oid::OID_NIST_EC_P384) {
            vec![&ECDSA_P384_SHA384_ASN1, &ECDSA_P384_SHA256_ASN1]
        } else {
            return Err(KeyError::Algorithm);
        };
        Ok(Self { key: info.subject_public_key.data.to_vec(), algorithms })
    }

    /// Whether one of these signatures is by this key and of the image of this digest.
    ///
    /// # Errors
    /// Why none is.
    pub fn verify(&self, signatures: &[Signature], image: &Digest) -> Result<(), Unverified> {
        let mut why = if signatures.is_empty() { Unverified::Unsigned } else { Unverified::OtherKey };
        for signature in signatures {
            let Some(payload) = self.signed(signature) else { continue };
            if names(&payload, image) {
                return Ok(());
            }
            why = Unverified::OtherImage;
        }
        Err(why)
    }

    /// The payload, if this key has signed it.
    fn signed(&self, Signature { payload, signature }: &Signature) -> Option<Vec<u8>> {
        let (payload, signature) = (STANDARD.decode(payload).ok()?, STANDARD.decode(signature).ok()?);
        let by_it = |algorithm: &&'static dyn VerificationAlgorithm| {
            UnparsedPublicKey::new(*algorithm, &self.key).verify(&payload, &signature).is_ok()
        };
        self.algorithms.iter().any(by_it).then_some(payload)
    }
}

impl Signature {
    /// A payload and the signature of it, which is in base64.
    pub fn new(payload: &[u8], signature: &str) -> Self {
        Self { payload: STANDARD.encode(payload), signature: signature.trim().to_owned() }
    }

    /// The payload, and the signature in base64.
    pub(crate) fn parts(&self) -> (Vec<u8>, &str) {
        (STANDARD.decode(&self.payload).unwrap_or_default(), &self.signature)
    }
}

/// Whether a payload is about the image of this digest.
fn names(payload: &[u8], image: &Digest) -> bool {
    let Ok(payload) = serde_json::from_slice::<Value>(payload) else { return false };
    let critical = &payload["critical"];
    critical["type"] == TYPE && critical["image"]["docker-manifest-digest"] == image.to_string().as_str()
}

/// Whether the image of this digest is signed by this key.
pub(crate) fn verify(
    reference: &Reference,
    key: &PublicKey,
    signatures: &[Signature],
    digest: &Digest,
) -> Result<(), Error> {
    key.verify(signatures, digest).map_err(|why| {
        let kind = match why {
            Unverified::Unsigned => ErrorKind::Unsigned,
            Unverified::OtherKey | Unverified::OtherImage => ErrorKind::WrongSignature,
        };
        Error::new(kind, format!("{reference} is not signed as it must be")).because(why)
    })
}

/// The key that signs.
pub struct SigningKey(EcdsaKeyPair);

impl SigningKey {
    /// Reads a private key in PEM (PKCS #8), without a password: ECDSA with P-256.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let found = pem::parse(text).map_err(|_| KeyError::NotPrivate)?;
        if found.tag().starts_with("ENCRYPTED ") {
            return Err(KeyError::Encrypted);
        }
        if found.tag() != "PRIVATE KEY" {
            return Err(KeyError::NotPrivate);
        }
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, found.contents(), &random);
        pair.map(Self).map_err(|_| KeyError::NotP256)
    }

    /// Signs the image that a reference names by its digest; none where it names none, or the machine has no random numbers.
    pub(crate) fn sign(&self, image: &Reference) -> Option<Signature> {
        let digest = image.digest.as_ref()?;
        let payload = json!({
            "critical": {
                "identity": {"docker-reference": image.place()},
                "image": {"docker-manifest-digest": digest.to_string()},
                "type": TYPE,
            },
            "optional": null,
        });
        let payload = payload.to_string().into_bytes();
        let signature = self.0.sign(&SystemRandom::new(), &payload).ok()?;
        Some(Signature::new(&payload, &STANDARD.encode(signature)))
    }

    /// The key that verifies what this one signs.
    pub fn public(&self) -> PublicKey {
        PublicKey { key: self.0.public_key().as_ref().to_vec(), algorithms: vec![&ECDSA_P256_SHA256_ASN1] }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, SigningKey as _};

    use super::*;

    fn image(of: &[u8]) -> Reference {
        Reference::parse("r.example/p:v1").unwrap().pinned(Digest::of(of))
    }

    fn payload(of: &[u8]) -> Vec<u8> {
        SigningKey::parse(&KeyPair::generate().unwrap().serialize_pem()).unwrap().sign(&image(of)).unwrap().parts().0
    }

    #[test]
    fn what_a_key_has_signed_is_verified_by_it_and_by_no_other() {
        let (pair, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let signing = SigningKey::parse(&pair.serialize_pem()).unwrap();
        let key = PublicKey::parse(&pair.public_key_pem()).unwrap();
        let stranger = PublicKey::parse(&other.public_key_pem()).unwrap();
        let digest = Digest::of(b"manifest");
        let signature = signing.sign(&image(b"manifest")).unwrap();
        assert_eq!(key.verify(std::slice::from_ref(&signature), &digest), Ok(()));
        assert_eq!(signing.public().verify(std::slice::from_ref(&signature), &digest), Ok(()));
        assert_eq!(stranger.verify(std::slice::from_ref(&signature), &digest), Err(Unverified::OtherKey));
        assert_eq!(key.verify(&[], &digest), Err(Unverified::Unsigned));
        // A right signature of another image is none of this one, whatever it lies beside.
        assert_eq!(key.verify(std::slice::from_ref(&signature), &Digest::of(b"other")), Err(Unverified::OtherImage));
        // One of several is enough.
        let foreign = SigningKey::parse(&other.serialize_pem()).unwrap().sign(&image(b"manifest")).unwrap();
        assert_eq!(key.verify(&[foreign, signature.clone()], &digest), Ok(()));
        // What was changed afterwards is not signed.
        let (payload, proof) = signature.parts();
        let text = String::from_utf8(payload).unwrap();
        let changed = text.replace(digest.hex(), Digest::of(b"other").hex());
        let changed = Signature::new(changed.as_bytes(), proof);
        assert_eq!(key.verify(&[changed], &Digest::of(b"other")), Err(Unverified::OtherKey));
        assert_eq!(key.verify(&[Signature::new(text.as_bytes(), "no base64")], &digest), Err(Unverified::OtherKey));
    }

    #[test]
    fn a_payload_of_another_kind_is_no_signature_of_an_image() {
        let pair = KeyPair::generate().unwrap();
        let key = PublicKey::parse(&pair.public_key_pem()).unwrap();
        let digest = Digest::of(b"manifest");
        for payload in [
            json!({"critical": {"image": {"docker-manifest-digest": digest.to_string()}, "type": "atomic container signature"}}),
            json!({"image": {"docker-manifest-digest": digest.to_string()}, "type": TYPE}),
            json!(digest.to_string()),
        ] {
            let payload = payload.to_string();
            let signature =
                Signature::new(payload.as_bytes(), &STANDARD.encode(pair.sign(payload.as_bytes()).unwrap()));
            assert_eq!(key.verify(&[signature], &digest), Err(Unverified::OtherImage), "{payload}");
        }
    }

    #[test]
    fn keys_of_the_usual_algorithms_verify() {
        for algorithm in [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ED25519] {
            let pair = KeyPair::generate_for(algorithm).unwrap();
            let key = PublicKey::parse(&pair.public_key_pem()).unwrap();
            let payload = payload(b"manifest");
            let signature = Signature::new(&payload, &STANDARD.encode(pair.sign(&payload).unwrap()));
            assert_eq!(key.verify(&[signature], &Digest::of(b"manifest")), Ok(()), "{:?}", pair.algorithm());
        }
    }

    #[test]
    fn what_is_no_key_is_refused_with_the_reason() {
        let pair = KeyPair::generate().unwrap();
        assert_eq!(PublicKey::parse("").unwrap_err(), KeyError::NotPublic);
        assert_eq!(PublicKey::parse(&pair.serialize_pem()).unwrap_err(), KeyError::NotPublic);
        let two = format!("{}{}", pair.public_key_pem(), pair.public_key_pem());
        assert_eq!(PublicKey::parse(&two).unwrap_err(), KeyError::NotPublic);
        let garbage = pem::encode(&pem::Pem::new("PUBLIC KEY", [1, 2, 3]));
        assert_eq!(PublicKey::parse(&garbage).unwrap_err(), KeyError::NotPublic);
        let refused = |text: &str| SigningKey::parse(text).err();
        assert_eq!(refused(&pair.public_key_pem()), Some(KeyError::NotPrivate));
        let locked = pem::encode(&pem::Pem::new("ENCRYPTED SIGSTORE PRIVATE KEY", [1]));
        assert_eq!(refused(&locked), Some(KeyError::Encrypted));
        let other = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        assert_eq!(refused(&other.serialize_pem()), Some(KeyError::NotP256));
    }
}
