//! Kinds of objects: what they are called in URLs, whether they have namespaces, and which of them others need.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Content;
use super::content::{group, text};
use crate::order::{self, Collect as _};

/// What has to be known of a kind to address its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Plural resource name.
    pub plural: String,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
}

/// What is known of kinds, by API version and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kinds(BTreeMap<(String, String), Kind>);

/// Kinds of Kubernetes itself in namespaces: group, kind, plural.
const NAMESPACED: &[(&str, &str, &str)] = &[
    ("", "ConfigMap", "configmaps"),
    ("", "Endpoints", "endpoints"),
    ("", "LimitRange", "limitranges"),
    ("", "PersistentVolumeClaim", "persistentvolumeclaims"),
    ("", "Pod", "pods"),
    ("", "ReplicationController", "replicationcontrollers"),
    ("", "ResourceQuota", "resourcequotas"),
    ("", "Secret", "secrets"),
    ("", "Service", "services"),
    ("", "ServiceAccount", "serviceaccounts"),
    ("apps", "DaemonSet", "daemonsets"),
    ("apps", "Deployment", "deployments"),
    ("apps", "ReplicaSet", "replicasets"),
    ("apps", "StatefulSet", "statefulsets"),
    ("autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    ("batch", "CronJob", "cronjobs"),
    ("batch", "Job", "jobs"),
    ("coordination.k8s.io", "Lease", "leases"),
    ("networking.k8s.io", "Ingress", "ingresses"),
    ("networking.k8s.io", "NetworkPolicy", "networkpolicies"),
    ("policy", "PodDisruptionBudget", "poddisruptionbudgets"),
    ("rbac.authorization.k8s.io", "Role", "roles"),
    ("rbac.authorization.k8s.io", "RoleBinding", "rolebindings"),
    ("addon.open-cluster-management.io", "AddOnDeploymentConfig", "addondeploymentconfigs"),
    ("addon.open-cluster-management.io", "ManagedClusterAddOn", "managedclusteraddons"),
    ("cluster.open-cluster-management.io", "ManagedClusterSetBinding", "managedclustersetbindings"),
    ("cluster.open-cluster-management.io", "Placement", "placements"),
    ("work.open-cluster-management.io", "ManifestWork", "manifestworks"),
    ("work.open-cluster-management.io", "ManifestWorkReplicaSet", "manifestworkreplicasets"),
];

/// The same of kinds without namespaces.
const CLUSTER_WIDE: &[(&str, &str, &str)] = &[
    ("", "Namespace", "namespaces"),
    ("", "PersistentVolume", "persistentvolumes"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    ("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions"),
    ("apiregistration.k8s.io", "APIService", "apiservices"),
    ("certificates.k8s.io", "CertificateSigningRequest", "certificatesigningrequests"),
    ("rbac.authorization.k8s.io", "ClusterRole", "clusterroles"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings"),
    ("scheduling.k8s.io", "PriorityClass", "priorityclasses"),
    ("storage.k8s.io", "StorageClass", "storageclasses"),
    ("addon.open-cluster-management.io", "AddOnTemplate", "addontemplates"),
    ("addon.open-cluster-management.io", "ClusterManagementAddOn", "clustermanagementaddons"),
    ("cluster.open-cluster-management.io", "ManagedCluster", "managedclusters"),
    ("cluster.open-cluster-management.io", "ManagedClusterSet", "managedclustersets"),
    ("operator.open-cluster-management.io", "ClusterManager", "clustermanagers"),
    ("operator.open-cluster-management.io", "Klusterlet", "klusterlets"),
];

/// A kind that every hub serves.
fn known(group: &str, kind: &str) -> Option<Kind> {
    let find = |all: &[(&str, &str, &'static str)]| {
        all.iter().find(|(of, name, _)| *of == group && *name == kind).map(|(_, _, plural)| (*plural).to_owned())
    };
    let namespaced = find(NAMESPACED).map(|plural| Kind { plural, namespaced: true });
    namespaced.or_else(|| find(CLUSTER_WIDE).map(|plural| Kind { plural, namespaced: false }))
}

impl Kinds {
    /// The kinds of some objects that every hub serves, and those that the objects themselves define.
    pub fn of(content: &Content) -> Self {
        let defined: BTreeMap<(&str, &str), Kind> = content.values().filter_map(definition).collect_map();
        let mut all = Self::default();
        for object in content.values() {
            let (group, kind) = (group(object), text(object, "/kind"));
            if let Some(found) = known(group, kind).or_else(|| defined.get(&(group, kind)).cloned()) {
                all.learn(text(object, "/apiVersion"), kind, found);
            }
        }
        all
    }

    /// Notes down what is known of a kind.
    pub fn learn(&mut self, api_version: &str, kind: &str, known: Kind) {
        self.0.insert((api_version.to_owned(), kind.to_owned()), known);
    }

    /// What is known of a kind.
    pub fn get(&self, api_version: &str, kind: &str) -> Option<&Kind> {
        self.0.get(&(api_version.to_owned(), kind.to_owned()))
    }

    /// API versions and kinds of objects of which nothing is known, each once.
    pub fn missing(&self, content: &Content) -> Vec<(String, String)> {
        let mut missing: Vec<(String, String)> = content
            .values()
            .map(|object| (text(object, "/apiVersion").to_owned(), text(object, "/kind").to_owned()))
            .filter(|key| !self.0.contains_key(key))
            .collect();
        order::sort(&mut missing);
        missing.dedup();
        missing
    }
}

/// What a definition defines: group, kind, and what is to be known of it.
fn definition(object: &Value) -> Option<((&str, &str), Kind)> {
    if (group(object), text(object, "/kind")) != ("apiextensions.k8s.io", "CustomResourceDefinition") {
        return None;
    }
    let plural = text(object, "/spec/names/plural");
    let key = (text(object, "/spec/group"), text(object, "/spec/names/kind"));
    let is_complete = !plural.is_empty() && !key.1.is_empty();
    is_complete
        .then(|| (key, Kind { plural: plural.to_owned(), namespaced: text(object, "/spec/scope") == "Namespaced" }))
}

/// What objects of a kind are for, in the order in which they are made; they are deleted in the opposite one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Namespaces.
    Namespaces,
    /// Definitions of kinds.
    Definitions,
    /// What workloads need: accounts, rights, settings, Services.
    Settings,
    /// What gives rights to accounts: an API server looks at the rights when they are given.
    Bindings,
    /// What makes pods.
    Workloads,
    /// Objects of all other kinds, which workloads may have to look after.
    Objects,
    /// What offers an add-on to clusters.
    AddOns,
    /// What an API server asks, or passes on, before it answers: it would refuse the others.
    Webhooks,
}

impl Rank {
    /// All of them, in their order.
    pub const ALL: [Self; 8] = [
        Self::Namespaces,
        Self::Definitions,
        Self::Settings,
        Self::Bindings,
        Self::Workloads,
        Self::Objects,
        Self::AddOns,
        Self::Webhooks,
    ];

    /// That of a kind.
    pub fn of(group: &str, kind: &str) -> Self {
        match (group, kind) {
            ("", "Namespace") => Self::Namespaces,
            ("apiextensions.k8s.io", "CustomResourceDefinition") => Self::Definitions,
            ("rbac.authorization.k8s.io", "ClusterRoleBinding" | "RoleBinding") => Self::Bindings,
            ("apps" | "batch" | "autoscaling", _) | ("", "Pod" | "ReplicationController") => Self::Workloads,
            ("addon.open-cluster-management.io", "ClusterManagementAddOn") => Self::AddOns,
            ("admissionregistration.k8s.io" | "apiregistration.k8s.io", _) => Self::Webhooks,
            (group, kind) if !group.ends_with(".open-cluster-management.io") && known(group, kind).is_some() => {
                Self::Settings
            }
            _ => Self::Objects,
        }
    }

    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Definitions => "custom resource definitions",
            Self::Settings => "accounts, rights and settings",
            Self::Bindings => "bindings of rights",
            Self::Workloads => "workloads",
            Self::Objects => "custom resources",
            Self::AddOns => "add-ons",
            Self::Webhooks => "admission webhooks",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::work::Document;

    #[test]
    fn kinds_are_known_from_kubernetes_and_from_definitions_beside_them() {
        let objects = [
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}}),
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "hellos.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
                "names": {"kind": "Hello", "plural": "hellos"}}}),
            json!({"apiVersion": "example.com/v1", "kind": "Hello", "metadata": {"name": "a"}}),
            json!({"apiVersion": "other.example.com/v1", "kind": "Hello", "metadata": {"name": "a"}}),
        ];
        let document = |value: Value| Document { source: "f".to_owned(), value };
        let content = Content::read(objects.map(document).to_vec()).unwrap();
        let mut kinds = Kinds::of(&content);
        assert_eq!(kinds.get("example.com/v1", "Hello"), Some(&Kind { plural: "hellos".to_owned(), namespaced: true }));
        assert_eq!(kinds.get("apps/v1", "Deployment").unwrap().plural, "deployments");
        let other = ("other.example.com/v1".to_owned(), "Hello".to_owned());
        assert_eq!(kinds.missing(&content), std::slice::from_ref(&other));
        kinds.learn(&other.0, &other.1, Kind { plural: "hellos".to_owned(), namespaced: false });
        assert!(kinds.missing(&content).is_empty());
    }

    #[test]
    fn what_others_need_comes_first() {
        let ranks = [
            ("", "Namespace"),
            ("apiextensions.k8s.io", "CustomResourceDefinition"),
            ("rbac.authorization.k8s.io", "ClusterRole"),
            ("rbac.authorization.k8s.io", "RoleBinding"),
            ("batch", "Job"),
            ("addon.open-cluster-management.io", "AddOnTemplate"),
            ("addon.open-cluster-management.io", "ClusterManagementAddOn"),
            ("apiregistration.k8s.io", "APIService"),
        ]
        .map(|(group, kind)| Rank::of(group, kind));
        assert_eq!(ranks, Rank::ALL);
        assert_eq!(Rank::of("example.com", "Deployment"), Rank::Objects);
        assert_eq!(Rank::of("cluster.open-cluster-management.io", "Placement"), Rank::Objects);
    }
}
