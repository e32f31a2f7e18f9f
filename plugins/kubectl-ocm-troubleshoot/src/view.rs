//! What a report looks like.

use std::collections::BTreeMap;

use ocm_checks::chain::Way;
use ocm_checks::finding::{Finding, Id, Next, Severity};
use ocm_checks::judge::{Report, Unknown};
use ocm_checks::page;
use ocm_checks::registry::{check, checks};
use ocm_checks::snapshot::{Side, Snapshot};
use ocm_cli::{Format, Table, Ui, clean, document};
use ocm_core::{Event, Failure, Narrator};
use serde_json::{Value, json};

use crate::args::{FailOn, ReportFormat};
use crate::ci;

/// How many clusters of a group are named.
const NAMED: usize = 5;

/// Prints the table of all checks.
pub(crate) fn list(ui: &Ui, format: ReportFormat) -> Result<(), Failure> {
    let entry = |check: &ocm_checks::registry::Check| {
        json!({ "id": check.id, "slug": check.slug, "title": check.title, "category": check.category.title(),
            "severity": check.severity, "explainedBy": check.after })
    };
    match format {
        ReportFormat::Table | ReportFormat::Wide => {
            let mut table = Table::new(&["ID", "AT MOST", "WHAT IS SO WHEN ALL IS WELL", "CATEGORY"]);
            for check in checks() {
                let id = check.id.to_string();
                table.row([id.as_str(), page::severity(check.severity), check.title, check.category.title()]);
            }
            ui.out(&table.render());
        }
        ReportFormat::Name => checks().for_each(|check| ui.line(&check.id.to_string())),
        ReportFormat::Jsonl => checks().for_each(|check| ui.line(&entry(check).to_string())),
        ReportFormat::Markdown => ui.out(&page::index()),
        ReportFormat::Yaml => ui.out(&document(Format::Yaml, &checks().map(entry).collect::<Vec<_>>())?),
        ReportFormat::Json => ui.out(&document(Format::Json, &checks().map(entry).collect::<Vec<_>>())?),
        ReportFormat::Junit | ReportFormat::Sarif => {
            return Err(Failure::usage("--list has no such format").hint("table, json, jsonl, yaml, name or markdown"));
        }
    }
    Ok(())
}

/// Prints the page of a check.
pub(crate) fn explain(ui: &Ui, id: Id) -> Result<(), Failure> {
    let check = check(id).ok_or_else(|| Failure::usage(format!("there is no check {id}")))?;
    ui.out(&page::page(check));
    Ok(())
}

/// The shortest form of a report: the first headline that matters.
pub(crate) fn headline(report: &Report) -> String {
    let stopped = report.clusters.iter().find(|standing| standing.way != Way::Done).or(report.clusters.first());
    match (stopped, report.findings.first()) {
        (Some(standing), _) => format!("{}: {}", standing.name, standing.headline),
        (None, Some(finding)) => finding.summary.clone(),
        (None, None) => "not everything could be checked".to_owned(),
    }
}

/// Prints a report.
pub(crate) fn report(
    ui: &Ui,
    format: ReportFormat,
    fail_on: FailOn,
    snapshot: &Snapshot,
    report: &Report,
) -> Result<(), Failure> {
    match format {
        ReportFormat::Table => people(ui, snapshot, report, false),
        ReportFormat::Wide => people(ui, snapshot, report, true),
        ReportFormat::Json => ui.out(&document(Format::Json, &whole(snapshot, report))?),
        ReportFormat::Yaml => ui.out(&document(Format::Yaml, &whole(snapshot, report))?),
        ReportFormat::Jsonl => {
            report.findings.iter().for_each(|finding| ui.line(&value(snapshot, finding).to_string()));
            ui.line(&summary(snapshot, report).to_string());
        }
        ReportFormat::Name => report.findings.iter().for_each(|finding| ui.line(&name(finding))),
        ReportFormat::Junit => ui.out(&ci::junit(report, fail_on)),
        ReportFormat::Sarif => ui.out(&document(Format::Json, &ci::sarif(report))?),
        ReportFormat::Markdown => ui.out(&markdown(snapshot, report)),
    }
    Ok(())
}

/// A finding as it is suppressed.
pub(crate) fn name(finding: &Finding) -> String {
    match &finding.cluster {
        Some(cluster) => format!("{}:{cluster}", finding.id),
        None => finding.id.to_string(),
    }
}

/// The word of the exit code, for programs.
fn verdict(report: &Report) -> &'static str {
    match (report.findings.first(), report.unknown.first()) {
        (Some(_), _) => "findings",
        (None, Some(_)) => "inconclusive",
        (None, None) => "ok",
    }
}

fn summary(snapshot: &Snapshot, report: &Report) -> Value {
    json!({
        "verdict": verdict(report), "observed": snapshot.observed, "counts": report.counts,
        "clusters": report.clusters, "unknown": report.unknown, "skipped": report.skipped,
        "suppressed": report.suppressed,
    })
}

/// A finding with its commands ready to be pasted.
fn value(snapshot: &Snapshot, finding: &Finding) -> Value {
    let mut value = serde_json::to_value(finding).unwrap_or_default();
    value["next"] = finding.next.iter().map(|next| words(snapshot, next)).collect();
    value["title"] = check(finding.id).map_or("", |check| check.title).into();
    value
}

fn whole(snapshot: &Snapshot, report: &Report) -> Value {
    let mut whole = summary(snapshot, report);
    whole["findings"] = report.findings.iter().map(|finding| value(snapshot, finding)).collect();
    whole
}

/// What to do next, as it is typed: with the context of its cluster.
pub(crate) fn words(snapshot: &Snapshot, next: &Next) -> String {
    match next {
        Next::Text(text) => text.clone(),
        Next::Command { side, line } => {
            let context = match side {
                Side::Hub => snapshot.hub.as_ref().and_then(|hub| hub.context.as_ref()),
                Side::Managed => snapshot.managed.as_ref().and_then(|managed| managed.context.as_ref()),
            };
            match context {
                Some(context) => format!("{line} --context {}", ocm_core::token::shell(context)),
                None => line.clone(),
            }
        }
    }
}

/// Findings of one check with one cause, over several clusters.
struct Group<'a> {
    first: &'a Finding,
    clusters: Vec<&'a str>,
}

/// Findings of the same check and cause together, in their order.
fn groups(findings: &[Finding]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut known: BTreeMap<(Id, Severity, &str), usize> = BTreeMap::new();
    for finding in findings {
        match &finding.cluster {
            None => groups.push(Group { first: finding, clusters: Vec::new() }),
            Some(cluster) => {
                let key = (finding.id, finding.severity, finding.cause.as_str());
                let index = *known.entry(key).or_insert_with(|| {
                    groups.push(Group { first: finding, clusters: Vec::new() });
                    groups.len() - 1
                });
                // Findings stand in the order of their clusters.
                if groups[index].clusters.last() != Some(&cluster.as_str()) {
                    groups[index].clusters.push(cluster);
                }
            }
        }
    }
    groups
}

fn some_names(names: &[&str]) -> String {
    let named = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(NAMED) {
        None | Some(0) => named,
        Some(more) => format!("{named} and {more} more"),
    }
}

fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// Where the clusters stand: a line each for a few, numbers for many.
fn headlines(report: &Report) -> Vec<String> {
    let unwell: Vec<_> = report.clusters.iter().filter(|standing| standing.way != Way::Done).collect();
    if report.clusters.len() <= NAMED {
        return report.clusters.iter().map(|standing| format!("{}: {}", standing.name, standing.headline)).collect();
    }
    let well = report.clusters.len() - unwell.len();
    let mut lines =
        vec![format!("{} clusters: {well} joined and available, {} not", report.clusters.len(), unwell.len())];
    if unwell.len() <= NAMED {
        lines.extend(unwell.iter().map(|standing| format!("{}: {}", standing.name, standing.headline)));
    }
    lines
}

/// The numbers at the end.
fn totals(report: &Report) -> String {
    let errors = report.at_least(Severity::Error).count();
    let warnings = report.findings.len() - errors;
    let counts = &report.counts;
    let mut text = format!("{}, {}", count(errors, "error"), count(warnings, "warning"));
    if !report.suppressed.is_empty() {
        text += &format!(", {} suppressed", report.suppressed.len());
    }
    text += &format!("; {} passed, {} left out", count(counts.passed, "check"), counts.skipped);
    if counts.unknown > 0 {
        text += &format!(", {} could not be checked", counts.unknown);
    }
    text
}

fn why_unknown(unknown: &Unknown) -> String {
    let ids: Vec<String> = unknown.ids.iter().map(ToString::to_string).collect();
    let mut text = format!("{} could not be checked: {}", ids.join(", "), unknown.trouble.message);
    if let Some(rule) = &unknown.trouble.rule {
        text += &format!("; this right would allow it: {rule}");
    }
    text
}

fn people(ui: &Ui, snapshot: &Snapshot, report: &Report, wide: bool) {
    let say = |text: String| ui.line(text.trim_end());
    headlines(report).into_iter().for_each(say);
    if report.clusters.is_empty() && report.findings.is_empty() {
        say("no cluster was looked at".to_owned());
    }
    let is_fleet = report.clusters.len() > 1;
    for Group { first, clusters } in groups(&report.findings) {
        ui.line("");
        let severity = page::severity(first.severity);
        let of = match (is_fleet, clusters.as_slice()) {
            (false, _) | (true, []) => String::new(),
            (true, [one]) => format!(" {one}"),
            (true, several) => format!(" {} clusters", several.len()),
        };
        say(format!("{} {severity}{of}: {}", first.id, first.summary));
        if clusters.len() > 1 {
            say(format!("  clusters: {}", some_names(&clusters)));
        }
        first.evidence.iter().for_each(|line| say(format!("  seen: {line}")));
        if !first.cause.is_empty() {
            say(format!("  because: {}", first.cause));
        }
        first.next.iter().for_each(|next| say(format!("  next: {}", words(snapshot, next))));
        if wide {
            first.objects.iter().for_each(|object| say(format!("  object: {object}")));
            let follows = |follows: &Finding| say(format!("  consequence: {} {}", follows.id, follows.summary));
            first.consequences.iter().for_each(follows);
        } else if !first.consequences.is_empty() {
            let ids: Vec<String> = first.consequences.iter().map(|follows| follows.id.to_string()).collect();
            say(format!("  explains: {}", some_names(&ids.iter().map(String::as_str).collect::<Vec<_>>())));
        }
    }
    ui.line("");
    say(totals(report));
    for unknown in &report.unknown {
        say(format!("  {}", why_unknown(unknown)));
    }
    if wide {
        for skipped in &report.skipped {
            let ids: Vec<String> = skipped.ids.iter().map(ToString::to_string).collect();
            say(format!("  left out, {}: {}", skipped.why, ids.join(", ")));
        }
        for suppressed in &report.suppressed {
            let (finding, reason) = (&suppressed.finding, &suppressed.reason);
            say(format!("  suppressed, {reason}: {} {}", name(finding), finding.summary));
        }
    }
    if let Some(finding) = report.findings.first() {
        ui.tell(Event::note(format!("more about a finding: kubectl ocm troubleshoot --explain {}", finding.id)));
    }
}

fn markdown(snapshot: &Snapshot, report: &Report) -> String {
    // What clusters say must not become markup.
    let quoted = |text: &str| clean(text).replace('`', "'");
    let mut text = String::new();
    for line in headlines(report) {
        text += &format!("**`{}`**\n\n", quoted(&line));
    }
    for Group { first, clusters } in groups(&report.findings) {
        text += &format!("### {} {}: `{}`\n\n", first.id, page::severity(first.severity), quoted(&first.summary));
        if clusters.len() > 1 {
            text += &format!("{} clusters: `{}`\n\n", clusters.len(), quoted(&some_names(&clusters)));
        }
        for line in &first.evidence {
            text += &format!("- `{}`\n", quoted(line));
        }
        if !first.cause.is_empty() {
            text += &format!("\nBecause `{}`.\n", quoted(&first.cause));
        }
        let commands: Vec<String> = first.next.iter().map(|next| clean(&words(snapshot, next))).collect();
        if !commands.is_empty() {
            text += &format!("\n```text\n{}\n```\n", commands.join("\n").replace("```", "'''"));
        }
        text.push('\n');
    }
    text += &format!("{}\n", totals(report));
    for unknown in &report.unknown {
        text += &format!("\n- `{}`\n", quoted(&why_unknown(unknown)));
    }
    text
}
