//! What reports look like, of one cluster or of many.

use std::collections::BTreeSet;

use jiff::Timestamp;
use ocm_checks::finding::{Finding, Severity};
use ocm_checks::page;
use ocm_checks::registry::of_certificates;
use ocm_checks::tls::{Expiry, Inventory, Part as Of, Report};
use ocm_cli::findings::ci::{self, Outcome};
use ocm_cli::findings::markdown;
use ocm_cli::list::NONE;
use ocm_cli::{Format, Table, Ui, document};
use ocm_core::duration::human;
use ocm_core::order::Collect as _;
use ocm_core::{Event, Failure, Narrator};
use serde_json::{Value, json};

use crate::args::{FailOn, Output};
use crate::shown::{Part, Shown, named, of_each, what};
use crate::{prometheus, tables};

/// Whether people, not programs, are going to read it.
pub(crate) const fn is_for_people(output: Output) -> bool {
    matches!(output, Output::Table | Output::Wide)
}

/// Whether reports say something that those before did not: time alone is no news.
pub(crate) fn is_news(last: &[Part], now: &[Part]) -> bool {
    let names = |report: &Report| report.findings.iter().map(Finding::name).collect_set();
    let ends = |report: &Report| {
        // A token has no serial number, and another one another end.
        let end = |expiry: &Expiry| (expiry.place.to_string(), expiry.serial.clone(), expiry.not_after.0);
        report.expiries.iter().map(end).collect_set()
    };
    let differs = |last: &Report, now: &Report| {
        names(last) != names(now) || ends(last) != ends(now) || last.unseen.len() != now.unseen.len()
    };
    last.len() != now.len() || last.iter().zip(now).any(|(last, now)| differs(&last.report, &now.report))
}

/// Prints a report.
pub(crate) fn show(ui: &Ui, output: Output, shown: &Shown<'_>) -> Result<(), Failure> {
    if let Some(format) = output.document() {
        let text = document(format, &whole(shown))?;
        ui.out(&if output == Output::Yaml { format!("---\n{text}") } else { text });
        return Ok(());
    }
    match output {
        Output::Name => {
            shown.findings().into_iter().for_each(|(part, finding)| ui.line(&named(part, finding).name()));
        }
        Output::Prometheus => ui.out(&prometheus::text(shown.parts)),
        Output::Junit => ui.out(&of_pipeline(shown, ci::junit)),
        Output::Sarif => ui.out(&document(Format::Json, &of_pipeline(shown, ci::sarif))?),
        Output::Markdown => ui.out(&issue(shown)),
        _ => people(ui, output == Output::Wide, shown),
    }
    Ok(())
}

/// A value as machines read it, with its context if it has one.
fn tagged(part: &Part, mut value: Value) -> Value {
    if let (Some(context), Value::Object(fields)) = (&part.context, &mut value) {
        fields.insert("context".to_owned(), context.as_str().into());
    }
    value
}

/// Everything as one document. What stands beside the inventory of one cluster tells its context where there are many.
fn whole(shown: &Shown<'_>) -> Value {
    let findings = shown.findings().into_iter().map(|(part, finding)| tagged(part, part.contexts.document(finding)));
    let suppressed = of_each(shown.parts, |part| &part.report.suppressed).map(|(part, one)| tagged(part, json!(one)));
    let unseen = of_each(shown.parts, |part| &part.report.unseen).map(|(part, one)| tagged(part, json!(one)));
    let expiries = shown.expiries().into_iter().map(|(part, expiry)| tagged(part, json!(expiry)));
    let mut whole = json!({
        "verdict": shown.exit.word(), "observed": shown.first().map(|first| &first.inventory.observed),
        "findings": findings.collect::<Vec<_>>(), "suppressed": suppressed.collect::<Vec<_>>(),
        "unseen": unseen.collect::<Vec<_>>(), "expiries": expiries.collect::<Vec<_>>(),
    });
    match shown.parts {
        [Part { context: None, inventory, .. }] => whole["inventory"] = json!(inventory),
        parts => {
            let inventories = parts.iter().map(|part| tagged(part, json!({ "inventory": part.inventory })));
            whole["inventories"] = inventories.collect();
        }
    }
    whole
}

/// The reports as a pipeline has them.
fn of_pipeline<T>(shown: &Shown<'_>, form: impl FnOnce(&Outcome<'_>) -> T) -> T {
    let Shown { parts, fail_on, exit: _ } = shown;
    let findings: Vec<Finding> = shown.findings().into_iter().map(|(part, finding)| named(part, finding)).collect();
    let unseen: Vec<(String, &str)> = of_each(parts, |part| &part.report.unseen)
        .map(|(part, unseen)| (what(part, &unseen.what), unseen.trouble.message.as_str()))
        .collect();
    let unseen = unseen.iter().map(|(what, why)| (what.as_str(), *why));
    form(&Outcome {
        command: "kubectl ocm tls-check",
        checks: of_certificates().collect(),
        findings: &findings,
        counts: &|finding| fail_on.counts(finding),
        unknown: Vec::new(),
        unseen: if *fail_on == FailOn::Never { Vec::new() } else { unseen.collect() },
        skipped: Vec::new(),
        suppressed: of_each(parts, |part| &part.report.suppressed).map(|(_, suppressed)| &suppressed.finding).collect(),
    })
}

/// The reports as an issue or a chat has them.
fn issue(shown: &Shown<'_>) -> String {
    let now = shown.first().map_or_else(|| NONE.to_owned(), |first| first.inventory.observed.0.to_string());
    let mut text = format!("**{}**, as of {now}\n\n", totals(shown));
    for (part, finding) in shown.findings() {
        let of = [("Context", &part.context), ("Cluster", &finding.cluster)];
        let of = of.into_iter().filter_map(|(of, name)| Some(format!("{of} {}", markdown::code(name.as_ref()?))));
        let of = Some(of.collect::<Vec<_>>().join(", ")).filter(|of| !of.is_empty());
        text += &markdown::finding(finding, of, &|next| part.contexts.line(next));
    }
    for (part, unseen) in of_each(shown.parts, |part| &part.report.unseen) {
        let line = format!("{}: {}", what(part, &unseen.what), unseen.trouble.message);
        text += &format!("- not looked at: {}\n", markdown::code(&line));
    }
    let (context, rule) = if shown.is_fleet() { (" context |", "---|") } else { ("", "") };
    let mut own = shown.expiries().into_iter().filter(|(_, expiry)| expiry.part != Of::Trusted).peekable();
    if own.peek().is_some() {
        text += &format!("\n| expires in | left |{context} for | cluster | where |\n|---|---|{rule}---|---|---|\n");
    }
    for (part, expiry) in own {
        let mut cells = vec![left(expiry, part.inventory.observed.0), format!("{}%", expiry.left_percent)];
        cells.extend(part.context.clone());
        cells.push(expiry.purpose.word().to_owned());
        cells.push(expiry.cluster.clone().unwrap_or_else(|| NONE.to_owned()));
        cells.push(expiry.place.to_string());
        let cells: Vec<String> = cells.iter().map(|cell| markdown::cell(cell)).collect();
        text += &format!("| {} |\n", cells.join(" | "));
    }
    text
}

fn people(ui: &Ui, wide: bool, shown: &Shown<'_>) {
    time_line(ui, wide, shown);
    for part in shown.parts.iter().filter(|_| wide) {
        if let Some(context) = &part.context {
            ui.out("\n");
            ui.line(&format!("Context {context:?}"));
        }
        handshakes(ui, &part.inventory);
        tables::relations(ui, &part.inventory);
        tables::copies(ui, &part.inventory);
    }
    for (part, finding) in shown.findings() {
        let severity = page::severity(finding.severity);
        let cluster = finding.cluster.as_ref().map_or_else(String::new, |cluster| format!(" {cluster}"));
        ui.out("\n");
        ui.line(&format!("{} {severity}{cluster}: {}", finding.id, finding.summary));
        if let Some(context) = &part.context {
            ui.line(&format!("  context: {context}"));
        }
        for line in &finding.evidence {
            ui.line(&format!("  seen: {line}"));
        }
        if !finding.cause.is_empty() {
            ui.line(&format!("  because: {}", finding.cause));
        }
        for next in &finding.next {
            ui.line(&format!("  next: {}", part.contexts.line(next)));
        }
    }
    for (part, unseen) in of_each(shown.parts, |part| &part.report.unseen) {
        let right =
            unseen.trouble.rule.as_ref().map_or_else(String::new, |rule| format!(" (it needs the right to {rule})"));
        let what = what(part, &unseen.what);
        ui.tell(Event::warning(format!("{what} was not looked at: {}{right}", unseen.trouble.message)));
    }
    for (part, suppressed) in of_each(shown.parts, |part| &part.report.suppressed).filter(|_| wide) {
        let finding = &suppressed.finding;
        ui.line(&format!("  suppressed, {}: {} {}", suppressed.why(), named(part, finding).name(), finding.summary));
    }
    if let Some((_, finding)) = shown.findings().first() {
        ui.tell(Event::note(format!("more about a finding: kubectl ocm troubleshoot --explain {}", finding.id)));
    }
    ui.tell(Event::note(totals(shown)));
}

/// How much there is.
fn totals(shown: &Shown<'_>) -> String {
    let findings = shown.findings();
    let of = |severity: Severity| findings.iter().filter(|(_, finding)| finding.severity == severity).count();
    let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let suppressed = match of_each(shown.parts, |part| &part.report.suppressed).count() {
        0 => String::new(),
        count => format!(", {count} suppressed"),
    };
    let contexts: BTreeSet<&String> = shown.parts.iter().filter_map(|part| part.context.as_ref()).collect_set();
    let contexts =
        if contexts.is_empty() { String::new() } else { format!("{}, ", counted(contexts.len(), "context")) };
    let expiries = shown.expiries();
    let tokens = expiries.iter().filter(|(_, expiry)| expiry.part == Of::Token).count();
    let certificates = counted(expiries.len() - tokens, "certificate");
    let tokens = if tokens == 0 { String::new() } else { format!(", {}", counted(tokens, "token")) };
    format!(
        "{contexts}{certificates}{tokens}, {}, {}{suppressed}",
        counted(of(Severity::Error), "error"),
        counted(of(Severity::Warning), "warning")
    )
}

/// What expires, the next one first.
fn time_line(ui: &Ui, wide: bool, shown: &Shown<'_>) {
    const HEADINGS: [&str; 10] =
        ["EXPIRES IN", "LEFT", "CONTEXT", "FOR", "CLUSTER", "SUBJECT", "WHERE", "UNTIL", "SERIAL", "PIN"];
    // What is only trusted does not run out under anybody's hands; people see it if they ask for more.
    let is_shown = |(_, expiry): &(&Part, &Expiry)| wide || expiry.part != Of::Trusted;
    let rows: Vec<(&Part, &Expiry)> = shown.expiries().into_iter().filter(is_shown).collect();
    if rows.is_empty() {
        return;
    }
    let is_fleet = shown.is_fleet();
    let columns: Vec<usize> =
        (0..HEADINGS.len()).filter(|n| (is_fleet || HEADINGS[*n] != "CONTEXT") && (wide || *n < 7)).collect();
    let headings: Vec<&str> = columns.iter().map(|n| HEADINGS[*n]).collect();
    let mut table = Table::new(&headings);
    for (part, expiry) in rows {
        let of = match expiry.part {
            Of::Own => "",
            Of::Issuer => " (issuer)",
            Of::Trusted => " (trusted)",
            Of::Token => " (token)",
        };
        let cells = [
            left(expiry, part.inventory.observed.0),
            format!("{}%", expiry.left_percent),
            part.context.clone().unwrap_or_else(|| NONE.to_owned()),
            format!("{}{of}", expiry.purpose.word()),
            expiry.cluster.clone().unwrap_or_else(|| NONE.to_owned()),
            expiry.subject.clone(),
            expiry.place.to_string(),
            expiry.not_after.0.to_string(),
            or_none(&expiry.serial),
            or_none(&expiry.pin),
        ];
        let cells: Vec<String> = columns.iter().map(|n| cells[*n].clone()).collect();
        table.row(&cells);
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
