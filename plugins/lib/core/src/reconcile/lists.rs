//! Lists: those whose entries the server tells apart, and those that it treats as one value.

use serde_json::Value;

use super::rules;

/// Lists whose entries the server tells apart by these members.
pub(super) fn keys(member: &str) -> Option<&'static [&'static str]> {
    match member {
        "containers" | "initContainers" | "env" | "volumes" | "secrets" => Some(&["name"]),
        "ports" => Some(&["containerPort", "protocol"]),
        "volumeMounts" => Some(&["mountPath"]),
        "registrationDrivers" => Some(&["authType"]),
        _ => None,
    }
}

pub(super) fn same_keys(keys: &[&str], left: &Value, right: &Value) -> bool {
    keys.iter().all(|key| left.get(key) == right.get(key))
}

pub(super) type Same = fn(&Value, &Value) -> bool;

/// Lists whose foreign entries stay, and when two entries are about the same thing.
pub(super) fn union(member: &str) -> Option<Same> {
    match member {
        "rules" | "subjects" | "autoApproveUsers" => Some(|left, right| left == right),
        "featureGates" => Some(|left, right| left["feature"] == right["feature"]),
        "imagePullSecrets" => Some(|left, right| left["name"] == right["name"]),
        "args" => Some(|left, right| flag(left) == flag(right)),
        _ => None,
    }
}

/// The name of a flag: `--a=b` is about `--a`.
fn flag(argument: &Value) -> &str {
    let text = argument.as_str().unwrap_or_default();
    if text.starts_with("--") { text.split_once('=').map_or(text, |(name, _)| name) } else { text }
}

/// Adds to every list of [`union`] that the plan mentions what only the live one has. The live order stays, so that
/// nothing changes when nothing is new.
pub(super) fn unite(planned: &mut Value, live: &Value, member: &str) {
    match (planned, live) {
        (Value::Object(planned), Value::Object(live)) => {
            for (key, value) in planned {
                if let Some(live) = live.get(key) {
                    unite(value, live, key);
                }
            }
        }
        (Value::Array(planned), Value::Array(live)) => {
            if let Some(same) = union(member) {
                // Words that are no flags say which program runs and how: those of the plan would come second.
                let is_word = |item: &Value| member == "args" && !flag(item).starts_with("--");
                let replaced = |item: &Value| planned.iter().find(|new| same(new, item)).unwrap_or(item).clone();
                let mut united: Vec<Value> = live.iter().map(replaced).collect();
                let granted = |item: &Value| member == "rules" && rules::are_covered(live, item);
                let new = |item: &&Value| !is_word(item) && !live.iter().any(|live| same(item, live)) && !granted(item);
                united.extend(planned.iter().filter(new).cloned());
                *planned = if live.is_empty() { planned.clone() } else { united };
            } else if let Some(keys) = keys(member) {
                for item in planned {
                    if let Some(live) = live.iter().find(|live| same_keys(keys, item, live)) {
                        unite(item, live, "");
                    }
                }
            }
        }
        _ => {}
    }
}
