//! Lists of what a hub brings to managed clusters: works and add-ons, once or as they change.

use std::collections::BTreeSet;

use futures::{Stream, StreamExt, TryStreamExt};
use jiff::Timestamp;
use kube::Api;
use kube::api::ListParams;
use kube::core::NamespaceResourceScope;
use ocm_api::{ManagedCluster, ManagedClusterAddOn, ManifestWork};
use ocm_core::{Failure, Reason, delivery, nearest};
use ocm_kube::Cluster;
use serde::de::DeserializeOwned;

use crate::cluster_sets::scoped;
use crate::get::{unknown_name, watched};
use crate::observe::registration::not_a_hub;
use crate::registry;
use crate::watch::{Changed, changes_in, together};

/// How many clusters are asked about at once.
const AT_ONCE: usize = 8;
/// How many clusters are watched each on its own, which needs rights in their namespaces alone; of more, the whole hub is.
const WATCHES: usize = 32;

/// Which of them.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Of these clusters; empty: of all.
    pub clusters: Vec<String>,
    /// Of these names; empty: all.
    pub names: Vec<String>,
    /// Whose labels match.
    pub selector: Option<String>,
}

/// An object that a hub keeps for one cluster.
pub trait Delivery:
    kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + DeserializeOwned
    + std::fmt::Debug
    + Send
    + Sync
    + 'static
{
    /// What it is called in messages.
    const WHAT: &'static str;

    /// What keeps it from being there and well.
    fn why(&self) -> Option<String>;
}

impl Delivery for ManifestWork {
    const WHAT: &'static str = "work";

    fn why(&self) -> Option<String> {
        delivery::work(self)
    }
}

impl Delivery for ManagedClusterAddOn {
    const WHAT: &'static str = "add-on";

    fn why(&self) -> Option<String> {
        delivery::addon(self)
    }
}

/// One of them, and what keeps it from being there and well.
#[derive(Clone, Debug)]
pub struct DeliveryRow<K> {
    /// The object.
    pub object: K,
    /// What keeps it from being there and well.
    pub why: Option<String>,
}

impl<K: Delivery> DeliveryRow<K> {
    pub(super) fn of(object: K) -> Self {
        let why = object.why();
        Self { object, why }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.object.meta().name.as_deref().unwrap_or_default()
    }

    /// The cluster that it is for.
    pub fn cluster(&self) -> &str {
        self.object.meta().namespace.as_deref().unwrap_or_default()
    }

    /// When it was made.
    pub fn created(&self) -> Option<Timestamp> {
        self.object.meta().creation_timestamp.as_ref().map(|time| time.0)
    }
}

impl Wanted {
    fn is(&self, cluster: &str, name: &str) -> bool {
        let holds = |all: &[String], one: &str| all.is_empty() || all.iter().any(|wanted| wanted == one);
        holds(&self.clusters, cluster) && holds(&self.names, name)
    }
}

/// Those that are wanted, by cluster and name.
///
/// # Errors
/// When the hub cannot be read, is none, or does not know a name of a cluster or of one of them.
pub async fn deliveries<K: Delivery>(hub: &Cluster, wanted: &Wanted) -> Result<Vec<DeliveryRow<K>>, Failure> {
    let params = || {
        let all = ListParams::default();
        wanted.selector.iter().fold(all, |params, selector| params.labels(selector))
    };
    let listing = format!("list {}s", K::WHAT);
    let apis: Vec<Api<K>> = match wanted.clusters.as_slice() {
        [] => vec![Api::all(hub.client.clone())],
        some => some.iter().map(|cluster| Api::namespaced(hub.client.clone(), cluster)).collect(),
    };
    let found = futures::stream::iter(&apis)
        .map(|api| registry::all(hub, api, params(), &listing))
        .buffered(AT_ONCE)
        .try_concat()
        .await;
    let found = found.map_err(|failure| match failure.reason {
        Reason::KindNotServed => not_a_hub(&hub.server),
        _ => failure,
    })?;
    let mut rows: Vec<DeliveryRow<K>> = found.into_iter().map(DeliveryRow::of).collect();
    if let Some(unknown) = unknown_cluster(hub, &wanted.clusters, &rows).await? {
        return Err(unknown_name::<ManagedCluster>(hub, "managed cluster", &unknown).await);
    }
    if let Some(unknown) = wanted.names.iter().find(|name| !rows.iter().any(|row| row.name() == **name)) {
        let failure = Failure::new(Reason::NotFound, format!("the hub has no {} {unknown:?}", K::WHAT));
        let near = nearest(unknown, rows.iter().map(DeliveryRow::name)).map(|near| format!("did you mean {near}?"));
        return Err(near.into_iter().fold(failure, Failure::hint));
    }
    rows.retain(|row| wanted.is(row.cluster(), row.name()));
    rows.sort_by(|left, right| (left.cluster(), left.name()).cmp(&(right.cluster(), right.name())));
    rows.dedup_by(|left, right| (left.cluster(), left.name()) == (right.cluster(), right.name()));
    Ok(rows)
}

/// The first of these clusters of which nothing was found, since the hub does not have it. Who may not read clusters is not
/// told.
async fn unknown_cluster<K: Delivery>(
    hub: &Cluster,
    clusters: &[String],
    found: &[DeliveryRow<K>],
) -> Result<Option<String>, Failure> {
    let without = clusters.iter().filter(|cluster| !found.iter().any(|row| row.cluster() == **cluster));
    let without: Vec<String> = without.cloned().collect();
    let known = match registry::some_clusters(hub, &without).await {
        Err(failure) if failure.reason == Reason::Forbidden => return Ok(None),
        known => known?,
    };
    let is_known = |name: &String| known.iter().any(|cluster| cluster.metadata.name.as_ref() == Some(name));
    Ok(without.into_iter().find(|name| !is_known(name)))
}

/// The same as they change, beginning with all that there are.
pub fn watch_deliveries<K: Delivery>(
    hub: &Cluster,
    wanted: Wanted,
) -> impl Stream<Item = Result<Changed<DeliveryRow<K>>, Failure>> {
    let config = watched(&wanted.names, wanted.selector.as_deref());
    // Who may look at some clusters may watch these.
    let clusters: BTreeSet<&str> = wanted.clusters.iter().map(String::as_str).collect();
    let scopes: Vec<Option<&str>> = match clusters.len() {
        1..=WATCHES => clusters.into_iter().map(Some).collect(),
        _ => vec![None],
    };
    let of = |object: &K| DeliveryRow::of(object.clone());
    let watch = |scope| changes_in(hub, scoped(hub, scope), config.clone(), DeliveryRow::<K>::of, of).boxed();
    together(scopes.into_iter().map(watch).collect()).try_filter(move |change| {
        std::future::ready(match change {
            Changed::Now(row) | Changed::Gone(row) => wanted.is(row.cluster(), row.name()),
            Changed::Listed | Changed::Lost(_) | Changed::Back => true,
        })
    })
}
