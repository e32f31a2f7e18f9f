//! How much memory a body takes once it is parsed, and how much of one is looked at that would take too much.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Bytes of a map: the smallest one has the node of a larger one (`BTreeMap` of texts and values, 11 of each).
const MAP: usize = 640;
/// Bytes of a further member of a map or element of a list: nodes may be half empty, lists have room for twice what is in them,
/// and each key lies in memory of its own.
const PART: usize = 160;

/// Bytes of the largest values that are made of a body. A ManifestWork of the size that Open Cluster Management takes, before and
/// after, has a quarter of it.
pub(crate) const MOST: usize = 64 << 20;
/// What stands in texts is told apart where it matters: that costs more than most reviews take to be answered.
const ROUGH: usize = 4 << 20;

/// At most so many bytes the values of a JSON text take, with the text itself. Whoever writes `{"":0}` a million times sends
/// little and has a hundred times as much be made of it.
pub(crate) fn size(text: &[u8]) -> usize {
    let number = |wanted: u8| text.iter().filter(|byte| **byte == wanted).count();
    let rough = of(text.len(), number(b'{'), number(b',') + number(b'['));
    if rough > ROUGH { exact(text) } else { rough }
}

fn of(bytes: usize, maps: usize, parts: usize) -> usize {
    bytes.saturating_add(maps.saturating_mul(MAP)).saturating_add(parts.saturating_mul(PART))
}

fn exact(text: &[u8]) -> usize {
    let (mut maps, mut parts) = (0usize, 0usize);
    let (mut is_text, mut is_escaped) = (false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b'{' if !is_text => maps += 1,
            b',' | b'[' if !is_text => parts += 1,
            _ => {}
        }
    }
    of(text.len(), maps, parts)
}

/// A review without the status of its objects and without what the API server notes of their writers, which agents inflate.
///
/// # Errors
/// When it is no JSON, or still takes more than [`MOST`].
pub(crate) fn thin(text: &[u8]) -> serde_json::Result<Value> {
    let left = Cell::new(MOST);
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Part { place: Place::Review, left: &left }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Where a value stands.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Review,
    Request,
    Object,
    Metadata,
    Elsewhere,
    LeftOut,
}

impl Place {
    fn of(self, key: &str) -> Self {
        match (self, key) {
            (Self::Review, "request") => Self::Request,
            (Self::Request, "object" | "oldObject") => Self::Object,
            (Self::Object, "metadata") => Self::Metadata,
            (Self::Object, "status") | (Self::Metadata, "managedFields") => Self::LeftOut,
            _ => Self::Elsewhere,
        }
    }
}

#[derive(Clone, Copy)]
struct Part<'l> {
    place: Place,
    left: &'l Cell<usize>,
}

impl Part<'_> {
    fn take<E: Error>(self, bytes: usize) -> Result<(), E> {
        let left = self.left.get().checked_sub(bytes).ok_or_else(|| E::custom("it is of too many parts"))?;
        self.left.set(left);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.take(value.len())?;
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element_seed(Part { place: Place::Elsewhere, ..self })? {
            self.take(PART)?;
            list.push(element);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        self.take(MAP)?;
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let place = self.place.of(&key);
            if place == Place::LeftOut {
                members.next_value::<IgnoredAny>()?;
                continue;
            }
            self.take(PART + key.len())?;
            map.insert(key, members.next_value_seed(Part { place, ..self })?);
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_stands_in_texts_makes_no_values_where_it_matters() {
        assert_eq!(size(br#"{"a":[1,2]}"#), 11 + MAP + 2 * PART);
        assert_eq!(exact(br#"{"{,[\"{\\":"[,{"}"#), 18 + MAP);
        assert_eq!(exact(br#"["\\",{}]"#), 9 + MAP + 2 * PART);
        // An agent may write as much to its cluster.
        let text = json!([{"": "{".repeat(1 << 20)}]).to_string();
        assert!(size(text.as_bytes()) < 2 << 20);
        // 1 048 576 such maps take 690 MB.
        let maps = 1 << 20;
        let text = format!("[{}0]", r#"{"":0},"#.repeat(maps));
        assert_eq!(size(text.as_bytes()), text.len() + maps * (MAP + PART) + PART);
    }

    #[test]
    fn a_thin_review_is_the_same_but_for_what_agents_inflate() {
        let object = |status: Value| {
            json!({"metadata": {"name": "c1", "managedFields": [status], "labels": {"managedFields": "a", "status": "b"}},
                   "spec": {"status": [1, -1, 1.5, true, null, "text"]}, "status": status})
        };
        let review = json!({"kind": "AdmissionReview", "status": 1, "request":
            {"uid": "7", "object": object(json!({"a": 1})), "oldObject": object(json!([2])), "options": {"status": {}}}});
        let mut expected = review.clone();
        for name in ["object", "oldObject"] {
            let object = expected["request"][name].as_object_mut().unwrap();
            object.remove("status");
            object["metadata"].as_object_mut().unwrap().remove("managedFields");
        }
        assert_eq!(thin(review.to_string().as_bytes()).unwrap(), expected);
        let many =
            |part: &str| format!(r#"{{"request":{{"object":{{"{part}":[{}0]}}}}}}"#, r#"{"":0},"#.repeat(100_000));
        assert!(thin(many("status").as_bytes()).is_ok());
        assert!(thin(many("spec").as_bytes()).unwrap_err().to_string().contains("of too many parts"));
        assert!(thin(b"{} x").is_err() && thin(b"{").is_err());
    }
}
