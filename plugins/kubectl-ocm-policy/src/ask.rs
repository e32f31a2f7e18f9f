//! Asking policies, in the way of a hub.

use std::time::Instant;

use ocm_core::Failure;
use ocm_policy_abi::{Decision, Edit, TaintEffect};
use ocm_policy_engine::{Fault, Outcome, Question};
use ocm_policy_rules::combine::{Combined, combine};
use ocm_policy_rules::record::{self, Circumstances, Record};

use crate::load::Loaded;
use crate::requests::Asked;

/// What one policy said.
pub(crate) struct Said {
    pub(crate) outcome: Outcome,
    pub(crate) micros: u64,
}

/// Asks one policy.
pub(crate) fn ask(loaded: &Loaded, question: &Question) -> Said {
    let policy = &loaded.policy;
    let begun = Instant::now();
    let answered = policy.decide(question);
    let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
    Said { outcome: answered.outcome.clone(), micros }
}

/// What all policies said about one question.
pub(crate) struct Answers<'l> {
    /// Those that have an opinion about such questions.
    pub(crate) said: Vec<(&'l Loaded, Said)>,
    /// Those that are not asked about such questions.
    pub(crate) silent: Vec<&'l Loaded>,
    pub(crate) combined: Combined,
}

/// Asks all policies that judge such questions, and combines what they say.
pub(crate) fn ask_all<'l>(policies: &'l [Loaded], asked: &Asked) -> Answers<'l> {
    let operation = asked.request.operation;
    let (judges, silent): (Vec<_>, Vec<_>) = policies.iter().partition(|loaded| loaded.policy.judges(operation));
    let said: Vec<_> = judges.into_iter().map(|loaded| (loaded, ask(loaded, &asked.question))).collect();
    let outcomes: Vec<Outcome> = said.iter().map(|(_, said)| said.outcome.clone()).collect();
    Answers { combined: combine(&outcomes), said, silent }
}

/// Writes down what was said.
///
/// # Errors
/// When the policy could not have been asked.
pub(crate) fn record(loaded: &Loaded, question: &Question, said: &Said) -> Result<Record, Failure> {
    let policy = &loaded.policy;
    let request = question.text_for(policy.manifest()).map_err(|fault| Failure::other(fault.to_string()))?;
    let limits = policy.limits();
    let revision = revision(&request);
    let circumstances = Circumstances {
        module_sha256: policy.header().module_digest.clone(),
        settings: loaded.settings.clone(),
        request: request.to_string(),
        evidence_revision: revision,
        limits: record::Limits {
            fuel: limits.fuel,
            memory_bytes: limits.memory_bytes,
            millis: limits.ticks,
            table_elements: limits.table_elements,
            host_bytes: limits.host_bytes,
        },
        micros: Some(said.micros),
    };
    Ok(Record::new(&said.outcome, circumstances))
}

/// The word for what came of asking.
pub(crate) fn word(result: &Result<Decision, Fault>) -> &'static str {
    result.as_ref().map_or("error", |decision| decision.verdict.word())
}

/// An edit in a few words.
pub(crate) fn edit(edit: &Edit) -> String {
    let effect = |effect: &TaintEffect| match effect {
        TaintEffect::NoSelect => "NoSelect",
        TaintEffect::PreferNoSelect => "PreferNoSelect",
        TaintEffect::NoSelectIfNew => "NoSelectIfNew",
    };
    match edit {
        Edit::SetLabel { key, value } => format!("set label {key}={value}"),
        Edit::RemoveLabel { key } => format!("remove label {key}"),
        Edit::SetAnnotation { key, value } => format!("set annotation {key}={value}"),
        Edit::RemoveAnnotation { key } => format!("remove annotation {key}"),
        Edit::AddTaint { key, value, effect: e } => format!("add taint {key}={value}:{}", effect(e)),
        Edit::RemoveTaint { key } => format!("remove taint {key}"),
        Edit::SetClusterSet { name } => format!("set cluster set {name}"),
        Edit::SetLeaseDuration { seconds } => format!("set lease duration {seconds} s"),
    }
}

/// The state of the hub that the evidence of a request is of: the same for all tables.
fn revision(request: &str) -> Option<String> {
    let request: serde_json::Value = serde_json::from_str(request).ok()?;
    let table = request.get("evidence")?.as_object()?.values().next()?;
    Some(table.get("revision")?.as_str()?.to_owned())
}
