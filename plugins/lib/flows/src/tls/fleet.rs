//! Several clusters, each with what it has, and the hub that they are looked at beside.

use std::sync::{Arc, OnceLock};

use futures::StreamExt as _;
use ocm_checks::snapshot::Trouble;
use ocm_checks::tls::{Inventory, Unseen, beside};
use ocm_core::{Failure, Narrator};
use ocm_kube::{Cluster, Connection, connect, kubeconfig};

use super::clock::empty;
use super::cluster::both;
use super::hub::hub;
use super::reported::reported;
use crate::registry::FEW;

/// One of several clusters, by its context.
pub struct Member {
    /// The context.
    pub context: String,
    connection: Connection,
    /// Where it has been connected to: a kubeconfig that cannot be used now may be usable later.
    cluster: OnceLock<Cluster>,
}

impl Member {
    /// The cluster of a context of a kubeconfig. Nothing is read or sent yet.
    pub fn new(context: &str, plain: &Connection) -> Self {
        let connection = Connection { context: Some(context.to_owned()), ..plain.clone() };
        Self { context: context.to_owned(), connection, cluster: OnceLock::new() }
    }

    /// Checks that the kubeconfig has the context. Nothing is sent.
    ///
    /// # Errors
    /// What is missing, and where.
    pub fn check(&self) -> Result<(), Failure> {
        kubeconfig::check(&self.connection)
    }

    async fn connect(&self, narrator: &Arc<dyn Narrator>) -> Result<&Cluster, Failure> {
        if let Some(cluster) = self.cluster.get() {
            return Ok(cluster);
        }
        let cluster = connect(&self.connection, narrator.clone()).await?;
        Ok(self.cluster.get_or_init(|| cluster))
    }

    /// Everything that it has, or why nothing of it can be seen.
    async fn look(&self, of: Option<&Cluster>, narrator: &Arc<dyn Narrator>) -> Inventory {
        match self.connect(narrator).await {
            Ok(cluster) => both(cluster, of).await,
            Err(failure) => {
                let what = "the cluster".to_owned();
                let unseen = Unseen { what, cluster: None, trouble: Trouble::of(&failure, None) };
                Inventory { unseen: vec![unseen], ..empty() }
            }
        }
    }
}

/// What several clusters have.
pub struct Fleet {
    /// What the hub has; none: none was named.
    pub hub: Option<Inventory>,
    /// What each cluster has, in their order.
    pub members: Vec<Seen>,
}

/// What one cluster of several has.
pub struct Seen {
    /// By itself.
    pub own: Inventory,
    /// With what the hub knows of it.
    pub whole: Inventory,
}

/// Looks at several clusters, a few at a time, and at the hub besides. One that cannot be reached hides no other.
pub async fn fleet(members: &[Member], of: Option<&Cluster>, narrator: &Arc<dyn Narrator>) -> Fleet {
    let looks = futures::stream::iter(members).map(|member| member.look(of, narrator)).buffered(FEW);
    let of_hub = async {
        match of {
            Some(cluster) => Some(hub(cluster).await),
            None => None,
        }
    };
    let (hub, found) = futures::join!(of_hub, looks.collect::<Vec<Inventory>>());
    let seen = futures::stream::iter(found).map(|own| with_hub(own, hub.as_ref())).buffered(FEW);
    let members: Vec<Seen> = seen.collect().await;
    Fleet { hub, members }
}

/// A cluster with what the hub knows of it, and what answers at the addresses that its agent has reported.
async fn with_hub(own: Inventory, hub: Option<&Inventory>) -> Seen {
    let mut whole = hub.map_or_else(|| own.clone(), |hub| beside(&own, hub));
    reported(&mut whole).await;
    Seen { own, whole }
}
