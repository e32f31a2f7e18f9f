//! Whether a cluster may be accepted, and with which certificate request.
//!
//! ```text
//! ManagedCluster ─┐
//! its requests ───┼─▶ decide ─▶ Act { approve, accept } | Settled { stray } | NoRequest | Refused { code, detail, help }
//! its namespace ──┤
//! its name's past ┘
//! ```

mod admit;
mod approval;
mod case;
mod decide;
mod noted;
mod outcome;
mod why;

pub use approval::{Approver, Terms, Word, WrongGroups, another_requester, word};
pub use case::{Chosen, Found, Options};
pub use decide::{decide, is_denied, wrong};
pub use noted::{last_end, noted};
pub use outcome::{Decision, Help, Refusal};
pub use why::{Judged, Part, Way, judged, overriding, way};
