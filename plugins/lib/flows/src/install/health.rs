//! The wait until a hub is usable.

use std::time::{Duration, Instant};

use ocm_core::install::health::judge;
use ocm_core::{Failure, Narrator};
use ocm_kube::Cluster;
use ocm_kube::wait::{Look, until_changed};

use crate::observe::hub::{changes, observe};

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// Waits until the hub is usable: its operator, its conditions, every Deployment, and every webhook with an answer.
///
/// # Errors
/// [`Reason::TimedOut`] with what held it up last; or a failure that does not pass by itself.
pub(super) async fn usable(
    cluster: &Cluster,
    hub: &str,
    timeout: Duration,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let deadline = Instant::now() + timeout;
    let again = "what was applied stays: mend it and run the same command again, it goes on from there";
    let doing = "waiting for the hub to be usable";
    until_changed(doing, deadline, PAUSE, changes(cluster, hub), narrator, async || {
        let findings = judge(&observe(cluster, hub).await?);
        Ok(findings.first().map_or(Look::Ready(()), |first| Look::NotYet(first.to_string())))
    })
    .await
    .map_err(|failure| failure.hint(again))
}
