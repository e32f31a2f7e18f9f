//! What the last decisions about registrations hold of a policy.

use ocm_api::policy::{HubPolicy, PolicyMode};
use ocm_api::registration::{Registration, RegistrationVerdict};

/// What the last decisions about registrations hold of one policy. Clusters that are gone do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many registrations were looked at.
    pub registrations: usize,
    /// How many it allowed.
    pub allowed: usize,
    /// How many it held.
    pub held: usize,
    /// How many it denied.
    pub denied: usize,
    /// How many it failed at.
    pub errors: usize,
    /// About how many it had no opinion.
    pub no_opinion: usize,
    /// How many of these answers are of another module than the one in force.
    pub former: usize,
    /// The registrations that wait for it.
    pub waiting: Vec<Waiting>,
}

/// A registration that waits for a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Name of the cluster.
    pub cluster: String,
    /// What the policy said.
    pub verdict: RegistrationVerdict,
    /// The codes of its reasons, or of its error.
    pub codes: Vec<String>,
}

impl Tally {
    /// How many it was asked about.
    pub const fn asked(&self) -> usize {
        self.allowed + self.held + self.denied + self.errors + self.no_opinion
    }

    /// Adds what a registration holds of the policy.
    pub fn add(&mut self, policy: &HubPolicy, registration: &Registration) {
        let Some(status) = registration.status.as_ref().filter(|status| status.removed_at.is_none()) else { return };
        self.registrations += 1;
        let name = policy.metadata.name.as_deref().unwrap_or_default();
        let opinions = status.decision.iter().flat_map(|decision| &decision.policies);
        let Some(opinion) = opinions.into_iter().find(|opinion| opinion.policy == name) else { return };
        let blocks = match opinion.verdict {
            RegistrationVerdict::Allow => {
                self.allowed += 1;
                false
            }
            RegistrationVerdict::Hold => {
                self.held += 1;
                true
            }
            RegistrationVerdict::Deny => {
                self.denied += 1;
                true
            }
            // A word of a newer release is no reason to take it for an opinion.
            RegistrationVerdict::NoOpinion | RegistrationVerdict::Other(_) => {
                self.no_opinion += 1;
                false
            }
            RegistrationVerdict::Error => {
                self.errors += 1;
                true
            }
        };
        let status_of_policy = policy.status.as_ref();
        let in_force = status_of_policy.and_then(|status| status.sha256.as_ref());
        let tried = status_of_policy.and_then(|status| status.candidate.as_ref()?.sha256.as_ref());
        let said = opinion.module_sha256.as_ref();
        self.former += usize::from(said != in_force && (said.is_none() || said != tried));
        let counts = !matches!(policy.spec.mode, PolicyMode::Warn | PolicyMode::Audit);
        if blocks && counts && status.waiting_for.is_some() {
            self.waiting.push(Waiting {
                cluster: registration.metadata.name.clone().unwrap_or_default(),
                verdict: opinion.verdict.clone(),
                codes: opinion.codes.clone(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::standing::tests::policy;
    use super::*;

    fn registration(name: &str, status: Value) -> Registration {
        let object = json!({
            "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "Registration",
            "metadata": {"name": name}, "spec": {}, "status": status,
        });
        serde_json::from_value(object).unwrap()
    }

    fn said(verdict: &str, module: &str, waiting: Option<&str>) -> Value {
        let opinions = json!([
            {"policy": "other", "verdict": "Deny", "moduleSha256": "m"},
            {"policy": "p", "verdict": verdict, "moduleSha256": module, "codes": ["Because"]},
        ]);
        let mut status = json!({"verdict": verdict, "decision": {"at": "2026-01-01T00:00:00Z", "policies": opinions}});
        if let Some(waiting) = waiting {
            status["waitingFor"] = json!(waiting);
        }
        status
    }

    fn tally(mode: &str, all: &[Registration]) -> Tally {
        let policy = policy(json!({"module": {"builtin": "b"}, "mode": mode}), json!({"sha256": "m"}));
        let mut tally = Tally::default();
        all.iter().for_each(|one| tally.add(&policy, one));
        tally
    }

    #[test]
    fn answers_are_counted_by_verdict_and_what_waits_is_named() {
        let mut gone = said("Hold", "m", Some("policy p: no"));
        gone["removedAt"] = json!("2026-01-01T00:00:00Z");
        let all = [
            registration("allowed", said("Allow", "m", None)),
            registration("held", said("Hold", "m", Some("policy p: no"))),
            registration("let-in-by-a-person", said("Hold", "m", None)),
            registration("denied", said("Deny", "before", Some("policy p: no"))),
            registration("failed", said("Error", "m", Some("policy p: host-call"))),
            registration("silent", said("NoOpinion", "m", Some("a person: nobody has an opinion"))),
            registration("gone", gone),
            registration("not-asked", json!({"verdict": "NoOpinion"})),
        ];
        let seen = tally("Enforce", &all);
        assert_eq!((seen.registrations, seen.asked()), (7, 6));
        assert_eq!((seen.allowed, seen.held, seen.denied, seen.errors, seen.no_opinion), (1, 2, 1, 1, 1));
        assert_eq!(seen.former, 1);
        let waiting: Vec<&str> = seen.waiting.iter().map(|one| one.cluster.as_str()).collect();
        assert_eq!(waiting, ["held", "denied", "failed"]);
        assert_eq!(seen.waiting[0].codes, ["Because"]);
    }

    #[test]
    fn nobody_waits_for_a_policy_whose_word_counts_for_nothing() {
        let all = [registration("held", said("Hold", "m", Some("policy other: no")))];
        for mode in ["Warn", "Audit"] {
            let seen = tally(mode, &all);
            assert_eq!((seen.held, seen.waiting.len()), (1, 0), "{mode}");
        }
    }
}
