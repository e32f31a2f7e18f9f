//! The CustomResourceDefinitions of [`ClusterManager`](crate::ClusterManager), [`Klusterlet`](crate::Klusterlet),
//! [`HubPolicy`](crate::HubPolicy), [`Registration`](crate::Registration) and
//! [`RegistrationApproval`](crate::RegistrationApproval).
//!
//! The files in `crds/` are generated from the types by the contract tests, which also compare the first two with
//! upstream's. Each command embeds only what it calls.
//!
//! `crd()` of kube-derive, such as `Klusterlet::crd()`, has no schema in commands: use this module.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::Manifest;

/// The generated definition of ClusterManager, as text.
pub const CLUSTER_MANAGER_JSON: &str = include_str!("../crds/clustermanagers.json");
/// The generated definition of Klusterlet, as text.
pub const KLUSTERLET_JSON: &str = include_str!("../crds/klusterlets.json");
/// The generated definition of HubPolicy, as text.
pub const HUB_POLICY_JSON: &str = include_str!("../crds/hubpolicies.json");
/// The generated definition of Registration, as text.
pub const REGISTRATION_JSON: &str = include_str!("../crds/registrations.json");
/// The generated definition of RegistrationApproval, as text.
pub const REGISTRATION_APPROVAL_JSON: &str = include_str!("../crds/registrationapprovals.json");

/// Name of the definition of ClusterManager.
pub const CLUSTER_MANAGER_NAME: &str = "clustermanagers.operator.open-cluster-management.io";
/// Name of the definition of Klusterlet.
pub const KLUSTERLET_NAME: &str = "klusterlets.operator.open-cluster-management.io";
/// Name of the definition of HubPolicy.
pub const HUB_POLICY_NAME: &str = "hubpolicies.policy.kubectl-ocm.dev";
/// Name of the definition of Registration.
pub const REGISTRATION_NAME: &str = "registrations.policy.kubectl-ocm.dev";
/// Name of the definition of RegistrationApproval.
pub const REGISTRATION_APPROVAL_NAME: &str = "registrationapprovals.policy.kubectl-ocm.dev";

/// The definition of ClusterManager, ready to apply.
///
/// Costs a binary 0.4 MB less than the typed [`cluster_manager_crd`], which needs a parser for every CRD field.
pub fn cluster_manager_manifest() -> Manifest {
    manifest(CLUSTER_MANAGER_NAME, CLUSTER_MANAGER_JSON)
}

/// The definition of Klusterlet, ready to apply.
///
/// Costs a binary 0.4 MB less than the typed [`klusterlet_crd`], which needs a parser for every CRD field.
pub fn klusterlet_manifest() -> Manifest {
    manifest(KLUSTERLET_NAME, KLUSTERLET_JSON)
}

/// The definition of HubPolicy, ready to apply.
pub fn hub_policy_manifest() -> Manifest {
    manifest(HUB_POLICY_NAME, HUB_POLICY_JSON)
}

/// The definition of Registration, ready to apply.
pub fn registration_manifest() -> Manifest {
    manifest(REGISTRATION_NAME, REGISTRATION_JSON)
}

/// The definition of RegistrationApproval, ready to apply.
pub fn registration_approval_manifest() -> Manifest {
    manifest(REGISTRATION_APPROVAL_NAME, REGISTRATION_APPROVAL_JSON)
}

/// The definition of ClusterManager as a typed object.
pub fn cluster_manager_crd() -> CustomResourceDefinition {
    serde_json::from_str(CLUSTER_MANAGER_JSON).expect("the contract tests parse the generated definition")
}

/// The definition of Klusterlet as a typed object.
pub fn klusterlet_crd() -> CustomResourceDefinition {
    serde_json::from_str(KLUSTERLET_JSON).expect("the contract tests parse the generated definition")
}

fn manifest(name: &str, json: &str) -> Manifest {
    let body = serde_json::from_str(json).expect("the contract tests parse the generated definition");
    Manifest::from_parts("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", name, body)
}
