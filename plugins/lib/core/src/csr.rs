//! Certificate signing requests as cryptographic objects: what one really asks for, as facts for the rules of
//! [`ocm_rules::csr`].

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_api::names::{annotations, labels};
use ocm_rules::csr as rules;
pub use ocm_rules::csr::{OwnAgent, Settings, Signature};
use ocm_rules::identity;
pub use ocm_rules::{Code, Violation};
use x509_parser::asn1_rs::Tag;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::extensions::ParsedExtension;
use x509_parser::oid_registry as oid;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;

use crate::der;

/// A request: the object around it, and what it asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Name of the object.
    pub name: String,
    /// The cluster that its label names; a claim.
    pub cluster_label: Option<String>,
    /// The add-on that its label names; a claim.
    pub addon_label: Option<String>,
    /// `spec.signerName`.
    pub signer: String,
    /// `spec.usages`.
    pub usages: Vec<String>,
    /// `spec.expirationSeconds`.
    pub lifetime_seconds: Option<i32>,
    /// Who created the object, as the API server recorded it.
    pub requester: Requester,
    /// The user that OCM's gRPC server says to have asked; anybody may write it.
    pub grpc_user: Option<String>,
    /// When the object was created.
    pub created: Option<Timestamp>,
    /// What has become of it.
    pub state: State,
    /// When that was decided.
    pub decided: Option<Timestamp>,
    /// What it asks for; or why that cannot be read.
    pub content: Result<Content, Unreadable>,
}

/// `spec.username` and what belongs to it: the API server writes them, nobody else can.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requester {
    /// User name.
    pub user: String,
    /// UID; service accounts have one unless somebody acted as them.
    pub uid: Option<String>,
    /// Groups.
    pub groups: Vec<String>,
    /// What they authenticated with: `JTI=…` for a token, `X509SHA256=…` for a client certificate. Old API servers do
    /// not say.
    pub credential_ids: Vec<String>,
}

/// What has become of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody has decided.
    Pending,
    /// Approved, no certificate yet.
    Approved,
    /// The certificate is there.
    Issued,
    /// Denied.
    Denied,
    /// The signer failed.
    Failed,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What a request asks for: everything that its own signature covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Every common name of the subject.
    pub common_names: Vec<String>,
    /// Every organisation of the subject: the holder's groups.
    pub organizations: Vec<String>,
    /// Dotted names of the subject's other attributes.
    pub other_attributes: Vec<String>,
    /// Subject alternative names.
    pub alternative_names: Vec<String>,
    /// Other extensions and attributes that were asked for.
    pub extensions: Vec<String>,
    /// The key.
    pub key: Key,
    /// SHA-256 over the key's `SubjectPublicKeyInfo`, lower-case hex: the request's fingerprint.
    pub spki_sha256: String,
    /// Whether the request is signed with its own key, by an algorithm that can be trusted.
    pub signature: Signature,
}

/// A public key's algorithm and strength.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    fn facts(&self) -> rules::Key<'_> {
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

/// Why the content of a request cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// Not exactly one PEM block of the right kind.
    Pem,
    /// Not a PKCS #10 request; the whole sentence.
    Der(String),
    /// A name that is no plain text.
    Text,
}

impl Unreadable {
    fn der(why: impl fmt::Display) -> Self {
        Self::Der(format!("it is not a PKCS #10 request: {why}"))
    }

    /// The reason as a sentence.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Pem => "it is not exactly one PEM block CERTIFICATE REQUEST",
            Self::Der(sentence) => sentence,
            Self::Text => "its subject holds a value that is no UTF-8 or printable string",
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for Unreadable {}

impl Request {
    /// Reads an object of the API.
    pub fn read(object: &CertificateSigningRequest) -> Self {
        let metadata = &object.metadata;
        let spec = &object.spec;
        let label = |key: &str| metadata.labels.as_ref().and_then(|labels| labels.get(key)).cloned();
        let conditions = object.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let has = |kind: &str| conditions.iter().any(|condition| condition.type_ == kind);
        let issued = object
            .status
            .as_ref()
            .and_then(|status| status.certificate.as_ref())
            .is_some_and(|certificate| !certificate.0.is_empty());
        let state = match () {
            // Denied wins: the API server forbids both, but a rule must not depend on that.
            () if has("Denied") => State::Denied,
            () if has("Failed") => State::Failed,
            () if issued => State::Issued,
            () if has("Approved") => State::Approved,
            () => State::Pending,
        };
        // The API server writes the time of the transition; approvers may write the other one by their own clock.
        let decided = conditions
            .iter()
            .filter(|condition| condition.type_ != "Failed" || state == State::Failed)
            .filter_map(|condition| condition.last_transition_time.as_ref().or(condition.last_update_time.as_ref()))
            .map(|time| time.0)
            .max();
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            cluster_label: label(labels::CLUSTER_NAME),
            addon_label: label(labels::ADDON_NAME),
            signer: spec.signer_name.clone(),
            usages: spec.usages.clone().unwrap_or_default(),
            lifetime_seconds: spec.expiration_seconds,
            requester: Requester {
                user: spec.username.clone().unwrap_or_default(),
                uid: spec.uid.clone().filter(|uid| !uid.is_empty()),
                groups: spec.groups.clone().unwrap_or_default(),
                credential_ids: spec
                    .extra
                    .as_ref()
                    .and_then(|extra| extra.get(identity::CREDENTIAL_ID))
                    .cloned()
                    .unwrap_or_default(),
            },
            grpc_user: metadata
                .annotations
                .as_ref()
                .and_then(|annotations| annotations.get(annotations::CSR_USER))
                .cloned(),
            created: metadata.creation_timestamp.as_ref().map(|time| time.0),
            state,
            decided,
            content: Content::read(&spec.request.0),
        }
    }

    /// The digest of the key; none if it cannot be read.
    pub fn key_digest(&self) -> Option<&str> {
        self.content.as_ref().ok().map(|content| content.spki_sha256.as_str())
    }

    /// The fingerprint as people see and type it: `sha256:` and the hex digest of the key. None if unreadable.
    pub fn fingerprint(&self) -> Option<String> {
        self.content.as_ref().ok().map(|content| format!("sha256:{}", content.spki_sha256))
    }

    /// The facts that the rules judge.
    pub fn facts(&self) -> rules::Csr<'_, String> {
        rules::Csr {
            cluster_label: self.cluster_label.as_deref(),
            addon_label: self.addon_label.as_deref(),
            grpc_user: self.grpc_user.as_deref(),
            signer: &self.signer,
            usages: &self.usages,
            lifetime_seconds: self.lifetime_seconds.map(i64::from),
            requester: identity::Requester {
                user: &self.requester.user,
                uid: self.requester.uid.as_deref(),
                groups: &self.requester.groups,
                credential_ids: &self.requester.credential_ids,
            },
            content: self.content.as_ref().map(Content::facts).map_err(Unreadable::as_str),
        }
    }

    /// The user who asked; behind the hub's gRPC server the one that it names.
    pub fn asked_by(&self) -> &str {
        self.facts().asked_by()
    }

    /// Whether the request is an add-on's, which other approvers decide about.
    pub fn is_addons(&self) -> bool {
        self.facts().is_addons()
    }

    /// Whether an agent of `cluster` renews its own certificate with this request, which the hub itself decides about.
    pub fn is_renewal(&self, cluster: &str) -> bool {
        self.facts().is_renewal(cluster)
    }

    /// Whether the request, right or wrong, asks for the name of an agent of `cluster`.
    pub fn names_agent_of(&self, cluster: &str) -> bool {
        self.facts().names_agent_of(cluster)
    }

    /// Whether this is the request of an agent that the caller installed, see [`rules::Csr::is_of`].
    pub fn is_of(&self, own: &OwnAgent<'_>) -> bool {
        self.facts().is_of(own)
    }

    /// Checks the request against every rule for the first certificate of an agent of `cluster`.
    /// An empty answer means that it asks for exactly that and nothing else.
    pub fn violations(&self, cluster: &str, settings: &Settings) -> Vec<Violation> {
        rules::first_certificate(&self.facts(), cluster, settings)
    }
}

/// The pending request of the agent that the caller installed. Requests of others for the same name are none of its
/// business; of several of its own, which an agent creates when it starts again, the newest counts.
pub fn own_request<'r>(requests: &'r [Request], own: &OwnAgent<'_>) -> Option<&'r Request> {
    let pending = requests.iter().filter(|request| request.state == State::Pending && request.is_of(own));
    pending.max_by_key(|request| request.created)
}

impl Content {
    /// Reads a PEM-encoded PKCS #10 request (RFC 2986), as `spec.request` holds it.
    ///
    /// # Errors
    /// Says what kept it from being read.
    pub fn read(pem: &[u8]) -> Result<Self, Unreadable> {
        let der = only_pem_block(pem)?;
        if !der::is_request(&der) {
            return Err(Unreadable::der("it is not laid out and encoded as one"));
        }
        let (rest, request) = X509CertificationRequest::from_der(&der).map_err(Unreadable::der)?;
        if !rest.is_empty() {
            return Err(Unreadable::der("something follows it"));
        }
        let info = &request.certification_request_info;
        let mut content = Self {
            common_names: Vec::new(),
            organizations: Vec::new(),
            other_attributes: Vec::new(),
            alternative_names: Vec::new(),
            extensions: Vec::new(),
            key: key(&info.subject_pki),
            spki_sha256: hex(ring::digest::digest(&ring::digest::SHA256, info.subject_pki.raw).as_ref()),
            signature: Signature::Unverifiable,
        };
        for attribute in info.subject.iter_attributes() {
            let kind = attribute.attr_type();
            if *kind == oid::OID_X509_COMMON_NAME || *kind == oid::OID_X509_ORGANIZATION_NAME {
                // Readers differ about the others.
                if !matches!(attribute.attr_value().tag(), Tag::Utf8String | Tag::PrintableString) {
                    return Err(Unreadable::Text);
                }
                let value = attribute.as_str().map_err(|_| Unreadable::Text)?.to_owned();
                match *kind == oid::OID_X509_COMMON_NAME {
                    true => content.common_names.push(value),
                    false => content.organizations.push(value),
                }
            } else {
                content.other_attributes.push(kind.to_id_string());
            }
        }
        for attribute in info.iter_attributes() {
            match attribute.parsed_attribute() {
                ParsedCriAttribute::ExtensionRequest(requested) => {
                    // What asks for nothing is nothing that an agent sends, and readers differ about a second value.
                    if requested.extensions.is_empty() {
                        content.extensions.push(attribute.oid.to_id_string());
                    }
                    for extension in &requested.extensions {
                        match extension.parsed_extension() {
                            ParsedExtension::SubjectAlternativeName(names) => content
                                .alternative_names
                                .extend(names.general_names.iter().map(|name| format!("{name}"))),
                            _ => content.extensions.push(extension.oid.to_id_string()),
                        }
                        // An empty list of names, or one that cannot be read, is still an extension that was asked for.
                        if extension.oid == oid::OID_X509_EXT_SUBJECT_ALT_NAME && content.alternative_names.is_empty() {
                            content.alternative_names.push("unreadable".to_owned());
                        }
                    }
                }
                _ => content.extensions.push(attribute.oid.to_id_string()),
            }
        }
        content.signature = signature(&request, &content.key);
        Ok(content)
    }

    fn facts(&self) -> rules::Content<'_, String> {
        rules::Content {
            common_names: &self.common_names,
            organizations: &self.organizations,
            other_attributes: &self.other_attributes,
            alternative_names: &self.alternative_names,
            extensions: &self.extensions,
            key: self.key.facts(),
            signature: self.signature,
        }
    }
}

/// The contents of exactly one PEM block `CERTIFICATE REQUEST` with nothing but blanks around it and base64 in it.
///
/// Signers take the first block that they can read, wherever it begins and whatever headers it has. With one block and
/// nothing else there is nothing to choose.
fn only_pem_block(pem: &[u8]) -> Result<Vec<u8>, Unreadable> {
    use base64::Engine;
    let text = std::str::from_utf8(pem.trim_ascii()).map_err(|_| Unreadable::Pem)?;
    let lines: Vec<&str> = text.lines().map(str::trim_ascii_end).collect();
    let ["-----BEGIN CERTIFICATE REQUEST-----", body @ .., "-----END CERTIFICATE REQUEST-----"] = lines.as_slice()
    else {
        return Err(Unreadable::Pem);
    };
    base64::engine::general_purpose::STANDARD.decode(body.concat()).map_err(|_| Unreadable::Pem)
}

fn key(spki: &x509_parser::x509::SubjectPublicKeyInfo<'_>) -> Key {
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

/// Bits of a number, whatever zeros stand in front.
fn bits(number: &[u8]) -> usize {
    match number.iter().position(|byte| *byte != 0) {
        Some(first) => (number.len() - first) * 8 - number[first].leading_zeros() as usize,
        None => 0,
    }
}

/// Verifies the signature of a request with the key in it, by a crate of the curve.
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

fn signature(request: &X509CertificationRequest<'_>, key: &Key) -> Signature {
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
fn digest_of(algorithm: &x509_parser::oid_registry::Oid<'_>) -> Option<&'static ring::digest::Algorithm> {
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

/// Bytes as lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
