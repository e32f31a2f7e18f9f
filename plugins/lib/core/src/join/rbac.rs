//! What the managed cluster's operator may do.

use ocm_api::Manifest;
use ocm_api::names::{operators, secrets};

use crate::install::rbac::{Row, binding, role, service_account};

const ALL: &str = "create delete get list patch update watch";
const READ: &str = "get list watch";

/// Secrets that the operator keeps.
const SECRETS: &[&str] = &[
    secrets::IMAGE_PULL_CREDENTIALS,
    secrets::BOOTSTRAP_HUB_KUBECONFIG,
    secrets::HUB_KUBECONFIG,
    secrets::EXTERNAL_MANAGED_KUBECONFIG,
    "external-managed-kubeconfig-registration",
    "external-managed-kubeconfig-work",
    "external-managed-kubeconfig-agent",
];

const OPERATOR: &[Row] = &[
    ("core", "configmaps namespaces serviceaccounts", &[], ALL),
    ("core", "secrets", &[], "create"),
    ("core", "secrets", SECRETS, "delete get list update watch"),
    ("core", "pods", &[], "get"),
    ("core", "nodes", &[], READ),
    ("core events.k8s.io", "events", &[], "create patch update"),
    ("coordination.k8s.io", "leases", &[], "create get list patch update watch"),
    ("authorization.k8s.io", "subjectaccessreviews", &[], "create"),
    ("apps", "deployments", &[], ALL),
    ("apps", "replicasets", &[], "get"),
    ("rbac.authorization.k8s.io", "clusterrolebindings rolebindings", &[], ALL),
    // The agents may do more than the operator itself, so it must be able to grant what it does not hold.
    ("rbac.authorization.k8s.io", "clusterroles roles", &[], "bind create delete escalate get list patch update watch"),
    ("apiextensions.k8s.io", "customresourcedefinitions", &[], ALL),
    ("networking.k8s.io", "networkpolicies", &[], ALL),
    ("operator.open-cluster-management.io", "klusterlets", &[], "delete get list patch update watch"),
    ("operator.open-cluster-management.io", "klusterlets/status", &[], "patch update"),
    ("work.open-cluster-management.io", "appliedmanifestworks", &[], "list patch update"),
];

/// The role of the managed cluster's operator, and its binding.
pub fn operator_rights() -> [Manifest; 2] {
    let name = operators::KLUSTERLET;
    [Manifest::of(&role(name, OPERATOR)), Manifest::of(&binding(name, name, service_account(name)))]
}
