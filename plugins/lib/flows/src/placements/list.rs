//! Placements with the clusters that they select, and what keeps others out, once or as they change.

use futures::{Stream, StreamExt};
use jiff::Timestamp;
use ocm_api::Placement;
use ocm_core::cluster_sets::{Choice, Facts, Selection, choices, selections, why};
use ocm_core::{Failure, Reason, nearest};
use ocm_kube::Cluster;

use crate::cluster_sets::{decisions, facts, patient, scoped, selected_by};
use crate::get::{is_named, watched};
use crate::watch::{Changed, changes_in};
use crate::watched_rows::TOGETHER;

/// Which placements.
#[derive(Clone, Debug, Default)]
pub struct WantedPlacements {
    /// Those of this namespace; none: of all.
    pub namespace: Option<String>,
    /// Those of these names; empty: all.
    pub names: Vec<String>,
    /// Those whose labels match.
    pub selector: Option<String>,
}

/// A placement and what keeps it from selecting as many clusters as it is to.
#[derive(Clone, Debug)]
pub struct PlacementRow {
    /// The placement and its clusters.
    pub selection: Selection,
    /// What keeps it from selecting more.
    pub why: Option<String>,
}

impl PlacementRow {
    pub(super) fn of(selection: Selection, facts: Option<&Facts>) -> Self {
        let why = why(&selection, facts, Timestamp::now());
        Self { selection, why }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.selection.name()
    }

    /// When it was made.
    pub fn created(&self) -> Option<Timestamp> {
        self.selection.placement.metadata.creation_timestamp.as_ref().map(|time| time.0)
    }
}

/// Placements by namespace and name, and why it can only be told what the placement controller says of them, where the user
/// may read no more.
///
/// # Errors
/// When the hub cannot be read, is none, or does not know a name.
pub async fn placements(
    hub: &Cluster,
    wanted: &WantedPlacements,
) -> Result<(Vec<PlacementRow>, Option<String>), Failure> {
    let WantedPlacements { namespace, names, selector } = wanted;
    let mut found = selected_by(hub, namespace.as_deref(), selector.as_deref()).await?;
    if let Some(unknown) = names.iter().find(|name| !found.iter().any(|one| one.name() == **name)) {
        return Err(unknown_name(wanted, unknown, &found));
    }
    found.retain(|one| names.is_empty() || names.iter().any(|name| name == one.name()));
    let (facts, unread) = told_by(hub, &found).await?;
    Ok((found.into_iter().map(|one| PlacementRow::of(one, facts.as_ref())).collect(), unread))
}

fn unknown_name(wanted: &WantedPlacements, unknown: &str, found: &[Selection]) -> Failure {
    let place = match &wanted.namespace {
        Some(namespace) => format!("namespace {namespace}"),
        None => "the hub".to_owned(),
    };
    let failure = Failure::new(Reason::NotFound, format!("{place} has no placement {unknown:?}"));
    let near = nearest(unknown, found.iter().map(Selection::name)).map(|near| format!("did you mean {near}?"));
    near.into_iter().fold(failure, Failure::hint)
}

/// What is needed to tell what placements lack, if one of them lacks anything; or why it may not be read.
async fn told_by(hub: &Cluster, found: &[Selection]) -> Result<(Option<Facts>, Option<String>), Failure> {
    let now = Timestamp::now();
    if found.iter().all(|one| why(one, None, now).is_none()) {
        return Ok((None, None));
    }
    read_facts(hub).await
}

/// What the hub holds of clusters, sets and bindings, or why it may not be read.
pub(super) async fn read_facts(hub: &Cluster) -> Result<(Option<Facts>, Option<String>), Failure> {
    match facts(hub).await {
        Ok(facts) => Ok((Some(facts), None)),
        Err(failure) if failure.reason == Reason::Forbidden => Ok((None, Some(failure.to_string()))),
        Err(failure) => Err(failure),
    }
}

/// The same as they change, beginning with all that there are.
pub fn watch_placements(
    hub: &Cluster,
    wanted: WantedPlacements,
) -> impl Stream<Item = Result<Changed<PlacementRow>, Failure>> {
    let WantedPlacements { namespace, names, selector } = wanted;
    let config = watched(&names, selector.as_deref());
    let api = scoped(hub, namespace.as_deref());
    let reader = hub.clone();
    changes_in(hub, api, config, |placement: Placement| placement, Clone::clone)
        .ready_chunks(TOGETHER)
        .then(move |heard| {
            let (hub, namespace) = (reader.clone(), namespace.clone());
            async move { told(&hub, namespace.as_deref(), heard).await }
        })
        .flat_map(futures::stream::iter)
        .filter(move |change| {
            std::future::ready(change.as_ref().map_or(true, |change| is_named(change, &names, PlacementRow::name)))
        })
}

type Heard = Result<Changed<Placement>, Failure>;

/// Changes that came together, with what the hub holds then.
async fn told(
    hub: &Cluster,
    namespace: Option<&str>,
    heard: Vec<Heard>,
) -> Vec<Result<Changed<PlacementRow>, Failure>> {
    let now = heard.iter().filter_map(|change| match change {
        Ok(Changed::Now(placement) | Changed::Gone(placement)) => Some(placement.clone()),
        _ => None,
    });
    let now: Vec<Placement> = now.collect();
    if now.is_empty() {
        // Nothing is read while the hub is lost.
        return heard.into_iter().map(|change| change.map(|change| change.map(bare, bare))).collect();
    }
    let read = patient(0, async || {
        let decisions = decisions(hub, namespace).await?;
        let (facts, _) = told_by(hub, &selections(now.clone(), &decisions)).await?;
        Ok((decisions, facts))
    });
    let (decisions, facts) = match read.await {
        Ok(read) => read,
        Err(failure) => return vec![Err(failure)],
    };
    let row = |placement: Placement| match selections(vec![placement.clone()], &decisions).pop() {
        Some(selection) => PlacementRow::of(selection, facts.as_ref()),
        None => bare(placement),
    };
    heard.into_iter().map(|change| change.map(|change| change.map(row, row))).collect()
}

/// A placement of which nothing else is known.
fn bare(placement: Placement) -> PlacementRow {
    PlacementRow::of(Selection { placement, clusters: std::collections::BTreeSet::new() }, None)
}

/// What a placement makes of each cluster of the hub.
///
/// # Errors
/// When the hub cannot be read, is none, or does not know the placement.
pub async fn choices_of(hub: &Cluster, namespace: &str, name: &str) -> Result<Vec<Choice>, Failure> {
    let (found, facts) = futures::join!(selected_by(hub, Some(namespace), None), facts(hub));
    let found = found?;
    match found.iter().find(|one| one.name() == name) {
        Some(selection) => Ok(choices(selection, &facts?, Timestamp::now())),
        None => {
            let wanted = WantedPlacements { namespace: Some(namespace.to_owned()), ..WantedPlacements::default() };
            Err(unknown_name(&wanted, name, &found))
        }
    }
}
