//! Whether the hub accepts clusters by itself, with the feature gate ManagedClusterAutoApproval.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kube::Api;
use kube::api::ListParams;
use ocm_api::operator::ClusterManager;
use ocm_core::install::feature_gates::accepts_clusters;
use ocm_core::{Failure, Reason};
use ocm_kube::{Cluster, explain};

/// How long the hub may take to tell what it does by itself.
const ANSWER: Duration = Duration::from_secs(8);

/// Whether the hub accepts clusters by itself. It does until the opposite is known.
pub(crate) struct AutoApproval {
    is_on: AtomicBool,
    /// Why that could not be told the last time.
    unknown: Mutex<Option<String>>,
}

impl Default for AutoApproval {
    fn default() -> Self {
        Self { is_on: AtomicBool::new(true), unknown: Mutex::default() }
    }
}

impl AutoApproval {
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Looks at the hub. Where that cannot be told it is what it was; why, said once.
    pub(crate) async fn look(&self, hub: &Cluster) -> Option<String> {
        let api: Api<ClusterManager> = Api::all(hub.client.clone());
        let found = tokio::time::timeout(ANSWER, api.list(&ListParams::default())).await;
        self.learn(match found {
            Ok(Ok(found)) => Ok(accepts_clusters(&found.items)),
            Ok(Err(error)) => of_failure(explain(&error)),
            Err(_) => Err(format!("the hub has not answered within {} seconds", ANSWER.as_secs())),
        })
    }

    fn learn(&self, found: Result<bool, String>) -> Option<String> {
        let mut unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        match found {
            Ok(is_on) => {
                self.is_on.store(is_on, Ordering::Relaxed);
                *unknown = None;
                None
            }
            Err(why) => {
                let is_new = unknown.as_ref() != Some(&why);
                let taken = if self.is_on() { "does" } else { "does not" };
                let told = format!("whether the hub accepts clusters by itself cannot be told, so it {taken}: {why}");
                *unknown = Some(why);
                is_new.then_some(told)
            }
        }
    }
}

/// What follows where the hub does not tell.
fn of_failure(failure: Failure) -> Result<bool, String> {
    match failure.reason {
        // A hub whose operator runs elsewhere has no such kind.
        Reason::KindNotServed => Ok(true),
        _ => Err(failure.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_hub_without_the_kind_has_its_operator_elsewhere() {
        let status = |message: &str| kube::core::Status::failure(message, "NotFound").with_code(404);
        let of = |message: &str| of_failure(explain(&kube::Error::Api(status(message).boxed())));
        assert_eq!(of("404 page not found\n"), Ok(true));
        assert!(of("the proxy knows no such hub").is_err());
    }

    #[test]
    fn an_answer_that_does_not_come_changes_nothing() {
        let known = AutoApproval::default();
        assert!(known.is_on());
        assert!(known.learn(Err("no".to_owned())).is_some_and(|told| told.contains("so it does: no")));
        assert_eq!(known.learn(Ok(false)), None);
        assert!(known.learn(Err("no".to_owned())).is_some_and(|told| told.contains("so it does not: no")));
        assert_eq!(known.learn(Err("no".to_owned())), None, "once");
        assert!(!known.is_on());
        assert_eq!((known.learn(Ok(true)), known.is_on()), (None, true));
    }
}
