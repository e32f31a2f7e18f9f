//! What questions came to, policy by policy.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use ocm_policy_engine::Policy;
use ocm_policy_rules::Answer;

/// Of so many last questions the time and the fuel are known.
const RECENT: usize = 1_000;

/// What questions came to since a version of a policy was put in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// How many it allowed.
    pub allowed: u64,
    /// How many it held.
    pub held: u64,
    /// How many it denied.
    pub denied: u64,
    /// How many it failed at.
    pub errors: u64,
    /// How many it had no opinion about.
    pub no_opinion: u64,
    /// Microseconds that half of the last questions took at most.
    pub p50_micros: u64,
    /// Microseconds that 99 of a hundred of the last questions took at most.
    pub p99_micros: u64,
    /// Fuel that 99 of a hundred of the last questions used at most.
    pub p99_fuel: u64,
}

/// The same, while it is counted.
#[derive(Default)]
pub(super) struct Counted {
    version: Weak<Policy>,
    decisions: Decisions,
    /// Microseconds and fuel.
    recent: VecDeque<(u64, u64)>,
}

impl Counted {
    /// Nothing yet of this version.
    pub(super) fn of(version: &Arc<Policy>) -> Self {
        Self { version: Arc::downgrade(version), ..Self::default() }
    }

    pub(super) fn is_of(&self, version: &Arc<Policy>) -> bool {
        Weak::as_ptr(&self.version) == Arc::as_ptr(version)
    }

    pub(super) fn note(&mut self, answer: Answer, micros: u64, fuel: u64) {
        let Decisions { allowed, held, denied, errors, no_opinion, .. } = &mut self.decisions;
        *match answer {
            Answer::Allow => allowed,
            Answer::Hold => held,
            Answer::Deny => denied,
            Answer::Error => errors,
            Answer::NoOpinion => no_opinion,
        } += 1;
        self.recent.truncate(RECENT - 1);
        self.recent.push_front((micros, fuel));
    }

    pub(super) fn told(&self) -> Decisions {
        let sorted = |part: fn(&(u64, u64)) -> u64| {
            let mut all: Vec<u64> = self.recent.iter().map(part).collect();
            all.sort_unstable();
            all
        };
        // The least of them that so many of a hundred do not exceed.
        let at = |all: &[u64], percent: usize| {
            let rank = (all.len() * percent).div_ceil(100).saturating_sub(1);
            all.get(rank).copied().unwrap_or_default()
        };
        let (micros, fuel) = (sorted(|one| one.0), sorted(|one| one.1));
        Decisions {
            p50_micros: at(&micros, 50),
            p99_micros: at(&micros, 99),
            p99_fuel: at(&fuel, 99),
            ..self.decisions.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_questions_tell_how_long_they_take() {
        let mut counted = Counted::default();
        assert_eq!(counted.told(), Decisions::default());
        for number in 1..=3 * u64::try_from(RECENT).unwrap_or_default() {
            counted.note(if number % 3 == 0 { Answer::Deny } else { Answer::Allow }, number, number * 2);
        }
        let told = counted.told();
        assert_eq!((told.allowed, told.denied, told.errors), (2_000, 1_000, 0));
        // The last thousand are 2 001 to 3 000.
        assert_eq!((told.p50_micros, told.p99_micros, told.p99_fuel), (2_500, 2_990, 5_980));
        assert_eq!(counted.recent.len(), RECENT);
    }
}
