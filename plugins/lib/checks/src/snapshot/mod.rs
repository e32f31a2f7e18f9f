//! What was observed of a hub, a managed cluster and the way between them, as one value: checks judge it, a bundle holds
//! it, and a report from either is the same.
//!
//! Secrets are in it as names of keys, sizes and keyed digests, and what of them is public: [`SecretFacts`]. Words of others
//! are in it as [`ocm_core::redact`] leaves them.

mod hub;
mod managed;
mod observed;
mod secret;
mod wire;

pub use hub::{
    AdmissionFacts, HubSide, LeaseFacts, NamespaceFacts, ServiceFacts, StorageFacts, WebhookFacts, WorkFacts,
};
pub use managed::{AdminFacts, AgentSide, AppliedWorkFacts, ManagedSide, NetworkPolicyFacts};
pub use observed::{Observed, PolicyRule, Trouble, Version, Workload};
pub use secret::{GrpcFacts, KeyFacts, KubeconfigFacts, SecretFacts, TokenFacts};
pub use wire::{Answer, Credential, Probe};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

/// The format of a snapshot that this code writes and reads.
pub const FORMAT: u32 = 1;

/// What was observed at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// [`FORMAT`] of whoever wrote it.
    pub format: u32,
    /// When: checks go by this time and not by that of their own run.
    pub observed: Time,
    /// What told that time, in words for people, where no clock of a cluster was asked: of a dump.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
    /// The clusters that were asked about; empty: all.
    #[serde(default)]
    pub clusters: Vec<String>,
    /// The hub; none: nobody looked at one.
    #[serde(default)]
    pub hub: Option<HubSide>,
    /// The managed cluster; none: nobody looked at one.
    #[serde(default)]
    pub managed: Option<ManagedSide>,
    /// What the hub answered to the credentials of the agents.
    #[serde(default)]
    pub probes: Vec<Probe>,
    /// The same, as seen from pods beside the agents; empty: nobody asked for that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_cluster: Vec<Probe>,
}

/// One of the two sides of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Side {
    /// The hub.
    Hub,
    /// The managed cluster.
    Managed,
}
