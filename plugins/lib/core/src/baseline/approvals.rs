//! RegistrationApprovals: that whoever wrote one is who it says, and may approve.

use std::sync::LazyLock;

use jiff::{SignedDuration, Timestamp};
use ocm_api::Manifest;
use ocm_rules::Code;
use serde_json::{Value, json};

use super::cel::text;
use super::policy::{Check, Policy, Rule};

/// Name of the policy, and of its binding: while both are there, approvals are their authors' own words.
pub const GUARD: &str = "registrationapprovals.baseline.kubectl-ocm.dev";

const GROUP: &str = "policy.kubectl-ocm.dev";

/// The virtual verb on registrations that it takes to approve one.
pub const APPROVE: &str = "approve";
/// The virtual verb on registrations that an approval with breakGlass takes.
pub const BREAK_GLASS: &str = "break-glass";

/// Nobody's approval counts for longer, in days.
pub const MAX_DAYS: u32 = 30;
/// None with breakGlass counts for longer, in hours.
pub const MAX_BREAK_GLASS_HOURS: u32 = 4;

/// How long an API server may take to enforce what was made.
const TAKES_EFFECT: SignedDuration = SignedDuration::from_secs(10);

static EXPECTED: LazyLock<Value> = LazyLock::new(|| Manifest::of(&policy().object()).body().clone());

/// Since when approvals are their authors' own words, by the policy [`GUARD`] and the binding of this name; none where
/// these do not prove it. A policy that was changed to prove more has to get another name: what was written before it
/// would count.
pub fn proves_since(policy: &Value, binding: &Value) -> Option<Timestamp> {
    let same = |pointer: &str| policy.pointer(pointer) == EXPECTED.pointer(pointer);
    let proves = ["/metadata/name", "/spec/failurePolicy", "/spec/matchConstraints/resourceRules", "/spec/validations"];
    let everybody = ["/spec/matchConditions", "/spec/paramKind", "/spec/matchConstraints/excludeResourceRules"];
    let unlimited = |object: &Value, pointer: &str| {
        object.pointer(pointer).is_none_or(|value| value.is_null() || *value == json!({}) || *value == json!([]))
    };
    let selectors = ["/spec/matchConstraints/namespaceSelector", "/spec/matchConstraints/objectSelector"];
    let is_policy = proves.into_iter().chain(["/spec/variables"]).all(same)
        && everybody.into_iter().chain(selectors).all(|pointer| unlimited(policy, pointer));
    let actions = binding.pointer("/spec/validationActions").and_then(Value::as_array);
    let is_binding = binding.pointer("/spec/policyName") == Some(&json!(GUARD))
        && actions.is_some_and(|actions| actions.contains(&json!("Deny")))
        && ["/spec/matchResources", "/spec/paramRef"].iter().all(|pointer| unlimited(binding, pointer));
    let created = |object: &Value| -> Option<Timestamp> {
        let is_going = object.pointer("/metadata/deletionTimestamp").is_some();
        object.pointer("/metadata/creationTimestamp").filter(|_| !is_going)?.as_str()?.parse().ok()
    };
    let latest = created(policy)?.max(created(binding)?);
    (is_policy && is_binding).then_some(latest + TAKES_EFFECT)
}

/// The policy. It has no settings: what counts for others may not depend on what somebody chose here.
pub(super) fn policy() -> Policy {
    let may = |verb: &str| {
        format!(
            "authorizer.group({}).resource(\"registrations\").name(object.spec.cluster.name).check({}).allowed()",
            text(GROUP),
            text(verb)
        )
    };
    Policy {
        name: GUARD,
        rules: vec![Rule { group: GROUP, version: "*", resource: "registrationapprovals", operations: &["CREATE"] }],
        conditions: Vec::new(),
        variables: vec![
            ("breakGlass", "object.spec.?breakGlass.orValue(false)".to_owned()),
            // The API server's own time.
            ("created", "timestamp(object.metadata.creationTimestamp)".to_owned()),
            ("expires", "timestamp(object.spec.expiresAt)".to_owned()),
        ],
        checks: vec![
            Check::new(
                Code::Approver,
                "an approval has to name its author as the approver",
                "object.spec.approver == request.userInfo.username",
            ),
            Check::new(
                Code::ApproverGroups,
                "an approval may name only groups of its author",
                "object.spec.?groups.orValue([]).all(g, g in request.userInfo.?groups.orValue([]))",
            ),
            Check::new(
                Code::ApprovalRight,
                format!(
                    "to approve a registration takes the right to {APPROVE} registrations in the group {GROUP} of the \
                     name of its cluster"
                ),
                format!("variables.breakGlass || {}", may(APPROVE)),
            ),
            Check::new(
                Code::ApprovalRight,
                format!(
                    "an approval with breakGlass takes the right to {BREAK_GLASS} registrations in the group {GROUP} of \
                     the name of its cluster"
                ),
                format!("!variables.breakGlass || {}", may(BREAK_GLASS)),
            ),
            Check::new(
                Code::ApprovalExpiry,
                "an approval may not have ended when it is given",
                "variables.expires > variables.created",
            ),
            Check::new(
                Code::ApprovalExpiry,
                format!("an approval has to end within {MAX_DAYS} days"),
                format!("variables.expires <= variables.created + duration(\"{}h\")", MAX_DAYS * 24),
            ),
            Check::new(
                Code::ApprovalExpiry,
                format!("an approval with breakGlass has to end within {MAX_BREAK_GLASS_HOURS} hours"),
                format!(
                    "!variables.breakGlass || variables.expires <= variables.created + \
                     duration(\"{MAX_BREAK_GLASS_HOURS}h\")"
                ),
            ),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::super::Enforcement;
    use super::*;

    fn guard(enforcement: Enforcement) -> (Value, Value) {
        let mut policy = Manifest::of(&policy().object()).body().clone();
        let mut binding = Manifest::of(&super::policy().binding(enforcement)).body().clone();
        policy["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        binding["metadata"]["creationTimestamp"] = json!("2026-01-01T00:01:00Z");
        // What an API server fills in.
        policy["spec"]["matchConstraints"]["namespaceSelector"] = json!({});
        policy["spec"]["matchConstraints"]["objectSelector"] = json!({});
        (policy, binding)
    }

    #[test]
    fn approvals_are_proved_ten_seconds_after_the_later_of_policy_and_binding() {
        let (policy, binding) = guard(Enforcement::Deny);
        assert_eq!(proves_since(&policy, &binding), "2026-01-01T00:01:10Z".parse().ok());
        let mut later = policy;
        later["metadata"]["creationTimestamp"] = json!("2026-01-02T00:00:00Z");
        assert_eq!(proves_since(&later, &binding), "2026-01-02T00:00:10Z".parse().ok());
    }

    #[test]
    fn nothing_weaker_proves_them() {
        let (policy, binding) = guard(Enforcement::Deny);
        let proves = |policy: &Value, binding: &Value| proves_since(policy, binding).is_some();
        assert!(proves(&policy, &binding));
        assert!(!proves(&policy, &guard(Enforcement::Audit).1), "it only warns");
        assert!(!proves(&policy, &Value::Null) && !proves(&Value::Null, &binding));
        for (pointer, value) in [
            ("/metadata/name", json!("other")),
            ("/metadata/creationTimestamp", json!(null)),
            ("/metadata/deletionTimestamp", json!("2026-01-03T00:00:00Z")),
            ("/spec/failurePolicy", json!("Ignore")),
            ("/spec/validations/0/expression", json!("true")),
            ("/spec/variables/0/expression", json!("false")),
            ("/spec/matchConditions", json!([{"name": "not-eve", "expression": "request.userInfo.username != 'eve'"}])),
            ("/spec/matchConstraints/objectSelector", json!({"matchLabels": {"a": "b"}})),
            ("/spec/matchConstraints/resourceRules/0/operations/0", json!("UPDATE")),
        ] {
            assert!(!proves(&with(&policy, pointer, value), &binding), "{pointer}");
        }
        for (pointer, value) in [
            ("/spec/policyName", json!("other")),
            ("/spec/matchResources", json!({"objectSelector": {"matchLabels": {"a": "b"}}})),
            ("/spec/paramRef", json!({"name": "p"})),
            ("/metadata/deletionTimestamp", json!("2026-01-03T00:00:00Z")),
        ] {
            assert!(!proves(&policy, &with(&binding, pointer, value)), "{pointer}");
        }
    }

    fn with(object: &Value, pointer: &str, value: Value) -> Value {
        let mut object = object.clone();
        let (parent, member) = pointer.rsplit_once('/').expect("a pointer");
        match object.pointer_mut(parent).expect("it is there") {
            Value::Array(items) => items[member.parse::<usize>().expect("a number")] = value,
            parent => parent[member] = value,
        }
        object
    }
}
