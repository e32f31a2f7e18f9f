//! Simulates managed clusters against a hub's API server, right and hostile ones, as their agents behave.
//!
//! ```text
//! Fleet ── connects as the bootstrap identity, watches ManagedClusters and certificate requests
//!   └ storm(Plan) ─▶ Storm ─▶ one task for each cluster:
//!         register ─▶ ask for a certificate ─▶ wait until accepted ─▶ certificate ─▶ status, lease
//!     end() ─▶ Report: counts, latencies, what hostile ones got, the agents that joined
//!   └ beat, renew: what those agents do from then on, with their own certificates
//! ```
//!
//! Every cluster has a key of its own, asks as Open Cluster Management's agent does, and asks again what the API server
//! did not answer. What differs: clusters that wait share two watches, and the connections of the bootstrap identity. The
//! seed decides who is hostile, in which way, and in which order clusters come; keys are random.

mod agent;
mod board;
mod error;
mod fleet;
mod hostile;
mod hub;
pub mod objects;
mod report;

pub use agent::Agent;
pub use error::Error;
pub use fleet::{Access, Done, Fleet, Plan, Storm};
pub use hostile::{Attempt, Hostile};
pub use report::{Latencies, Report};
