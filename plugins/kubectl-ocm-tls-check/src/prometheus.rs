//! Metrics in the text format of Prometheus, as its text file collector reads them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ocm_checks::page;
use ocm_checks::tls::Part as Of;
use ocm_cli::clean;

use crate::shown::Part;

/// The metrics of reports. Where there are several contexts, each series tells of which it is.
pub(crate) fn text(parts: &[Part]) -> String {
    let mut text = String::new();
    head(
        &mut text,
        "ocm_tls_certificate_expiry_timestamp_seconds",
        "When a certificate or a token expires, in seconds since 1970.",
    );
    // One line per series: of two keys of one name, the one that expires first counts.
    let mut ends: BTreeMap<Vec<(&str, String)>, i64> = BTreeMap::new();
    for (part, expiry) in parts.iter().flat_map(|part| part.report.expiries.iter().map(move |expiry| (part, expiry))) {
        let of = match expiry.part {
            Of::Own => "own",
            Of::Issuer => "issuer",
            Of::Trusted => "trusted",
            Of::Token => "token",
        };
        let mut labels = context(part);
        labels.extend([
            ("for", expiry.purpose.word().to_owned()),
            ("part", of.to_owned()),
            ("cluster", expiry.cluster.clone().unwrap_or_default()),
            ("where", expiry.place.to_string()),
            ("subject", expiry.subject.clone()),
            ("serial", expiry.serial.clone()),
        ]);
        let value = expiry.not_after.0.as_second();
        ends.entry(labels).and_modify(|first| *first = value.min(*first)).or_insert(value);
    }
    for (labels, value) in ends {
        line(&mut text, "ocm_tls_certificate_expiry_timestamp_seconds", &labels, value);
    }
    head(&mut text, "ocm_tls_findings", "What is wrong with certificates, by the id of the check.");
    let mut counts: BTreeMap<Vec<(&str, String)>, i64> = BTreeMap::new();
    for (part, finding) in parts.iter().flat_map(|part| part.report.findings.iter().map(move |finding| (part, finding)))
    {
        let mut labels = context(part);
        labels.extend([
            ("id", finding.id.to_string()),
            ("severity", page::severity(finding.severity).to_owned()),
            ("cluster", finding.cluster.clone().unwrap_or_default()),
        ]);
        *counts.entry(labels).or_default() += 1;
    }
    for (labels, count) in counts {
        line(&mut text, "ocm_tls_findings", &labels, count);
    }
    // One line per context: the hub may be one of the clusters, too.
    let (mut unseen, mut observed): (BTreeMap<_, i64>, BTreeMap<_, i64>) = (BTreeMap::new(), BTreeMap::new());
    for part in parts {
        *unseen.entry(context(part)).or_default() += i64::try_from(part.report.unseen.len()).unwrap_or(i64::MAX);
        observed.insert(context(part), part.inventory.observed.0.as_second());
    }
    head(&mut text, "ocm_tls_unseen", "How much could not be looked at.");
    for (labels, count) in unseen {
        line(&mut text, "ocm_tls_unseen", &labels, count);
    }
    head(&mut text, "ocm_tls_observed_timestamp_seconds", "When it was looked at, in seconds since 1970.");
    for (labels, time) in observed {
        line(&mut text, "ocm_tls_observed_timestamp_seconds", &labels, time);
    }
    text
}

/// The label of a context, where there are several.
fn context(part: &Part) -> Vec<(&'static str, String)> {
    part.context.iter().map(|context| ("context", context.clone())).collect()
}

fn head(text: &mut String, name: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
}

fn line(text: &mut String, name: &str, labels: &[(&str, String)], value: i64) {
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
        line(&mut text, "name", &[("subject", "a\"} 1\nb\\\u{1b}[2J".to_owned())], 7);
        assert_eq!(text, "name{subject=\"a\\\"} 1 b\\\\\\\\u{1b}[2J\"} 7\n");
    }
}
