//! What has no place in an add-on: objects that make up the hub itself, or that decide about clusters.

use ocm_api::Manifest;
use ocm_api::names::{bootstrap, namespaces, operators, webhooks};

use crate::policy_engine;

/// The group of our own policies and registrations; names of our admission policies and webhooks end with the second.
const OURS: &str = "policy.kubectl-ocm.dev";
const OUR_NAMES: &str = ".kubectl-ocm.dev";
const OPERATOR_GROUP: &str = "operator.open-cluster-management.io";

/// Definitions that the hub's operator keeps, besides those of its own group. Upstream: `manifests/cluster-manager/hub`.
const DEFINITIONS: &[&str] = &[
    "addondeploymentconfigs.addon.open-cluster-management.io",
    "addontemplates.addon.open-cluster-management.io",
    "clustermanagementaddons.addon.open-cluster-management.io",
    "managedclusteraddons.addon.open-cluster-management.io",
    "addonplacementscores.cluster.open-cluster-management.io",
    "managedclusters.cluster.open-cluster-management.io",
    "managedclustersetbindings.cluster.open-cluster-management.io",
    "managedclustersets.cluster.open-cluster-management.io",
    "placementdecisions.cluster.open-cluster-management.io",
    "placements.cluster.open-cluster-management.io",
    "appliedmanifestworks.work.open-cluster-management.io",
    "manifestworkreplicasets.work.open-cluster-management.io",
    "manifestworks.work.open-cluster-management.io",
    "clusterprofiles.multicluster.x-k8s.io",
];

/// Starts of names of the rights that the hub's operator keeps.
const RIGHTS: &[&str] =
    &["open-cluster-management:cluster-manager", "open-cluster-management:managedcluster", bootstrap::CLUSTER_ROLE];

/// Why an object has no place in an add-on, behind its name; none if it may be in one.
pub(super) fn refusal(manifest: &Manifest) -> Option<&'static str> {
    const HUBS: &str = "belongs to the hub itself";
    const DECIDES: &str = "decides who registers at the hub";
    const ENGINES: &str = "belongs to the policy engine or the baseline of the hub";
    let (name, namespace) = (manifest.name(), manifest.namespace());
    let is_operators = [operators::CLUSTER_MANAGER, operators::KLUSTERLET].contains(&name);
    match (manifest.group(), manifest.kind()) {
        (OPERATOR_GROUP, _) => Some(HUBS),
        (OURS, _) => Some(ENGINES),
        ("cluster.open-cluster-management.io", "ManagedCluster") => Some(DECIDES),
        ("certificates.k8s.io", "CertificateSigningRequest") => Some(DECIDES),
        ("addon.open-cluster-management.io", "ManagedClusterAddOn") => {
            Some("enables the add-on on a cluster, which kubectl ocm addon enable does")
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let of = |group: &str| name.strip_suffix(group).is_some_and(|plural| plural.ends_with('.'));
            if of(OURS) { Some(ENGINES) } else { (of(OPERATOR_GROUP) || DEFINITIONS.contains(&name)).then_some(HUBS) }
        }
        ("admissionregistration.k8s.io", _) if name.ends_with(OUR_NAMES) || name == policy_engine::WEBHOOK => {
            Some(ENGINES)
        }
        ("admissionregistration.k8s.io", _) => {
            let is_hubs = webhooks::VALIDATING.iter().chain(webhooks::MUTATING).any(|(known, _)| *known == name);
            is_hubs.then_some(HUBS)
        }
        ("", "Namespace") if name == namespaces::HUB => Some(HUBS),
        ("", "Namespace") if name == policy_engine::NAMESPACE => Some(ENGINES),
        ("rbac.authorization.k8s.io", "ClusterRole" | "ClusterRoleBinding") => {
            (is_operators || RIGHTS.iter().any(|start| name.starts_with(start))).then_some(HUBS)
        }
        _ if namespace == Some(namespaces::HUB) => Some("is in the namespace that the hub's operator keeps"),
        _ if namespace == Some(policy_engine::NAMESPACE) => Some("is in the namespace of the policy engine"),
        ("apps", "Deployment") if namespace == Some(namespaces::OPERATOR) && is_operators => Some(HUBS),
        ("", "ServiceAccount") if namespace == Some(namespaces::OPERATOR) => {
            (is_operators || name == bootstrap::SERVICE_ACCOUNT).then_some(HUBS)
        }
        ("", "Secret") if manifest.body()["type"] == "bootstrap.kubernetes.io/token" => Some(DECIDES),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_refused(api_version: &str, kind: &str, namespace: &str, name: &str) -> bool {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = namespace.into();
        }
        refusal(&Manifest::written("plural", object).unwrap()).is_some()
    }

    #[test]
    fn what_makes_up_the_hub_is_refused() {
        let definition = "apiextensions.k8s.io/v1";
        let admission = "admissionregistration.k8s.io/v1";
        let rights = "rbac.authorization.k8s.io/v1";
        for (api_version, kind, namespace, name) in [
            ("operator.open-cluster-management.io/v1", "ClusterManager", "", "other"),
            ("operator.open-cluster-management.io/v1", "Klusterlet", "", "klusterlet"),
            ("policy.kubectl-ocm.dev/v1alpha1", "HubPolicy", "", "p"),
            ("cluster.open-cluster-management.io/v1", "ManagedCluster", "", "c1"),
            ("addon.open-cluster-management.io/v1alpha1", "ManagedClusterAddOn", "c1", "a"),
            ("certificates.k8s.io/v1", "CertificateSigningRequest", "", "r"),
            (definition, "CustomResourceDefinition", "", "clustermanagers.operator.open-cluster-management.io"),
            (definition, "CustomResourceDefinition", "", "placements.cluster.open-cluster-management.io"),
            (definition, "CustomResourceDefinition", "", "registrations.policy.kubectl-ocm.dev"),
            (admission, "ValidatingWebhookConfiguration", "", webhooks::MANIFEST_WORK_VALIDATOR),
            (admission, "MutatingWebhookConfiguration", "", webhooks::MANAGED_CLUSTER_MUTATOR),
            (admission, "ValidatingWebhookConfiguration", "", policy_engine::WEBHOOK),
            (admission, "ValidatingAdmissionPolicyBinding", "", crate::baseline::NAMES[0]),
            ("v1", "Namespace", "", "open-cluster-management-hub"),
            ("v1", "ConfigMap", "open-cluster-management-hub", "a"),
            ("v1", "Secret", "ocm-policy-engine", "a"),
            ("apps/v1", "Deployment", "open-cluster-management", "cluster-manager"),
            ("v1", "ServiceAccount", "open-cluster-management", "agent-registration-bootstrap"),
            (rights, "ClusterRole", "", "open-cluster-management:bootstrap"),
            (rights, "ClusterRoleBinding", "", "open-cluster-management:managedcluster:c1"),
            (rights, "ClusterRole", "", "cluster-manager"),
        ] {
            assert!(is_refused(api_version, kind, namespace, name), "{kind} {name}");
        }
    }

    #[test]
    fn what_add_ons_bring_is_not() {
        for (api_version, kind, namespace, name) in [
            ("addon.open-cluster-management.io/v1alpha1", "ClusterManagementAddOn", "", "a"),
            ("addon.open-cluster-management.io/v1alpha1", "AddOnTemplate", "", "a-1"),
            ("cluster.open-cluster-management.io/v1beta1", "Placement", "open-cluster-management", "a"),
            ("apps/v1", "Deployment", "open-cluster-management", "a-controller"),
            ("v1", "ServiceAccount", "open-cluster-management", "a-controller"),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "policies.policy.open-cluster-management.io"),
            (
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                "",
                "managedproxyconfigurations.proxy.open-cluster-management.io",
            ),
            ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "a"),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", "", "open-cluster-management:a"),
            ("v1", "Namespace", "", "open-cluster-management-a"),
        ] {
            assert!(!is_refused(api_version, kind, namespace, name), "{kind} {name}");
        }
    }
}
