//! The HubPolicies of a hub, for people.

mod apply;
mod describe;
mod emergency;
mod list;
mod logs;
mod switch;

pub use apply::{ApplyRequest, PoliciesApplied, apply_policies};
pub use describe::{Described, describe};
pub use emergency::{Asked, Asking, find_asking, stop_asking};
pub(crate) use emergency::{ended, mark, refuse_another, withdraw_for_another};
pub use list::{PolicyRow, policies, watch_policies};
pub(crate) use list::{listed, no_policy_engine};
pub use logs::{LogsRequest, follow_logged, logged};
pub use switch::{SwitchFailure, Switchable, find_switchable, switch_policies};
