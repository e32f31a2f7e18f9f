//! The engine below all policies of a process.

use std::cell::Cell;
use std::error::Error as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use wasmtime::{Config, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig};

use ocm_policy_rules::PolicyError;

use crate::background::Background;
use crate::concurrency::Concurrency;

/// How much an engine keeps ready.
#[derive(Clone, Copy, Debug)]
pub struct EngineSettings {
    /// How many threads decide without getting into each other's way. Each of these shards has memory for instances to
    /// itself; a policy is loaded into it when one of its threads asks for the first time.
    pub shards: usize,
    /// How many instances of policies there may be at once in a shard. Half of them at most wait for their request.
    pub instances: u32,
    /// The largest memory that any policy may be given, in bytes.
    pub memory_bytes: usize,
    /// How many decisions of policies that are slow, or not known to be quick, run at once. At least one core should be
    /// left to the others.
    pub slow_decisions: usize,
    /// How many decisions wait for that at most.
    pub queue: usize,
}

impl Default for EngineSettings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        Self {
            shards: cores.min(4),
            instances: 256,
            memory_bytes: 64 << 20,
            slow_decisions: cores.saturating_sub(1).max(1),
            queue: 1024,
        }
    }
}

/// Runs policies. Clones are the same engine, which owns the thread that lets time pass for them.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    /// Making an instance counts up a dozen numbers that all instances of an engine share, and processors wait for each
    /// other's. So there are several engines.
    shards: Box<[Shard]>,
    concurrency: Concurrency,
    background: Background,
}

/// An engine of wasmtime, and what it keeps ready. None shares a line of the caches with another.
#[repr(align(128))]
pub(crate) struct Shard {
    pub(crate) engine: wasmtime::Engine,
    /// Instances that wait for their request.
    waiting: AtomicUsize,
    most_waiting: usize,
    /// Instances that have answered, and are taken apart when all policies have.
    spent: AtomicUsize,
    most_spent: usize,
}

impl Shard {
    /// Whether one instance more may wait here; if so, it counts.
    pub(crate) fn keep(&self) -> bool {
        let kept = self.waiting.fetch_add(1, Ordering::Relaxed) < self.most_waiting;
        if !kept {
            self.released();
        }
        kept
    }

    /// Whether an instance that has answered may stay until all policies have; if so, it counts. Room is left for those
    /// that run.
    pub(crate) fn keep_spent(&self) -> bool {
        let kept = self.spent.fetch_add(1, Ordering::Relaxed) < self.most_spent;
        if !kept {
            self.spent_gone();
        }
        kept
    }

    /// One of those was taken apart.
    pub(crate) fn spent_gone(&self) {
        self.spent.fetch_sub(1, Ordering::Relaxed);
    }

    /// One instance waits no more.
    pub(crate) fn released(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What an engine is doing, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineLoad {
    /// Decisions that wait for others to end.
    pub queued: usize,
    /// Decisions that were refused because too many waited, since the engine was made.
    pub refused: u64,
    /// Instances that wait for their request.
    pub ready_instances: usize,
    /// Permits for slow decisions that nobody has taken.
    pub free_permits: usize,
}

/// How much of a memory is set back by writing; what lies behind it is given back to the kernel, which is slower. Policies
/// made with our SDK need one page of 64 KiB, two for long requests.
///
/// Newer kernels could tell which parts of it were written. One thread alone saves a few hundred nanoseconds by that, and
/// all threads of the process then wait for each other: they ask about one address space.
const RESIDENT: usize = 128 << 10;

impl Engine {
    /// Makes an engine. Where so much address space cannot be had, memory is taken from the system as it is needed.
    ///
    /// # Errors
    /// When this machine cannot run WebAssembly at all.
    pub fn new(settings: &EngineSettings) -> Result<Self, PolicyError> {
        let most_waiting = usize::try_from(settings.instances / 2).unwrap_or(usize::MAX).max(1);
        let shard = |_| {
            let engine = wasmtime_engine(settings)?;
            let (waiting, spent) = (AtomicUsize::new(0), AtomicUsize::new(0));
            Ok(Shard { engine, waiting, most_waiting, spent, most_spent: most_waiting / 2 })
        };
        let shards = (0..settings.shards.max(1)).map(shard).collect::<Result<Box<[Shard]>, PolicyError>>()?;
        let background = Background::start(shards.iter().map(|shard| shard.engine.clone()).collect())
            .map_err(|error| PolicyError::Load(format!("no thread can be started: {error}")))?;
        let concurrency = Concurrency::new(settings.slow_decisions, settings.queue);
        Ok(Self(Arc::new(Inner { shards, concurrency, background })))
    }

    pub(crate) fn shards(&self) -> &[Shard] {
        &self.0.shards
    }

    pub(crate) fn concurrency(&self) -> &Concurrency {
        &self.0.concurrency
    }

    pub(crate) fn background(&self) -> &Background {
        &self.0.background
    }

    /// What it is doing.
    pub fn load(&self) -> EngineLoad {
        let (queued, refused) = self.concurrency().queue();
        let ready_instances = self.shards().iter().map(|shard| shard.waiting.load(Ordering::Relaxed)).sum();
        EngineLoad { queued, refused, ready_instances, free_permits: self.concurrency().free_permits() }
    }

    /// The shard of this thread: what it made ready itself is in the cache of its processor.
    pub(crate) fn own_shard(&self) -> usize {
        THREAD.get() % self.shards().len()
    }

    /// What is below, for benchmarks that measure other ways of asking beside ours.
    #[doc(hidden)]
    pub fn below(&self) -> &wasmtime::Engine {
        &self.shards()[0].engine
    }

    /// Lets a millisecond pass that no clock has seen, for tests.
    #[doc(hidden)]
    pub fn tick(&self) {
        self.shards().iter().for_each(|shard| shard.engine.increment_epoch());
    }
}

static THREADS: AtomicUsize = AtomicUsize::new(0);
thread_local! {
    static THREAD: Cell<usize> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed));
}

/// Lets this thread decide in the shard of this number, modulo how many there are. Otherwise threads are dealt out as
/// they come; as many threads as shards that decide all the time should each have one to itself.
pub fn use_shard(number: usize) {
    THREAD.set(number);
}

/// What a shard runs its policies with.
fn wasmtime_engine(settings: &EngineSettings) -> Result<wasmtime::Engine, PolicyError> {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(settings.instances)
        .total_core_instances(settings.instances * 2)
        .total_memories(settings.instances)
        .total_tables(settings.instances * 2)
        .max_core_instances_per_component(64)
        .max_memories_per_component(1)
        .max_memories_per_module(1)
        .max_tables_per_component(8)
        .max_tables_per_module(4)
        .max_memory_size(settings.memory_bytes)
        .table_elements(100_000)
        .linear_memory_keep_resident(RESIDENT)
        .table_keep_resident(8 << 10)
        .pagemap_scan(wasmtime::Enabled::No)
        .max_unused_warm_slots(settings.instances);
    let mut config = config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    wasmtime::Engine::new(&config)
        .or_else(|_| wasmtime::Engine::new(&self::config()))
        .map_err(|error| PolicyError::Load(format!("WebAssembly cannot be run here: {error:#}")))
}

/// How much stack a guest may use, in bytes.
const STACK: usize = 256 << 10;

/// What code is compiled for: equal in the process that compiles and in the one that runs.
pub(crate) fn config() -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(STACK)
        .cranelift_opt_level(OptLevel::Speed)
        // The same request gets the same answer on every machine.
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        .relaxed_simd_deterministic(true)
        .wasm_multi_memory(false)
        .wasm_memory64(false)
        .concurrency_support(false)
        .generate_address_map(false)
        .wasm_backtrace_max_frames(None);
    config
}

/// Starts the threads of this process that compile. Whoever compiles without having asked for them ends the process where
/// one cannot be started, and asking a second time says nothing any more.
fn start_threads() -> Result<(), PolicyError> {
    static STARTED: OnceLock<Result<(), String>> = OnceLock::new();
    let start = || match rayon::ThreadPoolBuilder::new().build_global() {
        // Without a source, it says that they run already.
        Err(error) => error.source().map_or(Ok(()), |why| Err(why.to_string())),
        Ok(()) => Ok(()),
    };
    let started = STARTED.get_or_init(start).clone();
    started.map_err(|why| PolicyError::Load(format!("it cannot be compiled: no thread can be started: {why}")))
}

/// An engine that compiles and runs what has to be run for that.
///
/// # Errors
/// When it, or a thread to compile with, cannot be had.
pub(crate) fn compiling() -> Result<wasmtime::Engine, PolicyError> {
    compiling_as(&config())
}

/// An engine that compiles sooner, and code that is slower and takes more stack: for what a policy is asked once, while it is
/// compiled. What an instruction does and costs is the same. Registers are allocated as usual: wasmtime does not recommend its
/// quicker algorithm for code that nobody trusts, and issues no advisories about it.
///
/// # Errors
/// As [`compiling`].
pub(crate) fn compiling_quickly() -> Result<wasmtime::Engine, PolicyError> {
    compiling_as(config().max_wasm_stack(2 * STACK).cranelift_opt_level(OptLevel::None))
}

fn compiling_as(config: &Config) -> Result<wasmtime::Engine, PolicyError> {
    start_threads()?;
    wasmtime::Engine::new(config)
        .map_err(|error| PolicyError::Load(format!("WebAssembly cannot be compiled here: {error:#}")))
}
