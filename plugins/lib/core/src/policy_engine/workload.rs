//! The pods of the webhook, and what keeps them reachable.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use ocm_api::Manifest;
use serde_json::{Value, json};

use super::{MARK, SERVING_SECRET, WEBHOOK, meta, with, within};

/// Name of the container.
const CONTAINER: &str = "webhook";
/// Ports of the container: reviews, and probes and metrics.
const REVIEWS: u16 = 9443;
const HEALTH: u16 = 8080;
/// How long a pod may take to end: it takes connections for 12 more seconds, and answers what has begun within 20.
const GRACE_SECONDS: u16 = 45;

/// The image that a Deployment runs.
pub(super) fn image(deployment: &Value) -> Option<&str> {
    let containers = deployment.pointer("/spec/template/spec/containers")?.as_array()?;
    containers.iter().find(|container| container["name"] == CONTAINER)?["image"].as_str()
}

/// How many pods a Deployment has.
pub(super) fn replicas(deployment: &Value) -> Option<i32> {
    deployment.pointer("/spec/replicas")?.as_i64()?.try_into().ok()
}

/// What tells the pods.
fn selector() -> Value {
    json!({"app.kubernetes.io/name": WEBHOOK})
}

/// Clusters wait for these pods, so they go before ordinary ones. The classes of Kubernetes itself are for what a cluster
/// cannot work without, which it can, and quotas keep them to kube-system on many clusters.
pub(super) fn priority_class() -> Manifest {
    let class = Manifest::of(&PriorityClass { metadata: meta(WEBHOOK), ..PriorityClass::default() });
    let description = "The policy webhook of a hub: registrations wait while it has no pod.";
    with(class, json!({"value": 1_000_000, "description": description}))
}

pub(super) fn service() -> Manifest {
    let service = Manifest::of(&Service { metadata: within(WEBHOOK), ..Service::default() });
    let ports = json!([{"name": "https", "port": 443, "protocol": "TCP", "targetPort": "reviews"}]);
    with(service, json!({"spec": {"selector": selector(), "ports": ports}}))
}

/// Reviews and probes come in, and nothing else. API servers are no pods, and where they come from differs from cluster to
/// cluster, so whoever knows it narrows this policy.
pub(super) fn network_policy() -> Manifest {
    let policy = Manifest::of(&NetworkPolicy { metadata: within(WEBHOOK), ..NetworkPolicy::default() });
    let port = |number: u16| json!({"port": number, "protocol": "TCP"});
    let spec = json!({
        "podSelector": {"matchLabels": selector()},
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": [port(REVIEWS), port(HEALTH)]}],
    });
    with(policy, json!({"spec": spec}))
}

/// One pod at a time, and those that do not work do not keep a node from being drained.
pub(super) fn disruption_budget() -> Manifest {
    let budget = Manifest::of(&PodDisruptionBudget { metadata: within(WEBHOOK), ..PodDisruptionBudget::default() });
    let spec = json!({
        "maxUnavailable": 1,
        "selector": {"matchLabels": selector()},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    });
    with(budget, json!({"spec": spec}))
}

pub(super) fn deployment(image: &str, replicas: i32) -> Manifest {
    let deployment = Manifest::of(&Deployment { metadata: within(WEBHOOK), ..Deployment::default() });
    let mut labels = selector();
    labels[MARK.0] = MARK.1.into();
    let spec = json!({
        "replicas": replicas,
        "selector": {"matchLabels": selector()},
        // No pod goes before the next one answers.
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "template": {"metadata": {"labels": labels}, "spec": pod(image)},
    });
    with(deployment, json!({"spec": spec}))
}

fn pod(image: &str) -> Value {
    let spread = |key: &str| {
        json!({
            "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": selector()},
        })
    };
    json!({
        "serviceAccountName": WEBHOOK,
        "priorityClassName": WEBHOOK,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "enableServiceLinks": false,
        "topologySpreadConstraints": [spread("kubernetes.io/hostname"), spread("topology.kubernetes.io/zone")],
        // The image says which user, and it is none of the node's.
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container(image)],
        "volumes": [
            {"name": "tls", "secret": {"secretName": SERVING_SECRET}},
            {"name": "cache", "emptyDir": {"sizeLimit": "1Gi"}},
            {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
        ],
    })
}

fn container(image: &str) -> Value {
    let probe = |path: &str, period: u16, failures: u16| {
        json!({
            "httpGet": {"path": path, "port": "health"}, "periodSeconds": period, "timeoutSeconds": 2,
            "failureThreshold": failures,
        })
    };
    json!({
        "name": CONTAINER,
        "image": image,
        "args": arguments(),
        "ports": [
            {"name": "reviews", "containerPort": REVIEWS, "protocol": "TCP"},
            {"name": "health", "containerPort": HEALTH, "protocol": "TCP"},
        ],
        "readinessProbe": probe("/readyz", 2, 2),
        "livenessProbe": probe("/healthz", 10, 6),
        // Without a limit of CPU: a review that is slowed down is one that is not answered in time.
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "tls", "mountPath": "/tls", "readOnly": true},
            {"name": "cache", "mountPath": "/cache"},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    })
}

/// The role, and flags. Name and value in one argument: later runs tell them apart by it.
fn arguments() -> Vec<String> {
    vec![
        "webhook".to_owned(),
        format!("--listen=0.0.0.0:{REVIEWS}"),
        format!("--health-listen=0.0.0.0:{HEALTH}"),
        "--tls-cert-file=/tls/tls.crt".to_owned(),
        "--tls-private-key-file=/tls/tls.key".to_owned(),
        // In a folder of its own: everybody may write to a volume, and what lies in the cache is run.
        "--cache-dir=/cache/modules".to_owned(),
    ]
}
