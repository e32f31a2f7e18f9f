//! The records of a hub: what would another version of a policy have decided?

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use ocm_cli::{Format, OutputArgs, Table, Ui, clean, document};
use ocm_core::order;
use ocm_core::{Event, Exit, Failure, Narrator, duration};
use ocm_flows::registrations::{RecordedDecision, recorded_decisions};
use ocm_kube::{ClientArgs, connect};
use ocm_policy_abi::Decision;
use ocm_policy_engine::{Comparison, PolicyError};
use ocm_policy_rules::Outcome;
use ocm_policy_rules::record::{Answered, Record};
use serde_json::{Value, json};

use super::candidates::{Candidate, candidates, unasked};
use crate::args::KindArgs;
use crate::evaluation::{self, Policies};
use crate::load::{self, Loader, refused};
use crate::processes::on_thread;

const HEADINGS: &[&str] = &["CLUSTER", "DECIDED", "POLICY", "RECORDED", "NOW"];

pub(crate) async fn run(
    since: &str,
    policies: Vec<String>,
    settings: Option<String>,
    kind: KindArgs,
    output: OutputArgs,
    client: &ClientArgs,
    ui: Arc<Ui>,
) -> Result<Exit, Failure> {
    let time = duration::parse(since).map_err(|error| Failure::usage(format!("--since: {error}")))?;
    let long = |_| Failure::usage("--since: nothing was decided so long ago");
    let from = Timestamp::now().checked_sub(time).map_err(long)?;
    let settings = settings.as_deref().map(load::settings).transpose()?;
    let hub = connect(&client.connection()?, ui.clone()).await?;
    let (decisions, without) = recorded_decisions(&hub, from).await?;
    on_thread(move |_| {
        let replayed = replay(decisions, &policies, settings.as_deref(), kind, &ui)?;
        show(&replayed, without, output.output, &ui)
    })
    .await
}

/// What came of it.
struct Replayed {
    /// Decisions of the policies that modules are named for.
    asked: usize,
    /// How many decisions other policies made.
    others: usize,
    differ: Vec<Differs>,
}

/// A decision that would be another one.
struct Differs {
    cluster: String,
    at: String,
    recorded: Outcome,
    now: Outcome,
}

fn replay(
    decisions: Vec<RecordedDecision>,
    words: &[String],
    settings: Option<&str>,
    kind: KindArgs,
    ui: &Ui,
) -> Result<Replayed, Failure> {
    let mut records = Vec::new();
    for RecordedDecision { cluster, at, record } in decisions {
        let record: Record = serde_json::from_str(&record)
            .map_err(|error| Failure::other(format!("the record of {cluster} cannot be read")).because(error))?;
        records.push((cluster, at, record));
    }
    let loader = Loader::new(ui)?;
    let candidates = candidates(&loader, words, kind, records.iter().map(|(_, _, record)| record))?;
    known(&candidates, &records)?;
    let mut loaded: BTreeMap<(String, String), Policies> = BTreeMap::new();
    let mut replayed = Replayed { asked: 0, others: 0, differ: Vec::new() };
    for (cluster, at, record) in records {
        let Some(Candidate { file, module, .. }) =
            candidates.iter().find(|candidate| candidate.name == record.policy.name)
        else {
            replayed.others += 1;
            continue;
        };
        let settings = settings.unwrap_or(&record.settings);
        let own = (record.policy.name.clone(), settings.to_owned());
        if !loaded.contains_key(&own) {
            let mut one = Policies::default();
            loader
                .policy(module, settings, |_| record.policy.name.clone())
                .and_then(|policy| one.add(file, policy))
                .map_err(|error| refused(file, &error))?;
            loaded.insert(own.clone(), one);
        }
        replayed.asked += 1;
        let now = again(&loaded[&own], &record, &cluster)?;
        let result = match record.answer {
            Answered::Decision(decision) => Ok(decision),
            Answered::Error(error) => Err(error),
        };
        let recorded = Outcome { policy: Arc::new(record.policy), result, fuel: record.fuel };
        let one = Comparison { slot: String::new(), active: recorded, candidate: now };
        if one.differs() {
            replayed.differ.push(Differs { cluster, at, recorded: one.active, now: one.candidate });
        }
    }
    Ok(replayed)
}

/// Modules of policies that decided nothing are a mistake in a name, unless nothing was decided at all.
fn known(candidates: &[Candidate], records: &[(String, String, Record)]) -> Result<(), Failure> {
    let decided = |name: &str| records.iter().any(|(_, _, record)| record.policy.name == name);
    match candidates.iter().find(|candidate| !decided(&candidate.name)) {
        Some(unknown) if !records.is_empty() => {
            let mut names: Vec<&str> = records.iter().map(|(_, _, record)| record.policy.name.as_str()).collect();
            order::sort(&mut names);
            names.dedup();
            let sentence = format!("no decision of that time is of the policy {}", unknown.name);
            Err(Failure::usage(sentence).hint(format!(
                "say whose module it is: --policy POLICY={}; decisions are of {}",
                unknown.file.display(),
                names.join(", ")
            )))
        }
        _ => Ok(()),
    }
}

/// What is said now. A policy that does not judge such requests any more has no opinion.
fn again(policies: &Policies, record: &Record, cluster: &str) -> Result<Outcome, Failure> {
    let place = format!("the decision about {cluster}");
    let answer = policies.again(&record.request).map_err(|error| unasked(&place, &error))?;
    let silent = || Outcome { policy: Arc::new(record.policy.clone()), result: Ok(Decision::default()), fuel: 0 };
    let now = answer.asked().first().map_or_else(silent, |one| one.outcome().clone());
    Ok(if record.only_objects { now.without_allow() } else { now })
}

fn show(replayed: &Replayed, without: usize, format: Format, ui: &Ui) -> Result<Exit, Failure> {
    let Replayed { asked, others, differ } = replayed;
    match format {
        Format::Json | Format::Yaml => {
            let list: Vec<Value> = differ.iter().map(whole).collect();
            let value = json!({
                "decisions": asked, "differ": differ.len(), "ofOtherPolicies": others, "withoutRecord": without,
                "differences": list,
            });
            ui.out(&document(format, &value)?);
        }
        Format::Name => differ.iter().for_each(|one| ui.line(&one.cluster)),
        Format::Table | Format::Wide if differ.is_empty() => {}
        Format::Table | Format::Wide => {
            let mut table = Table::new(HEADINGS);
            for one in differ {
                let said = |outcome: &Outcome| clean(&said(&outcome.result, format == Format::Wide));
                let policy = one.recorded.policy.name.as_str();
                table.row([&one.cluster, &one.at, policy, &said(&one.recorded), &said(&one.now)]);
            }
            ui.out(&table.render());
        }
    }
    if *others > 0 {
        ui.tell(Event::note(format!("{others} of the decisions are of policies that no module is named for")));
    }
    if without > 0 {
        ui.tell(Event::note(format!("of {without} more decisions no record is kept")));
    }
    ui.tell(Event::note(match (asked, differ.len()) {
        (0, _) => "nothing was decided in that time".to_owned(),
        (1, 0) => "the one decision would be the same".to_owned(),
        (all, 0) => format!("all {all} decisions would be the same"),
        (all, some) => format!("{some} of {all} decisions would be others"),
    }));
    Ok(if differ.is_empty() { Exit::Ok } else { Exit::Findings })
}

/// The verdict with what it is said for, or with what follows.
fn said(result: &Result<Decision, PolicyError>, wide: bool) -> String {
    let verdict = evaluation::word(result);
    let more: Vec<String> = match result {
        Err(error) => vec![if wide { error.to_string() } else { error.code().to_owned() }],
        Ok(decision) => {
            let reasons = decision.reasons.iter();
            let reason =
                |one: &ocm_policy_abi::Reason| if wide { super::super::run::reason(one) } else { one.code.clone() };
            reasons.map(reason).chain(decision.edits.iter().map(evaluation::edit)).collect()
        }
    };
    if more.is_empty() { verdict.to_owned() } else { format!("{verdict}: {}", more.join("; ")) }
}

fn whole(one: &Differs) -> Value {
    let said = |outcome: &Outcome| match &outcome.result {
        Ok(decision) => json!({"verdict": decision.verdict, "decision": decision}),
        Err(error) => json!({"verdict": "error", "error": error}),
    };
    json!({
        "cluster": one.cluster, "at": one.at, "policy": one.recorded.policy.name,
        "recorded": said(&one.recorded), "now": said(&one.now),
    })
}
