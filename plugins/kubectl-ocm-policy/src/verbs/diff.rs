//! Where two versions of a policy differ.

use ocm_cli::{Format, Ui, clean, document};
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_policy_abi::{Decision, Manifest};
use ocm_policy_engine::PolicyError;
use serde_json::{Value, json};

use crate::args::DiffArgs;
use crate::evaluation::{self, Policies};
use crate::load::{Loader, Source};
use crate::requests::{self, Asked};
use crate::verbs::run::reason;

type Answer = Result<Decision, PolicyError>;

pub(crate) fn run(args: DiffArgs, ui: &Ui) -> Result<Exit, Failure> {
    let DiffArgs { old, new: newer, kind, requests: files, settings, asking, output } = args;
    let loader = Loader::new(ui)?;
    let load = |word: &str, beside: &Policies| {
        let mut one = Policies::default();
        let source = Source::parse(word, settings.as_deref(), kind)?;
        loader.load_as(&source, &mut one, |_, name| beside.place(name))?;
        Ok::<_, Failure>(one)
    };
    let nobody = Policies::default();
    let (old, mut new) = (load(&old, &nobody)?, load(&newer, &nobody)?);
    // Tables are named for both versions at once by the name that they share, unless they ask for other fields.
    if old.manifests().iter().any(|one| new.manifests().iter().any(|other| requests::clash(one, other))) {
        new = load(&newer, &old)?;
    }
    let manifests: Vec<&Manifest> = [&old, &new].into_iter().flat_map(Policies::manifests).collect();
    let asked = requests::read_files(&files, &asking, &manifests)?;
    let mut differences = Vec::new();
    let mut texts = Vec::new();
    for asked in &asked {
        let (one, other) = (answer(&old, asked)?, answer(&new, asked)?);
        let (was, is) = (lines(one.as_ref()), lines(other.as_ref()));
        let (gone, come) = (without(&was, &is), without(&is, &was));
        // In another order they say the same.
        if gone.is_empty() && come.is_empty() {
            continue;
        }
        let mut text = vec![format!("{} ({})", asked.source, asked.about())];
        text.extend(gone.iter().map(|line| format!("  - {line}")));
        text.extend(come.iter().map(|line| format!("  + {line}")));
        texts.push(text.iter().map(|line| clean(line) + "\n").collect::<String>());
        differences.push(json!({"source": asked.source, "old": value(one.as_ref()), "new": value(other.as_ref())}));
    }
    match output.output {
        format @ (Format::Json | Format::Yaml) => {
            let value = json!({"requests": asked.len(), "differ": differences.len(), "differences": differences});
            ui.out(&document(format, &value)?);
        }
        Format::Name => differences.iter().for_each(|one| ui.line(one["source"].as_str().unwrap_or_default())),
        Format::Table | Format::Wide => ui.out(&texts.concat()),
    }
    let count = asked.len();
    let noun = if count == 1 { "request" } else { "requests" };
    ui.tell(Event::note(match differences.len() {
        0 => format!("the same answers to {count} {noun}"),
        differ => format!("{differ} of {count} {noun} answered differently"),
    }));
    Ok(if differences.is_empty() { Exit::Ok } else { Exit::Findings })
}

/// None: the policy is not asked about such questions.
fn answer(policies: &Policies, asked: &Asked) -> Result<Option<Answer>, Failure> {
    let answer = policies.evaluate(asked).map_err(|error| requests::wrong(&asked.source, error))?;
    Ok(answer.asked().first().map(|one| one.outcome().result.clone()))
}

/// Everything that an answer says, one line each.
fn lines(answer: Option<&Answer>) -> Vec<String> {
    match answer {
        None => vec!["not asked".to_owned()],
        Some(Err(error)) => vec![format!("error {}: {error}", error.code())],
        Some(Ok(decision)) => {
            let mut lines = vec![decision.verdict.word().to_owned()];
            lines.extend(decision.reasons.iter().map(reason));
            lines.extend(decision.edits.iter().map(evaluation::edit));
            lines.extend(decision.warnings.iter().map(|warning| format!("warning: {warning}")));
            lines.extend(decision.obligations.iter().map(|wanted| format!("then: {}", json!(wanted))));
            lines.extend(decision.audit.iter().map(|(key, value)| format!("audit {key}={value}")));
            lines.extend(decision.ask_again_seconds.map(|seconds| format!("again in {seconds} s")));
            lines
        }
    }
}

/// The lines that are not among the others, or there more often than among them.
fn without<'l>(lines: &'l [String], others: &[String]) -> Vec<&'l str> {
    let mut left: Vec<&String> = others.iter().collect();
    let mut over = Vec::new();
    for line in lines {
        match left.iter().position(|other| *other == line) {
            Some(at) => _ = left.swap_remove(at),
            None => over.push(line.as_str()),
        }
    }
    over
}

fn value(answer: Option<&Answer>) -> Value {
    match answer {
        None => Value::Null,
        Some(Ok(decision)) => json!({ "decision": decision }),
        Some(Err(error)) => json!({ "error": error }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_in_another_order_are_the_same_and_repeated_ones_are_not() {
        let lines = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let (one, other) = (lines(&["deny", "A", "B", "A"]), lines(&["deny", "A", "A", "B"]));
        assert!(without(&one, &other).is_empty() && without(&other, &one).is_empty());
        let fewer = lines(&["deny", "B", "A", "C"]);
        assert_eq!((without(&one, &fewer), without(&fewer, &one)), (vec!["A"], vec!["C"]));
    }
}
