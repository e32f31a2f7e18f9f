//! What becomes of a fleet.

use futures::future::{LocalBoxFuture, Shared};
use ocm_core::phase::Phase;
use ocm_core::plan::Applied;
use ocm_core::{Failure, Plan};

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

impl Outcome {
    /// The word for it, where it was for real and where it was only looked at.
    pub const fn word(&self, for_real: bool) -> &'static str {
        match (self, for_real) {
            (Self::Changed, true) => "Changed",
            (Self::Changed, false) => "WouldChange",
            (Self::Unchanged, _) => "Unchanged",
            (Self::Failed(_), _) => "Failed",
            (Self::NotTried, _) => "NotTried",
        }
    }
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
pub(super) type Installation<'a> = Shared<LocalBoxFuture<'a, Row>>;
