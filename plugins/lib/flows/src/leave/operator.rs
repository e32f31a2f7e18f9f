//! What an operator leaves: the same on a hub and on a managed cluster.

use std::time::Instant;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, WatchParams};
use ocm_api::Manifest;
use ocm_api::names::namespaces;
use ocm_core::leave::space::{Operator, foreign_of_operator};
use ocm_core::leave::{installation, klusterlet as rules, row, some};
use ocm_core::{Applied, DryRun, Failure, Narrator, Outcome, Reason, Remedy};
use ocm_kube::remove::{self, Dependents};
use ocm_kube::triggers::Triggers;
use ocm_kube::wait::{Check, until_triggered};
use ocm_kube::{Cluster, apply, contents};
use serde_json::Value;

use super::leaving::Leaving;
use super::namespace::{PAUSE, namespace_gone};
use crate::registry::pages_of_metadata;
use crate::workload;

/// What keeps an operator from doing its work; none if it is there.
///
/// # Errors
/// The failure of a request.
pub(crate) async fn trouble(cluster: &Cluster, operator: Operator) -> Result<Option<String>, Failure> {
    let manifest = match operator {
        Operator::Klusterlet => rules::operator(),
        Operator::ClusterManager => installation::operator(),
    };
    let Some(found) = apply::read(cluster, &manifest).await? else {
        return Ok(Some("its Deployment does not exist".to_owned()));
    };
    if found.pointer("/spec/replicas").and_then(Value::as_i64) == Some(0) {
        return Ok(Some("its Deployment is scaled to no pods".to_owned()));
    }
    let health = workload::deployment(cluster, namespaces::OPERATOR, operator.name()).await?;
    Ok(health.because())
}

/// Whether any of these objects is there.
///
/// # Errors
/// The failure of a request.
pub(crate) async fn any(cluster: &Cluster, manifests: &[Manifest]) -> Result<bool, Failure> {
    let each = manifests.iter().map(async |manifest| apply::read(cluster, manifest).await);
    Ok(futures::future::try_join_all(each).await?.iter().any(Option::is_some))
}

/// Deletes an object as it is there now, and tells of it. Whether there was one.
///
/// # Errors
/// The failure of a request.
pub(crate) async fn delete(
    cluster: &Cluster,
    manifest: &Manifest,
    dry_run: DryRun,
    each: &dyn Fn(&Applied),
) -> Result<bool, Failure> {
    let Some(found) = apply::read(cluster, manifest).await? else { return Ok(false) };
    let uid = found.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
    each(&remove::known(cluster, manifest, uid, Dependents::Usual, dry_run).await?);
    Ok(true)
}

/// Waits until the operator's pods have ended: who still runs would take its lease again.
///
/// # Errors
/// [`Reason::TimedOut`], or the failure of a request.
pub(crate) async fn pods_gone(
    cluster: &Cluster,
    operator: Operator,
    leaving: Leaving,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let pods = workload::pods(cluster, namespaces::OPERATOR);
    let labels = format!("app={}", operator.name());
    let triggers = Triggers::default().of(pods.clone(), WatchParams::default().labels(&labels));
    let deadline = Instant::now() + leaving.timeout;
    until_triggered("waiting until the operator has ended", deadline, PAUSE, triggers, narrator, async || {
        let found = pods.list_metadata(&ListParams::default().labels(&labels)).await;
        let left = found.map_err(|error| cluster.explain("list pods", error))?.items.len();
        Ok(if left == 0 { Check::Ready(()) } else { Check::NotYet(format!("{left} pods still run")) })
    })
    .await
    .map_err(|failure| failure.hint(Remedy::RunAgain))
}

/// The objects of a kind, in the version that its definition stores; none where the kind is not defined.
///
/// # Errors
/// The failure of a request.
pub(crate) async fn objects_of(
    cluster: &Cluster,
    plural: &str,
    group: &str,
    definition: &Manifest,
) -> Result<Vec<ObjectMeta>, Failure> {
    let Some(found) = apply::read(cluster, definition).await? else { return Ok(Vec::new()) };
    let versions = found.pointer("/spec/versions").and_then(Value::as_array);
    let stored = versions.into_iter().flatten().find(|version| version["storage"] == true);
    let version = stored.and_then(|version| version["name"].as_str()).unwrap_or("v1").to_owned();
    let resource = ApiResource {
        group: group.to_owned(),
        api_version: format!("{group}/{version}"),
        version,
        kind: String::new(),
        plural: plural.to_owned(),
    };
    let api: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &resource);
    let what = format!("list {plural}");
    match pages_of_metadata(cluster, &api, ListParams::default(), &what, |item| Some(item.metadata)).await {
        Err(failure) if failure.reason == Reason::KindNotServed => Ok(Vec::new()),
        listed => listed,
    }
}

/// Deletes the operators' namespace, unless something of somebody else's is in it. Why it stays, if it does.
///
/// # Errors
/// [`Reason::TimedOut`], or the failure of a request.
pub(crate) async fn operators_namespace(
    cluster: &Cluster,
    operator: Operator,
    leaving: Leaving,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Option<String>, Failure> {
    let manifest = rules::namespace(namespaces::OPERATOR);
    if apply::read(cluster, &manifest).await?.is_none() {
        return Ok(None);
    }
    let foreign = match contents::of(cluster, namespaces::OPERATOR).await {
        _ if leaving.purge => Vec::new(),
        Ok(found) => foreign_of_operator(&found, operator),
        Err(failure) if failure.reason.is_transient() => return Err(failure),
        Err(failure) => {
            let why = format!("what else is in it cannot be seen: {failure}");
            each(&row(manifest, Outcome::Kept(why.clone())));
            return Ok(Some(why));
        }
    };
    if !foreign.is_empty() {
        let why = format!("it also holds {}", some(&foreign));
        each(&row(manifest, Outcome::Kept(why.clone())));
        return Ok(Some(why));
    }
    delete(cluster, &manifest, leaving.dry_run, each).await?;
    if leaving.dry_run == DryRun::No {
        let doing = format!("waiting until namespace {:?} is gone", namespaces::OPERATOR);
        namespace_gone(cluster, namespaces::OPERATOR, &doing, Instant::now() + leaving.timeout, narrator)
            .await
            .map_err(|failure| failure.hint(Remedy::RunAgain))?;
    }
    Ok(None)
}
