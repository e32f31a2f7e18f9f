//! The feature gates of a hub.

use crate::{Failure, nearest};

/// The part of a ClusterManager in which a gate is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// `registrationConfiguration`
    Registration,
    /// `workConfiguration`
    Work,
    /// `placementConfiguration`
    Placement,
    /// `addOnManagerConfiguration`
    AddOnManager,
}

impl Part {
    /// Every part.
    pub const ALL: [Self; 4] = [Self::Registration, Self::Work, Self::Placement, Self::AddOnManager];

    /// The member of the ClusterManager's spec.
    pub const fn member(self) -> &'static str {
        match self {
            Self::Registration => "registrationConfiguration",
            Self::Work => "workConfiguration",
            Self::Placement => "placementConfiguration",
            Self::AddOnManager => "addOnManagerConfiguration",
        }
    }
}

/// A gate of the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Its name.
    pub name: &'static str,
    /// Where it is set.
    pub part: Part,
    /// Whether it is on unless somebody says otherwise.
    pub default: bool,
}

const fn gate(name: &'static str, part: Part, default: bool) -> Gate {
    Gate { name, part, default }
}

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
/// A usage failure for other forms and for gates that the hub does not have: its operator would drop them silently.
pub fn parse(text: &str) -> Result<(&'static Gate, bool), Failure> {
    let text = text.trim();
    let Some((name, value)) = text.split_once('=') else {
        return Err(Failure::usage(format!("--feature-gates {text:?} is not NAME=true or NAME=false")));
    };
    let on = match value.to_ascii_lowercase().as_str() {
        "true" | "t" | "1" => true,
        "false" | "f" | "0" => false,
        _ => {
            return Err(Failure::usage(format!("--feature-gates {name}={value}: the value is neither true nor false")));
        }
    };
    let Some(gate) = GATES.iter().find(|gate| gate.name == name) else {
        let names = || GATES.iter().map(|gate| gate.name);
        let near = names().find(|known| known.eq_ignore_ascii_case(name)).or_else(|| nearest(name, names()));
        return Err(Failure::usage(format!("a hub has no feature gate {name:?}")).hint(match near {
            Some(near) => format!("did you mean {near}?"),
            None => format!("it has: {}", names().collect::<Vec<_>>().join(", ")),
        }));
    };
    Ok((gate, on))
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
