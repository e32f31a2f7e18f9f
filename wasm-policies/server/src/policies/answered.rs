//! What follows a question that was answered: candidates say what they would have said, and what it came to is counted.

use std::sync::PoisonError;
use std::time::Duration;

use ocm_policy_engine::{Comparison, Deadline, Final};
use ocm_policy_rules::{Answer, review};

use super::Policies;
use super::decisions::{Counted, Decisions};
use crate::metrics::OfCandidate;

/// How long candidates may take for one request, all together: nobody waits for them, but the next request for the room.
const COMPARES: Duration = Duration::from_secs(2);

impl Policies {
    /// Has candidates say what they would have said, and counts it, with the fuel that this takes. Those that differ. For after
    /// the answer.
    pub fn compare(&self, made: &Final) -> Vec<Comparison> {
        let mut all = made.compare(&Deadline::after(COMPARES), |place, fuel| self.metrics.spend(place, fuel));
        if all.is_empty() {
            return all;
        }
        let cluster = review::cluster_of(made.request());
        let mut compared = self.compared.lock().unwrap_or_else(PoisonError::into_inner);
        for one in &all {
            let labels = OfCandidate { policy: one.slot.clone(), differs: one.differs() };
            self.metrics.comparisons.get_or_create(&labels).inc();
            if let Some(cluster) = cluster {
                compared.entry(one.slot.clone()).or_default().note(cluster, one);
            }
        }
        all.retain(Comparison::differs);
        all
    }

    /// Counts what a question came to, for [`Policies::decisions`].
    pub fn count_decisions(&self, made: &Final) {
        let slots = self.registry.slots();
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        // What was said by candidates is compared, and not counted.
        for one in made.asked().iter().filter(|one| !one.is_candidate()) {
            let Some(Ok(active)) = slots.get(one.place()).map(|slot| &slot.active) else { continue };
            let kept = counted.entry(one.place().to_owned()).or_default();
            // Another version begins anew.
            if !kept.is_of(active) {
                *kept = Counted::of(active);
            }
            let outcome = one.outcome();
            kept.note(Answer::of(&outcome.result).unwrap_or(Answer::NoOpinion), one.micros(), one.fuel());
        }
        counted.retain(|place, _| slots.contains_key(place));
    }

    /// What questions came to; none: it was not asked since its version is in force.
    pub fn decisions(&self, policy: &str) -> Option<Decisions> {
        let slots = self.registry.slots();
        let active = slots.get(policy)?.active.as_ref().ok()?;
        let counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.get(policy).filter(|kept| kept.is_of(active)).map(Counted::told)
    }
}
