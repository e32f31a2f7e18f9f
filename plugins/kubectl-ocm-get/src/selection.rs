//! Columns of sets, placements, and what a placement makes of each cluster.

use jiff::Timestamp;
use ocm_api::conditions::{managed_cluster_set, placement as conditions};
use ocm_cli::list::{NONE, Tree, View, age};
use ocm_core::cluster_sets::{Choice, Selection, managed_namespaces};
use ocm_core::delivery::status;
use ocm_core::leave::some;
use ocm_flows::cluster_sets::SetRow;
use ocm_flows::placements::PlacementRow;
use serde_json::{Value, json};

fn names(all: &[String]) -> String {
    if all.is_empty() { NONE.to_owned() } else { some(all) }
}

/// The object with what we made of it.
fn with(mut object: Value, standing: Value) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.insert("standing".to_owned(), standing);
    }
    object
}

/// Sets of clusters.
pub(crate) struct Sets;

impl View for Sets {
    type Row = SetRow;

    const HEADINGS: &'static [&'static str] =
        &["NAME", "CLUSTERS", "EMPTY", "SELECTOR", "AGE", "NAMESPACES", "MEMBERS", "MANAGED NAMESPACES"];
    const NARROW: usize = 6;
    const NOTHING: &'static str = "the hub has no sets of clusters";
    const NO_MATCH: &'static str = "no set of clusters matches";
    const COLUMNS: &'static [&'static str] = &["name", "clusters", "empty", "selector", "age"];

    fn cells(row: &SetRow, now: Timestamp) -> Vec<String> {
        let all = row.object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let selector = row.object.spec.cluster_selector.clone().unwrap_or_default();
        vec![
            row.name().to_owned(),
            row.clusters.len().to_string(),
            status(all, managed_cluster_set::EMPTY).unwrap_or(NONE).to_owned(),
            selector.selector_type.to_string(),
            age(now, row.created()),
            names(&row.namespaces),
            names(&row.clusters),
            names(&managed_namespaces(&row.object)),
        ]
    }

    fn reference(row: &SetRow) -> String {
        format!("managedclusterset.cluster.open-cluster-management.io/{}", row.name())
    }

    fn document(row: &SetRow) -> Value {
        with(Self::object(row), json!({"clusters": row.clusters, "namespaces": row.namespaces}))
    }

    fn object(row: &SetRow) -> Value {
        serde_json::to_value(&row.object).unwrap_or_default()
    }

    fn created(row: &SetRow) -> Option<Timestamp> {
        row.created()
    }

    fn trees(rows: &[SetRow], now: Timestamp) -> Vec<Tree> {
        let tree = |row: &SetRow| {
            let mut below = Tree::cells(&Self::HEADINGS[2..5], &Self::cells(row, now)[2..5]);
            below.push(Tree::names("NAMESPACES", &row.namespaces));
            let managed = managed_namespaces(&row.object);
            below.extend((!managed.is_empty()).then(|| Tree::names("MANAGED NAMESPACES", &managed)));
            below.push(Tree::names("CLUSTERS", &row.clusters));
            Tree::new(row.name(), below)
        };
        rows.iter().map(tree).collect()
    }

    fn count(row: &SetRow, name: &str) -> Option<i64> {
        if name == "clusters" { row.clusters.len().try_into().ok() } else { None }
    }
}

/// Placements.
pub(crate) struct Placements;

impl View for Placements {
    type Row = PlacementRow;

    // The sentence is long, so it comes last.
    const HEADINGS: &'static [&'static str] = &[
        "NAMESPACE",
        "NAME",
        "SATISFIED",
        "SELECTED",
        "AGE",
        "WHY",
        "REASON",
        "MISCONFIGURED",
        "SETS",
        "GROUPS",
        "CLUSTERS",
    ];
    const NARROW: usize = 6;
    const NOTHING: &'static str = "the hub has no placements";
    const NO_MATCH: &'static str = "no placement matches";
    const COLUMNS: &'static [&'static str] = &["namespace", "name", "satisfied", "selected", "age", "reason"];

    fn cells(row: &PlacementRow, now: Timestamp) -> Vec<String> {
        let Selection { placement, clusters } = &row.selection;
        let all = placement.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let reason = all.iter().find(|condition| condition.type_ == conditions::SATISFIED);
        let groups: Vec<String> =
            row.selection.groups().iter().map(|(name, count)| format!("{name} ({count})")).collect();
        let clusters: Vec<String> = clusters.iter().cloned().collect();
        vec![
            row.selection.namespace().to_owned(),
            row.name().to_owned(),
            status(all, conditions::SATISFIED).unwrap_or(NONE).to_owned(),
            selected(row),
            age(now, row.created()),
            row.why.clone().unwrap_or_default(),
            reason.map_or(NONE, |condition| &condition.reason).to_owned(),
            status(all, conditions::MISCONFIGURED).unwrap_or(NONE).to_owned(),
            names(&placement.spec.cluster_sets),
            names(&groups),
            names(&clusters),
        ]
    }

    fn reference(row: &PlacementRow) -> String {
        format!("placement.cluster.open-cluster-management.io/{}", row.name())
    }

    fn document(row: &PlacementRow) -> Value {
        let mut standing = json!({"clusters": row.selection.clusters});
        if let Some(why) = &row.why {
            standing["why"] = json!(why);
        }
        with(Self::object(row), standing)
    }

    fn object(row: &PlacementRow) -> Value {
        serde_json::to_value(&row.selection.placement).unwrap_or_default()
    }

    fn created(row: &PlacementRow) -> Option<Timestamp> {
        row.created()
    }

    fn trees(rows: &[PlacementRow], now: Timestamp) -> Vec<Tree> {
        let tree = |row: &PlacementRow| {
            // The clusters have lines of their own.
            let last = Self::HEADINGS.len() - 1;
            let mut below = Tree::cells(&Self::HEADINGS[2..last], &Self::cells(row, now)[2..last]);
            below.push(Tree::names("CLUSTERS", &row.selection.clusters));
            Tree::new(format!("{}/{}", row.selection.namespace(), row.name()), below)
        };
        rows.iter().map(tree).collect()
    }

    fn count(row: &PlacementRow, name: &str) -> Option<i64> {
        (name == "selected").then(|| how_many(row).into())
    }
}

/// How many clusters are selected.
fn how_many(row: &PlacementRow) -> i32 {
    let status = row.selection.placement.status.as_ref();
    status.and_then(|status| status.number_of_selected_clusters).unwrap_or_default()
}

/// How many clusters are selected, of how many that are wanted.
fn selected(row: &PlacementRow) -> String {
    let selected = how_many(row);
    match row.selection.placement.spec.number_of_clusters {
        Some(wanted) => format!("{selected}/{wanted}"),
        None => selected.to_string(),
    }
}

/// What a placement makes of each cluster.
pub(crate) struct Choices;

impl View for Choices {
    type Row = Choice;

    const HEADINGS: &'static [&'static str] = &["CLUSTER", "SELECTED", "WHY", "SETS"];
    const NARROW: usize = 3;
    const NOTHING: &'static str = "the hub has no managed clusters";
    const COLUMNS: &'static [&'static str] = &["cluster", "selected", "why"];

    fn cells(row: &Choice, _: Timestamp) -> Vec<String> {
        let why = row.standing.why();
        let selected = if why.is_none() { "True" } else { "False" };
        vec![row.cluster.clone(), selected.to_owned(), why.unwrap_or_default(), names(&row.sets)]
    }

    fn reference(row: &Choice) -> String {
        format!("managedcluster.cluster.open-cluster-management.io/{}", row.cluster)
    }

    fn document(row: &Choice) -> Value {
        Self::object(row)
    }

    fn object(row: &Choice) -> Value {
        let why = row.standing.why();
        let mut object = json!({"cluster": row.cluster, "selected": why.is_none(), "clusterSets": row.sets});
        if let Some(why) = why {
            object["why"] = json!(why);
        }
        object
    }

    fn created(_: &Choice) -> Option<Timestamp> {
        None
    }

    fn trees(rows: &[Choice], now: Timestamp) -> Vec<Tree> {
        let tree = |row: &Choice| {
            Tree::new(row.cluster.as_str(), Tree::cells(&Self::HEADINGS[1..], &Self::cells(row, now)[1..]))
        };
        rows.iter().map(tree).collect()
    }
}

#[cfg(test)]
mod tests {
    use ocm_api::Placement;
    use ocm_api::placement::PlacementSpec;

    use super::*;

    #[test]
    fn placements_sort_by_how_many_clusters_they_select() {
        let placement = |selected: i32, wanted: Option<i32>| {
            let spec = PlacementSpec { number_of_clusters: wanted, ..PlacementSpec::default() };
            let mut placement = Placement::new("web", spec);
            placement.status.get_or_insert_default().number_of_selected_clusters = Some(selected);
            PlacementRow { selection: Selection { placement, clusters: Default::default() }, why: None }
        };
        let row = placement(9, Some(10));
        assert_eq!(Placements::column(&row, "selected"), Some(json!(9)));
        assert_eq!(Placements::cells(&row, Timestamp::UNIX_EPOCH)[3], "9/10");
        assert_eq!(Placements::column(&placement(10, None), "selected"), Some(json!(10)));
        assert_eq!(Placements::column(&row, "name"), Some(json!("web")));
    }
}
