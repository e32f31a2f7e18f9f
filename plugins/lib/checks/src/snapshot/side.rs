//! The sides of a registration.

use ocm_api::member::Member;
use serde::Serialize;

/// One of the two sides of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub enum Side {
    /// The hub.
    Hub,
    /// The managed cluster.
    Managed,
}
