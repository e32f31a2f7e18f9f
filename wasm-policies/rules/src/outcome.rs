//! What came of asking one policy: a decision that keeps to the rules, or an error.

use std::sync::Arc;

use ocm_policy_abi::{Decision, EditGrant, Request, Verdict};
use serde::{Deserialize, Serialize};

use crate::edits;
use crate::error::PolicyError;

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
    /// wants to follow; otherwise the error. A denial stands whatever else it says.
    #[must_use]
    pub fn permit(mut self, request: &Request<'_>, manifest: &[EditGrant], administrator: &[EditGrant]) -> Self {
        let Ok(decision) = &self.result else { return self };
        let unknown =
            decision.obligations.iter().find(|wanted| !request.obligations.iter().any(|known| *known == *wanted.name));
        let refused = edits::check(&decision.edits, request, manifest, administrator).err().or_else(|| {
            let unknown = unknown.filter(|_| decision.verdict != Verdict::Deny)?;
            Some(PolicyError::UnknownObligation(unknown.name.clone()))
        });
        if let Some(error) = refused {
            self.result = Err(error);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use ocm_policy_abi::{Obligation, Operation, Reason, Requester};

    use super::*;

    #[test]
    fn an_obligation_that_the_hub_does_not_know_is_no_allow() {
        let mut request = Request::new(Operation::Accept, Requester::default());
        let ask = |request: &Request<'_>, verdict: Verdict| {
            let obligation = Obligation { name: "expire-acceptance".to_owned(), ..Obligation::default() };
            let reasons = vec![Reason { code: "Because".to_owned(), message: "m".to_owned(), field: None }];
            let decision = Decision { verdict, reasons, obligations: vec![obligation], ..Decision::default() };
            let policy = Arc::default();
            Outcome { policy, result: Ok(decision), fuel: 0 }.permit(request, &[], &[]).result.map(|made| made.verdict)
        };
        let unknown = Err(PolicyError::UnknownObligation("expire-acceptance".to_owned()));
        assert_eq!(ask(&request, Verdict::Allow), unknown);
        assert_eq!(ask(&request, Verdict::Hold), unknown);
        assert_eq!(ask(&request, Verdict::Deny), Ok(Verdict::Deny), "nothing turns a denial into less");
        request.obligations = vec!["expire-acceptance".into()];
        assert_eq!(ask(&request, Verdict::Allow), Ok(Verdict::Allow));
    }
}
