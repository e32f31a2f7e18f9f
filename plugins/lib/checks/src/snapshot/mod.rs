//! What was observed of a hub, a managed cluster and the way between them, as one value: checks judge it, a bundle holds
//! it, and a report from either is the same.
//!
//! Secrets are in it as names of keys, sizes and keyed digests, and what of them is public: [`SecretFacts`]. Words of others
//! are in it as [`ocm_core::redact`] leaves them.

mod document;
mod hub;
mod managed;
mod observed;
mod secret;
mod side;
mod wire;

pub use document::{FORMAT, Snapshot};
pub use hub::{
    AdmissionFacts, HubSide, LeaseFacts, NamespaceFacts, ServiceFacts, ServingFacts, StorageFacts, WebhookFacts,
    WorkFacts,
};
pub use managed::{AdminFacts, AgentSide, AppliedWorkFacts, ManagedSide, NetworkPolicyFacts};
pub use observed::{Observed, PolicyRule, Trouble, Version, Workload};
pub use secret::{GrpcFacts, KeyFacts, KubeconfigFacts, SecretFacts, TokenFacts};
pub use side::Side;
pub use wire::{Answer, Credential, Probe};
