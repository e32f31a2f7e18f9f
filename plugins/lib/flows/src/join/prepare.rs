//! Everything that is found out, and planned, before anything is touched.

use std::sync::Arc;

use jiff::Timestamp;
use ocm_api::names::secrets;
use ocm_core::join::agent::Credential;
use ocm_core::join::state::{Belonging, belonging, still_serves};
use ocm_core::join::{self, Kubeconfigs};
use ocm_core::kubeconfig::Bootstrap;
use ocm_core::plan::Mode;
use ocm_core::{Event, Failure, Narrator, Plan, Reason, Stage, name};
use ocm_kube::Cluster;
use ocm_kube::access;

use super::hosted::{self, Guest};
use super::reach;
use super::session::HubSession;
use super::survey::{self, Survey};
use super::{Request, on_hub, preflight};

/// Stands in a plan for a token that is made only when the plan is carried out.
const NOT_MADE: &str = "made-when-joining";

/// Everything that is known before anything is touched.
pub(super) struct Prepared<'a> {
    pub(super) hub: HubSession,
    pub(super) survey: Survey,
    /// The managed cluster, where it is another one than that where the agents run.
    pub(super) guest: Option<Guest<'a>>,
    /// Whether the cluster has joined this hub already: then nothing is changed.
    pub(super) joined: bool,
    pub(super) plan: Plan,
    /// The kubeconfig that the agent registers with.
    pub(super) kubeconfig: Option<Bootstrap>,
    /// Whether the token in the plan and in the kubeconfig is still to be made.
    pub(super) token_is_missing: bool,
    /// Whether the hub's namespace of the cluster's name, which is nobody's yet, becomes its own.
    pub(super) adopts: bool,
}

pub(super) async fn prepare<'a>(
    managed: &Cluster,
    request: &'a Request,
    narrator: Arc<dyn Narrator>,
) -> Result<Prepared<'a>, Failure> {
    let wanted = &request.settings.name;
    let guest = request.guest.as_deref();
    check_name(wanted)?;
    let label =
        guest.map_or_else(|| managed.label(), |guest| format!("{}, which {} hosts,", guest.label(), managed.label()));
    narrator.tell(Event::now(format!("finding the hub and its CA, and looking at {label}")));
    let (hub, survey) = futures::join!(reach::reach(request, narrator.clone()), survey::survey(managed, guest, wanted));
    let (hub, mut survey) = (hub?, survey?);
    if survey.terminating && request.mode.changes() {
        survey::old_namespace_gone(managed, &survey, request.timeout, narrator.as_ref()).await?;
        // What was read of the old namespace went with it.
        survey = survey::survey(managed, guest, wanted).await?;
    }
    let guest = match guest {
        Some(guest) => Some(hosted::look(guest, &survey.names.klusterlet).await?),
        None => None,
    };
    let access = guest.as_ref().map(|guest| guest.kubeconfig(NOT_MADE));
    if let Some(identity) = &mut survey.found.identity {
        reach::narrow(&mut identity.hub, &hub.address).await;
    }
    if let Some(bootstrap) = &mut survey.found.bootstrap {
        reach::narrow(&mut bootstrap.hub, &hub.address).await;
    }
    let now = Timestamp::now();
    let belongs = belonging(&survey.found, wanted, &hub.address, now, &label)?;
    if belongs == Belonging::Joined {
        hub.remembers(wanted, &label).await?;
        let server = &hub.address.server;
        let kubeconfigs = Kubeconfigs { hub: None, managed: access.as_ref() };
        let plan = match (request.mode, &access) {
            (Mode::Render, _) => join::plan(&request.settings, kubeconfigs, &survey.live),
            (_, Some(access)) => {
                let secret = join::external_secret(&survey.names.namespace, access);
                Plan::new([Stage::new("the kubeconfig of the managed cluster", vec![secret])])
            }
            (_, None) => Plan::default(),
        };
        let (verb, is) = if request.mode.changes() { ("gets", "is") } else { ("would get", "would be") };
        narrator.tell(Event::note(match &guest {
            Some(_) => format!(
                "{label} has joined {server} as {wanted:?} already; its operator {verb} a new token for it, and nothing else \
                 {is} changed"
            ),
            None => format!("{label} has joined {server} as {wanted:?} already; nothing is changed"),
        }));
        if let Some(guest) = guest.as_ref().filter(|_| request.mode.changes()) {
            narrator.tell(Event::now("checking your rights"));
            access::require(managed, "join the cluster", &access::to_apply(&plan)).await?;
            guest.check_rights().await?;
        }
        let kubeconfig = survey.found.bootstrap.clone();
        return Ok(Prepared {
            hub,
            survey,
            guest,
            joined: true,
            plan,
            kubeconfig,
            token_is_missing: false,
            adopts: false,
        });
    }
    narrator.tell(Event::now(format!("asking the hub at {}", hub.address.server)));
    let token = hub.token();
    // What is there may still serve: then agents go on undisturbed, and no token is made for nothing.
    let mut serves = None;
    if let Some(there) = survey.found.bootstrap.clone().filter(|there| !there.token.is_empty()) {
        let accepted = match on_hub::Registrar::of(&there, narrator.clone()).await {
            Ok(registrar) => registrar.cluster(wanted).await.is_ok(),
            Err(_) => false,
        };
        if still_serves(&there, &hub.address, accepted, token, now) {
            serves = Some(there);
        }
    }
    let registrant = preflight::Registrant {
        name: wanted,
        belongs,
        agent: &survey.agent,
        credential: credential_of(survey.found.bootstrap.as_ref()),
        serves: serves.is_some(),
        adopt_namespace: request.adopt_namespace,
    };
    let checked = hub.check(&registrant, narrator.as_ref()).await;
    // It may be about to become one: whoever installs a hub need not wait before clusters join it.
    let adopts = match checked {
        Err(failure) if failure.reason == Reason::KindNotServed && hub.starts().await? => {
            if !request.mode.changes() {
                return Err(hub.still_starting());
            }
            hub.started(request.timeout, narrator.as_ref()).await?;
            hub.check(&registrant, narrator.as_ref()).await?
        }
        checked => checked?,
    };
    let token_is_missing = token.is_none() && serves.is_none();
    let new = || {
        let word = token.unwrap_or(NOT_MADE).to_owned();
        Bootstrap { hub: hub.address.clone(), token: word, exclusive: token.is_none() }
    };
    let new = serves.is_none().then(new);
    let kubeconfigs = Kubeconfigs { hub: new.as_ref(), managed: access.as_ref() };
    let plan = join::plan(&request.settings, kubeconfigs, &survey.live);
    narrator.tell(Event::now("checking your rights"));
    access::require(managed, "join the cluster", &preflight::rights(&plan, &survey)).await?;
    if let Some(guest) = &guest {
        guest.check_rights().await?;
    }
    if let (Some(_), Some(admin)) = (&request.accept, hub.admin()) {
        access::require(admin, "accept the cluster", &preflight::rights_to_accept()).await?;
    }
    if token_is_missing && request.mode == Mode::Render {
        narrator.tell(Event::note(format!(
            "no token is made for manifests: in Secret {}/{} stands {NOT_MADE:?} in its place",
            survey.names.namespace,
            secrets::BOOTSTRAP_HUB_KUBECONFIG
        )));
    }
    if let (Some(guest), Mode::Render) = (&guest, request.mode) {
        narrator.tell(Event::note(format!(
            "the manifests are those of {}; the account of the operator on {} is not among them, and {NOT_MADE:?} stands in \
             the place of its token in Secret {}/{}",
            managed.label(),
            guest.cluster.label(),
            survey.names.namespace,
            secrets::EXTERNAL_MANAGED_KUBECONFIG
        )));
    }
    Ok(Prepared { hub, survey, guest, joined: false, plan, kubeconfig: serves.or(new), token_is_missing, adopts })
}

/// What the hub knows the requests of the agent with this kubeconfig by.
pub(super) fn credential_of(kubeconfig: Option<&Bootstrap>) -> Credential {
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
