//! Trying another version of a policy: how much it decides, putting it in force, and going back.

use ocm_api::policy::{CandidateStatus, HubPolicy, ModuleSource, PolicyCandidate};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Switching;
use super::standing::{Observed, observed};

/// The annotation that says which version was in force before the last one that was promoted, as JSON: a [`Version`].
pub const PREVIOUS: &str = "policy.kubectl-ocm.dev/previous";

/// What makes one version of a policy differ from another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Version {
    /// Where its module comes from.
    pub module: ModuleSource,
    /// The SHA-256 that it must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Its settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Map<String, Value>>,
    /// Its test cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<String>,
}

impl Version {
    /// The one that is to be in force.
    pub fn of(policy: &HubPolicy) -> Self {
        let spec = &policy.spec;
        Self {
            module: spec.module.clone(),
            sha256: spec.sha256.clone(),
            settings: spec.settings.clone(),
            tests: spec.tests.clone(),
        }
    }

    /// The one that is tried: what the candidate does not say is as in the policy.
    pub fn tried(&self, candidate: &PolicyCandidate) -> Self {
        let PolicyCandidate { module, sha256, settings, tests, share: _ } = candidate;
        let (module, sha256) = match module {
            Some(module) => (module.clone(), sha256.clone()),
            None => (self.module.clone(), self.sha256.clone()),
        };
        Self {
            module,
            sha256,
            settings: settings.clone().or_else(|| self.settings.clone()),
            tests: tests.clone().or_else(|| self.tests.clone()),
        }
    }
}

/// What is done with the versions of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The candidate decides for so many of a hundred clusters.
    Share(u8),
    /// The candidate becomes the version in force.
    Promote,
    /// The candidate is given up; without one, the version before the last one that was promoted is in force again.
    RollBack,
}

/// Why it is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepError {
    /// There is no candidate.
    NoCandidate,
    /// The controller has not looked at the candidate as it is now.
    NotObserved,
    /// The candidate cannot be loaded, or not be put in force; why.
    Failed(String),
    /// Neither is there a candidate, nor was a version promoted.
    NothingBefore,
    /// What was in force before cannot be read.
    Unreadable(String),
    /// What is in force is too large for an annotation, and nothing could be gone back to.
    TooLarge,
}

/// The candidate of a policy as the controller saw it; an error where it cannot decide anything.
fn tried(policy: &HubPolicy) -> Result<&CandidateStatus, StepError> {
    let status = policy.status.as_ref().filter(|_| observed(policy) == Observed::Current);
    let seen = status.and_then(|status| status.candidate.as_ref()).ok_or(StepError::NotObserved)?;
    match &seen.failed {
        Some(why) => Err(StepError::Failed(why.clone())),
        None => Ok(seen),
    }
}

/// Whether a policy still is what somebody decided about: the versions that it has, and the one that it can go back to. Its status
/// may have changed.
pub fn is_as_found(found: &HubPolicy, now: &HubPolicy) -> bool {
    let previous = |policy: &HubPolicy| policy.metadata.annotations.as_ref().and_then(|all| all.get(PREVIOUS)).cloned();
    found.metadata.uid == now.metadata.uid && found.spec == now.spec && previous(found) == previous(now)
}

/// What to do for a step.
///
/// # Errors
/// Why it cannot be done.
pub fn step(policy: &HubPolicy, step: Step) -> Result<Switching, StepError> {
    let candidate = policy.spec.candidate.as_ref();
    match step {
        Step::Share(share) => {
            let candidate = candidate.ok_or(StepError::NoCandidate)?;
            if candidate.share == share {
                return Ok(Switching::Nothing);
            }
            // To decide for fewer takes nothing; to decide for more, it has to be able to.
            if share > candidate.share {
                tried(policy)?;
            }
            // Absent is how one that decides for nobody is written.
            let share = (share > 0).then_some(share);
            Ok(Switching::Patch(json!({ "metadata": version(policy), "spec": { "candidate": { "share": share } } })))
        }
        Step::Promote => {
            let candidate = candidate.ok_or(StepError::NoCandidate)?;
            tried(policy)?;
            let before = Version::of(policy);
            let next = before.tried(candidate);
            if noted_size(policy, &before) > ANNOTATIONS {
                return Err(StepError::TooLarge);
            }
            Ok(Switching::JsonPatch(put(policy, &next, Some(&before))))
        }
        Step::RollBack if candidate.is_some() => {
            Ok(Switching::Patch(json!({ "metadata": version(policy), "spec": { "candidate": null } })))
        }
        Step::RollBack => {
            let noted = policy.metadata.annotations.as_ref().and_then(|annotations| annotations.get(PREVIOUS));
            let noted = noted.ok_or(StepError::NothingBefore)?;
            let before = serde_json::from_str(noted).map_err(|error| StepError::Unreadable(error.to_string()))?;
            Ok(Switching::JsonPatch(put(policy, &before, None)))
        }
    }
}

/// Bytes that all annotations of an object may have together. Kubernetes, `TotalAnnotationSizeLimitB`
const ANNOTATIONS: usize = 256 << 10;

/// How many they have when a version is noted among them.
fn noted_size(policy: &HubPolicy, before: &Version) -> usize {
    let others = policy.metadata.annotations.iter().flatten().filter(|(key, _)| *key != PREVIOUS);
    others.map(|(key, value)| key.len() + value.len()).sum::<usize>() + PREVIOUS.len() + json!(before).to_string().len()
}

/// Exactly what was looked at.
fn version(policy: &HubPolicy) -> Value {
    json!({ "resourceVersion": policy.metadata.resource_version })
}

/// The JSON patch (RFC 6902) that puts a version in force: a merge patch could not write settings with a member that is null.
fn put(policy: &HubPolicy, next: &Version, before: Option<&Version>) -> Vec<Value> {
    let set = |path: &str, value: Value| json!({ "op": "add", "path": path, "value": value });
    let is = Version::of(policy);
    let mut patch = vec![
        // Where it is another one by now, the API server answers with a conflict.
        set("/metadata/resourceVersion", json!(policy.metadata.resource_version)),
        set("/spec/module", json!(next.module)),
    ];
    let mut member = |path: &str, is: bool, next: Option<Value>| match next {
        Some(value) => patch.push(set(path, value)),
        None if is => patch.push(json!({ "op": "remove", "path": path })),
        None => {}
    };
    member("/spec/sha256", is.sha256.is_some(), next.sha256.as_ref().map(|sha256| json!(sha256)));
    member("/spec/settings", is.settings.is_some(), next.settings.as_ref().map(|settings| json!(settings)));
    member("/spec/tests", is.tests.is_some(), next.tests.as_ref().map(|tests| json!(tests)));
    member("/spec/candidate", policy.spec.candidate.is_some(), None);
    let mut annotations = policy.metadata.annotations.clone().unwrap_or_default();
    let noted = match before {
        Some(before) => annotations.insert(PREVIOUS.to_owned(), json!(before).to_string()),
        None => annotations.remove(PREVIOUS),
    };
    if before.is_some() || noted.is_some() {
        patch.push(set("/metadata/annotations", json!(annotations)));
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOADED: &str = r#"{"sha256": "ab", "share": 0, "compared": 3, "differed": 1}"#;

    fn policy(candidate: &Value, seen: Option<&str>) -> HubPolicy {
        let seen: Option<Value> = seen.map(|seen| serde_json::from_str(seen).unwrap());
        let object = json!({
            "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "HubPolicy",
            "metadata": {"name": "p", "resourceVersion": "7", "generation": 4},
            "spec": {
                "module": {"builtin": "name-pattern"}, "settings": {"pattern": "a-*", "also": {"x": 1, "y": 2}},
                "mode": "Enforce", "candidate": candidate,
            },
            "status": {"observedGeneration": 4, "candidate": seen},
        });
        serde_json::from_value(object).unwrap()
    }

    /// As the API server patches it.
    fn patched(policy: &HubPolicy, switching: Switching) -> HubPolicy {
        let mut object = json!(policy);
        match switching {
            Switching::Nothing => panic!("nothing is done"),
            Switching::Patch(patch) => {
                assert_eq!(patch["metadata"]["resourceVersion"], "7");
                json_patch::merge(&mut object, &patch);
            }
            Switching::JsonPatch(patch) => {
                assert_eq!(patch[0], json!({"op": "add", "path": "/metadata/resourceVersion", "value": "7"}));
                let patch: json_patch::Patch = serde_json::from_value(json!(patch)).unwrap();
                json_patch::patch(&mut object, &patch).unwrap();
            }
        }
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_policy_is_as_it_was_found_whatever_its_status_says() {
        let found = policy(&json!({"settings": {"pattern": "b-*"}}), None);
        let seen = policy(&json!({"settings": {"pattern": "b-*"}}), Some(LOADED));
        assert!(is_as_found(&found, &seen));
        let other = policy(&json!({"settings": {"pattern": "c-*"}}), None);
        assert!(!is_as_found(&found, &other));
        let (mut noted, mut anew) = (found.clone(), found.clone());
        noted.metadata.annotations = Some([(PREVIOUS.to_owned(), "{}".to_owned())].into());
        anew.metadata.uid = Some("2".to_owned());
        assert!(!is_as_found(&found, &noted) && !is_as_found(&found, &anew));
    }

    #[test]
    fn what_is_too_large_to_be_noted_is_not_promoted() {
        let mut large = policy(&json!({"settings": {"pattern": "b-*"}}), Some(LOADED));
        let longest = |policy: &mut HubPolicy, length: usize| policy.spec.tests = Some("\u{1}".repeat(length));
        longest(&mut large, 30_000);
        assert!(matches!(step(&large, Step::Promote), Ok(Switching::JsonPatch(_))));
        // Each takes six bytes in JSON.
        longest(&mut large, 60_000);
        assert_eq!(step(&large, Step::Promote), Err(StepError::TooLarge));
    }

    #[test]
    fn a_candidate_takes_the_place_of_the_version_in_force_and_gives_it_back() {
        let key = json!({"namespace": "n", "name": "o", "key": "k"});
        for candidate in [
            json!({"settings": {"pattern": "b-*"}, "share": 10}),
            json!({"settings": {"pattern": null}}),
            json!({"settings": {}}),
            json!({"settings": {}, "tests": "cases: []"}),
            json!({"module": {"configMap": key}, "sha256": "0".repeat(64)}),
            json!({"module": {"builtin": "join-quota"}, "settings": {"also": {"y": 3}, "most": 1}}),
        ] {
            let before = policy(&candidate, Some(LOADED));
            let wanted = Version::of(&before).tried(before.spec.candidate.as_ref().unwrap());
            let promoted = patched(&before, step(&before, Step::Promote).unwrap());
            assert_eq!((Version::of(&promoted), &promoted.spec.candidate), (wanted, &None), "{candidate}");
            assert_eq!(step(&promoted, Step::Promote), Err(StepError::NoCandidate));
            let back = patched(&promoted, step(&promoted, Step::RollBack).unwrap());
            assert_eq!(Version::of(&back), Version::of(&before), "{candidate}");
            assert_eq!(step(&back, Step::RollBack), Err(StepError::NothingBefore));
        }
    }

    #[test]
    fn what_a_candidate_does_not_say_is_as_in_the_policy() {
        let of = |candidate: Value| {
            let policy = policy(&candidate, None);
            Version::of(&policy).tried(policy.spec.candidate.as_ref().unwrap())
        };
        let settings = |version: &Version| json!(version.settings);
        let other = of(json!({"settings": {"pattern": "b-*"}}));
        assert_eq!(
            (other.module.builtin.as_deref(), settings(&other)),
            (Some("name-pattern"), json!({"pattern": "b-*"}))
        );
        let other = of(json!({"module": {"builtin": "join-quota"}}));
        assert_eq!(other.module.builtin.as_deref(), Some("join-quota"));
        assert_eq!(settings(&other), json!({"pattern": "a-*", "also": {"x": 1, "y": 2}}));
    }

    #[test]
    fn only_what_was_loaded_decides_and_whatever_is_tried_can_be_stopped() {
        let candidate = json!({"settings": {"pattern": "b-*"}, "share": 10});
        let failed = r#"{"share": 0, "compared": 0, "differed": 0, "failed": "it refuses its settings"}"#;
        for (seen, error) in
            [(None, StepError::NotObserved), (Some(failed), StepError::Failed("it refuses its settings".to_owned()))]
        {
            let policy = policy(&candidate, seen);
            for wrong in [Step::Promote, Step::Share(11), Step::Share(100)] {
                assert_eq!(step(&policy, wrong), Err(error.clone()), "{wrong:?}");
            }
            let paused = patched(&policy, step(&policy, Step::Share(0)).unwrap());
            assert_eq!(paused.spec.candidate.as_ref().map(|candidate| candidate.share), Some(0));
            let without = patched(&policy, step(&policy, Step::RollBack).unwrap());
            assert_eq!((without.spec.candidate, without.spec.module), (None, policy.spec.module.clone()));
        }
        let mut later = policy(&candidate, Some(LOADED));
        let shared = patched(&later, step(&later, Step::Share(50)).unwrap());
        assert_eq!(shared.spec.candidate.map(|candidate| candidate.share), Some(50));
        assert_eq!(step(&later, Step::Share(10)), Ok(Switching::Nothing));
        // What was loaded is another one.
        later.metadata.generation = Some(5);
        assert_eq!(step(&later, Step::Promote), Err(StepError::NotObserved));
        assert_eq!(step(&policy(&Value::Null, None), Step::Share(0)), Err(StepError::NoCandidate));
    }

    #[test]
    fn a_note_that_cannot_be_read_puts_nothing_back() {
        let mut odd = policy(&Value::Null, None);
        odd.metadata.annotations.get_or_insert_default().insert(PREVIOUS.to_owned(), "{}".to_owned());
        assert!(matches!(step(&odd, Step::RollBack), Err(StepError::Unreadable(_))));
    }
}
