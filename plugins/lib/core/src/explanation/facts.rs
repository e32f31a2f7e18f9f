//! What was read, and what of it speaks of the cluster that the hub has now.

use jiff::Timestamp;
use ocm_api::registration::{RegistrationKeeper, RegistrationKeptOutBy, RegistrationStatus, RegistrationVerdict};
use ocm_api::{HubPolicy, ManagedCluster, Registration, RegistrationApproval};

use crate::csr::{Request, State};
use crate::{Failure, Reason};

/// What a hub shows of the registration of one cluster, each of it or why it could not be read.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Name of the cluster.
    pub name: String,
    /// The object.
    pub cluster: Result<Option<ManagedCluster>, Failure>,
    /// What the policy controller wrote of it.
    pub registration: Result<Option<Registration>, Failure>,
    /// The certificate requests that carry its label.
    pub requests: Result<Vec<Request>, Failure>,
    /// The policies of the hub.
    pub policies: Result<Vec<HubPolicy>, Failure>,
    /// Approvals of clusters of its name.
    pub approvals: Result<Vec<RegistrationApproval>, Failure>,
    /// The time.
    pub now: Timestamp,
}

impl Facts {
    pub(super) fn cluster(&self) -> Option<&ManagedCluster> {
        self.cluster.as_ref().ok()?.as_ref()
    }

    /// Everything that is written of the name, of whichever cluster.
    pub(super) fn written(&self) -> Option<&RegistrationStatus> {
        self.registration.as_ref().ok()?.as_ref()?.status.as_ref()
    }

    /// Whether the hub knows no Registrations.
    pub(super) fn has_no_engine(&self) -> bool {
        matches!(&self.registration, Err(failure) if failure.reason == Reason::KindNotServed)
    }

    /// What is written of the very cluster that the hub has; of one that is gone or was not read, what is written of the
    /// name.
    pub(super) fn of_cluster(&self) -> Option<&RegistrationStatus> {
        self.written().filter(|status| match (self.cluster(), &status.cluster_uid) {
            (Some(cluster), Some(uid)) => cluster.metadata.uid.as_ref() == Some(uid),
            _ => true,
        })
    }

    /// Whether the controller saw that the hub accepted the very cluster that it has: its conditions may not tell it any more.
    pub(super) fn was_accepted(&self) -> bool {
        let uid = self.cluster().and_then(|cluster| cluster.metadata.uid.as_deref());
        let seen = self.written().and_then(|status| status.accepted_before.as_ref());
        seen.is_some_and(|seen| seen.is_of(uid))
    }

    /// What keeps the cluster out, in the words of the controller. While keys of an earlier cluster of the name may be used
    /// the Registration keeps its UID, and speaks of the request that waits now.
    pub(super) fn waiting_for(&self) -> Option<&str> {
        let status = self.written()?;
        let why = status.waiting_for.as_deref()?;
        let asks = status.request.as_ref().and_then(|request| self.state_of(&request.uid));
        let is_over = self.requests.is_ok() && status.request.is_some() && asks != Some(State::Pending);
        let is_about_it = self.of_cluster().is_some() || (status.decision.is_none() && asks == Some(State::Pending));
        // A request that was approved waits for nothing, but its cluster may wait for acceptance.
        let is_accepted = self.cluster().is_some_and(is_accepted);
        (is_about_it && !(is_over && is_accepted)).then_some(why)
    }

    /// Who keeps the cluster out, where [`waiting_for`](Self::waiting_for) says what does. Releases that did not write it down
    /// wrote no decision where a person has to decide.
    pub(super) fn kept_out_by(&self) -> Option<RegistrationKeptOutBy> {
        self.waiting_for()?;
        let status = self.written()?;
        let known = status.kept_out_by.clone();
        let known = known.filter(|known| !matches!(known.who, RegistrationKeeper::Other(_)));
        Some(known.unwrap_or_else(|| RegistrationKeptOutBy {
            who: match (&status.decision, &status.verdict) {
                (None, _) | (_, RegistrationVerdict::Allow | RegistrationVerdict::NoOpinion) => {
                    RegistrationKeeper::Person
                }
                _ => RegistrationKeeper::Policies,
            },
            policies: Vec::new(),
        }))
    }

    /// What has become of the request of a UID; none where it is not there, or requests were not read.
    pub(super) fn state_of(&self, uid: &str) -> Option<State> {
        let requests = self.requests.as_ref().ok()?;
        requests.iter().find(|request| request.uid.as_deref() == Some(uid)).map(|request| request.state)
    }

    /// Requests for the first certificate of an agent of the cluster about which nobody has decided.
    pub(super) fn pending(&self) -> impl Iterator<Item = &Request> {
        let requests = self.requests.as_ref().map(Vec::as_slice).unwrap_or_default();
        requests.iter().filter(|request| request.state == State::Pending && request.facts().is_first_of(&self.name))
    }
}

/// Whether the hub accepts the cluster.
pub(super) fn is_accepted(cluster: &ManagedCluster) -> bool {
    cluster.spec.hub_accepts_client.unwrap_or_default()
}
