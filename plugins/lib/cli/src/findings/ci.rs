//! Reports for pipelines: JUnit's XML and SARIF.

use ocm_checks::finding::{Finding, Id, Severity};
use ocm_checks::registry::Check;
use serde_json::{Value, json};

use crate::{VERSION, clean};

/// What came of checks.
pub struct Outcome<'a> {
    /// The command, as it is typed: `kubectl ocm <verb>`.
    pub command: &'a str,
    /// The checks that it has.
    pub checks: Vec<&'static Check>,
    /// What was found.
    pub findings: &'a [Finding],
    /// Whether a finding counts for the exit code.
    pub counts: &'a dyn Fn(&Finding) -> bool,
    /// What could not be checked, and why; empty: that does not count.
    pub unknown: Vec<(&'a [Id], &'a str)>,
    /// What could not be looked at, whatever would have been checked there, and why; empty: that does not count.
    pub unseen: Vec<(&'a str, &'a str)>,
    /// What was left out, and why.
    pub skipped: Vec<(&'a [Id], &'a str)>,
}

/// A text within XML. Control characters cannot stand in it in any way.
fn xml(text: &str) -> String {
    clean(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// One test case per check. What counts for the exit code is a failure, and what could not be checked or looked at an error;
/// anything else that was found stands in the test case's output.
pub fn junit(outcome: &Outcome<'_>) -> String {
    let Outcome { command, checks, findings, counts, unknown, unseen, skipped } = outcome;
    let about =
        |list: &[(&[Id], &str)], id: Id| list.iter().find(|(ids, _)| ids.contains(&id)).map(|(_, why)| xml(why));
    let mut cases = String::new();
    let (mut failed, mut errors, mut left_out) = (0, unseen.len(), 0);
    for Check { id, title, category, .. } in checks {
        let found: Vec<&Finding> = findings.iter().filter(|finding| finding.id == *id).collect();
        let inner = if let Some(worst) = found.iter().max_by_key(|finding| finding.severity) {
            let lines: Vec<String> =
                found.iter().map(|finding| xml(&format!("{}: {}", finding.name(), finding.summary))).collect();
            let (kind, lines) = (severity(worst.severity), lines.join("\n"));
            if found.iter().any(|finding| counts(finding)) {
                failed += 1;
                format!(r#"<failure type="{kind}" message="{}">{lines}</failure>"#, xml(&worst.summary))
            } else {
                format!("<system-out>{kind}: {lines}</system-out>")
            }
        } else if let Some(why) = about(unknown, *id) {
            errors += 1;
            format!(r#"<error message="{why}"/>"#)
        } else if let Some(why) = about(skipped, *id) {
            left_out += 1;
            format!(r#"<skipped message="{why}"/>"#)
        } else {
            String::new()
        };
        cases += &case(&format!("{id} {title}"), category.title(), &inner);
    }
    for (what, why) in unseen {
        cases += &case(&format!("{what} can be looked at"), "Input", &format!(r#"<error message="{}"/>"#, xml(why)));
    }
    let tests = checks.len() + unseen.len();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{command}\" tests=\"{tests}\" \
         failures=\"{failed}\" errors=\"{errors}\" skipped=\"{left_out}\">\n{cases}</testsuite>\n"
    )
}

fn case(name: &str, class: &str, inner: &str) -> String {
    let case = format!(r#"name="{}" classname="{}""#, xml(name), xml(class));
    match inner {
        "" => format!("  <testcase {case}/>\n"),
        inner => format!("  <testcase {case}>{inner}</testcase>\n"),
    }
}

const fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// The findings as SARIF 2.1.0. Places are names of objects: there are no files.
pub fn sarif(outcome: &Outcome<'_>) -> Value {
    let rule = |check: &&Check| {
        json!({
            "id": check.id, "name": check.slug,
            "shortDescription": { "text": check.title }, "fullDescription": { "text": check.page.means },
            "help": { "text": check.page.mend },
            "defaultConfiguration": { "level": severity(check.severity) },
        })
    };
    let result = |finding: &Finding| {
        let names = finding.objects.iter().map(|object| clean(&object.to_string()));
        let places: Vec<Value> = names.map(|name| json!({ "fullyQualifiedName": name, "kind": "resource" })).collect();
        json!({
            "ruleId": finding.id, "level": severity(finding.severity),
            "message": { "text": clean(&match &finding.cluster {
                Some(cluster) => format!("{cluster}: {}", finding.summary),
                None => finding.summary.clone(),
            }) },
            "locations": [{ "logicalLocations": places }],
            "partialFingerprints": { "finding/v1": finding.name() },
        })
    };
    // An input that could not be looked at makes the run incomplete, which is no result of a rule.
    let notices: Vec<Value> = outcome
        .unseen
        .iter()
        .map(|(what, why)| json!({ "level": "error", "message": { "text": clean(&format!("{what}: {why}")) } }))
        .collect();
    let mut run = json!({
        "tool": { "driver": {
            "name": outcome.command.replace(' ', "-"), "version": VERSION,
            "rules": outcome.checks.iter().map(rule).collect::<Vec<_>>(),
        } },
        "results": outcome.findings.iter().map(result).collect::<Vec<_>>(),
    });
    if !notices.is_empty() {
        run["invocations"] = json!([{ "executionSuccessful": false, "toolExecutionNotifications": notices }]);
    }
    json!({ "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run] })
}
