//! The pods of the webhook, of the controller and of what renews certificates, and what keeps them reachable.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::CronJob;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use ocm_api::Manifest;
use serde_json::{Value, json};

use super::names::{CERTIFICATES, CONTROLLER, MARK, WEBHOOK, meta, within};

/// Names of the containers, which are the roles of the program.
const CONTAINER: &str = "webhook";
const CONTROLS: &str = "controller";
const RENEWS: &str = "certificates";
/// Ports of the container: reviews, and probes and metrics.
const REVIEWS: u16 = 9443;
const HEALTH: u16 = 8080;
/// The annotation of the webhook's pods that tells who may send them reviews. Where that changes they are replaced: connections
/// that stand would go on, whatever their NetworkPolicy says, and nobody would see that it keeps API servers out.
const REVIEWS_FROM: &str = "policy.kubectl-ocm.dev/reviews-from";
/// How long a pod may take to end: it takes connections for 12 more seconds, and answers what has begun within 20.
const GRACE_SECONDS: u16 = 45;
/// The controller gives its lease back, and ends.
const CONTROLLERS_GRACE_SECONDS: u16 = 10;
/// Four times a day: a certificate has a month left when it is old, and runs may fail. Not when everything else runs.
const SCHEDULE: &str = "17 */6 * * *";
/// How late a run may begin, after which the next one is waited for.
const LATE_SECONDS: u16 = 3600;
/// How long a run may take with all its tries: one waits for a minute until every API server knows a new authority.
const RUN_SECONDS: u16 = 900;
/// How long a run that has ended is kept to be looked at: alerts go by Jobs that failed.
const KEPT_SECONDS: u32 = 24 * 60 * 60;

/// The image that a Deployment runs.
pub(super) fn image(deployment: &Value) -> Option<&str> {
    let containers = deployment.pointer("/spec/template/spec/containers")?.as_array()?;
    containers.iter().find(|container| container["name"] == CONTAINER)?["image"].as_str()
}

/// How many pods a Deployment has.
pub(super) fn replicas(deployment: &Value) -> Option<i32> {
    deployment.pointer("/spec/replicas")?.as_i64()?.try_into().ok()
}

/// The Secret that a Deployment serves by.
pub(super) fn serving_secret(deployment: &Value) -> Option<&str> {
    let volumes = deployment.pointer("/spec/template/spec/volumes")?.as_array()?;
    volumes.iter().find(|volume| volume["name"] == "tls")?["secret"]["secretName"].as_str()
}

/// What tells the pods.
fn selector(name: &str) -> Value {
    json!({"app.kubernetes.io/name": name})
}

/// Clusters wait for these pods, so they go before ordinary ones. The classes of Kubernetes itself are for what a cluster
/// cannot work without, which it can, and quotas keep them to kube-system on many clusters.
pub(super) fn priority_class() -> Manifest {
    let description = "The policy engine of a hub: registrations wait while it has no pod.";
    Manifest::with::<PriorityClass>(&meta(WEBHOOK), json!({"value": 1_000_000, "description": description}))
}

pub(super) fn service() -> Manifest {
    let ports = json!([{"name": "https", "port": 443, "protocol": "TCP", "targetPort": "reviews"}]);
    Manifest::with::<Service>(&within(WEBHOOK), json!({"spec": {"selector": selector(WEBHOOK), "ports": ports}}))
}

/// Reviews and probes come in, and nothing else. API servers are no pods, and where they come from differs from cluster to
/// cluster: whoever knows it says so. Probes and scrapes come from elsewhere. Where nobody says it, it stays as `live` has it,
/// and what somebody has written there by hand stays whole: nothing that is closed by it is opened.
pub(super) fn network_policy(reviewed: Option<Value>, live: Option<&Value>) -> Manifest {
    let spec = live.and_then(|live| live.get("spec")).filter(|spec| spec.is_object());
    let from = reviewed.or_else(|| spec.and_then(narrowed));
    if from.is_none()
        && let Some(spec) = spec
        && spec["ingress"] != let_in(None)
    {
        return Manifest::with::<NetworkPolicy>(&within(WEBHOOK), json!({"spec": spec}));
    }
    // Whoever has narrowed what goes out did so by a type more.
    let types = spec.map(|spec| &spec["policyTypes"]);
    let types = types.filter(|types| types.as_array().is_some_and(|types| types.contains(&json!("Ingress"))));
    ingress(WEBHOOK, &let_in(from.as_ref()), types.unwrap_or(&json!(["Ingress"])))
}

/// The rules by which reviews come from these peers alone, or from everywhere.
fn let_in(reviewed: Option<&Value>) -> Value {
    match reviewed {
        Some(from) => json!([{"ports": ports(&[REVIEWS]), "from": from}, {"ports": ports(&[HEALTH])}]),
        None => json!([{"ports": ports(&[REVIEWS, HEALTH])}]),
    }
}

/// From which peers alone reviews come, where the rules of a NetworkPolicy are those that are made of them.
fn narrowed(spec: &Value) -> Option<Value> {
    let from = &spec["ingress"][0]["from"];
    (spec["ingress"] == let_in(Some(from))).then(|| from.clone())
}

/// Who may send reviews by a NetworkPolicy, as the pods are told; none where everybody may.
pub(super) fn reviews_from(policy: &Manifest) -> Option<String> {
    let rules = &policy.body()["spec"]["ingress"];
    (*rules != let_in(None)).then(|| rules.to_string())
}

/// Probes and scrapes come in, and nothing else.
pub(super) fn controller_network_policy() -> Manifest {
    ingress(CONTROLLER, &json!([{"ports": ports(&[HEALTH])}]), &json!(["Ingress"]))
}

fn ports(numbers: &[u16]) -> Vec<Value> {
    numbers.iter().map(|number| json!({"port": number, "protocol": "TCP"})).collect()
}

fn ingress(name: &str, rules: &Value, types: &Value) -> Manifest {
    let spec = json!({
        "podSelector": {"matchLabels": selector(name)},
        "policyTypes": types,
        "ingress": rules,
    });
    Manifest::with::<NetworkPolicy>(&within(name), json!({"spec": spec}))
}

/// One pod at a time, and those that do not work do not keep a node from being drained.
pub(super) fn disruption_budget() -> Manifest {
    let spec = json!({
        "maxUnavailable": 1,
        "selector": {"matchLabels": selector(WEBHOOK)},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    });
    Manifest::with::<PodDisruptionBudget>(&within(WEBHOOK), json!({"spec": spec}))
}

/// Pods of this image that serve by a Secret, with what [`reviews_from`] says.
pub(super) fn webhook(image: &str, replicas: i32, secret: &str, reviews_from: Option<&str>) -> Manifest {
    let tls = json!({"name": "tls", "secret": {"secretName": secret}});
    let pod = pod(WEBHOOK, GRACE_SECONDS, &container(image), &[tls]);
    // No pod goes before the next one answers.
    deployment(WEBHOOK, replicas, reviews_from.map(|from| json!({ REVIEWS_FROM: from })).as_ref(), &pod)
}

pub(super) fn controller(image: &str, replicas: i32) -> Manifest {
    let container = json!({
        "name": CONTROLS,
        "image": image,
        "args": [CONTROLS, format!("--health-listen=0.0.0.0:{HEALTH}"), MODULES],
        "ports": [{"name": "health", "containerPort": HEALTH, "protocol": "TCP"}],
        "readinessProbe": probe("/readyz", 2, 2),
        "livenessProbe": probe("/healthz", 10, 6),
        "resources": resources(),
        "securityContext": confined(),
        "volumeMounts": [cache(), tmp()],
    });
    deployment(CONTROLLER, replicas, None, &pod(CONTROLLER, CONTROLLERS_GRACE_SECONDS, &container, &[]))
}

/// Renews certificates in runs of its own. It listens to nobody, and holds rights that what listens must not have.
pub(super) fn certificates(image: &str) -> Manifest {
    let pod = json!({
        "serviceAccountName": CERTIFICATES,
        "priorityClassName": WEBHOOK,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": CONTROLLERS_GRACE_SECONDS,
        "enableServiceLinks": false,
        "securityContext": unprivileged(),
        "containers": [{
            "name": RENEWS,
            "image": image,
            "args": [RENEWS],
            "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
            "securityContext": confined(),
        }],
    });
    let spec = json!({
        "schedule": SCHEDULE,
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": LATE_SECONDS,
        "successfulJobsHistoryLimit": 1,
        "failedJobsHistoryLimit": 2,
        "jobTemplate": {
            "metadata": {"labels": labels(CERTIFICATES)},
            "spec": {
                "backoffLimit": 2,
                "activeDeadlineSeconds": RUN_SECONDS,
                "ttlSecondsAfterFinished": KEPT_SECONDS,
                "template": {"metadata": {"labels": labels(CERTIFICATES)}, "spec": pod},
            },
        },
    });
    Manifest::with::<CronJob>(&within(CERTIFICATES), json!({"spec": spec}))
}

/// What tells the pods, and that they are ours.
fn labels(name: &str) -> Value {
    let mut labels = selector(name);
    labels[MARK.0] = MARK.1.into();
    labels
}

fn deployment(name: &str, replicas: i32, annotations: Option<&Value>, pod: &Value) -> Manifest {
    let spec = json!({
        "replicas": replicas,
        "selector": {"matchLabels": selector(name)},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "template": {"metadata": {"labels": labels(name), "annotations": annotations}, "spec": pod},
    });
    Manifest::with::<Deployment>(&within(name), json!({"spec": spec}))
}

fn pod(name: &str, grace_seconds: u16, container: &Value, volumes: &[Value]) -> Value {
    let spread = |key: &str| {
        json!({
            "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": selector(name)},
        })
    };
    let own = [
        json!({"name": "cache", "emptyDir": {"sizeLimit": "1Gi"}}),
        json!({"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}),
    ];
    let volumes = [volumes, &own].concat();
    json!({
        "serviceAccountName": name,
        "priorityClassName": WEBHOOK,
        "terminationGracePeriodSeconds": grace_seconds,
        "enableServiceLinks": false,
        "topologySpreadConstraints": [spread("kubernetes.io/hostname"), spread("topology.kubernetes.io/zone")],
        "securityContext": unprivileged(),
        "containers": [container],
        "volumes": volumes,
    })
}

fn probe(path: &str, period: u16, failures: u16) -> Value {
    json!({
        "httpGet": {"path": path, "port": "health"}, "periodSeconds": period, "timeoutSeconds": 2,
        "failureThreshold": failures,
    })
}

/// Without a limit of CPU: a review that is slowed down is one that is not answered in time.
fn resources() -> Value {
    json!({"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}})
}

/// The image says which user, and it is none of the node's.
fn unprivileged() -> Value {
    json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}})
}

fn confined() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"]},
    })
}

fn cache() -> Value {
    json!({"name": "cache", "mountPath": "/cache"})
}

fn tmp() -> Value {
    json!({"name": "tmp", "mountPath": "/tmp"})
}

/// In a folder of its own: everybody may write to a volume, and what lies in the cache is run.
const MODULES: &str = "--cache-dir=/cache/modules";

fn container(image: &str) -> Value {
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
        "resources": resources(),
        "securityContext": confined(),
        "volumeMounts": [
            {"name": "tls", "mountPath": "/tls", "readOnly": true},
            cache(),
            tmp(),
        ],
    })
}

/// The role, and flags. Name and value in one argument: later runs tell them apart by it.
fn arguments() -> Vec<String> {
    vec![
        CONTAINER.to_owned(),
        format!("--listen=0.0.0.0:{REVIEWS}"),
        format!("--health-listen=0.0.0.0:{HEALTH}"),
        "--tls-cert-file=/tls/tls.crt".to_owned(),
        "--tls-private-key-file=/tls/tls.key".to_owned(),
        "--with-controller".to_owned(),
        MODULES.to_owned(),
    ]
}
