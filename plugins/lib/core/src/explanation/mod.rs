//! Why a cluster is let in, or what keeps it out, as the hub and its policies see it.
//!
//! ```text
//! ManagedCluster ─┐
//! Registration ───┤
//! its requests ───┼─▶ explain ─▶ Explanation { finding, next, opinions, … }
//! HubPolicies ────┤
//! approvals ──────┘
//! ```
//!
//! Every fact may be missing: a hub without a policy engine, a user who may not read it. What is left is explained all the
//! same, and what was not read is said.

mod approvals;
mod facts;
mod finding;
mod judge;
mod opinions;

pub use approvals::{Counted, GivenApproval};
pub use facts::Facts;
pub use finding::Finding;
pub use judge::{APPROVALS_MISSING, APPROVALS_UNPROVED, Asking, Explanation, Keys, Unread, explain};
pub use opinions::{Doubt, InForce, Opinion, Unasked};

#[cfg(test)]
mod tests;
