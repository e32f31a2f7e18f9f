//! The wait until a hub is usable: its operator, its conditions, every Deployment, and every webhook with an answer.

use std::time::{Duration, Instant};

use ocm_api::ClusterManager;
use ocm_core::install::health::{Finding, HubFacts, judge};
use ocm_core::install::mode::is_hosted;
use ocm_core::{Failure, Narrator};
use ocm_kube::Cluster;
use ocm_kube::wait::{Check, until_triggered};

use crate::observe::hub::{asks_webhooks, observe, probes, triggers};

/// Time between two checks where no watch says when to check.
const PAUSE: Duration = Duration::from_millis(500);

/// The hub that is waited for.
pub(crate) struct Awaited<'a> {
    /// Where its ClusterManager is.
    pub(crate) cluster: &'a Cluster,
    /// The hub itself, where it is hosted on that cluster; none: its webhooks are not waited for.
    pub(crate) api: Option<&'a Cluster>,
    /// Name of its ClusterManager.
    pub(crate) hub: &'a str,
    /// What is done meanwhile, as a participle.
    pub(crate) doing: &'a str,
}

impl Awaited<'_> {
    /// Waits until the hub is usable, and `rest` finds nothing that is missing besides: it is asked only about a hub of which
    /// nothing else is.
    ///
    /// # Errors
    /// [`Reason::TimedOut`](ocm_core::Reason::TimedOut) with what held it up last, and the object that this is about; or a
    /// failure that does not pass by itself.
    pub(crate) async fn until(
        &self,
        deadline: Instant,
        narrator: &dyn Narrator,
        mut rest: impl AsyncFnMut(&ClusterManager) -> Result<Option<String>, Failure>,
    ) -> Result<(), Failure> {
        let mut about = None;
        let triggers = triggers(self.cluster, self.hub);
        until_triggered(self.doing, deadline, PAUSE, triggers, narrator, async || {
            about = None;
            let facts = self.facts().await?;
            let findings = judge(&facts);
            about = findings.first().and_then(Finding::about);
            let is_elsewhere = facts.manager.as_ref().is_ok_and(is_hosted);
            match (findings.first(), &facts.manager) {
                // As of any request that fails: it is made again, later each time.
                (Some(Finding::Unread(trouble)), _) | (None, Err(trouble)) => Err(trouble.clone()),
                // Nothing tells when the API server asks a webhook, or when it answers; nor of a hub that runs elsewhere.
                (Some(first @ (Finding::NotAsked(_) | Finding::Unanswered { .. })), _) => {
                    Ok(Check::Unwatched(first.to_string()))
                }
                (Some(first), _) => Ok(not_yet(first.to_string(), is_elsewhere)),
                (None, Ok(manager)) => {
                    let lack = rest(manager).await?;
                    Ok(lack.map_or(Check::Ready(()), |because| not_yet(because, is_elsewhere)))
                }
            }
        })
        .await
        .map_err(|failure| failure.about(about))
    }

    /// What the hub shows, with answers of its webhooks where nothing else is missing.
    async fn facts(&self) -> Result<HubFacts, Failure> {
        let mut facts = observe(self.cluster, self.api, self.hub).await;
        // No waiting makes it readable.
        if let Some(trouble) = facts.lasting_trouble() {
            return Err(trouble.clone());
        }
        if let Ok(manager) = &facts.manager
            && let Some(api) = asks_webhooks(self.cluster, self.api, manager)
            && judge(&facts).is_empty()
        {
            facts.probes = probes(api, manager).await?;
        }
        Ok(facts)
    }
}

fn not_yet(because: String, is_elsewhere: bool) -> Check<()> {
    if is_elsewhere { Check::Unwatched(because) } else { Check::NotYet(because) }
}
