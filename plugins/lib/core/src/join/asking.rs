//! The agent of a join and what it asks the hub for.

use jiff::Timestamp;

use super::snapshot::{Expected, Snapshot};
use crate::csr::{Request, State};
use crate::shell::shell;

/// The agent and its requests.
pub(super) struct Asking<'a> {
    /// Whether it holds a certificate.
    pub(super) is_let_in: bool,
    /// Whether it registers anew: certificates that were issued before do not count.
    anew: bool,
    /// Anybody with a token can ask in the cluster's name; what counts is what its own agent asks for.
    requests: Vec<&'a Request>,
}

impl<'a> Asking<'a> {
    pub(super) fn of(snapshot: &'a Snapshot, expected: &Expected<'_>, now: Timestamp) -> Self {
        let identity = snapshot.managed.identity.as_ref().ok().cloned().unwrap_or_default();
        let agent = identity.agent(expected.name, now);
        let own = |request: &&Request| !request.is_addons() && agent.made(expected.credential, request) != Some(false);
        let requests = snapshot.hub.requests.iter().flatten().filter(own).collect();
        Self { is_let_in: agent.key.is_some(), anew: expected.anew.is_some(), requests }
    }

    /// Whether a request waits or was granted.
    pub(super) fn asks(&self) -> bool {
        self.requests.iter().any(|request| match request.state {
            State::Pending | State::Approved => true,
            State::Issued => !self.anew,
            State::Denied | State::Failed => false,
        })
    }

    /// The newest request.
    fn newest(&self) -> Option<&'a Request> {
        self.requests.iter().max_by_key(|request| request.created).copied()
    }

    /// Whether somebody has to approve the newest request.
    pub(super) fn is_pending(&self) -> bool {
        self.newest().is_some_and(|request| request.state == State::Pending)
    }

    /// What keeps it from its certificate.
    pub(super) fn waits_for(&self, name: &str) -> String {
        if self.is_let_in {
            return "it has its certificate and restarts with it".to_owned();
        }
        match self.newest().map(|request| (request.state, &request.name)) {
            None => "the agent has not asked for a certificate".to_owned(),
            Some((State::Pending, request)) if self.anew => format!(
                "request {request} of its new key waits for an administrator of the hub: kubectl ocm accept {name} says how \
                 the name goes to that key"
            ),
            Some((State::Pending, _)) => {
                format!("its certificate request waits: an administrator of the hub types kubectl ocm accept {name}")
            }
            Some((State::Approved, request)) => {
                format!("request {request} is approved, but the hub's signer has not issued the certificate")
            }
            Some((State::Issued, request)) => format!("the certificate of request {request} is there to be fetched"),
            Some((State::Denied, request)) => {
                let named = shell(&format!("csr/{request}"));
                format!("request {request} was denied; to let the agent ask again, on the hub: kubectl delete {named}")
            }
            Some((State::Failed, request)) => format!("the hub's signer refuses request {request}"),
        }
    }
}
