//! The two clusters that faults are made on.

use control_plane::Cluster;

/// A hub, and a managed cluster that has joined it and is well.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    /// The hub.
    pub(super) hub: &'a Cluster,
    /// The managed cluster.
    pub(super) cluster: &'a Cluster,
    /// Its name on the hub.
    pub(super) name: &'a str,
}

/// One of the two clusters.
#[derive(Clone, Copy)]
pub(super) enum On {
    /// The hub.
    Hub,
    /// The managed cluster.
    Managed,
}

impl On {
    pub(super) fn of<'a>(self, pair: &Pair<'a>) -> &'a Cluster {
        match self {
            Self::Hub => pair.hub,
            Self::Managed => pair.cluster,
        }
    }
}
