//! What is wanted of an unjoin, and what it comes to.

use crate::leave::hub::Detached;
use crate::leave::leaving::Leaving;

/// What becomes of the objects that works have put on the cluster, where the hub does not have them removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Works {
    /// They are deleted.
    Delete,
    /// They stay, and nothing says any more where they come from.
    Keep,
}

/// What is wanted.
#[derive(Clone, Debug)]
pub struct UnjoinRequest {
    /// Name of the cluster on its hub; none: the only one that there is.
    pub cluster: Option<String>,
    /// Name of the Klusterlet, where several are of clusters of that name.
    pub klusterlet: Option<String>,
    /// What becomes of what works have put there, where the hub is not asked.
    pub works: Option<Works>,
    /// Whether the operator stays although no Klusterlet is left.
    pub keep_operator: bool,
    /// How it leaves.
    pub leaving: Leaving,
}

/// What is left of the operator, or was.
#[derive(Clone, Debug, Default)]
pub struct Departure {
    /// Why the operators' namespace is still there, if it is and the operator is not.
    pub namespace_kept: Option<String>,
    /// Definitions that stay, because there are objects of their kind.
    pub definitions_kept: Vec<String>,
}

/// What an unjoin came to.
#[derive(Clone, Debug, Default)]
pub struct Unjoined {
    /// What became of it on the hub, if the hub was asked.
    pub hub: Option<Detached>,
    /// What became of the operator; none if it stays.
    pub operator: Option<Departure>,
    /// How many records of works were deleted, and what became of their objects.
    pub works: Option<(usize, Works)>,
    /// Definitions that stay on the managed cluster of a hosted Klusterlet.
    pub guest: Vec<String>,
    /// The namespace on the managed cluster of a hosted Klusterlet, where nobody could look, that may hold the operator's account.
    pub account_left: Option<String>,
}
