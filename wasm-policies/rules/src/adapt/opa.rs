//! Rego of the Open Policy Agent, whose entry points answer as their authors chose.

use ocm_policy_abi::{Decision, Request, Verdict};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::answer::{checked, malformed, messages, one_result, reason, typed};
use crate::error::PolicyError;
use crate::json::shorten;
use crate::validate::{Bounds, read_decision};

/// Code of the reasons why a Rego rule denies.
pub const REGO_DENIES: &str = "RegoDenies";
/// Code of the reasons why a Rego rule holds.
pub const REGO_HOLDS: &str = "RegoHolds";

/// What a Rego policy finds as `input`: our request.
pub fn opa_input(request: &Request<'_>) -> Value {
    serde_json::to_value(request).unwrap_or(Value::Null)
}

/// The members that a package or an object may have, and no others: one that is not understood may be the one that
/// denies.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    #[serde(default, deserialize_with = "present")]
    allow: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    deny: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    violation: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    hold: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    warn: Option<Value>,
}

/// A member that is there is something: null is not the same as none.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Reads the result set of a Rego rule. The last part of `entrypoint`, such as `ocm/deny`, tells what a bare value
/// means: of `deny`, `violation` and `hold` true or messages deny or hold and nothing is no opinion; of any other rule
/// true allows and false denies. A whole package or an object has members `allow`, `deny`, `violation`, `hold` and
/// `warn` and no others, or is a decision in our words, with `verdict`.
///
/// # Errors
/// The rule is undefined, or its value is of none of these forms.
pub fn opa_result(json: &[u8], entrypoint: &str, bounds: &Bounds) -> Result<Decision, PolicyError> {
    let result = one_result(json, bounds)?;
    let rule = entrypoint.rsplit(['/', '.']).next().unwrap_or_default();
    let answer = match (rule, result) {
        ("deny", deny) => Answer { deny: Some(deny), ..Answer::default() },
        ("violation", violation) => Answer { violation: Some(violation), ..Answer::default() },
        ("hold", hold) => Answer { hold: Some(hold), ..Answer::default() },
        (_, Value::Bool(allow)) => Answer { allow: Some(allow), ..Answer::default() },
        (_, result) if result.get("verdict").is_some() => return read_decision(result.to_string().as_bytes(), bounds),
        (_, result @ Value::Object(_)) => typed(result)?,
        _ => return Err(malformed(format!("the result of {entrypoint} is neither a boolean nor an object"))),
    };
    let mut decision = Decision::default();
    decision.reasons.extend(messages("deny", answer.deny.as_ref(), REGO_DENIES, bounds)?);
    decision.reasons.extend(messages("violation", answer.violation.as_ref(), REGO_DENIES, bounds)?);
    let holds = messages("hold", answer.hold.as_ref(), REGO_HOLDS, bounds)?;
    let warnings = messages("warn", answer.warn.as_ref(), REGO_DENIES, bounds)?;
    decision.verdict = match answer.allow {
        _ if !decision.reasons.is_empty() => Verdict::Deny,
        Some(false) if holds.is_empty() => {
            decision.reasons.push(reason(REGO_DENIES, "the policy does not allow it", bounds));
            Verdict::Deny
        }
        // A rule that says to wait says more than a default that nothing is allowed yet.
        _ if !holds.is_empty() => Verdict::Hold,
        Some(true) => Verdict::Allow,
        // Whoever may deny and does not has no opinion; whoever says none of these words says nothing.
        _ if answer.deny.is_some() || answer.violation.is_some() || answer.hold.is_some() => Verdict::NoOpinion,
        _ => {
            let wrong = format!("the result of {entrypoint} holds none of allow, deny, violation and hold");
            return Err(malformed(wrong));
        }
    };
    if decision.verdict == Verdict::Hold {
        decision.reasons = holds;
    }
    decision.reasons.truncate(bounds.reasons);
    for warning in warnings.into_iter().take(bounds.warnings) {
        decision.warnings.push(shorten(&warning.message, bounds.warning));
    }
    checked(decision, bounds)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask(result: &str, entry: &str) -> Result<Verdict, PolicyError> {
        opa_result(result.as_bytes(), entry, &Bounds::default()).map(|decision| decision.verdict)
    }

    #[test]
    fn rego_answers_in_many_ways() {
        for (result, entry, verdict) in [
            ("true", "ocm/allow", Verdict::Allow),
            ("false", "ocm/allow", Verdict::Deny),
            ("true", "ocm/deny", Verdict::Deny),
            ("false", "ocm/deny", Verdict::NoOpinion),
            (r#"["no"]"#, "ocm/deny", Verdict::Deny),
            ("[]", "ocm/deny", Verdict::NoOpinion),
            (r#"["later"]"#, "ocm/hold", Verdict::Hold),
            ("[]", "ocm/hold", Verdict::NoOpinion),
            (r#"[{"msg": "no"}]"#, "ocm/violation", Verdict::Deny),
            (r#"{"verdict": "allow"}"#, "ocm/deny", Verdict::Deny),
            (r#"{"allow": true}"#, "ocm/violation", Verdict::Deny),
            (r#"{"allow": true}"#, "ocm/hold", Verdict::Hold),
            (r#"{"allow": true}"#, "ocm", Verdict::Allow),
            (r#"{"allow": false}"#, "ocm", Verdict::Deny),
            (r#"{"allow": true, "deny": ["no"]}"#, "ocm", Verdict::Deny),
            (r#"{"allow": true, "violation": [{"msg": "no"}]}"#, "ocm", Verdict::Deny),
            (r#"{"allow": true, "hold": ["later"]}"#, "ocm", Verdict::Hold),
            (r#"{"allow": false, "hold": ["later"]}"#, "ocm", Verdict::Hold),
            (r#"{"allow": true, "deny": [], "warn": ["w"]}"#, "ocm", Verdict::Allow),
            (r#"{"deny": []}"#, "ocm", Verdict::NoOpinion),
            (r#"{"verdict": "allow"}"#, "ocm/decision", Verdict::Allow),
        ] {
            let set = format!(r#"[{{"result": {result}}}]"#);
            assert_eq!(ask(&set, entry), Ok(verdict), "{result} {entry}");
        }
    }

    #[test]
    fn nothing_missing_undefined_unknown_or_contradictory_allows() {
        for (result, entry) in [
            ("null", "ocm/allow"),
            ("0", "ocm/allow"),
            ("1", "ocm/allow"),
            (r#""yes""#, "ocm/allow"),
            (r#"["yes"]"#, "ocm/allow"),
            ("[]", "ocm/allow"),
            ("[]", "ocm"),
            ("{}", "ocm"),
            (r#"{"warn": ["w"]}"#, "ocm"),
            (r#"{"warn": []}"#, "ocm"),
            (r#"{"helper": 1}"#, "ocm"),
            (r#"{"allow": null}"#, "ocm"),
            (r#"{"allow": "true"}"#, "ocm"),
            (r#"{"allow": [true]}"#, "ocm"),
            (r#"{"allow": true, "denied": ["no"]}"#, "ocm"),
            (r#"{"allow": true, "denies": []}"#, "ocm"),
            (r#"{"allow": true, "helper": 1}"#, "ocm"),
            (r#"{"allow": true, "Deny": ["no"]}"#, "ocm"),
            (r#"{"allow": true, "deny": null}"#, "ocm"),
            (r#"{"allow": true, "hold": null}"#, "ocm"),
            (r#"{"allow": true, "warn": 1}"#, "ocm"),
            (r#"{"allow": true, "deny": [1]}"#, "ocm"),
            (r#"{"allow": true, "deny": [null]}"#, "ocm"),
            (r#"{"allow": true, "deny": 0}"#, "ocm"),
            (r#"{"allow": false, "allow": true}"#, "ocm"),
            (r#"{"deny": ["no"], "deny": [], "allow": true}"#, "ocm"),
            (r#"{"verdict": "allow", "more": 1}"#, "ocm"),
            (r#"{"verdict": "allow", "deny": ["no"]}"#, "ocm"),
            (r#"{"verdict": "allow", "allow": false}"#, "ocm"),
            (r#"{"verdict": "deny", "verdict": "allow"}"#, "ocm"),
            (r#"{"verdict": "deny"}"#, "ocm"),
            (r#"{"verdict": null, "allow": true}"#, "ocm"),
            ("null", "ocm/deny"),
            ("0", "ocm/deny"),
            ("[1]", "ocm/deny"),
            ("null", "ocm/hold"),
        ] {
            let set = format!(r#"[{{"result": {result}}}]"#);
            assert_eq!(ask(&set, entry).unwrap_err().code(), "malformed", "{result} {entry}");
        }
        for set in [
            "",
            "[]",
            "null",
            "true",
            "{}",
            "[[true]]",
            "[true]",
            "[{}]",
            r#"[{"result": true}, {"result": true}]"#,
            r#"[{"result": false, "result": true}]"#,
            r#"[{"result": true, "deny": ["no"]}]"#,
            r#"{"result": true}"#,
            r#"[{"result": true}] []"#,
        ] {
            for entry in ["ocm/allow", "ocm/deny", "ocm/decision", "ocm"] {
                assert_eq!(ask(set, entry).unwrap_err().code(), "malformed", "{set} {entry}");
            }
        }
        let undefined = ask("[]", "ocm/allow").unwrap_err().to_string();
        assert!(undefined.contains("the rule is undefined"), "{undefined}");
    }

    #[test]
    fn more_reasons_than_there_may_be_still_deny() {
        let many: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        assert_eq!(ask(&json!([{"result": many}]).to_string(), "ocm/deny"), Ok(Verdict::Deny));
    }
}
