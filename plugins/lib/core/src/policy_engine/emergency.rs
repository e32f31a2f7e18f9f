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
    /// Who said so last while policies were out of force: whoever puts them back in force meanwhile sees that by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Box<Self>>,
}

impl Mark {
    /// This mark where policies were out of force already, as an annotation says: who took them out, when and why stays.
    #[must_use]
    pub fn after(self, former: Option<&str>) -> Self {
        match former.and_then(|text| serde_json::from_str::<Self>(text).ok()) {
            Some(former) => Self { again: Some(Box::new(self)), ..former },
            None => self,
        }
    }

    /// What an annotation says, in words that people read. One that somebody else has written is told as it stands.
    pub fn words(text: &str) -> String {
        let Ok(Self { at, by, reason, again }) = serde_json::from_str(text) else { return text.to_owned() };
        let again = again.map(|again| format!("; again at {}, by {}: {}", again.at, again.by, again.reason));
        format!("since {at}, by {by}: {reason}{}", again.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_told_in_words_and_whatever_else_stands_there_as_it_is() {
        let at = "2026-01-01T00:00:00Z".parse().unwrap();
        let mark = Mark { at, by: "ann".to_owned(), reason: "it refuses everything".to_owned(), again: None };
        let text = serde_json::to_string(&mark).unwrap();
        assert_eq!(Mark::words(&text), "since 2026-01-01T00:00:00Z, by ann: it refuses everything");
        assert_eq!(Mark::words("me"), "me");
    }

    #[test]
    fn a_mark_that_is_made_once_more_differs_and_keeps_who_was_first() {
        let mark = |at: &str, by: &str| {
            let reason = format!("{by} says so");
            Mark { at: at.parse().unwrap(), by: by.to_owned(), reason, again: None }
        };
        let text = |mark: &Mark| serde_json::to_string(mark).unwrap();
        let first = mark("2026-01-01T00:00:00Z", "ann");
        assert_eq!(first.clone().after(None), first);
        assert_eq!(first.clone().after(Some("somebody wrote this")), first);
        let second = mark("2026-01-02T00:00:00Z", "ann").after(Some(&text(&first)));
        assert_ne!(text(&second), text(&first));
        let third = mark("2026-01-03T00:00:00Z", "ben").after(Some(&text(&second)));
        let words =
            "since 2026-01-01T00:00:00Z, by ann: ann says so; again at 2026-01-03T00:00:00Z, by ben: ben says so";
        assert_eq!(Mark::words(&text(&third)), words);
    }
}
