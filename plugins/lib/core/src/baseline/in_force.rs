//! What shows that the baseline is in force, and with which settings: the policy of managed clusters answers a probe.

use ocm_api::{ManagedCluster, Manifest};
use ocm_rules::Code;

use super::cel::text;
use super::policy::{Check, Policy};
use super::settings::Settings;
use super::{approvals, certificate_requests, clusters, works};

/// Name of a managed cluster that the baseline refuses whoever creates it: to see whether it is in force. A prefix of the
/// hub's own namespaces, so that no hub has such a cluster, which could be written to and not created.
const PROBE: &str = "open-cluster-management-baseline-probe";

/// The policy of managed clusters; what shows that it is in force stands first.
pub(super) fn policy(settings: &Settings) -> Policy {
    let mut policy = clusters::rules(settings);
    let sentence = format!("the hub uses this name itself; {}", mark(settings));
    let holds = format!("!variables.created || object.metadata.name != {}", text(PROBE));
    policy.checks.insert(0, Check::new(Code::NameReserved, sentence, holds));
    policy
}

/// A managed cluster that the baseline refuses, with a message that carries [`mark`].
pub fn probe() -> Manifest {
    let mut cluster = ManagedCluster::default();
    cluster.metadata.name = Some(PROBE.to_owned());
    Manifest::of(&cluster)
}

/// What tells these settings, as this release writes them, from all others.
pub fn mark(settings: &Settings) -> String {
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
