//! Which namespaces a set manages: the hub names them in the status of every cluster of it, and the agents there make them.

use kube::Api;
use kube::api::{Patch, PatchParams};
use ocm_api::ManagedClusterSet;
use ocm_core::cluster_sets::{managed_namespaces, namespaces_with, namespaces_without};
use ocm_core::leave::row;
use ocm_core::reconcile::FIELD_MANAGER;
use ocm_core::{Applied, DryRun, Event, Failure, Narrator, Outcome, Reason, Remedy};
use ocm_kube::Cluster;
use ocm_kube::access::{self, Right};
use serde_json::json;

use super::objects::{GROUP, SETS, set_manifest};
use super::read;

/// How often a set is changed that others change at the same time.
const TRIES: u32 = 5;

/// What becomes of namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceChange {
    /// The set manages them, too.
    Add,
    /// The set manages them no longer; on the clusters they stay.
    Remove,
}

/// What is needed to change which namespaces a set manages.
///
/// # Errors
/// The rights that are missing.
pub async fn check_rights_to_change_namespaces(hub: &Cluster, set: &str) -> Result<(), Failure> {
    access::require(hub, "change sets of clusters", &[Right::new("patch", GROUP, SETS).on(set)]).await
}

/// Changes which namespaces a set manages. Others that it manages stay. `each` hears of the set. Returns those that it manages
/// then.
///
/// # Errors
/// [`Reason::NotFound`] if the hub does not have the set; [`Reason::Refused`] if its sets manage no namespaces; the failure of a
/// request.
pub async fn change_namespaces(
    hub: &Cluster,
    set: &str,
    (change, names): (NamespaceChange, &[String]),
    dry_run: DryRun,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Vec<String>, Failure> {
    narrator.tell(Event::now(format!("looking for set {set}")));
    let api: Api<ManagedClusterSet> = Api::all(hub.client.clone());
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        dry_run: dry_run == DryRun::Server,
        ..PatchParams::default()
    };
    let mut tries = 0;
    loop {
        let live = read::known_set(hub, set).await?;
        let wanted = match change {
            NamespaceChange::Add => namespaces_with(&live, names),
            NamespaceChange::Remove => namespaces_without(&live, names),
        };
        let Some(wanted) = wanted else {
            each(&row(set_manifest(set), Outcome::Unchanged));
            return Ok(managed_namespaces(&live));
        };
        let planned: Vec<String> = wanted.iter().map(|namespace| namespace.name.clone()).collect();
        if dry_run == DryRun::Client {
            each(&row(set_manifest(set), Outcome::Configured));
            return Ok(planned);
        }
        let patch = json!({
            "metadata": {"resourceVersion": live.metadata.resource_version},
            "spec": {"managedNamespaces": wanted},
        });
        let failure = match api.patch(set, &params, &Patch::Merge(patch)).await {
            Ok(after) if managed_namespaces(&after) != planned => return Err(unknown(hub)),
            Ok(_) => {
                each(&row(set_manifest(set), Outcome::Configured));
                if dry_run == DryRun::No {
                    narrator.tell(Event::done(format!("{} configured", set_manifest(set).reference())));
                }
                return Ok(planned);
            }
            Err(error) => hub.explain(format_args!("change the namespaces of set {set}"), error),
        };
        tries += 1;
        // Somebody else has changed it since it was read.
        if failure.reason != Reason::Conflict || tries == TRIES {
            return Err(failure);
        }
    }
}

/// A server drops what the definition of sets does not know.
fn unknown(hub: &Cluster) -> Failure {
    Failure::refused(format!("sets of clusters manage no namespaces on this hub ({})", hub.label()))
        .because("its definition of ManagedClusterSet has no managedNamespaces: its release is too old")
        .hint(Remedy::NewerHub)
}
