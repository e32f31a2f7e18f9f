//! Feature gates of hubs and klusterlets: what there is, and how they are read.

use crate::nearest;

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

/// Why a text sets no feature gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateError {
    /// It is not `NAME=true` or `NAME=false`.
    NotAPair,
    /// The value is neither.
    NotABool,
    /// There is no gate of this name: the operator would drop it silently.
    Unknown {
        /// The name.
        name: String,
        /// What was probably meant.
        near: Option<&'static str>,
        /// What there is.
        known: Vec<&'static str>,
    },
}

/// Reads `NAME=true` or `NAME=false` of one of the `gates`.
///
/// # Errors
/// For other forms, and for gates that are not among them.
pub fn parse(text: &str, gates: &'static [Gate]) -> Result<(&'static Gate, bool), GateError> {
    let (name, value) = text.trim().split_once('=').ok_or(GateError::NotAPair)?;
    let on = match value.to_ascii_lowercase().as_str() {
        "true" | "t" | "1" => true,
        "false" | "f" | "0" => false,
        _ => return Err(GateError::NotABool),
    };
    let names = || gates.iter().map(|gate| gate.name);
    let near = || names().find(|known| known.eq_ignore_ascii_case(name)).or_else(|| nearest(name, names()));
    match gates.iter().find(|gate| gate.name == name) {
        Some(gate) => Ok((gate, on)),
        None => Err(GateError::Unknown { name: name.to_owned(), near: near(), known: names().collect() }),
    }
}
