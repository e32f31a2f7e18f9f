//! `cluster.open-cluster-management.io`: managed clusters and sets of them, on the hub.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use serde::Serialize;

use crate::member::Member;
use crate::{Condition, lenient};

api_object! {
    /// A cluster that has registered, or wants to, with the hub. Upstream: `cluster/v1.ManagedCluster`.
    ManagedCluster { spec: ManagedClusterSpec, status: ManagedClusterStatus }
    group "cluster.open-cluster-management.io", version "v1", plural "managedclusters", scope ClusterResourceScope
}

/// What hub and agent agree on. Upstream: `ManagedClusterSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSpec {
    /// Addresses of the managed cluster's API server, as its agent reported them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managed_cluster_client_configs: Vec<ClientConfig>,
    /// Whether the hub's administrator lets the agent in; absent means not yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub_accepts_client: Option<bool>,
    /// Seconds between two renewals of the agent's lease; the server fills in 60. The hub calls the cluster unknown
    /// after five times as long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_duration_seconds: Option<i32>,
    /// Taints that keep placements away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

/// An address of an API server. Upstream: `ClientConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ClientConfig {
    /// The https URL.
    pub url: String,
    /// PEM certificates of its issuer; none also where they cannot be read.
    #[serde(default, deserialize_with = "lenient::bytes", skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<ByteString>,
}

text_enum! {
    /// What a taint does to placements that do not tolerate it. Upstream: `TaintEffect`.
    TaintEffect {
        /// The cluster is not selected, and no longer stays selected.
        NoSelect = "NoSelect",
        /// The cluster is selected only for want of others.
        PreferNoSelect = "PreferNoSelect",
        /// The cluster is not selected anew.
        NoSelectIfNew = "NoSelectIfNew",
    } default NoSelect
}

/// A mark that keeps placements away. Upstream: `Taint`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Name of the mark.
    pub key: String,
    /// Value of the mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// What it does.
    pub effect: TaintEffect,
    /// When it was set; none also where it cannot be read. The hub's webhook writes this and refuses it from clients.
    #[serde(default, deserialize_with = "lenient::time", skip_serializing_if = "Option::is_none")]
    pub time_added: Option<Time>,
}

/// What is known about a managed cluster. Upstream: `ManagedClusterStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterStatus {
    /// Conditions; types and reasons are in [`conditions::managed_cluster`](crate::conditions::managed_cluster). Times that cannot be
    /// read are the beginning of 1970.
    #[serde(default, deserialize_with = "lenient::conditions", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Resources of all nodes by name, for example `cpu` and `memory`.
    #[serde(default, deserialize_with = "lenient::quantities", skip_serializing_if = "BTreeMap::is_empty")]
    pub capacity: BTreeMap<String, Quantity>,
    /// Resources of all nodes that pods may use.
    #[serde(default, deserialize_with = "lenient::quantities", skip_serializing_if = "BTreeMap::is_empty")]
    pub allocatable: BTreeMap<String, Quantity>,
    /// Versions of what runs there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<ManagedClusterVersion>,
    /// ClusterClaims and ClusterProperties that the agent reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_claims: Vec<ManagedClusterClaim>,
    /// Namespaces that the cluster's sets ask for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managed_namespaces: Vec<ClusterSetManagedNamespaceConfig>,
}

/// Versions of a managed cluster. Upstream: `ManagedClusterVersion`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterVersion {
    /// Version of Kubernetes, for example `v1.35.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<String>,
}

/// A fact about a managed cluster. Upstream: `ManagedClusterClaim`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterClaim {
    /// Name, for example `id.k8s.io`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// A namespace that a set asks its clusters for. Upstream: `ClusterSetManagedNamespaceConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSetManagedNamespaceConfig {
    /// Name of the namespace.
    pub name: String,
    /// Name of the set.
    pub cluster_set: String,
    /// Whether the namespace is there.
    #[serde(default, deserialize_with = "lenient::conditions", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

api_object! {
    /// A set of managed clusters. Upstream: `cluster/v1beta2.ManagedClusterSet`.
    ManagedClusterSet { spec: ManagedClusterSetSpec, status: ManagedClusterSetStatus }
    group "cluster.open-cluster-management.io", version "v1beta2", plural "managedclustersets", scope ClusterResourceScope
}

/// Which clusters are in a set. Upstream: `ManagedClusterSetSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSetSpec {
    /// How the clusters are chosen; the server fills in the set's label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_selector: Option<ManagedClusterSelector>,
    /// Namespaces that every cluster of the set should have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managed_namespaces: Vec<ManagedNamespaceConfig>,
}

text_enum! {
    /// How a set chooses its clusters. Upstream: `SelectorType`.
    SelectorType {
        /// By the label [`CLUSTER_SET`](crate::names::labels::CLUSTER_SET), so that no cluster is in two such sets.
        ExclusiveClusterSetLabel = "ExclusiveClusterSetLabel",
        /// By any labels.
        LabelSelector = "LabelSelector",
    } default ExclusiveClusterSetLabel
}

/// How a set chooses its clusters. Upstream: `ManagedClusterSelector`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSelector {
    /// By the set's own label or by any labels.
    #[serde(default)]
    pub selector_type: SelectorType,
    /// The labels, with type `LabelSelector`. An empty selector chooses every cluster, none chooses no cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
}

/// A namespace that every cluster of a set should have. Upstream: `ManagedNamespaceConfig`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ManagedNamespaceConfig {
    /// Name of the namespace.
    pub name: String,
}

/// What is known about a set. Upstream: `ManagedClusterSetStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSetStatus {
    /// Conditions; types are in [`conditions::managed_cluster_set`](crate::conditions::managed_cluster_set).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

api_object! {
    /// Permission for the placements of a namespace to use a set; its name is the set's. Upstream:
    /// `cluster/v1beta2.ManagedClusterSetBinding`.
    ManagedClusterSetBinding { spec: ManagedClusterSetBindingSpec, status: ManagedClusterSetBindingStatus }
    group "cluster.open-cluster-management.io", version "v1beta2", plural "managedclustersetbindings",
    scope NamespaceResourceScope
}

/// Which set is bound. Upstream: `ManagedClusterSetBindingSpec`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSetBindingSpec {
    /// Name of the set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_set: Option<String>,
}

/// What is known about a binding. Upstream: `ManagedClusterSetBindingStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSetBindingStatus {
    /// Conditions; types are in
    /// [`conditions::managed_cluster_set_binding`](crate::conditions::managed_cluster_set_binding).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
