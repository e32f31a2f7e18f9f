//! Formats of what goes to stdout.

use clap::{Args, ValueEnum};
use ocm_core::{DryRun, Failure};
use serde::Serialize;
use serde_json::{Value, json};

use crate::clean;

/// What every command that prints objects or results accepts.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Format of stdout
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
}

/// kubectl's values of `--dry-run`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DryRunArg {
    /// For real
    #[default]
    None,
    /// Decide here, change nothing
    Client,
    /// Let the server check everything and store nothing
    Server,
}

impl From<DryRunArg> for DryRun {
    fn from(arg: DryRunArg) -> Self {
        match arg {
            DryRunArg::None => Self::No,
            DryRunArg::Client => Self::Client,
            DryRunArg::Server => Self::Server,
        }
    }
}

/// Formats of stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Columns for people
    #[default]
    Table,
    /// More columns for people
    Wide,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
    /// One kind/name per line
    Name,
}

impl Format {
    /// Whether people, not programs, are going to read it.
    pub fn is_human(self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }

    /// A value as one line of JSON with its end, in which every character can be seen.
    ///
    /// # Errors
    /// When the value cannot be written, e.g. a map whose keys are no strings.
    pub fn json_line<T: Serialize>(value: &T) -> Result<String, Failure> {
        let text = serde_json::to_string(value).map_err(|error| failed(&error))?;
        Ok(escaped(&text, in_json) + "\n")
    }
}

/// Renders a value as the JSON or YAML document that `format` asks for; JSON for the formats of people. Characters that a
/// terminal obeys or does not show are written as escapes: programs read the same.
///
/// # Errors
/// When the value cannot be written, e.g. a map whose keys are no strings.
pub fn document<T: Serialize>(format: Format, value: &T) -> Result<String, Failure> {
    if format == Format::Yaml {
        let text = serde_saphyr::to_string(value).map_err(|error| failed(&error))?;
        if text.chars().all(|c| is_shown(c) || c == '\t') {
            return Ok(text);
        }
    }
    let text = serde_json::to_string_pretty(value).map_err(|error| failed(&error))? + "\n";
    Ok(match format {
        // Only strings in double quotes have escapes. JSON has no others, and is YAML, too.
        Format::Yaml => escaped(&text, in_yaml),
        _ => escaped(&text, in_json),
    })
}

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::other("cannot write the result").because(error)
}

/// JSON in which every character can be seen. What cannot is within strings: all else of JSON is plain.
pub(crate) fn escaped(json: &str, escape: fn(char) -> String) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if is_shown(c) { text.push(c) } else { text += &escape(c) }
    }
    text
}

/// Whether a character is shown as it is; a document has lines.
fn is_shown(c: char) -> bool {
    if c.is_ascii() {
        return c == '\n' || !c.is_ascii_control();
    }
    let mut bytes = [0; 4];
    let text: &str = c.encode_utf8(&mut bytes);
    clean(text) == text
}

pub(crate) fn in_json(c: char) -> String {
    let mut units = [0; 2];
    c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect()
}

fn in_yaml(c: char) -> String {
    match u32::from(c) {
        code @ ..=0xffff => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    }
}

/// An object without the members that are null: what is not known is not there.
pub fn without_nulls(mut object: Value) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    object
}

/// A Kubernetes `List` of objects, as `kubectl get -o json` prints several.
pub fn object_list(items: Vec<Value>) -> Value {
    json!({ "apiVersion": "v1", "kind": "List", "metadata": {}, "items": items })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_escaped_and_programs_read_the_same() {
        const CANARY: &str = "a\u{200b}\u{9b}31m\u{202e}\u{feff}\u{7f}\u{1b}\r\n\t\u{e0041}\u{a0} ü 東京 \"\\ z";
        let value = json!({ CANARY: [CANARY, 1, null, {"plain": true}] });
        let line = Format::json_line(&value).unwrap();
        assert_eq!(line.lines().count(), 1, "{line}");
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
        let json = document(Format::Json, &value).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), value);
        let yaml = document(Format::Yaml, &value).unwrap();
        assert_eq!(serde_saphyr::from_str::<Value>(&yaml).unwrap(), value, "{yaml}");
        for text in [line, json, yaml] {
            assert!(text.contains("ü 東京"), "{text}");
            for part in text.lines() {
                assert_eq!(clean(part), part);
            }
        }
        // What is plain looks as ever.
        assert_eq!(document(Format::Yaml, &json!({"a": "ü"})).unwrap(), "a: ü\n");
    }
}
