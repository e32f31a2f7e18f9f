//! Policies decide requests.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use ocm_cli::{Format, Ui, clean, document};
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_policy_abi::Reason;
use ocm_policy_engine::Final;
use ocm_policy_rules::Answer;
use serde_json::{Value, json};

use crate::args::RunArgs;
use crate::evaluation::{self, Policies};
use crate::load::Loader;
use crate::requests::{self, Asked};

pub(crate) fn run(args: RunArgs, ui: &Ui) -> Result<Exit, Failure> {
    let RunArgs { policies, requests: from, record, output } = args;
    let loader = Loader::new(ui)?;
    let policies = loader.load_all(&policies)?;
    let asked = requests::read(&from, &policies.manifests())?;
    let mut exit = Exit::Ok;
    let mut documents = Vec::new();
    let mut lines = String::new();
    for asked in &asked {
        let answer = policies.evaluate(asked).map_err(|error| requests::wrong(&asked.source, error))?;
        for (place, _) in answer.not_asked() {
            ui.tell(Event::note(format!(
                "{place} has no opinion about {} and was not asked",
                asked.request.operation.word()
            )));
        }
        match output.output {
            Format::Json | Format::Yaml => documents.push(whole(asked, &answer, &policies)),
            Format::Name => ui.line(answer.answer.verdict.word()),
            format => ui.out(&shown(asked, &answer, &policies, format == Format::Wide)),
        }
        if record.is_some() {
            lines.extend(answer.records().iter().map(|record| record.canonical() + "\n"));
        }
        exit = worse(exit, answer.answer.verdict);
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
        (_, Answer::Deny | Answer::Hold | Answer::NoOpinion) => Exit::Findings,
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

fn shown(asked: &Asked, answer: &Final, policies: &Policies, wide: bool) -> String {
    let combined = &answer.answer;
    let mut lines = vec![format!("{}: {} ({})", asked.source, combined.verdict.word(), asked.about())];
    for given in &combined.reasons {
        let whose = given.policy.as_deref().map(|policy| format!("{policy} ")).unwrap_or_default();
        lines.push(format!("  {:<10} {whose}{}", given.verdict.word(), reason(&given.reason)));
    }
    for problem in &combined.errors {
        lines.push(format!(
            "  {:<10} {} {}: {}",
            "error",
            problem.policies.join(", "),
            problem.error.code(),
            evaluation::why(&problem.error)
        ));
    }
    for warning in &combined.warnings {
        lines.push(format!("  {:<10} {} {}", "warning", warning.policy, warning.message));
    }
    for edit in &combined.edits {
        lines.push(format!("  {:<10} {}", "edit", evaluation::edit(edit)));
    }
    for given in combined.due() {
        let obligation = &given.obligation;
        let within = obligation.within_seconds.map(|seconds| format!(" within {seconds} s")).unwrap_or_default();
        lines.push(format!("  {:<10} {} {}{within}", "then", given.policies.join(", "), obligation.name));
    }
    if let Some(seconds) = combined.ask_again_seconds {
        lines.push(format!("  {:<10} in {seconds} s", "again"));
    }
    if wide {
        for one in answer.asked() {
            let (place, version, outcome) = (one.place(), policies.version(one.place()), one.outcome());
            let (verdict, fuel) = (evaluation::word(&outcome.result), outcome.fuel);
            lines.push(format!("  {:<10} {place} {version}: {verdict}, fuel {fuel}, {} µs", "asked", one.micros()));
        }
        for (key, value) in &combined.audit {
            lines.push(format!("  {:<10} {key}={value}", "audit"));
        }
    }
    lines.iter().map(|line| clean(line) + "\n").collect()
}

fn whole(asked: &Asked, answer: &Final, policies: &Policies) -> Value {
    let said: Vec<Value> = answer
        .asked()
        .iter()
        .map(|one| {
            let mut shown = json!({
                "policy": *one.outcome().policy,
                "file": policies.file(one.place()),
                "digest": one.header().map(|header| &header.module_digest),
                "fuel": one.outcome().fuel,
                "micros": one.micros(),
            });
            match &one.outcome().result {
                Ok(decision) => shown["decision"] = json!(decision),
                Err(error) => shown["error"] = json!(error),
            }
            shown
        })
        .collect();
    json!({
        "source": asked.source,
        "id": asked.request.id,
        "operation": asked.request.operation,
        // With the patch that the hub would send to the API server.
        "answer": answer.answer,
        "policies": said,
    })
}
