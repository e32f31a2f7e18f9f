//! A cluster with what was found of it, and what is to be done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_api::ManagedCluster;
use ocm_core::accept::{Decision, Options};
use ocm_core::csr::{Request, State};
use ocm_core::order::Collect as _;

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
    pub(super) object: Option<Arc<CertificateSigningRequest>>,
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
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(|request| request.state == State::Pending && !request.is_addons())
    }

    /// One of which nothing is known.
    #[cfg(test)]
    pub(super) fn unknown(name: &str) -> Self {
        Self::alone(name.to_owned(), None, &Options::default())
    }

    /// One of which nothing but its object is read.
    pub(super) fn alone(name: String, cluster: Option<ManagedCluster>, options: &Options) -> Self {
        Self {
            name,
            cluster,
            requests: Vec::new(),
            object: None,
            bound_accounts: Vec::new(),
            unread: None,
            options: options.clone(),
            decision: Decision::NoRequest,
        }
    }

    /// The labels of the cluster.
    pub fn labels(&self) -> BTreeMap<String, String> {
        self.cluster.as_ref().and_then(|cluster| cluster.metadata.labels.clone()).unwrap_or_default()
    }

    /// Pending requests for the name that are left alone.
    pub(super) fn stray(&self) -> Vec<(String, Option<String>)> {
        let Decision::Settled { stray } = &self.decision else { return Vec::new() };
        let requests = stray.iter().filter_map(|index| self.requests.get(*index));
        requests.map(|request| (request.name.clone(), request.fingerprint())).collect()
    }

    /// The keys of those who ask for the name, and the ones that were approved for it.
    pub(super) fn keys_of_others(&self) -> (Vec<String>, Vec<String>) {
        let asks = self.stray().into_iter().filter_map(|(_, key)| key).collect_set();
        let granted = |request: &&Request| {
            matches!(request.state, State::Approved | State::Issued) && request.facts().is_first_of(&self.name)
        };
        let holds = self.requests.iter().filter(granted);
        let holds: BTreeSet<String> =
            holds.filter_map(Request::fingerprint).filter(|key| !asks.contains(key)).collect_set();
        (asks.into_iter().collect(), holds.into_iter().collect())
    }

    pub(super) fn is_accepted(&self) -> bool {
        self.cluster.as_ref().is_some_and(|cluster| cluster.spec.hub_accepts_client.unwrap_or_default())
    }
}
