//! Writing new expectations into a file, without touching anything else in it.

use std::fmt::Write as _;

use serde_json::Value;

use crate::expect::Expect;
use crate::suite::{Bad, Suite};

impl Suite {
    /// The text of the file with other expectations: of each case, by its index in [`Suite::cases`], the block `expect`
    /// is written anew. All other text stays as it is, comments and ends of lines included.
    ///
    /// # Errors
    /// Names the case whose block cannot be replaced, and how to write it so that it can.
    pub fn updated(&self, yaml: &str, new: &[(usize, Expect)]) -> Result<String, Bad> {
        if new.is_empty() {
            return Ok(yaml.to_owned());
        }
        let text = self.replaced(yaml, new)?;
        // Whatever was written there, what comes out is what was meant, or nothing is changed.
        let read = Self::read(&text);
        for (index, case) in self.cases.iter().enumerate() {
            let changed = new.iter().find(|(changed, _)| *changed == index);
            let is_meant = match &read {
                Ok(read) => {
                    let meant = changed.map_or(&case.expect, |(_, expect)| expect);
                    read.cases.get(index).is_some_and(|other| other.expect == *meant && other.name == case.name)
                }
                // Its lines are those of a text that nobody has. One of the blocks alone has the same effect.
                Err(_) => changed.is_none_or(|one| {
                    self.replaced(yaml, std::slice::from_ref(one)).is_ok_and(|text| Self::read(&text).is_ok())
                }),
            };
            if !is_meant {
                let wrong = "its `expect` cannot be replaced here: write it by hand".to_owned();
                return Err(Bad { line: Some(case.line), case: Some(case.name.clone()), wrong });
            }
        }
        read.map(|_| text).map_err(|_| {
            let wrong = "the `expect` of these cases cannot be replaced together: write them by hand".to_owned();
            Bad { line: None, case: None, wrong }
        })
    }

    /// The text with other blocks.
    fn replaced(&self, yaml: &str, new: &[(usize, Expect)]) -> Result<String, Bad> {
        let mut lines: Vec<String> = yaml.split_inclusive('\n').map(str::to_owned).collect();
        let mut new: Vec<&(usize, Expect)> = new.iter().collect();
        // From the end, so that the lines above keep their numbers.
        new.sort_by_key(|(index, _)| std::cmp::Reverse(*index));
        let end = if yaml.contains("\r\n") { "\r\n" } else { "\n" };
        for (index, expect) in new {
            let Some(case) = self.cases.get(*index) else { continue };
            let bad = || Bad {
                line: Some(case.expect_line),
                case: Some(case.name.clone()),
                wrong: "its `expect` cannot be replaced: write it as a member on a line of its own".to_owned(),
            };
            let (from, to, indent) = block(&lines, case.line, case.expect_line).ok_or_else(bad)?;
            let is_last = !lines[to - 1].ends_with('\n');
            let mut block = render(expect, indent).join(end);
            if !is_last {
                block += end;
            }
            lines.splice(from..to, [block]);
        }
        Ok(lines.concat())
    }
}

/// The lines of the block `expect` that lies between the beginning of a case and the first line of the value, and how
/// far its key is indented.
fn block(lines: &[String], case: u64, value: u64) -> Option<(usize, usize, usize)> {
    let (first, last) = (usize::try_from(case).ok()?.checked_sub(1)?, usize::try_from(value).ok()?.checked_sub(1)?);
    let from =
        (first..=last).rev().find(|&at| lines.get(at).is_some_and(|line| line.trim_start().starts_with("expect:")))?;
    let indent = indent_of(&lines[from]);
    let inside = |line: &String| {
        let text = line.trim();
        !text.is_empty() && indent_of(line) > indent && !text.starts_with('#')
    };
    // The last line that belongs to the value: comments and empty lines behind it belong to what follows.
    let mut to = from + 1;
    for (at, line) in lines.iter().enumerate().skip(from + 1) {
        let text = line.trim();
        if inside(line) {
            to = at + 1;
        } else if !text.is_empty() && !text.starts_with('#') {
            break;
        }
    }
    Some((from, to, indent))
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn render(expect: &Expect, indent: usize) -> Vec<String> {
    let Ok(Value::Object(members)) = serde_json::to_value(expect) else { return Vec::new() };
    // The order in which people write them; maps of JSON have none.
    const ORDER: [&str; 9] =
        ["verdict", "error", "refused", "askAgainSeconds", "reasons", "warnings", "edits", "obligations", "audit"];
    let pad = " ".repeat(indent);
    let mut lines = vec![format!("{pad}expect:")];
    for key in ORDER {
        let Some(value) = members.get(key) else { continue };
        match value {
            Value::Array(items) if items.iter().any(Value::is_object) => {
                lines.push(format!("{pad}  {key}:"));
                lines.extend(items.iter().map(|item| format!("{pad}    - {}", flow(item))));
            }
            other => lines.push(format!("{pad}  {key}: {}", flow(other))),
        }
    }
    lines
}

/// A value in one line.
fn flow(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let mut out = String::from("{");
            // What an edit does comes first.
            let first = members.get_key_value("op").or_else(|| members.get_key_value("code"));
            let rest = members.iter().filter(|(key, _)| first.is_none_or(|(other, _)| other != *key));
            for (index, (key, value)) in first.into_iter().chain(rest).enumerate() {
                let comma = if index == 0 { "" } else { ", " };
                // Writing to a string does not fail.
                let _ = write!(out, "{comma}{}: {}", scalar(key), flow(value));
            }
            out + "}"
        }
        Value::String(text) => scalar(text),
        other => other.to_string(),
    }
}

/// A text, in quotes unless it is plainly a word.
fn scalar(text: &str) -> String {
    const NOT_WORDS: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '-' | '.' | '/' | '_'))
        && !NOT_WORDS.contains(&text.to_ascii_lowercase().as_str());
    if plain { text.to_owned() } else { Value::String(text.to_owned()).to_string() }
}

#[cfg(test)]
mod tests {
    use ocm_policy_abi::{Decision, Edit, Reason, Verdict};
    use ocm_policy_rules::PolicyError;

    use super::*;

    const FILE: &str = "# Above.
cases:
  - name: one   # beside
    request: {operation: create}
    expect: {verdict: allow,
      warnings: []}

  # Between.
  - name: two
    expect:
      # inside
      verdict: deny
      reasons:
        - {code: A}
    # Behind.
    request: {operation: create}
";

    #[test]
    fn only_expectations_change() {
        let suite = Suite::read(FILE).unwrap();
        let reason = Reason { code: "B".into(), message: "m".into(), field: None };
        let denied = Ok(Decision { verdict: Verdict::Deny, reasons: vec![reason], ..Decision::default() });
        let allowed = Ok(Decision {
            verdict: Verdict::Allow,
            edits: vec![Edit::SetLabel { key: "k".into(), value: "true".into() }],
            ..Decision::default()
        });
        let new = [(0, suite.cases[0].expect.update(&denied)), (1, suite.cases[1].expect.update(&allowed))];
        let text = suite.updated(FILE, &new).unwrap();
        assert_eq!(
            text,
            "# Above.
cases:
  - name: one   # beside
    request: {operation: create}
    expect:
      verdict: deny
      reasons: [B]
      warnings: []

  # Between.
  - name: two
    expect:
      verdict: allow
      reasons: []
      edits:
        - {op: set-label, key: k, value: \"true\"}
    # Behind.
    request: {operation: create}
"
        );
        let error = [(1, suite.cases[1].expect.update(&Err(PolicyError::OutOfFuel)))];
        assert!(
            suite
                .updated(FILE, &error)
                .unwrap()
                .contains("    expect:\n      verdict: error\n      error: out-of-fuel\n")
        );
        assert_eq!(suite.updated(FILE, &[]).unwrap(), FILE);
    }

    #[test]
    fn a_case_in_one_line_is_left_to_people() {
        let file = "cases:\n  - {name: n, request: {operation: create}, expect: {verdict: allow}}\n";
        let suite = Suite::read(file).unwrap();
        let new = [(0, suite.cases[0].expect.update(&Err(PolicyError::TimedOut)))];
        assert!(suite.updated(file, &new).unwrap_err().wrong.contains("line of its own"));
    }

    #[test]
    fn ends_of_lines_stay() {
        let error = |suite: &Suite| [(0, suite.cases[0].expect.update(&Err(PolicyError::TimedOut)))];
        let cases = "cases:\n- name: n\n  request: {operation: create}\n  expect:\n    verdict: allow";
        let updated =
            "cases:\n- name: n\n  request: {operation: create}\n  expect:\n    verdict: error\n    error: timed-out";
        for (file, text) in [
            (cases.to_owned(), updated.to_owned()),
            (cases.to_owned() + "\n\n", updated.to_owned() + "\n\n"),
            (cases.replace('\n', "\r\n"), updated.replace('\n', "\r\n")),
            (cases.replace('\n', "\r\n") + "\r\n# x\r\n", updated.replace('\n', "\r\n") + "\r\n# x\r\n"),
        ] {
            let suite = Suite::read(&file).unwrap();
            assert_eq!(suite.updated(&file, &[]).as_deref(), Ok(file.as_str()));
            assert_eq!(suite.updated(&file, &error(&suite)), Ok(text));
        }
    }

    #[test]
    fn what_cannot_be_read_any_more_is_told_of_its_case() {
        let file = "cases:
- name: one
  request: {operation: create}
  expect:
    verdict: deny
    reasons: [A]
- name: two
  request: {operation: create}
  expect: &same
    verdict: allow
- name: three
  request: {operation: create}
  expect: *same
";
        let suite = Suite::read(file).unwrap();
        let error = Err(PolicyError::TimedOut);
        let new = [0, 1].map(|index| (index, suite.cases[index].expect.update(&error)));
        let bad = suite.updated(file, &new).unwrap_err();
        assert_eq!(bad.to_string(), "line 7: case \"two\": its `expect` cannot be replaced here: write it by hand");
    }
}
