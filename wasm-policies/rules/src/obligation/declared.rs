//! Obligations that are carried out: which ones a request declares, and what each takes.

use ocm_api::registration::MAX_SECONDS;
use ocm_policy_abi::{OBLIGATIONS, Obligation, Operation, Verdict};
use serde_json::{Value, json};

use crate::error::PolicyError;

/// The obligation that ends an acceptance.
pub const EXPIRE_ACCEPTANCE: &str = OBLIGATIONS[0];
/// The least and the most that it may be in seconds: a minute, and 400 days.
pub const SECONDS: std::ops::RangeInclusive<u32> = 60..=MAX_SECONDS;
/// The one parameter that it takes: why, for people.
pub const REASON: &str = "reason";

/// The obligations that are carried out where they follow from the answer to such a question; any other makes an answer an
/// error. Hubs declare these to their policies, and so does whoever asks policies without a hub: what passes there is
/// no error here.
pub const fn carried_out(operation: Operation) -> &'static [&'static str] {
    match operation {
        Operation::Accept | Operation::Join => &[EXPIRE_ACCEPTANCE],
        Operation::Create
        | Operation::Update
        | Operation::Delete
        | Operation::Request
        | Operation::Approve
        | Operation::Admit => &[],
    }
}

/// Declares them in a request of the contract that says nothing of obligations.
pub fn declare(request: &mut Value) {
    let operation = request.get("operation").and_then(Value::as_str).and_then(Operation::of);
    // A request without an operation is none: whoever reads it says so.
    let (Some(operation), Some(members)) = (operation, request.as_object_mut()) else { return };
    members.entry("obligations").or_insert_with(|| json!(carried_out(operation)));
}

/// Whether an obligation can be carried out as it stands in an answer of this verdict.
pub(crate) fn check(obligation: &Obligation, verdict: Verdict) -> Result<(), PolicyError> {
    if obligation.name != EXPIRE_ACCEPTANCE {
        return Ok(());
    }
    let wrong = |why: String| Err(PolicyError::Malformed(format!("{EXPIRE_ACCEPTANCE} {why}")));
    if verdict != Verdict::Allow {
        return wrong(format!("with {}", verdict.word()));
    }
    if !obligation.within_seconds.is_some_and(|seconds| SECONDS.contains(&seconds)) {
        return wrong(format!("takes withinSeconds of {} to {}", SECONDS.start(), SECONDS.end()));
    }
    match obligation.params.keys().find(|key| **key != REASON) {
        Some(key) => wrong(format!("takes no parameter {key:?}, only {REASON:?}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_says_itself_stays() {
        let mut own = json!({"operation": "accept", "obligations": ["other"]});
        declare(&mut own);
        assert_eq!(own["obligations"], json!(["other"]));
        for operation in Operation::ALL {
            let mut request = json!({"operation": operation.word()});
            declare(&mut request);
            assert_eq!(request["obligations"], json!(carried_out(operation)));
        }
        let mut none = json!({"operation": "later"});
        declare(&mut none);
        assert_eq!(none.get("obligations"), None);
    }

    #[test]
    fn what_cannot_be_carried_out_is_an_error() {
        let good = || Obligation { name: EXPIRE_ACCEPTANCE.into(), within_seconds: Some(60), params: [].into() };
        let says = |change: &dyn Fn(&mut Obligation), verdict| {
            let mut obligation = good();
            change(&mut obligation);
            check(&obligation, verdict).map_err(|error| error.to_string())
        };
        assert_eq!(says(&|_| {}, Verdict::Allow), Ok(()));
        assert_eq!(says(&|one| one.within_seconds = Some(34_560_000), Verdict::Allow), Ok(()));
        assert_eq!(says(&|one| drop(one.params.insert("reason".into(), "why".into())), Verdict::Allow), Ok(()));
        for verdict in [Verdict::Hold, Verdict::NoOpinion, Verdict::Deny] {
            assert!(says(&|_| {}, verdict).is_err_and(|why| why.ends_with(verdict.word())), "{verdict:?}");
        }
        for seconds in [None, Some(0), Some(59), Some(34_560_001), Some(u32::MAX)] {
            let said = says(&|one| one.within_seconds = seconds, Verdict::Allow);
            assert!(said.is_err_and(|why| why.contains("60 to 34560000")), "{seconds:?}");
        }
        let said = says(&|one| drop(one.params.insert("grace".into(), "1".into())), Verdict::Allow);
        assert!(said.is_err_and(|why| why.contains("\"grace\"")));
    }
}
