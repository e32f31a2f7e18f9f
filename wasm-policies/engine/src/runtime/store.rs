//! Stores: what an instance may use, and fuel for the work that the host does for it.

use ocm_policy_rules::outcome::Fault;
use wasmtime::{AsContextMut, Store, StoreLimits, StoreLimitsBuilder};

use crate::limits::Limits;
use crate::runtime::errors::{fault, stop};

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

/// Fuel for a call of the host that touches no bytes.
pub(crate) const CALL: u64 = 100;

/// Fuel for touching so many bytes once, as copying and searching do. It is taken before the work is done.
pub(crate) fn price(bytes: usize) -> u64 {
    CALL + bytes as u64 / 8
}

/// Fuel for understanding so many bytes: reading JSON, comparing, checking.
pub(crate) fn reading_price(bytes: usize) -> u64 {
    CALL + bytes as u64 * 4
}

/// Takes fuel for work of the host: otherwise a guest could let it work for nothing.
pub(crate) fn charge<T: 'static>(mut store: impl AsContextMut<Data = T>, fuel: u64) -> wasmtime::Result<()> {
    let mut store = store.as_context_mut();
    match store.get_fuel()?.checked_sub(fuel) {
        Some(left) => store.set_fuel(left),
        None => {
            store.set_fuel(0)?;
            stop(Fault::OutOfFuel)
        }
    }
}
