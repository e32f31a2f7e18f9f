//! Accepting and denying clusters: look, decide, approve exactly what was looked at, then accept; or say only that
//! somebody approves.

mod approve_only;
mod break_glass;
mod carry_out;
mod deny;
mod explain;
mod wait;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_api::ManagedCluster;
use ocm_api::names::{hub as hub_names, labels, signers};
use ocm_core::accept::{Decision, Found, Help, Options, Refusal, decide};
use ocm_core::csr::{Code, Request, State};
use ocm_core::phase::{Phase, standing};
use ocm_core::{Event, Failure, Narrator, Reason};
use ocm_kube::Cluster;
use ocm_kube::access::{Right, require};

pub use approve_only::{Approval, Giving, check_rights_to_approve, only_told, prepare};
pub use carry_out::{Limits, carry_out};
pub use deny::deny;
pub use explain::{Explained, Obstacle, explained};
pub use wait::{Watch, look, patiently, still_waits, when_asked};

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
    /// Its requests.
    pub requests: Vec<Request>,
    /// The object of the one that is to be approved, if it was kept.
    object: Option<Arc<CertificateSigningRequest>>,
    /// Users besides the usual ones whom the hub lets register clusters.
    pub bound_accounts: Vec<String>,
    /// Why nobody looked at what the policy controller has noted of its name, in a sentence; none: it was looked at, or
    /// there is no such thing.
    pub unread: Option<String>,
    /// What the decision was made with, and will be again if the hub changes.
    pub options: Options,
    /// What is to be done.
    pub decision: Decision,
}

impl Candidate {
    /// The request that the decision stands on.
    pub fn request(&self) -> Option<&Request> {
        match &self.decision {
            Decision::Act { stands_on: Some(index), .. } => self.requests.get(*index),
            _ => None,
        }
    }

    /// The requests that a denial is about.
    fn waiting(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(|request| request.state == State::Pending && !request.is_addons())
    }

    /// One of which nothing is known.
    #[cfg(test)]
    fn unknown(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            cluster: None,
            requests: Vec::new(),
            object: None,
            bound_accounts: Vec::new(),
            unread: None,
            options: Options::default(),
            decision: Decision::NoRequest,
        }
    }

    /// The labels of the cluster.
    pub fn labels(&self) -> BTreeMap<String, String> {
        self.cluster.as_ref().and_then(|cluster| cluster.metadata.labels.clone()).unwrap_or_default()
    }

    /// Pending requests for the name that are left alone.
    fn stray(&self) -> Vec<(String, Option<String>)> {
        let Decision::Settled { stray } = &self.decision else { return Vec::new() };
        let requests = stray.iter().filter_map(|index| self.requests.get(*index));
        requests.map(|request| (request.name.clone(), request.fingerprint())).collect()
    }

    /// The keys of those who ask for the name, and the ones that were approved for it.
    fn keys_of_others(&self) -> (Vec<String>, Vec<String>) {
        let asks = self.stray().into_iter().filter_map(|(_, key)| key).collect::<BTreeSet<_>>();
        let granted = |request: &&Request| {
            matches!(request.state, State::Approved | State::Issued) && request.facts().is_first_of(&self.name)
        };
        let holds = self.requests.iter().filter(granted);
        let holds: BTreeSet<String> =
            holds.filter_map(Request::fingerprint).filter(|key| !asks.contains(key)).collect();
        (asks.into_iter().collect(), holds.into_iter().collect())
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
    /// The person's approval of the cluster, by its name.
    pub approval: Option<String>,
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
    /// The person's approval of it is written.
    ApprovalWritten,
    /// The person approved it before.
    AlreadyApproved,
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
    let mut registry = Registry::read(hub, scope).await?;
    let names = names(&registry, scope);
    Ok(names.into_iter().map(|name| candidate(&mut registry, name, options)).collect())
}

/// The clusters of a scope that are looked at.
fn names(registry: &Registry, scope: &Scope) -> Vec<String> {
    match scope {
        Scope::Names(names) => names.clone(),
        Scope::Selector(_) => registry.clusters.keys().cloned().collect(),
        Scope::All => registry
            .clusters
            .iter()
            .filter(|(_, cluster)| standing(cluster).phase == Phase::Pending)
            .map(|(name, _)| name.clone())
            .collect(),
    }
}

fn candidate(registry: &mut Registry, name: String, options: &Options) -> Candidate {
    looked_at(registry, name, options, |_, _| ()).0
}

/// A cluster with the decision about it, and with what is made of that and of what was found.
fn looked_at<T>(
    registry: &mut Registry,
    name: String,
    options: &Options,
    make: impl FnOnce(&Found<'_>, &Decision) -> T,
) -> (Candidate, T) {
    let cluster = registry.clusters.get(&name).cloned();
    let asked = registry.requests.remove(&name).unwrap_or_default();
    let requests: Vec<&Request> = asked.iter().map(|asked| &asked.request).collect();
    let found = Found {
        cluster: cluster.as_ref(),
        namespace: registry.namespace_of(&name),
        role_created: registry.role_created(&name),
        registration: registry.registration(&name),
        requests: &requests,
        bound_accounts: &registry.bound_accounts,
        now: Some(Timestamp::now()),
    };
    let decision = decide(&name, &found, options);
    let made = make(&found, &decision);
    let (bound_accounts, unread) = (registry.bound_accounts.clone(), registry.unread.clone());
    let object = match decision {
        Decision::Act { approve: Some(index), .. } => asked.get(index).and_then(|asked| asked.object.clone()),
        _ => None,
    };
    let requests = asked.into_iter().map(|asked| asked.request).collect();
    let options = options.clone();
    (Candidate { name, cluster, requests, object, bound_accounts, unread, options, decision }, made)
}

/// Tells what nobody could look at, which is the same for all clusters, where it would have counted.
pub fn tell_unread(candidates: &[Candidate], narrator: &dyn Narrator) {
    let unread = candidates.iter().filter(|candidate| !candidate.options.reuse_name);
    if let Some(why) = unread.filter_map(|candidate| candidate.unread.as_ref()).next() {
        narrator.tell(Event::note(why));
    }
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

/// Fails before anything is touched unless the user may do anything of it: withdraw acceptances, or deny requests where there
/// is none to withdraw. What requests a user may not deny is found out one by one: anybody with a token can create some, which
/// must not keep the hub from withdrawing.
///
/// # Errors
/// [`Reason::Forbidden`] naming the right that is missing.
pub async fn check_rights_to_deny(hub: &Cluster, candidates: &[Candidate]) -> Result<(), Failure> {
    let mut rights = Rights::default();
    if candidates.iter().any(Candidate::is_accepted) {
        rights.need(Right::new("patch", "cluster.open-cluster-management.io", "managedclusters"));
    } else if candidates.iter().any(|candidate| candidate.waiting().next().is_some()) {
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

/// What carrying out the decision comes to, if nothing fails.
fn row(candidate: &Candidate) -> Row {
    let request = candidate.request();
    let newest = || candidate.requests.iter().max_by_key(|request| request.created);
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
            let (asks, holds) = candidate.keys_of_others();
            (Outcome::AlreadyAccepted, detail.to_owned(), Some(Help::Replace { asks, holds }))
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
        approval: None,
    }
}

fn failed(candidate: &Candidate, failure: &Failure) -> Row {
    Row { outcome: Outcome::Failed(failure.reason), detail: failure.to_string(), help: None, ..row(candidate) }
}
