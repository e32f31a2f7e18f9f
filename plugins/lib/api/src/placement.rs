//! `cluster.open-cluster-management.io`: placements and what was decided about them, on the hub.
//!
//! What no command looks into is raw JSON.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, Time};
use serde::Serialize;
use serde_json::Value;

use crate::Condition;
use crate::cluster::TaintEffect;
use crate::member::Member;

api_object! {
    /// A rule that selects managed clusters out of the sets that are bound to its namespace. Upstream:
    /// `cluster/v1beta1.Placement`.
    Placement { spec: PlacementSpec, status: PlacementStatus }
    group "cluster.open-cluster-management.io", version "v1beta1", plural "placements", scope NamespaceResourceScope
}

/// Which clusters are selected. Upstream: `PlacementSpec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct PlacementSpec {
    /// Names of the sets to select from, of those that are bound to the namespace; empty: all that are bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_sets: Vec<String>,
    /// How many clusters are selected; absent: all that can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number_of_clusters: Option<i32>,
    /// A cluster has to match one of them; empty: every cluster does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predicates: Vec<ClusterPredicate>,
    /// Which clusters come first. Upstream: `PrioritizerPolicy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prioritizer_policy: Option<Value>,
    /// How the clusters are spread. Upstream: `SpreadPolicy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread_policy: Option<Value>,
    /// Taints in spite of which clusters are selected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// How decisions are divided into groups. Upstream: `DecisionStrategy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_strategy: Option<Value>,
    /// Order of the decisions, `ClusterName` or `Score`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort_by: Option<String>,
    /// How often scores are written at most, such as `1m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score_rate_limit: Option<String>,
}

/// What a cluster has to match. Upstream: `ClusterPredicate`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPredicate {
    /// All of its parts have to match.
    #[serde(default)]
    pub required_cluster_selector: ClusterSelector,
}

/// Labels, claims and expressions that all have to match. Upstream: `ClusterSelector`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSelector {
    /// Labels of the ManagedCluster; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// Claims of the ManagedCluster; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_selector: Option<ClusterClaimSelector>,
    /// Expressions in the Common Expression Language about the ManagedCluster; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cel_selector: Option<ClusterCelSelector>,
}

/// Claims that have to match. Upstream: `ClusterClaimSelector`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClaimSelector {
    /// All of them have to match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// Expressions that have to be true. Upstream: `ClusterCelSelector`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ClusterCelSelector {
    /// All of them have to be true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cel_expressions: Vec<String>,
}

text_enum! {
    /// How a toleration compares the value of a taint. Upstream: `TolerationOperator`.
    TolerationOperator {
        /// The value is the same.
        Equal = "Equal",
        /// Whatever the value is.
        Exists = "Exists",
    } default Equal
}

/// Taints in spite of which clusters are selected. Upstream: `Toleration`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// Key of the taint; absent: every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How the value is compared; the server fills in `Equal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<TolerationOperator>,
    /// Value of the taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Effect of the taint; absent: every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
    /// Seconds since the taint was set, after which it is tolerated no longer; absent: for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

/// What the placement controller has decided. Upstream: `PlacementStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct PlacementStatus {
    /// How many clusters are selected; the names are in PlacementDecisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number_of_selected_clusters: Option<i32>,
    /// The groups of decisions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decision_groups: Vec<DecisionGroupStatus>,
    /// Conditions; types and reasons are in [`conditions::placement`](crate::conditions::placement).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// When scores were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_score_update_time: Option<Time>,
}

/// A group of decisions. Upstream: `DecisionGroupStatus`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct DecisionGroupStatus {
    /// Number of the group, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_group_index: Option<i32>,
    /// Name of the group; empty where the placement names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_group_name: Option<String>,
    /// Names of its PlacementDecisions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,
    /// How many clusters are in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_count: Option<i32>,
}

api_object! {
    /// Clusters that a placement selects, a hundred at most; the label
    /// [`PLACEMENT`](crate::names::labels::PLACEMENT) names the placement. Upstream: `cluster/v1beta1.PlacementDecision`.
    PlacementDecision { status: PlacementDecisionStatus }
    group "cluster.open-cluster-management.io", version "v1beta1", plural "placementdecisions",
    scope NamespaceResourceScope
}

/// The clusters. Upstream: `PlacementDecisionStatus`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct PlacementDecisionStatus {
    /// One each.
    #[serde(default)]
    pub decisions: Vec<ClusterDecision>,
}

/// A cluster that is selected. Upstream: `ClusterDecision`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ClusterDecision {
    /// Name of the ManagedCluster; empty where there is none for the place.
    #[serde(default)]
    pub cluster_name: String,
    /// Why it was selected.
    #[serde(default)]
    pub reason: String,
    /// Its score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<i64>,
}
