//! The wait until a hub is usable.

use std::time::{Duration, Instant};

use ocm_core::install::health::{Finding, judge};
use ocm_core::install::mode::is_hosted;
use ocm_core::{Failure, Narrator};
use ocm_kube::Cluster;
use ocm_kube::wait::{Check, until_triggered};

use crate::observe::hub::{observe, triggers};

/// Time between two checks where no watch says when to check.
const PAUSE: Duration = Duration::from_millis(500);

/// Waits until the hub is usable: its operator, its conditions, every Deployment, and every webhook with an answer. `api` is
/// the hub itself, where it is hosted on this cluster.
///
/// # Errors
/// [`Reason::TimedOut`] with what held it up last; or a failure that does not pass by itself.
pub(super) async fn usable(
    cluster: &Cluster,
    api: Option<&Cluster>,
    hub: &str,
    timeout: Duration,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let deadline = Instant::now() + timeout;
    let again = "what was applied stays: mend it and run the same command again, it goes on from there";
    let doing = "waiting for the hub to be usable";
    let mut about = None;
    until_triggered(doing, deadline, PAUSE, triggers(cluster, hub), narrator, async || {
        about = None;
        let facts = observe(cluster, api, hub).await?;
        let findings = judge(&facts);
        about = findings.first().and_then(Finding::about);
        let Some(first) = findings.first() else { return Ok(Check::Ready(())) };
        // Nothing tells when the API server asks a webhook, or when it answers; nor of a hub that runs elsewhere.
        let is_answer = matches!(first, Finding::NotAsked(_) | Finding::Unanswered { .. });
        match is_answer || is_hosted(&facts.manager) {
            true => Ok(Check::Unwatched(first.to_string())),
            false => Ok(Check::NotYet(first.to_string())),
        }
    })
    .await
    .map_err(|failure| failure.about(about).hint(again))
}
