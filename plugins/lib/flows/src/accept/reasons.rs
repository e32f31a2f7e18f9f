//! The reasons of our approvals and denials, by which they are known.

/// The reason that our approvals carry; requests of other tools' carry theirs.
pub const APPROVAL_REASON: &str = "KubectlOcmAccept";

/// The reason that our denials carry.
pub const DENIAL_REASON: &str = "KubectlOcmDeny";
