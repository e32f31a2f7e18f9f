//! Labels and the set of a cluster, on its hub.

use kube::Api;
use kube::api::{Patch, PatchParams};
use ocm_api::names::{hub::DEFAULT_CLUSTER_SET, labels};
use ocm_api::{ManagedCluster, ManagedClusterSet, Manifest};
use ocm_core::fleet::{Member, missing_labels};
use ocm_core::plan::Mode;
use ocm_core::reconcile::FIELD_MANAGER;
use ocm_core::{Applied, Event, Failure, Narrator, Reason, Remedy};
use ocm_kube::access::{self, Right};
use ocm_kube::{Cluster, apply};
use serde_json::{Value, json};

use crate::cluster_sets::{self, Who};

const GROUP: &str = "cluster.open-cluster-management.io";

/// What it takes to give a cluster its labels and its set, as far as that is known before it is there.
///
/// # Errors
/// The rights that are missing.
pub(super) async fn check_rights(hub: &Cluster, member: &Member) -> Result<(), Failure> {
    let name = &member.settings.name;
    let mut rights = Vec::new();
    if !member.labels.is_empty() || member.cluster_set.is_some() {
        rights.extend(["get", "patch"].map(|verb| Right::new(verb, GROUP, "managedclusters").on(name)));
    }
    if let Some(set) = &member.cluster_set {
        rights.push(Right::new("get", GROUP, "managedclustersets").on(set));
        // What a cluster loses that leaves its set is told by all of them.
        rights.push(Right::new("list", GROUP, "managedclustersets"));
        rights.push(Right::new("create", GROUP, "managedclustersets/join").on(set));
    }
    if !rights.is_empty() {
        access::require(hub, "give the cluster its labels and its set", &rights).await?;
    }
    match &member.cluster_set {
        Some(set) if apply::read(hub, &set_of(set)).await?.is_none() => {
            cluster_sets::check_rights_to_create(hub, std::slice::from_ref(set)).await
        }
        _ => Ok(()),
    }
}

fn set_of(name: &str) -> Manifest {
    Manifest::with::<ManagedClusterSet>(&cluster_sets::named(None, name), Value::Null)
}

/// Gives a cluster its labels and its set. Says whether anything was changed, or would be.
///
/// # Errors
/// [`Reason::NotFound`] where the hub does not have the cluster; [`Reason::Refused`] where it would leave a set into which
/// somebody has put it, or placements would lose it; the failure of a request.
pub(super) async fn place(
    hub: &Cluster,
    member: &Member,
    mode: Mode,
    narrator: &dyn Narrator,
) -> Result<bool, Failure> {
    let name = &member.settings.name;
    let metadata = cluster_sets::named(None, name);
    let Some(found) = apply::read(hub, &Manifest::with::<ManagedCluster>(&metadata, Value::Null)).await? else {
        return match mode.changes() {
            true => Err(Failure::new(
                Reason::NotFound,
                format!(
                    "the hub has no managed cluster {name:?} that could get its labels or its set ({})",
                    hub.label()
                ),
            )),
            false => Ok(true),
        };
    };
    if let Some(set) = &member.cluster_set {
        may_leave(&found, name, set)?;
    }
    let lacks = missing_labels(&found, &member.labels);
    if !lacks.is_empty() && mode.changes() {
        narrator.tell(Event::now("writing its labels"));
        let clusters: Api<ManagedCluster> = Api::all(hub.client.clone());
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(json!({"metadata": {"labels": lacks}}));
        let patched = clusters.patch_metadata(name, &params, &patch).await;
        patched.map_err(|error| hub.explain(format_args!("label managed cluster {name:?}"), error))?;
        narrator.tell(Event::done("it has its labels"));
    }
    let moved = match &member.cluster_set {
        Some(set) => put(hub, name, set, mode, narrator).await?,
        None => false,
    };
    Ok(moved || !lacks.is_empty())
}

/// Puts a cluster into a set, which is made where it is not there.
async fn put(hub: &Cluster, name: &str, set: &str, mode: Mode, narrator: &dyn Narrator) -> Result<bool, Failure> {
    if mode.changes() {
        cluster_sets::create(hub, &[set.to_owned()], mode.dry_run(), narrator, &|_: &Applied| ()).await?;
    }
    let who = Who { names: vec![name.to_owned()], selector: None };
    let moves = match cluster_sets::moves_into(hub, set, &who).await {
        // It would be made.
        Err(failure) if failure.reason == Reason::NotFound && !mode.changes() => return Ok(true),
        moves => moves?,
    };
    if moves.need_consent() {
        return Err(stays(name, set, "placements would lose it if it went into another, or may"));
    }
    if moves.all.is_empty() || !mode.changes() {
        return Ok(!moves.all.is_empty());
    }
    cluster_sets::check_rights_to_move(hub, &moves).await?;
    let moved = cluster_sets::move_clusters(hub, &moves, mode.dry_run(), narrator, &|_: &Applied| ()).await;
    match moved.into_iter().next().map(|one| one.done) {
        Some(Err(failure)) => Err(failure),
        Some(Ok(false)) => {
            Err(Failure::refused(format!("{name} was put into another set, or registered again, meanwhile")))
        }
        _ => Ok(true),
    }
}

/// Refuses to take a cluster out of a set into which somebody has put it.
fn may_leave(cluster: &Value, name: &str, set: &str) -> Result<(), Failure> {
    let from = cluster["metadata"]["labels"][labels::CLUSTER_SET].as_str().unwrap_or_default();
    match from.is_empty() || [set, DEFAULT_CLUSTER_SET].contains(&from) {
        true => Ok(()),
        false => Err(stays(name, set, &format!("somebody has put it into {from}"))),
    }
}

fn stays(name: &str, set: &str, why: &str) -> Failure {
    Failure::refused(format!("{name} stays in its set and is not put into {set}: {why}"))
        .hint(Remedy::PutIntoSet { set: set.to_owned(), cluster: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_leave_the_default_set_and_no_other() {
        let of = |set: Value| may_leave(&json!({"metadata": {"labels": {labels::CLUSTER_SET: set}}}), "c1", "edge");
        for from in [Value::Null, json!(""), json!("default"), json!("edge")] {
            assert_eq!(of(from), Ok(()));
        }
        let refused = of(json!("core")).unwrap_err();
        assert_eq!(refused.reason, Reason::Refused);
        assert!(refused.message.contains("into core"), "{refused}");
    }
}
