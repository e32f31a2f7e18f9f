//! `operator.open-cluster-management.io/v1`: what an installer hands to the two operators.
//!
//! Field by field as upstream's `operator/v1`. Fields that upstream's schema requires are plain values here, all
//! others are optional; a default that the API server fills in is named in the field's comment.

mod cluster_manager;
mod klusterlet;

pub use cluster_manager::*;
pub use klusterlet::*;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ResourceRequirements, Toleration};
use serde::{Deserialize, Serialize};

use crate::Condition;
#[cfg(feature = "schema")]
use crate::field_schema;

/// Where the pods of an operator may run. Upstream: `NodePlacement`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodePlacement {
    /// Labels that a node must carry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints that the pods tolerate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "field_schema::tolerations"))]
    pub tolerations: Vec<Toleration>,
}

text_enum! {
    /// Whether a feature gate is on. Upstream: `FeatureGateModeType`.
    FeatureGateMode {
        /// The gate is on.
        Enable = "Enable",
        /// The gate is off.
        Disable = "Disable",
    } default Disable
}

/// One feature gate of a component. Upstream: `FeatureGate`.
///
/// The operator drops gates that it does not know and says so in the condition `ValidFeatureGates`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FeatureGate {
    /// Name of the gate, for example `ManagedClusterAutoApproval`.
    pub feature: String,
    /// On or off; the server fills in `Disable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "Disable")))]
    pub mode: Option<FeatureGateMode>,
}

impl FeatureGate {
    /// The gate of this name, on.
    pub fn enabled(feature: &str) -> Self {
        Self { feature: feature.to_owned(), mode: Some(FeatureGateMode::Enable) }
    }

    /// The gate of this name, off.
    pub fn disabled(feature: &str) -> Self {
        Self { feature: feature.to_owned(), mode: Some(FeatureGateMode::Disable) }
    }
}

text_enum! {
    /// How much CPU and memory the pods ask for. Upstream: `ResourceQosClass`.
    ResourceQosClass {
        /// The operator's own small requests, no limits.
        Default = "Default",
        /// Neither requests nor limits.
        BestEffort = "BestEffort",
        /// What `resourceRequirements` says.
        ResourceRequirement = "ResourceRequirement",
    } default Default
}

/// Requests and limits of the pods that an operator creates. Upstream: `ResourceRequirement`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ResourceRequirement {
    /// Which rule applies; the server fills in `Default`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "Default")))]
    pub type_: Option<ResourceQosClass>,
    /// Requests and limits of every container, used with type `ResourceRequirement`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "field_schema::resource_requirements"))]
    pub resource_requirements: Option<ResourceRequirements>,
}

text_enum! {
    /// How an agent proves its identity to the hub. Upstream: the `*AuthType` constants.
    RegistrationAuthType {
        /// A client certificate from a certificate signing request.
        Csr = "csr",
        /// An AWS IAM role, on EKS only.
        AwsIrsa = "awsirsa",
        /// A certificate that the hub signs for agents that connect over gRPC.
        Grpc = "grpc",
    } default Csr
}

/// The newest generation of an object that an operator has applied. Upstream: `GenerationStatus`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GenerationStatus {
    /// API group of the object.
    pub group: String,
    /// API version of the object.
    pub version: String,
    /// Plural resource name of the object.
    pub resource: String,
    /// Namespace of the object; empty for cluster-scoped ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
    /// `metadata.generation` that was applied.
    pub last_generation: i64,
}

/// An object that an operator manages. Upstream: `RelatedResourceMeta`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RelatedResourceMeta {
    /// API group of the object.
    pub group: String,
    /// API version of the object.
    pub version: String,
    /// Plural resource name of the object.
    pub resource: String,
    /// Namespace of the object; empty for cluster-scoped ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
}

/// What an operator reports about its object. Upstream: `ClusterManagerStatus` and `KlusterletStatus`, which agree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OperatorStatus {
    /// `metadata.generation` that the operator last acted on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions; types and reasons are in `conditions`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "field_schema::conditions"))]
    pub conditions: Vec<Condition>,
    /// Generations of the workloads that the operator has applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generations: Vec<GenerationStatus>,
    /// Every object that the operator manages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related_resources: Vec<RelatedResourceMeta>,
}

#[cfg(feature = "schema")]
const HOST_PATTERN: &str =
    r"^(([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]*[a-zA-Z0-9])\.)*([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9\-]*[A-Za-z0-9])$";
#[cfg(feature = "schema")]
const EKS_ARN_PATTERN: &str = r"^arn:aws:eks:([a-zA-Z0-9-]+):(\d{12}):cluster/([a-zA-Z0-9-]+)$";
