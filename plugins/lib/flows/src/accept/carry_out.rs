//! Approving exactly what was looked at, and then accepting.

use std::collections::BTreeMap;
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
use ocm_core::{DryRun, Event, Failure, Narrator, Reason};
use ocm_kube::Cluster;
use ocm_kube::apply::FIELD_MANAGER;
use serde_json::json;

use super::candidate::Candidate;
use super::reasons::APPROVAL_REASON;
use super::rows::{Outcome, Row, failed, row};
use super::survey::survey;
use crate::registry::{Scope, is_plain};

/// How much is done at a time, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many clusters are worked on at once.
    pub at_once: usize,
    /// Until when it is tried again while the hub does not answer; none: not at all.
    pub deadline: Option<Instant>,
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
    let accept = async |candidate: Candidate| {
        let row = one(hub, candidate, dry_run, limits.deadline, narrator).await;
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
    let (mut conflicts, mut pause) = (0, PAUSE);
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
        let acted = act(hub, &candidate, approve, accept, dry_run, |request: &str| {
            narrator.tell(Event::done(format!("approved request {request}")));
            approved = Some(request.to_owned());
        });
        let mut failure = match acted.await {
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
            match survey(hub, &scope, &candidate.options).await {
                Ok(found) => match found.into_iter().next() {
                    Some(found) => break found,
                    None => return after_approval(failed(&candidate, failure), approved),
                },
                Err(other) => failure = other,
            }
        };
    }
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

    use super::*;

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
