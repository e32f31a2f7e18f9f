//! Certificate signing requests as cryptographic objects: what one really asks for, and whether it may be approved
//! for a cluster's agent.
//!
//! A certificate is an identity for a year: its common name and organisations decide what its holder may do on the
//! hub. Therefore nothing of a request is taken on trust: labels, annotations and names of the object are claims of
//! whoever created it, and only what the signature covers is believed.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_api::names::{annotations, bootstrap, identity, labels, signers};
use x509_parser::asn1_rs::Tag;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::extensions::ParsedExtension;
use x509_parser::oid_registry as oid;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;

use crate::der;

/// How many bits an RSA key may have; longer ones cannot be verified here.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// Longest lifetime that may be asked for, in seconds: a year, which is what agents ask for by default.
pub const MAX_LIFETIME_SECONDS: i32 = 31_536_000;

/// `spec.extra` of what a request was created with: `JTI=…` for a token, `X509SHA256=…` for a client certificate.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

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
    /// Whether the requester showed a client certificate. Old API servers do not say.
    pub showed_certificate: bool,
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

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::P256 => f.write_str("ECDSA P-256"),
            Self::P384 => f.write_str("ECDSA P-384"),
            Self::P521 => f.write_str("ECDSA P-521"),
            Self::Ed25519 => f.write_str("Ed25519"),
            Self::Rsa(bits) => write!(f, "RSA {bits}"),
            Self::Other(name) => f.write_str(name),
        }
    }
}

/// Proof of possession of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    /// Made with the key of the request.
    Valid,
    /// Not made with the key of the request.
    Invalid,
    /// Made by an algorithm that proves nothing or that cannot be verified.
    Unverifiable,
}

/// Why the content of a request cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Not exactly one PEM block of the right kind.
    #[error("it is not exactly one PEM block CERTIFICATE REQUEST")]
    Pem,
    /// Not a PKCS #10 request.
    #[error("it is not a PKCS #10 request: {0}")]
    Der(String),
    /// A name that is no plain text.
    #[error("its subject holds a value that is no UTF-8 or printable string")]
    Text,
}

/// Why a request is not approved. The word is stable: scripts match it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// The request cannot be read.
    Unreadable,
    /// The label names no cluster, or another one.
    ClusterLabel,
    /// There is not exactly one common name.
    CommonNames,
    /// The common name is not that of an agent of this cluster.
    CommonName,
    /// An organisation that is not this cluster's.
    ForeignOrganization,
    /// This cluster's organisation is missing.
    MissingOrganization,
    /// The subject has attributes besides common name and organisation.
    SubjectAttributes,
    /// Subject alternative names are asked for.
    AlternativeNames,
    /// Other extensions or attributes are asked for.
    Extensions,
    /// Another signer than the one for this requester.
    Signer,
    /// Usages other than those of a client certificate.
    Usages,
    /// A longer lifetime than allowed.
    Lifetime,
    /// The key is too weak or of a kind that cannot be verified.
    WeakKey,
    /// The request is not signed with its own key.
    Signature,
    /// The requester is nobody who may register clusters.
    Requester,
    /// The requester has the name of a service account or a bootstrap token but not its credentials.
    Impersonated,
    /// It claims to come from OCM's gRPC server and does not.
    GrpcClaim,
}

impl Code {
    /// Every code, for documentation and tests.
    pub const ALL: [Self; 17] = [
        Self::Unreadable,
        Self::ClusterLabel,
        Self::CommonNames,
        Self::CommonName,
        Self::ForeignOrganization,
        Self::MissingOrganization,
        Self::SubjectAttributes,
        Self::AlternativeNames,
        Self::Extensions,
        Self::Signer,
        Self::Usages,
        Self::Lifetime,
        Self::WeakKey,
        Self::Signature,
        Self::Requester,
        Self::Impersonated,
        Self::GrpcClaim,
    ];
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One rule that a request breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The rule.
    pub code: Code,
    /// What the request says, for people.
    pub detail: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

/// What the administrator allows beyond the rules' own values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Users who may ask for a cluster's first certificate, besides OCM's own bootstrap identities. Exact names.
    pub requesters: Vec<String>,
    /// Longest lifetime that may be asked for, in seconds.
    pub max_lifetime_seconds: i32,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { requesters: Vec::new(), max_lifetime_seconds: MAX_LIFETIME_SECONDS }
    }
}

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
                showed_certificate: spec
                    .extra
                    .as_ref()
                    .and_then(|extra| extra.get(CREDENTIAL_ID))
                    .is_some_and(|ids| ids.iter().any(|id| id.starts_with("X509SHA256="))),
            },
            grpc_user: metadata
                .annotations
                .as_ref()
                .and_then(|annotations| annotations.get(annotations::CSR_USER))
                .cloned(),
            created: metadata.creation_timestamp.as_ref().map(|time| time.0),
            state,
            content: Content::read(&spec.request.0),
        }
    }

    /// The fingerprint as people see and type it: `sha256:` and the hex digest of the key. None if unreadable.
    pub fn fingerprint(&self) -> Option<String> {
        self.content.as_ref().ok().map(|content| format!("sha256:{}", content.spki_sha256))
    }

    /// The user who asked, behind OCM's gRPC server the one that it names.
    pub fn asked_by(&self) -> &str {
        match &self.grpc_user {
            Some(user) if self.requester.user == identity::GRPC_SERVER_USER => user,
            _ => &self.requester.user,
        }
    }

    /// Whether the request is an add-on's, which other approvers decide about.
    ///
    /// A label alone hides nothing: whoever asks for the name or the groups of a cluster's agent is judged as one.
    pub fn is_addons(&self) -> bool {
        let Ok(content) = &self.content else { return self.addon_label.is_some() };
        let all_addons =
            !content.common_names.is_empty() && content.common_names.iter().all(|name| is_addon_user(name));
        let any_agents = content.common_names.iter().any(|name| identity::parse_agent_user(name).is_some())
            || content.organizations.iter().any(|group| is_agents_group(group));
        !any_agents && (all_addons || self.addon_label.is_some())
    }

    /// Whether an agent of `cluster` renews its own certificate with this request, which the hub itself decides about.
    pub fn is_renewal(&self, cluster: &str) -> bool {
        let user = self.asked_by();
        agent_of(user, cluster) && self.content.as_ref().is_ok_and(|content| content.common_names == [user])
    }

    /// Whether the request, right or wrong, asks for the name of an agent of `cluster`.
    pub fn names_agent_of(&self, cluster: &str) -> bool {
        self.content.as_ref().is_ok_and(|content| content.common_names.iter().any(|name| agent_of(name, cluster)))
    }

    /// Checks the request against every rule for the first certificate of an agent of `cluster`.
    /// An empty answer means that it asks for exactly that and nothing else.
    pub fn breaches(&self, cluster: &str, allowance: &Allowance) -> Vec<Breach> {
        let mut breaches = Vec::new();
        let mut breach = |code, detail: String| breaches.push(Breach { code, detail });
        if self.cluster_label.as_deref() != Some(cluster) {
            breach(
                Code::ClusterLabel,
                format!("the label names {:?}", self.cluster_label.as_deref().unwrap_or("nothing")),
            );
        }
        self.check_requester(allowance, &mut breach);
        let expected = match self.requester.user == identity::GRPC_SERVER_USER {
            true => signers::GRPC,
            false => signers::KUBE_APISERVER_CLIENT,
        };
        if self.signer != expected {
            breach(Code::Signer, format!("signer {} instead of {expected}", self.signer));
        }
        self.check_usages(&mut breach);
        if let Some(seconds) = self.lifetime_seconds
            && (seconds > allowance.max_lifetime_seconds || seconds <= 0)
        {
            let most = allowance.max_lifetime_seconds;
            breach(Code::Lifetime, format!("{seconds}s asked for, {most}s allowed"));
        }
        match &self.content {
            Ok(content) => content.check(cluster, &mut breach),
            Err(error) => breach(Code::Unreadable, error.to_string()),
        }
        breaches
    }

    fn check_requester(&self, allowance: &Allowance, breach: &mut impl FnMut(Code, String)) {
        let user = &self.requester.user;
        let is_grpc = user == identity::GRPC_SERVER_USER;
        if !is_grpc && (self.grpc_user.is_some() || self.signer == signers::GRPC) {
            let detail = format!("it claims OCM's gRPC path, but was created by {user:?}");
            return breach(Code::GrpcClaim, detail);
        }
        if let Some(lack) = self.requester.lack() {
            return breach(Code::Impersonated, format!("{user:?} {lack}"));
        }
        if !is_grpc {
            if !self.requester.bootstraps(allowance) {
                breach(Code::Requester, format!("{user:?} may not register clusters"));
            }
            return;
        }
        // What stands behind the gRPC server is known by name only; its groups are not recorded.
        match self.grpc_user.as_deref() {
            None => breach(Code::GrpcClaim, "OCM's gRPC server does not say who asked".to_owned()),
            Some(behind)
                if behind == identity::BOOTSTRAP_USER
                    || bootstrap_token_id(behind).is_some()
                    || allowance.requesters.iter().any(|known| known == behind) => {}
            Some(behind) => breach(Code::Requester, format!("{behind:?} may not register clusters")),
        }
    }

    fn check_usages(&self, breach: &mut impl FnMut(Code, String)) {
        const NEEDED: [&str; 2] = ["digital signature", "client auth"];
        const OPTIONAL: &str = "key encipherment";
        let missing = NEEDED.iter().any(|needed| !self.usages.iter().any(|usage| usage == needed));
        let foreign = self.usages.iter().any(|usage| !NEEDED.contains(&usage.as_str()) && usage != OPTIONAL);
        if missing || foreign {
            breach(Code::Usages, format!("usages {}", self.usages.join(", ")));
        }
    }
}

impl Requester {
    /// Whether the user may ask for a cluster's first certificate.
    fn bootstraps(&self, allowance: &Allowance) -> bool {
        self.user == identity::BOOTSTRAP_USER
            || (bootstrap_token_id(&self.user).is_some() && self.is_in(bootstrap::TOKEN_GROUP))
            || allowance.requesters.contains(&self.user)
    }

    fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|known| known == group)
    }

    /// What somebody with the name of a service account or a bootstrap token lacks of one. A client certificate may
    /// carry any name, and who acts as another need not take over its UID and groups.
    fn lack(&self) -> Option<&'static str> {
        if let Some((namespace, _)) =
            self.user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'))
        {
            let grouped =
                self.is_in("system:serviceaccounts") && self.is_in(&format!("system:serviceaccounts:{namespace}"));
            return match () {
                () if self.showed_certificate => Some("with a client certificate instead of a token"),
                () if self.uid.is_none() => Some("without the UID of a service account"),
                () if !grouped => Some("without the groups of a service account"),
                () => None,
            };
        }
        if bootstrap_token_id(&self.user).is_some() && self.showed_certificate {
            return Some("with a client certificate instead of a bootstrap token");
        }
        None
    }
}

/// The id of a bootstrap token's user, `system:bootstrap:<id>` with six of `[a-z0-9]`.
fn bootstrap_token_id(user: &str) -> Option<&str> {
    user.strip_prefix(bootstrap::TOKEN_USER_PREFIX)
        .filter(|id| id.len() == 6 && id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()))
}

impl Content {
    /// Reads a PEM-encoded PKCS #10 request (RFC 2986), as `spec.request` holds it.
    ///
    /// # Errors
    /// Says what kept it from being read.
    pub fn read(pem: &[u8]) -> Result<Self, Unreadable> {
        let der = only_pem_block(pem)?;
        if !der::is_request(&der) {
            return Err(Unreadable::Der("it is not laid out and encoded as one".to_owned()));
        }
        let malformed = |error: &dyn fmt::Display| Unreadable::Der(error.to_string());
        let (rest, request) = X509CertificationRequest::from_der(&der).map_err(|error| malformed(&error))?;
        if !rest.is_empty() {
            return Err(Unreadable::Der("something follows it".to_owned()));
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

    fn check(&self, cluster: &str, breach: &mut impl FnMut(Code, String)) {
        match self.common_names.as_slice() {
            [name] if agent_of(name, cluster) => {}
            [name] => breach(Code::CommonName, format!("common name {name:?} is no agent of {cluster}")),
            names => breach(Code::CommonNames, format!("{} common names: {names:?}", names.len())),
        }
        let own = identity::cluster_group(cluster);
        let foreign: Vec<&String> = self
            .organizations
            .iter()
            .filter(|group| **group != own && *group != identity::MANAGED_CLUSTERS_GROUP)
            .collect();
        if !foreign.is_empty() {
            breach(Code::ForeignOrganization, format!("organisations {foreign:?}"));
        }
        if !self.organizations.contains(&own) {
            breach(Code::MissingOrganization, format!("organisation {own:?} is not among {:?}", self.organizations));
        }
        if !self.other_attributes.is_empty() {
            breach(Code::SubjectAttributes, format!("subject attributes {}", self.other_attributes.join(", ")));
        }
        if !self.alternative_names.is_empty() {
            breach(Code::AlternativeNames, format!("alternative names {}", self.alternative_names.join(", ")));
        }
        if !self.extensions.is_empty() {
            breach(Code::Extensions, format!("extensions {}", self.extensions.join(", ")));
        }
        let strong = match &self.key {
            Key::P256 | Key::P384 | Key::P521 | Key::Ed25519 => true,
            Key::Rsa(bits) => RSA_BITS.contains(bits),
            Key::Other(_) => false,
        };
        if !strong {
            breach(Code::WeakKey, format!("key {}", self.key));
        }
        match self.signature {
            Signature::Valid => {}
            // The weak key says it all: such keys are not even tried.
            _ if !strong => {}
            Signature::Invalid => breach(Code::Signature, "it is not signed with its own key".to_owned()),
            Signature::Unverifiable => {
                breach(Code::Signature, "its signature algorithm cannot be verified".to_owned());
            }
        }
    }
}

/// Whether a common name is `system:open-cluster-management:<cluster>:<agent>` with exactly these two parts.
fn agent_of(common_name: &str, cluster: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    identity::parse_agent_user(common_name).is_some_and(|(named, agent)| named == cluster && agent.chars().all(plain))
}

/// Whether a common name is an add-on's agent's, `system:open-cluster-management:cluster:<c>:addon:<a>:…`. A cluster
/// may be called `cluster`; its agents' names have two parts only.
fn is_addon_user(common_name: &str) -> bool {
    let parts: Vec<&str> = common_name.strip_prefix(identity::PREFIX).unwrap_or_default().split(':').collect();
    matches!(parts.as_slice(), ["cluster", cluster, "addon", addon, ..] if !cluster.is_empty() && !addon.is_empty())
}

/// Whether an organisation is the group of one cluster's agents or of all clusters'.
fn is_agents_group(organization: &str) -> bool {
    organization.strip_prefix(identity::PREFIX).is_some_and(|cluster| !cluster.is_empty() && !cluster.contains(':'))
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

fn signature(request: &X509CertificationRequest<'_>, key: &Key) -> Signature {
    let algorithm = &request.signature_algorithm.algorithm;
    if *algorithm == oid::OID_PKCS1_SHA1WITHRSA || *algorithm == oid::OID_SHA1_WITH_RSA {
        return Signature::Unverifiable;
    }
    if *key == Key::P521 {
        return p521_signature(request);
    }
    match request.verify_signature() {
        Ok(()) => Signature::Valid,
        Err(x509_parser::error::X509Error::SignatureUnsupportedAlgorithm) => Signature::Unverifiable,
        Err(_) => Signature::Invalid,
    }
}

/// P-521 with SHA-512 (RFC 5758 section 3.2), which ring does not verify.
fn p521_signature(request: &X509CertificationRequest<'_>) -> Signature {
    use p521::ecdsa::signature::Verifier;
    if request.signature_algorithm.algorithm != oid::OID_SIG_ECDSA_WITH_SHA512 {
        return Signature::Unverifiable;
    }
    let info = &request.certification_request_info;
    let verified = p521::ecdsa::VerifyingKey::from_sec1_bytes(&info.subject_pki.subject_public_key.data)
        .and_then(|key| {
            p521::ecdsa::Signature::from_der(&request.signature_value.data).map(|signature| (key, signature))
        })
        .and_then(|(key, signature)| key.verify(info.raw, &signature));
    if verified.is_ok() { Signature::Valid } else { Signature::Invalid }
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
