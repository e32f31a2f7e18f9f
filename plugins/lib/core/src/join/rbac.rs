//! What the managed cluster's operator may do.

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Subject};
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

const OPERATOR: &[Row<'_>] = &[
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

/// Roles that the operator binds to the accounts of agents on a hosted cluster, `admin` of Kubernetes beside its own.
/// Upstream: `manifests/klusterlet/managed`.
const OF_AGENTS: &[&str] =
    &["registration:agent", "registration:addon-management", "work:agent", "work:aggregate", "work:execution"];

/// The rights of the account with which the operator of a hosting cluster manages this one, and their binding. What agents
/// may do there depends on the release, so the account must be able to make roles that hold more than it does; it can bind no
/// others than those of this Klusterlet.
pub(crate) fn hosting_rights(klusterlet: &str, account: Subject) -> (ClusterRole, ClusterRoleBinding) {
    const WRITE: &str = "create delete get list update";
    let own: Vec<String> =
        OF_AGENTS.iter().map(|part| format!("open-cluster-management:{klusterlet}-{part}")).collect();
    let roles: Vec<&str> = own.iter().map(String::as_str).chain(["admin"]).collect();
    let rows: [Row<'_>; 10] = [
        ("core", "namespaces serviceaccounts", &[], WRITE),
        ("core", "serviceaccounts/token", &[], "create"),
        ("core", "secrets", &[], "create"),
        ("core", "secrets", &[secrets::IMAGE_PULL_CREDENTIALS], "delete get update"),
        ("rbac.authorization.k8s.io", "clusterroles", &[], "create delete escalate get list update"),
        ("rbac.authorization.k8s.io", "clusterroles", &roles, "bind"),
        ("rbac.authorization.k8s.io", "clusterrolebindings", &[], WRITE),
        ("apiextensions.k8s.io", "customresourcedefinitions", &[], WRITE),
        // What works have put there goes before the agents do.
        ("work.open-cluster-management.io", "appliedmanifestworks", &[], "delete get list patch update"),
        ("cluster.open-cluster-management.io", "clusterclaims", &[], "list"),
    ];
    let name = format!("open-cluster-management:hosted:{klusterlet}");
    (role(&name, &rows), binding(&name, &name, account))
}
