//! Applying objects that a command writes as a whole: what others have written is refused, or replaced, and nothing is sent
//! before that is known of all.

use std::borrow::Borrow;

use ocm_api::Manifest;
use ocm_core::addon::{keep_configurations, kept_templates};
use ocm_core::plan::{Applied, Found, Mode, Plan};
use ocm_core::work::{Owner, with_defaults_of};
use ocm_core::written::{Standing, standing};
use ocm_core::{DryRun, Event, Failure, Narrator, Outcome, Remedy};
use ocm_kube::{Cluster, apply};

use crate::deliveries::read_present;

/// How many objects are read at once.
const AT_ONCE: usize = 8;

/// Applies a plan in its order, or does with it what the mode says. `each` hears of every object.
///
/// # Errors
/// A refusal, if an object is somebody else's and is not to be replaced; the first failure, what was applied before it stays.
pub(crate) async fn apply_whole(
    hub: &Cluster,
    plan: &Plan,
    (overwrite, mode): (bool, Mode),
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Vec<Applied>, Failure> {
    let manifests: Vec<Manifest> = plan.objects().cloned().collect();
    let found = read_present(hub, &manifests, AT_ONCE).await?;
    let found: Vec<(Found, Standing)> = found
        .into_iter()
        .map(|mut found| {
            found.live.iter().for_each(|live| keep_configurations(&mut found.manifest, live));
            let standing = standing(&found.manifest, found.live.as_ref());
            (found, standing)
        })
        .collect();
    if !overwrite {
        refuse_foreign(&found)?;
    }
    for (found, _) in found.iter().filter(|(found, _)| found.manifest.kind() == "ClusterManagementAddOn") {
        for (placement, template) in kept_templates(&found.manifest) {
            narrator.tell(Event::warning(format!(
                "placement {placement} refers to AddOnTemplate {template}, and that stays: its clusters do not get the default"
            )));
        }
    }
    let dry_run = mode.dry_run();
    let verb = if dry_run == DryRun::No { "applying" } else { "comparing" };
    let mut all = Vec::new();
    for (Found { mut manifest, live }, standing) in found {
        narrator.tell(Event::now(format!("{verb} {}", manifest.reference())));
        live.iter().for_each(|live| with_defaults_of(&mut manifest, live));
        let applied = match (standing, live) {
            (Standing::Same, Some(live)) => {
                apply::must_stay(&manifest, Some(&live))?;
                Applied { manifest, outcome: Outcome::Unchanged, before: Some(live.clone()), after: live }
            }
            (Standing::Theirs(_), Some(live)) => apply::over(hub, &manifest, live, dry_run).await?,
            _ => apply::one(hub, &manifest, dry_run).await?,
        };
        each(&applied);
        if dry_run == DryRun::No && applied.outcome.is_change() {
            narrator.tell(Event::done(format!("{} {}", applied.manifest.reference(), applied.outcome.word())));
        }
        all.push(applied);
    }
    Ok(all)
}

/// Nothing is sent if one of the objects is somebody else's and says something else.
fn refuse_foreign(found: &[(Found, Standing)]) -> Result<(), Failure> {
    let foreign = found.iter().filter_map(|(found, standing)| match standing {
        Standing::Theirs(owner) => {
            let told = owner.told().unwrap_or_default();
            Some((format!("{} {told} and says something else", named(&found.manifest)), owner))
        }
        Standing::New | Standing::Ours | Standing::Same => None,
    });
    let foreign: Vec<(String, &Owner)> = foreign.collect();
    refuse(&foreign, "nothing was changed")
}

/// Refuses to change what is somebody else's: each object, in words, with whose it is. The first makes the sentence, with what was
/// done: `nothing was changed`.
pub(crate) fn refuse<O: Borrow<Owner>>(foreign: &[(String, O)], done: &str) -> Result<(), Failure> {
    let Some(((first, owner), more)) = foreign.split_first() else { return Ok(()) };
    let owner: &Owner = owner.borrow();
    let failure = Failure::refused(format!("{first}: {done}"));
    let failure = more.iter().fold(failure, |failure, (told, _)| failure.because(told));
    let failure = match owner {
        Owner::Kept(_) => failure.hint("what it belongs to would change it back: take another name"),
        Owner::Ours | Owner::Others(_) => failure,
    };
    Err(failure.hint(Remedy::Overwrite))
}

fn named(manifest: &Manifest) -> String {
    match manifest.namespace() {
        Some(namespace) => format!("{} {namespace}/{}", manifest.kind(), manifest.name()),
        None => format!("{} {}", manifest.kind(), manifest.name()),
    }
}
