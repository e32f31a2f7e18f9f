//! Small helpers for JSON values.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// One step of a JSON pointer (RFC 6901), escaped.
pub(crate) fn step(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// A text within bounds for people: control characters become spaces, and what is too long ends with `…`.
pub(crate) fn shorten(text: &str, bytes: usize) -> String {
    const MORE: &str = "…";
    let mut clean: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if clean.len() > bytes {
        let end = (0..=bytes.saturating_sub(MORE.len())).rev().find(|end| clean.is_char_boundary(*end)).unwrap_or(0);
        clean.truncate(end);
        clean.push_str(MORE);
    }
    clean
}

/// SHA-256 in lower-case hex.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// JSON that is the same for the same value: keys sorted, no white space. Does not depend on how the map of
/// `serde_json` is built, which another crate's features decide.
pub(crate) fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// The same for anything that serialises; what cannot be written as JSON is `null`.
pub(crate) fn canonical_of(value: &impl Serialize) -> String {
    canonical(&serde_json::to_value(value).unwrap_or(Value::Null))
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (index, (key, value)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        plain => out.push_str(&plain.to_string()),
    }
}

/// Whether a value says nothing: what Go leaves out or writes as null.
pub(crate) fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_json_is_sorted() {
        let value = serde_json::json!({"b": [1, {"d": null, "c": "x\"y"}], "a": true});
        assert_eq!(canonical(&value), r#"{"a":true,"b":[1,{"c":"x\"y","d":null}]}"#);
        assert_eq!(step("a/b~c"), "a~1b~0c");
        assert_eq!((shorten("äääää", 8), shorten("a\nb", 8)), ("ää…".to_owned(), "a b".to_owned()));
        assert_eq!(sha256_hex(b"")[..8], *"e3b0c442");
    }
}
