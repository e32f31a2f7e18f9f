//! The objects of a hub's side, as they stand in files.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::Failure;
use crate::delivery::object_named;
use crate::plan::without_bookkeeping;
use crate::work::Document;

/// Marks an object that Helm applies at a certain moment alone.
const HOOK: &str = "helm.sh/hook";
/// The moments of an installation.
const OF_INSTALLATION: [&str; 3] = ["pre-install", "post-install", "crd-install"];

/// One object and where it stands.
#[derive(Clone, PartialEq)]
pub(super) struct Written {
    pub(super) source: String,
    pub(super) value: Value,
}

/// The objects of the files, in their order, without what a server notes down itself. Its `Debug` output names them alone:
/// there may be Secrets among them.
#[derive(Clone, PartialEq)]
pub struct Content {
    pub(super) objects: Vec<Written>,
    left_out: Vec<String>,
}

impl Content {
    /// Reads all documents.
    ///
    /// # Errors
    /// A usage failure that says which document is not an object that could be applied, and why.
    pub fn read(documents: Vec<Document>) -> Result<Self, Failure> {
        let (mut objects, mut left_out) = (Vec::new(), Vec::new());
        for Document { source, value } in documents {
            check(&source, &value)?;
            match hooks(&value) {
                Some(hooks) if !hooks.iter().any(|hook| OF_INSTALLATION.contains(hook)) => {
                    left_out.push(format!("{} ({})", told(&value), hooks.join(", ")));
                }
                _ => objects.push(Written { source, value: tidy(&value) }),
            }
        }
        if objects.is_empty() {
            return Err(Failure::usage("the files hold no objects, and an add-on has one at least"));
        }
        Ok(Self { objects, left_out })
    }

    /// Objects that Helm would apply at another moment than an installation, for people: they are no part of it.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Value> {
        self.objects.iter().map(|written| &written.value)
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.values().map(told)).finish()
    }
}

fn check(source: &str, object: &Value) -> Result<(), Failure> {
    let (kind, metadata) = (text(object, "/kind"), &object["metadata"]);
    if kind.is_empty() || text(object, "/apiVersion").is_empty() {
        return Err(Failure::usage(format!("{source} must be a Kubernetes object: it lacks apiVersion or kind")));
    }
    if metadata.get("generateName").is_some_and(|value| !value.is_null()) {
        return Err(Failure::usage(format!(
            "{source}: {kind} has metadata.generateName, so every run would make another one"
        ))
        .hint("give it a name: metadata.name"));
    }
    if text(object, "/metadata/name").is_empty() {
        return Err(Failure::usage(format!("{source}: {kind} has no name")).hint("give it a name: metadata.name"));
    }
    for member in ["labels", "annotations"] {
        if !matches!(metadata.get(member), None | Some(Value::Null | Value::Object(_))) {
            return Err(Failure::usage(format!(
                "{source}: metadata.{member} of {kind} must be an object with strings as values"
            )));
        }
    }
    Ok(())
}

/// The moments at which Helm applies an object; none if it is an ordinary one.
fn hooks(object: &Value) -> Option<Vec<&str>> {
    let hooks = object["metadata"]["annotations"].get(HOOK)?.as_str()?;
    Some(hooks.split(',').map(str::trim).collect())
}

/// The object without book-keeping, status, and members of its metadata that say nothing. The texts of a Secret become its
/// data, as the server stores them: then it can be compared.
fn tidy(object: &Value) -> Value {
    let mut object = without_bookkeeping(object);
    let is_secret = text(&object, "/apiVersion") == "v1" && text(&object, "/kind") == "Secret";
    if let Some(members) = object.as_object_mut() {
        members.remove("status");
        if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|_, member| !member.is_null());
        }
        if is_secret && let Some(Value::Object(texts)) = members.remove("stringData") {
            let data = members.entry("data").or_insert_with(|| Value::Object(Map::new()));
            if data.is_null() {
                *data = Value::Object(Map::new());
            }
            if let Some(data) = data.as_object_mut() {
                let encoded = |text: &Value| Value::from(STANDARD.encode(text.as_str().unwrap_or_default()));
                data.extend(texts.iter().map(|(key, text)| (key.clone(), encoded(text))));
            }
        }
    }
    object
}

/// A text of an object; empty where there is none.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// API group of an object; empty for the core group.
pub(super) fn group(object: &Value) -> &str {
    text(object, "/apiVersion").split_once('/').map_or("", |(group, _)| group)
}

/// `Deployment default/web`, for people.
pub(super) fn told(object: &Value) -> String {
    object_named(text(object, "/kind"), text(object, "/metadata/namespace"), text(object, "/metadata/name"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(values: &[Value]) -> Result<Content, Failure> {
        let document =
            |(index, value): (usize, &Value)| Document { source: format!("f:{index}"), value: value.clone() };
        Content::read(values.iter().enumerate().map(document).collect())
    }

    fn job(name: &str, hook: &str) -> Value {
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "annotations": {HOOK: hook}}})
    }

    #[test]
    fn what_cannot_be_applied_again_is_refused_and_says_where() {
        let pod = |metadata: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata});
        for (values, words) in [
            (vec![], "no objects"),
            (vec![json!("a")], "f:0 must be a Kubernetes object"),
            (vec![pod(json!({"name": "a"})), json!({"kind": "Pod"})], "f:1 must be a Kubernetes object"),
            (vec![pod(json!({}))], "f:0: Pod has no name"),
            (vec![pod(json!({"generateName": "a-"}))], "every run would make another one"),
            (vec![pod(json!({"name": "a", "labels": []}))], "metadata.labels of Pod"),
            (vec![job("a", "test")], "no objects"),
        ] {
            let failure = read(&values).unwrap_err();
            assert_eq!(failure.exit(), crate::Exit::Usage);
            assert!(failure.message.contains(words), "{failure}");
        }
    }

    #[test]
    fn hooks_of_other_moments_are_left_out() {
        let content =
            read(&[job("a", "pre-install, pre-upgrade"), job("b", "pre-delete"), job("c", "test"), job("d", "")])
                .unwrap();
        let names: Vec<&str> = content.values().map(|object| text(object, "/metadata/name")).collect();
        assert_eq!(names, ["a"]);
        assert_eq!(content.left_out(), ["Job b (pre-delete)", "Job c (test)", "Job d ()"]);
    }

    #[test]
    fn objects_are_as_a_server_stores_them() {
        let object = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "s", "uid": "u", "creationTimestamp": null, "labels": null},
            "data": null, "stringData": {"a": "hello"}, "status": {}});
        let expected =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "aGVsbG8="}});
        let content = read(&[object]).unwrap();
        assert_eq!(content.values().next(), Some(&expected));
        assert_eq!(format!("{content:?}"), "[\"Secret s\"]");
    }
}
