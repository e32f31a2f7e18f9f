//! Everything that is found out, and planned, before anything is touched.

use std::sync::Arc;

use jiff::Timestamp;
use ocm_api::names::secrets;
use ocm_api::operator::RegistrationAuthType;
use ocm_core::join::hosted::klusterlet_name;
use ocm_core::join::hub_change::Stage;
use ocm_core::join::membership::{Belonging, asks_anew, belonging, moves_from, started_as};
use ocm_core::join::{self, Kubeconfigs, driver_of};
use ocm_core::kubeconfig::Bootstrap;
use ocm_core::plan::Mode;
use ocm_core::{Event, Failure, Narrator, Plan, Reason, Remedy};
use ocm_kube::Cluster;
use ocm_kube::access;

use super::bootstrap::{NOT_MADE, credential_of, tell_rendered};
use super::driver::Chosen;
use super::former_hub::FormerHub;
use super::handover::Handover;
use super::hub_access::HubAccess;
use super::known::{Known, Ways};
use super::preflight::{Checked, Registrant};
use super::prepared::Prepared;
use super::request::Request;
use super::survey::Survey;
use super::way::{serving, way};
use super::{fallback, former_hub, hosted, hub_change, preflight, reach, registered, survey, tidy};
use crate::observe::managed as observe;

/// Finds out, and plans, what a join comes to. Whoever asks for it has checked the cluster's name before.
///
/// # Errors
/// What the hub, the cluster or a rule refuses; missing rights; the failure of a request.
pub(super) async fn prepare<'a>(
    managed: &Cluster,
    request: &'a Request,
    narrator: Arc<dyn Narrator>,
) -> Result<Prepared<'a>, Failure> {
    let prepared = match inspect(managed, request, narrator.clone()).await? {
        (Belonging::Joined, known) => registered::prepare(managed, request, known, narrator).await?,
        (belongs, known) if known.former.as_ref().is_some_and(FormerHub::is_left) => {
            hub_change::prepare(managed, request, belongs, known, narrator).await?
        }
        (belongs, known) => newcomer(managed, request, belongs, known, narrator).await?,
    };
    if let (Some(former), true) = (&prepared.former, request.mode.changes()) {
        former.check_rights(prepared.works_on(managed), &request.settings.name).await?;
    }
    Ok(prepared)
}

/// Looks at the hub and the cluster, and how the one stands to the other.
async fn inspect<'a>(
    managed: &Cluster,
    request: &'a Request,
    narrator: Arc<dyn Narrator>,
) -> Result<(Belonging, Known<'a>), Failure> {
    let wanted = &request.settings.name;
    let guest = request.guest.as_deref();
    let label =
        guest.map_or_else(|| managed.label(), |guest| format!("{}, which {} hosts,", guest.label(), managed.label()));
    narrator.tell(Event::now(format!("finding the hub and its CA, and looking at {label}")));
    let (hub, survey) = futures::join!(reach::reach(request, narrator.clone()), survey::survey(managed, guest, wanted));
    let hub = match (hub, &survey) {
        (Err(failure), Ok(survey)) => return Err(joined_before(failure, request, survey, &label)),
        (hub, _) => hub?,
    };
    let mut survey = survey?;
    if !survey.terminating.is_empty() && request.mode.changes() {
        survey::old_namespaces_gone(managed, &survey.terminating, request.timeout, narrator.as_ref()).await?;
        // What was read of the old namespaces went with them.
        survey = survey::survey(managed, guest, wanted).await?;
    }
    let guest = match guest {
        Some(guest) => Some(hosted::inspect(guest, &survey.names.klusterlet, request, narrator.as_ref()).await?),
        None => None,
    };
    let away = fallback::away(&mut survey);
    let mut ways = Ways::of(&survey);
    if let Some(identity) = &mut survey.found.identity {
        reach::narrow(&mut identity.hub, &hub.address).await;
    }
    if let Some(bootstrap) = &mut survey.found.bootstrap {
        reach::narrow(&mut bootstrap.hub, &hub.address).await;
    }
    let now = Timestamp::now();
    fallback::must_be_first(&survey, &hub.address, &label)?;
    let former = FormerHub::of(managed, request, &hub, &survey, &label, narrator.clone()).await?;
    let back = former.is_none() && former_hub::comes_back(managed, &hub, &mut survey, wanted, &label).await?;
    ways.bootstrap = ways.bootstrap.filter(|_| survey.found.bootstrap.is_some());
    let belongs = match former.as_ref().map(|former| former.change.stage) {
        Some(Stage::Begins) => Belonging::Nobody,
        Some(Stage::Turned) => Belonging::Begun,
        Some(Stage::Arrived) | None => belonging(&survey.found, wanted, &hub.address, now, &label)?,
    };
    // Another hub has another gRPC server.
    let present = driver_of(survey.live.klusterlet.as_ref());
    let turns = back && ways.bootstrap.is_none();
    let goes_on = (turns || former.as_ref().is_some_and(FormerHub::is_left)) && present == RegistrationAuthType::Grpc;
    let typed = request.settings.driver.as_ref().map(|driver| &driver.auth_type).or(goes_on.then_some(&present));
    let mut chosen = Chosen::of(typed, &request.grpc, &hub, &survey, belongs).await?;
    // Who comes back by the driver that it has holds its certificate of this hub.
    chosen.is_another &= !(turns && chosen.driver == present);
    let further = fallback::inspect(managed, request, &hub.address, &chosen.driver, &survey, narrator.clone());
    let fallback = further.await?;
    Ok((belongs, Known { hub, survey, guest, ways, chosen, label, fallback, away, former, back }))
}

/// Plans the join of a cluster that has not joined.
async fn newcomer<'a>(
    managed: &Cluster,
    request: &Request,
    belongs: Belonging,
    known: Known<'a>,
    narrator: Arc<dyn Narrator>,
) -> Result<Prepared<'a>, Failure> {
    let Known { hub, survey, chosen, .. } = &known;
    let wanted = &request.settings.name;
    let way = way(request, belongs, &known)?;
    preflight::pods(managed, &request.settings, survey, narrator.as_ref()).await?;
    preflight::choices(&request.settings, survey, &hub.address, chosen.grpc.as_ref(), narrator.as_ref())?;
    narrator.tell(Event::now(format!("asking the hub at {}", hub.address.server)));
    let serves = serving(request, &known, &way, narrator.clone()).await;
    let agent = match started_as(&survey.found, wanted, request.settings.mode.as_ref()) {
        Some(name) => survey.agent.named(&name),
        None => survey.agent.clone(),
    };
    let registrant = Registrant {
        name: wanted,
        belongs,
        agent: &agent,
        credential: credential_of(survey.found.bootstrap.as_ref(), &[]),
        changed: false,
        serves: serves.is_some(),
        adopt_namespace: request.adopt_namespace,
    };
    let Checked { adopts, strangers, has_joined } =
        check(managed, request, &known, &registrant, narrator.as_ref()).await?;
    let anew = asks_anew(has_joined, &agent, &chosen.driver);
    if anew {
        // The mode that a cluster has joined in counts, whether its certificate is valid or not.
        moves_from(&survey.found, wanted, request.settings.mode.as_ref(), &known.label)?;
        let asks = if request.mode.changes() { "asks" } else { "would ask" };
        narrator.tell(Event::note(format!(
            "the hub says that {wanted:?} has joined, and the agent has no certificate that is valid now: it {asks} for a new one"
        )));
    }
    let why = "its agent has no valid certificate any more, and somebody else may have got the name";
    let handover = anew.then(|| Handover::ByPerson(why.to_owned()));
    let token_is_missing = hub.token().is_none() && serves.is_none();
    let new = || {
        let token = hub.token().unwrap_or(NOT_MADE).to_owned();
        Bootstrap { hub: way.clone(), token, exclusive: hub.token().is_none(), grpc: chosen.grpc.clone() }
    };
    let new = serves.is_none().then(new);
    let access = known.guest.as_ref().map(|guest| guest.kubeconfig(NOT_MADE));
    let kubeconfigs = Kubeconfigs { hub: new.as_ref(), managed: access.as_ref(), hubs: known.fallback.hubs.as_ref() };
    let plan = join::plan(&request.settings, kubeconfigs, &survey.live);
    narrator.tell(Event::now("checking your rights"));
    check_rights(managed, request, &known, &plan).await?;
    if request.mode == Mode::Render {
        tell_manifests(managed, &known, token_is_missing, narrator.as_ref());
    }
    let Known { hub, survey, guest, chosen, fallback, former, back, .. } = known;
    Ok(Prepared {
        hub,
        survey,
        guest,
        joined: false,
        anew,
        moving: None,
        plan,
        kubeconfig: serves.or(new),
        token_is_missing,
        adopts,
        strangers,
        by_grpc: chosen.is_grpc(),
        fallback,
        is_renewed: false,
        waits: false,
        away: None,
        handover,
        former,
        back,
    })
}

/// What the hub says. It may be about to become one: whoever installs a hub need not wait before clusters join it.
async fn check(
    managed: &Cluster,
    request: &Request,
    known: &Known<'_>,
    registrant: &Registrant<'_>,
    narrator: &dyn Narrator,
) -> Result<Checked, Failure> {
    let Known { hub, guest, label, .. } = known;
    let failure = match hub.check(registrant, narrator).await {
        Ok(checked) => return Ok(checked),
        Err(failure) => failure,
    };
    if failure.reason == Reason::Refused && guest.is_none() && registrant.belongs == Belonging::Nobody {
        return Err(hosted_elsewhere(managed, registrant.name, label, failure).await);
    }
    let starts = failure.reason == Reason::KindNotServed && (request.coming.is_some() || hub.starts().await?);
    match (starts, request.mode.changes(), &request.coming) {
        (false, ..) => Err(failure),
        (true, true, coming) => {
            hub.started(request.timeout, coming.as_ref(), narrator).await?;
            hub.check(registrant, narrator).await
        }
        (true, false, Some(_)) => Ok(Checked::default()),
        (true, false, None) => Err(hub.still_starting()),
    }
}

/// The rights on both clusters, and on the managed cluster of a hosted agent.
async fn check_rights(managed: &Cluster, request: &Request, known: &Known<'_>, plan: &Plan) -> Result<(), Failure> {
    let Known { hub, survey, guest, chosen, fallback, .. } = known;
    let mut rights = preflight::rights(plan, survey);
    rights.extend(tidy::rights(survey, chosen.is_grpc()));
    rights.extend(fallback.rights());
    if chosen.is_grpc() && request.accept.is_some() {
        rights.extend(preflight::log_rights(survey));
    }
    access::require(managed, "join the cluster", &rights).await?;
    if let Some(guest) = guest {
        guest.check_rights().await?;
    }
    match (&request.accept, hub.admin()) {
        (Some(_), Some(admin)) => {
            let rights = preflight::rights_to_accept(&request.settings.name, &chosen.driver);
            access::require(admin, "accept the cluster", &rights).await
        }
        _ => Ok(()),
    }
}

/// Says what manifests that are rendered do not hold.
fn tell_manifests(managed: &Cluster, known: &Known<'_>, token_is_missing: bool, narrator: &dyn Narrator) {
    if token_is_missing {
        tell_rendered(&known.survey, narrator);
    }
    if let Some(guest) = &known.guest {
        narrator.tell(Event::note(format!(
            "the manifests are those of {}; the account of the operator on {} is not among them, and {NOT_MADE:?} stands in \
             the place of its token in Secret {}/{}",
            managed.label(),
            guest.account.cluster.label(),
            known.survey.names.namespace,
            secrets::EXTERNAL_MANAGED_KUBECONFIG
        )));
    }
}

/// The refusal of a name that is not free, where agents on another cluster have rights on this one for just that name. Who may not
/// look hears that the name is not free.
async fn hosted_elsewhere(managed: &Cluster, name: &str, label: &str, failure: Failure) -> Failure {
    let klusterlet = klusterlet_name(name);
    match observe::other_agents(managed, None).await {
        Ok(others) if others.contains(&klusterlet) => Failure::refused(format!(
            "{label} is managed by agents on another cluster, of Klusterlet {klusterlet:?}, and is not moved here as it is: \
             unjoin it there first; nothing was changed"
        ))
        .because(failure)
        .hint(Remedy::Unjoin(name.to_owned())),
        _ => failure,
    }
}

/// A hub that does not know the token cannot be asked how a cluster stands that has joined it; what the cluster itself tells is
/// said.
fn joined_before(failure: Failure, request: &Request, survey: &Survey, label: &str) -> Failure {
    let (HubAccess::Token { server, .. }, Some(identity)) = (&request.access, &survey.found.identity) else {
        return failure;
    };
    let is_valid = identity.expires.is_some_and(|expires| expires > Timestamp::now());
    let is_it = identity.cluster == request.settings.name && identity.hub.is_at(server);
    match (is_valid && is_it && failure.reason == Reason::Unauthorized, identity.expires) {
        (true, Some(expires)) => failure
            .because(format!(
                "{label} has joined that hub as {:?} already, with a certificate that is valid until {expires}",
                identity.cluster
            ))
            .hint(Remedy::FindCause),
        _ => failure,
    }
}
