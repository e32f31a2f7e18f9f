//! What came of asking one policy: a decision that keeps to the rules, or an error.

use std::sync::Arc;

use ocm_policy_abi::{Decision, EditGrant, Obligation, Reason, Request, Verdict};
use serde::{Deserialize, Serialize};

use crate::error::PolicyError;
use crate::{edits, obligation};

/// Which policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PolicyId {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// What came of asking one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Which policy.
    pub policy: Arc<PolicyId>,
    /// What it decided, or why it did not.
    pub result: Result<Decision, PolicyError>,
    /// Fuel that it used.
    pub fuel: u64,
}

impl Outcome {
    /// The same outcome if its edits are permitted, see [`edits::check`], and the hub knows the obligations that it
    /// wants to follow and can carry them out; otherwise the error. A denial stands whatever else it says.
    #[must_use]
    pub fn permit(mut self, request: &Request<'_>, manifest: &[EditGrant], administrator: &[EditGrant]) -> Self {
        let Ok(decision) = &self.result else { return self };
        let wanted = decision.obligations.iter().filter(|_| decision.verdict != Verdict::Deny);
        let wrong = |wanted: &Obligation| match request.obligations.iter().any(|known| *known == *wanted.name) {
            true => obligation::check(wanted, decision.verdict).err(),
            false => Some(PolicyError::UnknownObligation(wanted.name.clone())),
        };
        let refused = edits::check(&decision.edits, request, manifest, administrator);
        let refused = refused.err().or_else(|| wanted.into_iter().find_map(wrong));
        if let Some(error) = refused {
            self.result = Err(error);
        }
        self
    }

    /// The same outcome of a policy of which it is not known whether the request is one of those that it is asked about: an allow
    /// becomes no opinion, of which no edit is made. One with an obligation becomes a hold: that the obligation does not follow would
    /// let in for longer than the policy wants. Anything else stands.
    #[must_use]
    pub fn without_allow(mut self) -> Self {
        if let Ok(decision) = &mut self.result {
            take_allow(decision);
        }
        self
    }
}

/// The code of a hold for what a request does not tell, as policies have it.
const UNTOLD: &str = "EvidenceIncomplete";

/// What is left of a decision that may only object.
pub(crate) fn take_allow(decision: &mut Decision) {
    if decision.verdict != Verdict::Allow {
        return;
    }
    decision.edits.clear();
    decision.verdict = Verdict::NoOpinion;
    if !decision.obligations.is_empty() {
        decision.obligations.clear();
        decision.verdict = Verdict::Hold;
        decision.reasons = vec![Reason {
            code: UNTOLD.to_owned(),
            message: "it allows this with an obligation, and the request does not tell whether it is asked about it"
                .to_owned(),
            field: None,
        }];
    }
}

#[cfg(test)]
mod tests {
    use ocm_policy_abi::{Edit, Operation, Requester};

    use super::*;

    #[test]
    fn an_obligation_that_the_hub_does_not_know_is_no_allow() {
        let mut request = Request::new(Operation::Accept, Requester::default());
        let ask = |request: &Request<'_>, verdict: Verdict, within_seconds| {
            let obligation =
                Obligation { name: "expire-acceptance".to_owned(), within_seconds, ..Obligation::default() };
            let reasons = vec![Reason { code: "Because".to_owned(), message: "m".to_owned(), field: None }];
            let decision = Decision { verdict, reasons, obligations: vec![obligation], ..Decision::default() };
            let policy = Arc::default();
            Outcome { policy, result: Ok(decision), fuel: 0 }.permit(request, &[], &[]).result.map(|made| made.verdict)
        };
        let unknown = Err(PolicyError::UnknownObligation("expire-acceptance".to_owned()));
        assert_eq!(ask(&request, Verdict::Allow, Some(60)), unknown);
        assert_eq!(ask(&request, Verdict::Hold, Some(60)), unknown);
        assert_eq!(ask(&request, Verdict::Deny, Some(60)), Ok(Verdict::Deny), "nothing turns a denial into less");
        request.obligations = vec!["expire-acceptance".into()];
        assert_eq!(ask(&request, Verdict::Allow, Some(60)), Ok(Verdict::Allow));
        assert!(matches!(ask(&request, Verdict::Allow, None), Err(PolicyError::Malformed(_))), "without an end");
        assert!(
            matches!(ask(&request, Verdict::Hold, Some(60)), Err(PolicyError::Malformed(_))),
            "nothing is accepted"
        );
        assert_eq!(ask(&request, Verdict::Deny, None), Ok(Verdict::Deny));
    }

    #[test]
    fn whoever_may_only_object_allows_nothing() {
        let edits = vec![Edit::SetLabel { key: "a".to_owned(), value: "b".to_owned() }];
        for verdict in Verdict::ALL {
            let decision = Decision {
                verdict,
                reasons: vec![Reason { code: "Because".to_owned(), message: "m".to_owned(), field: None }],
                edits: edits.clone(),
                obligations: vec![Obligation::default()],
                ..Decision::default()
            };
            let outcome = Outcome { policy: Arc::default(), result: Ok(decision), fuel: 0 };
            let made = outcome.clone().without_allow();
            match verdict {
                Verdict::Allow => {
                    let made = made.result.unwrap();
                    assert_eq!((made.verdict, made.reasons[0].code.as_str()), (Verdict::Hold, UNTOLD), "else for ever");
                    assert!(made.edits.is_empty() && made.obligations.is_empty());
                    let mut free = outcome.clone();
                    free.result.as_mut().unwrap().obligations.clear();
                    let made = free.without_allow().result.unwrap();
                    assert_eq!((made.verdict, made.reasons[0].code.as_str()), (Verdict::NoOpinion, "Because"));
                    assert!(made.edits.is_empty());
                }
                _ => assert_eq!(made, outcome, "{verdict:?}"),
            }
        }
        let failed = Outcome { policy: Arc::default(), result: Err(PolicyError::OutOfFuel), fuel: 0 };
        assert_eq!(failed.clone().without_allow(), failed);
    }
}
