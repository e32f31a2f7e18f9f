//! Whether clusters can be reached through the proxy servers of a hub.

use std::collections::BTreeMap;
use std::time::Instant;

use futures::{StreamExt, TryStreamExt};
use kube::api::ListParams;
use ocm_api::conditions::managed_cluster_add_on::AVAILABLE;
use ocm_api::parts::PodStatus;
use ocm_api::{ManagedCluster, ManagedClusterAddOn};
use ocm_core::addon::placements;
use ocm_core::cluster_proxy::{ADDON, Facts, Probe, SERVERS, Servers, obstacle};
use ocm_core::order::Collect as _;
use ocm_core::{Event, Failure, Hint, Narrator, Reason, delivery};
use ocm_kube::Cluster;

use super::installed::{Installed, installed};
use super::tunnel::Tunnel;
use crate::deliveries::{Wanted, those_there};
use crate::get::unknown_name;
use crate::{registry, workload};

/// How many clusters are tried at once.
const AT_ONCE: usize = 8;

/// What is known of the proxy.
#[derive(Debug)]
pub struct Health {
    /// What its configuration says.
    pub servers: Servers,
    /// Its pods.
    pub pods: Ready,
    /// What keeps the proxy servers from serving.
    pub why: Option<String>,
    /// Each cluster.
    pub clusters: Vec<ClusterRow>,
    /// Why no cluster was tried, though that was wanted.
    pub untried: Option<String>,
}

/// Pods of proxy servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Names of those that are ready.
    pub ready: Vec<String>,
    /// How many there are.
    pub all: usize,
}

/// What is known of a cluster.
#[derive(Debug)]
pub struct ClusterRow {
    /// Its name.
    pub name: String,
    /// Whether it has the add-on.
    pub installed: bool,
    /// Status of the condition `Available` of its add-on; none if nobody has set it.
    pub available: Option<String>,
    /// What became of the try to reach it.
    pub probe: Probe,
    /// What keeps it from being reached, and what to do next.
    pub obstacle: Option<(String, Hint)>,
}

/// Looks at the proxy servers and at these clusters; if there are none, at all. With `probe` it tries to reach the API
/// server of each that has the add-on.
///
/// # Errors
/// [`Reason::NotFound`], if the add-on is not installed or a cluster is not there; the failure of a request.
pub async fn health(hub: &Cluster, names: &[String], probe: bool, narrator: &dyn Narrator) -> Result<Health, Failure> {
    narrator.tell(Event::now(format!("looking at add-on {ADDON} ({})", hub.label())));
    let Installed { definition, servers } = installed(hub).await?;
    let clusters = clusters(hub, names).await?;
    let wanted = Wanted { clusters: names.to_vec(), names: vec![ADDON.to_owned()], selector: None };
    let (addons, pods, deployment) = futures::join!(
        those_there::<ManagedClusterAddOn>(hub, &wanted),
        proxy_servers(hub, &servers.namespace),
        workload::deployment(hub, &servers.namespace, ADDON),
    );
    let (pods, deployment) = (pods?, deployment?);
    let addons: BTreeMap<String, ManagedClusterAddOn> =
        addons?.into_iter().map(|row| (row.cluster().to_owned(), row.object)).collect_map();
    let none_is_ready = || pods.ready.is_empty().then(|| "no pod is ready".to_owned());
    let why = deployment.because().or_else(|| servers.why.clone()).or_else(none_is_ready);
    let with_addon: Vec<&str> = clusters.iter().map(name_of).filter(|name| addons.contains_key(*name)).collect();
    let (mut probes, mut untried) = (BTreeMap::new(), None);
    if probe && !with_addon.is_empty() && !pods.ready.is_empty() {
        match tried(hub, &servers, &pods, &with_addon, narrator).await {
            Ok(all) => probes = all,
            Err(failure) if failure.reason == Reason::Forbidden => untried = Some(failure.to_string()),
            Err(failure) => return Err(failure),
        }
    }
    let placements = placements(&definition);
    let row = |cluster: &ManagedCluster| {
        let name = name_of(cluster);
        let addon = addons.get(name);
        let conditions = addon.and_then(|addon| addon.status.as_ref()).map(|status| status.conditions.as_slice());
        let probe = probes.remove(name).unwrap_or(Probe::NotTried);
        let facts = Facts {
            cluster,
            addon,
            placements: &placements,
            servers: why.as_deref(),
            entrypoint: &servers.entrypoint,
            probe: &probe,
        };
        ClusterRow {
            name: name.to_owned(),
            installed: addon.is_some(),
            available: delivery::status(conditions.unwrap_or_default(), AVAILABLE).map(str::to_owned),
            obstacle: obstacle(&facts),
            probe,
        }
    };
    let clusters = clusters.iter().map(row).collect();
    Ok(Health { servers, pods, why, clusters, untried })
}

fn name_of(cluster: &ManagedCluster) -> &str {
    cluster.metadata.name.as_deref().unwrap_or_default()
}

/// The clusters of these names; all of the hub, if there are none.
async fn clusters(hub: &Cluster, names: &[String]) -> Result<Vec<ManagedCluster>, Failure> {
    if names.is_empty() {
        return registry::clusters(hub, None).await;
    }
    let found = registry::some_clusters(hub, names).await?;
    match names.iter().find(|name| !found.iter().any(|cluster| name_of(cluster) == **name)) {
        Some(unknown) => Err(unknown_name::<ManagedCluster>(hub, "managed cluster", unknown).await),
        None => Ok(found),
    }
}

/// The pods of proxy servers.
pub(super) async fn proxy_servers(hub: &Cluster, namespace: &str) -> Result<Ready, Failure> {
    let listed = workload::pods(hub, namespace).list(&ListParams::default().labels(SERVERS)).await;
    let listed = listed.map_err(|error| hub.explain(format_args!("list the pods of {namespace}"), error))?;
    let is_ready = |status: &PodStatus| {
        let conditions = status.conditions.as_deref().unwrap_or_default();
        conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    };
    let all = listed.items.len();
    let ready = listed
        .items
        .into_iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none() && pod.status.as_ref().is_some_and(is_ready));
    Ok(Ready { ready: ready.filter_map(|pod| pod.metadata.name).collect(), all })
}

/// What became of the tries to reach these clusters.
///
/// # Errors
/// When the credentials of the proxy servers' clients cannot be read, or nobody may forward ports there: that says nothing of
/// the clusters.
async fn tried(
    hub: &Cluster,
    servers: &Servers,
    pods: &Ready,
    names: &[&str],
    narrator: &dyn Narrator,
) -> Result<BTreeMap<String, Probe>, Failure> {
    let tunnel = Tunnel::new(hub, servers, pods.ready.clone()).await?;
    narrator.tell(Event::now(format!("trying to reach {} clusters", names.len())));
    let all = futures::stream::iter(names).map(async |name| {
        let started = Instant::now();
        let probe = match tunnel.open(name).await {
            Ok(_) => Probe::Reached(u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)),
            Err(failure) if failure.reason == Reason::Forbidden => return Err(failure),
            Err(failure) => Probe::Failed(failure.to_string()),
        };
        Ok(((*name).to_owned(), probe))
    });
    all.buffer_unordered(AT_ONCE).try_collect().await
}
