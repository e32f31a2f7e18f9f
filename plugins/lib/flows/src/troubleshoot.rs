//! `troubleshoot`: a look at a hub, at a managed cluster, or at both, as one value.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use ocm_api::ClusterManager;
use ocm_checks::snapshot::{FORMAT, Probe, Snapshot};
use ocm_core::cluster_name::{NameError, check_known};
use ocm_core::order;
use ocm_core::{Event, Failure, Narrator, Reason};
use ocm_kube::{Cluster, access, explain};

use crate::in_cluster::InCluster;
use crate::observe::snapshot::{grpc_probes, hub, in_cluster, managed, probes, questions, registered_names, serves};

/// Which clusters are looked at.
#[derive(Clone)]
pub struct Sides {
    /// The hub.
    pub hub: Option<Cluster>,
    /// The managed cluster.
    pub managed: Option<Cluster>,
}

/// What hubs answered to the credentials of agents.
#[derive(Clone, Debug, Default)]
pub struct Probed {
    /// As seen from here.
    pub here: Vec<Probe>,
    /// As seen from beside the agents.
    pub in_cluster: Vec<Probe>,
}

/// Which of the two a cluster is that was named alone: a hub if it serves managed clusters or has a ClusterManager, which
/// may be broken; a managed cluster otherwise.
///
/// # Errors
/// When it cannot be asked.
pub async fn side_of(cluster: Cluster) -> Result<Sides, Failure> {
    let (serves, managers) = futures::join!(serves(&cluster), manages(&cluster));
    // A hub that is broken is no hub of which one could say so otherwise.
    if serves? || managers? {
        return Ok(Sides { hub: Some(cluster), managed: None });
    }
    Ok(Sides { hub: None, managed: Some(cluster) })
}

async fn manages(cluster: &Cluster) -> Result<bool, Failure> {
    let managers: kube::Api<ClusterManager> = kube::Api::all(cluster.client.clone());
    match managers.list_metadata(&kube::api::ListParams::default().limit(1)).await {
        Ok(found) => Ok(!found.items.is_empty()),
        Err(error) => match explain(&error).reason {
            Reason::NotFound | Reason::KindNotServed | Reason::Forbidden => Ok(false),
            _ => Err(cluster.explain("ask whether it is a hub", error)),
        },
    }
}

/// Looks at both sides. `names`: the clusters that were asked about; empty: those that the managed cluster registers, or
/// all that the hub has. `probed`: what the hub answered of late to the credentials of the agents, as seen from here and from
/// beside them; none: it is asked. `jobs`: how the hub is asked from beside the agents; none: it is
/// not.
///
/// # Errors
/// A usage failure for a name that no cluster can have. What cannot be read is in the snapshot.
pub async fn observe(
    sides: &Sides,
    names: &[String],
    all: bool,
    probed: Option<Probed>,
    jobs: Option<&InCluster>,
    narrator: Arc<dyn Narrator>,
) -> Result<Snapshot, Failure> {
    names.iter().try_for_each(|name| check_known(name)).map_err(NameError::failure)?;
    narrator.tell(Event::now("looking at the clusters"));
    let now = async {
        match &sides.hub {
            // Leases and certificates go by the hub's clock, where it tells; those of the managed cluster by its own.
            Some(hub) => access::clock(hub).await.ok(),
            None => match &sides.managed {
                Some(managed) => access::clock(managed).await.ok(),
                None => None,
            },
        }
    };
    let side = async {
        match &sides.managed {
            Some(cluster) => Some(managed(cluster, (!names.is_empty()).then_some(names)).await),
            None => None,
        }
    };
    let (now, side) = futures::join!(now, side);
    let now = now.unwrap_or_else(Timestamp::now);
    let registered = side.as_ref().map(registered_names).unwrap_or_default();
    let mut clusters = names.to_vec();
    if clusters.is_empty() && !all {
        clusters.extend(registered.iter().cloned());
    }
    order::sort(&mut clusters);
    clusters.dedup();
    let named = (!clusters.is_empty()).then_some(clusters.as_slice());
    let hub = match &sides.hub {
        Some(cluster) => Some(hub(cluster, named, &registered).await),
        None => None,
    };
    // What the hub is has to be known before a token is sent to it.
    let probes = match (probed, &sides.managed, &side) {
        (Some(probed), ..) => probed,
        (None, Some(cluster), Some(side)) => {
            let questions = questions(cluster, side, hub.as_ref(), named, now).await;
            let within = async {
                match jobs {
                    Some(jobs) => in_cluster(cluster, side, &questions, named, now, jobs, narrator.clone()).await,
                    None => Vec::new(),
                }
            };
            let here = probes(questions.clone(), narrator.clone());
            let (mut here, dialled, in_cluster) = futures::join!(here, grpc_probes(side, named, now), within);
            here.extend(dialled);
            Probed { here, in_cluster }
        }
        _ => Probed::default(),
    };
    let Probed { here: probes, in_cluster } = probes;
    Ok(Snapshot {
        format: FORMAT,
        observed: Time(now),
        clock: None,
        clusters,
        unnamed: names.is_empty() && !all,
        hub,
        managed: side,
        probes,
        in_cluster,
    })
}
