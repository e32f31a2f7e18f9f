//! What follows from what the rules and the policies say: neither clock nor client.

use ocm_core::accept::{Decision, Refusal};
use ocm_policy_rules::{Answer, Combined};

use crate::status::Waiting;

/// What follows from the rules of `accept`, before any policy is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ruled {
    /// There is nothing to decide.
    Nothing,
    /// A person has to decide, or to put something right.
    Person(Refusal),
    /// The policies are asked about this request.
    Ask {
        /// Index of the request that the join stands on.
        stands_on: usize,
        /// Whether that request is still to be approved.
        approve: bool,
        /// Whether the cluster is still to be accepted.
        accept: bool,
    },
}

/// What follows from the rules.
pub(crate) fn ruled(decision: &Decision) -> Ruled {
    match decision {
        Decision::Settled { .. } | Decision::NoRequest => Ruled::Nothing,
        Decision::Refused(refusal) => Ruled::Person(refusal.clone()),
        // Without a request nobody knows whom it would let in.
        Decision::Act { stands_on: None, .. } => Ruled::Nothing,
        Decision::Act { approve, stands_on: Some(stands_on), accept } => {
            // What is approved is what the join stands on, or nothing.
            let approves = match approve {
                Some(index) if index == stands_on => true,
                None => false,
                Some(_) => return Ruled::Nothing,
            };
            Ruled::Ask { stands_on: *stands_on, approve: approves, accept: *accept }
        }
    }
}

/// What follows from the policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// These policies let it in.
    Carry(Vec<String>),
    /// It waits.
    Wait {
        /// For what.
        waiting: Waiting,
        /// After how many seconds to ask again.
        again: Option<u32>,
    },
}

/// What follows from the answer of all policies and from those among them that approve.
pub(crate) fn judged(answer: &Combined, approving: &[&str]) -> Judged {
    let first = answer.reasons.iter().find(|given| given.verdict.word() == answer.verdict.word());
    let said = first.map(|given| {
        let by = given.policy.as_deref().map(|policy| format!("policy {policy}: ")).unwrap_or_default();
        let why = format!("{by}{} ({})", given.reason.message, given.reason.code);
        Waiting::for_policies(given.policy.as_deref(), why)
    });
    let waiting = match answer.verdict {
        Answer::Allow if !approving.is_empty() => {
            return Judged::Carry(approving.iter().map(|name| (*name).to_owned()).collect());
        }
        Answer::Allow => Waiting::for_a_person("no policy that approves allowed it"),
        Answer::NoOpinion => Waiting::for_a_person("no policy has an opinion about it"),
        Answer::Error => match answer.errors.first() {
            Some(problem) => {
                let policies = problem.policies.join(", ");
                let why = format!("policy {policies}: {} ({})", problem.error.in_short(), problem.error.code());
                Waiting::for_policies(problem.policies.iter().map(AsRef::as_ref), why)
            }
            None => Waiting::for_policies([], "a policy that failed".to_owned()),
        },
        Answer::Hold | Answer::Deny => {
            said.unwrap_or_else(|| Waiting::for_policies([], answer.verdict.word().to_owned()))
        }
    };
    Judged::Wait { waiting, again: answer.ask_again_seconds }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ocm_api::registration::RegistrationKeeper;
    use ocm_core::csr::Code;
    use ocm_policy_abi::{Decision as Said, Reason, Verdict};
    use ocm_policy_rules::{Outcome, PolicyError, PolicyId, combine};

    use super::*;

    fn act(approve: Option<usize>, stands_on: Option<usize>) -> Decision {
        Decision::Act { approve, stands_on, accept: true }
    }

    #[test]
    fn only_a_request_that_the_rules_stand_on_is_asked_about() {
        let ask = |approve| Ruled::Ask { stands_on: 1, approve, accept: true };
        assert_eq!(ruled(&act(Some(1), Some(1))), ask(true));
        assert_eq!(ruled(&act(None, Some(1))), ask(false));
        for other in [act(None, None), act(Some(0), Some(1)), Decision::NoRequest, Decision::Settled { stray: vec![0] }]
        {
            assert_eq!(ruled(&other), Ruled::Nothing, "{other:?}");
        }
        let refusal = Refusal { code: Code::TwoKeys, detail: "two keys".into(), help: None, is_decided: false };
        assert_eq!(ruled(&Decision::Refused(refusal.clone())), Ruled::Person(refusal));
    }

    fn said(name: &str, result: Result<Verdict, PolicyError>) -> Outcome {
        let reasons = vec![Reason { code: "Because".into(), message: "it is so".into(), field: None }];
        let result = result.map(|verdict| Said {
            verdict,
            reasons,
            ask_again_seconds: (verdict == Verdict::Hold).then_some(7),
            ..Said::default()
        });
        Outcome { policy: Arc::new(PolicyId { name: name.into(), version: "1.0.0".into() }), result, fuel: 1 }
    }

    #[test]
    fn nobody_is_let_in_without_a_policy_that_approves() {
        let allow = combine(&[said("a", Ok(Verdict::Allow))]);
        assert_eq!(judged(&allow, &["a"]), Judged::Carry(vec!["a".to_owned()]));
        let waits = |answer: &Combined, approving: &[&str]| match judged(answer, approving) {
            Judged::Wait { waiting, again } => (waiting, again),
            carry @ Judged::Carry(_) => panic!("{carry:?}"),
        };
        assert_eq!(waits(&allow, &[]).0, Waiting::for_a_person("no policy that approves allowed it"));
        assert_eq!(waits(&allow, &[]).0.why, "a person: no policy that approves allowed it");
        let nobody = Waiting::for_a_person("no policy has an opinion about it");
        assert_eq!(waits(&combine::<Outcome>(&[]), &["a"]).0, nobody);
        // Whatever else was said: it is never carried out.
        for (result, why, again) in [
            (Ok(Verdict::Hold), "policy b: it is so (Because)", Some(7)),
            (Ok(Verdict::Deny), "policy b: it is so (Because)", None),
            (Err(PolicyError::OutOfFuel), "policy b: ", None),
        ] {
            let answer = combine(&[said("a", Ok(Verdict::Allow)), said("b", result)]);
            let (told, told_again) = waits(&answer, &["a"]);
            assert!(told.why.starts_with(why), "{told:?}");
            assert_eq!(
                (told.by.who, told.by.policies, told_again),
                (RegistrationKeeper::Policies, vec!["b".to_owned()], again)
            );
        }
    }
}
