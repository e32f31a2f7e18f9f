//! HubPolicies: where they stand, what became of the registrations that they were asked about, whether they refuse another key
//! for a name, how they are disabled, how another version is tried, what the log of their decisions holds, and how files of
//! them become a plan.

mod another_key;
mod disabled;
pub mod files;
mod loading;
mod log;
mod standing;
mod tally;
mod versions;

pub use another_key::{Asking, Configuration, Objection, another_key};
pub use disabled::{DISABLED, Switch, SwitchError, Switching, Was, disabled, switch};
pub use loading::{Loading, loading};
pub use log::{Logged, Said, Selection};
pub use standing::{Observed, condition, next_step, observed};
pub use tally::{Tally, Waiting};
pub use versions::{PREVIOUS, Step, StepError, Version, step};

use ocm_api::HubPolicy;

/// What somebody does with a policy that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is disabled or enabled.
    Switch(Switch),
    /// Something is done with its versions.
    Step(Step),
}

/// Why a policy is not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeError {
    /// It cannot be enabled.
    Switch(SwitchError),
    /// Its versions do not allow it.
    Step(StepError),
}

/// What to do to change a policy.
///
/// # Errors
/// Why it cannot be done.
pub fn change(policy: &HubPolicy, change: Change) -> Result<Switching, ChangeError> {
    match change {
        Change::Switch(to) => switch(policy, to).map_err(ChangeError::Switch),
        Change::Step(to) => step(policy, to).map_err(ChangeError::Step),
    }
}
