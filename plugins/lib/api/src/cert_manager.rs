//! `cert-manager.io/v1`: a certificate that cert-manager issues and renews.
//!
//! Only what we ask for; what else there is stays raw JSON. Source: <https://cert-manager.io/docs/reference/api-docs/>.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::member::Member;

/// The annotation of a webhook configuration that names, as `NAMESPACE/NAME`, the Certificate whose CA is written into each
/// `caBundle` (<https://cert-manager.io/docs/reference/annotations/>).
pub const INJECT_CA_FROM: &str = "cert-manager.io/inject-ca-from";

api_object! {
    /// A certificate that is wanted. Upstream: `certmanager/v1.Certificate`.
    Certificate { spec: CertificateSpec, status: Value }
    group "cert-manager.io", version "v1", plural "certificates",
    scope NamespaceResourceScope
}

/// What it is to be. Upstream: `CertificateSpec`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase", default)]
pub struct CertificateSpec {
    /// The Secret that holds certificate and key.
    pub secret_name: String,
    /// What of us that Secret bears.
    #[serde(skip_serializing_if = "SecretTemplate::is_empty")]
    pub secret_template: SecretTemplate,
    /// Who signs it.
    pub issuer_ref: Issuer,
    /// DNS names that it is valid for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dns_names: Vec<String>,
    /// What it may be used for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub usages: Vec<String>,
    /// How long it lives, as Go writes durations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// Its key.
    pub private_key: PrivateKey,
}

/// Upstream: `CertificateSecretTemplate`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(default)]
pub struct SecretTemplate {
    /// Labels of the Secret.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl SecretTemplate {
    fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
}

/// An issuer. Upstream: `ObjectReference`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(default)]
pub struct Issuer {
    /// API group; none: cert-manager's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// `Issuer`, `ClusterIssuer`, or a kind of another group; none: `Issuer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its name.
    pub name: String,
}

/// Upstream: `CertificatePrivateKey`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase", default)]
pub struct PrivateKey {
    /// `RSA`, `ECDSA` or `Ed25519`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,
    /// Bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// `Always`: each certificate has a key of its own. `Never`: they share one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotation_policy: Option<String>,
}
