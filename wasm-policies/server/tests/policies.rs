//! What is in force when what is wanted changes, can be loaded, and cannot.

#![expect(clippy::unwrap_used, reason = "what a test needs and cannot get must end it")]

mod changes;
mod following;
mod modules;
mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ocm_api::policy::HubPolicySpec;
use ocm_policy_abi::{Operation, Stage};
use ocm_policy_engine::{Cancellation, Deadline};
use ocm_policy_rules::{Enforcement, Mode, OnError, Scope};
use ocm_policy_server::{Candidate, CandidateState, Judge as _, Review, Reviewed, Source, Wanted, With};
use serde_json::{Value, json};
use support::{Parts, names, review};

/// Whether a cluster of this name may be created, with the sentence if not.
fn refused(parts: &Parts, name: &str) -> Option<String> {
    refused_review(parts, &review(name))
}

/// What is answered to a review, and what is left of it.
fn reviewed(parts: &Parts, review: &str) -> Reviewed {
    reviewed_at(parts, review, Stage::Validating)
}

/// The same at one of both stages.
fn reviewed_at(parts: &Parts, review: &str, stage: Stage) -> Reviewed {
    match parts.gate.clone().review(review.as_bytes(), stage, &Deadline::NONE) {
        Review::Answered(reviewed) => reviewed,
        Review::Waits(rest) => rest(),
    }
}

/// The response to a review.
fn response(parts: &Parts, review: &str) -> Value {
    let answer: Value = serde_json::from_slice(&reviewed(parts, review).body).unwrap();
    answer["response"].clone()
}

/// The line that a review leaves in the decision log.
fn line(parts: &Parts, review: &str) -> Value {
    parts.line.lock().unwrap().clear();
    parts.gate.note(&reviewed(parts, review).decided.unwrap(), Stage::Validating);
    let until = Instant::now() + Duration::from_secs(30);
    while parts.line.lock().unwrap().is_empty() {
        assert!(Instant::now() < until, "no line");
        std::thread::sleep(Duration::from_millis(5));
    }
    let line = parts.line.lock().unwrap();
    serde_json::from_str(&line).unwrap()
}

/// Whether what a review is about may not be, with the sentence.
fn refused_review(parts: &Parts, review: &str) -> Option<String> {
    let response = response(parts, review);
    (response["allowed"] != true).then(|| response["status"]["message"].as_str().unwrap().to_owned())
}

fn unknown(mode: Mode) -> Wanted {
    let enforcement = Enforcement { mode, ..Enforcement::default() };
    Wanted { source: Source::Builtin("no-such".to_owned()), enforcement, ..names("names", "prod-*") }
}

fn counts(pattern: &str, mode: Mode) -> Wanted {
    Wanted { enforcement: Enforcement { mode, ..Enforcement::default() }, ..names("names", pattern) }
}

/// Whether answering a review may take long.
fn waits(parts: &Parts, review: &str) -> bool {
    match parts.gate.clone().review(review.as_bytes(), Stage::Validating, &Deadline::NONE) {
        Review::Answered(_) => false,
        Review::Waits(rest) => {
            rest();
            true
        }
    }
}

#[tokio::test]
async fn what_may_take_long_keeps_no_thread_from_others() {
    let parts = support::parts();
    parts.policies.apply(&[names("names", "prod-*")]).await;
    assert!(waits(&parts, &review("prod-1")), "nobody knows yet how quick the policy is");
    assert!(!waits(&parts, &review("prod-1")));
    // An acceptance waits for what the hub says of its cluster, however quick policies are.
    let mut accepted: Value = serde_json::from_str(&review("prod-1")).unwrap();
    let request = &mut accepted["request"];
    request["operation"] = "UPDATE".into();
    request["oldObject"] = request["object"].clone();
    request["object"]["spec"]["hubAcceptsClient"] = true.into();
    assert!(waits(&parts, &accepted.to_string()));
    // Another version is not known to be quick, either.
    parts.policies.apply(&[names("names", "dev-*")]).await;
    assert!(waits(&parts, &review("dev-1")));
}

#[tokio::test]
async fn what_was_never_in_force_refuses_as_far_as_its_mode_says() {
    let parts = support::parts();
    assert!(!parts.policies.is_complete());
    parts.policies.apply(&[unknown(Mode::Enforce)]).await;
    assert!(parts.policies.is_complete());
    let why = refused(&parts, "prod-1").unwrap();
    assert_eq!(why, "policy names: the policy cannot be loaded");
    let failed = parts.policies.failed();
    assert!(
        failed[0].1.contains("there is no built-in policy \"no-such\"; there are: agent-self-edit, "),
        "{failed:?}"
    );
    parts.policies.apply(&[unknown(Mode::Audit)]).await;
    assert_eq!(refused(&parts, "prod-1"), None);
    parts.policies.apply(&[unknown(Mode::Enforce)]).await;
    assert!(refused(&parts, "prod-1").is_some());
    parts.policies.apply(&[counts("prod-*", Mode::Enforce)]).await;
    assert_eq!((refused(&parts, "prod-1"), parts.policies.failed()), (None, Vec::new()));
}

#[tokio::test]
async fn whoever_is_not_asked_says_nothing_and_a_broken_one_is_asked_about_everything() {
    let parts = support::parts();
    let spec = serde_json::json!({"module": {"builtin": "b"}, "operations": ["join"]});
    let scope = Scope::from(&serde_json::from_value::<HubPolicySpec>(spec).unwrap());
    let narrowed = Wanted { scope: scope.clone(), ..names("names", "prod-*") };
    parts.policies.apply(&[names("names", "prod-*")]).await;
    assert!(refused(&parts, "dev-1").is_some());
    // That it is asked about less is the administrator's word, and no flaw of its module.
    parts.policies.apply(&[narrowed]).await;
    assert_eq!((refused(&parts, "dev-1"), parts.policies.failed()), (None, Vec::new()));
    parts.policies.apply(&[names("names", "prod-*")]).await;
    assert!(refused(&parts, "dev-1").is_some());
    // Nobody knows what a module judges that cannot be loaded.
    parts.policies.apply(&[]).await;
    parts.policies.apply(&[Wanted { scope, ..unknown(Mode::Enforce) }]).await;
    assert!(refused(&parts, "prod-1").is_some());
}

/// A policy that wants names of `prod-*`, of requests that meet these conditions.
fn where_true(conditions: &[(&str, &str)], on_error: OnError) -> Wanted {
    let conditions: Vec<_> = conditions
        .iter()
        .map(|(name, expression)| serde_json::json!({"name": name, "expression": expression}))
        .collect();
    let spec = serde_json::json!({"module": {"builtin": "b"}, "match": {"conditions": conditions}});
    let scope = Scope::from(&serde_json::from_value::<HubPolicySpec>(spec).unwrap());
    let enforcement = Enforcement { on_error, ..Enforcement::default() };
    Wanted { scope, enforcement, ..names("names", "prod-*") }
}

#[tokio::test]
async fn a_policy_is_asked_where_its_conditions_are_true_and_answers_with_an_error_where_they_fail() {
    let parts = support::parts();
    let eva = ("eva", r#"request.requester.username == "eva""#);
    parts
        .policies
        .apply(&[where_true(&[eva, ("d", r#"request.cluster.name.startsWith("dev-")"#)], OnError::Deny)])
        .await;
    assert_eq!(parts.policies.failed(), []);
    assert!(refused(&parts, "dev-1").is_some());
    assert_eq!(refused(&parts, "test-1"), None, "it is none of its business");
    // One that is false outweighs one that fails.
    let fails = ("f", r#"request.cluster.labels["env"] == "prod""#);
    let never = ("never", r#"request.operation == "delete""#);
    parts.policies.apply(&[where_true(&[fails, never], OnError::Deny)]).await;
    assert_eq!(refused(&parts, "dev-1"), None);
    // Whoever passes the policy itself is not let through by a condition that fails.
    parts.policies.apply(&[where_true(&[eva, fails], OnError::Deny)]).await;
    let why = refused(&parts, "prod-1").unwrap();
    assert_eq!(why, "policy names: whether the policy is evaluated cannot be told");
    // An expression that takes ages is bounded like everything that policies do.
    let numbers = format!("[{}]", (0..120).map(|number| number.to_string()).collect::<Vec<_>>().join(","));
    let endless = format!("{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, {numbers}.all(d, a + b + c + d >= 0))))");
    let sometimes = format!(r#"request.cluster.name == "prod-1" || {endless}"#);
    parts.policies.apply(&[where_true(&[("e", &sometimes)], OnError::Deny)]).await;
    assert_eq!(refused(&parts, "prod-1"), None);
    assert_eq!(refused(&parts, "prod-2").unwrap(), "policy names: whether the policy is evaluated cannot be told");
    // The policy itself was quick, and nobody else waits for its conditions.
    assert!(waits(&parts, &review("prod-1")));
}

#[tokio::test]
async fn a_condition_that_cannot_be_read_leaves_in_force_what_was() {
    let parts = support::parts();
    parts.policies.apply(&[names("names", "prod-*")]).await;
    parts.policies.apply(&[where_true(&[("c", "cluster.name == 'a'")], OnError::Deny)]).await;
    let failed = parts.policies.failed();
    let why = ["whether the policy is evaluated cannot be told", "names \"cluster\": nothing but request is known"];
    assert!(why.iter().all(|why| failed[0].1.contains(why)), "{failed:?}");
    assert!(refused(&parts, "dev-1").is_some() && refused(&parts, "prod-1").is_none());
}

#[tokio::test]
async fn nobody_passes_while_it_is_tried_again() {
    let parts = Arc::new(support::parts());
    parts.policies.apply(&[unknown(Mode::Enforce)]).await;
    // So many answers, while the policy is tried without end.
    let asks = parts.clone();
    let asking = std::thread::spawn(move || (0..20_000).filter(|_| refused(&asks, "prod-1").is_none()).count());
    while !asking.is_finished() {
        parts.policies.apply(&[unknown(Mode::Enforce)]).await;
    }
    assert_eq!(asking.join().unwrap(), 0);
}

/// A policy with a candidate that wants other names.
fn tries(pattern: &str, candidate: &str, share: u8) -> Wanted {
    let other = names("names", candidate);
    let candidate = Candidate { source: other.source, sha256: None, settings: other.settings, tests: None, share };
    Wanted { candidate: Some(candidate), ..names("names", pattern) }
}

/// Asks whether a cluster may be created, and has candidates say what they would have said; how many differ.
fn compared(parts: &Parts, name: &str) -> usize {
    let reviewed = match parts.gate.clone().review(review(name).as_bytes(), Stage::Validating, &Deadline::NONE) {
        Review::Answered(reviewed) => reviewed,
        Review::Waits(rest) => rest(),
    };
    parts.policies.compare(reviewed.decided.unwrap().made().unwrap()).len()
}

fn candidate(parts: &Parts) -> CandidateState {
    parts.policies.states()["names"].candidate.clone().unwrap()
}

#[tokio::test]
async fn a_candidate_is_compared_and_decides_for_its_share_alone() {
    let parts = support::parts();
    parts.policies.apply(&[tries("prod-*", "dev-*", 0)]).await;
    assert!(refused(&parts, "dev-1").is_some() && refused(&parts, "prod-1").is_none(), "it decides nothing");
    assert_eq!(["dev-1", "prod-1", "other", "dev-1"].map(|name| compared(&parts, name)), [1, 1, 0, 1]);
    let state = candidate(&parts);
    assert_eq!((state.share, state.failed, state.compared, state.differed), (0, None, 3, 2));
    let last = state.last_difference.unwrap();
    assert!(last.starts_with("dev-1: deny (") && last.ends_with("in force, allow by the candidate"), "{last}");
    let metrics = parts.metrics.text();
    for line in [r#"{policy="names",differs="true"} 3"#, r#"{policy="names",differs="false"} 1"#] {
        assert!(metrics.contains(&format!("ocm_policy_candidate_comparisons_total{line}")), "{metrics}");
    }
    // For all it is as if it were in force, and what was counted stays: it is the same.
    parts.policies.apply(&[tries("prod-*", "dev-*", 100)]).await;
    assert!(refused(&parts, "dev-1").is_none() && refused(&parts, "prod-1").is_some());
    assert_eq!((candidate(&parts).share, candidate(&parts).compared), (100, 3));
    parts.policies.apply(&[tries("prod-*", "dev-*", 50)]).await;
    let asked: Vec<bool> = (0..100).map(|number| refused(&parts, &format!("dev-{number}")).is_none()).collect();
    let passed = asked.iter().filter(|passed| **passed).count();
    assert!((25..75).contains(&passed), "{passed}");
    // It is given up, and another one is counted anew.
    parts.policies.apply(&[names("names", "prod-*")]).await;
    assert!(refused(&parts, "dev-1").is_some() && refused(&parts, "prod-1").is_none());
    assert_eq!(parts.policies.states()["names"].candidate, None);
    parts.policies.apply(&[tries("prod-*", "test-*", 0)]).await;
    assert_eq!((candidate(&parts).compared, candidate(&parts).last_difference), (0, None));
}

#[tokio::test]
async fn a_candidate_that_cannot_be_loaded_decides_nothing_and_leaves_what_is_in_force() {
    let parts = support::parts();
    parts.policies.apply(&[tries("prod-*", "dev-*", 100)]).await;
    let mut wrong = tries("prod-*", "dev-*", 100);
    wrong.candidate.as_mut().unwrap().settings = r#"{"pattern":"x"}"#.to_owned();
    for _ in 0..2 {
        parts.policies.apply(std::slice::from_ref(&wrong)).await;
        assert!(refused(&parts, "dev-1").is_some() && refused(&parts, "prod-1").is_none());
        let state = candidate(&parts);
        assert_eq!((state.share, state.sha256), (0, None));
        assert!(state.failed.unwrap().contains("unknown field `pattern`"));
        assert_eq!(parts.policies.failed(), Vec::new(), "what is in force is as it is wanted");
    }
    let mut other = tries("prod-*", "dev-*", 100);
    other.candidate.as_mut().unwrap().sha256 = Some("0".repeat(64));
    parts.policies.apply(&[other]).await;
    assert!(candidate(&parts).failed.unwrap().contains("is wanted"));
    assert!(refused(&parts, "dev-1").is_some() && refused(&parts, "prod-1").is_none());
    // Beside what is not in force nothing is tried.
    let mut broken = tries("prod-*", "dev-*", 100);
    broken.settings = r#"{"pattern":"x"}"#.to_owned();
    parts.policies.apply(&[broken]).await;
    assert!(refused(&parts, "dev-1").is_some() && refused(&parts, "prod-1").is_none());
    assert!(candidate(&parts).failed.unwrap().contains("is not in force"));
}

#[tokio::test]
async fn whoever_asks_while_a_candidate_is_promoted_is_judged_by_one_of_both() {
    let parts = Arc::new(support::parts());
    parts.policies.apply(&[tries("prod-*", "prod-1*", 50)]).await;
    let asks = parts.clone();
    let asking = std::thread::spawn(move || {
        let wrong = |_: &usize| refused(&asks, "prod-1").is_some() || refused(&asks, "dev-1").is_none();
        (0..5_000).filter(wrong).count()
    });
    while !asking.is_finished() {
        parts.policies.apply(&[names("names", "prod-1*")]).await;
        parts.policies.apply(&[tries("prod-1*", "prod-*", 100)]).await;
        parts.policies.apply(&[names("names", "prod-*")]).await;
        parts.policies.apply(&[tries("prod-*", "prod-1*", 0)]).await;
    }
    assert_eq!(asking.join().unwrap(), 0);
}

#[tokio::test]
async fn what_cannot_be_loaded_loosens_nothing() {
    let parts = support::parts();
    parts.policies.apply(&[counts("prod-*", Mode::Enforce)]).await;
    assert!(refused(&parts, "dev-1").is_some() && refused(&parts, "prod-1").is_none());
    // What was in force stays so, as it was.
    parts.policies.apply(&[unknown(Mode::Audit)]).await;
    assert!(refused(&parts, "dev-1").is_some() && refused(&parts, "prod-1").is_none());
    assert_eq!(parts.policies.failed().len(), 1);
    assert!(parts.metrics.text().contains("ocm_policy_policies_failed 1"), "{}", parts.metrics.text());
    // Settings that it refuses are no other case, and the same again changes nothing.
    let wrong = Wanted { settings: r#"{"pattern":"x"}"#.to_owned(), ..counts("x", Mode::Warn) };
    for _ in 0..2 {
        parts.policies.apply(std::slice::from_ref(&wrong)).await;
        assert!(refused(&parts, "dev-1").is_some() && refused(&parts, "prod-1").is_none());
        assert!(parts.policies.failed()[0].1.contains("unknown field `pattern`"), "{:?}", parts.policies.failed());
    }
    // What can be loaded is as it is wanted, at once.
    parts.policies.apply(&[counts("prod-*", Mode::Audit)]).await;
    assert_eq!((refused(&parts, "dev-1"), parts.policies.failed()), (None, Vec::new()));
    // Stricter it becomes also without being loaded.
    parts.policies.apply(&[unknown(Mode::Enforce)]).await;
    assert!(refused(&parts, "dev-1").is_some() && refused(&parts, "prod-1").is_none());
}

#[tokio::test]
async fn a_mode_alone_counts_also_where_the_newest_version_cannot_be_loaded() {
    let wrong = |mode| Wanted { settings: r#"{"pattern":"x"}"#.to_owned(), ..counts("x", mode) };
    for broken in [unknown, wrong] {
        for in_force in [true, false] {
            let parts = support::parts();
            if in_force {
                parts.policies.apply(&[counts("prod-*", Mode::Enforce)]).await;
            }
            parts.policies.apply(&[broken(Mode::Enforce)]).await;
            assert!(refused(&parts, "dev-1").is_some());
            for _ in 0..2 {
                parts.policies.apply(&[broken(Mode::Audit)]).await;
                assert_eq!((refused(&parts, "dev-1"), parts.policies.failed().len()), (None, 1));
            }
            parts.policies.apply(&[broken(Mode::Enforce)]).await;
            assert!(refused(&parts, "dev-1").is_some());
        }
    }
}

#[tokio::test]
async fn a_policy_that_stops_to_judge_is_put_in_force_only_as_another_one() {
    let parts = support::parts();
    parts.policies.apply(&[counts("prod-*", Mode::Enforce)]).await;
    let other = Wanted {
        source: Source::Builtin("agent-self-edit".to_owned()),
        settings: "{}".to_owned(),
        ..counts("prod-*", Mode::Enforce)
    };
    parts.policies.apply(std::slice::from_ref(&other)).await;
    assert!(parts.policies.failed()[0].1.contains("it would no longer be asked about create"));
    assert!(refused(&parts, "dev-1").is_some());
    parts.policies.apply(&[Wanted { uid: Some("2".to_owned()), ..other }]).await;
    assert_eq!((refused(&parts, "dev-1"), parts.policies.failed()), (None, Vec::new()));
}

#[tokio::test]
async fn a_pod_that_starts_keeps_what_was_judged_before_it() {
    let judged = || vec![Operation::Create, Operation::Accept];
    let fewer = || {
        let source = Source::Builtin("agent-self-edit".to_owned());
        Wanted { source, settings: "{}".to_owned(), judged: judged(), ..counts("prod-*", Mode::Enforce) }
    };
    let parts = support::parts();
    let state = |parts: &Parts| parts.policies.states()["names"].clone();
    for _ in 0..2 {
        parts.policies.apply(&[fewer()]).await;
        assert!(parts.policies.failed()[0].1.contains("it would no longer be asked about create"));
        assert_eq!((state(&parts).with, state(&parts).sha256), (With::Operations, None));
        assert!(refused(&parts, "dev-1").is_some_and(|why| why.contains("the policy cannot be loaded")));
    }
    // What judges it all is taken, and stays when its status tells it.
    parts.policies.apply(&[counts("prod-*", Mode::Enforce)]).await;
    parts.policies.apply(&[Wanted { judged: judged(), ..counts("prod-*", Mode::Enforce) }]).await;
    assert_eq!((refused(&parts, "prod-1"), parts.policies.failed()), (None, Vec::new()));
    assert!(judged().iter().all(|operation| state(&parts).operations.contains(operation)));
    // Of another HubPolicy of that name nothing is told.
    parts.policies.apply(&[Wanted { uid: Some("2".to_owned()), ..unknown(Mode::Enforce) }]).await;
    assert_eq!((state(&parts).operations, refused(&parts, "dev-1").is_some()), (Vec::new(), true));

    // The word of the administrator: what it is asked about.
    let parts = support::parts();
    let spec = json!({"module": {"builtin": "x"}, "operations": ["update", "delete"]});
    let scope = Scope::from(&serde_json::from_value::<HubPolicySpec>(spec).unwrap());
    parts.policies.apply(&[Wanted { scope, ..fewer() }]).await;
    assert_eq!((refused(&parts, "dev-1"), parts.policies.failed()), (None, Vec::new()));
    assert!(state(&parts).left_out.contains(&Operation::Create));
}

#[tokio::test]
async fn what_another_pod_had_in_force_is_held_against_one_that_runs() {
    let parts = support::parts();
    parts.policies.apply(&[counts("prod-*", Mode::Enforce)]).await;
    let state = || parts.policies.states()["names"].clone();
    assert!(!state().operations.contains(&Operation::Admit) && state().failed.is_none());
    let more = Wanted { judged: vec![Operation::Admit], ..counts("prod-*", Mode::Enforce) };
    parts.policies.apply(&[more]).await;
    assert!(parts.policies.failed()[0].1.contains("it would no longer be asked about admit"));
    assert!(state().sha256.is_some() && refused(&parts, "dev-1").is_some() && refused(&parts, "prod-1").is_none());
    // It is looked at again as soon as the status tells something else.
    parts.policies.apply(&[counts("prod-*", Mode::Enforce)]).await;
    assert_eq!(parts.policies.failed(), []);
}

/// The policy about names, asked about these operations alone.
fn asked_about(operation: &str) -> Wanted {
    let spec = json!({"module": {"builtin": "name-pattern"}, "operations": [operation]});
    Wanted { scope: Scope::from(&serde_json::from_value::<HubPolicySpec>(spec).unwrap()), ..names("names", "prod-*") }
}

#[tokio::test]
async fn whoever_creates_a_cluster_as_accepted_accepts_it() {
    let parts = support::parts();
    parts.policies.apply(&[asked_about("accept")]).await;
    let as_accepted = |name: &str| refused_review(&parts, &created_as_accepted(name));
    assert_eq!((refused(&parts, "dev-1"), as_accepted("prod-1")), (None, None));
    assert!(as_accepted("dev-1").unwrap().contains("denied by policy names"));
}

#[tokio::test]
async fn whoever_accepts_a_cluster_and_changes_it_in_the_same_write_changes_it() {
    let parts = support::parts();
    let no_update = r#"{"rules": [{"name": "none", "operations": ["update"], "expression": "false", "message": "nothing is changed"}]}"#.to_owned();
    let source = Source::Builtin("cel".to_owned());
    parts.policies.apply(&[Wanted { source, settings: no_update, ..asked_about("update") }]).await;
    assert_eq!(parts.policies.failed(), []);
    let written = |user: &str, pointer: &str, value: Value| {
        let mut write: Value = serde_json::from_str(&acceptance(user)).unwrap();
        let request = &mut write["request"];
        for object in ["object", "oldObject"] {
            request[object]["metadata"] = json!({"name": "dev-1", "resourceVersion": object});
        }
        *request["object"].pointer_mut(pointer).unwrap() = value;
        refused_review(&parts, &write.to_string())
    };
    let refuses = |said: Option<String>| said.is_some_and(|said| said.contains("nothing is changed"));
    assert_eq!(written("alice", "/spec", json!({"hubAcceptsClient": true})), None);
    let moved = json!({"name": "dev-1", "labels": {"cluster.open-cluster-management.io/clusterset": "prod"}});
    assert!(refuses(written("alice", "/metadata", moved.clone())));
    assert!(refuses(written("alice", "/spec", json!({"hubAcceptsClient": true, "leaseDurationSeconds": 7}))));
    // As in any other write, what the hub's controllers change is theirs, and what the policy controller changes is the policies'.
    for controller in [HUB, "system:serviceaccount:ocm-policy-engine:ocm-policy-controller"] {
        assert_eq!(written(controller, "/metadata", moved.clone()), None);
    }
    for other in [
        "system:serviceaccount:ocm-policy-engine:other",
        "system:serviceaccount:team-a:registration-controller-sa",
        "system:serviceaccount:open-cluster-management-hub:grpc-server-sa",
    ] {
        assert!(refuses(written(other, "/metadata", moved.clone())));
    }
}

/// The review of a cluster that is created as accepted.
fn created_as_accepted(name: &str) -> String {
    let mut created: Value = serde_json::from_str(&review(name)).unwrap();
    created["request"]["object"]["spec"]["hubAcceptsClient"] = true.into();
    created.to_string()
}

#[tokio::test]
async fn what_policies_say_that_are_asked_twice_about_a_request_is_all_told() {
    let parts = support::parts();
    let asked = |place: &str, operation: &str, mode: Mode| Wanted {
        name: place.to_owned(),
        enforcement: Enforcement { mode, ..Enforcement::default() },
        ..asked_about(operation)
    };
    // What is told of the acceptance is told, and so is what was told of the creation.
    let tells = [
        asked("accept-warns", "accept", Mode::Warn),
        asked("accept-audits", "accept", Mode::Audit),
        asked("create-warns", "create", Mode::Warn),
        asked("create-audits", "create", Mode::Audit),
    ];
    parts.policies.apply(&tells).await;
    assert_eq!(parts.policies.failed(), []);
    let is_told = |response: &Value| {
        let warnings = response["warnings"].to_string();
        ["accept-warns: would be denied", "create-warns: would be denied"].iter().all(|text| warnings.contains(text))
            && ["accept-audits.would", "create-audits.would"]
                .iter()
                .all(|key| response["auditAnnotations"][key].as_str().is_some_and(|said| said.contains("denied")))
    };
    let passed = response(&parts, &created_as_accepted("dev-1"));
    assert!(passed["allowed"] == true && is_told(&passed), "{passed:#}");
    let once = response(&parts, &review("dev-1"));
    assert_eq!(once["warnings"].as_array().map(Vec::len), Some(1), "{once:#}");
    // Also where the second answer refuses it.
    let refuses = asked("refuses", "accept", Mode::Enforce);
    parts.policies.apply(&[&tells[..], &[refuses]].concat()).await;
    let refused = response(&parts, &created_as_accepted("dev-1"));
    assert!(refused["allowed"] == false && is_told(&refused), "{refused:#}");
    assert_eq!(refused["auditAnnotations"]["policies"], "refuses");
    // Each of them is counted once for each time that it was asked.
    let metrics = parts.metrics.text();
    for of in [r#"policy="accept-warns",operation="accept""#, r#"policy="refuses",operation="accept""#] {
        let count = if of.contains("refuses") { 1 } else { 2 };
        let counted = metrics.lines().find(|line| line.contains(of) && line.starts_with("ocm_policy_decisions_total"));
        assert!(counted.is_some_and(|line| line.ends_with(&format!(" {count}"))), "{metrics}");
    }
}

#[tokio::test]
async fn whatever_is_refused_leaves_a_line_in_the_decision_log() {
    let parts = support::parts();
    let audits = Enforcement { mode: Mode::Audit, ..Enforcement::default() };
    let beside = Wanted { name: "beside".to_owned(), enforcement: audits, ..asked_about("accept") };
    parts.policies.apply(&[names("names", "prod-*"), asked_as("joins", "join"), beside]).await;
    let refused = |line: &Value, verdict: &str, operation: &str, message: &str| {
        assert_eq!((&line["refused"], &line["verdict"]), (&json!(true), &json!(verdict)), "{line:#}");
        assert_eq!(line["operation"], operation, "{line:#}");
        assert!(line["message"].as_str().is_some_and(|text| text.contains(message)), "{line:#}");
    };
    refused(&line(&parts, &review("dev-1")), "deny", "create", "denied by policy names");
    let passed = line(&parts, &review("prod-1"));
    assert_eq!((&passed["refused"], &passed["message"]), (&json!(false), &Value::Null));
    // Nobody knows the certificate requests of the cluster here, so whether it joins cannot be told.
    let unjudged = line(&parts, &acceptance(HUB));
    refused(&unjudged, "error", "accept", "policies decide whether it joins, and cannot yet: ");
    assert_eq!((&unjudged["requester"], &unjudged["cluster"]), (&json!(HUB), &json!("prod-1")));
    assert!(unjudged["policies"].to_string().contains("beside"), "what was decided before is told: {unjudged:#}");
    let told = response(&parts, &acceptance(HUB));
    assert_eq!(
        (&told["auditAnnotations"]["verdict"], &told["auditAnnotations"]["policies"]),
        (&json!("error"), &Value::Null)
    );
    // Of what cannot be read there is what can be.
    let mut unreadable: Value = serde_json::from_str(&review("prod-1")).unwrap();
    unreadable["request"]["object"]["spec"] = 7.into();
    let unread = line(&parts, &unreadable.to_string());
    refused(&unread, "error", "unreadable", "the review cannot be read: ");
    assert_eq!((&unread["requester"], &unread["name"]), (&json!("eva"), &json!("prod-1")));
}

/// The policy about names in this place, asked about these operations alone.
fn asked_as(place: &str, operation: &str) -> Wanted {
    Wanted { name: place.to_owned(), ..asked_about(operation) }
}

/// The review of an acceptance by this user.
fn acceptance(user: &str) -> String {
    let mut accepted: Value = serde_json::from_str(&review("prod-1")).unwrap();
    let request = &mut accepted["request"];
    request["operation"] = "UPDATE".into();
    request["userInfo"]["username"] = user.into();
    request["oldObject"] = request["object"].clone();
    request["object"]["spec"]["hubAcceptsClient"] = true.into();
    accepted.to_string()
}

/// The hub's registration controller.
const HUB: &str = "system:serviceaccount:open-cluster-management-hub:registration-controller-sa";

#[tokio::test]
async fn what_the_hub_accepts_by_itself_is_judged_as_a_join_and_not_before_its_requests_are_known() {
    let parts = support::parts();
    let accepted_by = |user: &str| refused_review(&parts, &acceptance(user));
    parts.policies.apply(&[asked_about("join")]).await;
    // Nobody knows its certificate requests here.
    assert!(accepted_by(HUB).unwrap().contains("policies decide whether it joins"));
    assert_eq!(accepted_by("alice"), None);
    let warns = Enforcement { mode: Mode::Warn, ..Enforcement::default() };
    for harmless in [Wanted { enforcement: warns, ..asked_about("join") }, asked_about("accept")] {
        parts.policies.apply(&[Wanted { uid: Some("2".to_owned()), ..harmless }]).await;
        assert_eq!(accepted_by(HUB), None);
    }
}

#[tokio::test]
async fn whoever_accepts_a_cluster_is_judged_and_not_whoever_asked_for_its_certificate() {
    let parts = support::parts();
    let rules = json!({"rules": [{"operations": ["accept"], "users": ["alice"]}]});
    let source = Source::Builtin("allowed-identities".to_owned());
    parts.policies.apply(&[Wanted { source, settings: rules.to_string(), ..names("who", "*") }]).await;
    assert_eq!(parts.policies.failed(), []);
    assert_eq!(refused_review(&parts, &acceptance("alice")), None);
    // Nothing that the object says of anybody else counts.
    let mut claims: Value = serde_json::from_str(&acceptance("eva")).unwrap();
    for object in ["object", "oldObject"] {
        claims["request"][object]["metadata"]["annotations"] = json!({
            "kubectl-ocm/creator-credential": "JTI=1", "open-cluster-management.io/csr-user": "alice",
        });
    }
    for review in [acceptance("eva"), claims.to_string()] {
        let why = refused_review(&parts, &review).unwrap();
        assert!(why.contains("denied by policy who") && why.contains("IdentityUnknown"), "{why}");
    }
}

#[tokio::test]
async fn an_agent_that_inflates_its_cluster_keeps_the_hub_from_nothing_where_a_policy_judges_whole_objects() {
    let parts = support::parts();
    let source = Source::Builtin("agent-self-edit".to_owned());
    parts.policies.apply(&[Wanted { source, settings: json!({}).to_string(), ..names("self-edit", "*") }]).await;
    assert_eq!(parts.policies.failed(), []);
    // A megabyte of it, before and after.
    let claim = |number: usize| json!({"name": format!("claim-{number}"), "value": "v".repeat(100)});
    let claims: Vec<Value> = (0..8000).map(claim).collect();
    let update = |user: &str, member: &str, value: Value| {
        let mut review: Value = serde_json::from_str(&review("prod-1")).unwrap();
        let request = &mut review["request"];
        request["operation"] = "UPDATE".into();
        request["userInfo"]["username"] = user.into();
        request["object"]["status"] = json!({"clusterClaims": claims});
        request["oldObject"] = request["object"].clone();
        request["object"]["metadata"][member] = value;
        review.to_string()
    };
    let agent = "system:open-cluster-management:prod-1:agent-1";
    let by_the_hub = update(HUB, "finalizers", json!(["example.com/keep"]));
    assert!(by_the_hub.len() > 2 << 20, "{} bytes", by_the_hub.len());
    let begun = Instant::now();
    assert_eq!(refused_review(&parts, &by_the_hub), None);
    // The agent gets no further than with little, and is told so: what is not its own is refused, and what is its own passes or
    // is more than the policy can read.
    let why = refused_review(&parts, &update(agent, "labels", json!({"env": "prod"}))).unwrap();
    assert!(why.contains("policy self-edit: "), "{why}");
    let own = update(agent, "annotations", json!({"agent.open-cluster-management.io/a": "b"}));
    let why = refused_review(&parts, &own);
    assert!(why.as_ref().is_none_or(|why| why.starts_with("policy self-edit: ")), "{why:?}");
    // Nothing of that is left for who comes next.
    assert_eq!(refused_review(&parts, &by_the_hub), None);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn what_nobody_waits_for_any_more_is_no_decision() {
    let cancellation = Cancellation::default();
    let cancelled = Deadline::NONE.or_cancelled(&cancellation);
    cancellation.cancel();
    for (wanted, reviews) in [
        (names("names", "prod-*"), [review("prod-1"), review("dev-1")]),
        // Whether it joins cannot be told here, which is a refusal where somebody waits for it.
        (asked_about("join"), [acceptance(HUB), acceptance(HUB)]),
    ] {
        let parts = support::parts();
        parts.policies.apply(&[wanted]).await;
        for review in &reviews {
            let reviewed = match parts.gate.clone().review(review.as_bytes(), Stage::Validating, &cancelled) {
                Review::Answered(reviewed) => reviewed,
                Review::Waits(rest) => rest(),
            };
            assert_eq!((reviewed.status, reviewed.body.len()), (503, 0));
            assert!(reviewed.decided.is_none(), "nothing to note, and nothing to compare");
        }
        let metrics = parts.metrics.text();
        let gone = r#"ocm_policy_admission_requests_total{operation="gone",code="499"} 2"#;
        assert!(metrics.contains(gone) && !metrics.contains(r#"code="403""#), "{metrics}");
        assert!(!metrics.contains("ocm_policy_decisions_total{") && !metrics.contains("ocm_policy_errors_total{"));
        // The same for somebody is one.
        assert!(refused_review(&parts, &reviews[1]).is_some());
        assert!(parts.metrics.text().contains(r#"code="403"} 1"#));
    }
}

#[tokio::test]
async fn a_digest_that_is_wanted_is_the_one_of_the_module() {
    let parts = support::parts();
    let module = ocm_policy_builtin::find("name-pattern").unwrap().module;
    let pinned = |sha256: String| Wanted { sha256: Some(sha256), ..counts("prod-*", Mode::Enforce) };
    parts.policies.apply(&[pinned("0".repeat(64))]).await;
    assert!(refused(&parts, "prod-1").is_some());
    parts.policies.apply(&[pinned(ocm_policy_engine::digest(module))]).await;
    assert!(refused(&parts, "prod-1").is_none() && refused(&parts, "dev-1").is_some());
    let state = &parts.policies.states()["names"];
    assert_eq!(state.sha256.as_deref(), Some(&*ocm_policy_engine::digest(module)));
}

#[tokio::test]
async fn evidence_that_nobody_reads_is_an_error_and_counts_as_one() {
    let parts = support::parts();
    let asks = |on_error| Wanted {
        source: Source::Builtin("join-quota".to_owned()),
        settings: r#"{"total": 10}"#.to_owned(),
        enforcement: Enforcement { on_error, ..Enforcement::default() },
        ..names("quota", "")
    };
    parts.policies.apply(&[asks(OnError::Deny)]).await;
    assert_eq!(parts.policies.failed(), []);
    let why = refused(&parts, "prod-1").unwrap();
    assert_eq!(why, "policy quota: what the policy has to know of the hub is not known");
    // Held: whoever only asks may ask.
    parts.policies.apply(&[asks(OnError::Hold)]).await;
    assert_eq!(refused(&parts, "prod-1"), None);
    // Whoever has to see to it is told, with the reason.
    parts.policies.apply(&[asks(OnError::Hold), names("names", "*")]).await;
    let states = parts.policies.states();
    let quota = &states["quota"];
    assert!(quota.failed.is_none() && !quota.unread.is_empty(), "{quota:?}");
    assert!(quota.unread.iter().all(|why| why.contains("connection")), "{quota:?}");
    assert_eq!(states["names"].unread, Vec::<String>::new(), "it asks for nothing");
}

#[tokio::test]
async fn whoever_installs_the_webhook_sees_that_it_is_asked() {
    let parts = support::parts();
    // Whatever is in force, and by nothing that a policy says.
    for policies in [&[][..], &[counts("*", Mode::Audit)]] {
        parts.policies.apply(policies).await;
        let probe = ocm_core::policy_engine::PROBE;
        let said = refused(&parts, probe).unwrap();
        assert_eq!(said, ocm_core::policy_engine::PROBE_SENTENCE);
        let causes = &response(&parts, &review(probe))["status"]["details"]["causes"];
        assert_eq!(causes[0]["reason"], ocm_core::policy_engine::PROBE_CODE);
        assert_eq!(refused(&parts, &format!("{probe}-2")), None);
    }
}

#[tokio::test]
async fn whoever_tries_a_certificate_request_sees_that_the_webhook_is_asked_about_those() {
    let parts = support::parts();
    // Whatever policies say: here nothing.
    parts.policies.apply(&[]).await;
    let mut object = ocm_core::policy_engine::probe_of_requests().body().clone();
    object["spec"]["username"] = "eva".into();
    let mut asks: Value = serde_json::from_str(&review(ocm_core::policy_engine::PROBE)).unwrap();
    let request = &mut asks["request"];
    request["resource"] =
        json!({"group": "certificates.k8s.io", "version": "v1", "resource": "certificatesigningrequests"});
    request["kind"] = json!({"group": "certificates.k8s.io", "version": "v1", "kind": "CertificateSigningRequest"});
    (request["object"], request["dryRun"]) = (object.clone(), true.into());
    let said = refused_review(&parts, &asks.to_string()).unwrap();
    assert_eq!(said, ocm_core::policy_engine::PROBE_SENTENCE);
    // One that was stored while nobody answered gives nobody a certificate, and may be denied.
    let request = &mut asks["request"];
    (request["operation"], request["subResource"], request["oldObject"]) = ("UPDATE".into(), "approval".into(), object);
    for (dry_run, decides, refused) in [(true, "Approved", true), (false, "Approved", true), (false, "Denied", false)] {
        let request = &mut asks["request"];
        request["dryRun"] = dry_run.into();
        request["object"]["status"] = json!({"conditions": [{"type": decides, "status": "True"}]});
        let said = refused_review(&parts, &asks.to_string());
        assert_eq!(said.is_some_and(|said| said == ocm_core::policy_engine::PROBE_SENTENCE), refused, "{decides}");
    }
}

#[tokio::test]
async fn a_cluster_by_which_others_are_tried_passes_as_a_dry_run_alone_and_no_policy_is_asked() {
    let parts = support::parts();
    parts.policies.apply(&[counts("prod-*", Mode::Enforce)]).await;
    let probe = |annotations: Value, dry_run: bool| {
        let mut review: Value = serde_json::from_str(&review(ocm_core::policy_engine::PROBE)).unwrap();
        review["request"]["object"]["metadata"]["annotations"] = annotations;
        review["request"]["dryRun"] = dry_run.into();
        review.to_string()
    };
    let of_others = json!({(ocm_core::policy_engine::PROBE_OF_OTHERS): "true"});
    let tried = reviewed(&parts, &probe(of_others.clone(), true));
    assert!(tried.decided.is_none());
    assert_eq!(refused_review(&parts, &probe(of_others.clone(), true)), None);
    for stored in [probe(of_others.clone(), false), probe(json!({"a": ""}), true)] {
        assert_eq!(refused_review(&parts, &stored).unwrap(), ocm_core::policy_engine::PROBE_SENTENCE);
    }
    for dry_run in [true, false] {
        let changed = reviewed_at(&parts, &probe(of_others.clone(), dry_run), Stage::Mutating);
        let answer: Value = serde_json::from_slice(&changed.body).unwrap();
        assert_eq!((&answer["response"]["allowed"], changed.decided.is_none()), (&json!(true), true));
    }
    // Another name is judged as any other.
    let mut other: Value = serde_json::from_str(&probe(of_others, true)).unwrap();
    for pointer in ["/request/name", "/request/object/metadata/name"] {
        *other.pointer_mut(pointer).unwrap() = "dev-1".into();
    }
    assert!(refused_review(&parts, &other.to_string()).unwrap().contains("denied by policy names"));
}

/// Test cases that ask for a cluster of this name, and expect this verdict.
fn cases(name: &str, verdict: &str) -> Option<String> {
    Some(format!(
        "cases:\n- name: c\n  request: {{operation: create, cluster: {{name: {name}}}}}\n  expect: {{verdict: {verdict}}}\n"
    ))
}

#[tokio::test]
async fn a_version_that_fails_its_test_cases_is_not_put_in_force() {
    let parts = support::parts();
    let wanted = |pattern: &str, tests: Option<String>| Wanted { tests, ..names("names", pattern) };
    let state = |parts: &Parts| parts.policies.states()["names"].clone();
    // Before anything is in force, everything is refused.
    parts.policies.apply(&[wanted("dev-*", cases("prod-1", "allow"))]).await;
    assert_eq!((state(&parts).with, state(&parts).has_tests), (With::Tests, true));
    assert!(refused(&parts, "dev-1").is_some() && refused(&parts, "prod-1").is_some());
    parts.policies.apply(&[wanted("prod-*", cases("prod-1", "allow"))]).await;
    assert_eq!((state(&parts).failed, state(&parts).with), (None, With::Policy));
    assert!(refused(&parts, "dev-1").is_some() && refused(&parts, "prod-1").is_none());
    // A new version that fails leaves the former one.
    parts.policies.apply(&[wanted("dev-*", cases("prod-1", "allow"))]).await;
    let failed = state(&parts);
    assert_eq!(failed.with, With::Tests);
    let why = failed.failed.unwrap();
    assert!(why.contains(r#"its test case "c" (line 2) fails: "#), "{why}");
    assert!(refused(&parts, "dev-1").is_some() && refused(&parts, "prod-1").is_none());
    for (tests, says) in [
        ("cases: 7".to_owned(), "its test cases cannot be read"),
        (format!("settings: {{patterns: [\"dev-*\"]}}\n{}", cases("prod-1", "allow").unwrap()), "leave `settings` out"),
    ] {
        parts.policies.apply(&[wanted("prod-*", Some(tests))]).await;
        let why = state(&parts).failed.unwrap();
        assert!(why.contains(says), "{why}");
    }
    // A candidate has its own, or those of the policy.
    let tries = |tests: Option<String>| {
        let mut wanted = tries("prod-*", "dev-*", 100);
        wanted.tests = cases("prod-1", "allow");
        wanted.candidate.as_mut().unwrap().tests = tests;
        wanted
    };
    parts.policies.apply(&[tries(cases("prod-1", "allow"))]).await;
    assert!(candidate(&parts).failed.unwrap().contains("its test case"));
    assert!(refused(&parts, "dev-1").is_some() && refused(&parts, "prod-1").is_none());
    parts.policies.apply(&[tries(cases("dev-1", "allow"))]).await;
    assert_eq!(candidate(&parts).failed, None);
    assert!(refused(&parts, "dev-1").is_none() && refused(&parts, "prod-1").is_some());
}

/// A HubPolicy of a hub.
fn object(name: &str, module: &Value, mode: &str, version: u32) -> Value {
    json!({
        "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "HubPolicy",
        "metadata": {"name": name, "uid": name, "generation": version, "resourceVersion": version.to_string()},
        "spec": {"module": module, "settings": {"patterns": ["prod-*"]}, "mode": mode},
    })
}

/// The one that is there from the beginning.
fn names_of(mode: &str, version: u32) -> Value {
    object("names", &json!({"builtin": "name-pattern"}), mode, version)
}

/// A HubPolicy whose module does not come.
fn never(name: &str, mode: &str, version: u32) -> Value {
    object(name, &json!({"configMap": {"namespace": "n", "name": "m", "key": "module"}}), mode, version)
}

/// A hub with a HubPolicy, and others whose modules do not come. Then these changes come.
fn slow_hub(changes: Vec<Value>) -> kube::Client {
    let watches = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (watches, changes) = (watches.clone(), changes.clone());
        async move {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let answer = match () {
                () if request.uri().path().contains("/configmaps/") => std::future::pending().await,
                () if !query.contains("watch") => {
                    // Two at a time, each for ten seconds: nobody waits for that here.
                    let slow = (0..24).map(|index| never(&format!("slow-{index}"), "Audit", 1));
                    let items: Vec<Value> = slow.chain([names_of("Audit", 1)]).collect();
                    json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"}, "items": items})
                }
                () => {
                    let number = watches.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    let Some(change) = changes.get(number) else { std::future::pending().await };
                    tokio::time::sleep(Duration::from_millis(500)).await;
                    change.clone()
                }
            };
            let body = kube::client::Body::from(answer.to_string().into_bytes());
            Ok::<_, tower::BoxError>(http::Response::builder().status(200).body(body)?)
        }
    });
    kube::Client::new(service, "default")
}

/// Waits until a cluster of this name may be created, or may not.
async fn until_refused(parts: &Parts, name: &str, is_refused: bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while refused(parts, name).is_some() != is_refused {
        assert!(Instant::now() < until, "{name}: {is_refused} does not come: {:?}", parts.policies.failed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn how_much_a_policy_counts_waits_for_no_module() {
    let changed = |mode: &str, version| json!({"type": "MODIFIED", "object": names_of(mode, version)});
    let client = slow_hub(vec![changed("Enforce", 2), changed("Audit", 3)]);
    let parts = support::parts_of(client.clone());
    let following = tokio::spawn(ocm_policy_server::follow(client, parts.policies.clone(), |_| ()));
    until_refused(&parts, "dev-1", true).await;
    until_refused(&parts, "dev-1", false).await;
    // The modules of the others have neither come nor been given up.
    assert!(!parts.policies.is_complete(), "it has waited for the others");
    assert!(parts.policies.age().is_some_and(|age| age < Duration::from_secs(60)));
    following.abort();
}

#[tokio::test]
async fn a_policy_that_comes_and_goes_while_a_module_is_waited_for_leaves_nothing() {
    let new = never("new", "Enforce", 2);
    let changes = vec![json!({"type": "ADDED", "object": new}), json!({"type": "DELETED", "object": new})];
    let client = slow_hub(changes);
    let parts = support::parts_of(client.clone());
    let following = tokio::spawn(ocm_policy_server::follow(client, parts.policies.clone(), |_| ()));
    until_refused(&parts, "prod-1", true).await;
    until_refused(&parts, "prod-1", false).await;
    assert!(!parts.policies.is_complete(), "it has waited for the others");
    following.abort();
}
