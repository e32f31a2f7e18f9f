//! A cluster that has joined already: it stays as it is, unless its agent gets another mode, another way to the hub, another driver,
//! other further hubs, or what was typed otherwise for its Klusterlet and its operator, but for their images. With all of these but
//! another way or driver it goes on with the certificate that it has. With another way or driver it registers anew: it keeps its name, and asks for a certificate with a new key. What it goes by is its way alone,
//! so another driver comes with another name of the hub's entry in its kubeconfig.

use std::sync::Arc;

use jiff::Timestamp;
use ocm_api::Manifest;
use ocm_api::operator::RegistrationAuthType;
use ocm_core::join::fallback::lasts;
use ocm_core::join::membership::{Belonging, still_serves};
use ocm_core::join::{self, Given, Kubeconfigs, Settings};
use ocm_core::kubeconfig::{Bootstrap, HubAddress};
use ocm_core::phase::Phase;
use ocm_core::plan::Mode;
use ocm_core::redact::redact;
use ocm_core::{Event, Failure, Narrator, Plan, Reason, Remedy, Stage};
use ocm_kube::access::{self, Right};
use ocm_kube::{Cluster, apply};

use super::bootstrap::{NOT_MADE, credential_of, may_serve, tell_rendered, unknown_ca};
use super::driver::Chosen;
use super::handover::{self, Handover};
use super::known::{Known, Ways};
use super::moving::Moving;
use super::preflight::{Checked, Registrant};
use super::prepared::Prepared;
use super::request::Request;
use super::session::HubSession;
use super::survey::Survey;
use super::{claimed, on_hub, preflight, tidy};

/// Plans what changes of a cluster that has joined.
///
/// # Errors
/// What the hub said; a mode to which it is not moved; a policy that refuses its new certificate; missing rights; a proxy that
/// agents cannot trust.
pub(super) async fn prepare<'a>(
    managed: &Cluster,
    request: &Request,
    known: Known<'a>,
    narrator: Arc<dyn Narrator>,
) -> Result<Prepared<'a>, Failure> {
    let name = &request.settings.name;
    // The certificate of an agent that is at another hub says nothing of this one.
    let issued = known.survey.issued.filter(|_| known.away.is_none());
    let phase = known.hub.remembers(name, &known.label, issued).await?;
    let waits = phase == Phase::Pending;
    let moving = moving(managed, request, &known, narrator.as_ref()).await?;
    let turn = Turn::of(request, &known, moving.as_ref(), narrator.clone()).await?;
    let Wanted { settings, given } = Wanted::of(managed, request, &known).await?;
    let gets = given.words();
    let change = Change {
        waits,
        anew: turn.anew,
        way: turn.way.as_ref().filter(|_| turn.is_another),
        driver: Some(&known.chosen).filter(|chosen| chosen.is_another),
        moving: moving.as_ref(),
        hosted: known.guest.is_some(),
        hubs: known.fallback.is_change() || turn.renews,
        back: known.back,
        given: &gets,
    };
    narrator.tell(Event::note(told(&known.label, &known.hub, name, &change, request.mode.changes())));
    let handover = handed_over(managed, request, &known, moving.as_ref(), &turn).await?;
    let checked = check(request, &known, moving.as_ref(), &turn, narrator.as_ref()).await?;
    if turn.renews {
        known.hub.rights(false).await?;
    }
    let new = turn.kubeconfig(&known);
    let access = known.guest.as_ref().map(|guest| guest.kubeconfig(NOT_MADE));
    let kubeconfigs = Kubeconfigs { hub: new.as_ref(), managed: access.as_ref(), hubs: known.fallback.hubs.as_ref() };
    // It is written last: where it names the mode already, all else is there. It says the driver and the mode, and lists the hubs.
    let changes_klusterlet = known.chosen.is_another || is_moved(moving.as_ref()) || known.fallback.hubs.is_some();
    let is_whole = request.mode == Mode::Render || changes_klusterlet;
    if changes_klusterlet || given.is_change() {
        preflight::pods(managed, &settings, &known.survey, narrator.as_ref()).await?;
    }
    if is_whole || given.is_change() {
        let Known { survey, hub, chosen, .. } = &known;
        preflight::choices(&settings, survey, &hub.address, chosen.grpc.as_ref(), narrator.as_ref())?;
    }
    if given.names_other_images {
        narrator.tell(Event::warning(format!(
            "the images of a cluster that has joined stay as they are, and are not those that were given: change them with \
             kubectl ocm upgrade klusterlet {name}"
        )));
    }
    let plan = match is_whole {
        true => join::plan(&settings, kubeconfigs, &known.survey.live),
        false => {
            let namespace = &known.survey.names.namespace;
            Plan::new(only_kubeconfigs(namespace, kubeconfigs).into_iter().chain(given.stages()))
        }
    };
    let is_renewed = !turn.anew && (known.fallback.is_work() || new.is_some() || given.is_change());
    let is_change = turn.anew || is_renewed || moving.is_some() || known.back;
    if is_change || (known.guest.is_some() && request.mode.changes()) {
        narrator.tell(Event::now("checking your rights"));
        let mut rights = rights(request, &known, moving.as_ref(), turn.anew, (&plan, changes_klusterlet));
        if known.back {
            let right = Right::new("patch", "operator.open-cluster-management.io", "klusterlets");
            rights.push(right.on(&known.survey.names.klusterlet));
        }
        access::require(managed, "join the cluster", &rights).await?;
    }
    check_rights_elsewhere(request, &known, turn.anew).await?;
    let token_is_missing = known.hub.token().is_none() && new.is_some();
    if token_is_missing && request.mode == Mode::Render {
        tell_rendered(&known.survey, narrator.as_ref());
    }
    let Known { hub, survey, guest, ways, chosen, fallback, away, former, back, .. } = known;
    let Checked { adopts, strangers, .. } = checked;
    Ok(Prepared {
        hub,
        survey,
        guest,
        joined: true,
        anew: turn.anew,
        moving,
        plan,
        kubeconfig: new.or(ways.bootstrap),
        token_is_missing,
        adopts,
        strangers,
        by_grpc: chosen.is_grpc(),
        fallback,
        is_renewed,
        waits,
        away,
        handover,
        former,
        back,
    })
}

/// Where the cluster moves to another mode: refuses it where its agent would ask another hub, or the hub would not let it.
async fn moving(
    managed: &Cluster,
    request: &Request,
    known: &Known<'_>,
    narrator: &dyn Narrator,
) -> Result<Option<Moving>, Failure> {
    let Known { hub, survey, chosen, label, away, .. } = known;
    let name = &request.settings.name;
    // Whoever applies rendered manifests moves it without us.
    let moving = match request.mode {
        Mode::Render => None,
        _ => Moving::of(managed, hub, survey, (name, request.settings.mode.as_ref()), label).await?,
    };
    if let (Some(there), Some(_)) = (away, moving.as_ref().and_then(|moving| moving.agent.as_ref())) {
        return Err(Failure::refused(format!(
            "the agent of {name} has turned to the hub at {there}, and would ask that one for its new certificate; nothing was \
             changed"
        ))
        .hint("run it again when the agent is at its first hub"));
    }
    // An identity of AWS needs no certificate.
    if let Some(moving) = moving.as_ref().filter(|_| chosen.driver != RegistrationAuthType::AwsIrsa) {
        claimed::check(hub, name, moving, narrator).await?;
    }
    Ok(moving)
}

fn is_moved(moving: Option<&Moving>) -> bool {
    moving.is_some_and(|moving| moving.from.is_some())
}

/// How the agent goes on.
struct Turn {
    /// The way that it is to have; none where nothing tells which it has.
    way: Option<HubAddress>,
    /// Whether that is another one than it has.
    is_another: bool,
    /// Whether it gets another way, or another driver.
    changed: bool,
    /// Whether it registers anew.
    anew: bool,
    /// Whether it gets another token for the hubs that it lists, though it does not register anew.
    renews: bool,
    /// Whether the kubeconfig that is there serves.
    serves: bool,
}

impl Turn {
    async fn of(
        request: &Request,
        known: &Known<'_>,
        moving: Option<&Moving>,
        narrator: Arc<dyn Narrator>,
    ) -> Result<Self, Failure> {
        let Known { hub, survey, ways, chosen, fallback, back, .. } = known;
        let name = &request.settings.name;
        let way = wanted(request, survey, ways, hub)?;
        let is_another = way.as_ref().zip(ways.present()).is_some_and(|(way, present)| !way.is_same_way(present));
        let changed = is_another || chosen.is_another;
        let anew = changed || ways.differ() || moving.is_some_and(|moving| moving.agent.is_some());
        // With several hubs the agent needs its token whenever it starts, and its pods need the Secret.
        let renews = match &ways.bootstrap {
            // It gets the kubeconfig again that leads to this hub.
            None if *back && !anew => true,
            _ if anew || !fallback.is_several || hub.admin().is_none() => false,
            // An address that agents dial may be out of reach here: that alone does not make a new token each time.
            Some(there) => {
                !lasts(&there.token, Timestamp::now()) || on_hub::refuses(there, name, narrator.clone()).await
            }
            None => true,
        };
        let serves = match &ways.bootstrap {
            Some(there) if anew && !changed && may_serve(there, request) => {
                let accepted = !on_hub::refuses(there, name, narrator).await;
                still_serves(there, &there.hub, accepted, hub.token(), Timestamp::now())
            }
            _ => !anew && !renews,
        };
        Ok(Self { way, is_another, changed, anew, renews, serves })
    }

    /// The kubeconfig that the agent gets, if it gets another one.
    fn kubeconfig(&self, known: &Known<'_>) -> Option<Bootstrap> {
        let Known { hub, ways, chosen, .. } = known;
        let way = self.way.clone().filter(|_| !self.serves)?;
        let way = if chosen.is_another { way.anew(ways.registered.as_ref()) } else { way };
        let token = hub.token().unwrap_or(NOT_MADE).to_owned();
        Some(Bootstrap { hub: way, token, exclusive: hub.token().is_none(), grpc: chosen.grpc.clone() })
    }
}

/// What is wanted of the Klusterlet and its operator.
pub(super) struct Wanted {
    pub(super) settings: Settings,
    /// What was given that is not so yet.
    pub(super) given: Given,
}

impl Wanted {
    pub(super) async fn of(managed: &Cluster, request: &Request, known: &Known<'_>) -> Result<Self, Failure> {
        let Known { survey, label, fallback, .. } = known;
        // Whoever renders manifests anew has the whole of them, with the release that was typed.
        let (settings, mut given) = match request.mode {
            Mode::Render => (request.settings.clone(), Given::default()),
            _ => {
                let settings = join::without_release(&request.settings, &survey.live);
                (settings, Given::of(&request.settings, &survey.live))
            }
        };
        if let Some(secret) = given.credentials()
            && is_there(managed, secret).await?
        {
            given = given.without_credentials();
        }
        if given.lists_hubs() && fallback.hubs.is_none() {
            return Err(Failure::refused(format!(
                "{label} has joined, and other hubs were given for its Klusterlet as fields: its agent does not start without a token for \
                 each of them; nothing was changed"
            ))
            .hint("have their tokens made: name the further hubs by their contexts"));
        }
        Ok(Self { settings, given })
    }
}

/// To whom the name of an agent goes that registers anew and is to be accepted.
async fn handed_over(
    managed: &Cluster,
    request: &Request,
    known: &Known<'_>,
    moving: Option<&Moving>,
    turn: &Turn,
) -> Result<Option<Handover>, Failure> {
    let Known { hub, survey, chosen, away, .. } = known;
    let name = &request.settings.name;
    let by_certificate = chosen.driver != RegistrationAuthType::AwsIrsa;
    let handover = match (&request.accept, hub.admin()) {
        (Some(_), Some(_)) if turn.anew && by_certificate && away.is_none() && request.mode != Mode::Render => {
            Some(handover::of(managed, hub, survey, name).await?)
        }
        _ => None,
    };
    // Of an agent that goes on as it is, nothing is changed that only a person can bring to its end.
    if let (Some(Handover::ByPerson(why)), true) = (&handover, turn.changed || is_moved(moving)) {
        return Err(Failure::refused(format!(
            "the new key with which the agent of {name} would ask for a certificate would not be approved: {why}; nothing was changed"
        ))
        .hint(Remedy::LeaveToPerson(name.clone())));
    }
    Ok(handover)
}

/// What the hub says of an agent that registers anew.
async fn check(
    request: &Request,
    known: &Known<'_>,
    moving: Option<&Moving>,
    turn: &Turn,
    narrator: &dyn Narrator,
) -> Result<Checked, Failure> {
    let Known { hub, survey, ways, .. } = known;
    if !turn.anew {
        return Ok(Checked::default());
    }
    let renamed = moving.and_then(|moving| moving.agent.as_deref());
    let agent = match renamed {
        Some(name) => survey.agent.named(name),
        None => survey.agent.clone(),
    };
    let registrant = Registrant {
        name: &request.settings.name,
        belongs: Belonging::Joined,
        agent: &agent,
        credential: credential_of(ways.bootstrap.as_ref(), &[]),
        changed: turn.changed || (is_moved(moving) && renamed.is_some()),
        serves: turn.serves,
        adopt_namespace: request.adopt_namespace,
    };
    hub.check(&registrant, narrator).await
}

/// The rights on the cluster where the agents run; of the plan, and whether it has the Klusterlet.
pub(super) fn rights(
    request: &Request,
    known: &Known<'_>,
    moving: Option<&Moving>,
    anew: bool,
    (plan, has_klusterlet): (&Plan, bool),
) -> Vec<Right> {
    let Known { survey, chosen, fallback, .. } = known;
    let mut rights = match has_klusterlet {
        true => preflight::rights(plan, survey),
        false => {
            let leases = preflight::lease_rights(survey).filter(|_| anew);
            access::to_apply(plan).into_iter().chain(leases).collect()
        }
    };
    rights.extend(tidy::rights(survey, chosen.is_grpc()));
    rights.extend(fallback.rights());
    if chosen.is_grpc() && anew && request.accept.is_some() {
        rights.extend(preflight::log_rights(survey));
    }
    for right in moving.into_iter().flat_map(Moving::rights) {
        if !rights.contains(&right) {
            rights.push(right);
        }
    }
    rights
}

/// The rights on the managed cluster of a hosted agent, and on the hub.
pub(super) async fn check_rights_elsewhere(request: &Request, known: &Known<'_>, anew: bool) -> Result<(), Failure> {
    let Known { hub, guest, chosen, .. } = known;
    if let Some(guest) = guest.as_ref().filter(|_| request.mode.changes()) {
        guest.check_rights().await?;
    }
    match (anew, &request.accept, hub.admin()) {
        (true, Some(_), Some(admin)) => {
            let rights = preflight::rights_to_accept(&request.settings.name, &chosen.driver);
            access::require(admin, "accept the cluster", &rights).await
        }
        _ => Ok(()),
    }
}

/// The way that the agent is to have, whatever its driver; none where nothing tells which it has.
fn wanted(request: &Request, survey: &Survey, ways: &Ways, hub: &HubSession) -> Result<Option<HubAddress>, Failure> {
    let Some(present) = ways.present() else { return Ok(None) };
    // Agents that have registered keep the address that they dial.
    let narrowed = survey.found.bootstrap.as_ref().map(|bootstrap| &bootstrap.hub);
    let narrowed = narrowed.or(survey.found.identity.as_ref().map(|identity| &identity.hub));
    let ca = match narrowed {
        Some(narrowed) if !present.is_at(&hub.address.server) || hub.address.ca.is_empty() => narrowed.ca.clone(),
        _ => hub.address.ca.clone(),
    };
    let uid = hub.address.uid.clone().or_else(|| present.uid.clone());
    let without = HubAddress { ca, proxy: None, uid, ..present.clone() };
    request.proxy.way_of_registered(present, &without).map(Some).map_err(unknown_ca)
}

/// Whether a Secret holds what a manifest says. One that may not be read does not, as far as can be told.
async fn is_there(managed: &Cluster, secret: &Manifest) -> Result<bool, Failure> {
    match apply::read(managed, secret).await {
        Ok(live) => Ok(live.is_some_and(|live| live["data"] == secret.body()["data"])),
        Err(failure) if failure.reason == Reason::Forbidden => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// Nothing but the kubeconfigs that are written.
pub(super) fn only_kubeconfigs(namespace: &str, kubeconfigs: Kubeconfigs<'_>) -> [Stage; 2] {
    let hub = kubeconfigs.hub.map(|hub| join::bootstrap_secret(namespace, hub));
    let managed = kubeconfigs.managed.map(|managed| join::external_secret(namespace, managed));
    [
        Stage::new("the kubeconfig of the hub", hub.into_iter().collect()),
        Stage::new("the kubeconfig of the managed cluster", managed.into_iter().collect()),
    ]
}

/// What becomes of a cluster that has joined.
struct Change<'a> {
    /// Whether the hub has not accepted it yet.
    waits: bool,
    /// Whether its agent registers anew.
    anew: bool,
    /// The way that it gets, if that changes.
    way: Option<&'a HubAddress>,
    /// The driver that it gets, if that changes.
    driver: Option<&'a Chosen>,
    /// The mode that it gets, if that changes.
    moving: Option<&'a Moving>,
    /// Whether the operator gets a new token for it.
    hosted: bool,
    /// Whether its hubs change, or its token for them.
    hubs: bool,
    /// Whether it is noted that it goes to another hub.
    back: bool,
    /// What was typed for it that it does not have.
    given: &'a [String],
}

/// What is said of it.
fn told(label: &str, hub: &HubSession, name: &str, change: &Change<'_>, changes: bool) -> String {
    let Change { waits, anew, way, driver, moving, hosted, hubs, back, given } = *change;
    let (gets, goes, is) = if changes { ("gets", "goes", "is") } else { ("would get", "would go", "would be") };
    let certificate = match (anew, changes) {
        (true, true) => "asks for a new certificate",
        (true, false) => "would ask for a new certificate",
        (false, true) => "keeps its certificate",
        (false, false) => "would keep its certificate",
    };
    let server = &hub.address.server;
    let has_joined = match waits {
        true => format!("{label} has registered at {server} as {name:?} and waits for acceptance"),
        false => format!("{label} has joined {server} as {name:?} already"),
    };
    let way = way.map(|way| match way.proxy.as_deref() {
        Some(proxy) => format!("{gets} the proxy {}", redact(proxy)),
        None => format!("{gets} a way to the hub without a proxy"),
    });
    let driver = driver.map(|Chosen { driver, grpc, .. }| match grpc {
        Some(server) => format!("{goes} over to {driver} at {}", server.address),
        None => format!("{goes} over to {driver}"),
    });
    let mode = moving.and_then(|Moving { from, to, .. }| Some(format!("{goes} from mode {} to {to}", from.as_ref()?)));
    let new: Vec<String> = mode.into_iter().chain(way).chain(driver).collect();
    let token = hosted.then(|| format!("its operator {gets} a new token for it, "));
    let hubs = hubs.then(|| format!("what its agent knows of its hubs {is} changed"));
    let back = back.then(|| format!("the note that it goes to another hub {is} taken away"));
    let on = moving.filter(|moving| moving.from.is_none());
    let on = on.map(|Moving { to, .. }| format!("its move to mode {to} {is} gone on with"));
    let given = (!given.is_empty()).then(|| format!("it {gets} what was given for {}", given.join(", ")));
    let besides = hubs.into_iter().chain(back).chain(on).chain(given).collect::<Vec<_>>().join("; ");
    let also = if besides.is_empty() { String::new() } else { format!("; {besides}") };
    match (token, anew) {
        (token, _) if !new.is_empty() => {
            let (token, new) = (token.unwrap_or_default(), new.join(", "));
            format!("{has_joined}; {token}its agent {new}, and {certificate}{also}")
        }
        (_, true) => {
            let by = match moving.is_some_and(|moving| moving.agent.is_some()) {
                true => "under another name",
                false => "by another way to the hub",
            };
            format!("{has_joined}, but its agent has to register again: it got its certificate {by}{also}")
        }
        (Some(token), false) if !besides.is_empty() => format!("{has_joined}; {token}and {besides}"),
        (Some(token), false) => format!("{has_joined}; {token}and nothing else {is} changed"),
        (None, false) if !besides.is_empty() => format!("{has_joined}{also}"),
        (None, false) => format!("{has_joined}; nothing is changed"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::hub_access::TrustedBy;
    use super::super::session::Access;
    use super::*;
    use crate::accept::test_hub::hub_at;

    #[tokio::test]
    async fn who_waits_for_acceptance_has_not_joined() {
        let address = HubAddress { server: "https://hub:6443".to_owned(), ..HubAddress::default() };
        let access = Access::Admin(hub_at("http://127.0.0.1:1"));
        let hub = HubSession { address, trusted_by: TrustedBy::Kubeconfig, access };
        let told = |waits: bool| {
            let (way, driver, moving, given) = (None, None, None, &[][..]);
            let change =
                Change { waits, anew: false, way, driver, moving, hosted: false, hubs: false, back: false, given };
            told("it", &hub, "c1", &change, true)
        };
        assert_eq!(told(false), "it has joined https://hub:6443 as \"c1\" already; nothing is changed");
        let waits = "it has registered at https://hub:6443 as \"c1\" and waits for acceptance; nothing is changed";
        assert_eq!(told(true), waits);
    }
}
