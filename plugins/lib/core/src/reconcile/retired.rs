//! Rules that earlier versions of ours have granted and this one does not: on hubs that we installed they go.

use ocm_api::names::bootstrap;
use serde_json::{Value, json};

use super::owned::FIELD_MANAGER;

/// Leaves retired rules of a live role out of what is kept of it. Where another tool has made the role, or has a share in
/// more of it than its rules, they stay: there they may be that tool's.
pub(super) fn without_retired(live: &Value) -> Value {
    let mut live = live.clone();
    let retired = retired(live.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default());
    if live["kind"] == "ClusterRole"
        && !retired.is_empty()
        && is_ours(&live)
        && let Some(rules) = live.get_mut("rules").and_then(Value::as_array_mut)
    {
        rules.retain(|rule| !retired.contains(rule));
    }
    live
}

fn retired(role: &str) -> Vec<Value> {
    match role {
        // Every cluster set; now it is `default` alone.
        bootstrap::CLUSTER_ROLE => vec![json!({
            "apiGroups": ["cluster.open-cluster-management.io"],
            "resources": ["managedclustersets/join"],
            "verbs": ["create"],
        })],
        _ => Vec::new(),
    }
}

/// Whether we have applied the object and others own nothing of it but rules.
fn is_ours(live: &Value) -> bool {
    let entries =
        live.pointer("/metadata/managedFields").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let is_our_apply = |entry: &&Value| entry["manager"] == FIELD_MANAGER && entry["operation"] == "Apply";
    let only_rules = |entry: &Value| {
        entry["fieldsV1"].as_object().is_some_and(|fields| fields.keys().all(|field| field == "f:rules"))
    };
    let made_by_apply =
        live.pointer("/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration").is_some();
    !made_by_apply
        && entries.iter().any(|entry| is_our_apply(&entry))
        && entries.iter().all(|entry| is_our_apply(&entry) || only_rules(entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(managers: Value) -> Value {
        let mut rules = retired(bootstrap::CLUSTER_ROLE);
        rules.push(json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}));
        json!({
            "kind": "ClusterRole", "rules": rules,
            "metadata": {"name": bootstrap::CLUSTER_ROLE, "managedFields": managers},
        })
    }

    #[test]
    fn what_we_granted_once_goes_and_what_others_grant_stays() {
        let ours = json!({"manager": "kubectl-ocm", "operation": "Apply", "fieldsV1": {"f:rules": {}}});
        let edited = json!({"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:rules": {}}});
        let fields = json!({"f:metadata": {"f:labels": {}}, "f:rules": {}});
        let other = json!({"manager": "other", "operation": "Update", "fieldsV1": fields});
        let left = |role: &Value| without_retired(role)["rules"].as_array().map(Vec::len);
        assert_eq!(left(&role(json!([ours]))), Some(1));
        assert_eq!(left(&role(json!([ours, edited]))), Some(1));
        assert_eq!(left(&role(json!([ours, other]))), Some(2));
        assert_eq!(left(&role(json!([other]))), Some(2));
        let mut applied = role(json!([ours]));
        applied["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": "{}"});
        assert_eq!(left(&applied), Some(2));
        let mut another = role(json!([ours]));
        another["metadata"]["name"] = "other".into();
        assert_eq!(left(&another), Some(2));
    }
}
