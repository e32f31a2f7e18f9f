//! Types and reasons of conditions, by the object that carries them.
//!
//! A reason's comment names the status that it comes with.

use crate::Condition;

/// `status` of a condition that holds.
pub const TRUE: &str = "True";
/// `status` of a condition that does not hold.
pub const FALSE: &str = "False";
/// `status` of a condition that nobody can judge at the moment.
pub const UNKNOWN: &str = "Unknown";

/// The condition of this type, if anyone has written it.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of this type holds; a missing one does not.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == TRUE)
}

/// Whether the condition of this type is there and does not hold.
pub fn is_false(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == FALSE)
}

/// HubPolicy. The policy controller writes them.
pub mod hub_policy {
    /// The version that is wanted is in force.
    pub const LOADED: &str = "Loaded";
    /// The version that is wanted passes its test cases.
    pub const TESTS_PASSED: &str = "TestsPassed";
    /// The API server was seen to ask for the verdict, and requests wait for it.
    pub const ENFORCING: &str = "Enforcing";
    /// Something is to be done.
    pub const DEGRADED: &str = "Degraded";

    /// Reasons.
    pub mod reasons {
        /// Loaded False, Degraded True: the version that is wanted stops to judge what was judged before.
        pub const STOPS_TO_JUDGE: &str = "StopsToJudge";
        /// Loaded False: there is no connection to the place that the module comes from.
        pub const SOURCE_UNREACHABLE: &str = "SourceUnreachable";
        /// Loaded False: the server that the module comes from answers with something else.
        pub const SOURCE_REFUSED: &str = "SourceRefused";
        /// Loaded False: the hub does not let the controller keep the module.
        pub const MODULE_NOT_KEPT: &str = "ModuleNotKept";
        /// Those of a module that may be had soon without anybody changing the policy: the controller tries again.
        pub const MAY_PASS: [&str; 3] = [SOURCE_UNREACHABLE, SOURCE_REFUSED, MODULE_NOT_KEPT];
        /// Enforcing False, Degraded True: a webhook configuration is not there.
        pub const CONFIGURATION_MISSING: &str = "ConfigurationMissing";
        /// Enforcing False, Degraded True: requests pass while nobody answers.
        pub const FAILURE_POLICY_IGNORE: &str = "FailurePolicyIgnore";
        /// Enforcing False, Degraded True: the API server was seen not to ask the webhook, or an entry that brings what the policy
        /// judges is not as an installation makes it.
        pub const NOT_ASKED_AT_ALL: &str = "NotAsked";
        /// Enforcing False, Degraded True: the API server does not trust the webhook's certificate.
        pub const NOT_TRUSTED: &str = "NotTrusted";
        /// Those of Enforcing that go away when the webhook configurations are applied as an installation makes them.
        pub const NOT_ASKED: [&str; 4] = [CONFIGURATION_MISSING, FAILURE_POLICY_IGNORE, NOT_ASKED_AT_ALL, NOT_TRUSTED];
    }
}

/// ClusterManager. Upstream: `operator/v1/types_clustermanager.go` and `pkg/operator/operators/clustermanager`.
pub mod cluster_manager {
    /// Everything that the operator wants on the hub has been applied.
    pub const APPLIED: &str = "Applied";
    /// Deployments are rolling out. The webhook configurations appear only when this is False.
    pub const PROGRESSING: &str = "Progressing";
    /// The registration controller is unwell; says nothing of its webhook.
    pub const HUB_REGISTRATION_DEGRADED: &str = "HubRegistrationDegraded";
    /// The placement controller is unwell.
    pub const HUB_PLACEMENT_DEGRADED: &str = "HubPlacementDegraded";
    /// Every feature gate of the spec is known.
    pub const VALID_FEATURE_GATES: &str = "ValidFeatureGates";
    /// Stored objects have been migrated; current operators do not write it.
    pub const MIGRATION_SUCCEEDED: &str = "MigrationSucceeded";

    /// Reasons.
    pub mod reasons {
        /// Applied True.
        pub const CLUSTER_MANAGER_APPLIED: &str = "ClusterManagerApplied";
        /// Applied False: a CRD of the hub.
        pub const CRD_APPLY_FAILED: &str = "CRDApplyFailed";
        /// Applied False: RBAC, namespaces or services of the hub.
        pub const HUB_RESOURCE_APPLY_FAILED: &str = "HubResourceApplyFailed";
        /// Applied False: tokens of the hub's ServiceAccounts, in mode Hosted.
        pub const SERVICE_ACCOUNT_SYNC_FAILED: &str = "ServiceAccountSyncFailed";
        /// Applied False: Deployments.
        pub const RUNTIME_RESOURCE_APPLY_FAILED: &str = "RuntimeResourceApplyFailed";
        /// Applied False: webhook configurations.
        pub const WEBHOOK_APPLY_FAILED: &str = "WebhookApplyFailed";
        /// Progressing True.
        pub const DEPLOYMENT_ROLLING: &str = "ClusterManagerDeploymentRolling";
        /// Progressing False.
        pub const UP_TO_DATE: &str = "ClusterManagerUpToDate";
        /// HubRegistrationDegraded True: the Deployment cannot be read.
        pub const GET_REGISTRATION_DEPLOYMENT_FAILED: &str = "GetRegistrationDeploymentFailed";
        /// HubRegistrationDegraded True: pods are missing.
        pub const UNAVAILABLE_REGISTRATION_POD: &str = "UnavailableRegistrationPod";
        /// HubRegistrationDegraded False.
        pub const REGISTRATION_FUNCTIONAL: &str = "RegistrationFunctional";
        /// HubPlacementDegraded True: the Deployment cannot be read.
        pub const GET_PLACEMENT_DEPLOYMENT_FAILED: &str = "GetPlacementDeploymentFailed";
        /// HubPlacementDegraded True: pods are missing.
        pub const UNAVAILABLE_PLACEMENT_POD: &str = "UnavailablePlacementPod";
        /// HubPlacementDegraded False.
        pub const PLACEMENT_FUNCTIONAL: &str = "PlacementFunctional";
        /// ValidFeatureGates True.
        pub const FEATURE_GATES_ALL_VALID: &str = "FeatureGatesAllValid";
        /// ValidFeatureGates False.
        pub const INVALID_FEATURE_GATES_EXISTING: &str = "InvalidFeatureGatesExisting";
    }
}

/// Klusterlet. Upstream: `operator/v1/types_klusterlet.go` and `pkg/operator/operators/klusterlet`.
pub mod klusterlet {
    /// Everything that the operator wants on the managed cluster has been applied.
    pub const APPLIED: &str = "Applied";
    /// Hosted modes: the kubeconfig of the managed cluster is usable.
    pub const READY_TO_APPLY: &str = "ReadyToApply";
    /// The agent's Deployments have available pods.
    pub const AVAILABLE: &str = "Available";
    /// The registration agent has fewer pods than wanted.
    pub const REGISTRATION_DESIRED_DEGRADED: &str = "RegistrationDesiredDegraded";
    /// The work agent has fewer pods than wanted.
    pub const WORK_DESIRED_DEGRADED: &str = "WorkDesiredDegraded";
    /// The operator could not use the agent's credentials on the hub. Always True for grpc, even when all is well.
    pub const HUB_CONNECTION_DEGRADED: &str = "HubConnectionDegraded";
    /// Every feature gate of the spec is known.
    pub const VALID_FEATURE_GATES: &str = "ValidFeatureGates";

    /// Reasons. HubConnectionDegraded True joins one reason of the bootstrap Secret and one of the hub kubeconfig
    /// with a comma.
    pub mod reasons {
        /// Applied True.
        pub const KLUSTERLET_APPLIED: &str = "KlusterletApplied";
        /// Applied False.
        pub const KLUSTERLET_APPLY_FAILED: &str = "KlusterletApplyFailed";
        /// Applied False: a CRD.
        pub const CRD_APPLY_FAILED: &str = "CRDApplyFailed";
        /// Applied False: an object on the managed cluster.
        pub const MANAGED_CLUSTER_RESOURCE_APPLY_FAILED: &str = "ManagedClusterResourceApplyFailed";
        /// Applied False: an object on the cluster that runs the agent.
        pub const MANAGEMENT_CLUSTER_RESOURCE_APPLY_FAILED: &str = "ManagementClusterResourceApplyFailed";
        /// ReadyToApply True.
        pub const KLUSTERLET_PREPARED: &str = "KlusterletPrepared";
        /// ReadyToApply False.
        pub const KLUSTERLET_PREPARE_FAILED: &str = "KlusterletPrepareFailed";
        /// Available True.
        pub const KLUSTERLET_AVAILABLE: &str = "KlusterletAvailable";
        /// Available False or a DesiredDegraded True: a Deployment cannot be read.
        pub const GET_DEPLOYMENT_FAILED: &str = "GetDeploymentFailed";
        /// Available False: a Deployment has no available pod.
        pub const NO_AVAILABLE_PODS: &str = "NoAvailablePods";
        /// A DesiredDegraded True: pods are missing.
        pub const UNAVAILABLE_PODS: &str = "UnavailablePods";
        /// A DesiredDegraded False.
        pub const DEPLOYMENTS_FUNCTIONAL: &str = "DeploymentsFunctional";
        /// HubConnectionDegraded False.
        pub const HUB_CONNECTION_FUNCTIONAL: &str = "HubConnectionFunctional";
        /// HubConnectionDegraded True: no bootstrap Secret.
        pub const BOOTSTRAP_SECRET_MISSING: &str = "BootstrapSecretMissing";
        /// HubConnectionDegraded True: the bootstrap kubeconfig does not work.
        pub const BOOTSTRAP_SECRET_ERROR: &str = "BootstrapSecretError";
        /// HubConnectionDegraded True: the bootstrap identity may not register.
        pub const BOOTSTRAP_SECRET_UNAUTHORIZED: &str = "BootstrapSecretUnauthorized";
        /// HubConnectionDegraded True for another reason: the bootstrap Secret is well.
        pub const BOOTSTRAP_SECRET_FUNCTIONAL: &str = "BootstrapSecretFunctional";
        /// HubConnectionDegraded True: the agent has not written its Secret.
        pub const HUB_KUBECONFIG_SECRET_MISSING: &str = "HubKubeConfigSecretMissing";
        /// HubConnectionDegraded True: the Secret holds no kubeconfig, as before the hub has let the agent in.
        pub const HUB_KUBECONFIG_MISSING: &str = "HubKubeConfigMissing";
        /// HubConnectionDegraded True: the agent's kubeconfig does not work.
        pub const HUB_KUBECONFIG_ERROR: &str = "HubKubeConfigError";
        /// HubConnectionDegraded True: the Secret holds no cluster name.
        pub const CLUSTER_NAME_MISSING: &str = "ClusterNameMissing";
        /// HubConnectionDegraded True: the agent lacks rights on the hub.
        pub const HUB_KUBECONFIG_UNAUTHORIZED: &str = "HubKubeConfigUnauthorized";
        /// ValidFeatureGates True.
        pub const FEATURE_GATES_ALL_VALID: &str = "FeatureGatesAllValid";
        /// ValidFeatureGates False.
        pub const INVALID_FEATURE_GATES_EXISTING: &str = "InvalidFeatureGatesExisting";
    }
}

/// ManagedCluster. Upstream: `cluster/v1/types.go` and `pkg/registration`.
pub mod managed_cluster {
    /// The hub's administrator has let the cluster in; written by the hub.
    pub const HUB_ACCEPTED: &str = "HubAcceptedManagedCluster";
    /// The agent has used its own identity; written by the agent.
    pub const JOINED: &str = "ManagedClusterJoined";
    /// The cluster is well; written by the agent, and Unknown by the hub when the agent is silent.
    pub const AVAILABLE: &str = "ManagedClusterConditionAvailable";
    /// The clocks of hub and cluster agree; written by the hub.
    pub const CLOCK_SYNCED: &str = "ManagedClusterConditionClockSynced";
    /// The agent's certificate could be renewed; written by the agent.
    pub const CERTIFICATE_ROTATED: &str = "ClusterCertificateRotated";
    /// The hub removes what it holds for the cluster.
    pub const DELETING: &str = "Deleting";
    /// The hub has imported the cluster by itself.
    pub const IMPORT_SUCCEEDED: &str = "ManagedClusterImportSucceeded";

    /// Reasons.
    pub mod reasons {
        /// HubAcceptedManagedCluster True.
        pub const HUB_CLUSTER_ADMIN_ACCEPTED: &str = "HubClusterAdminAccepted";
        /// HubAcceptedManagedCluster False: the administrator has said no.
        pub const HUB_CLUSTER_ADMIN_DENIED: &str = "HubClusterAdminDenied";
        /// HubAcceptedManagedCluster False: the hub could not set up the cluster's RBAC.
        pub const ERROR: &str = "Error";
        /// ManagedClusterJoined True.
        pub const JOINED: &str = "ManagedClusterJoined";
        /// ManagedClusterConditionAvailable True.
        pub const AVAILABLE: &str = "ManagedClusterAvailable";
        /// ManagedClusterConditionAvailable False: the cluster's API server is unwell.
        pub const KUBE_API_SERVER_UNAVAILABLE: &str = "ManagedClusterKubeAPIServerUnavailable";
        /// ManagedClusterConditionAvailable Unknown: the agent does not renew its lease.
        pub const LEASE_UPDATE_STOPPED: &str = "ManagedClusterLeaseUpdateStopped";
        /// ManagedClusterConditionClockSynced True.
        pub const CLOCK_SYNCED: &str = "ManagedClusterClockSynced";
        /// ManagedClusterConditionClockSynced False.
        pub const CLOCK_OUT_OF_SYNC: &str = "ManagedClusterClockOutOfSync";
        /// ClusterCertificateRotated True.
        pub const CLIENT_CERTIFICATE_UPDATED: &str = "ClientCertificateUpdated";
        /// ClusterCertificateRotated False.
        pub const CLIENT_CERTIFICATE_UPDATE_FAILED: &str = "ClientCertificateUpdateFailed";
        /// Deleting False: add-ons or works are left.
        pub const RESOURCE_REMAINING: &str = "ResourceRemaining";
        /// Deleting True: nothing is left.
        pub const NO_RESOURCE: &str = "NoResource";
        /// Deleting False: the hub failed to remove something.
        pub const DELETING_ERROR: &str = "DeletingError";
    }
}

/// ManagedClusterSet. Upstream: `cluster/v1beta2/types_managedclusterset.go`.
pub mod managed_cluster_set {
    /// No cluster is in the set.
    pub const EMPTY: &str = "ClusterSetEmpty";
}

/// ManagedClusterSetBinding. Upstream: `cluster/v1beta2/types_managedclustersetbinding.go`.
pub mod managed_cluster_set_binding {
    /// The set exists.
    pub const BOUND: &str = "Bound";

    /// Reasons.
    pub mod reasons {
        /// Bound True.
        pub const CLUSTER_SET_BOUND: &str = "ClusterSetBound";
        /// Bound False.
        pub const CLUSTER_SET_NOT_FOUND: &str = "ClusterSetNotFound";
    }
}

/// Placement. Upstream: `cluster/v1beta1/types_placement.go` and `pkg/placement/controllers/scheduling`.
pub mod placement {
    /// As many clusters are selected as are wanted.
    pub const SATISFIED: &str = "PlacementSatisfied";
    /// The spec cannot be used.
    pub const MISCONFIGURED: &str = "PlacementMisconfigured";

    /// Reasons.
    pub mod reasons {
        /// PlacementSatisfied True.
        pub const ALL_DECISIONS_SCHEDULED: &str = "AllDecisionsScheduled";
        /// PlacementSatisfied False: no set that exists is bound to the namespace.
        pub const NO_BINDINGS: &str = "NoManagedClusterSetBindings";
        /// PlacementSatisfied False: of the sets that are named none is bound.
        pub const NO_INTERSECTION: &str = "NoIntersection";
        /// PlacementSatisfied False: no cluster is in the sets.
        pub const ALL_SETS_EMPTY: &str = "AllManagedClusterSetsEmpty";
        /// PlacementSatisfied False: predicates or taints leave no cluster.
        pub const NO_CLUSTER_MATCHED: &str = "NoManagedClusterMatched";
        /// PlacementSatisfied False: fewer clusters than wanted.
        pub const NOT_ALL_DECISIONS_SCHEDULED: &str = "NotAllDecisionsScheduled";
    }
}

/// ManifestWork and each of its manifests. Upstream: `work/v1/types.go`.
pub mod manifest_work {
    /// Everything has been applied.
    pub const APPLIED: &str = "Applied";
    /// Everything that was applied is there.
    pub const AVAILABLE: &str = "Available";
    /// Objects are on their way.
    pub const PROGRESSING: &str = "Progressing";
    /// Objects are there but unwell.
    pub const DEGRADED: &str = "Degraded";
    /// The work is done, by its own rules.
    pub const COMPLETE: &str = "Complete";
    /// The agent removes the objects.
    pub const DELETING: &str = "Deleting";

    /// Reasons.
    pub mod reasons {
        /// Applied True.
        pub const APPLIED_COMPLETE: &str = "AppliedManifestWorkComplete";
        /// Applied False.
        pub const APPLIED_FAILED: &str = "AppliedManifestWorkFailed";
        /// Available True.
        pub const RESOURCES_AVAILABLE: &str = "ResourcesAvailable";
        /// Available False.
        pub const RESOURCES_NOT_AVAILABLE: &str = "ResourcesNotAvailable";
        /// Available Unknown.
        pub const RESOURCES_STATUS_UNKNOWN: &str = "ResourcesStatusUnknown";
    }
}

/// ManagedClusterAddOn. Upstream: `addon/v1alpha1/types_managedclusteraddon.go`.
pub mod managed_cluster_add_on {
    /// The add-on is well.
    pub const AVAILABLE: &str = "Available";
    /// The add-on works, but not fully.
    pub const DEGRADED: &str = "Degraded";
    /// The add-on is being changed.
    pub const PROGRESSING: &str = "Progressing";
    /// The add-on's configuration has been found.
    pub const CONFIGURED: &str = "Configured";
    /// The add-on's objects are on the managed cluster.
    pub const MANIFEST_APPLIED: &str = "ManifestApplied";
    /// The hub has set up what the add-on's agent registers with.
    pub const REGISTRATION_APPLIED: &str = "RegistrationApplied";
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    #[test]
    fn missing_is_neither_true_nor_false() {
        let condition = |type_: &str, status: &str| Condition {
            last_transition_time: Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH),
            message: String::new(),
            observed_generation: None,
            reason: "Because".to_owned(),
            status: status.to_owned(),
            type_: type_.to_owned(),
        };
        let conditions = [condition("A", TRUE), condition("B", FALSE), condition("C", UNKNOWN)];
        assert!(is_true(&conditions, "A") && !is_false(&conditions, "A"));
        assert!(!is_true(&conditions, "B") && is_false(&conditions, "B"));
        for type_ in ["C", "D"] {
            assert!(!is_true(&conditions, type_) && !is_false(&conditions, type_));
        }
        assert_eq!(find(&conditions, "C").map(|c| c.status.as_str()), Some(UNKNOWN));
    }
}
