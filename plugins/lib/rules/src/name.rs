//! What a managed cluster may be called.

use crate::identity::OWN_NAMES;
use crate::{Code, Violation, code::Quoted, glob};

/// Names that a managed cluster must not have. Its namespace on the hub would be one of the hub's own, its group the
/// one of all clusters, or the names of its agents would begin as those of add-ons do.
pub const RESERVED: &[&str] = &["addon", "cluster", "default", "managed-clusters", "open-cluster-management"];

/// Prefixes of namespaces that belong to the hub and to Kubernetes.
pub const RESERVED_PREFIXES: &[&str] = &["kube-", "open-cluster-management-"];

/// Whether a text is a DNS label (RFC 1123): the form of names of managed clusters, because a namespace of that name is
/// created for each on the hub (upstream: `spec.clusterName` of the Klusterlet), of namespaces, and of Services.
pub fn is_dns_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.len() <= 63 && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Whether a name, though well-formed, is one that a hub or Kubernetes uses itself.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The add-on whose certificates have the group of a cluster of this name, if there is one: they would have the rights of its
/// agents. None may come in under such a name. It is none of [`RESERVED`], for a cluster that has it renews its certificate.
fn addon_with_group_of(name: &str) -> Option<&'static str> {
    OWN_NAMES.iter().find(|names| names.cluster == name).map(|names| names.addon)
}

/// Why a text cannot be the name of a managed cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is no DNS label.
    Form,
    /// The hub or Kubernetes uses the name itself.
    Reserved,
    /// Certificates of this add-on would have the rights of the cluster's agents.
    Addon(&'static str),
}

/// Why no cluster of this name may register; none: one may.
pub fn unfit(name: &str) -> Option<Unfit> {
    match is_dns_label(name) {
        false => Some(Unfit::Form),
        true if is_reserved(name) => Some(Unfit::Reserved),
        true => addon_with_group_of(name).map(Unfit::Addon),
    }
}

/// Rule M1 about the name alone; `reserved` are patterns of further names that the hub uses.
pub fn check(name: &str, reserved: &[String]) -> Option<Violation> {
    match unfit(name).or_else(|| glob::any(reserved, name).then_some(Unfit::Reserved))? {
        Unfit::Form => {
            let detail = format!("{} is not a DNS label of at most 63 characters", Quoted(name));
            Some(Violation::new(Code::NameForm, "metadata.name", detail))
        }
        Unfit::Reserved => {
            let detail = format!("the hub uses the name {name} itself");
            Some(Violation::new(Code::NameReserved, "metadata.name", detail))
        }
        Unfit::Addon(addon) => Some(addons_violation(addon)),
    }
}

/// What of rule M1 binds whoever accepts a cluster, too: that no certificates of an add-on have the rights of its agents.
pub fn acceptance(name: &str) -> Option<Violation> {
    addon_with_group_of(name).map(addons_violation)
}

fn addons_violation(addon: &str) -> Violation {
    let detail = format!("certificates of the add-on {addon} would have the rights of a cluster of this name");
    Violation::new(Code::NameReserved, "metadata.name", detail)
}

/// Whether a key of labels, annotations or taints stands below a domain of the hub, of Kubernetes or of these commands.
pub fn is_system_key(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else { return false };
    let domain = domain.to_ascii_lowercase();
    ["open-cluster-management.io", "kubernetes.io", "k8s.io", "kubectl-ocm", "kubectl-ocm.dev"]
        .iter()
        .any(|known| domain.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_dns_labels() {
        for good in ["a", "c1", "a-b", &"x".repeat(63)] {
            assert!(is_dns_label(good), "{good}");
            assert_eq!(check(good, &[]), None);
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a_b", "a b", &"x".repeat(64)] {
            assert!(!is_dns_label(bad), "{bad}");
            assert_eq!(check(bad, &[]).map(|violation| violation.code), Some(Code::NameForm));
        }
    }

    #[test]
    fn names_that_the_hub_uses_are_reserved() {
        for reserved in ["kube-system", "open-cluster-management-hub", "open-cluster-management-x", "cluster", "addon"]
        {
            assert!(is_reserved(reserved), "{reserved}");
            assert_eq!(check(reserved, &[]).map(|violation| violation.code), Some(Code::NameReserved));
        }
        assert!(!is_reserved("kubernetes") && !is_reserved("cluster1") && !is_reserved("addons"));
        assert!(check("prod-1", &["prod-*".to_owned()]).is_some());
    }

    #[test]
    fn no_cluster_comes_in_whose_group_an_add_on_has() {
        let code = |violation: Option<Violation>| violation.map(|violation| violation.code);
        for names in OWN_NAMES {
            assert_eq!(unfit(names.cluster), Some(Unfit::Addon(names.addon)));
            assert_eq!(code(check(names.cluster, &[])), Some(Code::NameReserved));
            assert_eq!(code(acceptance(names.cluster)), Some(Code::NameReserved));
            assert!(!is_reserved(names.cluster), "one that is called so renews its certificate");
        }
        // What is accepted is not looked at otherwise: it may be older than this rule.
        for other in ["c1", "cluster-proxy-1", "proxy", "default", "kube-system", "A"] {
            assert_eq!(acceptance(other), None, "{other}");
        }
    }

    #[test]
    fn keys_of_systems_are_known() {
        assert!(is_system_key("kubernetes.io/a") && is_system_key("x.open-cluster-management.io/a"));
        assert!(is_system_key("kubectl-ocm/creator-credential"));
        assert!(is_system_key("Kubernetes.IO/a"), "domains have no case");
        assert!(!is_system_key("a") && !is_system_key("mykubernetes.io/a"));
    }
}
