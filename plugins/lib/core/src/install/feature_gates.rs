//! The feature gates of a hub.

use crate::Failure;
use crate::gates::{self, Gate, Part, gate};

/// Name of the gate with which the hub approves and accepts clusters by itself.
pub const AUTO_APPROVAL: &str = "ManagedClusterAutoApproval";
/// Name of the gate with which clusters without a set join the set `default`.
pub const DEFAULT_CLUSTER_SET: &str = "DefaultClusterSet";

/// Every gate of the hub.
pub const GATES: &[Gate] = &[
    gate(DEFAULT_CLUSTER_SET, Part::Registration, true),
    gate("ResourceCleanup", Part::Registration, true),
    gate(AUTO_APPROVAL, Part::Registration, false),
    gate("ClusterProfile", Part::Registration, false),
    gate("ClusterImporter", Part::Registration, false),
    gate("V1beta1CSRAPICompatibility", Part::Registration, false),
    gate("ManifestWorkReplicaSet", Part::Work, false),
    gate("NilExecutorValidating", Part::Work, false),
    gate("CloudEventsDrivers", Part::Work, false),
    gate("CleanUpCompletedManifestWork", Part::Work, false),
    gate("PlacementDebugServer", Part::Placement, false),
    gate("SIGPlacementDecision", Part::Placement, false),
    gate("AddonManagement", Part::AddOnManager, true),
];

/// Reads `NAME=true` or `NAME=false`.
///
/// # Errors
/// A usage failure for other forms and for gates that a hub does not have: its operator would drop them silently.
pub fn parse(text: &str) -> Result<(&'static Gate, bool), Failure> {
    gates::parse(text, "a hub", GATES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_gates_are_read_and_others_refused_with_what_was_meant() {
        assert_eq!(
            parse("ManagedClusterAutoApproval=true").map(|(gate, on)| (gate.part, on)),
            Ok((Part::Registration, true))
        );
        assert_eq!(parse("AddonManagement=False").map(|(_, on)| on), Ok(false));
        let failure = parse("ManagedClusterAutoAproval=true").unwrap_err();
        assert_eq!(failure.hints, ["did you mean ManagedClusterAutoApproval?"]);
        assert!(parse("Anything=true").unwrap_err().hints[0].starts_with("it has: "));
        assert!(parse("ResourceCleanup").is_err());
        assert!(parse("ResourceCleanup=maybe").is_err());
    }
}
