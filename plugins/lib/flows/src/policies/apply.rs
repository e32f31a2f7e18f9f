//! Applying policies and their modules, and waiting until they are in force.

use std::time::{Duration, Instant};

use kube::Api;
use kube::api::WatchParams;
use ocm_api::HubPolicy;
use ocm_api::conditions::find;
use ocm_api::conditions::hub_policy::ENFORCING;
use ocm_api::policy::PolicyMode;
use ocm_core::hub_policy::{Loading, loading, mended};
use ocm_core::plan::{Applied, Mode, Plan};
use ocm_core::{DryRun, Event, Failure, Narrator, Reason, Remedy};
use ocm_kube::triggers::Triggers;
use ocm_kube::wait::{Check, until_triggered};
use ocm_kube::{Cluster, access, apply};
use serde_json::Value;

use super::list::no_policy_engine;

/// What the rights are needed for.
const PURPOSE: &str = "apply policies";
/// How often the hub is asked where nothing tells of changes.
const PAUSE: Duration = Duration::from_millis(500);
/// How long what is said of a policy that has not changed itself may be of its former module: the controller looks at
/// modules every 10 seconds.
const MODULE_IS_SEEN: Duration = Duration::from_secs(15);

/// What is wanted.
#[derive(Clone, Debug)]
pub struct ApplyRequest {
    /// Modules and policies.
    pub plan: Plan,
    /// Digests of the modules of policies, where they are known: name and digest.
    pub digests: Vec<(String, String)>,
    /// What is done with the plan.
    pub mode: Mode,
    /// Wait until the policies are in force, for so long.
    pub wait: Option<Duration>,
}

/// What it came to.
#[derive(Debug)]
pub struct PoliciesApplied {
    /// Every object of the plan with what became of it.
    pub applied: Vec<Applied>,
    /// Whether all policies are in force, or why not; none if nobody waited for it.
    pub in_force: Option<Result<(), Failure>>,
}

/// A policy that is waited for.
struct Awaited {
    name: String,
    generation: i64,
    sha256: Option<String>,
    /// Until when a failure may be that of the former module.
    patient: Option<Instant>,
}

/// Applies policies and their modules, or does with the plan what the request says. `each` hears of every object as soon
/// as it is there.
///
/// # Errors
/// When a right is missing, or the hub has no policy engine; the failure of a request.
pub async fn apply_policies(
    hub: &Cluster,
    request: &ApplyRequest,
    narrator: &dyn Narrator,
    each: impl FnMut(&Applied),
) -> Result<PoliciesApplied, Failure> {
    if request.mode.changes() {
        narrator.tell(Event::now("checking your rights"));
        access::require(hub, PURPOSE, &access::to_apply(&request.plan)).await?;
    }
    // A module that no policy can name would be left behind.
    if request.plan.objects().any(|object| object.kind() == "HubPolicy") {
        engine_is_there(hub).await?;
    }
    let applied = apply::plan(hub, &request.plan, request.mode.dry_run(), narrator, each).await;
    let applied = applied.map_err(no_policy_engine)?;
    let in_force = match request.wait.filter(|_| request.mode.dry_run() == DryRun::No) {
        Some(timeout) => Some(in_force(hub, request, &applied, timeout, narrator).await),
        None => None,
    };
    Ok(PoliciesApplied { applied, in_force })
}

/// Whether the hub serves HubPolicies.
async fn engine_is_there(hub: &Cluster) -> Result<(), Failure> {
    let resource = <HubPolicy as kube::Resource>::api_version(&());
    match hub.client.list_api_group_resources(&resource).await {
        Ok(_) => Ok(()),
        Err(error) => {
            let failure = hub.explain("ask what the cluster serves", error);
            Err(match failure.reason {
                Reason::NotFound | Reason::KindNotServed => {
                    Failure::new(Reason::KindNotServed, "the policy engine is not installed on this cluster")
                        .hint(Remedy::InstallPolicyEngine)
                }
                _ => failure,
            })
        }
    }
}

/// Waits until every policy is in force. The first that cannot be ends the wait.
async fn in_force(
    hub: &Cluster,
    request: &ApplyRequest,
    applied: &[Applied],
    timeout: Duration,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let begun = Instant::now();
    let changed = applied.iter().any(|one| one.manifest.kind() != "HubPolicy" && one.outcome.is_change());
    let policies = applied.iter().filter(|one| one.manifest.kind() == "HubPolicy");
    let mut awaited: Vec<Awaited> = policies
        .map(|one| Awaited {
            name: one.manifest.name().to_owned(),
            generation: one.after["metadata"]["generation"].as_i64().unwrap_or_default(),
            sha256: request
                .digests
                .iter()
                .find(|(name, _)| name == one.manifest.name())
                .map(|(_, sha256)| sha256.clone()),
            patient: (changed && is_as_it_was(one)).then(|| begun + MODULE_IS_SEEN),
        })
        .collect();
    let api: Api<HubPolicy> = Api::all(hub.client.clone());
    let triggers = Triggers::default().of(api.clone(), WatchParams::default());
    let doing = "waiting until the policies are in force";
    let waited = until_triggered(doing, begun + timeout, PAUSE, triggers, narrator, async || {
        while let Some(Awaited { name, generation, sha256, patient }) = awaited.last() {
            let policy = api.get(name).await;
            let policy = policy.map_err(|error| hub.explain(format_args!("read policy {name:?}"), error))?;
            match loading(&policy, *generation, sha256.as_deref()) {
                Loading::Loaded => {
                    not_enforcing(&policy, narrator);
                    awaited.pop();
                }
                Loading::Waits(why) => return Ok(Check::Unwatched(why)),
                Loading::Failed(why) if patient.is_some_and(|until| Instant::now() < until) => {
                    return Ok(Check::Unwatched(why));
                }
                Loading::Failed(why) => {
                    let sentence = format!("policy {name:?} is applied, and its new version is not in force");
                    return Ok(Check::Ready(Err(Failure::other(sentence).because(why).hint(mended(&policy)))));
                }
            }
        }
        Ok(Check::Ready(Ok(())))
    })
    .await;
    match waited {
        Ok(answer) => answer,
        Err(failure) if failure.reason == Reason::TimedOut => Err(failure.hint(Remedy::PolicyController)),
        Err(failure) => Err(failure),
    }
}

/// Whether nothing of a policy was changed that the controller would see. Who has set a field may have.
fn is_as_it_was(applied: &Applied) -> bool {
    let generation = |object: &Value| object["metadata"]["generation"].clone();
    applied.before.as_ref().is_some_and(|before| generation(before) == generation(&applied.after))
}

/// Tells of a policy that is in force and that nobody asks.
fn not_enforcing(policy: &HubPolicy, narrator: &dyn Narrator) {
    let conditions = policy.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let asked = find(conditions, ENFORCING).filter(|enforcing| enforcing.status != "True");
    if let Some(enforcing) = asked.filter(|_| !matches!(policy.spec.mode, PolicyMode::Warn | PolicyMode::Audit)) {
        let name = policy.metadata.name.as_deref().unwrap_or_default();
        narrator.tell(Event::warning(format!("{name} is in force and refuses nothing: {}", enforcing.message)));
    }
}
