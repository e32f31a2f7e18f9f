//! What policies of a hub are, whether they are in force, and which clusters wait for them.

use std::fmt::Write as _;
use std::sync::Arc;

use jiff::Timestamp;
use ocm_api::policy::{
    CandidateStatus, EditGrant, HubPolicy, HubPolicySpec, MAX_FUEL, MAX_MEMORY_BYTES, MatchCondition, Module,
    PolicyCandidate, PolicyDecisions, PolicyMatch, PolicyOperation,
};
use ocm_cli::list::{NONE, age};
use ocm_cli::{Format, Table, Ui, clean, document, object_list, words};
use ocm_core::hub_policy::{Observed, Tally, next_step, observed};
use ocm_core::{Exit, Failure};
use ocm_flows::policies::{Described, describe};
use ocm_kube::connect;
use serde_json::{Value, json};

use super::inspect::size;
use super::list::{mode, reference};
use crate::args::hub::DescribeArgs;

/// How many of the clusters that wait are named for people.
const NAMED: usize = 20;

pub(crate) async fn run(args: DescribeArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let DescribeArgs { names, output, client } = args;
    let hub = connect(&client.connection()?, ui.clone()).await?;
    let described = describe(&hub, &names).await?;
    match output.output {
        format @ (Format::Json | Format::Yaml) => {
            let mut all: Vec<Value> = described.iter().map(whole).collect();
            let value = if all.len() == 1 { all.remove(0) } else { object_list(all) };
            ui.out(&document(format, &value)?);
        }
        Format::Name => described.iter().for_each(|one| ui.line(&reference(one.row.name()))),
        Format::Table | Format::Wide => {
            let now = Timestamp::now();
            let texts: Result<Vec<String>, Failure> = described.iter().map(|one| text(one, now)).collect();
            ui.out(&texts?.join("\n\n"));
        }
    }
    Ok(Exit::Ok)
}

/// The object, and what became of the registrations.
fn whole(described: &Described) -> Value {
    let policy = &described.row.object;
    let mut object = serde_json::to_value(policy).unwrap_or_default();
    let Some(members) = object.as_object_mut() else { return object };
    if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    let registrations = match &described.tally {
        Ok(tally) => json!({
            "registrations": tally.registrations, "asked": tally.asked(), "allowed": tally.allowed, "held": tally.held,
            "denied": tally.denied, "errors": tally.errors, "noOpinion": tally.no_opinion,
            "ofFormerModule": tally.former,
            "waiting": tally.waiting.iter().map(|one| json!({
                "cluster": one.cluster, "verdict": one.verdict.as_str(), "codes": one.codes,
            })).collect::<Vec<_>>(),
        }),
        Err(failure) => json!({ "error": failure.to_string() }),
    };
    members.insert("registrations".to_owned(), registrations);
    members.insert("statusIsCurrent".to_owned(), json!(observed(policy) == Observed::Current));
    members.insert("next".to_owned(), json!(next_step(policy, waits(described)).map(|hint| words(&hint))));
    object
}

fn waits(described: &Described) -> bool {
    described.tally.as_ref().is_ok_and(|tally| !tally.waiting.is_empty())
}

/// Names and values, as `kubectl describe` has them.
fn text(described: &Described, now: Timestamp) -> Result<String, Failure> {
    let policy = &described.row.object;
    let (spec, status) = (&policy.spec, policy.status.clone().unwrap_or_default());
    let digest = |digest: Option<&String>| digest.map_or_else(|| NONE.to_owned(), |digest| format!("sha256:{digest}"));
    let mut text = String::new();
    let mut row = |name: &str, value: &str| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", format!("{name:<17} {}", clean(value)).trim_end());
    };
    row("Name:", described.row.name());
    row("Age:", &age(now, described.row.created()));
    row("Module:", &module(policy));
    row("Wanted digest:", &spec.sha256.as_ref().map_or_else(|| "any".to_owned(), |digest| format!("sha256:{digest}")));
    row("Digest in force:", &digest(status.sha256.as_ref()));
    row("Former digest:", &digest(status.previous_sha256.as_ref()));
    row("Kind:", status.kind.as_deref().unwrap_or(NONE));
    if !status.operations.is_empty() {
        let judged: Vec<&str> = status.operations.iter().map(PolicyOperation::as_str).collect();
        row("Judges:", &judged.join(", "));
    }
    row("Asked about:", &asked_about(spec));
    row("Mode:", &mode(policy));
    row("On error:", spec.on_error.as_str());
    row("Break-glass:", spec.break_glass.as_str());
    row("Auto-approve:", if spec.auto_approve { "yes" } else { "no" });
    if let Some(candidate) = &spec.candidate {
        row("Candidate:", &tried(candidate, status.candidate.as_ref()));
        if let Some(last) = status.candidate.as_ref().and_then(|seen| seen.last_difference.as_ref()) {
            row("Last difference:", last);
        }
    }
    let settings = spec.settings.as_ref().filter(|settings| !settings.is_empty());
    match settings {
        None => row("Settings:", NONE),
        Some(settings) => {
            let lines = document(Format::Yaml, settings)?;
            for (index, line) in lines.trim_end().lines().enumerate() {
                row(if index == 0 { "Settings:" } else { "" }, line);
            }
        }
    }
    let grants: Vec<String> = spec.grants.edits.iter().map(grant).collect();
    let changes = if grants.is_empty() { "nothing".to_owned() } else { grants.join(", ") };
    row("May change:", &changes);
    row("Fuel:", &format!("at most {}", spec.limits.fuel.unwrap_or(MAX_FUEL)));
    row("Memory:", &format!("at most {}", size(spec.limits.memory_bytes.unwrap_or(MAX_MEMORY_BYTES))));
    if let Some(decisions) = &status.decisions {
        row("Joins judged:", &judged(decisions));
    }
    row("Status:", &of_which(policy));
    if !status.conditions.is_empty() {
        text += "Conditions:\n";
        let mut table = Table::new(&["TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"]);
        for condition in &status.conditions {
            table.row([
                condition.type_.as_str(),
                &condition.status,
                &age(now, Some(condition.last_transition_time.0)),
                &condition.reason,
                &condition.message,
            ]);
        }
        table.render().lines().for_each(|line| text += &format!("  {line}\n"));
    }
    text += &match &described.tally {
        Ok(tally) => registrations(tally),
        Err(failure) => format!("{:<17} unknown: {}\n", "Registrations:", clean(&failure.to_string())),
    };
    if let Some(hint) = next_step(policy, waits(described)) {
        text += &format!("{:<17} {}\n", "Next:", clean(&words(&hint)));
    }
    Ok(text)
}

/// What the joins came to that the controller had it judge.
fn judged(decisions: &PolicyDecisions) -> String {
    let PolicyDecisions { allowed, held, denied, errors, no_opinion, p50_micros, p99_micros, p99_fuel } = decisions;
    format!(
        "{allowed} allowed, {held} held, {denied} denied, {errors} errors, {no_opinion} no opinion; half of the last within \
         {p50_micros} µs, 99 of a hundred within {p99_micros} µs and {p99_fuel} fuel"
    )
}

/// What the policy is asked about, of what its module judges.
fn asked_about(spec: &HubPolicySpec) -> String {
    let PolicyMatch { signers, requester_groups, cluster_selector, conditions } = &spec.matches;
    let operations: Vec<&str> = spec.operations.iter().map(PolicyOperation::as_str).collect();
    let mut parts = vec![match operations.as_slice() {
        [] => "all that its module judges".to_owned(),
        some => some.join(", "),
    }];
    let mut narrow = |what: &str, words: &[String]| {
        if !words.is_empty() {
            parts.push(format!("{what} {}", words.join(", ")));
        }
    };
    narrow("signers", signers);
    narrow("requesters of the groups", requester_groups);
    if let Some(selector) = cluster_selector {
        let labels = selector.match_labels.iter().map(|(key, value)| format!("{key}={value}"));
        let expressions = selector.match_expressions.iter().map(|one| {
            let values = if one.values.is_empty() { String::new() } else { format!(" ({})", one.values.join(", ")) };
            format!("{} {}{values}", one.key, one.operator)
        });
        narrow("clusters with", &labels.chain(expressions).collect::<Vec<_>>());
    }
    let conditions = conditions.iter().map(|MatchCondition { name, expression }| format!("{name} ({expression})"));
    narrow("conditions", &conditions.collect::<Vec<_>>());
    parts.join("; ")
}

/// What a candidate is, and what came of it.
fn tried(candidate: &PolicyCandidate, seen: Option<&CandidateStatus>) -> String {
    let what = match (&candidate.module, &candidate.settings) {
        (Some(_), Some(_)) => "another module with other settings",
        (Some(_), None) => "another module",
        (None, _) => "other settings",
    };
    let share = match candidate.share {
        0 => "decides for none".to_owned(),
        share => format!("decides for {share} of a hundred clusters"),
    };
    let came = match seen {
        None => "the policy controller has not looked at it".to_owned(),
        Some(CandidateStatus { failed: Some(why), .. }) => format!("is not tried: {why}"),
        Some(seen) => format!("differs for {} of the {} clusters it was compared for", seen.differed, seen.compared),
    };
    format!("{what}; {share}; {came}")
}

/// Which version the status is of.
fn of_which(policy: &HubPolicy) -> String {
    match observed(policy) {
        Observed::Current => "of the newest version".to_owned(),
        Observed::Never => "none: the policy controller has not looked at it".to_owned(),
        Observed::Former(generation) => format!(
            "of generation {generation}, and the newest is {}: the policy controller has not looked at it since",
            policy.metadata.generation.unwrap_or_default()
        ),
    }
}

fn registrations(tally: &Tally) -> String {
    let mut text = format!(
        "{:<17} asked about {} of {}: {} allowed, {} held, {} denied, {} errors, {} no opinion\n",
        "Registrations:",
        tally.asked(),
        tally.registrations,
        tally.allowed,
        tally.held,
        tally.denied,
        tally.errors,
        tally.no_opinion,
    );
    if tally.former > 0 {
        text += &format!("{:<17} {} of these answers are of another module than the one in force\n", "", tally.former);
    }
    if tally.waiting.is_empty() {
        return text;
    }
    text += "Waiting for it:\n";
    let mut table = Table::new(&["CLUSTER", "VERDICT", "REASONS"]);
    for one in tally.waiting.iter().take(NAMED) {
        let codes = one.codes.join(",");
        table.row([one.cluster.as_str(), one.verdict.as_str(), if codes.is_empty() { NONE } else { &codes }]);
    }
    table.render().lines().for_each(|line| text += &format!("  {line}\n"));
    match tally.waiting.len().checked_sub(NAMED) {
        Some(more @ 1..) => text + &format!("  and {more} more: -o json names all\n"),
        _ => text,
    }
}

/// Where the module comes from.
fn module(policy: &HubPolicy) -> String {
    match policy.spec.module.module() {
        Some(Module::Builtin(name)) => format!("builtin {name}"),
        Some(Module::ConfigMap(entry)) => {
            format!("key {} of ConfigMap {}/{}", entry.key, entry.namespace, entry.name)
        }
        Some(Module::Secret(entry)) => format!("key {} of Secret {}/{}", entry.key, entry.namespace, entry.name),
        Some(Module::Oci(image)) => {
            let signed = if image.signature.is_some() { ", signed" } else { "" };
            format!("image {}{signed}", image.image)
        }
        Some(Module::Url(file)) => file.url.clone(),
        Some(Module::Path(path)) => format!("file {path} of the pods"),
        _ => "of a source that this release does not know".to_owned(),
    }
}

fn grant(grant: &EditGrant) -> String {
    // EditTarget's words are those of the HubPolicy.
    match &grant.key {
        Some(key) => format!("{} {key}", grant.edit),
        None => grant.edit.to_string(),
    }
}
