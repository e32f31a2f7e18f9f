//! Sending objects to the namespaces of several clusters: what fails for one does not hold up the others.

use futures::{StreamExt, TryStreamExt};
use ocm_api::Manifest;
use ocm_core::plan::{Applied, Found};
use ocm_core::{DryRun, Event, Failure, Narrator};
use ocm_kube::{Cluster, apply};

/// Reads what there is of some objects.
pub(crate) async fn read_present(hub: &Cluster, manifests: &[Manifest], at_once: usize) -> Result<Vec<Found>, Failure> {
    futures::stream::iter(manifests).map(|manifest| found(hub, manifest)).buffered(at_once).try_collect().await
}

async fn found(hub: &Cluster, manifest: &Manifest) -> Result<Found, Failure> {
    Ok(Found { manifest: manifest.clone(), live: apply::read(hub, manifest).await? })
}

/// Applies each, `at_once` at a time; `apply` says how one is applied: it gets the object and its place among them. `each` hears of
/// every one that is applied, in their order.
pub(crate) async fn send(
    apply: &impl AsyncFn(usize, &Manifest) -> Result<Applied, Failure>,
    manifests: &[Manifest],
    (dry_run, at_once): (DryRun, usize),
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Vec<Result<Applied, Failure>> {
    let verb = if dry_run == DryRun::No { "applying" } else { "comparing" };
    let mut answers = futures::stream::iter(manifests.iter().enumerate())
        .map(async |(index, manifest)| {
            let cluster = manifest.namespace().unwrap_or_default();
            narrator.tell(Event::now(format!("{verb} {} of cluster {cluster:?}", manifest.reference())));
            apply(index, manifest).await
        })
        .buffered(at_once);
    let mut all = Vec::new();
    while let Some(answer) = answers.next().await {
        if let Ok(applied) = &answer {
            each(applied);
            if dry_run == DryRun::No && applied.outcome.is_change() {
                let cluster = applied.manifest.namespace().unwrap_or_default();
                let (reference, word) = (applied.manifest.reference(), applied.outcome.word());
                narrator.tell(Event::done(format!("{reference} of cluster {cluster:?} {word}")));
            }
        }
        all.push(answer);
    }
    all
}
