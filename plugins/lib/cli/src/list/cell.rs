//! What stands in the cells of tables.

use jiff::Timestamp;
use ocm_core::duration;

/// Shown where there is nothing to show.
pub const NONE: &str = "<none>";

/// How long ago it was, as kubectl writes ages.
pub fn age(now: Timestamp, created: Option<Timestamp>) -> String {
    match created {
        Some(created) => duration::human(now.duration_since(created).try_into().unwrap_or_default()),
        None => NONE.to_owned(),
    }
}
