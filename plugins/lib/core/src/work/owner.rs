//! Whose a work is: by what it belongs to, and by who has written what we would write.

use std::collections::BTreeSet;

use ocm_api::names::labels;
use serde_json::Value;

use super::content::text;
use crate::order::Collect as _;
use crate::reconcile::FIELD_MANAGER;

/// Whose a work is that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Ours, as far as we would write it.
    Ours,
    /// Something on the hub makes it, and would make it anew: what it is, for people.
    Kept(String),
    /// These field managers have written of it what we would write.
    Others(Vec<String>),
}

impl Owner {
    /// For people, behind the name of the work: `belongs to add-on "a"`; none if it is ours.
    pub fn told(&self) -> Option<String> {
        match self {
            Self::Ours => None,
            Self::Kept(keeper) => Some(format!("belongs to {keeper}")),
            Self::Others(managers) if managers.is_empty() => Some("was made by somebody else".to_owned()),
            Self::Others(managers) => Some(format!("was written by {}", managers.join(", "))),
        }
    }
}

/// What on the hub makes a work, for people; none if nothing is known to.
pub fn keeper(live: &Value) -> Option<String> {
    let owners = live.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let label = |label: &str| live["metadata"]["labels"][label].as_str();
    if let Some(set) = label(labels::WORK_REPLICA_SET) {
        return Some(format!("ManifestWorkReplicaSet {}", set.replacen('.', "/", 1)));
    }
    if let Some(addon) = label(labels::ADDON_NAME) {
        return Some(format!("add-on {addon:?}"));
    }
    let owner = owners.into_iter().flatten().next()?;
    Some(format!("{} {:?}", text(owner, "/kind"), text(owner, "/name")))
}

/// Whose the live work is, as far as the planned one would change it.
pub fn owner(live: &Value, planned: &Value) -> Owner {
    if let Some(keeper) = keeper(live) {
        return Owner::Kept(keeper);
    }
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    let of_spec = |entry: &Value| fields(&entry["fieldsV1"]["f:spec"]);
    let is_ours = |entry: &&Value| entry["manager"] == FIELD_MANAGER && entry["operation"] == "Apply";
    let main: Vec<&Value> = entries.into_iter().flatten().filter(|entry| entry["subresource"].is_null()).collect();
    let ours: BTreeSet<String> = main.iter().copied().filter(is_ours).flat_map(of_spec).collect_set();
    let others = |entry: &&Value| {
        // Of who has lost what an object holds the object itself is left: `f:workload: {}`.
        let is_above =
            |field: &str| ours.iter().any(|own| own.strip_prefix(field).is_some_and(|rest| rest.starts_with('/')));
        let contested =
            |field: &String| !ours.contains(field) && !is_above(field) && planned["spec"].pointer(field).is_some();
        !is_ours(entry) && of_spec(entry).iter().any(contested)
    };
    let managers: BTreeSet<String> =
        main.iter().copied().filter(others).map(|entry| text(entry, "/manager").to_owned()).collect_set();
    match (ours.is_empty(), managers.is_empty()) {
        (false, true) => Owner::Ours,
        _ => Owner::Others(managers.into_iter().collect()),
    }
}

/// The fields of a set that have no fields below them, as JSON pointers.
fn fields(set: &Value) -> Vec<String> {
    let Some(members) = set.as_object() else { return Vec::new() };
    let below = members.iter().filter_map(|(name, set)| Some((name.strip_prefix("f:")?, set)));
    below
        .flat_map(|(name, set)| match set.as_object().is_none_or(serde_json::Map::is_empty) {
            true => vec![format!("/{name}")],
            false => fields(set).into_iter().map(|field| format!("/{name}{field}")).collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, operation: &str, spec: Value) -> Value {
        json!({"manager": manager, "operation": operation, "fieldsV1": {"f:spec": spec}})
    }

    fn content() -> Value {
        json!({".": {}, "f:workload": {".": {}, "f:manifests": {}}})
    }

    fn of(entries: Value) -> Owner {
        let planned = json!({"spec": {"workload": {"manifests": []}}});
        owner(&json!({"metadata": {"managedFields": entries}}), &planned)
    }

    #[test]
    fn a_work_is_ours_if_nobody_else_has_written_what_we_would_write() {
        let ours = entry("kubectl-ocm", "Apply", content());
        assert_eq!(of(json!([ours])), Owner::Ours);
        // It was written by somebody else, and then replaced.
        let replaced = entry("kubectl", "Update", json!({".": {}, "f:workload": {}}));
        assert_eq!(of(json!([ours, replaced])), Owner::Ours);
        // The agent sets a finalizer and the status.
        let agent = json!({"manager": "work", "operation": "Update", "fieldsV1": {"f:metadata": {"f:finalizers": {}}}});
        let status =
            json!({"manager": "work", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}});
        assert_eq!(of(json!([ours, agent, status])), Owner::Ours);
        // Who has set something else keeps it.
        let executor = entry("kubectl-edit", "Update", json!({"f:executor": {"f:subject": {"f:type": {}}}}));
        assert_eq!(of(json!([ours, executor])), Owner::Ours);
        // Both say the same.
        assert_eq!(of(json!([ours, entry("kubectl", "Apply", content())])), Owner::Ours);
        // What is left of others after we have taken it over.
        assert_eq!(
            of(json!([ours, entry("kubectl", "Apply", json!({".": {}, "f:workload": {".": {}}}))])),
            Owner::Ours
        );
    }

    #[test]
    fn a_work_that_others_have_written_is_theirs() {
        let theirs = Owner::Others(vec!["kubectl-client-side-apply".to_owned()]);
        let entry_of_theirs = entry("kubectl-client-side-apply", "Update", content());
        assert_eq!(of(json!([entry_of_theirs])), theirs);
        let less = entry("kubectl-ocm", "Apply", json!({"f:deleteOption": {"f:propagationPolicy": {}}}));
        assert_eq!(of(json!([less, entry_of_theirs])), theirs);
        assert_eq!(of(json!([])), Owner::Others(Vec::new()));
        assert_eq!(theirs.told().unwrap(), "was written by kubectl-client-side-apply");
    }

    #[test]
    fn what_something_on_the_hub_makes_is_its_own() {
        let ours = entry("kubectl-ocm", "Apply", content());
        let with = |mut metadata: Value| {
            metadata["managedFields"] = json!([ours]);
            owner(&json!({"metadata": metadata}), &json!({"spec": {"workload": {"manifests": []}}})).told().unwrap()
        };
        assert_eq!(with(json!({"labels": {labels::ADDON_NAME: "a"}})), "belongs to add-on \"a\"");
        assert_eq!(
            with(json!({"labels": {labels::WORK_REPLICA_SET: "n.set"}})),
            "belongs to ManifestWorkReplicaSet n/set"
        );
        assert_eq!(with(json!({"ownerReferences": [{"kind": "App", "name": "x"}]})), "belongs to App \"x\"");
    }
}
