//! The names that upstream's API module defines, and those that a policy of ours does, against their sources.
//!
//! Names that only the operators and agents define are not here: the end-to-end tests meet them.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test, in helpers, too")]

mod upstream;

use std::fs;

use cli_tests::root;
use ocm_api::conditions::{
    cluster_manager, klusterlet, managed_cluster, managed_cluster_add_on, managed_cluster_set,
    managed_cluster_set_binding, manifest_work, placement,
};
use ocm_api::names::{annotations, finalizers, labels, signers, taints};
use ocm_api::operator::KlusterletMode;
use ocm_core::explanation::{APPROVALS_MISSING, APPROVALS_UNPROVED};

#[test]
fn names_are_in_upstream_source() {
    use cluster_manager::reasons as cm;
    use klusterlet::reasons as kl;
    use managed_cluster::reasons as mc;
    let expected: &[(&str, &[&str])] = &[
        (
            "operator/v1/types_clustermanager.go",
            &[
                cluster_manager::APPLIED,
                cluster_manager::PROGRESSING,
                cluster_manager::HUB_REGISTRATION_DEGRADED,
                cluster_manager::HUB_PLACEMENT_DEGRADED,
                cluster_manager::MIGRATION_SUCCEEDED,
                cm::CLUSTER_MANAGER_APPLIED,
                cm::CRD_APPLY_FAILED,
                cm::SERVICE_ACCOUNT_SYNC_FAILED,
                cm::RUNTIME_RESOURCE_APPLY_FAILED,
                cm::WEBHOOK_APPLY_FAILED,
                cm::DEPLOYMENT_ROLLING,
                cm::UP_TO_DATE,
                cm::GET_REGISTRATION_DEPLOYMENT_FAILED,
                cm::UNAVAILABLE_REGISTRATION_POD,
                cm::REGISTRATION_FUNCTIONAL,
                cm::GET_PLACEMENT_DEPLOYMENT_FAILED,
                cm::UNAVAILABLE_PLACEMENT_POD,
                cm::PLACEMENT_FUNCTIONAL,
                signers::GRPC,
                annotations::CSR_USER,
            ],
        ),
        (
            "operator/v1/types_klusterlet.go",
            &[
                klusterlet::APPLIED,
                klusterlet::READY_TO_APPLY,
                klusterlet::AVAILABLE,
                klusterlet::HUB_CONNECTION_DEGRADED,
                klusterlet::REGISTRATION_DESIRED_DEGRADED,
                klusterlet::WORK_DESIRED_DEGRADED,
                kl::KLUSTERLET_APPLIED,
                kl::KLUSTERLET_APPLY_FAILED,
                kl::CRD_APPLY_FAILED,
                kl::MANAGED_CLUSTER_RESOURCE_APPLY_FAILED,
                kl::MANAGEMENT_CLUSTER_RESOURCE_APPLY_FAILED,
                kl::KLUSTERLET_PREPARED,
                kl::KLUSTERLET_PREPARE_FAILED,
                kl::KLUSTERLET_AVAILABLE,
                kl::GET_DEPLOYMENT_FAILED,
                kl::NO_AVAILABLE_PODS,
                kl::UNAVAILABLE_PODS,
                kl::DEPLOYMENTS_FUNCTIONAL,
                kl::HUB_CONNECTION_FUNCTIONAL,
                kl::HUB_KUBECONFIG_SECRET_MISSING,
                kl::HUB_KUBECONFIG_MISSING,
                kl::HUB_KUBECONFIG_ERROR,
                kl::CLUSTER_NAME_MISSING,
                kl::HUB_KUBECONFIG_UNAUTHORIZED,
                annotations::AGENT_PREFIX.trim_end_matches('/'),
            ],
        ),
        (
            "cluster/v1beta1/types_placement.go",
            &[placement::SATISFIED, placement::MISCONFIGURED, annotations::SCHEDULING_DISABLED],
        ),
        (
            "cluster/v1beta1/types_placementdecision.go",
            &[labels::PLACEMENT, labels::DECISION_GROUP_INDEX, labels::DECISION_GROUP_NAME],
        ),
        (
            "cluster/v1/types.go",
            &[
                managed_cluster::HUB_ACCEPTED,
                managed_cluster::JOINED,
                managed_cluster::AVAILABLE,
                managed_cluster::CLOCK_SYNCED,
                managed_cluster::DELETING,
                mc::RESOURCE_REMAINING,
                mc::NO_RESOURCE,
                mc::DELETING_ERROR,
                labels::CLUSTER_NAME,
                annotations::CLEANUP_PRIORITY,
                annotations::IMAGE_REGISTRIES,
                finalizers::MANAGED_CLUSTER,
                taints::UNAVAILABLE,
                taints::UNREACHABLE,
            ],
        ),
        ("cluster/v1beta1/types_placementdecision.go", &[labels::PLACEMENT]),
        ("work/v1alpha1/types_manifestworkreplicaset.go", &[labels::WORK_REPLICA_SET]),
        ("cluster/v1beta2/types_managedclusterset.go", &[labels::CLUSTER_SET, managed_cluster_set::EMPTY]),
        ("cluster/v1beta2/types_managedclustersetbinding.go", &[managed_cluster_set_binding::BOUND]),
        (
            "work/v1/types.go",
            &[
                manifest_work::APPLIED,
                manifest_work::AVAILABLE,
                manifest_work::PROGRESSING,
                manifest_work::DEGRADED,
                manifest_work::COMPLETE,
                manifest_work::DELETING,
                finalizers::MANIFEST_WORK,
                finalizers::APPLIED_MANIFEST_WORK,
            ],
        ),
        ("addon/v1alpha1/types_clustermanagementaddon.go", &[annotations::ADDON_LIFECYCLE, annotations::ADDON_MANAGER]),
        (
            "addon/v1alpha1/types_managedclusteraddon.go",
            &[
                managed_cluster_add_on::AVAILABLE,
                managed_cluster_add_on::DEGRADED,
                managed_cluster_add_on::PROGRESSING,
                managed_cluster_add_on::CONFIGURED,
                managed_cluster_add_on::MANIFEST_APPLIED,
                managed_cluster_add_on::REGISTRATION_APPLIED,
                labels::ADDON_NAME,
                annotations::ADDON_HOSTING_CLUSTER,
            ],
        ),
    ];
    for (file, names) in expected {
        let source = upstream::text(file);
        let missing: Vec<_> = names.iter().filter(|name| !source.contains(&format!("\"{name}\""))).collect();
        assert!(missing.is_empty(), "{file} does not define {missing:?}");
    }
}

/// The Klusterlet's schema takes any word, so only the source tells which ones the operator knows.
#[test]
fn klusterlet_modes_are_in_upstream_source() {
    let source = upstream::text("operator/v1/types_clustermanager.go");
    let modes: Vec<&str> = source
        .lines()
        .filter_map(|line| line.trim().strip_prefix("InstallMode"))
        .filter_map(|line| line.split('"').nth(1))
        .collect();
    assert_eq!(modes, KlusterletMode::KNOWN);
}

/// A policy is compiled on its own: commands know its codes as words.
#[test]
fn codes_of_the_policy_that_counts_approvals_are_in_its_source() {
    let source = fs::read_to_string(root().join("wasm-policies/policies/approvals/src/lib.rs")).unwrap();
    for code in [APPROVALS_MISSING, APPROVALS_UNPROVED] {
        assert!(source.contains(&format!(".gives({code:?}, ")), "the manifest has no code {code}");
        assert!(source.contains(&format!("hold({code:?}, ")), "the policy does not give {code}");
    }
}
