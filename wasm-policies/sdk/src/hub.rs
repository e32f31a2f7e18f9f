//! What policies know of hubs: names that hub and agents agree on, and who stands behind a request.

use ocm_policy_abi::{Cluster, Requester};

use crate::Request;

/// Label of a certificate request and of a namespace: the cluster that it belongs to.
pub const CLUSTER_NAME: &str = "open-cluster-management.io/cluster-name";
/// Label of a certificate request: the add-on that it is for.
pub const ADDON_NAME: &str = "open-cluster-management.io/addon-name";
/// Label of a ManagedCluster: the set that it is in.
pub const CLUSTER_SET: &str = "cluster.open-cluster-management.io/clusterset";
/// The set of clusters that no other was named for.
pub const DEFAULT_SET: &str = "default";
/// Annotation of a certificate request: who asked, as the hub's gRPC server says.
pub const CSR_USER: &str = "open-cluster-management.io/csr-user";
/// Start of the names of every agent and every cluster's group.
pub const PREFIX: &str = "system:open-cluster-management:";
/// Group of every agent.
pub const ALL_AGENTS: &str = "system:open-cluster-management:managed-clusters";
/// The ServiceAccount whose tokens register agents.
pub const BOOTSTRAP_USER: &str = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap";
/// The hub's gRPC server.
pub const GRPC_SERVER: &str = "system:serviceaccount:open-cluster-management-hub:grpc-server-sa";
/// Group of the bootstrap tokens that register agents.
pub const TOKEN_GROUP: &str = "system:bootstrappers:managedcluster";
/// Key in `extra` of what a user authenticated with.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Cluster and agent of an agent's user name; none for any other. Add-ons share the prefix but have more parts.
pub fn agent(user: &str) -> Option<(&str, &str)> {
    let (cluster, agent) = user.strip_prefix(PREFIX)?.split_once(':')?;
    (!cluster.is_empty() && !agent.is_empty() && !agent.contains(':')).then_some((cluster, agent))
}

/// The cluster of an agent, or of an add-on's agent; none for anybody else.
pub fn cluster_of_agent(user: &str) -> Option<&str> {
    let rest = user.strip_prefix(PREFIX)?;
    let (cluster, _) = rest.strip_prefix("cluster:").unwrap_or(rest).split_once(':')?;
    Some(cluster)
}

/// Who wants it: of a certificate request whoever created it, of all else whoever makes the API request.
pub fn asker<'r, 'a>(request: &'r Request<'a>) -> &'r Requester<'a> {
    request.csr().map_or(request.requester(), |csr| &csr.requester)
}

/// The user who asks. Behind the hub's gRPC server, and there only, the one that it names.
pub fn asking_user<'r>(request: &'r Request<'_>) -> &'r str {
    let asker = asker(request);
    match request.csr() {
        Some(csr) if is_grpc_server(asker) => csr.annotations.get(CSR_USER).map_or("", |user| user),
        _ => &asker.username,
    }
}

/// Whether this is the hub's gRPC server, and not somebody who acts as it.
pub fn is_grpc_server(requester: &Requester<'_>) -> bool {
    requester.username == GRPC_SERVER && lacks(requester).is_none()
}

/// Whether this only says no to a certificate request, which no rule for approvals is against.
pub fn is_denial(request: &Request<'_>) -> bool {
    request.csr().and_then(|csr| csr.adds_condition.as_deref()).is_some_and(|kind| kind != "Approved")
}

/// Whether an agent asks for its own name again: the common name is the user who asks.
pub fn is_renewal(request: &Request<'_>) -> bool {
    let user = asking_user(request);
    agent(user).is_some_and(|(cluster, _)| {
        request.csr().is_some_and(|csr| {
            matches!(&csr.common_names[..], [name] if name == user)
                && csr.labels.get(CLUSTER_NAME).is_some_and(|label| label == cluster)
        })
    })
}

/// The name of the cluster that this is about: the ManagedCluster's, or the one that the certificate request claims.
pub fn cluster_name<'r>(request: &'r Request<'_>) -> Option<&'r str> {
    let claimed = || request.csr()?.labels.get(CLUSTER_NAME).map(|name| &**name);
    request.cluster().map(|cluster| &*cluster.name).or_else(claimed).filter(|name| !name.is_empty())
}

/// Whether this writes to a part of an object that is written apart, such as its status.
pub fn is_subresource(request: &Request<'_>) -> bool {
    request.resource().is_some_and(|resource| resource.subresource.is_some())
}

/// The set of a cluster; none where it is in none.
pub fn cluster_set<'c>(cluster: &'c Cluster<'_>) -> Option<&'c str> {
    cluster.labels.get(CLUSTER_SET).map(|set| &**set).filter(|set| !set.is_empty())
}

/// Whether this requester may ask for a cluster's first certificate: the bootstrap service account, a bootstrap token
/// of the right group, or one of these users.
pub fn bootstraps(requester: &Requester<'_>, users: &[String]) -> bool {
    let user = &*requester.username;
    user == BOOTSTRAP_USER
        || (is_bootstrap_token(user) && is_in(requester, TOKEN_GROUP))
        || users.iter().any(|known| known == user)
}

/// Whether this is the name of a bootstrap token's user.
pub fn is_bootstrap_token(user: &str) -> bool {
    let id = user.strip_prefix("system:bootstrap:").unwrap_or_default();
    id.len() == 6 && id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// The ID of the token that somebody shows; none for certificates, and for tokens that have none.
pub fn token_id<'r>(requester: &'r Requester<'_>) -> Option<&'r str> {
    let ids = requester.extra.get(CREDENTIAL_ID)?;
    ids.iter().map(|id| &**id).find(|id| id.starts_with("JTI="))
}

/// What somebody with the name of a service account or a bootstrap token lacks of one: who acts as another has the
/// name, but not the UID and the groups.
pub fn lacks(requester: &Requester<'_>) -> Option<&'static str> {
    let ids = requester.extra.get(CREDENTIAL_ID);
    let certificate = ids.is_some_and(|ids| ids.iter().any(|id| id.starts_with("X509SHA256=")));
    if let Some((namespace, _)) = service_account(&requester.username) {
        let grouped = is_in(requester, "system:serviceaccounts")
            && requester.groups.iter().any(|group| group.strip_prefix("system:serviceaccounts:") == Some(namespace));
        return match () {
            () if certificate => Some("shows a client certificate instead of a token"),
            () if requester.uid.as_ref().is_none_or(|uid| uid.is_empty()) => Some("lacks the UID of a service account"),
            () if !grouped => Some("lacks the groups of a service account"),
            () => None,
        };
    }
    (certificate && is_bootstrap_token(&requester.username))
        .then_some("shows a client certificate instead of a bootstrap token")
}

/// Namespace and name of a service account's user.
pub fn service_account(user: &str) -> Option<(&str, &str)> {
    user.strip_prefix("system:serviceaccount:")?.split_once(':')
}

/// Whether the requester is in a group.
pub fn is_in(requester: &Requester<'_>, group: &str) -> bool {
    requester.groups.iter().any(|known| known == group)
}

/// Whether a key of labels, annotations or taints stands below a domain of the hub or of Kubernetes. Only grants that
/// name such a key in full reach it.
pub fn is_system_key(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else { return false };
    ["open-cluster-management.io", "kubernetes.io", "k8s.io"]
        .iter()
        .any(|known| domain.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

/// Whether a text is a DNS label (RFC 1123).
pub fn is_dns_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.len() <= 63 && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_and_add_ons_are_told_apart() {
        assert_eq!(agent("system:open-cluster-management:c1:a1"), Some(("c1", "a1")));
        for other in [
            "system:open-cluster-management:c1",
            "system:open-cluster-management:c1:",
            "c1:a1",
            "system:open-cluster-management:cluster:c1:addon:x",
        ] {
            assert_eq!(agent(other), None, "{other}");
        }
        assert_eq!(cluster_of_agent("system:open-cluster-management:cluster:c1:addon:x"), Some("c1"));
        assert_eq!(cluster_of_agent("system:open-cluster-management:c1:a1"), Some("c1"));
    }

    #[test]
    fn borrowed_names_are_seen() {
        let mut requester = Requester { username: BOOTSTRAP_USER.into(), ..Requester::default() };
        assert!(lacks(&requester).is_some());
        requester.uid = Some("u".into());
        requester.groups =
            vec!["system:serviceaccounts".into(), "system:serviceaccounts:open-cluster-management".into()];
        assert_eq!(lacks(&requester), None);
        requester.extra.insert(CREDENTIAL_ID, vec!["X509SHA256=00".into()]);
        assert!(lacks(&requester).is_some());
    }

    #[test]
    fn keys_of_systems_are_known() {
        assert!(is_system_key("kubernetes.io/a") && is_system_key("x.open-cluster-management.io/a"));
        assert!(!is_system_key("a") && !is_system_key("mykubernetes.io/a"));
    }
}
