//! Settings in use that a release ignores, or that upstream has deprecated.

use std::collections::BTreeSet;

use ocm_api::names::namespaces;
use serde_json::Value;

use crate::gates::{Gate, Part};
use crate::leave::some;
use crate::order::Collect as _;
use crate::{install, join};

/// What of a live ClusterManager has no effect any more.
pub fn of_manager(manager: &Value) -> Vec<String> {
    let mut remarks = unknown_gates(manager, install::feature_gates::GATES, "ClusterManager");
    // Upstream: `pkg/registration/hub/manager.go`, the setting of the driver takes the place of the other.
    let users = manager.pointer("/spec/registrationConfiguration/autoApproveUsers").and_then(Value::as_array);
    let drivers = manager.pointer("/spec/registrationConfiguration/registrationDrivers").and_then(Value::as_array);
    let names_its_own = |driver: &Value| {
        driver["authType"] == "csr"
            && driver
                .pointer("/csr/autoApprovedIdentities")
                .and_then(Value::as_array)
                .is_some_and(|all| !all.is_empty())
    };
    if users.is_some_and(|users| !users.is_empty()) && drivers.into_iter().flatten().any(names_its_own) {
        remarks.push(
            "registrationConfiguration.autoApproveUsers of the ClusterManager has no effect: autoApprovedIdentities of its \
             driver csr stands in its place"
                .to_owned(),
        );
    }
    remarks
}

/// What of a live Klusterlet has no effect.
pub fn of_klusterlet(klusterlet: &Value) -> Vec<String> {
    unknown_gates(klusterlet, join::gates::GATES, "Klusterlet")
}

/// Deprecated fields of ClusterManagementAddOns and ManagedClusterAddOns, live, in use. Upstream: `api:addon/v1alpha1`,
/// `Deprecated:` in the comments of the types.
pub fn of_addons(of_hub: &[Value], of_clusters: &[Value]) -> Vec<String> {
    let told = |objects: &[Value], uses: fn(&Value) -> bool| -> Vec<String> {
        let name = |object: &Value| {
            let text = |member: &str| object["metadata"][member].as_str();
            let name = text("name").unwrap_or_default();
            text("namespace").map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"))
        };
        objects.iter().filter(|object| uses(object)).map(name).collect()
    };
    let configured =
        told(of_hub, |addon| addon["spec"]["addOnConfiguration"].as_object().is_some_and(|it| !it.is_empty()));
    let placed = told(of_clusters, |addon| {
        // The API server writes the usual namespace there when nobody has written another.
        addon["spec"]["installNamespace"]
            .as_str()
            .is_some_and(|name| !name.is_empty() && name != namespaces::AGENT_ADDON)
    });
    let mut remarks = Vec::new();
    if !configured.is_empty() {
        let names = some(&configured);
        remarks.push(format!("deprecated, and in use: spec.addOnConfiguration of ClusterManagementAddOn {names}"));
    }
    if !placed.is_empty() {
        let names = some(&placed);
        remarks.push(format!("deprecated, and in use: spec.installNamespace of ManagedClusterAddOn {names}"));
    }
    remarks
}

fn unknown_gates(object: &Value, known: &[Gate], kind: &str) -> Vec<String> {
    let named = Part::ALL.iter().filter_map(|part| object["spec"][part.member()]["featureGates"].as_array());
    let unknown: BTreeSet<&str> = named
        .flatten()
        .filter_map(|gate| gate["feature"].as_str())
        .filter(|name| !known.iter().any(|gate| gate.name == *name))
        .collect_set();
    match unknown.is_empty() {
        true => Vec::new(),
        false => vec![format!(
            "feature gates of the {kind} that releases up to the default one do not know, and that the operator ignores: {}",
            unknown.into_iter().collect::<Vec<_>>().join(", ")
        )],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_without_effect_are_told() {
        let registration = json!({
            "autoApproveUsers": ["u"],
            "featureGates": [{"feature": "OfYesterday"}, {"feature": "ResourceCleanup"}, {"feature": "AllAlpha"}],
            "registrationDrivers": [{"authType": "csr", "csr": {"autoApprovedIdentities": ["x"]}}],
        });
        let mut manager = json!({"spec": {"registrationConfiguration": registration}});
        let told = of_manager(&manager);
        assert!(
            told[0].ends_with("ignores: AllAlpha, OfYesterday") && told[1].contains("autoApproveUsers"),
            "{told:?}"
        );
        manager["spec"]["registrationConfiguration"]["registrationDrivers"] = json!([{"authType": "csr"}]);
        assert_eq!(of_manager(&manager).len(), 1);
        let klusterlet =
            json!({"spec": {"workConfiguration": {"featureGates": [{"feature": "RawFeedbackJsonString"}]}}});
        assert!(of_klusterlet(&klusterlet).is_empty());
    }

    #[test]
    fn deprecated_fields_of_addons_are_told_where_somebody_has_set_them() {
        let hub = [json!({"metadata": {"name": "a"}, "spec": {"addOnConfiguration": {"crdName": "x"}}})];
        let addon = |namespace: &str| json!({"metadata": {"name": "b", "namespace": "c1"}, "spec": {"installNamespace": namespace}});
        let told = of_addons(&hub, &[addon("mine"), addon(namespaces::AGENT_ADDON)]);
        assert!(
            told[0].ends_with("ClusterManagementAddOn a") && told[1].ends_with("ManagedClusterAddOn c1/b"),
            "{told:?}"
        );
        assert!(of_addons(&[json!({"spec": {"addOnConfiguration": {}}})], &[addon("")]).is_empty());
    }
}
