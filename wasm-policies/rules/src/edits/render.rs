//! How changes are written: as a JSON patch, as values, into the facts of a cluster.

use std::collections::{BTreeMap, BTreeSet};

use json_patch::Patch;
use ocm_api::names::labels::CLUSTER_SET;
use ocm_policy_abi::{Cluster, Edit, Map, Taint, Text};
use serde_json::{Map as Object, Value, json};

use crate::error::PolicyError;
use crate::json::{is_empty, step};
use crate::syntax::ANNOTATIONS_BYTES;

/// Writes edits as a JSON patch (RFC 6902) of the object. What is already so is left out. The edits must not clash.
///
/// # Errors
/// [`PolicyError::EditRefused`] if the object has not the shape of a ManagedCluster, or would get more annotations than
/// Kubernetes stores.
pub fn render(object: &Value, edits: &[Edit]) -> Result<Vec<Value>, PolicyError> {
    let mut patch = Vec::new();
    let metadata = member(object, "", "metadata")?;
    if metadata.is_none() {
        return Err(PolicyError::EditRefused("/metadata: there is none".to_owned()));
    }
    let mut labels = Vec::new();
    let mut annotations = Vec::new();
    for edit in edits {
        match edit {
            Edit::SetLabel { key, value } => labels.push((key.as_str(), Some(value.as_str()))),
            Edit::RemoveLabel { key } => labels.push((key, None)),
            Edit::SetClusterSet { name } => labels.push((CLUSTER_SET, Some(name))),
            Edit::SetAnnotation { key, value } => annotations.push((key.as_str(), Some(value.as_str()))),
            Edit::RemoveAnnotation { key } => annotations.push((key, None)),
            _ => {}
        }
    }
    let metadata = metadata.unwrap_or(&Value::Null);
    render_map(member(metadata, "/metadata", "labels")?, "/metadata/labels", &labels, &mut patch);
    let old = member(metadata, "/metadata", "annotations")?;
    bounded(old, &annotations)?;
    render_map(old, "/metadata/annotations", &annotations, &mut patch);
    render_spec(object, edits, &mut patch)?;
    Ok(patch)
}

/// The object as it is with the edits. They must not clash.
///
/// # Errors
/// As [`render`].
pub fn written(object: &Value, edits: &[Edit]) -> Result<Value, PolicyError> {
    let patch = render(object, edits)?;
    let patch: Patch =
        serde_json::from_value(patch.into()).map_err(|error| PolicyError::EditRefused(error.to_string()))?;
    let mut object = object.clone();
    json_patch::patch(&mut object, &patch).map_err(|error| PolicyError::EditRefused(error.to_string()))?;
    Ok(object)
}

/// What edits set, as values by JSON pointer: told to policies at the validating stage, so that they know what other
/// policies wrote.
pub fn values(edits: &[Edit]) -> Map<'static, Text<'static>> {
    let at = |member: &str, key: &str| format!("/metadata/{member}/{}", step(key));
    let value = |edit: &Edit| match edit {
        Edit::SetLabel { key, value } => Some((at("labels", key), value.clone())),
        Edit::SetClusterSet { name } => Some((at("labels", CLUSTER_SET), name.clone())),
        Edit::SetAnnotation { key, value } => Some((at("annotations", key), value.clone())),
        Edit::SetLeaseDuration { seconds } => Some(("/spec/leaseDurationSeconds".to_owned(), seconds.to_string())),
        Edit::AddTaint { key, value, effect } => {
            Some((format!("/spec/taints/{}:{}", step(key), effect.word()), value.clone()))
        }
        Edit::RemoveLabel { .. } | Edit::RemoveAnnotation { .. } | Edit::RemoveTaint { .. } => None,
    };
    edits.iter().filter_map(value).map(|(pointer, value)| (pointer, Text::from(value))).collect()
}

/// A member that is an object; null is none.
fn member<'v>(parent: &'v Value, path: &str, name: &str) -> Result<Option<&'v Value>, PolicyError> {
    match parent.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(found) if found.is_object() => Ok(Some(found)),
        Some(_) => Err(PolicyError::EditRefused(format!("{path}/{name}: it must be an object"))),
    }
}

/// Refuses what would make the annotations larger than Kubernetes stores.
fn bounded(old: Option<&Value>, changes: &[(&str, Option<&str>)]) -> Result<(), PolicyError> {
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    for (key, value) in old.and_then(Value::as_object).into_iter().flatten() {
        sizes.insert(key, key.len() + value.as_str().map_or(0, str::len));
    }
    for (key, value) in changes {
        match value {
            Some(value) => sizes.insert(key, key.len() + value.len()),
            None => sizes.remove(key),
        };
    }
    let total: usize = sizes.values().sum();
    if changes.is_empty() || total <= ANNOTATIONS_BYTES {
        return Ok(());
    }
    Err(PolicyError::EditRefused(format!("annotations of {total} bytes, {ANNOTATIONS_BYTES} allowed")))
}

fn render_map(old: Option<&Value>, path: &str, changes: &[(&str, Option<&str>)], patch: &mut Vec<Value>) {
    let Some(old) = old else {
        let new: Object<_, _> =
            changes.iter().filter_map(|(key, value)| Some(((*key).to_owned(), Value::from((*value)?)))).collect();
        if !new.is_empty() {
            patch.push(json!({"op": "add", "path": path, "value": new}));
        }
        return;
    };
    // Sorted and each once: the same edits give the same patch.
    let changes: BTreeMap<_, _> = changes.iter().copied().collect();
    for (key, value) in changes {
        let at = format!("{path}/{}", step(key));
        match (old.get(key), value) {
            (Some(was), Some(value)) if was != value => {
                patch.push(json!({"op": "replace", "path": at, "value": value}));
            }
            (None, Some(value)) => patch.push(json!({"op": "add", "path": at, "value": value})),
            (Some(_), None) => patch.push(json!({"op": "remove", "path": at})),
            _ => {}
        }
    }
}

fn render_spec(object: &Value, edits: &[Edit], patch: &mut Vec<Value>) -> Result<(), PolicyError> {
    let spec = member(object, "", "spec")?;
    let mut ops = Vec::new();
    for edit in edits {
        if let Edit::SetLeaseDuration { seconds } = edit {
            let old = spec.and_then(|spec| spec.get("leaseDurationSeconds")).filter(|old| !old.is_null());
            if old != Some(&Value::from(*seconds)) {
                let op = if old.is_some() { "replace" } else { "add" };
                ops.push(json!({"op": op, "path": "/spec/leaseDurationSeconds", "value": seconds}));
            }
        }
    }
    render_taints(spec.and_then(|spec| spec.get("taints")), edits, &mut ops)?;
    if spec.is_none() && !ops.is_empty() {
        patch.push(json!({"op": "add", "path": "/spec", "value": {}}));
    }
    patch.append(&mut ops);
    Ok(())
}

fn render_taints(old: Option<&Value>, edits: &[Edit], patch: &mut Vec<Value>) -> Result<(), PolicyError> {
    let taints: &[Value] = match old {
        None | Some(Value::Null) => &[],
        Some(Value::Array(taints)) => taints,
        Some(_) => return Err(PolicyError::EditRefused("/spec/taints: it must be an array".to_owned())),
    };
    let says = |taint: &Value, name: &str, text: &str| taint.get(name).and_then(Value::as_str).unwrap_or("") == text;
    let mut removed = BTreeSet::new();
    let mut added = Vec::new();
    for edit in edits {
        match edit {
            Edit::RemoveTaint { key } => {
                removed.extend((0..taints.len()).filter(|index| says(&taints[*index], "key", key)));
            }
            Edit::AddTaint { key, value, effect } => {
                let effect = effect.word();
                // Without `timeAdded`: the hub's webhook writes it, and takes it from nobody else.
                let mut taint = json!({"key": key, "effect": effect});
                if !value.is_empty() {
                    taint["value"] = json!(value);
                }
                let place = taints.iter().position(|old| says(old, "key", key) && says(old, "effect", effect));
                match place {
                    Some(index) if says(&taints[index], "value", value) => {}
                    Some(index) => {
                        patch.push(json!({"op": "replace", "path": format!("/spec/taints/{index}"), "value": taint}));
                    }
                    None if added.contains(&taint) => {}
                    None => added.push(taint),
                }
            }
            _ => {}
        }
    }
    // From the back, so that the places of the others stay.
    for index in removed.into_iter().rev() {
        patch.push(json!({"op": "remove", "path": format!("/spec/taints/{index}")}));
    }
    if is_empty(old) && !matches!(old, Some(Value::Array(_))) {
        if !added.is_empty() {
            patch.push(json!({"op": "add", "path": "/spec/taints", "value": added}));
        }
    } else {
        patch.extend(added.into_iter().map(|taint| json!({"op": "add", "path": "/spec/taints/-", "value": taint})));
    }
    Ok(())
}

/// Makes the edits to the facts of a cluster, so that who is asked next sees them. The edits must not clash.
pub fn apply(cluster: &mut Cluster<'_>, edits: &[Edit]) {
    for edit in edits {
        match edit {
            Edit::SetLabel { key, value } => set(&mut cluster.labels, key, Some(value)),
            Edit::RemoveLabel { key } => set(&mut cluster.labels, key, None),
            Edit::SetClusterSet { name } => set(&mut cluster.labels, CLUSTER_SET, Some(name)),
            Edit::SetAnnotation { key, value } => set(&mut cluster.annotations, key, Some(value)),
            Edit::RemoveAnnotation { key } => set(&mut cluster.annotations, key, None),
            Edit::AddTaint { key, value, effect } => {
                let effect = effect.word();
                match cluster.taints.iter_mut().find(|taint| taint.key == *key.as_str() && taint.effect == effect) {
                    Some(taint) => taint.value = value.clone().into(),
                    None => cluster.taints.push(Taint {
                        key: key.clone().into(),
                        value: value.clone().into(),
                        effect: effect.into(),
                        added: None,
                    }),
                }
            }
            Edit::RemoveTaint { key } => cluster.taints.retain(|taint| taint.key != *key.as_str()),
            Edit::SetLeaseDuration { seconds } => cluster.lease_duration_seconds = Some(i64::from(*seconds)),
        }
    }
}

/// Sets or removes an entry and keeps the keys sorted, as facts that were read from an object are.
fn set(map: &mut Map<'_, Text<'_>>, key: &str, value: Option<&str>) {
    let mut entries: BTreeMap<String, Text<'_>> =
        map.iter().map(|(key, value)| (key.to_owned(), value.clone())).collect();
    match value {
        Some(value) => entries.insert(key.to_owned(), value.to_owned().into()),
        None => entries.remove(key),
    };
    *map = entries.into_iter().collect();
}
