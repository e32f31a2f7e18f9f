//! The mark that stays on a hub whose API server was told to ask no policy any more.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The annotation of the policy engine's namespace that holds a [`Mark`] as JSON.
pub const EMERGENCY: &str = "policy.kubectl-ocm.dev/emergency";

/// Who has policies asked no more, since when, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// Since when.
    pub at: Timestamp,
    /// User name.
    pub by: String,
    /// Why.
    pub reason: String,
}

impl Mark {
    /// What an annotation says, in words that people read. One that somebody else has written is told as it stands.
    pub fn words(text: &str) -> String {
        match serde_json::from_str(text) {
            Ok(Self { at, by, reason }) => format!("since {at}, by {by}: {reason}"),
            Err(_) => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_told_in_words_and_whatever_else_stands_there_as_it_is() {
        let at = "2026-01-01T00:00:00Z".parse().unwrap();
        let mark = Mark { at, by: "ann".to_owned(), reason: "it refuses everything".to_owned() };
        let text = serde_json::to_string(&mark).unwrap();
        assert_eq!(Mark::words(&text), "since 2026-01-01T00:00:00Z, by ann: it refuses everything");
        assert_eq!(Mark::words("me"), "me");
    }
}
