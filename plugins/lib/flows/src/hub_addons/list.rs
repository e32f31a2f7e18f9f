//! The add-ons that a hub offers to clusters, once or as they change.

use std::collections::BTreeMap;

use futures::Stream;
use jiff::Timestamp;
use kube::Api;
use ocm_api::conditions::{TRUE, managed_cluster_add_on};
use ocm_api::{ClusterManagementAddOn, ManagedClusterAddOn};
use ocm_core::order;
use ocm_core::{Failure, Reason, delivery};
use ocm_kube::Cluster;

use crate::get::{listed, unknown_among, watched};
use crate::observe::registration::not_a_hub;
use crate::registry;
use crate::watch::Changed;
use crate::watched_rows::{Row, watch_rows};

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

impl Row for HubAddOnRow {
    type Object = ClusterManagementAddOn;
    type Facts = Clusters;

    fn of(object: ClusterManagementAddOn, clusters: &Clusters) -> Self {
        let its = clusters.get(object.metadata.name.as_deref().unwrap_or_default());
        let enabled = its.into_iter().flat_map(BTreeMap::keys).cloned().collect();
        let available = its.into_iter().flat_map(BTreeMap::values).filter(|is_well| **is_well).count();
        Self { object, enabled, available }
    }

    fn latest(&self, _: &Clusters) -> Option<ClusterManagementAddOn> {
        Some(self.object.clone())
    }

    fn name(&self) -> &str {
        self.name()
    }
}

impl HubAddOnRow {
    /// Its name.
    pub fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    /// When it was made.
    pub fn created(&self) -> Option<Timestamp> {
        self.object.metadata.creation_timestamp.as_ref().map(|time| time.0)
    }
}

/// Reads which clusters have which add-ons: these, or all if none is named.
async fn clusters(hub: &Cluster, names: &[String]) -> Result<Clusters, Failure> {
    let api: Api<ManagedClusterAddOn> = Api::all(hub.client.clone());
    let all = registry::all(hub, &api, listed(names, None), "list add-ons of clusters").await;
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
    let defined = registry::all(hub, &api, listed(names, selector), "list the add-ons of the hub");
    let (defined, clusters) = futures::join!(defined, clusters(hub, names));
    let (defined, clusters) = (defined.map_err(|failure| no_hub(hub, failure))?, clusters?);
    let mut rows: Vec<HubAddOnRow> = defined.into_iter().map(|object| HubAddOnRow::of(object, &clusters)).collect();
    if let Some(unknown) = names.iter().find(|name| !rows.iter().any(|row| row.name() == **name)) {
        return Err(unknown_among(hub, &[api], selector, "ClusterManagementAddOn", unknown).await);
    }
    rows.retain(|row| names.is_empty() || names.iter().any(|name| name == row.name()));
    order::sort_by(&mut rows, |left, right| left.name().cmp(right.name()));
    Ok(rows)
}

/// The same as they change, beginning with all that there are.
pub fn watch_hub_addons(
    hub: &Cluster,
    names: Vec<String>,
    selector: Option<&str>,
) -> impl Stream<Item = Result<Changed<HubAddOnRow>, Failure>> {
    let named = names.clone();
    let read = async move |hub: &Cluster| clusters(hub, &named).await;
    watch_rows(hub, watched(&names, None), names, selector, name_of, read)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::accept::test_hub::hub;

    #[test]
    fn a_row_counts_the_clusters_of_its_own_add_on() {
        let on =
            |clusters: &[(&str, bool)]| clusters.iter().map(|(name, is_well)| ((*name).to_owned(), *is_well)).collect();
        let clusters = Clusters::from([
            ("hello".to_owned(), on(&[("c1", true), ("c2", false)])),
            ("other".to_owned(), on(&[("c3", true)])),
        ]);
        let row = |name: &str| {
            let object = serde_json::from_value(json!({"metadata": {"name": name}, "spec": {}})).unwrap();
            HubAddOnRow::of(object, &clusters)
        };
        let hello = row("hello");
        assert_eq!((hello.enabled.as_slice(), hello.available), (["c1".to_owned(), "c2".to_owned()].as_slice(), 1));
        let nowhere = row("nowhere");
        assert_eq!((nowhere.enabled.len(), nowhere.available), (0, 0));
    }
    #[tokio::test]
    async fn one_name_is_not_looked_for_in_lists_of_all() {
        let (hub, asked) = hub(|asked| {
            let is_meant = asked.line.contains("metadata.name%3Dhello");
            let item = json!({"metadata": {"name": "hello", "namespace": "c1"}, "spec": {}});
            let items = if is_meant { vec![item] } else { Vec::new() };
            (200, json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}))
        });
        let rows = hub_addons(&hub, &["hello".to_owned()], None).await.unwrap();
        assert_eq!((rows.len(), rows[0].enabled.as_slice()), (1, ["c1".to_owned()].as_slice()));
        let asked = asked.lock().unwrap();
        assert!(
            asked.len() == 2 && asked.iter().all(|asked| asked.line.contains("metadata.name%3Dhello")),
            "{asked:#?}"
        );
    }
}
