//! Clients that are to the hub what an agent with a token is.

use std::sync::Arc;
use std::time::Duration;

use kube::config::{AuthInfo, Cluster as ClusterEntry};
use ocm_core::kubeconfig::HubAddress;
use ocm_core::{Failure, Narrator, Role, certificate};
use ocm_kube::{Cluster, Connection, connect_to};
use secrecy::SecretString;

/// How long a request to the hub may take.
pub(super) const REQUEST: Duration = Duration::from_secs(15);

/// A client that is what an agent with this token is to the hub. It takes the way of this machine: the agent's proxy may be out
/// of reach here.
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
        certificate_authority_data: (!address.ca.is_empty()).then(|| certificate::to_pem_base64(&address.ca)),
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
