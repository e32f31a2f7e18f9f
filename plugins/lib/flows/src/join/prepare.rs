//! Everything that is found out, and planned, before anything is touched.

use std::sync::Arc;

use jiff::Timestamp;
use ocm_api::names::secrets;
use ocm_core::join;
use ocm_core::join::agent::Credential;
use ocm_core::join::state::{Belonging, belonging, still_serves};
use ocm_core::kubeconfig::Bootstrap;
use ocm_core::plan::Mode;
use ocm_core::{Event, Failure, Narrator, Plan, Reason, name};
use ocm_kube::Cluster;
use ocm_kube::access;

use super::reach;
use super::session::HubSession;
use super::survey::{self, Survey};
use super::{Request, on_hub, preflight};

/// Stands in a plan for a token that is made only when the plan is carried out.
const NOT_MADE: &str = "made-when-joining";

/// Everything that is known before anything is touched.
pub(super) struct Prepared {
    pub(super) hub: HubSession,
    pub(super) survey: Survey,
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

pub(super) async fn prepare(
    managed: &Cluster,
    request: &Request,
    narrator: Arc<dyn Narrator>,
) -> Result<Prepared, Failure> {
    let wanted = &request.settings.name;
    check_name(wanted)?;
    narrator.tell(Event::now(format!("finding the hub and its CA, and looking at {}", managed.label())));
    let (hub, survey) = futures::join!(reach::reach(request, narrator.clone()), survey::survey(managed, wanted));
    let (hub, mut survey) = (hub?, survey?);
    if survey.terminating && request.mode.changes() {
        survey::old_namespace_gone(managed, &survey, request.timeout, narrator.as_ref()).await?;
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
        hub.remembers(wanted, &managed.label()).await?;
        narrator.tell(Event::note(format!(
            "{} has joined {} as {wanted:?} already; nothing is changed",
            managed.label(),
            hub.address.server
        )));
        let plan = match request.mode {
            Mode::Render => join::plan(&request.settings, None, &survey.live),
            _ => Plan::default(),
        };
        let kubeconfig = survey.found.bootstrap.clone();
        return Ok(Prepared { hub, survey, joined: true, plan, kubeconfig, token_is_missing: false, adopts: false });
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
    let plan = join::plan(&request.settings, new.as_ref(), &survey.live);
    narrator.tell(Event::now("checking your rights"));
    access::require(managed, "join the cluster", &preflight::rights(&plan, &survey)).await?;
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
    Ok(Prepared { hub, survey, joined: false, plan, kubeconfig: serves.or(new), token_is_missing, adopts })
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
