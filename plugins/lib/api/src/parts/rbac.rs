//! Who has which role.

part_object! {
    /// Whom a role is given on the whole cluster.
    pub struct ClusterRoleBinding {
        /// The role.
        "roleRef" => role_ref: RoleRef,
        /// Those who have it.
        "subjects" => subjects: Option<Vec<Subject>>,
    }
    group "rbac.authorization.k8s.io", version "v1", plural "clusterrolebindings", scope ClusterResourceScope
}

part! {
    /// A role.
    pub struct RoleRef {
        /// Its kind.
        "kind" => kind: String,
        /// Its name.
        "name" => name: String,
    }

    /// Somebody who has a role.
    pub struct Subject {
        /// `ServiceAccount`, `User` or `Group`.
        "kind" => kind: String,
        /// The name.
        "name" => name: String,
        /// The namespace of a service account.
        "namespace" => namespace: Option<String>,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::rbac::v1 as whole;
    use serde_json::json;

    use super::super::tests::{both, refused};
    use super::*;

    #[test]
    fn of_a_binding_the_same_is_read() {
        let (part, whole): (ClusterRoleBinding, whole::ClusterRoleBinding) = both(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "b", "labels": {"a": "b"}},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "klusterlet", "namespace": "open-cluster-management"},
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:masters"}],
        }));
        assert_eq!(part.metadata, whole.metadata);
        assert_eq!((part.role_ref.kind, part.role_ref.name), (whole.role_ref.kind, whole.role_ref.name));
        let of_whole = whole.subjects.unwrap().into_iter();
        let of_whole = of_whole.map(|one| Subject { kind: one.kind, name: one.name, namespace: one.namespace });
        assert_eq!(part.subjects.unwrap(), of_whole.collect::<Vec<_>>());
        let (part, _): (ClusterRoleBinding, whole::ClusterRoleBinding) =
            both(json!({"metadata": {}, "roleRef": {"name": "x"}, "subjects": null}));
        assert_eq!(part.subjects, None);
        for wrong in
            [json!({"roleRef": {"name": 1}}), json!({"subjects": [{"namespace": false}]}), json!({"subjects": 1})]
        {
            refused::<ClusterRoleBinding, whole::ClusterRoleBinding>(wrong);
        }
    }
}
