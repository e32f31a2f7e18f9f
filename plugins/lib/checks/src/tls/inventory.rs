//! What was found of certificates, by what they are for and not by host.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use ocm_api::member::Member;
use serde::Serialize;

use super::client::Client;
use super::profile::{TlsSettings, Version};
use crate::snapshot::{Side, Trouble};

/// The format of an inventory that this code writes and reads.
pub const FORMAT: u32 = 1;

/// What was found of certificates at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct Inventory {
    /// [`FORMAT`] of whoever wrote it.
    pub format: u32,
    /// When: certificates are judged at this time.
    pub observed: Time,
    /// Who presents what to whom.
    #[serde(default)]
    pub relations: Vec<Relation>,
    /// Copies of authorities and addresses.
    #[serde(default)]
    pub copies: Vec<Copy>,
    /// Tokens with which somebody comes to an API server, as far as they tell of themselves.
    #[serde(default)]
    pub tokens: Vec<Token>,
    /// Settings of TLS servers.
    #[serde(default)]
    pub settings: Vec<Setting>,
    /// How the hub verifies its clients; none: that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Clients>,
    /// What could not be looked at.
    #[serde(default)]
    pub unseen: Vec<Unseen>,
}

impl Inventory {
    /// One with nothing in it yet, as of this time.
    pub fn new(observed: Timestamp) -> Self {
        Self {
            format: FORMAT,
            observed: Time(observed),
            relations: Vec::new(),
            copies: Vec::new(),
            tokens: Vec::new(),
            settings: Vec::new(),
            clients: None,
            unseen: Vec::new(),
        }
    }

    /// Whether a hub was looked at.
    pub fn has_hub(&self) -> bool {
        let of_hub = |copy: &Copy| matches!(copy.what, Copied::Signer | Copied::Bundle | Copied::WebhookBundle);
        self.clients.is_some() || self.copies.iter().any(of_hub)
    }

    /// Adds what another one has.
    pub fn add(&mut self, other: Self) {
        let Self { format: _, observed: _, relations, copies, tokens, settings, clients, unseen } = other;
        self.relations.extend(relations);
        self.copies.extend(copies);
        self.tokens.extend(tokens);
        self.settings.extend(settings);
        self.clients = self.clients.take().or(clients);
        self.unseen.extend(unseen);
    }
}

/// How a hub verifies its clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase", default)]
pub struct Clients {
    /// The address of its API server, as whoever looked dialled it. Empty where it is not known.
    pub server: String,
    /// By whom that server is trusted: DER.
    pub server_authorities: Vec<ByteString>,
    /// Whom its API server trusts: DER.
    pub authorities: Vec<ByteString>,
    /// Whom its gRPC server trusts: DER.
    pub grpc_authorities: Vec<ByteString>,
    /// How far its clock is ahead of the time of the inventory, in seconds; negative if it is behind.
    pub clock_ahead_seconds: i64,
}

/// One certificate with what it is verified by: who presents what to whom.
#[derive(Clone, Debug, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct Relation {
    /// What it is for.
    pub purpose: Purpose,
    /// The managed cluster that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Who presents it, such as `the hub's API server`.
    pub presenter: String,
    /// Who verifies it, such as `the agents of c1`.
    pub verifier: String,
    /// The software that verifies it; none: it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Client>,
    /// Where it was found.
    pub place: Place,
    /// Whether it is shown by a server or by a client.
    pub usage: Use,
    /// The certificates in DER, the own one first.
    pub chain: Vec<ByteString>,
    /// Whom the verifier trusts.
    pub trust: Trust,
    /// The names and addresses under which it is dialled. Empty for clients, and where they are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Whom it has to name; none: nothing is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Whether the private key beside it belongs to it; none: there was none to be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds_key: Option<bool>,
    /// Who renews it, and when.
    pub renewal: Renewal,
    /// The handshake in which it was presented; none: it was read from an object or a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake: Option<Handshake>,
    /// How far the verifier's clock is ahead of the time of the inventory, in seconds; negative if it is behind.
    #[serde(default)]
    pub clock_ahead_seconds: i64,
}

/// What certificates are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub enum Purpose {
    /// The hub's API server, as somebody dials it.
    HubApi,
    /// The API server of a managed cluster.
    ManagedApi,
    /// The hub's own authority, which signs what webhooks and the gRPC server present.
    Signer,
    /// A webhook of Open Cluster Management.
    Webhook,
    /// The hub's gRPC server.
    Grpc,
    /// A server of the hub's placement controller.
    Placement,
    /// An agent, towards the hub.
    Agent,
    /// An add-on, towards the hub.
    AddOn,
    /// An operator, agent or controller, towards the API server of another cluster than the one it runs on.
    Hosted,
    /// The webhook of the policy engine.
    PolicyWebhook,
    /// A proxy, to whoever goes through it.
    Proxy,
    /// Something that was named on the command line.
    Given,
}

impl Purpose {
    /// The word for tables and metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::HubApi => "hub-api",
            Self::ManagedApi => "managed-api",
            Self::Signer => "signer",
            Self::Webhook => "webhook",
            Self::Grpc => "grpc",
            Self::Placement => "placement",
            Self::Agent => "agent",
            Self::AddOn => "add-on",
            Self::Hosted => "hosted",
            Self::PolicyWebhook => "policy-webhook",
            Self::Proxy => "proxy",
            Self::Given => "given",
        }
    }

    /// Whether the settings of Open Cluster Management's servers are for it.
    pub(super) const fn follows_settings(self) -> bool {
        matches!(self, Self::Webhook | Self::Grpc | Self::Placement)
    }
}

/// Which end of a connection shows a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub enum Use {
    /// A server to its clients.
    Server,
    /// A client to a server.
    Client,
    /// Nobody: it signs others.
    Authority,
}

/// Where something was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub enum Place {
    /// In an object of a cluster.
    #[serde(rename_all = "camelCase")]
    Object {
        /// Which cluster.
        side: Side,
        /// Its kind.
        kind: ObjectKind,
        /// Its namespace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        /// Its name.
        name: String,
        /// The key or the field in it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// At an address.
    Address(String),
    /// In a file, or on stdin.
    Input(String),
}

impl Place {
    /// The cluster that it is on; none: it is on none.
    pub const fn side(&self) -> Option<Side> {
        match self {
            Self::Object { side, .. } => Some(*side),
            Self::Address(_) | Self::Input(_) => None,
        }
    }

    /// The namespace that it is in; none: it is in none.
    pub fn namespace(&self) -> Option<&str> {
        match self {
            Self::Object { namespace, .. } => namespace.as_deref(),
            Self::Address(_) | Self::Input(_) => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object { side: _, kind, namespace, name, key } => {
                f.write_str(kind.word())?;
                match namespace {
                    Some(namespace) => write!(f, " {namespace}/{name}")?,
                    None => write!(f, " {name}")?,
                }
                key.as_ref().map_or(Ok(()), |key| write!(f, " {key}"))
            }
            Self::Address(address) => f.write_str(address),
            Self::Input(name) => f.write_str(name),
        }
    }
}

/// Kinds of objects that hold certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Member)]
pub enum ObjectKind {
    /// Secrets.
    Secret,
    /// ConfigMaps.
    ConfigMap,
    /// MutatingWebhookConfigurations.
    MutatingWebhookConfiguration,
    /// ValidatingWebhookConfigurations.
    ValidatingWebhookConfiguration,
    /// CustomResourceDefinitions.
    CustomResourceDefinition,
    /// Managed clusters.
    ManagedCluster,
    /// Settings of add-ons.
    AddOnDeploymentConfig,
}

impl ObjectKind {
    /// The name of the kind.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
            Self::MutatingWebhookConfiguration => "MutatingWebhookConfiguration",
            Self::ValidatingWebhookConfiguration => "ValidatingWebhookConfiguration",
            Self::CustomResourceDefinition => "CustomResourceDefinition",
            Self::ManagedCluster => "ManagedCluster",
            Self::AddOnDeploymentConfig => "AddOnDeploymentConfig",
        }
    }
}

/// Whom a verifier trusts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub enum Trust {
    /// These authorities: DER.
    Authorities(Vec<ByteString>),
    /// Those of the system that it runs on: whether they vouch for it was asked where the inventory was made.
    #[serde(rename_all = "camelCase")]
    System {
        /// Why they do not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refusal: Option<String>,
    },
    /// Whomever the hub's API server trusts: [`Inventory::clients`], where the hub was looked at.
    HubClients,
    /// Whomever the hub's gRPC server trusts: [`Inventory::clients`], where the hub was looked at.
    GrpcClients,
    /// It does not verify at all.
    Nobody,
    /// It is not known, so nothing is said about it.
    Unknown,
}

/// Whom a client certificate has to name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// The cluster.
    pub cluster: String,
    /// The agent; none: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The add-on of that cluster; none: it is the cluster's own agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on: Option<String>,
}

/// Who renews a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub enum Renewal {
    /// A controller, at the latest when so many percent of its life have passed.
    AtPercent(u8),
    /// Nobody that is known.
    Unknown,
}

/// What a handshake came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct Handshake {
    /// The address that was dialled.
    pub address: String,
    /// The proxy on the way, without credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// The version that both ends agreed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// The cipher suite that both ends agreed on, by its IANA name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cipher: Option<String>,
    /// The cipher suite that TLS 1.2 came to, where the server accepts it, by its IANA name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_cipher: Option<String>,
    /// The versions that the server was seen to accept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<Version>,
    /// The cipher suites of TLS 1.2 that the server was seen to accept, by their IANA names and in the order in which it chose
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suites: Vec<String>,
}

/// A copy of authorities, and of the address that goes with them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct Copy {
    /// What is copied.
    pub what: Copied,
    /// The managed cluster that has the copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Where it is.
    pub place: Place,
    /// The authorities in it: DER.
    pub authorities: Vec<ByteString>,
    /// How many blocks in it cannot be read. Verifiers pass them over.
    #[serde(default)]
    pub unreadable: usize,
    /// The address beside them, without credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The proxy beside them, without credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Whether they vouch for what answers at that address; none: it was not dialled, or nothing answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vouches: Option<bool>,
}

/// A token with which somebody comes to an API server: what it tells of itself, of which nothing is verified. The token is
/// never part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct Token {
    /// What it is for.
    pub purpose: Purpose,
    /// The managed cluster that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Who presents it.
    pub presenter: String,
    /// Who verifies it.
    pub verifier: String,
    /// Where it was found.
    pub place: Place,
    /// Who it is of; none: it does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Since when it is valid; none: it does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued: Option<Time>,
    /// Until when it is valid; none: it does not tell, or never ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Time>,
    /// Who renews it, and when.
    pub renewal: Renewal,
}

/// What there are copies of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub enum Copied {
    /// The certificate with which the hub signs now.
    Signer,
    /// The hub's bundle: the present signer and those before it that are still valid.
    Bundle,
    /// The bundle as the API server has it, to verify webhooks.
    WebhookBundle,
    /// The hub's authorities as an agent has them to register.
    Bootstrap,
    /// The authorities of a hub that an agent turns to when the one that it is at does not answer.
    Further,
    /// The hub's authorities as an agent has them since it was let in.
    Accepted,
    /// The bundle as an agent has it that registers over gRPC.
    GrpcBundle,
    /// The authorities of a managed cluster's API server, as its agent reported them to the hub.
    Reported,
    /// The authorities of a managed cluster's API server, as that cluster publishes them to its pods.
    OwnApi,
    /// The authorities by which add-ons trust their proxy.
    Proxy,
    /// The authorities of a managed cluster's API server, as an operator or agent has them that runs elsewhere.
    HostedApi,
    /// The authorities of a hub's API server, as an operator or controller has them that runs elsewhere.
    HostedHub,
    /// The authorities by which the API server trusts the webhook of the policy engine.
    PolicyBundle,
}

impl Copied {
    /// What the certificates are for that are verified by it.
    pub const fn purpose(self) -> Purpose {
        match self {
            Self::Signer | Self::Bundle => Purpose::Signer,
            Self::WebhookBundle => Purpose::Webhook,
            Self::Bootstrap | Self::Further | Self::Accepted | Self::HostedHub => Purpose::HubApi,
            Self::GrpcBundle => Purpose::Grpc,
            Self::Reported | Self::OwnApi | Self::HostedApi => Purpose::ManagedApi,
            Self::Proxy => Purpose::Proxy,
            Self::PolicyBundle => Purpose::PolicyWebhook,
        }
    }

    /// What people call it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Signer => "the hub's signer",
            Self::Bundle => "the hub's bundle",
            Self::WebhookBundle => "the hub's bundle, for webhooks",
            Self::Bootstrap => "the hub's API server, to register",
            Self::Further => "a further hub's API server",
            Self::Accepted => "the hub's API server",
            Self::GrpcBundle => "the hub's gRPC server",
            Self::Reported => "the cluster's API server, as reported",
            Self::OwnApi => "the cluster's API server, as published",
            Self::Proxy => "the proxy of add-ons",
            Self::HostedApi => "the cluster's API server, hosted",
            Self::HostedHub => "the hub's API server, hosted",
            Self::PolicyBundle => "the policy engine's webhook",
        }
    }
}

/// The settings of TLS servers in a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct Setting {
    /// Where they are.
    pub place: Place,
    /// Whether the operator reads them there.
    pub is_read: bool,
    /// What they say.
    pub settings: TlsSettings,
}

/// Something that could not be looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct Unseen {
    /// What.
    pub what: String,
    /// The cluster that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Why.
    pub trouble: Trouble,
}
