//! Signatures that Go and OpenSSL verify and ring, which our own commands stand on, does not.

use rustls_pki_types::{AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm, alg_id};

use super::client::Client;

/// The algorithms that a client takes.
pub(super) fn of(client: Client) -> Vec<&'static dyn SignatureVerificationAlgorithm> {
    // The first one of an algorithm decides, so the lenient one comes first.
    let mut algorithms: Vec<&'static dyn SignatureVerificationAlgorithm> = match client {
        Client::Rustls => vec![],
        Client::Go => vec![&WeakRsa, &P521],
        Client::OpenSsl => vec![&P521],
    };
    algorithms.extend_from_slice(webpki::ALL_VERIFICATION_ALGS);
    algorithms
}

/// RSA with keys from 1024 bits on.
#[derive(Debug)]
struct WeakRsa;

impl SignatureVerificationAlgorithm for WeakRsa {
    fn verify_signature(&self, public_key: &[u8], message: &[u8], signature: &[u8]) -> Result<(), InvalidSignature> {
        let algorithm = &ring::signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY;
        let key = ring::signature::UnparsedPublicKey::new(algorithm, public_key);
        key.verify(message, signature).map_err(|_| InvalidSignature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::RSA_ENCRYPTION
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::RSA_PKCS1_SHA256
    }
}

/// ECDSA with the largest curve of NIST.
#[derive(Debug)]
struct P521;

impl SignatureVerificationAlgorithm for P521 {
    fn verify_signature(&self, public_key: &[u8], message: &[u8], signature: &[u8]) -> Result<(), InvalidSignature> {
        use p521::ecdsa::signature::Verifier as _;
        let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(public_key).map_err(|_| InvalidSignature)?;
        let signature = p521::ecdsa::Signature::from_der(signature).map_err(|_| InvalidSignature)?;
        key.verify(message, &signature).map_err(|_| InvalidSignature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::ECDSA_P521
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::ECDSA_SHA512
    }
}
