//! Deleting sets: only those of which nobody makes use, or with all that makes use of them.

use ocm_api::ManagedCluster;
use ocm_core::cluster_sets::{Facts, chooses_by_labels, holds, is_hubs_own};
use ocm_core::leave::{row, some};
use ocm_core::{Applied, DryRun, Failure, Narrator, Outcome, Remedy};
use ocm_kube::Cluster;
use ocm_kube::access::{self, Right};

use super::bindings::{self, delete_known};
use super::membership::{self, Moves, move_clusters};
use super::objects::{GROUP, SETS, set_manifest};
use super::{Bound, Effects, facts, read};

/// A set that is to go, with all that makes use of it.
#[derive(Clone, Debug)]
pub struct Removal {
    /// Name of the set.
    pub set: String,
    /// Its UID; none if it is not there.
    uid: Option<String>,
    /// The clusters that were put into it.
    pub clusters: Vec<String>,
    /// Its bindings.
    pub bound: Bound,
    /// How its clusters leave it.
    moves: Moves,
    /// What placements lose.
    pub effects: Effects,
}

impl Removal {
    /// Whether there is such a set.
    pub fn is_there(&self) -> bool {
        self.uid.is_some()
    }
}

/// What there is of a set, and of what makes use of it. Nothing is deleted yet.
///
/// # Errors
/// The failure of a request.
pub async fn inspect(hub: &Cluster, name: &str) -> Result<Removal, Failure> {
    let facts = facts(hub).await?;
    let Some(set) = facts.set(name) else {
        let bound = Bound { set: name.to_owned(), ..Bound::default() };
        let (clusters, moves, effects) = (Vec::new(), Moves::default(), Effects::default());
        return Ok(Removal { set: name.to_owned(), uid: None, clusters, bound, moves, effects });
    };
    let inside: Vec<&ManagedCluster> = match chooses_by_labels(set) {
        // Those that it chooses by labels carry nothing of it.
        true => Vec::new(),
        false => facts.clusters.iter().filter(|cluster| holds(set, cluster)).collect(),
    };
    let moves = Moves::of(&inside, None, &facts.sets);
    let clusters: Vec<String> = moves.all.iter().map(|step| step.cluster.clone()).collect();
    let of = |namespace: &String| {
        let mut all = facts.bindings.iter();
        let found = all.find(|one| {
            one.metadata.name.as_deref() == Some(name) && one.metadata.namespace.as_ref() == Some(namespace)
        });
        (namespace.clone(), found.and_then(|found| found.metadata.uid.clone()).unwrap_or_default())
    };
    let there: Vec<(String, String)> = facts.bound(name).iter().map(of).collect();
    let bound = Bound { set: name.to_owned(), there, ..Bound::default() };
    let uid = set.metadata.uid.clone();
    let changed = |facts: &Facts| {
        let mut after = facts.after_unbinding(name, &[]);
        after.sets.retain(|set| set.metadata.name.as_deref() != Some(name));
        after.after_moving(&clusters, moves.landing(None))
    };
    let effects = read::effects(hub, facts.sets.clone(), None, changed).await?;
    Ok(Removal { set: name.to_owned(), uid, bound, moves, effects, clusters })
}

/// Whether a set may go.
///
/// # Errors
/// [`ocm_core::Reason::Refused`] if the hub makes it itself, or if clusters or bindings make use of it and do not go along.
pub fn refuse(removal: &Removal, force: bool) -> Result<(), Failure> {
    let Removal { set, clusters, bound, .. } = removal;
    if is_hubs_own(set) {
        return Err(Failure::refused(format!(
            "the set {set} stays: the hub itself creates it, and would create it again"
        )));
    }
    if force || (clusters.is_empty() && bound.there.is_empty()) {
        return Ok(());
    }
    let namespaces: Vec<String> = bound.there.iter().map(|(namespace, _)| namespace.clone()).collect();
    let mut failure = Failure::refused(format!("the set {set} is in use"));
    if !clusters.is_empty() {
        failure = failure.because(format!("these clusters are in it: {}", some(clusters)));
    }
    if !namespaces.is_empty() {
        failure = failure.because(format!("it is bound to these namespaces: {}", some(&namespaces)));
    }
    Err(failure.hint(Remedy::EmptySet(set.clone())))
}

/// What is needed to delete it with what makes use of it.
///
/// # Errors
/// The rights that are missing.
pub async fn check_rights_to_delete(hub: &Cluster, removal: &Removal) -> Result<(), Failure> {
    let mut rights = vec![Right::new("delete", GROUP, SETS).on(&removal.set)];
    rights.extend(membership::rights(&removal.moves));
    rights.extend(bindings::rights(&removal.set, &removal.bound.there));
    access::require(hub, "delete sets of clusters", &rights).await
}

/// Takes the clusters out of a set, deletes its bindings, and then the set. `each` hears of every object.
///
/// # Errors
/// The first failure; what was done before it stays.
pub async fn delete(
    hub: &Cluster,
    removal: &Removal,
    dry_run: DryRun,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    let manifest = set_manifest(&removal.set);
    let Some(uid) = &removal.uid else {
        each(&row(manifest, Outcome::Absent));
        return Ok(());
    };
    let moved = move_clusters(hub, &removal.moves, dry_run, narrator, each).await;
    for one in moved {
        // Whatever set it is in by now: it has left this one.
        if let Err(failure) = one.done {
            return Err(failure.context(format!("the set {} was not deleted", removal.set)).hint(Remedy::RunAgain));
        }
    }
    bindings::unbind(hub, &removal.bound, dry_run, narrator, each).await?;
    if dry_run == DryRun::No {
        // Somebody may have begun to use it since it was looked at.
        let now = inspect(hub, &removal.set).await?;
        refuse(&now, false).map_err(|failure| failure.hint(Remedy::RunAgain))?;
    }
    delete_known(hub, &manifest, uid, dry_run, narrator, each).await
}
