//! Lists of what a hub brings to managed clusters: works and add-ons, once or as they change.

use std::collections::BTreeSet;

use futures::{Stream, StreamExt, TryStreamExt};
use jiff::Timestamp;
use kube::Api;
use kube::core::NamespaceResourceScope;
use ocm_api::{ManagedCluster, ManagedClusterAddOn, ManifestWork};
use ocm_core::order::{self, Collect as _};
use ocm_core::{Failure, Reason, delivery};
use ocm_kube::Cluster;
use serde::de::DeserializeOwned;

use crate::cluster_sets::scoped;
use crate::get::{listed, unknown_among, unknown_name, watched};
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
    let rows = those_there(hub, wanted).await?;
    match wanted.names.iter().find(|name| !rows.iter().any(|row: &DeliveryRow<K>| row.name() == **name)) {
        Some(unknown) => {
            Err(unknown_among(hub, &apis::<K>(hub, wanted), wanted.selector.as_deref(), K::WHAT, unknown).await)
        }
        None => Ok(rows),
    }
}

/// Those that are wanted and there, by cluster and name.
///
/// # Errors
/// When the hub cannot be read, is none, or does not know a name of a cluster.
pub(crate) async fn those_there<K: Delivery>(hub: &Cluster, wanted: &Wanted) -> Result<Vec<DeliveryRow<K>>, Failure> {
    let listing = format!("list {}s", K::WHAT);
    let found = futures::stream::iter(&apis(hub, wanted))
        .map(|api| registry::all(hub, api, listed(&wanted.names, wanted.selector.as_deref()), &listing))
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
    rows.retain(|row| wanted.is(row.cluster(), row.name()));
    order::sort_by(&mut rows, |left, right| (left.cluster(), left.name()).cmp(&(right.cluster(), right.name())));
    rows.dedup_by(|left, right| (left.cluster(), left.name()) == (right.cluster(), right.name()));
    Ok(rows)
}

/// Where they are.
fn apis<K: Delivery>(hub: &Cluster, wanted: &Wanted) -> Vec<Api<K>> {
    match wanted.clusters.as_slice() {
        [] => vec![Api::all(hub.client.clone())],
        some => some.iter().map(|cluster| Api::namespaced(hub.client.clone(), cluster)).collect(),
    }
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
    let clusters: BTreeSet<&str> = wanted.clusters.iter().map(String::as_str).collect_set();
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::accept::test_hub::{Asked, hub};

    /// A hub with one work of each of these names, each on a cluster of its own, and what it was asked.
    async fn asked_for(wanted: Wanted) -> (Result<Vec<String>, Failure>, Vec<Asked>) {
        let (hub, asked) = hub(|asked| {
            let metadata = |name: &str| json!({"name": name, "namespace": format!("of-{name}")});
            let is_wanted = |name: &&&str| match asked.line.split_once("metadata.name%3D") {
                Some((_, field)) => field.split('&').next() == Some(**name),
                None => true,
            };
            let items: Vec<Value> = ["agent", "other"]
                .iter()
                .filter(is_wanted)
                .map(|name| json!({"metadata": metadata(name), "spec": {"workload": {"manifests": []}}}))
                .collect();
            (200, json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}))
        });
        let found = deliveries::<ManifestWork>(&hub, &wanted).await;
        let asked = asked.lock().unwrap().clone();
        assert!(asked.iter().all(|asked| asked.body.is_empty() && asked.line.starts_with("GET ")), "{asked:#?}");
        (found.map(|rows| rows.iter().map(|row| row.name().to_owned()).collect()), asked)
    }

    fn named(names: &[&str]) -> Wanted {
        Wanted { names: names.iter().map(|name| (*name).to_owned()).collect(), ..Wanted::default() }
    }

    #[tokio::test]
    async fn one_name_is_not_looked_for_in_a_list_of_all() {
        let (found, asked) = asked_for(named(&["agent"])).await;
        assert_eq!(found.unwrap(), ["agent"]);
        assert!(asked.len() == 1 && asked[0].line.contains("fieldSelector=metadata.name%3Dagent"), "{asked:#?}");
        let (found, asked) = asked_for(Wanted::default()).await;
        assert_eq!((found.unwrap().len(), asked.len()), (2, 1));
        let (found, _) = asked_for(named(&["other", "agent"])).await;
        assert_eq!(found.unwrap(), ["agent", "other"]);
    }

    #[tokio::test]
    async fn what_was_probably_meant_is_told() {
        let (found, asked) = asked_for(named(&["agnt"])).await;
        let failure = found.unwrap_err();
        assert_eq!(failure.to_string(), "the hub has no work \"agnt\"");
        assert_eq!(failure.hints, ["did you mean agent?"]);
        assert_eq!(asked.len(), 2, "{asked:#?}");
        // A comma would select by another field, too.
        let (found, asked) = asked_for(named(&["agent,metadata.namespace=x"])).await;
        assert!(found.is_err() && !asked[0].line.contains("fieldSelector"), "{asked:#?}");
    }
}
