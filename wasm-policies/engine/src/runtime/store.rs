//! Stores: what an instance may use, and fuel for the work that the host does for it.

use std::time::Duration;

use ocm_policy_rules::PolicyError;
use wasmtime::{AsContextMut, ResourceLimiter, Store, UpdateDeadline};

use crate::deadline::Deadline;
use crate::limits::Limits;
use crate::runtime::errors::{policy_error, stop};

/// What stands behind every store: the limits of its memory and tables, and what a host keeps for its guest.
pub(crate) struct Guarded<T> {
    growth: Growth,
    pub(crate) clock: Clock,
    pub(crate) host: T,
}

/// How far memories, in bytes, and tables, in elements, may grow. A guest that wants more ends.
struct Growth {
    memory: usize,
    table: usize,
}

impl Growth {
    fn within(most: usize, wanted: usize) -> wasmtime::Result<bool> {
        if wanted <= most { Ok(true) } else { stop(PolicyError::OutOfMemory) }
    }
}

impl ResourceLimiter for Growth {
    fn memory_growing(&mut self, _: usize, wanted: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        // Beyond its own maximum a module is told that it cannot grow, as the specification has it.
        Ok(Self::within(self.memory, wanted)? && maximum.is_none_or(|maximum| wanted <= maximum))
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        stop(PolicyError::OutOfMemory)
    }

    fn table_growing(&mut self, _: usize, wanted: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        Ok(Self::within(self.table, wanted)? && maximum.is_none_or(|maximum| wanted <= maximum))
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        stop(PolicyError::OutOfMemory)
    }

    fn instances(&self) -> usize {
        64
    }

    fn tables(&self) -> usize {
        16
    }

    fn memories(&self) -> usize {
        1
    }
}

/// When a guest has to stop. Looked at when the ticks run out that it was given.
///
/// Ticks are time by the clock, and a busy machine may let a thread wait for long. A guest is ended for what it has
/// computed, so the processor time of the thread is what counts, from the first look on. By the clock there is only the
/// deadline of the question.
#[derive(Default)]
pub(crate) struct Clock {
    deadline: Deadline,
    /// Half of the ticks that the guest may take: they pass before the first look, and as much after it.
    half: u64,
    first_look: Option<Duration>,
}

impl Clock {
    /// Binds what comes next to the deadline of a question.
    pub(crate) fn bind(&mut self, deadline: &Deadline) {
        self.deadline = deadline.clone();
    }

    fn begin(&mut self, limits: &Limits) -> u64 {
        self.half = limits.ticks.div_ceil(2).max(1);
        self.first_look = None;
        self.next()
    }

    /// After how many ticks to look.
    fn next(&self) -> u64 {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX) + 1;
        self.deadline.next_check().map_or(self.half, |time| self.half.min(millis(time)))
    }

    fn look(&mut self) -> wasmtime::Result<UpdateDeadline> {
        self.deadline.check().map_err(wasmtime::Error::from)?;
        let now = processor_time();
        let first = *self.first_look.get_or_insert(now);
        if now.saturating_sub(first) >= Duration::from_millis(self.half) {
            return Ok(UpdateDeadline::Interrupt);
        }
        Ok(UpdateDeadline::Continue(self.next()))
    }
}

/// The processor time that this thread has used.
#[cfg(unix)]
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(not(unix))]
fn processor_time() -> Duration {
    static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    BEGIN.get_or_init(std::time::Instant::now).elapsed()
}

/// A store in which nothing can use more than it may.
pub(crate) fn store<T: 'static>(
    engine: &wasmtime::Engine,
    limits: &Limits,
    host: T,
) -> Result<Store<Guarded<T>>, PolicyError> {
    let small = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let guarded = Guarded {
        growth: Growth { memory: small(limits.memory_bytes), table: small(limits.table_elements) },
        clock: Clock::default(),
        host,
    };
    let mut store = Store::try_new(engine, guarded).map_err(policy_error)?;
    store.limiter(|guarded| &mut guarded.growth);
    store.set_hostcall_fuel(small(limits.host_bytes));
    store.epoch_deadline_callback(|mut context| context.data_mut().clock.look());
    fill(&mut store, limits)?;
    Ok(store)
}

/// Gives a store the fuel and the time of one step: getting ready, or deciding.
pub(crate) fn fill<T>(store: &mut Store<Guarded<T>>, limits: &Limits) -> Result<(), PolicyError> {
    let ticks = store.data_mut().clock.begin(limits);
    store.set_epoch_deadline(ticks);
    store.set_fuel(limits.fuel).map_err(policy_error)
}

/// The fuel that a step has used.
pub(crate) fn fuel_used<T>(store: &Store<Guarded<T>>, limits: &Limits) -> u64 {
    limits.fuel - store.get_fuel().unwrap_or(0).min(limits.fuel)
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
            stop(PolicyError::OutOfFuel)
        }
    }
}
