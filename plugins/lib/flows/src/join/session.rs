//! The hub that was found and verified, and how we talk to it: made once for a command.

use std::time::{Duration, Instant};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Resource};
use ocm_api::{ClusterManager, ManagedCluster};
use ocm_core::kubeconfig::HubAddress;
use ocm_core::{Failure, Narrator, Reason, Remedy};
use ocm_kube::Cluster;
use ocm_kube::triggers::{Triggers, named};
use ocm_kube::wait::{Check, until_triggered};
use secrecy::{ExposeSecret as _, SecretString};

use super::coming::Coming;
use super::hub_access::TrustedBy;
use super::on_hub;
use crate::observe::registration;

/// Time between two questions to a hub that starts.
const PAUSE: Duration = Duration::from_millis(500);

/// The hub, found and verified.
pub(super) struct HubSession {
    /// As agents dial and trust it.
    pub(super) address: HubAddress,
    /// Why it is believed to be the hub.
    pub(super) trusted_by: TrustedBy,
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
            Access::Admin(client) => registration::cluster(client, name).await,
            Access::Token { token, client } => on_hub::registered(client, token.expose_secret(), name).await,
        }
    }

    /// Whether this becomes a hub just now: it does not serve managed clusters yet.
    ///
    /// # Errors
    /// What the hub said.
    pub(super) async fn starts(&self) -> Result<bool, Failure> {
        Ok(!serves::<ManagedCluster>(self.client()).await? && serves::<ClusterManager>(self.client()).await?)
    }

    /// Waits for a hub that is being installed to serve managed clusters.
    ///
    /// # Errors
    /// [`Reason::TimedOut`]; [`Reason::KindNotServed`] where its installation has failed; or what the hub said.
    pub(super) async fn started(
        &self,
        timeout: Duration,
        coming: Option<&Coming>,
        narrator: &dyn Narrator,
    ) -> Result<(), Failure> {
        let client = self.client();
        let definitions: Api<CustomResourceDefinition> = Api::all(client.client.clone());
        let definition = format!("{}.{}", ManagedCluster::plural(&()), ManagedCluster::group(&()));
        let triggers = Triggers::default().of(definitions, named(&definition));
        let doing = format!("waiting for the hub at {} to start", self.address.server);
        until_triggered(&doing, Instant::now() + timeout, PAUSE, triggers, narrator, async || {
            // The watch wakes it, but the API server may say a moment later only that it serves the kind.
            match serves::<ManagedCluster>(client).await? {
                true => Ok(Check::Ready(())),
                false if coming.is_some_and(Coming::has_failed) => {
                    let sentence = format!("the hub at {} was not installed", self.address.server);
                    Err(Failure::new(Reason::KindNotServed, sentence))
                }
                false => Ok(Check::Unwatched(NOT_SERVED.to_owned())),
            }
        })
        .await
        .map_err(|failure| failure.hint(Remedy::HubStart))
    }

    /// Says that the hub is still starting, to whoever does not wait for it.
    pub(super) fn still_starting(&self) -> Failure {
        let server = &self.address.server;
        Failure::new(Reason::KindNotServed, format!("the hub at {server} is still starting"))
            .because(NOT_SERVED)
            .hint(Remedy::HubStart)
    }
}

const NOT_SERVED: &str = "its operator has not made it serve managed clusters yet";

/// Whether a cluster serves a kind. Everybody with a credential may ask that.
pub(crate) async fn serves<K: Resource<DynamicType = ()>>(cluster: &Cluster) -> Result<bool, Failure> {
    let plural = K::plural(&());
    match cluster.client.list_api_group_resources(&K::api_version(&())).await {
        Ok(found) => Ok(found.resources.iter().any(|resource| resource.name == plural)),
        Err(error) => {
            let failure = cluster.explain(format_args!("ask whether {plural} are served"), error);
            let absent = matches!(failure.reason, Reason::NotFound | Reason::KindNotServed);
            if absent { Ok(false) } else { Err(failure) }
        }
    }
}
