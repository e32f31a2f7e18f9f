//! The add-ons that a hub offers to clusters, once or as they change.

use std::collections::BTreeMap;
use std::future::ready;

use futures::{Stream, StreamExt};
use jiff::Timestamp;
use kube::Api;
use kube::api::ListParams;
use kube::runtime::watcher;
use ocm_api::conditions::{TRUE, managed_cluster_add_on};
use ocm_api::{ClusterManagementAddOn, ManagedClusterAddOn};
use ocm_core::{Failure, Reason, delivery, nearest};
use ocm_kube::Cluster;

use crate::cluster_sets::patient;
use crate::get::watched;
use crate::observe::registration::not_a_hub;
use crate::registry;
use crate::watch::{Changed, changes};

/// How many changes that come together are told from one reading.
const TOGETHER: usize = 256;

/// An add-on, and the clusters that have it.
#[derive(Clone, Debug, PartialEq)]
pub struct HubAddOnRow {
    /// The object.
    pub object: ClusterManagementAddOn,
    /// Names of the clusters on which it is enabled.
    pub enabled: Vec<String>,
    /// On how many of these it is well.
    pub available: usize,
}

/// The clusters of each add-on, and whether it is well there.
type Clusters = BTreeMap<String, BTreeMap<String, bool>>;

impl HubAddOnRow {
    fn of(object: ClusterManagementAddOn, clusters: &Clusters) -> Self {
        let its = clusters.get(object.metadata.name.as_deref().unwrap_or_default());
        let enabled = its.into_iter().flat_map(BTreeMap::keys).cloned().collect();
        let available = its.into_iter().flat_map(BTreeMap::values).filter(|is_well| **is_well).count();
        Self { object, enabled, available }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    /// When it was made.
    pub fn created(&self) -> Option<Timestamp> {
        self.object.metadata.creation_timestamp.as_ref().map(|time| time.0)
    }
}

/// Reads which clusters have which add-ons.
async fn clusters(hub: &Cluster) -> Result<Clusters, Failure> {
    let api: Api<ManagedClusterAddOn> = Api::all(hub.client.clone());
    let all = registry::all(hub, &api, ListParams::default(), "list add-ons of clusters").await;
    let mut found = Clusters::new();
    for addon in all.map_err(|failure| no_hub(hub, failure))? {
        let conditions = addon.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let is_well = delivery::status(conditions, managed_cluster_add_on::AVAILABLE) == Some(TRUE);
        let cluster = addon.metadata.namespace.clone().unwrap_or_default();
        found.entry(name_of(&addon)).or_default().insert(cluster, is_well);
    }
    Ok(found)
}

fn no_hub(hub: &Cluster, failure: Failure) -> Failure {
    match failure.reason {
        Reason::KindNotServed => not_a_hub(&hub.server),
        _ => failure,
    }
}

fn name_of(addon: &ManagedClusterAddOn) -> String {
    addon.metadata.name.clone().unwrap_or_default()
}

/// Add-ons by name: all, those that are named, or those whose labels match.
///
/// # Errors
/// When the hub cannot be read, is none, or does not know a name.
pub async fn hub_addons(hub: &Cluster, names: &[String], selector: Option<&str>) -> Result<Vec<HubAddOnRow>, Failure> {
    let api: Api<ClusterManagementAddOn> = Api::all(hub.client.clone());
    let params = selector.iter().fold(ListParams::default(), |params, selector| params.labels(selector));
    let (defined, clusters) =
        futures::join!(registry::all(hub, &api, params, "list the add-ons of the hub"), clusters(hub));
    let (defined, clusters) = (defined.map_err(|failure| no_hub(hub, failure))?, clusters?);
    let mut rows: Vec<HubAddOnRow> = defined.into_iter().map(|object| HubAddOnRow::of(object, &clusters)).collect();
    if let Some(unknown) = names.iter().find(|name| !rows.iter().any(|row| row.name() == **name)) {
        let failure = Failure::new(Reason::NotFound, format!("the hub has no ClusterManagementAddOn {unknown:?}"));
        let near = nearest(unknown, rows.iter().map(HubAddOnRow::name)).map(|near| format!("did you mean {near}?"));
        return Err(near.into_iter().fold(failure, Failure::hint));
    }
    rows.retain(|row| names.is_empty() || names.iter().any(|name| name == row.name()));
    rows.sort_by(|left, right| left.name().cmp(right.name()));
    Ok(rows)
}

/// What was heard of: an add-on, or the name of one that a cluster has, or has no more.
#[derive(Clone)]
enum Heard {
    AddOn(Box<Changed<ClusterManagementAddOn>>),
    OnCluster(String),
}

/// The same as they change, beginning with all that there are.
pub fn watch_hub_addons(
    hub: &Cluster,
    names: Vec<String>,
    selector: Option<&str>,
) -> impl Stream<Item = Result<Changed<HubAddOnRow>, Failure>> {
    let addons = changes(hub, watched(&names, selector), |addon: ClusterManagementAddOn| addon, Clone::clone);
    let addons = addons.map(|change| change.map(|change| Heard::AddOn(Box::new(change))));
    let on_clusters = changes(hub, watcher::Config::default(), |addon| name_of(&addon), name_of);
    let on_clusters = on_clusters.filter_map(|change| {
        ready(match change {
            Ok(Changed::Now(name) | Changed::Gone(name)) => Some(Ok(Heard::OnCluster(name))),
            // That the hub is lost, and is there again, the other watch tells.
            Ok(Changed::Listed | Changed::Lost(_) | Changed::Back) => None,
            Err(failure) => Some(Err(failure)),
        })
    });
    let hub = hub.clone();
    let mut told = Told::default();
    futures::stream::select(addons, on_clusters)
        .ready_chunks(TOGETHER)
        .then(move |heard| {
            let hub = hub.clone();
            async move { (heard, patient(async || clusters(&hub).await).await) }
        })
        .flat_map(move |(heard, clusters)| {
            futures::stream::iter(match clusters {
                Ok(clusters) => heard.into_iter().flat_map(|heard| told.take(heard, &clusters)).collect(),
                Err(failure) => vec![Err(failure)],
            })
        })
        .filter(move |change| {
            ready(match change {
                Ok(Changed::Now(row) | Changed::Gone(row)) => {
                    names.is_empty() || names.iter().any(|name| name == row.name())
                }
                _ => true,
            })
        })
}

/// What was told last of each add-on: what is still so is no news.
#[derive(Default)]
struct Told(BTreeMap<String, HubAddOnRow>);

impl Told {
    fn take(
        &mut self,
        heard: Result<Heard, Failure>,
        clusters: &Clusters,
    ) -> Option<Result<Changed<HubAddOnRow>, Failure>> {
        let row = match heard {
            Err(failure) => return Some(Err(failure)),
            // What clusters have is told of the add-ons that the watch has shown.
            Ok(Heard::OnCluster(name)) => HubAddOnRow::of(self.0.get(&name)?.object.clone(), clusters),
            Ok(Heard::AddOn(change)) => match *change {
                Changed::Now(object) => HubAddOnRow::of(object, clusters),
                Changed::Gone(object) => {
                    let known = self.0.remove(object.metadata.name.as_deref().unwrap_or_default());
                    return Some(Ok(Changed::Gone(known.unwrap_or_else(|| HubAddOnRow::of(object, clusters)))));
                }
                Changed::Listed => return Some(Ok(Changed::Listed)),
                Changed::Lost(failure) => return Some(Ok(Changed::Lost(failure))),
                Changed::Back => return Some(Ok(Changed::Back)),
            },
        };
        let before = self.0.insert(row.name().to_owned(), row.clone());
        (before.as_ref() != Some(&row)).then_some(Ok(Changed::Now(row)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn addon(name: &str, spec: Value) -> ClusterManagementAddOn {
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
    }

    fn heard(change: Changed<ClusterManagementAddOn>) -> Result<Heard, Failure> {
        Ok(Heard::AddOn(Box::new(change)))
    }

    #[test]
    fn an_add_on_is_told_anew_when_a_cluster_has_got_it() {
        let mut told = Told::default();
        let on = |clusters: &[(&str, bool)]| {
            let clusters = clusters.iter().map(|(name, is_well)| ((*name).to_owned(), *is_well)).collect();
            Clusters::from([("hello".to_owned(), clusters)])
        };
        // Of one that the watch has not shown, nothing is told.
        assert!(told.take(Ok(Heard::OnCluster("hello".to_owned())), &on(&[])).is_none());
        let first = told.take(heard(Changed::Now(addon("hello", json!({})))), &on(&[("c1", false)]));
        let Some(Ok(Changed::Now(row))) = first else { panic!("told") };
        assert_eq!((row.enabled.as_slice(), row.available), (["c1".to_owned()].as_slice(), 0));
        assert!(told.take(Ok(Heard::OnCluster("hello".to_owned())), &on(&[("c1", false)])).is_none());
        let next = told.take(Ok(Heard::OnCluster("hello".to_owned())), &on(&[("c1", true), ("c2", true)]));
        let Some(Ok(Changed::Now(row))) = next else { panic!("told") };
        assert_eq!((row.enabled.len(), row.available), (2, 2));
        let gone = told.take(heard(Changed::Gone(addon("hello", json!({})))), &on(&[]));
        assert!(matches!(gone, Some(Ok(Changed::Gone(row))) if row.enabled.len() == 2));
    }
}
