//! Waiting until works and add-ons are there.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use kube::Api;
use ocm_core::phase::unavailable;
use ocm_core::{Failure, Narrator, Reason};
use ocm_kube::Cluster;
use ocm_kube::triggers::{Triggers, named};
use ocm_kube::wait::{Check, until_triggered};

use super::{Delivery, DeliveryRow};
use crate::registry;

/// How often it is looked where nothing tells of changes.
const PAUSE: Duration = Duration::from_secs(1);
/// How many are watched at most; of more, all that are missing are read again and again.
const WATCHES: usize = 10;
/// How many are read at once.
const AT_ONCE: usize = 8;

/// What a wait came to.
#[derive(Debug)]
pub struct Waited<K> {
    /// Each as it was seen last, by cluster and name. What has not answered is not there.
    pub rows: Vec<DeliveryRow<K>>,
    /// Why not all are there.
    pub late: Option<Failure>,
}

/// Waits until all of these are there and well: clusters, and names. Whatever ends the wait before is why not all are there.
pub async fn until_there<K: Delivery>(
    hub: &Cluster,
    wanted: &[(String, String)],
    timeout: Duration,
    narrator: &dyn Narrator,
) -> Waited<K> {
    let api = |cluster: &str| -> Api<K> { Api::namespaced(hub.client.clone(), cluster) };
    let watched: &[(String, String)] = if wanted.len() > WATCHES { &[] } else { wanted };
    let watch = |triggers: Triggers, (cluster, name): &(String, String)| triggers.of(api(cluster), named(name));
    let triggers = watched.iter().fold(Triggers::default(), watch);
    let doing = match wanted {
        [(cluster, name)] => format!("waiting until {} {name:?} of cluster {cluster:?} is there", K::WHAT),
        several => format!("waiting until {} {}s are there", several.len(), K::WHAT),
    };
    let mut rows: BTreeMap<(String, String), DeliveryRow<K>> = BTreeMap::new();
    let waited = until_triggered(&doing, Instant::now() + timeout, PAUSE, triggers, narrator, async || {
        let pending: Vec<&(String, String)> =
            wanted.iter().filter(|key| rows.get(*key).is_none_or(|row| row.why.is_some())).collect();
        let found: Vec<DeliveryRow<K>> = futures::stream::iter(pending)
            .map(async |(cluster, name)| {
                let found = api(cluster).get(name).await;
                let what = format!("read {} {name:?} of cluster {cluster:?}", K::WHAT);
                found.map(DeliveryRow::of).map_err(|error| hub.explain(what, error))
            })
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        rows.extend(found.into_iter().map(|row| ((row.cluster().to_owned(), row.name().to_owned()), row)));
        let mut missing = rows.values().filter_map(|row| Some((row, row.why.as_deref()?)));
        let Some((first, why)) = missing.next() else { return Ok(Check::Ready(())) };
        let of = match missing.count() {
            0 => String::new(),
            more => format!(" ({} of {} are not there)", more + 1, wanted.len()),
        };
        Ok(Check::NotYet(format!("{}: {why}{of}", first.cluster())))
    })
    .await;
    let rows: Vec<DeliveryRow<K>> = rows.into_values().collect();
    let late = match waited {
        Ok(()) => None,
        Err(failure) if failure.reason == Reason::TimedOut => Some(late(hub, failure, wanted.len(), &rows).await),
        Err(failure) => Some(failure),
    };
    Waited { rows, late }
}

/// What is missing of each, and which agents are not there.
async fn late<K: Delivery>(hub: &Cluster, failure: Failure, total: usize, rows: &[DeliveryRow<K>]) -> Failure {
    let missing: Vec<(&DeliveryRow<K>, &str)> =
        rows.iter().filter_map(|row| Some((row, row.why.as_deref()?))).collect();
    let clusters: Vec<String> = missing.iter().map(|(row, _)| row.cluster().to_owned()).collect();
    let failure = match total {
        1 => failure,
        _ => missing.iter().fold(Failure::new(failure.reason, failure.message.clone()), |failure, (row, why)| {
            failure.because(format!("{}: {} {:?}: {why}", row.cluster(), K::WHAT, row.name()))
        }),
    };
    // Whoever waits in vain wants to know it; that it cannot be read as well is no news.
    let found = registry::some_clusters(hub, &clusters).await.unwrap_or_default();
    found.iter().filter_map(unavailable).fold(failure, Failure::because)
}
