//! The upgrade of many clusters: all are looked at before one is touched, then stage by stage, and no further than the first
//! stage in which one does not get there.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use ocm_api::ManagedCluster;
use ocm_api::names::labels;
use ocm_core::order::Collect as _;
use ocm_core::upgrade::staging::{Size, in_order_of_sets, stages};
use ocm_core::{Event, Failure, Narrator, Reason};
use ocm_kube::Cluster;
use tokio::sync::{Mutex, MutexGuard};

use super::klusterlet::{KlusterletRequest, Prepared, prepare, upgrade_klusterlet};
use crate::named::OneOfMany;
use crate::observe::registration;

/// How many clusters are looked at at once.
const AT_ONCE: usize = 8;

/// A cluster of the fleet.
#[derive(Clone)]
pub struct Member {
    /// How it is named.
    pub name: String,
    /// The cluster on which its agents run.
    pub cluster: Cluster,
    /// What is wanted of it.
    pub request: KlusterletRequest,
}

/// How a fleet is upgraded.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// How many clusters at once.
    pub size: Size,
    /// Cluster sets of the hub, in the order in which their clusters are upgraded; empty: all clusters in the order given.
    pub sets: Vec<String>,
}

/// What became of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was upgraded, or would be.
    Upgraded,
    /// It ran the release already.
    UpToDate,
    /// It did not get there.
    Failed(Failure),
    /// One of a stage before did not get there, so it was not touched.
    NotTried,
}

/// A cluster of the fleet, and what became of it.
#[derive(Clone, Debug)]
pub struct Row {
    /// How it is named.
    pub name: String,
    /// The name under which the hub knows it.
    pub cluster: Option<String>,
    /// Name of its Klusterlet.
    pub klusterlet: String,
    /// What it ran.
    pub before: String,
    /// What it was to run.
    pub release: String,
    /// In which stage it was, from 1.
    pub stage: usize,
    /// What became of it.
    pub outcome: Outcome,
}

/// Upgrades the clusters of a fleet, or tries to, each as its request says.
///
/// # Errors
/// When one of them cannot be looked at or is refused: then none is touched.
pub async fn upgrade_fleet(
    members: &[Member],
    hub: Option<&Cluster>,
    fleet: &Fleet,
    narrator: Arc<dyn Narrator>,
) -> Result<Vec<Row>, Failure> {
    let narrators: Vec<OneOfMany> = members
        .iter()
        .enumerate()
        .map(|(place, member)| OneOfMany::new(place, &member.name, narrator.clone()))
        .collect();
    let prepared: Vec<(usize, Result<Prepared, Failure>)> = futures::stream::iter(members.iter().enumerate())
        .map(|(index, member)| {
            let narrator = &narrators[index];
            async move { (index, prepare(&member.cluster, hub, &member.request, narrator).await) }
        })
        .buffered(AT_ONCE)
        .collect()
        .await;
    let mut failed = prepared.iter().filter_map(|(index, one)| Some((&members[*index].name, one.as_ref().err()?)));
    if let Some((name, failure)) = failed.next() {
        let others: Vec<String> = failed.map(|(name, failure)| format!("{name}: {failure}")).collect();
        let sentence = format!("{name} cannot be upgraded, so none of the clusters was touched");
        let failure = failure.clone().context(sentence);
        return Err(others.into_iter().fold(failure, Failure::because));
    }
    let prepared: Vec<(usize, Prepared)> =
        prepared.into_iter().filter_map(|(index, one)| Some((index, one.ok()?))).collect();
    let (order, words) = order(&prepared, hub, fleet).await?;
    for (index, _) in prepared.iter().filter(|(index, _)| !order.contains(index)) {
        narrator.tell(Event::note(format!("{} is in none of the sets: it is left out", members[*index].name)));
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let stages = stages(&words, fleet.size);
    let operators = Operators::of(members);
    let (mut rows, mut stopped) = (Vec::new(), false);
    for (number, stage) in stages.iter().enumerate() {
        let of_stage = &order[stage.clone()];
        if !stopped {
            let names: Vec<&str> = of_stage.iter().map(|index| members[*index].name.as_str()).collect();
            let of = stages.len();
            narrator.tell(Event::note(format!("stage {} of {of}: {}", number + 1, names.join(", "))));
        }
        let each = of_stage.iter().map(async |index| {
            let (member, prepared) = (&members[*index], &prepared[*index].1);
            let outcome = match stopped {
                true => Outcome::NotTried,
                false => {
                    let _alone = operators.alone(member).await;
                    one(member, hub, prepared, &narrators[*index]).await
                }
            };
            Row {
                name: member.name.clone(),
                cluster: prepared.cluster.clone(),
                klusterlet: prepared.upgrade.name.clone(),
                before: prepared.upgrade.before.told(),
                release: prepared.bundle.to_string(),
                stage: number + 1,
                outcome,
            }
        });
        let of_stage = futures::future::join_all(each).await;
        stopped |= of_stage.iter().any(|row| matches!(row.outcome, Outcome::Failed(_)));
        rows.extend(of_stage);
    }
    Ok(rows)
}

async fn one(member: &Member, hub: Option<&Cluster>, prepared: &Prepared, narrator: &dyn Narrator) -> Outcome {
    match upgrade_klusterlet(&member.cluster, hub, &member.request, prepared, narrator, |_| ()).await {
        Err(failure) => Outcome::Failed(failure),
        Ok(upgraded) => match upgraded.rolled_out {
            Some(Err(failure)) => Outcome::Failed(failure),
            _ if upgraded.changed => Outcome::Upgraded,
            _ => Outcome::UpToDate,
        },
    }
}

/// The clusters in their order, and the word of the group of each: its set, where the fleet goes by sets.
async fn order(
    prepared: &[(usize, Prepared)],
    hub: Option<&Cluster>,
    fleet: &Fleet,
) -> Result<(Vec<usize>, Vec<String>), Failure> {
    let (Some(hub), false) = (hub, fleet.sets.is_empty()) else {
        let order: Vec<usize> = prepared.iter().map(|(index, _)| *index).collect();
        let words = vec![String::new(); order.len()];
        return Ok((order, words));
    };
    let each = prepared.iter().map(async |(_, one)| match &one.cluster {
        Some(name) => Ok(registration::cluster(hub, name).await?.as_ref().and_then(set_of)),
        None => Ok::<_, Failure>(None),
    });
    let sets = futures::future::try_join_all(each).await?;
    let order = in_order_of_sets(&sets, &fleet.sets);
    if order.is_empty() {
        let sentence = format!("none of the clusters is in one of the sets {}", fleet.sets.join(", "));
        return Err(Failure::new(Reason::NotFound, sentence));
    }
    let words = order.iter().map(|index| sets[*index].clone().unwrap_or_default()).collect();
    Ok((order, words))
}

fn set_of(cluster: &ManagedCluster) -> Option<String> {
    cluster.metadata.labels.as_ref()?.get(labels::CLUSTER_SET).cloned()
}

/// Of those whose agents run on one cluster, only one is upgraded at a time: they share its operator.
struct Operators(BTreeMap<String, Mutex<()>>);

impl Operators {
    fn of(members: &[Member]) -> Self {
        Self(members.iter().map(|member| (member.cluster.server.clone(), Mutex::default())).collect_map())
    }

    /// Waits until no other one of that cluster is being upgraded, until the answer is dropped.
    async fn alone(&self, member: &Member) -> Option<MutexGuard<'_, ()>> {
        Some(self.0.get(&member.cluster.server)?.lock().await)
    }
}
