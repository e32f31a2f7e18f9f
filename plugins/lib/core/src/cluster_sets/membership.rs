//! Which clusters are in which sets.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use ocm_api::cluster::SelectorType;
use ocm_api::names::{hub, labels};
use ocm_api::{ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding};

use super::selector;
use crate::order;

/// What a hub holds of clusters, sets and bindings.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The clusters, all or those that are looked at.
    pub clusters: Vec<ManagedCluster>,
    /// All sets.
    pub sets: Vec<ManagedClusterSet>,
    /// The bindings, all or those of the namespaces that are looked at.
    pub bindings: Vec<ManagedClusterSetBinding>,
}

impl Facts {
    /// The set of this name.
    pub fn set(&self, name: &str) -> Option<&ManagedClusterSet> {
        self.sets.iter().find(|set| set.metadata.name.as_deref() == Some(name))
    }

    /// Names of the clusters in a set, sorted.
    pub fn members(&self, set: &ManagedClusterSet) -> Vec<String> {
        let held = self.clusters.iter().filter(|cluster| holds(set, cluster));
        let mut names: Vec<String> = held.filter_map(|cluster| cluster.metadata.name.clone()).collect();
        order::sort(&mut names);
        names
    }

    /// The namespaces that a set is bound to, sorted.
    pub fn bound(&self, set: &str) -> Vec<String> {
        let bound = self.bindings.iter().filter(|binding| binding.metadata.name.as_deref() == Some(set));
        let mut names: Vec<String> = bound.filter_map(|binding| binding.metadata.namespace.clone()).collect();
        order::sort(&mut names);
        names
    }

    /// The same, with clusters in another set, or in none.
    #[must_use]
    pub fn after_moving(&self, clusters: &[impl AsRef<str>], to: Option<&str>) -> Self {
        let mut after = self.clone();
        for cluster in &mut after.clusters {
            if cluster.metadata.name.as_deref().is_some_and(|name| clusters.iter().any(|one| one.as_ref() == name)) {
                let labels = cluster.metadata.labels.get_or_insert_default();
                match to {
                    Some(set) => labels.insert(labels::CLUSTER_SET.to_owned(), set.to_owned()),
                    None => labels.remove(labels::CLUSTER_SET),
                };
            }
        }
        after
    }

    /// The same without the bindings of a set; of these namespaces, or, if none are given, of all.
    #[must_use]
    pub fn after_unbinding(&self, set: &str, namespaces: &[String]) -> Self {
        let mut after = self.clone();
        after.bindings.retain(|binding| {
            let of = binding.metadata.namespace.as_ref();
            let goes = namespaces.is_empty() || of.is_some_and(|namespace| namespaces.contains(namespace));
            binding.metadata.name.as_deref() != Some(set) || !goes
        });
        after
    }
}

/// Whether a set may have this name: it is the name of an object, and the value of a label of its clusters.
pub fn can_name(name: &str) -> bool {
    let plain = |part: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !part.is_empty() && part.bytes().all(inner) && !part.starts_with('-') && !part.ends_with('-')
    };
    name.len() <= 63 && name.split('.').all(plain)
}

/// Whether the hub itself makes the set, and makes it anew when it is deleted.
pub fn is_hubs_own(set: &str) -> bool {
    [hub::DEFAULT_CLUSTER_SET, hub::GLOBAL_CLUSTER_SET].contains(&set)
}

/// Whether a set chooses its clusters by any labels, so that none can be put into it.
pub fn chooses_by_labels(set: &ManagedClusterSet) -> bool {
    let selector = set.spec.cluster_selector.as_ref();
    selector.is_some_and(|selector| selector.selector_type != SelectorType::ExclusiveClusterSetLabel)
}

/// The set that the label of a cluster names, whether or not there is one.
pub fn set_of(cluster: &ManagedCluster) -> Option<&str> {
    in_set(cluster.metadata.labels.as_ref())
}

/// The set that labels name.
pub fn in_set(labels: Option<&BTreeMap<String, String>>) -> Option<&str> {
    labels?.get(labels::CLUSTER_SET).map(String::as_str).filter(|set| !set.is_empty())
}

/// Whether a cluster is in a set.
pub fn holds(set: &ManagedClusterSet, cluster: &ManagedCluster) -> bool {
    if !chooses_by_labels(set) {
        return set.metadata.name.is_some() && set_of(cluster) == set.metadata.name.as_deref();
    }
    let selector = set.spec.cluster_selector.as_ref().and_then(|selector| selector.label_selector.as_ref());
    selector.is_some_and(|selector| selector::unmet(selector, labels_of(cluster)).is_none())
}

/// A selector of labels that finds the clusters in a set, and no others, as [`holds`] does. An empty one finds all.
pub fn selector_of(set: &ManagedClusterSet) -> String {
    let label = labels::CLUSTER_SET;
    if !chooses_by_labels(set) {
        return format!("{label}={}", set.metadata.name.as_deref().unwrap_or_default());
    }
    let selector = set.spec.cluster_selector.as_ref().and_then(|selector| selector.label_selector.as_ref());
    // No cluster has a label and has it not.
    selector.and_then(selector::written).unwrap_or_else(|| format!("{label},!{label}"))
}

/// The labels of a cluster.
pub(super) fn labels_of(cluster: &ManagedCluster) -> &BTreeMap<String, String> {
    static NONE: LazyLock<BTreeMap<String, String>> = LazyLock::new(BTreeMap::new);
    cluster.metadata.labels.as_ref().unwrap_or(&NONE)
}
