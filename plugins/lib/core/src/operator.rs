//! The operator, of hubs and of managed clusters: both are the same program.

use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{LocalObjectReference, Namespace, Secret, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ocm_api::Manifest;
use ocm_api::names::{namespaces, secrets};
use serde_json::{Value, json};

use crate::order::Collect as _;
use crate::release::Component;

/// The container that runs the operator.
pub(crate) const CONTAINER: &str = "registration-operator";
/// The environment variable with the image of the agents that the hub imports clusters with.
pub(crate) const AGENT_IMAGE: &str = "AGENT_IMAGE";

pub(crate) fn meta(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(namespaces::OPERATOR.to_owned()),
        ..ObjectMeta::default()
    }
}

pub(crate) fn namespace() -> Namespace {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(namespaces::OPERATOR.to_owned());
    namespace
}

pub(crate) fn service_account(name: &str, pulls_images: bool) -> ServiceAccount {
    let credentials = || vec![LocalObjectReference { name: secrets::IMAGE_PULL_CREDENTIALS.to_owned() }];
    ServiceAccount {
        metadata: meta(name),
        image_pull_secrets: pulls_images.then(credentials),
        ..ServiceAccount::default()
    }
}

/// Credentials of registries, as a Docker configuration file has them.
#[derive(Clone, PartialEq, Eq)]
pub struct PullCredentials(Vec<u8>);

/// Why a file holds no credentials of registries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PullCredentialsError {
    /// It is not JSON.
    NotJson(String),
    /// It names no registries.
    NoRegistries,
}

impl PullCredentials {
    /// Reads the content of a Docker configuration file.
    ///
    /// # Errors
    /// When it is not JSON or names no registries.
    pub fn parse(config: Vec<u8>) -> Result<Self, PullCredentialsError> {
        match serde_json::from_slice::<Value>(&config) {
            Ok(value) if value["auths"].is_object() => Ok(Self(config)),
            Ok(_) => Err(PullCredentialsError::NoRegistries),
            Err(error) => Err(PullCredentialsError::NotJson(error.to_string())),
        }
    }
}

impl fmt::Debug for PullCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PullCredentials({} bytes)", self.0.len())
    }
}

/// The registry credentials that the operator copies to wherever it starts pods.
pub(crate) fn pull_secret(credentials: Option<&PullCredentials>) -> Secret {
    let config = ByteString(credentials.map_or(b"{}".to_vec(), |credentials| credentials.0.clone()));
    Secret {
        metadata: meta(secrets::IMAGE_PULL_CREDENTIALS),
        type_: Some("kubernetes.io/dockerconfigjson".to_owned()),
        data: Some([(".dockerconfigjson".to_owned(), config)].into()),
        ..Secret::default()
    }
}

/// What an operator's Deployment has of its own.
pub(crate) struct Operator<'a> {
    /// Name of the Deployment, of its service account and of its pods' label `app`.
    pub(crate) name: &'a str,
    /// What the program is told that it operates.
    pub(crate) operates: &'a str,
    /// Name of the container.
    pub(crate) container: &'a str,
    pub(crate) image: &'a str,
    /// The image of agents, where it needs one.
    pub(crate) agent_image: Option<&'a str>,
    pub(crate) replicas: i32,
    /// Annotations of its pods.
    pub(crate) annotations: Value,
    /// Where its pods would rather not be together.
    pub(crate) affinity: Value,
}

/// The Deployment with our defaults.
pub(crate) fn deployment(operator: &Operator<'_>) -> Manifest {
    let labels = [("app".to_owned(), operator.name.to_owned())].collect_map();
    let metadata = ObjectMeta { labels: Some(labels.clone()), ..meta(operator.name) };
    let pod = json!({
        "affinity": operator.affinity,
        "containers": [container_of(operator)],
        "serviceAccountName": operator.name,
        // The operator writes its serving certificate there; its root is read-only.
        "volumes": [{"name": "tmpdir", "emptyDir": {}}],
    });
    let template = json!({"metadata": {"labels": labels, "annotations": operator.annotations}, "spec": pod});
    let spec = json!({"replicas": operator.replicas, "selector": {"matchLabels": labels}, "template": template});
    Manifest::with::<Deployment>(&metadata, json!({"spec": spec}))
}

fn container_of(operator: &Operator<'_>) -> Value {
    let probe = json!({
        "httpGet": {"path": "/healthz", "port": 8443, "scheme": "HTTPS"},
        "initialDelaySeconds": 2,
    });
    let mut liveness = probe.clone();
    liveness["periodSeconds"] = json!(10);
    let mut environment = vec![json!({"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}})];
    environment.extend(operator.agent_image.map(|image| json!({"name": AGENT_IMAGE, "value": image})));
    json!({
        "name": operator.container,
        "image": operator.image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["/registration-operator", operator.operates],
        "env": environment,
        "livenessProbe": liveness,
        "readinessProbe": probe,
        "resources": {"requests": {"cpu": "2m", "memory": "16Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "privileged": false,
            "readOnlyRootFilesystem": true,
            "runAsNonRoot": true,
        },
        "volumeMounts": [{"name": "tmpdir", "mountPath": "/tmp"}],
    })
}

/// Replicas prefer different zones and, less so, different nodes.
pub(crate) fn apart(name: &str) -> Value {
    let term = |weight: i32, topology: &str| {
        let expressions = json!([{"key": "app", "operator": "In", "values": [name]}]);
        let term = json!({"topologyKey": topology, "labelSelector": {"matchExpressions": expressions}});
        json!({"weight": weight, "podAffinityTerm": term})
    };
    let terms = [term(70, "topology.kubernetes.io/zone"), term(30, "kubernetes.io/hostname")];
    json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}})
}

/// The container of a Deployment that runs the operator.
pub(crate) fn container(deployment: &Value) -> Option<&Value> {
    let containers = deployment.pointer("/spec/template/spec/containers")?.as_array()?;
    let named = containers.iter().find(|container| container["name"] == CONTAINER);
    let runs = |container: &&Value| {
        container["image"].as_str().is_some_and(|image| image.contains(Component::Operator.image()))
    };
    named.or_else(|| containers.iter().find(runs)).or_else(|| containers.first())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_name_registries_and_are_not_shown() {
        assert_eq!(PullCredentials::parse(b"{}".to_vec()), Err(PullCredentialsError::NoRegistries));
        assert!(matches!(PullCredentials::parse(b"x".to_vec()), Err(PullCredentialsError::NotJson(_))));
        let config = br#"{"auths": {"r": {"auth": "c2VjcmV0"}}}"#;
        let credentials = PullCredentials::parse(config.to_vec()).unwrap();
        assert!(!format!("{credentials:?}").contains("c2VjcmV0"));
        assert_eq!(pull_secret(Some(&credentials)).data.unwrap()[".dockerconfigjson"].0, config);
    }
}
