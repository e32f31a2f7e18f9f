//! The test cases of all our policies, decided by the engine as a hub runs it: compiled, configured, limited.

mod support;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ocm_policy_abi::Request;
use ocm_policy_engine::{Ceiling, Engine, Policy, PolicyError, Question};
use ocm_policy_testing::run_suite;
use serde::Deserialize as _;
use support::Ours;

/// A policy for each of the settings of its test cases, or why it refuses them.
type Configured = HashMap<String, Result<Arc<Policy>, String>>;

fn configure(engine: &Engine, ours: &Ours, settings: &str) -> Result<Arc<Policy>, String> {
    let ceiling = Ceiling::default();
    let made = support::compiled(&ours.module, settings).and_then(|made| {
        assert_eq!(made.header().settings_for_instances, None, "{}: no snapshot was taken of {settings}", ours.name);
        Policy::load(engine, &made, &ceiling, &made.header().manifest.edits)
    });
    made.map_err(|error| match error {
        PolicyError::Settings(why) => why,
        other => panic!("{} with {settings}: {other}", ours.name),
    })
}

/// Asks every case. What a policy is given is made of the request by the engine itself, and has to be the text of the
/// test case, so that nothing of it gets lost on the way.
fn failures(ours: &Ours, configured: &Configured) -> Vec<String> {
    let suite = ours.suite();
    let Some(manifest) = configured.values().find_map(|made| made.as_ref().ok()).map(|policy| policy.manifest()) else {
        return vec!["it refuses all settings of its test cases".to_owned()];
    };
    let mut errors = Vec::new();
    let mut failures = run_suite(&suite, manifest, |settings, request| {
        let policy = configured[settings].as_ref().map_err(|why| vec![why.clone()])?;
        let value = serde_json::from_str(request).expect("a test case is JSON");
        let read = Request::deserialize::<serde_json::Value>(value).expect("a test case is a request");
        let question = Question::new(read);
        let given = question.text_for(manifest);
        // A test case without a table that the policy asks for asks what the policy says then; no hub would ask it.
        let question = match &given {
            Ok(given) if **given == *request => question,
            Ok(given) => panic!("{}: the engine would ask {given}\nnot {request}", ours.name),
            Err(_) => Question::recorded(request).expect("it can be asked"),
        };
        let first = policy.decide(&question).outcome.clone();
        if policy.decide(&question).outcome != first {
            errors.push(format!("it decides in two ways about {request}"));
        }
        match first.result {
            Ok(decision) => Ok(serde_json::to_string(&decision).expect("a decision can be written")),
            Err(error) => Ok(format!("no decision, but {}: {error}", error.code())),
        }
    });
    failures.extend(errors);
    failures
}

#[test]
fn all_test_cases_of_all_policies_hold_in_the_engine() {
    let names = support::names();
    assert!(names.len() >= 11, "{names:?}");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let policies = support::ours(&names);
    let engine = support::engine();
    let mut wanted: Vec<(usize, String)> = Vec::new();
    for (at, ours) in policies.iter().enumerate() {
        let suite = ours.suite();
        let mut settings: Vec<String> = suite.cases.iter().map(|case| case.settings(&suite)).collect();
        settings.sort();
        settings.dedup();
        wanted.extend(settings.into_iter().map(|settings| (at, settings)));
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut made = Vec::new();
        while let Some((at, settings)) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
            made.push((*at, settings.clone(), configure(&engine, &policies[*at], settings)));
        }
        made
    };
    let made = thread::scope(|scope| {
        let workers: Vec<_> =
            (0..thread::available_parallelism().map_or(2, usize::from)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("it compiles")).collect::<Vec<_>>()
    });
    let mut configured: Vec<Configured> = policies.iter().map(|_| Configured::new()).collect();
    for (at, settings, result) in made {
        configured[at].insert(settings, result);
    }
    let mut wrong = Vec::new();
    for (ours, configured) in policies.iter().zip(&configured) {
        wrong.extend(failures(ours, configured).into_iter().map(|failure| format!("{}: {failure}", ours.name)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let refused = configured.iter().flat_map(HashMap::values).filter(|made| made.is_err()).count();
    assert!(refused >= policies.len(), "only {refused} settings were refused");
}
