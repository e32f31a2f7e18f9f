//! What may be called what.

/// Names that a managed cluster must not have: its namespace on the hub would be one of the hub's own, or its group
/// the one of all clusters, `system:open-cluster-management:managed-clusters`.
const RESERVED: &[&str] = &["default", "managed-clusters", "open-cluster-management", "open-cluster-management-hub"];

/// Prefix of namespaces that belong to Kubernetes.
const RESERVED_PREFIX: &str = "kube-";

/// Whether a text can be the name of a managed cluster: a DNS label (RFC 1123), because a namespace of that name is
/// made for it on the hub. Upstream: `spec.clusterName` of the Klusterlet.
pub fn is_cluster_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.len() <= 63 && name.bytes().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}

/// Whether a name, though well-formed, is that of a namespace or a group that a hub or Kubernetes uses itself.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || name.starts_with(RESERVED_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_dns_labels() {
        for good in ["a", "c1", "a-b", &"x".repeat(63)] {
            assert!(is_cluster_name(good), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a_b", "a b", &"x".repeat(64)] {
            assert!(!is_cluster_name(bad), "{bad}");
        }
    }

    #[test]
    fn namespaces_of_the_hub_are_reserved() {
        assert!(is_reserved("kube-system") && is_reserved("open-cluster-management-hub") && !is_reserved("kubernetes"));
    }
}
