//! `join`: find the hub and its authority, look at both clusters, plan, apply, and follow the agent.
//!
//! ```text
//! Way ─▶ reach (hub, address, authority) ─▶ survey (managed cluster) ─▶ belonging
//!                                                   │
//!             checks on both sides, nothing touched ┴─▶ token ─▶ plan ─▶ apply ─▶ follow
//! ```

mod follow;
mod reach;
mod survey;

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use ocm_core::accept::Options as AcceptOptions;
use ocm_core::join::agent::Credential;
use ocm_core::join::progress::Goal;
use ocm_core::join::state::{Belonging, belonging, still_serves};
use ocm_core::join::{self, Settings};
use ocm_core::kubeconfig::{Bootstrap, HubAddress};
use ocm_core::phase::Phase;
use ocm_core::{DryRun, Event, Failure, Narrator, Plan, Reason, name};
use ocm_kube::Cluster;
use ocm_kube::access::{self, Right};
use ocm_kube::apply::{self, Applied};
use secrecy::ExposeSecret as _;

pub use reach::{Trust, Way, is_itself};

use crate::token;
use reach::Hub;
use survey::Survey;

/// How long a token lives that a join with access to both clusters makes for itself.
const MINTED: Duration = Duration::from_secs(3600);
/// Stands in a plan for a token that a dry run does not make.
const NOT_MINTED: &str = "made-when-joining";

/// What is wanted.
#[derive(Clone)]
pub struct Wish {
    /// What the join is to come to.
    pub settings: Settings,
    /// How the hub is reached.
    pub way: Way,
    /// Accept the cluster too; only with access to both clusters.
    pub accept: Option<AcceptOptions>,
    /// Follow the agent this far.
    pub wait: Option<Goal>,
    /// How long the wait and the acceptance may take together.
    pub timeout: Duration,
    /// How far it is carried out.
    pub dry_run: DryRun,
    /// Use the address that the hub publishes for its own network, with a token.
    pub internal: bool,
    /// Whether a namespace of the cluster's name that is on the hub already, and is nobody's cluster's, becomes its own.
    pub adopt_namespace: bool,
}

/// What a join came to.
#[derive(Debug)]
pub struct Joined {
    /// The hub as the agents dial it.
    pub hub: HubAddress,
    /// Whether it had joined before.
    pub before: bool,
    /// Every object of the plan with what became of it; empty if it had joined before.
    pub applied: Vec<Applied>,
    /// How far the cluster has come, where that was followed.
    pub phase: Option<Phase>,
}

/// Joins the cluster. `each` hears of every object as soon as it is there.
///
/// # Errors
/// A refusal before anything is touched; the failure of a request; [`Reason::TimedOut`] of the wait.
pub async fn join(
    managed: &Cluster,
    wish: &Wish,
    narrator: Arc<dyn Narrator>,
    each: impl FnMut(&Applied),
) -> Result<Joined, Failure> {
    let Prepared { hub, survey, plan, kubeconfig, adopts } = prepare(managed, wish, narrator.clone()).await?;
    let address = hub.address.clone();
    if wish.dry_run != DryRun::No {
        let applied = match &plan {
            Some(plan) => apply::plan(managed, plan, wish.dry_run, narrator.as_ref(), each).await?,
            None => Vec::new(),
        };
        return Ok(Joined { hub: address, before: plan.is_none(), applied, phase: None });
    }
    if adopts {
        hub.adopt_namespace(&wish.settings.name).await?;
        narrator.tell(Event::done(format!("gave the cluster the hub's namespace {:?}", wish.settings.name)));
    }
    let applied = match &plan {
        Some(plan) => {
            survey::clear(managed, &survey.stale, narrator.as_ref()).await?;
            apply::plan(managed, plan, DryRun::No, narrator.as_ref(), each).await?
        }
        None => Vec::new(),
    };
    let deadline = Instant::now() + wish.timeout;
    let follower = follow::Follower {
        managed,
        hub: &hub,
        name: &wish.settings.name,
        kubeconfig: &kubeconfig,
        survey: &survey,
        credential: credential_of(kubeconfig.as_ref()),
    };
    let mut phase = None;
    if let (Some(accept), Some(seat)) = (&wish.accept, &hub.admin) {
        phase = Some(follower.until(Goal::Registered, deadline, narrator.as_ref()).await?);
        let own = follower.own_key(seat, deadline, narrator.as_ref()).await?;
        if !own.settled {
            // This key and no other: whoever holds a token can ask in the name of any cluster.
            // It is the agent that was just installed: who used the name before was said before.
            let accept = AcceptOptions { fingerprint: Some(own.key), reuse_name: true, ..accept.clone() };
            crate::accept::when_asked(seat, &wish.settings.name, &accept, deadline, narrator.clone()).await?;
            narrator.tell(Event::done(format!("accepted {}", wish.settings.name)));
        }
    }
    if let Some(goal) = wish.wait {
        phase = Some(follower.until(goal, deadline, narrator.as_ref()).await?);
    }
    Ok(Joined { hub: address, before: plan.is_none(), applied, phase })
}

/// The objects that a join would apply, without asking for a token or changing anything.
///
/// # Errors
/// Whatever would keep [`join()`] from starting.
pub async fn render(managed: &Cluster, wish: &Wish, narrator: Arc<dyn Narrator>) -> Result<Plan, Failure> {
    let wish = &Wish { dry_run: DryRun::Client, ..wish.clone() };
    let prepared = prepare(managed, wish, narrator).await?;
    match prepared.plan {
        Some(plan) => Ok(plan),
        None => join::plan(&wish.settings, None, &prepared.survey.live),
    }
}

/// Everything that is known before anything is touched.
struct Prepared {
    hub: Hub,
    survey: Survey,
    /// None if there is nothing to do.
    plan: Option<Plan>,
    /// The kubeconfig that the agent registers with.
    kubeconfig: Option<Bootstrap>,
    /// Whether the hub's namespace of the cluster's name, which is nobody's yet, becomes its own.
    adopts: bool,
}

async fn prepare(managed: &Cluster, wish: &Wish, narrator: Arc<dyn Narrator>) -> Result<Prepared, Failure> {
    let wanted = &wish.settings.name;
    check_name(wanted)?;
    // What is wrong with the settings is said before anybody is asked anything.
    join::plan(&wish.settings, None, &join::Live::default())?;
    narrator.tell(Event::now(format!("finding the hub and its CA, and looking at {}", managed.label())));
    let (hub, survey) = futures::join!(reach::reach(wish, narrator.clone()), survey::survey(managed, wanted));
    let (hub, mut survey) = (hub?, survey?);
    if survey.terminating && wish.dry_run == DryRun::No {
        survey::old_namespace_gone(managed, &survey, wish.timeout, narrator.as_ref()).await?;
        // What was read of the old namespace went with it.
        survey = survey::survey(managed, wanted).await?;
    }
    if let Some(identity) = &mut survey.found.identity {
        reach::narrow(&mut identity.hub, &hub.address).await;
    }
    if let Some(bootstrap) = &mut survey.found.bootstrap {
        reach::narrow(&mut bootstrap.hub, &hub.address).await;
    }
    let now = Timestamp::now();
    let belongs = belonging(&survey.found, wanted, &hub.address, now, &managed.label())?;
    if belongs == Belonging::Joined {
        hub.remembers(wanted, &managed.label(), &survey.klusterlet).await?;
        narrator.tell(Event::note(format!(
            "{} has joined {} as {wanted:?} already; nothing is changed",
            managed.label(),
            hub.address.server
        )));
        let kubeconfig = survey.found.bootstrap.clone();
        return Ok(Prepared { hub, survey, plan: None, kubeconfig, adopts: false });
    }
    narrator.tell(Event::now(format!("asking the hub at {}", hub.address.server)));
    // What is there may still serve: then agents go on undisturbed, and no token is made for nothing.
    let mut serves = None;
    if let Some(there) = survey.found.bootstrap.clone().filter(|there| !there.token.is_empty()) {
        let accepted = reach::ask(&there, wanted, narrator.clone()).await.is_ok();
        if still_serves(&there, &hub.address, accepted, hub.token.as_ref().map(|token| token.expose_secret()), now) {
            serves = Some(there);
        }
    }
    let registrant = reach::Registrant {
        name: wanted,
        belongs,
        agent: &survey.agent,
        credential: credential_of(survey.found.bootstrap.as_ref()),
        serves: serves.is_some(),
        adopt_namespace: wish.adopt_namespace,
    };
    let adopts = hub.check(&registrant, narrator.as_ref()).await?;
    let exclusive = hub.token.is_none();
    let placeholder = |token: &str| Bootstrap { hub: hub.address.clone(), token: token.to_owned(), exclusive };
    let draft = serves.is_none().then(|| placeholder(NOT_MINTED));
    let plan = join::plan(&wish.settings, draft.as_ref(), &survey.live)?;
    narrator.tell(Event::now("checking your rights"));
    access::require(managed, "join the cluster", &rights(&plan, &survey)).await?;
    if wish.accept.is_some()
        && let Some(seat) = &hub.admin
    {
        access::require(seat, "accept the cluster", &rights_to_accept()).await?;
    }
    if serves.is_some() {
        return Ok(Prepared { hub, survey, plan: Some(plan), kubeconfig: serves, adopts });
    }
    let token = match (&hub.token, &hub.admin) {
        (Some(token), _) => token.expose_secret().to_owned(),
        (None, Some(_)) if wish.dry_run != DryRun::No => NOT_MINTED.to_owned(),
        (None, Some(seat)) => token::service_account_token(seat, MINTED).await?.0,
        (None, None) => return Err(Failure::usage("there is neither a token nor a hub to make one")),
    };
    let kubeconfig = placeholder(&token);
    let plan = join::plan(&wish.settings, Some(&kubeconfig), &survey.live)?;
    Ok(Prepared { hub, survey, plan: Some(plan), kubeconfig: Some(kubeconfig), adopts })
}

/// What the hub knows the requests of the agent with this kubeconfig by.
fn credential_of(kubeconfig: Option<&Bootstrap>) -> Credential {
    kubeconfig.map_or(Credential::Unknown, |kubeconfig| Credential::of(&kubeconfig.token, kubeconfig.exclusive))
}

fn check_name(wanted: &str) -> Result<(), Failure> {
    if !name::is_cluster_name(wanted) {
        return Err(Failure::usage(format!("{wanted:?} cannot be the name of a managed cluster"))
            .hint("names are lower-case letters, digits and '-', 63 characters at most"));
    }
    if name::is_reserved(wanted) {
        return Err(Failure::usage(format!("{wanted:?} cannot be the name of a managed cluster"))
            .because("the hub keeps what belongs to a cluster in a namespace of its name, and that one is taken"));
    }
    Ok(())
}

/// What the plan needs, object by object, and what clearing leases needs where there are some to clear.
fn rights(plan: &Plan, survey: &Survey) -> Vec<Right> {
    let mut rights = access::to_apply(plan);
    let mut need = |right: Right| {
        if !rights.contains(&right) {
            rights.push(right);
        }
    };
    for stale in &survey.stale {
        need(Right::new("delete", "coordination.k8s.io", "leases").within(&stale.namespace));
    }
    // Nobody can grant what they do not hold, unless they may escalate; the operator holds a great deal.
    for verb in ["escalate", "bind"] {
        need(Right::new(verb, "rbac.authorization.k8s.io", "clusterroles"));
    }
    rights
}

fn rights_to_accept() -> Vec<Right> {
    use ocm_api::names::{hub, signers};
    vec![
        Right::new("list", "certificates.k8s.io", "certificatesigningrequests"),
        Right::new("update", "certificates.k8s.io", "certificatesigningrequests/approval"),
        Right::new("approve", "certificates.k8s.io", "signers").on(signers::KUBE_APISERVER_CLIENT),
        Right::new("patch", "cluster.open-cluster-management.io", "managedclusters"),
        Right::new("update", hub::REGISTER_GROUP, "managedclusters/accept"),
    ]
}

/// A refusal because the hub has the name already.
fn taken(wanted: &str, why: &str) -> Failure {
    Failure::new(
        Reason::Refused,
        format!("the hub has a managed cluster {wanted:?} already, and {why}; nothing was changed"),
    )
    .hint(format!(
        "choose another name; or, if that cluster is this one and was rebuilt, detach it on the hub first: \
         kubectl delete managedcluster {wanted}"
    ))
}
