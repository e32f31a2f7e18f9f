//! Asking policies, in the way of a hub.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ocm_policy_abi::{Decision, Edit, Manifest, TaintEffect};
use ocm_policy_engine::{
    Deadline, Final, NoEvidence, Operations, Policy, PolicyError, Question, Registry, evaluate, evaluate_question,
};
use ocm_policy_rules::Enforcement;

use crate::requests::Asked;

/// How long all policies together may take for one request: an API server waits no longer for a webhook, so what takes longer
/// is no answer on a hub. Each policy has limits of its own, and ends well before.
const LONGEST: Duration = Duration::from_secs(30);

/// Policies as a hub has them: each in a place of its own.
#[derive(Default)]
pub(crate) struct Policies {
    registry: Registry,
    loaded: BTreeMap<String, PolicyOfFile>,
}

/// A policy and the file that it was read from.
struct PolicyOfFile {
    policy: Arc<Policy>,
    file: PathBuf,
}

impl Policies {
    /// A place for a policy that calls itself this: its name, with a number if the place is taken.
    pub(crate) fn place(&self, name: &str) -> String {
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        names.find(|name| !self.loaded.contains_key(name)).unwrap_or_else(|| name.to_owned())
    }

    /// Puts a policy into the place that it was loaded for.
    ///
    /// # Errors
    /// When the registry does not take it.
    pub(crate) fn add(&mut self, file: &Path, policy: Arc<Policy>) -> Result<(), PolicyError> {
        let place = policy.manifest().name.clone();
        // Here nobody relies on what it is asked about.
        let installation = self.registry.begin(&place).operations(Operations::MayShrink);
        self.registry.install(installation, Ok(policy.clone()), |_| Ok(()))?;
        self.loaded.insert(place, PolicyOfFile { policy, file: file.to_owned() });
        Ok(())
    }

    /// Puts a policy of a hub into its place, where its word counts as the HubPolicy says. One that cannot be loaded answers
    /// with its error, as on a hub.
    pub(crate) fn of_hub(&mut self, name: &str, policy: Result<Arc<Policy>, PolicyError>, enforcement: Enforcement) {
        match &policy {
            Ok(policy) => {
                let installation = self.registry.begin(name).enforcement(enforcement);
                let installed = self.registry.install(installation, Ok(policy.clone()), |_| Ok(()));
                debug_assert!(installed.is_ok(), "{name}: each place is taken once");
                self.loaded.insert(name.to_owned(), PolicyOfFile { policy: policy.clone(), file: PathBuf::from(name) });
            }
            Err(error) => _ = self.registry.close(name, error.clone(), enforcement),
        }
    }

    /// What all of them say of themselves, by their places.
    pub(crate) fn manifests(&self) -> Vec<&Manifest> {
        self.loaded.values().map(|loaded| loaded.policy.manifest()).collect()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.loaded.len()
    }

    /// The version of the policy in a place.
    pub(crate) fn version(&self, place: &str) -> &str {
        self.loaded.get(place).map_or("", |loaded| &loaded.policy.manifest().version)
    }

    /// The file of the policy in a place.
    pub(crate) fn file(&self, place: &str) -> String {
        self.loaded.get(place).map(|loaded| loaded.file.display().to_string()).unwrap_or_default()
    }

    /// Asks all that judge such requests.
    ///
    /// # Errors
    /// When a recorded request cannot be read.
    pub(crate) fn evaluate(&self, asked: &Asked) -> Result<Final, PolicyError> {
        match &asked.recorded {
            Some(text) => self.again(text),
            None => Ok(evaluate(&self.registry, asked.request.clone(), asked, &Deadline::after(LONGEST))),
        }
    }

    /// Asks again, byte by byte what was asked before.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn again(&self, request: &str) -> Result<Final, PolicyError> {
        let question = Question::recorded(request)?;
        Ok(evaluate_question(&self.registry, question, &NoEvidence, &Deadline::after(LONGEST)))
    }
}

/// The word for what came of asking.
pub(crate) fn word(result: &Result<Decision, PolicyError>) -> &'static str {
    result.as_ref().map_or("error", |decision| decision.verdict.word())
}

/// Why there is no decision, in a sentence.
pub(crate) fn why(error: &PolicyError) -> String {
    match error {
        PolicyError::DeadlineExceeded => format!(
            "there is no answer within {} s, and no API server waits longer for all policies together",
            LONGEST.as_secs()
        ),
        error => error.to_string(),
    }
}

/// An edit in a few words.
pub(crate) fn edit(edit: &Edit) -> String {
    let effect = |effect: &TaintEffect| match effect {
        TaintEffect::NoSelect => "NoSelect",
        TaintEffect::PreferNoSelect => "PreferNoSelect",
        TaintEffect::NoSelectIfNew => "NoSelectIfNew",
    };
    match edit {
        Edit::SetLabel { key, value } => format!("set label {key}={value}"),
        Edit::RemoveLabel { key } => format!("remove label {key}"),
        Edit::SetAnnotation { key, value } => format!("set annotation {key}={value}"),
        Edit::RemoveAnnotation { key } => format!("remove annotation {key}"),
        Edit::AddTaint { key, value, effect: e } => format!("add taint {key}={value}:{}", effect(e)),
        Edit::RemoveTaint { key } => format!("remove taint {key}"),
        Edit::SetClusterSet { name } => format!("set cluster set {name}"),
        Edit::SetLeaseDuration { seconds } => format!("set lease duration {seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passed_deadline_is_told_with_its_time() {
        let told = why(&PolicyError::DeadlineExceeded);
        assert!(told.contains("within 30 s") && told.contains("all policies together"), "{told}");
        assert_eq!(why(&PolicyError::OutOfFuel), PolicyError::OutOfFuel.to_string());
    }
}
