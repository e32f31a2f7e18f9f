//! How much the word of a policy counts on a hub.

use std::borrow::Cow;

use ocm_policy_abi::{Decision, Reason, Verdict};
use serde::{Deserialize, Serialize};

use crate::combine::{Answer, Combined, GivenWarning};
use crate::error::PolicyError;
use crate::outcome::Outcome;

/// The code of the reason that stands for an error that holds.
pub const POLICY_FAILED: &str = "PolicyFailed";
/// The key, below the name of a policy, of the audit entry that says what the policy would have decided.
const WOULD: &str = "would";

/// What follows from the word of a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Mode {
    /// It counts.
    #[default]
    Enforce,
    /// Nothing, but whoever makes the request is warned.
    Warn,
    /// Nothing, but the audit log holds it.
    Audit,
}

impl Mode {
    /// As HubPolicies have it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Enforce => "Enforce",
            Self::Warn => "Warn",
            Self::Audit => "Audit",
        }
    }
}

/// What an error of a policy counts for. Neither lets anything be approved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OnError {
    /// The request is refused.
    #[default]
    Deny,
    /// As if the policy had said hold.
    Hold,
}

/// How much the word of a policy counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Enforcement {
    /// What follows from its word.
    pub mode: Mode,
    /// What its errors count for.
    pub on_error: OnError,
    /// Whether its allow lets a join happen without a person, see [`approving`](crate::approving).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub auto_approve: bool,
    /// Whether an approval with breakGlass lets pass what it refuses, see [`break_glass_approval`](crate::break_glass_approval).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub break_glass: bool,
}

impl Enforcement {
    /// The outcome as it counts; none where it does not.
    pub fn counts(self, outcome: &Outcome) -> Option<Cow<'_, Outcome>> {
        match (&outcome.result, self) {
            (_, Self { mode: Mode::Warn | Mode::Audit, .. }) => None,
            (Err(error), Self { on_error: OnError::Hold, .. }) => {
                Some(Cow::Owned(Outcome { result: Ok(held(error)), ..outcome.clone() }))
            }
            _ => Some(Cow::Borrowed(outcome)),
        }
    }

    /// The stricter of both, in each of its parts.
    #[must_use]
    pub fn tightened(self, other: Self) -> Self {
        let mode = match (self.mode, other.mode) {
            (Mode::Enforce, _) | (_, Mode::Enforce) => Mode::Enforce,
            (Mode::Warn, _) | (_, Mode::Warn) => Mode::Warn,
            (Mode::Audit, Mode::Audit) => Mode::Audit,
        };
        let on_error = match (self.on_error, other.on_error) {
            (OnError::Hold, OnError::Hold) => OnError::Hold,
            _ => OnError::Deny,
        };
        Self {
            mode,
            on_error,
            auto_approve: self.auto_approve && other.auto_approve,
            break_glass: self.break_glass && other.break_glass,
        }
    }

    /// As it counts where an approval with breakGlass lets the request pass: whoever makes it is warned.
    #[must_use]
    pub fn passed_over(self, outcome: &Outcome) -> Self {
        let objects = self.mode == Mode::Enforce && self.would(outcome).is_some();
        if objects && self.break_glass { Self { mode: Mode::Warn, ..self } } else { self }
    }

    /// Notes in an answer what a policy would have decided whose word does not count.
    pub fn note(self, outcome: &Outcome, answer: &mut Combined) {
        let Some(said) = self.would(outcome) else { return };
        let name = &outcome.policy.name;
        match self.mode {
            Mode::Enforce => {}
            Mode::Warn => answer.warnings.insert(0, GivenWarning { policy: name.clone(), message: said }),
            Mode::Audit => {
                answer.audit.insert(format!("{name}.{WOULD}"), said);
            }
        }
    }

    /// What it would have decided, in a sentence; none where it objects to nothing.
    fn would(self, outcome: &Outcome) -> Option<String> {
        let verdict = match Answer::of(&outcome.result)? {
            Answer::Deny => "denied",
            Answer::Hold => "held",
            Answer::Error if self.on_error == OnError::Hold => "held",
            Answer::Error => "refused",
            Answer::Allow | Answer::NoOpinion => return None,
        };
        let why = match &outcome.result {
            Err(error) => format!("{} ({})", error.in_short(), error.code()),
            Ok(decision) => match decision.reasons.first() {
                Some(Reason { code, message, .. }) => format!("{message} ({code})"),
                None => "it gives no reason".to_owned(),
            },
        };
        Some(format!("would be {verdict}: {why}"))
    }
}

/// The decision that an error counts for where it holds.
fn held(error: &PolicyError) -> Decision {
    let reason = Reason { code: POLICY_FAILED.to_owned(), message: error.in_short().to_owned(), field: None };
    Decision { verdict: Verdict::Hold, reasons: vec![reason], ..Decision::default() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::combine;
    use crate::outcome::PolicyId;

    fn outcome(result: Result<Decision, PolicyError>) -> Outcome {
        Outcome { policy: Arc::new(PolicyId { name: "p".into(), version: "1.0.0".into() }), result, fuel: 1 }
    }

    fn denies() -> Outcome {
        let reason = Reason { code: "Because".into(), message: "it is so".into(), field: None };
        outcome(Ok(Decision { verdict: Verdict::Deny, reasons: vec![reason], ..Decision::default() }))
    }

    fn answer(enforcement: Enforcement, outcome: &Outcome) -> Combined {
        let counting: Vec<Cow<'_, Outcome>> = enforcement.counts(outcome).into_iter().collect();
        let mut answer = combine(&counting);
        enforcement.note(outcome, &mut answer);
        answer
    }

    #[test]
    fn only_what_is_enforced_counts_and_the_rest_is_told() {
        let with = |mode| answer(Enforcement { mode, ..Enforcement::default() }, &denies());
        let enforced = with(Mode::Enforce);
        assert_eq!((enforced.verdict, enforced.warnings.len(), enforced.audit.len()), (Answer::Deny, 0, 0));
        let warned = with(Mode::Warn);
        assert_eq!((warned.verdict, warned.audit.len()), (Answer::NoOpinion, 0));
        assert_eq!(warned.warnings[0].message, "would be denied: it is so (Because)");
        let audited = with(Mode::Audit);
        assert_eq!((audited.verdict, audited.warnings.len()), (Answer::NoOpinion, 0));
        assert_eq!(audited.audit["p.would"], "would be denied: it is so (Because)");
    }

    #[test]
    fn the_stricter_of_two_is_strict_in_everything() {
        let loose = Enforcement { mode: Mode::Audit, on_error: OnError::Hold, auto_approve: true, break_glass: true };
        let other = Enforcement { mode: Mode::Warn, on_error: OnError::Deny, auto_approve: false, break_glass: false };
        assert_eq!(loose.tightened(other), other);
        assert_eq!(other.tightened(loose), other);
        assert_eq!(loose.tightened(loose), loose);
        assert_eq!(Enforcement::default().tightened(loose), Enforcement::default());
    }

    #[test]
    fn what_an_approval_lets_pass_is_told_and_only_where_the_policy_lets_it() {
        let enforcement = Enforcement { break_glass: true, ..Enforcement::default() };
        let passed = answer(enforcement.passed_over(&denies()), &denies());
        assert_eq!((passed.verdict, passed.warnings.len()), (Answer::NoOpinion, 1));
        let failed = outcome(Err(PolicyError::OutOfFuel));
        assert_eq!(answer(enforcement.passed_over(&failed), &failed).verdict, Answer::NoOpinion);
        let never = Enforcement::default();
        assert_eq!((never.passed_over(&denies()), answer(never, &denies()).verdict), (never, Answer::Deny));
        let allows = outcome(Ok(Decision { verdict: Verdict::Allow, ..Decision::default() }));
        assert_eq!(enforcement.passed_over(&allows), enforcement, "it does not object");
        let audits = Enforcement { mode: Mode::Audit, ..enforcement };
        assert_eq!(audits.passed_over(&denies()), audits, "it refuses nothing");
    }

    #[test]
    fn an_allow_that_does_not_count_allows_nothing() {
        let allows = outcome(Ok(Decision { verdict: Verdict::Allow, ..Decision::default() }));
        for mode in [Mode::Warn, Mode::Audit] {
            let answer = answer(Enforcement { mode, ..Enforcement::default() }, &allows);
            assert_eq!((answer.verdict, answer.warnings.len(), answer.audit.len()), (Answer::NoOpinion, 0, 0));
        }
    }

    #[test]
    fn an_error_holds_where_it_shall_and_never_allows() {
        let broken = outcome(Err(PolicyError::OutOfFuel));
        let with = |on_error| answer(Enforcement { on_error, ..Enforcement::default() }, &broken);
        assert_eq!(with(OnError::Deny).verdict, Answer::Error);
        let held = with(OnError::Hold);
        assert_eq!((held.verdict, &*held.reasons[0].reason.code), (Answer::Hold, POLICY_FAILED));
    }
}
