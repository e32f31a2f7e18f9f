//! Feature gates of the klusterlet.

use crate::{Failure, nearest};

/// Which agent a gate belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The registration agent.
    Registration,
    /// The work agent.
    Work,
}

impl Part {
    /// The member of the Klusterlet's spec that holds its gates.
    pub const fn member(self) -> &'static str {
        match self {
            Self::Registration => "registrationConfiguration",
            Self::Work => "workConfiguration",
        }
    }
}

/// A feature gate of the klusterlet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Its name.
    pub name: &'static str,
    /// Whose it is.
    pub part: Part,
    /// Whether it is on unless somebody says otherwise.
    pub default: bool,
}

const fn gate(name: &'static str, part: Part, default: bool) -> Gate {
    Gate { name, part, default }
}

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
/// A usage failure for other forms and for gates that no klusterlet has: its operator would drop them silently.
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
    let names = || GATES.iter().map(|gate| gate.name);
    let Some(gate) = GATES.iter().find(|gate| gate.name == name) else {
        let near = names().find(|known| known.eq_ignore_ascii_case(name)).or_else(|| nearest(name, names()));
        return Err(Failure::usage(format!("a klusterlet has no feature gate {name:?}")).hint(match near {
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
        assert_eq!(parse("ClusterProperty=true").map(|(gate, on)| (gate.part, on)), Ok((Part::Registration, true)));
        assert_eq!(parse("RawFeedbackJsonString=0").map(|(gate, on)| (gate.part, on)), Ok((Part::Work, false)));
        assert_eq!(parse("ClusterClaims=true").unwrap_err().hints, ["did you mean ClusterClaim?"]);
        assert!(parse("ClusterClaim").is_err() && parse("ClusterClaim=maybe").is_err());
    }
}
