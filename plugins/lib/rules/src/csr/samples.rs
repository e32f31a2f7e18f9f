//! Requests for the tests of the rules.

use super::{API_SIGNER, Content, Csr, Key, Signature};
use crate::identity::{BOOTSTRAP_USER, MANAGED_CLUSTERS_GROUP, Requester};

pub(crate) type Sample = Csr<'static, &'static str>;

const CONTENT: Content<'static, &str> = Content {
    common_names: &["system:open-cluster-management:c1:a1"],
    organizations: &["system:open-cluster-management:c1", MANAGED_CLUSTERS_GROUP],
    other_attributes: &[],
    alternative_names: &[],
    extensions: &[],
    key: Key::P256,
    signature: Signature::Valid,
};

/// The right request for the first certificate of the agent a1 of c1.
pub(crate) const FIRST: Sample = Csr {
    cluster_label: Some("c1"),
    addon_label: None,
    grpc_user: None,
    signer: API_SIGNER,
    usages: &["digital signature", "key encipherment", "client auth"],
    lifetime_seconds: None,
    requester: Requester {
        user: BOOTSTRAP_USER,
        uid: Some("u"),
        groups: &["system:serviceaccounts", "system:serviceaccounts:open-cluster-management"],
        credential_ids: &["JTI=1"],
    },
    content: Ok(CONTENT),
};

/// The agent asks again.
pub(crate) const RENEWAL: Sample = Csr { requester: by("system:open-cluster-management:c1:a1"), ..FIRST };

/// The agent asks for its add-on x.
pub(crate) const ADDON: Sample = Csr {
    addon_label: Some("x"),
    content: Ok(Content {
        common_names: &["system:open-cluster-management:cluster:c1:addon:x:agent:y"],
        organizations: &["system:open-cluster-management:cluster:c1:addon:x"],
        alternative_names: &["DNSName(x.addon.open-cluster-management.io)"],
        ..CONTENT
    }),
    ..RENEWAL
};

/// The agent asks the signer of the add-on cluster-proxy, as upstream has it: the name, the group and the unit are that add-on's
/// own, and the group is like that of a cluster's AWS identity.
pub(crate) const CLUSTER_PROXY: Sample = Csr {
    addon_label: Some("cluster-proxy"),
    signer: "open-cluster-management.io/proxy-agent-signer",
    content: Ok(Content {
        common_names: &["open-cluster-management:cluster-proxy:proxy-agent"],
        organizations: &["open-cluster-management:cluster-proxy"],
        other_attributes: &["2.5.4.11"],
        alternative_names: &["DNSName(cluster-proxy.addon.open-cluster-management.io)"],
        ..CONTENT
    }),
    ..RENEWAL
};

/// The agent asks for the other certificate of cluster-proxy: that of the API server, as upstream has it.
pub(crate) const CLUSTER_PROXY_OF_HUB: Sample = Csr {
    signer: API_SIGNER,
    content: Ok(Content {
        common_names: &["open-cluster-management:cluster-proxy:addon-agent"],
        organizations: &["open-cluster-management:cluster-proxy"],
        alternative_names: &["DNSName(cluster-proxy.addon.open-cluster-management.io)"],
        ..CONTENT
    }),
    ..CLUSTER_PROXY
};

/// Somebody asks for something else.
pub(crate) const OTHER: Sample = Csr {
    cluster_label: None,
    requester: by("bob"),
    content: Ok(Content { common_names: &["bob"], organizations: &["devs"], ..CONTENT }),
    ..FIRST
};

/// Somebody with a certificate of this name.
pub(crate) const fn by(user: &'static str) -> Requester<'static, &'static str> {
    Requester { user, uid: None, groups: &[], credential_ids: &["X509SHA256=00"] }
}

/// The right request for an agent with other names.
pub(crate) const fn named(common_names: &'static [&'static str]) -> Sample {
    Csr { content: Ok(Content { common_names, ..CONTENT }), ..FIRST }
}
