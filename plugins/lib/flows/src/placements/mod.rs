//! Placements: listed with what keeps clusters out, created, waited for, and deleted.

mod create;
mod list;
mod removal;
mod wait;

pub use create::{CreateRequest, PlacementCreated, create};
pub use list::{PlacementRow, WantedPlacements, choices_of, placements, watch_placements};
pub use removal::{Removal, Unread, check_rights_to_delete, delete, inspect};
pub use wait::Decided;
