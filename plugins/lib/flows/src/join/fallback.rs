//! The hubs that an agent turns to when its own does not answer: found, checked, and written down beside the first one.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::ResourceExt as _;
use kube::api::PostParams;
use ocm_api::cluster::ManagedClusterSpec;
use ocm_api::names::{hub as hub_names, secrets};
use ocm_api::operator::RegistrationAuthType;
use ocm_api::{ManagedCluster, Manifest};
use ocm_core::join::fallback::{self as rules, Arranged, HubChanges, HubTimeout, Hubs, Listing};
use ocm_core::join::membership::{Belonging, still_serves};
use ocm_core::kubeconfig::{Bootstrap, HUB_UID, HubAddress, Likeness};
use ocm_core::{Applied, DryRun, Event, Failure, Mode, Narrator, Plan, Reason};
use ocm_kube::access::{self, Right};
use ocm_kube::apply::FIELD_MANAGER;
use ocm_kube::{Cluster, remove};

use super::bootstrap::{NOT_MADE, credential_of, unknown_ca};
use super::hub_access::TrustedBy;
use super::on_hub;
use super::preflight::{Checked, Registrant};
use super::request::Request;
use super::session::{Access, HubSession};
use super::survey::Survey;
use crate::hub::{self, AddressOptions};
use crate::token;

/// How long the tokens of agents with several hubs are to live.
pub(super) const TOKEN: Duration = Duration::from_secs(rules::TOKEN_SECONDS);

/// A further hub that was named.
struct Named {
    session: HubSession,
    /// The Secret of its kubeconfig.
    secret: String,
    /// The kubeconfig, new or as it is.
    kubeconfig: Bootstrap,
    /// Whether the one that is there still serves.
    serves: bool,
    /// Whether the hub's namespace of the cluster's name becomes its own.
    adopts: bool,
    /// Whether the cluster is accepted there before its agent comes.
    accepts: bool,
}

/// What is known of the further hubs before anything is touched.
#[derive(Default)]
pub(super) struct Fallback {
    /// What the plan makes of them; none: nothing.
    pub(super) hubs: Option<Hubs>,
    /// Whether the agent has several hubs afterwards: then its tokens have to last.
    pub(super) is_several: bool,
    named: Vec<Named>,
    /// The address of the first hub.
    first: String,
    /// The hubs that leave the list, as messages name them.
    removed: Vec<String>,
    /// Secrets of hubs that are none of the list, with their UIDs and versions.
    surplus: Vec<(Manifest, String, String)>,
}

/// Where the agent is, if it has turned to another hub of its list: then it counts as registered at its first one.
pub(super) fn away(survey: &mut Survey) -> Option<String> {
    let Survey { found, further, listing, .. } = survey;
    // Of a list that somebody else has made, the first hub is another one.
    listing.as_ref().filter(|listing| listing.is_ours())?;
    let (Some(identity), Some(bootstrap)) = (&mut found.identity, &found.bootstrap) else { return None };
    let there = rules::fallback_at(&bootstrap.hub, further, &identity.hub)?.told().to_owned();
    identity.hub = bootstrap.hub.clone();
    Some(there)
}

/// Refuses a hub as the first one that is another one of the list.
///
/// # Errors
/// That refusal.
pub(super) fn must_be_first(survey: &Survey, wanted: &HubAddress, label: &str) -> Result<(), Failure> {
    if !survey.listing.as_ref().is_some_and(Listing::is_ours) {
        return Ok(());
    }
    let nowhere = HubAddress::default();
    let own = survey.found.bootstrap.as_ref().map_or(&nowhere, |bootstrap| &bootstrap.hub);
    let Some(other) = rules::fallback_at(own, &survey.further, wanted) else { return Ok(()) };
    let first = match own.server.as_str() {
        "" => "whose kubeconfig is missing,".to_owned(),
        server => format!("{server},"),
    };
    Err(Failure::refused(format!(
        "{label} turns to the hub at {} when its first hub, {first} does not answer; nothing was changed",
        other.told()
    ))
    .hint("name its first hub as the hub that it joins")
    .hint("another hub becomes the first one of a cluster that has left all of them"))
}

/// Finds the hubs that were named, checks each as the first one is checked, and arranges the list.
///
/// # Errors
/// What is wrong with what was asked for; a refusal of a hub, or what it said; missing rights.
pub(super) async fn inspect(
    managed: &Cluster,
    request: &Request,
    first: &HubAddress,
    driver: &RegistrationAuthType,
    survey: &Survey,
    narrator: Arc<dyn Narrator>,
) -> Result<Fallback, Failure> {
    let options = &request.fallback;
    if options.is_empty() && survey.listing.is_none() {
        return Ok(Fallback::default());
    }
    if !options.is_empty() {
        if request.settings.values.lists_hubs() {
            return Err(Failure::usage("the values list hubs, and so does the command line: say it in one place"));
        }
        narrator.tell(Event::now("looking at the further hubs"));
    }
    let teller = narrator.as_ref();
    let sessions = options.hubs.iter().map(|hub| session(hub, teller));
    let sessions: Vec<HubSession> = futures::future::try_join_all(sessions).await?;
    let addresses: Vec<HubAddress> = sessions.iter().map(|session| session.address.clone()).collect();
    let changes = HubChanges { named: &addresses, removed: &options.removed, timeout: options.timeout };
    let arranged = rules::arrange(first, survey.listing.as_ref(), &survey.further, &changes)?;
    if !arranged.order.is_empty() && (!options.is_empty() || request.settings.driver.is_some()) {
        rules::supports(driver)?;
    }
    let mut named = Vec::new();
    for (session, secret) in sessions.into_iter().zip(&arranged.named) {
        named.push(prepare(request, first, survey, session, secret, narrator.clone()).await?);
    }
    tell(request, survey, &arranged, first, teller);
    let new = named.iter().filter(|one| !one.serves);
    let kubeconfigs: Vec<_> = new.map(|one| (one.secret.clone(), one.kubeconfig.clone())).collect();
    if request.mode == Mode::Render && !kubeconfigs.is_empty() {
        let names: Vec<&str> = kubeconfigs.iter().map(|(name, _)| name.as_str()).collect();
        narrator.tell(Event::note(format!(
            "no token is made for manifests: in the Secrets {} stands {NOT_MADE:?} in its place",
            names.join(", ")
        )));
    }
    // Nothing of a list is taken away by whoever says nothing of it.
    let surplus = match options.is_empty() {
        true => Vec::new(),
        false => surplus(managed, &survey.names.namespace, &arranged).await?,
    };
    let removed = arranged.removed.iter().map(|known| known.told().to_owned()).collect();
    let is_several = arranged.is_ours();
    let Arranged { order, timeout, is_changed, .. } = arranged;
    let hubs = (is_changed || !kubeconfigs.is_empty()).then_some(Hubs { order, timeout, kubeconfigs });
    Ok(Fallback { hubs, is_several, named, first: first.server.clone(), removed, surplus })
}

/// A further hub, as agents dial and trust it.
async fn session(hub: &Cluster, narrator: &dyn Narrator) -> Result<HubSession, Failure> {
    let options = AddressOptions::default();
    let (found, uid) = futures::join!(hub::address(hub, &options, narrator), hub::uid(hub));
    let address = HubAddress { uid, ..found?.address };
    Ok(HubSession { address, trusted_by: TrustedBy::Kubeconfig, access: Access::Admin(hub.clone()) })
}

/// Checks a hub that was named, and finds out what its Secret is to hold.
async fn prepare(
    request: &Request,
    first: &HubAddress,
    survey: &Survey,
    session: HubSession,
    secret: &str,
    narrator: Arc<dyn Narrator>,
) -> Result<Named, Failure> {
    let name = &request.settings.name;
    let there = survey.further.iter().find(|one| one.secret == secret).and_then(|one| one.kubeconfig.as_ref());
    let there = there.filter(|there| there.hub.likeness(&session.address) != Likeness::OtherHub);
    let way = way(request, first, survey, there, &session.address)?;
    let now = Timestamp::now();
    let serves = match there {
        Some(there) if rules::lasts(&there.token, now) => {
            // An address that agents dial may be out of reach here: that alone does not make a new token each time.
            let refused = on_hub::refuses(there, name, narrator.clone()).await;
            still_serves(there, &way, !refused, None, now)
        }
        _ => false,
    };
    narrator.tell(Event::now(format!("asking the hub at {}", session.address.server)));
    let registrant = Registrant {
        name,
        // Whoever is of the list may have been there.
        belongs: if there.is_some() { Belonging::Joined } else { Belonging::Nobody },
        agent: &survey.agent,
        credential: credential_of(there, &[]),
        changed: false,
        serves,
        adopt_namespace: request.adopt_namespace,
    };
    let Checked { adopts, .. } = session.check(&registrant, narrator.as_ref()).await?;
    let mut accepts = false;
    if request.accept.is_some() && session.cluster(name).await?.is_none() {
        let lacking = access::missing(session.client(), &rights_to_accept(name)).await?;
        accepts = lacking.is_empty();
        if let Some(right) = lacking.first() {
            narrator.tell(Event::warning(format!(
                "{name} is not accepted on {} before its agent comes, because you may not {right}: {}",
                session.client().label(),
                accept_there(name)
            )));
        }
    }
    let kubeconfig = match there {
        Some(there) if serves => there.clone(),
        _ => Bootstrap { hub: way, token: NOT_MADE.to_owned(), exclusive: true, grpc: None },
    };
    Ok(Named { session, secret: secret.to_owned(), kubeconfig, serves, adopts, accepts })
}

/// The way of the agent to a further hub. A new one is reached through the proxy that leads to the first one.
fn way(
    request: &Request,
    first: &HubAddress,
    survey: &Survey,
    there: Option<&Bootstrap>,
    found: &HubAddress,
) -> Result<HubAddress, Failure> {
    let way = match there {
        // What agents dial stays as it is.
        Some(Bootstrap { hub, .. }) if !hub.is_at(&found.server) => {
            let without = HubAddress { server: hub.server.clone(), entry: hub.entry.clone(), ..found.clone() };
            request.proxy.way_of_registered(hub, &without)
        }
        Some(Bootstrap { hub, .. }) => {
            let without = HubAddress { entry: hub.entry.clone(), ..found.clone() };
            request.proxy.way(Some(hub), &without)
        }
        None => {
            let firsts = survey.found.bootstrap.as_ref().map(|bootstrap| &bootstrap.hub);
            let through = firsts.filter(|firsts| firsts.proxy.is_some()).map(|firsts| HubAddress {
                proxy: firsts.proxy.clone(),
                // Those of the proxy; the first hub's own vouch for no other hub.
                ca: firsts.ca.iter().filter(|ca| !first.ca.contains(ca)).cloned().collect(),
                ..HubAddress::default()
            });
            request.proxy.way(through.as_ref(), found)
        }
    };
    way.map_err(unknown_ca)
}

/// What accepting a cluster needs that has not registered.
fn rights_to_accept(name: &str) -> [Right; 2] {
    [
        Right::new("create", "cluster.open-cluster-management.io", "managedclusters").on(name),
        Right::new("update", hub_names::REGISTER_GROUP, "managedclusters/accept").on(name),
    ]
}

fn accept_there(name: &str) -> String {
    format!("an administrator of that hub lets it in when it comes: kubectl ocm accept {name}")
}

/// Says what becomes of the list, and what is wrong with it.
fn tell(request: &Request, survey: &Survey, arranged: &Arranged, first: &HubAddress, narrator: &dyn Narrator) {
    let name = &request.settings.name;
    for word in &arranged.unknown {
        narrator.tell(Event::warning(format!("{word} is no hub that the agent of {name} turns to")));
    }
    for known in &arranged.removed {
        let server = known.told();
        narrator.tell(Event::note(format!(
            "whatever the hub at {server} knows of {name} stays there: kubectl ocm detach {name}, on that hub"
        )));
    }
    let kept = survey.further.iter().filter(|one| arranged.order.contains(&one.secret));
    for known in kept.filter(|one| !arranged.named.contains(&one.secret)) {
        let place = format!("{}/{}", survey.names.namespace, known.secret);
        match &known.kubeconfig {
            None if known.is_hidden => {}
            None => narrator.tell(Event::warning(format!(
                "the Klusterlet lists Secret {place}, which is not there or holds no kubeconfig: pods of the agent do not start \
                 without it; name its hub again, or take it out of the list"
            ))),
            Some(there) if !rules::lasts(&there.token, Timestamp::now()) => {
                let ends = rules::ends(&there.token).map(|ends| format!(" until {ends}")).unwrap_or_default();
                narrator.tell(Event::warning(format!(
                    "the token for the hub at {} is valid{ends} alone: name that hub again, and it gets a new one",
                    there.hub.server
                )));
            }
            Some(_) => {}
        }
    }
    if !arranged.is_ours() {
        return;
    }
    let told = |secret: &String| {
        let at = arranged.named.iter().position(|name| name == secret);
        let typed = at.and_then(|at| request.fallback.hubs.get(at)).map(|hub| hub.server.clone());
        let known = || survey.further.iter().find(|one| one.secret == *secret).map(|one| one.told().to_owned());
        typed.or_else(known).unwrap_or_else(|| secret.clone())
    };
    let others = arranged.order.iter().filter(|secret| secret.as_str() != secrets::BOOTSTRAP_HUB_KUBECONFIG);
    let others: Vec<String> = others.map(told).collect();
    let seconds = arranged.timeout.unwrap_or(HubTimeout::USUAL);
    let verb = if arranged.is_changed { "turns" } else { "turns, as before," };
    narrator.tell(Event::note(format!(
        "the agent of {name} {verb} from the hub at {} to {} after {seconds} seconds without an answer",
        first.server,
        others.join(", then ")
    )));
}

/// Secrets of ours that are none of the list: of hubs that leave it now, or of a run that was cut off.
async fn surplus(
    managed: &Cluster,
    namespace: &str,
    arranged: &Arranged,
) -> Result<Vec<(Manifest, String, String)>, Failure> {
    let api: Api<Secret> = Api::namespaced(managed.client.clone(), namespace);
    let mut all = Vec::new();
    for name in rules::SECRETS.into_iter().filter(|name| arranged.order.iter().all(|listed| listed != name)) {
        let found = match api.get_metadata_opt(name).await {
            Ok(found) => found,
            Err(error) => {
                let failure = managed.explain(format_args!("read Secret {namespace}/{name}"), error);
                match failure.reason {
                    Reason::Forbidden => None,
                    _ => return Err(failure),
                }
            }
        };
        let Some(metadata) = found.map(|found| found.metadata) else { continue };
        let is_ours = metadata.annotations.as_ref().is_some_and(|all| all.contains_key(HUB_UID));
        if let (true, Some(uid), Some(version)) = (is_ours, metadata.uid, metadata.resource_version) {
            all.push((rules::secret(namespace, name, &Bootstrap::default()), uid, version));
        }
    }
    Ok(all)
}

impl Fallback {
    /// Whether anything is to be changed on the managed cluster for them.
    pub(super) fn is_change(&self) -> bool {
        self.hubs.is_some() || !self.surplus.is_empty()
    }

    /// Whether anything is to be done for them, be it on a further hub alone.
    pub(super) fn is_work(&self) -> bool {
        self.is_change() || self.named.iter().any(|one| one.accepts || one.adopts)
    }

    /// The rights that taking Secrets away needs.
    pub(super) fn rights(&self) -> Vec<Right> {
        let right = |(manifest, ..): &(Manifest, String, String)| {
            let right = Right::new("delete", "", "secrets").on(manifest.name());
            right.within(manifest.namespace().unwrap_or_default())
        };
        self.surplus.iter().map(right).collect()
    }

    /// Makes the tokens, puts them into the plan, and accepts the cluster where that is wanted.
    ///
    /// # Errors
    /// What a hub said.
    pub(super) async fn carry_out(
        &mut self,
        namespace: &str,
        name: &str,
        plan: &mut Plan,
        narrator: &dyn Narrator,
    ) -> Result<(), Failure> {
        for one in &mut self.named {
            if one.adopts {
                one.session.adopt_namespace(name).await?;
                narrator.tell(Event::done(format!(
                    "gave the cluster the namespace {name:?} of the hub at {}",
                    one.session.address.server
                )));
            }
            if one.accepts {
                accept_ahead(one.session.client(), name, &self.first, narrator).await?;
            }
            if !one.serves {
                let (token, ends) = token::service_account_token(one.session.client(), TOKEN).await?;
                tell_end(&one.session.address.server, ends, narrator);
                one.kubeconfig.token = token;
                plan.replace(rules::secret(namespace, &one.secret, &one.kubeconfig));
            }
        }
        Ok(())
    }

    /// Takes away the Secrets that are none of the list, as they were looked at.
    ///
    /// # Errors
    /// The failure of a request.
    pub(super) async fn clear(&self, managed: &Cluster, dry_run: DryRun) -> Result<Vec<Applied>, Failure> {
        let mut all = Vec::new();
        for (manifest, uid, version) in &self.surplus {
            all.push(remove::pinned(managed, manifest, (uid.as_str(), version.as_str()), dry_run).await?);
        }
        Ok(all)
    }
}

/// Says until when the agent may start with a token.
pub(super) fn tell_end(server: &str, ends: Timestamp, narrator: &dyn Narrator) {
    let told = format!(
        "the token for the hub at {server} is valid until {ends}: an agent with several hubs needs it whenever it starts, and the \
         same command makes a new one"
    );
    // Some hubs give no token for as long as is asked.
    let soon = Timestamp::now() + TOKEN / 2;
    narrator.tell(if ends < soon { Event::warning(told) } else { Event::note(told) });
}

/// Accepts a cluster that has not registered: an agent leaves a hub that has not accepted it when it starts anew.
async fn accept_ahead(admin: &Cluster, name: &str, first: &str, narrator: &dyn Narrator) -> Result<(), Failure> {
    let clusters: Api<ManagedCluster> = Api::all(admin.client.clone());
    let spec = ManagedClusterSpec { hub_accepts_client: Some(true), ..ManagedClusterSpec::default() };
    let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let mut cluster = ManagedCluster::new(name, spec);
    cluster.annotations_mut().insert(rules::FALLBACK_OF.to_owned(), first.to_owned());
    let created = clusters.create(&params, &cluster).await;
    match created.map_err(|error| admin.explain(format_args!("create managed cluster {name:?}"), error)) {
        Ok(_) => {
            narrator.tell(Event::done(format!("accepted {name} on {}", admin.label())));
            narrator.tell(Event::note(format!(
                "{name} is accepted on {} before its agent comes; the agent's certificate request has to be approved then, by a \
                 policy of that hub or with kubectl ocm accept {name}",
                admin.label()
            )));
            Ok(())
        }
        // It has registered meanwhile, which nobody has looked at.
        Err(failure) if failure.reason == Reason::Conflict => {
            narrator.tell(Event::warning(format!(
                "{name} has registered on {} just now and is not accepted: {}",
                admin.label(),
                accept_there(name)
            )));
            Ok(())
        }
        Err(failure) if matches!(failure.reason, Reason::Forbidden | Reason::Admission) => {
            narrator.tell(Event::warning(format!("{failure}; {}", accept_there(name))));
            Ok(())
        }
        Err(failure) => Err(failure),
    }
}

/// Says that an agent is at another hub of its list, and what becomes of that.
pub(super) fn tell_away(name: &str, there: &str, fallback: &Fallback, narrator: &dyn Narrator) {
    let then = match fallback.removed.iter().any(|removed| removed == there) {
        true => "its list is without that hub now, so it registers at another one when it is restarted",
        false => "it stays there until that hub does not answer, or denies it",
    };
    narrator.tell(Event::warning(format!(
        "the agent of {name} has turned to the hub at {there}, and is not followed: {then}"
    )));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heard::Heard;

    #[test]
    fn a_token_that_ends_soon_is_a_warning() {
        let heard = Heard::default();
        for days in [1, 350] {
            tell_end("https://hub", Timestamp::now() + Duration::from_secs(days * 24 * 3600), &heard);
        }
        let kinds: Vec<bool> =
            heard.0.into_inner().unwrap().iter().map(|event| matches!(event, Event::Warning(_))).collect();
        assert_eq!(kinds, [true, false]);
    }
}
