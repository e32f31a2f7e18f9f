//! The decision logs of all pods of a policy engine, as one.
//!
//! ```text
//! pods ─▶ a log each ─▶ decisions that are selected ─▶ in order of their time
//!   └── once more every few seconds while they are followed: pods come, go and start again
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::stream::{BoxStream, SelectAll};
use futures::{AsyncBufReadExt, StreamExt, TryStreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, LogParams};
use ocm_core::hub_policy::{Logged, Selection};
use ocm_core::order;
use ocm_core::policy_engine::{DECIDING_PODS, NAMESPACE};
use ocm_core::{Event, Failure, Narrator, Reason, Remedy};
use ocm_kube::{Cluster, explain};

use crate::registry;

/// How long pods may come and go unnoticed while logs are followed.
const LOOK: Duration = Duration::from_secs(2);

/// What a line of a log begins with, where the API server was asked for it.
const AFTER_TIME: char = ' ';

/// Which decisions are wanted.
#[derive(Clone, Debug, Default)]
pub struct LogsRequest {
    /// Those of this time until now; none: all that the logs hold.
    pub since: Option<Duration>,
    /// Those that were selected.
    pub selection: Selection,
}

/// The decisions that the logs hold, in order of their time. A pod whose log cannot be read is told of.
///
/// # Errors
/// When the hub cannot be read, or no pod of a policy engine is there.
pub async fn logged(hub: &Cluster, request: &LogsRequest, narrator: &dyn Narrator) -> Result<Vec<Logged>, Failure> {
    let since = since(request)?;
    let pods = there(hub).await?;
    let reads = pods.iter().map(async |pod| {
        let lines = log(hub, pod, since, false).await?;
        let wanted = lines.try_filter_map(async |line| Ok(line.decision.filter(|one| request.selection.takes(one))));
        wanted.try_collect::<Vec<_>>().await
    });
    let mut decisions = Vec::new();
    for (pod, read) in pods.iter().zip(futures::future::join_all(reads).await) {
        match read {
            Ok(read) => decisions.extend(read),
            Err(failure) if failure.reason == Reason::Forbidden => return Err(failure),
            Err(failure) => narrator.tell(Event::warning(format!("the log of pod {} is missing: {failure}", pod.name))),
        }
    }
    order::sort_by(&mut decisions, |left, right| left.time.cmp(&right.time));
    Ok(decisions)
}

/// Each decision as it is logged, beginning with those that the logs hold. Ends when `each` says that nobody listens.
///
/// # Errors
/// When the hub cannot be read, or no pod of a policy engine is there at first.
pub async fn follow_logged(
    hub: &Cluster,
    request: &LogsRequest,
    narrator: &dyn Narrator,
    mut each: impl FnMut(Logged) -> bool,
) -> Result<(), Failure> {
    let start = since(request)?;
    let mut pods = there(hub).await?;
    let mut lines: SelectAll<BoxStream<'_, Followed>> = SelectAll::new();
    let mut open = BTreeSet::new();
    // When the last line of each pod was written: a log that is opened again goes on after it.
    let mut read: BTreeMap<String, Timestamp> = BTreeMap::new();
    loop {
        for pod in pods {
            let PodLog { uid, .. } = &pod;
            let (after, uid) = (read.get(uid).copied(), uid.clone());
            if open.contains(&uid) {
                continue;
            }
            match log(hub, &pod, after.or(start), true).await {
                Ok(stream) => {
                    open.insert(uid.clone());
                    let own = uid.clone();
                    // Whatever breaks a log off, the next look opens it again.
                    let whole =
                        stream.take_while(|line| std::future::ready(line.is_ok())).filter_map(async |line| line.ok());
                    let news = whole.filter(move |line| std::future::ready(after.is_none_or(|it| line.at > it)));
                    let ends = futures::stream::once(std::future::ready((uid, None)));
                    lines.push(news.map(move |line| (own.clone(), Some(line))).chain(ends).boxed());
                }
                Err(failure) if failure.reason == Reason::Forbidden => return Err(failure),
                // It starts, or ends: the next look tells.
                Err(_) => {}
            }
        }
        let look = tokio::time::sleep(LOOK);
        tokio::pin!(look);
        loop {
            tokio::select! {
                Some((uid, line)) = lines.next() => match line {
                    Some(Line { at, decision }) => {
                        read.insert(uid, at);
                        let wanted = decision.filter(|one| request.selection.takes(one));
                        if wanted.is_some_and(|decision| !each(decision)) {
                            return Ok(());
                        }
                    }
                    None => _ = open.remove(&uid),
                },
                () = &mut look => break,
            }
        }
        pods = match pods_of(hub).await {
            Ok(pods) => pods,
            Err(failure) if failure.reason == Reason::Forbidden => return Err(failure),
            Err(failure) => {
                narrator.tell(Event::warning(format!("{failure}; trying again")));
                Vec::new()
            }
        };
    }
}

/// From when on lines are read.
fn since(request: &LogsRequest) -> Result<Option<Timestamp>, Failure> {
    let past = |since| Timestamp::now().checked_sub(since);
    let long = |_| Failure::usage("nothing was logged so long ago");
    request.since.map(past).transpose().map_err(long)
}

/// A pod whose log is read.
struct PodLog {
    name: String,
    uid: String,
    container: String,
}

/// A line of the pod of this UID; none: its log ends.
type Followed = (String, Option<Line>);

/// One line.
struct Line {
    at: Timestamp,
    decision: Option<Logged>,
}

/// The pods of the policy engine, of which there has to be one.
async fn there(hub: &Cluster) -> Result<Vec<PodLog>, Failure> {
    let pods = pods_of(hub).await?;
    if pods.is_empty() {
        let what = format!("there is no pod of a policy engine in namespace {NAMESPACE}");
        return Err(Failure::new(Reason::NotFound, what).hint(Remedy::InstallPolicyEngine));
    }
    Ok(pods)
}

async fn pods_of(hub: &Cluster) -> Result<Vec<PodLog>, Failure> {
    let api: Api<Pod> = Api::namespaced(hub.client.clone(), NAMESPACE);
    let pods =
        registry::all(hub, &api, ListParams::default().labels(DECIDING_PODS), "list pods of the policy engine").await?;
    let one = |pod: Pod| {
        let container = pod.spec?.containers.into_iter().next()?.name;
        Some(PodLog { name: pod.metadata.name?, uid: pod.metadata.uid?, container })
    };
    Ok(pods.into_iter().filter_map(one).collect())
}

/// The lines of a pod that its node got since then, with when it got them.
async fn log(
    hub: &Cluster,
    pod: &PodLog,
    since: Option<Timestamp>,
    follow: bool,
) -> Result<impl futures::Stream<Item = Result<Line, Failure>> + use<>, Failure> {
    let api: Api<Pod> = Api::namespaced(hub.client.clone(), NAMESPACE);
    let parameters = LogParams {
        container: Some(pod.container.clone()),
        follow,
        since_time: since,
        timestamps: true,
        ..LogParams::default()
    };
    let name = pod.name.clone();
    let read = api.log_stream(&pod.name, &parameters).await;
    let read = read.map_err(|error| explain(&error).context(format!("cannot read the log of pod {name}")))?;
    let lines = read.lines().map_err(move |error| {
        Failure::new(Reason::Unreachable, format!("the log of pod {name} broke off")).because(error)
    });
    Ok(lines.try_filter_map(move |line| std::future::ready(Ok(wanted(&line, since)))))
}

/// What a line says, unless it is from before, or no line of the container.
fn wanted(line: &str, since: Option<Timestamp>) -> Option<Line> {
    let (at, text) = line.split_once(AFTER_TIME)?;
    // What cannot be read is a note of the kubelet, in the place of a log.
    let at = at.parse().ok()?;
    // `sinceTime` of the API is a `metav1.Time`: the API server sends everything of the second that it falls into.
    since.is_none_or(|since| since <= at).then(|| Line { at, decision: Logged::read(text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_from_before_are_left_out_though_they_are_of_the_same_second() {
        let since = Some("2026-11-25T02:02:56.5Z".parse().expect("a time"));
        let at = |time: &str| wanted(&format!("{time} {{}}"), since).is_some();
        assert!(!at("2026-11-25T02:02:56.499999999Z"));
        assert!(at("2026-11-25T02:02:56.5Z") && at("2026-11-25T02:02:57Z"));
        assert!(wanted("2026-11-25T02:02:56.4Z {}", None).is_some());
        assert!(wanted("unable to retrieve container logs", since).is_none() && wanted("", since).is_none());
    }
}
