//! The difference between two objects as edits.
//!
//! A patch of RFC 6902 would say something else: to us missing, null and empty are the same, because typed policies in
//! other languages write an object back in their own way, and taints are told apart by key and effect, not by place.
//! The work grows with the size of both objects and with nothing else, whatever their depth.

use std::collections::BTreeMap;

use ocm_api::names::labels::CLUSTER_SET;
use ocm_policy_abi::{Edit, TaintEffect};
use serde_json::{Map, Value};

use crate::error::{ERROR_BYTES, PolicyError};
use crate::json::{is_empty, shorten, step};

const LABELS: &str = "/metadata/labels";
const ANNOTATIONS: &str = "/metadata/annotations";
const TAINTS: &str = "/spec/taints";
const LEASE: &str = "/spec/leaseDurationSeconds";

/// What stands at a place before and after; none where there is nothing.
type Both<'v> = (Option<&'v Value>, Option<&'v Value>);

/// The edits that make `mutated` of `original`. Missing, null and empty are the same.
///
/// # Errors
/// [`PolicyError::EditRefused`] names the first path of a change that is no edit.
pub fn diff(original: &Value, mutated: &Value) -> Result<Vec<Edit>, PolicyError> {
    let whole = (Some(original), Some(mutated));
    let mut edits = Vec::new();
    for (key, both) in members("", whole)? {
        let editable: &[&str] = match key {
            "metadata" => &[LABELS, ANNOTATIONS],
            "spec" => &[TAINTS, LEASE],
            _ => &[],
        };
        let path = format!("/{}", step(key));
        if editable.is_empty() {
            unchanged(&path, both)?;
            continue;
        }
        for (key, both) in members(&path, both)? {
            let path = format!("{path}/{}", step(key));
            if !editable.contains(&path.as_str()) {
                unchanged(&path, both)?;
            }
        }
    }
    let both = |pointer| (original.pointer(pointer), mutated.pointer(pointer));
    for (key, value) in changes(LABELS, both(LABELS))? {
        edits.push(match (key, value) {
            (CLUSTER_SET, Some(name)) => Edit::SetClusterSet { name },
            (CLUSTER_SET, None) => return Err(refused(&format!("{LABELS}/{}", step(CLUSTER_SET)))),
            (key, Some(value)) => Edit::SetLabel { key: key.to_owned(), value },
            (key, None) => Edit::RemoveLabel { key: key.to_owned() },
        });
    }
    for (key, value) in changes(ANNOTATIONS, both(ANNOTATIONS))? {
        edits.push(match value {
            Some(value) => Edit::SetAnnotation { key: key.to_owned(), value },
            None => Edit::RemoveAnnotation { key: key.to_owned() },
        });
    }
    diff_taints(both(TAINTS), &mut edits)?;
    let (old, new) = both(LEASE);
    if old != new && !(is_empty(old) && is_empty(new)) {
        let seconds = new.and_then(Value::as_u64).and_then(|seconds| u32::try_from(seconds).ok());
        edits.push(Edit::SetLeaseDuration { seconds: seconds.ok_or_else(|| refused(LEASE))? });
    }
    Ok(edits)
}

fn refused(path: &str) -> PolicyError {
    let path = if path.is_empty() { "/" } else { path };
    PolicyError::EditRefused(format!("{}: it is changed, and no edit can do that", shorten(path, ERROR_BYTES)))
}

/// The members of two objects, sorted by key; an object and nothing are compared as well.
fn members<'v>(path: &str, both: Both<'v>) -> Result<Vec<(&'v str, Both<'v>)>, PolicyError> {
    inside(both).ok_or_else(|| refused(path))
}

fn inside<'v>((old, new): Both<'v>) -> Option<Vec<(&'v str, Both<'v>)>> {
    let members = |value: Option<&'v Value>| match value {
        None | Some(Value::Null) => Some(None),
        Some(Value::Object(members)) => Some(Some(members)),
        Some(_) => None,
    };
    let (old, new): (Option<&Map<_, _>>, Option<&Map<_, _>>) = (members(old)?, members(new)?);
    let mut keys: Vec<&str> = old.into_iter().chain(new).flat_map(Map::keys).map(String::as_str).collect();
    keys.sort_unstable();
    keys.dedup();
    let of = |members: Option<&'v Map<String, Value>>, key: &str| members.and_then(|members| members.get(key));
    Some(keys.into_iter().map(|key| (key, (of(old, key), of(new, key)))).collect())
}

/// One step of the way to a value.
#[derive(Clone, Copy)]
enum Step<'v> {
    Key(&'v str),
    Index(usize),
}

/// Refuses any change at or below `path`.
fn unchanged(path: &str, both: Both<'_>) -> Result<(), PolicyError> {
    // Every value that was seen, with where it is found in the one above: a path is written only for a refusal.
    let mut seen: Vec<(usize, Step<'_>)> = Vec::new();
    let mut left = vec![(both, None)];
    while let Some(((old, new), at)) = left.pop() {
        if is_empty(old) && is_empty(new) {
            continue;
        }
        let below: Vec<(Step<'_>, Both<'_>)> = match (old, new) {
            (Some(Value::Array(old)), Some(Value::Array(new))) if old.len() == new.len() => {
                let pairs = old.iter().zip(new).enumerate();
                pairs.map(|(index, (old, new))| (Step::Index(index), (Some(old), Some(new)))).collect()
            }
            (Some(Value::Object(_)), _) | (_, Some(Value::Object(_))) => match inside((old, new)) {
                Some(members) => members.into_iter().map(|(key, both)| (Step::Key(key), both)).collect(),
                None => return Err(refused(&format!("{path}{}", way(&seen, at)))),
            },
            // Both are plain, or of different sorts: nothing is compared twice.
            _ if old == new => continue,
            _ => return Err(refused(&format!("{path}{}", way(&seen, at)))),
        };
        for (step, both) in below.into_iter().rev() {
            // A step that leads from nowhere leads from `path` itself.
            seen.push((at.unwrap_or(usize::MAX), step));
            left.push((both, Some(seen.len() - 1)));
        }
    }
    Ok(())
}

/// The end of a path, as a JSON pointer.
fn way(seen: &[(usize, Step<'_>)], mut at: Option<usize>) -> String {
    let mut steps = Vec::new();
    while let Some((above, step)) = at.and_then(|at| seen.get(at)) {
        steps.push(*step);
        at = Some(*above);
    }
    let written = steps.into_iter().rev().map(|one| match one {
        Step::Key(key) => format!("/{}", step(key)),
        Step::Index(index) => format!("/{index}"),
    });
    written.collect()
}

/// What differs between two maps of texts, sorted by key: the new values, none where a key is gone.
fn changes<'v>(path: &str, (old, new): Both<'v>) -> Result<BTreeMap<&'v str, Option<String>>, PolicyError> {
    let mut found = BTreeMap::new();
    if !is_empty(new) && new.and_then(Value::as_object).is_none() {
        return Err(refused(path));
    }
    let new = new.and_then(Value::as_object);
    let old = old.and_then(Value::as_object);
    for (key, value) in new.into_iter().flatten() {
        if old.and_then(|old| old.get(key)) != Some(value) {
            let value = value.as_str().ok_or_else(|| refused(&format!("{path}/{}", step(key))))?;
            found.insert(key.as_str(), Some(value.to_owned()));
        }
    }
    for key in old.into_iter().flat_map(|old| old.keys()) {
        if new.is_none_or(|new| !new.contains_key(key)) {
            found.insert(key, None);
        }
    }
    Ok(found)
}

/// Taints by key and effect: where they stand and what they are. The order says nothing.
type Taints<'v> = BTreeMap<(&'v str, &'v str), (usize, &'v Value)>;

fn diff_taints((old, new): Both<'_>, edits: &mut Vec<Edit>) -> Result<(), PolicyError> {
    let at = |index: usize| format!("{TAINTS}/{index}");
    let word = |taint: &Value, name: &str| taint.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
    if old == new || (is_empty(old) && is_empty(new)) {
        return Ok(());
    }
    let old = taints(old).map_err(|_| refused(TAINTS))?;
    let new = taints(new).map_err(|index| refused(&index.map_or_else(|| TAINTS.to_owned(), at)))?;
    let mut removed: Vec<&str> = Vec::new();
    for (key, effect) in old.keys().filter(|name| !new.contains_key(*name)) {
        // The first taint of this key, if there is one.
        let same = new.range((*key, "")..).next().filter(|((other, _), _)| other == key);
        if let Some((_, (index, _))) = same {
            // An edit removes all taints of a key, and here one of them stays or comes.
            let wrong = format!("{}: not all taints {key} are removed, {effect} is", at(*index));
            return Err(PolicyError::EditRefused(shorten(&wrong, ERROR_BYTES)));
        }
        if removed.last() != Some(key) {
            removed.push(key);
        }
    }
    edits.extend(removed.into_iter().map(|key| Edit::RemoveTaint { key: key.to_owned() }));
    for ((key, effect), (index, taint)) in new {
        let before = old.get(&(key, effect)).map(|(_, before)| *before);
        let known = ["key", "value", "effect", "timeAdded"];
        let members = taint.as_object().into_iter().flat_map(|members| members.keys());
        if let Some(other) = members.into_iter().find(|member| !known.contains(&member.as_str())) {
            return Err(refused(&format!("{}/{}", at(index), step(other))));
        }
        let time = |taint: &Value| taint.get("timeAdded").filter(|time| !time.is_null()).cloned();
        if time(taint).is_some() && time(taint) != before.and_then(time) {
            return Err(refused(&format!("{}/timeAdded", at(index))));
        }
        let value = word(taint, "value");
        if before.is_some_and(|before| word(before, "value") == value) {
            continue;
        }
        let effect = match effect {
            "NoSelect" => TaintEffect::NoSelect,
            "PreferNoSelect" => TaintEffect::PreferNoSelect,
            "NoSelectIfNew" => TaintEffect::NoSelectIfNew,
            _ => return Err(refused(&format!("{}/effect", at(index)))),
        };
        edits.push(Edit::AddTaint { key: key.to_owned(), value, effect });
    }
    Ok(())
}

/// The taints of a list; the place of the one that is wrong, or none if all is.
fn taints(list: Option<&Value>) -> Result<Taints<'_>, Option<usize>> {
    if is_empty(list) {
        return Ok(Taints::new());
    }
    let mut found = Taints::new();
    for (index, taint) in list.and_then(Value::as_array).ok_or(None)?.iter().enumerate() {
        let word = |name: &str| taint.get(name).and_then(Value::as_str);
        let value_is_text = taint.get("value").is_none_or(|value| value.is_string() || value.is_null());
        let name = word("key").zip(word("effect")).filter(|_| value_is_text).ok_or(Some(index))?;
        if found.insert(name, (index, taint)).is_some() {
            return Err(Some(index));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::mem::ManuallyDrop;

    use serde_json::json;

    use super::*;

    fn object() -> Value {
        json!({
            "metadata": {"name": "c1", "labels": {"team": "a", CLUSTER_SET: "default"}, "annotations": {"n": "1"}},
            "spec": {
                "hubAcceptsClient": false,
                "leaseDurationSeconds": 60,
                "taints": [
                    {"key": "k", "effect": "NoSelect", "timeAdded": "2026-11-20T23:04:52Z"},
                    {"key": "k", "effect": "PreferNoSelect"},
                    {"key": "l", "value": "1", "effect": "NoSelect"},
                ],
            },
        })
    }

    fn mutated(change: impl FnOnce(&mut Value)) -> Result<Vec<Edit>, PolicyError> {
        let mut mutated = object();
        change(&mut mutated);
        diff(&object(), &mutated)
    }

    #[test]
    fn mutations_become_edits() {
        let edits = mutated(|object| {
            object["metadata"]["labels"] = json!({"team": "b", CLUSTER_SET: "prod"});
            object["metadata"]["annotations"] = Value::Null;
            object["metadata"]["creationTimestamp"] = Value::Null;
            object["spec"]["leaseDurationSeconds"] = json!(30);
            object["status"] = json!({});
            object["spec"]["taints"] = json!([
                {"key": "new", "effect": "NoSelect"},
                {"key": "k", "effect": "PreferNoSelect", "value": "v"},
                {"key": "k", "effect": "NoSelect", "timeAdded": "2026-11-20T23:04:52Z"},
            ]);
        });
        let key = String::from;
        assert_eq!(
            edits.unwrap(),
            [
                Edit::SetClusterSet { name: "prod".into() },
                Edit::SetLabel { key: key("team"), value: "b".into() },
                Edit::RemoveAnnotation { key: key("n") },
                Edit::RemoveTaint { key: key("l") },
                Edit::AddTaint { key: key("k"), value: "v".into(), effect: TaintEffect::PreferNoSelect },
                Edit::AddTaint { key: key("new"), value: String::new(), effect: TaintEffect::NoSelect },
                Edit::SetLeaseDuration { seconds: 30 },
            ]
        );
        assert_eq!(mutated(|_| {}).unwrap(), []);
    }

    #[test]
    fn other_mutations_are_refused_by_path() {
        type Change = fn(&mut Value);
        let cases: [(Change, &str); 12] = [
            (|object| object["spec"]["hubAcceptsClient"] = json!(true), "/spec/hubAcceptsClient"),
            (|object| object["metadata"]["finalizers"] = json!(["x"]), "/metadata/finalizers"),
            (|object| object["metadata"]["name"] = json!("c2"), "/metadata/name"),
            (|object| object["status"] = json!({"a": {"b": 1}}), "/status/a/b"),
            (|object| object["spec"] = Value::Null, "/spec/hubAcceptsClient"),
            (|object| *object = json!([]), "/"),
            (|object| object["metadata"]["labels"]["team"] = json!(1), "/metadata/labels/team"),
            (
                |object| object["metadata"]["labels"] = json!({"team": "a"}),
                "/metadata/labels/cluster.open-cluster-management.io~1clusterset",
            ),
            (
                |object| object["spec"]["taints"][0]["timeAdded"] = json!("2020-01-01T00:00:00Z"),
                "/spec/taints/0/timeAdded",
            ),
            (|object| object["spec"]["taints"][0]["more"] = json!(1), "/spec/taints/0/more"),
            (|object| object["spec"]["taints"][1]["effect"] = json!("NoSelectIfNew"), "/spec/taints/0"),
            (|object| object["spec"]["leaseDurationSeconds"] = json!(-1), "/spec/leaseDurationSeconds"),
        ];
        for (change, path) in cases {
            let error = mutated(change).unwrap_err();
            assert!(
                matches!(&error, PolicyError::EditRefused(what) if what.starts_with(&format!("{path}: "))),
                "{path}: {error}"
            );
        }
    }

    #[test]
    fn what_is_not_there_may_be_written_as_null_or_empty() {
        let bare = json!({"metadata": {"name": "c1"}});
        let wordy = json!({"metadata": {"name": "c1", "labels": {}, "finalizers": []}, "spec": null,
                           "status": {"conditions": null, "version": {}}});
        assert_eq!(diff(&bare, &wordy), Ok(Vec::new()));
        assert_eq!(diff(&wordy, &bare), Ok(Vec::new()));
    }

    #[test]
    fn depth_and_breadth_cost_no_more_than_their_size() {
        // Deeper than any stack: both ways down must be taken step by step, and never twice.
        let deep = |end: u32| {
            let mut value = Value::from(end);
            for _ in 0..200_000 {
                value = Value::Array(vec![value]);
            }
            // Freeing it would take a stack as well.
            ManuallyDrop::new(Value::Object(Map::from_iter([("status".to_owned(), value)])))
        };
        let Err(PolicyError::EditRefused(why)) = diff(&deep(1), &deep(2)) else { panic!("it is changed") };
        assert!(why.starts_with("/status/0/0/"), "{why:.40}");
        assert_eq!(diff(&deep(1), &deep(1)), Ok(Vec::new()));
        let taints: Vec<Value> = (0..20_000).map(|n| json!({"key": format!("k{n}"), "effect": "NoSelect"})).collect();
        let edits = diff(
            &json!({"spec": {"taints": taints}}),
            &json!({"spec": {"taints": [{"key": "z", "effect": "NoSelect"}]}}),
        );
        assert_eq!(edits.map(|edits| edits.len()), Ok(20_001));
    }
}
