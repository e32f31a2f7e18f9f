//! The test cases of HubPolicies, as they are applied.

use std::sync::Arc;

use ocm_api::HubPolicy;
use ocm_cli::Ui;
use ocm_core::hub_policy::files::{Files, Given};
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_policy_testing::Suite;
use serde_json::Value;

use super::cases::{Results, results};
use super::view;
use crate::args::TestArgs;
use crate::load::Loader;
use crate::processes::on_thread;
use crate::verbs::apply::{CANDIDATE, FetchedModules, POLICY, fetched, module_of, read};

pub(super) async fn run(args: TestArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let TestArgs { subject, kind, tests, update, files, modules, output } = args;
    for (flag, is_given) in [("--tests", tests.is_some()), ("--update", update), ("a module", subject.is_some())] {
        if is_given {
            let sentence = format!("{flag} has no meaning with -f: the files name modules and hold test cases");
            return Err(Failure::usage(sentence));
        }
    }
    let files = on_thread(move |_| read(&files, &modules, kind)).await?;
    let fetched = fetched(&files, &ui).await?;
    let teller = ui.clone();
    let all = on_thread(move |_| all(&files, &fetched, &teller)).await?;
    if all.is_empty() {
        return Err(Failure::usage("no HubPolicy of the files has test cases").hint("spec.tests holds them"));
    }
    ui.out(&view::several(&all, output)?);
    let failed: usize = all.iter().map(|(_, results)| results.failed()).sum();
    let count: usize = all.iter().map(|(_, results)| results.tested.len()).sum();
    if failed > 0 {
        ui.tell(Event::note(format!("{failed} of {count} cases failed: no hub puts such a version in force")));
        return Ok(Exit::Failed);
    }
    Ok(Exit::Ok)
}

/// What came of the cases of every policy and of every candidate that has some.
fn all(files: &Files, fetched: &FetchedModules, ui: &Ui) -> Result<Vec<(String, Results)>, Failure> {
    let loader = Loader::new(ui)?;
    let mut all = Vec::new();
    for given in files.policies() {
        let name = given.name();
        match tested(&loader, files, given, (&given.policy, POLICY, fetched.of(name)))? {
            Some(results) => all.push((format!("{POLICY} {name}"), results)),
            None => ui.tell(Event::note(format!("{name} of {} has no test cases", given.source))),
        }
        if let Some(version) = given.candidate()
            && let Some(results) = tested(&loader, files, given, (&version, CANDIDATE, fetched.of_candidate(name)))?
        {
            all.push((format!("{CANDIDATE} {name}"), results));
        }
    }
    Ok(all)
}

/// What came of the cases of a version of a policy; none: it has none.
fn tested(
    loader: &Loader,
    files: &Files,
    given: &Given,
    (version, what, fetched): (&HubPolicy, &str, Option<&[u8]>),
) -> Result<Option<Results>, Failure> {
    let (name, spec) = (given.name(), &version.spec);
    let Some(cases) = &spec.tests else { return Ok(None) };
    let tests = format!("spec.tests of {what} {name} of {}", given.source);
    let mut suite = Suite::read(cases)
        .map_err(|bad| Failure::usage(format!("the test cases in {tests} cannot be used")).because(bad))?;
    suite
        .use_settings(Value::Object(spec.settings.clone().unwrap_or_default()))
        .map_err(|why| Failure::usage(format!("the test cases in {tests} cannot be used")).because(why))?;
    let Some(module) = module_of(files, given, (version, fetched))? else {
        let sentence = format!("the module of {what} {name} is not in the files: the hub alone can load it");
        return Err(Failure::usage(sentence).hint(match spec.module.config_map {
            Some(_) => format!("--module {name}=FILE says which one is meant"),
            None => format!("kubectl ocm policy test MODULE --tests FILE asks the module of {name} itself"),
        }));
    };
    Ok(Some(results(tests, &suite, |settings| loader.of_hub_with(name, module, spec, settings))))
}
