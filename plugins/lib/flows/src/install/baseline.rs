//! `install baseline`: policies of the API server itself.

use std::time::{Duration, Instant};

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::Api;
use ocm_api::Manifest;
use ocm_core::baseline::{self, Enforcement, Settings};
use ocm_core::plan::{Applied, Mode, Plan};
use ocm_core::{Event, Failure, Narrator, Reason, Silent};
use ocm_kube::access::Right;
use ocm_kube::admission::Answer;
use ocm_kube::wait::{Check, until};
use ocm_kube::{Cluster, access, apply};
use serde_json::Value;

use super::preflight;
use super::probe::{self, PAUSE, Seen};
use crate::registry::all_bound_accounts;

/// What the rights are needed for.
const PURPOSE: &str = "install the baseline";

/// What is wanted.
#[derive(Clone, Debug)]
pub struct BaselineRequest {
    /// What was chosen about it.
    pub settings: Settings,
    /// What is done with the plan.
    pub mode: Mode,
    /// Wait until it is in force, for so long.
    pub wait: Option<Duration>,
}

/// What an installation came to.
#[derive(Debug)]
pub struct BaselineInstalled {
    /// The settings, with the users whom the hub itself lets register clusters.
    pub settings: Settings,
    /// Every object of the plan with what became of it.
    pub applied: Vec<Applied>,
    /// Whether the API server was seen to answer by it, which on a cluster that is no hub yet nobody can; or why not. None
    /// if nobody waited for it.
    pub in_force: Option<Result<bool, Failure>>,
}

/// The plan of a hub at which nobody looks.
pub fn new_baseline(settings: &Settings) -> Plan {
    baseline::plan(settings)
}

/// Installs the baseline, or does with its plan what the request says. `each` hears of every object as soon as it is
/// there.
///
/// # Errors
/// When the cluster cannot be read, or is too old; the failure of a request.
pub async fn install_baseline(
    cluster: &Cluster,
    request: &BaselineRequest,
    narrator: &dyn Narrator,
    each: impl FnMut(&Applied),
) -> Result<BaselineInstalled, Failure> {
    narrator.tell(Event::now(format!("looking at {}", cluster.label())));
    let version = preflight::server_version(cluster).await?;
    if version.number < (1, baseline::FIRST_MINOR) {
        let sentence = format!(
            "the cluster runs Kubernetes {}, and its API server knows ValidatingAdmissionPolicies from 1.{} on",
            version.text,
            baseline::FIRST_MINOR
        );
        return Err(Failure::refused(sentence).hint("nothing was installed; accept checks the same rules itself"));
    }
    if request.mode.changes() {
        narrator.tell(Event::now("checking your rights"));
        access::require(cluster, PURPOSE, &rights(request)).await?;
    }
    let settings = with_bound_accounts(cluster, &request.settings, narrator).await?;
    let plan = baseline::plan(&settings);
    let applied = apply::plan(cluster, &plan, request.mode.dry_run(), narrator, each).await?;
    let in_force = match request.wait.filter(|_| request.mode.changes()) {
        Some(timeout) => Some(in_force(cluster, &settings, timeout, narrator).await),
        None => None,
    };
    Ok(BaselineInstalled { settings, applied, in_force })
}

/// The rights that it takes.
pub(super) fn rights(request: &BaselineRequest) -> Vec<Right> {
    let mut rights = access::to_apply(&baseline::plan(&request.settings));
    rights.push(Right::new("list", "rbac.authorization.k8s.io", "clusterrolebindings"));
    rights.extend(request.wait.iter().flat_map(|_| probe::rights()));
    rights
}

/// Whether the hub has a baseline already, with other settings than these or of another release.
///
/// # Errors
/// When the cluster cannot be read.
pub(super) async fn is_another_there(cluster: &Cluster, settings: &Settings) -> Result<bool, Failure> {
    let settings = with_bound_accounts(cluster, settings, &Silent).await?;
    let plan = baseline::plan(&settings);
    let shows = |object: &&Manifest| object.kind() == baseline::POLICY_KIND && object.name() == baseline::ANSWERED_BY;
    let Some(policy) = plan.objects().find(shows) else { return Ok(false) };
    let live = apply::read(cluster, policy).await?;
    Ok(live.is_some_and(|live| !baseline::is_as_wanted(&live, &settings)))
}

/// Whether the hub's baseline refuses what these settings would only warn of.
///
/// # Errors
/// When the cluster cannot be read.
pub(super) async fn refuses_more(cluster: &Cluster, settings: &Settings) -> Result<bool, Failure> {
    let denies = |binding: &Value| {
        let actions = binding.pointer("/spec/validationActions").and_then(Value::as_array);
        actions.is_some_and(|actions| actions.iter().any(|action| action == "Deny"))
    };
    let plan = baseline::plan(settings);
    for binding in plan.objects().filter(|object| object.kind() == baseline::BINDING_KIND && !denies(object.body())) {
        if apply::read(cluster, binding).await?.is_some_and(|live| denies(&live)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whom the hub lets register clusters has to be known: the baseline would refuse what is right.
async fn with_bound_accounts(
    cluster: &Cluster,
    settings: &Settings,
    narrator: &dyn Narrator,
) -> Result<Settings, Failure> {
    let mut settings = settings.clone();
    for account in all_bound_accounts(cluster).await? {
        if !settings.requests.requesters.contains(&account) {
            narrator.tell(Event::note(format!("the hub lets {account} register clusters: so does the baseline")));
            settings.requests.requesters.push(account);
        }
    }
    Ok(settings)
}

/// Waits until the API server answers by these very settings, as a dry run of a wrong cluster shows.
async fn in_force(
    cluster: &Cluster,
    settings: &Settings,
    timeout: Duration,
    narrator: &dyn Narrator,
) -> Result<bool, Failure> {
    let wanted = baseline::answer(settings);
    let refuses = settings.enforcement == Enforcement::Deny;
    let is_right = |answer: &Answer| matches!(answer, Answer::Refused(_)) == refuses && answer.said().contains(&wanted);
    until("waiting for the baseline to take effect", Instant::now() + timeout, PAUSE, narrator, async || {
        if let Some(name) = unread(cluster).await? {
            return Ok(Check::Unwatched(format!("the API server has not checked {name} yet")));
        }
        Ok(match probe::ask(cluster, is_right).await? {
            Seen::All => Check::Ready(true),
            Seen::NotYet => Check::Unwatched("the API server does not answer by it yet".to_owned()),
            Seen::NoHub => {
                let note = "this is no hub yet: the baseline takes effect as soon as it serves managed clusters";
                narrator.tell(Event::note(note));
                Check::Ready(false)
            }
        })
    })
    .await
}

/// The first policy that the API server has not checked since it was changed. What its check complains about is told as
/// a failure: such an expression would refuse everything.
async fn unread(cluster: &Cluster) -> Result<Option<&'static str>, Failure> {
    let api: Api<ValidatingAdmissionPolicy> = Api::all(cluster.client.clone());
    for name in baseline::NAMES {
        let policy = api.get(name).await.map_err(|error| cluster.explain(format_args!("read policy {name}"), error))?;
        let status = policy.status.unwrap_or_default();
        if status.observed_generation != policy.metadata.generation {
            return Ok(Some(name));
        }
        let warnings = status.type_checking.and_then(|checking| checking.expression_warnings).unwrap_or_default();
        if let Some(warning) = warnings.first() {
            let sentence = format!("the API server cannot use {} of policy {name}", warning.field_ref);
            return Err(Failure::new(Reason::Other, sentence).because(warning.warning.trim().to_owned()));
        }
    }
    Ok(None)
}
