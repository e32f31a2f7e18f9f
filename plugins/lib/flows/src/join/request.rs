//! What is wanted of a join.

use std::time::Duration;

use ocm_core::Failure;
use ocm_core::accept::Options as AcceptOptions;
use ocm_core::join::Settings;
use ocm_core::join::fallback::HubTimeout;
use ocm_core::join::progress::Goal;
use ocm_core::join::proxy::AgentProxy;
use ocm_core::plan::Mode;
use ocm_kube::Cluster;
use ocm_net::Endpoint;

use super::coming::Coming;
use super::hub_access::HubAccess;

/// What is wanted.
#[derive(Clone)]
pub struct Request {
    /// What the join is to come to.
    pub settings: Settings,
    /// How the hub is reached.
    pub access: HubAccess,
    /// What is done with the plan.
    pub mode: Mode,
    /// Accept the cluster too; only with access to both clusters.
    pub accept: Option<AcceptOptions>,
    /// Follow the agent this far.
    pub wait: Option<Goal>,
    /// How long the wait and the acceptance may take together.
    pub timeout: Duration,
    /// Use the address that the hub publishes for its own network, with a token.
    pub internal: bool,
    /// Have pods reach a hosted cluster at the address that it publishes for its own network.
    pub internal_managed: bool,
    /// Whether a namespace of the cluster's name that is on the hub already, and is nobody's cluster's, becomes its own.
    pub adopt_namespace: bool,
    /// The cluster that joins, where the agents run on another one: in the hosted modes.
    pub guest: Option<Box<Cluster>>,
    /// What is to become of the proxy through which its agent reaches the hub.
    pub proxy: AgentProxy,
    /// What was typed about the hub's gRPC server.
    pub grpc: GrpcOptions,
    /// What was typed about hubs that the agent turns to when this one does not answer.
    pub fallback: FallbackOptions,
    /// What was typed about the hub that the cluster leaves for this one.
    pub former: FormerHubOptions,
    /// The hub's installation, where the caller installs it at the same time: then it is waited for, also where nothing tells
    /// yet that this becomes a hub. Where nothing is to be changed, what such a hub would say is not known.
    pub coming: Option<Coming>,
}

/// What was typed about the hub's gRPC server.
#[derive(Clone, Debug, Default)]
pub struct GrpcOptions {
    /// Host, and port if one was typed; none: as the hub says.
    pub server: Option<(String, Option<u16>)>,
    /// Certificates (DER) of its CA; empty: as the hub says.
    pub ca: Vec<Vec<u8>>,
}

/// What was typed about further hubs.
#[derive(Clone, Default)]
pub struct FallbackOptions {
    /// Hubs that the agent is to turn to, in order, with the user's own rights.
    pub hubs: Vec<Cluster>,
    /// Hubs that it is to turn to no longer, by their addresses or by the names of their Secrets.
    pub removed: Vec<String>,
    /// After how long without a hub it turns to the next one; none: as it is.
    pub timeout: Option<HubTimeout>,
}

impl FallbackOptions {
    /// Whether nothing was typed.
    pub(super) fn is_empty(&self) -> bool {
        self.hubs.is_empty() && self.removed.is_empty() && self.timeout.is_none()
    }
}

/// What was typed about the hub that a cluster leaves.
#[derive(Clone, Default)]
pub struct FormerHubOptions {
    /// Its address, as the agent dials it: no other hub is to be left.
    pub server: Option<String>,
    /// The hub, with the user's own rights: what it has of the cluster goes.
    pub hub: Option<Cluster>,
}

impl FormerHubOptions {
    /// Checks what was typed as its address.
    ///
    /// # Errors
    /// A usage failure for what is no address of an API server.
    pub fn check(server: &str) -> Result<(), Failure> {
        Endpoint::parse(server, None).map(drop)
    }

    /// Whether any was typed.
    pub(super) fn is_given(&self) -> bool {
        self.server.is_some() || self.hub.is_some()
    }
}
