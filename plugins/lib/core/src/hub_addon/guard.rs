//! What has no place in an add-on: objects that make up the hub itself, or that decide about clusters.

use ocm_api::Manifest;
use ocm_api::names::identity::BOOTSTRAP_USER;
use ocm_api::names::{bootstrap, namespaces, operators, webhooks};
use serde_json::Value;

use super::content::text;
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
const RIGHTS: &[&str] = &[
    "open-cluster-management:cluster-manager",
    "open-cluster-management:managedcluster",
    bootstrap::CLUSTER_ROLE,
    bootstrap::FORMER_CLUSTER_ROLE,
];

/// Groups of which everything that makes up a hub and decides about clusters is: nobody else may answer for them.
const GROUPS: &[&str] = &[
    OURS,
    OPERATOR_GROUP,
    "addon.open-cluster-management.io",
    "cluster.open-cluster-management.io",
    "work.open-cluster-management.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "rbac.authorization.k8s.io",
];

/// Groups and users of those that nobody has let in yet: starts of their names. Kubernetes: `user.go`, and the names of its
/// bootstrap tokens.
const STRANGERS: &[&str] =
    &["system:anonymous", "system:unauthenticated", "system:bootstrappers", bootstrap::TOKEN_USER_PREFIX];

/// Groups that hold, besides others, those whom nobody has accepted yet: agents with a bootstrap token, and with the account that
/// agents register with. Kubernetes: `user.go`, `serviceaccount.MakeNamespaceGroupName`.
const WITH_STRANGERS: &[&str] =
    &["system:authenticated", "system:serviceaccounts", "system:serviceaccounts:open-cluster-management"];

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
        ("rbac.authorization.k8s.io", "ClusterRole" | "ClusterRoleBinding") if is_operators || is_right(name) => {
            Some(HUBS)
        }
        ("rbac.authorization.k8s.io", "ClusterRoleBinding" | "RoleBinding") if lets_strangers_in(manifest.body()) => {
            Some("gives rights to whoever registers, or to clusters that nobody has accepted")
        }
        ("apiregistration.k8s.io", _) => GROUPS.contains(&text(manifest.body(), "/spec/group")).then_some(HUBS),
        _ if namespace == Some(namespaces::HUB) => Some("is in the namespace that the hub's operator keeps"),
        _ if namespace == Some(policy_engine::NAMESPACE) => Some("is in the namespace of the policy engine"),
        ("apps", "Deployment") if namespace == Some(namespaces::OPERATOR) && is_operators => Some(HUBS),
        ("", "ServiceAccount") if namespace == Some(namespaces::OPERATOR) => {
            (is_operators || name == bootstrap::SERVICE_ACCOUNT).then_some(HUBS)
        }
        ("", "Secret") if manifest.body()["type"] == "bootstrap.kubernetes.io/token" => Some(DECIDES),
        // A token of an account of the hub: who reads it may do what that one may.
        ("", "Secret") if namespace == Some(namespaces::OPERATOR) => match account(manifest.body()) {
            bootstrap::SERVICE_ACCOUNT => Some(DECIDES),
            operators::CLUSTER_MANAGER | operators::KLUSTERLET => Some(HUBS),
            _ => None,
        },
        _ => None,
    }
}

fn is_right(name: &str) -> bool {
    RIGHTS.iter().any(|start| name.starts_with(start))
}

/// Whether a binding gives somebody the rights of agents that register, or gives rights to those who are not let in yet.
fn lets_strangers_in(binding: &Value) -> bool {
    let role = text(binding, "/roleRef/name");
    let is_stranger = |subject: &Value| {
        let name = text(subject, "/name");
        match text(subject, "/kind") {
            "ServiceAccount" => {
                (text(subject, "/namespace"), name) == (namespaces::OPERATOR, bootstrap::SERVICE_ACCOUNT)
            }
            "Group" if WITH_STRANGERS.contains(&name) => true,
            _ => name == BOOTSTRAP_USER || STRANGERS.iter().any(|start| name.starts_with(start)),
        }
    };
    let mut subjects = binding["subjects"].as_array().into_iter().flatten();
    role.starts_with(bootstrap::CLUSTER_ROLE)
        || role.starts_with(bootstrap::FORMER_CLUSTER_ROLE)
        || subjects.any(is_stranger)
}

/// The account of which a Secret holds a token; empty if it holds none.
fn account(secret: &Value) -> &str {
    if secret["type"] != "kubernetes.io/service-account-token" {
        return "";
    }
    secret["metadata"]["annotations"]["kubernetes.io/service-account.name"].as_str().unwrap_or_default()
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
            (rights, "ClusterRole", "", "system:open-cluster-management:bootstrap"),
        ] {
            assert!(is_refused(api_version, kind, namespace, name), "{kind} {name}");
        }
    }

    #[test]
    fn what_lets_strangers_in_is_refused_whatever_it_is_called() {
        let refused = |api_version: &str, kind: &str, namespace: Value, members: Value| {
            let mut object = json!({"apiVersion": api_version, "kind": kind,
                "metadata": {"name": "a", "namespace": namespace}});
            for (member, value) in members.as_object().unwrap() {
                object[member] = value.clone();
            }
            refusal(&Manifest::written("plural", object).unwrap()).is_some()
        };
        let binding = |role: &str, subject: Value| {
            let members = json!({"roleRef": {"kind": "ClusterRole", "name": role}, "subjects": [subject]});
            refused("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", Value::Null, members)
        };
        let own = json!({"kind": "ServiceAccount", "namespace": "open-cluster-management", "name": "a"});
        assert!(!binding("a", own.clone()));
        assert!(binding("open-cluster-management:bootstrap", own.clone()));
        assert!(binding("open-cluster-management:bootstrap:clusterset:a", own.clone()));
        assert!(binding("system:open-cluster-management:bootstrap", own));
        for (kind, name, is_one) in [
            ("Group", "system:unauthenticated", true),
            ("User", "system:anonymous", true),
            ("Group", "system:bootstrappers:managedcluster", true),
            ("User", "system:bootstrap:ocmhub", true),
            ("User", BOOTSTRAP_USER, true),
            ("Group", "system:authenticated", true),
            ("Group", "system:serviceaccounts", true),
            ("Group", "system:serviceaccounts:open-cluster-management", true),
            ("Group", "system:serviceaccounts:a", false),
            ("Group", "system:open-cluster-management:addon:a", false),
        ] {
            assert_eq!(binding("a", json!({"kind": kind, "name": name})), is_one, "{name}");
        }
        let account = json!({"kind": "ServiceAccount", "namespace": "open-cluster-management",
            "name": bootstrap::SERVICE_ACCOUNT});
        assert!(binding("a", account));

        let secret = |kind: &str, account: &str| {
            let metadata = json!({"name": "a", "namespace": "open-cluster-management",
                "annotations": {"kubernetes.io/service-account.name": account}});
            refused("v1", "Secret", "open-cluster-management".into(), json!({"type": kind, "metadata": metadata}))
        };
        let token = "kubernetes.io/service-account-token";
        assert!(secret(token, bootstrap::SERVICE_ACCOUNT) && secret(token, "cluster-manager"));
        assert!(!secret(token, "a") && !secret("Opaque", bootstrap::SERVICE_ACCOUNT));
        assert!(secret("bootstrap.kubernetes.io/token", "a"));

        let serves = |group: &str| {
            refused("apiregistration.k8s.io/v1", "APIService", Value::Null, json!({"spec": {"group": group}}))
        };
        assert!(serves("cluster.open-cluster-management.io") && serves("certificates.k8s.io"));
        assert!(!serves("proxy.open-cluster-management.io"));
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
