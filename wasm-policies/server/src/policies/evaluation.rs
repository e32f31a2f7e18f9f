//! Questions that no review puts: those of the controller.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use ocm_policy_abi::{Operation, Request};
use ocm_policy_engine::{Deadline, Final, Policy, evaluate};

use super::Policies;
use crate::evidence::Shown;

impl Policies {
    /// Asks the policies in force, with what is known of the hub.
    pub fn evaluate(&self, request: Request<'static>, deadline: &Deadline) -> Final {
        let counting = self.counting();
        let shown =
            Shown { knowledge: &self.knowledge, counting: counting.places(), is_newest: true, has_waited: false };
        let made = evaluate(&self.registry, request, &shown, deadline);
        self.metrics.measure(&made);
        made
    }

    /// Whether a policy counts by something that such questions have in common: then the next one must not be asked before
    /// what came of this one can be seen.
    pub fn count(&self, operation: Operation) -> bool {
        let counts = |policy: &Arc<Policy>| policy.judges(operation) && !policy.manifest().counts_by.is_empty();
        self.registry.slots().values().any(|slot| {
            slot.active.as_ref().is_ok_and(counts)
                || slot.candidate.as_ref().is_some_and(|(candidate, _)| counts(candidate))
        })
    }

    /// Another number as soon as another policy is in force, or one counts for something else. Numbers have no order.
    pub fn generation(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (name, slot) in self.registry.slots().iter() {
            name.hash(&mut hasher);
            slot.enforcement.hash(&mut hasher);
            // Not where it stands in memory: another one may stand there later.
            slot.active.as_ref().map_or(0, |_| slot.generation).hash(&mut hasher);
            let candidate = slot.candidate.as_ref();
            candidate.map(|(candidate, share)| (Arc::as_ptr(candidate).addr(), *share)).hash(&mut hasher);
        }
        hasher.finish()
    }
}
