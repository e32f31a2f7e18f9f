//! What a policy answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The answer in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// This policy has nothing to say about the question.
    #[default]
    NoOpinion,
    /// It may happen, as far as this policy is concerned.
    Allow,
    /// Not now: ask again, or a person decides.
    Hold,
    /// It must not happen.
    Deny,
}

impl Verdict {
    /// Every verdict, the strongest last.
    pub const ALL: [Self; 4] = [Self::NoOpinion, Self::Allow, Self::Hold, Self::Deny];

    /// Its word in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NoOpinion => "no-opinion",
            Self::Allow => "allow",
            Self::Hold => "hold",
            Self::Deny => "deny",
        }
    }
}

/// An answer with everything that belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Decision {
    /// The answer.
    pub verdict: Verdict,
    /// With `hold`: after how many seconds to ask again. None: when something changes, or a person decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_again_seconds: Option<u32>,
    /// Why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// What the requester should know although it changes nothing; kubectl shows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Changes to the object, with `allow` only, within what manifest and administrator permit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
    /// What the hub has to do, or to undo, because of the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub obligations: Vec<Obligation>,
    /// What the audit log should hold.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub audit: BTreeMap<String, String>,
    /// What later policies return within this version of the contract. An entry that the host does not know is an error:
    /// what a policy means must not be lost.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub more: BTreeMap<String, Value>,
}

/// Why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reason {
    /// A stable word in CamelCase, such as `NameTaken`; scripts match it.
    pub code: String,
    /// One sentence for people.
    pub message: String,
    /// The field that it is about, such as `metadata.name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

/// A change to a ManagedCluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Edit {
    /// Sets a label.
    SetLabel {
        /// Key.
        key: String,
        /// Value.
        value: String,
    },
    /// Removes a label.
    RemoveLabel {
        /// Key.
        key: String,
    },
    /// Sets an annotation.
    SetAnnotation {
        /// Key.
        key: String,
        /// Value.
        value: String,
    },
    /// Removes an annotation.
    RemoveAnnotation {
        /// Key.
        key: String,
    },
    /// Adds a taint, or changes the one of the same key and effect.
    AddTaint {
        /// Key.
        key: String,
        /// Value.
        #[serde(default)]
        value: String,
        /// Effect.
        effect: TaintEffect,
    },
    /// Removes the taints of a key.
    RemoveTaint {
        /// Key.
        key: String,
    },
    /// Puts the cluster into a set.
    SetClusterSet {
        /// Name of the set.
        name: String,
    },
    /// Sets the lease duration.
    SetLeaseDuration {
        /// Seconds.
        seconds: u32,
    },
}

/// What a taint does (`cluster.open-cluster-management.io/v1`, `TaintEffect`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaintEffect {
    /// Placements do not select the cluster.
    NoSelect,
    /// Placements avoid the cluster.
    PreferNoSelect,
    /// Placements that have not selected the cluster yet do not.
    NoSelectIfNew,
}

impl TaintEffect {
    /// Every effect.
    pub const ALL: [Self; 3] = [Self::NoSelect, Self::PreferNoSelect, Self::NoSelectIfNew];

    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NoSelect => "NoSelect",
            Self::PreferNoSelect => "PreferNoSelect",
            Self::NoSelectIfNew => "NoSelectIfNew",
        }
    }

    /// The effect of a word; none for a word that this version of the contract does not know.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effect| effect.word() == word)
    }
}

/// The obligations of the contract: after `expire-acceptance` a cluster's acceptance is withdrawn when its time is over,
/// unless a later decision renews it. Those that a hub carries out stand in the request.
pub const OBLIGATIONS: [&str; 1] = ["expire-acceptance"];

/// Something that has to follow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Obligation {
    /// What: one of the [`OBLIGATIONS`] that the request says the hub knows.
    pub name: String,
    /// Within how many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_seconds: Option<u32>,
    /// Details.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
}
