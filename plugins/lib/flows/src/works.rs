//! Works that people create: one ManifestWork of a name for each cluster.

use std::time::Duration;

use ocm_api::{Manifest, ManifestWork};
use ocm_core::plan::{Applied, Found, Mode, Plan};
use ocm_core::work::{Owner, owner, with_defaults_of};
use ocm_core::{DryRun, Event, Failure, Narrator, Reason};
use ocm_kube::access::{self, Right};
use ocm_kube::{Cluster, apply};
use serde_json::Value;

use crate::deliveries::{Waited, read_present, require_accepted, send, until_there};
use crate::whole::refuse;

/// Each right is asked for one by one: for a fleet, all clusters at once.
const ONE_BY_ONE: usize = 10;

/// What is wanted.
#[derive(Clone, Debug)]
pub struct CreateRequest {
    /// One work of the same name for each cluster.
    pub plan: Plan,
    /// Whether works that others have written are replaced.
    pub overwrite: bool,
    /// What is done with the plan.
    pub mode: Mode,
    /// Wait until everything is there, for so long.
    pub wait: Option<Duration>,
    /// How many clusters are worked on at once.
    pub at_once: usize,
}

/// What it came to.
#[derive(Debug)]
pub struct WorksCreated {
    /// What became of the work of each cluster, in the order of the plan.
    pub sent: Vec<(String, Result<Applied, Failure>)>,
    /// The works that were waited for; none if nobody waited.
    pub waited: Option<Waited<ManifestWork>>,
}

/// Creates or changes works, or does with the plan what the request says. `each` hears of every work in the order of the plan.
///
/// # Errors
/// The rights that are missing; a refusal, if a work is somebody else's; the failure of a request before anything was sent.
pub async fn create(
    hub: &Cluster,
    request: &CreateRequest,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<WorksCreated, Failure> {
    let manifests: Vec<Manifest> = request.plan.objects().cloned().collect();
    if request.mode.changes() {
        narrator.tell(Event::now("checking your rights"));
        access::require(hub, "create works", &rights(&request.plan, manifests.len())).await?;
    }
    narrator.tell(Event::now(format!("looking at works ({})", hub.label())));
    let clusters: Vec<String> = manifests.iter().map(cluster_of).collect();
    require_accepted(hub, &clusters).await?;
    let found = read_present(hub, &manifests, request.at_once).await?;
    if !request.overwrite {
        refuse_foreign(&found, "nothing was changed")?;
    }
    let dry_run = request.mode.dry_run();
    let one = async |index: usize, manifest: &Manifest| {
        let live = found.get(index).and_then(|found| found.live.clone());
        create_one(hub, manifest, live, (request.overwrite, dry_run)).await
    };
    let answers = send(&one, &manifests, (dry_run, request.at_once), narrator, each).await;
    let sent: Vec<(String, Result<Applied, Failure>)> = clusters.into_iter().zip(answers).collect();
    let waited = match request.wait.filter(|_| dry_run == DryRun::No) {
        Some(timeout) => {
            let of = |(cluster, applied): &(String, Result<Applied, Failure>)| {
                let applied = applied.as_ref().ok()?;
                Some((cluster.clone(), applied.manifest.name().to_owned()))
            };
            let wanted: Vec<(String, String)> = sent.iter().filter_map(of).collect();
            Some(until_there(hub, &wanted, timeout, narrator).await)
        }
        None => None,
    };
    Ok(WorksCreated { sent, waited })
}

/// Creates a work, or changes it as it was looked at: whose it is, is looked at again where it has changed since.
async fn create_one(
    hub: &Cluster,
    planned: &Manifest,
    live: Option<Value>,
    (overwrite, dry_run): (bool, DryRun),
) -> Result<Applied, Failure> {
    // While others of a fleet had their turn, somebody may have made it.
    let live = match live {
        Some(live) => Some(live),
        None => apply::read(hub, planned).await?,
    };
    let Some(live) = live else { return apply::one(hub, planned, dry_run).await };
    let plan = |live: &Value| {
        if !overwrite {
            let found = Found { manifest: planned.clone(), live: Some(live.clone()) };
            refuse_foreign(&[found], "it was not changed")?;
        }
        let mut manifest = planned.clone();
        with_defaults_of(&mut manifest, live);
        Ok(manifest)
    };
    match apply::planned(hub, live, &plan, dry_run).await {
        // Somebody has deleted it.
        Err(failure) if failure.reason == Reason::NotFound => apply::one(hub, planned, dry_run).await,
        answer => answer,
    }
}

fn cluster_of(manifest: &Manifest) -> String {
    manifest.namespace().unwrap_or_default().to_owned()
}

fn rights(plan: &Plan, clusters: usize) -> Vec<Right> {
    let look = Right::new("get", "cluster.open-cluster-management.io", "managedclusters");
    if clusters > ONE_BY_ONE {
        let of = |verb| Right::new(verb, "work.open-cluster-management.io", "manifestworks");
        return [look].into_iter().chain(["get", "create", "patch"].map(of)).collect();
    }
    let looks = plan.objects().map(|manifest| look.clone().on(&cluster_of(manifest)));
    looks.chain(access::to_apply(plan)).collect()
}

/// Refuses works that are somebody else's. `done`: `nothing was changed`.
fn refuse_foreign(found: &[Found], done: &str) -> Result<(), Failure> {
    let foreign = found.iter().filter_map(|Found { manifest, live }| {
        let owner = owner(live.as_ref()?, manifest.body());
        let told = owner.told()?;
        let cluster = manifest.namespace().unwrap_or_default();
        Some((format!("work {:?} of cluster {cluster:?} {told}", manifest.name()), owner))
    });
    let foreign: Vec<(String, Owner)> = foreign.collect();
    refuse(&foreign, done)
}
