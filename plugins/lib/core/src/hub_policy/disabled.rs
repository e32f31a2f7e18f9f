//! Taking the effect of a policy away for a time, and putting back exactly what it was.

use ocm_api::policy::{HubPolicy, PolicyMode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The annotation that says what a disabled policy was, as JSON: a [`Was`].
pub const DISABLED: &str = "policy.kubectl-ocm.dev/disabled";

/// What a policy was before it was disabled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Was {
    /// Its mode.
    pub mode: PolicyMode,
    /// Whether its allow let clusters join without a person.
    pub auto_approve: bool,
}

impl Was {
    /// What a policy is now.
    pub fn of(policy: &HubPolicy) -> Self {
        Self { mode: policy.spec.mode.clone(), auto_approve: policy.spec.auto_approve }
    }

    /// Whether it refuses or approves nothing.
    fn is_without_effect(&self) -> bool {
        self.mode == PolicyMode::Audit && !self.auto_approve
    }
}

/// What a policy is switched to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// Its verdicts are recorded, and refuse and approve nothing.
    Disable,
    /// It is what it was before.
    Enable,
}

/// What there is to do for a [`Switch`](Switch), or a [`Step`](super::Step) with its versions.
#[derive(Clone, Debug, PartialEq)]
pub enum Switching {
    /// Nothing: it is so.
    Nothing,
    /// This merge patch, for exactly the version that was looked at.
    Patch(Value),
    /// The operations of this JSON patch, for exactly the version that was looked at.
    JsonPatch(Vec<Value>),
}

/// Why a policy is not enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchError {
    /// It was changed after it was disabled; to what, and what it was before.
    Changed {
        /// What it is now.
        is: Was,
        /// What enabling it would put back.
        was: Was,
    },
    /// What it was cannot be read.
    Unreadable(String),
}

/// What a policy was before it was disabled; none: it is not disabled, or was changed since.
pub fn disabled(policy: &HubPolicy) -> Option<Was> {
    let was = annotation(policy)?;
    Was::of(policy).is_without_effect().then(|| serde_json::from_str(was).ok()).flatten()
}

fn annotation(policy: &HubPolicy) -> Option<&str> {
    policy.metadata.annotations.as_ref()?.get(DISABLED).map(String::as_str)
}

/// What to do to switch a policy.
///
/// # Errors
/// Why it cannot be put back what was.
pub fn switch(policy: &HubPolicy, to: Switch) -> Result<Switching, SwitchError> {
    let (is, noted) = (Was::of(policy), annotation(policy));
    match (to, noted) {
        (Switch::Disable, Some(_)) if is.is_without_effect() => Ok(Switching::Nothing),
        (Switch::Disable, _) => {
            let note = json!(is).to_string();
            let without = Was { mode: PolicyMode::Audit, auto_approve: false };
            Ok(Switching::Patch(patch(policy, &without, Some(&note))))
        }
        (Switch::Enable, None) => Ok(Switching::Nothing),
        (Switch::Enable, Some(noted)) => {
            let was: Was = serde_json::from_str(noted).map_err(|error| SwitchError::Unreadable(error.to_string()))?;
            // Where somebody has put back the same, only the note has to go.
            if !is.is_without_effect() && is != was {
                return Err(SwitchError::Changed { is, was });
            }
            Ok(Switching::Patch(patch(policy, &was, None)))
        }
    }
}

fn patch(policy: &HubPolicy, spec: &Was, note: Option<&str>) -> Value {
    json!({
        "metadata": {
            "resourceVersion": policy.metadata.resource_version,
            "annotations": { DISABLED: note },
        },
        // Absent is how a policy that approves nothing is written.
        "spec": { "mode": spec.mode, "autoApprove": spec.auto_approve.then_some(true) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(mode: &str, auto_approve: bool, note: Option<&str>) -> HubPolicy {
        let object = json!({
            "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "HubPolicy",
            "metadata": {"name": "p", "resourceVersion": "7", "annotations": {"other": "x"}},
            "spec": {"module": {"builtin": "b"}, "mode": mode, "autoApprove": auto_approve},
        });
        let mut policy: HubPolicy = serde_json::from_value(object).unwrap();
        if let Some(note) = note {
            policy.metadata.annotations.get_or_insert_default().insert(DISABLED.to_owned(), note.to_owned());
        }
        policy
    }

    /// What is there after a patch, as the API server merges it.
    fn after(policy: &HubPolicy, switching: Switching) -> HubPolicy {
        let Switching::Patch(patch) = switching else { panic!("nothing is done") };
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        let mut object = serde_json::to_value(policy).unwrap();
        for path in ["/metadata/annotations", "/spec"] {
            let (from, into) = (patch.pointer(path).unwrap(), object.pointer_mut(path).unwrap());
            for (key, value) in from.as_object().unwrap() {
                match value {
                    Value::Null => into.as_object_mut().unwrap().remove(key),
                    value => into.as_object_mut().unwrap().insert(key.clone(), value.clone()),
                };
            }
        }
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_policy_is_enabled_as_it_was() {
        for (mode, auto_approve) in
            [("Enforce", false), ("Enforce", true), ("Warn", false), ("Audit", false), ("Canary", false)]
        {
            let before = policy(mode, auto_approve, None);
            let off = after(&before, switch(&before, Switch::Disable).unwrap());
            assert_eq!(Was::of(&off), Was { mode: PolicyMode::Audit, auto_approve: false });
            assert_eq!(disabled(&off), Some(Was::of(&before)), "{mode}");
            assert_eq!(switch(&off, Switch::Disable), Ok(Switching::Nothing), "{mode}");
            let on = after(&off, switch(&off, Switch::Enable).unwrap());
            assert_eq!(on, before, "{mode}");
            assert_eq!((disabled(&on), switch(&on, Switch::Enable)), (None, Ok(Switching::Nothing)));
        }
    }

    #[test]
    fn what_was_changed_since_is_not_overwritten() {
        let note = r#"{"mode":"Enforce","autoApprove":true}"#;
        let was = Was { mode: PolicyMode::Enforce, auto_approve: true };
        for (mode, auto_approve) in [("Warn", false), ("Enforce", false)] {
            let changed = policy(mode, auto_approve, Some(note));
            let is = Was::of(&changed);
            assert_eq!(switch(&changed, Switch::Enable), Err(SwitchError::Changed { is, was: was.clone() }));
            assert_eq!(disabled(&changed), None);
            // Disabled again it is what it is now that is noted.
            let off = after(&changed, switch(&changed, Switch::Disable).unwrap());
            assert_eq!(disabled(&off), Some(Was::of(&changed)));
        }
        let same = policy("Enforce", true, Some(note));
        let on = after(&same, switch(&same, Switch::Enable).unwrap());
        assert_eq!((Was::of(&on), annotation(&on)), (was, None));
    }

    #[test]
    fn a_note_that_cannot_be_read_enables_nothing() {
        for note in [
            "",
            "{}",
            "[]",
            r#"{"mode":"Enforce","autoApprove":"yes"}"#,
            r#"{"mode":"Enforce","autoApprove":true,"more":1}"#,
        ] {
            let odd = policy("Audit", false, Some(note));
            assert!(matches!(switch(&odd, Switch::Enable), Err(SwitchError::Unreadable(_))), "{note}");
            assert_eq!(disabled(&odd), None);
        }
    }
}
