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
    /// When it was said once more, if it was: whoever puts policies back in force meanwhile sees that by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Timestamp>,
    /// User name.
    pub by: String,
    /// Why.
    pub reason: String,
}

impl Mark {
    /// This mark where policies were out of force already, as an annotation says: since when they were stays.
    #[must_use]
    pub fn after(self, former: Option<&str>) -> Self {
        match former.and_then(|text| serde_json::from_str::<Self>(text).ok()) {
            Some(former) => Self { at: former.at, again: Some(self.at), ..self },
            None => self,
        }
    }

    /// What an annotation says, in words that people read. One that somebody else has written is told as it stands.
    pub fn words(text: &str) -> String {
        match serde_json::from_str(text) {
            Ok(Self { at, by, reason, .. }) => format!("since {at}, by {by}: {reason}"),
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
        let mark = Mark { at, again: None, by: "ann".to_owned(), reason: "it refuses everything".to_owned() };
        let text = serde_json::to_string(&mark).unwrap();
        assert_eq!(Mark::words(&text), "since 2026-01-01T00:00:00Z, by ann: it refuses everything");
        assert_eq!(Mark::words("me"), "me");
    }

    #[test]
    fn a_mark_that_is_made_once_more_differs_and_keeps_since_when() {
        let mark = |at: &str, by: &str| Mark {
            at: at.parse().unwrap(),
            again: None,
            by: by.to_owned(),
            reason: "it refuses everything".to_owned(),
        };
        let text = |mark: &Mark| serde_json::to_string(mark).unwrap();
        let first = mark("2026-01-01T00:00:00Z", "ann");
        assert_eq!(first.clone().after(None), first);
        assert_eq!(first.clone().after(Some("somebody wrote this")), first);
        let second = mark("2026-01-02T00:00:00Z", "ann").after(Some(&text(&first)));
        assert_ne!(text(&second), text(&first));
        assert_eq!(Mark::words(&text(&second)), Mark::words(&text(&first)));
        let third = mark("2026-01-03T00:00:00Z", "ben").after(Some(&text(&second)));
        assert_eq!(Mark::words(&text(&third)), "since 2026-01-01T00:00:00Z, by ben: it refuses everything");
        assert_ne!(third.again, second.again);
    }
}
