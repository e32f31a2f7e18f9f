//! Accepting and denying clusters: look, decide, approve exactly what was looked at, then accept; or say only that
//! somebody approves.

mod approve_only;
mod break_glass;
mod candidate;
mod carry_out;
mod deny;
mod explain;
mod reasons;
mod rights;
mod rows;
mod survey;
#[cfg(test)]
pub(crate) mod test_hub;
mod wait;

pub use approve_only::{Approval, Giving, check_rights_to_approve, only_told, prepare};
pub use candidate::Candidate;
pub use carry_out::{Limits, answered_by, carry_out};
pub use deny::Denial;
pub use explain::{Explained, Obstacle, explained};
pub use reasons::{APPROVAL_REASON, DENIAL_REASON};
pub use rights::check_rights;
pub(crate) use rights::to_accept;
pub use rows::{Outcome, Row};
pub use survey::{survey, tell_unread};
pub use wait::{Watch, inspect, patiently, still_waits, when_asked};
