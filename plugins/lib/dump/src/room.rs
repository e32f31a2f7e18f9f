//! How much memory values take: a few characters may stand for much of it.

use std::cell::Cell;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The most that the values of all dumps may take together: bytes, as [`room`] estimates them.
pub(crate) const ROOM: usize = 1 << 30;

/// What an allocation takes besides what is in it, and the least that one takes: bytes.
const BLOCK: usize = 16;
const LEAST: usize = 32;
/// A value, wherever it stands: bytes.
const VALUE: usize = size_of::<Value>();
/// How many members a node of a `BTreeMap` has room for.
const MEMBERS: usize = 11;
/// A node of a map: bytes.
const NODE: usize = MEMBERS * (size_of::<String>() + VALUE) + 2 * BLOCK;

thread_local! {
    /// How much is left for what this thread reads: bytes; none: it was not enough.
    static LEFT: Cell<Option<usize>> = const { Cell::new(Some(0)) };
}

/// How much memory a value takes besides itself: bytes, rather too many than too few.
pub(crate) fn room(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(value) => text(value.len()),
        Value::Array(items) => items.iter().enumerate().map(|(count, value)| item(count) + room(value)).sum(),
        Value::Object(members) => {
            let each = members.iter().enumerate();
            each.map(|(count, (name, value))| member(count) + text(name.len()) + room(value)).sum()
        }
    }
}

/// Reads on this thread while there is room for what [`Measured`] reads: bytes. None: there was too little.
pub(crate) fn within<T>(room: usize, read: impl FnOnce() -> T) -> Option<T> {
    LEFT.set(Some(room));
    let read = read();
    LEFT.get().map(|_| read)
}

/// A text of so many bytes.
fn text(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { (bytes + BLOCK).max(LEAST) }
}

/// One more item of a list that has so many: there is room for four at first, and then for twice as many as before.
fn item(count: usize) -> usize {
    match count {
        0 => 4 * VALUE + BLOCK,
        1..4 => 0,
        _ => 2 * VALUE,
    }
}

/// One more member of a map that has so many: when a node is full, its half goes to a new one, and one more leads to both.
fn member(count: usize) -> usize {
    match count {
        0 => NODE,
        1..MEMBERS => 0,
        MEMBERS => 2 * NODE,
        _ => NODE / 4,
    }
}

fn take<E: Error>(bytes: usize) -> Result<(), E> {
    let left = LEFT.get().and_then(|left| left.checked_sub(bytes));
    LEFT.set(left);
    left.map(drop).ok_or_else(|| E::custom("there is no room for it"))
}

/// A value of a document, for which there was room. What reads YAML takes a type to read, and nothing that knows of a bound.
pub(crate) struct Measured(pub(crate) Value);

impl<'de> Deserialize<'de> for Measured {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        take(text(value.len()))?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut read: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Measured(value)) = read.next_element()? {
            take(item(items.len()))?;
            items.push(value);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut read: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = read.next_key::<String>()? {
            take(member(members.len()) + text(name.len()))?;
            let Measured(value) = read.next_value()?;
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_takes_as_much_as_what_was_read() {
        let many = format!("{{{}}}", (0..50).map(|n| format!("\"{n}\": [{n}]")).collect::<Vec<_>>().join(","));
        for text in [
            "0",
            "\"text\"",
            "[[], {}, null, true, -1, 1.5, 18446744073709551615]",
            r#"{"": 0, "a": {"b": ["c", "d", "e", "f", "g"]}}"#,
            &many,
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            let read = |left: usize| within(left, || serde_json::from_str::<Measured>(text).map(|read| read.0));
            assert_eq!(read(room(&value)).unwrap().unwrap(), value, "{text}");
            if let Some(less) = room(&value).checked_sub(1) {
                assert!(read(less).is_none(), "{text}");
            }
        }
        assert!(within(ROOM, || serde_json::from_str::<Measured>("[0").is_err()).unwrap());
    }
}
