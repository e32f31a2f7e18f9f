//! Everything that is known before anything is touched.

use ocm_core::Plan;
use ocm_core::kubeconfig::Bootstrap;
use ocm_kube::Cluster;

use super::fallback::Fallback;
use super::former_hub::FormerHub;
use super::handover::Handover;
use super::hosted::Guest;
use super::moving::Moving;
use super::session::HubSession;
use super::survey::Survey;

/// Everything that is known before anything is touched.
pub(super) struct Prepared<'a> {
    pub(super) hub: HubSession,
    pub(super) survey: Survey,
    /// The managed cluster, where it is another one than that where the agents run.
    pub(super) guest: Option<Guest<'a>>,
    /// Whether the cluster has joined this hub already: then nothing is changed but, perhaps, the way to it, the driver, the
    /// mode, the further hubs, and what was given for its Klusterlet and its operator.
    pub(super) joined: bool,
    /// Whether the hub knows it and its agent registers anew all the same, by the way to the hub of [`kubeconfig`](Self::kubeconfig).
    pub(super) anew: bool,
    /// Where it moves to another mode, and what is known of its former agents.
    pub(super) moving: Option<Moving>,
    pub(super) plan: Plan,
    /// The kubeconfig that the agent registers with.
    pub(super) kubeconfig: Option<Bootstrap>,
    /// Whether the token in the plan and in the kubeconfig is still to be made.
    pub(super) token_is_missing: bool,
    /// Whether the hub's namespace of the cluster's name, which is nobody's yet, becomes its own.
    pub(super) adopts: bool,
    /// Keys that asked in the cluster's name before its agent did.
    pub(super) strangers: Vec<String>,
    /// Whether the agent registers over gRPC.
    pub(super) by_grpc: bool,
    /// The hubs that the agent turns to when this one does not answer.
    pub(super) fallback: Fallback,
    /// Whether something is changed of a cluster that has joined, though its agent does not register anew: its hubs, its token, or
    /// what was given for its Klusterlet and its operator.
    pub(super) is_renewed: bool,
    /// Whether it has joined, as its agent sees it, and the hub has not accepted it yet.
    pub(super) waits: bool,
    /// The other hub of its list that the agent is at, if it is.
    pub(super) away: Option<String>,
    /// Where it registers anew: to whom its name goes.
    pub(super) handover: Option<Handover>,
    /// The hub that it leaves for this one, if it is on its way.
    pub(super) former: Option<FormerHub>,
    /// Whether it was to go from this hub to another one, and stays, or comes back.
    pub(super) back: bool,
}

impl Prepared<'_> {
    /// The cluster on which works are applied, of agents that run on `managed`.
    pub(super) fn works_on<'b>(&'b self, managed: &'b Cluster) -> &'b Cluster {
        self.guest.as_ref().map_or(managed, |guest| guest.account.cluster)
    }

    /// Whether the cluster has joined, and nothing at all is to be done.
    pub(super) fn stays(&self) -> bool {
        self.joined && !self.anew && !self.is_renewed && self.guest.is_none() && self.moving.is_none()
    }
}
