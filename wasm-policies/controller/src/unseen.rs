//! What this controller has written and is not shown yet. Whoever counts, and whoever looks at the same cluster, waits for it.

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_api::ManagedCluster;
use ocm_policy_abi::EvidenceSource;

use crate::failed::Failed;
use crate::joins::{Joins, LOOKS, Written};

/// What was written has arrived within this time, or nobody can tell when it will: its watch may have been refused, or the hub
/// have gone back to an earlier state.
const ARRIVES: Duration = Duration::from_secs(30);

impl Joins {
    fn unseen(&self) -> MutexGuard<'_, Vec<Written>> {
        self.unseen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether policies would be shown what was written, or what came after it, and this controller itself is.
    fn is_shown(&self, one: &Written) -> bool {
        let is_cluster = one.source == EvidenceSource::Clusters;
        let is_known = || self.hub.version(&one.name).is_none_or(|known| known >= one.version);
        self.knowledge.has_seen(&one.source, one.version) && (!is_cluster || is_known())
    }

    /// Waits until all of that is shown, or this process leads no more, but not for ever: other registrations wait for it. What has
    /// not arrived by then is remembered.
    pub(crate) async fn until_shown(&self, written: &[Written]) -> Result<(), Failed> {
        let shown = async {
            while !written.iter().all(|one| self.is_shown(one)) {
                self.effects.send(async { Ok(()) }).await?;
                tokio::time::sleep(LOOKS).await;
            }
            Ok::<_, Failed>(())
        };
        if let Ok(shown) = tokio::time::timeout(ARRIVES, shown).await {
            return shown;
        }
        self.unseen().extend(written.iter().filter(|one| !self.is_shown(one)).cloned());
        Err(Failed::Unseen)
    }

    /// Whether something that was written is not shown yet: of this cluster, or anything.
    pub(crate) async fn is_behind(&self, cluster: Option<&str>) -> Result<bool, Failed> {
        let remembered = self.unseen().clone();
        let mut is_behind = false;
        for one in remembered {
            let concerns = match cluster {
                Some(name) => one.source == EvidenceSource::Clusters && one.name == name,
                None => true,
            };
            if !concerns {
                continue;
            }
            // A hub that has gone back to an earlier state will never show it.
            if self.is_shown(&one) || self.version_of(&one).await? < one.version {
                self.unseen().retain(|other| *other != one);
            } else {
                is_behind = true;
            }
        }
        Ok(is_behind)
    }

    /// The resource version that the hub has of an object now.
    async fn version_of(&self, one: &Written) -> Result<u64, Failed> {
        match one.source {
            EvidenceSource::Csrs => self.effects.version::<CertificateSigningRequest>(&one.name).await,
            _ => self.effects.version::<ManagedCluster>(&one.name).await,
        }
    }
}
