//! What a report looks like.

use std::collections::BTreeSet;

use jiff::Timestamp;
use ocm_checks::finding::{Finding, Severity};
use ocm_checks::page;
use ocm_checks::registry::of_certificates;
use ocm_checks::tls::{Expiry, Inventory, Part, Report};
use ocm_cli::findings::ci::{self, Outcome};
use ocm_cli::findings::{Contexts, markdown};
use ocm_cli::list::NONE;
use ocm_cli::{Format, Table, Ui, document};
use ocm_core::duration::human;
use ocm_core::{Event, Exit, Failure, Narrator};
use serde_json::{Value, json};

use crate::args::{FailOn, Output};
use crate::{prometheus, tables};

/// Everything that is shown.
pub(crate) struct Shown<'a> {
    pub(crate) inventory: &'a Inventory,
    pub(crate) report: &'a Report,
    pub(crate) contexts: &'a Contexts,
    pub(crate) fail_on: FailOn,
    pub(crate) exit: Exit,
}

/// Whether people, not programs, are going to read it.
pub(crate) const fn is_for_people(output: Output) -> bool {
    matches!(output, Output::Table | Output::Wide)
}

/// Whether a report says something that the one before did not: time alone is no news.
pub(crate) fn is_news(last: &Report, now: &Report) -> bool {
    let names = |report: &Report| report.findings.iter().map(Finding::name).collect::<BTreeSet<_>>();
    let ends = |report: &Report| {
        // A token has no serial number, and another one another end.
        let end = |expiry: &Expiry| (expiry.place.to_string(), expiry.serial.clone(), expiry.not_after.0);
        report.expiries.iter().map(end).collect::<BTreeSet<_>>()
    };
    names(last) != names(now) || ends(last) != ends(now) || last.unseen.len() != now.unseen.len()
}

/// Prints a report.
pub(crate) fn show(ui: &Ui, output: Output, shown: &Shown<'_>) -> Result<(), Failure> {
    let Shown { inventory, report, contexts, fail_on: _, exit } = shown;
    if let Some(format) = output.document() {
        let findings: Vec<Value> = report.findings.iter().map(|finding| contexts.document(finding)).collect();
        let whole = json!({
            "verdict": exit.word(), "observed": inventory.observed, "findings": findings,
            "suppressed": report.suppressed, "unseen": report.unseen, "expiries": report.expiries,
            "inventory": inventory,
        });
        let text = document(format, &whole)?;
        ui.out(&if output == Output::Yaml { format!("---\n{text}") } else { text });
        return Ok(());
    }
    match output {
        Output::Name => report.findings.iter().for_each(|finding| ui.line(&finding.name())),
        Output::Prometheus => ui.out(&prometheus::text(inventory, report)),
        Output::Junit => ui.out(&of_pipeline(shown, ci::junit)),
        Output::Sarif => ui.out(&document(Format::Json, &of_pipeline(shown, ci::sarif))?),
        Output::Markdown => ui.out(&issue(shown)),
        _ => people(ui, output == Output::Wide, shown),
    }
    Ok(())
}

/// The report as a pipeline has it.
fn of_pipeline<T>(shown: &Shown<'_>, form: impl FnOnce(&Outcome<'_>) -> T) -> T {
    let Shown { inventory: _, report, contexts: _, fail_on, exit: _ } = shown;
    let unseen = report.unseen.iter().map(|unseen| (unseen.what.as_str(), unseen.trouble.message.as_str()));
    form(&Outcome {
        command: "kubectl ocm tls-check",
        checks: of_certificates().collect(),
        findings: &report.findings,
        counts: &|finding| fail_on.counts(finding),
        unknown: Vec::new(),
        unseen: if *fail_on == FailOn::Never { Vec::new() } else { unseen.collect() },
        skipped: Vec::new(),
        suppressed: report.suppressed.iter().map(|suppressed| &suppressed.finding).collect(),
    })
}

/// The report as an issue or a chat has it.
fn issue(shown: &Shown<'_>) -> String {
    let Shown { inventory, report, contexts, fail_on: _, exit: _ } = shown;
    let now = inventory.observed.0;
    let mut text = format!("**{}**, as of {now}\n\n", totals(report));
    for finding in &report.findings {
        let of = finding.cluster.as_ref().map(|cluster| format!("Cluster {}", markdown::code(cluster)));
        text += &markdown::finding(finding, of, &|next| contexts.line(next));
    }
    for unseen in &report.unseen {
        text +=
            &format!("- not looked at: {}\n", markdown::code(&format!("{}: {}", unseen.what, unseen.trouble.message)));
    }
    let mut own = report.expiries.iter().filter(|expiry| expiry.part != Part::Trusted).peekable();
    if own.peek().is_some() {
        text += "\n| expires in | left | for | cluster | where |\n|---|---|---|---|---|\n";
    }
    for expiry in own {
        let cluster = expiry.cluster.as_deref().unwrap_or(NONE);
        let cells = [&left(expiry, now), &format!("{}%", expiry.left_percent), expiry.purpose.word(), cluster];
        let cells: Vec<String> = cells.iter().map(|cell| markdown::cell(cell)).collect();
        text += &format!("| {} | {} |\n", cells.join(" | "), markdown::cell(&expiry.place.to_string()));
    }
    text
}

fn people(ui: &Ui, wide: bool, shown: &Shown<'_>) {
    let Shown { inventory, report, contexts, fail_on: _, exit: _ } = shown;
    time_line(ui, wide, inventory.observed.0, &report.expiries);
    if wide {
        handshakes(ui, inventory);
        tables::relations(ui, inventory);
        tables::copies(ui, inventory);
    }
    for finding in &report.findings {
        let severity = page::severity(finding.severity);
        let cluster = finding.cluster.as_ref().map_or_else(String::new, |cluster| format!(" {cluster}"));
        ui.out("\n");
        ui.line(&format!("{} {severity}{cluster}: {}", finding.id, finding.summary));
        for line in &finding.evidence {
            ui.line(&format!("  seen: {line}"));
        }
        if !finding.cause.is_empty() {
            ui.line(&format!("  because: {}", finding.cause));
        }
        for next in &finding.next {
            ui.line(&format!("  next: {}", contexts.line(next)));
        }
    }
    for unseen in &report.unseen {
        let right =
            unseen.trouble.rule.as_ref().map_or_else(String::new, |rule| format!(" (it needs the right to {rule})"));
        ui.tell(Event::warning(format!("{} was not looked at: {}{right}", unseen.what, unseen.trouble.message)));
    }
    if wide {
        for suppressed in &report.suppressed {
            let finding = &suppressed.finding;
            ui.line(&format!("  suppressed, {}: {} {}", suppressed.why(), finding.name(), finding.summary));
        }
    }
    if let Some(finding) = report.findings.first() {
        ui.tell(Event::note(format!("more about a finding: kubectl ocm troubleshoot --explain {}", finding.id)));
    }
    ui.tell(Event::note(totals(report)));
}

/// How much there is.
fn totals(report: &Report) -> String {
    let of = |severity: Severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
    let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let suppressed = match report.suppressed.len() {
        0 => String::new(),
        count => format!(", {count} suppressed"),
    };
    let tokens = report.expiries.iter().filter(|expiry| expiry.part == Part::Token).count();
    let certificates = counted(report.expiries.len() - tokens, "certificate");
    let tokens = if tokens == 0 { String::new() } else { format!(", {}", counted(tokens, "token")) };
    format!(
        "{certificates}{tokens}, {}, {}{suppressed}",
        counted(of(Severity::Error), "error"),
        counted(of(Severity::Warning), "warning")
    )
}

/// What expires, the next one first.
fn time_line(ui: &Ui, wide: bool, now: Timestamp, expiries: &[Expiry]) {
    const HEADINGS: [&str; 9] = ["EXPIRES IN", "LEFT", "FOR", "CLUSTER", "SUBJECT", "WHERE", "UNTIL", "SERIAL", "PIN"];
    let columns = if wide { HEADINGS.len() } else { 6 };
    // What is only trusted does not run out under anybody's hands; people see it if they ask for more.
    let rows: Vec<&Expiry> = expiries.iter().filter(|expiry| wide || expiry.part != Part::Trusted).collect();
    if rows.is_empty() {
        return;
    }
    let mut table = Table::new(&HEADINGS[..columns]);
    for expiry in rows {
        let part = match expiry.part {
            Part::Own => "",
            Part::Issuer => " (issuer)",
            Part::Trusted => " (trusted)",
            Part::Token => " (token)",
        };
        let cells = [
            left(expiry, now),
            format!("{}%", expiry.left_percent),
            format!("{}{part}", expiry.purpose.word()),
            expiry.cluster.clone().unwrap_or_else(|| NONE.to_owned()),
            expiry.subject.clone(),
            expiry.place.to_string(),
            expiry.not_after.0.to_string(),
            or_none(&expiry.serial),
            or_none(&expiry.pin),
        ];
        table.row(&cells[..columns]);
    }
    ui.out(&table.render());
}

/// What a token does not have.
fn or_none(text: &str) -> String {
    if text.is_empty() { NONE.to_owned() } else { text.to_owned() }
}

/// How long a certificate still counts.
fn left(expiry: &Expiry, now: Timestamp) -> String {
    let left = expiry.not_after.0.duration_since(now);
    if left.is_negative() { "expired".to_owned() } else { human(left.unsigned_abs()) }
}

/// What servers agreed on.
fn handshakes(ui: &Ui, inventory: &Inventory) {
    let mut table = Table::new(&["ADDRESS", "PROXY", "VERSION", "ACCEPTS", "CIPHER", "CIPHERS OF TLS 1.2"]);
    let mut seen = BTreeSet::new();
    for handshake in inventory.relations.iter().filter_map(|relation| relation.handshake.as_ref()) {
        let text = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
        let accepted: Vec<String> = handshake.accepted.iter().map(ToString::to_string).collect();
        let cells = [
            handshake.address.clone(),
            text(handshake.proxy.clone()),
            text(handshake.version.map(|version| version.to_string())),
            accepted.join(","),
            text(handshake.cipher.clone()),
            text(Some(handshake.suites.join(",")).filter(|suites| !suites.is_empty())),
        ];
        if seen.insert(cells.clone()) {
            table.row(&cells);
        }
    }
    if !seen.is_empty() {
        ui.out("\n");
        ui.out(&table.render());
    }
}
