//! Deleting placements, after what uses them was told.

use kube::Api;
use ocm_api::names::labels;
use ocm_api::{Manifest, Placement};
use ocm_core::leave::row;
use ocm_core::order;
use ocm_core::placement::uses;
use ocm_core::{Applied, DryRun, Failure, Narrator, Outcome, Reason};
use ocm_kube::Cluster;
use ocm_kube::access::{self, Right};
use serde_json::Value;

use crate::cluster_sets::{decisions, delete_known, named, of_hub};
use crate::objects::{Sought, objects};

const GROUP: &str = "cluster.open-cluster-management.io";

/// A placement that is to go.
#[derive(Clone, Debug)]
pub struct Removal {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID; none if it is not there.
    uid: Option<String>,
    /// Names of the clusters that it selects.
    pub clusters: Vec<String>,
    /// What uses it, for people.
    pub uses: Vec<String>,
}

impl Removal {
    /// Whether there is such a placement.
    pub fn is_there(&self) -> bool {
        self.uid.is_some()
    }

    fn manifest(&self) -> Manifest {
        Manifest::with::<Placement>(&named(Some(&self.namespace), &self.name), Value::Null)
    }
}

/// What the user may not read, one sentence each: what uses placements can be told without it only in part.
pub type Unread = Vec<String>;

/// What there is of placements of a namespace, and what uses them. Nothing is deleted yet.
///
/// # Errors
/// The failure of a request.
pub async fn inspect(hub: &Cluster, namespace: &str, names: &[String]) -> Result<(Vec<Removal>, Unread), Failure> {
    let api: Api<Placement> = Api::namespaced(hub.client.clone(), namespace);
    let mut uids = Vec::new();
    for name in names {
        let found = api.get_metadata_opt(name).await;
        let found = found
            .map_err(|error| hub.explain(format_args!("read placement {namespace}/{name}"), error))
            .map_err(of_hub(hub))?;
        uids.push(found.and_then(|found| found.metadata.uid));
    }
    if uids.iter().all(Option::is_none) {
        let absent = |name: &String| removal(namespace, name, None, Vec::new(), Vec::new());
        return Ok((names.iter().map(absent).collect(), Vec::new()));
    }
    let sets = sought("work.open-cluster-management.io/v1alpha1", "manifestworkreplicasets", Some(namespace));
    let definitions = sought("addon.open-cluster-management.io/v1alpha1", "clustermanagementaddons", None);
    let (decisions, sets, definitions) =
        futures::join!(decisions(hub, Some(namespace)), readable(hub, &sets), readable(hub, &definitions));
    let (sets, unread_sets) = sets?;
    let (definitions, unread_definitions) = definitions?;
    let (decisions, unread_decisions) = match decisions {
        Ok(all) => (all, None),
        Err(failure) if failure.reason == Reason::Forbidden => (Vec::new(), Some(failure.to_string())),
        Err(failure) => return Err(failure),
    };
    let clusters = |name: &String| {
        let is_its = |own: &std::collections::BTreeMap<String, String>| own.get(labels::PLACEMENT) == Some(name);
        let its = decisions.iter().filter(|one| one.metadata.labels.as_ref().is_some_and(is_its));
        let all = its.flat_map(|one| &one.status).flat_map(|status| &status.decisions);
        let mut names: Vec<String> = all.map(|one| one.cluster_name.clone()).filter(|name| !name.is_empty()).collect();
        order::sort(&mut names);
        names
    };
    let of = |(name, uid): (&String, Option<String>)| match uid {
        None => removal(namespace, name, None, Vec::new(), Vec::new()),
        uid => removal(namespace, name, uid, clusters(name), uses(namespace, name, &sets, &definitions)),
    };
    let unread = [unread_sets, unread_definitions, unread_decisions].into_iter().flatten().collect();
    Ok((names.iter().zip(uids).map(of).collect(), unread))
}

fn removal(namespace: &str, name: &str, uid: Option<String>, clusters: Vec<String>, uses: Vec<String>) -> Removal {
    Removal { namespace: namespace.to_owned(), name: name.to_owned(), uid, clusters, uses }
}

fn sought(api_version: &str, resource: &str, namespace: Option<&str>) -> Sought {
    let (api_version, resource) = (api_version.to_owned(), resource.to_owned());
    Sought { api_version, resource, namespace: namespace.map(str::to_owned), name: None }
}

/// Objects that the user may read, and that the hub knows; or why they may not be read.
async fn readable(hub: &Cluster, sought: &Sought) -> Result<(Vec<Value>, Option<String>), Failure> {
    match objects(hub, sought).await {
        Ok(all) => Ok((all, None)),
        Err(failure) if failure.reason == Reason::Forbidden => Ok((Vec::new(), Some(failure.to_string()))),
        Err(failure) if failure.reason == Reason::KindNotServed => Ok((Vec::new(), None)),
        Err(failure) => Err(failure),
    }
}

/// What is needed to delete placements.
///
/// # Errors
/// The rights that are missing.
pub async fn check_rights_to_delete(hub: &Cluster, all: &[Removal]) -> Result<(), Failure> {
    let delete = |one: &Removal| Right::new("delete", GROUP, "placements").on(&one.name).within(&one.namespace);
    let rights: Vec<Right> = all.iter().filter(|one| one.is_there()).map(delete).collect();
    access::require(hub, "delete placements", &rights).await
}

/// Deletes placements that were looked at. `each` hears of every one.
///
/// # Errors
/// The first failure; what was deleted before it is gone.
pub async fn delete(
    hub: &Cluster,
    all: &[Removal],
    dry_run: DryRun,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    for one in all {
        match &one.uid {
            Some(uid) => delete_known(hub, &one.manifest(), uid, dry_run, narrator, each).await?,
            None => each(&row(one.manifest(), Outcome::Absent)),
        }
    }
    Ok(())
}
