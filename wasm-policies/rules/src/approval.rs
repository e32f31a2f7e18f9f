//! Whether anybody is let in without a person.

use ocm_policy_abi::Verdict;

use crate::combine::Answer;
use crate::enforcement::{Enforcement, Mode};
use crate::outcome::Outcome;

/// The policies that let a join happen without a person, by their names; none: a person decides.
///
/// Allow alone is no approval: policies about hygiene allow what is right, whoever asks. So all policies together must
/// allow it, and at least one of those must that its administrator said approves, and whose word counts.
pub fn approving<'o>(verdict: Answer, said: impl IntoIterator<Item = (Enforcement, &'o Outcome)>) -> Vec<&'o str> {
    if verdict != Answer::Allow {
        return Vec::new();
    }
    let approves = |(enforcement, outcome): (Enforcement, &'o Outcome)| {
        let allows = outcome.result.as_ref().is_ok_and(|decision| decision.verdict == Verdict::Allow);
        let counts = enforcement.auto_approve && enforcement.mode == Mode::Enforce;
        (allows && counts).then_some(outcome.policy.name.as_str())
    };
    said.into_iter().filter_map(approves).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ocm_policy_abi::Decision;

    use super::*;
    use crate::error::PolicyError;
    use crate::outcome::PolicyId;

    const APPROVES: Enforcement =
        Enforcement { mode: Mode::Enforce, on_error: crate::OnError::Deny, auto_approve: true, break_glass: false };

    fn outcome(name: &str, verdict: Option<Verdict>) -> Outcome {
        let result = match verdict {
            Some(verdict) => Ok(Decision { verdict, ..Decision::default() }),
            None => Err(PolicyError::OutOfFuel),
        };
        Outcome { policy: Arc::new(PolicyId { name: name.into(), version: "1.0.0".into() }), result, fuel: 1 }
    }

    #[test]
    fn whoever_may_approve_and_allows_approves() {
        let (own, other) = (outcome("own", Some(Verdict::Allow)), outcome("hygiene", Some(Verdict::Allow)));
        let said = [(APPROVES, &own), (Enforcement::default(), &other)];
        assert_eq!(approving(Answer::Allow, said), ["own"]);
        assert!(approving(Answer::Allow, [(Enforcement::default(), &other)]).is_empty(), "hygiene approves nobody");
    }

    #[test]
    fn nothing_but_an_allow_that_counts_approves() {
        let allows = outcome("own", Some(Verdict::Allow));
        for verdict in Answer::ALL.into_iter().filter(|verdict| *verdict != Answer::Allow) {
            assert!(approving(verdict, [(APPROVES, &allows)]).is_empty(), "{verdict:?}");
        }
        for mode in [Mode::Warn, Mode::Audit] {
            assert!(approving(Answer::Allow, [(Enforcement { mode, ..APPROVES }, &allows)]).is_empty(), "{mode:?}");
        }
        for verdict in [Some(Verdict::NoOpinion), Some(Verdict::Hold), Some(Verdict::Deny), None] {
            let said = outcome("own", verdict);
            assert!(approving(Answer::Allow, [(APPROVES, &said)]).is_empty(), "{verdict:?}");
        }
    }
}
