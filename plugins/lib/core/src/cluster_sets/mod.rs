//! Sets of managed clusters: which clusters are in which, which of them placements may select, and what keeps the others
//! out.
//!
//! ```text
//! ManagedCluster ─▶ ManagedClusterSet ─▶ binding in a namespace ─▶ Placement ─▶ predicates ─▶ taints ─▶ number
//! ```

mod decided;
mod membership;
mod placements;
mod selector;

#[cfg(test)]
mod tests;

pub use decided::{decided_for, undecided};
pub use membership::{Facts, can_name, chooses_by_labels, holds, in_set, is_hubs_own, set_of};
pub use placements::{Choice, Lost, Selection, Standing, choices, lost, selections, why};
