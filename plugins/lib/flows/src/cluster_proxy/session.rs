//! The way of a client such as kubectl to one managed cluster, for as long as it runs.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use ocm_core::cluster_proxy::{Account, account, kubeconfig};
use ocm_core::{Event, Failure, Narrator, Reason, Remedy};
use ocm_kube::Cluster;
use secrecy::SecretString;
use tokio::net::{TcpListener, TcpStream};

use super::health::proxy_servers;
use super::installed::{Installed, installed};
use super::tunnel::{Tunnel, entry};
use crate::deliveries::require_accepted;
use crate::objects::{Sought, objects};

/// A port of this machine that leads to the API server of a managed cluster.
pub struct Session {
    /// Who the client is there: the name of a ManagedServiceAccount.
    pub account: String,
    /// What the client reads to get there.
    pub kubeconfig: SecretString,
    cluster: String,
    listener: TcpListener,
    tunnel: Arc<Tunnel>,
}

/// Prepares the way to a cluster, as the ManagedServiceAccount that is named, or else as the only one that has a token. The
/// first connection is tried, so that nothing is begun that cannot work.
///
/// # Errors
/// [`Reason::NotFound`], if the add-on, the cluster or the account is not there; a refusal, if it is not clear which
/// account is meant; [`Reason::Unreachable`], if no proxy server has a way to the cluster; the failure of a request.
pub async fn session(
    hub: &Cluster,
    cluster: &str,
    sa: Option<&str>,
    narrator: &dyn Narrator,
) -> Result<Session, Failure> {
    narrator.tell(Event::now(format!("looking for the way to cluster {cluster:?} ({})", hub.label())));
    let Installed { servers, .. } = installed(hub).await?;
    require_accepted(hub, &[cluster.to_owned()]).await?;
    let Account { name, secret } = account_of(hub, cluster, sa).await?;
    let api: Api<Secret> = Api::namespaced(hub.client.clone(), cluster);
    let read = api.get(&secret).await;
    let read = read.map_err(|error| hub.explain(format_args!("read Secret {cluster}/{secret}"), error))?;
    let (token, ca) = (entry(&read, "token"), entry(&read, "ca.crt"));
    let Some(token) = String::from_utf8(token).ok().filter(|token| !token.is_empty() && !ca.is_empty()) else {
        return Err(Failure::other(format!("Secret {cluster}/{secret} holds no token with the CA of its cluster")));
    };
    let pods = proxy_servers(hub, &servers.namespace).await?.ready;
    let tunnel = Tunnel::new(hub, &servers, pods).await?;
    let tried = tunnel.open(cluster).await;
    drop(tried.map_err(|failure| {
        failure.context(format!("cluster {cluster:?} is not reached through the proxy servers")).hint(Remedy::SeeProxy)
    })?);
    let cannot = |error: std::io::Error| Failure::other("cannot listen on a port of this machine").because(error);
    let listener = listen().await.map_err(cannot)?;
    let port = listener.local_addr().map_err(cannot)?.port();
    let kubeconfig = kubeconfig(cluster, port, &STANDARD.encode(ca), &token).to_string();
    Ok(Session {
        account: name,
        kubeconfig: kubeconfig.into(),
        cluster: cluster.to_owned(),
        listener,
        tunnel: Arc::new(tunnel),
    })
}

/// Listens at a port that is free, for this machine alone: whoever connects there is let in as the account.
async fn listen() -> std::io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await
}

async fn account_of(hub: &Cluster, cluster: &str, sa: Option<&str>) -> Result<Account, Failure> {
    let sought = Sought {
        api_version: "authentication.open-cluster-management.io/v1beta1".to_owned(),
        resource: "managedserviceaccounts".to_owned(),
        namespace: Some(cluster.to_owned()),
        name: sa.map(str::to_owned),
    };
    let found = objects(hub, &sought).await.map_err(|failure| match failure.reason {
        Reason::KindNotServed => Failure::new(
            Reason::NotFound,
            "the hub has no ManagedServiceAccounts: the add-on managed-serviceaccount is not installed",
        )
        .hint("install its Helm chart, managed-serviceaccount of Open Cluster Management, on the hub"),
        _ => failure,
    })?;
    account(&found, sa, cluster, Timestamp::now())
}

impl Session {
    /// Passes connections on until it is dropped. What cannot be passed on is told.
    ///
    /// # Errors
    /// When the port of this machine cannot be listened at any more.
    pub async fn serve(&self, narrator: Arc<dyn Narrator>) -> Result<Infallible, Failure> {
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let accepted = self.listener.accept().await;
            let (stream, _) = accepted.map_err(|error| Failure::other("cannot take a connection").because(error))?;
            let (tunnel, cluster, narrator) = (self.tunnel.clone(), self.cluster.clone(), narrator.clone());
            connections.spawn(async move {
                if let Err(failure) = pass_on(stream, &tunnel, &cluster).await {
                    narrator.tell(Event::warning(format!("no connection to cluster {cluster:?}: {failure}")));
                }
            });
            // Those that have ended are forgotten.
            while connections.try_join_next().is_some() {}
        }
    }
}

/// Passes one connection on until both sides have ended it.
async fn pass_on(mut client: TcpStream, tunnel: &Tunnel, cluster: &str) -> Result<(), Failure> {
    let mut server = tunnel.open(cluster).await?;
    // How it ends is for the two sides to tell.
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_client_has_a_port_of_its_own_that_only_this_machine_reaches() {
        let (one, other) = (listen().await.unwrap(), listen().await.unwrap());
        let (one, other) = (one.local_addr().unwrap(), other.local_addr().unwrap());
        assert!(one.ip().is_loopback() && other.ip().is_loopback());
        assert_ne!(one.port(), other.port());
    }
}
