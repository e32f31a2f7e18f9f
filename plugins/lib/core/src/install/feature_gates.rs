//! The feature gates of a hub, and which of them are on.

use ocm_api::ClusterManager;
use ocm_api::names::hub;
use ocm_api::operator::{FeatureGate, FeatureGateMode};

use super::mode::is_hosted;
use crate::gates::{Gate, Part, gate};

/// Name of the gate with which the hub approves and accepts clusters by itself.
pub const AUTO_APPROVAL: &str = "ManagedClusterAutoApproval";
/// Name of the gate with which clusters without a set join the set `default`.
pub const DEFAULT_CLUSTER_SET: &str = "DefaultClusterSet";
/// Name of the gate with which the hub makes works of ManifestWorkReplicaSets.
pub const REPLICA_SETS: &str = "ManifestWorkReplicaSet";

/// Every gate of the hub.
pub const GATES: &[Gate] = &[
    gate(DEFAULT_CLUSTER_SET, Part::Registration, true),
    gate("ResourceCleanup", Part::Registration, true),
    gate(AUTO_APPROVAL, Part::Registration, false),
    gate("ClusterProfile", Part::Registration, false),
    gate("ClusterImporter", Part::Registration, false),
    gate("V1beta1CSRAPICompatibility", Part::Registration, false),
    gate(REPLICA_SETS, Part::Work, false),
    gate("NilExecutorValidating", Part::Work, false),
    gate("CloudEventsDrivers", Part::Work, false),
    gate("CleanUpCompletedManifestWork", Part::Work, false),
    gate("PlacementDebugServer", Part::Placement, false),
    gate("SIGPlacementDecision", Part::Placement, false),
    gate("AddonManagement", Part::AddOnManager, true),
];

/// Whether new clusters get the set `default`.
pub fn has_default_set(manager: &ClusterManager) -> bool {
    let gates = manager.spec.registration_configuration.iter().flat_map(|registration| &registration.feature_gates);
    !gates.into_iter().any(|gate| gate.feature == DEFAULT_CLUSTER_SET && gate.mode == Some(FeatureGateMode::Disable))
}

/// Whether a hub accepts clusters by itself, whoever creates them: its feature gate ManagedClusterAutoApproval is on. So it
/// may be where none of these is the hub's here: its operator runs on another cluster, or it has none.
pub fn accepts_clusters(managers: &[ClusterManager]) -> bool {
    let mut here = managers.iter().filter(|manager| !is_hosted(manager)).peekable();
    let is_on = |manager: &ClusterManager| {
        let registration = manager.spec.registration_configuration.as_ref();
        registration.is_some_and(|registration| is_alpha_on(&registration.feature_gates, AUTO_APPROVAL))
    };
    here.peek().is_none() || here.any(is_on)
}

/// Whether a hub makes works of ManifestWorkReplicaSets: its feature gate of that name is on. None if none of these is the
/// hub's here: its operator runs on another cluster, or it has none.
pub fn follows_replica_sets(managers: &[ClusterManager]) -> Option<bool> {
    let mut here = managers.iter().filter(|manager| !is_hosted(manager)).peekable();
    here.peek()?;
    Some(here.any(|manager| {
        let work = manager.spec.work_configuration.as_ref();
        work.is_some_and(|work| is_alpha_on(&work.feature_gates, REPLICA_SETS))
    }))
}

/// Whether a gate is on that is off unless somebody says otherwise.
fn is_alpha_on(gates: &[FeatureGate], name: &str) -> bool {
    // AllAlpha is none that the operator knows. Upstream: `ConvertToFeatureGateFlags`.
    let gate = gates.iter().rfind(|gate| gate.feature == name);
    gate.is_some_and(|gate| gate.mode == Some(FeatureGateMode::Enable))
}

/// The set of a new cluster that the ManagedCluster webhook was asked about.
pub fn is_defaulted(manager: &ClusterManager, set: Option<&str>) -> bool {
    !has_default_set(manager) || set == Some(hub::DEFAULT_CLUSTER_SET)
}

#[cfg(test)]
mod tests {
    use ocm_api::operator::ClusterManagerSpec;
    use serde_json::{Value, json};

    use super::*;
    use crate::gates::{GateError, parse};

    #[test]
    fn known_gates_are_read_and_others_refused_with_what_was_meant() {
        assert_eq!(
            parse("ManagedClusterAutoApproval=true", GATES).map(|(gate, on)| (gate.part, on)),
            Ok((Part::Registration, true))
        );
        assert_eq!(parse("AddonManagement=False", GATES).map(|(_, on)| on), Ok(false));
        let near = |text: &str| match parse(text, GATES) {
            Err(GateError::Unknown { near, known, .. }) if known.len() == GATES.len() => near,
            other => panic!("{other:?}"),
        };
        assert_eq!(near("ManagedClusterAutoAproval=true"), Some(AUTO_APPROVAL));
        assert_eq!(near("managedclusterautoapproval=true"), Some(AUTO_APPROVAL));
        assert_eq!(near("Anything=true"), None);
        assert_eq!(parse("ResourceCleanup", GATES), Err(GateError::NotAPair));
        assert_eq!(parse("ResourceCleanup=maybe", GATES), Err(GateError::NotABool));
    }

    #[test]
    fn a_hub_accepts_clusters_where_its_gate_is_on_and_where_nobody_knows() {
        let with = |gates: Value, mode: &str| {
            let spec = json!({"registrationConfiguration": {"featureGates": gates}, "deployOption": {"mode": mode}});
            ClusterManager::new("m", serde_json::from_value(spec).unwrap())
        };
        let gate = |name: &str, mode: &str| json!({"feature": name, "mode": mode});
        let on = with(json!([gate("ManagedClusterAutoApproval", "Enable")]), "Default");
        let off = with(json!([gate("ResourceCleanup", "Enable")]), "Default");
        let all = with(json!([gate("AllAlpha", "Enable")]), "Default");
        let all_but = [gate("AllAlpha", "Enable"), gate("ManagedClusterAutoApproval", "Disable")];
        let all_but = with(json!(all_but), "Default");
        let elsewhere = with(json!([]), "Hosted");
        for (managers, accepts) in [
            (vec![on.clone()], true),
            (vec![off.clone()], false),
            (vec![off.clone(), on], true),
            (vec![all], false),
            (vec![all_but], false),
            (vec![ClusterManager::new("m", ClusterManagerSpec::default())], false),
            (vec![], true),
            (vec![elsewhere.clone()], true),
            (vec![elsewhere, off], false),
        ] {
            assert_eq!(accepts_clusters(&managers), accepts, "{managers:?}");
        }
    }

    #[test]
    fn a_hub_makes_works_of_sets_where_its_gate_is_on() {
        let with = |gates: Value, mode: &str| {
            let spec = json!({"workConfiguration": {"featureGates": gates}, "deployOption": {"mode": mode}});
            ClusterManager::new("m", serde_json::from_value(spec).unwrap())
        };
        let gate = |name: &str, mode: &str| json!({"feature": name, "mode": mode});
        let on = with(json!([gate("ManifestWorkReplicaSet", "Enable")]), "Default");
        let all = with(json!([gate("AllAlpha", "Enable")]), "Default");
        let off = with(json!([gate("ManifestWorkReplicaSet", "Disable"), gate("AllAlpha", "Enable")]), "Default");
        assert_eq!(follows_replica_sets(&[off.clone(), on]), Some(true));
        assert_eq!(follows_replica_sets(&[all]), Some(false));
        assert_eq!(follows_replica_sets(&[off]), Some(false));
        let plain = ClusterManager::new("m", ClusterManagerSpec::default());
        assert_eq!(follows_replica_sets(&[plain]), Some(false));
        let elsewhere = with(json!([gate("ManifestWorkReplicaSet", "Enable")]), "Hosted");
        assert_eq!(follows_replica_sets(&[elsewhere]), None);
        assert_eq!(follows_replica_sets(&[]), None);
    }
}
