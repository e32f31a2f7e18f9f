//! Sets of managed clusters: which clusters are in which, which of them placements may select, and what keeps the others
//! out.
//!
//! ```text
//! ManagedCluster ─▶ ManagedClusterSet ─▶ binding in a namespace ─▶ Placement ─▶ predicates ─▶ taints ─▶ number
//! ```

mod decided;
mod membership;
mod namespaces;
mod placements;
mod selections;
pub(crate) mod selector;

#[cfg(test)]
mod tests;

pub use decided::undecided;
pub use membership::{Facts, can_name, chooses_by_labels, holds, in_set, is_hubs_own, selector_of, set_of};
pub use namespaces::{managed_namespaces, namespaces_with, namespaces_without};
pub use placements::{Choice, Lost, Standing, choices, lost, why};
pub use selections::{Selection, decided_for, selections};
