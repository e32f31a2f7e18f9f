//! What failed calls of guests mean.

use ocm_policy_rules::Fault;
use wasmtime::Trap;

/// What a failed call means.
pub(crate) fn fault(error: wasmtime::Error) -> Fault {
    if let Some(fault) = error.downcast_ref::<Fault>() {
        return fault.clone();
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        return match trap {
            Trap::OutOfFuel => Fault::OutOfFuel,
            Trap::Interrupt => Fault::TimedOut,
            Trap::StackOverflow => Fault::StackExhausted,
            other => Fault::Trap(other.to_string()),
        };
    }
    if error.is::<wasmtime::PoolConcurrencyLimitError>() {
        return Fault::Overloaded("no instance is free".to_owned());
    }
    let text = format!("{error:#}");
    if text.contains("growing memory") || text.contains("growing table") {
        return Fault::OutOfMemory;
    }
    if text.contains("hostcall") {
        return Fault::TooLarge("it returns more than the host takes".to_owned());
    }
    Fault::Malformed(text)
}

/// The exit code of a module that ended itself. Not yet a fault: zero is none.
#[derive(Debug, thiserror::Error)]
#[error("it ended with exit code {0}")]
pub(crate) struct Exited(pub(crate) i32);

/// A fault as the error of a host function; the guest stops.
pub(crate) fn stop<T>(fault: Fault) -> wasmtime::Result<T> {
    Err(wasmtime::Error::from(fault))
}

/// How a call ended: `Ok(None)` where the module ended itself with zero.
pub(crate) fn ended<T>(result: wasmtime::Result<T>) -> Result<Option<T>, Fault> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) => match error.downcast_ref::<Exited>() {
            Some(Exited(0)) => Ok(None),
            Some(Exited(code)) => Err(Fault::Exit(*code)),
            None => Err(fault(error)),
        },
    }
}

/// What keeps an instance from being made is no answer, but a reason why the policy cannot be loaded.
pub(crate) fn unloadable(error: wasmtime::Error) -> Fault {
    if error.is::<Fault>() || error.is::<Trap>() || error.is::<wasmtime::PoolConcurrencyLimitError>() {
        return fault(error);
    }
    let text = format!("{error:#}");
    if text.contains("memory") && (text.contains("exceeds") || text.contains("limit")) {
        return Fault::Load(format!("it starts with more memory than it may have: {text}"));
    }
    Fault::Load(text)
}

pub(crate) fn outside() -> Fault {
    Fault::Trap("it points outside of its memory".to_owned())
}

/// What a module says, cut to what a message can hold.
pub(crate) fn sentences(errors: &[String]) -> String {
    let text = errors.iter().take(8).map(|error| error.trim()).collect::<Vec<_>>().join("; ");
    text.chars().filter(|c| !c.is_control()).take(1_000).collect()
}
