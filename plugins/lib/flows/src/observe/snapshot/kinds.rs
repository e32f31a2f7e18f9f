//! Kinds of objects, as rights name them.

use ocm_checks::snapshot::PolicyRule;

/// A kind of objects, as rights name it.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) group: &'static str,
    pub(super) resource: &'static str,
    /// Whether a cluster may go without its group.
    pub(super) is_optional: bool,
}

impl Kind {
    /// A kind that every cluster has.
    pub(super) const fn new(group: &'static str, resource: &'static str) -> Self {
        Self { group, resource, is_optional: false }
    }

    /// A kind of Open Cluster Management or of the policy engine.
    pub(super) const fn optional(group: &'static str, resource: &'static str) -> Self {
        Self { group, resource, is_optional: true }
    }

    pub(super) fn rule(self, verb: &str, namespace: Option<&str>) -> PolicyRule {
        PolicyRule::new(verb, self.group, self.resource, namespace)
    }
}

pub(super) const DEPLOYMENTS: Kind = Kind::new("apps", "deployments");
pub(super) const LEASES: Kind = Kind::new("coordination.k8s.io", "leases");
pub(super) const SECRETS: Kind = Kind::new("", "secrets");
pub(super) const NAMESPACES: Kind = Kind::new("", "namespaces");
pub(super) const PODS: Kind = Kind::new("", "pods");
