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

/// Reads a file as text.
///
/// # Errors
/// A usage failure that names the file.
pub fn text(path: &Path, what: &str) -> Result<String, Failure> {
    String::from_utf8(read(path, what)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::usage(format!("{what} {} is no text", path.display())).because(format!("byte {at} is not UTF-8"))
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
    if looks_like_json(text) {
        return serde_json::from_str(text).map_err(|error| error.to_string());
    }
    yaml::from_str(text).map_err(|error| error.to_string())
}

fn parse(text: &str) -> Result<Vec<Value>, String> {
    if looks_like_json(text) {
        let values = serde_json::Deserializer::from_str(text).into_iter().collect::<Result<_, _>>();
        return values.map_err(|error| error.to_string());
    }
    yaml::documents(text).map_err(|error| error.to_string())
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
            ("'y'", r#""y""#),
            ("0x10", "16"),
            ("0o10", "8"),
            ("010", "8"),
            ("0b11", "3"),
            ("1_000", "1000"),
            ("+1", "1"),
            ("~", "null"),
            ("Null", "null"),
            ("12:30:45", r#""12:30:45""#),
            ("2001-01-01", r#""2001-01-01""#),
        ];
        for (scalar, expected) in cases {
            let read = value(&format!("x: {scalar}")).unwrap();
            assert_eq!(read["x"].to_string(), *expected, "{scalar}");
        }
    }
}
