//! A fleet, and how it is brought up.

use std::time::Duration;

use ocm_core::fleet;
use ocm_core::install::Options;
use ocm_core::plan::Mode;
use ocm_kube::Cluster;

use crate::hub::AddressOptions;

/// How the hub is named among its clusters.
pub(super) const HUB: &str = "hub";

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

impl Fleet {
    /// The names of all that are worked on, in the order of their places: the hub, where it is installed, and the clusters.
    pub fn names(&self) -> Vec<String> {
        let clusters = self.members.iter().map(|member| member.spec.settings.name.clone());
        self.install.iter().map(|_| HUB.to_owned()).chain(clusters).collect()
    }

    /// The place of the first cluster among all that are worked on.
    pub(super) fn first(&self) -> usize {
        usize::from(self.install.is_some())
    }
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
