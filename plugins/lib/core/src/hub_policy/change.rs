//! What somebody does with a policy that is there.

use ocm_api::HubPolicy;

use super::disabled::{Switch, SwitchError, Switching, switch};
use super::versions::{Step, StepError, step};

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
