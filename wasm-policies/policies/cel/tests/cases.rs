//! The test cases of this policy, natively.

use std::sync::OnceLock;

use ocm_policy_sdk::{Policy, guest};
use policy_cel::Cel;

#[test]
fn the_test_cases_hold() {
    let manifest = Cel::manifest().into();
    let failures = ocm_policy_testing::run(include_str!("../tests.yaml"), &manifest, |settings, request| {
        let state = OnceLock::new();
        guest::configure::<Cel>(&state, settings)?;
        Ok(guest::decide(&state, request))
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn whatever_a_rule_looks_at_is_shown_to_it() {
    let manifest = Cel::manifest().into();
    for expression in [
        "request.cluster.name == 'c1'",
        "has(request.cluster) && !has(request.previous)",
        "request['cluster'].name == 'c1'",
        "[request].all(one, one.cluster.name == 'c1')",
        "{'a': request}.a.cluster.name == 'c1'",
        "{request.cluster.name: 1}.c1 == 1",
        "size(request) == 7",
        "['c1'].all(request, request == 'c1')",
        "request.cluster.labels.all(key, request.cluster.labels[key] == 'dev' && request.requester.username == 'u')",
        "(request.cluster.name == 'c2' ? request.now : request.requester.username) == 'u'",
    ] {
        let cases = format!(
            "settings: {{rules: [{{name: r, expression: {expression:?}}}]}}\n\
             base: {{operation: create, cluster: {{name: c1, labels: {{env: dev}}}}, requester: {{username: u}}}}\n\
             cases: [{{name: it holds, request: {{}}, expect: {{verdict: allow}}}}]"
        );
        let mut failures = ocm_policy_testing::run(&cases, &manifest, |settings, request| {
            let state = OnceLock::new();
            guest::configure::<Cel>(&state, settings)?;
            Ok(guest::decide(&state, request))
        });
        // That each reason is given, and each setting counts, is shown by the test cases of the policy.
        failures.retain(|failure| !failure.starts_with("no case "));
        assert!(failures.is_empty(), "{expression}: {}", failures.join("\n"));
    }
}

#[test]
fn rules_that_could_never_hold_are_refused() {
    for (rules, why) in [
        (r#"[{"name": "r", "expression": "cluster.name == 'a'"}]"#, "names \"cluster\": nothing but request is known"),
        (
            r#"[{"name": "r", "expression": "request.a.exists(one, one == 'a') && one == 'b'"}]"#,
            "names \"one\": nothing but request is known",
        ),
        (r#"[{"name": "r", "expression": "{'a': b}.a == [c]"}]"#, "names \"b\""),
        ("[]", "rules are 1 to 64, not 0"),
        (
            r#"[{"name": "r", "expression": "true"}, {"name": "r", "expression": "true"}]"#,
            "\"r\" names no rule, or two",
        ),
        (r#"[{"name": "", "expression": "true"}]"#, "\"\" names no rule"),
        (r#"[{"name": "r", "expression": "true", "operations": []}]"#, "the rule r has no operations"),
    ] {
        let refused = guest::configure::<Cel>(&OnceLock::new(), &format!(r#"{{"rules": {rules}}}"#)).unwrap_err();
        assert!(refused[0].contains(why), "{rules}: {refused:?}");
    }
    let long = format!(r#"{{"rules": [{{"name": "r", "expression": "{}true"}}]}}"#, "true && ".repeat(600));
    let refused = guest::configure::<Cel>(&OnceLock::new(), &long).unwrap_err();
    assert!(refused[0].contains("longer than 4096 bytes"), "{refused:?}");
}
