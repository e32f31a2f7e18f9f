//! A cluster that has joined another hub goes to this one: what is planned of it, and how it leaves the former hub.
//!
//! Its agent gets another kubeconfig to register with, and nothing else of it changes. The certificate of the former hub is not
//! taken away: without it the operator ends the agent for works until there is another one, and nothing would tell any more which
//! managed cluster of the former hub is this one. When it is available here, and its agent for works has come, too, it leaves the
//! former hub: an agent that is still there when its managed cluster goes deletes what works have applied.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use ocm_api::AppliedManifestWork;
use ocm_core::join::agent::Agent;
use ocm_core::join::hub_change::{grace, is_for_ever};
use ocm_core::join::lease::is_of;
use ocm_core::join::membership::{Belonging, started_as};
use ocm_core::join::{self, Kubeconfigs, driver_of};
use ocm_core::kubeconfig::{Bootstrap, HubAddress};
use ocm_core::leave::some;
use ocm_core::leave::works::{Record, not_given_up};
use ocm_core::phase::{Phase, standing};
use ocm_core::plan::Applied;
use ocm_core::{Event, Failure, Narrator, Plan, Remedy};
use ocm_kube::Cluster;
use ocm_kube::access::{self, Right};
use ocm_kube::wait::{Check, until};

use super::bootstrap::{NOT_MADE, credential_of, unknown_ca};
use super::former_hub::{FormerHub, Still};
use super::known::Known;
use super::preflight::{self, Checked, Registrant, taken};
use super::prepared::Prepared;
use super::registered::{self, Wanted, only_kubeconfigs};
use super::request::Request;
use super::session::HubSession;
use super::way;
use crate::leave::metadata;
use crate::observe::managed as observe;
use crate::registry;
use crate::served::or_nothing;

/// Time between two looks at what the agent has marked.
const PAUSE: Duration = Duration::from_secs(1);

/// How long pods of one Deployment may go on with what a Secret held before: the kubelet looks once a minute, or half a minute
/// later, keeps what it has read for a minute, and agents look every ten seconds whether a file has changed.
const SETTLES: Duration = Duration::from_secs(160);

/// Plans the way of a cluster from its former hub. `belongs` says whether its agent registers with this one already.
///
/// # Errors
/// What the hub said; a name that is somebody else's; missing rights.
pub(super) async fn prepare<'a>(
    managed: &Cluster,
    request: &Request,
    belongs: Belonging,
    known: Known<'a>,
    narrator: Arc<dyn Narrator>,
) -> Result<Prepared<'a>, Failure> {
    let Known { hub, survey, chosen, .. } = &known;
    let is_turned = belongs == Belonging::Begun;
    tell(request, &known, is_turned, narrator.as_ref());
    let way = way_to(request, is_turned, &known)?;
    let Wanted { settings, given } = Wanted::of(managed, request, &known).await?;
    preflight::pods(managed, &settings, survey, narrator.as_ref()).await?;
    preflight::choices(&settings, survey, &hub.address, chosen.grpc.as_ref(), narrator.as_ref())?;
    narrator.tell(Event::now(format!("asking the hub at {}", hub.address.server)));
    let serves = match is_turned {
        true => way::serving(request, &known, &way, narrator.clone()).await,
        false => None,
    };
    let checked = check(managed, request, belongs, &known, (&way, serves.is_some()), narrator.as_ref()).await?;
    let new = serves.is_none().then(|| {
        let token = hub.token().unwrap_or(NOT_MADE).to_owned();
        Bootstrap { hub: way, token, exclusive: hub.token().is_none(), grpc: chosen.grpc.clone() }
    });
    let access = known.guest.as_ref().map(|guest| guest.kubeconfig(NOT_MADE));
    let kubeconfigs = Kubeconfigs { hub: new.as_ref(), managed: access.as_ref(), hubs: None };
    let is_whole = driver_of(survey.live.klusterlet.as_ref()) != chosen.driver;
    let plan = match is_whole {
        true => join::plan(&settings, kubeconfigs, &survey.live),
        false => Plan::new(only_kubeconfigs(&survey.names.namespace, kubeconfigs).into_iter().chain(given.stages())),
    };
    narrator.tell(Event::now("checking your rights"));
    let mut rights = registered::rights(request, &known, None, true, (&plan, is_whole));
    rights.push(Right::new("patch", "operator.open-cluster-management.io", "klusterlets").on(&survey.names.klusterlet));
    access::require(managed, "join the cluster", &rights).await?;
    registered::check_rights_elsewhere(request, &known, true).await?;
    let token_is_missing = hub.token().is_none() && serves.is_none();
    let Known { hub, survey, guest, chosen, fallback, former, .. } = known;
    let Checked { adopts, strangers, .. } = checked;
    Ok(Prepared {
        hub,
        survey,
        guest,
        joined: false,
        anew: false,
        moving: None,
        plan,
        kubeconfig: serves.or(new),
        token_is_missing,
        adopts,
        strangers,
        by_grpc: chosen.is_grpc(),
        fallback,
        is_renewed: given.is_change(),
        waits: false,
        away: None,
        handover: None,
        former,
        back: false,
    })
}

/// Says where the cluster goes, and what becomes of what works have applied.
fn tell(request: &Request, known: &Known<'_>, is_turned: bool, narrator: &dyn Narrator) {
    let Some(former) = &known.former else { return };
    let (label, from, to) = (&known.label, &former.change.from.server, &known.hub.address.server);
    let (goes, starts) = match (request.mode.changes(), is_turned) {
        (_, true) => ("is on its way", "has another kubeconfig"),
        (true, false) => ("goes", "gets another kubeconfig, starts once more"),
        (false, false) => ("would go", "would get another kubeconfig, start once more"),
    };
    narrator.tell(Event::note(format!(
        "{label} {goes} from the hub at {from} to the one at {to}: its agent {starts}, and asks there for a certificate"
    )));
    let kept = grace(known.survey.live.klusterlet.as_ref());
    let time = if is_for_ever(kept) { "stays".to_owned() } else { format!("stays for {kept} and is removed then") };
    narrator.tell(Event::note(format!(
        "what works of the hub at {from} have applied {time}, unless works of the new hub apply the same objects"
    )));
}

/// The way of the agent to its new hub. The proxy that leads to the former one leads there, too.
fn way_to(request: &Request, is_turned: bool, known: &Known<'_>) -> Result<HubAddress, Failure> {
    if is_turned {
        return way::way(request, Belonging::Begun, known);
    }
    let Known { hub, survey, ways, .. } = known;
    let there = ways.bootstrap.as_ref().map(|there| &there.hub).filter(|there| there.proxy.is_some());
    let through = there.map(|there| {
        // Those that vouch for the former hub vouch for no other; the rest are the proxy's.
        let own = survey.found.bootstrap.as_ref().map(|narrowed| &narrowed.hub.ca);
        let own = own.filter(|own| own.len() < there.ca.len());
        let ca = there.ca.iter().filter(|ca| own.is_none_or(|own| !own.contains(ca))).cloned().collect();
        HubAddress { proxy: there.proxy.clone(), ca, ..HubAddress::default() }
    });
    request.proxy.way(through.as_ref(), &hub.address).map_err(unknown_ca)
}

/// What the hub says that the cluster goes to. The name is to be free, or this cluster's own.
async fn check(
    managed: &Cluster,
    request: &Request,
    belongs: Belonging,
    known: &Known<'_>,
    (way, serves): (&HubAddress, bool),
    narrator: &dyn Narrator,
) -> Result<Checked, Failure> {
    let Known { hub, survey, ways, .. } = known;
    let name = &request.settings.name;
    if belongs == Belonging::Nobody {
        is_free(hub, name).await?;
    }
    // The certificate of the former hub is as none.
    let agent = Agent { key: None, ..survey.agent.clone() };
    let agent = started_as(&survey.found, name, None).map_or_else(|| agent.clone(), |own| agent.named(&own));
    let there = ways.bootstrap.as_ref().filter(|_| belongs == Belonging::Begun);
    let registrant = Registrant {
        name,
        belongs,
        agent: &agent,
        credential: credential_of(there, &[]),
        changed: false,
        serves,
        adopt_namespace: request.adopt_namespace,
    };
    let checked = hub.check(&registrant, narrator).await?;
    if checked.has_joined {
        // It may have been let in just now; otherwise somebody else has joined under this name.
        let facts = observe::identity(managed, &survey.names.namespace).await?.registered_by(way);
        if facts.agent(name, Timestamp::now()).key.is_none() {
            return Err(taken(name, "its agent is another one"));
        }
    }
    Ok(checked)
}

/// Refuses a name under which somebody waits for acceptance: it is not this cluster, whose agent is at its former hub.
async fn is_free(hub: &HubSession, name: &str) -> Result<(), Failure> {
    match hub.cluster(name).await? {
        Some(cluster) if standing(&cluster).phase == Phase::Pending => Err(Failure::refused(format!(
            "another cluster waits at the hub at {} to be accepted as {name:?}; nothing was changed",
            hub.address.server
        ))
        .hint(Remedy::SeeRequests(name.to_owned()))
        .hint(Remedy::Detach(name.to_owned()))),
        _ => Ok(()),
    }
}

/// Has a cluster leave its former hub, as soon as it is available at this one, or only tries to, and says why something of it stays
/// there, if it does. `phase` is how far it was followed, or would be.
///
/// # Errors
/// The failure of a request; [`ocm_core::Reason::TimedOut`] where its agent does not leave the former hub, or that hub does not let
/// it go.
pub(super) async fn finish(
    managed: &Cluster,
    request: &Request,
    prepared: &Prepared<'_>,
    phase: Option<Phase>,
    narrator: &dyn Narrator,
    applied: &mut Vec<Applied>,
    each: &mut dyn FnMut(&Cluster, &Applied),
) -> Result<Option<Still>, Failure> {
    let Some(former) = &prepared.former else { return Ok(None) };
    let name = &request.settings.name;
    let changes = request.mode.changes();
    let phase = match phase {
        None if changes || !former.is_left() => {
            prepared.hub.cluster(name).await?.map(|cluster| standing(&cluster).phase)
        }
        phase => phase,
    };
    if phase != Some(Phase::Available) || (changes && !holds_certificate(managed, name, prepared).await?) {
        return Ok(Some(Still::NotYet));
    }
    if changes && former.lets_go() {
        has_come(managed, request, prepared, narrator).await?;
    }
    let still = former.detach(name, (request.mode.dry_run(), request.timeout), narrator, applied, each).await?;
    // Who says nothing of the former hub may not know of it: another command can still have the cluster leave it.
    if changes && request.former.is_given() {
        former.forget(managed, &prepared.survey.names.klusterlet, narrator).await?;
    }
    Ok(still)
}

/// Whether the agent of a cluster holds a certificate that it got by its way to this hub: a hub can say of any cluster that it is
/// available.
async fn holds_certificate(managed: &Cluster, name: &str, prepared: &Prepared<'_>) -> Result<bool, Failure> {
    let Prepared { survey, kubeconfig, former, .. } = prepared;
    match kubeconfig.as_ref().filter(|_| former.as_ref().is_some_and(FormerHub::is_left)) {
        Some(Bootstrap { hub, .. }) => {
            let facts = observe::identity(managed, &survey.names.namespace).await?.registered_by(hub);
            Ok(facts.agent(name, Timestamp::now()).key.is_some())
        }
        // It held one when this began.
        None => Ok(true),
    }
}

/// Waits until no agent of the cluster is at its former hub.
async fn has_come(
    managed: &Cluster,
    request: &Request,
    prepared: &Prepared<'_>,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let Prepared { survey, kubeconfig, .. } = prepared;
    let works = prepared.works_on(managed);
    let of_cluster = survey.found.of_cluster(&request.settings.name);
    let Some(klusterlet) = of_cluster.first() else { return Ok(()) };
    let agent = klusterlet.metadata.uid.as_deref().unwrap_or_default();
    let mut addresses = Vec::new();
    if let Some(Bootstrap { hub, grpc, .. }) = kubeconfig {
        addresses.push(hub.server.clone());
        addresses.extend(grpc.as_ref().map(|server| server.address.to_string()));
    }
    if records(works).await?.iter().all(|record| record.agent != agent) {
        // No work has applied anything that could be lost.
        return Ok(());
    }
    let marks = !is_for_ever(grace(survey.live.klusterlet.as_ref()));
    let agents = klusterlet.agents();
    // Only one of several pods works at a time, and marks; another one may follow it that has not come yet.
    let pods = metadata::<Pod>(managed, Some(&survey.names.namespace), ListParams::default(), "list pods").await;
    let is_one = match (agents.last(), pods) {
        (Some(works), Ok(pods)) => {
            pods.iter().filter_map(|pod| pod.name.as_deref()).filter(|pod| is_of(pod, works)).count() <= 1
        }
        _ => false,
    };
    let begun = Instant::now();
    let settled = begun + if is_one && marks { Duration::ZERO } else { SETTLES };
    let doing = "waiting for the agent for works to leave its former hub";
    until(doing, settled + request.timeout, PAUSE, narrator, async || {
        let held = if marks { not_given_up(&records(works).await?, agent, &addresses) } else { Vec::new() };
        Ok(match () {
            () if !held.is_empty() => Check::Unwatched(format!("it still applies {}", some(&held))),
            () if Instant::now() < settled => Check::Unwatched("its pods follow one after the other".to_owned()),
            () => Check::Ready(()),
        })
    })
    .await
    .map_err(|failure| failure.hint(Remedy::RunAgain))
}

/// The records of works on a cluster, as far as they tell who gives them up.
async fn records(works: &Cluster) -> Result<Vec<Record>, Failure> {
    let kind = ApiResource::erase::<AppliedManifestWork>(&());
    let api: Api<DynamicObject> = Api::all_with(works.client.clone(), &kind);
    let read = |found: DynamicObject| Some(Record::of(&found.data, found.metadata.deletion_timestamp.is_some()));
    let (params, what) = (ListParams::default(), "list AppliedManifestWorks");
    or_nothing(registry::pages(works, &api, params, || registry::PAGE, what, read).await)
}
