//! What becomes of the changes of several policies.

use std::collections::BTreeSet;
use std::fmt;

use ocm_api::names::labels::CLUSTER_SET;
use ocm_policy_abi::{Edit, TaintEffect};

use crate::error::PolicyError;

/// What an edit changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target<'a> {
    /// A label.
    Label(&'a str),
    /// An annotation.
    Annotation(&'a str),
    /// The taint of a key and an effect; without effect all of the key.
    Taint(&'a str, Option<TaintEffect>),
    /// The lease duration.
    LeaseDuration,
}

impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Label(key) => write!(f, "label {key}"),
            Self::Annotation(key) => write!(f, "annotation {key}"),
            Self::Taint(key, None) => write!(f, "taint {key}"),
            Self::Taint(key, Some(effect)) => write!(f, "taint {key}:{effect:?}"),
            Self::LeaseDuration => f.write_str("lease duration"),
        }
    }
}

/// What an edit changes. A cluster set is the label that it is stored as.
pub fn target(edit: &Edit) -> Target<'_> {
    match edit {
        Edit::SetLabel { key, .. } | Edit::RemoveLabel { key } => Target::Label(key),
        Edit::SetAnnotation { key, .. } | Edit::RemoveAnnotation { key } => Target::Annotation(key),
        Edit::AddTaint { key, effect, .. } => Target::Taint(key, Some(*effect)),
        Edit::RemoveTaint { key } => Target::Taint(key, None),
        Edit::SetClusterSet { .. } => Target::Label(CLUSTER_SET),
        Edit::SetLeaseDuration { .. } => Target::LeaseDuration,
    }
}

/// Whether two edits want different things of the same target.
pub fn clash(one: &Edit, other: &Edit) -> bool {
    let same = match (target(one), target(other)) {
        // Adding one taint and removing all of its key excludes each other; different effects do not.
        (Target::Taint(one, effect), Target::Taint(other, effect_too)) => {
            one == other && (effect.is_none() || effect_too.is_none() || effect == effect_too)
        }
        (one, other) => one == other,
    };
    same && !alike(one, other)
}

/// Whether two edits have the same outcome.
fn alike(one: &Edit, other: &Edit) -> bool {
    match (one, other) {
        (Edit::SetClusterSet { name }, Edit::SetLabel { key, value })
        | (Edit::SetLabel { key, value }, Edit::SetClusterSet { name }) => key == CLUSTER_SET && name == value,
        _ => one == other,
    }
}

/// Two policies that want different things of the same target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// The policies, in the order of their names.
    pub policies: [String; 2],
    /// What they disagree about.
    pub target: String,
}

impl From<&Conflict> for PolicyError {
    fn from(conflict: &Conflict) -> Self {
        let [one, other] = &conflict.policies;
        Self::EditConflict(format!("{one} and {other} want different things of {}", conflict.target))
    }
}

/// Puts the edits of several policies together: what they agree about once, sorted.
///
/// # Errors
/// Every pair of policies that disagrees, and about what.
pub fn merge<'a>(answers: impl IntoIterator<Item = (&'a str, &'a [Edit])>) -> Result<Vec<Edit>, Vec<Conflict>> {
    let all: Vec<(&str, &Edit)> =
        answers.into_iter().flat_map(|(policy, edits)| edits.iter().map(move |edit| (policy, edit))).collect();
    let mut conflicts = BTreeSet::new();
    for (index, (policy, edit)) in all.iter().enumerate() {
        for (other, _) in all[..index].iter().filter(|(_, before)| clash(edit, before)) {
            let mut policies = [(*policy).to_owned(), (*other).to_owned()];
            policies.sort();
            // A removed taint and an added one have two names; the shorter covers both.
            let target = match target(edit) {
                Target::Taint(key, _) => Target::Taint(key, None).to_string(),
                target => target.to_string(),
            };
            conflicts.insert(Conflict { policies, target });
        }
    }
    if !conflicts.is_empty() {
        return Err(conflicts.into_iter().collect());
    }
    Ok(all.into_iter().map(|(_, edit)| edit.clone()).collect::<BTreeSet<_>>().into_iter().collect())
}
