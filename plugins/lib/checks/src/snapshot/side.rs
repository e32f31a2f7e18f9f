//! The sides of a registration.

use serde::{Deserialize, Serialize};

/// One of the two sides of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Side {
    /// The hub.
    Hub,
    /// The managed cluster.
    Managed,
}
