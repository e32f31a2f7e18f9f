//! Changing policies of a hub that are there: disabling and enabling them, and what is done with their versions.
//!
//! ```text
//! rights ─▶ find (what is to be done for each?) ─▶ the caller asks ─▶ one patch each, for the version that was looked at
//! ```

use std::time::Duration;

use kube::Api;
use kube::api::{Patch, PatchParams};
use ocm_api::{HubPolicy, Manifest};
use ocm_core::hub_policy::{Change, Refusal, Step, Switch, Switching, change, changes, is_as_found};
use ocm_core::plan::{Applied, Outcome};
use ocm_core::{DryRun, Event, Failure, Narrator, Reason, Remedy};
use ocm_kube::access::Right;
use ocm_kube::apply::FIELD_MANAGER;
use ocm_kube::{Cluster, access};
use serde_json::Value;

use super::list::{PolicyRow, no_policy_engine, policies};

/// How often a policy is read and patched that others change at the same time; the controller writes its status.
const TRIES: u32 = 5;
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// Why policies are not switched; nothing was changed unless it says so.
#[derive(Debug)]
pub enum SwitchFailure {
    /// They cannot be changed so.
    Refused(Refusal),
    /// It failed.
    Failed(Failure),
}

impl From<Failure> for SwitchFailure {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// A policy as it was found, and whether there is something to do.
#[derive(Clone, Debug)]
pub struct Switchable {
    /// The policy.
    pub row: PolicyRow,
    /// Whether it is not so yet.
    pub changes: bool,
}

/// Looks at the policies of these names. Nothing is changed yet.
///
/// # Errors
/// When a right is missing, a name is unknown, or one of them cannot be switched; the failure of a request.
pub async fn find_switchable(
    hub: &Cluster,
    names: &[String],
    to: Change,
    dry_run: DryRun,
    narrator: &dyn Narrator,
) -> Result<Vec<Switchable>, SwitchFailure> {
    if dry_run == DryRun::No {
        narrator.tell(Event::now("checking your rights"));
        let purpose = match to {
            Change::Switch(Switch::Disable) => "disable policies",
            Change::Switch(Switch::Enable) => "enable policies",
            Change::Step(Step::RollBack) => "roll back policies",
            Change::Step(Step::Promote | Step::Share(_)) => "promote policies",
        };
        let right = |verb, name: &str| Right::new(verb, "policy.kubectl-ocm.dev", "hubpolicies").on(name);
        let rights: Vec<Right> = names.iter().flat_map(|name| ["get", "patch"].map(|verb| right(verb, name))).collect();
        access::require(hub, purpose, &rights).await?;
    }
    let rows = policies(hub, names, None).await?;
    let objects: Vec<&HubPolicy> = rows.iter().map(|row| &row.object).collect();
    let all = changes(&objects, to).map_err(SwitchFailure::Refused)?;
    let of = |(row, switching)| Switchable { row, changes: switching != Switching::Nothing };
    Ok(rows.into_iter().zip(all).map(of).collect())
}

/// Switches what was found, each on its own: one that fails does not keep the others from it. `each` hears of every policy as soon
/// as it is done. What has changed since it was found is looked at again; a step is of the versions that were found, and of no
/// others. What came of each, by name; its failure is as of [`find_switchable`], or a [`Reason::Conflict`].
pub async fn switch_policies(
    hub: &Cluster,
    found: Vec<Switchable>,
    to: Change,
    dry_run: DryRun,
    narrator: &dyn Narrator,
    mut each: impl FnMut(&Applied),
) -> Vec<(String, Result<Applied, SwitchFailure>)> {
    let mut all = Vec::new();
    for found in found {
        let name = found.row.name().to_owned();
        let done = one(hub, found, to, dry_run).await;
        if let Ok(applied) = &done {
            each(applied);
            if dry_run == DryRun::No && applied.outcome.is_change() {
                narrator.tell(Event::done(format!("{} {}", applied.manifest.reference(), applied.outcome.word())));
            }
        }
        all.push((name, done));
    }
    all
}

async fn one(hub: &Cluster, found: Switchable, to: Change, dry_run: DryRun) -> Result<Applied, SwitchFailure> {
    let Switchable { row, changes } = found;
    let mut policy = row.object;
    let api: Api<HubPolicy> = Api::all(hub.client.clone());
    let name = policy.metadata.name.clone().unwrap_or_default();
    let value = |policy: &HubPolicy| serde_json::to_value(policy).unwrap_or(Value::Null);
    let done = |before: &HubPolicy, outcome, after: Value| Applied {
        manifest: Manifest::of(before),
        outcome,
        before: Some(value(before)),
        after,
    };
    let found = policy.clone();
    let mut tries = 0;
    loop {
        if policy.metadata.deletion_timestamp.is_some() {
            return Err(Failure::new(Reason::Conflict, format!("policy {name:?} is being deleted")).into());
        }
        let switching = match changes {
            true => change(&policy, to).map_err(|error| SwitchFailure::Refused(Refusal::One(name.clone(), error)))?,
            false => Switching::Nothing,
        };
        let patch = match switching {
            Switching::Nothing => return Ok(done(&policy, Outcome::Unchanged, value(&policy))),
            Switching::Patch(patch) => Patch::Merge(patch),
            Switching::JsonPatch(patch) => {
                Patch::Json(serde_json::from_value(Value::Array(patch)).map_err(|error| {
                    Failure::new(Reason::Invalid, format!("the change of policy {name:?} cannot be written: {error}"))
                })?)
            }
        };
        if dry_run == DryRun::Client {
            return Ok(done(&policy, Outcome::Configured, Value::Null));
        }
        let params = PatchParams {
            dry_run: dry_run == DryRun::Server,
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let failure = match api.patch(&name, &params, &patch).await {
            Ok(after) => return Ok(done(&policy, Outcome::Configured, value(&after))),
            Err(error) => hub.explain(format_args!("change policy {name:?}"), error),
        };
        tries += 1;
        if failure.reason != Reason::Conflict || tries == TRIES {
            return Err(no_policy_engine(failure).into());
        }
        tokio::time::sleep(PAUSE * tries).await;
        let read = api.get(&name).await;
        policy = read.map_err(|error| hub.explain(format_args!("read policy {name:?}"), error))?;
        // Once more, it would be a step of other versions than those that somebody has looked at.
        if matches!(to, Change::Step(_)) && !is_as_found(&found, &policy) {
            return Err(Failure::new(Reason::Conflict, format!("policy {name:?} has changed since it was looked at"))
                .because("by somebody else, or by this command, whose answer was lost on its way")
                .hint(Remedy::SeePolicy(name))
                .into());
        }
    }
}
