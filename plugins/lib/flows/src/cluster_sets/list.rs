//! Sets with their clusters and namespaces, once or as they change.

use futures::Stream;
use jiff::Timestamp;
use kube::api::ListParams;
use kube::runtime::watcher;
use ocm_api::{ManagedClusterSet, ManagedClusterSetBinding};
use ocm_core::cluster_sets::{Facts, selector_of};
use ocm_core::order;
use ocm_core::{Failure, Reason, nearest};
use ocm_kube::Cluster;

use super::read::{facts, known_set, of_sets};
use crate::watch::Changed;
use crate::watched_rows::{Row, watch_rows};

/// A set, and who makes use of it.
#[derive(Clone, Debug, PartialEq)]
pub struct SetRow {
    /// The object.
    pub object: ManagedClusterSet,
    /// Names of its clusters.
    pub clusters: Vec<String>,
    /// The namespaces that it is bound to.
    pub namespaces: Vec<String>,
}

impl Row for SetRow {
    type Object = ManagedClusterSet;
    type Facts = Facts;

    fn of(object: ManagedClusterSet, facts: &Facts) -> Self {
        let clusters = facts.members(&object);
        let namespaces = facts.bound(object.metadata.name.as_deref().unwrap_or_default());
        Self { object, clusters, namespaces }
    }

    fn latest(&self, facts: &Facts) -> Option<ManagedClusterSet> {
        facts.set(self.name()).cloned()
    }

    fn name(&self) -> &str {
        self.name()
    }
}

impl SetRow {
    /// Its name.
    pub fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    /// When it was made.
    pub fn created(&self) -> Option<Timestamp> {
        self.object.metadata.creation_timestamp.as_ref().map(|time| time.0)
    }
}

/// Sets by name: all, those that are named, or those whose labels match.
///
/// # Errors
/// When the hub cannot be read, is none, or does not know a name.
pub async fn cluster_sets(hub: &Cluster, names: &[String], selector: Option<&str>) -> Result<Vec<SetRow>, Failure> {
    let mut facts = facts(hub).await?;
    let mut sets = std::mem::take(&mut facts.sets);
    if let Some(selector) = selector {
        sets = of_sets(hub, ListParams::default().labels(selector)).await?;
    }
    let mut rows: Vec<SetRow> = sets.into_iter().map(|set| SetRow::of(set, &facts)).collect();
    if let Some(unknown) = names.iter().find(|name| !rows.iter().any(|row| row.name() == **name)) {
        let failure = Failure::new(Reason::NotFound, format!("the hub has no set of clusters {unknown:?}"));
        let near = nearest(unknown, rows.iter().map(SetRow::name)).map(|near| format!("did you mean {near}?"));
        return Err(near.into_iter().fold(failure, Failure::hint));
    }
    rows.retain(|row| names.is_empty() || names.iter().any(|name| name == row.name()));
    order::sort_by(&mut rows, |left, right| left.name().cmp(right.name()));
    Ok(rows)
}

/// A selector of labels that finds the clusters in a set, of which another selector may choose some; none: it finds all.
///
/// # Errors
/// [`Reason::NotFound`] if the hub does not have the set; the failure of a request.
pub async fn selector_in(hub: &Cluster, set: &str, more: Option<&str>) -> Result<Option<String>, Failure> {
    let of_set = selector_of(&known_set(hub, set).await?);
    let both: Vec<&str> = [of_set.as_str()].into_iter().chain(more).filter(|part| !part.is_empty()).collect();
    Ok((!both.is_empty()).then(|| both.join(",")))
}

/// The same as they change, beginning with all that there are.
pub fn watch_cluster_sets(
    hub: &Cluster,
    names: Vec<String>,
    selector: Option<&str>,
) -> impl Stream<Item = Result<Changed<SetRow>, Failure>> {
    watch_rows(hub, watcher::Config::default(), names, selector, set_of, facts)
}

/// The set that a binding is of.
fn set_of(binding: &ManagedClusterSetBinding) -> String {
    binding.metadata.name.clone().unwrap_or_default()
}
