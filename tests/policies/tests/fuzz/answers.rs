//! What policies of all kinds answer. What has to be in an answer that allows is said here a second time, by hand.

use ocm_policy_abi::{Decision, Operation, Verdict};
use ocm_policy_engine::{Ceiling, Policy, compile_here};
use ocm_policy_rules::adapt::{self, Settings};
use ocm_policy_rules::{Bounds, PolicyError, read_decision};
use serde_json::{Value, json};

use crate::guests::{Guest, engine, policy, question};
use crate::support::Random;
use crate::{fuzz, mutate};

/// Tries damaged answers: some of them still JSON, of another structure, and some of them not.
fn answers(part: &str, good: &[Value], mut read: impl FnMut(&[u8], Option<&Value>)) {
    let texts: Vec<String> = good.iter().map(Value::to_string).collect();
    let make = |random: &mut Random| {
        let mut value = random.one(good).clone();
        if !random.once_in(3) {
            (0..=random.below(2)).for_each(|_| mutate::json(&mut value, random));
        }
        let mut text = value.to_string().into_bytes();
        match random.below(8) {
            0 | 1 => mutate::bytes(&mut text, random.one(&texts).as_bytes(), random),
            // Said twice: whoever takes the first and whoever takes the last must not differ about what is allowed.
            2 if text.first() == Some(&b'{') => {
                let twice = [r#""verdict":"allow","#, r#""accepted":true,"#, r#""valid":true,"#, r#""edits":[],"#];
                drop(text.splice(1..1, random.one(&twice).bytes()));
            }
            3 => text.extend_from_slice(random.one(&texts).as_bytes()),
            _ => {}
        }
        text
    };
    fuzz(part, 20_000, make, |_, text| read(text, serde_json::from_slice(text).ok().as_ref()));
}

fn allows(decision: &Result<Decision, PolicyError>) -> bool {
    decision.as_ref().is_ok_and(|decision| decision.verdict == Verdict::Allow)
}

/// A member by its name, and what it has to be.
type Member<'n> = (&'n str, fn(&Value) -> bool);

/// An object with these members, which have to be so, and maybe these others.
fn object(value: &Value, musts: &[Member<'_>], mays: &[Member<'_>]) -> bool {
    value.as_object().is_some_and(|members| {
        musts.iter().all(|(name, right)| members.get(*name).is_some_and(right))
            && members
                .iter()
                .all(|(name, value)| musts.iter().chain(mays).any(|(known, right)| known == name && right(value)))
    })
}

fn list(value: &Value, right: fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(right))
}

fn texts(value: &Value) -> bool {
    value.as_object().is_some_and(|members| members.values().all(Value::is_string))
}

fn reason(value: &Value) -> bool {
    object(value, &[("code", Value::is_string), ("message", Value::is_string)], &[("field", text_or_null)])
}

fn text_or_null(value: &Value) -> bool {
    value.is_string() || value.is_null()
}

fn count_or_null(value: &Value) -> bool {
    value.is_u64() || value.is_null()
}

fn obligation(value: &Value) -> bool {
    object(value, &[("name", Value::is_string)], &[("withinSeconds", count_or_null), ("params", texts)])
}

fn edit(value: &Value) -> bool {
    let text: fn(&Value) -> bool = Value::is_string;
    let with = |names: &[&'static str]| -> bool {
        let musts: Vec<_> = std::iter::once(("op", text)).chain(names.iter().map(|name| (*name, text))).collect();
        object(value, &musts, &[])
    };
    match value["op"].as_str() {
        Some("set-label" | "set-annotation") => with(&["key", "value"]),
        Some("remove-label" | "remove-annotation" | "remove-taint") => with(&["key"]),
        Some("add-taint") => with(&["key", "effect"]) || with(&["key", "value", "effect"]),
        Some("set-cluster-set") => with(&["name"]),
        Some("set-lease-duration") => object(value, &[("op", text), ("seconds", Value::is_u64)], &[]),
        _ => false,
    }
}

/// Whether this is a decision in our words that allows.
fn says_allow(value: &Value) -> bool {
    object(
        value,
        &[("verdict", |verdict| verdict == "allow")],
        &[
            ("askAgainSeconds", Value::is_null),
            ("reasons", |reasons| list(reasons, reason)),
            ("warnings", |warnings| list(warnings, Value::is_string)),
            ("edits", |edits| list(edits, edit)),
            ("obligations", |obligations| list(obligations, obligation)),
            ("audit", texts),
        ],
    )
}

fn decisions() -> Vec<Value> {
    vec![
        json!({"verdict": "allow"}),
        json!({"verdict": "no-opinion", "warnings": ["ä\u{1F600}"]}),
        json!({"verdict": "deny", "reasons": [{"code": "NamePrefix", "message": "no", "field": "metadata.name"}]}),
        json!({"verdict": "hold", "askAgainSeconds": 60, "reasons": [{"code": "Freeze", "message": "later"}]}),
        json!({"verdict": "allow", "warnings": ["soon full"], "audit": {"team": "a"},
               "edits": [{"op": "set-label", "key": "example.com/team", "value": "a"},
                         {"op": "add-taint", "key": "new", "effect": "NoSelect"},
                         {"op": "set-cluster-set", "name": "eu"},
                         {"op": "set-lease-duration", "seconds": 60}],
               "obligations": [{"name": "expire-acceptance", "withinSeconds": 60, "params": {"a": "b"}}]}),
    ]
}

#[test]
fn damaged_decisions() {
    let bounds = Bounds::default();
    let mut allowed = 0;
    answers("decisions", &decisions(), |text, value| {
        let decision = read_decision(text, &bounds);
        if allows(&decision) {
            allowed += 1;
            assert!(value.is_some_and(says_allow), "{}", String::from_utf8_lossy(text));
        }
        let Ok(decision) = decision else { return };
        assert_eq!(bounds.check(&decision), Ok(()));
        let again = serde_json::to_vec(&decision).expect("a decision can be written");
        assert_eq!(read_decision(&again, &bounds), Ok(decision));
    });
    assert!(allowed > 0);
}

/// An object without what edits can change, and without what is empty.
fn fixed(object: &Value) -> Value {
    fn bare(value: &Value) -> Option<Value> {
        match value {
            Value::Null => None,
            Value::String(text) if text.is_empty() => None,
            Value::Array(items) if items.is_empty() => None,
            Value::Object(members) => {
                let members: serde_json::Map<_, _> =
                    members.iter().filter_map(|(name, value)| Some((name.clone(), bare(value)?))).collect();
                (!members.is_empty()).then_some(Value::Object(members))
            }
            other => Some(other.clone()),
        }
    }
    let mut object = object.clone();
    for (parent, names) in
        [("/metadata", &["labels", "annotations"][..]), ("/spec", &["taints", "leaseDurationSeconds"])]
    {
        if let Some(members) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
            names.iter().for_each(|name| drop(members.remove(*name)));
        }
    }
    bare(&object).unwrap_or_default()
}

#[test]
fn damaged_answers_of_kubewarden() {
    let bounds = Bounds::default();
    let original = json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": "prod-1", "labels": {"env": "prod"}, "annotations": {"a": "b"}},
        "spec": {"hubAcceptsClient": false, "leaseDurationSeconds": 60,
                 "taints": [{"key": "new", "value": "", "effect": "NoSelect"}]}});
    let mut changed = original.clone();
    changed["metadata"]["labels"]["region"] = "eu".into();
    changed["spec"]["leaseDurationSeconds"] = 120.into();
    let mut accepted = original.clone();
    accepted["spec"]["hubAcceptsClient"] = true.into();
    let good = [
        json!({"accepted": true}),
        json!({"accepted": false, "message": "no", "code": 403}),
        json!({"accepted": true, "mutated_object": changed, "warnings": ["w"], "audit_annotations": {"k": "v"}}),
        json!({"accepted": true, "mutated_object": accepted}),
    ];
    let mut changes = 0;
    answers("kubewarden", &good, |text, value| {
        for given in [Some(&original), None] {
            let decision = adapt::kubewarden_response(text, Operation::Create, given, &bounds);
            // What Kubewarden accepts is no opinion unless it is changed.
            if !decision.as_ref().is_ok_and(|decision| decision.verdict != Verdict::Deny) {
                continue;
            }
            let told = || String::from_utf8_lossy(text);
            let value = value.filter(|value| value["code"].as_u64().is_none_or(|code| code < 400));
            let value = value.filter(|value| {
                object(
                    value,
                    &[("accepted", |accepted| *accepted == true)],
                    &[
                        ("message", text_or_null),
                        ("code", count_or_null),
                        ("mutated_object", |_| true),
                        ("audit_annotations", |entries| entries.is_null() || texts(entries)),
                        ("warnings", |warnings| warnings.is_null() || list(warnings, Value::is_string)),
                    ],
                )
            });
            let value = value.unwrap_or_else(|| panic!("{}", told()));
            let edited = decision.is_ok_and(|decision| !decision.edits.is_empty());
            changes += u32::from(edited);
            match &value["mutated_object"] {
                Value::Null => assert!(!edited, "{}", told()),
                mutated => {
                    let original = given.unwrap_or_else(|| panic!("there is nothing to change: {}", told()));
                    assert_eq!(fixed(mutated), fixed(original), "{}", told());
                }
            }
        }
    });
    assert!(changes > 0);
}

#[test]
fn damaged_settings_of_kubewarden() {
    let bounds = Bounds::default();
    let good = [json!({"valid": true}), json!({"valid": false, "message": "the prefix is empty"})];
    answers("settings", &good, |text, value| {
        if adapt::kubewarden_settings(text, &bounds) == Ok(Settings::Valid) {
            assert!(value.is_some_and(|value| value.is_object() && value["valid"] == true), "{:?}", value);
        }
    });
}

#[test]
fn damaged_metadata_of_kubewarden() {
    let good = [
        json!({"protocolVersion": "v1", "mutating": true, "executionMode": "kubewarden-wapc", "policyType": "kubernetes",
               "rules": [{"apiGroups": ["cluster.open-cluster-management.io"], "apiVersions": ["v1"],
                          "resources": ["managedclusters"], "operations": ["CREATE", "UPDATE"]}],
               "annotations": {"io.kubewarden.policy.title": "Prefix", "io.kubewarden.policy.version": "0.1.0"}}),
        json!({"protocolVersion": "v1", "mutating": false, "rules": []}),
        json!({"policyType": "raw"}),
    ];
    let mut read = 0;
    answers("metadata", &good, |text, value| {
        let Ok(manifest) = adapt::kubewarden_manifest(text) else { return };
        read += 1;
        let value = value.filter(|value| value.is_object()).unwrap_or_else(|| panic!("{value:?}"));
        // Only what says that it changes objects may, and only of contracts that are known.
        assert_eq!(!manifest.edits.is_empty(), value["mutating"] == true, "{value}");
        assert!(value["protocolVersion"].is_null() || value["protocolVersion"] == "v1", "{value}");
        assert!(value["policyType"].is_null() || value["policyType"] == "kubernetes", "{value}");
        let name = manifest.name.as_str();
        let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        assert!(!name.is_empty() && name.len() <= 63 && name.chars().all(plain), "{name:?}");
    });
    assert!(read > 0);
}

/// The one value of a result set.
fn only(value: Option<&Value>) -> Option<&Value> {
    match value?.as_array()?.as_slice() {
        [one] => one.as_object()?.get("result"),
        _ => None,
    }
}

/// What a rule that denies or holds yields when it does not.
fn nothing(value: &Value) -> bool {
    match value {
        Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

#[test]
fn damaged_results_of_rego() {
    let bounds = Bounds::default();
    let mut good: Vec<Value> = [
        json!(true),
        json!(false),
        json!({"allow": true, "deny": [], "warn": ["w"]}),
        json!({"allow": true, "deny": ["no"]}),
        json!({"allow": false, "hold": [{"msg": "later"}]}),
        json!({"violation": [{"msg": "no"}], "allow": true}),
        json!(["no"]),
    ]
    .into_iter()
    .chain(decisions())
    .map(|result| json!([{"result": result}]))
    .collect();
    good.push(json!([]));
    let mut allowed = 0;
    answers("rego", &good, |text, value| {
        for entry in ["ocm/allow", "ocm/decision", "ocm/deny", "ocm/violation", "ocm.hold"] {
            let decision = adapt::opa_result(text, entry, &bounds);
            if !allows(&decision) {
                continue;
            }
            allowed += 1;
            let result = only(value).unwrap_or_else(|| panic!("{entry}: {}", String::from_utf8_lossy(text)));
            assert!(entry.ends_with("allow") || entry.ends_with("decision"), "{entry}: {result}");
            let by_rule = object(
                result,
                &[("allow", |allow| *allow == true)],
                &[("deny", nothing), ("violation", nothing), ("hold", nothing), ("warn", |warn| !warn.is_null())],
            );
            assert!(*result == true || by_rule || says_allow(result), "{entry}: {result}");
        }
    });
    assert!(allowed > 0);
}

#[test]
fn damaged_results_of_gatekeeper() {
    let bounds = Bounds::default();
    let good = [
        json!([{"result": []}]),
        json!([{"result": [{"msg": "no", "details": {"missing": ["owner"]}}]}]),
        json!([{"result": [{"msg": "no"}, {"msg": "never"}]}]),
        json!([]),
    ];
    let (mut denied, mut silent) = (0, 0);
    answers("gatekeeper", &good, |text, value| {
        let Ok(decision) = adapt::gatekeeper_result(text, &bounds) else { return };
        let told = || String::from_utf8_lossy(text);
        match decision.verdict {
            Verdict::NoOpinion => assert_eq!(only(value), Some(&json!([])), "{}", told()),
            verdict => assert_eq!(verdict, Verdict::Deny, "{}", told()),
        }
        denied += u32::from(decision.verdict == Verdict::Deny);
        silent += u32::from(decision.verdict == Verdict::NoOpinion);
    });
    assert!(denied > 0 && silent > 0);
}

/// What stands at an address of the record of an answer.
fn word(image: &[u8], at: usize) -> usize {
    image[at..at + 4].iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
}

#[test]
fn damaged_answers_in_memory() {
    let engine = engine();
    let ceiling = Ceiling::default();
    let texts: Vec<String> = decisions().iter().map(Value::to_string).collect();
    let good: Vec<_> = texts.iter().map(|text| (Guest::answering(text).module(), Guest::image(text))).collect();
    let next = policy(&engine, &Guest::default().module()).expect("it loads");
    let make = |random: &mut Random| {
        let which = random.below(good.len());
        let mut input = good[which].1.clone();
        for _ in 0..=random.below(3) {
            // The record itself more often than its texts.
            let end = if random.once_in(3) { input.len() } else { 52 };
            let most = if random.once_in(2) { 256 } else { 5 };
            let at = random.below(end);
            input[at] = random.below(most) as u8;
        }
        input.push(which as u8);
        input
    };
    let (mut taken, mut errors) = (0, 0);
    fuzz("memory", 250, make, |_, input| {
        let (which, image) = input.split_last().expect("it says which one it was");
        let (whole, own) = &good[usize::from(*which)];
        let at = whole.windows(own.len()).position(|window| window == own).expect("it holds its answer");
        let mut module = whole.clone();
        module[at..at + own.len()].copy_from_slice(image);
        let artifact = compile_here(&module, "{}", &ceiling).expect("only the answer is damaged");
        let damaged = Policy::load(&engine, &artifact, &ceiling, &[]).expect("it loads");
        match &damaged.decide(&question("prod-1")).outcome.result {
            Ok(decision) => {
                taken += 1;
                assert_eq!(Bounds::default().check(decision), Ok(()));
                assert_eq!(Verdict::ALL[usize::from(image[0])], decision.verdict);
                assert_eq!(usize::from(image[4]), usize::from(decision.ask_again_seconds.is_some()));
                let lengths = [decision.reasons.len(), decision.warnings.len(), decision.edits.len()];
                assert_eq!([16, 24, 32].map(|at| word(image, at)), lengths);
            }
            Err(_) => errors += 1,
        }
        assert!(next.decide(&question("prod-1")).outcome.result.is_ok(), "the next policy decides");
    });
    crate::say(&format!("memory: {taken} taken, {errors} errors"));
    assert!(taken > 0 && errors > 0, "{taken} taken, {errors} errors");
}
