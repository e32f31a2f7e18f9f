//! The operator's Deployment and what it runs as.

use std::collections::BTreeMap;

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

/// The container that runs the operator.
pub(super) const CONTAINER: &str = "registration-operator";
/// The environment variable with the image of the agents that the hub imports clusters with.
pub(super) const AGENT_IMAGE: &str = "AGENT_IMAGE";

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

/// The registry credentials that the operator copies to wherever it starts pods.
pub(crate) fn pull_secret(config: Option<&[u8]>) -> Secret {
    let config = ByteString(config.unwrap_or(b"{}").to_vec());
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
