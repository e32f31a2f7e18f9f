//! HubPolicies: where they stand, what became of the registrations that they were asked about, whether they refuse another key
//! for a name, how they are disabled, how another version is tried, what the log of their decisions holds, and how files of
//! them become a plan.

mod another_key;
mod change;
mod disabled;
pub mod files;
mod loading;
mod log;
mod standing;
mod tally;
mod versions;

pub use another_key::{Asking, Configuration, Objection, another_key};
pub use change::{Change, ChangeError, Refusal, change, changes};
pub use disabled::{DISABLED, Switch, SwitchError, Switching, Was, disabled, switch};
pub use loading::{Loading, loading};
pub use log::{Logged, Said, Selection};
pub use standing::{Observed, condition, mended, next_step, observed};
pub use tally::{Tally, Waiting};
pub use versions::{PREVIOUS, Step, StepError, Version, is_as_found, step};
