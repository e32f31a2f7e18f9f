//! Definitions of kinds: never replaced by a poorer one.

use std::collections::BTreeSet;

use serde_json::Value;

use super::owned_by_us;

/// Why a live definition is to be kept; none if ours has everything that it has.
pub(super) fn reason_to_keep(planned: &Value, live: &Value) -> Option<String> {
    let (ours, theirs) = (knowledge(planned), knowledge(live));
    let richer: Vec<&String> = theirs.difference(&ours).collect();
    let poorer = ours.difference(&theirs).count();
    match (richer.as_slice(), poorer) {
        // It says the same in other words.
        ([], 0) if owned_by_us(live).is_null() => Some("its schema has everything that ours has".to_owned()),
        ([], _) => None,
        ([first, ..], poorer) => {
            let mut reason = format!("its schema is newer than ours: it knows {} more, such as {first}", richer.len());
            if poorer > 0 {
                reason += &format!("; of ours it lacks {poorer}, which the API server will drop");
            }
            Some(reason)
        }
    }
}

/// Everything that a definition knows: a path per field of each version, and per word of an enumeration.
fn knowledge(definition: &Value) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for version in definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten() {
        let name = version["name"].as_str().unwrap_or_default();
        known.insert(name.to_owned());
        if let Some(schema) = version.pointer("/schema/openAPIV3Schema") {
            fields(schema, name, &mut known);
        }
    }
    known
}

fn fields(schema: &Value, path: &str, known: &mut BTreeSet<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        fields(property, &path, known);
        known.insert(path);
    }
    for word in schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        known.insert(format!("{path}={word}"));
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(schema) = schema.get(inner) {
            fields(schema, &format!("{path}[]"), known);
        }
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        known.insert(format!("{path}.*"));
    }
}
