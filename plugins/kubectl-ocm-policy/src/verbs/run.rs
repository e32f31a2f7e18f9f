//! Policies decide requests.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use ocm_cli::{Format, Ui, clean, document};
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_policy_abi::{Manifest, Reason};
use ocm_policy_rules::Answer;
use ocm_policy_rules::edits;
use serde_json::{Value, json};

use crate::args::RunArgs;
use crate::ask::{self, Answers, ask_all};
use crate::load::Loader;
use crate::requests::{self, Asked};

pub(crate) fn run(args: RunArgs, ui: &Ui) -> Result<Exit, Failure> {
    let RunArgs { policies, requests: from, record, output } = args;
    let loader = Loader::new(ui)?;
    let policies = loader.load_all(&policies)?;
    let manifests: Vec<&Manifest> = policies.iter().map(|loaded| loaded.policy.manifest()).collect();
    let asked = requests::read(&from, &manifests)?;
    let mut exit = Exit::Ok;
    let mut documents = Vec::new();
    let mut lines = String::new();
    for asked in &asked {
        let answers = ask_all(&policies, asked);
        for loaded in &answers.silent {
            ui.tell(Event::note(format!(
                "{} has no opinion about {} and was not asked",
                loaded.policy.manifest().name,
                asked.request.operation.word()
            )));
        }
        match output.output {
            Format::Json | Format::Yaml => documents.push(whole(asked, &answers)),
            Format::Name => ui.line(answers.combined.verdict.word()),
            format => ui.out(&shown(asked, &answers, format == Format::Wide)),
        }
        if record.is_some() {
            for (loaded, said) in &answers.said {
                lines += &(ask::record(loaded, &asked.question, said)?.canonical() + "\n");
            }
        }
        exit = worse(exit, answers.combined.verdict);
    }
    if let Some(file) = &record {
        append(file, &lines)?;
    }
    if !output.output.is_human() && output.output != Format::Name {
        // One request asks for one answer.
        let value = if documents.len() == 1 { documents.remove(0) } else { json!({ "answers": documents }) };
        ui.out(&document(output.output, &value)?);
    }
    Ok(exit)
}

/// A broken policy outweighs a denial: somebody has to look.
fn worse(exit: Exit, verdict: Answer) -> Exit {
    match (exit, verdict) {
        (Exit::Failed, _) | (_, Answer::Error) => Exit::Failed,
        (_, Answer::Deny | Answer::Hold) => Exit::Findings,
        (exit, Answer::Allow) => exit,
    }
}

fn append(file: &Path, lines: &str) -> Result<(), Failure> {
    let written = OpenOptions::new().append(true).create(true).open(file);
    written
        .and_then(|mut open| open.write_all(lines.as_bytes()))
        .map_err(|error| Failure::other(format!("cannot write the records {}", file.display())).because(error))
}

/// A reason in one line.
pub(crate) fn reason(reason: &Reason) -> String {
    let field = reason.field.as_ref().map(|field| format!(" ({field})")).unwrap_or_default();
    format!("{}: {}{field}", reason.code, reason.message)
}

fn shown(asked: &Asked, answers: &Answers<'_>, wide: bool) -> String {
    let combined = &answers.combined;
    let mut lines = vec![format!("{}: {} ({})", asked.source, combined.verdict.word(), asked.about())];
    for given in &combined.reasons {
        let whose = given.policy.as_deref().map(|policy| format!("{policy} ")).unwrap_or_default();
        lines.push(format!("  {:<8} {whose}{}", given.verdict.word(), reason(&given.reason)));
    }
    for problem in &combined.errors {
        lines.push(format!(
            "  {:<8} {} {}: {}",
            "error",
            problem.policies.join(", "),
            problem.fault.code(),
            problem.fault
        ));
    }
    for warning in &combined.warnings {
        lines.push(format!("  {:<8} {} {}", "warning", warning.policy, warning.message));
    }
    for edit in &combined.edits {
        lines.push(format!("  {:<8} {}", "edit", ask::edit(edit)));
    }
    for given in combined.due() {
        let obligation = &given.obligation;
        let within = obligation.within_seconds.map(|seconds| format!(" within {seconds} s")).unwrap_or_default();
        lines.push(format!("  {:<8} {} {}{within}", "then", given.policies.join(", "), obligation.name));
    }
    if let Some(seconds) = combined.ask_again_seconds {
        lines.push(format!("  {:<8} in {seconds} s", "again"));
    }
    if wide {
        for (loaded, said) in &answers.said {
            let Manifest { name, version, .. } = loaded.policy.manifest();
            let (verdict, fuel) = (ask::word(&said.outcome.result), said.outcome.fuel);
            lines.push(format!("  {:<8} {name} {version}: {verdict}, fuel {fuel}, {} µs", "asked", said.micros));
        }
        for (key, value) in &combined.audit {
            lines.push(format!("  {:<8} {key}={value}", "audit"));
        }
    }
    lines.iter().map(|line| clean(line) + "\n").collect()
}

fn whole(asked: &Asked, answers: &Answers<'_>) -> Value {
    let said: Vec<Value> = answers
        .said
        .iter()
        .map(|(loaded, said)| {
            let mut one = json!({
                "policy": said.outcome.policy,
                "file": loaded.file.display().to_string(),
                "digest": loaded.policy.header().module_digest,
                "fuel": said.outcome.fuel,
                "micros": said.micros,
            });
            match &said.outcome.result {
                Ok(decision) => one["decision"] = json!(decision),
                Err(fault) => one["fault"] = json!(fault),
            }
            one
        })
        .collect();
    let mut value = json!({
        "source": asked.source,
        "id": asked.request.id,
        "operation": asked.request.operation,
        "answer": answers.combined,
        "policies": said,
    });
    // What the hub would send to the API server.
    if let Some(object) = asked.question.object()
        && !answers.combined.edits.is_empty()
        && let Ok(patch) = edits::render(object, &answers.combined.edits)
    {
        value["patch"] = Value::Array(patch);
    }
    value
}
