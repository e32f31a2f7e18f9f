//! A policy is run on its test cases.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ocm_cli::{Table, Ui, clean};
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_policy_abi::{Decision, Manifest};
use ocm_policy_engine::{Outcome, PolicyError};
use ocm_policy_testing::{Case, Expect, Mismatch, Suite};
use serde_json::{Value, json};

use crate::args::{TestArgs, TestFormat};
use crate::ask::{self, Policies};
use crate::files;
use crate::load::{Loader, module};

/// What came of one case.
struct Tested<'s> {
    case: &'s Case,
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

/// What came of all of them.
struct Results<'s> {
    policy: Option<Manifest>,
    tested: Vec<Tested<'s>>,
    uncovered: Vec<String>,
}

pub(crate) fn run(args: TestArgs, ui: &Ui) -> Result<Exit, Failure> {
    let TestArgs { subject, kind, tests, update, output } = args;
    let file = find_module(&subject)?;
    let tests = tests.map_or_else(|| find_tests(&file), Ok)?;
    let yaml = files::text(&tests, "the tests")?;
    let bad = |bad| Failure::usage(format!("the test cases {} cannot be used", tests.display())).because(bad);
    let suite = Suite::read(&yaml).map_err(|error| bad(error.to_string()))?;
    let bytes = module(&file, kind)?;
    let loader = Loader::new(ui)?;
    let results = results(&loader, &file, &bytes, &suite);
    let failed = results.tested.iter().filter(|tested| !tested.wrong.is_empty()).count();
    match output {
        TestFormat::Table => ui.out(&table(&results)),
        TestFormat::Json => ui.out(&ocm_cli::document(ocm_cli::Format::Json, &json(&results, &tests))?),
        TestFormat::Junit => ui.out(&junit(&results)),
        TestFormat::Tap => ui.out(&tap(&results)),
    }
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
    if failed > 0 {
        let count = results.tested.len();
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

fn results<'s>(loader: &Loader, file: &Path, bytes: &[u8], suite: &'s Suite) -> Results<'s> {
    // Compiled once for each of the settings.
    let mut policies: HashMap<String, Result<Policies, PolicyError>> = HashMap::new();
    let mut manifest = None;
    let tested = suite
        .cases
        .iter()
        .map(|case| {
            let load = |settings: &str| {
                let mut one = Policies::default();
                loader.policy(bytes, settings, str::to_owned).and_then(|policy| one.add(file, policy)).map(|()| one)
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
        })
        .collect();
    let uncovered = manifest.as_ref().map(|manifest| suite.uncovered(manifest)).unwrap_or_default();
    Results { policy: manifest, tested, uncovered }
}

/// The settings were refused, or the module cannot be loaded.
fn refused<'s>(case: &'s Case, error: &PolicyError) -> Tested<'s> {
    let (wrong, now) = match error {
        PolicyError::Settings(why) => {
            let errors = [why.clone()];
            (case.expect.check_refusal(&errors), case.expect.update_refusal(&errors))
        }
        error => {
            let got = Err(error.clone());
            (case.expect.check(&got), case.expect.update(&got))
        }
    };
    Tested { case, said: None, refused: true, wrong: sentences(wrong), now }
}

fn one<'s>(case: &'s Case, policies: &Policies, manifest: &Manifest) -> Tested<'s> {
    let request = match case.request_for(manifest) {
        Ok(request) => request,
        Err(bad) => {
            return Tested { case, said: None, refused: false, wrong: vec![bad.wrong], now: case.expect.clone() };
        }
    };
    let operation = request.operation;
    // As it is written: a case may well leave out what a hub would never leave out.
    let answer = match policies.again(&json!(request).to_string()) {
        Ok(answer) => answer,
        Err(error) => return refused(case, &error),
    };
    let Some(asked) = answer.asked().first() else {
        let wrong = vec![format!("the policy is never asked about {}: its manifest does not say so", operation.word())];
        return Tested { case, said: None, refused: false, wrong, now: case.expect.clone() };
    };
    let said = Said { outcome: asked.outcome().clone(), micros: asked.micros() };
    let mut wrong = sentences(case.expect.check(&said.outcome.result));
    if let Ok(Decision { reasons, .. }) = &said.outcome.result {
        let announced = |code: &str| manifest.reasons.iter().any(|known| known.code == code);
        wrong.extend(
            reasons
                .iter()
                .filter(|reason| !announced(&reason.code))
                .map(|reason| format!("the manifest does not announce the reason {}", reason.code)),
        );
    }
    let now = case.expect.update(&said.outcome.result);
    Tested { case, said: Some(said), refused: false, wrong, now }
}

fn sentences(wrong: Vec<Mismatch>) -> Vec<String> {
    wrong.into_iter().map(|mismatch| mismatch.0).collect()
}

impl Tested<'_> {
    fn fuel(&self) -> Option<u64> {
        self.said.as_ref().map(|said| said.outcome.fuel)
    }

    fn answer(&self) -> &'static str {
        match &self.said {
            Some(said) => ask::word(&said.outcome.result),
            None if self.refused => "refused",
            None => "not asked",
        }
    }

    fn seconds(&self) -> f64 {
        self.said.as_ref().map_or(0.0, |said| said.micros as f64 / 1e6)
    }
}

fn table(results: &Results<'_>) -> String {
    let mut table = Table::new(&["CASE", "RESULT", "ANSWER", "FUEL"]);
    for tested in &results.tested {
        let result = if tested.wrong.is_empty() { "ok" } else { "FAILED" };
        let fuel = tested.fuel().map_or_else(|| "-".to_owned(), |fuel| fuel.to_string());
        table.row([tested.case.name.as_str(), result, tested.answer(), &fuel]);
    }
    let mut text = table.render();
    for tested in results.tested.iter().filter(|tested| !tested.wrong.is_empty()) {
        text += &format!("\nline {}: {}\n", tested.case.line, clean(&tested.case.name));
        for wrong in &tested.wrong {
            text += &format!("  {}\n", clean(wrong));
        }
    }
    let failed = results.tested.iter().filter(|tested| !tested.wrong.is_empty()).count();
    text += &format!("\n{} passed, {failed} failed", results.tested.len() - failed);
    if let Some(manifest) = &results.policy {
        let (all, missing) = (manifest.reasons.len(), results.uncovered.len());
        text += &format!("; {} of {all} reason codes covered", all - missing);
        if missing > 0 {
            text += &format!(", not {}", clean(&results.uncovered.join(", ")));
        }
    }
    text + "\n"
}

fn json(results: &Results<'_>, tests: &Path) -> Value {
    let cases: Vec<Value> = results
        .tested
        .iter()
        .map(|tested| {
            let mut case = json!({
                "name": tested.case.name,
                "line": tested.case.line,
                "passed": tested.wrong.is_empty(),
                "wrong": tested.wrong,
                "fuel": tested.fuel(),
            });
            if let Some(said) = &tested.said {
                match &said.outcome.result {
                    Ok(decision) => case["decision"] = json!(decision),
                    Err(error) => case["error"] = json!(error),
                }
            }
            case
        })
        .collect();
    let policy = results.policy.as_ref().map(|policy| json!({"name": policy.name, "version": policy.version}));
    json!({
        "policy": policy,
        "tests": tests.display().to_string(),
        "passed": results.tested.iter().all(|tested| tested.wrong.is_empty()),
        "cases": cases,
        "uncovered": results.uncovered,
    })
}

fn junit(results: &Results<'_>) -> String {
    let name = results.policy.as_ref().map_or("policy", |policy| policy.name.as_str());
    let failed = results.tested.iter().filter(|tested| !tested.wrong.is_empty()).count();
    let count = results.tested.len();
    let name = xml(name);
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"{count}\" failures=\"{failed}\">\n\
         <testsuite name=\"{name}\" tests=\"{count}\" failures=\"{failed}\">\n"
    );
    for tested in &results.tested {
        let open = format!(
            "<testcase classname=\"{name}\" name=\"{}\" time=\"{:.6}\"",
            xml(&tested.case.name),
            tested.seconds()
        );
        text += &match tested.wrong.first() {
            None => format!("{open}/>\n"),
            Some(first) => format!(
                "{open}>\n<failure message=\"{}\">{}</failure>\n</testcase>\n",
                xml(first),
                xml(&tested.wrong.join("\n"))
            ),
        };
    }
    text + "</testsuite>\n</testsuites>\n"
}

/// Text for an attribute or an element. What XML cannot hold at all becomes a question mark.
fn xml(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            '"' => "&quot;".to_owned(),
            '\n' | '\t' => c.to_string(),
            c if c.is_control() => "?".to_owned(),
            c => c.to_string(),
        })
        .collect()
}

fn tap(results: &Results<'_>) -> String {
    let mut text = format!("TAP version 14\n1..{}\n", results.tested.len());
    for (index, tested) in results.tested.iter().enumerate() {
        let word = if tested.wrong.is_empty() { "ok" } else { "not ok" };
        // A number sign would begin a directive.
        text += &format!("{word} {} - {}\n", index + 1, clean(&tested.case.name).replace('#', "\\#"));
        if !tested.wrong.is_empty() {
            text += "  ---\n  wrong:\n";
            for wrong in &tested.wrong {
                text += &format!("    - {}\n", Value::from(clean(wrong)));
            }
            text += "  ...\n";
        }
    }
    text
}
