//! Which clusters come first: scores and how much each weighs.

use serde_json::{Value, json};

use crate::nearest;

/// Scores that the placement controller computes itself. Upstream: `getPrioritizers` of `pkg/placement`.
const BUILT_IN: [&str; 4] = ["Balance", "Steady", "ResourceAllocatableCPU", "ResourceAllocatableMemory"];

/// The greatest weight; the least is its negative. Upstream: `PrioritizerConfig.weight`.
const MOST: i32 = 10;

/// A score and its weight. Upstream: `PrioritizerConfig`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prioritizer {
    /// The score.
    pub score: Score,
    /// How much it weighs, from -10 to 10; what weighs less than 0 puts clusters with high scores last.
    pub weight: i32,
}

/// Where a score comes from. Upstream: `ScoreCoordinate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Score {
    /// The placement controller computes it.
    BuiltIn(String),
    /// An add-on writes it.
    AddOn {
        /// Name of the AddOnPlacementScores.
        resource: String,
        /// Name of the score in them.
        score: String,
    },
}

/// Why a text is no prioritizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrioritizerError {
    /// It is neither `BuiltIn:NAME:WEIGHT` nor `AddOn:NAME:SCORE:WEIGHT`.
    Form,
    /// The weight is no number from -10 to 10.
    Weight(String),
    /// No score of this name is built in.
    Unknown {
        /// The name.
        name: String,
        /// What was probably meant.
        near: Option<&'static str>,
        /// What there is.
        known: &'static [&'static str],
    },
}

impl Prioritizer {
    /// Reads `BuiltIn:NAME:WEIGHT` or `AddOn:NAME:SCORE:WEIGHT`.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(text: &str) -> Result<Self, PrioritizerError> {
        let parts: Vec<&str> = text.split(':').collect();
        let (score, weight) = match parts.as_slice() {
            ["BuiltIn", name, weight] => (built_in(name)?, weight),
            ["AddOn", resource, score, weight] if !resource.is_empty() && !score.is_empty() => {
                (Score::AddOn { resource: (*resource).to_owned(), score: (*score).to_owned() }, weight)
            }
            _ => return Err(PrioritizerError::Form),
        };
        match weight.parse() {
            Ok(weight) if (-MOST..=MOST).contains(&weight) => Ok(Self { score, weight }),
            _ => Err(PrioritizerError::Weight((*weight).to_owned())),
        }
    }

    /// It as the spec of a placement has it.
    pub(super) fn config(&self) -> Value {
        let coordinate = match &self.score {
            Score::BuiltIn(name) => json!({"type": "BuiltIn", "builtIn": name}),
            Score::AddOn { resource, score } => {
                json!({"type": "AddOn", "addOn": {"resourceName": resource, "scoreName": score}})
            }
        };
        json!({"scoreCoordinate": coordinate, "weight": self.weight})
    }
}

fn built_in(name: &str) -> Result<Score, PrioritizerError> {
    if BUILT_IN.contains(&name) {
        return Ok(Score::BuiltIn(name.to_owned()));
    }
    let alike = BUILT_IN.into_iter().find(|known| known.eq_ignore_ascii_case(name));
    let near = alike.or_else(|| nearest(name, BUILT_IN));
    Err(PrioritizerError::Unknown { name: name.to_owned(), near, known: &BUILT_IN })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prioritizers_are_scores_and_weights() {
        let steady = Prioritizer::parse("BuiltIn:Steady:3").unwrap();
        assert_eq!(steady, Prioritizer { score: Score::BuiltIn("Steady".to_owned()), weight: 3 });
        assert_eq!(steady.config(), json!({"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Steady"}, "weight": 3}));
        assert_eq!(
            Prioritizer::parse("AddOn:usage:cpu:-10").unwrap().config(),
            json!({"scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": "usage", "scoreName": "cpu"}}, "weight": -10})
        );
    }

    #[test]
    fn what_is_no_prioritizer_is_told() {
        let error = |text: &str| Prioritizer::parse(text).unwrap_err();
        for text in ["", "Steady", "BuiltIn:Steady", "AddOn:usage:1", "AddOn::cpu:1", "Other:a:1"] {
            assert_eq!(error(text), PrioritizerError::Form, "{text}");
        }
        assert_eq!(error("BuiltIn:Steady:11"), PrioritizerError::Weight("11".to_owned()));
        assert_eq!(error("BuiltIn:Steady:x"), PrioritizerError::Weight("x".to_owned()));
        let near = |text: &str| match error(text) {
            PrioritizerError::Unknown { near, known, .. } if known.len() == 4 => near,
            other => panic!("{other:?}"),
        };
        assert_eq!(near("BuiltIn:steady:1"), Some("Steady"));
        assert_eq!(near("BuiltIn:Stedy:1"), Some("Steady"));
        assert_eq!(near("BuiltIn:Anything:1"), None);
    }
}
