//! One policy that can be asked.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use ocm_policy_abi::{EditGrant, Manifest, Operation};
use ocm_policy_rules::outcome::{Fault, Outcome, PolicyId};

use crate::artifact::{Artifact, Header};
use crate::concurrency::Pace;
use crate::engine::Engine;
use crate::limits::{Ceiling, Limits};
use crate::question::Question;
use crate::runtime::{MachineCode, Program, Ready, load};

/// A policy with its settings, loaded.
pub struct Policy {
    engine: Engine,
    header: Header,
    limits: Limits,
    /// What the administrator lets it change; its manifest stands beside it.
    edits: Vec<EditGrant>,
    /// One for each shard of the engine.
    bays: Box<[Bay]>,
    /// What a shard that asks for the first time loads.
    code: MachineCode,
    pace: Pace,
}

/// A policy in one shard: its code, and the instance that waits for its request. None shares a line of the caches with
/// another: processors would take it from each other.
#[derive(Default)]
#[repr(align(128))]
struct Bay {
    program: OnceLock<Box<dyn Program>>,
    ready: Mutex<Option<Box<dyn Ready>>>,
}

impl Bay {
    fn ready(&self) -> MutexGuard<'_, Option<Box<dyn Ready>>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        let policy = Self {
            engine: engine.clone(),
            header,
            limits,
            edits: edits.to_vec(),
            bays: engine.shards.iter().map(|_| Bay::default()).collect(),
            code: MachineCode::new(artifact.code()),
            pace: Pace::default(),
        };
        let own = engine.own_shard();
        let first = policy.prepare(own)?;
        *policy.bays[own].ready() = Some(first);
        Ok(Arc::new(policy))
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
        let place = self.engine.concurrency.enter(&self.pace);
        let mut spent = None;
        let mut fuel = 0;
        let result = self.instance().and_then(|mut ready| {
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

    /// The nearest instance that waits, or one that has to be made.
    fn instance(&self) -> Result<Box<dyn Ready>, Fault> {
        let (own, shards) = (self.engine.own_shard(), self.bays.len());
        let mut near = (0..shards).map(|further| (own + further) % shards);
        if let Some(ready) = near.clone().find_map(|shard| self.bays[shard].ready().take()) {
            return Ok(ready);
        }
        // Nobody waits for code where another shard has it.
        self.prepare(near.find(|shard| self.bays[*shard].program.get().is_some()).unwrap_or(own))
    }

    /// Makes an instance in a shard. The first one there brings the code with it.
    fn prepare(&self, shard: usize) -> Result<Box<dyn Ready>, Fault> {
        let (engine, bay) = (&self.engine.shards[shard], &self.bays[shard]);
        let program = match bay.program.get() {
            Some(program) => program,
            None => {
                let program = load(engine, &self.header, &self.code)?;
                bay.program.get_or_init(|| program)
            }
        };
        program.prepare(engine, &self.limits)
    }

    /// Makes the next instance, unless one waits where this thread looks first.
    fn replenish(&self) {
        let own = self.engine.own_shard();
        if self.bays[own].ready().is_some() {
            return;
        }
        // What fails now fails again when somebody asks, and is said then.
        if let Ok(next) = self.prepare(own) {
            *self.bays[own].ready() = Some(next);
        }
    }
}
