//! The hub's controller: approves and accepts the joins that rules and policies allow, and does nothing else.
//!
//! ```text
//! ManagedClusters, requests, … ─▶ hub (stores) ─▶ rules of accept ─▶ policies ─▶ step
//!                                      │                                          │
//! Lease ─▶ leadership ─────────────────┴───▶ intent ─▶ approve ─▶ accept, edit ─▶ result (Registration)
//!                                                 └───▶ withdraw, when the time of an acceptance is over
//!             └──▶ HubPolicies ─▶ modules: registry ─▶ digest, signature ─▶ ConfigMaps of the hub
//! ```
//!
//! Whoever does not hold the lease writes nothing. What is written is pinned to what was judged, so that nothing that
//! changed in between is let in. Everything starts from what the hub holds: wherever it is cut off, the next one that
//! looks comes to the same end.

mod attempts;
mod auto_approval;
mod clock;
mod controller;
mod effects;
mod emergency;
mod enforcement;
mod expiry;
mod failed;
mod held;
mod hub;
mod join;
mod joins;
mod keyless;
mod lease;
mod listing;
mod log;
mod modules;
mod parts;
mod policy_status;
mod queue;
mod registrations;
mod report;
mod status;
mod step;
mod store;
mod unseen;

pub use controller::Controller;
pub use lease::{Holder, LeaseName};
pub use parts::Parts;
