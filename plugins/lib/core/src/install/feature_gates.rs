//! The feature gates of a hub.

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

#[cfg(test)]
mod tests {
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
}
