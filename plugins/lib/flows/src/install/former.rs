//! A former hub that is still being taken away: what is applied now would go with it.

use std::time::Instant;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use ocm_api::names::namespaces;
use ocm_api::{ClusterManager, Manifest, crds};
use ocm_core::install::{self, Live, Options};
use ocm_core::{DryRun, Event, Failure, Narrator, Plan, Stage};
use ocm_kube::{Cluster, apply};
use serde_json::Value;

use super::error::InstallError;
use super::preflight;
use crate::gone::until_gone;

/// What of a hub is there besides its ClusterManager and its operator: what makes it, and what it is in.
pub(super) async fn parts(cluster: &Cluster) -> Vec<Value> {
    let read = async |manifest: Manifest| apply::read(cluster, &manifest).await.ok().flatten();
    // Who may not read them finds out from the API server.
    let (operators, hubs, definition) = futures::join!(
        read(Manifest::with::<Namespace>(&named(namespaces::OPERATOR), Value::Null)),
        read(Manifest::with::<Namespace>(&named(namespaces::HUB), Value::Null)),
        read(crds::cluster_manager_manifest())
    );
    operators.into_iter().chain(hubs).chain(definition).collect()
}

/// An object that is being deleted, with its UID.
type Leaving<'a> = (Manifest, &'a str);

/// Waits until all that is being deleted of what was read is gone, and says whether there was anything: then more may be going,
/// for the operator deletes in its turn. An operator that has to finish that is put back where it is not there.
///
/// # Errors
/// Options that contradict what is there, missing rights, [`ocm_core::Reason::TimedOut`] with what holds it up, the failure of
/// a request.
pub(super) async fn gone(
    cluster: &Cluster,
    (live, parts): (&Live, &[Value]),
    options: &Options,
    deadline: Instant,
    narrator: &dyn Narrator,
) -> Result<bool, InstallError> {
    let manager = live.cluster_manager.as_ref().and_then(leaving::<ClusterManager>);
    let operator = live.operator.as_ref().and_then(leaving::<Deployment>);
    let spaces: Vec<Leaving<'_>> = parts.iter().filter_map(leaving::<Namespace>).collect();
    let definition = parts.iter().filter_map(leaving::<CustomResourceDefinition>);
    let Some(manager) = manager else {
        let all: Vec<Leaving<'_>> = operator.into_iter().chain(spaces).chain(definition).collect();
        until_all_gone(cluster, &all, deadline, narrator).await?;
        return Ok(!all.is_empty());
    };
    // What the operator is in, and itself.
    let own = spaces.into_iter().filter(|(space, _)| space.name() == namespaces::OPERATOR);
    let own: Vec<Leaving<'_>> = operator.into_iter().chain(own).collect();
    if live.operator.is_none() || !own.is_empty() {
        until_all_gone(cluster, &own, deadline, narrator).await?;
        let back = operator_alone(install::plan(options, live)?.plan);
        preflight::may_apply(cluster, &back, preflight::PURPOSE, narrator).await?;
        narrator.tell(Event::note(format!(
            "{} is being deleted, and its operator, which finishes that, is not there: it is put back first",
            manager.0.reference()
        )));
        apply::plan(cluster, &back, DryRun::No, narrator, |_| ()).await?;
    }
    until_all_gone(cluster, &[manager], deadline, narrator).await?;
    Ok(true)
}

async fn until_all_gone(
    cluster: &Cluster,
    all: &[Leaving<'_>],
    deadline: Instant,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    if all.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = all.iter().map(|(manifest, _)| manifest.reference()).collect();
    let told = format!("the parts of a former hub ({})", names.join(", "));
    until_gone(cluster, all, &told, deadline.saturating_duration_since(Instant::now()), narrator).await
}

/// What of the plan the operator needs to end what it has made: the ClusterManager and its definition are there, and may be
/// going, and so may be what is in the hub's own namespace.
fn operator_alone(plan: Plan) -> Plan {
    let is_kept = |object: &Manifest| {
        let is_hubs = object.namespace() == Some(namespaces::HUB) || object.name() == namespaces::HUB;
        !is_hubs && !matches!(object.kind(), "ClusterManager" | "CustomResourceDefinition")
    };
    let kept = |stage: Stage| Stage { objects: stage.objects.into_iter().filter(is_kept).collect(), ..stage };
    Plan::new(plan.stages.into_iter().map(kept))
}

/// An object of this kind that is being deleted.
fn leaving<K: Resource<DynamicType = ()>>(live: &Value) -> Option<Leaving<'_>> {
    let metadata = &live["metadata"];
    metadata["deletionTimestamp"].as_str()?;
    // What a list has read tells no kind.
    if live["kind"].as_str().is_some_and(|kind| kind != K::kind(&())) {
        return None;
    }
    let meta = ObjectMeta {
        namespace: metadata["namespace"].as_str().map(str::to_owned),
        ..named(metadata["name"].as_str()?)
    };
    Some((Manifest::with::<K>(&meta, Value::Null), metadata["uid"].as_str()?))
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_being_deleted_is_waited_for_and_as_what_it_is() {
        let object = |deleted: Value| {
            let metadata = json!({"name": "n", "uid": "1", "deletionTimestamp": deleted});
            json!({"kind": "Namespace", "metadata": metadata})
        };
        assert!(leaving::<Namespace>(&object(Value::Null)).is_none());
        let there = object(json!("2026-01-01T00:00:00Z"));
        let (manifest, uid) = leaving::<Namespace>(&there).unwrap();
        assert_eq!((manifest.reference().as_str(), uid), ("namespace/n", "1"));
        assert!(leaving::<CustomResourceDefinition>(&there).is_none());
    }

    #[test]
    fn the_operator_is_put_back_without_what_is_being_deleted() {
        let options = Options { create_namespace: true, ..Options::default() };
        let plan = install::plan(&options, &Live::default()).unwrap().plan;
        let operator = operator_alone(plan.clone());
        assert_eq!(operator.objects().count() + 2, plan.objects().count());
        let has = |kind: &str| operator.objects().any(|object| object.kind() == kind);
        assert!(has("Deployment") && has("Namespace") && !has("ClusterManager") && !has("CustomResourceDefinition"));
    }
}
