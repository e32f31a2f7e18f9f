//! The operator, of hubs and of managed clusters: both are the same program.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    Affinity, Capabilities, Container, EmptyDirVolumeSource, EnvVar, EnvVarSource, HTTPGetAction, LocalObjectReference,
    Namespace, ObjectFieldSelector, PodAffinityTerm, PodAntiAffinity, PodSpec, PodTemplateSpec, Probe,
    ResourceRequirements, Secret, SecurityContext, ServiceAccount, Volume, VolumeMount, WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use ocm_api::names::{namespaces, operators, secrets};
use serde_json::Value;

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

/// The Deployment with our defaults.
pub(crate) fn deployment(image: &str, agent_image: &str, replicas: i32, container: &str) -> Deployment {
    let labels = BTreeMap::from([("app".to_owned(), operators::CLUSTER_MANAGER.to_owned())]);
    Deployment {
        metadata: ObjectMeta { labels: Some(labels.clone()), ..meta(operators::CLUSTER_MANAGER) },
        spec: Some(DeploymentSpec {
            replicas: Some(replicas),
            selector: LabelSelector { match_labels: Some(labels.clone()), ..LabelSelector::default() },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
                spec: Some(PodSpec {
                    affinity: Some(apart()),
                    containers: vec![operator(image, agent_image, container)],
                    service_account_name: Some(operators::CLUSTER_MANAGER.to_owned()),
                    // The operator writes its serving certificate there; its root is read-only.
                    volumes: Some(vec![Volume {
                        name: "tmpdir".to_owned(),
                        empty_dir: Some(EmptyDirVolumeSource::default()),
                        ..Volume::default()
                    }]),
                    ..PodSpec::default()
                }),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

fn operator(image: &str, agent_image: &str, name: &str) -> Container {
    let probe = || Probe {
        http_get: Some(HTTPGetAction {
            path: Some("/healthz".to_owned()),
            port: IntOrString::Int(8443),
            scheme: Some("HTTPS".to_owned()),
            ..HTTPGetAction::default()
        }),
        initial_delay_seconds: Some(2),
        ..Probe::default()
    };
    let quantities = [("cpu", "2m"), ("memory", "16Mi")];
    Container {
        name: name.to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        args: Some(vec!["/registration-operator".to_owned(), "hub".to_owned()]),
        env: Some(vec![
            EnvVar {
                name: "POD_NAME".to_owned(),
                value_from: Some(EnvVarSource {
                    field_ref: Some(ObjectFieldSelector {
                        field_path: "metadata.name".to_owned(),
                        ..ObjectFieldSelector::default()
                    }),
                    ..EnvVarSource::default()
                }),
                ..EnvVar::default()
            },
            EnvVar { name: AGENT_IMAGE.to_owned(), value: Some(agent_image.to_owned()), ..EnvVar::default() },
        ]),
        liveness_probe: Some(Probe { period_seconds: Some(10), ..probe() }),
        readiness_probe: Some(probe()),
        resources: Some(ResourceRequirements {
            requests: Some(quantities.map(|(name, text)| (name.to_owned(), Quantity(text.to_owned()))).into()),
            ..ResourceRequirements::default()
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
            privileged: Some(false),
            read_only_root_filesystem: Some(true),
            run_as_non_root: Some(true),
            ..SecurityContext::default()
        }),
        volume_mounts: Some(vec![VolumeMount {
            name: "tmpdir".to_owned(),
            mount_path: "/tmp".to_owned(),
            ..VolumeMount::default()
        }]),
        ..Container::default()
    }
}

/// Replicas prefer different zones and, less so, different nodes.
fn apart() -> Affinity {
    let term = |weight: i32, topology: &str| WeightedPodAffinityTerm {
        weight,
        pod_affinity_term: PodAffinityTerm {
            topology_key: topology.to_owned(),
            label_selector: Some(LabelSelector {
                match_expressions: Some(vec![LabelSelectorRequirement {
                    key: "app".to_owned(),
                    operator: "In".to_owned(),
                    values: Some(vec![operators::CLUSTER_MANAGER.to_owned()]),
                }]),
                ..LabelSelector::default()
            }),
            ..PodAffinityTerm::default()
        },
    };
    Affinity {
        pod_anti_affinity: Some(PodAntiAffinity {
            preferred_during_scheduling_ignored_during_execution: Some(vec![
                term(70, "topology.kubernetes.io/zone"),
                term(30, "kubernetes.io/hostname"),
            ]),
            ..PodAntiAffinity::default()
        }),
        ..Affinity::default()
    }
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
