//! How each kind of module is run. A program is what all instances share; a [`Ready`] is one instance that has not
//! decided anything yet.

use ocm_policy_abi::{Decision, Manifest};
use wasmtime::{Store, StoreLimits, StoreLimitsBuilder, Trap};

use ocm_policy_rules::outcome::Fault;

use crate::code::Code;
use crate::compile::Header;
use crate::kind::Kind;
use crate::limits::Limits;
use crate::question::Question;

pub(crate) mod component;
mod foreign;
mod guest;
pub(crate) mod opa;
mod sprintf;
mod wapc;
mod wasi;

pub(crate) use foreign::examine;
pub(crate) use guest::unloadable;

/// Compiled code of one policy.
pub(crate) trait Program: Send + Sync {
    /// A fresh instance, brought to the point where only the request is missing.
    fn prepare(&self, engine: &wasmtime::Engine, limits: &Limits) -> Result<Box<dyn Ready>, Fault>;
}

/// An instance that waits for its one request.
pub(crate) trait Ready: Send {
    /// Decides. Called once.
    fn decide(&mut self, question: &Question, manifest: &Manifest, limits: &Limits) -> Result<Decision, Fault>;

    /// The fuel that the decision has used, getting ready not counted.
    fn fuel_used(&self) -> u64;
}

/// Makes a program of machine code and what it is of.
pub(crate) fn load(engine: &wasmtime::Engine, header: &Header, code: &Code) -> Result<Box<dyn Program>, Fault> {
    let Header { kind, settings, .. } = header;
    match kind {
        Kind::Component | Kind::Core => {
            Ok(Box::new(component::Loaded::new(engine, &code.component(engine)?, settings.clone())?))
        }
        kind => {
            let module = code.module(engine)?;
            foreign::load(&module, *kind, settings.as_deref().unwrap_or("null"))
        }
    }
}

/// What stands behind every store: the limits of its memory and tables, and what a host keeps for its guest.
pub(crate) struct Guarded<T> {
    pub(crate) limits: StoreLimits,
    pub(crate) host: T,
}

/// A store in which nothing can use more than it may.
pub(crate) fn store<T: 'static>(
    engine: &wasmtime::Engine,
    limits: &Limits,
    host: T,
) -> Result<Store<Guarded<T>>, Fault> {
    let small = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let guarded = Guarded {
        limits: StoreLimitsBuilder::new()
            .memory_size(small(limits.memory_bytes))
            .table_elements(small(limits.table_elements))
            .memories(1)
            .tables(16)
            .instances(64)
            .trap_on_grow_failure(true)
            .build(),
        host,
    };
    let mut store = Store::try_new(engine, guarded).map_err(fault)?;
    store.limiter(|guarded| &mut guarded.limits);
    store.set_hostcall_fuel(small(limits.host_bytes));
    store.epoch_deadline_trap();
    fill(&mut store, limits)?;
    Ok(store)
}

/// Gives a store the fuel and the time of one step: getting ready, or deciding.
pub(crate) fn fill<T>(store: &mut Store<T>, limits: &Limits) -> Result<(), Fault> {
    store.set_epoch_deadline(limits.ticks);
    store.set_fuel(limits.fuel).map_err(fault)
}

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
    let text = format!("{error:#}");
    if text.contains("growing memory") || text.contains("growing table") {
        return Fault::OutOfMemory;
    }
    if text.contains("hostcall") {
        return Fault::TooLarge("it returns more than the host takes".to_owned());
    }
    if error.is::<wasmtime::PoolConcurrencyLimitError>() {
        return Fault::Load("too many policies are running at once".to_owned());
    }
    Fault::Malformed(text)
}
