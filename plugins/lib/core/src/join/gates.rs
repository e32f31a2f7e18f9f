//! Feature gates of the klusterlet.

use serde_json::{Value, json};

use crate::gates::{Gate, Part, gate};

/// Every gate of the klusterlet.
pub const GATES: &[Gate] = &[
    gate("ClusterClaim", Part::Registration, true),
    gate("AddonManagement", Part::Registration, true),
    gate("ClusterProperty", Part::Registration, false),
    gate("V1beta1CSRAPICompatibility", Part::Registration, false),
    gate("MultipleHubs", Part::Registration, false),
    gate("ExecutorValidatingCaches", Part::Work, false),
    gate("RawFeedbackJsonString", Part::Work, false),
];

/// Says in the spec of a Klusterlet whether a gate is on, in place of what it said before.
pub(super) fn set_gate(spec: &mut Value, gate: &Gate, on: bool) {
    let typed = json!({ "feature": gate.name, "mode": if on { "Enable" } else { "Disable" } });
    let part = &mut spec[gate.part.member()];
    if !part["featureGates"].is_array() {
        part["featureGates"] = json!([]);
    }
    let Some(gates) = part["featureGates"].as_array_mut() else { return };
    match gates.iter_mut().find(|live| live["feature"] == gate.name) {
        Some(live) => *live = typed,
        None => gates.push(typed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gates::{GateError, parse};

    #[test]
    fn known_gates_are_read_and_others_refused_with_what_was_meant() {
        assert_eq!(
            parse("ClusterProperty=true", GATES).map(|(gate, on)| (gate.part, on)),
            Ok((Part::Registration, true))
        );
        assert_eq!(parse("RawFeedbackJsonString=0", GATES).map(|(gate, on)| (gate.part, on)), Ok((Part::Work, false)));
        let unknown = parse("ClusterClaims=true", GATES);
        assert!(matches!(unknown, Err(GateError::Unknown { near: Some("ClusterClaim"), .. })), "{unknown:?}");
    }
}
