//! What a report looks like.

use std::collections::BTreeMap;

use ocm_checks::changes::Change;
use ocm_checks::finding::{Finding, Id, Next, Severity};
use ocm_checks::fix;
use ocm_checks::judge::Report;
use ocm_checks::page;
use ocm_checks::registry::{check, checks, of_snapshots};
use ocm_checks::snapshot::{Side, Snapshot};
use ocm_cli::findings::ci::{self, Outcome};
use ocm_cli::findings::markdown;
use ocm_cli::{Format, Table, Ui, clean, document};
use ocm_core::{Event, Exit, Failure, Narrator, Reason};
use serde_json::{Value, json};

use crate::args::{FailOn, ReportFormat};
use crate::exit::exit;
use crate::html;
use crate::words::{contexts, headlines, some_names, totals, why_all_unknown, why_unknown, words};

/// Prints the table of all checks.
pub(crate) fn list(ui: &Ui, format: ReportFormat) -> Result<(), Failure> {
    let entry = |check: &ocm_checks::registry::Check| {
        json!({ "id": check.id, "slug": check.slug, "title": check.title, "category": check.category.title(),
            "severity": check.severity, "explainedBy": check.after, "fixable": fix::of(check.id).is_some() })
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
        ReportFormat::Jsonl => {
            ui.out(&checks().map(|check| Format::json_line(&entry(check))).collect::<Result<String, _>>()?)
        }
        ReportFormat::Markdown => ui.out(&page::index()),
        ReportFormat::Yaml => ui.out(&document(Format::Yaml, &checks().map(entry).collect::<Vec<_>>())?),
        ReportFormat::Json => ui.out(&document(Format::Json, &checks().map(entry).collect::<Vec<_>>())?),
        ReportFormat::Junit | ReportFormat::Sarif | ReportFormat::Html => {
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

/// Prints a report.
pub(crate) fn report(
    ui: &Ui,
    format: ReportFormat,
    fail_on: FailOn,
    snapshot: &Snapshot,
    report: &Report,
) -> Result<(), Failure> {
    let counts = |finding: &Finding| fail_on.least().is_some_and(|least| finding.severity >= least);
    match format {
        ReportFormat::Table | ReportFormat::Wide => {
            ui.out(&people(snapshot, report, format == ReportFormat::Wide));
            if let Some(finding) = report.findings.first() {
                ui.tell(Event::note(format!(
                    "more about a finding: kubectl ocm troubleshoot --explain {}",
                    finding.id
                )));
            }
        }
        ReportFormat::Json => ui.out(&document(Format::Json, &whole(snapshot, report, fail_on))?),
        ReportFormat::Yaml => ui.out(&document(Format::Yaml, &whole(snapshot, report, fail_on))?),
        ReportFormat::Jsonl => {
            let contexts = contexts(snapshot);
            let findings = report.findings.iter().map(|finding| Format::json_line(&contexts.document(finding)));
            let summary = std::iter::once_with(|| Format::json_line(&summary(snapshot, report, fail_on)));
            ui.out(&findings.chain(summary).collect::<Result<String, _>>()?);
        }
        ReportFormat::Name => report.findings.iter().for_each(|finding| ui.line(&finding.name())),
        ReportFormat::Junit => ui.out(&ci::junit(&outcome(report, fail_on, &counts))),
        ReportFormat::Sarif => ui.out(&document(Format::Json, &ci::sarif(&outcome(report, fail_on, &counts)))?),
        ReportFormat::Markdown => ui.out(&issue(snapshot, report)),
        ReportFormat::Html => ui.out(&html::report(snapshot, report)),
    }
    Ok(())
}

/// The report as pipelines have it.
fn outcome<'a>(report: &'a Report, fail_on: FailOn, counts: &'a dyn Fn(&Finding) -> bool) -> Outcome<'a> {
    let unknown = report.unknown.iter().map(|unknown| (unknown.ids.as_slice(), unknown.trouble.message.as_str()));
    Outcome {
        command: "kubectl ocm troubleshoot",
        checks: of_snapshots().collect(),
        findings: &report.findings,
        counts,
        unknown: if fail_on == FailOn::Never { Vec::new() } else { unknown.collect() },
        unseen: Vec::new(),
        skipped: report.skipped.iter().map(|skipped| (skipped.ids.as_slice(), skipped.why.as_str())).collect(),
        suppressed: report.suppressed.iter().map(|suppressed| &suppressed.finding).collect(),
    }
}

/// Prints what has changed since the last look.
pub(crate) fn changes(ui: &Ui, format: ReportFormat, snapshot: &Snapshot, changes: &[Change]) -> Result<(), Failure> {
    for change in changes {
        ui.out(&match format {
            ReportFormat::Jsonl => Format::json_line(&change_document(snapshot, change)?)?,
            _ => change_lines(snapshot, change).iter().map(|line| clean(line) + "\n").collect(),
        });
    }
    Ok(())
}

fn change_document(snapshot: &Snapshot, change: &Change) -> Result<Value, Failure> {
    let unwritten = |error| Failure::new(Reason::Other, format!("a change cannot be written: {error}"));
    let mut document = serde_json::to_value(change).map_err(unwritten)?;
    if let Change::Found { finding } | Change::Ended { finding } = change {
        document["finding"] = contexts(snapshot).document(finding);
    }
    document["observed"] = json!(snapshot.observed);
    Ok(document)
}

fn change_lines(snapshot: &Snapshot, change: &Change) -> Vec<String> {
    let at = snapshot.observed.0.strftime("%Y-%m-%dT%H:%M:%SZ");
    let ids = |ids: &mut dyn Iterator<Item = &Id>| ids.map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let line = match change {
        Change::Moved { standing } => format!("{}: {}", standing.name, standing.headline),
        Change::Gone { cluster } => format!("{cluster}: is not there any more"),
        Change::Found { finding } => {
            let severity = page::severity(finding.severity);
            let mut lines = vec![format!("{at} found {} {severity}: {}", finding.name(), finding.summary)];
            lines.extend(finding.next.iter().map(|next| labelled(snapshot, next)));
            return lines;
        }
        Change::Ended { finding } => format!("no longer found {}: {}", finding.name(), finding.summary),
        Change::Unknown { unknown } => why_unknown(unknown),
        Change::Known { ids: known } => format!("{} can be checked again", ids(&mut known.iter())),
    };
    vec![format!("{at} {line}")]
}

/// The word of the exit code, for programs.
fn verdict(exit: Exit) -> &'static str {
    match exit {
        Exit::Findings => "findings",
        Exit::Inconclusive => "inconclusive",
        _ => "ok",
    }
}

fn summary(snapshot: &Snapshot, report: &Report, fail_on: FailOn) -> Value {
    let mut summary = json!({
        "verdict": verdict(exit(report, fail_on)), "observed": snapshot.observed, "counts": report.counts,
        "clusters": report.clusters, "unknown": report.unknown, "skipped": report.skipped, "notes": report.notes,
        "suppressed": report.suppressed,
    });
    if let Some(clock) = &snapshot.clock {
        summary["clock"] = json!(clock);
    }
    summary
}

/// The whole report, as machines read it.
pub(crate) fn whole(snapshot: &Snapshot, report: &Report, fail_on: FailOn) -> Value {
    let (mut whole, contexts) = (summary(snapshot, report, fail_on), contexts(snapshot));
    whole["findings"] = report.findings.iter().map(|finding| contexts.document(finding)).collect();
    whole
}

/// Whether a report has commands for a cluster that was looked at which name no context, in a format that shows them.
pub(crate) fn lacks_context(format: ReportFormat, snapshot: &Snapshot, report: &Report) -> bool {
    let is_seen = |side: Side| match side {
        Side::Hub => snapshot.hub.is_some(),
        Side::Managed => snapshot.managed.is_some(),
    };
    let contexts = contexts(snapshot);
    let lacks = |next: &Next| match next {
        Next::Command { side, .. } => is_seen(*side) && contexts.of(*side).is_none(),
        Next::Text(_) => false,
    };
    let has_none = matches!(format, ReportFormat::Name | ReportFormat::Junit | ReportFormat::Sarif);
    !has_none && report.findings.iter().flat_map(|finding| &finding.next).any(lacks)
}

/// What to do next, for people: what is a command is told from what is not.
fn labelled(snapshot: &Snapshot, next: &Next) -> String {
    let label = match next {
        Next::Command { .. } => "next",
        Next::Text(_) => "hint",
    };
    format!("  {label}: {}", words(snapshot, next))
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

fn people(snapshot: &Snapshot, report: &Report, wide: bool) -> String {
    let mut lines = headlines(report);
    if report.clusters.is_empty() && report.findings.is_empty() {
        lines.push("no cluster was looked at".to_owned());
    }
    lines.extend(snapshot.clock.iter().map(|clock| format!("as of {clock}")));
    let is_fleet = report.clusters.len() > 1;
    for Group { first, clusters } in groups(&report.findings) {
        let severity = page::severity(first.severity);
        let of = match (is_fleet, clusters.as_slice()) {
            (false, _) | (true, []) => String::new(),
            (true, [one]) => format!(" {one}"),
            (true, several) => format!(" {} clusters", several.len()),
        };
        lines.push(String::new());
        lines.push(format!("{} {severity}{of}: {}", first.id, first.summary));
        if clusters.len() > 1 {
            lines.push(format!("  clusters: {}", some_names(&clusters)));
        }
        lines.extend(first.evidence.iter().map(|line| format!("  seen: {line}")));
        if !first.cause.is_empty() {
            lines.push(format!("  because: {}", first.cause));
        }
        lines.extend(first.next.iter().map(|next| labelled(snapshot, next)));
        if wide {
            lines.extend(first.objects.iter().map(|object| format!("  object: {object}")));
            let follows = |follows: &Finding| format!("  consequence: {} {}", follows.id, follows.summary);
            lines.extend(first.consequences.iter().map(follows));
        } else if !first.consequences.is_empty() {
            let ids: Vec<String> = first.consequences.iter().map(|follows| follows.id.to_string()).collect();
            lines.push(format!("  explains: {}", some_names(&ids.iter().map(String::as_str).collect::<Vec<_>>())));
        }
    }
    lines.push(String::new());
    lines.push(totals(report));
    match wide {
        true => lines.extend(report.unknown.iter().map(|unknown| format!("  {}", why_unknown(unknown)))),
        false => lines.extend(why_all_unknown(report).iter().map(|line| format!("  {line}"))),
    }
    if wide {
        for skipped in &report.skipped {
            let ids: Vec<String> = skipped.ids.iter().map(ToString::to_string).collect();
            lines.push(format!("  left out, {}: {}", skipped.why, ids.join(", ")));
        }
        for suppressed in &report.suppressed {
            let finding = &suppressed.finding;
            lines.push(format!("  suppressed, {}: {} {}", suppressed.why(), finding.name(), finding.summary));
        }
    }
    lines.iter().map(|line| clean(line.trim_end()) + "\n").collect()
}

fn issue(snapshot: &Snapshot, report: &Report) -> String {
    let mut text = String::new();
    for line in headlines(report) {
        text += &format!("**{}**\n\n", markdown::code(&line));
    }
    if let Some(clock) = &snapshot.clock {
        text += &format!("As of {}.\n\n", markdown::code(clock));
    }
    for Group { first, clusters } in groups(&report.findings) {
        let several = || format!("{} clusters: {}", clusters.len(), markdown::code(&some_names(&clusters)));
        let several = (clusters.len() > 1).then(several);
        text += &markdown::finding(first, several, &|next| words(snapshot, next));
    }
    text += &format!("{}\n", totals(report));
    for line in why_all_unknown(report) {
        text += &format!("\n- {}\n", markdown::code(&line));
    }
    text
}

#[cfg(test)]
mod tests {
    use ocm_checks::judge::Counts;
    use ocm_checks::snapshot::HubSide;

    use super::*;

    /// What a shell, a terminal or Markdown would act upon.
    const NAME: &str = "``x```;touch owned; ```\n`$(touch owned)` it's \"\\ \u{9b}31m\u{202e}\u{200b}\u{feff}!ü";

    fn hub(context: &str) -> Snapshot {
        let side = HubSide { context: Some(context.to_owned()), ..HubSide::default() };
        let snapshot = json!({"format": 1, "observed": "2026-03-01T12:00:00Z", "hub": side});
        serde_json::from_value(snapshot).unwrap()
    }

    fn report(finding: Finding) -> Report {
        let (clusters, suppressed, unknown, skipped) = Default::default();
        Report {
            clusters,
            findings: vec![finding],
            suppressed,
            counts: Counts::default(),
            unknown,
            skipped,
            notes: Vec::new(),
        }
    }

    /// The words that a shell makes of a line, instead of running it.
    fn pasted(line: &str) -> Vec<String> {
        let script = format!("kubectl() {{ printf '%s\\0' \"$@\"; }}\n{line}\n");
        let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{line}: {output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_terminator('\0').map(str::to_owned).collect()
    }

    #[test]
    fn a_pasted_command_has_the_words_of_the_cluster_in_every_format_of_people() {
        let finding = Finding::error(NAME).seen(NAME).because(NAME).advise(NAME);
        let finding = finding.run(Side::Hub, "kubectl get csr/{} -n {}", &[NAME, "a"]);
        let (snapshot, report) = (hub("it's `mine`"), report(finding));
        let wanted = ["get", &format!("csr/{NAME}"), "-n", "a", "--context", "it's `mine`"];
        for wide in [false, true] {
            let text = people(&snapshot, &report, wide);
            let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("  next: ")).collect();
            assert_eq!(lines.len(), 1, "{text}");
            assert_eq!(pasted(lines[0]), wanted);
            assert_eq!(text.lines().filter(|line| line.starts_with("  hint: ")).count(), 1, "{text}");
        }
        let text = issue(&snapshot, &report);
        let lines: Vec<&str> = text.lines().collect();
        let fences: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].starts_with("````")).collect();
        let [from, until] = fences[..] else { panic!("{text}") };
        assert_eq!(lines[from], format!("{}text", lines[until]), "{text}");
        assert_eq!(until - from, 2, "one command: {text}");
        assert_eq!(pasted(lines[from + 1]), wanted);
        let json = contexts(&snapshot).document(&report.findings[0]);
        assert_eq!(pasted(json["next"][1].as_str().unwrap()), wanted);
    }

    #[test]
    fn a_context_that_cannot_be_shown_is_left_open_and_one_that_is_missing_is_told() {
        let next = Next::Command { side: Side::Hub, line: "kubectl get x".to_owned() };
        assert_eq!(words(&hub("a\nb"), &next), "kubectl get x --context NAME");
        let report = report(Finding::error("x").run(Side::Hub, "kubectl get x", &[]));
        assert!(!lacks_context(ReportFormat::Table, &hub("a"), &report));
        let mut snapshot = hub("a");
        snapshot.hub.as_mut().unwrap().context = None;
        assert!(lacks_context(ReportFormat::Table, &snapshot, &report));
        assert!(!lacks_context(ReportFormat::Name, &snapshot, &report), "names are no commands");
        snapshot.hub = None;
        assert!(!lacks_context(ReportFormat::Table, &snapshot, &report), "nobody looked at the hub");
    }
}
