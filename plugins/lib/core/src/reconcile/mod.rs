//! What to do with an object that is there already, perhaps made by another tool: nothing of it may be lost.
//!
//! A server-side apply loses fields in three ways, and each has its rule here:
//!
//! * A field that an earlier apply of ours set and this one does not mention is removed: [`reconcile`] mentions it.
//! * A list that the server treats as one value is replaced: [`reconcile`] keeps the entries that only the live
//!   object has, where the order of the entries allows it (rules, subjects, arguments, feature gates, users, pull
//!   Secrets of ServiceAccounts). A rule that the live ones grant already is not added.
//! * A default of ours replaces what somebody has chosen: planners lay the live object [`over`] their defaults before
//!   they add what the user typed.
//!
//! A removal deletes what carries our labels and nothing else: [`removal`].

mod defaults;
mod definition;
mod lists;
mod object;
mod owned;
mod ownership;
mod removal;
mod retired;
mod rules;

pub use defaults::over;
pub use object::{Reconciled, reconcile};
pub(crate) use owned::is_within;
pub use owned::{FIELD_MANAGER, is_applied, owned_by_us};
pub use ownership::taken_over;
pub use removal::{Removal, removal};
