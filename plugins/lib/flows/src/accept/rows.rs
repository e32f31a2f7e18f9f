//! How clusters came out.

use std::collections::BTreeMap;

use ocm_api::names::labels;
use ocm_core::Failure;
use ocm_core::accept::{Decision, Help, Refusal};
use ocm_core::csr::{Code, Request};
use ocm_core::order::Collect as _;

use super::candidate::Candidate;

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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// The hub did not do what we asked. Where several things failed, the first, with the hints of all.
    Failed(Failure),
}

impl Outcome {
    /// The stable word that scripts match.
    pub fn code(&self) -> String {
        match self {
            Self::Refused(code) => code.to_string(),
            Self::Failed(failure) => failure.reason.to_string(),
            other => format!("{other:?}"),
        }
    }
}

impl Row {
    /// Why it failed, if it did.
    pub fn failure(&self) -> Option<&Failure> {
        match &self.outcome {
            Outcome::Failed(failure) => Some(failure),
            _ => None,
        }
    }
}

/// What carrying out the decision comes to, if nothing fails.
pub(super) fn row(candidate: &Candidate) -> Row {
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
        // Without a request any key that was approved for the name would be let in.
        Decision::NoRequest if candidate.options.fingerprint.is_some() => {
            let (_, others) = candidate.keys_of_others();
            let detail = match others.as_slice() {
                [] => "the hub has no request with the key that is meant: its agent has not asked, or what was approved is gone"
                    .to_owned(),
                others => format!("the hub has no request with the key that is meant, and approved {}", others.join(" and ")),
            };
            (Outcome::NoRequest, detail, Some(Help::Wait))
        }
        Decision::NoRequest => {
            let detail = "the hub has no request of its agent: it has not asked, or what was approved is gone";
            (Outcome::NoRequest, detail.to_owned(), Some(Help::WithoutRequest))
        }
        Decision::Refused(Refusal { code, detail, help, .. }) => {
            (Outcome::Refused(*code), detail.clone(), help.clone())
        }
    };
    Row {
        name: candidate.name.clone(),
        outcome,
        detail,
        help,
        stray: candidate.stray(),
        cluster_set: candidate.labels().get(labels::CLUSTER_SET).cloned(),
        labels: candidate.labels().into_iter().filter(|(key, _)| key != labels::CLUSTER_SET).collect_map(),
        fingerprint: shown.and_then(Request::fingerprint),
        requester: shown.map(|request| request.asked_by().to_owned()),
        request: request.map(|request| request.name.clone()),
        approval: None,
    }
}

pub(super) fn failed(candidate: &Candidate, failure: Failure) -> Row {
    Row { detail: failure.to_string(), outcome: Outcome::Failed(failure), help: None, ..row(candidate) }
}
