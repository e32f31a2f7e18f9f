//! What the user has to be allowed, before anything is touched.

use ocm_api::names::{hub as hub_names, signers};
use ocm_core::Failure;
use ocm_core::accept::Decision;
use ocm_kube::Cluster;
use ocm_kube::access::{Right, missing, require};

use super::candidate::Candidate;

/// What rights to deny are missing for, in the sentence about them.
pub(super) const DENY: &str = "deny clusters";

/// Fails before anything is touched unless the user may approve, and accept.
///
/// # Errors
/// [`ocm_core::Reason::Forbidden`] naming every right that is missing.
pub async fn check_rights(hub: &Cluster, candidates: &[Candidate]) -> Result<(), Failure> {
    let mut rights = Rights::default();
    for candidate in candidates {
        let Decision::Act { approve, .. } = &candidate.decision else { continue };
        if approve.is_some() {
            rights.decide(candidate.request().map_or(signers::KUBE_APISERVER_CLIENT, |request| &request.signer));
        }
    }
    let is_accepted = |candidate: &&Candidate| matches!(candidate.decision, Decision::Act { accept: true, .. });
    let names: Vec<&str> = candidates.iter().filter(is_accepted).map(|one| one.name.as_str()).collect();
    for right in to_accept() {
        rights.need_of_each(hub, right, &names).await?;
    }
    rights.require(hub, "accept clusters").await
}

/// The rights to withdraw the acceptance of these clusters that are missing, each with the name of its cluster.
///
/// # Errors
/// When the hub cannot be asked.
pub(super) async fn missing_to_withdraw(hub: &Cluster, names: &[&str]) -> Result<Vec<Right>, Failure> {
    let [patch, _] = to_accept();
    let mut rights = Rights::default();
    rights.need_of_each(hub, patch, names).await?;
    missing(hub, &rights.0).await
}

/// Fails unless the user may deny requests. For which signers is found out one by one: anybody with a token can create requests
/// for any, which must not keep the others from being denied.
///
/// # Errors
/// [`ocm_core::Reason::Forbidden`] naming the right that is missing.
pub(super) async fn require_to_deny_requests(hub: &Cluster) -> Result<(), Failure> {
    let mut rights = Rights::default();
    rights.need(Right::new("update", "certificates.k8s.io", "certificatesigningrequests/approval"));
    rights.require(hub, DENY).await
}

/// The rights on a ManagedCluster of whoever accepts it: to write it, and what the hub's webhook asks for by its name. Upstream:
/// `managedcluster_validating.go`, `allowUpdateAcceptField`.
pub(crate) fn to_accept() -> [Right; 2] {
    [
        Right::new("patch", "cluster.open-cluster-management.io", "managedclusters"),
        Right::new("update", hub_names::REGISTER_GROUP, "managedclusters/accept"),
    ]
}

/// Rights that are needed, each once.
#[derive(Default)]
pub(super) struct Rights(Vec<Right>);

impl Rights {
    pub(super) fn need(&mut self, right: Right) {
        if !self.0.contains(&right) {
            self.0.push(right);
        }
    }

    /// A right on each of these objects: most may do it with every one, and there may be many.
    pub(super) async fn need_of_each(&mut self, hub: &Cluster, right: Right, names: &[&str]) -> Result<(), Failure> {
        if !names.is_empty() && !missing(hub, std::slice::from_ref(&right)).await?.is_empty() {
            names.iter().for_each(|name| self.need(right.clone().on(name)));
        }
        Ok(())
    }

    /// To approve or deny requests for a signer.
    fn decide(&mut self, signer: &str) {
        self.need(Right::new("update", "certificates.k8s.io", "certificatesigningrequests/approval"));
        self.need(Right::new("approve", "certificates.k8s.io", "signers").on(signer));
    }

    pub(super) async fn require(&self, hub: &Cluster, purpose: &str) -> Result<(), Failure> {
        if self.0.is_empty() { Ok(()) } else { require(hub, purpose, &self.0).await }
    }
}
