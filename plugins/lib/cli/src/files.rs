//! Files that people name: read within bounds, and named in every complaint.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use ocm_core::{Failure, yaml};
use serde_json::Value;

/// No file of ours is larger.
pub const MOST: u64 = 64 << 20;

/// Reads a file, or stdin for `-`.
///
/// # Errors
/// A usage failure that names the file.
pub fn read(path: &Path, what: &str) -> Result<Vec<u8>, Failure> {
    let cannot = |error: io::Error| Failure::usage(format!("cannot read {what} {}", path.display())).because(error);
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().take(MOST + 1).read_to_end(&mut bytes).map_err(cannot)?;
    } else {
        File::open(path).and_then(|file| file.take(MOST + 1).read_to_end(&mut bytes)).map_err(cannot)?;
    }
    if bytes.len() as u64 > MOST {
        return Err(Failure::usage(format!("{what} {} is larger than {} MiB", path.display(), MOST >> 20)));
    }
    Ok(bytes)
}

/// Reads what may be stdin beside the caller's work, as questions are: Ctrl-C ends the command while nothing comes, and the end
/// does not wait for the reader.
///
/// # Errors
/// What the reader says.
pub async fn beside<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let reading = tokio::task::spawn_blocking(read);
    reading.await.map_err(|error| Failure::other("what is read has no reader any more").because(error))?
}

/// Reads a file as text.
///
/// # Errors
/// A usage failure that names the file.
pub fn text(path: &Path, what: &str) -> Result<String, Failure> {
    String::from_utf8(read(path, what)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::usage(format!("{what} {} must be text in UTF-8", path.display()))
            .because(format!("byte {at} is not UTF-8"))
    })
}

/// The documents of a file: one JSON value, JSON values line by line, or YAML documents. Lists of Kubernetes are taken
/// apart.
///
/// # Errors
/// A usage failure that names the file and the line.
pub fn documents(path: &Path, what: &str) -> Result<Vec<Value>, Failure> {
    let text = text(path, what)?;
    let found = parse(&text)
        .map_err(|why| Failure::usage(format!("{} is neither JSON nor YAML", path.display())).because(why))?;
    let mut documents = Vec::new();
    for document in found {
        let is_list = document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
        match document {
            Value::Null => {}
            Value::Object(mut members) if is_list && members.get("items").is_some_and(Value::is_array) => {
                if let Some(Value::Array(items)) = members.remove("items") {
                    documents.extend(items);
                }
            }
            other => documents.push(other),
        }
    }
    Ok(documents)
}

/// Reads one value of JSON or YAML.
///
/// # Errors
/// What is wrong with it, and where.
pub fn value(text: &str) -> Result<Value, String> {
    json_or_yaml(text, |text| serde_json::from_str(text), yaml::from_str)
}

fn parse(text: &str) -> Result<Vec<Value>, String> {
    let json = |text: &str| serde_json::Deserializer::from_str(text).into_iter().collect();
    json_or_yaml(text, json, yaml::documents)
}

/// What begins as JSON is read as that, and as YAML where it is none: flow style begins alike. One that is neither was meant
/// to be JSON.
fn json_or_yaml<T>(
    text: &str,
    json: impl FnOnce(&str) -> Result<T, serde_json::Error>,
    yaml: impl FnOnce(&str) -> Result<T, yaml::Error>,
) -> Result<T, String> {
    if !looks_like_json(text) {
        return yaml(text).map_err(|error| error.to_string());
    }
    json(text).or_else(|error| yaml(text).map_err(|_| error.to_string()))
}

fn looks_like_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `kubectl label --local` of 1.35 makes of the same scalars.
    #[test]
    fn scalars_are_those_of_kubectl() {
        let cases: &[(&str, &str)] = &[
            ("y", "true"),
            ("Yes", "true"),
            ("on", "true"),
            ("n", "false"),
            ("NO", "false"),
            ("off", "false"),
            ("TRUE", "true"),
            ("On", "true"),
            ("Y", "true"),
            ("False", "false"),
            ("yEs", r#""yEs""#),
            ("oN", r#""oN""#),
            ("nO", r#""nO""#),
            ("oFF", r#""oFF""#),
            ("tRUE", r#""tRUE""#),
            ("falsE", r#""falsE""#),
            ("nULL", r#""nULL""#),
            ("'y'", r#""y""#),
            ("0x10", "16"),
            ("0o10", "8"),
            ("010", "8"),
            ("0b11", "3"),
            ("1_000", "1000"),
            ("+1", "1"),
            ("~", "null"),
            ("Null", "null"),
            ("NULL", "null"),
            ("12:30:45", r#""12:30:45""#),
            ("2001-01-01", r#""2001-01-01""#),
        ];
        for (scalar, expected) in cases {
            let read = value(&format!("x: {scalar}")).unwrap();
            assert_eq!(read["x"].to_string(), *expected, "{scalar}");
        }
    }

    #[test]
    fn yaml_in_flow_style_is_no_broken_json() {
        let read = value("{kind: A, names: [a, 'b']} # why\n").unwrap();
        assert_eq!(read, serde_json::json!({"kind": "A", "names": ["a", "b"]}));
        assert_eq!(value("[a, b]").unwrap(), serde_json::json!(["a", "b"]));
        let read = parse("{kind: A}\n---\n{kind: B}\n").unwrap();
        assert_eq!(read, [serde_json::json!({"kind": "A"}), serde_json::json!({"kind": "B"})]);
        let lines = parse("{\"kind\": \"A\"}\n{\"kind\": \"B\"}\n").unwrap();
        assert_eq!(lines, read, "JSON values line by line");
        assert!(value("{\"a\": 1").unwrap_err().contains("EOF"), "what is neither was meant to be JSON");
        assert!(parse("{\"a\": 1}\n{\"a\": ").unwrap_err().contains("EOF"));
    }
}
