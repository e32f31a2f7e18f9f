//! What is known of a certificate request.

use std::fmt;

use crate::code::Escaped;
use crate::identity::{self, GRPC_SERVER_USER, Identity, OWN_NAMES, OwnNames, Requester};

/// Label of a certificate request and of a namespace: the cluster that it belongs to.
pub const CLUSTER_NAME: &str = "open-cluster-management.io/cluster-name";
/// Label of a certificate request: the add-on that it is for.
pub const ADDON_NAME: &str = "open-cluster-management.io/addon-name";
/// Annotation of a certificate request: who asked, as the hub's gRPC server says.
pub const CSR_USER: &str = "open-cluster-management.io/csr-user";
/// The signer of certificates for the API server.
pub const API_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
/// The signer of certificates for the hub's gRPC server.
pub const GRPC_SIGNER: &str = "open-cluster-management.io/grpc";

/// Start of the names of Kubernetes' own signers.
const KUBERNETES_SIGNERS: &str = "kubernetes.io/";

/// A certificate request.
#[derive(Debug)]
pub struct Csr<'a, S> {
    /// The label [`CLUSTER_NAME`]; a claim.
    pub cluster_label: Option<&'a str>,
    /// The label [`ADDON_NAME`]; a claim.
    pub addon_label: Option<&'a str>,
    /// The annotation [`CSR_USER`]; a claim unless the hub's gRPC server created the request.
    pub grpc_user: Option<&'a str>,
    /// `spec.signerName`.
    pub signer: &'a str,
    /// `spec.usages`.
    pub usages: &'a [S],
    /// `spec.expirationSeconds`.
    pub lifetime_seconds: Option<i64>,
    /// Who created it, as the API server recorded.
    pub requester: Requester<'a, S>,
    /// What it asks for; or why that cannot be read.
    pub content: Result<Content<'a, S>, Unreadable<'a, S>>,
}

impl<S> Clone for Csr<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Csr<'_, S> {}

/// What a request asks for: everything that its own signature covers.
#[derive(Debug)]
pub struct Content<'a, S> {
    /// Every common name of the subject.
    pub common_names: &'a [S],
    /// Every organization of the subject: the holder's groups.
    pub organizations: &'a [S],
    /// Dotted names of the subject's other attributes.
    pub other_attributes: &'a [S],
    /// Subject alternative names.
    pub alternative_names: &'a [S],
    /// Other extensions and attributes that are asked for.
    pub extensions: &'a [S],
    /// The key.
    pub key: Key<'a>,
    /// Whether the request is signed with its own key.
    pub signature: Signature,
}

impl<S> Clone for Content<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Content<'_, S> {}

/// What is known of a content that cannot be read.
#[derive(Debug)]
pub struct Unreadable<'a, S> {
    /// Why not.
    pub why: &'a str,
    /// Every common name that the API server reads in it all the same. Without any, and without organizations, nobody knows
    /// what it reads.
    pub common_names: &'a [S],
    /// Every organization that the API server reads in it all the same.
    pub organizations: &'a [S],
}

impl<S> Clone for Unreadable<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Unreadable<'_, S> {}

impl<'a, S> Unreadable<'a, S> {
    /// A content of which nothing is known but why.
    pub const fn of(why: &'a str) -> Self {
        Self { why, common_names: &[], organizations: &[] }
    }

    fn is_nobodys(&self) -> bool {
        self.common_names.is_empty() && self.organizations.is_empty()
    }
}

/// A public key's algorithm and strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key<'a> {
    /// NIST P-256.
    P256,
    /// NIST P-384.
    P384,
    /// NIST P-521.
    P521,
    /// Ed25519.
    Ed25519,
    /// RSA with the bits of its modulus.
    Rsa(u32),
    /// Anything else, by name.
    Other(&'a str),
}

impl<'a> Key<'a> {
    /// The key of an algorithm, `ECDSA`, `Ed25519`, `RSA` or another, and the bits of its curve or modulus.
    pub fn of(algorithm: &'a str, bits: u32) -> Self {
        match (algorithm, bits) {
            ("ECDSA", 256) => Self::P256,
            ("ECDSA", 384) => Self::P384,
            ("ECDSA", 521) => Self::P521,
            ("Ed25519", _) => Self::Ed25519,
            ("RSA", bits) => Self::Rsa(bits),
            (other, _) => Self::Other(other),
        }
    }
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::P256 => f.write_str("ECDSA P-256"),
            Self::P384 => f.write_str("ECDSA P-384"),
            Self::P521 => f.write_str("ECDSA P-521"),
            Self::Ed25519 => f.write_str("Ed25519"),
            Self::Rsa(bits) => write!(f, "RSA {bits}"),
            Self::Other(name) => write!(f, "{}", Escaped(name)),
        }
    }
}

/// Proof of possession of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    /// Made with the key of the request.
    Valid,
    /// Not made with the key of the request.
    Invalid,
    /// Made by an algorithm that proves nothing or that cannot be verified.
    Unverifiable,
}

impl<'a, S: AsRef<str>> Csr<'a, S> {
    /// The user who asked; behind the hub's gRPC server, and there only, the one that it names.
    pub fn asked_by(&self) -> &'a str {
        match self.grpc_user {
            Some(user) if self.requester.user == GRPC_SERVER_USER => user,
            _ => self.requester.user,
        }
    }

    /// Whether the request is about a cluster, right or wrong, by its label or by a common name.
    pub fn claims(&self, cluster: &str) -> bool {
        self.cluster_label == Some(cluster) || self.names_cluster(cluster)
    }

    /// Whether the request asks for the name of an agent of `cluster`.
    pub fn names_agent_of(&self, cluster: &str) -> bool {
        self.agents().any(|(of, _)| of == cluster)
    }

    /// Whether a certificate of the request may have the rights of an agent of `cluster` on the hub, by its name or by its
    /// groups. What cannot be read here, a signer may have read.
    pub fn may_act_for(&self, cluster: &str) -> bool {
        let (common_names, organizations) = match &self.content {
            Ok(content) => (content.common_names, content.organizations),
            Err(unreadable) => (unreadable.common_names, unreadable.organizations),
        };
        let is_readable = self.content.is_ok();
        let asked = Asked { signer: self.signer, asked_by: self.asked_by(), is_readable, common_names, organizations };
        asked.may_act_for(cluster)
    }

    /// The clusters for whose agents' names or groups the request asks, whatever its label says.
    pub fn clusters_of_agents(&self) -> impl Iterator<Item = &'a str> {
        let grouped = self.organizations().filter_map(identity::cluster_of_group);
        self.agents().map(|(cluster, _)| cluster).chain(grouped)
    }

    fn names_cluster(&self, cluster: &str) -> bool {
        self.common_names().any(|name| Identity::of(name).cluster() == Some(cluster))
    }

    /// The names of its own on the hub that an add-on asks for: exactly these, of the API server's signer, with the label of that
    /// add-on. A cluster that has the group itself asks for no such names.
    pub fn own_names(&self) -> Option<&'static OwnNames> {
        let (addon, content) = (self.addon_label?, self.content.as_ref().ok()?);
        let names = OWN_NAMES.iter().find(|names| names.addon == addon)?;
        let is_exact = self.signer == API_SIGNER
            && matches!(content.common_names, [name] if name.as_ref() == names.user)
            && matches!(content.organizations, [group] if group.as_ref() == names.group)
            && self.cluster_label != Some(names.cluster);
        is_exact.then_some(names)
    }

    /// Whether the request is an add-on's, which other approvers decide about.
    ///
    /// A label hides nothing: whoever asks for the name or the groups of a cluster's agent is judged as one. Of a signer whose
    /// certificates are identities on the hub that is whoever asks for any name or group of the hub that is no add-on's, and
    /// whatever nobody can read. Of an add-on's are also the [names of its own](Self::own_names), as long as nothing is added.
    pub fn is_addons(&self) -> bool {
        if self.own_names().is_some() {
            return true;
        }
        let is_for_hub = self.is_for_hub();
        match &self.content {
            Err(_) if !is_for_hub => return self.addon_label.is_some(),
            Err(unreadable) if unreadable.is_nobodys() => return false,
            _ => {}
        }
        let is_addon = |name: &str| matches!(Identity::of(name), Identity::AddonAgent { .. });
        let named_otherwise = match is_for_hub {
            true => self.common_names().any(|name| identity::has_hub_prefix(name) && !is_addon(name)),
            false => self.agents().next().is_some(),
        };
        let grouped_otherwise = match is_for_hub {
            true => {
                self.organizations().any(|group| identity::has_hub_prefix(group) && !identity::is_addons_group(group))
            }
            // An add-on's own signer knows groups that are named as those of AWS identities.
            false => self.organizations().any(identity::is_agents_group),
        };
        if named_otherwise || grouped_otherwise {
            return false;
        }
        let all_addons = self.common_names().next().is_some() && self.common_names().all(is_addon);
        all_addons || self.addon_label.is_some()
    }

    /// Whether an agent of `cluster` asks for its own name again.
    pub fn is_renewal(&self, cluster: &str) -> bool {
        let user = self.asked_by();
        matches!(Identity::of(user), Identity::Agent { cluster: of, .. } if of == cluster)
            && matches!(&self.content, Ok(content) if matches!(content.common_names, [name] if name.as_ref() == user))
    }

    /// Whether the request, right or wrong, is one for the first certificate of an agent of `cluster`, which the hub's
    /// administrator decides about. Others decide about add-ons, and about what an agent asks for with its own name.
    pub fn is_first_of(&self, cluster: &str) -> bool {
        self.claims(cluster) && !self.is_addons() && !self.is_renewal(cluster)
    }

    /// Whether an issued certificate would be an identity on the hub.
    pub fn is_for_hub(&self) -> bool {
        self.signer == API_SIGNER || self.signer == GRPC_SIGNER
    }

    /// Whether the request asks a signer that somebody brings along. Its certificates are no identity on the hub, and it alone
    /// knows what the names in them mean. Those of Kubernetes' signers are an identity to API servers and kubelets.
    pub fn has_own_signer(&self) -> bool {
        !self.is_for_hub() && !self.signer.is_empty() && !self.signer.starts_with(KUBERNETES_SIGNERS)
    }

    /// Whether the request has to do with the hub at all: by label, by what it asks for, or by who asks. Agents and
    /// those who register clusters have nothing else to ask for. An agent with an AWS identity gets its group from AWS: whoever
    /// asks for that group in a certificate asks for the rights of a cluster's agent. Of what cannot be read, a signer of the hub
    /// may have read anything.
    pub fn concerns_hub(&self) -> bool {
        let by_requester = match self.requester.identity() {
            Identity::Agent { .. } | Identity::AddonAgent { .. } | Identity::Unclear => true,
            Identity::GrpcServer | Identity::BootstrapAccount => true,
            Identity::BootstrapToken { .. } => self.requester.is_in(identity::TOKEN_GROUP),
            Identity::ServiceAccount { .. } | Identity::Other => false,
        };
        by_requester
            || self.cluster_label.is_some()
            || self.addon_label.is_some()
            || self.grpc_user.is_some()
            || self.signer == GRPC_SIGNER
            || match &self.content {
                Ok(_) => self.asks_for_hub_name(),
                Err(unreadable) => self.is_for_hub() && (unreadable.is_nobodys() || self.asks_for_hub_name()),
            }
    }

    fn asks_for_hub_name(&self) -> bool {
        self.common_names().chain(self.organizations()).any(identity::has_hub_prefix)
    }

    /// The common names as the API server reads them, also where the content breaks a rule.
    pub(super) fn common_names(&self) -> impl Iterator<Item = &'a str> {
        texts(self.content.as_ref().map_or_else(|unreadable| unreadable.common_names, |content| content.common_names))
    }

    /// The organizations in the same way.
    fn organizations(&self) -> impl Iterator<Item = &'a str> {
        texts(self.content.as_ref().map_or_else(|unreadable| unreadable.organizations, |content| content.organizations))
    }

    /// Cluster and agent of every common name that is an agent's.
    fn agents(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.common_names().filter_map(|name| match Identity::of(name) {
            Identity::Agent { cluster, agent } => Some((cluster, agent)),
            _ => None,
        })
    }
}

/// What of a request tells whom it lets in once it is approved.
#[derive(Debug)]
pub struct Asked<'a, S> {
    /// `spec.signerName`.
    pub signer: &'a str,
    /// Who asked; behind the hub's gRPC server, and there only, the user that it names.
    pub asked_by: &'a str,
    /// Whether what it asks for can be read.
    pub is_readable: bool,
    /// Every common name of the subject.
    pub common_names: &'a [S],
    /// Every organization of the subject.
    pub organizations: &'a [S],
}

impl<S> Clone for Asked<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Asked<'_, S> {}

impl<S: AsRef<str>> Asked<'_, S> {
    /// Whether its certificate may have the rights of an agent of `cluster` on the hub, as [`Csr::may_act_for`] says.
    fn may_act_for(&self, cluster: &str) -> bool {
        let is_agents = |name: &str| matches!(Identity::of(name), Identity::Agent { cluster: of, .. } if of == cluster);
        let has_rights = !self.is_readable
            || texts(self.common_names).any(is_agents)
            || texts(self.organizations).any(|group| identity::cluster_of_group(group) == Some(cluster));
        matches!(self.signer, API_SIGNER | GRPC_SIGNER) && has_rights
    }

    /// Whether its certificate may give the rights of an agent of `cluster` to somebody who had none of the cluster. Its own
    /// agents, those of add-ons among them, ask with a certificate that the hub gave before; those of another cluster do not.
    pub fn lets_into(&self, cluster: &str) -> bool {
        self.may_act_for(cluster) && Identity::of(self.asked_by).cluster() != Some(cluster)
    }

    /// Whether an agent asks, or an add-on's agent: renewals, and requests for add-ons, come from these. Nobody registers with
    /// such a request; the label of an add-on makes none.
    pub fn is_by_agent(&self) -> bool {
        Identity::of(self.asked_by).cluster().is_some()
    }
}

pub(super) fn texts<S: AsRef<str>>(texts: &[S]) -> impl Iterator<Item = &str> {
    texts.iter().map(AsRef::as_ref)
}
