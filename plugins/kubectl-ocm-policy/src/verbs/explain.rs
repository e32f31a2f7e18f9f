//! What each policy says, and why the answer is what it is.

use ocm_cli::{Format, Table, Ui, clean, document};
use ocm_core::{Exit, Failure};
use ocm_policy_abi::Manifest;
use ocm_policy_rules::{Answer, Combined};
use serde_json::{Value, json};

use crate::args::ExplainArgs;
use crate::ask::{self, Answers, ask_all};
use crate::load::Loader;
use crate::requests::{self, Asked};
use crate::verbs::run::reason;

const HEADINGS: &[&str] = &["POLICY", "VERSION", "VERDICT", "REASONS", "EDITS", "FUEL", "MICROSECONDS"];

pub(crate) fn run(args: ExplainArgs, ui: &Ui) -> Result<Exit, Failure> {
    let ExplainArgs { policies, requests: from, output } = args;
    let loader = Loader::new(ui)?;
    let policies = loader.load_all(&policies)?;
    let manifests: Vec<&Manifest> = policies.iter().map(|loaded| loaded.policy.manifest()).collect();
    let asked = requests::read(&from, &manifests)?;
    let mut documents = Vec::new();
    for (index, asked) in asked.iter().enumerate() {
        let answers = ask_all(&policies, asked);
        match output.output {
            Format::Json | Format::Yaml => documents.push(whole(asked, &answers)),
            Format::Name => ui.line(answers.combined.verdict.word()),
            format => {
                let gap = if index == 0 { "" } else { "\n" };
                ui.out(&format!("{gap}{}", shown(asked, &answers, format == Format::Wide)));
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

fn shown(asked: &Asked, answers: &Answers<'_>, wide: bool) -> String {
    let mut table = Table::new(HEADINGS);
    let list = |items: Vec<String>| if items.is_empty() { "-".to_owned() } else { items.join("; ") };
    for (loaded, said) in &answers.said {
        let Manifest { name, version, .. } = loaded.policy.manifest();
        let (reasons, edits) = match &said.outcome.result {
            Ok(decision) => (
                decision.reasons.iter().map(|given| if wide { reason(given) } else { given.code.clone() }).collect(),
                decision.edits.iter().map(ask::edit).collect(),
            ),
            Err(fault) => (vec![if wide { fault.to_string() } else { fault.code().to_owned() }], Vec::new()),
        };
        table.row([
            name,
            version,
            ask::word(&said.outcome.result),
            &list(reasons),
            &list(edits),
            &said.outcome.fuel.to_string(),
            &said.micros.to_string(),
        ]);
    }
    for loaded in &answers.silent {
        let Manifest { name, version, .. } = loaded.policy.manifest();
        table.row([name, version, "not asked", "-", "-", "-", "-"]);
    }
    let mut text = format!("{} ({})\n{}", clean(&asked.source), clean(&asked.about()), table.render());
    text += &format!("\n{}: {}\n", answers.combined.verdict.word(), clean(&why(&answers.combined)));
    for given in &answers.combined.reasons {
        text += &format!("  {}\n", clean(&reason(&given.reason)));
    }
    for problem in &answers.combined.errors {
        text += &format!("  {}: {}\n", problem.fault.code(), clean(&problem.fault.to_string()));
    }
    text
}

/// Why the answer is what it is, in one sentence.
fn why(combined: &Combined) -> String {
    let who = combined.deciding.join(" and ");
    let says = |one: &'static str, many: &'static str| if combined.deciding.len() == 1 { one } else { many };
    match combined.verdict {
        _ if combined.deciding.is_empty() => "no policy has an opinion, and what nobody allows is held".to_owned(),
        Answer::Deny => format!("{who} {}; a denial outweighs every other answer", says("denies", "deny")),
        Answer::Error => format!("{who} gave no usable answer; nothing is allowed past a policy that is broken"),
        Answer::Hold => format!("{who} {}; nobody denies, and a hold outweighs those who allow", says("holds", "hold")),
        Answer::Allow => format!("{who} {}, and nobody denies or holds", says("allows", "allow")),
    }
}

fn whole(asked: &Asked, answers: &Answers<'_>) -> Value {
    let mut policies: Vec<Value> = answers
        .said
        .iter()
        .map(|(_, said)| {
            let mut one = json!({
                "policy": said.outcome.policy,
                "verdict": ask::word(&said.outcome.result),
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
    policies.extend(answers.silent.iter().map(|loaded| {
        let Manifest { name, version, .. } = loaded.policy.manifest();
        json!({"policy": {"name": name, "version": version}, "verdict": "not-asked"})
    }));
    json!({
        "source": asked.source,
        "operation": asked.request.operation,
        "policies": policies,
        "answer": answers.combined,
        "why": why(&answers.combined),
    })
}
