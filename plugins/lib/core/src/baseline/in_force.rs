//! What shows that the baseline is in force, and with which settings: the policy of managed clusters answers a probe.

use ocm_api::{ManagedCluster, Manifest};
use ocm_rules::Code;
use serde_json::Value;

use super::cel::text;
use super::policy::{Check, Policy};
use super::settings::Settings;
use super::{approvals, certificate_requests, clusters, works};
use crate::admission::{Admission, Objection};

/// Name of a managed cluster that the baseline refuses whoever creates it: to see whether it is in force. A prefix of the
/// hub's own namespaces, so that no hub has such a cluster, which could be written to and not created.
const PROBE: &str = "open-cluster-management-baseline-probe";

/// Name of the policy that answers [`probe`].
pub const ANSWERED_BY: &str = clusters::NAME;

/// The policy of managed clusters; what shows that it is in force stands first.
pub(super) fn policy(settings: &Settings) -> Policy {
    let mut policy = clusters::rules(settings);
    let sentence = format!("the hub uses this name itself; {}", mark(settings));
    let holds = format!("!variables.created || object.metadata.name != {}", text(PROBE));
    policy.checks.insert(0, Check::new(Code::NameReserved, sentence, holds));
    policy
}

/// A managed cluster that the baseline refuses, with a message that carries a mark of the settings.
pub fn probe() -> Manifest {
    let mut cluster = ManagedCluster::default();
    cluster.metadata.name = Some(PROBE.to_owned());
    Manifest::of(&cluster)
}

/// What the baseline says of [`probe`] with these settings, as this release writes them, and with no others.
pub fn answer(settings: &Settings) -> Objection {
    let policy = policy(settings).object();
    let first = policy.spec.and_then(|spec| spec.validations).and_then(|all| all.into_iter().next());
    Objection {
        by: Admission::Policy(ANSWERED_BY.to_owned()),
        why: first.and_then(|first| first.message).unwrap_or_default(),
        codes: Vec::new(),
    }
}

/// Whether a live policy of the hub, which has the name of the policy of managed clusters, is what these settings would make of
/// it: by its first message, which carries a mark of them.
pub fn is_as_wanted(live: &Value, settings: &Settings) -> bool {
    live.pointer("/spec/validations/0/message").and_then(Value::as_str) == Some(answer(settings).why.as_str())
}

/// What tells these settings, as this release writes them, from all others.
fn mark(settings: &Settings) -> String {
    let policies = [
        clusters::rules(settings),
        certificate_requests::policy(settings),
        works::policy(settings),
        approvals::policy(),
    ];
    let text: String = policies.iter().map(|policy| Manifest::of(&policy.object()).body().to_string()).collect();
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    format!("baseline {}", digest.as_ref()[..6].iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::super::{NAMES, POLICY_KIND, plan};
    use super::*;
    use crate::baseline::Enforcement;

    #[test]
    fn settings_are_told_from_all_others_by_what_the_hub_has_and_answers() {
        let (one, other) = (Settings::default(), Settings { enforcement: Enforcement::Audit, ..Settings::default() });
        let mut another = Settings::default();
        another.requests.requesters.push("system:serviceaccount:a:b".to_owned());
        assert!(!answer(&one).why.is_empty());
        assert_eq!(answer(&one), answer(&other), "how a policy is enforced is a matter of its binding");
        assert_ne!(answer(&one), answer(&another));
        let plan = plan(&one);
        let is_it = |found: &&Manifest| found.kind() == POLICY_KIND && found.name() == clusters::NAME;
        let live = plan.objects().find(is_it).expect("it is in the plan").body();
        assert!(NAMES.contains(&clusters::NAME) && is_as_wanted(live, &one) && !is_as_wanted(live, &another));
        assert!(!is_as_wanted(&Value::Null, &one));
    }
}
