//! A hub and many clusters, brought up together: the hub's installation and all joins begin at once, and none of them stops
//! the others.
//!
//! ```text
//! hub:      install ─────────────▶ served ─────────────▶ usable
//! cluster:  look, check ▶ wait ───────┴▶ join ▶ accept ────┴▶ labels ▶ set
//! ```

mod hub;
mod member;
mod placing;

use std::sync::Arc;
use std::time::Duration;

use futures::future::{FutureExt as _, LocalBoxFuture, Shared};
use futures::stream::{self, StreamExt as _};
use ocm_core::install::Options;
use ocm_core::phase::Phase;
use ocm_core::plan::{Applied, Mode};
use ocm_core::{Failure, Narrator, Plan, fleet};
use ocm_kube::Cluster;

use self::member::Run;
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

/// What became of the hub or of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// It is now as the file has it, or would be.
    Changed,
    /// It was so before.
    #[default]
    Unchanged,
    /// It did not get there.
    Failed(Failure),
    /// The hub was not installed, so it was not touched.
    NotTried,
}

/// The hub or a cluster, and what became of it.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Name of the cluster; empty of the hub.
    pub name: String,
    /// How messages name the cluster behind it.
    pub label: String,
    /// How far it has come, where that was followed.
    pub phase: Option<Phase>,
    /// The set that it is in by the file.
    pub set: Option<String>,
    /// What was planned, on the cluster where its agents run.
    pub plan: Plan,
    /// Every object of the plan with what became of it.
    pub applied: Vec<Applied>,
    /// What became of it.
    pub outcome: Outcome,
}

impl Row {
    /// Whether it was joined, or would be: on a hub that was there before its installation failed.
    pub(crate) fn is_tried(&self) -> bool {
        self.phase.is_some() || !self.applied.is_empty()
    }
}

/// What became of a fleet.
#[derive(Clone, Debug)]
pub struct BroughtUp {
    /// The hub, if it is installed.
    pub hub: Option<Row>,
    /// The clusters, in the order of the file.
    pub clusters: Vec<Row>,
}

/// The end of the hub's installation, for everybody who waits for it.
type Installation<'a> = Shared<LocalBoxFuture<'a, Row>>;

/// Brings up a hub and its clusters, or does with their plans what the request says.
pub async fn bring_up(fleet: &Fleet, request: &Request, narrator: Arc<dyn Narrator>) -> BroughtUp {
    let coming = fleet.install.as_ref().map(|_| crate::join::Coming::default());
    let installation: Option<Installation<'_>> = fleet.install.as_ref().map(|options| {
        let narrator = narrator.clone();
        let coming = coming.clone().unwrap_or_default();
        hub::install(&fleet.hub, options, request, coming, narrator).boxed_local().shared()
    });
    let run = Run::new(fleet, *request, coming, installation.clone(), narrator);
    let at_once = request.at_once.max(1);
    let each = fleet.members.iter().enumerate().map(|(index, member)| {
        let run = &run;
        async move { (index, run.member(member).await) }
    });
    let clusters = async {
        run.look().await;
        stream::iter(each).buffer_unordered(at_once).collect::<Vec<(usize, Row)>>().await
    };
    let hub = async {
        match installation {
            Some(installation) => Some(installation.await),
            None => None,
        }
    };
    let (hub, mut clusters) = futures::join!(hub, clusters);
    clusters.sort_by_key(|(index, _)| *index);
    BroughtUp { hub, clusters: clusters.into_iter().map(|(_, row)| row).collect() }
}
