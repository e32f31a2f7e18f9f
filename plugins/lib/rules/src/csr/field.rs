//! Fields of a request that break rules.

pub(super) const REQUEST: &str = "spec.request";
pub(super) const LABELS: &str = "metadata.labels";
pub(super) const REQUESTER: &str = "spec.username";
