//! What each policy says, and why the answer is what it is.

use std::path::Path;

use ocm_cli::{Format, Table, Ui, clean, document};
use ocm_core::name::is_dns_label;
use ocm_core::{Exit, Failure};
use ocm_policy_engine::Final;
use ocm_policy_rules::{Answer, Combined};
use serde_json::{Value, json};

use crate::args::{AskingArgs, ExplainArgs, PoliciesArgs, RequestArgs};
use crate::evaluation::{self, Policies};
use crate::load::Loader;
use crate::requests::{self, Asked};
use crate::verbs::run::reason;

const HEADINGS: &[&str] = &["POLICY", "VERSION", "VERDICT", "REASONS", "EDITS", "FUEL", "MICROSECONDS"];

pub(crate) fn run(args: ExplainArgs, ui: &Ui) -> Result<Exit, Failure> {
    let ExplainArgs { kind, subjects, settings, files, hypothetical: _, about, record: _, output, client } = args;
    if client.is_given() {
        return Err(Failure::usage("with -f modules are asked on this machine, and no cluster").hint(
            "leave the flags of the connection out, or lay the files over the objects of a hub: --hypothetical",
        ));
    }
    let is_no_file = |word: &&String| is_dns_label(word) && !Path::new(word).exists();
    if let Some(name) = subjects.iter().find(is_no_file) {
        return Err(Failure::usage(format!("{name} is no file, and with -f modules are asked"))
            .hint(format!("to explain a cluster of the hub, leave -f out: kubectl ocm policy explain {name}")));
    }
    let from = RequestArgs { files, asking: AskingArgs { about, as_group: client.as_group } };
    let loader = Loader::new(ui)?;
    let policies = loader.load_all(&PoliciesArgs { kind, policies: subjects, settings })?;
    let asked = requests::read(&from, &policies.manifests())?;
    let mut documents = Vec::new();
    for (index, asked) in asked.iter().enumerate() {
        let answer = policies.evaluate(asked).map_err(|error| requests::wrong(&asked.source, error))?;
        match output.output {
            Format::Json | Format::Yaml => documents.push(whole(asked, &answer, &policies)),
            Format::Name => ui.line(answer.answer.verdict.word()),
            format => {
                let gap = if index == 0 { "" } else { "\n" };
                ui.out(&format!("{gap}{}", shown(asked, &answer, &policies, format == Format::Wide)));
            }
        }
    }
    if matches!(output.output, Format::Json | Format::Yaml) {
        let value = if documents.len() == 1 { documents.remove(0) } else { json!({ "answers": documents }) };
        ui.out(&document(output.output, &value)?);
    }
    // It was asked for the why, and that was found, whatever the answer.
    Ok(Exit::Ok)
}

fn shown(asked: &Asked, answer: &Final, policies: &Policies, wide: bool) -> String {
    let combined = &answer.answer;
    let mut table = Table::new(HEADINGS);
    let list = |items: Vec<String>| if items.is_empty() { "-".to_owned() } else { items.join("; ") };
    for one in answer.asked() {
        let outcome = one.outcome();
        let (reasons, edits) = match &outcome.result {
            Ok(decision) => (
                decision.reasons.iter().map(|given| if wide { reason(given) } else { given.code.clone() }).collect(),
                decision.edits.iter().map(evaluation::edit).collect(),
            ),
            Err(error) => (vec![if wide { error.to_string() } else { error.code().to_owned() }], Vec::new()),
        };
        table.row([
            one.place(),
            policies.version(one.place()),
            evaluation::word(&outcome.result),
            &list(reasons),
            &list(edits),
            &outcome.fuel.to_string(),
            &one.micros().to_string(),
        ]);
    }
    for (place, _) in answer.not_asked() {
        table.row([place, policies.version(place), "not asked", "-", "-", "-", "-"]);
    }
    let mut text = format!("{} ({})\n{}", clean(&asked.source), clean(&asked.about()), table.render());
    text += &format!("\n{}: {}\n", combined.verdict.word(), clean(&why(combined)));
    for given in &combined.reasons {
        text += &format!("  {}\n", clean(&reason(&given.reason)));
    }
    for problem in &combined.errors {
        text += &format!("  {}: {}\n", problem.error.code(), clean(&evaluation::why(&problem.error)));
    }
    text
}

/// Why the answer is what it is, in one sentence.
pub(super) fn why(combined: &Combined) -> String {
    let who = combined.deciding.join(" and ");
    let says = |one: &'static str, many: &'static str| if combined.deciding.len() == 1 { one } else { many };
    match combined.verdict {
        Answer::NoOpinion => "no policy has an opinion, and what nobody allows does not happen by itself".to_owned(),
        Answer::Deny => format!("{who} {}; a denial outweighs every other answer", says("denies", "deny")),
        Answer::Error => format!("{who} gave no usable answer; nothing is allowed past a policy that is broken"),
        Answer::Hold => format!("{who} {}; nobody denies, and a hold outweighs those who allow", says("holds", "hold")),
        Answer::Allow => format!("{who} {}, and nobody denies or holds", says("allows", "allow")),
    }
}

fn whole(asked: &Asked, answer: &Final, policies: &Policies) -> Value {
    let mut said: Vec<Value> = answer
        .asked()
        .iter()
        .map(|one| {
            let outcome = one.outcome();
            let mut shown = json!({
                "policy": *outcome.policy,
                "verdict": evaluation::word(&outcome.result),
                "fuel": outcome.fuel,
                "micros": one.micros(),
            });
            match &outcome.result {
                Ok(decision) => shown["decision"] = json!(decision),
                Err(error) => shown["error"] = json!(error),
            }
            shown
        })
        .collect();
    said.extend(answer.not_asked().iter().map(
        |(place, _)| json!({"policy": {"name": place, "version": policies.version(place)}, "verdict": "not-asked"}),
    ));
    json!({
        "source": asked.source,
        "operation": asked.request.operation,
        "policies": said,
        "answer": answer.answer,
        "why": why(&answer.answer),
    })
}
