//! What a controller is made of.

use std::sync::Arc;

use kube::Client;
use ocm_kube::Cluster;
use ocm_policy_server::{DecisionLog, Knowledge, Metrics, Policies};

use crate::lease::{Holder, LeaseName};

/// What a controller is made of.
pub struct Parts {
    /// Follows the hub.
    pub hub: Cluster,
    /// Writes. It must send each request once: whoever repeats a write does not know what became of it.
    pub effects: Client,
    /// The policies in force.
    pub policies: Arc<Policies>,
    /// What they know of the hub.
    pub knowledge: Arc<Knowledge>,
    /// What a scrape finds.
    pub metrics: Arc<Metrics>,
    /// Takes the lines of the decision log.
    pub log: Arc<DecisionLog>,
    /// Who holds this acts.
    pub lease: LeaseName,
    /// As whom.
    pub holder: Holder,
}
