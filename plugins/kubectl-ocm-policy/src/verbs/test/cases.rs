//! Test cases of a policy: each is asked, and what came of it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use ocm_policy_abi::Manifest;
use ocm_policy_engine::{Outcome, Policy, PolicyError};
use ocm_policy_testing::{Case, Expect, Suite};
use serde_json::json;

use crate::evaluation::Policies;

/// What came of one case.
pub(super) struct Tested {
    pub(super) name: String,
    pub(super) line: u64,
    /// The answer; none where the settings were refused or nothing could be asked.
    pub(super) said: Option<Said>,
    /// Whether the policy could not be had with these settings.
    pub(super) refused: bool,
    pub(super) wrong: Vec<String>,
    /// What the policy says now, as an expectation.
    pub(super) now: Expect,
    /// Whether it is wrong with that expectation as well: what it asks cannot be asked, or its answer breaks the manifest.
    pub(super) stays_wrong: bool,
}

/// What the policy said.
pub(super) struct Said {
    pub(super) outcome: Outcome,
    pub(super) micros: u64,
}

/// What came of all cases of one policy.
pub(super) struct Results {
    pub(super) policy: Option<Manifest>,
    /// Where the cases stand.
    pub(super) tests: String,
    pub(super) tested: Vec<Tested>,
    /// The codes of the manifest that no case expects; none: nobody asks for that.
    pub(super) uncovered: Option<Vec<String>>,
}

impl Results {
    pub(super) fn failed(&self) -> usize {
        self.tested.iter().filter(|tested| !tested.wrong.is_empty()).count()
    }

    /// What the policy says now, where a case expects something else, with the index of the case.
    pub(super) fn changed(&self, suite: &Suite) -> Vec<(usize, Expect)> {
        let pairs = suite.cases.iter().zip(&self.tested).enumerate();
        let changed = pairs.filter(|(_, (case, tested))| !tested.wrong.is_empty() && tested.now != case.expect);
        changed.map(|(index, (_, tested))| (index, tested.now.clone())).collect()
    }
}

/// Asks every case. `load` makes the policy with settings, once for each.
pub(super) fn results(
    tests: String,
    suite: &Suite,
    load: impl Fn(&str) -> Result<Arc<Policy>, PolicyError>,
) -> Results {
    let mut policies: HashMap<String, Result<Policies, PolicyError>> = HashMap::new();
    let mut manifest = None;
    let ask = |case: &Case| {
        let load = |settings: &str| {
            let mut one = Policies::default();
            load(settings).and_then(|policy| one.add(Path::new(""), policy)).map(|()| one)
        };
        let settings = case.settings(suite);
        match policies.entry(settings.clone()).or_insert_with(|| load(&settings)) {
            Ok(policies) => match policies.manifests().first() {
                Some(&own) => {
                    manifest.get_or_insert_with(|| own.clone());
                    one(case, policies, own)
                }
                None => refused(case, &PolicyError::Load("it is not there".to_owned())),
            },
            Err(error) => refused(case, error),
        }
    };
    let tested = suite.cases.iter().map(ask).collect();
    Results { policy: manifest, tests, tested, uncovered: None }
}

fn tested(case: &Case, wrong: Vec<String>) -> Tested {
    let (name, line, now) = (case.name.clone(), case.line, case.expect.clone());
    let stays_wrong = !wrong.is_empty();
    Tested { name, line, said: None, refused: false, wrong, now, stays_wrong }
}

/// A case with another expectation.
fn expecting(case: &Case, now: &Expect) -> Case {
    let mut other = case.clone();
    other.expect = now.clone();
    other
}

/// The settings were refused, or the module cannot be loaded.
fn refused(case: &Case, error: &PolicyError) -> Tested {
    let now = match error {
        PolicyError::Settings(why) => case.expect.update_refusal(std::slice::from_ref(why)),
        error => case.expect.update(&Err(error.clone())),
    };
    let stays_wrong = !expecting(case, &now).refused(error).is_empty();
    Tested { refused: true, now, stays_wrong, ..tested(case, case.refused(error)) }
}

fn one(case: &Case, policies: &Policies, manifest: &Manifest) -> Tested {
    let request = match case.request_for(manifest) {
        Ok(request) => request,
        Err(bad) => return tested(case, vec![bad.wrong]),
    };
    let operation = request.operation;
    // As it is written: a case may well leave out what a hub would never leave out.
    let answer = match policies.again(&json!(request).to_string()) {
        Ok(answer) => answer,
        Err(error) => return refused(case, &error),
    };
    let Some(asked) = answer.asked().first() else { return tested(case, vec![case.not_asked(operation)]) };
    let said = Said { outcome: asked.outcome().clone(), micros: asked.micros() };
    let wrong = case.wrong(manifest, &said.outcome.result);
    let now = case.expect.update(&said.outcome.result);
    let stays_wrong = !expecting(case, &now).wrong(manifest, &said.outcome.result).is_empty();
    Tested { said: Some(said), now, stays_wrong, ..tested(case, wrong) }
}
