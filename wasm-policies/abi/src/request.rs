//! What a policy is asked.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::owned::{IntoOwned, into_owned, owned_already};
use crate::text::{Map, Text};

/// What is to be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// A ManagedCluster is created.
    Create,
    /// A ManagedCluster is updated.
    Update,
    /// A ManagedCluster is deleted.
    Delete,
    /// A certificate request is created.
    Request,
    /// A certificate request is to be approved, or denied.
    Approve,
    /// A cluster is to be accepted.
    Accept,
    /// A certificate request and the ManagedCluster that it is for are judged together.
    Join,
    /// Any other object of the hub passes admission; `resource.operation` says how.
    Admit,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 8] =
        [Self::Create, Self::Update, Self::Delete, Self::Request, Self::Approve, Self::Accept, Self::Join, Self::Admit];

    /// Its word in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Request => "request",
            Self::Approve => "approve",
            Self::Accept => "accept",
            Self::Join => "join",
            Self::Admit => "admit",
        }
    }

    /// The operation of a word; none for a word that this version of the contract does not know.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.word() == word)
    }
}

/// Where in admission a question is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Before the object is as it will be stored: others may still change it, and edits count.
    Mutating,
    /// After everybody has changed it: this is what will be stored.
    Validating,
}

impl Stage {
    /// Every stage.
    pub const ALL: [Self; 2] = [Self::Mutating, Self::Validating];

    /// Its word in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Mutating => "mutating",
            Self::Validating => "validating",
        }
    }

    /// The stage of a word; none for a word that this version of the contract does not know.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.word() == word)
    }
}

/// A question: who wants what to happen to which object, and what is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request<'a> {
    /// Names the question: the UID of an admission review, or what the asking controller chose.
    #[serde(borrow)]
    pub id: Text<'a>,
    /// What is to be decided.
    pub operation: Operation,
    /// When it was asked, in milliseconds since 1970-01-01T00:00:00Z. The only clock that a policy has.
    pub now: i64,
    /// Whether nothing will be stored whatever the answer.
    #[serde(default)]
    pub dry_run: bool,
    /// How often the same question was answered with `hold` before.
    #[serde(default)]
    pub attempt: u32,
    /// Where in admission it is asked; none: not in admission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<Stage>,
    /// Who makes the API request; of `approve`, `accept` and `join` asked by a controller: who created the certificate
    /// request, or else the cluster.
    #[serde(borrow)]
    pub requester: Requester<'a>,
    /// Who asked for the certificate: with `approve` in admission, where the requester is who approves, and with `join`, where the
    /// requester is the same. With `accept` none: the requester is who accepts, and an acceptance does not say who asked.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub creator: Option<Requester<'a>>,
    /// Which API object this is about.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<Resource<'a>>,
    /// The ManagedCluster as it will be; of `delete` as it is.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Cluster<'a>>,
    /// The ManagedCluster before an update.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Cluster<'a>>,
    /// The certificate request.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub csr: Option<Csr<'a>>,
    /// The whole object, where the manifest asks for objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Value>,
    /// The whole object before an update or a deletion, where the manifest asks for objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_object: Option<Value>,
    /// The answers to the evidence queries of the manifest, by their names.
    #[serde(borrow, default, skip_serializing_if = "Map::is_empty")]
    pub evidence: Map<'a, Table<'a>>,
    /// What policies have set in the object before, at the mutating stage: values by JSON pointer.
    #[serde(borrow, default, skip_serializing_if = "Map::is_empty")]
    pub set_by_policies: Map<'a, Text<'a>>,
    /// The obligations that the hub knows. Any other makes an answer an error.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub obligations: Vec<Text<'a>>,
    /// Facts that later hosts tell within this version of the contract.
    #[serde(borrow, default, skip_serializing_if = "Map::is_empty")]
    pub more: Map<'a, Value>,
}

impl<'a> Request<'a> {
    /// A question about nothing yet.
    pub fn new(operation: Operation, requester: Requester<'a>) -> Self {
        Self {
            id: Text::default(),
            operation,
            now: 0,
            dry_run: false,
            attempt: 0,
            stage: None,
            requester,
            creator: None,
            resource: None,
            cluster: None,
            previous: None,
            csr: None,
            object: None,
            previous_object: None,
            evidence: Map::default(),
            set_by_policies: Map::default(),
            obligations: Vec::new(),
            more: Map::default(),
        }
    }
}

/// Who asks, as the API server authenticated them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Requester<'a> {
    /// User name.
    #[serde(borrow)]
    pub username: Text<'a>,
    /// UID; service accounts have one unless somebody acts as them.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<Text<'a>>,
    /// Groups.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Text<'a>>,
    /// What else the authenticator told, such as `authentication.kubernetes.io/credential-id`.
    #[serde(borrow, default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<'a, Vec<Text<'a>>>,
    /// SHA-256 of the client certificate that was shown, lower-case hex.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub certificate_sha256: Option<Text<'a>>,
}

/// An object of the API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource<'a> {
    /// API group; empty for the core group.
    #[serde(borrow)]
    pub group: Text<'a>,
    /// API version.
    #[serde(borrow)]
    pub version: Text<'a>,
    /// Kind.
    #[serde(borrow)]
    pub kind: Text<'a>,
    /// Plural name.
    #[serde(borrow)]
    pub resource: Text<'a>,
    /// Subresource, such as `status` or `approval`.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub subresource: Option<Text<'a>>,
    /// Namespace of the object.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Text<'a>>,
    /// Name of the object; none while the server has yet to generate it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Text<'a>>,
    /// Operation of admission: `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    #[serde(borrow)]
    pub operation: Text<'a>,
    /// The field manager that the request names.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub field_manager: Option<Text<'a>>,
    /// The options of the operation, such as `propagationPolicy`; values that are no texts are written as JSON.
    #[serde(borrow, default, skip_serializing_if = "Map::is_empty")]
    pub options: Map<'a, Text<'a>>,
}

/// What of a ManagedCluster matters for decisions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster<'a> {
    /// Its name.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// Its UID, once it is stored.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<Text<'a>>,
    /// `metadata.resourceVersion`, once it is stored.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<Text<'a>>,
    /// `metadata.generation`: how often its spec was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// `metadata.labels`.
    #[serde(borrow, default, skip_serializing_if = "Map::is_empty")]
    pub labels: Map<'a, Text<'a>>,
    /// `metadata.annotations`.
    #[serde(borrow, default, skip_serializing_if = "Map::is_empty")]
    pub annotations: Map<'a, Text<'a>>,
    /// `metadata.finalizers`.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<Text<'a>>,
    /// `metadata.ownerReferences`.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<Owner<'a>>,
    /// When it was created, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<i64>,
    /// Whether it is being deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleting: bool,
    /// `spec.hubAcceptsClient`: whether it has been accepted.
    #[serde(default)]
    pub accepted: bool,
    /// `spec.leaseDurationSeconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_duration_seconds: Option<i64>,
    /// `spec.taints`.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint<'a>>,
    /// `spec.managedClusterClientConfigs`.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub client_configs: Vec<ClientConfig<'a>>,
    /// `status.clusterClaims`.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim<'a>>,
    /// `status.version.kubernetes`: the version that the cluster claims to run.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<Text<'a>>,
    /// `status.conditions`.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition<'a>>,
    /// The members above of which something was left out, because agents or others wrote too much of it, or what nobody can read.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub truncated: Vec<Text<'a>>,
    /// Facts that later hosts tell within this version of the contract.
    #[serde(borrow, default, skip_serializing_if = "Map::is_empty")]
    pub more: Map<'a, Value>,
}

/// The entry of [`Cluster::more`] that names, as a list of texts, the members of which there was too much before the update
/// already, and of which all that the update changes is shown. A host that does not tell it has shown nothing of that.
pub const CHANGES_SHOWN: &str = "changesShown";

/// An entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner<'a> {
    /// API version.
    #[serde(borrow)]
    pub api_version: Text<'a>,
    /// Kind.
    #[serde(borrow)]
    pub kind: Text<'a>,
    /// Name.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// UID.
    #[serde(borrow, default)]
    pub uid: Text<'a>,
    /// Whether it is the controller of the object.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub controller: bool,
}

/// A taint of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taint<'a> {
    /// Key.
    #[serde(borrow)]
    pub key: Text<'a>,
    /// Value.
    #[serde(borrow, default)]
    pub value: Text<'a>,
    /// `NoSelect`, `PreferNoSelect` or `NoSelectIfNew`.
    #[serde(borrow)]
    pub effect: Text<'a>,
    /// When it was added, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<i64>,
}

/// How the hub reaches a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientConfig<'a> {
    /// URL of its API server.
    #[serde(borrow)]
    pub url: Text<'a>,
    /// SHA-256 over its CA bundle as it stands there, lower-case hex.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub ca_sha256: Option<Text<'a>>,
}

/// A claim that a cluster makes of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Claim<'a> {
    /// Name.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// Value.
    #[serde(borrow)]
    pub value: Text<'a>,
}

/// A condition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition<'a> {
    /// Type.
    #[serde(borrow, rename = "type")]
    pub kind: Text<'a>,
    /// `True`, `False` or `Unknown`.
    #[serde(borrow)]
    pub status: Text<'a>,
    /// Reason.
    #[serde(borrow, default)]
    pub reason: Text<'a>,
    /// Message.
    #[serde(borrow, default)]
    pub message: Text<'a>,
    /// Since when, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
}

/// A certificate request as a cryptographic object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Csr<'a> {
    /// Name of the object; none while the server has yet to generate it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Text<'a>>,
    /// Its UID, once it is stored.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<Text<'a>>,
    /// `metadata.resourceVersion`, once it is stored.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<Text<'a>>,
    /// `metadata.labels`.
    #[serde(borrow, default, skip_serializing_if = "Map::is_empty")]
    pub labels: Map<'a, Text<'a>>,
    /// `metadata.annotations`. Whoever created the object wrote them.
    #[serde(borrow, default, skip_serializing_if = "Map::is_empty")]
    pub annotations: Map<'a, Text<'a>>,
    /// `spec.signerName`.
    #[serde(borrow)]
    pub signer: Text<'a>,
    /// `spec.usages`.
    #[serde(borrow, default)]
    pub usages: Vec<Text<'a>>,
    /// `spec.expirationSeconds`: the lifetime asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime_seconds: Option<i64>,
    /// Who created it, as the API server recorded it in the spec.
    #[serde(borrow)]
    pub requester: Requester<'a>,
    /// When it was created, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<i64>,
    /// Why the request inside cannot be read; then everything below is empty, but for names that the API server still reads.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<Text<'a>>,
    /// Every common name of the subject.
    #[serde(borrow, default)]
    pub common_names: Vec<Text<'a>>,
    /// Every organisation of the subject: the groups of whoever holds the certificate.
    #[serde(borrow, default)]
    pub organizations: Vec<Text<'a>>,
    /// Dotted object identifiers of the subject's other attributes.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub other_attributes: Vec<Text<'a>>,
    /// Subject alternative names.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub alternative_names: Vec<Text<'a>>,
    /// Other extensions and attributes that are asked for.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<Text<'a>>,
    /// The key.
    #[serde(borrow, default)]
    pub key: Key<'a>,
    /// SHA-256 over the key's `SubjectPublicKeyInfo`, lower-case hex.
    #[serde(borrow, default)]
    pub spki_sha256: Text<'a>,
    /// Whether the request is signed with its own key.
    #[serde(default)]
    pub signature: Signature,
    /// The condition that this API request would add: `Approved`, `Denied` or `Failed`.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub adds_condition: Option<Text<'a>>,
    /// What has become of it so far: `Pending`, `Approved`, `Issued`, `Denied` or `Failed`.
    #[serde(borrow, default)]
    pub state: Text<'a>,
    /// Facts that later hosts tell within this version of the contract.
    #[serde(borrow, default, skip_serializing_if = "Map::is_empty")]
    pub more: Map<'a, Value>,
}

/// A public key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Key<'a> {
    /// `ECDSA`, `Ed25519`, `RSA`, or the name of another algorithm.
    #[serde(borrow)]
    pub algorithm: Text<'a>,
    /// Bits of the curve or of the modulus; 0 where they are not known.
    pub bits: u32,
}

/// Proof of possession of the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signature {
    /// Made with the key of the request.
    Valid,
    /// Not made with the key of the request.
    Invalid,
    /// Made by an algorithm that proves nothing or cannot be verified.
    #[default]
    Unverifiable,
}

impl Signature {
    /// Its word in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Invalid => "invalid",
            Self::Unverifiable => "unverifiable",
        }
    }

    /// What a word says. A word that this version of the contract does not know proves nothing.
    pub fn of(word: &str) -> Self {
        match word {
            "valid" => Self::Valid,
            "invalid" => Self::Invalid,
            _ => Self::Unverifiable,
        }
    }
}

/// The rows that a query found, all of one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Table<'a> {
    /// Which state of its source was read: tables of one source in a request are of the same state where these are equal.
    /// Between different sources it says nothing.
    #[serde(borrow)]
    pub revision: Text<'a>,
    /// Whether nothing was cut off. A policy that counts must not count what is incomplete.
    pub complete: bool,
    /// The rows.
    #[serde(borrow, default)]
    pub rows: Vec<Row<'a>>,
}

/// An object that a query found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row<'a> {
    /// Its namespace.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Text<'a>>,
    /// Its name.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// The fields that the query asks for, in its order; null where the object has no such field.
    #[serde(default)]
    pub values: Vec<Value>,
    /// Whether the values are there: those of an object with too much in them are left out.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub complete: bool,
}

impl Default for Row<'_> {
    fn default() -> Self {
        Self { namespace: None, name: Text::default(), values: Vec::new(), complete: true }
    }
}

const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_yes(yes: &bool) -> bool {
    *yes
}

owned_already!(Operation, Stage, Signature);

into_owned! {
    Request {
        id, operation, now, dry_run, attempt, stage, requester, creator, resource, cluster, previous, csr, object,
        previous_object, evidence, set_by_policies, obligations, more
    }
    Requester { username, uid, groups, extra, certificate_sha256 }
    Resource { group, version, kind, resource, subresource, namespace, name, operation, field_manager, options }
    Cluster {
        name, uid, resource_version, generation, labels, annotations, finalizers, owners, created, deleting, accepted,
        lease_duration_seconds, taints, client_configs, claims, kubernetes_version, conditions, truncated, more
    }
    Owner { api_version, kind, name, uid, controller }
    Taint { key, value, effect, added }
    ClientConfig { url, ca_sha256 }
    Claim { name, value }
    Condition { kind, status, reason, message, since }
    Csr {
        name, uid, resource_version, labels, annotations, signer, usages, lifetime_seconds, requester, created,
        unreadable, common_names, organizations, other_attributes, alternative_names, extensions, key, spki_sha256,
        signature, adds_condition, state, more
    }
    Key { algorithm, bits }
    Table { revision, complete, rows }
    Row { namespace, name, values, complete }
}
