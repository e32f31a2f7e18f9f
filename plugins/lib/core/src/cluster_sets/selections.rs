//! Placements with the clusters that their decisions name.

use std::collections::{BTreeMap, BTreeSet};

use ocm_api::names::labels;
use ocm_api::placement::DecisionGroupStatus;
use ocm_api::{Placement, PlacementDecision};

use crate::order;

/// A placement and the clusters that it selects.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// The placement.
    pub placement: Placement,
    /// Names of the clusters.
    pub clusters: BTreeSet<String>,
}

impl Selection {
    /// Name of the placement.
    pub fn name(&self) -> &str {
        self.placement.metadata.name.as_deref().unwrap_or_default()
    }

    /// Its namespace.
    pub fn namespace(&self) -> &str {
        self.placement.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// Names, or else numbers, of the groups of its decisions, each with how many clusters are in it.
    pub fn groups(&self) -> Vec<(String, i32)> {
        let groups = self.placement.status.iter().flat_map(|status| &status.decision_groups);
        let name = |group: &DecisionGroupStatus| match group.decision_group_name.as_deref() {
            None | Some("") => group.decision_group_index.unwrap_or_default().to_string(),
            Some(name) => name.to_owned(),
        };
        groups.map(|group| (name(group), group.cluster_count.unwrap_or_default())).collect()
    }
}

/// The clusters that decisions name, by namespace and name of the placement with a slash.
pub fn decided_for(decisions: &[PlacementDecision]) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for decision in decisions {
        let namespace = decision.metadata.namespace.as_deref().unwrap_or_default();
        let Some(of) = decision.metadata.labels.as_ref().and_then(|all| all.get(labels::PLACEMENT)) else { continue };
        let names = decision.status.iter().flat_map(|status| &status.decisions).map(|one| one.cluster_name.clone());
        // A place for which there is no cluster has no name.
        all.entry(format!("{namespace}/{of}")).or_default().extend(names.filter(|name| !name.is_empty()));
    }
    all
}

/// Placements with what their decisions say, by namespace and name.
pub fn selections(placements: Vec<Placement>, decisions: &[PlacementDecision]) -> Vec<Selection> {
    let selected = decided_for(decisions);
    let mut all: Vec<Selection> = placements
        .into_iter()
        .map(|placement| {
            let meta = &placement.metadata;
            let (namespace, name) = (meta.namespace.as_deref(), meta.name.as_deref());
            let key = format!("{}/{}", namespace.unwrap_or_default(), name.unwrap_or_default());
            let clusters = selected.get(&key).cloned().unwrap_or_default();
            Selection { placement, clusters }
        })
        .collect();
    order::sort_by(&mut all, |left, right| (left.namespace(), left.name()).cmp(&(right.namespace(), right.name())));
    all
}
