//! Defaults under a live object.

use serde_json::Value;

use super::lists::{keys, same_keys, union};
use crate::order::Collect as _;

/// Members that are one value although they look like several: to the server, or because half of one goes with no other half.
pub(super) const WHOLE: &[&str] = &["selector", "nodeSelector", "resourceRequirements", "valueFrom", "roleRef"];

/// Members of which two halves may contradict each other: a probe has one way of asking.
const ONE_OF: &[&str] = &["livenessProbe", "readinessProbe", "startupProbe"];

/// The live object laid over `defaults`: every member of the defaults, with the live value where there is one.
///
/// What only the live object has is left out: it belongs to somebody else, and an apply does not touch it.
pub fn over(defaults: &Value, live: &Value) -> Value {
    lay(defaults, live, "")
}

fn lay(default: &Value, live: &Value, member: &str) -> Value {
    if WHOLE.contains(&member) || (ONE_OF.contains(&member) && !covers(live, default)) {
        return live.clone();
    }
    match (default, live) {
        (Value::Object(default), Value::Object(live)) => {
            let laid = |(key, value): (&String, &Value)| {
                let value = match live.get(key) {
                    Some(live) => lay(value, live, key),
                    None => value.clone(),
                };
                (key.clone(), value)
            };
            Value::Object(default.iter().map(laid).collect_object())
        }
        (Value::Array(default), Value::Array(live)) => match (keys(member), union(member)) {
            (Some(keys), _) => {
                let laid = |item: &Value| match live.iter().find(|live| same_keys(keys, item, live)) {
                    Some(live) if member == "volumes" => live.clone(),
                    Some(live) => lay(item, live, ""),
                    None => item.clone(),
                };
                Value::Array(default.iter().map(laid).collect())
            }
            (None, Some(same)) => {
                let missing = default.iter().filter(|item| !live.iter().any(|live| same(item, live))).cloned();
                Value::Array(live.iter().cloned().chain(missing).collect())
            }
            // An empty list says no more than a missing one.
            (None, None) if live.is_empty() => Value::Array(default.clone()),
            (None, None) => Value::Array(live.clone()),
        },
        (_, live) => live.clone(),
    }
}

/// Whether `live` has a value wherever `default` has one.
fn covers(live: &Value, default: &Value) -> bool {
    let Value::Object(default) = default else { return true };
    default.iter().all(|(key, value)| live.get(key).is_some_and(|live| covers(live, value)))
}
