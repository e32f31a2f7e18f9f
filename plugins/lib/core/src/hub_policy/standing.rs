//! Where a HubPolicy stands, by what the policy controller has written of it.

use ocm_api::conditions::hub_policy::reasons::STOPS_TO_JUDGE;
use ocm_api::conditions::hub_policy::{DEGRADED, LOADED};
use ocm_api::conditions::{FALSE, TRUE, UNKNOWN, find};
use ocm_api::policy::HubPolicy;

use super::disabled;
use crate::{Hint, Remedy};

/// Which version of a policy its status is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// Of the one that is wanted.
    Current,
    /// Of this generation, and the policy has changed since.
    Former(i64),
    /// There is none.
    Never,
}

/// Which version of a policy its status is of.
pub fn observed(policy: &HubPolicy) -> Observed {
    let seen = policy.status.as_ref().and_then(|status| status.observed_generation);
    match seen {
        None => Observed::Never,
        seen if seen == policy.metadata.generation => Observed::Current,
        Some(generation) => Observed::Former(generation),
    }
}

/// The word of a condition: Unknown where it is of a former version. None: nobody has written it.
pub fn condition<'a>(policy: &'a HubPolicy, type_: &str) -> Option<&'a str> {
    let found = find(&policy.status.as_ref()?.conditions, type_)?;
    Some(if observed(policy) == Observed::Current { found.status.as_str() } else { UNKNOWN })
}

/// What has a policy loaded again that its status says is not.
pub fn mended(policy: &HubPolicy) -> Remedy {
    let conditions = policy.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    match find(conditions, LOADED) {
        Some(loaded) if loaded.reason == STOPS_TO_JUDGE => Remedy::PolicyOperations,
        _ => Remedy::MendPolicy,
    }
}

/// What to do about a policy; none: nothing. `waiting`: whether registrations wait for it.
pub fn next_step(policy: &HubPolicy, waiting: bool) -> Option<Hint> {
    if observed(policy) != Observed::Current {
        return Some(Remedy::PolicyController.into());
    }
    if condition(policy, LOADED) == Some(FALSE) {
        return Some(mended(policy).into());
    }
    if disabled(policy).is_some() {
        return Some(Remedy::EnablePolicy(policy.metadata.name.clone().unwrap_or_default()).into());
    }
    let conditions = policy.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    // Its message says what to do.
    if let Some(degraded) = find(conditions, DEGRADED).filter(|degraded| degraded.status == TRUE) {
        return Some(degraded.message.as_str().into());
    }
    waiting.then(|| Remedy::Registrations.into())
}

#[cfg(test)]
pub(super) mod tests {
    use ocm_api::policy::PolicyMode;
    use serde_json::{Value, json};

    use super::super::DISABLED;
    use super::*;

    /// A policy of the third generation.
    pub(crate) fn policy(spec: Value, status: Value) -> HubPolicy {
        let object = json!({
            "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "HubPolicy",
            "metadata": {"name": "p", "generation": 3}, "spec": spec, "status": status,
        });
        serde_json::from_value(object).unwrap()
    }

    fn with(generation: i64, conditions: &[(&str, &str)]) -> HubPolicy {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(type_, status)| {
                json!({"type": type_, "status": status, "reason": "R", "message": "m",
                       "lastTransitionTime": "2026-01-01T00:00:00Z"})
            })
            .collect();
        policy(json!({"module": {"builtin": "b"}}), json!({"observedGeneration": generation, "conditions": conditions}))
    }

    #[test]
    fn what_is_said_of_a_former_version_is_not_taken_for_the_present_one() {
        let current = with(3, &[(LOADED, TRUE)]);
        assert_eq!((observed(&current), condition(&current, LOADED)), (Observed::Current, Some(TRUE)));
        let former = with(2, &[(LOADED, TRUE)]);
        assert_eq!((observed(&former), condition(&former, LOADED)), (Observed::Former(2), Some(UNKNOWN)));
        let never = policy(json!({"module": {"builtin": "b"}}), json!({}));
        assert_eq!((observed(&never), condition(&never, LOADED)), (Observed::Never, None));
    }

    #[test]
    fn what_to_do_begins_with_what_is_worst() {
        let well = [(LOADED, TRUE), (DEGRADED, FALSE)];
        assert_eq!(next_step(&with(3, &well), false), None);
        assert_eq!(next_step(&with(3, &well), true), Some(Remedy::Registrations.into()));
        assert_eq!(next_step(&with(3, &[(LOADED, TRUE), (DEGRADED, TRUE)]), true), Some("m".into()));
        assert_eq!(next_step(&with(3, &[(LOADED, FALSE), (DEGRADED, TRUE)]), true), Some(Remedy::MendPolicy.into()));
        let mut fewer = with(3, &[(LOADED, FALSE), (DEGRADED, TRUE)]);
        let conditions = fewer.status.iter_mut().flat_map(|status| &mut status.conditions);
        conditions.for_each(|condition| condition.reason = STOPS_TO_JUDGE.to_owned());
        assert_eq!(next_step(&fewer, true), Some(Remedy::PolicyOperations.into()));
        let mut off = with(3, &[(LOADED, TRUE), (DEGRADED, TRUE)]);
        off.spec.mode = PolicyMode::Audit;
        assert_eq!(next_step(&off, false), Some("m".into()));
        let was = r#"{"mode":"Enforce","autoApprove":false}"#;
        off.metadata.annotations = Some([(DISABLED.to_owned(), was.to_owned())].into());
        assert_eq!(next_step(&off, false), Some(Remedy::EnablePolicy("p".to_owned()).into()));
        assert_eq!(next_step(&with(2, &[(LOADED, FALSE)]), true), Some(Remedy::PolicyController.into()));
    }
}
