//! One policy that can be asked.

use std::sync::{Arc, Mutex, PoisonError};

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
    /// Instances that wait for their request.
    ready: Mutex<Vec<Box<dyn Ready>>>,
    pace: Pace,
}

/// How many instances of one policy wait at most: one for each thread that could ask at the same moment.
const READY: usize = 4;

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
        let first = program.prepare(engine, &limits)?;
        Ok(Arc::new(Self {
            engine: engine.clone(),
            header,
            limits,
            edits: edits.to_vec(),
            program,
            ready: Mutex::new(vec![first]),
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
        let waiting = self.ready.lock().unwrap_or_else(PoisonError::into_inner).pop();
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

    /// Makes the next instance, unless enough are waiting.
    fn replenish(&self) {
        if self.ready.lock().unwrap_or_else(PoisonError::into_inner).len() >= READY {
            return;
        }
        // What fails now fails again when somebody asks, and is said then.
        if let Ok(next) = self.program.prepare(&self.engine, &self.limits) {
            self.ready.lock().unwrap_or_else(PoisonError::into_inner).push(next);
        }
    }
}
