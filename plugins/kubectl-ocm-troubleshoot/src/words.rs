//! The words about a report that several of its forms have.

use ocm_checks::chain::Way;
use ocm_checks::finding::{Next, Severity};
use ocm_checks::judge::{Report, Unknown};
use ocm_checks::snapshot::Snapshot;
use ocm_cli::findings::Contexts;
use ocm_core::Reason;

/// How many clusters of a group are named.
const NAMED: usize = 5;

/// The shortest form of a report: the first headline that matters.
pub(crate) fn headline(report: &Report) -> String {
    let stopped = report.clusters.iter().find(|standing| !standing.way.is_well()).or(report.clusters.first());
    match (stopped, report.findings.first()) {
        (Some(standing), _) => format!("{}: {}", standing.name, standing.headline),
        (None, Some(finding)) => finding.summary.clone(),
        (None, None) => "not everything could be checked".to_owned(),
    }
}

/// Some names, and how many more there are.
pub(crate) fn some_names(names: &[&str]) -> String {
    let named = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(NAMED) {
        None | Some(0) => named,
        Some(more) => format!("{named} and {more} more"),
    }
}

/// A number of things.
pub(crate) fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// Where the clusters stand: a line each for a few, numbers for many.
pub(crate) fn headlines(report: &Report) -> Vec<String> {
    let unwell: Vec<_> = report.clusters.iter().filter(|standing| !standing.way.is_well()).collect();
    if report.clusters.len() <= NAMED {
        return report.clusters.iter().map(|standing| format!("{}: {}", standing.name, standing.headline)).collect();
    }
    let well = report.clusters.iter().filter(|standing| standing.way == Way::Done).count();
    let elsewhere = report.clusters.len() - well - unwell.len();
    let mut line = format!("{} clusters: {well} joined and available, {} not", report.clusters.len(), unwell.len());
    if elsewhere > 0 {
        line += &format!(", {elsewhere} at another hub");
    }
    let mut lines = vec![line];
    if unwell.len() <= NAMED {
        lines.extend(unwell.iter().map(|standing| format!("{}: {}", standing.name, standing.headline)));
    }
    lines
}

/// The numbers at the end.
pub(crate) fn totals(report: &Report) -> String {
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

pub(crate) fn why_unknown(unknown: &Unknown) -> String {
    let ids: Vec<String> = unknown.ids.iter().map(ToString::to_string).collect();
    let mut text = format!("{} could not be checked: {}", ids.join(", "), unknown.trouble.message);
    if let Some(rule) = &unknown.trouble.rule {
        text += &format!("; this right would allow it: {rule}");
    }
    text
}

/// Whose reasons are those of a whole server: what was asked for makes no difference.
const OF_A_SERVER: [Reason; 3] = [Reason::Unreachable, Reason::Tls, Reason::Unauthorized];

/// What could not be checked, and why: a line for each reason, and one for all requests that a server was not reached with.
pub(crate) fn why_all_unknown(report: &Report) -> Vec<String> {
    let is_alike = |one: &Unknown, other: &Unknown| {
        (one.trouble.reason, &one.trouble.behind) == (other.trouble.reason, &other.trouble.behind)
    };
    let mut alike: Vec<Vec<&Unknown>> = Vec::new();
    for unknown in &report.unknown {
        let is_of_server = OF_A_SERVER.contains(&unknown.trouble.reason) && !unknown.trouble.behind.is_empty();
        match alike.iter_mut().find(|group| is_of_server && is_alike(group[0], unknown)) {
            Some(group) => group.push(unknown),
            None => alike.push(vec![unknown]),
        }
    }
    let line = |group: &Vec<&Unknown>| {
        let [first, others @ ..] = group.as_slice() else { return String::new() };
        if others.is_empty() {
            return why_unknown(first);
        }
        let ids: Vec<String> = group.iter().flat_map(|unknown| &unknown.ids).map(ToString::to_string).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let likewise = count(others.len(), "other request");
        format!("{} could not be checked: {}; {likewise} ended likewise", some_names(&ids), first.trouble.message)
    };
    alike.iter().map(line).collect()
}

/// The contexts of the clusters that were looked at.
pub(crate) fn contexts(snapshot: &Snapshot) -> Contexts {
    Contexts {
        hub: snapshot.hub.as_ref().and_then(|hub| hub.context.clone()),
        managed: snapshot.managed.as_ref().and_then(|managed| managed.context.clone()),
    }
}

/// What to do next, as it is typed: with the context of its cluster.
pub(crate) fn words(snapshot: &Snapshot, next: &Next) -> String {
    contexts(snapshot).line(next)
}

#[cfg(test)]
mod tests {
    use ocm_checks::finding::Id;
    use ocm_checks::judge::Counts;
    use ocm_checks::snapshot::Trouble;

    use super::*;

    #[test]
    fn a_server_that_no_request_reaches_is_one_line_and_what_each_request_lacks_is_one_of_its_own() {
        let unknown = |id, reason, what: &str, behind: &str| Unknown {
            ids: vec![Id(id)],
            clusters: 0,
            trouble: Trouble { reason, message: format!("{what}: {behind}"), rule: None, behind: behind.to_owned() },
        };
        let report = |reason| Report {
            clusters: Vec::new(),
            findings: Vec::new(),
            suppressed: Vec::new(),
            counts: Counts::default(),
            unknown: vec![
                unknown(1101, reason, "cannot list a", "refused"),
                unknown(1102, reason, "cannot list b", "refused"),
                unknown(2201, reason, "cannot list c", "of another server"),
            ],
            skipped: Vec::new(),
            notes: Vec::new(),
        };
        let lines = why_all_unknown(&report(Reason::Unreachable));
        assert_eq!(
            lines,
            [
                "OCM1101, OCM1102 could not be checked: cannot list a: refused; 1 other request ended likewise",
                "OCM2201 could not be checked: cannot list c: of another server",
            ]
        );
        assert_eq!(why_all_unknown(&report(Reason::Forbidden)).len(), 3);
    }
}
