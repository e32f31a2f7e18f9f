//! `policy.kubectl-ocm.dev/v1alpha1`: the policies of a hub, as its administrators write them.
//!
//! The schema is generated from these types, and their comments are what `kubectl explain` shows.

use std::collections::BTreeMap;

use kube_derive::CustomResource;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::Condition;
#[cfg(feature = "schema")]
use crate::field_schema;
use crate::member::Member;

/// No policy gets more fuel for one decision.
pub const MAX_FUEL: u64 = 500_000_000;
/// No policy gets more bytes of memory.
pub const MAX_MEMORY_BYTES: u64 = 64 << 20;
/// One page of memory; WebAssembly has no smaller unit.
pub const MIN_MEMORY_BYTES: u64 = 64 << 10;

/// A path below a directory, whose parts begin with no dot.
#[cfg(feature = "schema")]
const MODULE_PATH: &str = "^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$";
#[cfg(feature = "schema")]
const DNS_LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
#[cfg(feature = "schema")]
const DNS_SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// A host with a dot, a port or the name localhost, as nothing else tells a registry from the first part of a repository.
#[cfg(feature = "schema")]
const IMAGE_RULE: &str = r"self.matches('^(localhost|[-A-Za-z0-9]+([.][-A-Za-z0-9]+)+|[-.A-Za-z0-9]+:[0-9]+|\\[[0-9A-Fa-f:]+\\](:[0-9]+)?)(/[a-z0-9]+([-._]+[a-z0-9]+)*)+(:[A-Za-z0-9_][-._A-Za-z0-9]{0,127})?@sha256:[0-9a-f]{64}$')";
#[cfg(feature = "schema")]
const URL_RULE: &str =
    r"self.matches('^(https://[^/?#@]+|http://(localhost|127[.][0-9]+[.][0-9]+[.][0-9]+|\\[::1\\])(:[0-9]+)?)/[^#]*$')";

/// Which policy is evaluated, with which settings, what its verdict counts for, and what it may change and use.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", kube(schema = "derived"))]
#[cfg_attr(not(feature = "schema"), kube(schema = "disabled"))]
#[kube(
    group = "policy.kubectl-ocm.dev",
    version = "v1alpha1",
    kind = "HubPolicy",
    plural = "hubpolicies",
    shortname = "hpol",
    category = "ocm-policy",
    status = "HubPolicyStatus",
    derive = "PartialEq",
    doc = "A policy of the hub: a WebAssembly module that is asked about registrations of clusters. The name is a DNS \
           label; reasons, records and metrics carry it."
)]
// Columns take one path each. Which of the sources there is decides what the first one finds.
#[kube(printcolumn = r#"{"name": "Module", "type": "string",
    "description": "Name of the builtin module, of the object that holds the module, or of the image or the URL that it is.",
    "jsonPath": ".spec.module['builtin', 'configMap.name', 'secret.name', 'oci.image', 'url.url']"}"#)]
#[kube(printcolumn = r#"{"name": "Namespace", "type": "string", "priority": 1,
    "description": "Namespace of the object that holds the module.",
    "jsonPath": ".spec.module['configMap.namespace', 'secret.namespace']"}"#)]
#[kube(printcolumn = r#"{"name": "Mode", "type": "string",
    "description": "What the verdict counts for.", "jsonPath": ".spec.mode"}"#)]
#[kube(printcolumn = r#"{"name": "Loaded", "type": "string",
    "description": "Whether the version that is wanted is in force.",
    "jsonPath": ".status.conditions[?(@.type==\"Loaded\")].status"}"#)]
#[kube(printcolumn = r#"{"name": "Enforcing", "type": "string",
    "description": "Whether the hub was seen to ask for its verdict, and waits for it.",
    "jsonPath": ".status.conditions[?(@.type==\"Enforcing\")].status"}"#)]
#[kube(printcolumn = r#"{"name": "Digest", "type": "string",
    "description": "First digits of the SHA-256 of the module in force.", "jsonPath": ".status.digest"}"#)]
#[kube(printcolumn = r#"{"name": "Degraded", "type": "string", "priority": 1,
    "description": "What to do something about.",
    "jsonPath": ".status.conditions[?(@.type==\"Degraded\")].message"}"#)]
#[kube(printcolumn = r#"{"name": "Candidate", "type": "integer", "priority": 1,
    "description": "For how many of a hundred clusters a candidate decides.",
    "jsonPath": ".status.candidate.share"}"#)]
#[kube(printcolumn = r#"{"name": "On error", "type": "string", "priority": 1,
    "description": "What an error of the policy counts for.", "jsonPath": ".spec.onError"}"#)]
#[kube(printcolumn = r#"{"name": "Auto-approve", "type": "boolean",
    "description": "Whether its allow lets clusters join without a person.", "jsonPath": ".spec.autoApprove"}"#)]
#[kube(printcolumn = r#"{"name": "Age", "type": "date",
    "description": "When the policy was created.", "jsonPath": ".metadata.creationTimestamp"}"#)]
#[kube(crates(kube_core = "kube_core", serde = "crate::member::of_kube"))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(
    feature = "schema",
    schemars(extend("x-kubernetes-validations" = [{
        "rule": "!has(self.sha256) || !has(self.module.builtin)",
        "fieldPath": ".sha256",
        "message": "sha256 may not be set together with module.builtin, which has no digest of its own",
    }, {
        "rule": "!has(self.autoApprove) || !self.autoApprove || !has(self.mode) || self.mode == 'Enforce'",
        "fieldPath": ".autoApprove",
        "message": "autoApprove needs mode Enforce",
    }, {
        "rule": "has(self.sha256) || !(has(self.module.configMap) && self.module.configMap.namespace == 'ocm-policy-engine' || has(self.module.secret) && self.module.secret.namespace == 'ocm-policy-engine')",
        "message": "sha256 must be set for a module in an object of namespace ocm-policy-engine, which the policy controller may change",
    }, {
        "rule": "has(self.sha256) || !has(self.module.path)",
        "fieldPath": ".sha256",
        "message": "sha256 must be set for module.path, since each pod has files of its own",
    }]))
)]
pub struct HubPolicySpec {
    /// Where the WebAssembly module comes from: exactly one of the fields.
    pub module: ModuleSource,
    /// SHA-256 digest that the module must have, as 64 lower-case hexadecimal digits. A module with another digest is not
    /// loaded. Not together with module.builtin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64), regex(pattern = "^[0-9a-f]{64}$")))]
    pub sha256: Option<String>,
    /// Settings of the policy, in the fields that the policy itself defines. None unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "field_schema::any_object"))]
    pub settings: Option<Map<String, Value>>,
    /// Test cases as kubectl ocm policy test reads them, YAML. A version is put in force only if it passes all of them. Cases
    /// without settings are asked with those of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 65536)))]
    pub tests: Option<String>,
    /// What the policy is asked about, of what its module judges. All of that unless said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 8), extend("x-kubernetes-list-type" = "set")))]
    pub operations: Vec<PolicyOperation>,
    /// Which requests the policy is asked about. All unless said.
    #[serde(default, rename = "match", skip_serializing_if = "is_default")]
    pub matches: PolicyMatch,
    /// What the verdict counts for. Enforce: it decides. Warn: the request goes on, and who sent it is warned. Audit: the
    /// request goes on, and the verdict is only recorded.
    #[serde(default)]
    pub mode: PolicyMode,
    /// What an error of the policy counts for. Deny: the request is denied. Hold: it is not decided until the policy
    /// answers or a person decides. An error is never an approval.
    #[serde(default)]
    pub on_error: OnError,
    /// An allow of this policy has the controller approve and accept a join that no other policy objects to. Without such
    /// a policy nobody is approved automatically. It needs mode Enforce.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub auto_approve: bool,
    /// Whether a RegistrationApproval with breakGlass lets its author approve and accept what the policy refuses. Allowed:
    /// it does, and the author is warned. Never: it does not.
    #[serde(default, skip_serializing_if = "is_default")]
    pub break_glass: BreakGlass,
    /// What the policy may change, where its module announces it, too. Nothing unless said.
    #[serde(default, skip_serializing_if = "is_default")]
    pub grants: PolicyGrants,
    /// The most that one decision of the policy may use.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: PolicyLimits,
    /// Another version of the policy, which is tried beside the one in force. Mode, grants and limits of the policy are
    /// its own, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<PolicyCandidate>,
}

/// Another version of a policy: another module, other settings, or both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(
    feature = "schema",
    schemars(extend("x-kubernetes-validations" = [{
        "rule": "has(self.module) || has(self.settings)",
        "message": "candidate must have another module, other settings, or both",
    }, {
        "rule": "!has(self.sha256) || (has(self.module) && !has(self.module.builtin))",
        "fieldPath": ".sha256",
        "message": "sha256 must be that of a module that the candidate takes from elsewhere than builtin",
    }, {
        "rule": "has(self.sha256) || !has(self.module) || !(has(self.module.configMap) && self.module.configMap.namespace == 'ocm-policy-engine' || has(self.module.secret) && self.module.secret.namespace == 'ocm-policy-engine')",
        "message": "sha256 must be set for a module in an object of namespace ocm-policy-engine, which the policy controller may change",
    }, {
        "rule": "has(self.sha256) || !has(self.module) || !has(self.module.path)",
        "fieldPath": ".sha256",
        "message": "sha256 must be set for module.path, since each pod has files of its own",
    }]))
)]
pub struct PolicyCandidate {
    /// Where its module comes from. That of the policy unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<ModuleSource>,
    /// SHA-256 digest that its module must have, as 64 lower-case hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64), regex(pattern = "^[0-9a-f]{64}$")))]
    pub sha256: Option<String>,
    /// Its settings. Those of the policy unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "field_schema::any_object"))]
    pub settings: Option<Map<String, Value>>,
    /// Its test cases. Those of the policy unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 65536)))]
    pub tests: Option<String>,
    /// For how many of a hundred clusters the candidate decides in place of the version in force: always the same ones,
    /// and more of them with a larger share. For the others it is only compared. 0 unless said: it decides for none.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<i64>", range(min = 0, max = 100)))]
    pub share: u8,
}

/// What the policy controller observed of a policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HubPolicyStatus {
    /// metadata.generation that this speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub observed_generation: Option<i64>,
    /// Loaded: the version that is wanted is in force. TestsPassed: it passes its test cases. Enforcing: the API server was seen to ask for the verdict, and
    /// requests wait for it. Degraded: something is to be done, which the message says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "field_schema::conditions"))]
    pub conditions: Vec<Condition>,
    /// SHA-256 of the module in force, lower-case hexadecimal digits. None: what the policy judges is refused until one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub sha256: Option<String>,
    /// The first 12 digits of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 12)))]
    pub digest: Option<String>,
    /// SHA-256 of the module that was in force before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub previous_sha256: Option<String>,
    /// Kind of the module in force, such as component or opa.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 63)))]
    pub kind: Option<String>,
    /// Operations that the module in force judges; while none is, those that have to be judged again. Also after its pods have
    /// ended, the policy engine puts no version in force that judges fewer, but for what spec.operations leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 8), extend("x-kubernetes-list-type" = "set")))]
    pub operations: Vec<PolicyOperation>,
    /// What the joins came to that the policy controller had it judge. None: none was judged yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decisions: Option<PolicyDecisions>,
    /// What became of the candidate. None: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<CandidateStatus>,
}

/// What joins came to, since the version is in force and the controller that tells it leads; not newer than a minute. A join
/// is judged as often as something of it changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyDecisions {
    /// How often it allowed one.
    #[cfg_attr(feature = "schema", schemars(with = "i64", range(min = 0)))]
    pub allowed: u64,
    /// How often it held one.
    #[cfg_attr(feature = "schema", schemars(with = "i64", range(min = 0)))]
    pub held: u64,
    /// How often it denied one.
    #[cfg_attr(feature = "schema", schemars(with = "i64", range(min = 0)))]
    pub denied: u64,
    /// How often it gave no usable answer.
    #[cfg_attr(feature = "schema", schemars(with = "i64", range(min = 0)))]
    pub errors: u64,
    /// How often it had no opinion.
    #[cfg_attr(feature = "schema", schemars(with = "i64", range(min = 0)))]
    pub no_opinion: u64,
    /// Microseconds that half of the last 1000 answers took at most, waiting for its turn included.
    #[cfg_attr(feature = "schema", schemars(with = "i64", range(min = 0)))]
    pub p50_micros: u64,
    /// Microseconds that 99 of a hundred of them took at most.
    #[cfg_attr(feature = "schema", schemars(with = "i64", range(min = 0)))]
    pub p99_micros: u64,
    /// Fuel that 99 of a hundred of them used at most.
    #[cfg_attr(feature = "schema", schemars(with = "i64", range(min = 0)))]
    pub p99_fuel: u64,
}

/// What the policy controller observed of a candidate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CandidateStatus {
    /// SHA-256 of its module, lower-case hexadecimal digits. None: it is not tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub sha256: Option<String>,
    /// For how many of a hundred clusters it decides.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "i64", range(min = 0, max = 100)))]
    pub share: u8,
    /// Why it is not tried. None: it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 1024)))]
    pub failed: Option<String>,
    /// How many joins this controller had both versions judge since it leads and the candidate was loaded.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "i64", range(min = 0)))]
    pub compared: u64,
    /// In how many of them they differed.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "i64", range(min = 0)))]
    pub differed: u64,
    /// The last difference: the cluster, and what each of them said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 1024)))]
    pub last_difference: Option<String>,
}

/// Where the WebAssembly module of a policy comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(
    feature = "schema",
    schemars(extend("x-kubernetes-validations" = [{
        "rule": "[has(self.builtin), has(self.configMap), has(self.secret), has(self.oci), has(self.url), has(self.path)].filter(set, set).size() == 1",
        "message": "module must have exactly one of builtin, configMap, secret, oci, url and path",
    }]))
)]
pub struct ModuleSource {
    /// Name of a module that the policy webhook brings along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 63), regex(pattern = DNS_LABEL)))]
    pub builtin: Option<String>,
    /// A ConfigMap of the hub that holds the module, in binaryData.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ObjectKey>,
    /// A Secret of the hub that holds the module, in data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<ObjectKey>,
    /// An image of a registry whose one layer is the module. The policy controller fetches it and keeps it on the hub, so
    /// that the registry is needed once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<OciSource>,
    /// A file of a web server. The policy controller fetches it and keeps it on the hub, so that the server is needed once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<UrlSource>,
    /// A file below the directory of modules that the policy webhook and the policy controller were started with, such as that
    /// of a volume of their pods. It needs sha256: each pod has its own files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 255), regex(pattern = MODULE_PATH)))]
    pub path: Option<String>,
}

/// An image of a registry whose one layer is a module: a Wasm OCI artifact, or a policy of Kubewarden.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OciSource {
    /// Registry, repository and digest of the image's manifest: REGISTRY/REPOSITORY@sha256:DIGEST. A tag before the digest
    /// is for people; the digest alone counts.
    #[cfg_attr(
        feature = "schema",
        schemars(length(max = 512), extend("x-kubernetes-validations" = [{
            "rule": IMAGE_RULE,
            "message": "image must name a registry, a repository and a digest, such as \
                        registry.example.com/policies/quota@sha256:DIGEST; kubectl ocm policy push prints it",
        }]))
    )]
    pub image: String,
    /// Secret of the type kubernetes.io/dockerconfigjson with the credentials to pull it. The policy controller needs a Role
    /// in its namespace that allows to get it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_secret: Option<SecretName>,
    /// CA certificates to trust the registry by instead of those of the system, in PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 65536), extend("x-kubernetes-validations" = [{
        "rule": "self.contains('-----BEGIN CERTIFICATE-----')",
        "message": "caCertificates must be certificates in PEM",
    }])))]
    pub ca_certificates: Option<String>,
    /// The signature that the image must have. Without it the digest alone is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<ModuleSignature>,
}

/// A file of a web server that is a module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UrlSource {
    /// Where the module is: an https URL, or http of a loopback address.
    #[cfg_attr(
        feature = "schema",
        schemars(length(max = 2048), extend("x-kubernetes-validations" = [{
            "rule": URL_RULE,
            "message": "url must be https://HOST/PATH without credentials; http is allowed for loopback addresses only",
        }]))
    )]
    pub url: String,
    /// SHA-256 digest that the module must have, as 64 lower-case hexadecimal digits.
    #[cfg_attr(feature = "schema", schemars(length(max = 64), regex(pattern = "^[0-9a-f]{64}$")))]
    pub sha256: String,
    /// CA certificates to trust the server by instead of those of the system, in PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 65536), extend("x-kubernetes-validations" = [{
        "rule": "self.contains('-----BEGIN CERTIFICATE-----')",
        "message": "caCertificates must be certificates in PEM",
    }])))]
    pub ca_certificates: Option<String>,
}

/// Who must have signed an image, as cosign does it with a key. No transparency log is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModuleSignature {
    /// The public key, in PEM: ECDSA with P-256 or P-384, or Ed25519.
    #[cfg_attr(feature = "schema", schemars(length(max = 4096), extend("x-kubernetes-validations" = [{
        "rule": "self.contains('-----BEGIN PUBLIC KEY-----')",
        "message": "publicKey must be a public key in PEM, as in cosign.pub",
    }])))]
    pub public_key: String,
}

/// A Secret of the hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SecretName {
    /// Namespace of the Secret.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 63), regex(pattern = DNS_LABEL)))]
    pub namespace: String,
    /// Name of the Secret.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 253), regex(pattern = DNS_SUBDOMAIN)))]
    pub name: String,
}

/// One entry of a ConfigMap or a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ObjectKey {
    /// Namespace of the object.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 63), regex(pattern = DNS_LABEL)))]
    pub namespace: String,
    /// Name of the object.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 253), regex(pattern = DNS_SUBDOMAIN)))]
    pub name: String,
    /// Key of the entry that is the module.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 253), regex(pattern = "^[-._a-zA-Z0-9]+$")))]
    pub key: String,
}

/// The one source that a [`ModuleSource`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Module<'a> {
    /// A module of this name comes with the webhook.
    Builtin(&'a str),
    /// An entry of `binaryData` of a ConfigMap.
    ConfigMap(&'a ObjectKey),
    /// An entry of `data` of a Secret.
    Secret(&'a ObjectKey),
    /// An image of a registry.
    Oci(&'a OciSource),
    /// A file of a web server.
    Url(&'a UrlSource),
    /// A file of whoever loads it.
    Path(&'a str),
}

impl ModuleSource {
    /// The source. None where not exactly one is named of those that this release knows; the API server refuses such an
    /// object, but the schema of a newer release knows more sources.
    pub fn module(&self) -> Option<Module<'_>> {
        // Without `..`, a new source does not compile before it is considered here.
        let Self { builtin, config_map, secret, oci, url, path } = self;
        let all = [
            builtin.as_deref().map(Module::Builtin),
            config_map.as_ref().map(Module::ConfigMap),
            secret.as_ref().map(Module::Secret),
            oci.as_ref().map(Module::Oci),
            url.as_ref().map(Module::Url),
            path.as_deref().map(Module::Path),
        ];
        let mut named = all.into_iter().flatten();
        match (named.next(), named.next()) {
            (Some(one), None) => Some(one),
            _ => None,
        }
    }
}

text_enum! {
    /// What a policy is asked about. Whoever reads a word of a newer release asks about everything.
    PolicyOperation {
        /// The creation of a ManagedCluster.
        Create = "create",
        /// A change of a ManagedCluster.
        Update = "update",
        /// The deletion of a ManagedCluster.
        Delete = "delete",
        /// The creation of a certificate request.
        Request = "request",
        /// The approval of a certificate request.
        Approve = "approve",
        /// The acceptance of a ManagedCluster.
        Accept = "accept",
        /// A ManagedCluster together with the certificate request for it, by the policy controller.
        Join = "join",
        /// Changes of other objects of the hub.
        Admit = "admit",
    } default Join
}

/// Which requests a policy is asked about: those that all parts take which are there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyMatch {
    /// Signers. Certificate requests for others are none of the policy's business. Whatever is about no certificate request
    /// is taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "schema",
        schemars(length(max = 16), inner(length(min = 1, max = 571)), extend("x-kubernetes-list-type" = "set"))
    )]
    pub signers: Vec<String>,
    /// Groups. Requests of users who are in none of them are none of the policy's business.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "schema",
        schemars(length(max = 16), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "set"))
    )]
    pub requester_groups: Vec<String>,
    /// Labels of ManagedClusters. Clusters with other labels, before a change as well as after it, are none of the policy's
    /// business. Who creates a cluster chooses its labels. Whatever does not show the labels of a cluster is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_selector: Option<ClusterSelector>,
    /// Conditions in the Common Expression Language, all of which have to be true. Where one is false, the request is none of
    /// the policy's business. Where none is false and one cannot be evaluated, that is an error of the policy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "schema",
        schemars(
            length(max = 16),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
        )
    )]
    pub conditions: Vec<MatchCondition>,
}

/// A condition that requests have to meet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MatchCondition {
    /// Names it in errors.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 63)))]
    pub name: String,
    /// An expression of `request`, such as `request.cluster.labels["env"] == "prod"`, that is true or false.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 4096)))]
    pub expression: String,
}

/// A label selector, as Kubernetes has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterSelector {
    /// Labels with their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(extend("maxProperties" = 16)))]
    pub match_labels: BTreeMap<String, String>,
    /// What labels have to fulfil besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 16)))]
    pub match_expressions: Vec<ClusterSelectorRequirement>,
}

/// What a label has to fulfil.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(
    feature = "schema",
    schemars(extend("x-kubernetes-validations" = [{
        "rule": "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
        "fieldPath": ".values",
        "message": "values must be set with the operators In and NotIn, and with no other",
    }]))
)]
pub struct ClusterSelectorRequirement {
    /// Key of the label.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 317)))]
    pub key: String,
    /// How the label is compared.
    pub operator: SelectorOperator,
    /// Values to compare it with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64), inner(length(max = 63))))]
    pub values: Vec<String>,
}

text_enum! {
    /// How a label is compared. Whoever reads a word of a newer release takes it for fulfilled.
    SelectorOperator {
        /// Its value is one of these.
        In = "In",
        /// It has none of these values, or is not there.
        NotIn = "NotIn",
        /// It is there.
        Exists = "Exists",
        /// It is not there.
        DoesNotExist = "DoesNotExist",
    } default Exists
}

text_enum! {
    /// What the verdict of a policy counts for. Whoever reads a word of a newer release must not let more through than
    /// with `Enforce`.
    PolicyMode {
        /// It decides.
        Enforce = "Enforce",
        /// The request goes on, and who sent it is warned.
        Warn = "Warn",
        /// The request goes on, and the verdict is recorded.
        Audit = "Audit",
    } default Enforce
}

text_enum! {
    /// What an error of a policy counts for: never an approval. Whoever reads a word of a newer release takes it for
    /// `Deny`.
    OnError {
        /// The request is denied.
        Deny = "Deny",
        /// The request is not decided until the policy answers or a person decides.
        Hold = "Hold",
    } default Deny
}

text_enum! {
    /// Whether an approval with breakGlass lets pass what a policy refuses. Whoever reads a word of a newer release takes it
    /// for `Never`.
    BreakGlass {
        /// It does not.
        Never = "Never",
        /// It does, and its author is warned.
        Allowed = "Allowed",
    } default Never
}

/// What a policy may change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyGrants {
    /// Changes that the policy may make to the ManagedCluster that it is asked about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub edits: Vec<EditGrant>,
}

text_enum! {
    /// What an [`EditGrant`] covers.
    EditTarget {
        /// Labels of a key.
        Label = "label",
        /// Annotations of a key.
        Annotation = "annotation",
        /// Taints of a key.
        Taint = "taint",
        /// The cluster set.
        ClusterSet = "cluster-set",
        /// The lease duration.
        LeaseDuration = "lease-duration",
    } default Label
}

/// One kind of change that a policy may make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(
    feature = "schema",
    schemars(extend("x-kubernetes-validations" = [{
        "rule": "has(self.key) == (self.edit in ['label', 'annotation', 'taint'])",
        "fieldPath": ".key",
        "message": "key must be set with the edits label, annotation and taint, and with no other",
    }]))
)]
pub struct EditGrant {
    /// What may be changed: labels, annotations or taints of a key, the cluster set, or the lease duration.
    pub edit: EditTarget,
    /// Key of the labels, annotations or taints; one that ends with * is a prefix. A prefix does not reach keys of
    /// Kubernetes and Open Cluster Management, and no key reaches the label of the cluster set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 317), regex(pattern = r"^[-A-Za-z0-9_./]*\*?$")))]
    pub key: Option<String>,
}

/// The most that one decision of a policy may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyLimits {
    /// Fuel of one decision: about one unit for each WebAssembly instruction. At most 500000000, which is also what
    /// counts unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<i64>", range(min = 1, max = MAX_FUEL)))]
    pub fuel: Option<u64>,
    /// Bytes of memory. At least 65536, at most 67108864, which is also what counts unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<i64>", range(min = MIN_MEMORY_BYTES, max = MAX_MEMORY_BYTES))
    )]
    pub memory_bytes: Option<u64>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(spec: Value) -> HubPolicy {
        let object = json!({
            "apiVersion": "policy.kubectl-ocm.dev/v1alpha1",
            "kind": "HubPolicy",
            "metadata": { "name": "p" },
            "spec": spec,
        });
        serde_json::from_value(object).expect("it is a HubPolicy")
    }

    #[test]
    fn what_is_not_said_is_the_strictest() {
        let spec = policy(json!({ "module": { "builtin": "csr-hygiene" } })).spec;
        assert_eq!((&spec.mode, &spec.on_error), (&PolicyMode::Enforce, &OnError::Deny));
        assert_eq!((spec.settings, spec.sha256), (None, None));
        assert!(spec.grants.edits.is_empty() && !spec.auto_approve && spec.break_glass == BreakGlass::Never);
        assert_eq!(spec.limits, PolicyLimits::default());
    }

    #[test]
    fn everything_that_is_said_is_written_again() {
        let spec = json!({
            "module": { "configMap": { "namespace": "policies", "name": "quota", "key": "quota.wasm" } },
            "sha256": "0".repeat(64),
            "settings": { "most": 3, "of": [{ "team": null }] },
            "mode": "Warn",
            "onError": "Hold",
            "autoApprove": true,
            "breakGlass": "Allowed",
            "grants": { "edits": [{ "edit": "label", "key": "example.com/*" }, { "edit": "cluster-set" }] },
            "limits": { "fuel": 1_000_000, "memoryBytes": 1 << 20 },
            "candidate": { "module": { "builtin": "join-quota" }, "settings": { "most": 4 }, "share": 25 },
        });
        let written = serde_json::to_value(policy(spec.clone()).spec).expect("it is written");
        assert_eq!(written, spec);
    }

    #[test]
    fn a_source_is_one_and_known() {
        let image = OciSource { image: "r.example/p@sha256:0".into(), ..OciSource::default() };
        let file = UrlSource { url: "https://e.example/p".into(), sha256: "0".into(), ca_certificates: None };
        let entry = json!({ "namespace": "n", "name": "o", "key": "k" });
        let key = ObjectKey { namespace: "n".into(), name: "o".into(), key: "k".into() };
        for (source, module) in [
            (json!({ "builtin": "b" }), Some(Module::Builtin("b"))),
            (json!({ "configMap": entry }), Some(Module::ConfigMap(&key))),
            (json!({ "secret": entry }), Some(Module::Secret(&key))),
            (json!({}), None),
            (json!({ "oci": { "image": "r.example/p@sha256:0" } }), Some(Module::Oci(&image))),
            (json!({ "url": { "url": "https://e.example/p", "sha256": "0" } }), Some(Module::Url(&file))),
            (json!({ "path": "a/b.wasm" }), Some(Module::Path("a/b.wasm"))),
            (json!({ "path": "a/b.wasm", "builtin": "b" }), None),
            (json!({ "url": { "url": "https://e.example/p", "sha256": "0" }, "builtin": "b" }), None),
            (json!({ "image": { "reference": "example.com/quota:1" } }), None),
            (json!({ "builtin": "b", "secret": entry }), None),
            (json!({ "configMap": entry, "secret": entry }), None),
        ] {
            assert_eq!(policy(json!({ "module": source })).spec.module.module(), module, "{source}");
        }
    }

    #[test]
    fn words_of_a_newer_release_stay_readable() {
        let spec = json!({ "module": { "builtin": "b" }, "mode": "Canary", "onError": "Retry", "breakGlass": "Twice" });
        let spec = policy(spec).spec;
        assert_eq!((spec.mode, spec.on_error), (PolicyMode::Other("Canary".into()), OnError::Other("Retry".into())));
        assert_eq!(spec.break_glass, BreakGlass::Other("Twice".into()));
    }
}
