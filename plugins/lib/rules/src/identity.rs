//! User names as the hub's API server knows them: one parser for commands and policies.

/// Start of the names of every agent and every cluster's group.
pub const PREFIX: &str = "system:open-cluster-management:";
/// Start of the group of a cluster's agents that register with an AWS identity (`open-cluster-management:<cluster>`): the
/// hub grants it what it grants their certificates' group.
pub const AWS_PREFIX: &str = "open-cluster-management:";
/// Group of every agent.
pub const MANAGED_CLUSTERS_GROUP: &str = "system:open-cluster-management:managed-clusters";
/// The ServiceAccount whose tokens register agents.
pub const BOOTSTRAP_USER: &str = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap";
/// The hub's gRPC server.
pub const GRPC_SERVER_USER: &str = "system:serviceaccount:open-cluster-management-hub:grpc-server-sa";
/// Group of the bootstrap tokens that register agents.
pub const TOKEN_GROUP: &str = "system:bootstrappers:managedcluster";
/// Key in the extra information of a user: what the user authenticated with. `JTI=…` for a token, `X509SHA256=…` for
/// a client certificate.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
const BOOTSTRAP_TOKEN: &str = "system:bootstrap:";
/// Start of a credential id that is a token's.
const TOKEN_ID: &str = "JTI=";
/// Start of a credential id that is a client certificate's.
const CERTIFICATE_ID: &str = "X509SHA256=";

/// What a user name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity<'a> {
    /// An agent: `system:open-cluster-management:<cluster>:<agent>` with exactly these two parts.
    Agent {
        /// Its cluster.
        cluster: &'a str,
        /// Its own name.
        agent: &'a str,
    },
    /// An agent of an add-on: `system:open-cluster-management:cluster:<cluster>:addon:<addon>[:agent:<agent>]`.
    AddonAgent {
        /// Its cluster.
        cluster: &'a str,
        /// Its add-on.
        addon: &'a str,
        /// Its own name.
        agent: Option<&'a str>,
    },
    /// Something else below the hub's prefix. Nobody should have such a name.
    Unclear,
    /// The ServiceAccount whose tokens register agents.
    BootstrapAccount,
    /// The hub's gRPC server.
    GrpcServer,
    /// A bootstrap token.
    BootstrapToken {
        /// Its id, six characters.
        id: &'a str,
    },
    /// Any other service account.
    ServiceAccount {
        /// Its namespace.
        namespace: &'a str,
        /// Its name.
        name: &'a str,
    },
    /// Anybody else.
    Other,
}

impl<'a> Identity<'a> {
    /// Reads a user name.
    pub fn of(user: &'a str) -> Self {
        if let Some(rest) = user.strip_prefix(PREFIX) {
            return hub_identity(rest).unwrap_or(Self::Unclear);
        }
        if user == BOOTSTRAP_USER {
            return Self::BootstrapAccount;
        }
        if user == GRPC_SERVER_USER {
            return Self::GrpcServer;
        }
        if let Some((namespace, name)) = user.strip_prefix(SERVICE_ACCOUNT).and_then(|rest| rest.split_once(':')) {
            return Self::ServiceAccount { namespace, name };
        }
        match user.strip_prefix(BOOTSTRAP_TOKEN).filter(|id| is_token_id(id)) {
            Some(id) => Self::BootstrapToken { id },
            None => Self::Other,
        }
    }

    /// The cluster of an agent or of an add-on's agent.
    pub fn cluster(&self) -> Option<&'a str> {
        match *self {
            Self::Agent { cluster, .. } | Self::AddonAgent { cluster, .. } => Some(cluster),
            _ => None,
        }
    }

    /// Whether the name is one that the hub gave by a certificate: an agent's, an add-on's, or an unclear one.
    pub fn is_hub_given(&self) -> bool {
        matches!(self, Self::Agent { .. } | Self::AddonAgent { .. } | Self::Unclear)
    }
}

fn hub_identity(rest: &str) -> Option<Identity<'_>> {
    let (first, others) = rest.split_once(':')?;
    // A cluster that is named `cluster` has agents with two parts; add-ons have more.
    if first == "cluster"
        && let Some((cluster, more)) = others.split_once(':')
    {
        let more = more.strip_prefix("addon:")?;
        let (addon, agent) = match more.split_once(':') {
            None => (more, None),
            Some((addon, agent)) => (addon, Some(agent.strip_prefix("agent:").filter(|agent| is_plain(agent))?)),
        };
        return (is_plain(cluster) && is_plain(addon)).then_some(Identity::AddonAgent { cluster, addon, agent });
    }
    (is_plain(first) && is_plain(others)).then_some(Identity::Agent { cluster: first, agent: others })
}

/// Whether a part of a name holds only letters, digits, `-`, `.` and `_`.
fn is_plain(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
}

/// Whether this is the id of a bootstrap token: six of `[a-z0-9]`.
fn is_token_id(id: &str) -> bool {
    id.len() == 6 && id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// Whether a group is that of one cluster's agents.
pub fn is_group_of(group: &str, cluster: &str) -> bool {
    group.strip_prefix(PREFIX) == Some(cluster)
}

/// Whether a group is that of some cluster's agents, or of all.
pub fn is_agents_group(group: &str) -> bool {
    group.strip_prefix(PREFIX).is_some_and(|cluster| !cluster.is_empty() && !cluster.contains(':'))
}

/// Whether a group is that of an add-on's agents: of one cluster, or of all.
pub fn is_addons_group(group: &str) -> bool {
    let of_all = group.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix("addon:")).is_some_and(is_plain);
    of_all || matches!(Identity::of(group), Identity::AddonAgent { .. })
}

/// The cluster whose agents' rights a group gives; none if it is no single cluster's.
pub fn cluster_of_group(group: &str) -> Option<&str> {
    let cluster = group.strip_prefix(PREFIX).or_else(|| group.strip_prefix(AWS_PREFIX))?;
    (group != MANAGED_CLUSTERS_GROUP && !cluster.is_empty() && !cluster.contains(':')).then_some(cluster)
}

/// Whether a name of a user or a group is one that the hub gives to clusters and add-ons, with either prefix.
pub fn has_hub_prefix(name: &str) -> bool {
    name.starts_with(PREFIX) || name.starts_with(AWS_PREFIX)
}

/// An add-on whose agents have a name and a group of their own on the hub, in place of those of [`Identity::AddonAgent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnNames {
    /// The add-on.
    pub addon: &'static str,
    /// The common name that it asks for.
    pub user: &'static str,
    /// The only group that it asks for.
    pub group: &'static str,
    /// The cluster whose agent has this group as well, with an AWS identity ([`AWS_PREFIX`]): there must be none.
    pub cluster: &'static str,
}

/// All such add-ons. cluster-proxy has asked for these names since its release 0.2.0 (upstream: `NewAgentAddon` in
/// `pkg/proxyagent/agent/agent.go`, with the names of `pkg/common/constants.go`).
pub const OWN_NAMES: &[OwnNames] = &[OwnNames {
    addon: "cluster-proxy",
    user: "open-cluster-management:cluster-proxy:addon-agent",
    group: "open-cluster-management:cluster-proxy",
    cluster: "cluster-proxy",
}];

/// Who asks, as the API server authenticated them.
#[derive(Debug, PartialEq, Eq)]
pub struct Requester<'a, S> {
    /// User name.
    pub user: &'a str,
    /// UID; service accounts have one unless somebody impersonates them.
    pub uid: Option<&'a str>,
    /// Groups.
    pub groups: &'a [S],
    /// What they authenticated with: the values of [`CREDENTIAL_ID`]. Old API servers do not tell.
    pub credential_ids: &'a [S],
}

impl<S> Clone for Requester<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Requester<'_, S> {}

impl<'a, S: AsRef<str>> Requester<'a, S> {
    /// What the user name says.
    pub fn identity(&self) -> Identity<'a> {
        Identity::of(self.user)
    }

    /// Whether the requester is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|known| known.as_ref() == group)
    }

    /// The clusters whose agents' rights the requester has by its groups, whatever its name is: RBAC goes by groups.
    pub fn clusters(&self) -> impl Iterator<Item = &'a str> + use<'a, S> {
        self.groups.iter().filter_map(|group| cluster_of_group(group.as_ref()))
    }

    /// The id of the token that the requester showed, with its prefix `JTI=`.
    pub fn token_id(&self) -> Option<&'a str> {
        self.credential_ids.iter().map(AsRef::as_ref).find(|id| id.starts_with(TOKEN_ID))
    }

    /// Whether the requester showed a client certificate.
    pub fn showed_certificate(&self) -> bool {
        self.credential_ids.iter().any(|id| id.as_ref().starts_with(CERTIFICATE_ID))
    }

    /// What somebody with the name of a service account or a bootstrap token lacks of one. A client certificate may
    /// carry any name, and who impersonates another need not take over its UID and groups.
    pub fn lack(&self) -> Option<&'static str> {
        if let Some((namespace, _)) = self.user.strip_prefix(SERVICE_ACCOUNT).and_then(|rest| rest.split_once(':')) {
            let in_namespace = |group: &S| group.as_ref().strip_prefix("system:serviceaccounts:") == Some(namespace);
            let grouped = self.is_in("system:serviceaccounts") && self.groups.iter().any(in_namespace);
            return match () {
                () if self.showed_certificate() => Some("with a client certificate instead of a token"),
                () if self.uid.is_none_or(str::is_empty) => Some("without the UID of a service account"),
                () if !grouped => Some("without the groups of a service account"),
                () => None,
            };
        }
        let is_token = matches!(self.identity(), Identity::BootstrapToken { .. });
        (is_token && self.showed_certificate()).then_some("with a client certificate instead of a bootstrap token")
    }

    /// Whether this is the hub's gRPC server, and not somebody who impersonates it.
    pub fn is_grpc_server(&self) -> bool {
        self.user == GRPC_SERVER_USER && self.lack().is_none()
    }

    /// Whether this is the agent of `cluster` with an AWS identity: it has the cluster's name and its group, and no other
    /// cluster's. Upstream: `createAccessEntry` in `pkg/registration/register/aws_irsa/hub_driver.go`.
    pub fn is_aws_agent_of(&self, cluster: &str) -> bool {
        let is_its = |group: &S| group.as_ref().strip_prefix(AWS_PREFIX) == Some(cluster);
        !cluster.is_empty()
            && self.user == cluster
            && self.groups.iter().any(is_its)
            && self.clusters().all(|of| of == cluster)
    }

    /// Whether the user may ask for a cluster's first certificate: the bootstrap service account, a bootstrap token of
    /// the right group, or one of `requesters`. Whether somebody impersonates them is told by [`Requester::lack`].
    pub fn bootstraps(&self, requesters: &[String]) -> bool {
        match self.identity() {
            Identity::BootstrapAccount => true,
            Identity::BootstrapToken { .. } if self.is_in(TOKEN_GROUP) => true,
            _ => requesters.iter().any(|known| known == self.user),
        }
    }
}

/// Whether a user name that only a name is known of, such as one behind the hub's gRPC server, may ask for a cluster's
/// first certificate.
pub fn bootstraps_by_name(user: &str, requesters: &[String]) -> bool {
    matches!(Identity::of(user), Identity::BootstrapAccount | Identity::BootstrapToken { .. })
        || requesters.iter().any(|known| known == user)
}

/// Whether somebody with this name registers clusters, or writes for those who do. By the name: who only impersonates
/// one of them is bound all the more by what binds them.
pub fn registers_by_name(user: &str, requesters: &[String]) -> bool {
    matches!(Identity::of(user), Identity::GrpcServer)
        || user.starts_with(PREFIX)
        || bootstraps_by_name(user, requesters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_user_name_is_one_identity() {
        let agent = |cluster, agent| Identity::Agent { cluster, agent };
        let addon = |cluster, addon, agent| Identity::AddonAgent { cluster, addon, agent };
        for (user, identity) in [
            ("system:open-cluster-management:c1:a1", agent("c1", "a1")),
            ("system:open-cluster-management:cluster:a1", agent("cluster", "a1")),
            ("system:open-cluster-management:addon:work", agent("addon", "work")),
            ("system:open-cluster-management:cluster:c1:addon:x", addon("c1", "x", None)),
            ("system:open-cluster-management:cluster:c1:addon:x:agent:y", addon("c1", "x", Some("y"))),
            ("system:open-cluster-management:cluster:c1:addon:x:other:y", Identity::Unclear),
            ("system:open-cluster-management:cluster:c1:addon:", Identity::Unclear),
            ("system:open-cluster-management:cluster:c1:a1", Identity::Unclear),
            ("system:open-cluster-management:c1", Identity::Unclear),
            ("system:open-cluster-management:c1:", Identity::Unclear),
            ("system:open-cluster-management::a1", Identity::Unclear),
            ("system:open-cluster-management:c1:a1:b", Identity::Unclear),
            ("system:open-cluster-management:c1:a b", Identity::Unclear),
            ("system:open-cluster-management:c1:a\u{e4}", Identity::Unclear),
            (BOOTSTRAP_USER, Identity::BootstrapAccount),
            (GRPC_SERVER_USER, Identity::GrpcServer),
            ("system:serviceaccount:a:b", Identity::ServiceAccount { namespace: "a", name: "b" }),
            ("system:bootstrap:abc123", Identity::BootstrapToken { id: "abc123" }),
            ("system:bootstrap:abc1234", Identity::Other),
            ("system:bootstrap:ABC123", Identity::Other),
            ("c1:a1", Identity::Other),
            ("", Identity::Other),
        ] {
            assert_eq!(Identity::of(user), identity, "{user}");
        }
        assert_eq!(Identity::of("system:open-cluster-management:cluster:c1:addon:x").cluster(), Some("c1"));
    }

    #[test]
    fn impersonated_names_lack_something() {
        let groups = ["system:serviceaccounts", "system:serviceaccounts:open-cluster-management"];
        let right = Requester { user: BOOTSTRAP_USER, uid: Some("u"), groups: &groups, credential_ids: &["JTI=1"] };
        assert_eq!((right.lack(), right.token_id()), (None, Some("JTI=1")));
        for wrong in [
            Requester { uid: None, ..right },
            Requester { uid: Some(""), ..right },
            Requester { groups: &groups[..1], ..right },
            Requester { credential_ids: &["X509SHA256=00"], ..right },
            Requester { user: "system:bootstrap:abc123", credential_ids: &["X509SHA256=00"], ..right },
        ] {
            assert!(wrong.lack().is_some(), "{wrong:?}");
        }
        assert_eq!(Requester { user: "eva", credential_ids: &["X509SHA256=00"], ..right }.lack(), None);
    }

    #[test]
    fn rights_of_agents_come_with_groups() {
        let groups = [
            "system:authenticated",
            MANAGED_CLUSTERS_GROUP,
            "system:open-cluster-management:c1",
            "open-cluster-management:c2",
            "open-cluster-management:",
            "system:open-cluster-management:cluster:c3:addon:x",
        ];
        let requester = Requester { user: "u", uid: None, groups: &groups, credential_ids: &[] };
        assert_eq!(requester.clusters().collect::<Vec<_>>(), ["c1", "c2"]);
    }

    #[test]
    fn an_agent_with_an_aws_identity_has_the_name_and_the_group_of_one_cluster() {
        let is_of_c1 =
            |user, groups: &[&str]| Requester { user, uid: None, groups, credential_ids: &[] }.is_aws_agent_of("c1");
        let own = "open-cluster-management:c1";
        for groups in [&[own][..], &["system:authenticated", own], &[own, "system:open-cluster-management:c1"]] {
            assert!(is_of_c1("c1", groups), "{groups:?}");
        }
        for (user, groups) in [
            ("c1", &[][..]),
            ("c1", &["system:open-cluster-management:c1"]),
            ("c1", &["open-cluster-management:c10"]),
            ("c1", &[own, "open-cluster-management:c2"]),
            ("c1", &[own, "system:open-cluster-management:c2"]),
            ("c10", &[own]),
            ("eva", &[own]),
            ("system:open-cluster-management:c1:a1", &[own]),
            (GRPC_SERVER_USER, &[own]),
        ] {
            assert!(!is_of_c1(user, groups), "{user} {groups:?}");
        }
        let nobody = Requester { user: "", uid: None, groups: &["open-cluster-management:"], credential_ids: &[] };
        assert!(!nobody.is_aws_agent_of(""));
    }

    #[test]
    fn the_groups_of_add_ons_with_names_of_their_own_are_those_of_clusters() {
        for names in OWN_NAMES {
            assert_eq!(cluster_of_group(names.group), Some(names.cluster), "{names:?}");
            assert!(has_hub_prefix(names.user) && Identity::of(names.user).cluster().is_none(), "{names:?}");
        }
    }

    #[test]
    fn groups_of_addons_are_told_from_those_of_agents() {
        for (group, of_addon, of_agent) in [
            ("system:open-cluster-management:cluster:c1:addon:x", true, false),
            ("system:open-cluster-management:cluster:c1:addon:x:agent:y", true, false),
            ("system:open-cluster-management:addon:x", true, false),
            ("system:open-cluster-management:c1", false, true),
            (MANAGED_CLUSTERS_GROUP, false, true),
            ("system:open-cluster-management:addon", false, true),
            ("system:open-cluster-management:addon:", false, false),
            ("system:open-cluster-management:addon:x:y", false, false),
            ("system:open-cluster-management:c1:a1", false, false),
            ("open-cluster-management:c1", false, false),
            ("addon:x", false, false),
        ] {
            assert_eq!((is_addons_group(group), is_agents_group(group)), (of_addon, of_agent), "{group}");
        }
    }

    #[test]
    fn bootstrap_tokens_need_their_group() {
        let token =
            Requester { user: "system:bootstrap:abc123", uid: None, groups: &[TOKEN_GROUP], credential_ids: &[] };
        assert!(token.bootstraps(&[]));
        assert!(!Requester { groups: &[], ..token }.bootstraps(&[]));
        assert!(Requester { groups: &[], user: "eva", ..token }.bootstraps(&["eva".to_owned()]));
        assert!(bootstraps_by_name("system:bootstrap:abc123", &[]) && !bootstraps_by_name("eva", &[]));
    }
}
