//! The definitions of a managed cluster go, unless somebody needs them.

use ocm_core::leave::klusterlet::{self as rules, Known};
use ocm_core::leave::row;
use ocm_core::{Applied, DryRun, Failure, Outcome};
use ocm_kube::{Cluster, apply};

use super::request::Departure;
use super::seen::Seen;
use crate::leave::leaving::Leaving;
use crate::leave::operator::{delete, objects_of};
use crate::observe::managed as observe;

/// Deletes the definitions of a managed cluster of which there are no objects, unless another agent needs them.
pub(super) async fn definitions(
    cluster: &Cluster,
    is_guest: bool,
    seen: &Seen,
    leaving: Leaving,
    departure: &mut Departure,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    let dry_run = leaving.dry_run;
    let own = seen.known.as_ref().filter(|_| dry_run != DryRun::No).map(Known::name);
    let others = observe::other_agents(cluster, own).await?;
    // By the first of them a run that goes on from here sees that something is left: it goes last.
    for (manifest, plural, group) in rules::definitions().into_iter().rev() {
        // The operator of a hosted Klusterlet has not made that one on the managed cluster.
        if (is_guest && plural == "klusterlets") || apply::read(cluster, &manifest).await?.is_none() {
            continue;
        }
        let held = objects_of(cluster, plural, group, &manifest).await?.len();
        // In a dry run what goes before it is still there.
        let expected = match (dry_run, plural) {
            (DryRun::No, _) => 0,
            (_, "klusterlets") => usize::from(seen.known.is_some()),
            (_, "appliedmanifestworks") => seen.applied.len(),
            _ => 0,
        };
        let kept = match others.first() {
            _ if held > expected => Some(format!("there are {held} {plural}")),
            Some(other) => Some(format!("the agent of another Klusterlet, {other:?}, works there, too")),
            None => None,
        };
        if let Some(why) = kept {
            departure.definitions_kept.push(manifest.name().to_owned());
            each(&row(manifest, Outcome::Kept(why)));
        } else {
            delete(cluster, &manifest, dry_run, each).await?;
        }
    }
    Ok(())
}
