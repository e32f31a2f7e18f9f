//! Deployments, their pods, and what is told of those.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};

part_object! {
    /// A Deployment without most of its pod template.
    pub struct Deployment {
        /// What is wanted.
        required "spec" => spec: DeploymentSpec,
        /// What was last observed.
        "status" => status: Option<DeploymentStatus>,
    }
    group "apps", version "v1", plural "deployments", scope NamespaceResourceScope
}

part! {
    /// What of a Deployment's spec tells how it is.
    pub struct DeploymentSpec {
        /// How many pods are wanted; one where it says nothing.
        "replicas" => replicas: Option<i32>,
        /// Which pods are its own.
        "selector" => selector: LabelSelector,
        /// The pods that it makes.
        "template" => template: PodTemplate,
    }

    /// What of a pod template tells what runs.
    pub struct PodTemplate {
        /// What its pods are.
        "spec" => spec: PodTemplateSpec,
    }

    /// What of a pod tells what runs.
    pub struct PodTemplateSpec {
        /// Its containers.
        "containers" => containers: Vec<Container>,
    }

    /// What of a container tells what runs.
    pub struct Container {
        /// Its image.
        "image" => image: Option<String>,
    }

    /// What was observed of a Deployment.
    pub struct DeploymentStatus {
        /// The generation that its controller has seen.
        "observedGeneration" => observed_generation: Option<i64>,
        /// How many pods there are.
        "replicas" => replicas: Option<i32>,
        /// How many of them are of the present template.
        "updatedReplicas" => updated_replicas: Option<i32>,
        /// How many of them take connections.
        "readyReplicas" => ready_replicas: Option<i32>,
        /// How many of them are available.
        "availableReplicas" => available_replicas: Option<i32>,
        /// What holds it up.
        "conditions" => conditions: Option<Vec<DeploymentCondition>>,
    }

    /// A condition of a Deployment.
    pub struct DeploymentCondition {
        /// What it is about.
        "type" => type_: String,
        /// Whether it is so: `True`, `False` or `Unknown`.
        "status" => status: String,
        /// Why, in a word.
        "reason" => reason: Option<String>,
        /// Why, in words.
        "message" => message: Option<String>,
    }
}

part_object! {
    /// A pod with nothing of its spec but the node.
    pub struct Pod {
        /// What is wanted.
        required "spec" => spec: PodSpec,
        /// What was last observed.
        "status" => status: Option<PodStatus>,
    }
    group "", version "v1", plural "pods", scope NamespaceResourceScope
}

part! {
    /// What of a pod's spec tells where it runs.
    pub struct PodSpec {
        /// The node that the scheduler has chosen.
        "nodeName" => node_name: Option<String>,
    }

    /// What was observed of a pod.
    pub struct PodStatus {
        /// How far it has come.
        "phase" => phase: Option<String>,
        /// Why, in a word.
        "reason" => reason: Option<String>,
        /// Why, in words.
        "message" => message: Option<String>,
        /// How it is.
        "conditions" => conditions: Option<Vec<PodCondition>>,
        /// Its containers that run before the others.
        "initContainerStatuses" => init_container_statuses: Option<Vec<ContainerStatus>>,
        /// Its containers.
        "containerStatuses" => container_statuses: Option<Vec<ContainerStatus>>,
    }

    /// A condition of a pod.
    pub struct PodCondition {
        /// What it is about.
        "type" => type_: String,
        /// Whether it is so: `True`, `False` or `Unknown`.
        "status" => status: String,
        /// Why, in words.
        "message" => message: Option<String>,
    }

    /// What was observed of a container.
    pub struct ContainerStatus {
        /// Its name.
        "name" => name: String,
        /// Its image.
        "image" => image: String,
        /// Whether it takes connections.
        "ready" => ready: bool,
        /// How often it was started anew.
        "restartCount" => restart_count: i32,
        /// How it is.
        "state" => state: Option<ContainerState>,
        /// How it was before it was started anew.
        "lastState" => last_state: Option<ContainerState>,
    }

    /// How a container is: it waits, runs, or has ended.
    pub struct ContainerState {
        /// It waits.
        "waiting" => waiting: Option<ContainerStateWaiting>,
        /// It runs.
        "running" => running: Option<ContainerStateRunning>,
        /// It has ended.
        "terminated" => terminated: Option<ContainerStateTerminated>,
    }

    /// Why a container waits.
    pub struct ContainerStateWaiting {
        /// In a word.
        "reason" => reason: Option<String>,
        /// In words.
        "message" => message: Option<String>,
    }

    /// A container that runs.
    pub struct ContainerStateRunning {
        /// Since when, by the clock of its node.
        "startedAt" => started_at: Option<Time>,
    }

    /// A container that has ended.
    pub struct ContainerStateTerminated {
        /// How its process ended.
        "exitCode" => exit_code: i32,
        /// What it has left to say.
        "message" => message: Option<String>,
    }
}

part_object! {
    /// What a cluster tells of an object.
    pub struct Event {
        /// What it is, in a word.
        "reason" => reason: Option<String>,
        /// What it is, in words.
        "message" => message: Option<String>,
        /// When it happened last.
        "lastTimestamp" => last_timestamp: Option<Time>,
    }
    group "", version "v1", plural "events", scope NamespaceResourceScope
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1 as apps;
    use k8s_openapi::api::core::v1 as core;
    use serde_json::json;

    use super::super::tests::{both, damaged, refused};
    use super::*;

    #[test]
    fn of_a_deployment_it_is_read_how_it_is() {
        let (part, whole): (Deployment, apps::Deployment) = both(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "klusterlet", "namespace": "open-cluster-management", "generation": 4, "labels": {"app": "klusterlet"},
                "annotations": {"deployment.kubernetes.io/revision": "2"}},
            "spec": {"replicas": 3, "progressDeadlineSeconds": 600, "revisionHistoryLimit": 10,
                "selector": {"matchLabels": {"app": "klusterlet"}, "matchExpressions": [{"key": "k", "operator": "Exists"}]},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
                "template": {"metadata": {"labels": {"app": "klusterlet"}}, "spec": {
                    "containers": [{"name": "klusterlet", "image": "quay.io/ocm/registration-operator:v1.3.0", "args": ["/o"],
                        "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8443, "scheme": "HTTPS"}},
                        "resources": {"requests": {"cpu": "2m", "memory": "16Mi"}},
                        "volumeMounts": [{"name": "tmpdir", "mountPath": "/tmp"}]}, {"name": "second"}],
                    "volumes": [{"name": "tmpdir", "emptyDir": {"medium": "Memory"}}], "serviceAccountName": "klusterlet"}}},
            "status": {"observedGeneration": 3, "replicas": 4, "updatedReplicas": 2, "readyReplicas": 1, "availableReplicas": 1,
                "unavailableReplicas": 3, "conditions": [
                    {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota",
                        "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"},
                    {"type": "Progressing", "status": "False"}]},
        }));
        assert_eq!(part.metadata, whole.metadata);
        let (spec, of_whole) = (part.spec, whole.spec.unwrap());
        assert_eq!((spec.replicas, spec.selector), (of_whole.replicas, of_whole.selector));
        let images = of_whole.template.spec.unwrap().containers.into_iter().map(|one| Container { image: one.image });
        assert_eq!(spec.template.spec.containers, images.collect::<Vec<_>>());
        let (status, of_whole) = (part.status.unwrap(), whole.status.unwrap());
        assert_eq!(status.observed_generation, of_whole.observed_generation);
        assert_eq!(
            (status.replicas, status.updated_replicas, status.ready_replicas, status.available_replicas),
            (of_whole.replicas, of_whole.updated_replicas, of_whole.ready_replicas, of_whole.available_replicas)
        );
        let of_whole = of_whole.conditions.unwrap().into_iter().map(|one| DeploymentCondition {
            type_: one.type_,
            status: one.status,
            reason: one.reason,
            message: one.message,
        });
        assert_eq!(status.conditions.unwrap(), of_whole.collect::<Vec<_>>());
        let (part, _): (Deployment, apps::Deployment) = both(json!({"metadata": {"name": "n"}, "spec": {}}));
        assert_eq!((part.spec, part.status), (DeploymentSpec::default(), None));
        damaged::<Deployment>();
        for wrong in [
            json!({"spec": {"replicas": "3"}}),
            json!({"spec": {"selector": []}}),
            json!({"spec": {"template": {"spec": {"containers": {}}}}}),
            json!({"status": {"observedGeneration": true}}),
            json!({"status": {"conditions": [{"type": null, "status": 1}]}}),
        ] {
            refused::<Deployment, apps::Deployment>(wrong);
        }
    }

    fn status(whole: core::ContainerStatus) -> ContainerStatus {
        ContainerStatus {
            name: whole.name,
            image: whole.image,
            ready: whole.ready,
            restart_count: whole.restart_count,
            state: whole.state.map(state),
            last_state: whole.last_state.map(state),
        }
    }

    fn state(whole: core::ContainerState) -> ContainerState {
        ContainerState {
            waiting: whole.waiting.map(|one| ContainerStateWaiting { reason: one.reason, message: one.message }),
            running: whole.running.map(|one| ContainerStateRunning { started_at: one.started_at }),
            terminated: whole
                .terminated
                .map(|one| ContainerStateTerminated { exit_code: one.exit_code, message: one.message }),
        }
    }

    #[test]
    fn of_a_pod_it_is_read_how_it_is_and_where() {
        let (part, whole): (Pod, core::Pod) = both(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "klusterlet-6d9-x", "namespace": "open-cluster-management", "labels": {"pod-template-hash": "6d9"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "klusterlet-6d9", "uid": "u"}]},
            "spec": {"nodeName": "node", "containers": [{"name": "klusterlet", "image": "i"}], "tolerations": [{"operator": "Exists"}],
                "volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]},
            "status": {"phase": "Running", "reason": "Evicted", "message": "the node was low on memory", "hostIP": "192.0.2.1",
                "podIPs": [{"ip": "10.0.0.2"}], "qosClass": "Burstable", "startTime": "2026-01-01T00:00:00Z",
                "conditions": [{"type": "Ready", "status": "False", "lastProbeTime": null, "lastTransitionTime": "2026-01-01T00:00:00Z",
                    "reason": "ContainersNotReady", "message": "containers with unready status: [klusterlet]"}],
                "initContainerStatuses": [{"name": "init", "image": "i", "imageID": "", "ready": true, "restartCount": 0,
                    "state": {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": "2026-01-01T00:00:00Z"}}}],
                "containerStatuses": [
                    {"name": "klusterlet", "image": "i", "imageID": "i@sha256:0", "ready": false, "restartCount": 7, "started": false,
                        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
                        "lastState": {"terminated": {"exitCode": 137, "signal": 9, "reason": "OOMKilled", "message": "boom"}},
                        "allocatedResources": {"cpu": "1"}, "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
                    {"name": "second", "image": "", "imageID": "", "ready": true, "restartCount": 1, "lastState": {},
                        "state": {"running": {"startedAt": "2026-01-01T00:00:01Z"}}},
                ]},
        }));
        assert_eq!(part.metadata, whole.metadata);
        assert_eq!(part.spec.node_name, whole.spec.unwrap().node_name);
        let (part, whole) = (part.status.unwrap(), whole.status.unwrap());
        assert_eq!((part.phase, part.reason, part.message), (whole.phase, whole.reason, whole.message));
        let of_whole = whole.conditions.unwrap().into_iter();
        let of_whole = of_whole.map(|one| PodCondition { type_: one.type_, status: one.status, message: one.message });
        assert_eq!(part.conditions.unwrap(), of_whole.collect::<Vec<_>>());
        let of_whole = |all: Option<Vec<core::ContainerStatus>>| all.map(|all| all.into_iter().map(status).collect());
        assert_eq!(part.init_container_statuses, of_whole(whole.init_container_statuses));
        assert_eq!(part.container_statuses, of_whole(whole.container_statuses));
        let (part, _): (Pod, core::Pod) = both(json!({"metadata": {"name": "n"}, "spec": {}, "status": null}));
        assert_eq!((part.spec.node_name, part.status), (None, None));
        damaged::<Pod>();
        for wrong in [
            json!({"spec": {"nodeName": 1}}),
            json!({"status": {"phase": {}}}),
            json!({"status": {"containerStatuses": [{"ready": "true"}]}}),
            json!({"status": {"containerStatuses": [{"restartCount": -1.5}]}}),
            json!({"status": {"containerStatuses": [{"state": {"running": {"startedAt": "soon"}}}]}}),
            json!({"status": {"initContainerStatuses": [{"lastState": {"terminated": {"exitCode": "0"}}}]}}),
            json!({"kind": "Node"}),
        ] {
            refused::<Pod, core::Pod>(wrong);
        }
    }

    #[test]
    fn of_an_event_it_is_read_what_happened_and_when() {
        let (part, whole): (Event, core::Event) = both(json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "n", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "involvedObject": {"kind": "Pod", "name": "p"}, "reason": "FailedMount", "message": "secret not found", "type": "Warning",
            "count": 3, "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:05:00Z", "eventTime": null,
            "source": {"component": "kubelet", "host": "node"}, "reportingComponent": "kubelet", "reportingInstance": "node",
        }));
        assert_eq!(part.metadata, whole.metadata);
        assert_eq!((part.reason, part.message), (whole.reason, whole.message));
        assert_eq!(part.last_timestamp, whole.last_timestamp);
        for wrong in [json!({"reason": 1}), json!({"message": []}), json!({"lastTimestamp": 0})] {
            refused::<Event, core::Event>(wrong);
        }
    }
}
