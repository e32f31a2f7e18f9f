//! What there is of a hub.

use serde_json::Value;

/// What the cluster holds.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// The ClusterManager, if it is a hub already.
    pub cluster_manager: Option<Value>,
    /// The operator's Deployment.
    pub operator: Option<Value>,
    /// How many nodes there are, where that is known.
    pub nodes: Option<usize>,
}
