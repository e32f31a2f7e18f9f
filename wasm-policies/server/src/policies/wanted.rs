//! What administrators want in force, as their HubPolicies say it.

use ocm_api::policy::{HubPolicy, Module, ModuleSource, ObjectKey};
use ocm_core::hub_policy::{PREVIOUS, Version};
use ocm_policy_abi::{EditGrant, LimitsAsked, Operation};
use ocm_policy_rules::{Enforcement, Scope, hub_policy};

use super::source::{Key, Source};

/// A policy as an administrator wants it.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Its name, which is that of its place.
    pub name: String,
    /// The UID of the HubPolicy: one that was deleted and created anew is another policy.
    pub uid: Option<String>,
    /// The generation of the HubPolicy.
    pub generation: i64,
    /// Where its module is.
    pub source: Source,
    /// What the module's SHA-256 must be, lower-case hex.
    pub sha256: Option<String>,
    /// Settings, a JSON object.
    pub settings: String,
    /// Test cases that it has to pass; none: it has none.
    pub tests: Option<String>,
    /// How much its word counts.
    pub enforcement: Enforcement,
    /// What it is asked about.
    pub scope: Scope,
    /// What was judged by the version of it that was in force, in any process of this hub, as its status tells.
    pub judged: Vec<Operation>,
    /// What it may change.
    pub edits: Vec<EditGrant>,
    /// What it may use at most; none: what the server allows.
    pub limits: LimitsAsked,
    /// Where the module comes from of the version that a rollback puts in force again.
    pub former: Option<Source>,
    /// Another version, which is tried beside this one.
    pub candidate: Option<Candidate>,
}

/// Another version of a policy as an administrator wants it; whatever else there is of it is as in the policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Where its module is.
    pub source: Source,
    /// What the module's SHA-256 must be, lower-case hex.
    pub sha256: Option<String>,
    /// Settings, a JSON object.
    pub settings: String,
    /// Test cases that it has to pass; none: it has none.
    pub tests: Option<String>,
    /// For how many of a hundred clusters it decides.
    pub share: u8,
}

impl Wanted {
    /// What a HubPolicy says. Words of a newer release are taken for the strictest that this one knows, and what it
    /// grants that this one does not know is not granted.
    pub fn of(policy: &HubPolicy) -> Self {
        let spec = &policy.spec;
        Self {
            name: policy.metadata.name.clone().unwrap_or_default(),
            uid: policy.metadata.uid.clone(),
            generation: policy.metadata.generation.unwrap_or_default(),
            source: source(&spec.module),
            sha256: spec.sha256.clone(),
            settings: hub_policy::settings(spec.settings.as_ref()),
            tests: spec.tests.clone(),
            enforcement: spec.into(),
            scope: spec.into(),
            judged: judged(policy),
            edits: hub_policy::granted(&spec.grants),
            limits: hub_policy::limits(&spec.limits),
            former: former(policy),
            candidate: spec.candidate.as_ref().map(|candidate| {
                let tried = Version::of(policy).tried(candidate);
                Candidate {
                    source: source(&tried.module),
                    sha256: tried.sha256,
                    settings: hub_policy::settings(tried.settings.as_ref()),
                    tests: tried.tests,
                    share: candidate.share,
                }
            }),
        }
    }

    /// A policy whose HubPolicy cannot be read.
    pub(super) fn unreadable(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            uid: None,
            generation: 0,
            source: Source::Unknown,
            sha256: None,
            settings: "{}".to_owned(),
            tests: None,
            enforcement: Enforcement::default(),
            scope: Scope::default(),
            judged: Vec::new(),
            edits: Vec::new(),
            limits: LimitsAsked::default(),
            former: None,
            candidate: None,
        }
    }

    /// Whether a module that judges these operations judges all that was judged before, but for what the administrator does
    /// not have it asked about.
    pub(super) fn keeps(&self, operations: &[Operation]) -> bool {
        self.judged.iter().all(|judged| operations.contains(judged) || !self.scope.judges(*judged))
    }

    /// The operations that the administrator does not have it asked about.
    pub(super) fn left_out(&self) -> Vec<Operation> {
        Operation::ALL.into_iter().filter(|operation| !self.scope.judges(*operation)).collect()
    }

    /// Whether both want the same in force, but for how much it counts.
    pub(super) fn is_but_for_enforcement(&self, now: &Self) -> bool {
        let (enforcement, generation) = (now.enforcement, now.generation);
        let (former, candidate, judged) = (now.former.clone(), now.candidate.clone(), now.judged.clone());
        Self { enforcement, generation, former, candidate, judged, ..self.clone() } == *now
    }

    /// The policy with its candidate in its place.
    pub(super) fn tried(&self, candidate: &Candidate) -> Self {
        let Candidate { source, sha256, settings, tests, share: _ } = candidate.clone();
        Self { source, sha256, settings, tests, former: None, candidate: None, ..self.clone() }
    }
}

/// What its status says was judged. A word of a newer release is of an operation that this one asks nobody about.
fn judged(policy: &HubPolicy) -> Vec<Operation> {
    let operations = policy.status.iter().flat_map(|status| &status.operations);
    operations.filter_map(|word| Operation::of(word.as_str())).collect()
}

/// Where the module comes from that `policy rollback` puts in force again.
fn former(policy: &HubPolicy) -> Option<Source> {
    let noted = policy.metadata.annotations.as_ref()?.get(PREVIOUS)?;
    // A newer release may have noted more than this one knows.
    #[derive(serde::Deserialize)]
    struct Noted {
        module: ModuleSource,
    }
    Some(source(&serde_json::from_str::<Noted>(noted).ok()?.module))
}

fn source(module: &ModuleSource) -> Source {
    match module.module() {
        Some(Module::Builtin(name)) => Source::Builtin(name.to_owned()),
        Some(Module::ConfigMap(entry)) => Source::ConfigMap(key(entry)),
        Some(Module::Secret(entry)) => Source::Secret(key(entry)),
        Some(Module::Oci(image)) => Source::Oci(Box::new(image.clone())),
        Some(Module::Url(file)) => Source::Url(file.clone()),
        Some(Module::Path(path)) => Source::Path(path.to_owned()),
        _ => Source::Unknown,
    }
}

fn key(entry: &ObjectKey) -> Key {
    let ObjectKey { namespace, name, key } = entry.clone();
    Key { namespace, name, key }
}

#[cfg(test)]
mod tests {
    use ocm_policy_rules::{Mode, OnError as Counts};
    use serde_json::{Value, json};

    use super::*;

    fn wanted(spec: Value) -> Wanted {
        let object = json!({
            "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "HubPolicy", "metadata": {"name": "p"}, "spec": spec,
        });
        Wanted::of(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn words_of_a_newer_release_are_taken_for_the_strictest() {
        let made = wanted(json!({
            "module": {"image": {"reference": "example.com/p"}}, "mode": "Canary", "onError": "Retry", "breakGlass": "Twice",
            "grants": {"edits": [{"edit": "everything"}, {"edit": "label", "key": "a/*"}, {"edit": "cluster-set"}]},
        }));
        assert_eq!((made.enforcement, made.source), (Enforcement::default(), Source::Unknown));
        assert_eq!(made.edits, [EditGrant::Label { key: "a/*".into() }, EditGrant::ClusterSet]);
    }

    #[test]
    fn what_a_policy_says_is_put_in_force() {
        let made = wanted(json!({
            "module": {"secret": {"namespace": "n", "name": "o", "key": "k"}}, "sha256": "ab", "settings": {"b": 1},
            "onError": "Hold", "autoApprove": true, "breakGlass": "Allowed", "limits": {"fuel": 7, "memoryBytes": 65536},
        }));
        let expected = Wanted {
            name: "p".into(),
            uid: None,
            generation: 0,
            source: Source::Secret(Key { namespace: "n".into(), name: "o".into(), key: "k".into() }),
            sha256: Some("ab".into()),
            settings: r#"{"b":1}"#.into(),
            tests: None,
            enforcement: Enforcement {
                mode: Mode::Enforce,
                on_error: Counts::Hold,
                auto_approve: true,
                break_glass: true,
            },
            scope: Scope::default(),
            judged: Vec::new(),
            edits: Vec::new(),
            limits: LimitsAsked { fuel: Some(7), memory_bytes: Some(65536) },
            former: None,
            candidate: None,
        };
        assert_eq!(made, expected);
        let made = wanted(json!({
            "module": {"builtin": "x"}, "settings": {"b": 1}, "candidate": {"module": {"builtin": "y"}, "share": 3},
        }));
        let candidate = Candidate {
            source: Source::Builtin("y".into()),
            sha256: None,
            settings: r#"{"b":1}"#.into(),
            tests: None,
            share: 3,
        };
        assert_eq!(made.candidate, Some(candidate));
        let made = wanted(json!({
            "module": {"builtin": "x"}, "tests": "a", "candidate": {"module": {"builtin": "y"}, "tests": "b"},
        }));
        assert_eq!((made.tests.as_deref(), made.candidate.unwrap().tests.as_deref()), (Some("a"), Some("b")));
        assert_eq!(wanted(json!({"module": {"builtin": "x"}})).settings, "{}");
    }

    #[test]
    fn what_was_judged_is_what_the_status_tells_and_makes_no_other_version() {
        let with = |status: Value| {
            let object = json!({
                "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "HubPolicy", "metadata": {"name": "p"},
                "spec": {"module": {"builtin": "x"}, "operations": ["create", "join"]}, "status": status,
            });
            Wanted::of(&serde_json::from_value(object).unwrap())
        };
        let seen = with(json!({"operations": ["create", "update", "join", "migrate"]}));
        assert_eq!(seen.judged, [Operation::Create, Operation::Update, Operation::Join]);
        // Nobody has written a status, or a release that did not tell it.
        for former in [Value::Null, json!({"sha256": "ab"})] {
            assert!(with(former.clone()).judged.is_empty() && with(former).is_but_for_enforcement(&seen));
        }
        assert!(seen.keeps(&[Operation::Create, Operation::Join]) && !seen.keeps(&[Operation::Create]));
        assert!(!seen.left_out().contains(&Operation::Join) && seen.left_out().contains(&Operation::Update));
    }

    #[test]
    fn the_version_that_a_rollback_puts_in_force_is_known_by_its_annotation() {
        let former = |noted: &str| {
            let object = json!({
                "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "HubPolicy",
                "metadata": {"name": "p", "annotations": {(PREVIOUS): noted}}, "spec": {"module": {"builtin": "x"}},
            });
            Wanted::of(&serde_json::from_value(object).unwrap()).former
        };
        assert_eq!(former(r#"{"module": {"builtin": "y"}}"#), Some(Source::Builtin("y".into())));
        assert_eq!((former("{}"), former("no")), (None, None));
    }
}
