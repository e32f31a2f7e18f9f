//! Feature gates of the klusterlet.

use crate::Failure;
use crate::gates::{self, Gate, Part, gate};

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

/// Reads `NAME=true` or `NAME=false`.
///
/// # Errors
/// A usage failure for other forms and for gates that a klusterlet does not have: its operator would drop them silently.
pub fn parse(text: &str) -> Result<(&'static Gate, bool), Failure> {
    gates::parse(text, "a klusterlet", GATES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_gates_are_read_and_others_refused_with_what_was_meant() {
        assert_eq!(parse("ClusterProperty=true").map(|(gate, on)| (gate.part, on)), Ok((Part::Registration, true)));
        assert_eq!(parse("RawFeedbackJsonString=0").map(|(gate, on)| (gate.part, on)), Ok((Part::Work, false)));
        assert_eq!(parse("ClusterClaims=true").unwrap_err().hints, ["did you mean ClusterClaim?"]);
        assert!(parse("ClusterClaim").is_err() && parse("ClusterClaim=maybe").is_err());
    }
}
