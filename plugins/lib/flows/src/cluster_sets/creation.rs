//! Making sets.

use ocm_api::cluster::{ManagedClusterSelector, ManagedClusterSetSpec};
use ocm_api::{ManagedClusterSet, Manifest};
use ocm_core::cluster_sets::chooses_by_labels;
use ocm_core::leave::row;
use ocm_core::{Applied, DryRun, Event, Failure, Narrator, Outcome, Plan, Stage};
use ocm_kube::{Cluster, access, apply};

use super::objects::set_manifest;
use super::read;

/// What is needed to make these sets.
///
/// # Errors
/// The rights that are missing.
pub async fn check_rights_to_create(hub: &Cluster, names: &[String]) -> Result<(), Failure> {
    let plan = Plan::new([Stage::new("sets of clusters", names.iter().map(|name| set_manifest(name)).collect())]);
    access::require(hub, "make sets of clusters", &access::to_apply(&plan)).await
}

/// Makes sets into which clusters can be put. Those that are there stay as they are. `each` hears of every set.
///
/// # Errors
/// The failure of a request; sets that were made before it stay.
pub async fn create(
    hub: &Cluster,
    names: &[String],
    dry_run: DryRun,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    for name in names {
        narrator.tell(Event::now(format!("looking for set {name}")));
        let applied = match read::set(hub, name).await? {
            Some(set) if chooses_by_labels(&set) => {
                row(set_manifest(name), Outcome::Kept("it is there, and chooses its clusters by labels".to_owned()))
            }
            Some(_) => row(set_manifest(name), Outcome::Unchanged),
            None => apply::one(hub, &Manifest::of(&new(name)), dry_run).await?,
        };
        each(&applied);
        if dry_run == DryRun::No && applied.outcome == Outcome::Created {
            narrator.tell(Event::done(format!("{} created", applied.manifest.reference())));
        }
    }
    Ok(())
}

/// A set of which clusters are by its label.
fn new(name: &str) -> ManagedClusterSet {
    let selector = Some(ManagedClusterSelector::default());
    ManagedClusterSet::new(
        name,
        ManagedClusterSetSpec { cluster_selector: selector, ..ManagedClusterSetSpec::default() },
    )
}
