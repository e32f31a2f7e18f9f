//! Whether a version of a policy is in force that was just written.

use ocm_api::conditions::hub_policy::{LOADED, reasons};
use ocm_api::conditions::{TRUE, UNKNOWN, find};
use ocm_api::policy::HubPolicy;

/// How far a version of a policy has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loading {
    /// It is in force.
    Loaded,
    /// Not yet: what it waits for.
    Waits(String),
    /// It cannot be put in force: why.
    Failed(String),
}

/// How far a policy has come of which this generation is wanted and, where it is known, the module of this digest.
pub fn loading(policy: &HubPolicy, generation: i64, sha256: Option<&str>) -> Loading {
    let name = policy.metadata.name.as_deref().unwrap_or_default();
    let status = policy.status.clone().unwrap_or_default();
    if status.observed_generation.is_none_or(|seen| seen < generation) {
        return Loading::Waits(format!("the policy controller has not looked at {name} yet"));
    }
    let loaded = find(&status.conditions, LOADED);
    match loaded {
        Some(loaded) if loaded.status == TRUE => match (sha256, &status.sha256) {
            (Some(wanted), Some(seen)) if wanted != seen => {
                Loading::Waits(format!("another module of {name} is still in force"))
            }
            _ => Loading::Loaded,
        },
        Some(loaded) if loaded.status == UNKNOWN || reasons::MAY_PASS.contains(&loaded.reason.as_str()) => {
            Loading::Waits(loaded.message.clone())
        }
        Some(loaded) => Loading::Failed(loaded.message.clone()),
        None => Loading::Waits(format!("the policy controller has not said yet whether {name} is in force")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::standing::tests::policy;
    use super::*;

    fn of(status: Value, sha256: Option<&str>) -> Loading {
        loading(&policy(json!({"module": {"builtin": "b"}}), status), 3, sha256)
    }

    fn status(generation: i64, loaded: &str) -> Value {
        let condition = json!({"type": "Loaded", "status": loaded, "reason": "R", "message": "m",
                               "lastTransitionTime": "2026-01-01T00:00:00Z"});
        json!({"observedGeneration": generation, "sha256": "a", "conditions": [condition]})
    }

    #[test]
    fn only_what_was_said_of_this_version_counts() {
        for former in [json!({}), status(2, "True"), status(2, "False")] {
            assert!(matches!(of(former, None), Loading::Waits(why) if why.contains("has not looked at p yet")));
        }
        assert_eq!(of(status(3, "True"), None), Loading::Loaded);
        assert_eq!(of(status(4, "True"), Some("a")), Loading::Loaded);
        assert_eq!(of(status(3, "False"), Some("b")), Loading::Failed("m".to_owned()));
        // Its module is on the way to the hub.
        assert_eq!(of(status(3, "Unknown"), None), Loading::Waits("m".to_owned()));
        // The controller tries again, so that it may be in force soon.
        for (reason, waits) in [("SourceUnreachable", true), ("SourceRefused", true), ("ModuleNotFound", false)] {
            let mut status = status(3, "False");
            status["conditions"][0]["reason"] = json!(reason);
            assert_eq!(matches!(of(status, None), Loading::Waits(why) if why == "m"), waits, "{reason}");
        }
        assert!(matches!(of(status(3, "True"), Some("b")), Loading::Waits(why) if why.contains("another module of p")));
        assert!(matches!(of(json!({"observedGeneration": 3}), None), Loading::Waits(_)));
    }
}
