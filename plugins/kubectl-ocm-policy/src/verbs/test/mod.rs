//! A policy is run on its test cases: those beside its module, or those of HubPolicies in files.

mod hub;
mod view;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ocm_cli::Ui;
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_policy_abi::Manifest;
use ocm_policy_engine::{Outcome, Policy, PolicyError};
use ocm_policy_testing::{Case, Expect, Suite};
use serde_json::json;

use crate::args::TestArgs;
use crate::ask::Policies;
use crate::files;
use crate::load::{Loader, module};
use crate::run::apart;

/// What came of one case.
struct Tested {
    name: String,
    line: u64,
    /// The answer; none where the settings were refused or nothing could be asked.
    said: Option<Said>,
    /// Whether the policy could not be had with these settings.
    refused: bool,
    wrong: Vec<String>,
    /// What the policy says now, as an expectation.
    now: Expect,
}

/// What the policy said.
struct Said {
    outcome: Outcome,
    micros: u64,
}

/// What came of all cases of one policy.
struct Results {
    policy: Option<Manifest>,
    /// Where the cases stand.
    tests: String,
    tested: Vec<Tested>,
    /// The codes of the manifest that no case expects; none: nobody asks for that.
    uncovered: Option<Vec<String>>,
}

impl Results {
    fn failed(&self) -> usize {
        self.tested.iter().filter(|tested| !tested.wrong.is_empty()).count()
    }
}

pub(crate) async fn run(args: TestArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    if !args.files.is_empty() {
        return hub::run(args, ui).await;
    }
    apart(move |_| one_module(args, &ui)).await
}

/// The cases beside a module.
fn one_module(args: TestArgs, ui: &Ui) -> Result<Exit, Failure> {
    let TestArgs { subject, kind, tests, update, files: _, modules, output } = args;
    if !modules.is_empty() {
        return Err(Failure::usage("--module is about the HubPolicies of -f, and there is none"));
    }
    let file = find_module(subject.as_deref().unwrap_or(Path::new(".")))?;
    let tests = tests.map_or_else(|| find_tests(&file), Ok)?;
    let yaml = files::text(&tests, "the tests")?;
    let bad = |bad| Failure::usage(format!("the test cases {} cannot be used", tests.display())).because(bad);
    let suite = Suite::read(&yaml).map_err(|error| bad(error.to_string()))?;
    let bytes = module(&file, kind)?;
    let loader = Loader::new(ui)?;
    let mut results =
        results(tests.display().to_string(), &suite, |settings| loader.policy(&bytes, settings, str::to_owned));
    results.uncovered = results.policy.as_ref().map(|manifest| suite.uncovered(manifest));
    ui.out(&view::one(&results, output)?);
    if update {
        let new: Vec<(usize, Expect)> = results
            .tested
            .iter()
            .enumerate()
            .filter(|(_, tested)| !tested.wrong.is_empty())
            .map(|(index, tested)| (index, tested.now.clone()))
            .collect();
        let text = suite.updated(&yaml, &new).map_err(|error| bad(error.to_string()))?;
        if text != yaml {
            std::fs::write(&tests, text)
                .map_err(|error| Failure::other(format!("cannot write {}", tests.display())).because(error))?;
        }
        let noun = if new.len() == 1 { "expectation" } else { "expectations" };
        ui.tell(Event::note(format!("{} {noun} written to {}", new.len(), tests.display())));
        return Ok(Exit::Ok);
    }
    let (failed, count) = (results.failed(), results.tested.len());
    if failed > 0 {
        ui.tell(Event::note(format!("{failed} of {count} cases failed; --update takes what the policy says now")));
        return Ok(Exit::Failed);
    }
    Ok(Exit::Ok)
}

/// The module itself, or the one that `build` put into a folder.
fn find_module(subject: &Path) -> Result<PathBuf, Failure> {
    if !subject.is_dir() {
        return Ok(subject.to_owned());
    }
    let cannot = |error| Failure::usage(format!("cannot read the folder {}", subject.display())).because(error);
    let mut found: Vec<PathBuf> = std::fs::read_dir(subject)
        .map_err(cannot)?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "wasm"))
        .collect();
    found.sort();
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(Failure::usage(format!("the folder {} holds no module", subject.display()))
            .hint(format!("build it first: kubectl ocm policy build {}", subject.display()))),
        _ => Err(Failure::usage(format!("the folder {} holds several modules", subject.display()))
            .hint("name the one that is to be tested")),
    }
}

fn find_tests(module: &Path) -> Result<PathBuf, Failure> {
    let beside = module.with_file_name("tests.yaml");
    match beside.is_file() {
        true => Ok(beside),
        false => Err(Failure::usage(format!("there are no tests at {}", beside.display()))
            .hint("name the file with --tests FILE")),
    }
}

/// Asks every case. `load` makes the policy with settings, once for each.
fn results(tests: String, suite: &Suite, load: impl Fn(&str) -> Result<Arc<Policy>, PolicyError>) -> Results {
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
    Tested { name, line, said: None, refused: false, wrong, now }
}

/// The settings were refused, or the module cannot be loaded.
fn refused(case: &Case, error: &PolicyError) -> Tested {
    let now = match error {
        PolicyError::Settings(why) => case.expect.update_refusal(std::slice::from_ref(why)),
        error => case.expect.update(&Err(error.clone())),
    };
    Tested { refused: true, now, ..tested(case, case.refused(error)) }
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
    Tested { said: Some(said), now, ..tested(case, wrong) }
}
