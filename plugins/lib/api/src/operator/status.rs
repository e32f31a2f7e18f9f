//! What the statuses of both objects share.

use serde::Serialize;

use crate::Condition;
#[cfg(feature = "schema")]
use crate::field_schema;
use crate::member::Member;

/// The newest generation of an object that an operator has applied. Upstream: `GenerationStatus`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
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
