//! Namespaces that are being removed.

part_object! {
    /// A namespace.
    pub struct Namespace {
        /// What was last observed.
        "status" => status: Option<NamespaceStatus>,
    }
    group "", version "v1", plural "namespaces", scope ClusterResourceScope
}

part! {
    /// What was observed of a namespace.
    pub struct NamespaceStatus {
        /// Why it is not removed yet.
        "conditions" => conditions: Option<Vec<NamespaceCondition>>,
    }

    /// A condition of a namespace.
    pub struct NamespaceCondition {
        /// What it is about.
        "type" => type_: String,
        /// Whether it is so: `True`, `False` or `Unknown`.
        "status" => status: String,
        /// Why, in words.
        "message" => message: Option<String>,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1 as whole;
    use serde_json::json;

    use super::super::tests::{both, refused};
    use super::*;

    #[test]
    fn of_a_namespace_the_same_is_read() {
        let (part, whole): (Namespace, whole::Namespace) = both(json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "c1", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Terminating", "conditions": [
                {"type": "NamespaceContentRemaining", "status": "True", "reason": "SomeResourcesRemain",
                    "message": "Some resources are remaining: manifestworks", "lastTransitionTime": "2026-01-01T00:00:00Z"},
                {"type": "NamespaceDeletionDiscoveryFailure", "status": "False"},
            ]},
        }));
        assert_eq!(part.metadata, whole.metadata);
        let of_whole =
            whole.status.unwrap().conditions.unwrap().into_iter().map(|one| (one.type_, one.status, one.message));
        let of_part =
            part.status.unwrap().conditions.unwrap().into_iter().map(|one| (one.type_, one.status, one.message));
        assert_eq!(of_part.collect::<Vec<_>>(), of_whole.collect::<Vec<_>>());
        for wrong in [json!({"status": {"conditions": {}}}), json!({"status": {"conditions": [{"status": true}]}})] {
            refused::<Namespace, whole::Namespace>(wrong);
        }
    }
}
