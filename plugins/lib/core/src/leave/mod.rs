//! How clusters leave: what a hub and a managed cluster hold of one, what has to go first, what stays behind, and whose it
//! is.
//!
//! ```text
//! hub:      ManagedCluster ─▶ add-ons ─▶ works, by priority ─▶ requests, namespace, lease
//! managed:  Klusterlet ─▶ agents, their namespaces ─▶ operator, if nobody needs it ─▶ definitions that are empty
//! ```

pub mod hub;
pub mod installation;
pub mod klusterlet;
mod objects;
pub mod space;
pub mod works;

pub(crate) use objects::meta;
pub use objects::{row, some};
