//! Test cases that a policy has to pass before it is put in force.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ocm_policy_rules::{Enforcement, PolicyError};
use ocm_policy_testing::{Case, Suite};

use crate::deadline::Deadline;
use crate::evaluate::{NoEvidence, evaluate_question};
use crate::policy::Policy;
use crate::question::Question;
use crate::registry::{Operations, Registry};

/// How many test cases a policy may bring.
const CASES: usize = 256;
/// With how many different settings they may ask.
const SETTINGS: usize = 8;
/// How long all of them may take together.
const ALL: Duration = Duration::from_secs(10);

/// Has a policy pass its test cases, a file as [`Suite::read`] reads it. Cases without settings of their own are asked with the
/// settings of the policy; the file has none: who reads them would take what they say for what the policy does. `load` makes a
/// policy of the module with other settings.
///
/// # Errors
/// A sentence: what cannot be read, or which case fails first, and how.
pub fn pass_cases(
    cases: &str,
    settings: &str,
    mut load: impl FnMut(&str) -> Result<Arc<Policy>, PolicyError>,
) -> Result<(), String> {
    let mut suite = Suite::read(cases).map_err(|bad| format!("its test cases cannot be read: {bad}"))?;
    suite.use_settings(serde_json::from_str(settings).unwrap_or_default()).map_err(str::to_owned)?;
    if suite.cases.len() > CASES {
        return Err(format!("it has {} test cases, and {CASES} are the most", suite.cases.len()));
    }
    let mut loaded: HashMap<String, TestedPolicy> = HashMap::new();
    for case in &suite.cases {
        let own = case.settings(&suite);
        if !loaded.contains_key(&own) && loaded.len() == SETTINGS {
            return Err(format!("its test cases ask with more than {SETTINGS} different settings"));
        }
        loaded.entry(own).or_insert_with_key(|own| {
            let policy = load(own)?;
            let registry = Registry::default();
            let place = policy.manifest().name.clone();
            let installation =
                registry.begin(&place).operations(Operations::MayShrink).enforcement(Enforcement::default());
            registry.install(installation, Ok(policy.clone()), |_| Ok(()))?;
            Ok((registry, policy))
        });
    }
    // To compile takes its time on a busy machine, and is bounded by whoever loads.
    let deadline = Deadline::after(ALL);
    for case in &suite.cases {
        let wrong = match loaded.get(&case.settings(&suite)) {
            Some(Ok((registry, policy))) => ask(case, registry, policy, &deadline),
            Some(Err(error)) => case.refused(error),
            None => Vec::new(),
        };
        if let Some(first) = wrong.into_iter().next() {
            if deadline.check().is_err() {
                return Err(format!("its test cases take longer than {} seconds", ALL.as_secs()));
            }
            return Err(format!("its test case {:?} (line {}) fails: {first}", case.name, case.line));
        }
    }
    Ok(())
}

/// A policy with settings, alone in a registry.
type TestedPolicy = Result<(Registry, Arc<Policy>), PolicyError>;

/// What is wrong with the answer to one.
fn ask(case: &Case, registry: &Registry, policy: &Policy, deadline: &Deadline) -> Vec<String> {
    let request = match case.request_for(policy.manifest()) {
        Ok(request) => request,
        Err(bad) => return vec![bad.wrong],
    };
    let operation = request.operation;
    let text = serde_json::to_string(&request).map_err(|error| PolicyError::Malformed(error.to_string()));
    match text.and_then(|text| Question::recorded(&text)) {
        Ok(question) => {
            let answer = evaluate_question(registry, question, &NoEvidence, deadline);
            match answer.asked().first() {
                Some(asked) => case.wrong(policy.manifest(), &asked.outcome().result),
                None => vec![case.not_asked(operation)],
            }
        }
        Err(error) => case.refused(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing is ever asked.
    fn said(cases: &str) -> String {
        pass_cases(cases, "{}", |_| Err(PolicyError::Settings("no".to_owned()))).unwrap_err()
    }

    fn many(count: usize, settings: impl Fn(usize) -> usize) -> String {
        let case = |index| {
            format!(
                "- {{name: c{index}, settings: {{a: {}}}, request: {{operation: create}}, expect: {{refused: \"no\"}}}}\n",
                settings(index)
            )
        };
        format!("cases:\n{}", (0..count).map(case).collect::<String>())
    }

    #[test]
    fn there_are_only_so_many_of_them() {
        let refused = |count, settings: usize| {
            pass_cases(&many(count, |index| index % settings), "{}", |_| Err(PolicyError::Settings("no".to_owned())))
        };
        assert_eq!(refused(CASES, SETTINGS), Ok(()));
        assert!(said(&many(CASES + 1, |_| 0)).contains("257 test cases"));
        assert!(refused(SETTINGS + 1, SETTINGS + 1).unwrap_err().contains("more than 8 different settings"));
    }

    #[test]
    fn the_first_that_fails_is_named() {
        let cases = "cases:\n- name: one\n  request: {operation: create}\n  expect: {verdict: allow}\n";
        let why = said(cases);
        assert!(why.starts_with(r#"its test case "one" (line 2) fails: "#), "{why}");
        assert!(said("x").starts_with("its test cases cannot be read: "));
        assert!(said(&format!("settings: {{a: 1}}\n{cases}")).contains("leave `settings` out"));
    }
}
