//! Whether policies were taken out of force on purpose: then the hub asks none of them, and none holds or withdraws anything here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use ocm_api::conditions::hub_policy::reasons;
use ocm_core::policy_engine::{EMERGENCY, NAMESPACE};
use ocm_kube::{Cluster, explain};

use crate::enforcement::{Enforcement, UNKNOWN};

/// How long the hub may take to show the mark.
const ANSWER: Duration = Duration::from_secs(8);

/// Whether policies are out of force on purpose. They are not until the opposite is known.
#[derive(Default)]
pub(crate) struct Emergency(AtomicBool);

impl Emergency {
    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Looks for the mark of whoever took them out of force. Where that cannot be read, it is what it was.
    pub(crate) async fn mark(hub: &Cluster) -> Result<bool, String> {
        let api: Api<Namespace> = Api::all(hub.client.clone());
        match tokio::time::timeout(ANSWER, api.get_metadata_opt(NAMESPACE)).await {
            Ok(Ok(found)) => {
                let annotations = found.and_then(|found| found.metadata.annotations);
                Ok(annotations.is_some_and(|all| all.contains_key(EMERGENCY)))
            }
            Ok(Err(error)) => Err(explain(&error).to_string()),
            Err(_) => Err(format!("the hub has not answered within {} seconds", ANSWER.as_secs())),
        }
    }

    /// Learns what was seen. A mark alone takes no policy out of force, and neither does a configuration that is missing: that
    /// may be an attack or an accident. What cannot be told changes nothing.
    pub(crate) fn learn(&self, mark: Result<bool, String>, seen: &Enforcement) {
        let is_on = match (&seen.ours, mark) {
            (Some(ours), Ok(mark)) if ours.reason == reasons::CONFIGURATION_MISSING => mark,
            (Some(ours), Err(_)) if ours.reason == reasons::CONFIGURATION_MISSING => return,
            (Some(ours), _) if ours.reason == UNKNOWN => return,
            _ => false,
        };
        self.0.store(is_on, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforcement::Problem;

    #[test]
    fn policies_are_out_of_force_by_a_mark_and_a_configuration_that_is_missing() {
        let seen = |reason: Option<&'static str>| Enforcement {
            ours: reason.map(|reason| Problem { reason, message: String::new() }),
            entries: Vec::new(),
            hub: None,
        };
        let missing = seen(Some(reasons::CONFIGURATION_MISSING));
        let emergency = Emergency::default();
        for (mark, seen) in [
            (Ok(false), &missing),
            (Err("no answer".to_owned()), &missing),
            (Ok(true), &seen(None)),
            (Ok(true), &seen(Some(reasons::NOT_TRUSTED))),
        ] {
            emergency.learn(mark, seen);
            assert!(!emergency.is_on(), "{seen:?}");
        }
        emergency.learn(Ok(true), &missing);
        assert!(emergency.is_on());
        emergency.learn(Err("no answer".to_owned()), &missing);
        assert!(emergency.is_on(), "what cannot be read changes nothing");
        emergency.learn(Ok(true), &seen(Some(UNKNOWN)));
        assert!(emergency.is_on(), "nor does a configuration that cannot be read");
        emergency.learn(Err("no answer".to_owned()), &seen(None));
        assert!(!emergency.is_on(), "policies are asked again");
    }
}
