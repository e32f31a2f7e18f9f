//! Certificate requests: which cluster one is about, and whether it asks for exactly what an agent needs (rules R1 to
//! R7).
//!
//! A certificate is an identity for a year: its common name and organizations decide what its holder may do on the
//! hub. Labels, annotations and the name of the object are claims of whoever created it; the requester is what the API
//! server recorded; the content is what the request's own signature covers.

use std::fmt;

use crate::code::{Quoted, quoted};
use crate::identity::{self, GRPC_SERVER_USER, Identity, MANAGED_CLUSTERS_GROUP, PREFIX, Requester};
use crate::{Code, Violation, name};

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

/// A year in seconds: what agents ask for at most, and what signers give where nothing is asked for.
pub const YEAR: i64 = 31_536_000;

/// What may be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Users who may ask for a cluster's first certificate besides the hub's own bootstrap identities. Exact names.
    pub requesters: Vec<String>,
    /// Signers that add-ons may ask besides the API server's and the gRPC server's.
    pub addon_signers: Vec<String>,
    /// Longest lifetime that may be asked for.
    pub max_lifetime_seconds: i64,
    /// The lifetime of a certificate for which none was asked.
    pub signer_default_seconds: i64,
    /// Shortest modulus of an RSA key.
    pub min_rsa_bits: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            requesters: Vec::new(),
            addon_signers: Vec::new(),
            max_lifetime_seconds: YEAR,
            signer_default_seconds: YEAR,
            min_rsa_bits: 2048,
        }
    }
}

/// Longest modulus of an RSA key: longer ones are not verified, for that takes too long.
const MAX_RSA_BITS: u32 = 8192;

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
    pub content: Result<Content<'a, S>, &'a str>,
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

    fn is_strong(self, settings: &Settings) -> bool {
        match self {
            Self::P256 | Self::P384 | Self::P521 | Self::Ed25519 => true,
            Self::Rsa(bits) => (settings.min_rsa_bits..=MAX_RSA_BITS).contains(&bits),
            Self::Other(_) => false,
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
            Self::Other(name) => f.write_str(name),
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

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About<'a> {
    /// The certificate of a cluster's agent.
    Agent {
        /// The cluster.
        cluster: &'a str,
        /// The agent's own name.
        agent: &'a str,
    },
    /// The certificate of an add-on's agent.
    Addon {
        /// The cluster.
        cluster: &'a str,
        /// The add-on.
        addon: &'a str,
    },
}

impl<'a> About<'a> {
    /// The cluster.
    pub fn cluster(self) -> &'a str {
        match self {
            Self::Agent { cluster, .. } | Self::Addon { cluster, .. } => cluster,
        }
    }
}

/// What sort of certificate is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An agent's first.
    First,
    /// An agent asks for its own again.
    Renewal,
    /// An add-on's.
    Addon,
}

/// What a request comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What sort of certificate is asked for.
    pub kind: Kind,
    /// Every rule that is broken.
    pub violations: Vec<Violation>,
}

const REQUEST: &str = "spec.request";
const LABELS: &str = "metadata.labels";
const REQUESTER: &str = "spec.username";

/// Which cluster a request is about, by its common name, with which the label must agree. None if the request has
/// nothing to do with the hub.
///
/// # Errors
/// Where that is not clear: nobody may go on with such a request.
pub fn about<'a, S: AsRef<str>>(csr: &Csr<'a, S>) -> Result<Option<About<'a>>, Violation> {
    if !csr.concerns_hub() {
        return Ok(None);
    }
    let content = csr.content.map_err(|why| Violation::new(Code::Unreadable, REQUEST, why))?;
    let [name] = content.common_names else { return Err(content.common_names_violation()) };
    let name = name.as_ref();
    let about = match Identity::of(name) {
        Identity::Agent { cluster, agent } => About::Agent { cluster, agent },
        Identity::AddonAgent { cluster, addon, .. } => About::Addon { cluster, addon },
        _ => {
            let detail = format!("common name {} is no agent's", Quoted(name));
            return Err(Violation::new(Code::CommonName, REQUEST, detail));
        }
    };
    if csr.cluster_label != Some(about.cluster()) {
        return Err(csr.cluster_label_violation());
    }
    match (about, csr.addon_label) {
        (About::Agent { .. }, Some(label)) => Err(addon_label_violation(label)),
        (About::Addon { addon, .. }, label) if label != Some(addon) => {
            let detail = format!("the label names the add-on {}", Quoted(label.unwrap_or_default()));
            Err(Violation::new(Code::AddonLabel, LABELS, detail))
        }
        _ => Ok(Some(about)),
    }
}

fn addon_label_violation(label: &str) -> Violation {
    let detail = format!("it asks for an agent's name, but its label names the add-on {}", Quoted(label));
    Violation::new(Code::AddonLabel, LABELS, detail)
}

/// Checks a request against every rule, whoever asks. `expected` is the cluster that it must be about, where that is
/// known; `addon_enabled` says whether the hub has the ManagedClusterAddOn that an add-on's request is for, none where
/// nobody has looked. None if the request has nothing to do with the hub.
pub fn judge<S: AsRef<str>>(
    csr: &Csr<'_, S>,
    expected: Option<&str>,
    settings: &Settings,
    addon_enabled: Option<bool>,
) -> Option<Judgement> {
    if expected.is_none() && !csr.concerns_hub() {
        return None;
    }
    let mut found = Vec::new();
    if csr.is_addons() {
        csr.check_form(settings, &mut found);
        csr.check_addon(expected, settings, addon_enabled, &mut found);
        return Some(Judgement { kind: Kind::Addon, violations: found });
    }
    // By its common name: an agent is judged as one whatever the label says.
    let named = match &csr.content {
        Ok(content) => match content.common_names {
            [name] => match Identity::of(name.as_ref()) {
                Identity::Agent { cluster, .. } => Some(cluster),
                _ => None,
            },
            _ => None,
        },
        Err(_) => None,
    };
    let cluster = expected.or(named).or(csr.cluster_label).unwrap_or_default();
    let kind = match Identity::of(csr.asked_by()).is_hub_given() {
        true => Kind::Renewal,
        false => Kind::First,
    };
    csr.check_agent(cluster, kind, settings, &mut found);
    Some(Judgement { kind, violations: found })
}

/// Checks a request against every rule for the first certificate of an agent of `cluster`, whoever asks. An empty
/// answer means that it asks for exactly that and nothing else.
pub fn first_certificate<S: AsRef<str>>(csr: &Csr<'_, S>, cluster: &str, settings: &Settings) -> Vec<Violation> {
    let mut found = Vec::new();
    csr.check_agent(cluster, Kind::First, settings, &mut found);
    found
}

/// An agent that was installed by the one who asks: whom it registers as, and what the API server records of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnAgent<'a> {
    /// Name of the cluster.
    pub cluster: &'a str,
    /// The agent's own name, from the Secret that it keeps on its cluster.
    pub agent: &'a str,
    /// User name of the token that it registers with.
    pub user: &'a str,
    /// Id of that token with its prefix `JTI=`; none for tokens without one, such as bootstrap tokens.
    pub token_id: Option<&'a str>,
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

    fn names_cluster(&self, cluster: &str) -> bool {
        self.common_names().any(|name| Identity::of(name).cluster() == Some(cluster))
    }

    /// Whether the request is an add-on's, which other approvers decide about.
    ///
    /// A label alone hides nothing: whoever asks for the name or the groups of a cluster's agent is judged as one.
    pub fn is_addons(&self) -> bool {
        let Ok(content) = &self.content else { return self.addon_label.is_some() };
        if self.agents().next().is_some() || texts(content.organizations).any(identity::is_agents_group) {
            return false;
        }
        let is_addon = |name: &S| matches!(Identity::of(name.as_ref()), Identity::AddonAgent { .. });
        let all_addons = !content.common_names.is_empty() && content.common_names.iter().all(is_addon);
        all_addons || self.addon_label.is_some()
    }

    /// Whether an agent of `cluster` asks for its own name again.
    pub fn is_renewal(&self, cluster: &str) -> bool {
        let user = self.asked_by();
        matches!(Identity::of(user), Identity::Agent { cluster: of, .. } if of == cluster)
            && matches!(&self.content, Ok(content) if matches!(content.common_names, [name] if name.as_ref() == user))
    }

    /// Whether this is the request of the agent that the caller installed: it asks for that agent's name, as the user
    /// and with the very token that were given to it. A token is a secret that the agent shares with nobody, so no
    /// other can create such a request.
    pub fn is_of(&self, own: &OwnAgent<'_>) -> bool {
        let named = matches!(
            about(self),
            Ok(Some(About::Agent { cluster, agent })) if cluster == own.cluster && agent == own.agent
        );
        // The gRPC server shows its own token; of the agent's, only the user is known.
        let same_token =
            self.requester.is_grpc_server() || own.token_id.is_none() || self.requester.token_id() == own.token_id;
        named && self.asked_by() == own.user && same_token
    }

    /// Whether an issued certificate would be an identity on the hub.
    pub fn is_for_hub(&self) -> bool {
        self.signer == API_SIGNER || self.signer == GRPC_SIGNER
    }

    /// Whether the request has to do with the hub at all: by label, by what it asks for, or by who asks. Agents and
    /// those who register clusters have nothing else to ask for.
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
            || matches!(&self.content, Ok(content)
                if texts(content.common_names).chain(texts(content.organizations)).any(|name| name.starts_with(PREFIX)))
    }

    fn common_names(&self) -> impl Iterator<Item = &'a str> {
        texts(self.content.as_ref().map_or(&[], |content| content.common_names))
    }

    /// Cluster and agent of every common name that is an agent's.
    fn agents(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.common_names().filter_map(|name| match Identity::of(name) {
            Identity::Agent { cluster, agent } => Some((cluster, agent)),
            _ => None,
        })
    }

    fn cluster_label_violation(&self) -> Violation {
        let detail = match self.cluster_label {
            Some(label) => format!("the label names the cluster {}", Quoted(label)),
            None => "no label names the cluster".to_owned(),
        };
        Violation::new(Code::ClusterLabel, LABELS, detail)
    }

    /// Everything that holds for an agent's request.
    fn check_agent(&self, cluster: &str, kind: Kind, settings: &Settings, found: &mut Vec<Violation>) {
        if self.cluster_label != Some(cluster) || cluster.is_empty() {
            found.push(self.cluster_label_violation());
        }
        if let Some(label) = self.addon_label {
            found.push(addon_label_violation(label));
        }
        self.check_requester(kind, settings, found);
        let expected = match self.requester.user == GRPC_SERVER_USER {
            true => GRPC_SIGNER,
            false => API_SIGNER,
        };
        if self.signer != expected {
            let detail = format!("signer {} instead of {expected}", Quoted(self.signer));
            found.push(Violation::new(Code::Signer, "spec.signerName", detail));
        }
        self.check_form(settings, found);
        let Ok(content) = &self.content else { return };
        match content.common_names {
            [name] => match Identity::of(name.as_ref()) {
                Identity::Agent { cluster: of, .. } if of == cluster && !name::is_reserved(cluster) => {}
                Identity::Agent { cluster: of, .. } if of == cluster => {
                    found.extend(name::check(cluster, &[]));
                }
                _ => {
                    let detail = format!("common name {} is no agent of {}", Quoted(name.as_ref()), Quoted(cluster));
                    found.push(Violation::new(Code::CommonName, REQUEST, detail));
                }
            },
            _ => found.push(content.common_names_violation()),
        }
        let own = |group: &&str| identity::is_group_of(group, cluster);
        let foreign = |group: &&str| !own(group) && *group != MANAGED_CLUSTERS_GROUP;
        content.check_organizations(foreign, found);
        if !texts(content.organizations).any(|group| own(&group)) {
            let detail = format!("organization {:?} is missing", format!("{PREFIX}{cluster}"));
            found.push(Violation::new(Code::MissingOrganization, REQUEST, detail));
        }
    }

    fn check_requester(&self, kind: Kind, settings: &Settings, found: &mut Vec<Violation>) {
        let user = self.requester.user;
        let by_grpc = user == GRPC_SERVER_USER;
        if !by_grpc && (self.grpc_user.is_some() || self.signer == GRPC_SIGNER) {
            let detail = format!("it claims the hub's gRPC server, but was created by {}", Quoted(user));
            return found.push(Violation::new(Code::GrpcClaim, "metadata.annotations", detail));
        }
        if let Some(lack) = self.requester.lack() {
            let detail = format!("{} {lack}", Quoted(user));
            return found.push(Violation::new(Code::Impersonated, REQUESTER, detail));
        }
        if by_grpc && self.grpc_user.is_none_or(str::is_empty) {
            let detail = "the hub's gRPC server does not say who asked";
            return found.push(Violation::new(Code::GrpcClaim, "metadata.annotations", detail));
        }
        let asked_by = self.asked_by();
        if kind == Kind::Renewal {
            let own = matches!(&self.content, Ok(content)
                if matches!(content.common_names, [name] if name.as_ref() == asked_by));
            if !own || !matches!(Identity::of(asked_by), Identity::Agent { .. }) {
                let detail = format!("{} asks for another name than its own", Quoted(asked_by));
                found.push(Violation::new(Code::OtherAgent, REQUESTER, detail));
            }
            return;
        }
        // What stands behind the gRPC server is known by name only; its groups are not recorded.
        let entitled = match by_grpc {
            true => identity::bootstraps_by_name(asked_by, &settings.requesters),
            false => self.requester.bootstraps(&settings.requesters),
        };
        if !entitled {
            let detail = format!("{} may not register clusters", Quoted(asked_by));
            found.push(Violation::new(Code::Requester, REQUESTER, detail));
        }
    }

    /// What holds for agents and add-ons alike: usages, lifetime, and the form of the content.
    fn check_form(&self, settings: &Settings, found: &mut Vec<Violation>) {
        let has = |usage: &str| texts(self.usages).any(|known| known == usage);
        let known = |usage: &str| matches!(usage, "digital signature" | "key encipherment" | "client auth");
        if !has("digital signature") || !has("client auth") || !texts(self.usages).all(known) {
            let detail = format!("usages {}", quoted(texts(self.usages)));
            found.push(Violation::new(Code::Usages, "spec.usages", detail));
        }
        let most = settings.max_lifetime_seconds;
        let wrong = match self.lifetime_seconds {
            Some(seconds) => (seconds <= 0 || seconds > most).then(|| format!("{seconds}s asked for, {most}s allowed")),
            None => (settings.signer_default_seconds > most).then(|| {
                let default = settings.signer_default_seconds;
                format!("no lifetime asked for, for which signers give up to {default}s, {most}s allowed")
            }),
        };
        if let Some(detail) = wrong {
            found.push(Violation::new(Code::Lifetime, "spec.expirationSeconds", detail));
        }
        match &self.content {
            Ok(content) => content.check_form(settings, found),
            Err(why) => found.push(Violation::new(Code::Unreadable, REQUEST, *why)),
        }
    }

    /// Everything that holds for an add-on's request besides its form.
    fn check_addon(
        &self,
        expected: Option<&str>,
        settings: &Settings,
        enabled: Option<bool>,
        found: &mut Vec<Violation>,
    ) {
        let (cluster, addon) = (self.cluster_label.unwrap_or_default(), self.addon_label.unwrap_or_default());
        if cluster.is_empty() || expected.is_some_and(|expected| expected != cluster) {
            found.push(self.cluster_label_violation());
        }
        if addon.is_empty() {
            found.push(Violation::new(Code::AddonLabel, LABELS, "no label names the add-on"));
        }
        // `…:cluster:<cluster>:addon:<addon>` and what stands below it.
        let below = |name: &str| {
            matches!(Identity::of(name), Identity::AddonAgent { cluster: c, addon: a, agent: Some(_) }
                if c == cluster && a == addon)
        };
        if let Ok(content) = &self.content {
            match content.common_names {
                [name] if below(name.as_ref()) => {}
                [name] => {
                    let detail = format!("common name {} is not that of this add-on's agent", Quoted(name.as_ref()));
                    found.push(Violation::new(Code::CommonName, REQUEST, detail));
                }
                _ => found.push(content.common_names_violation()),
            }
            let known = |group: &str| {
                group == "system:authenticated"
                    || group.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix("addon:")) == Some(addon)
                    || matches!(Identity::of(group), Identity::AddonAgent { cluster: c, addon: a, .. }
                        if c == cluster && a == addon)
            };
            content.check_organizations(|group| !known(group), found);
        }
        if (self.signer == GRPC_SIGNER || self.grpc_user.is_some()) && !self.requester.is_grpc_server() {
            let detail = format!("it claims the hub's gRPC server, but was created by {}", Quoted(self.requester.user));
            found.push(Violation::new(Code::GrpcClaim, "metadata.annotations", detail));
        } else if !self.is_for_hub() && !settings.addon_signers.iter().any(|known| known == self.signer) {
            let detail = format!("add-ons may not ask the signer {}", Quoted(self.signer));
            found.push(Violation::new(Code::Signer, "spec.signerName", detail));
        }
        let asked_by = self.asked_by();
        let entitled =
            matches!(Identity::of(asked_by), Identity::Agent { cluster: of, .. } if of == cluster) || below(asked_by);
        if !entitled {
            let detail = format!("{} may not ask for this add-on", Quoted(asked_by));
            found.push(Violation::new(Code::Requester, REQUESTER, detail));
        }
        match enabled {
            Some(true) => {}
            Some(false) => {
                let detail = format!("the hub has no add-on {} for {}", Quoted(addon), Quoted(cluster));
                found.push(Violation::new(Code::AddonNotEnabled, LABELS, detail));
            }
            None => {
                let detail = "whether the add-on is enabled is not known";
                found.push(Violation::new(Code::EvidenceIncomplete, LABELS, detail));
            }
        }
    }
}

impl<S: AsRef<str>> Content<'_, S> {
    fn common_names_violation(&self) -> Violation {
        let count = self.common_names.len();
        let detail = format!("{count} common names: {}", quoted(texts(self.common_names)));
        Violation::new(Code::CommonNames, REQUEST, detail)
    }

    fn check_organizations(&self, foreign: impl Fn(&&str) -> bool, found: &mut Vec<Violation>) {
        if texts(self.organizations).any(|group| foreign(&group)) {
            let detail = format!("organizations {}", quoted(texts(self.organizations).filter(foreign)));
            found.push(Violation::new(Code::ForeignOrganization, REQUEST, detail));
        }
    }

    fn check_form(&self, settings: &Settings, found: &mut Vec<Violation>) {
        let mut none_of = |code, what: &str, texts_: &[S]| {
            if !texts_.is_empty() {
                found.push(Violation::new(code, REQUEST, format!("{what} {}", quoted(texts(texts_)))));
            }
        };
        none_of(Code::SubjectAttributes, "subject attributes", self.other_attributes);
        none_of(Code::AlternativeNames, "alternative names", self.alternative_names);
        none_of(Code::Extensions, "extensions", self.extensions);
        let strong = self.key.is_strong(settings);
        if !strong {
            found.push(Violation::new(Code::WeakKey, REQUEST, format!("key {}", self.key)));
        }
        match self.signature {
            Signature::Valid => {}
            // The weak key says it all: such keys are not even tried.
            _ if !strong => {}
            Signature::Invalid => {
                found.push(Violation::new(Code::Signature, REQUEST, "it is not signed with its own key"));
            }
            Signature::Unverifiable => {
                let detail = "its signature algorithm cannot be verified";
                found.push(Violation::new(Code::Signature, REQUEST, detail));
            }
        }
    }
}

fn texts<S: AsRef<str>>(texts: &[S]) -> impl Iterator<Item = &str> {
    texts.iter().map(AsRef::as_ref)
}
