//! Suppressions in annotations: the lines, and which findings one of them may be about.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ocm_core::order::Collect as _;

use super::written::Written;
use crate::facts::{Facts, own_manager};
use crate::finding::{Id, ObjectRef};
use crate::registry::Category;
use crate::snapshot::Side;

/// The annotation of ManagedClusters, Klusterlets and the hub's ClusterManager that holds suppressions of findings about them, with
/// line breaks or semicolons between.
pub const ANNOTATION: &str = "kubectl-ocm/suppress";

/// What annotations of ManagedClusters and Klusterlets suppress nothing of, besides all that is about safety and policies:
/// agents may write them, and so would whoever registers a cluster, or takes the name of one.
const STAYS: [Id; 5] = [Id(2203), Id(2205), Id(2206), Id(2209), Id(2212)];

pub(super) const MANAGER: &str = "ClusterManager";
pub(super) const CLUSTER: &str = "ManagedCluster";
pub(super) const KLUSTERLET: &str = "Klusterlet";

/// Whether findings of a check are reported whatever agents say.
pub(super) fn stays(id: Id) -> bool {
    matches!(Category::of(id), Some(Category::Safety | Category::Policies)) || STAYS.contains(&id)
}

/// A line of an annotation.
pub(super) struct Line<'f> {
    /// What it says.
    pub(super) text: &'f str,
    /// The object whose annotation it is.
    pub(super) by: ObjectRef,
    /// The cluster that the object is about; none: the hub as a whole.
    pub(super) cluster: Option<&'f str>,
}

impl Line<'_> {
    /// Why it suppresses nothing, whatever else it says.
    pub(super) fn obstacle(&self, written: &Written<'_>) -> Option<String> {
        if written.cluster.is_some_and(|named| Some(named) != self.cluster) {
            return Some("it suppresses findings about what carries it, and names another cluster".to_owned());
        }
        let may_be_of_agents = self.by.kind != MANAGER && stays(written.id);
        may_be_of_agents.then(|| format!("agents may write it: it suppresses nothing of {}", written.id))
    }
}

/// The lines in annotations of a snapshot.
pub(super) fn lines<'f>(facts: &'f Facts<'_>) -> Vec<Line<'f>> {
    let mut found = Vec::new();
    let mut take = |side: Side, kind: &'static str, metadata: &'f ObjectMeta, cluster: Option<&'f str>| {
        let annotation = metadata.annotations.as_ref().and_then(|all| all.get(ANNOTATION));
        let texts = annotation.map(String::as_str).unwrap_or_default().split([';', '\n']);
        let name = metadata.name.clone().unwrap_or_default();
        let by = ObjectRef { side, kind, namespace: None, name };
        let texts = texts.map(str::trim).filter(|text| !text.is_empty());
        found.extend(texts.map(|text| Line { text, by: by.clone(), cluster }));
    };
    // Whoever runs another hub there knows nothing of this one.
    let managers = facts.snapshot.hub.iter().filter_map(|hub| hub.managers.read());
    for manager in managers.filter_map(|managers| own_manager(managers)) {
        take(Side::Hub, MANAGER, &manager.metadata, None);
    }
    for cluster in facts.clusters.values() {
        if let Some(managed) = cluster.object {
            take(Side::Hub, CLUSTER, &managed.metadata, Some(cluster.name));
        }
        if let Some(agent) = cluster.agent {
            take(Side::Managed, KLUSTERLET, &agent.klusterlet.metadata, Some(cluster.name));
        }
    }
    found
}

/// The clusters whose own annotations suppress findings of a check now.
pub(crate) fn clusters_with(facts: &Facts<'_>, id: Id) -> BTreeSet<String> {
    let is_live = |line: &Line<'_>| {
        Written::part(line.text).is_ok_and(|written| {
            written.id == id
                && written.until().is_ok_and(|until| until > facts.now)
                && written.reason().is_ok()
                && line.obstacle(&written).is_none()
        })
    };
    let live = lines(facts).into_iter().filter(is_live);
    live.filter_map(|line| line.cluster.map(str::to_owned)).collect_set()
}
