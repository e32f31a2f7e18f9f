//! A fleet, and how it is brought up.

use std::time::Duration;

use ocm_core::fleet;
use ocm_core::install::Options;
use ocm_core::plan::Mode;
use ocm_kube::Cluster;

use crate::hub::AddressOptions;

/// A hub and its clusters, with a client of each.
#[derive(Clone)]
pub struct Fleet {
    /// The hub.
    pub hub: Cluster,
    /// Where agents find it.
    pub address: AddressOptions,
    /// How it is installed; none: it is there, and stays as it is.
    pub install: Option<Options>,
    /// The clusters.
    pub members: Vec<Member>,
}

/// A cluster of a fleet.
#[derive(Clone)]
pub struct Member {
    /// What the file says of it.
    pub spec: fleet::Member,
    /// The cluster on which its agents run.
    pub agents: Cluster,
    /// The cluster itself, where its agents run on another one.
    pub guest: Option<Cluster>,
}

impl Member {
    /// The cluster itself.
    pub(crate) fn joining(&self) -> &Cluster {
        self.guest.as_ref().unwrap_or(&self.agents)
    }
}

/// How a fleet is brought up.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// What is done with the plans.
    pub mode: Mode,
    /// How long the hub, and then each cluster, may take.
    pub timeout: Duration,
    /// How many clusters are worked on at once.
    pub at_once: usize,
}
