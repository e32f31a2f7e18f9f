//! The cases beside a module, or those of HubPolicies in files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ocm_cli::Ui;
use ocm_core::order;
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_policy_testing::Suite;

use super::cases::results;
use super::{hub, view};
use crate::args::TestArgs;
use crate::files;
use crate::load::{Loader, module};
use crate::processes::on_thread;

pub(crate) async fn run(args: TestArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    if !args.files.is_empty() {
        return hub::run(args, ui).await;
    }
    on_thread(move |_| one_module(args, &ui)).await
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
        let new = results.changed(&suite);
        let text = suite.updated(&yaml, &new).map_err(|error| bad(error.to_string()))?;
        if text != yaml {
            files::write(&tests, text.as_bytes())
                .map_err(|error| Failure::other(format!("cannot write {}", tests.display())).because(error))?;
        }
        let noun = if new.len() == 1 { "expectation" } else { "expectations" };
        ui.tell(Event::note(format!("{} {noun} written to {}", new.len(), tests.display())));
        let (stay, count) = (results.tested.iter().filter(|tested| tested.stays_wrong).count(), results.tested.len());
        if stay > 0 {
            ui.tell(Event::note(format!("{stay} of {count} cases fail whatever they expect")));
            return Ok(Exit::Failed);
        }
        return Ok(Exit::Ok);
    }
    let (failed, count) = (results.failed(), results.tested.len());
    if failed > 0 {
        ui.tell(Event::note(format!("{failed} of {count} cases failed; --update takes the policy's verdicts of now")));
        return Ok(Exit::Failed);
    }
    Ok(Exit::Ok)
}

/// The module itself, or the one that `build` put into a directory.
fn find_module(subject: &Path) -> Result<PathBuf, Failure> {
    let cannot = |error: std::io::Error| Failure::usage(format!("cannot read {}", subject.display())).because(error);
    if !std::fs::metadata(subject).map_err(cannot)?.is_dir() {
        return Ok(subject.to_owned());
    }
    let mut found: Vec<PathBuf> = std::fs::read_dir(subject)
        .map_err(cannot)?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "wasm"))
        .collect();
    order::sort(&mut found);
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(Failure::usage(format!("the directory {} holds no module", subject.display()))
            .hint(format!("build it first: kubectl ocm policy build {}", subject.display()))),
        _ => Err(Failure::usage(format!("the directory {} holds several modules", subject.display()))
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
