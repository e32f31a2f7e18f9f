//! `policy.kubectl-ocm.dev/v1alpha1`: what the policy controller knows of a cluster's registration.
//!
//! The schema is generated from these types, and their comments are what `kubectl explain` shows. Every list and text is
//! bounded, for much of it is what strangers wrote.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_derive::{CustomResource, Resource};
use serde::Serialize;

use crate::member::Member;

/// The most keys that one registration lists.
pub const MAX_KEYS: usize = 16;
/// The most policies that one registration lists.
pub const MAX_POLICIES: usize = 64;
/// The most obligations that one registration lists.
pub const MAX_OBLIGATIONS: usize = 16;
/// The most reason codes that are kept of each policy.
pub const MAX_CODES: usize = 16;
/// The most characters of a text that people read.
pub const MAX_TEXT: usize = 1024;
/// No object is changed more often: larger numbers are not exact in JSON.
pub const MAX_GENERATION: i64 = (1 << 53) - 1;
/// The most seconds that an obligation gives: 400 days.
pub const MAX_SECONDS: u32 = 400 * 24 * 60 * 60;
/// The most characters of a replayable record.
pub const MAX_RECORD: usize = 64 << 10;

/// Nothing: a registration is what its cluster and its policies make of it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", kube(schema = "derived"))]
#[cfg_attr(not(feature = "schema"), kube(schema = "disabled"))]
#[kube(
    group = "policy.kubectl-ocm.dev",
    version = "v1alpha1",
    kind = "Registration",
    plural = "registrations",
    shortname = "hreg",
    category = "ocm-policy",
    status = "RegistrationStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "What became of the registration of one cluster, whose name it has. The policy controller writes it."
)]
#[kube(printcolumn = r#"{"name": "Verdict", "type": "string",
    "description": "What the policies returned together.", "jsonPath": ".status.verdict"}"#)]
#[kube(printcolumn = r#"{"name": "Waiting for", "type": "string",
    "description": "What keeps the cluster out.", "jsonPath": ".status.waitingFor"}"#)]
#[kube(printcolumn = r#"{"name": "Requester", "type": "string",
    "description": "Who asked for the certificate.", "jsonPath": ".status.requester.username"}"#)]
#[kube(printcolumn = r#"{"name": "Expires", "type": "string", "priority": 1,
    "description": "When the acceptance ends unless policies give it more time.", "jsonPath": ".status.obligations[0].due"}"#)]
#[kube(printcolumn = r#"{"name": "Removed", "type": "date", "priority": 1,
    "description": "Since when the hub has no such cluster any more.", "jsonPath": ".status.removedAt"}"#)]
#[kube(printcolumn = r#"{"name": "Age", "type": "date",
    "description": "When the cluster asked first.", "jsonPath": ".metadata.creationTimestamp"}"#)]
#[kube(crates(kube_core = "kube_core", serde = "crate::member::of_kube"))]
#[serde(rename_all = "camelCase")]
pub struct RegistrationSpec {}

text_enum! {
    /// What the policies and the rules said together.
    RegistrationVerdict {
        /// No policy had an opinion, or nobody was asked yet.
        NoOpinion = "NoOpinion",
        /// It may join.
        Allow = "Allow",
        /// Not now.
        Hold = "Hold",
        /// A policy is broken, or two disagree.
        Error = "Error",
        /// It must not join.
        Deny = "Deny",
    } default NoOpinion
}

/// What the policy controller observed and decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegistrationStatus {
    /// What the policies and the rules said together.
    #[serde(default)]
    pub verdict: RegistrationVerdict,
    /// What keeps the cluster out, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_TEXT)))]
    pub waiting_for: Option<String>,
    /// Who keeps it out. None: nobody does, or a release wrote it that did not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_out_by: Option<RegistrationKeptOutBy>,
    /// UID of the ManagedCluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 63)))]
    pub cluster_uid: Option<String>,
    /// Who asked for the certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requester: Option<RegistrationRequester>,
    /// The certificate request that was decided about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RegistrationRequest>,
    /// Keys that certificates were approved for, those that end last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "schema",
        schemars(length(max = MAX_KEYS), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["spkiSha256"]))
    )]
    pub keys: Vec<RegistrationKey>,
    /// What is being carried out, written before it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<RegistrationIntent>,
    /// Which policies let it in. None: a person, Open Cluster Management, or nobody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_POLICIES), inner(length(max = 63))))]
    pub approved_by: Vec<String>,
    /// What has to follow from what policies said, the next one first. It is written before what it follows from is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "schema",
        schemars(length(max = MAX_OBLIGATIONS), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name", "policy"]))
    )]
    pub obligations: Vec<RegistrationObligation>,
    /// That its acceptance was withdrawn because its time was over. None: it was not, or the cluster was accepted since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expired: Option<RegistrationExpiry>,
    /// That the hub was seen to accept the cluster. Where it does so no more, only a person lets it in again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_before: Option<RegistrationSeen>,
    /// That a request for its name was seen as denied. None: it was not, or the cluster was accepted since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied_before: Option<RegistrationSeen>,
    /// The last decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<RegistrationDecision>,
    /// When the hub was first seen without the cluster, in RFC 3339. Until its certificates have ended its name is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 32)))]
    pub removed_at: Option<String>,
}

text_enum! {
    /// Who has to change something before a cluster is let in.
    RegistrationKeeper {
        /// A person has to decide.
        Person = "Person",
        /// Policies hold or deny it, or give no usable answer.
        Policies = "Policies",
        /// The hub refused what was to be done.
        Hub = "Hub",
    } default Policies
}

/// Who keeps a cluster out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegistrationKeptOutBy {
    /// Who it is.
    pub who: RegistrationKeeper,
    /// Names of the HubPolicies that waitingFor speaks of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_POLICIES), inner(length(max = 63))))]
    pub policies: Vec<String>,
}

/// Who asked for a certificate, as the API server knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegistrationRequester {
    /// User name.
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_TEXT)))]
    pub username: String,
    /// UID, of users who have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_TEXT)))]
    pub uid: Option<String>,
    /// What they authenticated with, where the API server says it: JTI=… or X509SHA256=….
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_TEXT)))]
    pub credential_id: Option<String>,
}

/// A certificate request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegistrationRequest {
    /// Its name.
    #[cfg_attr(feature = "schema", schemars(length(max = 253)))]
    pub name: String,
    /// Its UID.
    #[cfg_attr(feature = "schema", schemars(length(max = 63)))]
    pub uid: String,
    /// SHA-256 of its public key, lower-case hexadecimal digits.
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub spki_sha256: String,
}

/// A key that certificates were approved for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegistrationKey {
    /// Until when the last of them may be valid, in RFC 3339.
    #[cfg_attr(feature = "schema", schemars(length(max = 32)))]
    pub until: String,
    /// SHA-256 of the public key, lower-case hexadecimal digits. Empty: certificates were approved before anybody noted keys.
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub spki_sha256: String,
}

/// What of a Registration tells which keys its name was given to, and what was seen of its cluster: the record, larger than all
/// the rest, is not kept.
#[derive(Clone, Debug, Default, PartialEq, Member, Resource)]
#[resource(inherit = Registration, crates(kube_core = "kube_core"))]
pub struct RegisteredKeys {
    /// Name and the server's book-keeping.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What was written last.
    #[serde(default)]
    pub status: RegisteredKeysStatus,
}

/// The part of [`RegistrationStatus`] that [`RegisteredKeys`] have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Member)]
#[serde(rename_all = "camelCase")]
pub struct RegisteredKeysStatus {
    /// UID of the ManagedCluster.
    #[serde(default)]
    pub cluster_uid: Option<String>,
    /// Keys that certificates were approved for, those that end last.
    #[serde(default)]
    pub keys: Vec<RegistrationKey>,
    /// That the hub was seen to accept the cluster.
    #[serde(default)]
    pub accepted_before: Option<RegistrationSeen>,
    /// That a request for its name was seen as denied.
    #[serde(default)]
    pub denied_before: Option<RegistrationSeen>,
}

/// What is about to be done, and to exactly which objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegistrationIntent {
    /// Name of the certificate request that is approved. None: one was approved before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 253)))]
    pub approve: Option<String>,
    /// Whether the cluster is accepted.
    #[serde(default)]
    pub accept: bool,
    /// Whether the acceptance of the cluster is withdrawn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withdraw: bool,
    /// Resource version of the ManagedCluster that was judged.
    #[cfg_attr(feature = "schema", schemars(length(max = 63)))]
    pub cluster_version: String,
    /// Who does it: the holder of the controller's lease.
    #[cfg_attr(feature = "schema", schemars(length(max = 253)))]
    pub holder: String,
    /// When that was written, in RFC 3339.
    #[cfg_attr(feature = "schema", schemars(length(max = 32)))]
    pub at: String,
}

/// Something that has to follow from what a policy said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegistrationObligation {
    /// What: expire-acceptance, the acceptance is withdrawn when it is due, unless the policy gives more time before.
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub name: String,
    /// Name of the HubPolicy that wants it.
    #[cfg_attr(feature = "schema", schemars(length(max = 63)))]
    pub policy: String,
    /// SHA-256 of its module, lower-case hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub module_sha256: Option<String>,
    /// When it is due, in RFC 3339.
    #[cfg_attr(feature = "schema", schemars(length(max = 32)))]
    pub due: String,
    /// How many seconds the policy gave.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = MAX_SECONDS)))]
    pub within_seconds: u32,
    /// Why, in the words of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_TEXT)))]
    pub reason: Option<String>,
    /// UID of the ManagedCluster that it is about.
    #[cfg_attr(feature = "schema", schemars(length(max = 63)))]
    pub cluster_uid: String,
}

/// An acceptance that was withdrawn because its time was over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegistrationExpiry {
    /// When it was over, in RFC 3339.
    #[cfg_attr(feature = "schema", schemars(length(max = 32)))]
    pub at: String,
    /// Names of the HubPolicies that gave no more time.
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_OBLIGATIONS), inner(length(max = 63))))]
    pub policies: Vec<String>,
    /// Why, in the words of the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_TEXT)))]
    pub reason: Option<String>,
}

/// What was seen of one cluster, and holds for no other one of its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegistrationSeen {
    /// UID of the ManagedCluster.
    #[cfg_attr(feature = "schema", schemars(length(max = 63)))]
    pub cluster_uid: String,
    /// When it was first seen, in RFC 3339.
    #[cfg_attr(feature = "schema", schemars(length(max = 32)))]
    pub at: String,
}

impl RegistrationSeen {
    /// Whether it is about the cluster of this UID.
    pub fn is_of(&self, uid: Option<&str>) -> bool {
        uid == Some(self.cluster_uid.as_str())
    }
}

/// What was decided last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegistrationDecision {
    /// When, in RFC 3339.
    #[cfg_attr(feature = "schema", schemars(length(max = 32)))]
    pub at: String,
    /// What each policy said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_POLICIES)))]
    pub policies: Vec<RegistrationOpinion>,
    /// Policies that judge such requests and were not asked about this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_POLICIES)))]
    pub not_asked: Vec<RegistrationNotAsked>,
    /// SHA-256 of the record of the policy that decided, lower-case hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub record_sha256: Option<String>,
    /// That record, for `kubectl ocm policy replay`. None where it is larger than 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_RECORD)))]
    pub record: Option<String>,
}

/// A policy that was not asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegistrationNotAsked {
    /// Name of the HubPolicy.
    #[cfg_attr(feature = "schema", schemars(length(max = 63)))]
    pub policy: String,
    /// metadata.generation of the HubPolicy that was in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = MAX_GENERATION)))]
    pub generation: Option<i64>,
    /// Names of the conditions of its match that are false. None: its match is about other signers, users or clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_CODES), inner(length(max = 64))))]
    pub unmet_conditions: Vec<String>,
}

/// What one policy said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegistrationOpinion {
    /// Name of the HubPolicy.
    #[cfg_attr(feature = "schema", schemars(length(max = 63)))]
    pub policy: String,
    /// SHA-256 of its module, lower-case hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub module_sha256: Option<String>,
    /// metadata.generation of the HubPolicy that it was asked with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = MAX_GENERATION)))]
    pub generation: Option<i64>,
    /// What it said.
    pub verdict: RegistrationVerdict,
    /// The codes of its reasons, or of its error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_CODES), inner(length(max = 64))))]
    pub codes: Vec<String>,
}
