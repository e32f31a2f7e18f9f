//! `install policy-engine`: the policy webhook, and the API server that asks it.
//!
//! ```text
//! rights ─▶ what is there ─▶ baseline ─▶ pods ─▶ ready ─▶ configurations that ignore failures ─▶ the API server was seen
//!                                                         to ask ─▶ configurations that do not
//! ```
//!
//! Whatever ends it before its last step leaves a hub on which nothing waits for a webhook that never answered. The same
//! command goes on from there.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use ocm_api::names::hub::DEFAULT_CLUSTER_SET;
use ocm_api::names::identity::BOOTSTRAP_USER;
use ocm_core::plan::{Applied, Mode, Plan};
use ocm_core::policy_engine::{
    self as engine, Certificates, Engine, FailurePolicy, Options, OptionsError, Running, Trust,
};
use ocm_core::workload::Health;
use ocm_core::{DryRun, Event, Failure, Narrator, Reason, Remedy, Stage, baseline};
use ocm_kube::access::Right;
use ocm_kube::admission::Answer;
use ocm_kube::wait::{Check, until};
use ocm_kube::{Cluster, access, apply, explain};
use ocm_policy_certificates::{Found, LEARNS, look, renew, trust_also};
use serde_json::Value;

use super::baseline::{self as first, BaselineRequest};
use super::cert_manager::{asked_for, can_issue, issued};
use super::preflight;
use super::probe::{self, PAUSE, Seen};
use crate::policies::{ended, mark, refuse_another, withdraw_for_another};
use crate::registry::all_bound_accounts;
use crate::workload;

/// What the rights are needed for.
const PURPOSE: &str = "install the policy engine";
/// How many answers in a row have to be the webhook's: several API servers may stand behind one address.
const IN_A_ROW: usize = 20;

/// What is wanted.
#[derive(Clone, Debug)]
pub struct EngineRequest {
    /// What was chosen about it.
    pub options: Options,
    /// The static baseline that comes with it, unless there is another one; none: without.
    pub baseline: Option<baseline::Settings>,
    /// What is done with the plan.
    pub mode: Mode,
    /// Wait until it is in force, for so long.
    pub wait: Option<Duration>,
}

/// What an installation came to.
#[derive(Debug)]
pub struct EngineInstalled {
    /// Every object with what became of it, in the order in which it was applied.
    pub applied: Vec<Applied>,
    /// Whether registrations wait for the webhook now.
    pub fails_closed: bool,
    /// Whether the API server was seen to ask it, or why not; none if nobody waited for it.
    pub in_force: Option<Result<(), Failure>>,
}

/// Why a policy engine could not be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineError {
    /// The options cannot be used with what is there; nothing was changed.
    Options(OptionsError),
    /// Another authority is brought in only by whoever waits until it is trusted; nothing was changed.
    NeedsWait,
    /// It failed.
    Failed(Failure),
}

impl From<OptionsError> for EngineError {
    fn from(error: OptionsError) -> Self {
        Self::Options(error)
    }
}

impl From<Failure> for EngineError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The plan of a hub at which nobody looks, with certificates that nobody else has.
///
/// # Errors
/// Options that cannot be used; certificates that cannot be made.
pub fn new_policy_engine(options: &Options, with: Option<&baseline::Settings>) -> Result<Plan, EngineError> {
    let certificates = renew(&Found::default(), Timestamp::now())?;
    let engine = engine::plan(options, &Running::default(), &certificates)?.whole(in_the_end(options));
    let before = with.map(baseline::plan).unwrap_or_default();
    Ok(Plan::new(before.stages.into_iter().chain(engine.stages)))
}

/// Installs the policy engine, or does with its plan what the request says. `each` hears of every object as soon as it is
/// there.
///
/// # Errors
/// When the cluster cannot be read, is no hub or too old; options that cannot be used; the failure of a request.
pub async fn install_policy_engine(
    cluster: &Cluster,
    request: &EngineRequest,
    narrator: &dyn Narrator,
    mut each: impl FnMut(&Applied),
) -> Result<EngineInstalled, EngineError> {
    narrator.tell(Event::now(format!("looking at {}", cluster.label())));
    // Whoever takes policies out of force from now on looks at what this makes.
    let emergency = if request.mode.changes() { Some(mark(cluster).await) } else { None };
    is_suited(cluster).await?;
    let mut request = request.clone();
    if request.options.issuer.is_none() {
        request.options.issuer = asked_for(cluster).await?.as_ref().and_then(engine::issuer);
    }
    let (request, options, outline) = (&request, &request.options, engine::outline(&request.options));
    if let Some(issuer) = &options.issuer {
        can_issue(cluster, issuer).await?;
    }
    if request.mode.changes() {
        narrator.tell(Event::now("checking your rights"));
        access::require(cluster, PURPOSE, &rights(request, &outline)).await?;
    }
    let now = access::clock(cluster).await?;
    let emergency = emergency.transpose()?.flatten();
    let emergency = emergency.as_deref();
    let live = survey(cluster, &outline).await?;
    // What cannot be used is told before anything is changed.
    let planned = engine::plan(options, &live.running(), &renew(&live.certificates, now)?)?;
    if planned.trust == Trust::Injected && live.is_ours() && request.mode.changes() && request.wait.is_none() {
        return Err(EngineError::NeedsWait);
    }

    let mut applied = Vec::new();
    if let Some(request) = before(cluster, request, narrator).await? {
        let installed = first::install_baseline(cluster, &request, narrator, &mut each).await?;
        applied.extend(installed.applied);
        installed.in_force.transpose()?;
    }
    // That may have taken its time, and runs that renew certificates go on meanwhile.
    let live = survey(cluster, &outline).await?;
    let certificates = renew(&live.certificates, now)?;
    let planned = engine::plan(options, &live.running(), &certificates)?;
    let planned = with_bound_accounts(cluster, planned, narrator).await?;
    let injected = planned.trust == Trust::Injected;
    let others = live.others.as_ref().zip(live.certificates.bundles.first()).filter(|_| !injected);
    let is_others = others.is_some();
    let planned = match others {
        Some((whose, bundle)) => {
            narrator.tell(Event::note(format!("{whose}: certificates and bundles stay as they are")));
            planned.with_others_certificates(&String::from_utf8_lossy(bundle))
        }
        None => planned,
    };
    let (dry_run, end) = (request.mode.dry_run(), in_the_end(options));
    if dry_run != DryRun::No {
        applied.extend(apply::plan(cluster, &planned.whole(end), dry_run, narrator, each).await?);
        return Ok(EngineInstalled { applied, fails_closed: live.fails, in_force: None });
    }
    let [before_pods, pods] = planned.halves();
    applied.extend(apply::plan(cluster, &before_pods, dry_run, narrator, &mut each).await?);
    let deadline = request.wait.map(|timeout| Instant::now() + timeout);
    if injected && let Some(deadline) = deadline {
        let authority = match issued(cluster, deadline, narrator).await {
            Ok(authority) => authority,
            Err(failure) => {
                let in_force = Some(Err(with_hint(failure)));
                return Ok(EngineInstalled { applied, fails_closed: live.fails, in_force });
            }
        };
        // Until the pods serve by it, the API server goes on trusting what they serve by now.
        if live.is_ours() && trust_also(cluster, &authority, narrator).await? {
            narrator.tell(Event::now("waiting until every API server knows cert-manager's authority"));
            tokio::time::sleep(LEARNS).await;
        }
    }
    applied.extend(apply::plan(cluster, &pods, dry_run, narrator, &mut each).await?);
    // What refuses already goes on doing so, unless it is to stop.
    let failure = if live.fails { end } else { FailurePolicy::Ignore };
    let Some(deadline) = deadline else {
        let configurations = planned.configurations(failure);
        refuse_another(cluster, emergency).await?;
        applied.extend(apply::plan(cluster, &configurations, dry_run, narrator, each).await?);
        ended(cluster, emergency, narrator).await?;
        return Ok(EngineInstalled { applied, fails_closed: failure == FailurePolicy::Fail, in_force: None });
    };
    let mut step = async |plan: &Plan| -> Result<(), Failure> {
        applied.extend(apply::plan(cluster, plan, dry_run, narrator, &mut each).await?);
        Ok(())
    };
    let mut fails_closed = live.fails;
    let is_alone = async || match is_others || injected {
        true => Ok(()),
        false => alone(cluster, &certificates).await,
    };
    let in_force = async {
        ready(cluster, deadline, narrator).await?;
        refuse_another(cluster, emergency).await?;
        is_alone().await?;
        step(&planned.configurations(failure)).await?;
        withdraw_for_another(cluster, emergency, narrator).await?;
        fails_closed = failure == FailurePolicy::Fail;
        asked(cluster, emergency, deadline, narrator).await?;
        ended(cluster, emergency, narrator).await?;
        if failure != end {
            refuse_another(cluster, None).await?;
            is_alone().await?;
            step(&planned.configurations(end)).await?;
            withdraw_for_another(cluster, None, narrator).await?;
            fails_closed = end == FailurePolicy::Fail;
            is_alone().await?;
        }
        if !is_others
            && !injected
            && let Some(secret) = next_serving(live.certificates, &certificates, now)?
        {
            narrator.tell(Event::now("waiting until every API server knows the new authority"));
            tokio::time::sleep(LEARNS).await;
            step(&secret).await?;
        }
        Ok(())
    };
    let in_force = in_force.await;
    Ok(EngineInstalled { applied, fails_closed, in_force: Some(in_force) })
}

/// Policies that are made now know whom the hub lets register clusters, as its baseline does: they would refuse what is right.
async fn with_bound_accounts(cluster: &Cluster, planned: Engine, narrator: &dyn Narrator) -> Result<Engine, Failure> {
    let mut new = Vec::new();
    for policy in planned.with_requesters() {
        if apply::read(cluster, policy).await?.is_none() {
            new.push(policy.name().to_owned());
        }
    }
    if new.is_empty() {
        return Ok(planned);
    }
    let mut accounts = all_bound_accounts(cluster).await?;
    accounts.retain(|account| account != BOOTSTRAP_USER);
    if accounts.is_empty() {
        return Ok(planned);
    }
    for account in &accounts {
        narrator.tell(Event::note(format!("the hub lets {account} register clusters: so do new policies")));
    }
    Ok(planned.knowing(&accounts, &new))
}

/// What becomes of registrations while nobody answers, when all is done.
fn in_the_end(options: &Options) -> FailurePolicy {
    if options.audit { FailurePolicy::Ignore } else { FailurePolicy::Fail }
}

/// Refuses a cluster that is too old, or no hub.
async fn is_suited(cluster: &Cluster) -> Result<(), Failure> {
    let version = preflight::server_version(cluster).await?;
    if version.number < (1, engine::FIRST_MINOR) {
        let sentence = format!(
            "the cluster runs Kubernetes {}, and webhooks have match conditions from 1.{} on",
            version.text,
            engine::FIRST_MINOR
        );
        let hint = "nothing was installed: without them kubelets would wait for the webhook, too";
        return Err(Failure::refused(sentence).hint(hint));
    }
    let probe = engine::probe();
    if let Err(error) = cluster.client.list_api_group_resources(probe.api_version()).await {
        if matches!(explain(&error).reason, Reason::NotFound | Reason::KindNotServed) {
            return Err(Failure::refused(format!(
                "this is no hub: it serves no managed clusters ({})",
                cluster.label()
            ))
            .hint(Remedy::NameHub));
        }
        return Err(cluster.explain("ask what the cluster serves", error));
    }
    Ok(())
}

/// Every right that it takes.
fn rights(request: &EngineRequest, outline: &Plan) -> Vec<Right> {
    let mut rights = access::to_apply(outline);
    // What is served now.
    for secret in [engine::AUTHORITY_SECRET, engine::SERVING_SECRET] {
        rights.push(Right::new("get", "", "secrets").on(secret).within(engine::NAMESPACE));
    }
    if request.options.issuer.is_some() {
        rights.push(Right::new("get", "", "secrets").on(engine::ISSUED_SECRET).within(engine::NAMESPACE));
    }
    // Nobody can grant what they do not hold, unless they may escalate.
    for role in outline.objects().filter(|object| matches!(object.kind(), "ClusterRole" | "Role")) {
        for verb in ["escalate", "bind"] {
            let right = Right::new(verb, role.group(), role.plural()).on(role.name());
            rights.push(role.namespace().map_or(right.clone(), |namespace| right.within(namespace)));
        }
    }
    if !request.options.without_policies {
        // Who registers clusters.
        rights.push(Right::new("list", "rbac.authorization.k8s.io", "clusterrolebindings"));
    }
    if let Some(settings) = &request.baseline {
        let baseline = BaselineRequest { settings: settings.clone(), mode: request.mode, wait: request.wait };
        rights.extend(first::rights(&baseline));
    }
    if request.wait.is_some() {
        rights.extend(probe::rights_on(&engine::probe()));
        // The hub puts what has no set into the default one, and asks whether its creator may.
        let sets = Right::new("create", "cluster.open-cluster-management.io", "managedclustersets/join");
        rights.push(sets.on(DEFAULT_CLUSTER_SET));
        // Why a pod is not ready.
        let of_pods = [("list", "pods"), ("get", "pods/log"), ("list", "events")];
        rights.extend(of_pods.map(|(verb, what)| Right::new(verb, "", what).within(engine::NAMESPACE)));
    }
    rights
}

/// The baseline that is to be installed, if any: one that somebody has chosen otherwise stays.
async fn before(
    cluster: &Cluster,
    request: &EngineRequest,
    narrator: &dyn Narrator,
) -> Result<Option<BaselineRequest>, Failure> {
    let Some(settings) = &request.baseline else { return Ok(None) };
    if first::is_another_there(cluster, settings).await? {
        narrator.tell(Event::note("the hub has a baseline with other settings or of another release, which stays"));
        return Ok(None);
    }
    if first::refuses_more(cluster, settings).await? {
        narrator.tell(Event::note("the hub's baseline refuses already what is wrong, which stays"));
        return Ok(None);
    }
    Ok(Some(BaselineRequest { settings: settings.clone(), mode: request.mode, wait: request.wait }))
}

/// What the hub holds.
struct Live {
    deployment: Option<Value>,
    account: Option<Value>,
    renewal: Option<Value>,
    /// What cert-manager is asked for.
    certificate: Option<Value>,
    network_policy: Option<Value>,
    /// Whose the certificates are, in words; none: ours.
    others: Option<String>,
    certificates: Found,
    /// Whether registrations wait for the webhook.
    fails: bool,
}

impl Live {
    /// Whether the API server asks a webhook that serves by an authority of our own.
    fn is_ours(&self) -> bool {
        self.deployment.is_some() && !self.running().is_issued() && !self.certificates.bundles.is_empty()
    }

    fn running(&self) -> Running<'_> {
        let Self { deployment, account, renewal, certificate, network_policy, .. } = self;
        Running {
            deployment: deployment.as_ref(),
            account: account.as_ref(),
            renews: renewal.is_some(),
            certificate: certificate.as_ref(),
            network_policy: network_policy.as_ref(),
        }
    }
}

async fn survey(cluster: &Cluster, outline: &Plan) -> Result<Live, Failure> {
    let find =
        async |kind: &str, name: &str| match outline.objects().find(|one| one.kind() == kind && one.name() == name) {
            Some(manifest) => apply::read(cluster, manifest).await,
            None => Ok(None),
        };
    let deployment = find("Deployment", engine::WEBHOOK).await?;
    let account = find("ServiceAccount", engine::WEBHOOK).await?;
    let renewal = find("CronJob", engine::CERTIFICATES).await?;
    let network_policy = find("NetworkPolicy", engine::WEBHOOK).await?;
    let certificate = asked_for(cluster).await?;
    let seen = look(cluster).await?;
    let (others, certificates, fails) = (seen.foreign(), seen.found, seen.fails);
    Ok(Live { deployment, account, renewal, certificate, network_policy, others, certificates, fails })
}

/// Refuses where the pods get another authority by now than the one that API servers are told to trust: two that are made at the
/// same time do not know of each other.
async fn alone(cluster: &Cluster, made: &Certificates) -> Result<(), Failure> {
    let now = look(cluster).await?.found.authority;
    if now.is_some_and(|now| now.certificate == made.authority.certificate) {
        return Ok(());
    }
    Err(Failure::new(Reason::Conflict, "somebody else installs the policy engine at the same time")
        .because("its pods serve by another authority than the one of this run")
        .hint(Remedy::RunAgain))
}

/// Waits until every pod answers.
async fn ready(cluster: &Cluster, deadline: Instant, narrator: &dyn Narrator) -> Result<(), Failure> {
    let pause = Duration::from_millis(500);
    until("waiting for the pods of the policy engine", deadline, pause, narrator, async || {
        for name in [engine::WEBHOOK, engine::CONTROLLER] {
            match workload::deployment(cluster, engine::NAMESPACE, name).await? {
                Health::Ready => {}
                Health::NotYet(lack) | Health::Stuck(lack) => return Ok(Check::Unwatched(lack.text())),
            }
        }
        Ok(Check::Ready(()))
    })
    .await
    .map_err(with_hint)
}

/// Waits until the API server was seen to ask the webhook.
pub(super) async fn asked(
    cluster: &Cluster,
    emergency: Option<&str>,
    deadline: Instant,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let is_right = |answer: &Answer| matches!(answer, Answer::Refused(said) if engine::is_answer(said));
    until("waiting until the API server asks the webhook", deadline, PAUSE, narrator, async || {
        Ok(match probe::ask_with(cluster, &engine::probe(), IN_A_ROW, is_right).await {
            // A webhook that has to answer did not: the one that is being installed again, or the hub's own.
            Err(failure) if failure.reason == Reason::Admission => Check::Unwatched(failure.to_string()),
            Err(failure) => return Err(failure),
            Ok(Seen::All) => Check::Ready(()),
            Ok(Seen::NotYet) => {
                // Where policies were taken out of force, it will not.
                withdraw_for_another(cluster, emergency, narrator).await?;
                Check::Unwatched("the API server does not reach it, or does not trust it yet".to_owned())
            }
            Ok(Seen::NoHub) => Check::Unwatched("the hub serves no managed clusters".to_owned()),
        })
    })
    .await
    .map_err(with_hint)
}

fn with_hint(failure: Failure) -> Failure {
    // A refusal has taken back what was applied, and says itself what to do.
    if failure.reason == Reason::Refused {
        return failure;
    }
    failure.hint("what was applied stays: mend it and run the same command again, it goes on from there")
}

/// The certificate that may follow now that the bundle is applied; none if the one that is there stays.
fn next_serving(before: Found, made: &Certificates, now: Timestamp) -> Result<Option<Plan>, Failure> {
    let Certificates { authority, serving, bundle } = made.clone();
    let bundles = vec![bundle.into_bytes(); before.bundles.len()];
    if before.bundles == bundles {
        return Ok(None);
    }
    let found = Found { authority: Some(authority), serving: Some(serving), bundles };
    let next = renew(&found, now)?;
    let secret = (next.serving != made.serving).then(|| engine::serving_secret(&next));
    Ok(secret.map(|secret| Plan::new([Stage::new("the next certificate", vec![secret])])))
}
