//! What failed calls of guests mean.

use ocm_policy_rules::PolicyError;
use wasmtime::Trap;

/// What a failed call means.
pub(crate) fn policy_error(error: wasmtime::Error) -> PolicyError {
    if let Some(error) = error.downcast_ref::<PolicyError>() {
        return error.clone();
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        return match trap {
            Trap::OutOfFuel => PolicyError::OutOfFuel,
            Trap::Interrupt => PolicyError::TimedOut,
            Trap::StackOverflow => PolicyError::StackExhausted,
            other => PolicyError::Trap(other.to_string()),
        };
    }
    if error.is::<wasmtime::PoolConcurrencyLimitError>() {
        return PolicyError::Overloaded("no instance is free".to_owned());
    }
    let text = format!("{error:#}");
    // The one error of wasmtime that has no type; `hostile.rs` notices if its text changes.
    match text.contains("fuel allocated for hostcalls") {
        true => PolicyError::TooLarge("it returns more than the host takes".to_owned()),
        false => PolicyError::Malformed(text),
    }
}

/// The exit code of a module that ended itself. Not yet an error: zero is none.
#[derive(Debug, thiserror::Error)]
#[error("it ended with exit code {0}")]
pub(crate) struct Exited(pub(crate) i32);

/// Ends the guest with the error of a policy, from within a host function.
pub(crate) fn stop<T>(error: PolicyError) -> wasmtime::Result<T> {
    Err(wasmtime::Error::from(error))
}

/// How a call ended: `Ok(None)` where the module ended itself with zero.
pub(crate) fn ended<T>(result: wasmtime::Result<T>) -> Result<Option<T>, PolicyError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) => match error.downcast_ref::<Exited>() {
            Some(Exited(0)) => Ok(None),
            Some(Exited(code)) => Err(PolicyError::Exit(*code)),
            None => Err(policy_error(error)),
        },
    }
}

/// What keeps an instance from being made is no answer, but a reason why the policy cannot be loaded.
pub(crate) fn unloadable(error: wasmtime::Error) -> PolicyError {
    match error.downcast_ref::<PolicyError>() {
        // Nothing of it has run yet.
        Some(PolicyError::OutOfMemory) => {
            PolicyError::Load("it starts with more memory, or larger tables, than it may have".to_owned())
        }
        None if !error.is::<Trap>() && !error.is::<wasmtime::PoolConcurrencyLimitError>() => {
            PolicyError::Load(format!("{error:#}"))
        }
        _ => policy_error(error),
    }
}

pub(crate) fn outside() -> PolicyError {
    PolicyError::Trap("it points outside of its memory".to_owned())
}

/// What a module says, cut to what a message can hold.
pub(crate) fn sentences(errors: &[String]) -> String {
    let text = errors.iter().take(8).map(|error| error.trim()).collect::<Vec<_>>().join("; ");
    text.chars().filter(|c| !c.is_control()).take(1_000).collect()
}
