//! One policy that can be asked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ocm_policy_abi::{EditGrant, Manifest, Operation};
use ocm_policy_rules::outcome::{Fault, Outcome, PolicyId};

use crate::compile::{Artifact, Header};
use crate::config::Engine;
use crate::lanes::Pace;
use crate::limits::{Ceiling, Limits};
use crate::program::{Program, Ready, load};
use crate::question::Question;

/// A policy with its settings, loaded.
pub struct Policy {
    engine: Engine,
    header: Header,
    limits: Limits,
    /// What the administrator lets it change; its manifest stands beside it.
    edits: Vec<EditGrant>,
    program: Box<dyn Program>,
    /// Instances that wait for their request, one in each bay.
    ready: [Bay; READY],
    pace: Pace,
}

/// How many instances of one policy wait at most: one for each thread that could ask at the same moment.
const READY: usize = 4;

/// Where an instance waits. None shares a line of the caches with another: processors would take it from each other.
#[derive(Default)]
#[repr(align(128))]
struct Bay(Mutex<Option<Box<dyn Ready>>>);

/// The bay that a thread looks into first: what it made ready itself is in the cache of its processor.
fn own_bay() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static BAY: usize = THREADS.fetch_add(1, Ordering::Relaxed) % READY;
    }
    BAY.with(|bay| *bay)
}

/// An answer. When it is dropped, the instance that gave it is taken apart and the next one is made, so whoever answers
/// somebody does that first.
pub struct Answered {
    /// What the policy said, or what went wrong.
    pub outcome: Outcome,
    spent: Option<Box<dyn Ready>>,
    policy: Arc<Policy>,
}

impl Drop for Answered {
    fn drop(&mut self) {
        drop(self.spent.take());
        self.policy.replenish();
    }
}

impl Policy {
    /// Loads a policy and gets its first instance ready. It may use what the ceiling leaves it, and change what both its
    /// manifest and the administrator's `edits` name.
    ///
    /// # Errors
    /// When the code does not fit the engine, or no instance of it can be made within its limits.
    pub fn load(
        engine: &Engine,
        artifact: &Artifact,
        ceiling: &Ceiling,
        edits: &[EditGrant],
    ) -> Result<Arc<Self>, Fault> {
        let header = artifact.header().clone();
        let limits = ceiling.grant(&header.manifest.limits);
        let program = load(engine, artifact)?;
        let mut ready = <[Bay; READY]>::default();
        ready[own_bay()] = Bay(Mutex::new(Some(program.prepare(engine, &limits)?)));
        Ok(Arc::new(Self {
            engine: engine.clone(),
            header,
            limits,
            edits: edits.to_vec(),
            program,
            ready,
            pace: Pace::default(),
        }))
    }

    /// What it says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.header.manifest
    }

    /// What it was made of.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What it may use.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether it has an opinion about such questions.
    pub fn judges(&self, operation: Operation) -> bool {
        self.manifest().operations.contains(&operation)
    }

    /// Asks. Every answer comes from an instance that has never been asked before.
    pub fn decide(self: &Arc<Self>, question: &Question) -> Answered {
        let place = self.engine.lanes.enter(&self.pace);
        let first = own_bay();
        let waiting = (0..READY).find_map(|next| self.bay(first + next).take());
        let mut spent = None;
        let mut fuel = 0;
        let result =
            waiting.map_or_else(|| self.program.prepare(&self.engine, &self.limits), Ok).and_then(|mut ready| {
                let result = ready.decide(question, self.manifest(), &self.limits);
                fuel = ready.fuel_used();
                spent = Some(ready);
                result
            });
        self.pace.took(if matches!(result, Err(Fault::TimedOut)) { u64::MAX } else { fuel });
        drop(place);
        let policy = PolicyId { name: self.manifest().name.clone(), version: self.manifest().version.clone() };
        let outcome = Outcome { policy, result, fuel }.permit(question.request(), &self.manifest().edits, &self.edits);
        Answered { outcome, spent, policy: self.clone() }
    }

    fn bay(&self, number: usize) -> MutexGuard<'_, Option<Box<dyn Ready>>> {
        self.ready[number % READY].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the next instance, unless one waits where this thread looks first.
    fn replenish(&self) {
        let own = own_bay();
        if self.bay(own).is_some() {
            return;
        }
        // What fails now fails again when somebody asks, and is said then.
        if let Ok(next) = self.program.prepare(&self.engine, &self.limits) {
            *self.bay(own) = Some(next);
        }
    }
}
