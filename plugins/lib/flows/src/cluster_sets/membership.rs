//! Which set a cluster is in: a label of the cluster, which the hub's webhook lets those change who may join both sets.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt;
use kube::Api;
use kube::api::{PartialObjectMeta, Patch, PatchParams};
use ocm_api::names::{hub::DEFAULT_CLUSTER_SET, labels};
use ocm_api::{ManagedCluster, ManagedClusterSet};
use ocm_core::cluster_sets::{chooses_by_labels, in_set, set_of};
use ocm_core::leave::row;
use ocm_core::order::{self, Collect as _};
use ocm_core::reconcile::FIELD_MANAGER;
use ocm_core::{Applied, DryRun, Event, Failure, Narrator, Outcome, Reason, Remedy};
use ocm_kube::Cluster;
use ocm_kube::access::{self, Right};
use serde_json::json;

use super::objects::{AT_ONCE, GROUP, cluster_manifest, join};
use super::{Effects, read};
use crate::get::unknown_name;
use crate::registry;

/// How often a cluster is changed that others change at the same time.
const TRIES: u32 = 5;

/// Which clusters.
#[derive(Clone, Debug, Default)]
pub struct Who {
    /// Those of these names.
    pub names: Vec<String>,
    /// Those whose labels match, if no names are given.
    pub selector: Option<String>,
}

/// A cluster that changes its set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Name of the cluster.
    pub cluster: String,
    /// Its UID and its version when it was looked at.
    seen: (Option<String>, Option<String>),
    /// The set that it is in.
    pub from: Option<String>,
    /// The set that it is put into; none: it only leaves.
    pub to: Option<String>,
}

/// What is to be done.
#[derive(Clone, Debug, Default)]
pub struct Moves {
    /// Those that change their set.
    pub all: Vec<Move>,
    /// Names of those that are where they are to be.
    pub unchanged: Vec<String>,
    /// Names of those that a selector matches and the hub has not accepted: they stay where they are, since whoever registers a
    /// cluster chooses its labels.
    pub not_accepted: Vec<String>,
    /// Whether the hub has the set that it puts clusters into that leave another.
    has_default: bool,
    /// What placements lose.
    pub effects: Effects,
}

/// What became of one.
#[derive(Clone, Debug)]
pub struct Moved {
    /// What was to be done.
    pub step: Move,
    /// Whether it was done, or would be.
    pub done: Result<bool, Failure>,
    /// The set that it is in now.
    pub now: Option<String>,
}

impl Moves {
    /// That these clusters, which are in one, go into a set, or out of it.
    pub(super) fn of(going: &[&ManagedCluster], to: Option<&str>, facts: &[ManagedClusterSet]) -> Self {
        let step = |cluster: &&ManagedCluster| Move {
            cluster: name_of(cluster),
            seen: (cluster.metadata.uid.clone(), cluster.metadata.resource_version.clone()),
            from: set_of(cluster).map(str::to_owned),
            to: to.map(str::to_owned),
        };
        let has_default = facts.iter().any(|set| set.metadata.name.as_deref() == Some(DEFAULT_CLUSTER_SET));
        Self { all: going.iter().map(step).collect(), has_default, ..Self::default() }
    }

    /// The set that clusters are in afterwards that are to be in this one: the hub puts those without a set into `default`.
    pub(super) fn landing<'a>(&self, to: Option<&'a str>) -> Option<&'a str> {
        to.or(self.has_default.then_some(DEFAULT_CLUSTER_SET))
    }

    /// Whether somebody has to be asked first: a cluster leaves a set into which somebody has put it, or a placement loses
    /// one.
    pub fn need_consent(&self) -> bool {
        let chosen = |step: &Move| step.from.as_deref().is_some_and(|from| from != DEFAULT_CLUSTER_SET);
        !self.all.is_empty() && (self.all.iter().any(chosen) || self.effects.is_any())
    }

    /// The sets of which clusters come, each with their names.
    pub fn by_origin(&self) -> BTreeMap<&str, Vec<String>> {
        let mut all: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for step in &self.all {
            if let Some(from) = &step.from {
                all.entry(from).or_default().push(step.cluster.clone());
            }
        }
        all
    }
}

/// The clusters that are meant, by name.
async fn clusters(hub: &Cluster, who: &Who) -> Result<Vec<ManagedCluster>, Failure> {
    let mut found = match &who.selector {
        Some(selector) => registry::clusters(hub, Some(selector)).await?,
        None => registry::some_clusters(hub, &who.names).await?,
    };
    let is = |cluster: &ManagedCluster, name: &String| cluster.metadata.name.as_ref() == Some(name);
    if let Some(unknown) = who.names.iter().find(|name| !found.iter().any(|cluster| is(cluster, name))) {
        return Err(unknown_name::<ManagedCluster>(hub, "managed cluster", unknown).await);
    }
    order::sort_by(&mut found, |left, right| left.metadata.name.cmp(&right.metadata.name));
    found.dedup_by(|left, right| left.metadata.name == right.metadata.name);
    Ok(found)
}

/// What putting clusters into a set comes to. Nothing is changed yet. A selector chooses among those that are accepted.
///
/// # Errors
/// [`Reason::NotFound`] if the hub does not have the set or one of the clusters; [`Reason::Refused`] if the set chooses its
/// clusters itself; the failure of a request.
pub async fn moves_into(hub: &Cluster, set: &str, who: &Who) -> Result<Moves, Failure> {
    accepts(hub, set).await?;
    moves(hub, who, Some(set), |from| from != Some(set)).await
}

/// What taking clusters out of a set comes to. Nothing is changed yet.
///
/// # Errors
/// As [`moves_into`]; [`Reason::Refused`] if it is the set that clusters are put into that leave another.
pub async fn moves_out_of(hub: &Cluster, set: &str, who: &Who) -> Result<Moves, Failure> {
    accepts(hub, set).await?;
    if set == DEFAULT_CLUSTER_SET {
        let sentence =
            format!("clusters leave the set {set} only for another one: the hub puts those without a set into it");
        return Err(Failure::refused(sentence).hint(Remedy::PutIntoAnotherSet));
    }
    moves(hub, who, None, |from| from == Some(set)).await
}

/// Whether clusters are put into the set and taken out of it by hand.
async fn accepts(hub: &Cluster, set: &str) -> Result<(), Failure> {
    match chooses_by_labels(&read::known_set(hub, set).await?) {
        false => Ok(()),
        true => Err(Failure::refused(format!(
            "the set {set} chooses its clusters by labels: none is put into it or taken out of it by hand ({})",
            hub.label()
        ))
        .hint(format!("see by which: kubectl get managedclusterset {set} -o yaml"))),
    }
}

async fn moves(
    hub: &Cluster,
    who: &Who,
    to: Option<&str>,
    goes: impl Fn(Option<&str>) -> bool,
) -> Result<Moves, Failure> {
    let (sets, clusters) = futures::join!(read::sets(hub), clusters(hub, who));
    let (sets, clusters) = (sets?, clusters?);
    let (going, staying): (Vec<_>, Vec<_>) = clusters.iter().partition(|cluster| goes(set_of(cluster)));
    let is_meant = |cluster: &&ManagedCluster| {
        to.is_none() || who.selector.is_none() || cluster.spec.hub_accepts_client.unwrap_or_default()
    };
    let (going, strange): (Vec<_>, Vec<_>) = going.into_iter().partition(is_meant);
    let mut moves = Moves::of(&going, to, &sets);
    moves.unchanged = staying.into_iter().map(name_of).collect();
    moves.not_accepted = strange.into_iter().map(name_of).collect();
    if !going.is_empty() {
        let names: Vec<String> = going.iter().map(|cluster| name_of(cluster)).collect();
        let landing = moves.landing(to);
        let going = going.into_iter().cloned().collect();
        moves.effects = read::effects(hub, sets, Some(going), |facts| facts.after_moving(&names, landing)).await?;
    }
    Ok(moves)
}

fn name_of(cluster: &ManagedCluster) -> String {
    cluster.metadata.name.clone().unwrap_or_default()
}

/// What is needed to do it: the hub's webhook asks for the right to join each set that a cluster leaves or enters.
///
/// # Errors
/// The rights that are missing.
pub async fn check_rights_to_move(hub: &Cluster, moves: &Moves) -> Result<(), Failure> {
    access::require(hub, "put clusters into sets", &rights(moves)).await
}

pub(super) fn rights(moves: &Moves) -> Vec<Right> {
    let from = moves.all.iter().filter_map(|step| step.from.as_deref());
    let to = moves.all.iter().filter_map(|step| moves.landing(step.to.as_deref()));
    let sets: BTreeSet<&str> = from.chain(to).collect_set();
    let mut rights: Vec<Right> = sets.into_iter().map(join).collect();
    // Each right is asked for one by one: for a fleet, all clusters at once.
    const ONE_BY_ONE: usize = 10;
    let patch = || Right::new("patch", GROUP, "managedclusters");
    match moves.all.len() {
        0..=ONE_BY_ONE => rights.extend(moves.all.iter().map(|step| patch().on(&step.cluster))),
        _ => rights.push(patch()),
    }
    rights
}

/// Does it. A cluster that is in another set by now than when it was looked at stays there. `each` hears of every cluster.
pub async fn move_clusters(
    hub: &Cluster,
    moves: &Moves,
    dry_run: DryRun,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Vec<Moved> {
    moves.unchanged.iter().for_each(|name| each(&row(cluster_manifest(name), Outcome::Unchanged)));
    let mut all = Vec::new();
    let mut answers = futures::stream::iter(&moves.all)
        .map(|step| async move { (step, move_one(hub, step, moves.landing(step.to.as_deref()), dry_run).await) })
        .buffered(AT_ONCE);
    while let Some((step, answer)) = answers.next().await {
        let step = step.clone();
        match answer {
            Err(failure) => all.push(Moved { now: step.from.clone(), step, done: Err(failure) }),
            Ok((outcome, now)) => {
                let done = Ok(!matches!(outcome, Outcome::Kept(_)));
                if dry_run == DryRun::No && outcome == Outcome::Configured {
                    let set = now.as_deref().map_or("no set".to_owned(), |set| format!("set {set}"));
                    narrator.tell(Event::done(format!("{} is in {set}", step.cluster)));
                }
                each(&row(cluster_manifest(&step.cluster), outcome));
                all.push(Moved { step, done, now });
            }
        }
    }
    all
}

/// What became of a cluster, and the set that it is in; `landing` is the one that it should be in.
async fn move_one(
    hub: &Cluster,
    step: &Move,
    landing: Option<&str>,
    dry_run: DryRun,
) -> Result<(Outcome, Option<String>), Failure> {
    if dry_run == DryRun::Client {
        return Ok((Outcome::Configured, landing.map(str::to_owned)));
    }
    let api: Api<ManagedCluster> = Api::all(hub.client.clone());
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        dry_run: dry_run == DryRun::Server,
        ..PatchParams::default()
    };
    let set = |found: &PartialObjectMeta<ManagedCluster>| in_set(found.metadata.labels.as_ref()).map(str::to_owned);
    let (uid, mut version) = step.seen.clone();
    let mut tries = 0;
    loop {
        let labels = json!({labels::CLUSTER_SET: step.to});
        let patch = json!({"metadata": {"resourceVersion": version, "labels": labels}});
        let failure = match api.patch_metadata(&step.cluster, &params, &Patch::Merge(patch)).await {
            Ok(after) => return Ok((Outcome::Configured, set(&after))),
            Err(error) => hub.explain(format_args!("change the set of managed cluster {:?}", step.cluster), error),
        };
        tries += 1;
        if failure.reason != Reason::Conflict || tries == TRIES {
            return Err(failure);
        }
        // Somebody else has changed it, and perhaps something else of it.
        let found = api.get_metadata(&step.cluster).await;
        let found =
            found.map_err(|error| hub.explain(format_args!("read managed cluster {:?}", step.cluster), error))?;
        let now = set(&found);
        // Of a cluster that has been registered anew, nobody has been asked.
        if found.metadata.uid != uid {
            return Ok((Outcome::Kept("it has been registered again since it was looked at".to_owned()), now));
        }
        if now != step.from {
            let outcome = match now.as_deref() == landing {
                true => Outcome::Unchanged,
                false => Outcome::Kept("somebody else has changed its set since it was looked at".to_owned()),
            };
            return Ok((outcome, now));
        }
        version = found.metadata.resource_version;
    }
}
