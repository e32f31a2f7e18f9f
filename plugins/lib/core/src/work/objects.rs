//! What became of each object of a work.

use ocm_api::Condition;
use ocm_api::conditions::{self, manifest_work};
use ocm_api::work::{ManifestCondition, ManifestWork};
use serde_json::Value;

use super::content::{group, text};
use crate::delivery::{find, object_named, told};
use crate::redact::redact_start;

/// One object of a work, and what the agent has said of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectStanding {
    /// `Deployment default/web`, for people.
    pub object: String,
    /// API version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty where it has none.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Status of its condition `Applied`; none if nobody has set it.
    pub applied: Option<String>,
    /// Status of its condition `Available`; none if nobody has set it.
    pub available: Option<String>,
    /// What keeps it from being there; none if it is.
    pub why: Option<String>,
    /// What the agent reports of it: names and values.
    pub feedback: Vec<(String, String)>,
}

/// Every object of a work, in its order, with what keeps it from being there.
pub fn objects(work: &ManifestWork) -> Vec<ObjectStanding> {
    let status = work.status.iter().flat_map(|status| &status.resource_status).flat_map(|status| &status.manifests);
    let status: Vec<&ManifestCondition> = status.collect();
    let generation = work.metadata.generation.unwrap_or_default();
    let is_it = |meta: &ocm_api::work::ManifestResourceMeta, object: &Value| {
        meta.group == group(object)
            && meta.kind == text(object, "/kind")
            && meta.namespace == text(object, "/metadata/namespace")
            && meta.name == text(object, "/metadata/name")
    };
    let one = |object: &Value| {
        let (kind, name) = (text(object, "/kind"), text(object, "/metadata/name"));
        let namespace = text(object, "/metadata/namespace");
        let standing = ObjectStanding {
            object: object_named(kind, namespace, name),
            api_version: text(object, "/apiVersion").to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..ObjectStanding::default()
        };
        match status.iter().find(|one| is_it(&one.resource_meta, object)) {
            None => ObjectStanding { why: Some("the agent has not looked at it yet".to_owned()), ..standing },
            Some(one) => ObjectStanding {
                applied: word(&one.conditions, manifest_work::APPLIED),
                available: word(&one.conditions, manifest_work::AVAILABLE),
                why: why(&one.conditions, generation),
                feedback: feedback(one.status_feedback.as_ref()),
                ..standing
            },
        }
    };
    work.spec.workload.manifests.iter().map(one).collect()
}

fn word(all: &[Condition], kind: &str) -> Option<String> {
    find(all, kind).map(|condition| condition.status.clone())
}

/// What the first condition says that does not hold, in the order in which one needs the other.
fn why(all: &[Condition], generation: i64) -> Option<String> {
    let applied = find(all, manifest_work::APPLIED);
    if applied.and_then(|condition| condition.observed_generation).is_some_and(|seen| seen < generation) {
        return Some("the agent has not looked at its latest content yet".to_owned());
    }
    [manifest_work::APPLIED, manifest_work::AVAILABLE].into_iter().find_map(|kind| match find(all, kind) {
        None => Some(format!("{kind} is not known yet")),
        Some(condition) if condition.status == conditions::TRUE => None,
        // Agents quote what servers of others have said.
        Some(condition) => Some(redact_start(&told(condition))),
    })
}

/// Upstream: `StatusFeedbackResult`. Of a value only the member of its type is set.
fn feedback(result: Option<&Value>) -> Vec<(String, String)> {
    let values = result.and_then(|result| result["values"].as_array());
    let one = |value: &Value| {
        let found = &value["fieldValue"];
        let shown = ["integer", "string", "boolean", "jsonRaw"].iter().find_map(|member| match &found[*member] {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        });
        Some((value["name"].as_str()?.to_owned(), redact_start(&shown.unwrap_or_default())))
    };
    values.into_iter().flatten().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn condition(kind: &str, status: &str, message: &str) -> Value {
        json!({"type": kind, "status": status, "reason": "R", "message": message, "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    fn work(generation: i64, manifests: Value) -> ManifestWork {
        let object = |name: &str| {
            json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": "n"}})
        };
        serde_json::from_value(json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": {"name": "w", "namespace": "c1", "generation": generation},
            "spec": {"workload": {"manifests": [object("a"), object("b")]}},
            "status": {"conditions": [], "resourceStatus": {"manifests": manifests}},
        }))
        .unwrap()
    }

    fn status(name: &str, conditions: Value) -> Value {
        json!({"resourceMeta": {"group": "apps", "kind": "Deployment", "name": name, "namespace": "n"},
            "conditions": conditions,
            "statusFeedback": {"values": [
                {"name": "Replicas", "fieldValue": {"type": "Integer", "integer": 2}},
                {"name": "Phase", "fieldValue": {"type": "String", "string": "Running"}}]}})
    }

    #[test]
    fn each_object_says_what_it_lacks() {
        let failed = json!([condition("Applied", "False", "no")]);
        let all = objects(&work(1, json!([status("b", failed)])));
        assert_eq!(all[0].object, "Deployment n/a");
        assert_eq!(all[0].why.as_deref(), Some("the agent has not looked at it yet"));
        assert_eq!((all[1].applied.as_deref(), all[1].why.as_deref()), (Some("False"), Some("R: no")));
        let good = json!([condition("Applied", "True", ""), condition("Available", "True", "")]);
        let all = objects(&work(1, json!([status("a", good.clone())])));
        assert_eq!(all[0].why, None);
        let values = [("Replicas", "2"), ("Phase", "Running")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(all[0].feedback, values);
        let old = objects(&work(2, json!([status("a", good)])));
        assert!(old[0].why.as_deref().unwrap().contains("latest content"));
        let half = objects(&work(1, json!([status("a", json!([condition("Applied", "True", "")]))])));
        assert_eq!(half[0].why.as_deref(), Some("Available is not known yet"));
    }

    #[test]
    fn credentials_in_messages_are_not_shown() {
        let bad = json!([condition("Applied", "False", "Bearer abcdefghijklmnopqrstuvwxyz0123456789")]);
        let all = objects(&work(1, json!([status("a", bad)])));
        assert!(!all[0].why.as_deref().unwrap().contains("abcdefghijkl"), "{:?}", all[0]);
    }
}
