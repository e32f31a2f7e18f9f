//! Bindings: in which namespaces placements may select from a set.

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use ocm_api::cluster::ManagedClusterSetBindingSpec;
use ocm_api::{ManagedClusterSetBinding, Manifest};
use ocm_core::cluster_sets::Facts;
use ocm_core::leave::row;
use ocm_core::{Applied, DryRun, Event, Failure, Narrator, Outcome, Plan, Reason, Remedy, Stage};
use ocm_kube::access::{self, Right};
use ocm_kube::remove::{self, Dependents};
use ocm_kube::{Cluster, apply};
use serde_json::Value;

use super::objects::{AT_ONCE, BINDINGS, GROUP, binding_manifest, named};
use super::{Effects, read};

/// What binding a set to namespaces applies: the bindings, and namespaces that are not there, if they are to be made.
///
/// # Errors
/// [`Reason::NotFound`] if the hub does not have the set, or a namespace that is not to be made; the failure of a request.
pub async fn binding_plan(hub: &Cluster, set: &str, namespaces: &[String], create: bool) -> Result<Plan, Failure> {
    read::known_set(hub, set).await?;
    let missing = missing(hub, namespaces).await?;
    if let Some(first) = missing.first().filter(|_| !create) {
        let sentence = format!("there is no namespace {first:?} ({})", hub.label());
        return Err(Failure::new(Reason::NotFound, sentence).hint(Remedy::CreateNamespace));
    }
    let space = |name: &String| Manifest::with::<Namespace>(&named(None, name), Value::Null);
    let binding = |namespace: &String| {
        let spec = ManagedClusterSetBindingSpec { cluster_set: Some(set.to_owned()) };
        let mut binding = ManagedClusterSetBinding::new(set, spec);
        binding.metadata.namespace = Some(namespace.clone());
        Manifest::of(&binding)
    };
    Ok(Plan::new([
        Stage::new("namespaces", missing.iter().map(space).collect()),
        Stage::new("bindings", namespaces.iter().map(binding).collect()),
    ]))
}

/// Those of these namespaces that are not there.
async fn missing(hub: &Cluster, namespaces: &[String]) -> Result<Vec<String>, Failure> {
    let api: Api<Namespace> = Api::all(hub.client.clone());
    let found: Vec<Option<String>> = futures::stream::iter(namespaces)
        .map(|name| {
            let api = api.clone();
            async move {
                let found = api.get_metadata_opt(name).await;
                let found = found.map_err(|error| hub.explain(format_args!("read namespace {name:?}"), error))?;
                Ok::<_, Failure>(found.is_none().then(|| name.clone()))
            }
        })
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    Ok(found.into_iter().flatten().collect())
}

/// What is needed to bind a set by this plan. The hub's webhook asks for the right to bind it.
///
/// # Errors
/// The rights that are missing.
pub async fn check_rights_to_bind(hub: &Cluster, set: &str, plan: &Plan) -> Result<(), Failure> {
    let mut rights = access::to_apply(plan);
    rights.push(Right::new("create", GROUP, "managedclustersets/bind").on(set));
    access::require(hub, "bind sets of clusters", &rights).await
}

/// Binds. `each` hears of every object.
///
/// # Errors
/// The first failure; what was made before it stays.
pub async fn bind(
    hub: &Cluster,
    plan: &Plan,
    dry_run: DryRun,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    apply::plan(hub, plan, dry_run, narrator, each).await.map(drop)
}

/// Bindings of a set that are to go.
#[derive(Clone, Debug, Default)]
pub struct Bound {
    /// Name of the set.
    pub set: String,
    /// Those that are there: their namespaces and UIDs.
    pub there: Vec<(String, String)>,
    /// Namespaces that it is not bound to.
    pub absent: Vec<String>,
    /// What placements lose.
    pub effects: Effects,
}

/// What unbinding a set from namespaces comes to. Nothing is deleted yet.
///
/// # Errors
/// The failure of a request.
pub async fn inspect_bound(hub: &Cluster, set: &str, namespaces: &[String]) -> Result<Bound, Failure> {
    let sets = read::sets(hub).await?;
    let mut bound = Bound { set: set.to_owned(), ..Bound::default() };
    for namespace in namespaces {
        let api: Api<ManagedClusterSetBinding> = Api::namespaced(hub.client.clone(), namespace);
        let found = api.get_metadata_opt(set).await;
        let found =
            found.map_err(|error| hub.explain(format_args!("read the binding of set {set} in {namespace}"), error))?;
        match found.and_then(|found| found.metadata.uid) {
            Some(uid) => bound.there.push((namespace.clone(), uid)),
            None => bound.absent.push(namespace.clone()),
        }
    }
    if !bound.there.is_empty() {
        let changed = |facts: &Facts| facts.after_unbinding(set, namespaces);
        bound.effects = read::effects(hub, sets, None, changed).await?;
    }
    Ok(bound)
}

/// What is needed to delete bindings of a set.
///
/// # Errors
/// The rights that are missing.
pub async fn check_rights_to_unbind(hub: &Cluster, bound: &Bound) -> Result<(), Failure> {
    access::require(hub, "unbind sets of clusters", &rights(&bound.set, &bound.there)).await
}

pub(super) fn rights(set: &str, there: &[(String, String)]) -> Vec<Right> {
    let delete = |namespace: &str| Right::new("delete", GROUP, BINDINGS).on(set).within(namespace);
    there.iter().map(|(namespace, _)| delete(namespace)).collect()
}

/// Deletes bindings. `each` hears of every one.
///
/// # Errors
/// The first failure; what was deleted before it is gone.
pub async fn unbind(
    hub: &Cluster,
    bound: &Bound,
    dry_run: DryRun,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    for namespace in &bound.absent {
        each(&row(binding_manifest(namespace, &bound.set), Outcome::Absent));
    }
    for (namespace, uid) in &bound.there {
        let manifest = binding_manifest(namespace, &bound.set);
        delete_known(hub, &manifest, uid, dry_run, narrator, each).await?;
    }
    Ok(())
}

/// Deletes an object that was looked at.
pub(crate) async fn delete_known(
    hub: &Cluster,
    manifest: &Manifest,
    uid: &str,
    dry_run: DryRun,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    let verb = if dry_run == DryRun::No { "deleting" } else { "checking" };
    narrator.tell(Event::now(format!("{verb} {}", manifest.reference())));
    let applied = remove::known(hub, manifest, uid, Dependents::Usual, dry_run).await?;
    each(&applied);
    if dry_run == DryRun::No && applied.outcome == Outcome::Deleted {
        narrator.tell(Event::done(format!("{} deleted", manifest.reference())));
    }
    match applied.outcome {
        Outcome::Kept(why) => Err(Failure::new(Reason::Conflict, format!("{} was not deleted", manifest.reference()))
            .because(why)
            .hint(Remedy::RunAgain)),
        _ => Ok(()),
    }
}
