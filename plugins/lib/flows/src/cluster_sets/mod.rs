//! Sets of managed clusters: listed, made, filled, bound to namespaces, and deleted.
//!
//! ```text
//! look (sets, bindings, which placements select what) ─▶ what would be lost ─▶ the caller asks ─▶ change
//! ```

mod bindings;
mod creation;
mod list;
mod membership;
mod namespaces;
mod objects;
mod read;
mod removal;

pub(crate) use bindings::delete_known;
pub use bindings::{Bound, bind, binding_plan, check_rights_to_bind, check_rights_to_unbind, inspect_bound, unbind};
pub use creation::{check_rights_to_create, create};
pub use list::{SetRow, cluster_sets, selector_in, watch_cluster_sets};
pub use membership::{Move, Moved, Moves, Who, check_rights_to_move, move_clusters, moves_into, moves_out_of};
pub use namespaces::{NamespaceChange, change_namespaces, check_rights_to_change_namespaces};
pub(crate) use objects::named;
pub use read::Effects;
pub(crate) use read::{decisions, facts, of_hub, patient, scoped, selected_by};
pub use removal::{Removal, check_rights_to_delete, delete, inspect, refuse};
