//! Sets with their clusters and namespaces, once or as they change.

use std::collections::BTreeMap;
use std::future::ready;

use futures::{Stream, StreamExt};
use jiff::Timestamp;
use kube::api::ListParams;
use kube::runtime::watcher;
use ocm_api::{ManagedClusterSet, ManagedClusterSetBinding};
use ocm_core::cluster_sets::{Facts, selector_of};
use ocm_core::{Failure, Reason, nearest};
use ocm_kube::Cluster;

use super::read::{facts, known_set, of_sets, patient};
use crate::get::watched;
use crate::watch::{Changed, changes};

/// How many changes that come together are told from one reading.
const TOGETHER: usize = 256;

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

impl SetRow {
    fn of(object: ManagedClusterSet, facts: &Facts) -> Self {
        let clusters = facts.members(&object);
        let namespaces = facts.bound(object.metadata.name.as_deref().unwrap_or_default());
        Self { object, clusters, namespaces }
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
    rows.sort_by(|left, right| left.name().cmp(right.name()));
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

/// What was heard of: a set, or the name of one that was bound or unbound.
#[derive(Clone)]
enum Heard {
    Set(Box<Changed<ManagedClusterSet>>),
    Binding(String),
}

/// The same as they change, beginning with all that there are.
pub fn watch_cluster_sets(
    hub: &Cluster,
    names: Vec<String>,
    selector: Option<&str>,
) -> impl Stream<Item = Result<Changed<SetRow>, Failure>> {
    let sets = changes(hub, watched(&names, selector), |set: ManagedClusterSet| set, Clone::clone);
    let sets = sets.map(|change| change.map(|change| Heard::Set(Box::new(change))));
    let bindings = changes(hub, watcher::Config::default(), |binding| set_of(&binding), set_of);
    let bindings = bindings.filter_map(|change| {
        ready(match change {
            Ok(Changed::Now(set) | Changed::Gone(set)) => Some(Ok(Heard::Binding(set))),
            // That the hub is lost, and is there again, the other watch tells.
            Ok(Changed::Listed | Changed::Lost(_) | Changed::Back) => None,
            Err(failure) => Some(Err(failure)),
        })
    });
    let hub = hub.clone();
    let mut told = Told::default();
    futures::stream::select(sets, bindings)
        .ready_chunks(TOGETHER)
        .then(move |heard| {
            let hub = hub.clone();
            async move { (heard, patient(async || facts(&hub).await).await) }
        })
        .flat_map(move |(heard, facts)| {
            futures::stream::iter(match facts {
                Ok(facts) => heard.into_iter().flat_map(|heard| told.take(heard, &facts)).collect(),
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

/// The set that a binding is of.
fn set_of(binding: &ManagedClusterSetBinding) -> String {
    binding.metadata.name.clone().unwrap_or_default()
}

/// What was told last of each set: what is still so is no news.
#[derive(Default)]
struct Told(BTreeMap<String, SetRow>);

impl Told {
    fn take(&mut self, heard: Result<Heard, Failure>, facts: &Facts) -> Option<Result<Changed<SetRow>, Failure>> {
        let row = match heard {
            Err(failure) => return Some(Err(failure)),
            // Bindings are told of the sets that the watch has shown.
            Ok(Heard::Binding(name)) if !self.0.contains_key(&name) => return None,
            Ok(Heard::Binding(name)) => SetRow::of(facts.set(&name)?.clone(), facts),
            Ok(Heard::Set(change)) => match *change {
                Changed::Now(set) => SetRow::of(set, facts),
                Changed::Gone(set) => {
                    let known = self.0.remove(set.metadata.name.as_deref().unwrap_or_default());
                    return Some(Ok(Changed::Gone(known.unwrap_or_else(|| SetRow::of(set, facts)))));
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
