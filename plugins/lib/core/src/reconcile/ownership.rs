//! Taking over what others own of an object.

use serde_json::{Map, Value, json};

use super::owned::FIELD_MANAGER;

/// `metadata.managedFields` of a live object, with its whole spec as one that we have applied: what the next apply does not
/// mention, goes. Besides the spec, others keep what they own. Kubernetes: `csaupgrade.UpgradeManagedFields`, which does the
/// same for kubectl.
pub fn taken_over(live: &Value, api_version: &str) -> Value {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    let (mut ours, mut kept) = (json!({}), Vec::new());
    for entry in entries.into_iter().flatten() {
        let mut entry = entry.clone();
        let is_main = entry["subresource"].is_null();
        if is_main && entry["manager"] == FIELD_MANAGER && entry["operation"] == "Apply" {
            unite(&mut ours, &entry["fieldsV1"]);
            continue;
        }
        if is_main && let Some(fields) = entry.get_mut("fieldsV1").and_then(Value::as_object_mut) {
            if let Some(spec) = fields.remove("f:spec") {
                unite(&mut ours, &json!({"f:spec": spec}));
            }
            if fields.is_empty() {
                continue;
            }
        }
        kept.push(entry);
    }
    // What nobody has noted down as theirs.
    for member in live["spec"].as_object().into_iter().flat_map(Map::keys) {
        let field = format!("f:{member}");
        if ours["f:spec"].get(&field).is_none() {
            ours["f:spec"][field] = json!({});
        }
    }
    kept.push(json!({
        "manager": FIELD_MANAGER, "operation": "Apply", "apiVersion": api_version, "fieldsType": "FieldsV1", "fieldsV1": ours,
    }));
    Value::Array(kept)
}

/// Adds a set of fields to another. An empty member is the field itself; beside fields below it, that is said by a dot.
fn unite(all: &mut Value, more: &Value) {
    let (Value::Object(all), Value::Object(more)) = (all, more) else { return };
    for (name, below) in more {
        match all.get_mut(name) {
            None => {
                all.insert(name.clone(), below.clone());
            }
            Some(known) => {
                let is_leaf = |set: &Value| set.as_object().is_none_or(Map::is_empty);
                let is_whole = is_leaf(known) != is_leaf(below);
                unite(known, below);
                if is_whole && name != "." {
                    known["."] = json!({});
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spec_becomes_ours_and_the_rest_stays() {
        let live = json!({"spec": {"a": 1, "b": {"c": 2, "d": 3}, "e": 4}, "metadata": {"managedFields": [
            {"manager": "kubectl-ocm", "operation": "Apply", "apiVersion": "g/v1", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": {"f:labels": {"f:x": {}}}, "f:spec": {"f:a": {}}}},
            {"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:spec": {"f:a": {}, "f:b": {"f:c": {}}}}},
            {"manager": "edit", "operation": "Update",
                "fieldsV1": {"f:metadata": {"f:finalizers": {}}, "f:spec": {"f:b": {}}}},
            {"manager": "hub", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
        ]}});
        let entries = taken_over(&live, "g/v1");
        assert_eq!(
            entries,
            json!([
                {"manager": "edit", "operation": "Update", "fieldsV1": {"f:metadata": {"f:finalizers": {}}}},
                {"manager": "hub", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
                {"manager": "kubectl-ocm", "operation": "Apply", "apiVersion": "g/v1", "fieldsType": "FieldsV1",
                    "fieldsV1": {
                        "f:metadata": {"f:labels": {"f:x": {}}},
                        "f:spec": {"f:a": {}, "f:b": {".": {}, "f:c": {}}, "f:e": {}},
                    }},
            ])
        );
    }

    #[test]
    fn an_object_without_notes_is_ours_as_a_whole() {
        let entries = taken_over(&json!({"metadata": {}, "spec": {"a": 1}}), "g/v1");
        assert_eq!(entries[0]["fieldsV1"], json!({"f:spec": {"f:a": {}}}));
    }
}
