//! What a hub brings to managed clusters, works and add-ons: lists, the clusters that are meant, sending, waiting, deleting.

mod list;
mod removal;
mod send;
mod targets;
mod there;

pub(crate) use list::those_there;
pub use list::{Delivery, DeliveryRow, Wanted, deliveries, watch_deliveries};
pub use removal::{Removing, ToDelete, check_rights_to_remove, inspect, refuse, remove_all};
pub(crate) use send::{read_present, send};
pub(crate) use targets::known_placement;
pub use targets::{Targets, clusters_of, require_accepted};
pub use there::{Waited, until_there};
