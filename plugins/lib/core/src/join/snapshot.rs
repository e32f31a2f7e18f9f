//! What both clusters of a join show at one moment, and what is expected of them.

use jiff::Timestamp;

use super::agent::Credential;
use crate::Failure;
use crate::managed::{ManagedFacts, RegistrationFacts};

/// How far a wait goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Goal {
    /// The hub knows the cluster and its request: what is left is the hub's to do.
    Registered,
    /// The hub says that the cluster is available.
    Available,
}

/// What both clusters show at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The managed cluster.
    pub managed: ManagedFacts,
    /// What the hub shows of it.
    pub hub: RegistrationFacts,
    /// What the hub says to the kubeconfig that the agent registers with; none: it was not asked just now.
    pub registrar: Option<Failure>,
    /// What runs of agents that the cluster has in another mode, where it moves to this one: Deployments and pods.
    pub former: Result<Vec<String>, Failure>,
}

/// Which cluster is to get how far.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// Its name.
    pub name: &'a str,
    /// How far.
    pub goal: Goal,
    /// What the hub knows the requests of its agent by.
    pub credential: &'a Credential,
    /// What is known of the certificate that its agent had before, where it registers anew because its way to the hub was
    /// changed, or because that one has ended: what the hub says of the cluster it says of that one. None: it has no other.
    pub anew: Option<Former>,
    /// What is known of the agents that the cluster had before, where it moves to another mode: what the hub has heard of them
    /// says nothing of the new ones. Where its pods change otherwise, nothing is known of them. None: they stay as they are.
    pub moves: Option<Former>,
}

/// An agent with the certificate that it had before it registers anew, or in the mode that the cluster leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Former {
    /// When the agent renewed its lease last as such, as far as that is known.
    pub renewed: Option<Timestamp>,
}
