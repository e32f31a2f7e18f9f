//! Whether a policy's answer is a decision: its size, its form, and whether its parts fit each other.

use std::collections::BTreeMap;

use ocm_policy_abi::{Decision, Edit, Obligation, Reason, Verdict};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::error::{ERROR_BYTES, PolicyError};
use crate::json::shorten;
use crate::{edits, syntax};

/// How much a policy may answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of the whole answer.
    pub bytes: usize,
    /// Reasons.
    pub reasons: usize,
    /// Characters of a code, and of an obligation's name.
    pub code: usize,
    /// Bytes of a reason's message.
    pub message: usize,
    /// Bytes of the field that a reason is about.
    pub field: usize,
    /// Warnings.
    pub warnings: usize,
    /// Bytes of a warning. Kubernetes cuts longer ones.
    pub warning: usize,
    /// Edits.
    pub edits: usize,
    /// Obligations.
    pub obligations: usize,
    /// Parameters of an obligation.
    pub params: usize,
    /// Bytes of a parameter's value.
    pub param: usize,
    /// Entries for the audit log.
    pub audit: usize,
    /// Bytes of the value of an entry for the audit log.
    pub audit_value: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            bytes: 64 * 1024,
            reasons: 32,
            code: 64,
            message: 1024,
            field: 256,
            warnings: 16,
            warning: 256,
            edits: 64,
            obligations: 16,
            params: 16,
            param: 256,
            audit: 32,
            audit_value: 1024,
        }
    }
}

/// Where a decision holds objects. A list has a verdict first and these never do.
#[derive(Deserialize)]
struct Shape {
    #[serde(default, rename = "reasons")]
    _reasons: Vec<BTreeMap<String, IgnoredAny>>,
    #[serde(default, rename = "edits")]
    _edits: Vec<BTreeMap<String, IgnoredAny>>,
    #[serde(default, rename = "obligations")]
    _obligations: Vec<BTreeMap<String, IgnoredAny>>,
}

/// Reads a policy's answer.
///
/// # Errors
/// [`PolicyError::TooLarge`] or [`PolicyError::Malformed`]: nothing is guessed, cut or left out.
pub fn read_decision(json: &[u8], bounds: &Bounds) -> Result<Decision, PolicyError> {
    if json.len() > bounds.bytes {
        return Err(PolicyError::TooLarge(format!("{} bytes, {} allowed", json.len(), bounds.bytes)));
    }
    // Errors quote what the policy wrote.
    let malformed = |error: serde_json::Error| PolicyError::Malformed(shorten(&error.to_string(), ERROR_BYTES));
    let decision: Decision = serde_json::from_slice(json).map_err(malformed)?;
    // Serde takes a list for a struct as well, by position. Only words that are named are an answer.
    serde_json::from_slice::<Shape>(json).map_err(malformed)?;
    bounds.check(&decision)?;
    Ok(decision)
}

impl Bounds {
    /// Checks a decision, wherever it came from: sizes, forms, and whether its parts fit each other.
    ///
    /// # Errors
    /// [`PolicyError::TooLarge`] or [`PolicyError::Malformed`].
    pub fn check(&self, decision: &Decision) -> Result<(), PolicyError> {
        at_most("reasons", decision.reasons.len(), self.reasons)?;
        at_most("warnings", decision.warnings.len(), self.warnings)?;
        at_most("edits", decision.edits.len(), self.edits)?;
        at_most("obligations", decision.obligations.len(), self.obligations)?;
        at_most("audit entries", decision.audit.len(), self.audit)?;
        // What a policy means must not be lost, and this version of the contract knows no more.
        must(decision.more.is_empty(), || "it says more than this hub knows".to_owned())?;
        for reason in &decision.reasons {
            self.check_reason(reason)?;
        }
        for warning in &decision.warnings {
            text("a warning", warning, self.warning)?;
        }
        for edit in &decision.edits {
            check_edit(edit)?;
        }
        for obligation in &decision.obligations {
            self.check_obligation(obligation)?;
        }
        for (key, value) in &decision.audit {
            // The API server puts a prefix and a slash before it.
            must(syntax::is_name_part(key), || format!("{key:?} is no key for the audit log"))?;
            plain(&format!("audit entry {key}"), value, self.audit_value)?;
        }
        // Last: what it quotes has been checked by now.
        consistent(decision)
    }

    fn check_reason(&self, reason: &Reason) -> Result<(), PolicyError> {
        at_most("characters in the code of a reason", reason.code.len(), self.code)?;
        must(syntax::is_code(&reason.code), || {
            format!("the code of a reason, {:?}, is not in CamelCase, such as NameTaken", reason.code)
        })?;
        text("the message of a reason", &reason.message, self.message)?;
        reason.field.as_deref().map_or(Ok(()), |field| text("the field of a reason", field, self.field))
    }

    fn check_obligation(&self, obligation: &Obligation) -> Result<(), PolicyError> {
        let what = "the name of an obligation";
        at_most(&format!("characters in {what}"), obligation.name.len(), self.code)?;
        must(syntax::is_kebab(&obligation.name), || format!("{what}, {:?}, is not in kebab-case", obligation.name))?;
        at_most("parameters of an obligation", obligation.params.len(), self.params)?;
        for (key, value) in &obligation.params {
            must(syntax::is_name_part(key), || format!("{key:?} is no name of a parameter"))?;
            plain(&format!("parameter {key}"), value, self.param)?;
        }
        Ok(())
    }
}

fn consistent(decision: &Decision) -> Result<(), PolicyError> {
    let verdict = decision.verdict;
    must(decision.edits.is_empty() || verdict == Verdict::Allow, || format!("edits with {}", verdict.word()))?;
    must(decision.ask_again_seconds.is_none() || verdict == Verdict::Hold, || {
        format!("askAgainSeconds with {}", verdict.word())
    })?;
    must(decision.ask_again_seconds != Some(0), || "askAgainSeconds is 0".to_owned())?;
    must(!matches!(verdict, Verdict::Deny | Verdict::Hold) || !decision.reasons.is_empty(), || {
        format!("{} without a reason", verdict.word())
    })?;
    for (index, edit) in decision.edits.iter().enumerate() {
        if let Some(other) = decision.edits[..index].iter().find(|other| edits::clash(edit, other)) {
            return Err(PolicyError::Malformed(format!("{} is edited in two ways", edits::target(other))));
        }
    }
    Ok(())
}

fn check_edit(edit: &Edit) -> Result<(), PolicyError> {
    let key_of = |key: &str| must(syntax::is_qualified_name(key), || format!("{key:?} is no key"));
    let value_of = |value: &str| must(syntax::is_label_value(value), || format!("{value:?} is no value of a label"));
    match edit {
        Edit::SetLabel { key, value } | Edit::AddTaint { key, value, .. } => key_of(key).and(value_of(value)),
        Edit::RemoveLabel { key } | Edit::RemoveAnnotation { key } | Edit::RemoveTaint { key } => key_of(key),
        Edit::SetAnnotation { key, value } => {
            key_of(key)?;
            at_most("bytes in an annotation", key.len() + value.len(), syntax::ANNOTATIONS_BYTES)
        }
        Edit::SetClusterSet { name } => {
            // The name becomes the value of a label.
            must(syntax::is_dns_subdomain(name) && name.len() <= 63, || format!("{name:?} is no name of a set"))
        }
        Edit::SetLeaseDuration { seconds } => {
            must(*seconds > 0 && i32::try_from(*seconds).is_ok(), || format!("a lease of {seconds} seconds"))
        }
    }
}

fn must(right: bool, wrong: impl FnOnce() -> String) -> Result<(), PolicyError> {
    if right { Ok(()) } else { Err(PolicyError::Malformed(shorten(&wrong(), ERROR_BYTES))) }
}

fn at_most(what: &str, found: usize, allowed: usize) -> Result<(), PolicyError> {
    if found <= allowed { Ok(()) } else { Err(PolicyError::TooLarge(format!("{found} {what}, {allowed} allowed"))) }
}

/// A text that is shown to people, in headers and on terminals: some characters, none of them a control character.
fn text(what: &str, text: &str, bytes: usize) -> Result<(), PolicyError> {
    must(!text.is_empty(), || format!("{what} is empty"))?;
    plain(what, text, bytes)
}

fn plain(what: &str, text: &str, bytes: usize) -> Result<(), PolicyError> {
    at_most(&format!("bytes in {what}"), text.len(), bytes)?;
    must(!text.chars().any(char::is_control), || format!("{what} holds a control character"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(json: &str) -> Result<Decision, PolicyError> {
        read_decision(json.as_bytes(), &Bounds::default())
    }

    fn code(json: &str) -> &'static str {
        read(json).map_or_else(|error| error.code(), |_| "read")
    }

    #[test]
    fn a_decision_is_read() {
        let decision = read(
            r#"{"verdict": "allow", "warnings": ["soon full"], "audit": {"team": "a"},
                "edits": [{"op": "set-label", "key": "example.com/team", "value": "a"},
                          {"op": "add-taint", "key": "new", "effect": "NoSelect"},
                          {"op": "set-lease-duration", "seconds": 60}],
                "obligations": [{"name": "expire-acceptance", "withinSeconds": 60}]}"#,
        )
        .unwrap();
        assert_eq!((decision.verdict, decision.edits.len()), (Verdict::Allow, 3));
        assert_eq!(read(r#"{"verdict": "no-opinion"}"#).unwrap(), Decision::default());
    }

    #[test]
    fn what_is_not_exactly_a_decision_is_malformed() {
        for json in [
            "",
            "null",
            "{}",
            "true",
            r#"["allow"]"#,
            r#"["allow", null, [], [], [], [], {}]"#,
            r#"{"verdict": "allow", "reasons": [["a", "b", null]]}"#,
            r#"{"verdict": "allow", "edits": [["set-label", "a", "b"]]}"#,
            r#"{"verdict": "allow", "obligations": [["a", null, {}]]}"#,
            r#"{"verdict": "allow"} x"#,
            r#"{"verdict": "allow"}{"verdict": "deny"}"#,
            r#"{"verdict": "Allow"}"#,
            r#"{"verdict": "allow", "verdict": "allow"}"#,
            r#"{"verdict": "allow", "more": 1}"#,
            r#"{"verdict": "allow", "reasons": [{"code": "A", "message": "b", "more": 1}]}"#,
            r#"{"verdict": "allow", "edits": [{"op": "set-label", "key": "a", "value": "b", "more": 1}]}"#,
            r#"{"verdict": "allow", "edits": [{"op": "replace", "path": "/spec"}]}"#,
        ] {
            assert_eq!(code(json), "malformed", "{json}");
        }
    }

    #[test]
    fn an_error_does_not_carry_what_a_policy_wrote_to_terminals() {
        let long = "\u{9b}".repeat(2000);
        for json in [
            format!(r#"{{"verdict": "allow", "{long}": 1}}"#),
            format!(r#"{{"verdict": "deny", "reasons": [{{"code": "{long}x", "message": "m"}}]}}"#),
            format!(r#"{{"verdict": "allow", "audit": {{"{long}": ""}}}}"#),
            format!(r#"{{"verdict": "deny", "edits": [{{"op": "remove-label", "key": "{long}"}}]}}"#),
        ] {
            let said = read(&json).unwrap_err().to_string();
            assert!(said.len() < 600 && !said.chars().any(char::is_control), "{said}");
        }
    }

    #[test]
    fn what_contradicts_itself_is_malformed() {
        for json in [
            r#"{"verdict": "deny"}"#,
            r#"{"verdict": "hold"}"#,
            r#"{"verdict": "no-opinion", "edits": [{"op": "remove-label", "key": "a"}]}"#,
            r#"{"verdict": "allow", "askAgainSeconds": 5}"#,
            r#"{"verdict": "hold", "askAgainSeconds": 0, "reasons": [{"code": "A", "message": "b"}]}"#,
            r#"{"verdict": "allow", "edits": [{"op": "set-label", "key": "a", "value": "b"},
                                              {"op": "remove-label", "key": "a"}]}"#,
        ] {
            assert_eq!(code(json), "malformed", "{json}");
        }
    }

    #[test]
    fn what_kubernetes_would_refuse_is_malformed() {
        for edit in [
            r#"{"op": "set-label", "key": "a b", "value": ""}"#,
            r#"{"op": "set-label", "key": "a", "value": "b c"}"#,
            r#"{"op": "remove-annotation", "key": "a/b/c"}"#,
            r#"{"op": "add-taint", "key": "a", "value": "b/c", "effect": "NoSelect"}"#,
            r#"{"op": "set-cluster-set", "name": ""}"#,
            r#"{"op": "set-lease-duration", "seconds": 0}"#,
            r#"{"op": "set-lease-duration", "seconds": 2147483648}"#,
        ] {
            assert_eq!(code(&format!(r#"{{"verdict": "allow", "edits": [{edit}]}}"#)), "malformed", "{edit}");
        }
        for reason in [
            r#"{"code": "No Case", "message": "m"}"#,
            r#"{"code": "", "message": "m"}"#,
            r#"{"code": "A", "message": ""}"#,
            r#"{"code": "A", "message": "\u001b[2J"}"#,
        ] {
            assert_eq!(code(&format!(r#"{{"verdict": "deny", "reasons": [{reason}]}}"#)), "malformed", "{reason}");
        }
        assert_eq!(code(r#"{"verdict": "allow", "audit": {"a/b": "c"}}"#), "malformed");
    }

    #[test]
    fn bounds_are_kept_to_the_last_one() {
        let reason = Reason { code: "A".into(), message: "m".into(), field: None };
        let bounds = Bounds::default();
        let mut decision = Decision { verdict: Verdict::Deny, reasons: vec![reason; 32], ..Decision::default() };
        decision.warnings = vec!["w".repeat(256); 16];
        assert_eq!(bounds.check(&decision), Ok(()));
        for spoil in [
            (|d: &mut Decision| d.reasons.push(d.reasons[0].clone())) as fn(&mut Decision),
            |d| d.reasons[0].message = "m".repeat(1025),
            |d| d.reasons[0].code = "c".repeat(65),
            |d| d.warnings.push("w".into()),
            |d| d.warnings[0].push('w'),
            |d| d.audit = (0..33).map(|n| (format!("k{n}"), String::new())).collect(),
            |d| d.obligations = vec![Obligation { name: "a".into(), ..Obligation::default() }; 17],
            |d| {
                (d.verdict, d.edits) =
                    (Verdict::Allow, (0..65).map(|n| Edit::RemoveLabel { key: format!("k{n}") }).collect());
            },
        ] {
            let mut spoilt = decision.clone();
            spoil(&mut spoilt);
            assert_eq!(bounds.check(&spoilt).unwrap_err().code(), "too-large");
        }
        let long = format!(r#"{{"verdict": "allow"{}}}"#, " ".repeat(64 * 1024));
        assert_eq!(code(&long), "too-large");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic_and_never_allow(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let allows = read_decision(&bytes, &Bounds::default()).is_ok_and(|read| read.verdict == Verdict::Allow);
            prop_assert!(!allows || bytes.windows(7).any(|word| word == b"\"allow\""));
        }

        #[test]
        fn a_spoilt_allow_is_no_allow_of_something_else(
            at in 0usize..200, byte in any::<u8>(), cut in any::<bool>(),
        ) {
            let good = br#"{"verdict":"allow","edits":[{"op":"set-label","key":"team","value":"a"}],"audit":{"k":"v"}}"#;
            let mut bytes = good.to_vec();
            let at = at % bytes.len();
            if cut { bytes.truncate(at) } else { bytes[at] = byte }
            // What is still read is a decision by every rule, and says so itself.
            if let Ok(decision) = read_decision(&bytes, &Bounds::default()) {
                prop_assert!(Bounds::default().check(&decision).is_ok());
                let again = serde_json::to_vec(&decision).unwrap();
                prop_assert_eq!(read_decision(&again, &Bounds::default()).unwrap(), decision);
                prop_assert!(!cut);
            }
        }
    }
}
