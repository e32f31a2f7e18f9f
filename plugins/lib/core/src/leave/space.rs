//! Whether a namespace may go: who made it, and what in it is somebody else's.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use ocm_api::names::{bootstrap, hub, identity, labels, operators, secrets};
use serde_json::Value;

use crate::install::gateway;
use crate::order;
use crate::reconcile::FIELD_MANAGER;

/// One object in a namespace, as a sweep over every kind finds it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Plural resource name.
    pub plural: String,
    /// Its metadata.
    pub metadata: ObjectMeta,
}

impl Content {
    /// `secret/s1`, as kubectl names it.
    pub fn reference(&self) -> String {
        let name = self.metadata.name.as_deref().unwrap_or_default();
        let kind = self.kind.to_ascii_lowercase();
        match self.group.as_str() {
            "" => format!("{kind}/{name}"),
            group => format!("{kind}.{group}/{name}"),
        }
    }

    fn is(&self, kind: &str, names: &[&str]) -> bool {
        self.kind == kind && names.contains(&self.metadata.name.as_deref().unwrap_or_default())
    }

    /// Whether Kubernetes or OpenShift puts it into every namespace, it goes with its owner, or it tells of others.
    fn comes_along(&self) -> bool {
        let name = self.metadata.name.as_deref().unwrap_or_default();
        let of_account = "kubernetes.io/service-account.name";
        self.metadata.owner_references.as_ref().is_some_and(|owners| !owners.is_empty())
            || is_view(&self.kind)
            || self.is("ConfigMap", &["kube-root-ca.crt", "openshift-service-ca.crt"])
            || self.is("ServiceAccount", &["default", "builder", "deployer"])
            || (self.kind == "RoleBinding" && name.starts_with("system:"))
            || (self.kind == "Secret"
                && self.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(of_account)))
    }

    /// Whether the hub keeps it in the namespace of a cluster.
    fn is_of_cluster(&self, cluster: &str) -> bool {
        let name = self.metadata.name.as_deref().unwrap_or_default();
        let role = hub::managed_cluster_role(cluster);
        self.is("Lease", &[hub::MANAGED_CLUSTER_LEASE])
            || (self.kind == "RoleBinding" && name.strip_prefix(&role).is_some_and(|rest| rest.starts_with(':')))
    }

    /// Whether an operator, or whoever installed it, keeps it in the operators' namespace.
    fn is_of(&self, operator: Operator) -> bool {
        let (accounts, lock): (&[&str], _) = match operator {
            Operator::Klusterlet => (&[operators::KLUSTERLET], operators::KLUSTERLET_LOCK),
            Operator::ClusterManager => {
                (&[operators::CLUSTER_MANAGER, bootstrap::SERVICE_ACCOUNT], operators::CLUSTER_MANAGER_LOCK)
            }
        };
        self.is("Deployment", &[operator.name()])
            || self.is("ServiceAccount", accounts)
            || self.is("Lease", &[lock])
            || self.is("Secret", &[secrets::IMAGE_PULL_CREDENTIALS])
    }
}

/// One of the two operators, which share a namespace where a hub manages itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// A managed cluster's.
    Klusterlet,
    /// A hub's.
    ClusterManager,
}

impl Operator {
    /// Name of its Deployment and of its rights; with `app=` before it, the label of its pods.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Klusterlet => operators::KLUSTERLET,
            Self::ClusterManager => operators::CLUSTER_MANAGER,
        }
    }
}

/// Whether objects of a kind only tell of other objects, and come and go with them.
pub fn is_view(kind: &str) -> bool {
    matches!(kind, "Event" | "Endpoints" | "EndpointSlice" | "PodMetrics")
}

/// What in the namespace of a cluster on its hub is neither the hub's nor Kubernetes' own: references, sorted.
pub fn foreign_of_cluster(contents: &[Content], cluster: &str) -> Vec<String> {
    foreign(contents, |content| content.is_of_cluster(cluster))
}

/// The same of the operators' namespace, on a cluster with only this operator.
pub fn foreign_of_operator(contents: &[Content], operator: Operator) -> Vec<String> {
    foreign(contents, |content| content.is_of(operator))
}

/// The same of a namespace that was made for an add-on, whose objects are told by their metadata: what goes already counts
/// no more, and neither do locks, which leave with who holds them.
pub fn foreign_of_addon(contents: &[Content], is_its: impl Fn(&ObjectMeta) -> bool) -> Vec<String> {
    foreign(contents, |content| {
        let metadata = &content.metadata;
        metadata.deletion_timestamp.is_some() || content.kind == "Lease" || is_its(metadata)
    })
}

/// What is left in the namespace of a hub's pods where there is no ClusterManager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftOfHub {
    /// Nothing of a hub's.
    Nothing,
    /// What an installation has made that was killed, and nothing else.
    Ours,
    /// What the operator of a hub has made, or what is somebody else's beside what is ours: references, sorted.
    Others(Vec<String>),
}

/// Judges the namespace of a hub's pods, and what is in it, where there is no ClusterManager.
pub fn left_of_hub(namespace: &ObjectMeta, contents: &[Content]) -> LeftOfHub {
    let is_ours = |content: &Content| {
        let is_core = content.group.is_empty() && matches!(content.kind.as_str(), "Service" | "Secret");
        let is_route = content.group == gateway::GROUP && content.kind == gateway::ROUTE;
        (is_core || is_route) && is_applied_by_us(&content.metadata)
    };
    let is_hubs =
        |content: &Content| matches!(content.kind.as_str(), "Deployment" | "ServiceAccount") && !content.comes_along();
    let is_begun = is_applied_by_us(namespace) || contents.iter().any(is_ours);
    let others = foreign(contents, is_ours);
    match others.is_empty() {
        true if is_begun => LeftOfHub::Ours,
        false if is_begun || contents.iter().any(is_hubs) => LeftOfHub::Others(others),
        _ => LeftOfHub::Nothing,
    }
}

fn is_applied_by_us(metadata: &ObjectMeta) -> bool {
    metadata
        .managed_fields
        .iter()
        .flatten()
        .any(|entry| entry.manager.as_deref() == Some(FIELD_MANAGER) && entry.operation.as_deref() == Some("Apply"))
}

fn foreign(contents: &[Content], is_known: impl Fn(&Content) -> bool) -> Vec<String> {
    let foreign = contents.iter().filter(|content| !content.comes_along() && !is_known(content));
    let mut all: Vec<String> = foreign.map(Content::reference).collect();
    order::sort(&mut all);
    all.dedup();
    all
}

/// Whether the hub made the namespace of this cluster. Where it was there before, the hub labels it, too; but then somebody
/// else owns the label that the API server gives every namespace when it is made.
pub fn is_made_by_hub(namespace: &ObjectMeta, cluster: &str) -> bool {
    let labelled = namespace.labels.as_ref().and_then(|all| all.get(labels::CLUSTER_NAME));
    labelled.is_some_and(|label| label == cluster)
        && namespace.managed_fields.iter().flatten().any(|entry| {
            entry.manager.as_deref() == Some(identity::REGISTRATION_MANAGER)
                && owns_label(entry, "kubernetes.io/metadata.name")
        })
}

fn owns_label(entry: &ManagedFieldsEntry, label: &str) -> bool {
    let labels = entry.fields_v1.as_ref().and_then(|fields| fields.0.pointer("/f:metadata/f:labels"));
    labels.and_then(Value::as_object).is_some_and(|labels| labels.contains_key(&format!("f:{label}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn content(group: &str, kind: &str, metadata: Value) -> Content {
        Content {
            group: group.to_owned(),
            kind: kind.to_owned(),
            plural: String::new(),
            metadata: serde_json::from_value(metadata).unwrap(),
        }
    }

    #[test]
    fn what_kubernetes_and_the_hub_keep_in_a_namespace_is_nobody_elses() {
        let own = [
            content("", "ConfigMap", json!({"name": "kube-root-ca.crt"})),
            content("", "ServiceAccount", json!({"name": "default"})),
            content("events.k8s.io", "Event", json!({"name": "e"})),
            content("coordination.k8s.io", "Lease", json!({"name": "managed-cluster-lease"})),
            content(
                "rbac.authorization.k8s.io",
                "RoleBinding",
                json!({"name": "open-cluster-management:managedcluster:c1:work"}),
            ),
            content(
                "",
                "Secret",
                json!({"name": "t", "annotations": {"kubernetes.io/service-account.name": "default"}}),
            ),
            content(
                "apps",
                "ReplicaSet",
                json!({"name": "r", "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "1"}]}),
            ),
        ];
        assert_eq!(foreign_of_cluster(&own, "c1"), Vec::<String>::new());
        let others = [
            content("", "Secret", json!({"name": "s"})),
            content("apps", "Deployment", json!({"name": "klusterlet"})),
            // Of another cluster.
            content(
                "rbac.authorization.k8s.io",
                "RoleBinding",
                json!({"name": "open-cluster-management:managedcluster:c10:work"}),
            ),
        ];
        let all: Vec<Content> = own.into_iter().chain(others.clone()).collect();
        assert_eq!(
            foreign_of_cluster(&all, "c1"),
            [
                "deployment.apps/klusterlet",
                "rolebinding.rbac.authorization.k8s.io/open-cluster-management:managedcluster:c10:work",
                "secret/s"
            ]
        );
        assert_eq!(foreign_of_operator(&others[..2], Operator::Klusterlet), ["secret/s"]);
        assert_eq!(foreign_of_operator(&others[1..2], Operator::ClusterManager), ["deployment.apps/klusterlet"]);
    }

    #[test]
    fn in_the_namespace_of_an_add_on_only_what_stays_is_somebody_elses() {
        let all = [
            content("", "ConfigMap", json!({"name": "theirs"})),
            content("", "ConfigMap", json!({"name": "its", "labels": {"a": "b"}})),
            content("", "Secret", json!({"name": "going", "deletionTimestamp": "2026-01-01T00:00:00Z"})),
            content("coordination.k8s.io", "Lease", json!({"name": "lock"})),
        ];
        assert_eq!(foreign_of_addon(&all, |metadata| metadata.labels.is_some()), ["configmap/theirs"]);
    }

    #[test]
    fn of_a_hub_without_a_cluster_manager_only_what_we_have_made_may_go() {
        let ours =
            json!([{"manager": FIELD_MANAGER, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"}]);
        let made: ObjectMeta = serde_json::from_value(json!({"name": "h", "managedFields": ours})).unwrap();
        let theirs = ObjectMeta::default();
        let usual = content("", "ServiceAccount", json!({"name": "default"}));
        let exposed = content("", "Service", json!({"name": "external", "managedFields": ours}));
        let prepared = content("", "Service", json!({"name": "prepared"}));
        let left = |namespace: &ObjectMeta, contents: &[&Content]| {
            left_of_hub(namespace, &contents.iter().map(|content| (*content).clone()).collect::<Vec<_>>())
        };
        assert_eq!(left(&made, &[&usual]), LeftOfHub::Ours);
        assert_eq!(left(&theirs, &[&usual, &exposed]), LeftOfHub::Ours);
        let route = content(gateway::GROUP, "TLSRoute", json!({"name": "server", "managedFields": ours}));
        assert_eq!(left(&theirs, &[&usual, &route]), LeftOfHub::Ours);
        assert_eq!(left(&theirs, &[&usual]), LeftOfHub::Nothing);
        assert_eq!(left(&theirs, &[&prepared]), LeftOfHub::Nothing, "somebody's, before there is a hub");
        assert_eq!(left(&made, &[&prepared]), LeftOfHub::Others(vec!["service/prepared".to_owned()]));
        let controller = content("apps", "Deployment", json!({"name": "c"}));
        let others = vec!["deployment.apps/c".to_owned(), "service/prepared".to_owned()];
        assert_eq!(left(&theirs, &[&exposed, &prepared, &controller]), LeftOfHub::Others(others));
        let account = content("", "ServiceAccount", json!({"name": "registration-controller-sa"}));
        assert!(matches!(left(&theirs, &[&account]), LeftOfHub::Others(_)));
    }

    fn namespace(manager: &str, fields: Value) -> ObjectMeta {
        serde_json::from_value(json!({
            "name": "c1",
            "labels": {labels::CLUSTER_NAME: "c1", "kubernetes.io/metadata.name": "c1"},
            "managedFields": [{"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": {"f:labels": fields}}}],
        }))
        .unwrap()
    }

    #[test]
    fn a_namespace_that_was_there_before_is_not_the_hubs() {
        let both =
            json!({".": {}, "f:kubernetes.io/metadata.name": {}, "f:open-cluster-management.io/cluster-name": {}});
        assert!(is_made_by_hub(&namespace("registration", both.clone()), "c1"));
        assert!(!is_made_by_hub(&namespace("registration", both.clone()), "c2"));
        assert!(!is_made_by_hub(&namespace("kubectl-create", both), "c1"));
        let label = json!({"f:open-cluster-management.io/cluster-name": {}});
        assert!(!is_made_by_hub(&namespace("registration", label), "c1"));
        assert!(!is_made_by_hub(&ObjectMeta::default(), "c1"));
    }
}
