//! Carrying out an upgrade: first the operator, and when that has rolled out the custom resource. An operator of before that
//! saw the images of its successor's release would start them as it knows to.

use std::time::{Duration, Instant};

use ocm_api::names::namespaces;
use ocm_core::plan::{Applied, Mode};
use ocm_core::upgrade::Upgrade;
use ocm_core::workload::Health;
use ocm_core::{Failure, Narrator, Remedy};
use ocm_kube::triggers::{Triggers, named};
use ocm_kube::wait::{Check, until_triggered};
use ocm_kube::{Cluster, apply};

use crate::workload;

/// Time between two looks where no watch tells of changes.
pub(super) const PAUSE: Duration = Duration::from_millis(500);

/// Applies both parts of an upgrade, with the wait for the operator between them if there is a deadline. What was applied, and
/// why the operator has not rolled out, if it has not.
///
/// # Errors
/// The failure of a request.
pub(super) async fn carry_out(
    cluster: &Cluster,
    upgrade: &Upgrade,
    operator: &str,
    mode: Mode,
    deadline: Option<Instant>,
    narrator: &dyn Narrator,
    each: &mut (dyn FnMut(&Applied) + '_),
) -> Result<(Vec<Applied>, Option<Failure>), Failure> {
    let mut applied = apply::plan(cluster, &upgrade.operator, mode.dry_run(), narrator, &mut *each).await?;
    if let Some(deadline) = deadline
        && let Err(failure) = operator_ready(cluster, operator, deadline, narrator).await
    {
        return Ok((applied, Some(failure)));
    }
    applied.extend(apply::plan(cluster, &upgrade.resource, mode.dry_run(), narrator, each).await?);
    Ok((applied, None))
}

/// Waits until no pod of the operator is of the state before.
async fn operator_ready(
    cluster: &Cluster,
    name: &str,
    deadline: Instant,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let triggers = Triggers::default().of(workload::deployments(cluster, namespaces::OPERATOR), named(name));
    until_triggered("waiting for the operator to roll out", deadline, PAUSE, triggers, narrator, async || {
        Ok(match workload::deployment(cluster, namespaces::OPERATOR, name).await? {
            Health::Ready => Check::Ready(()),
            Health::NotYet(lack) | Health::Stuck(lack) => Check::NotYet(lack.text()),
        })
    })
    .await
    .map_err(|failure| failure.hint(Remedy::RunAgain))
}

/// Whether anything has changed, or would.
pub(super) fn changed(applied: &[Applied]) -> bool {
    applied.iter().any(|applied| applied.outcome.is_change())
}
