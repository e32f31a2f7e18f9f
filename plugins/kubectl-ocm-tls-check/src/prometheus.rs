//! Metrics in the text format of Prometheus, as its text file collector reads them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ocm_checks::page;
use ocm_checks::tls::{Inventory, Part, Report};
use ocm_cli::clean;

/// The metrics of a report.
pub(crate) fn text(inventory: &Inventory, report: &Report) -> String {
    let mut text = String::new();
    head(
        &mut text,
        "ocm_tls_certificate_expiry_timestamp_seconds",
        "When a certificate or a token expires, in seconds since 1970.",
    );
    // One line per series: of two keys of one name, the one that expires first counts.
    let mut ends: BTreeMap<Vec<(&str, String)>, i64> = BTreeMap::new();
    for expiry in &report.expiries {
        let part = match expiry.part {
            Part::Own => "own",
            Part::Issuer => "issuer",
            Part::Trusted => "trusted",
            Part::Token => "token",
        };
        let labels = [
            ("for", expiry.purpose.word().to_owned()),
            ("part", part.to_owned()),
            ("cluster", expiry.cluster.clone().unwrap_or_default()),
            ("where", expiry.place.to_string()),
            ("subject", expiry.subject.clone()),
            ("serial", expiry.serial.clone()),
        ];
        let value = expiry.not_after.0.as_second();
        ends.entry(labels.to_vec()).and_modify(|first| *first = value.min(*first)).or_insert(value);
    }
    for (labels, value) in ends {
        let labels: Vec<(&str, &str)> = labels.iter().map(|(label, value)| (*label, value.as_str())).collect();
        line(&mut text, "ocm_tls_certificate_expiry_timestamp_seconds", &labels, value);
    }
    head(&mut text, "ocm_tls_findings", "What is wrong with certificates, by the id of the check.");
    let mut counts: BTreeMap<(String, &str, &str), i64> = BTreeMap::new();
    for finding in &report.findings {
        let severity = page::severity(finding.severity);
        let cluster = finding.cluster.as_deref().unwrap_or_default();
        *counts.entry((finding.id.to_string(), severity, cluster)).or_default() += 1;
    }
    for ((id, severity, cluster), count) in counts {
        line(&mut text, "ocm_tls_findings", &[("id", &id), ("severity", severity), ("cluster", cluster)], count);
    }
    head(&mut text, "ocm_tls_unseen", "How much could not be looked at.");
    line(&mut text, "ocm_tls_unseen", &[], i64::try_from(report.unseen.len()).unwrap_or(i64::MAX));
    head(&mut text, "ocm_tls_observed_timestamp_seconds", "When it was looked at, in seconds since 1970.");
    line(&mut text, "ocm_tls_observed_timestamp_seconds", &[], inventory.observed.0.as_second());
    text
}

fn head(text: &mut String, name: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
}

fn line(text: &mut String, name: &str, labels: &[(&str, &str)], value: i64) {
    let labels: Vec<String> = labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
    let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
    let _ = writeln!(text, "{name}{labels} {value}");
}

/// The value of a label. Names come from strangers.
fn escaped(value: &str) -> String {
    clean(value).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_cannot_break_out_of_their_line() {
        let mut text = String::new();
        line(&mut text, "name", &[("subject", "a\"} 1\nb\\\u{1b}[2J")], 7);
        assert_eq!(text, "name{subject=\"a\\\"} 1 b\\\\\\\\u{1b}[2J\"} 7\n");
    }
}
