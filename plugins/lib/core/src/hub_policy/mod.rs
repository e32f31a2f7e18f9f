//! HubPolicies: where they stand, what became of the registrations that they were asked about, how they are disabled,
//! and how files of them become a plan.

mod disabled;
pub mod files;
mod loading;
mod standing;
mod tally;

pub use disabled::{DISABLED, Switch, SwitchError, Switching, Was, disabled, switch};
pub use loading::{Loading, loading};
pub use standing::{Observed, condition, next_step, observed};
pub use tally::{Tally, Waiting};
