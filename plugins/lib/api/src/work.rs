//! `work.open-cluster-management.io`: objects that the hub wants on a managed cluster.
//!
//! What no command looks into is raw JSON.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;
use serde_json::Value;

use crate::member::Member;
use crate::{Condition, lenient};

api_object! {
    /// Objects for one managed cluster, in the cluster's namespace on the hub. Upstream: `work/v1.ManifestWork`.
    ManifestWork { spec: ManifestWorkSpec, status: ManifestWorkStatus }
    group "work.open-cluster-management.io", version "v1", plural "manifestworks", scope NamespaceResourceScope
}

api_object! {
    /// A ManifestWork for each cluster that placements of its namespace select; the hub follows their decisions. Upstream:
    /// `work/v1alpha1.ManifestWorkReplicaSet`.
    ManifestWorkReplicaSet { spec: Value, status: Value }
    group "work.open-cluster-management.io", version "v1alpha1", plural "manifestworkreplicasets",
    scope NamespaceResourceScope
}

/// What to apply and how. Upstream: `ManifestWorkSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkSpec {
    /// The objects.
    #[serde(default)]
    pub workload: ManifestsTemplate,
    /// What becomes of the objects when the work is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_option: Option<DeleteOption>,
    /// Settings per object: update strategy, feedback and condition rules. Upstream: `ManifestConfigOption`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifest_configs: Vec<Value>,
    /// As whom the agent applies the objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<ManifestWorkExecutor>,
}

/// The objects of a work. Upstream: `ManifestsTemplate`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ManifestsTemplate {
    /// Kubernetes objects, whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<Value>,
}

text_enum! {
    /// What becomes of applied objects when their work is deleted. Upstream: `DeletePropagationPolicyType`.
    DeletePropagationPolicy {
        /// They are deleted, and the work waits for it.
        Foreground = "Foreground",
        /// They stay.
        Orphan = "Orphan",
        /// Those that the rules name stay.
        SelectivelyOrphan = "SelectivelyOrphan",
    } default Foreground
}

text_enum! {
    /// How the agent brings an object to what the work says. Upstream: `UpdateStrategyType`.
    UpdateStrategyType {
        /// It is updated.
        Update = "Update",
        /// It is created, and then left as it is.
        CreateOnly = "CreateOnly",
        /// It is applied server-side, so that others may own some of its fields.
        ServerSideApply = "ServerSideApply",
        /// It is only looked at.
        ReadOnly = "ReadOnly",
    } default Update
}

/// What becomes of the objects of a work. Upstream: `DeleteOption`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct DeleteOption {
    /// What happens when the work is deleted; the server fills in `Foreground`.
    #[serde(default)]
    pub propagation_policy: DeletePropagationPolicy,
    /// Which objects stay with `SelectivelyOrphan`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selectively_orphans: Option<SelectivelyOrphan>,
    /// Seconds after completion at which the hub deletes the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i64>,
}

/// Objects that outlive their work. Upstream: `SelectivelyOrphan`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct SelectivelyOrphan {
    /// The objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orphaning_rules: Vec<ResourceIdentifier>,
}

/// An object on the managed cluster. Upstream: `ResourceIdentifier`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ResourceIdentifier {
    /// API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// Plural resource name.
    pub resource: String,
    /// Name.
    pub name: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(default)]
    pub namespace: String,
}

/// As whom the agent applies objects. Upstream: `ManifestWorkExecutor`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkExecutor {
    /// The identity.
    #[serde(default)]
    pub subject: ManifestWorkExecutorSubject,
}

/// An identity on the managed cluster. Upstream: `ManifestWorkExecutorSubject`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkExecutorSubject {
    /// Kind of the identity; upstream knows only `ServiceAccount`.
    #[serde(rename = "type")]
    pub type_: String,
    /// The ServiceAccount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccountReference>,
}

/// A ServiceAccount on the managed cluster. Upstream: `ManifestWorkSubjectServiceAccount`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ServiceAccountReference {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What became of a work. Upstream: `ManifestWorkStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkStatus {
    /// Conditions of the whole; types and reasons are in
    /// [`conditions::manifest_work`](crate::conditions::manifest_work).
    #[serde(default, deserialize_with = "lenient::conditions", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// What became of each object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_status: Option<ManifestResourceStatus>,
}

/// What became of each object of a work. Upstream: `ManifestResourceStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ManifestResourceStatus {
    /// In the order of the work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<ManifestCondition>,
}

/// What became of one object of a work. Upstream: `ManifestCondition`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ManifestCondition {
    /// The object.
    #[serde(default)]
    pub resource_meta: ManifestResourceMeta,
    /// Status values that were asked for. Upstream: `StatusFeedbackResult`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_feedback: Option<Value>,
    /// Conditions of the object.
    #[serde(default, deserialize_with = "lenient::conditions", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// An object of a work and its place there. Upstream: `ManifestResourceMeta`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase", default)]
pub struct ManifestResourceMeta {
    /// Index in the work, from 0.
    pub ordinal: i32,
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Plural resource name; empty when the managed cluster does not know the kind.
    pub resource: String,
    /// Name.
    pub name: String,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
}

api_object! {
    /// The agent's record of what a work has put on the managed cluster. Upstream: `work/v1.AppliedManifestWork`.
    AppliedManifestWork { spec: AppliedManifestWorkSpec, status: AppliedManifestWorkStatus }
    group "work.open-cluster-management.io", version "v1", plural "appliedmanifestworks", scope ClusterResourceScope
}

/// Which work of which hub. Upstream: `AppliedManifestWorkSpec`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase", default)]
pub struct AppliedManifestWorkSpec {
    /// Hash of the address at which the agent has found its hub.
    pub hub_hash: String,
    /// Identity of the agent that wrote the record: the UID of its Klusterlet.
    #[serde(rename = "agentID")]
    pub agent_id: String,
    /// Name of the ManifestWork on the hub.
    pub manifest_work_name: String,
}

/// What a work has put on the managed cluster. Upstream: `AppliedManifestWorkStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct AppliedManifestWorkStatus {
    /// The objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applied_resources: Vec<AppliedManifestResourceMeta>,
    /// Since when the work has been missing on the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eviction_start_time: Option<Time>,
}

/// An object that a work has put on the managed cluster. Upstream: `AppliedManifestResourceMeta`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct AppliedManifestResourceMeta {
    /// API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// API version.
    pub version: String,
    /// Plural resource name.
    pub resource: String,
    /// Name.
    pub name: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(default)]
    pub namespace: String,
    /// UID of the object as it was applied; an object with another UID is not the work's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}
