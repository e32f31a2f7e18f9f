//! Whether a Deployment is ready and, if not, why: in the words of the scheduler, the kubelet, the quota or the
//! container itself.

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::Api;
use kube::api::{ListParams, LogParams};
use ocm_api::parts::{ContainerStatus, Deployment, Event, Pod};
use ocm_core::join::lease::Running;
use ocm_core::redact::{redact, whole_words};
use ocm_core::workload::{Health, Lack, PodCause};
use ocm_core::{Failure, Reason};
use ocm_kube::Cluster;

/// The Deployments of a namespace.
pub fn deployments(cluster: &Cluster, namespace: &str) -> Api<Deployment> {
    Api::namespaced(cluster.client.clone(), namespace)
}

/// The pods of a namespace.
pub fn pods(cluster: &Cluster, namespace: &str) -> Api<Pod> {
    Api::namespaced(cluster.client.clone(), namespace)
}

/// The pods of a namespace, and since when they run, if their containers were started anew.
///
/// # Errors
/// The failure of the request.
pub async fn running(cluster: &Cluster, namespace: &str) -> kube::Result<Vec<Running>> {
    let listed = pods(cluster, namespace).list(&ListParams::default()).await?;
    let now = Timestamp::now();
    Ok(listed.items.into_iter().map(|pod| restarted(pod, now)).collect())
}

/// Since when a pod runs, if each of its containers was started anew. A time to come is that of a node whose clock was set
/// back, and tells nothing about what was written since then.
fn restarted(pod: Pod, now: Timestamp) -> Running {
    let containers = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
    let started = |container: &ContainerStatus| {
        let running = container.state.as_ref()?.running.as_ref().filter(|_| container.restart_count > 0)?;
        running.started_at.as_ref().map(|time| time.0).filter(|since| *since <= now)
    };
    let started: Option<Vec<Timestamp>> = containers.iter().map(started).collect();
    Running { pod: pod.metadata.name.unwrap_or_default(), since: started.and_then(|all| all.into_iter().min()) }
}

/// Looks at one Deployment and, where it is not ready, at its pods.
///
/// # Errors
/// The failure of a request; but a Deployment that is not there is [`Health::NotYet`], and reasons that we may not read
/// are left out.
pub async fn deployment(cluster: &Cluster, namespace: &str, name: &str) -> Result<Health, Failure> {
    match deployments(cluster, namespace).get_opt(name).await {
        Ok(Some(found)) => of(cluster, &found).await,
        Ok(None) => Ok(Health::not_yet("it does not exist yet")),
        Err(error) => Err(cluster.explain(format_args!("read Deployment {namespace}/{name}"), error)),
    }
}

/// The same for a Deployment that was read already.
///
/// # Errors
/// The failure of a request.
pub async fn of(cluster: &Cluster, deployment: &Deployment) -> Result<Health, Failure> {
    let Some(count) = rollout(deployment) else { return Ok(Health::Ready) };
    if let Some(refused) = refused(deployment) {
        let because = format!("its pods cannot be created: {refused}");
        let cause = Some(PodCause::NotCreated);
        return Ok(Health::Stuck(Lack { count: Some(count), cause, ..Lack::new(because) }));
    }
    let namespace = deployment.metadata.namespace.as_deref().unwrap_or_default();
    let selector = selector(&deployment.spec.selector);
    let list = match pods(cluster, namespace).list(&ListParams::default().labels(&selector)).await {
        Ok(list) => list.items,
        Err(error) => {
            let failure = cluster.explain(format_args!("list the pods of {namespace}"), error);
            return match failure.reason {
                Reason::Forbidden | Reason::NotInDump => Ok(Health::not_yet(count)),
                _ => Err(failure),
            };
        }
    };
    let Some(found) = worst(cluster, namespace, &list).await else {
        return Ok(Health::NotYet(match list.is_empty() {
            true => Lack { count: Some(count), ..Lack::new("no pod has been created yet") },
            false => Lack::new(count),
        }));
    };
    let lack = Lack { count: Some(count), ..found.0 };
    Ok(if found.1 { Health::Stuck(lack) } else { Health::NotYet(lack) })
}

/// Why none of the pods that a selector finds runs yet, and whether somebody has to do something; nothing if there is none.
///
/// # Errors
/// The failure of the request.
pub async fn of_pods(cluster: &Cluster, namespace: &str, selector: &str) -> Result<(Option<String>, bool), Failure> {
    let listed = pods(cluster, namespace).list(&ListParams::default().labels(selector)).await;
    let listed = listed.map_err(|error| cluster.explain(format_args!("list the pods of {namespace}"), error))?;
    let found = worst(cluster, namespace, &listed.items).await;
    Ok(found.map_or((None, false), |(lack, is_stuck)| (Some(lack.text()), is_stuck)))
}

/// What is worst about pods, and whether somebody has to do something.
async fn worst(cluster: &Cluster, namespace: &str, list: &[Pod]) -> Option<(Lack, bool)> {
    // Pods of the latest generation first: the others are going. Of those the worst: what is stuck holds up the rest.
    let newest = list.iter().max_by_key(|pod| pod.metadata.creation_timestamp.as_ref()).map(state);
    let troubles = list.iter().filter_map(|pod| Some((trouble(pod)?, pod)));
    let (worst, pod) = troubles.min_by_key(|(trouble, pod)| (Some(state(pod)) != newest, !trouble.stuck))?;
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let mut because = format!("pod {name}: {}", worst.text);
    let mut log = None;
    if let Some(container) = &worst.speaker {
        let words = last_words(cluster, namespace, name, container).await;
        log = words.map(|words| format!("its last log lines: {words}"));
    } else if worst.ask_events
        && let Some(warning) = last_warning(cluster, namespace, name).await
    {
        because += &format!(": {warning}");
    }
    Some((Lack { log, cause: Some(worst.cause), ..Lack::new(because) }, worst.stuck))
}

/// The state of the Deployment that a pod is of.
fn state(pod: &Pod) -> Option<&String> {
    pod.metadata.labels.as_ref()?.get("pod-template-hash")
}

/// What is missing of a rollout, as numbers; none if it is complete.
fn rollout(deployment: &Deployment) -> Option<String> {
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let status = deployment.status.clone().unwrap_or_default();
    let generation = deployment.metadata.generation.unwrap_or_default();
    if status.observed_generation.unwrap_or_default() < generation {
        return Some("its controller has not observed the change yet".to_owned());
    }
    let (updated, available) =
        (status.updated_replicas.unwrap_or_default(), status.available_replicas.unwrap_or_default());
    if updated < wanted {
        return Some(format!("{updated} of {wanted} pods updated"));
    }
    if available < wanted {
        return Some(format!("{available} of {wanted} pods are ready"));
    }
    let old = status.replicas.unwrap_or_default() - updated;
    match old {
        ..=0 => None,
        1 => Some("a pod of the old state is still there".to_owned()),
        _ => Some(format!("{old} pods of the old state are still there")),
    }
}

/// Why the ReplicaSet may not create pods: quota, admission, a missing account.
fn refused(deployment: &Deployment) -> Option<String> {
    let conditions = deployment.status.as_ref()?.conditions.as_deref()?;
    let failure =
        conditions.iter().find(|condition| condition.type_ == "ReplicaFailure" && condition.status == "True")?;
    Some(failure.message.clone().or_else(|| failure.reason.clone()).unwrap_or_default())
}

/// A label selector as the API's query parameter takes it.
fn selector(selector: &LabelSelector) -> String {
    let equal = selector.match_labels.iter().flatten().map(|(key, value)| format!("{key}={value}"));
    let others = selector.match_expressions.iter().flatten().filter_map(|expression| {
        let (key, values) = (&expression.key, expression.values.as_deref().unwrap_or_default().join(","));
        match expression.operator.as_str() {
            "In" => Some(format!("{key} in ({values})")),
            "NotIn" => Some(format!("{key} notin ({values})")),
            "Exists" => Some(key.clone()),
            "DoesNotExist" => Some(format!("!{key}")),
            _ => None,
        }
    });
    equal.chain(others).collect::<Vec<_>>().join(",")
}

/// What is wrong with a pod.
#[derive(Debug, PartialEq, Eq)]
struct Trouble {
    text: String,
    /// What it is.
    cause: PodCause,
    /// Whether somebody has to do something.
    stuck: bool,
    /// The container that crashed and may have said why.
    speaker: Option<Spoken>,
    /// Whether an event may know more.
    ask_events: bool,
}

/// A container that ended, and what is known of its end.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Spoken {
    container: String,
    /// Its termination message; none: look into its log.
    message: Option<String>,
    /// Whether its end was before the present run.
    previous: bool,
}

fn trouble(pod: &Pod) -> Option<Trouble> {
    let plain = |text: String, cause: PodCause, stuck: bool| {
        Some(Trouble { text, cause, stuck, speaker: None, ask_events: false })
    };
    // A pod that is on its way out is replaced by another one.
    if pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let status = pod.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let condition = |kind: &str| conditions.iter().find(|condition| condition.type_ == kind);
    if condition("Ready").is_some_and(|ready| ready.status == "True") {
        return None;
    }
    if let Some(scheduled) = condition("PodScheduled").filter(|scheduled| scheduled.status != "True") {
        let message = scheduled.message.as_deref().unwrap_or_default();
        return plain(format!("it cannot be scheduled: {message}"), PodCause::Unschedulable, true);
    }
    if pod.spec.node_name.is_none() {
        return plain("it waits for the scheduler, which has not looked at it yet".to_owned(), PodCause::Other, false);
    }
    if matches!(status.phase.as_deref(), Some("Failed")) && status.container_statuses.is_none() {
        let why = status.message.or(status.reason).unwrap_or_default();
        return plain(format!("it has failed: {why}"), PodCause::Other, true);
    }
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let found = containers.filter(|container| !container.ready).filter_map(of_container);
    found.min_by_key(|trouble| !trouble.stuck).or_else(|| {
        let text = "it is being started".to_owned();
        Some(Trouble { text, cause: PodCause::Other, stuck: false, speaker: None, ask_events: true })
    })
}

/// The exit code of a process that was killed: 128 and the number of the signal.
const KILLED: i32 = 137;

fn of_container(status: &ContainerStatus) -> Option<Trouble> {
    let name = &status.name;
    let state = status.state.clone().unwrap_or_default();
    let earlier = status.last_state.as_ref().and_then(|state| state.terminated.as_ref());
    let crashed = |exit: i32, message: Option<&String>, previous: bool| {
        let times = match status.restart_count {
            0 => String::new(),
            1 => ", restarted once".to_owned(),
            times => format!(", restarted {times} times"),
        };
        let message = message.map(|message| message.trim().to_owned()).filter(|message| !message.is_empty());
        Some(Trouble {
            text: format!("its container {name} crashes (exit code {exit}{times})"),
            cause: if exit == KILLED { PodCause::Killed } else { PodCause::Crash },
            stuck: true,
            speaker: Some(Spoken { container: name.clone(), message, previous }),
            ask_events: false,
        })
    };
    if let Some(waiting) = state.waiting {
        let (reason, message) = (waiting.reason.unwrap_or_default(), waiting.message.unwrap_or_default());
        let colon = if message.is_empty() { "" } else { ": " };
        return match reason.as_str() {
            "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" | "RegistryUnavailable" => {
                let text = format!("image {} cannot be pulled: {reason}{colon}{message}", status.image);
                let cause = if reason == "InvalidImageName" { PodCause::ImageName } else { PodCause::ImagePull };
                Some(Trouble { text, cause, stuck: true, speaker: None, ask_events: false })
            }
            "CrashLoopBackOff" => match earlier {
                Some(end) => crashed(end.exit_code, end.message.as_ref(), true),
                None => crashed(0, None, true),
            },
            "" | "ContainerCreating" | "PodInitializing" => match earlier {
                Some(end) if end.exit_code != 0 => crashed(end.exit_code, end.message.as_ref(), true),
                _ => Some(Trouble {
                    text: format!("its container {name} is being created"),
                    cause: PodCause::Other,
                    stuck: false,
                    speaker: None,
                    ask_events: true,
                }),
            },
            _ => Some(Trouble {
                text: format!("its container {name} cannot be started: {reason}{colon}{message}"),
                cause: PodCause::Other,
                stuck: true,
                speaker: None,
                ask_events: false,
            }),
        };
    }
    if let Some(end) = state.terminated {
        // An init container that has done its work is ready.
        return crashed(end.exit_code, end.message.as_ref(), false);
    }
    match earlier.filter(|end| end.exit_code != 0) {
        Some(end) if status.restart_count > 1 => crashed(end.exit_code, end.message.as_ref(), true),
        _ => Some(Trouble {
            text: format!("its container {name} runs but is not ready yet"),
            cause: PodCause::Other,
            stuck: false,
            speaker: None,
            ask_events: false,
        }),
    }
}

/// How much of a log is quoted.
const WORDS: usize = 400;

/// How much of a log is read: bytes. Lines may have any length.
const LOG: usize = 64 << 10;

/// What a container left behind: its termination message or the end of its log.
async fn last_words(cluster: &Cluster, namespace: &str, pod: &str, spoken: &Spoken) -> Option<String> {
    if let Some(message) = &spoken.message {
        return Some(tail(&redact(message)));
    }
    let parameters = LogParams {
        container: Some(spoken.container.clone()),
        previous: spoken.previous,
        tail_lines: Some(3),
        limit_bytes: i64::try_from(LOG).ok(),
        ..LogParams::default()
    };
    // Logs are a courtesy: whoever may not read them, or comes too early, still hears the exit code.
    let pods: Api<core::Pod> = Api::namespaced(cluster.client.clone(), namespace);
    let log = pods.logs(pod, &parameters).await.ok()?;
    // Before it is cut: half a credential is not recognised any more, and the limit may have cut one.
    Some(tail(&redact(whole_words(&log, LOG - 1)))).filter(|words| !words.is_empty() && !is_excuse(words))
}

/// Whether a log is the kubelet's word that there is none any more: it says so in the log's place.
pub(crate) fn is_excuse(log: &str) -> bool {
    log.starts_with("failed to try resolving symlinks") || log.starts_with("unable to retrieve container logs")
}

/// The end of a text as one line.
fn tail(text: &str) -> String {
    let line = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" / ");
    match line.char_indices().rev().nth(WORDS) {
        Some((start, _)) => format!("…{}", &line[start..]),
        None => line,
    }
}

/// The newest warning about a pod that has no status yet: a volume, a network, a runtime.
async fn last_warning(cluster: &Cluster, namespace: &str, pod: &str) -> Option<String> {
    let api: Api<Event> = Api::namespaced(cluster.client.clone(), namespace);
    let about = ListParams::default().fields(&format!("involvedObject.name={pod},type=Warning"));
    let events = api.list(&about).await.ok()?.items.into_iter();
    // Whoever asks knows that the pod has been scheduled in the end.
    let events = events.filter(|event| event.reason.as_deref() != Some("FailedScheduling"));
    let time = |event: &Event| event.last_timestamp.clone().or_else(|| event.metadata.creation_timestamp.clone());
    let event = events.max_by_key(time)?;
    let message = redact(&event.message.unwrap_or_default());
    Some(tail(&format!("{}: {message}", event.reason.unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(status: serde_json::Value) -> Pod {
        serde_json::from_value(
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": []}, "status": status}),
        )
        .unwrap()
    }

    fn said(status: serde_json::Value) -> (String, bool) {
        let trouble = trouble(&pod(status)).unwrap();
        (trouble.text, trouble.stuck)
    }

    #[test]
    fn pods_say_what_holds_them_up() {
        let (text, stuck) = said(json!({"conditions": [{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "0/1 nodes are available: 1 had a taint."}]}));
        assert!(stuck && text.contains("cannot be scheduled: 0/1 nodes"), "{text}");

        let waiting = |reason: &str, message: &str| {
            json!({"containerStatuses": [{"name": "c", "image": "r/i:1", "imageID": "", "ready": false, "restartCount": 3,
                "state": {"waiting": {"reason": reason, "message": message}},
                "lastState": {"terminated": {"exitCode": 2, "message": "boom\n"}}}]})
        };
        let (text, stuck) = said(waiting("ImagePullBackOff", "not found"));
        assert!(stuck && text == "image r/i:1 cannot be pulled: ImagePullBackOff: not found", "{text}");
        let (text, stuck) = said(waiting("CreateContainerConfigError", "secret \"x\" not found"));
        assert!(stuck && text.contains("cannot be started: CreateContainerConfigError: secret"), "{text}");
        let crash = trouble(&pod(waiting("CrashLoopBackOff", ""))).unwrap();
        assert!(crash.stuck && crash.text.contains("exit code 2, restarted 3 times"), "{crash:?}");
        assert_eq!(crash.speaker.and_then(|spoken| spoken.message).as_deref(), Some("boom"));

        assert_eq!(trouble(&pod(json!({"conditions": [{"type": "Ready", "status": "True"}]}))), None);
        let (text, stuck) = said(json!({}));
        assert!(!stuck && text == "it is being started");
    }

    #[test]
    fn a_rollout_is_complete_when_nothing_old_is_left() {
        let deployment = |generation: i64, status: serde_json::Value| -> Deployment {
            serde_json::from_value(
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": generation},
                "spec": {"replicas": 2, "selector": {}, "template": {}}, "status": status}),
            )
            .unwrap()
        };
        let done = json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2});
        assert_eq!(rollout(&deployment(2, done.clone())), None);
        assert!(rollout(&deployment(3, done)).unwrap().contains("not observed"));
        let old = json!({"observedGeneration": 1, "replicas": 3, "updatedReplicas": 2, "availableReplicas": 2});
        assert!(rollout(&deployment(1, old)).unwrap().contains("a pod of the old"));
        let few = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 1});
        assert_eq!(rollout(&deployment(1, few)).unwrap(), "1 of 2 pods are ready");
    }

    #[test]
    fn long_words_are_cut_at_the_front() {
        assert_eq!(tail("a\n\n b \n"), "a / b");
        let long = tail(&"é".repeat(1000));
        assert!(long.starts_with('…') && long.chars().count() == WORDS + 2, "{}", long.chars().count());
    }
}
