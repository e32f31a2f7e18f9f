//! ManifestWorks: rule M7, [`ocm_rules::agent::work_write`].

use ocm_rules::Code;

use super::policy::{Check, Policy, Rule};
use super::{Settings, identities};

/// Name of the policy.
pub(super) const NAME: &str = "manifestworks.baseline.kubectl-ocm.dev";

pub(super) fn policy(_: &Settings) -> Policy {
    let same = |field: &str| format!("object.{field} == oldObject.{field}");
    let kept =
        ["?spec", "metadata.?labels", "metadata.?annotations", "metadata.?ownerReferences"].map(same).join(" && ");
    Policy {
        name: NAME,
        rules: vec![Rule {
            group: "work.open-cluster-management.io",
            version: "*",
            resource: "manifestworks",
            operations: &["CREATE", "UPDATE"],
        }],
        conditions: vec![("by-an-agent", identities::is_agent("request.userInfo"))],
        variables: Vec::new(),
        checks: vec![
            Check::new(
                Code::OtherCluster,
                "an agent may not write to another cluster's works",
                identities::is_of_cluster("request.userInfo", "request.namespace"),
            ),
            Check::new(
                Code::ManifestWork,
                "an agent may only change the finalizers of a work",
                format!("request.operation == \"UPDATE\" && {kept}"),
            ),
        ],
    }
}
