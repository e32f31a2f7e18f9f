//! Carrying out a plan: server-side apply, in parallel where the order allows, told in the order of the plan.

use std::time::{Duration, Instant};

use futures::StreamExt;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use ocm_api::Manifest;
use ocm_core::plan::{Applied, Outcome, without_bookkeeping};
use ocm_core::reconcile::{Reconciled, is_applied, reconcile};
use ocm_core::{DryRun, Event, Failure, Narrator, Plan, Reason};
use serde_json::Value;

use crate::Cluster;
use crate::triggers::{Triggers, named};
use crate::wait::{Check, until_triggered};

pub use ocm_core::reconcile::FIELD_MANAGER;

/// How many objects of a stage are on the way at once.
const AT_ONCE: usize = 8;

/// Reads an object; none if it does not exist or its kind is not served.
///
/// # Errors
/// Every other failure of the request.
pub async fn read(cluster: &Cluster, manifest: &Manifest) -> Result<Option<Value>, Failure> {
    match api(cluster, manifest).get(manifest.name()).await {
        Ok(object) => to_value(&object).map(Some),
        Err(error) => {
            let failure = cluster.explain(format_args!("read {}", manifest.reference()), error);
            match failure.reason {
                Reason::NotFound | Reason::KindNotServed => Ok(None),
                _ => Err(failure),
            }
        }
    }
}

/// Applies one object: reads what is there, carries over what must not be lost, and applies server-side. A client-side
/// dry run compares instead, and sends nothing but the read.
///
/// # Errors
/// The failure of the request, naming the object.
pub async fn one(cluster: &Cluster, manifest: &Manifest, dry_run: DryRun) -> Result<Applied, Failure> {
    let before = read(cluster, manifest).await?;
    let manifest = match reconcile(manifest, before.as_ref()) {
        Reconciled::Apply(manifest) => manifest,
        Reconciled::Keep(reason) => {
            let after = before.clone().unwrap_or_default();
            return Ok(Applied { manifest: manifest.clone(), outcome: Outcome::Kept(reason), before, after });
        }
    };
    if dry_run == DryRun::Client {
        let outcome = match &before {
            None => Outcome::Created,
            Some(live) if is_applied(manifest.body(), live) => Outcome::Unchanged,
            Some(_) => Outcome::Configured,
        };
        let after = manifest.body().clone();
        return Ok(Applied { manifest, outcome, before, after });
    }
    let mut params = PatchParams::apply(FIELD_MANAGER).force();
    params.dry_run = dry_run == DryRun::Server;
    let sent = api(cluster, &manifest).patch(manifest.name(), &params, &Patch::Apply(manifest.body())).await;
    let after = sent.map_err(|error| cluster.explain(format_args!("apply {}", manifest.reference()), error))?;
    let after = to_value(&after)?;
    let outcome = match &before {
        None => Outcome::Created,
        Some(before) if same(before, &after, dry_run) => Outcome::Unchanged,
        Some(_) => Outcome::Configured,
    };
    Ok(Applied { manifest, outcome, before, after })
}

/// Carries out a plan stage by stage. Between the stages it waits until new kinds are served.
///
/// `each` hears of every object in the order of the plan, as soon as its turn has come.
///
/// # Errors
/// The first failure in the order of the plan; what was applied before it stays, and is told as done.
pub async fn plan(
    cluster: &Cluster,
    plan: &Plan,
    dry_run: DryRun,
    narrator: &dyn Narrator,
    mut each: impl FnMut(&Applied),
) -> Result<Vec<Applied>, Failure> {
    let mut all = Vec::new();
    for stage in &plan.stages {
        let verb = if dry_run == DryRun::No { "applying" } else { "comparing" };
        narrator.tell(Event::now(format!("{verb} {}", stage.name)));
        let begin = all.len();
        let mut answers = futures::stream::iter(&stage.objects)
            .map(|manifest| async move {
                match one(cluster, manifest, dry_run).await {
                    // What only the plan itself brings is not there in a dry run: the object cannot be validated.
                    Err(failure)
                        if dry_run == DryRun::Server
                            && matches!(failure.reason, Reason::NotFound | Reason::KindNotServed)
                            && plan.provides_for(manifest) =>
                    {
                        let after = manifest.body().clone();
                        Ok(Applied { manifest: manifest.clone(), outcome: Outcome::Created, before: None, after })
                    }
                    answer => answer,
                }
            })
            .buffered(AT_ONCE);
        while let Some(answer) = answers.next().await {
            let applied = answer?;
            each(&applied);
            if dry_run == DryRun::No && applied.outcome.is_change() {
                narrator.tell(Event::done(format!("{} {}", applied.manifest.reference(), applied.outcome.word())));
            }
            all.push(applied);
        }
        drop(answers);
        if dry_run == DryRun::No {
            for applied in &all[begin..] {
                if applied.manifest.kind() == "CustomResourceDefinition" {
                    established(cluster, applied, narrator).await?;
                }
            }
        }
    }
    Ok(all)
}

/// Waits until the API server serves a new kind.
async fn established(cluster: &Cluster, applied: &Applied, narrator: &dyn Narrator) -> Result<(), Failure> {
    let definition = &applied.manifest;
    if is_established(definition, &applied.after)? {
        return Ok(());
    }
    let doing = format!("waiting until the cluster serves {}", definition.name());
    let deadline = Instant::now() + Duration::from_secs(60);
    let triggers = Triggers::default().of(api(cluster, definition), named(definition.name()));
    until_triggered(&doing, deadline, Duration::from_millis(500), triggers, narrator, async || {
        let live = read(cluster, definition).await?.unwrap_or_default();
        let not_yet = || Check::NotYet("not established yet".to_owned());
        Ok(if is_established(definition, &live)? { Check::Ready(()) } else { not_yet() })
    })
    .await
}

/// Whether the conditions of a definition say that its kind is served.
fn is_established(definition: &Manifest, live: &Value) -> Result<bool, Failure> {
    let conditions = live.pointer("/status/conditions").and_then(Value::as_array);
    let find = |kind: &str| conditions.into_iter().flatten().find(|condition| condition["type"] == kind);
    if let Some(bad) = find("NamesAccepted").filter(|condition| condition["status"] == "False") {
        let why = bad["message"].as_str().unwrap_or_default();
        return Err(Failure::other(format!("the names of {} are taken", definition.name())).because(why));
    }
    Ok(find("Established").is_some_and(|condition| condition["status"] == "True"))
}

/// The API of an object of a plan.
pub fn api(cluster: &Cluster, manifest: &Manifest) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: manifest.group().to_owned(),
        version: manifest.version().to_owned(),
        api_version: manifest.api_version().to_owned(),
        kind: manifest.kind().to_owned(),
        plural: manifest.plural().to_owned(),
    };
    match manifest.namespace() {
        Some(namespace) => Api::namespaced_with(cluster.client.clone(), namespace, &resource),
        None => Api::all_with(cluster.client.clone(), &resource),
    }
}

fn to_value(object: &DynamicObject) -> Result<Value, Failure> {
    serde_json::to_value(object).map_err(|error| Failure::other("the server's answer cannot be read").because(error))
}

/// Whether an apply changed nothing. For real the resource version tells; a dry run answers a made-up one.
fn same(before: &Value, after: &Value, dry_run: DryRun) -> bool {
    match dry_run {
        DryRun::No => before.pointer("/metadata/resourceVersion") == after.pointer("/metadata/resourceVersion"),
        DryRun::Client | DryRun::Server => without_bookkeeping(before) == without_bookkeeping(after),
    }
}
