//! What an earlier apply of ours has set.

use ocm_api::Manifest;
use serde_json::{Map, Value};

use super::defaults::WHOLE;
use super::lists::{keys, same_keys};
use crate::order::Collect as _;

/// Our name in `metadata.managedFields`.
pub const FIELD_MANAGER: &str = "kubectl-ocm";

/// The part of a live object that our earlier applies own.
pub fn owned_by_us(live: &Value) -> Value {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    let ours = entries.into_iter().flatten().find(|entry| {
        entry["manager"] == FIELD_MANAGER && entry["operation"] == "Apply" && entry["subresource"].as_str().is_none()
    });
    match ours {
        Some(entry) => extract(&entry["fieldsV1"], live).unwrap_or_default(),
        None => Value::Null,
    }
}

/// The part of `live` that a set of fields names (`f:` a member, `k:` an entry by its keys, `v:` an entry by itself).
fn extract(fields: &Value, live: &Value) -> Option<Value> {
    let fields = fields.as_object()?;
    let below: Vec<(&String, &Value)> = fields.iter().filter(|(name, _)| *name != ".").collect();
    if fields.is_empty() {
        return Some(live.clone());
    }
    match live {
        Value::Object(live) => {
            let members = below.into_iter().filter_map(|(name, fields)| {
                let name = name.strip_prefix("f:")?;
                Some((name.to_owned(), extract(fields, live.get(name)?)?))
            });
            Some(Value::Object(members.collect_object()))
        }
        Value::Array(live) => {
            let entries = below.into_iter().filter_map(|(name, fields)| {
                if let Some(value) = name.strip_prefix("v:") {
                    let value: Value = serde_json::from_str(value).ok()?;
                    return live.contains(&value).then_some(value);
                }
                let keys: Map<String, Value> = serde_json::from_str(name.strip_prefix("k:")?).ok()?;
                let entry = live.iter().find(|entry| keys.iter().all(|(key, value)| entry.get(key) == Some(value)))?;
                let mut part = extract(fields, entry)?;
                part.as_object_mut()?.extend(keys);
                Some(part)
            });
            Some(Value::Array(entries.collect()))
        }
        other => Some(other.clone()),
    }
}

/// Adds what the plan does not mention. What it does mention, it decides; of lists, it decides which entries there are.
pub(super) fn carry(planned: &mut Value, owned: &Value) {
    let (Value::Object(planned), Value::Object(owned)) = (planned, owned) else { return };
    for (key, value) in owned {
        match planned.get_mut(key) {
            None => {
                planned.insert(key.clone(), value.clone());
            }
            Some(Value::Array(items)) => {
                let (Some(keys), Some(owned)) = (keys(key), value.as_array()) else { continue };
                for item in items {
                    if let Some(owned) = owned.iter().find(|owned| same_keys(keys, item, owned)) {
                        carry(item, owned);
                    }
                }
            }
            Some(_) if WHOLE.contains(&key.as_str()) => {}
            Some(member) if key == "resourceRequirement" && is_other_class(member, value) => {}
            Some(member) => carry(member, value),
        }
    }
}

/// Whether a class of CPU and memory is not the one that the amounts were given for.
fn is_other_class(planned: &Value, owned: &Value) -> bool {
    planned.get("type").zip(owned.get("type")).is_some_and(|(planned, owned)| planned != owned)
}

/// Whether applying a manifest would change nothing: all of it is there, and nothing that we set before is to go.
pub fn is_applied(manifest: &Manifest, live: &Value) -> bool {
    let (body, owned) = (manifest.body(), owned_by_us(live));
    is_within(body, live, manifest.is_exact()) && (owned.is_null() || is_within(&owned, body, false))
}

/// Whether everything that `part` says is so in `whole`. Of lists of objects, `whole` may hold more, unless they are to be
/// the same.
pub(crate) fn is_within(part: &Value, whole: &Value, same_lists: bool) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            part.iter().all(|(key, value)| whole.get(key).is_some_and(|whole| is_within(value, whole, same_lists)))
        }
        (Value::Array(part), Value::Array(whole))
            if !same_lists && !part.is_empty() && part.iter().all(Value::is_object) =>
        {
            part.iter().all(|item| whole.iter().any(|whole| is_within(item, whole, same_lists)))
        }
        (part, whole) => part == whole,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_part_is_found_in_a_whole() {
        let whole = json!({"a": 1, "l": [{"n": "x", "v": 1}, {"n": "y"}], "s": ["p"]});
        assert!(is_within(&json!({"l": [{"n": "x"}], "s": ["p"]}), &whole, false));
        assert!(!is_within(&json!({"l": [{"n": "z"}]}), &whole, false));
        assert!(!is_within(&json!({"s": []}), &whole, false));
        assert!(!is_within(&json!({"l": [{"n": "x", "v": 1}]}), &whole, true));
    }
}
