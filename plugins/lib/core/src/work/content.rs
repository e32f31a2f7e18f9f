//! The objects of a work, as people write them into files.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Failure;
use crate::delivery::object_named;
use crate::plan::without_bookkeeping;

/// How large the objects of a work may be together: bytes. Upstream: `ManifestValidator` of the hub's webhook.
pub const LIMIT: usize = 500 * 1024;

/// What the hub counts for each object besides its JSON: bytes.
const FRAME: usize = 8;

/// Kinds of Kubernetes itself that have namespaces.
const NAMESPACED: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ],
    ),
    ("apps", &["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"]),
    ("autoscaling", &["HorizontalPodAutoscaler"]),
    ("batch", &["CronJob", "Job"]),
    ("coordination.k8s.io", &["Lease"]),
    ("discovery.k8s.io", &["EndpointSlice"]),
    ("events.k8s.io", &["Event"]),
    ("networking.k8s.io", &["Ingress", "NetworkPolicy"]),
    ("policy", &["PodDisruptionBudget"]),
    ("rbac.authorization.k8s.io", &["Role", "RoleBinding"]),
];

/// One document and where it stands.
#[derive(Clone, Debug)]
pub struct Document {
    /// For people: a file and the place in it.
    pub source: String,
    /// What stands there.
    pub value: Value,
}

/// The objects of a work, in the order of the files, without what a server has noted down in them.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    manifests: Vec<Value>,
}

impl Content {
    /// Reads all documents. What the hub would refuse of them is refused here.
    ///
    /// # Errors
    /// A usage failure that says which document cannot be in a work, and why.
    pub fn read(documents: Vec<Document>) -> Result<Self, Failure> {
        let mut known: BTreeMap<[String; 4], String> = BTreeMap::new();
        let mut manifests = Vec::new();
        for Document { source, value } in documents {
            let key = key(&source, &value)?;
            let told = object_named(&key[1], &key[2], &key[3]);
            if let Some(first) = known.insert(key, source.clone()) {
                return Err(Failure::usage(format!("{told} is there twice: in {first} and in {source}"))
                    .hint("a work holds each object once: leave one of them out"));
            }
            manifests.push(without_bookkeeping(&value));
        }
        if manifests.is_empty() {
            return Err(Failure::usage("the files hold no objects, and a work needs one at least"));
        }
        let content = Self { manifests };
        match content.bytes() {
            bytes if bytes > LIMIT => Err(content.too_large(bytes)),
            _ => Ok(content),
        }
    }

    /// The objects.
    pub fn manifests(&self) -> &[Value] {
        &self.manifests
    }

    /// Objects that need a namespace and name none, for people.
    pub fn without_namespace(&self) -> Vec<String> {
        let lacks = |object: &&Value| text(object, "/metadata/namespace").is_empty() && is_namespaced(object);
        self.manifests.iter().filter(lacks).map(told).collect()
    }

    fn bytes(&self) -> usize {
        self.manifests.iter().map(bytes).sum()
    }

    fn too_large(&self, bytes: usize) -> Failure {
        let largest = self.manifests.iter().max_by_key(|object| self::bytes(object));
        let largest =
            largest.map(|object| format!("the largest is {} with {} bytes", told(object), self::bytes(object)));
        let failure =
            Failure::usage(format!("the objects have {bytes} bytes, and a hub takes {LIMIT} bytes in one work"));
        largest
            .into_iter()
            .fold(failure, |failure, largest| failure.because(largest))
            .hint("make several works of them")
    }
}

/// API version, kind, namespace and name: what the hub tells objects of a work apart by.
fn key(source: &str, object: &Value) -> Result<[String; 4], Failure> {
    if !object.is_object() {
        return Err(Failure::usage(format!("{source} must be a Kubernetes object")));
    }
    let word = |pointer: &str| text(object, pointer).to_owned();
    let (api_version, kind) = (word("/apiVersion"), word("/kind"));
    if api_version.is_empty() || kind.is_empty() {
        return Err(Failure::usage(format!("{source} must be a Kubernetes object: it lacks apiVersion or kind")));
    }
    let (namespace, name) = (word("/metadata/namespace"), word("/metadata/name"));
    if object.pointer("/metadata/generateName").is_some_and(|value| !value.is_null()) {
        return Err(Failure::usage(format!(
            "{source}: {kind} has metadata.generateName, which no object of a work may have"
        ))
        .hint("give it a name: metadata.name"));
    }
    if name.is_empty() {
        return Err(Failure::usage(format!("{source}: {kind} has no name")).hint("give it a name: metadata.name"));
    }
    Ok([api_version, kind, namespace, name])
}

pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// API group of an object; empty for the core group.
pub(super) fn group(object: &Value) -> &str {
    text(object, "/apiVersion").split_once('/').map_or("", |(group, _)| group)
}

fn told(object: &Value) -> String {
    object_named(text(object, "/kind"), text(object, "/metadata/namespace"), text(object, "/metadata/name"))
}

fn is_namespaced(object: &Value) -> bool {
    let (group, kind) = (group(object), text(object, "/kind"));
    NAMESPACED.iter().any(|(of, kinds)| *of == group && kinds.contains(&kind))
}

/// How large an object is as the hub counts it: Go writes `<`, `>` and `&` as escapes of six characters.
fn bytes(object: &Value) -> usize {
    let json = object.to_string();
    let escaped = json.bytes().filter(|byte| matches!(byte, b'<' | b'>' | b'&')).count();
    json.len() + 5 * escaped + FRAME
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(name: &str, data: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}, "data": {"a": data}})
    }

    fn read(values: &[Value]) -> Result<Content, Failure> {
        let document =
            |(index, value): (usize, &Value)| Document { source: format!("f:{index}"), value: value.clone() };
        Content::read(values.iter().enumerate().map(document).collect())
    }

    fn refused(values: &[Value], words: &str) {
        let failure = read(values).unwrap_err();
        assert_eq!(failure.exit(), crate::Exit::Usage);
        assert!(failure.message.contains(words), "{failure}");
    }

    #[test]
    fn what_a_hub_refuses_is_refused_before_and_says_where() {
        refused(&[], "no objects");
        refused(&[json!("a")], "f:0 must be a Kubernetes object");
        refused(&[map("a", ""), json!({"kind": "ConfigMap"})], "f:1 must be a Kubernetes object: it lacks");
        let nameless = |metadata: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata});
        refused(&[nameless(json!({}))], "f:0: Pod has no name");
        refused(&[nameless(json!({"name": "p", "generateName": "p-"}))], "generateName");
        refused(&[map("a", "1"), map("b", "1"), map("a", "2")], "ConfigMap n/a is there twice: in f:0 and in f:2");
        let mut other = map("a", "");
        other["metadata"]["namespace"] = "m".into();
        assert_eq!(read(&[map("a", ""), other]).unwrap().manifests().len(), 2);
    }

    #[test]
    fn the_size_is_counted_as_the_hub_counts_it() {
        let room = LIMIT - bytes(&map("a", ""));
        assert!(read(&[map("a", &"x".repeat(room))]).is_ok());
        refused(&[map("a", &"x".repeat(room + 1))], "a hub takes 512000 bytes");
        refused(&[map("a", &"<".repeat(room / 6 + 1))], "a hub takes");
        let failure = read(&[map("a", ""), map("b", &"x".repeat(LIMIT))]).unwrap_err();
        assert!(failure.causes[0].starts_with("the largest is ConfigMap n/b"), "{failure}");
    }

    #[test]
    fn what_a_server_has_noted_does_not_go_along() {
        let mut object = map("a", "");
        object["metadata"]["uid"] = "u".into();
        object["metadata"]["resourceVersion"] = "1".into();
        assert_eq!(read(&[object]).unwrap().manifests(), [map("a", "")]);
    }

    #[test]
    fn objects_that_need_a_namespace_are_known() {
        let of =
            |api_version: &str, kind: &str| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}});
        let all =
            [of("apps/v1", "Deployment"), of("v1", "Namespace"), of("example.com/v1", "Deployment"), map("a", "")];
        assert_eq!(read(&all).unwrap().without_namespace(), ["Deployment x"]);
    }
}
