//! Sets of managed clusters: listed, made, filled, bound to namespaces, and deleted.
//!
//! ```text
//! look (sets, bindings, which placements select what) ─▶ what would be lost ─▶ the caller asks ─▶ change
//! ```

mod bindings;
mod list;
mod membership;
mod namespaces;
mod read;
mod removal;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ocm_api::cluster::{ManagedClusterSelector, ManagedClusterSetSpec};
use ocm_api::{ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Manifest};
use ocm_core::cluster_sets::chooses_by_labels;
use ocm_core::leave::row;
use ocm_core::{Applied, DryRun, Event, Failure, Narrator, Outcome, Plan, Stage};
use ocm_kube::access::{self, Right};
use ocm_kube::{Cluster, apply};
use serde_json::Value;

pub(crate) use bindings::delete_known;
pub use bindings::{Bound, bind, binding_plan, check_rights_to_bind, check_rights_to_unbind, look_bound, unbind};
pub use list::{SetRow, cluster_sets, selector_in, watch_cluster_sets};
pub use membership::{Move, Moved, Moves, Who, check_rights_to_move, look_into, look_out, move_clusters};
pub use namespaces::{NamespaceChange, change_namespaces, check_rights_to_change_namespaces};
pub use read::Effects;
pub(crate) use read::{decisions, facts, of_hub, patient, scoped, selected_by};
pub use removal::{Removal, check_rights_to_delete, delete, look_at, refuse};

/// Their API group.
const GROUP: &str = "cluster.open-cluster-management.io";
const SETS: &str = "managedclustersets";
const BINDINGS: &str = "managedclustersetbindings";
/// How many objects are changed at once.
const AT_ONCE: usize = 8;

/// The metadata of an object that is known by its name alone.
pub(crate) fn named(namespace: Option<&str>, name: &str) -> ObjectMeta {
    ObjectMeta { namespace: namespace.map(str::to_owned), name: Some(name.to_owned()), ..ObjectMeta::default() }
}

fn set_manifest(name: &str) -> Manifest {
    Manifest::with::<ManagedClusterSet>(&named(None, name), Value::Null)
}

fn binding_manifest(namespace: &str, name: &str) -> Manifest {
    Manifest::with::<ManagedClusterSetBinding>(&named(Some(namespace), name), Value::Null)
}

fn cluster_manifest(name: &str) -> Manifest {
    Manifest::with::<ManagedCluster>(&named(None, name), Value::Null)
}

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

fn join(set: &str) -> Right {
    Right::new("create", GROUP, "managedclustersets/join").on(set)
}
