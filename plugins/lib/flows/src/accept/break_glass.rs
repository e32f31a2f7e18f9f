//! Accepting past policies, in an emergency: the person's approval with breakGlass first, and then as always.

use std::collections::BTreeMap;
use std::time::Duration;

use ocm_core::order::Collect as _;
use ocm_core::{DryRun, Event, Narrator};
use ocm_kube::Cluster;

use super::{Candidate, Giving, Limits, Outcome, Row, carry_out};

/// How long it takes until a webhook that follows approvals has heard of one.
const HEARD: Duration = Duration::from_secs(1);

impl Giving {
    /// Writes the approvals, and accepts the clusters of which there is one. The rows name them, in the order of the
    /// candidates.
    pub async fn accept(
        self,
        hub: &Cluster,
        candidates: Vec<Candidate>,
        dry_run: DryRun,
        limits: Limits,
        narrator: &dyn Narrator,
        mut each: impl FnMut(&Row),
    ) -> Vec<Row> {
        let mut rows = self.give(hub, candidates.clone(), dry_run, limits.at_once, narrator, |_| ()).await;
        if dry_run == DryRun::No && rows.iter().any(|row| row.outcome == Outcome::ApprovalWritten) {
            narrator.tell(Event::now("waiting until the hub's policies know of the approval"));
            tokio::time::sleep(HEARD).await;
        }
        // A dry run leaves no approval on the hub, so policies would refuse what comes after it.
        let dry_run = if dry_run == DryRun::Server { DryRun::Client } else { dry_run };
        let given = |row: &Row| matches!(row.outcome, Outcome::ApprovalWritten | Outcome::AlreadyApproved);
        let accepts = candidates.into_iter().zip(&rows).filter(|(_, row)| given(row)).map(|(candidate, _)| candidate);
        let done = carry_out(hub, accepts.collect(), dry_run, limits, narrator, |_| ()).await;
        let mut done: BTreeMap<String, Row> = done.into_iter().map(|row| (row.name.clone(), row)).collect_map();
        for row in &mut rows {
            if let Some(done) = done.remove(&row.name) {
                *row = Row { approval: row.approval.take(), ..done };
            }
            each(row);
        }
        rows
    }
}
