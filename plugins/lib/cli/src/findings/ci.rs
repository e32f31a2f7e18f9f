//! Reports for pipelines: JUnit's XML and SARIF.

use std::collections::BTreeMap;

use ocm_checks::finding::{Finding, Id};
use ocm_checks::page;
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
    /// What was found and is not to count, by whoever runs the command.
    pub suppressed: Vec<&'a Finding>,
}

/// A text within XML. Control characters cannot stand in it in any way.
fn xml(text: &str) -> String {
    clean(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// One test case per check. What counts for the exit code is a failure, and what could not be checked or looked at an error;
/// anything else that was found stands in the test case's output.
pub fn junit(outcome: &Outcome<'_>) -> String {
    let Outcome { command, checks, findings, counts, unknown, unseen, skipped, suppressed } = outcome;
    // What follows from something else that was found has not passed.
    let mut follows: BTreeMap<Id, Id> = BTreeMap::new();
    for finding in *findings {
        for one in &finding.consequences {
            follows.entry(one.id).or_insert(finding.id);
        }
    }
    let suppressed = |id: Id| {
        let mut all = suppressed.iter().flat_map(|finding| std::iter::once(*finding).chain(&finding.consequences));
        all.any(|finding| finding.id == id)
    };
    let about =
        |list: &[(&[Id], &str)], id: Id| list.iter().find(|(ids, _)| ids.contains(&id)).map(|(_, why)| xml(why));
    let mut cases = String::new();
    let (mut failed, mut errors, mut left_out) = (0, unseen.len(), 0);
    for Check { id, title, category, .. } in checks {
        let found: Vec<&Finding> = findings.iter().filter(|finding| finding.id == *id).collect();
        let inner = if let Some(worst) = found.iter().max_by_key(|finding| finding.severity) {
            let lines: Vec<String> =
                found.iter().map(|finding| xml(&format!("{}: {}", finding.name(), finding.summary))).collect();
            let (kind, lines) = (page::severity(worst.severity), lines.join("\n"));
            let output = || format!("<system-out>{kind}: {lines}</system-out>");
            if found.iter().any(|finding| counts(finding)) {
                failed += 1;
                format!(r#"<failure type="{kind}" message="{}">{lines}</failure>"#, xml(&worst.summary))
            } else if let Some(why) = about(unknown, *id) {
                errors += 1;
                format!(r#"<error message="{why}"/>{}"#, output())
            } else {
                output()
            }
        } else if let Some(why) = about(unknown, *id) {
            errors += 1;
            format!(r#"<error message="{why}"/>"#)
        } else if let Some(cause) = follows.get(id) {
            left_out += 1;
            format!(r#"<skipped message="it is not well, which follows from {cause}"/>"#)
        } else if suppressed(*id) {
            left_out += 1;
            r#"<skipped message="it is not well, which is suppressed"/>"#.to_owned()
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

/// What tells a finding from the others of a run, and is the same in the next run: where it is, and no words with times in them.
fn fingerprint(finding: &Finding) -> String {
    let objects = finding.objects.iter().map(|object| clean(&object.to_string()));
    std::iter::once(finding.name()).chain(objects).collect::<Vec<_>>().join("|")
}

/// The findings as SARIF 2.1.0. Places are names of objects: there are no files.
pub fn sarif(outcome: &Outcome<'_>) -> Value {
    let rule = |check: &&Check| {
        json!({
            "id": check.id, "name": check.slug,
            "shortDescription": { "text": check.title }, "fullDescription": { "text": check.page.means },
            "help": { "text": check.page.mend },
            "defaultConfiguration": { "level": page::severity(check.severity) },
        })
    };
    let result = |finding: &Finding| {
        let names = finding.objects.iter().map(|object| clean(&object.to_string()));
        let places: Vec<Value> = names.map(|name| json!({ "fullyQualifiedName": name, "kind": "resource" })).collect();
        json!({
            "ruleId": finding.id, "level": page::severity(finding.severity),
            "message": { "text": clean(&match &finding.cluster {
                Some(cluster) => format!("{cluster}: {}", finding.summary),
                None => finding.summary.clone(),
            }) },
            "locations": [{ "logicalLocations": places }],
            "partialFingerprints": { "finding/v2": fingerprint(finding) },
        })
    };
    // An input that could not be looked at, or a check that could not be made, makes the run incomplete: it is no result.
    let unseen = outcome
        .unseen
        .iter()
        .map(|(what, why)| json!({ "level": "error", "message": { "text": clean(&format!("{what}: {why}")) } }));
    let unknown = outcome.unknown.iter().flat_map(|(ids, why)| ids.iter().map(move |id| (id, why)));
    let unknown = unknown.map(|(id, why)| {
        json!({ "level": "error", "associatedRule": { "id": id }, "message": { "text": clean(&format!("{id}: {why}")) } })
    });
    let notices: Vec<Value> = unseen.chain(unknown).collect();
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

#[cfg(test)]
mod tests {
    use ocm_checks::finding::Severity;
    use ocm_checks::registry::of_snapshots;

    use super::*;

    fn finding(id: u16, severity: Severity) -> Finding {
        Finding { id: Id(id), severity, ..Finding::error(format!("{id} is not well")) }
    }

    fn outcome<'a>(findings: &'a [Finding], unknown: &'a [Id]) -> Outcome<'a> {
        Outcome {
            command: "kubectl ocm troubleshoot",
            checks: of_snapshots().filter(|check| [2106, 3101, 3103, 6104].contains(&check.id.0)).collect(),
            findings,
            counts: &|finding| finding.severity == Severity::Error,
            unknown: vec![(unknown, "it may not be read")],
            unseen: Vec::new(),
            skipped: Vec::new(),
            suppressed: Vec::new(),
        }
    }

    fn case_of(text: &str, id: u16) -> String {
        let begin = format!("<testcase name=\"OCM{id} ");
        text.lines().find(|line| line.trim().starts_with(&begin)).expect("it has a test case").to_owned()
    }

    #[test]
    fn what_follows_from_something_else_has_not_passed() {
        let cause = finding(2106, Severity::Error);
        let cause = Finding { consequences: vec![finding(3101, Severity::Error)], ..cause };
        let hidden =
            [Finding { consequences: vec![finding(3103, Severity::Warning)], ..finding(6104, Severity::Error) }];
        let findings = [cause];
        let outcome = Outcome { suppressed: hidden.iter().collect(), ..outcome(&findings, &[]) };
        let text = junit(&outcome);
        assert!(text.contains(r#"tests="4" failures="1" errors="0" skipped="3""#), "{text}");
        assert!(case_of(&text, 2106).contains("<failure type=\"error\""), "{text}");
        assert!(
            case_of(&text, 3101).contains("<skipped message=\"it is not well, which follows from OCM2106\"/>"),
            "{text}"
        );
        for id in [3103, 6104] {
            assert!(
                case_of(&text, id).contains("<skipped message=\"it is not well, which is suppressed\"/>"),
                "{text}"
            );
        }
    }

    #[test]
    fn what_could_not_be_checked_makes_a_run_incomplete() {
        let findings = [finding(3101, Severity::Warning)];
        let unknown = [Id(3101), Id(3103)];
        let outcome = outcome(&findings, &unknown);
        let text = junit(&outcome);
        // Of one cluster something was found that does not count, and another one could not be looked at.
        assert!(
            text.contains(r#"errors="2""#) && case_of(&text, 3101).contains("<error message=\"it may not be read\"/>"),
            "{text}"
        );
        let run = &sarif(&outcome)["runs"][0];
        let invocation = &run["invocations"][0];
        assert_eq!(invocation["executionSuccessful"], false);
        let notices = invocation["toolExecutionNotifications"].as_array().unwrap();
        assert_eq!(notices[1]["associatedRule"]["id"], "OCM3103");
        assert_eq!(notices[1]["message"]["text"], "OCM3103: it may not be read");
    }

    #[test]
    fn findings_at_different_objects_are_different_ones() {
        let at =
            |name: &str| finding(6104, Severity::Error).on(ocm_checks::snapshot::Side::Hub, "Namespace", None, name);
        let findings = [at("a"), at("b"), at("a")];
        let whole = sarif(&outcome(&findings, &[]));
        let print = |index: usize| whole["runs"][0]["results"][index]["partialFingerprints"]["finding/v2"].clone();
        assert_ne!(print(0), print(1));
        assert_eq!(print(0), print(2));
    }
}
