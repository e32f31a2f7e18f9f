//! On which nodes the pods of a hub or an agent run: what was typed, for their operator and for the operator itself.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use serde_json::{Value, json};

/// What is typed as an effect: those of taints. Upstream: `TaintEffect` of Kubernetes.
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Where pods run. Whatever is empty was not said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scheduling {
    /// Labels that a node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Taints that the pods tolerate.
    pub tolerations: Vec<Toleration>,
    /// PriorityClass of the pods.
    pub priority_class: Option<String>,
}

/// Why a text is no toleration or no label of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchedulingError {
    /// It has another form.
    #[error("it has another form")]
    Form,
    /// The key is none of a label or a taint.
    #[error("its key is none: letters, digits, '-', '_' and '.', behind a prefix such as example.com/ if there is one")]
    Key,
    /// The value is none of a label or a taint.
    #[error("its value is none: at most 63 letters, digits, '-', '_' and '.', with letters or digits at both ends")]
    Value,
    /// The effect is none of a taint.
    #[error("its effect is none of NoSchedule, PreferNoSchedule and NoExecute")]
    Effect,
}

/// Reads `KEY=VALUE`, a label that nodes must have.
///
/// # Errors
/// When it is something else.
pub fn label(text: &str) -> Result<(String, String), SchedulingError> {
    let (key, value) = text.split_once('=').ok_or(SchedulingError::Form)?;
    check(key, value)?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Reads `KEY=VALUE:EFFECT`, or `KEY:EFFECT` for every value, as taints are written for `kubectl taint`.
///
/// # Errors
/// When it is something else.
pub fn toleration(text: &str) -> Result<Toleration, SchedulingError> {
    let (taint, effect) = text.rsplit_once(':').ok_or(SchedulingError::Form)?;
    if !EFFECTS.contains(&effect) {
        return Err(SchedulingError::Effect);
    }
    let (key, value) = taint.split_once('=').map_or((taint, None), |(key, value)| (key, Some(value)));
    check(key, value.unwrap_or_default())?;
    let operator = if value.is_some() { "Equal" } else { "Exists" };
    Ok(Toleration {
        key: Some(key.to_owned()),
        operator: Some(operator.to_owned()),
        value: value.map(str::to_owned),
        effect: Some(effect.to_owned()),
        ..Toleration::default()
    })
}

fn check(key: &str, value: &str) -> Result<(), SchedulingError> {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let is_prefix = prefix.is_none_or(crate::work::is_object_name);
    match () {
        () if !is_prefix || name.is_empty() || !is_value(name) => Err(SchedulingError::Key),
        () if !is_value(value) => Err(SchedulingError::Value),
        () => Ok(()),
    }
}

/// Whether Kubernetes takes it as the value of a label. Upstream: `IsValidLabelValue`.
fn is_value(text: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    let are_known = bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte));
    text.len() <= 63 && are_known && is_end(bytes.first()) && is_end(bytes.last())
}

impl Scheduling {
    /// Says it in the spec of a ClusterManager or a Klusterlet; only the latter has a PriorityClass.
    pub(crate) fn tell_operator(&self, spec: &mut Value) {
        if !self.node_selector.is_empty() {
            spec["nodePlacement"]["nodeSelector"] = json!(self.node_selector);
        }
        if !self.tolerations.is_empty() {
            spec["nodePlacement"]["tolerations"] = json!(self.tolerations);
        }
        if let Some(class) = &self.priority_class {
            spec["priorityClassName"] = Value::from(class.as_str());
        }
    }

    /// Says it in the pods of an operator's Deployment, as upstream's charts do.
    pub(crate) fn place(&self, deployment: &mut Value) {
        let Some(pod) = deployment.pointer_mut("/spec/template/spec") else { return };
        if !self.node_selector.is_empty() {
            pod["nodeSelector"] = json!(self.node_selector);
        }
        if !self.tolerations.is_empty() {
            pod["tolerations"] = json!(self.tolerations);
        }
        if let Some(class) = &self.priority_class {
            pod["priorityClassName"] = Value::from(class.as_str());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taints_are_tolerated_as_kubectl_writes_them() {
        let read = |text: &str| json!(toleration(text).unwrap());
        let infra = json!({"key": "infra", "operator": "Equal", "value": "yes", "effect": "NoSchedule"});
        assert_eq!(read("infra=yes:NoSchedule"), infra);
        let master =
            json!({"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoExecute"});
        assert_eq!(read("node-role.kubernetes.io/control-plane:NoExecute"), master);
        assert_eq!(read("infra=:PreferNoSchedule")["value"], "");
        for (text, why) in [
            ("infra", SchedulingError::Form),
            ("infra=yes", SchedulingError::Form),
            ("infra:noschedule", SchedulingError::Effect),
            ("infra:", SchedulingError::Effect),
            (":NoSchedule", SchedulingError::Key),
            ("a b:NoSchedule", SchedulingError::Key),
            ("Example.com/a:NoSchedule", SchedulingError::Key),
            ("a/b/c:NoSchedule", SchedulingError::Key),
            ("infra=-:NoSchedule", SchedulingError::Value),
        ] {
            assert_eq!(toleration(text), Err(why), "{text}");
        }
    }

    #[test]
    fn nodes_are_chosen_by_labels() {
        assert_eq!(label("pool=infra"), Ok(("pool".to_owned(), "infra".to_owned())));
        assert_eq!(label("example.com/pool="), Ok(("example.com/pool".to_owned(), String::new())));
        assert_eq!(label("pool"), Err(SchedulingError::Form));
        assert_eq!(label("=infra"), Err(SchedulingError::Key));
        assert_eq!(label("pool=a=b"), Err(SchedulingError::Value));
        assert_eq!(label(&format!("pool={}", "a".repeat(64))), Err(SchedulingError::Value));
    }

    #[test]
    fn what_was_not_typed_is_not_said() {
        let mut nothing = (json!({"a": 1}), json!({"spec": {"template": {"spec": {}}}}));
        let before = nothing.clone();
        Scheduling::default().tell_operator(&mut nothing.0);
        Scheduling::default().place(&mut nothing.1);
        assert_eq!(nothing, before);
        let typed = Scheduling { priority_class: Some("system-cluster-critical".to_owned()), ..Scheduling::default() };
        typed.tell_operator(&mut nothing.0);
        typed.place(&mut nothing.1);
        assert_eq!(nothing.0, json!({"a": 1, "priorityClassName": "system-cluster-critical"}));
        assert_eq!(
            nothing.1.pointer("/spec/template/spec"),
            Some(&json!({"priorityClassName": "system-cluster-critical"}))
        );
    }
}
