//! The records of works go, and what they have put on the cluster if that is to.

use std::time::Instant;

use futures::StreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use ocm_api::names::finalizers;
use ocm_api::work::AppliedManifestResourceMeta;
use ocm_api::{AppliedManifestWork, Manifest};
use ocm_core::leave::klusterlet as rules;
use ocm_core::leave::some;
use ocm_core::leave::works::of_hub;
use ocm_core::{Applied, DryRun, Event, Failure, Narrator, Reason, Remedy};
use ocm_kube::Cluster;
use ocm_kube::remove::{self, Dependents};
use ocm_kube::wait::{Check, until};

use super::records::of_agent;
use super::request::{UnjoinRequest, Works};
use super::seen::Seen;
use crate::leave::leaving::Leaving;
use crate::leave::namespace::PAUSE;

/// How many objects are read at once.
const AT_ONCE: usize = 8;

/// Deletes the records of works that are left, and waits until their objects are gone if they are to go.
pub(super) async fn works(
    cluster: &Cluster,
    seen: &Seen,
    request: &UnjoinRequest,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Option<(usize, Works)>, Failure> {
    let leaving = request.leaving;
    // With the hub they are gone by now, unless something was forced.
    let left = match leaving.dry_run {
        DryRun::No => match &seen.known {
            Some(known) => of_agent(cluster, known).await?,
            None => seen.applied.clone(),
        },
        _ if seen.held.is_some() => Vec::new(),
        _ => seen.applied.clone(),
    };
    // The hub has its works removed, and by records of a former way to it their objects stay. What it has let go before, or left
    // to stay, is not for us to delete.
    let (of_hub, left) = match (&seen.held, request.works) {
        (Some(_), None) if !leaving.force => of_hub(left, &seen.addresses, &seen.removed),
        _ => (Vec::new(), left),
    };
    let gone = forget(cluster, of_hub, Works::Delete, leaving, narrator, each).await?;
    let kept = forget(cluster, left, request.works.unwrap_or(Works::Keep), leaving, narrator, each).await?;
    Ok(kept.or(gone))
}

/// Deletes these records of works, and waits until their objects are gone if they are to go.
async fn forget(
    cluster: &Cluster,
    left: Vec<AppliedManifestWork>,
    works: Works,
    leaving: Leaving,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Option<(usize, Works)>, Failure> {
    if left.is_empty() {
        return Ok(None);
    }
    let mut objects = Vec::new();
    if works == Works::Delete && leaving.dry_run == DryRun::No {
        objects = owned(cluster, &left, narrator).await?;
    }
    let what = if left.len() == 1 { "record" } else { "records" };
    narrator.tell(Event::now(format!("{} {} {what} of works", leaving.verb(), left.len())));
    for work in &left {
        let manifest = rules::applied_work(work.metadata.name.as_deref().unwrap_or_default());
        let dependents = if works == Works::Keep { Dependents::Stay } else { Dependents::Usual };
        let uid = work.metadata.uid.as_deref().unwrap_or_default();
        each(&remove::known(cluster, &manifest, uid, dependents, leaving.dry_run).await?);
        // The operator takes its finalizer off when it removes the agent; where it was not there, nobody has.
        if leaving.dry_run == DryRun::No {
            release(cluster, &manifest).await?;
        }
    }
    objects_gone(cluster, objects, Instant::now() + leaving.timeout, narrator).await?;
    Ok(Some((left.len(), works)))
}

/// Those objects of works that Kubernetes deletes with their record: it is their only owner. What a work only reads, or
/// leaves behind, is not among them. What cannot be read is not waited for.
async fn owned(
    cluster: &Cluster,
    works: &[AppliedManifestWork],
    narrator: &dyn Narrator,
) -> Result<Vec<AppliedManifestResourceMeta>, Failure> {
    let all = works.iter().flat_map(|work| {
        let objects = work.status.iter().flat_map(|status| &status.applied_resources);
        objects.map(|object| (work.metadata.uid.clone().unwrap_or_default(), object.clone()))
    });
    let found: Vec<_> = futures::stream::iter(all)
        .map(async |(uid, object)| {
            let owners = find(cluster, &object).await?.and_then(|found| found.owner_references).unwrap_or_default();
            let is_owned = !owners.is_empty() && owners.iter().all(|owner| owner.uid == uid);
            Ok::<_, Failure>(is_owned.then_some(object))
        })
        .buffered(AT_ONCE)
        .collect()
        .await;
    let (mut objects, mut unseen) = (Vec::new(), None);
    for one in found {
        match one {
            Ok(object) => objects.extend(object),
            Err(failure) if failure.reason == Reason::Forbidden => unseen = Some(failure),
            Err(failure) => return Err(failure),
        }
    }
    if let Some(failure) = unseen {
        narrator.tell(Event::warning(format!("not every object of works is waited for: {failure}")));
    }
    Ok(objects)
}

/// Takes the agent's finalizer off a record, whose version has changed since by being deleted.
async fn release(managed: &Cluster, manifest: &Manifest) -> Result<(), Failure> {
    let api: Api<AppliedManifestWork> = Api::all(managed.client.clone());
    for _ in 0..3 {
        let found = api.get_metadata_opt(manifest.name()).await;
        let Some(found) = found.map_err(|error| managed.explain("read an AppliedManifestWork", error))? else {
            return Ok(());
        };
        let mut left = found.metadata.finalizers.unwrap_or_default();
        let before = left.len();
        left.retain(|one| one != finalizers::APPLIED_MANIFEST_WORK);
        if left.len() == before {
            return Ok(());
        }
        if remove::release(managed, manifest, &found.metadata.resource_version.unwrap_or_default(), &left).await? {
            return Ok(());
        }
    }
    Ok(())
}

/// Waits until objects are gone that Kubernetes deletes with their owner.
async fn objects_gone(
    cluster: &Cluster,
    mut left: Vec<AppliedManifestResourceMeta>,
    deadline: Instant,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    if left.is_empty() {
        return Ok(());
    }
    until("waiting until the objects of works are gone", deadline, PAUSE, narrator, async || {
        let still: Vec<_> = futures::stream::iter(std::mem::take(&mut left))
            .map(async |object| (find(cluster, &object).await, object))
            .buffered(AT_ONCE)
            .collect()
            .await;
        for (found, object) in still {
            match found {
                Ok(None) => {}
                Ok(Some(found)) if object.uid.is_some() && found.uid != object.uid => {}
                Ok(Some(_)) | Err(_) => left.push(object),
            }
        }
        let names: Vec<String> = left.iter().map(|object| format!("{}/{}", object.resource, object.name)).collect();
        Ok(if names.is_empty() { Check::Ready(()) } else { Check::Unwatched(format!("{} to go", some(&names))) })
    })
    .await
    .map_err(|failure| failure.hint(Remedy::RunAgain))
}

/// The metadata of an object of a work, if there is one.
async fn find(cluster: &Cluster, object: &AppliedManifestResourceMeta) -> Result<Option<ObjectMeta>, Failure> {
    let api_version = match object.group.as_str() {
        "" => object.version.clone(),
        group => format!("{group}/{}", object.version),
    };
    let resource = ApiResource {
        group: object.group.clone(),
        version: object.version.clone(),
        api_version,
        kind: String::new(),
        plural: object.resource.clone(),
    };
    let api: Api<DynamicObject> = match object.namespace.as_str() {
        "" => Api::all_with(cluster.client.clone(), &resource),
        space => Api::namespaced_with(cluster.client.clone(), space, &resource),
    };
    match api.get_metadata_opt(&object.name).await {
        Ok(found) => Ok(found.map(|found| found.metadata)),
        Err(error) => {
            let failure = cluster.explain(format_args!("read {}/{}", object.resource, object.name), error);
            if failure.reason == Reason::KindNotServed { Ok(None) } else { Err(failure) }
        }
    }
}
