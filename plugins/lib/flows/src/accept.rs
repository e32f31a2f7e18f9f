//! Accepting and denying clusters: look, decide, approve exactly what was looked at, then accept.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use ocm_api::ManagedCluster;
use ocm_api::names::{hub as hub_names, labels, signers};
use ocm_core::accept::{Decision, Found, Help, Options, Refusal, decide};
use ocm_core::csr::{Code, Request, State};
use ocm_core::phase::{Phase, standing};
use ocm_core::{DryRun, Event, Failure, Narrator, Reason};
use ocm_kube::Cluster;
use ocm_kube::access::{Right, require};
use ocm_kube::apply::FIELD_MANAGER;
use ocm_kube::wait::{Look, until};
use serde_json::json;

use crate::registry::{Registry, Scope};

/// The reason that our approvals carry; requests of other tools' carry theirs.
pub const APPROVAL_REASON: &str = "KubectlOcmAccept";

/// The reason that our denials carry.
pub const DENIAL_REASON: &str = "KubectlOcmDeny";

/// One cluster with what was found and what is to be done about it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Name of the cluster.
    pub name: String,
    /// The object that was looked at; none if the hub has none.
    pub cluster: Option<ManagedCluster>,
    /// Its requests with the objects that they were read from.
    pub requests: Vec<(Request, CertificateSigningRequest)>,
    /// What the decision was made with, and will be again if the hub changes.
    pub options: Options,
    /// What is to be done.
    pub decision: Decision,
}

impl Candidate {
    /// The request that the decision stands on.
    pub fn request(&self) -> Option<&Request> {
        match &self.decision {
            Decision::Act { stands_on: Some(index), .. } => self.requests.get(*index).map(|(request, _)| request),
            _ => None,
        }
    }

    /// The requests that a denial is about.
    fn waiting(&self) -> impl Iterator<Item = &(Request, CertificateSigningRequest)> {
        self.requests.iter().filter(|(request, _)| request.state == State::Pending && !request.is_addons())
    }

    /// The labels of the cluster.
    pub fn labels(&self) -> BTreeMap<String, String> {
        self.cluster.as_ref().and_then(|cluster| cluster.metadata.labels.clone()).unwrap_or_default()
    }

    /// Pending requests for the name that are left alone.
    fn stray(&self) -> Vec<(String, Option<String>)> {
        let Decision::Settled { stray } = &self.decision else { return Vec::new() };
        let requests = stray.iter().filter_map(|index| self.requests.get(*index));
        requests.map(|(request, _)| (request.name.clone(), request.fingerprint())).collect()
    }

    fn is_accepted(&self) -> bool {
        self.cluster.as_ref().is_some_and(|cluster| cluster.spec.hub_accepts_client.unwrap_or_default())
    }
}

/// How one cluster came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Name of the cluster.
    pub name: String,
    /// How it came out.
    pub outcome: Outcome,
    /// What was found, for people.
    pub detail: String,
    /// What would help.
    pub help: Option<Help>,
    /// Pending requests for the name that were left alone: name and fingerprint.
    pub stray: Vec<(String, Option<String>)>,
    /// The cluster set that the cluster is in.
    pub cluster_set: Option<String>,
    /// Its other labels.
    pub labels: BTreeMap<String, String>,
    /// The key's fingerprint, where there is a request.
    pub fingerprint: Option<String>,
    /// Who asked, where there is a request.
    pub requester: Option<String>,
    /// The request that was approved or denied.
    pub request: Option<String>,
}

/// How a cluster came out, with a stable word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its request is approved and the hub accepts it.
    Accepted,
    /// It was accepted before; its new request is approved now.
    Approved,
    /// It was accepted before and nothing waits for approval.
    AlreadyAccepted,
    /// It has not asked yet.
    NoRequest,
    /// It is denied now.
    Denied,
    /// It was denied before and nothing waits.
    AlreadyDenied,
    /// Refused by a rule; nothing was changed.
    Refused(Code),
    /// The hub did not do what we asked.
    Failed(Reason),
}

impl Outcome {
    /// The stable word that scripts match.
    pub fn code(&self) -> String {
        match self {
            Self::Refused(code) => code.to_string(),
            Self::Failed(reason) => reason.to_string(),
            other => format!("{other:?}"),
        }
    }
}

/// Looks at every cluster of the scope and decides, without changing anything.
///
/// With [`Scope::All`] only clusters that wait for acceptance are looked at. How the clusters were chosen at first is
/// for the caller to say, in the options.
///
/// # Errors
/// When the hub cannot be read.
pub async fn survey(hub: &Cluster, scope: &Scope, options: &Options) -> Result<Vec<Candidate>, Failure> {
    let registry = Registry::read(hub, scope).await?;
    let names: Vec<String> = match scope {
        Scope::Names(names) => names.clone(),
        Scope::Selector(_) => registry.clusters.keys().cloned().collect(),
        Scope::All => registry
            .clusters
            .iter()
            .filter(|(_, cluster)| standing(cluster).phase == Phase::Pending)
            .map(|(name, _)| name.clone())
            .collect(),
    };
    Ok(names.into_iter().map(|name| candidate(&registry, name, options)).collect())
}

fn candidate(registry: &Registry, name: String, options: &Options) -> Candidate {
    let cluster = registry.clusters.get(&name).cloned();
    let requests = registry.requests_of(&name).to_vec();
    let plain: Vec<Request> = requests.iter().map(|(request, _)| request.clone()).collect();
    let found = Found {
        cluster: cluster.as_ref(),
        namespace: registry.namespace_of(&name),
        role_created: registry.role_created(&name),
        requests: &plain,
    };
    let decision = decide(&name, &found, options);
    Candidate { name, cluster, requests, options: options.clone(), decision }
}

/// Fails before anything is touched unless the user may approve, and accept.
///
/// # Errors
/// [`Reason::Forbidden`] naming every right that is missing.
pub async fn check_rights(hub: &Cluster, candidates: &[Candidate]) -> Result<(), Failure> {
    let mut rights = Rights::default();
    for candidate in candidates {
        let Decision::Act { approve, accept, .. } = &candidate.decision else { continue };
        if approve.is_some() {
            rights.decide(candidate.request().map_or(signers::KUBE_APISERVER_CLIENT, |request| &request.signer));
        }
        if *accept {
            rights.need(Right::new("patch", "cluster.open-cluster-management.io", "managedclusters"));
            rights.need(Right::new("update", hub_names::REGISTER_GROUP, "managedclusters/accept"));
        }
    }
    rights.require(hub, "accept clusters").await
}

/// Fails before anything is touched unless the user may withdraw acceptances. What requests a user may not deny is found
/// out one by one: anybody can create some for a signer that the user has no right for.
///
/// # Errors
/// [`Reason::Forbidden`] naming every right that is missing.
pub async fn check_rights_to_deny(hub: &Cluster, candidates: &[Candidate]) -> Result<(), Failure> {
    let mut rights = Rights::default();
    if candidates.iter().any(Candidate::is_accepted) {
        rights.need(Right::new("patch", "cluster.open-cluster-management.io", "managedclusters"));
    }
    if candidates.iter().any(|candidate| candidate.waiting().next().is_some()) {
        rights.need(Right::new("update", "certificates.k8s.io", "certificatesigningrequests/approval"));
    }
    rights.require(hub, "deny clusters").await
}

/// Rights that are needed, each once.
#[derive(Default)]
struct Rights(Vec<Right>);

impl Rights {
    fn need(&mut self, right: Right) {
        if !self.0.contains(&right) {
            self.0.push(right);
        }
    }

    /// To approve or deny requests for a signer.
    fn decide(&mut self, signer: &str) {
        self.need(Right::new("update", "certificates.k8s.io", "certificatesigningrequests/approval"));
        self.need(Right::new("approve", "certificates.k8s.io", "signers").on(signer));
    }

    async fn require(&self, hub: &Cluster, purpose: &str) -> Result<(), Failure> {
        if self.0.is_empty() { Ok(()) } else { require(hub, purpose, &self.0).await }
    }
}

/// Carries out decisions, `at_once` clusters at a time, and hands over each row in the order of the candidates.
pub async fn carry_out(
    hub: &Cluster,
    candidates: Vec<Candidate>,
    dry_run: DryRun,
    at_once: usize,
    narrator: &dyn Narrator,
    mut each: impl FnMut(&Row),
) -> Vec<Row> {
    let total = candidates.len();
    let accept = async |candidate: Candidate| {
        let row = one(hub, candidate, dry_run).await;
        if dry_run == DryRun::No && matches!(row.outcome, Outcome::Accepted | Outcome::Approved) {
            narrator.tell(Event::done(format!("accepted {}", row.name)));
        }
        row
    };
    in_order(candidates, at_once, accept, |row, shown| {
        each(row);
        // Each row is shown as it comes; of the count a few are enough where every one is a line of its own.
        if shown.is_multiple_of(50) && shown < total {
            narrator.tell(Event::now(format!("accepting clusters, {shown} of {total}")));
        }
    })
    .await
}

/// Works on `at_once` candidates at a time and hands over each row with the number of rows so far, in the order of the
/// candidates. One that takes long holds up the rows behind it, not the work.
async fn in_order(
    candidates: Vec<Candidate>,
    at_once: usize,
    work: impl AsyncFn(Candidate) -> Row,
    mut each: impl FnMut(&Row, usize),
) -> Vec<Row> {
    let work = &work;
    let mut answers = futures::stream::iter(candidates.into_iter().enumerate())
        .map(|(at, candidate)| async move { (at, work(candidate).await) })
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

/// How often a decision is taken anew when the hub changed under it.
const TRIES: usize = 5;

async fn one(hub: &Cluster, mut candidate: Candidate, dry_run: DryRun) -> Row {
    // What was shown, and agreed to.
    let key = candidate.request().and_then(Request::fingerprint);
    let uid = candidate.cluster.as_ref().and_then(|cluster| cluster.metadata.uid.clone());
    // The request that this run approved; whatever comes after, that is said.
    let mut approved: Option<String> = None;
    for attempt in 1.. {
        let other = candidate.request().and_then(Request::fingerprint) != key
            || candidate.cluster.as_ref().and_then(|cluster| cluster.metadata.uid.clone()) != uid;
        if attempt > 1 && other && matches!(candidate.decision, Decision::Act { .. }) {
            candidate.decision = Decision::Refused(Refusal {
                code: Code::KeyChanged,
                detail: "it asked anew, with another key or as another registration, in the meantime".to_owned(),
                help: Some(Help::Again),
            });
        }
        let row = row(&candidate);
        let Decision::Act { approve, accept, .. } = candidate.decision.clone() else {
            return after_approval(row, approved);
        };
        if dry_run == DryRun::Client {
            return row;
        }
        let failure = match act(hub, &candidate, approve, accept, dry_run, &mut approved).await {
            Ok(()) => return row,
            Err(failure) => failure,
        };
        // Somebody else decided or changed something in between: look again and decide anew, never blindly.
        if failure.reason != Reason::Conflict || attempt == TRIES {
            return after_approval(failed(&candidate, &failure), approved);
        }
        let scope = Scope::Names(vec![candidate.name.clone()]);
        candidate = match survey(hub, &scope, &candidate.options).await {
            Ok(again) => match again.into_iter().next() {
                Some(again) => again,
                None => return after_approval(failed(&candidate, &failure), approved),
            },
            Err(failure) => return after_approval(failed(&candidate, &failure), approved),
        };
    }
    unreachable!("the loop returns within its tries")
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
    approved: &mut Option<String>,
) -> Result<(), Failure> {
    // The request first: a cluster must never be accepted whose request was not approved.
    if let Some((request, object)) = approve.and_then(|index| candidate.requests.get(index)) {
        let key = request.fingerprint().unwrap_or_default();
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
            *approved = Some(request.name.clone());
        }
    }
    if accept && let Some(cluster) = &candidate.cluster {
        set_accepted(hub, cluster, true, dry_run).await?;
    }
    Ok(())
}

/// Adds a condition to exactly the request that was looked at: its UID and resource version go along.
async fn decide_request(
    hub: &Cluster,
    object: &CertificateSigningRequest,
    kind: &str,
    reason: &str,
    message: &str,
    dry_run: DryRun,
) -> Result<(), Failure> {
    let api: Api<CertificateSigningRequest> = Api::all(hub.client.clone());
    let name = object.metadata.name.clone().unwrap_or_default();
    let mut object = object.clone();
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
    api.replace_subresource("approval", &name, &params, &object)
        .await
        .map_err(|error| hub.explain(format_args!("decide about request {name}"), error))?;
    Ok(())
}

/// Sets `hubAcceptsClient` on exactly the cluster that was looked at: its UID goes along, and to accept it, also its
/// resource version. To deny it must not fail because its agent reports something in the same moment.
async fn set_accepted(hub: &Cluster, cluster: &ManagedCluster, accepted: bool, dry_run: DryRun) -> Result<(), Failure> {
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
    api.patch(&name, &params, &Patch::Merge(patch))
        .await
        .map_err(|error| hub.explain(format_args!("{verb} managed cluster {name:?}"), error))?;
    Ok(())
}

/// What carrying out the decision comes to, if nothing fails.
fn row(candidate: &Candidate) -> Row {
    let request = candidate.request();
    let newest = || candidate.requests.iter().map(|(request, _)| request).max_by_key(|request| request.created);
    let shown = match &candidate.decision {
        // The keys of others are told apart from its own.
        Decision::Settled { .. } => None,
        _ => request.or_else(newest),
    };
    let (outcome, detail, help) = match &candidate.decision {
        Decision::Act { accept: true, approve, .. } => {
            let how = match (approve, request) {
                (Some(_), _) => "its request is approved",
                (None, Some(_)) => "its request was approved before",
                (None, None) => "its agent holds a certificate already",
            };
            (Outcome::Accepted, how.to_owned(), None)
        }
        Decision::Act { accept: false, .. } => {
            (Outcome::Approved, "it was accepted before; its new request is approved".to_owned(), None)
        }
        Decision::Settled { stray } if stray.is_empty() => {
            (Outcome::AlreadyAccepted, "nothing waits for approval".to_owned(), None)
        }
        Decision::Settled { .. } => {
            let detail = "requests that are not its own ask for its name; they were left alone";
            (Outcome::AlreadyAccepted, detail.to_owned(), Some(Help::Replace))
        }
        Decision::NoRequest => {
            let detail = "the hub has no request of its agent: it has not asked, or what was approved is gone";
            (Outcome::NoRequest, detail.to_owned(), Some(Help::WithoutRequest))
        }
        Decision::Refused(Refusal { code, detail, help }) => (Outcome::Refused(*code), detail.clone(), help.clone()),
    };
    Row {
        name: candidate.name.clone(),
        outcome,
        detail,
        help,
        stray: candidate.stray(),
        cluster_set: candidate.labels().get(labels::CLUSTER_SET).cloned(),
        labels: candidate.labels().into_iter().filter(|(key, _)| key != labels::CLUSTER_SET).collect(),
        fingerprint: shown.and_then(Request::fingerprint),
        requester: shown.map(|request| request.asked_by().to_owned()),
        request: request.map(|request| request.name.clone()),
    }
}

fn failed(candidate: &Candidate, failure: &Failure) -> Row {
    Row { outcome: Outcome::Failed(failure.reason), detail: failure.to_string(), help: None, ..row(candidate) }
}

/// Denies: every request that waits gets a denial with `reason`, and an accepted cluster loses its acceptance.
pub async fn deny(
    hub: &Cluster,
    candidates: Vec<Candidate>,
    reason: &str,
    dry_run: DryRun,
    at_once: usize,
    mut each: impl FnMut(&Row),
) -> Vec<Row> {
    in_order(candidates, at_once, async |candidate| deny_one(hub, candidate, reason, dry_run).await, |row, _| each(row))
        .await
}

async fn deny_one(hub: &Cluster, candidate: Candidate, reason: &str, dry_run: DryRun) -> Row {
    let waiting: Vec<&(Request, CertificateSigningRequest)> = candidate.waiting().collect();
    let accepted = candidate.is_accepted();
    let row = row(&candidate);
    if waiting.is_empty() && !accepted {
        let (outcome, detail) = match candidate.cluster {
            Some(_) => (Outcome::AlreadyDenied, "nothing waits for approval"),
            None => (Outcome::Refused(Code::NoManagedCluster), "the hub has no managed cluster of this name"),
        };
        return Row { outcome, detail: detail.to_owned(), help: None, stray: Vec::new(), ..row };
    }
    // The acceptance first: with it the agent loses its rights, whatever becomes of the requests.
    let mut failures = Vec::new();
    let mut withdrawn = accepted;
    if dry_run != DryRun::Client
        && accepted
        && let Some(cluster) = &candidate.cluster
        && let Err(failure) = set_accepted(hub, cluster, false, dry_run).await
    {
        withdrawn = false;
        failures.push(failure);
    }
    let mut denied = Vec::new();
    for (request, object) in &waiting {
        let result = match dry_run {
            DryRun::Client => Ok(()),
            _ => deny_request(hub, object, reason, dry_run).await,
        };
        match result {
            Ok(()) => denied.push(request.name.as_str()),
            Err(failure) => failures.push(failure),
        }
    }
    let detail = match (withdrawn, denied.as_slice()) {
        (true, []) => "it is no longer accepted".to_owned(),
        (true, names) => format!("it is no longer accepted, and {} denied", names.join(", ")),
        (false, []) => "nothing was changed".to_owned(),
        (false, names) => format!("{} denied", names.join(", ")),
    };
    let request = denied.last().map(|name| (*name).to_owned());
    let (outcome, detail) = match failures.first() {
        None => (Outcome::Denied, detail),
        Some(failure) => {
            let all: Vec<String> = failures.iter().map(ToString::to_string).collect();
            (Outcome::Failed(failure.reason), format!("{detail}; {}", all.join("; ")))
        }
    };
    Row { outcome, detail, help: None, stray: Vec::new(), request, ..row }
}

/// Denies a request. One that changed in the meantime is looked at again; one that is gone or decided needs no denial.
async fn deny_request(
    hub: &Cluster,
    object: &CertificateSigningRequest,
    reason: &str,
    dry_run: DryRun,
) -> Result<(), Failure> {
    let api: Api<CertificateSigningRequest> = Api::all(hub.client.clone());
    let name = object.metadata.name.clone().unwrap_or_default();
    let mut object = object.clone();
    for attempt in 1.. {
        let failure = match decide_request(hub, &object, "Denied", DENIAL_REASON, reason, dry_run).await {
            Ok(()) => return Ok(()),
            Err(failure) => failure,
        };
        match failure.reason {
            Reason::NotFound => return Ok(()),
            Reason::Conflict if attempt < TRIES => {}
            _ => return Err(failure),
        }
        let again = api.get_opt(&name).await;
        match again.map_err(|error| hub.explain(format_args!("read request {name}"), error))? {
            Some(again) if again.metadata.uid == object.metadata.uid => object = again,
            _ => return Ok(()),
        }
        match Request::read(&object).state {
            State::Pending => {}
            State::Denied | State::Failed => return Ok(()),
            State::Approved | State::Issued => {
                return Err(Failure::new(Reason::Conflict, format!("request {name} was approved in the meantime")));
            }
        }
    }
    unreachable!("the loop returns within its tries")
}

/// Accepts one cluster as soon as it has asked, waiting until `deadline`; for callers that already know that they
/// mean it, like a join with access to both clusters.
///
/// # Errors
/// [`Reason::Refused`] with the rule, [`Reason::TimedOut`], or what the hub said.
pub async fn when_asked(
    hub: &Cluster,
    name: &str,
    options: &Options,
    deadline: Instant,
    narrator: Arc<dyn Narrator>,
) -> Result<Row, Failure> {
    let scope = Scope::Names(vec![name.to_owned()]);
    let doing = format!("waiting for the certificate request of {name}");
    let candidate = until(&doing, deadline, Duration::from_secs(1), narrator.as_ref(), async || {
        let found = survey(hub, &scope, options).await?.into_iter().next();
        Ok(match found {
            Some(candidate) if !still_waits(&candidate.decision) => Look::Ready(candidate),
            Some(candidate) => Look::NotYet(row(&candidate).detail),
            None => Look::NotYet(String::new()),
        })
    })
    .await?;
    check_rights(hub, std::slice::from_ref(&candidate)).await?;
    let row = one(hub, candidate, DryRun::No).await;
    match row.outcome {
        Outcome::Refused(_) | Outcome::NoRequest => {
            Err(Failure::refused(format!("{name} is not accepted: {}", row.outcome.code()))
                .because(row.detail)
                .hint(format!("look at what is wrong: kubectl ocm accept {name}")))
        }
        Outcome::Failed(reason) => Err(Failure::new(reason, format!("{name} is not accepted")).because(row.detail)),
        _ => Ok(row),
    }
}

/// Whether time alone may change the decision: the agent may register, or ask.
pub fn still_waits(decision: &Decision) -> bool {
    match decision {
        Decision::NoRequest => true,
        Decision::Refused(refusal) => refusal.code == Code::NoManagedCluster,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rows_come_in_order_and_nobody_waits_for_the_slow() {
        let candidate = |name: usize| Candidate {
            name: name.to_string(),
            cluster: None,
            requests: Vec::new(),
            options: Options::default(),
            decision: Decision::NoRequest,
        };
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
