//! What the specs of both objects share.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ResourceRequirements, Toleration};
use serde::Serialize;

#[cfg(feature = "schema")]
use crate::field_schema;
use crate::member::Member;

/// Where the pods of an operator may run. Upstream: `NodePlacement`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
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

#[cfg(feature = "schema")]
pub(super) const HOST_PATTERN: &str =
    r"^(([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]*[a-zA-Z0-9])\.)*([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9\-]*[A-Za-z0-9])$";
#[cfg(feature = "schema")]
pub(super) const EKS_ARN_PATTERN: &str = r"^arn:aws:eks:([a-zA-Z0-9-]+):(\d{12}):cluster/([a-zA-Z0-9-]+)$";
