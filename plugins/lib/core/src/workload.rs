//! How a Deployment is.

use ocm_api::member::Member;
use serde::Serialize;

/// How a Deployment is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub enum Health {
    /// Its latest generation is rolled out and every pod is available.
    Ready,
    /// On its way.
    NotYet(Lack),
    /// It will not get there until somebody changes something.
    Stuck(Lack),
}

/// What is missing or wrong of a Deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct Lack {
    /// How far it is rolled out, as numbers, where something else holds it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<String>,
    /// What is missing, or what holds the worst of its pods up.
    pub because: String,
    /// The last words of the container that crashes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// What holds it up, as far as Kubernetes tells by more than words. None: its pods were not read, or hold nothing up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<PodCause>,
}

/// What holds a pod up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub enum PodCause {
    /// It is refused when it is to be created.
    NotCreated,
    /// The scheduler finds no node.
    Unschedulable,
    /// The name of its image is none.
    ImageName,
    /// Its image cannot be pulled.
    ImagePull,
    /// Its container was killed: exit code 137.
    Killed,
    /// Its container ends by itself.
    Crash,
    /// Something that needs no name here.
    #[serde(other)]
    Other,
}

impl Health {
    /// On its way, where no pod is known to hold it up.
    pub fn not_yet(because: impl Into<String>) -> Self {
        Self::NotYet(Lack::new(because))
    }

    /// Stuck, where no pod is known to hold it up.
    pub fn stuck(because: impl Into<String>) -> Self {
        Self::Stuck(Lack::new(because))
    }

    /// What is missing or wrong; none if it is ready.
    pub fn lack(&self) -> Option<&Lack> {
        match self {
            Self::Ready => None,
            Self::NotYet(lack) | Self::Stuck(lack) => Some(lack),
        }
    }

    /// The same as one text.
    pub fn because(&self) -> Option<String> {
        self.lack().map(Lack::text)
    }
}

impl Lack {
    /// What is missing or wrong, where no pod is known to hold it up.
    pub fn new(because: impl Into<String>) -> Self {
        Self { count: None, because: because.into(), log: None, cause: None }
    }

    /// All of it as one text: the numbers first.
    pub fn text(&self) -> String {
        self.count.iter().chain([&self.because]).chain(&self.log).map(String::as_str).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_older_release_wrote_is_read_as_it_said_it() {
        let old: Health = serde_json::from_value(json!({"stuck": {"because": "0 of 1 pods are ready; x"}})).unwrap();
        assert_eq!(old, Health::stuck("0 of 1 pods are ready; x"));
        let newer: Health = serde_json::from_value(json!({"notYet": {"because": "x", "cause": "new"}})).unwrap();
        assert_eq!(newer.lack().and_then(|lack| lack.cause), Some(PodCause::Other));
        let whole = Lack { count: Some("a".to_owned()), log: Some("c; d".to_owned()), ..Lack::new("b") };
        assert_eq!((whole.text().as_str(), Health::Ready.because()), ("a; b; c; d", None));
    }
}
