//! From a request to a joined cluster.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use ocm_api::operator::KlusterletMode;
use ocm_core::accept::Options as AcceptOptions;
use ocm_core::join;
use ocm_core::join::progress::{Former, Goal};
use ocm_core::kubeconfig::HubAddress;
use ocm_core::phase::Phase;
use ocm_core::plan::{Applied, Mode};
use ocm_core::{Event, Failure, Narrator, Plan, Remedy, Silent};
use ocm_kube::{Cluster, apply};

use super::bootstrap::credential_of;
use super::former_hub::{LeftHub, Still};
use super::handover::{self, Handover};
use super::hub_access::TrustedBy;
use super::prepare::prepare;
use super::prepared::Prepared;
use super::request::Request;
use super::session::HubSession;
use super::{fallback, follow, former_hub, from_host, hub_change, on_hub, survey, tidy, webhooks};
use crate::token;

/// How long a token lives that a join with access to both clusters makes for itself.
const MINTED: Duration = Duration::from_secs(3600);

/// The same, where a person has to approve what the agent asks for with it.
const PERSON: Duration = Duration::from_secs(24 * 3600);

/// What a join came to.
#[derive(Debug)]
pub struct Joined {
    /// The hub as the agents dial it.
    pub hub: HubAddress,
    /// Why it is believed to be the hub.
    pub trusted_by: TrustedBy,
    /// Whether it had joined before, and stays so; perhaps in another mode.
    pub before: bool,
    /// Whether it had joined before, and its agent registers anew because its way to the hub was changed, or its driver, or because
    /// it has no valid certificate any more.
    pub anew: bool,
    /// The mode to which a cluster that had joined before moves.
    pub moves: Option<KlusterletMode>,
    /// What was planned; empty if it had joined before and stays so, unless the plan is only rendered.
    pub plan: Plan,
    /// Every object of the plan with what became of it; empty if the plan is only rendered.
    pub applied: Vec<Applied>,
    /// The hub that it leaves for this one, if it is on its way from one.
    pub former: Option<LeftHub>,
    /// How far the cluster has come, where that was followed, or why it could not be followed further.
    pub followed: Result<Option<Phase>, Failure>,
}

/// Joins the cluster, or does with the plan what the request says. `managed` is where the agents run. `each` hears of every
/// object as soon as it is there, and on which cluster: in the hosted modes there are two.
///
/// Boxed: whoever awaits it, a command or a fleet, holds no copy of all that it consists of.
///
/// # Errors
/// A refusal before anything is touched; the failure of a request.
pub fn join<'a>(
    managed: &'a Cluster,
    request: &'a Request,
    narrator: Arc<dyn Narrator>,
    each: &'a mut dyn FnMut(&Cluster, &Applied),
) -> LocalBoxFuture<'a, Result<Joined, Failure>> {
    carried_out(managed, request, narrator, each).boxed_local()
}

async fn carried_out(
    managed: &Cluster,
    request: &Request,
    narrator: Arc<dyn Narrator>,
    each: &mut dyn FnMut(&Cluster, &Applied),
) -> Result<Joined, Failure> {
    let mut prepared = prepare(managed, request, narrator.clone()).await?;
    let mut still = request.mode.changes().then_some(Still::NotYet);
    let mut applied = match request.mode {
        Mode::Render => Vec::new(),
        mode if !mode.changes() => {
            let narrator = narrator.as_ref();
            let mut applied = match &prepared.guest {
                Some(guest) => guest.account.make(mode, narrator, each).await?,
                None => Vec::new(),
            };
            let here = |applied: &Applied| each(managed, applied);
            applied.extend(apply::plan(managed, &prepared.plan, mode.dry_run(), narrator, here).await?);
            for gone in prepared.fallback.clear(managed, mode.dry_run()).await? {
                each(managed, &gone);
                applied.push(gone);
            }
            if let Mode::Apply(_) = mode {
                let phase = (request.wait == Some(Goal::Available)).then_some(Phase::Available);
                still = hub_change::finish(managed, request, &prepared, phase, narrator, &mut applied, each).await?;
            }
            applied
        }
        _ if prepared.stays() => Vec::new(),
        _ => carry_out(managed, request, &mut prepared, narrator.as_ref(), each).await?,
    };
    if prepared.back && request.mode.changes() {
        former_hub::forget_way(managed, &prepared.survey.names.klusterlet, narrator.as_ref()).await?;
    }
    let mut followed = match request.mode.changes() {
        true => follow(managed, request, &prepared, narrator.clone()).await,
        false => Ok(None),
    };
    if let (Some(phase), true) = (followed.as_ref().ok().copied(), request.mode.changes()) {
        let narrator = narrator.as_ref();
        match hub_change::finish(managed, request, &prepared, phase, narrator, &mut applied, each).await {
            Ok(kept) => still = kept,
            Err(failure) => followed = Err(failure),
        }
    }
    let Prepared { hub, plan, joined, anew, moving, waits, former, .. } = prepared;
    let former = former.map(|former| LeftHub { server: former.change.from.server, still });
    // Nobody followed it: it stands where it was found.
    let followed = followed.map(|phase| phase.or((waits && !anew).then_some(Phase::Pending)));
    let HubSession { address, trusted_by, .. } = hub;
    let moves = moving.map(|moving| moving.to);
    Ok(Joined { hub: address, trusted_by, before: joined && !anew, anew, moves, plan, applied, former, followed })
}

/// Makes the token, if one is missing, and changes both clusters.
async fn carry_out(
    managed: &Cluster,
    request: &Request,
    prepared: &mut Prepared<'_>,
    narrator: &dyn Narrator,
    each: &mut dyn FnMut(&Cluster, &Applied),
) -> Result<Vec<Applied>, Failure> {
    let Prepared {
        hub,
        survey,
        guest,
        plan,
        kubeconfig,
        token_is_missing,
        joined,
        adopts,
        anew,
        by_grpc,
        fallback,
        handover,
        former,
        ..
    } = prepared;
    // Where it has joined, the operator is there already.
    if let Some(guest) = guest.as_ref().filter(|_| !*joined) {
        from_host::check(managed, guest, survey, plan, narrator).await;
    }
    if let Some(former) = former {
        former.note(managed, &survey.names.klusterlet, &hub.address.server, narrator).await?;
    }
    if let (true, Some(admin), Some(kubeconfig)) = (*token_is_missing, hub.admin(), kubeconfig) {
        let life = match handover {
            _ if fallback.is_several => fallback::TOKEN,
            // Until somebody has looked at it, the agent needs its token.
            Some(Handover::ByPerson(_)) => PERSON,
            None if (*anew || former.is_some()) && request.accept.is_none() => PERSON,
            _ => MINTED,
        };
        let (token, ends) = token::service_account_token(admin, life).await?;
        if fallback.is_several {
            fallback::tell_end(&hub.address.server, ends, narrator);
        }
        kubeconfig.token = token;
        plan.replace(join::bootstrap_secret(&survey.names.namespace, kubeconfig));
    }
    fallback.carry_out(&survey.names.namespace, &request.settings.name, plan, narrator).await?;
    if *adopts {
        hub.adopt_namespace(&request.settings.name).await?;
        narrator.tell(Event::done(format!("gave the cluster the hub's namespace {:?}", request.settings.name)));
    }
    let (mut applied, mut kept) = (Vec::new(), None);
    if let Some(guest) = guest {
        applied = guest.account.make(request.mode, narrator, each).await?;
        let (secret, token) = guest.account.token(narrator).await?;
        let holder = join::external_secret(&survey.names.namespace, &guest.kubeconfig(&token));
        plan.replace(holder.clone());
        kept = Some((guest, secret, holder));
    }
    survey::clear(managed, &survey.stale, narrator).await;
    let here = |applied: &Applied| each(managed, applied);
    applied.extend(apply::plan(managed, plan, request.mode.dry_run(), narrator, here).await?);
    for gone in fallback.clear(managed, request.mode.dry_run()).await? {
        each(managed, &gone);
        if gone.outcome.is_change() {
            narrator.tell(Event::done(format!("{} deleted", gone.manifest.reference())));
        }
        applied.push(gone);
    }
    tidy::tidy(managed, survey, *by_grpc, narrator).await?;
    // The operator has the new one now.
    if let Some((guest, secret, holder)) = kept {
        guest.account.settle(&secret, (managed, &holder), narrator).await?;
    }
    Ok(applied)
}

/// Accepts the cluster and follows its agent, as far as either is wanted.
async fn follow(
    managed: &Cluster,
    request: &Request,
    prepared: &Prepared<'_>,
    narrator: Arc<dyn Narrator>,
) -> Result<Option<Phase>, Failure> {
    let Prepared {
        hub,
        survey,
        kubeconfig,
        joined,
        anew,
        moving,
        strangers,
        by_grpc,
        fallback: further,
        is_renewed,
        away,
        handover,
        ..
    } = prepared;
    let deadline = Instant::now() + request.timeout;
    let name = &request.settings.name;
    if let Some(there) = away {
        fallback::tell_away(name, there, further, narrator.as_ref());
        // What its former agents leave is on the cluster itself.
        if let Some(moving) = moving {
            moving.tidy(managed, narrator.as_ref()).await?;
        }
        return Ok(None);
    }
    let credential = credential_of(kubeconfig.as_ref(), strangers);
    let registrar = match kubeconfig {
        Some(kubeconfig) => Some(on_hub::Registrar::of(kubeconfig, Arc::new(Silent)).await?),
        None => None,
    };
    let way = kubeconfig.as_ref().map(|kubeconfig| &kubeconfig.hub).filter(|_| *anew || !*joined);
    let anew = anew.then(Former::default);
    let client = hub.client();
    let moves = moving.clone();
    let settles = *is_renewed;
    let mut follower = follow::Follower {
        managed,
        hub: client,
        name,
        registrar,
        survey,
        credential,
        way,
        anew,
        moving: moves,
        settles,
    };
    let (mut phase, mut incomplete) = (None, None);
    if let (Some(accept), Some(admin)) = (&request.accept, hub.admin()) {
        phase = Some(follower.until(Goal::Registered, deadline, narrator.as_ref()).await?);
        let own = follower.own_key(admin, deadline, narrator.as_ref()).await?;
        if !own.settled {
            // This key and no other: whoever holds a token can ask in the name of any cluster.
            // It is the agent that was just installed: who used the name before was said before. Of a cluster that has joined
            // the name goes from the agent's former key to its new one, if the hub itself says that the former one is of the name.
            let (replace, mut uid) = match handover {
                Some(Handover::ByPerson(why)) => {
                    return Err(Failure::refused(format!(
                        "the hub says that {name} has joined, and the key {} with which its agent asks for a new certificate \
                         was not approved: {why}",
                        own.key
                    ))
                    .hint(Remedy::ReplaceKey(name.clone(), own.key)));
                }
                Some(Handover::ByItself(uid)) => (true, Some(uid.clone())),
                None => (false, None),
            };
            // A run that was killed may have approved it, and approved requests are cleaned up. Then the hub says whose
            // certificate it is that the agent holds.
            let without_request = !own.is_known && handover.is_none();
            if without_request {
                let doubt = match handover::of(managed, hub, survey, name).await? {
                    Handover::ByPerson(why) => Some(why),
                    Handover::ByItself(its) => {
                        let others = hub.noted_others(name, &its, &own.key).await?;
                        uid = Some(its);
                        others.then(|| "the hub has noted another key of it besides".to_owned())
                    }
                };
                if let Some(why) = doubt {
                    return Err(Failure::refused(format!(
                        "the hub has no request of the key {} whose certificate the agent of {name} holds, so {name} was not \
                         accepted: {why}",
                        own.key
                    ))
                    .hint(Remedy::SeeRequests(name.clone())));
                }
            }
            let accept = AcceptOptions {
                fingerprint: Some(own.key),
                former: own.former,
                uid,
                reuse_name: true,
                replace,
                without_request,
                ..accept.clone()
            };
            // The acceptance is the last that is written to it.
            incomplete = webhooks::are_missing(admin).await?.then_some(admin);
            crate::accept::when_asked(admin, name, &accept, deadline, narrator.clone()).await?;
            narrator.tell(Event::done(format!("accepted {name}")));
            phase = Some(Phase::Accepted);
        }
    }
    if let Some(goal) = request.wait {
        phase = Some(follower.until(goal, deadline, narrator.as_ref()).await?);
    }
    if anew.is_some() && phase.is_some() {
        // The former agent may have written once more before its pod ended.
        tidy::tidy(managed, survey, *by_grpc, &Silent).await?;
    }
    if let Some(moving) = moving {
        moving.tidy(managed, narrator.as_ref()).await?;
    }
    if let Some(admin) = incomplete {
        webhooks::complete(admin, name, deadline, narrator.as_ref()).await?;
    }
    Ok(phase)
}
