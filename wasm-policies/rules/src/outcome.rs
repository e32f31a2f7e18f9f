//! What came of asking one policy: a decision that keeps to the rules, or an error.

use std::sync::Arc;

use ocm_policy_abi::{Decision, EditGrant, Obligation, Request, Verdict};
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
}

#[cfg(test)]
mod tests {
    use ocm_policy_abi::{Operation, Reason, Requester};

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
}
