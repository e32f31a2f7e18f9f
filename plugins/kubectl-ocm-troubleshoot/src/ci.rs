//! Reports for pipelines: JUnit's XML and SARIF.

use ocm_checks::finding::{Finding, Severity};
use ocm_checks::judge::Report;
use ocm_checks::registry::{Check, of_snapshots};
use ocm_cli::clean;
use serde_json::{Value, json};

use crate::args::FailOn;

/// A text within XML. Control characters cannot stand in it in any way.
fn xml(text: &str) -> String {
    clean(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// One test case per check. What counts for the exit code is a failure, and what could not be checked an error if that does;
/// anything else that was found stands in the test case's output.
pub(crate) fn junit(report: &Report, fail_on: FailOn) -> String {
    let mut cases = String::new();
    let (mut failures, mut errors, mut skipped) = (0, 0, 0);
    for check in of_snapshots() {
        let found: Vec<&Finding> = report.findings.iter().filter(|finding| finding.id == check.id).collect();
        let unknown = report.unknown.iter().find(|unknown| unknown.ids.contains(&check.id));
        let left_out = report.skipped.iter().find(|skipped| skipped.ids.contains(&check.id));
        let worst = found.iter().max_by_key(|finding| finding.severity);
        let inner = if let Some(worst) = worst {
            let lines: Vec<String> =
                found.iter().map(|finding| format!("{}: {}", finding.name(), finding.summary)).collect();
            let kind = severity(worst.severity);
            if fail_on.least().is_some_and(|least| worst.severity >= least) {
                failures += 1;
                format!(r#"<failure type="{kind}" message="{}">{}</failure>"#, xml(&worst.summary), lines_of(&lines))
            } else {
                format!("<system-out>{kind}: {}</system-out>", lines_of(&lines))
            }
        } else if let Some(unknown) = unknown.filter(|_| fail_on != FailOn::Never) {
            errors += 1;
            format!(r#"<error message="{}"/>"#, xml(&unknown.trouble.message))
        } else if let Some(left_out) = left_out {
            skipped += 1;
            format!(r#"<skipped message="{}"/>"#, xml(&left_out.why))
        } else {
            String::new()
        };
        let Check { id, title, category, .. } = check;
        let case = format!(r#"name="{id} {}" classname="{}""#, xml(title), xml(category.title()));
        cases += &match inner.as_str() {
            "" => format!("  <testcase {case}/>\n"),
            inner => format!("  <testcase {case}>{inner}</testcase>\n"),
        };
    }
    let tests = of_snapshots().count();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"kubectl ocm troubleshoot\" tests=\"{tests}\" \
         failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\">\n{cases}</testsuite>\n"
    )
}

fn lines_of(lines: &[String]) -> String {
    lines.iter().map(|line| xml(line)).collect::<Vec<_>>().join("\n")
}

const fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// The report as SARIF 2.1.0. Places are names of objects: there are no files.
pub(crate) fn sarif(report: &Report) -> Value {
    let rules: Vec<Value> = of_snapshots()
        .map(|check| {
            json!({
                "id": check.id, "name": check.slug,
                "shortDescription": { "text": check.title }, "fullDescription": { "text": check.page.means },
                "help": { "text": check.page.mend },
                "defaultConfiguration": { "level": severity(check.severity) },
            })
        })
        .collect();
    let results: Vec<Value> = report
        .findings
        .iter()
        .map(|finding| {
            let places: Vec<Value> = finding
                .objects
                .iter()
                .map(|object| json!({ "fullyQualifiedName": clean(&object.to_string()), "kind": "resource" }))
                .collect();
            json!({
                "ruleId": finding.id, "level": severity(finding.severity),
                "message": { "text": clean(&match &finding.cluster {
                    Some(cluster) => format!("{cluster}: {}", finding.summary),
                    None => finding.summary.clone(),
                }) },
                "locations": [{ "logicalLocations": places }],
                "partialFingerprints": { "finding/v1": finding.name() },
            })
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "kubectl-ocm-troubleshoot", "version": ocm_cli::VERSION, "rules": rules } },
            "results": results,
        }],
    })
}
