//! Waiting until a namespace is gone.

use std::time::{Duration, Instant};

use kube::Api;
use ocm_api::parts::{Namespace, NamespaceCondition};
use ocm_core::{Failure, Narrator};
use ocm_kube::Cluster;
use ocm_kube::triggers::{Triggers, named};
use ocm_kube::wait::{Check, until_triggered};

/// Time between two looks where no watch tells of changes.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);

/// Conditions of a namespace that is going away and is not empty yet.
const REMAINING: [&str; 2] = ["NamespaceContentRemaining", "NamespaceFinalizersRemaining"];

/// Waits until a namespace that is going away is gone. One that does not go away, or was made anew, is none to wait for.
///
/// # Errors
/// [`ocm_core::Reason::TimedOut`] with what is left in it, or the failure of a request.
pub(crate) async fn namespace_gone(
    cluster: &Cluster,
    name: &str,
    doing: &str,
    deadline: Instant,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let api: Api<Namespace> = Api::all(cluster.client.clone());
    let triggers = Triggers::default().of(api.clone(), named(name));
    until_triggered(doing, deadline, PAUSE, triggers, narrator, async || {
        let found = api.get_opt(name).await;
        let found = found.map_err(|error| cluster.explain(format_args!("read namespace {name:?}"), error))?;
        let Some(found) = found.filter(|found| found.metadata.deletion_timestamp.is_some()) else {
            return Ok(Check::Ready(()));
        };
        let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
        let holds_up = |condition: &&NamespaceCondition| {
            condition.status == "True" && REMAINING.contains(&condition.type_.as_str())
        };
        let remaining = conditions.iter().find(holds_up);
        Ok(Check::NotYet(remaining.and_then(|condition| condition.message.clone()).unwrap_or_default()))
    })
    .await
}
