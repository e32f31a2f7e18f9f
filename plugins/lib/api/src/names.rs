//! Names that hub, agent and commands agree on.
//!
//! Each comment ends with where upstream writes the name: a path in open-cluster-management-io/ocm, or `api:` and a
//! path in open-cluster-management-io/api.

/// Namespaces.
pub mod namespaces {
    /// Both operators, the bootstrap ServiceAccount and its tokens. `deploy/*/config/operator`
    pub const OPERATOR: &str = "open-cluster-management";
    /// Controllers and webhooks of a hub in mode Default. `pkg/operator/helpers`
    pub const HUB: &str = "open-cluster-management-hub";
    /// The agent, unless the Klusterlet names another. `pkg/operator/helpers`
    pub const AGENT: &str = "open-cluster-management-agent";
    /// Agents of add-ons. `pkg/operator/helpers`
    pub const AGENT_ADDON: &str = "open-cluster-management-agent-addon";
    /// Start of every name that the Klusterlet's schema allows for the agent's namespace. `api:operator/v1`
    pub const AGENT_PREFIX: &str = "open-cluster-management-";
}

/// Objects of the operators on both sides.
pub mod operators {
    /// Deployment, ServiceAccount, ClusterRole and binding of the hub's operator. `deploy/cluster-manager/config`
    pub const CLUSTER_MANAGER: &str = "cluster-manager";
    /// The one ClusterManager; its name prefixes every Deployment on the hub.
    /// `deploy/cluster-manager/config/samples`
    pub const CLUSTER_MANAGER_OBJECT: &str = "cluster-manager";
    /// Deployment, ServiceAccount, ClusterRole and binding of the managed cluster's operator.
    /// `deploy/klusterlet/config`
    pub const KLUSTERLET: &str = "klusterlet";
    /// The usual name of the one Klusterlet. `deploy/klusterlet/config/samples`
    pub const KLUSTERLET_OBJECT: &str = "klusterlet";
    /// Lease of the hub's operator, in its namespace. `pkg/cmd/hub`, component name and `-lock`
    pub const CLUSTER_MANAGER_LOCK: &str = "clustermanager-lock";
    /// Lease of the managed cluster's operator, in its namespace. A new operator waits for it for up to 137 seconds if
    /// the old one was deleted. `pkg/cmd/spoke`, component name and `-lock`
    pub const KLUSTERLET_LOCK: &str = "klusterlet-lock";
}

/// Objects of the agent on the managed cluster.
pub mod agent {
    /// Lease of the registration agent in mode Default. `pkg/cmd/spoke`, component name and `-lock`
    pub const REGISTRATION_LOCK: &str = "registration-agent-lock";
    /// Lease of the work agent in mode Default. `pkg/cmd/spoke`, component name and `-lock`
    pub const WORK_LOCK: &str = "work-agent-lock";
    /// Lease of the one agent in the Singleton modes. `pkg/cmd/spoke`, component name and `-lock`
    pub const SINGLETON_LOCK: &str = "klusterlet-agent-lock";
}

/// Secrets and ConfigMaps.
pub mod secrets {
    /// Kubeconfig with which a new agent registers, in the agent's namespace; written by whoever joins the cluster.
    /// `pkg/operator/helpers`
    pub const BOOTSTRAP_HUB_KUBECONFIG: &str = "bootstrap-hub-kubeconfig";
    /// The agent's own kubeconfig, key and certificate once the hub has let it in; written by the agent.
    /// `pkg/operator/helpers`
    pub const HUB_KUBECONFIG: &str = "hub-kubeconfig-secret";
    /// Kubeconfig of the managed cluster in the Hosted modes, in the namespace named as the Klusterlet.
    /// `pkg/operator/helpers`
    pub const EXTERNAL_MANAGED_KUBECONFIG: &str = "external-managed-kubeconfig";
    /// Kubeconfigs of the managed cluster in the Hosted modes with which agents work there, of which the operator makes one or
    /// two out of the one above. `pkg/operator/helpers`
    pub const HOSTED_AGENT_KUBECONFIGS: [&str; 3] = [
        "external-managed-kubeconfig-registration",
        "external-managed-kubeconfig-work",
        "external-managed-kubeconfig-agent",
    ];
    /// Kubeconfigs of the hub in mode Hosted with which its controllers work there, beside the one below.
    /// `manifests/cluster-manager/management`
    pub const HOSTED_HUB_KUBECONFIGS: [&str; 7] = [
        "registration-controller-sa-kubeconfig",
        "registration-webhook-sa-kubeconfig",
        "addon-manager-controller-sa-kubeconfig",
        "placement-controller-sa-kubeconfig",
        "work-controller-sa-kubeconfig",
        "work-webhook-sa-kubeconfig",
        "grpc-server-sa-kubeconfig",
    ];
    /// Key of a token beside a kubeconfig that names it as a file. `pkg/operator/helpers`, `pkg/registration/register/token`
    pub const TOKEN_KEY: &str = "token";
    /// End of the names of ConfigMaps with the authorities by which an add-on trusts its proxy, in its namespace.
    /// `pkg/addon/templateagent`
    pub const PROXY_CA_SUFFIX: &str = "-proxy-ca";
    /// Kubeconfig of the hub in mode Hosted, in the namespace named as the ClusterManager. `pkg/operator/helpers`
    pub const EXTERNAL_HUB_KUBECONFIG: &str = "external-hub-kubeconfig";
    /// Registry credentials that the operators copy to the namespaces of their pods. `pkg/operator/helpers`
    pub const IMAGE_PULL_CREDENTIALS: &str = "open-cluster-management-image-pull-credentials";
    /// The hub's own certificate authority, which signs the webhooks' and the gRPC server's certificates.
    /// `pkg/operator/helpers`
    pub const SIGNER: &str = "signer-secret";
    /// ConfigMap with the certificates of that authority, under the key `ca-bundle.crt`. `pkg/operator/helpers`
    pub const CA_BUNDLE_CONFIGMAP: &str = "ca-bundle-configmap";
    /// Key of the ConfigMap with the authority's certificates. `pkg/operator/helpers`
    pub const CA_BUNDLE_KEY: &str = "ca-bundle.crt";
    /// What the webhook of managed clusters and set bindings serves with. `pkg/operator/helpers`
    pub const REGISTRATION_WEBHOOK_CERT: &str = "registration-webhook-serving-cert";
    /// What the webhook of works serves with. `pkg/operator/helpers`
    pub const WORK_WEBHOOK_CERT: &str = "work-webhook-serving-cert";
    /// What the webhook that converts add-ons serves with. `pkg/operator/helpers`
    pub const ADDON_WEBHOOK_CERT: &str = "addon-webhook-serving-cert";
    /// ConfigMap with the TLS versions and ciphers of all servers, in the operators' namespace.
    /// `pkg/common/options`
    pub const TLS_PROFILE_CONFIGMAP: &str = "ocm-tls-profile";

    /// Key of a kubeconfig. `pkg/registration/register`
    pub const KUBECONFIG_KEY: &str = "kubeconfig";
    /// Key of the gRPC settings beside a kubeconfig. `pkg/registration/register/grpc`
    pub const GRPC_CONFIG_KEY: &str = "config.yaml";
    /// Key of the cluster's name in the agent's Secret. `pkg/registration/register`
    pub const CLUSTER_NAME_KEY: &str = "cluster-name";
    /// Key of the agent's name in the agent's Secret. `pkg/registration/register`
    pub const AGENT_NAME_KEY: &str = "agent-name";
    /// Key of the client certificate in the agent's Secret. `pkg/registration/register/csr`
    pub const TLS_CERT_KEY: &str = "tls.crt";
    /// Key of the private key in the agent's Secret. `pkg/registration/register/csr`
    pub const TLS_KEY_KEY: &str = "tls.key";
}

/// What a new agent registers with.
pub mod bootstrap {
    /// ServiceAccount in the operators' namespace whose tokens register agents. `deploy/cluster-manager/chart`
    pub const SERVICE_ACCOUNT: &str = "agent-registration-bootstrap";
    /// ClusterRole with what a registering agent may do. `deploy/cluster-manager/chart`
    pub const CLUSTER_ROLE: &str = "open-cluster-management:bootstrap";
    /// The same role on hubs that clusteradm made before it had that name. `clusteradm`, what `clean` removes
    pub const FORMER_CLUSTER_ROLE: &str = "system:open-cluster-management:bootstrap";
    /// Binding of that role to the ServiceAccount. `deploy/cluster-manager/chart`
    pub const SERVICE_ACCOUNT_BINDING: &str = "open-cluster-management:bootstrap:agent-registration";
    /// Binding of that role to the group of the bootstrap token. `deploy/cluster-manager/chart`
    pub const TOKEN_BINDING: &str = "open-cluster-management:bootstrap:managedcluster";
    /// Identifier of the hub's bootstrap token. `deploy/cluster-manager/chart`
    pub const TOKEN_ID: &str = "ocmhub";
    /// Secret with that token, in [`TOKEN_NAMESPACE`]. `deploy/cluster-manager/chart`
    pub const TOKEN_SECRET: &str = "bootstrap-token-ocmhub";
    /// Where Kubernetes looks for bootstrap tokens. Kubernetes
    pub const TOKEN_NAMESPACE: &str = "kube-system";
    /// Group of that token. `deploy/cluster-manager/chart`
    pub const TOKEN_GROUP: &str = "system:bootstrappers:managedcluster";
    /// ClusterRole of ours that lets clusters be registered into a set, and its binding.
    pub fn cluster_set_role(set: &str) -> String {
        format!("{CLUSTER_ROLE}:clusterset:{set}")
    }

    /// Group of the bootstrap tokens that may register clusters into a set besides `default`; ours.
    pub fn cluster_set_group(set: &str) -> String {
        format!("{TOKEN_GROUP}:clusterset:{set}")
    }

    /// Start of the user name of a bootstrap token, before its identifier. Kubernetes
    pub const TOKEN_USER_PREFIX: &str = "system:bootstrap:";

    /// User name of the bootstrap token with this identifier.
    pub fn token_user(id: &str) -> String {
        format!("{TOKEN_USER_PREFIX}{id}")
    }
}

/// Users and groups as the hub's API server sees them.
pub mod identity {
    /// Start of the names of every agent and every cluster's group. `pkg/registration/hub/user`
    pub const PREFIX: &str = "system:open-cluster-management:";
    /// Group of every agent. `pkg/registration/hub/user`
    pub const MANAGED_CLUSTERS_GROUP: &str = "system:open-cluster-management:managed-clusters";
    /// The ServiceAccount whose tokens register agents, in the usual namespace. `deploy/cluster-manager/chart`
    pub const BOOTSTRAP_USER: &str = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap";
    /// The hub's gRPC server, which creates CSRs and ManagedClusters on behalf of agents.
    /// `manifests/cluster-manager/hub/grpc-server`
    pub const GRPC_SERVER_USER: &str = "system:serviceaccount:open-cluster-management-hub:grpc-server-sa";
    /// Field manager of the hub's registration controller: the name of its program. `cmd/registration`
    pub const REGISTRATION_MANAGER: &str = "registration";
    /// The hub's registration controller, which accepts clusters by itself where the feature gate
    /// ManagedClusterAutoApproval is on. `manifests/cluster-manager/hub/registration`
    pub const REGISTRATION_CONTROLLER_USER: &str =
        "system:serviceaccount:open-cluster-management-hub:registration-controller-sa";

    /// User name of an agent: the common name of its certificate.
    pub fn agent_user(cluster: &str, agent: &str) -> String {
        format!("{PREFIX}{cluster}:{agent}")
    }

    /// Group of the agents of one cluster: an organization of their certificates.
    pub fn cluster_group(cluster: &str) -> String {
        format!("{PREFIX}{cluster}")
    }

    /// Cluster and agent of an agent's user name; none for any other name.
    ///
    /// Add-ons share the prefix but have more parts.
    pub fn parse_agent_user(user: &str) -> Option<(&str, &str)> {
        let (cluster, agent) = user.strip_prefix(PREFIX)?.split_once(':')?;
        (!cluster.is_empty() && !agent.is_empty() && !agent.contains(':')).then_some((cluster, agent))
    }

    /// Cluster and add-on of the user name that add-ons have unless they ask for another one; none for any other name.
    /// `pkg/registration/spoke/addon`, `defaultCommonName`
    pub fn parse_addon_user(user: &str) -> Option<(&str, &str)> {
        let (cluster, rest) = user.strip_prefix(PREFIX)?.strip_prefix("cluster:")?.split_once(":addon:")?;
        let (addon, agent) = rest.split_once(":agent:")?;
        let is_given = |part: &str| !part.is_empty() && !part.contains(':');
        [cluster, addon, agent].into_iter().all(is_given).then_some((cluster, addon))
    }

    /// User name of a ServiceAccount.
    pub fn service_account_user(namespace: &str, name: &str) -> String {
        format!("system:serviceaccount:{namespace}:{name}")
    }
}

/// Signers of certificate signing requests.
pub mod signers {
    /// The cluster's own signer of client certificates. Kubernetes
    pub const KUBE_APISERVER_CLIENT: &str = "kubernetes.io/kube-apiserver-client";
    /// The hub's signer for agents that connect over gRPC. `api:operator/v1`, `GRPCAuthSigner`
    pub const GRPC: &str = "open-cluster-management.io/grpc";
}

/// Labels.
pub mod labels {
    /// Cluster that a CSR or a namespace belongs to. `api:cluster/v1`, `ClusterNameLabelKey`
    pub const CLUSTER_NAME: &str = "open-cluster-management.io/cluster-name";
    /// Add-on that a CSR belongs to. `api:addon/v1alpha1`, `AddonLabelKey`
    pub const ADDON_NAME: &str = "open-cluster-management.io/addon-name";
    /// On a namespace of a managed cluster: add-ons are there.
    /// `pkg/operator/operators/klusterlet/controllers/addonsecretcontroller`, `addonInstallNamespaceLabelKey`
    pub const ADDON_NAMESPACE: &str = "addon.open-cluster-management.io/namespace";
    /// Set that a ManagedCluster is in. `api:cluster/v1beta2`, `ClusterSetLabel`
    pub const CLUSTER_SET: &str = "cluster.open-cluster-management.io/clusterset";
    /// Placement that a PlacementDecision belongs to. `api:cluster/v1beta1`, `PlacementLabel`
    pub const PLACEMENT: &str = "cluster.open-cluster-management.io/placement";
    /// Number of the group that the clusters of a PlacementDecision are in, from 0. `api:cluster/v1beta1`,
    /// `DecisionGroupIndexLabel`
    pub const DECISION_GROUP_INDEX: &str = "cluster.open-cluster-management.io/decision-group-index";
    /// Name of that group; empty where the placement names none. `api:cluster/v1beta1`, `DecisionGroupNameLabel`
    pub const DECISION_GROUP_NAME: &str = "cluster.open-cluster-management.io/decision-group-name";
    /// Start of the labels of a ManagedCluster that tell the state of its add-ons, before the add-on's name.
    /// `pkg/registration/hub/addon`
    pub const FEATURE_ADDON_PREFIX: &str = "feature.open-cluster-management.io/addon-";
    /// ManifestWorkReplicaSet that keeps a ManifestWork, as `namespace.name`. `api:work/v1alpha1`,
    /// `ManifestWorkReplicaSetControllerNameLabelKey`
    pub const WORK_REPLICA_SET: &str = "work.open-cluster-management.io/manifestworkreplicaset";
    /// Adds a ClusterRole to what the work agent may do, with the value `true`.
    /// `manifests/klusterlet/managed`
    pub const AGGREGATE_TO_WORK: &str = "open-cluster-management.io/aggregate-to-work";
}

/// Annotations.
pub mod annotations {
    /// The user on whose behalf the gRPC server created a CSR. `api:operator/v1`, `CSRUsernameAnnotation`
    pub const CSR_USER: &str = "open-cluster-management.io/csr-user";
    /// When the hub accepted a ManagedCluster by itself. `pkg/registration/hub/managedcluster`
    pub const AUTOMATICALLY_ACCEPTED_ON: &str = "open-cluster-management.io/automatically-accepted-on";
    /// Start of the annotations that an agent may give its ManagedCluster. `api:operator/v1`,
    /// `ClusterAnnotationsKeyPrefix`
    pub const AGENT_PREFIX: &str = "agent.open-cluster-management.io/";
    /// ARN of a managed EKS cluster. `pkg/registration/register/aws_irsa`
    pub const MANAGED_CLUSTER_ARN: &str = "agent.open-cluster-management.io/managed-cluster-arn";
    /// Order in which add-ons and works of a deleted cluster go, lowest number first, 0 to 100. `api:cluster/v1`,
    /// `CleanupPriorityAnnotationKey`
    pub const CLEANUP_PRIORITY: &str = "open-cluster-management.io/cleanup-priority";
    /// Since when the operator of a hosted Klusterlet that is being deleted cannot reach the managed cluster.
    /// `pkg/operator/operators/klusterlet`
    pub const EVICTION: &str = "operator.open-cluster-management.io/managed-resources-eviction-timestamp";
    /// Where to pull images for a managed cluster from. `api:cluster/v1`, `ClusterImageRegistriesAnnotationKey`
    pub const IMAGE_REGISTRIES: &str = "open-cluster-management.io/image-registries";
    /// Has the placement controller leave a Placement alone, with the value `true`. `api:cluster/v1beta1`,
    /// `PlacementDisableAnnotation`
    pub const SCHEDULING_DISABLED: &str = "cluster.open-cluster-management.io/experimental-scheduling-disable";
    /// Who installs an add-on and rolls out changes of its configuration. `api:addon/v1alpha1`,
    /// `AddonLifecycleAnnotationKey`
    pub const ADDON_LIFECYCLE: &str = "addon.open-cluster-management.io/lifecycle";
    /// Value of [`ADDON_LIFECYCLE`]: the hub's add-on manager does. `api:addon/v1alpha1`,
    /// `AddonLifecycleAddonManagerAnnotationValue`
    pub const ADDON_MANAGER: &str = "addon-manager";
    /// Cluster on which a hosted add-on runs. `api:addon/v1alpha1`, `HostingClusterNameAnnotationKey`
    pub const ADDON_HOSTING_CLUSTER: &str = "addon.open-cluster-management.io/hosting-cluster-name";
}

/// Finalizers.
pub mod finalizers {
    /// On a ManagedCluster: the hub has RBAC to remove. `api:cluster/v1`, `ManagedClusterFinalizer`
    pub const MANAGED_CLUSTER: &str = "cluster.open-cluster-management.io/api-resource-cleanup";
    /// On a ManagedCluster: the hub has add-ons and works to remove. `pkg/common/helpers`
    pub const RESOURCE_CLEANUP: &str = "cluster.open-cluster-management.io/resource-cleanup";
    /// On a ManifestWork: the agent has objects to remove. `api:work/v1`, `ManifestWorkFinalizer`
    pub const MANIFEST_WORK: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";
    /// On an AppliedManifestWork: the agent has objects to remove. `api:work/v1`, `AppliedManifestWorkFinalizer`
    pub const APPLIED_MANIFEST_WORK: &str = "cluster.open-cluster-management.io/applied-manifest-work-cleanup";
    /// On a ClusterManager: the operator has the hub to remove. `pkg/operator/operators/clustermanager`
    pub const CLUSTER_MANAGER: &str = "operator.open-cluster-management.io/cluster-manager-cleanup";
    /// On a Klusterlet: the operator has the agent to remove. `pkg/operator/operators/klusterlet`
    pub const KLUSTERLET: &str = "operator.open-cluster-management.io/klusterlet-cleanup";
    /// On a hosted Klusterlet: the operator has objects on the managed cluster to remove.
    /// `pkg/operator/operators/klusterlet`
    pub const KLUSTERLET_HOSTED: &str = "operator.open-cluster-management.io/klusterlet-hosted-cleanup";
    /// On a ManagedClusterAddOn: its pre-delete jobs have to run on the managed cluster. `api:addon/v1alpha1`,
    /// `AddonPreDeleteHookFinalizer`
    pub const ADDON_PRE_DELETE: &str = "addon.open-cluster-management.io/addon-pre-delete";
    /// On a ManagedClusterAddOn: its pre-delete jobs have to run on the hosting cluster. `api:addon/v1alpha1`,
    /// `AddonHostingPreDeleteHookFinalizer`
    pub const ADDON_HOSTING_PRE_DELETE: &str = "addon.open-cluster-management.io/hosting-addon-pre-delete";
    /// On a ManagedClusterAddOn: its works for the hosting cluster have to go. `api:addon/v1alpha1`,
    /// `AddonHostingManifestFinalizer`
    pub const ADDON_HOSTING_MANIFESTS: &str = "addon.open-cluster-management.io/hosting-manifests-cleanup";
}

/// Taints that the hub puts on ManagedClusters.
pub mod taints {
    /// The cluster says that its API server is unwell. `api:cluster/v1`, `ManagedClusterTaintUnavailable`
    pub const UNAVAILABLE: &str = "cluster.open-cluster-management.io/unavailable";
    /// The hub has not heard from the cluster. `api:cluster/v1`, `ManagedClusterTaintUnreachable`
    pub const UNREACHABLE: &str = "cluster.open-cluster-management.io/unreachable";
}

/// What the hub keeps per managed cluster.
pub mod hub {
    /// Lease that the agent renews, in the namespace named as the cluster. `pkg/registration/hub/lease`
    pub const MANAGED_CLUSTER_LEASE: &str = "managed-cluster-lease";
    /// Set that ManagedClusters without a set join. `pkg/registration/hub/managedclusterset`
    pub const DEFAULT_CLUSTER_SET: &str = "default";
    /// Set of all ManagedClusters. `pkg/registration/hub/managedclusterset`
    pub const GLOBAL_CLUSTER_SET: &str = "global";
    /// API group that exists only in RBAC: `managedclusters/accept` and `managedclusters/clientcertificates`.
    /// `pkg/registration/hub/manifests/rbac`
    pub const REGISTER_GROUP: &str = "register.open-cluster-management.io";

    /// ClusterRole and ClusterRoleBinding of one cluster's agent. `pkg/registration/hub/manifests/rbac`
    pub fn managed_cluster_role(cluster: &str) -> String {
        format!("open-cluster-management:managedcluster:{cluster}")
    }
}

/// The hub's admission webhooks. `manifests/cluster-manager/hub`
pub mod webhooks {
    /// MutatingWebhookConfiguration of ManagedClusters: taint times and the default set.
    pub const MANAGED_CLUSTER_MUTATOR: &str = "managedclustermutators.admission.cluster.open-cluster-management.io";
    /// ValidatingWebhookConfiguration of ManagedClusters: who may accept, who may join a set.
    pub const MANAGED_CLUSTER_VALIDATOR: &str = "managedclustervalidators.admission.cluster.open-cluster-management.io";
    /// ValidatingWebhookConfiguration of ManagedClusterSetBindings: who may bind a set.
    pub const SET_BINDING_VALIDATOR: &str =
        "managedclustersetbindingvalidators.admission.cluster.open-cluster-management.io";
    /// ValidatingWebhookConfiguration of ManifestWorks: size and executor.
    pub const MANIFEST_WORK_VALIDATOR: &str = "manifestworkvalidators.admission.work.open-cluster-management.io";
    /// Service of the first three; its name does not depend on the ClusterManager's.
    pub const REGISTRATION_SERVICE: &str = "cluster-manager-registration-webhook";
    /// Service of the ManifestWork webhook.
    pub const WORK_SERVICE: &str = "cluster-manager-work-webhook";
    /// Service of the conversion webhook of add-ons.
    pub const ADDON_SERVICE: &str = "cluster-manager-addon-webhook";

    /// The definitions whose versions the webhook of add-ons converts. `manifests/cluster-manager/hub/crds`
    pub const CONVERTED: &[&str] = &[
        "clustermanagementaddons.addon.open-cluster-management.io",
        "managedclusteraddons.addon.open-cluster-management.io",
    ];

    /// Every ValidatingWebhookConfiguration and the Service that answers for it.
    pub const VALIDATING: &[(&str, &str)] = &[
        (MANAGED_CLUSTER_VALIDATOR, REGISTRATION_SERVICE),
        (SET_BINDING_VALIDATOR, REGISTRATION_SERVICE),
        (MANIFEST_WORK_VALIDATOR, WORK_SERVICE),
    ];
    /// Every MutatingWebhookConfiguration and the Service that answers for it.
    pub const MUTATING: &[(&str, &str)] = &[(MANAGED_CLUSTER_MUTATOR, REGISTRATION_SERVICE)];
}

#[cfg(test)]
mod tests {
    use super::identity::*;
    use super::{bootstrap, namespaces};

    #[test]
    fn users_and_groups() {
        assert_eq!(agent_user("c1", "a1"), "system:open-cluster-management:c1:a1");
        assert_eq!(cluster_group("c1"), "system:open-cluster-management:c1");
        assert_eq!(parse_agent_user("system:open-cluster-management:c1:a1"), Some(("c1", "a1")));
        for other in [
            "system:open-cluster-management:c1",
            "system:open-cluster-management:c1:",
            "system:open-cluster-management::a1",
            "system:open-cluster-management:cluster:c1:addon:x:agent:y",
            "kubernetes-admin",
        ] {
            assert_eq!(parse_agent_user(other), None, "{other}");
        }
        let addon = "system:open-cluster-management:cluster:c1:addon:x:agent:y";
        assert_eq!(parse_addon_user(addon), Some(("c1", "x")));
        for other in [
            "system:open-cluster-management:c1:a1",
            "system:open-cluster-management:cluster:c1:addon:x",
            "system:open-cluster-management:cluster:c1:addon:x:agent:",
            "system:open-cluster-management:cluster:c1:d1:addon:x:agent:y",
            "kubernetes-admin",
        ] {
            assert_eq!(parse_addon_user(other), None, "{other}");
        }
        assert_eq!(service_account_user(namespaces::OPERATOR, bootstrap::SERVICE_ACCOUNT), BOOTSTRAP_USER);
        assert_eq!(service_account_user(namespaces::HUB, "grpc-server-sa"), GRPC_SERVER_USER);
        assert_eq!(bootstrap::token_user(bootstrap::TOKEN_ID), "system:bootstrap:ocmhub");
    }
}
