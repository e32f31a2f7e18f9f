//! What uses a placement.

use serde_json::Value;

use crate::addon;

/// What uses the placement of this name, for people: of the ManifestWorkReplicaSets of its namespace those that name it, and of
/// the ClusterManagementAddOns those that the hub installs by it. Upstream: `ManifestWorkReplicaSetSpec.placementRefs`,
/// `InstallStrategy.placements`.
pub fn uses(namespace: &str, name: &str, sets: &[Value], definitions: &[Value]) -> Vec<String> {
    let text =
        |object: &Value, pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let names_it = |set: &&Value| {
        let named = set.pointer("/spec/placementRefs").and_then(Value::as_array);
        text(set, "/metadata/namespace") == namespace
            && named.is_some_and(|all| all.iter().any(|one| one["name"] == name))
    };
    let place = format!("{namespace}/{name}");
    let installs_by_it = |definition: &&Value| addon::placements(definition).contains(&place);
    let of_set = |set: &Value| format!("ManifestWorkReplicaSet {namespace}/{}", text(set, "/metadata/name"));
    let of_addon = |definition: &Value| format!("add-on {:?}", text(definition, "/metadata/name"));
    let sets = sets.iter().filter(names_it).map(of_set);
    sets.chain(definitions.iter().filter(installs_by_it).map(of_addon)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_names_a_placement_uses_it() {
        let set = |namespace: &str, name: &str, placement: &str| json!({"metadata": {"namespace": namespace, "name": name}, "spec": {"placementRefs": [{"name": placement}]}});
        let addon = |name: &str, kind: &str, placement: &str| {
            json!({"metadata": {"name": name}, "spec": {"installStrategy": {"type": kind,
                "placements": [{"namespace": "team", "name": placement}]}}})
        };
        let sets = [set("team", "a", "web"), set("other", "b", "web"), set("team", "c", "api")];
        let addons = [addon("x", "Placements", "web"), addon("y", "Manual", "web"), addon("z", "Placements", "api")];
        assert_eq!(uses("team", "web", &sets, &addons), ["ManifestWorkReplicaSet team/a", "add-on \"x\""]);
        assert_eq!(uses("team", "none", &sets, &addons), Vec::<String>::new());
    }
}
