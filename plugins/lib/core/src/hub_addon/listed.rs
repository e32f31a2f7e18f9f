//! What a list of add-ons tells of each.

use serde_json::Value;

use super::mark::{maker, managers};
use crate::reconcile::FIELD_MANAGER;

/// The name of an add-on for people; none if its ClusterManagementAddOn has none.
pub fn display_name(definition: &Value) -> Option<&str> {
    definition["spec"]["addOnMeta"]["displayName"].as_str().filter(|name| !name.is_empty())
}

/// How clusters come by an add-on: `Manual`, where people enable it, or `Placements`.
pub fn strategy(definition: &Value) -> &str {
    definition["spec"]["installStrategy"]["type"].as_str().filter(|word| !word.is_empty()).unwrap_or("Manual")
}

/// Who has installed an add-on: `kubectl-ocm (hub-addon NAME)`, `kubectl-ocm` without the rest of its hub's side, or the
/// field managers that have written its ClusterManagementAddOn. None if nothing tells.
pub fn installed_by(definition: &Value) -> Option<String> {
    if let Some(name) = maker(definition) {
        return Some(format!("{FIELD_MANAGER} (hub-addon {name})"));
    }
    let managers = managers(definition);
    (!managers.is_empty()).then(|| managers.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hub_addon::LABEL;
    use crate::hub_addon::mark::tests::live;

    #[test]
    fn who_has_installed_an_add_on_is_told_from_its_definition() {
        let of = |labels: Value, managers: &[&str]| installed_by(&live(labels, managers));
        assert_eq!(of(json!({LABEL: "a"}), &[FIELD_MANAGER]).unwrap(), "kubectl-ocm (hub-addon a)");
        assert_eq!(of(json!({LABEL: "a"}), &["helm"]).unwrap(), "helm");
        assert_eq!(of(json!({}), &["b", "a"]).unwrap(), "a, b");
        assert_eq!(of(json!({}), &[]), None);
    }

    #[test]
    fn without_a_strategy_people_enable_it() {
        assert_eq!((strategy(&json!({})), display_name(&json!({}))), ("Manual", None));
        let definition =
            json!({"spec": {"addOnMeta": {"displayName": "Hello"}, "installStrategy": {"type": "Placements"}}});
        assert_eq!((strategy(&definition), display_name(&definition)), ("Placements", Some("Hello")));
    }
}
