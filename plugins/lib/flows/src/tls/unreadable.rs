//! What an inventory says of what could not be read.

use ocm_checks::snapshot::{PolicyRule, Trouble};
use ocm_checks::tls::Unseen;
use ocm_core::Failure;

/// Something that could not be read.
pub(super) struct Unreadable {
    pub(super) what: String,
    pub(super) failure: Failure,
    pub(super) rule: Option<PolicyRule>,
}

impl From<Unreadable> for Unseen {
    fn from(unreadable: Unreadable) -> Self {
        let Unreadable { what, failure, rule } = unreadable;
        Self { what, cluster: None, trouble: Trouble::of(&failure, rule) }
    }
}
