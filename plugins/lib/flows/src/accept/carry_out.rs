//! Approving exactly what was looked at, and then accepting.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::{PartialObjectMeta, Patch, PatchParams, PostParams};
use ocm_api::ManagedCluster;
use ocm_core::accept::{Decision, Help, Refusal};
use ocm_core::csr::{Code, Request};
use ocm_core::{DryRun, Event, Failure, Narrator, Reason, Remedy};
use ocm_kube::Cluster;
use ocm_kube::apply::FIELD_MANAGER;
use serde_json::json;
use tokio::time::timeout_at;

use super::candidate::Candidate;
use super::reasons::APPROVAL_REASON;
use super::rows::{Outcome, Row, failed, row};
use super::survey::{refuse_unselected, survey};
use crate::registry::{Scope, is_plain};

/// How much is done at a time, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many clusters are worked on at once.
    pub at_once: usize,
    /// Until when it is tried again while the hub does not answer, and an answer is waited for; none: it is not tried again, and
    /// waited for as long as the connection allows.
    pub deadline: Option<Instant>,
}

/// At least so long an answer is waited for, also of what begins just before a deadline, or after it because a person was asked:
/// of a write that nobody waits for, nobody knows what became of it.
const LEAST: Duration = Duration::from_secs(5);

/// Until when an answer is waited for of what begins now.
pub fn answered_by(deadline: Option<Instant>) -> Option<Instant> {
    deadline.map(|deadline| deadline.max(Instant::now() + LEAST))
}

/// What comes of some work until `end`, if there is one; else what `late` says.
async fn until<T>(
    end: Option<Instant>,
    late: impl FnOnce() -> Failure,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    match end {
        Some(end) => timeout_at(end.into(), work).await.unwrap_or_else(|_| Err(late())),
        None => work.await,
    }
}

/// That the hub has not answered what only reads.
pub(super) fn unanswered() -> Failure {
    Failure::new(Reason::TimedOut, "the hub has not answered in time")
}

/// Carries out decisions, several clusters at a time, and hands over each row in the order of the candidates.
pub async fn carry_out(
    hub: &Cluster,
    candidates: Vec<Candidate>,
    dry_run: DryRun,
    limits: Limits,
    narrator: &dyn Narrator,
    mut each: impl FnMut(&Row),
) -> Vec<Row> {
    let total = candidates.len();
    let has_stalled = AtomicBool::new(false);
    let accept = async |candidate: Candidate| {
        // Of a hub that answers nothing after the deadline, not each cluster waits again.
        let is_over = limits.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let acts = matches!(candidate.decision, Decision::Act { .. });
        let row = match acts && is_over && has_stalled.load(Ordering::Relaxed) {
            true => failed(&candidate, unanswered().hint(Remedy::RunAgain)),
            false => one(hub, candidate, dry_run, limits.deadline, narrator).await,
        };
        if row.failure().is_some_and(|failure| failure.reason == Reason::TimedOut) {
            has_stalled.store(true, Ordering::Relaxed);
        }
        if dry_run == DryRun::No && matches!(row.outcome, Outcome::Accepted | Outcome::Approved) {
            narrator.tell(Event::done(format!("accepted {}", row.name)));
        }
        row
    };
    in_order(candidates, limits.at_once, accept, |row, shown| {
        each(row);
        // Each row is shown as it comes; of the count a few are enough where every one is a line of its own.
        if shown.is_multiple_of(50) && shown < total {
            narrator.tell(Event::now(format!("accepting clusters, {shown} of {total}")));
        }
    })
    .await
}

/// Works on `at_once` clusters at a time and hands over each row with the number of rows so far, in the order of the
/// clusters. One that takes long holds up the rows behind it, not the work.
pub(super) async fn in_order<T>(
    clusters: Vec<T>,
    at_once: usize,
    work: impl AsyncFn(T) -> Row,
    mut each: impl FnMut(&Row, usize),
) -> Vec<Row> {
    let work = &work;
    let mut answers = futures::stream::iter(clusters.into_iter().enumerate())
        .map(|(at, cluster)| async move { (at, work(cluster).await) })
        .buffer_unordered(at_once.max(1));
    let (mut rows, mut early) = (Vec::new(), BTreeMap::new());
    while let Some((at, row)) = answers.next().await {
        early.insert(at, row);
        while let Some(row) = early.remove(&rows.len()) {
            each(&row, rows.len() + 1);
            rows.push(row);
        }
    }
    rows
}

/// How long the first pause is before a hub is asked again that did not answer.
const PAUSE: Duration = Duration::from_millis(500);

/// How long such pauses become.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(16);

/// How often a decision is taken anew when the hub changed under it.
pub(super) const TRIES: usize = 5;

/// Asks for an answer that holds an object's metadata alone (Kubernetes API concepts, "Metadata-only fetches").
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Carries out the decision about one cluster, and decides anew where the hub has changed under it.
pub(super) async fn one(
    hub: &Cluster,
    mut candidate: Candidate,
    dry_run: DryRun,
    deadline: Option<Instant>,
    narrator: &dyn Narrator,
) -> Row {
    // What was shown, and agreed to.
    let key = candidate.request().and_then(Request::fingerprint);
    let uid = candidate.cluster.as_ref().and_then(|cluster| cluster.metadata.uid.clone());
    // The request that this run approved; whatever comes after, that is said.
    let mut approved: Option<String> = None;
    let (mut conflicts, mut pause, end) = (0, PAUSE, answered_by(deadline));
    loop {
        let other = candidate.request().and_then(Request::fingerprint) != key
            || candidate.cluster.as_ref().and_then(|cluster| cluster.metadata.uid.clone()) != uid;
        if other && matches!(candidate.decision, Decision::Act { .. }) {
            candidate.decision = Decision::Refused(Refusal {
                code: Code::KeyChanged,
                detail: "it asked anew, with another key or as another registration, in the meantime".to_owned(),
                help: Some(Help::Again),
                is_decided: false,
            });
        }
        let row = row(&candidate);
        let Decision::Act { approve, accept, .. } = candidate.decision.clone() else {
            return after_approval(row, approved);
        };
        if dry_run == DryRun::Client {
            return row;
        }
        let selected = until(end, unanswered, refuse_unselected(hub, std::slice::from_mut(&mut candidate))).await;
        let acted = match selected {
            // What the row says then is the refusal.
            Ok(()) if !matches!(candidate.decision, Decision::Act { .. }) => continue,
            Ok(()) => {
                let mut told = None;
                let acting = act(hub, &candidate, approve, accept, dry_run, |request: &str| {
                    narrator.tell(Event::done(format!("approved request {request}")));
                    told = Some(request.to_owned());
                });
                let acted = until(end, unanswered, acting).await;
                let is_approved = told.is_some() || approve.is_none();
                approved = told.or(approved);
                acted.map_err(|failure| match failure.reason {
                    Reason::TimedOut if dry_run == DryRun::No => unknown(&candidate, is_approved, failure),
                    _ => failure,
                })
            }
            Err(failure) => Err(failure),
        };
        let mut failure = match acted {
            Ok(()) => return row,
            Err(failure) => failure,
        };
        // Somebody else decided or changed something in between, or the hub did not answer: look again and decide anew,
        // never blindly.
        candidate = loop {
            let again = match failure.reason {
                Reason::Conflict => conflicts < TRIES - 1,
                reason => reason.is_transient() && deadline.is_some_and(|deadline| Instant::now() + pause < deadline),
            };
            if !again {
                return after_approval(failed(&candidate, failure), approved);
            }
            match failure.reason {
                Reason::Conflict => conflicts += 1,
                _ => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
            let scope = Scope::Names(vec![candidate.name.clone()]);
            match until(end, unanswered, survey(hub, &scope, &candidate.options)).await {
                Ok(found) => match found.into_iter().next() {
                    Some(found) => break found,
                    None => return after_approval(failed(&candidate, failure), approved),
                },
                Err(other) => failure = other,
            }
        };
    }
}

/// That nobody knows what became of a write: of the acceptance of a cluster, or, before its request is approved, of that.
fn unknown(candidate: &Candidate, is_approved: bool, failure: Failure) -> Failure {
    let what = match candidate.request().filter(|_| !is_approved) {
        Some(request) => format!("request {} was approved", request.name),
        None => format!("{} was accepted", candidate.name),
    };
    let message = format!("{failure}: it is not known whether {what}");
    Failure { message, causes: Vec::new(), ..failure }.hint(Remedy::RunAgain)
}

/// Adds to the row of a cluster that was not accepted that its request was approved before.
fn after_approval(row: Row, approved: Option<String>) -> Row {
    let accepted = matches!(row.outcome, Outcome::Accepted | Outcome::Approved | Outcome::AlreadyAccepted);
    match approved {
        Some(request) if !accepted => Row {
            detail: format!("{}; its request {request} was approved before that", row.detail),
            request: Some(request),
            ..row
        },
        _ => row,
    }
}

async fn act(
    hub: &Cluster,
    candidate: &Candidate,
    approve: Option<usize>,
    accept: bool,
    dry_run: DryRun,
    mut approved: impl FnMut(&str),
) -> Result<(), Failure> {
    // The request first: a cluster must never be accepted whose request was not approved.
    if let Some(request) = approve.and_then(|index| candidate.requests.get(index)) {
        let key = request.fingerprint().unwrap_or_default();
        let object = match &candidate.object {
            Some(object) => CertificateSigningRequest::clone(object),
            None => read_again(hub, request).await?,
        };
        decide_request(
            hub,
            object,
            "Approved",
            APPROVAL_REASON,
            &format!("verified by kubectl ocm accept, key {key}"),
            dry_run,
        )
        .await?;
        if dry_run == DryRun::No {
            approved(&request.name);
        }
    }
    if accept && let Some(cluster) = &candidate.cluster {
        set_accepted(hub, cluster, true, dry_run).await?;
    }
    Ok(())
}

/// The object of a request that was not kept, if it still is what was looked at.
async fn read_again(hub: &Cluster, request: &Request) -> Result<CertificateSigningRequest, Failure> {
    match live(hub, &request.name).await? {
        Some(object) if Request::read(&object) == *request => Ok(object),
        _ => Err(Failure::new(Reason::Conflict, format!("request {} changed in the meantime", request.name))),
    }
}

/// What the hub holds of a request now.
pub(super) async fn live(hub: &Cluster, name: &str) -> Result<Option<CertificateSigningRequest>, Failure> {
    // Whoever asks chooses the name, and nearly anything is one.
    if !is_plain(name) {
        return Err(Failure::new(Reason::Invalid, format!("the name of request {name:?} cannot stand in a URL")));
    }
    let api: Api<CertificateSigningRequest> = Api::all(hub.client.clone());
    api.get_opt(name).await.map_err(|error| hub.explain(format_args!("read request {name}"), error))
}

/// Adds a condition to exactly this request: its UID and resource version go along.
pub(super) async fn decide_request(
    hub: &Cluster,
    mut object: CertificateSigningRequest,
    kind: &str,
    reason: &str,
    message: &str,
    dry_run: DryRun,
) -> Result<(), Failure> {
    let api: Api<CertificateSigningRequest> = Api::all(hub.client.clone());
    let name = object.metadata.name.clone().unwrap_or_default();
    let status = object.status.get_or_insert_default();
    status.conditions.get_or_insert_default().push(CertificateSigningRequestCondition {
        type_: kind.to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_update_time: Some(Time(Timestamp::now())),
        ..CertificateSigningRequestCondition::default()
    });
    let params = PostParams { dry_run: dry_run == DryRun::Server, field_manager: Some(FIELD_MANAGER.to_owned()) };
    let explained = |error| hub.explain(format_args!("decide about request {name}"), error);
    let body = serde_json::to_vec(&object).map_err(|error| explained(kube::Error::SerdeError(error)))?;
    let mut put = kube::core::Request::new(api.resource_url())
        .replace_subresource("approval", &name, &params, body)
        .map_err(|error| explained(kube::Error::BuildRequest(error)))?;
    // Of a thousand answers nothing but that they came is needed.
    put.headers_mut().insert(http::header::ACCEPT, http::HeaderValue::from_static(METADATA));
    hub.client.request::<PartialObjectMeta<CertificateSigningRequest>>(put).await.map_err(explained)?;
    Ok(())
}

/// Sets `hubAcceptsClient` on exactly the cluster that was looked at: its UID goes along, and to accept it, also its
/// resource version. To deny it must not fail because its agent reports something in the same moment.
pub(super) async fn set_accepted(
    hub: &Cluster,
    cluster: &ManagedCluster,
    accepted: bool,
    dry_run: DryRun,
) -> Result<(), Failure> {
    let api: Api<ManagedCluster> = Api::all(hub.client.clone());
    let name = cluster.metadata.name.clone().unwrap_or_default();
    let mut patch = json!({ "metadata": { "uid": cluster.metadata.uid }, "spec": { "hubAcceptsClient": accepted } });
    if accepted {
        patch["metadata"]["resourceVersion"] = json!(cluster.metadata.resource_version);
    }
    let params = PatchParams {
        dry_run: dry_run == DryRun::Server,
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let verb = if accepted { "accept" } else { "deny" };
    api.patch_metadata(&name, &params, &Patch::Merge(patch))
        .await
        .map_err(|error| hub.explain(format_args!("{verb} managed cluster {name:?}"), error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use ocm_core::accept::Options;
    use ocm_core::{Hint, Silent};
    use serde_json::Value;

    use super::super::test_hub::{Asked, hub};
    use super::*;

    /// A cluster that is to be accepted without a request, as the hub has shown it, and as a selector has chosen it, if one has.
    fn chosen(name: &str, selector: Option<&str>) -> Candidate {
        let options = Options { selector: selector.map(str::to_owned), without_request: true, ..Options::default() };
        let cluster = serde_json::from_value(shown(name, "1")).unwrap();
        let decision = Decision::Act { approve: None, stands_on: None, accept: true };
        Candidate { decision, ..Candidate::alone(name.to_owned(), Some(cluster), &options) }
    }

    fn shown(name: &str, version: &str) -> Value {
        json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": name, "uid": format!("uid of {name}"), "resourceVersion": version}, "spec": {},
        })
    }

    /// What a hub replies that has nothing but this cluster.
    fn nothing_but(name: &str, version: &str, asked: &Asked) -> (u16, Value) {
        let path = asked.line.split(['?', ' ']).nth(1).unwrap_or_default();
        let items = if asked.line.contains("/managedclusters?") { vec![shown(name, version)] } else { Vec::new() };
        let list = json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items});
        let absent =
            json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404});
        match () {
            () if path.ends_with(&format!("/managedclusters/{name}")) => (200, shown(name, version)),
            () if asked.line.starts_with("GET") && asked.line.contains('?') => (200, list),
            () => (404, absent),
        }
    }

    fn is_selecting(asked: &Asked) -> bool {
        asked.line.contains("/managedclusters?") && asked.line.contains("labelSelector=env%3Dprod")
    }

    fn none() -> (u16, Value) {
        (200, json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "items": []}))
    }

    #[tokio::test]
    async fn whom_the_selector_has_lost_is_not_accepted() {
        let (hub, asked) = hub(|asked| match is_selecting(asked) {
            true => none(),
            false => nothing_but("c1", "1", asked),
        });
        let row = one(&hub, chosen("c1", Some("env=prod")), DryRun::No, None, &Silent).await;
        assert_eq!(row.outcome, Outcome::Refused(Code::NotSelected));
        assert!(row.detail.contains("env=prod") && row.help == Some(Help::ByName("c1".to_owned())), "{row:?}");
        let lines = |method: &str| asked.lock().unwrap().iter().filter(|one| one.line.starts_with(method)).count();
        assert_eq!((lines("PATCH"), lines("PUT")), (0, 0));
        let row = one(&hub, chosen("c1", None), DryRun::No, None, &Silent).await;
        assert_eq!(
            (row.outcome, lines("PATCH")),
            (Outcome::Accepted, 1),
            "who is named is accepted whatever its labels are"
        );
    }

    #[tokio::test]
    async fn whom_the_selector_loses_at_the_last_moment_is_not_accepted_by_the_next_try() {
        let writes = std::sync::atomic::AtomicUsize::new(0);
        let (hub, asked) = hub(move |asked| {
            let written = writes.load(Ordering::SeqCst);
            match () {
                () if asked.line.starts_with("PATCH") && writes.fetch_add(1, Ordering::SeqCst) == 0 => (
                    409,
                    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409}),
                ),
                () if is_selecting(asked) && written > 0 => none(),
                () => nothing_but("c1", if written > 0 { "2" } else { "1" }, asked),
            }
        });
        let row = one(&hub, chosen("c1", Some("env=prod")), DryRun::No, None, &Silent).await;
        assert_eq!(row.outcome, Outcome::Refused(Code::NotSelected), "{row:?}");
        assert_eq!(asked.lock().unwrap().iter().filter(|one| one.line.starts_with("PATCH")).count(), 1);
    }

    #[tokio::test]
    async fn of_a_write_that_is_never_answered_it_is_told_that_nobody_knows_and_the_others_do_not_wait_again() {
        let (hub, asked) = hub(|asked| {
            if asked.line.starts_with("PATCH") {
                std::thread::sleep(Duration::from_mins(5));
            }
            nothing_but("c1", "1", asked)
        });
        let clusters = vec![chosen("c1", None), chosen("c2", None)];
        let limits = Limits { at_once: 1, deadline: Some(Instant::now()) };
        let done = carry_out(&hub, clusters, DryRun::No, limits, &Silent, |_| ());
        let rows = tokio::time::timeout(LEAST * 4, done).await.expect("it ends");
        let reasons: Vec<_> = rows.iter().map(|row| row.failure().map(|failure| failure.reason)).collect();
        assert_eq!(reasons, [Some(Reason::TimedOut); 2]);
        assert!(rows[0].detail.ends_with("it is not known whether c1 was accepted"), "{:?}", rows[0]);
        assert!(
            rows[0].failure().is_some_and(|failure| failure.hints == [Hint::from(Remedy::RunAgain)]),
            "{:?}",
            rows[0]
        );
        assert_eq!(rows[1].detail, unanswered().to_string());
        assert_eq!(asked.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn rows_come_in_order_and_nobody_waits_for_the_slow() {
        let candidate = |name: usize| Candidate::unknown(&name.to_string());
        let (begun, done) = (std::cell::RefCell::new(Vec::new()), tokio::sync::Notify::new());
        let work = async |candidate: Candidate| {
            begun.borrow_mut().push(candidate.name.clone());
            match candidate.name.as_str() {
                // The first one ends only after the last one did.
                "0" => done.notified().await,
                "9" => done.notify_one(),
                _ => {}
            }
            row(&candidate)
        };
        let mut seen = Vec::new();
        let rows =
            in_order((0..10).map(candidate).collect(), 2, work, |row, shown| seen.push((row.name.clone(), shown)));
        let rows = tokio::time::timeout(Duration::from_secs(60), rows).await.expect("the others go on");
        assert_eq!(begun.borrow().len(), 10);
        assert_eq!(seen, (0..10).map(|number| (number.to_string(), number + 1)).collect::<Vec<_>>());
        assert!(rows.iter().map(|row| &row.name).eq(seen.iter().map(|(name, _)| name)));
    }
}
