//! Small helpers for JSON values.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
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

/// JSON in which no object has two members of one name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unique(pub(crate) Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        UniqueValue.deserialize(deserializer).map(Self)
    }
}

struct UniqueValue;

impl<'de> DeserializeSeed<'de> for UniqueValue {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut found = Vec::new();
        while let Some(item) = items.next_element_seed(Self)? {
            found.push(item);
        }
        Ok(Value::Array(found))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut found = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(Self)?;
            if found.contains_key(&name) {
                return Err(A::Error::custom(format_args!("duplicate member {name:?}")));
            }
            found.insert(name, value);
        }
        Ok(Value::Object(found))
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
    fn equal_members_are_found_at_any_depth() {
        let read = |json: &str| serde_json::from_str::<Unique>(json).map(|Unique(value)| value);
        let json = r#"{"a": [1, -1, 1.5, "x", null, true, {"b": {}}], "b": 18446744073709551615}"#;
        assert_eq!(read(json).unwrap(), serde_json::from_str::<Value>(json).unwrap());
        for twice in [r#"{"a": 1, "a": 1}"#, r#"[{"a": {"b": 1, "c": 2, "b": 3}}]"#, r#"{"a": 1, "\u0061": 2}"#] {
            assert!(read(twice).unwrap_err().to_string().contains("duplicate member"), "{twice}");
        }
    }

    #[test]
    fn canonical_json_is_sorted() {
        let value = serde_json::json!({"b": [1, {"d": null, "c": "x\"y"}], "a": true});
        assert_eq!(canonical(&value), r#"{"a":true,"b":[1,{"c":"x\"y","d":null}]}"#);
        assert_eq!(step("a/b~c"), "a~1b~0c");
        assert_eq!((shorten("äääää", 8), shorten("a\nb", 8)), ("ää…".to_owned(), "a b".to_owned()));
        assert_eq!(sha256_hex(b"")[..8], *"e3b0c442");
    }
}
