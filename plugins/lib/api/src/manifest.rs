//! One object of a plan.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::Resource;
use serde::Serialize;
use serde_json::{Map, Value};

/// Where kubectl keeps a copy of the whole object, Secrets included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// One object of a plan: its JSON and what is needed to address it on a server.
///
/// The JSON is what goes over the wire: `apiVersion` and `kind` are there, members without a value and an empty
/// `status` are not, so that an apply owns only what was meant. Its `Debug` output is [redacted](Self::redacted).
#[derive(Clone, PartialEq)]
pub struct Manifest {
    api_version: String,
    kind: String,
    plural: String,
    namespace: Option<String>,
    name: String,
    body: Value,
    exact: bool,
}

impl Manifest {
    /// The manifest of a typed object.
    ///
    /// # Panics
    ///
    /// If the object does not serialise to a JSON object, which no API type does.
    pub fn of<K>(object: &K) -> Self
    where
        K: Resource + Serialize,
        K::DynamicType: Default,
    {
        let dynamic = K::DynamicType::default();
        let mut body = serde_json::to_value(object).expect("an API object is plain JSON");
        let members = body.as_object_mut().expect("an API object is a JSON object");
        let api_version = K::api_version(&dynamic).into_owned();
        let kind = K::kind(&dynamic).into_owned();
        // Types of other crates leave these two out when they serialise only their fields.
        members.insert("apiVersion".to_owned(), Value::from(api_version.as_str()));
        members.insert("kind".to_owned(), Value::from(kind.as_str()));
        tidy(&mut body);
        Self {
            api_version,
            kind,
            plural: K::plural(&dynamic).into_owned(),
            namespace: object.meta().namespace.clone(),
            name: object.meta().name.clone().unwrap_or_default(),
            body,
            exact: false,
        }
    }

    /// The manifest of an object of this kind with these members besides its metadata, `null` for none. Unlike
    /// [`of`](Self::of) it does not bring the code for all that the kind can hold.
    ///
    /// # Panics
    ///
    /// If the metadata does not serialise to JSON, which it does.
    pub fn with<K>(metadata: &ObjectMeta, members: Value) -> Self
    where
        K: Resource,
        K::DynamicType: Default,
    {
        let dynamic = K::DynamicType::default();
        let (api_version, kind) = (K::api_version(&dynamic).into_owned(), K::kind(&dynamic).into_owned());
        let metadata_of = serde_json::to_value(metadata).expect("metadata is plain JSON");
        let mut body = Map::new();
        body.insert("apiVersion".to_owned(), Value::from(api_version.as_str()));
        body.insert("kind".to_owned(), Value::from(kind.as_str()));
        body.insert("metadata".to_owned(), metadata_of);
        if let Value::Object(members) = members {
            body.extend(members);
        }
        let mut body = Value::Object(body);
        tidy(&mut body);
        Self {
            api_version,
            kind,
            plural: K::plural(&dynamic).into_owned(),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone().unwrap_or_default(),
            body,
            exact: false,
        }
    }

    /// A manifest of a cluster-scoped object that is JSON already.
    pub(crate) fn from_parts(api_version: &str, kind: &str, plural: &str, name: &str, body: Value) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            namespace: None,
            name: name.to_owned(),
            body,
            exact: false,
        }
    }

    /// The manifest of an object that somebody has written. `plural` is the resource name of its kind, which the object does
    /// not tell. None if it names no API version, no kind or no name.
    pub fn written(plural: &str, body: Value) -> Option<Self> {
        let text = |pointer: &str| {
            let text = body.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
            text.map(str::to_owned)
        };
        let (api_version, kind, name) = (text("/apiVersion")?, text("/kind")?, text("/metadata/name")?);
        let namespace = text("/metadata/namespace");
        Some(Self { api_version, kind, plural: plural.to_owned(), namespace, name, body, exact: false })
    }

    /// The same object, as somebody has written it and as it is to be: an apply carries over nothing of what an earlier
    /// one has set, and nothing of lists.
    #[must_use]
    pub fn exactly(mut self) -> Self {
        self.exact = true;
        self
    }

    /// Whether it is applied [exactly](Self::exactly) so.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Group and version, for example `apps/v1`; only the version for the core group.
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// API version without its group.
    pub fn version(&self) -> &str {
        self.api_version.split_once('/').map_or(self.api_version.as_str(), |(_, version)| version)
    }

    /// Kind, for example `ClusterRole`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Resource name in URLs, for example `clusterroles`.
    pub fn plural(&self) -> &str {
        &self.plural
    }

    /// Namespace; none for cluster-scoped objects.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Name of the object.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The object as it goes over the wire.
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// The object, to change; its kind, namespace and name must stay.
    pub fn body_mut(&mut self) -> &mut Value {
        &mut self.body
    }

    /// What kubectl calls the object when it echoes it, for example `clusterrole.rbac.authorization.k8s.io/cluster-manager`.
    ///
    /// The namespace is not part of it.
    pub fn reference(&self) -> String {
        let kind = self.kind.to_ascii_lowercase();
        match self.group() {
            "" => format!("{kind}/{}", self.name),
            group => format!("{kind}.{group}/{}", self.name),
        }
    }

    /// Whether the object is a core Secret, whose body must never be shown as it is.
    pub fn is_secret(&self) -> bool {
        self.api_version == "v1" && self.kind == "Secret"
    }

    /// The object for people: every value of a Secret is replaced by its length, also of Secrets inside other objects
    /// such as a ManifestWork; and so is a proxy of an AddOnDeploymentConfig that names a user.
    pub fn redacted(&self) -> Value {
        redacted(&self.body)
    }
}

/// An object for people, as [`Manifest::redacted`] has it.
pub fn redacted(object: &Value) -> Value {
    let mut object = object.clone();
    redact(&mut object);
    object
}

impl fmt::Debug for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { api_version: _, kind: _, plural, namespace, name: _, body: _, exact } = self;
        f.debug_struct("Manifest")
            .field("reference", &self.reference())
            .field("plural", plural)
            .field("namespace", namespace)
            .field("exact", exact)
            .field("body", &format_args!("{}", self.redacted()))
            .finish()
    }
}

/// Removes what says nothing: members that are null and an empty status.
fn tidy(body: &mut Value) {
    drop_nulls(body);
    if let Some(members) = body.as_object_mut()
        && members.get("status").and_then(Value::as_object).is_some_and(Map::is_empty)
    {
        members.remove("status");
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn redact(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if members.get("kind").is_some_and(|kind| kind == "Secret") {
                redact_members(members.get_mut("data"), decoded_length);
                redact_members(members.get_mut("stringData"), str::len);
                let copy = members.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
                if let Some(copy) = copy.and_then(|annotations| annotations.get_mut(LAST_APPLIED)) {
                    redact_one(copy, str::len);
                }
            } else if members.get("kind").is_some_and(|kind| kind == "AddOnDeploymentConfig") {
                let proxies = members.get_mut("spec").and_then(|spec| spec.get_mut("proxyConfig"));
                let proxies = proxies.and_then(Value::as_object_mut).into_iter().flatten().map(|(_, proxy)| proxy);
                let with_user = proxies.filter(|proxy| proxy.as_str().is_some_and(|url| url.contains('@')));
                with_user.for_each(|proxy| redact_one(proxy, str::len));
            } else {
                members.values_mut().for_each(redact);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        _ => {}
    }
}

fn redact_members(members: Option<&mut Value>, length: fn(&str) -> usize) {
    if let Some(Value::Object(members)) = members {
        members.values_mut().for_each(|member| redact_one(member, length));
    }
}

fn redact_one(value: &mut Value, length: fn(&str) -> usize) {
    let bytes = value.as_str().map_or(0, length);
    *value = Value::from(format!("<redacted, {bytes} bytes>"));
}

/// How many bytes a base64 text stands for.
fn decoded_length(base64: &str) -> usize {
    base64.bytes().filter(|byte| !matches!(byte, b'=' | b'\r' | b'\n')).count() * 3 / 4
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use k8s_openapi::api::core::v1::{Namespace, Secret};
    use k8s_openapi::api::rbac::v1::ClusterRole;
    use serde_json::json;

    use super::*;
    use crate::{ManifestWork, cluster::ManagedCluster, work::ManifestWorkSpec};

    fn secret() -> Secret {
        let mut secret = Secret::default();
        secret.metadata.name = Some("bootstrap-hub-kubeconfig".to_owned());
        secret.metadata.namespace = Some("open-cluster-management-agent".to_owned());
        secret.data = Some([("kubeconfig".to_owned(), ByteString(b"hello".to_vec()))].into());
        secret.string_data = Some([("plain".to_owned(), "four".to_owned())].into());
        secret.metadata.annotations = Some([(LAST_APPLIED.to_owned(), "{\"data\":\"secret\"}".to_owned())].into());
        secret
    }

    #[test]
    fn core_object() {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some("open-cluster-management".to_owned());
        namespace.status = Some(Default::default());
        let manifest = Manifest::of(&namespace);
        assert_eq!(manifest.reference(), "namespace/open-cluster-management");
        assert_eq!((manifest.group(), manifest.version(), manifest.plural()), ("", "v1", "namespaces"));
        assert_eq!(manifest.namespace(), None);
        assert_eq!(
            *manifest.body(),
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "open-cluster-management"}})
        );
    }

    #[test]
    fn object_of_a_group() {
        let mut role = ClusterRole::default();
        role.metadata.name = Some("cluster-manager".to_owned());
        let manifest = Manifest::of(&role);
        assert_eq!(manifest.reference(), "clusterrole.rbac.authorization.k8s.io/cluster-manager");
        assert_eq!((manifest.group(), manifest.version()), ("rbac.authorization.k8s.io", "v1"));
        assert_eq!(manifest.kind(), "ClusterRole");
        assert!(!manifest.is_secret());
    }

    #[test]
    fn an_object_that_somebody_has_written_is_addressed_by_what_stands_in_it() {
        let body = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "n"}});
        let manifest = Manifest::written("deployments", body.clone()).unwrap();
        assert_eq!((manifest.group(), manifest.version(), manifest.plural()), ("apps", "v1", "deployments"));
        assert_eq!((manifest.namespace(), manifest.name(), manifest.body()), (Some("n"), "a", &body));
        for member in ["apiVersion", "kind", "metadata"] {
            let mut less = body.clone();
            less.as_object_mut().unwrap().remove(member);
            assert_eq!(Manifest::written("deployments", less), None, "{member}");
        }
    }

    #[test]
    fn own_object_says_what_it_is() {
        let manifest = Manifest::of(&ManagedCluster::new("c1", Default::default()));
        assert_eq!(manifest.body()["apiVersion"], "cluster.open-cluster-management.io/v1");
        assert_eq!(manifest.body()["kind"], "ManagedCluster");
        assert_eq!(manifest.body().get("status"), None);
    }

    #[test]
    fn secrets_are_redacted_everywhere() {
        let manifest = Manifest::of(&secret());
        assert!(manifest.is_secret());
        assert_eq!(manifest.namespace(), Some("open-cluster-management-agent"));
        assert_eq!(manifest.body()["data"]["kubeconfig"], "aGVsbG8=");
        let redacted = manifest.redacted();
        assert_eq!(redacted["data"]["kubeconfig"], "<redacted, 5 bytes>");
        assert_eq!(redacted["stringData"]["plain"], "<redacted, 4 bytes>");
        assert_eq!(redacted["metadata"]["annotations"][LAST_APPLIED], "<redacted, 17 bytes>");
        let debug = format!("{manifest:?}");
        assert!(!debug.contains("aGVsbG8=") && debug.contains("secret/bootstrap-hub-kubeconfig"), "{debug}");

        let mut spec = ManifestWorkSpec::default();
        spec.workload.manifests.push(manifest.body().clone());
        let work = Manifest::of(&ManifestWork::new("w", spec));
        assert!(!work.is_secret());
        assert_eq!(work.redacted()["spec"]["workload"]["manifests"][0]["data"]["kubeconfig"], "<redacted, 5 bytes>");
    }

    #[test]
    fn a_proxy_with_its_user_is_redacted() {
        let proxies = json!({"httpProxy": "http://me:s3cr@p:1", "httpsProxy": "http://p:1", "noProxy": ".svc"});
        let object = json!({"kind": "AddOnDeploymentConfig", "spec": {"proxyConfig": proxies}});
        let told = json!({"httpProxy": "<redacted, 18 bytes>", "httpsProxy": "http://p:1", "noProxy": ".svc"});
        assert_eq!(redacted(&object)["spec"]["proxyConfig"], told);
    }

    #[test]
    fn decoded_lengths() {
        for (text, length) in [("", 0), ("YQ==", 1), ("YWI=", 2), ("YWJj", 3), ("YWJjZA==", 4)] {
            assert_eq!(decoded_length(text), length, "{text}");
        }
    }

    #[test]
    fn nulls_go_but_empty_objects_stay() {
        let mut body = json!({"metadata": {"creationTimestamp": null}, "spec": {"emptyDir": {}}, "status": {}});
        tidy(&mut body);
        assert_eq!(body, json!({"metadata": {}, "spec": {"emptyDir": {}}}));
    }
}
