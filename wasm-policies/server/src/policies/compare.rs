//! What candidates say beside the policies in force.

use std::collections::BTreeMap;

use ocm_policy_abi::Decision;
use ocm_policy_engine::Comparison;
use ocm_policy_rules::PolicyError;

use super::CandidateState;

/// Of so many clusters it is known what a candidate says. More are not counted.
const MAX_CLUSTERS: usize = 10_000;
/// Bytes of the longest name of an object: what reviews before validation call a cluster may be of any length.
const MAX_NAME: usize = 253;

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

    pub(super) fn note(&mut self, cluster: &str, comparison: &Comparison) {
        let is_full = self.clusters.len() >= MAX_CLUSTERS && !self.clusters.contains_key(cluster);
        if is_full || cluster.len() > MAX_NAME {
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
