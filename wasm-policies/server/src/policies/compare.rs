//! What candidates say beside the policies in force.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Duration;

use ocm_policy_abi::Decision;
use ocm_policy_engine::{Comparison, Deadline, Final};
use ocm_policy_rules::{PolicyError, review};

use super::{CandidateState, Policies};
use crate::metrics::OfCandidate;

/// How long candidates may take for one request, all together: nobody waits for them, but the next request for the room.
const COMPARES: Duration = Duration::from_secs(2);
/// Of so many clusters it is known what a candidate says. More are not counted.
const MAX_CLUSTERS: usize = 10_000;

/// Whether a candidate differs, by cluster, at the last look at each.
#[derive(Default)]
pub(super) struct Compared {
    clusters: BTreeMap<String, bool>,
    last: Option<String>,
}

impl Compared {
    /// Adds it to the state of the candidate.
    pub(super) fn tell(&self, state: &mut CandidateState) {
        let count = |differs: bool| self.clusters.values().filter(|one| **one || !differs).count();
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        (state.compared, state.differed) = (number(count(false)), number(count(true)));
        state.last_difference.clone_from(&self.last);
    }

    fn note(&mut self, cluster: &str, comparison: &Comparison) {
        if self.clusters.len() >= MAX_CLUSTERS && !self.clusters.contains_key(cluster) {
            return;
        }
        let differs = comparison.differs();
        self.clusters.insert(cluster.to_owned(), differs);
        if differs {
            let (active, candidate) = (&comparison.active.result, &comparison.candidate.result);
            self.last = Some(format!("{cluster}: {} in force, {} by the candidate", word(active), word(candidate)));
        }
    }
}

/// What was said, with its reasons.
fn word(result: &Result<Decision, PolicyError>) -> String {
    match result {
        Err(error) => format!("error ({})", error.code()),
        Ok(decision) => {
            let codes: Vec<&str> = decision.reasons.iter().map(|reason| reason.code.as_str()).collect();
            let codes = if codes.is_empty() { String::new() } else { format!(" ({})", codes.join(", ")) };
            format!("{}{codes}", decision.verdict.word())
        }
    }
}

impl Policies {
    /// Has candidates say what they would have said, and counts it. Those that differ. For after the answer.
    pub fn compare(&self, made: &Final) -> Vec<Comparison> {
        let mut all = made.compare(&Deadline::after(COMPARES));
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
}
