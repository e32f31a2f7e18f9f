//! What follows from obligations that end an acceptance.
//!
//! A policy that answers with `expire-acceptance` has a cluster accepted for a time. Policies are asked again before that
//! time is over: each may give it more time, or lift its own limit. When it is over and nobody has, the acceptance is
//! withdrawn.

use ocm_api::registration::MAX_OBLIGATIONS;
use ocm_policy_abi::Verdict;

use super::declared::{EXPIRE_ACCEPTANCE, REASON};
use crate::combine::Answer;
use crate::enforcement::{Enforcement, Mode};
use crate::outcome::Outcome;

/// The shortest pause between two questions, in milliseconds.
const PAUSE: i64 = 1000;

/// A policy that allows an acceptance, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allows {
    /// Name of the policy.
    pub policy: String,
    /// For so many seconds; none: without end.
    pub seconds: Option<u32>,
    /// Why no longer, for people.
    pub reason: Option<String>,
}

/// The policies that allow an acceptance and whose word counts. None: together they do not allow it.
pub fn allowing<'o>(
    verdict: Answer,
    said: impl IntoIterator<Item = (Enforcement, &'o Outcome)>,
) -> Option<Vec<Allows>> {
    let allows = |(enforcement, outcome): (Enforcement, &'o Outcome)| {
        let decision = outcome.result.as_ref().ok()?;
        if decision.verdict != Verdict::Allow || enforcement.mode != Mode::Enforce {
            return None;
        }
        // Of two limits of one policy, the shorter one holds both.
        let limits = decision.obligations.iter().filter(|obligation| obligation.name == EXPIRE_ACCEPTANCE);
        let limit = limits.min_by_key(|obligation| obligation.within_seconds);
        Some(Allows {
            policy: outcome.policy.name.clone(),
            seconds: limit.and_then(|limit| limit.within_seconds),
            reason: limit.and_then(|limit| limit.params.get(REASON).cloned()),
        })
    };
    (verdict == Answer::Allow).then(|| said.into_iter().filter_map(allows).collect())
}

/// For how long a policy has a cluster accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Name of the policy.
    pub policy: String,
    /// How many seconds it gives each time.
    pub seconds: u32,
    /// When they are over, in milliseconds since 1970.
    pub due: i64,
    /// Why no longer, for people.
    pub reason: Option<String>,
}

/// What follows for an acceptance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It stands.
    Stand {
        /// Its limits from now on, those that end first.
        limits: Vec<Limit>,
        /// After how many milliseconds the policies are asked again; none: it has no limit.
        again: Option<i64>,
    },
    /// It is withdrawn: these limits are over, and nobody has given more time.
    Withdraw(Vec<Limit>),
}

/// What follows at this time (milliseconds since 1970) for an acceptance of these limits from what policies say of it now.
pub fn step(known: &[Limit], said: Option<&[Allows]>, now: i64) -> Step {
    let limits = limits(known, said, now);
    let over: Vec<Limit> = limits.iter().filter(|limit| limit.due <= now).cloned().collect();
    if !over.is_empty() {
        return Step::Withdraw(over);
    }
    let again = limits.iter().map(|limit| pause(limit, now)).min();
    Step::Stand { limits, again }
}

/// The limits from now on, those that end first. A policy that allows it speaks for its own limit: it gives another one, or
/// none. What it does not allow, or was not asked about, changes nothing.
pub fn limits(known: &[Limit], said: Option<&[Allows]>, now: i64) -> Vec<Limit> {
    let said = said.unwrap_or_default();
    let kept = known.iter().filter(|limit| !said.iter().any(|allows| allows.policy == limit.policy));
    let mut limits: Vec<Limit> = kept.map(|limit| within(limit, now)).collect();
    for Allows { policy, seconds, reason } in said {
        let Some(seconds) = *seconds else { continue };
        let new = Limit { policy: policy.clone(), seconds, due: now + millis(seconds), reason: reason.clone() };
        let before = known.iter().find(|limit| limit.policy == *policy).map(|limit| within(limit, now));
        // More time is written down when half of it is over: not with every question.
        let stands = |before: &Limit| before.due <= new.due && before.due - now > millis(seconds) / 2;
        limits.push(before.filter(stands).unwrap_or(new));
    }
    limits.sort_by(|one, other| (one.due, &one.policy).cmp(&(other.due, &other.policy)));
    limits.truncate(MAX_OBLIGATIONS);
    limits
}

/// The limit as it can be: where the clock went back, it does not end later than if it began now. Times are written down
/// in whole seconds.
fn within(limit: &Limit, now: i64) -> Limit {
    let latest = now + millis(limit.seconds);
    let due = if limit.due > latest + PAUSE { latest } else { limit.due };
    Limit { due, ..limit.clone() }
}

/// After how many milliseconds to ask again: when half of the time is over, then ever sooner, and at the end.
fn pause(limit: &Limit, now: i64) -> i64 {
    let left = limit.due - now;
    match left - millis(limit.seconds) / 2 {
        until_half if until_half > 0 => until_half,
        _ => (left / 2).max(PAUSE).min(left),
    }
}

fn millis(seconds: u32) -> i64 {
    i64::from(seconds) * 1000
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ocm_policy_abi::{Decision, Obligation};

    use super::*;
    use crate::outcome::PolicyId;

    const NOW: i64 = 1_700_000_000_000;

    fn limit(policy: &str, seconds: u32, due: i64) -> Limit {
        Limit { policy: policy.into(), seconds, due: NOW + due * 1000, reason: None }
    }

    fn allows(policy: &str, seconds: Option<u32>) -> Allows {
        Allows { policy: policy.into(), seconds, reason: None }
    }

    /// The limits that stand, as policy and seconds left.
    fn stand(known: &[Limit], said: Option<&[Allows]>) -> Vec<(String, i64)> {
        match step(known, said, NOW) {
            Step::Stand { limits, .. } => {
                limits.into_iter().map(|limit| (limit.policy, (limit.due - NOW) / 1000)).collect()
            }
            Step::Withdraw(over) => panic!("withdrawn: {over:?}"),
        }
    }

    fn left(policy: &str, seconds: i64) -> (String, i64) {
        (policy.to_owned(), seconds)
    }

    #[test]
    fn only_policies_that_allow_and_count_give_time_or_take_it() {
        let outcome = |name: &str, verdict, seconds: &[u32]| {
            let obligations = seconds.iter().map(|seconds| Obligation {
                name: EXPIRE_ACCEPTANCE.into(),
                within_seconds: Some(*seconds),
                params: [(REASON.to_owned(), format!("{seconds} s"))].into(),
            });
            let decision = Decision { verdict, obligations: obligations.collect(), ..Decision::default() };
            Outcome {
                policy: Arc::new(PolicyId { name: name.into(), version: "1.0.0".into() }),
                result: Ok(decision),
                fuel: 1,
            }
        };
        let (a, b) = (outcome("a", Verdict::Allow, &[90, 60]), outcome("b", Verdict::Allow, &[]));
        let (c, d) = (outcome("c", Verdict::Allow, &[60]), outcome("d", Verdict::NoOpinion, &[]));
        let audit = Enforcement { mode: Mode::Audit, ..Enforcement::default() };
        let own = Enforcement::default();
        let said = || [(own, &a), (own, &b), (audit, &c), (own, &d)];
        let of_a = Allows { policy: "a".into(), seconds: Some(60), reason: Some("60 s".into()) };
        assert_eq!(allowing(Answer::Allow, said()), Some(vec![of_a, allows("b", None)]));
        for verdict in Answer::ALL.into_iter().filter(|verdict| *verdict != Answer::Allow) {
            assert_eq!(allowing(verdict, said()), None, "{verdict:?}");
        }
    }

    #[test]
    fn a_policy_speaks_for_its_own_limit_and_for_no_other() {
        let known = [limit("p", 100, 40), limit("q", 200, 120)];
        // Nobody allows it: what was given stands.
        assert_eq!(stand(&known, None), [left("p", 40), left("q", 120)]);
        // Others allow it without an end.
        assert_eq!(stand(&known, Some(&[allows("r", None)])), [left("p", 40), left("q", 120)]);
        // One lifts its own limit.
        assert_eq!(stand(&known, Some(&[allows("p", None)])), [left("q", 120)]);
        // One gives more time, and one that gave none does.
        assert_eq!(
            stand(&known, Some(&[allows("p", Some(100)), allows("r", Some(60))])),
            [left("r", 60), left("p", 100), left("q", 120)]
        );
        assert_eq!(step(&[], Some(&[allows("p", None)]), NOW), Step::Stand { limits: vec![], again: None });
    }

    #[test]
    fn more_time_is_written_down_when_half_of_it_is_over() {
        let again = |due| stand(&[limit("p", 100, due)], Some(&[allows("p", Some(100))]));
        assert_eq!((again(51), again(50), again(1)), (vec![left("p", 51)], vec![left("p", 100)], vec![left("p", 100)]));
        // Less time counts at once.
        assert_eq!(stand(&[limit("p", 100, 90)], Some(&[allows("p", Some(60))])), [left("p", 60)]);
        // What is over already can still be given.
        assert_eq!(stand(&[limit("p", 100, -1)], Some(&[allows("p", Some(100))])), [left("p", 100)]);
    }

    #[test]
    fn what_is_over_and_not_given_anew_is_withdrawn_and_nothing_before() {
        let known = [limit("p", 100, 0), limit("q", 100, 1)];
        for said in [None, Some([allows("r", None)].as_slice()), Some(&[allows("q", Some(100))])] {
            assert_eq!(step(&known, said, NOW), Step::Withdraw(vec![limit("p", 100, 0)]), "{said:?}");
            assert!(matches!(step(&known, said, NOW - 1), Step::Stand { .. }), "{said:?}");
        }
    }

    #[test]
    fn policies_are_asked_at_half_of_the_time_then_ever_sooner_and_at_its_end() {
        let mut now = NOW;
        let mut asked = Vec::new();
        while let Step::Stand { again, .. } = step(&[limit("p", 60, 60)], None, now) {
            now += again.expect("it has a limit");
            asked.push((now - NOW) / 100);
        }
        assert_eq!(asked[..4], [300, 450, 525, 562]);
        assert_eq!((asked.last(), asked.len()), (Some(&600), 7), "{asked:?}");
        let two = [limit("p", 60, 60), limit("q", 100, 51)];
        assert!(matches!(step(&two, None, NOW), Step::Stand { again: Some(1000), .. }), "the first one counts");
    }

    #[test]
    fn a_clock_that_goes_back_gives_no_more_time_than_the_policy() {
        let later = limit("p", 60, 3600);
        assert_eq!(stand(std::slice::from_ref(&later), None), [left("p", 60)]);
        assert_eq!(stand(&[later], Some(&[allows("p", Some(60))])), [left("p", 60)]);
        // Rounding is no such jump.
        let rounded = Limit { due: NOW + 60_500, ..limit("p", 60, 0) };
        assert_eq!(limits(std::slice::from_ref(&rounded), None, NOW), [rounded]);
    }

    #[test]
    fn of_too_many_limits_those_that_end_first_are_kept() {
        let many: Vec<Allows> = (0..20).map(|number| allows(&format!("p{number:02}"), Some(100 - number))).collect();
        let kept = limits(&[], Some(&many), NOW);
        assert_eq!((kept.len(), kept[0].policy.as_str()), (MAX_OBLIGATIONS, "p19"));
        assert!(kept.iter().all(|limit| limit.seconds <= 96));
    }
}
