//! The ends of the logs of what was looked at, for whoever reads a bundle. No check judges them.
//!
//! ```text
//! Deployments of a snapshot ─▶ their pods ─▶ their containers ─▶ a log each, or why there is none
//! ```

use std::cell::Cell;
use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures::{AsyncReadExt, StreamExt as _};
use k8s_openapi::api::core::v1 as core;
use kube::Api;
use kube::api::{ListParams, LogParams};
use ocm_api::names::namespaces;
use ocm_api::parts::{ContainerStatus, Pod};
use ocm_checks::facts::own_manager;
use ocm_checks::snapshot::{Observed, PolicyRule, Side, Snapshot, Trouble, Workload};
use ocm_core::install::mode::namespace_of;
use ocm_core::redact::{redact, whole_words};
use ocm_core::{Failure, Reason, policy_engine};
use ocm_kube::Cluster;
use serde::Serialize;
use tokio::time::{Instant, timeout_at};

use crate::workload::{self, is_excuse};

/// How many lines of a log are read.
const LINES: i64 = 500;
/// How much of a log is read: bytes. Lines may have any length.
const BYTES: usize = 256 << 10;
/// How much of a message a runtime keeps as one line: bytes. Longer ones it keeps in several.
const PART: usize = 16 << 10;
/// How much all logs have together: bytes. In JSON they may take six times as much, which a bundle has to have room for.
const TOTAL: usize = 8 << 20;
/// How many logs are read.
const MOST: usize = 200;
/// How many are read at once.
const AT_ONCE: usize = 8;
/// How long all of it may take: logs are a courtesy.
const DEADLINE: Duration = Duration::from_secs(30);

/// The log of a container, or why it is not there.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerLog {
    /// The cluster that it is of.
    pub side: Side,
    /// The namespace.
    pub namespace: String,
    /// The Deployment; none: it is not known which there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    /// The pod; none: it is not known, or there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// The container; none: no container of the pod was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Whether it is that of the instance before the present one, which has ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub previous: bool,
    /// Whether some of the last lines are missing because they, or all logs together, are too long.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Its last lines as [`redact`] leaves them.
    pub log: Observed<Vec<String>>,
}

impl ContainerLog {
    /// One that is not read yet, of a namespace of which no more is known.
    fn of(side: Side, namespace: &str) -> Self {
        Self {
            side,
            namespace: namespace.to_owned(),
            deployment: None,
            pod: None,
            container: None,
            previous: false,
            truncated: false,
            log: Observed::NotAsked,
        }
    }
}

/// Where Deployments are.
type Place<'a> = (Side, &'a str);

/// The Deployments of a place, or why they could not be observed.
type Known<'a> = Result<&'a [Workload], &'a Trouble>;

/// The last lines of the logs of the operators, hub controllers, agents and parts of the policy engine that a snapshot tells of,
/// without what may be a credential. Logs that cannot be read say why.
pub async fn logs(hub: Option<&Cluster>, managed: Option<&Cluster>, snapshot: &Snapshot) -> Vec<ContainerLog> {
    let deadline = Instant::now() + DEADLINE;
    let (wanted, mut logs) = wanted(snapshot);
    // Those of agents first, of which there are few: they have room in any case.
    let places = wanted.iter().rev().filter_map(|(place, deployments)| {
        let cluster = match place.0 {
            Side::Hub => hub,
            Side::Managed => managed,
        };
        Some((cluster?, *place, deployments.as_slice()))
    });
    let places: Vec<_> = places.collect();
    let listing = places.iter().map(|(cluster, place, deployments)| containers(cluster, *place, deployments, deadline));
    let listed = futures::future::join_all(listing).await;
    let clusters = places.iter().map(|(cluster, ..)| *cluster);
    let all = clusters.zip(listed).flat_map(|(cluster, of_place)| of_place.into_iter().map(move |log| (cluster, log)));
    let left = Cell::new(TOTAL);
    let reading: Vec<_> =
        all.enumerate().map(|(at, (cluster, log))| filled(cluster, log, at < MOST, &left, deadline)).collect();
    let read: Vec<ContainerLog> = futures::stream::iter(reading).buffered(AT_ONCE).collect().await;
    logs.extend(read);
    logs
}

/// The Deployments whose logs are wanted, and what says why those of a namespace are not known.
fn wanted(snapshot: &Snapshot) -> (BTreeMap<Place<'_>, Vec<&str>>, Vec<ContainerLog>) {
    let mut found: Vec<(Place<'_>, Known<'_>)> = Vec::new();
    if let Some(hub) = &snapshot.hub {
        let managers = hub.managers.read().map(Vec::as_slice).unwrap_or_default();
        let own = own_manager(managers).map_or(namespaces::HUB, namespace_of);
        found.push(((Side::Hub, namespaces::OPERATOR), known(&hub.operator, std::slice::from_ref)));
        found.push(((Side::Hub, own), known(&hub.deployments, Vec::as_slice)));
        found.push(((Side::Hub, policy_engine::NAMESPACE), known(&hub.policy_engine, Vec::as_slice)));
    }
    if let Some(managed) = &snapshot.managed {
        found.push(((Side::Managed, namespaces::OPERATOR), known(&managed.operator, std::slice::from_ref)));
        for agent in &managed.agents {
            found.push(((Side::Managed, agent.namespace.as_str()), known(&agent.deployments, Vec::as_slice)));
        }
    }
    let (mut wanted, mut unknown) = (BTreeMap::<_, Vec<&str>>::new(), Vec::new());
    for ((side, namespace), workloads) in found {
        match workloads {
            Ok(workloads) => {
                for workload in workloads {
                    wanted.entry((side, workload.namespace.as_str())).or_default().push(workload.name.as_str());
                }
            }
            Err(trouble) => {
                let log = Observed::Trouble(trouble.clone());
                unknown.push(ContainerLog { log, ..ContainerLog::of(side, namespace) });
            }
        }
    }
    (wanted, unknown)
}

/// The Deployments that were observed, or why they could not be.
fn known<'a, T>(of: &'a Observed<T>, workloads: fn(&'a T) -> &'a [Workload]) -> Known<'a> {
    match of {
        Observed::Read(found) => Ok(workloads(found)),
        Observed::Trouble(trouble) => Err(trouble),
        Observed::NotAsked => Ok(&[]),
    }
}

/// The containers of the pods of these Deployments: their logs are to be read, or say already why there is none.
async fn containers(
    cluster: &Cluster,
    (side, namespace): Place<'_>,
    deployments: &[&str],
    deadline: Instant,
) -> Vec<ContainerLog> {
    let listing = async {
        let listed = workload::pods(cluster, namespace).list(&ListParams::default()).await;
        listed.map_err(|error| cluster.explain(format_args!("list the pods of {namespace}"), error))
    };
    let pods = match in_time(deadline, listing).await {
        Ok(listed) => listed.items,
        Err(failure) => {
            let rule = PolicyRule::new("list", "", "pods", Some(namespace));
            let log = Observed::Trouble(Trouble::of(&failure, Some(rule)));
            return vec![ContainerLog { log, ..ContainerLog::of(side, namespace) }];
        }
    };
    let of_deployment = |deployment: &&str| {
        let own = ContainerLog { deployment: Some((*deployment).to_owned()), ..ContainerLog::of(side, namespace) };
        let found: Vec<ContainerLog> =
            pods.iter().filter(|pod| is_of(pod, deployment)).flat_map(|pod| of_pod(&own, pod)).collect();
        if found.is_empty() { vec![ContainerLog { log: absent("the Deployment has no pod"), ..own }] } else { found }
    };
    deployments.iter().flat_map(of_deployment).collect()
}

/// Whether a pod is one of a Deployment: a ReplicaSet is named after both.
fn is_of(pod: &Pod, deployment: &str) -> bool {
    let labels = pod.metadata.labels.as_ref();
    let Some(hash) = labels.and_then(|labels| labels.get("pod-template-hash")) else { return false };
    let set = format!("{deployment}-{hash}");
    let mut owners = pod.metadata.owner_references.iter().flatten();
    owners.any(|owner| owner.kind == "ReplicaSet" && owner.name == set)
}

/// The logs that the containers of a pod have, or why they have none.
fn of_pod(own: &ContainerLog, pod: &Pod) -> Vec<ContainerLog> {
    let own = ContainerLog { pod: pod.metadata.name.clone(), ..own.clone() };
    let status = pod.status.as_ref();
    let containers = status.into_iter().flat_map(|status| {
        let init = status.init_container_statuses.iter();
        init.chain(&status.container_statuses).flatten()
    });
    let found: Vec<ContainerLog> = containers.flat_map(|container| of_container(&own, container)).collect();
    if found.is_empty() {
        let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or("Pending");
        let why = format!("the pod is {phase}, and none of its containers was started");
        return vec![ContainerLog { log: absent(&why), ..own }];
    }
    found
}

/// The logs of a container: of the instance that has ended, and of the present one.
fn of_container(own: &ContainerLog, status: &ContainerStatus) -> Vec<ContainerLog> {
    let own = ContainerLog { container: Some(status.name.clone()), ..own.clone() };
    let has_ended = status.last_state.as_ref().is_some_and(|state| state.terminated.is_some());
    let state = status.state.clone().unwrap_or_default();
    let earlier = has_ended.then(|| ContainerLog { previous: true, ..own.clone() });
    // Of a container that waits the kubelet would give the log of the instance before once more.
    let is_started = state.running.is_some() || state.terminated.is_some();
    let present = is_started.then(|| own.clone());
    let found: Vec<ContainerLog> = earlier.into_iter().chain(present).collect();
    if found.is_empty() {
        let waiting = state.waiting.unwrap_or_default();
        let why = [waiting.reason, waiting.message].into_iter().flatten().collect::<Vec<_>>().join(": ");
        let why = if why.is_empty() { "no reason is given".to_owned() } else { why };
        return vec![ContainerLog { log: absent(&format!("the container was not started: {why}")), ..own }];
    }
    found
}

/// Why there is no log.
fn absent(why: &str) -> Observed<Vec<String>> {
    Observed::Trouble(Trouble::of(&Failure::new(Reason::NotFound, why), None))
}

/// A log that was read, if there is one; `is_wanted`: it is not one too many.
async fn filled(
    cluster: &Cluster,
    own: ContainerLog,
    is_wanted: bool,
    left: &Cell<usize>,
    deadline: Instant,
) -> ContainerLog {
    let (Some(pod), Some(container), Observed::NotAsked) = (&own.pod, &own.container, &own.log) else { return own };
    let too_many = |why: String| Observed::Trouble(Trouble::of(&Failure::new(Reason::Refused, why), None));
    if !is_wanted {
        return ContainerLog { log: too_many(format!("at most {MOST} logs are read")), ..own };
    }
    if left.get() == 0 {
        let why = format!("the other logs have {} MiB, and more are not kept", TOTAL >> 20);
        return ContainerLog { log: too_many(why), ..own };
    }
    let read = in_time(deadline, read(cluster, &own.namespace, pod, container, own.previous)).await;
    match read {
        Ok(bytes) => {
            let (lines, truncated) = lines(&bytes, left.get());
            if let [only] = lines.as_slice()
                && is_excuse(only)
            {
                return ContainerLog { log: absent(only), ..own };
            }
            left.set(left.get().saturating_sub(size(&lines)));
            ContainerLog { log: Observed::Read(lines), truncated, ..own }
        }
        Err(failure) => {
            let rule = PolicyRule::new("get", "", "pods/log", Some(&own.namespace));
            ContainerLog { log: Observed::Trouble(Trouble::of(&failure, Some(rule))), ..own }
        }
    }
}

/// What comes of a request until then.
async fn in_time<T>(deadline: Instant, request: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let late = || Failure::new(Reason::TimedOut, format!("not all logs were read within {}s", DEADLINE.as_secs()));
    timeout_at(deadline, request).await.unwrap_or_else(|_| Err(late()))
}

/// The end of a log. What is not text may be in it, also because the limit cuts through a letter.
async fn read(
    cluster: &Cluster,
    namespace: &str,
    pod: &str,
    container: &str,
    previous: bool,
) -> Result<Vec<u8>, Failure> {
    let parameters = LogParams {
        container: Some(container.to_owned()),
        previous,
        tail_lines: Some(LINES),
        limit_bytes: i64::try_from(BYTES).ok(),
        ..LogParams::default()
    };
    let what = format!("read the log of container {container} of pod {namespace}/{pod}");
    let api: Api<core::Pod> = Api::namespaced(cluster.client.clone(), namespace);
    let log = api.log_stream(pod, &parameters).await.map_err(|error| cluster.explain(&what, error))?;
    let mut bytes = Vec::new();
    // Whatever answers in a node's place need not keep to the limit.
    let log = pin!(log);
    let mut log = AsyncReadExt::take(log, BYTES as u64);
    let end = log.read_to_end(&mut bytes).await;
    end.map_err(|error| Failure::new(Reason::Unreachable, format!("cannot {what}: it broke off")).because(error))?;
    Ok(bytes)
}

/// The lines of what was read of a log, without what may be a credential: the last ones that have at most so many bytes. And
/// whether others are missing.
fn lines(read: &[u8], most: usize) -> (Vec<String>, bool) {
    let text = String::from_utf8_lossy(read);
    let is_cut = read.len() >= BYTES;
    // Half a credential is not recognised any more, and the limit may have cut one.
    let whole = match text.rfind('\n') {
        _ if !is_cut => &*text,
        Some(end) => &text[..end],
        None => whole_words(&text, BYTES - 1),
    };
    // Runtimes keep long messages in parts, and the last lines may begin with one that is no first part.
    let parts: usize = whole.lines().map(|line| line.len() / PART + 1).sum();
    let whole = match whole.split_once('\n') {
        Some((_, rest)) if parts >= usize::try_from(LINES).unwrap_or(usize::MAX) => rest,
        _ => whole,
    };
    // All of it at once: private keys have several lines.
    let shown = redact(whole);
    let mut taken = 0;
    let fitting = shown.lines().rev().take_while(|line| {
        taken += line.len() + 1;
        taken <= most
    });
    let mut lines: Vec<String> = fitting.map(str::to_owned).collect();
    lines.reverse();
    let is_short = lines.len() < shown.lines().count();
    (lines, is_cut || is_short)
}

/// How many bytes lines have, with their ends.
fn size(lines: &[String]) -> usize {
    lines.iter().map(|line| line.len() + 1).sum()
}

#[cfg(test)]
mod tests {
    use ocm_checks::snapshot::HubSide;
    use ocm_core::redact::HIDDEN;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn credentials_are_taken_out_of_logs_also_where_they_have_several_lines() {
        let key = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgcanary0123456789";
        let log = format!(
            "I1128 13:00:00 first\n-----BEGIN PRIVATE KEY-----\n{key}\ncanary==\n-----END PRIVATE KEY-----\nsecond\n\
             Authorization: Bearer canary0123456789-abcdef\nGet \"https://me:canary@hub:6443\": EOF\n\
             token eyJhbGciOiJSUzI1NiJ9.eyJjYW5hcnkiOiJjYW5hcnkifQ.canary\nlast\n"
        );
        let (shown, is_cut) = lines(log.as_bytes(), TOTAL);
        assert!(!shown.concat().contains("canary") && !is_cut, "{shown:#?}");
        assert_eq!(shown.first().map(String::as_str), Some("I1128 13:00:00 first"));
        assert_eq!(shown.last().map(String::as_str), Some("last"));
        assert!(shown.iter().any(|line| line == HIDDEN) && shown.iter().any(|line| line == "second"), "{shown:#?}");
        // The last lines of a log may begin, or end, within a key.
        for part in [
            format!("{key}\ncanary==\n-----END PRIVATE KEY-----\nok"),
            format!("ok\n-----BEGIN EC PRIVATE KEY-----\n{key}\ncanary=="),
        ] {
            let (shown, _) = lines(part.as_bytes(), TOTAL);
            assert!(!shown.concat().contains("canary") && shown.iter().any(|line| line == "ok"), "{shown:#?}");
        }
    }

    #[test]
    fn of_a_log_the_last_lines_are_kept_that_have_room() {
        assert_eq!(lines(b"", TOTAL), (Vec::new(), false));
        assert_eq!(lines(b"one\ntwo\nthree\n", 10), (vec!["two".to_owned(), "three".to_owned()], true));
        assert_eq!(lines(b"one\ntwo\n", 8), (vec!["one".to_owned(), "two".to_owned()], false));
        assert_eq!(size(&lines(b"one\ntwo\n", 8).0), 8);
        // Not text: a letter of two bytes of which the second is missing.
        assert_eq!(lines(b"a \xc3\nb", TOTAL).0, ["a \u{fffd}", "b"]);
    }

    #[test]
    fn a_first_line_that_may_be_the_rest_of_a_longer_one_is_not_kept() {
        let all = usize::try_from(LINES).unwrap();
        let rest = format!("canary@hub\n{}", "line\n".repeat(all - 1));
        assert_eq!(lines(rest.as_bytes(), TOTAL).0, vec!["line"; all - 1]);
        let fewer = format!("whole\n{}", "line\n".repeat(all - 2));
        assert_eq!(lines(fewer.as_bytes(), TOTAL).0[0], "whole");
        let of_parts = format!("canary@hub\n{}\n{}", "x".repeat(3 * PART), "line\n".repeat(all - 5));
        assert!(!lines(of_parts.as_bytes(), TOTAL).0.concat().contains("canary"));
    }

    #[test]
    fn a_credential_that_the_limit_cuts_is_not_kept() {
        let credential = "https://me:canary@hub";
        for blanks in BYTES - 30..=BYTES {
            let line = format!("first\n{}{credential} and so on", " ".repeat(blanks - 6));
            let (shown, is_cut) = lines(&line.as_bytes()[..BYTES], TOTAL);
            assert!(
                is_cut && !shown.concat().contains("canary") && shown[0] == "first",
                "{blanks}: {:?}",
                shown.last()
            );
            // One line alone.
            let line = format!("{} {credential} and so on", "x".repeat(blanks - 1));
            let (shown, is_cut) = lines(&line.as_bytes()[..BYTES], TOTAL);
            assert!(is_cut && !shown.concat().contains("canary"), "{blanks}");
        }
    }

    fn pod(owner: &str, containers: &Value) -> Pod {
        serde_json::from_value(json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "labels": {"pod-template-hash": "1a"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": "u"}]},
            "spec": {"nodeName": "n"}, "status": {"phase": "Running", "containerStatuses": containers}}))
        .unwrap()
    }

    fn container(state: &Value, last: &Value) -> Value {
        json!([{"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 1, "state": state, "lastState": last}])
    }

    #[test]
    fn instances_that_have_ended_are_read_and_what_was_not_started_says_why() {
        let own = ContainerLog { deployment: Some("d".to_owned()), ..ContainerLog::of(Side::Hub, "n") };
        let (running, ended) = (json!({"running": {}}), json!({"terminated": {"exitCode": 1}}));
        let waiting = json!({"waiting": {"reason": "ErrImagePull", "message": "https://me:canary@r"}});
        let read = |state: &Value, last: &Value| -> Vec<bool> {
            let all = of_pod(&own, &pod("d-1a", &container(state, last)));
            assert!(all.iter().all(|log| log.log == Observed::NotAsked && log.container.as_deref() == Some("c")));
            all.iter().map(|log| log.previous).collect()
        };
        assert_eq!(read(&running, &json!({})), [false]);
        assert_eq!(read(&running, &ended), [true, false]);
        assert_eq!(read(&ended, &json!({})), [false]);
        assert_eq!(read(&waiting, &ended), [true]);
        let why = |containers: &Value| match of_pod(&own, &pod("d-1a", containers)).as_slice() {
            [ContainerLog { log: Observed::Trouble(trouble), .. }] => trouble.message.clone(),
            other => panic!("{other:?}"),
        };
        let said = why(&container(&waiting, &json!({})));
        assert_eq!(said, "the container was not started: ErrImagePull: https://[redacted]@r");
        assert!(why(&json!([])).starts_with("the pod is Running, and none"));
    }

    #[test]
    fn pods_are_those_of_the_deployment_alone() {
        let none = json!([]);
        assert!(is_of(&pod("klusterlet-1a", &none), "klusterlet"));
        assert!(!is_of(&pod("klusterlet-agent-1a", &none), "klusterlet"));
        let mut bare = pod("klusterlet-1a", &none);
        bare.metadata.owner_references = None;
        assert!(!is_of(&bare, "klusterlet"));
    }

    #[test]
    fn deployments_that_were_observed_are_wanted_and_those_that_could_not_be_are_told() {
        let workload: Workload = serde_json::from_value(json!({"namespace": "elsewhere", "name": "cluster-manager",
            "replicas": 1, "health": ocm_core::workload::Health::Ready}))
        .unwrap();
        let trouble = Trouble::of(&Failure::new(Reason::Forbidden, "no"), None);
        let side = HubSide {
            operator: Observed::Read(workload),
            deployments: Observed::Trouble(trouble.clone()),
            ..HubSide::default()
        };
        let snapshot: Snapshot =
            serde_json::from_value(json!({"format": 1, "observed": "2026-03-01T12:00:00Z", "hub": side})).unwrap();
        let (wanted, unknown) = wanted(&snapshot);
        assert_eq!(wanted, BTreeMap::from([((Side::Hub, "elsewhere"), vec!["cluster-manager"])]));
        let told = ContainerLog { log: Observed::Trouble(trouble), ..ContainerLog::of(Side::Hub, namespaces::HUB) };
        assert_eq!(unknown, [told]);
    }
}
