//! What a hub answers to whoever registers clusters with a token.

use std::sync::Arc;

use jiff::Timestamp;
use kube::Api;
use kube::api::ListParams;
use ocm_api::ManagedCluster;
use ocm_core::kubeconfig::Bootstrap;
use ocm_core::token::{self, Content};
use ocm_core::{Failure, Narrator, Reason, Remedy};
use ocm_kube::Cluster;
use secrecy::{ExposeSecret as _, SecretString};

use super::client::dial;
use crate::observe::registration::not_a_hub;

/// Somebody who holds the kubeconfig that an agent registers with.
pub(super) struct Registrar {
    client: Cluster,
    token: SecretString,
}

impl Registrar {
    /// A client that is what an agent with this kubeconfig is to the hub.
    ///
    /// # Errors
    /// An address or a CA that cannot be used.
    pub(super) async fn of(bootstrap: &Bootstrap, narrator: Arc<dyn Narrator>) -> Result<Self, Failure> {
        let token = SecretString::from(bootstrap.token.clone());
        Ok(Self { client: dial(&bootstrap.hub, token.clone(), narrator).await?, token })
    }

    /// Asks the hub for the cluster.
    ///
    /// # Errors
    /// A sentence of its own for a token that has expired or is not known, one that may not register clusters, a server
    /// that is no hub, a wrong authority and a wrong address.
    pub(super) async fn cluster(&self, name: &str) -> Result<Option<ManagedCluster>, Failure> {
        registered(&self.client, self.token.expose_secret(), name).await
    }
}

/// Whether the hub says that it does not let the token of this kubeconfig in any more; not where it cannot be asked from here.
pub(super) async fn refuses(there: &Bootstrap, name: &str, narrator: Arc<dyn Narrator>) -> bool {
    if there.token.is_empty() {
        return true;
    }
    match Registrar::of(there, narrator).await {
        Ok(registrar) => {
            let asked = registrar.cluster(name).await;
            asked.is_err_and(|failure| matches!(failure.reason, Reason::Unauthorized | Reason::Forbidden))
        }
        Err(_) => false,
    }
}

/// The cluster, read by somebody who registers with `token`.
pub(super) async fn registered(hub: &Cluster, token: &str, name: &str) -> Result<Option<ManagedCluster>, Failure> {
    let api: Api<ManagedCluster> = Api::all(hub.client.clone());
    match api.get_opt(name).await {
        // `get_opt` takes every 404 for an absent object, also that of a kind that is not served.
        Ok(None) => match api.list_metadata(&ListParams::default().limit(1)).await {
            Ok(_) => Ok(None),
            Err(error) => Err(said(hub, token, &error)),
        },
        Ok(found) => Ok(found),
        Err(error) => Err(said(hub, token, &error)),
    }
}

/// What a hub's answer to a registering agent means.
pub(super) fn said(hub: &Cluster, token: &str, error: &kube::Error) -> Failure {
    let failure = ocm_kube::explain(error);
    let server = &hub.server;
    let now = Timestamp::now();
    match failure.reason {
        Reason::Unauthorized => match token::read(token) {
            Content::Jwt { expires: Some(expires), .. } if expires <= now => token::expired(expires, now),
            Content::Bootstrap(id) => Failure::new(
                Reason::Unauthorized,
                format!("the hub at {server} does not accept bootstrap token {id:?}"),
            )
            .because("it has expired, was revoked, or is of another hub")
            .hint(Remedy::OtherToken),
            _ => Failure::new(Reason::Unauthorized, format!("the hub at {server} does not accept the token"))
                .because("it was revoked, is of another hub, or was not copied whole")
                .hint(Remedy::NewToken),
        },
        Reason::Forbidden => {
            let causes = failure.causes.clone();
            let failure = Failure::new(
                Reason::Forbidden,
                format!("the hub at {server} knows the token, but its holder may not register clusters"),
            )
            .hint(Remedy::RestoreRegistering);
            causes.into_iter().fold(failure, Failure::because)
        }
        Reason::NotFound | Reason::KindNotServed => not_a_hub(server),
        _ => failure.context(format!("cannot ask the hub at {server}")),
    }
}
