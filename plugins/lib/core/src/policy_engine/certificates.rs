//! The certificates by which the API server knows the webhook.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The name of the webhook's Service as the API server calls it: what the serving certificate is valid for.
pub const SERVER_NAME: &str = "ocm-policy-webhook.ocm-policy-engine.svc";

/// A certificate and its private key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// The key, which nobody prints.
    pub key: String,
}

impl Pair {
    /// What a Secret of type `kubernetes.io/tls` holds; none where that is no text.
    pub fn of_secret(secret: &Value) -> Option<Self> {
        let text = |key: &str| String::from_utf8(STANDARD.decode(secret["data"][key].as_str()?).ok()?).ok();
        Some(Self { certificate: text("tls.crt")?, key: text("tls.key")? })
    }

    /// The member `data` of such a Secret.
    pub fn to_data(&self) -> Value {
        let Self { certificate, key } = self;
        json!({"tls.crt": STANDARD.encode(certificate), "tls.key": STANDARD.encode(key)})
    }
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { certificate, key } = self;
        f.debug_struct("Pair")
            .field("certificate", certificate)
            .field("key", &format_args!("{} bytes", key.len()))
            .finish()
    }
}

/// What an engine is planned with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    /// The authority that signs from now on.
    pub authority: Pair,
    /// What the webhook serves with.
    pub serving: Pair,
    /// The authorities that the API server is to trust, as PEM: the one that signs from now on, and those whose
    /// certificates may still be served.
    pub bundle: String,
}
