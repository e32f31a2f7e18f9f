//! Feature gates of hubs and klusterlets: what there is, and how they are read.

use crate::{Failure, nearest};

/// The part of a ClusterManager or a Klusterlet in which a gate is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// `registrationConfiguration`
    Registration,
    /// `workConfiguration`
    Work,
    /// `placementConfiguration`, of a hub
    Placement,
    /// `addOnManagerConfiguration`, of a hub
    AddOnManager,
}

impl Part {
    /// Every part.
    pub const ALL: [Self; 4] = [Self::Registration, Self::Work, Self::Placement, Self::AddOnManager];

    /// The member of the spec that holds its gates.
    pub const fn member(self) -> &'static str {
        match self {
            Self::Registration => "registrationConfiguration",
            Self::Work => "workConfiguration",
            Self::Placement => "placementConfiguration",
            Self::AddOnManager => "addOnManagerConfiguration",
        }
    }
}

/// A gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Its name.
    pub name: &'static str,
    /// Where it is set.
    pub part: Part,
    /// Whether it is on unless somebody says otherwise.
    pub default: bool,
}

pub(crate) const fn gate(name: &'static str, part: Part, default: bool) -> Gate {
    Gate { name, part, default }
}

/// Reads `NAME=true` or `NAME=false` of one of the `gates` that `owner` ("a hub", "a klusterlet") has.
///
/// # Errors
/// A usage failure for other forms and for gates that it does not have: the operator would drop them silently.
pub(crate) fn parse(text: &str, owner: &str, gates: &'static [Gate]) -> Result<(&'static Gate, bool), Failure> {
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
    let Some(gate) = gates.iter().find(|gate| gate.name == name) else {
        let names = || gates.iter().map(|gate| gate.name);
        let near = names().find(|known| known.eq_ignore_ascii_case(name)).or_else(|| nearest(name, names()));
        return Err(Failure::usage(format!("{owner} has no feature gate {name:?}")).hint(match near {
            Some(near) => format!("did you mean {near}?"),
            None => format!("it has: {}", names().collect::<Vec<_>>().join(", ")),
        }));
    };
    Ok((gate, on))
}
