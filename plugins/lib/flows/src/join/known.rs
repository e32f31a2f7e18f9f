//! What is known about a cluster before anything is planned.

use ocm_core::kubeconfig::{Bootstrap, HubAddress};

use super::driver::Chosen;
use super::fallback::Fallback;
use super::former_hub::FormerHub;
use super::hosted::Guest;
use super::session::HubSession;
use super::survey::Survey;

/// The ways to the hub that a cluster has, with all certificates that stand there.
pub(super) struct Ways {
    /// What its agent registers with.
    pub(super) bootstrap: Option<Bootstrap>,
    /// The way by which it got its certificate.
    pub(super) registered: Option<HubAddress>,
}

impl Ways {
    pub(super) fn of(survey: &Survey) -> Self {
        let registered = survey.found.identity.as_ref().map(|identity| identity.hub.clone());
        Self { bootstrap: survey.found.bootstrap.clone(), registered }
    }

    /// The way that counts: where it is changed, the agent notices.
    pub(super) fn present(&self) -> Option<&HubAddress> {
        self.bootstrap.as_ref().map(|bootstrap| &bootstrap.hub).or(self.registered.as_ref())
    }

    /// Whether the agent registers anew as it is: it got its certificate by another way to the same address, or with another
    /// name of the hub's entry.
    pub(super) fn differ(&self) -> bool {
        self.bootstrap.as_ref().zip(self.registered.as_ref()).is_some_and(|(Bootstrap { hub, .. }, registered)| {
            let is_comparable = registered.is_at(&hub.server) || registered.entry() != hub.entry();
            is_comparable && !registered.is_same_way(hub)
        })
    }
}

/// What is known about the cluster before anything is planned.
pub(super) struct Known<'a> {
    pub(super) hub: HubSession,
    pub(super) survey: Survey,
    pub(super) guest: Option<Guest<'a>>,
    pub(super) ways: Ways,
    pub(super) chosen: Chosen,
    /// How messages name it.
    pub(super) label: String,
    /// The hubs that its agent turns to when this one does not answer.
    pub(super) fallback: Fallback,
    /// The other hub of its list that the agent is at, if it is.
    pub(super) away: Option<String>,
    /// The hub that it leaves for this one, if it is on its way.
    pub(super) former: Option<FormerHub>,
    /// Whether it was to go from this hub to another one, and stays, or comes back.
    pub(super) back: bool,
}
