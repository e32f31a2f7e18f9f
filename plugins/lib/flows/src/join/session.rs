//! The hub that was found and verified, and how we talk to it: made once for a command.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::{AuthInfo, Cluster as ClusterEntry};
use ocm_api::ManagedCluster;
use ocm_core::kubeconfig::HubAddress;
use ocm_core::{Failure, Narrator, Role, pin};
use ocm_kube::{Cluster, Connection, connect_to};
use secrecy::{ExposeSecret as _, SecretString};

use super::on_hub;

/// How long a request to the hub may take.
const REQUEST: Duration = Duration::from_secs(15);

/// The hub, found and verified.
pub(super) struct HubSession {
    /// As agents dial and trust it.
    pub(super) address: HubAddress,
    /// With whose rights.
    pub(super) access: Access,
}

/// With whose rights we talk to the hub.
pub(super) enum Access {
    /// The user's own: there is access to both clusters.
    Admin(Cluster),
    /// Those of the token that was given.
    Token {
        /// The token.
        token: SecretString,
        /// A client with it.
        client: Cluster,
    },
}

impl HubSession {
    /// The client, with whatever rights there are.
    pub(super) fn client(&self) -> &Cluster {
        match &self.access {
            Access::Admin(client) | Access::Token { client, .. } => client,
        }
    }

    /// The client with the user's own rights.
    pub(super) fn admin(&self) -> Option<&Cluster> {
        match &self.access {
            Access::Admin(client) => Some(client),
            Access::Token { .. } => None,
        }
    }

    /// The token that was given.
    pub(super) fn token(&self) -> Option<&str> {
        match &self.access {
            Access::Admin(_) => None,
            Access::Token { token, .. } => Some(token.expose_secret()),
        }
    }

    /// The managed cluster on the hub.
    ///
    /// # Errors
    /// What the hub said.
    pub(super) async fn cluster(&self, name: &str) -> Result<Option<ManagedCluster>, Failure> {
        match &self.access {
            Access::Admin(client) => on_hub::cluster(client, name).await,
            Access::Token { token, client } => on_hub::registered(client, token.expose_secret(), name).await,
        }
    }
}

/// A client that is what an agent with this token is to the hub.
pub(super) async fn dial(
    address: &HubAddress,
    token: SecretString,
    narrator: Arc<dyn Narrator>,
) -> Result<Cluster, Failure> {
    connect(address, token, false, narrator).await
}

/// The same, but nobody verifies the hub.
pub(super) async fn dial_unverified(
    address: &HubAddress,
    token: SecretString,
    narrator: Arc<dyn Narrator>,
) -> Result<Cluster, Failure> {
    connect(address, token, true, narrator).await
}

async fn connect(
    address: &HubAddress,
    token: SecretString,
    insecure_skip_tls_verify: bool,
    narrator: Arc<dyn Narrator>,
) -> Result<Cluster, Failure> {
    let cluster = ClusterEntry {
        server: Some(address.server.clone()),
        certificate_authority_data: (!address.ca.is_empty()).then(|| STANDARD.encode(pin::to_pem(&address.ca))),
        proxy_url: address.proxy.clone(),
        ..ClusterEntry::default()
    };
    let user = AuthInfo { token: Some(token), ..AuthInfo::default() };
    let connection = Connection {
        insecure_skip_tls_verify,
        request_timeout: Some(REQUEST),
        role: Role::Hub,
        ..Connection::default()
    };
    connect_to(cluster, user, &connection, narrator).await
}
