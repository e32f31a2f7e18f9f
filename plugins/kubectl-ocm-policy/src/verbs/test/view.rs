//! What came of test cases, for people and for CI.

use ocm_cli::{Format, Table, clean};
use ocm_core::Failure;
use serde_json::{Value, json};

use super::cases::{Results, Tested};
use crate::args::TestFormat;
use crate::evaluation;

/// The cases of one module.
pub(super) fn one(results: &Results, format: TestFormat) -> Result<String, Failure> {
    Ok(match format {
        TestFormat::Table => table(results),
        TestFormat::Json => ocm_cli::document(Format::Json, &json(results))?,
        TestFormat::Junit => junit(&[results]),
        TestFormat::Tap => tap(&[("", results)]),
    })
}

/// The cases of the policies of files.
pub(super) fn several(all: &[(String, Results)], format: TestFormat) -> Result<String, Failure> {
    let named: Vec<(&str, &Results)> = all.iter().map(|(name, results)| (name.as_str(), results)).collect();
    Ok(match format {
        TestFormat::Table => {
            let tables = named.iter().map(|(name, results)| format!("{}\n{}", clean(name), table(results)));
            tables.collect::<Vec<_>>().join("\n")
        }
        TestFormat::Json => {
            let documents: Vec<Value> = named.iter().map(|(_, results)| json(results)).collect();
            let passed = named.iter().all(|(_, results)| results.failed() == 0);
            ocm_cli::document(Format::Json, &json!({"passed": passed, "policies": documents}))?
        }
        TestFormat::Junit => junit(&named.iter().map(|(_, results)| *results).collect::<Vec<_>>()),
        TestFormat::Tap => tap(&named),
    })
}

impl Tested {
    fn fuel(&self) -> Option<u64> {
        self.said.as_ref().map(|said| said.outcome.fuel)
    }

    fn answer(&self) -> &'static str {
        match &self.said {
            Some(said) => evaluation::word(&said.outcome.result),
            None if self.refused => "refused",
            None => "not asked",
        }
    }

    fn seconds(&self) -> f64 {
        self.said.as_ref().map_or(0.0, |said| said.micros as f64 / 1e6)
    }
}

fn table(results: &Results) -> String {
    let mut table = Table::new(&["CASE", "RESULT", "ANSWER", "FUEL"]);
    for tested in &results.tested {
        let result = if tested.wrong.is_empty() { "ok" } else { "FAILED" };
        let fuel = tested.fuel().map_or_else(|| "-".to_owned(), |fuel| fuel.to_string());
        table.row([tested.name.as_str(), result, tested.answer(), &fuel]);
    }
    let mut text = table.render();
    for tested in results.tested.iter().filter(|tested| !tested.wrong.is_empty()) {
        text += &format!("\nline {}: {}\n", tested.line, clean(&tested.name));
        for wrong in &tested.wrong {
            text += &format!("  {}\n", clean(wrong));
        }
    }
    let failed = results.failed();
    text += &format!("\n{} passed, {failed} failed", results.tested.len() - failed);
    if let (Some(manifest), Some(uncovered)) = (&results.policy, &results.uncovered) {
        let (all, missing) = (manifest.reasons.len(), uncovered.len());
        text += &format!("; {} of {all} reason codes covered", all - missing);
        if missing > 0 {
            text += &format!(", not {}", clean(&uncovered.join(", ")));
        }
    }
    text + "\n"
}

fn json(results: &Results) -> Value {
    let cases: Vec<Value> = results
        .tested
        .iter()
        .map(|tested| {
            let mut case = json!({
                "name": tested.name,
                "line": tested.line,
                "passed": tested.wrong.is_empty(),
                "wrong": tested.wrong,
                "fuel": tested.fuel(),
            });
            if let Some(said) = &tested.said {
                match &said.outcome.result {
                    Ok(decision) => case["decision"] = json!(decision),
                    Err(error) => case["error"] = json!(error),
                }
            }
            case
        })
        .collect();
    let policy = results.policy.as_ref().map(|policy| json!({"name": policy.name, "version": policy.version}));
    let mut document = json!({
        "policy": policy,
        "tests": results.tests,
        "passed": results.failed() == 0,
        "cases": cases,
    });
    if let Some(uncovered) = &results.uncovered {
        document["uncovered"] = json!(uncovered);
    }
    document
}

fn junit(all: &[&Results]) -> String {
    let count: usize = all.iter().map(|results| results.tested.len()).sum();
    let failed: usize = all.iter().map(|results| results.failed()).sum();
    let mut text =
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"{count}\" failures=\"{failed}\">\n");
    for results in all {
        let (count, failed) = (results.tested.len(), results.failed());
        let name = xml(results.policy.as_ref().map_or("policy", |policy| policy.name.as_str()));
        text += &format!("<testsuite name=\"{name}\" tests=\"{count}\" failures=\"{failed}\">\n");
        for tested in &results.tested {
            let case = xml(&tested.name);
            let open = format!("<testcase classname=\"{name}\" name=\"{case}\" time=\"{:.6}\"", tested.seconds());
            text += &match tested.wrong.first() {
                None => format!("{open}/>\n"),
                Some(first) => format!(
                    "{open}>\n<failure message=\"{}\">{}</failure>\n</testcase>\n",
                    xml(first),
                    xml(&tested.wrong.join("\n"))
                ),
            };
        }
        text += "</testsuite>\n";
    }
    text + "</testsuites>\n"
}

/// Text for an attribute or an element. What XML cannot hold at all becomes a question mark.
fn xml(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            '"' => "&quot;".to_owned(),
            '\n' | '\t' => c.to_string(),
            '\u{fffe}' | '\u{ffff}' => "?".to_owned(),
            c if c.is_control() => "?".to_owned(),
            c => c.to_string(),
        })
        .collect()
}

fn tap(all: &[(&str, &Results)]) -> String {
    let cases = all.iter().flat_map(|(policy, results)| results.tested.iter().map(move |tested| (*policy, tested)));
    let count = all.iter().map(|(_, results)| results.tested.len()).sum::<usize>();
    let mut text = format!("TAP version 14\n1..{count}\n");
    for (index, (policy, tested)) in cases.enumerate() {
        let word = if tested.wrong.is_empty() { "ok" } else { "not ok" };
        let of = if policy.is_empty() { String::new() } else { format!("{policy}: ") };
        // A number sign would begin a directive.
        let name = clean(&format!("{of}{}", tested.name)).replace('#', "\\#");
        text += &format!("{word} {} - {name}\n", index + 1);
        if !tested.wrong.is_empty() {
            text += "  ---\n  wrong:\n";
            for wrong in &tested.wrong {
                text += &format!("    - {}\n", Value::from(clean(wrong)));
            }
            text += "  ...\n";
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_hold_is_a_question_mark() {
        assert_eq!(
            xml("a<b>&\"c\"\t\u{0}\u{1b}\u{7f}\u{fffe}\u{ffff}\u{fffd}ä"),
            "a&lt;b&gt;&amp;&quot;c&quot;\t?????\u{fffd}ä"
        );
    }
}
