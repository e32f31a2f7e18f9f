//! Feature gates of hubs and klusterlets: what there is, and how they are read.

use serde_json::Value;

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

/// How a gate stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Its name.
    pub name: String,
    /// Where it is set, or would be.
    pub part: Part,
    /// Whether it is on.
    pub on: bool,
    /// Who says so.
    pub source: Source,
}

/// Who says how a gate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nobody: it is the release's default, as far as it is known here.
    Default,
    /// The spec.
    Spec,
    /// The spec, about a gate that is not known here: the operator may drop it.
    Unknown,
}

/// How the gates stand by the `spec` of a ClusterManager or a Klusterlet: each of `gates`, and those that only the spec has.
pub fn states(spec: &Value, gates: &[Gate]) -> Vec<State> {
    let known = gates.iter().map(|gate| {
        let says = |wanted: &str| set(spec, gate.part).rfind(|(name, _)| *name == wanted).map(|(_, on)| on);
        let own = says(gate.name).map(|on| (on, Source::Spec));
        let (on, source) = own.unwrap_or((gate.default, Source::Default));
        State { name: gate.name.to_owned(), part: gate.part, on, source }
    });
    let others = Part::ALL.into_iter().flat_map(|part| {
        let is_known = move |name: &str| gates.iter().any(|gate| gate.part == part && gate.name == name);
        let others = set(spec, part).filter(move |(name, _)| !is_known(name));
        others.map(move |(name, on)| State { name: name.to_owned(), part, on, source: Source::Unknown })
    });
    known.chain(others).collect()
}

/// The gates that a part of a spec sets. Without a mode a gate is off: the API server fills in `Disable`.
fn set(spec: &Value, part: Part) -> impl DoubleEndedIterator<Item = (&str, bool)> {
    let all = spec[part.member()]["featureGates"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().filter_map(|gate| Some((gate["feature"].as_str()?, gate["mode"] == "Enable")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_gate_stands_as_the_spec_says_or_else_by_default() {
        let gates =
            [gate("A", Part::Registration, true), gate("B", Part::Registration, false), gate("C", Part::Work, true)];
        let spec = json!({
            "registrationConfiguration": { "featureGates": [
                { "feature": "B", "mode": "Enable" }, { "feature": "New", "mode": "Enable" },
            ] },
            "workConfiguration": { "featureGates": [{ "feature": "C" }, { "feature": "B", "mode": "Enable" }] },
        });
        let states: Vec<_> =
            states(&spec, &gates).into_iter().map(|one| (one.name, one.part, one.on, one.source)).collect();
        let state = |name: &str, part, on, source| (name.to_owned(), part, on, source);
        assert_eq!(
            states,
            [
                state("A", Part::Registration, true, Source::Default),
                state("B", Part::Registration, true, Source::Spec),
                state("C", Part::Work, false, Source::Spec),
                state("New", Part::Registration, true, Source::Unknown),
                // It is none of this part.
                state("B", Part::Work, true, Source::Unknown),
            ]
        );
        let all =
            json!({ "registrationConfiguration": { "featureGates": [{ "feature": "AllAlpha", "mode": "Enable" }] } });
        // The operator calls it invalid, and leaves every gate as it is by default.
        let sources: Vec<_> = super::states(&all, &gates).into_iter().map(|one| (one.on, one.source)).collect();
        let default = |on| (on, Source::Default);
        assert_eq!(sources, [default(true), default(false), default(true), (true, Source::Unknown)]);
    }
}
