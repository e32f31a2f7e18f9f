//! Deleting the objects of a plan: those that are ours, as they were found, and no others.

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions, PropagationPolicy};
use ocm_api::Manifest;
use ocm_core::plan::{Applied, Found, Outcome};
use ocm_core::reconcile::{Removal, removal};
use ocm_core::{DryRun, Event, Failure, Narrator, Plan, Reason, Remedy};
use serde_json::{Value, json};

use crate::Cluster;
use crate::apply::{FIELD_MANAGER, HAS_CHANGED, api, is_version, read};

/// The finalizer by which the API server itself deletes the objects of a kind before its definition.
const COLLECTS: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Reads what there is of a plan. Nothing is deleted yet.
///
/// # Errors
/// [`Reason::Refused`] if somebody else made one of the objects; the failure of a request.
pub async fn find(cluster: &Cluster, plan: &Plan) -> Result<Vec<Found>, Failure> {
    let mut all = Vec::new();
    for manifest in plan.objects() {
        all.push(Found { manifest: manifest.clone(), live: read(cluster, manifest).await? });
    }
    let foreign: Vec<&Found> = all.iter().filter(|found| removal(found) == Removal::Foreign).collect();
    let Some(first) = foreign.first() else { return Ok(all) };
    let names: Vec<String> = foreign.iter().map(|found| found.manifest.reference()).collect();
    let mark = first.manifest.body().pointer("/metadata/labels").and_then(Value::as_object);
    let mark = mark.into_iter().flatten().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    let sentence = format!(
        "somebody else made {} ({}): it lacks the label {}, so nothing was deleted",
        names.join(", "),
        cluster.label(),
        mark.collect::<Vec<_>>().join(",")
    );
    let (resource, name) = (first.manifest.plural().to_owned(), first.manifest.name().to_owned());
    Err(Failure::refused(sentence).hint(Remedy::SeeObject { resource, name }))
}

/// Deletes what was found, one after the other in the order of the plan. Each is deleted only if it still is the object
/// that was found. `each` hears of every object as soon as its turn has come.
///
/// # Errors
/// The first failure; what was deleted before it is gone, and is told as done.
pub async fn all(
    cluster: &Cluster,
    found: Vec<Found>,
    dry_run: DryRun,
    narrator: &dyn Narrator,
    mut each: impl FnMut(&Applied),
) -> Result<Vec<Applied>, Failure> {
    let mut all = Vec::new();
    for found in found {
        let outcome = match removal(&found) {
            Removal::Delete(uid) if dry_run != DryRun::Client => {
                let verb = if dry_run == DryRun::No { "deleting" } else { "checking" };
                narrator.tell(Event::now(format!("{verb} {}", found.manifest.reference())));
                one(cluster, &found.manifest, uid, dry_run == DryRun::Server).await?
            }
            Removal::Delete(_) => Outcome::Deleted,
            Removal::Absent => Outcome::Absent,
            Removal::Foreign => Outcome::Kept("somebody else made it".to_owned()),
        };
        let Found { manifest, live: before } = found;
        let applied = Applied { manifest, outcome, before, after: Value::Null };
        each(&applied);
        if dry_run == DryRun::No && applied.outcome == Outcome::Deleted {
            narrator.tell(Event::done(format!("{} deleted", applied.manifest.reference())));
        }
        all.push(applied);
    }
    Ok(all)
}

/// Deletes one object, whoever made it, if it still is the one that was looked at, as it was then: an object with this UID and
/// this version. Otherwise it is kept. Only a client-side dry run reads it.
///
/// # Errors
/// The failure of the request, naming the object.
pub async fn pinned(
    cluster: &Cluster,
    manifest: &Manifest,
    (uid, version): (&str, &str),
    dry_run: DryRun,
) -> Result<Applied, Failure> {
    let kept = || Outcome::Kept(HAS_CHANGED.to_owned());
    let outcome = match dry_run {
        DryRun::Client => match read(cluster, manifest).await? {
            None => Outcome::Absent,
            live if is_version(live.as_ref(), uid, version) => Outcome::Deleted,
            Some(_) => kept(),
        },
        DryRun::No | DryRun::Server => {
            let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: Some(version.to_owned()) };
            let params = DeleteParams {
                dry_run: dry_run == DryRun::Server,
                preconditions: Some(preconditions),
                ..DeleteParams::default()
            };
            let deleted = api(cluster, manifest).delete(manifest.name(), &params).await;
            match deleted.map_err(|error| cluster.explain(format_args!("delete {}", manifest.reference()), error)) {
                Ok(_) => Outcome::Deleted,
                Err(failure) if failure.reason == Reason::NotFound => Outcome::Absent,
                Err(failure) if failure.reason == Reason::Conflict => kept(),
                Err(failure) => return Err(failure),
            }
        }
    };
    Ok(Applied { manifest: manifest.clone(), outcome, before: None, after: Value::Null })
}

/// What becomes of the objects that an object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependents {
    /// Whatever the kind's own way is.
    Usual,
    /// They are deleted first.
    First,
    /// They stay, and forget their owner.
    Stay,
}

/// Deletes one object, whoever made it, if it still is the one with this UID, whatever has changed of it since it was looked
/// at. As long as it has finalizers, it stays.
///
/// # Errors
/// The failure of the request, naming the object.
pub async fn known(
    cluster: &Cluster,
    manifest: &Manifest,
    uid: &str,
    dependents: Dependents,
    dry_run: DryRun,
) -> Result<Applied, Failure> {
    let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
    let params = DeleteParams {
        dry_run: dry_run == DryRun::Server,
        preconditions: Some(preconditions),
        propagation_policy: match dependents {
            Dependents::Usual => None,
            Dependents::First => Some(PropagationPolicy::Foreground),
            Dependents::Stay => Some(PropagationPolicy::Orphan),
        },
        ..DeleteParams::default()
    };
    let outcome = if dry_run == DryRun::Client {
        Outcome::Deleted
    } else {
        let deleted = api(cluster, manifest).delete(manifest.name(), &params).await;
        match deleted.map_err(|error| cluster.explain(format_args!("delete {}", manifest.reference()), error)) {
            Ok(_) => Outcome::Deleted,
            Err(failure) if matches!(failure.reason, Reason::NotFound | Reason::KindNotServed) => Outcome::Absent,
            Err(failure) if failure.reason == Reason::Conflict => Outcome::Kept(HAS_CHANGED.to_owned()),
            Err(failure) => return Err(failure),
        }
    };
    Ok(Applied { manifest: manifest.clone(), outcome, before: None, after: Value::Null })
}

/// Leaves an object only these finalizers, if it still is as it was looked at. Whether it was.
///
/// # Errors
/// The failure of the request, naming the object.
pub async fn release(cluster: &Cluster, manifest: &Manifest, version: &str, left: &[String]) -> Result<bool, Failure> {
    let patch = json!({"metadata": {"resourceVersion": version, "finalizers": left}});
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let patched = api(cluster, manifest).patch(manifest.name(), &params, &Patch::Merge(patch)).await;
    match patched.map_err(|error| cluster.explain(format_args!("take finalizers off {}", manifest.reference()), error))
    {
        Ok(_) => Ok(true),
        Err(failure) if matches!(failure.reason, Reason::NotFound | Reason::KindNotServed | Reason::Conflict) => {
            Ok(false)
        }
        Err(failure) => Err(failure),
    }
}

async fn one(cluster: &Cluster, manifest: &Manifest, uid: String, dry_run: bool) -> Result<Outcome, Failure> {
    let reference = manifest.reference();
    let params = DeleteParams {
        dry_run,
        preconditions: Some(Preconditions { uid: Some(uid), resource_version: None }),
        ..DeleteParams::default()
    };
    let answer = api(cluster, manifest).delete(manifest.name(), &params).await;
    match answer.map(|answer| answer.left()) {
        Ok(Some(DynamicObject { metadata, .. })) if metadata.finalizers.iter().flatten().any(|one| one != COLLECTS) => {
            let finalizers = metadata.finalizers.unwrap_or_default().join(", ");
            let sentence = format!("{reference} stays as long as it has finalizers ({})", cluster.label());
            let hint = "whoever set them removes them; then run the same command again";
            Err(Failure::other(sentence).because(format!("it has {finalizers}")).hint(hint))
        }
        Ok(_) => Ok(Outcome::Deleted),
        Err(error) => {
            let failure = cluster.explain(format_args!("delete {reference}"), error);
            match failure.reason {
                Reason::NotFound => Ok(Outcome::Absent),
                Reason::Conflict => {
                    Err(failure.hint(
                    "somebody has created it again since it was read: if that is to be deleted too, run the same command again",
                ))
                }
                _ => Err(failure),
            }
        }
    }
}
