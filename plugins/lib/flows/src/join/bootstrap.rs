//! The kubeconfig that an agent registers with: its token, which may be there or still to be made, and the CAs in it.

use ocm_api::names::secrets;
use ocm_core::join::agent::Credential;
use ocm_core::join::proxy::HubCaUnknown;
use ocm_core::kubeconfig::Bootstrap;
use ocm_core::plan::Mode;
use ocm_core::{Event, Failure, Narrator, Reason, Remedy};

use super::request::Request;
use super::survey::Survey;

/// Stands in a plan for a token that is made only when the plan is carried out.
pub(super) const NOT_MADE: &str = "made-when-joining";

/// Says what stands in rendered manifests where a token would.
pub(super) fn tell_rendered(survey: &Survey, narrator: &dyn Narrator) {
    narrator.tell(Event::note(format!(
        "no token is made for manifests: in Secret {}/{} stands {NOT_MADE:?} in its place",
        survey.names.namespace,
        secrets::BOOTSTRAP_HUB_KUBECONFIG
    )));
}

/// Whether the token that is there may go on to be used. Of one that others may hold, too, nobody can tell whose request it made:
/// to be accepted, the agent gets one of its own. Over gRPC the hub does not note the token.
pub(super) fn may_serve(there: &Bootstrap, request: &Request) -> bool {
    request.accept.is_none() || request.mode == Mode::Render || there.exclusive || there.grpc.is_some()
}

/// What the hub knows the requests of the agent with this kubeconfig by. `strangers`: keys that asked before the agent did.
pub(super) fn credential_of(kubeconfig: Option<&Bootstrap>, strangers: &[String]) -> Credential {
    match kubeconfig {
        None => Credential::Unknown,
        Some(Bootstrap { token, grpc: Some(_), .. }) => Credential::over_grpc(token, strangers.to_vec()),
        Some(Bootstrap { token, exclusive, .. }) => Credential::of(token, *exclusive),
    }
}

/// The CA of a proxy is given, and that of the hub is not known.
pub(super) fn unknown_ca(HubCaUnknown: HubCaUnknown) -> Failure {
    Failure::new(Reason::Tls, "the CA of the proxy cannot be given to agents without the CA of the hub")
        .because("agents verify both with the same certificates, and the hub with those of their system until now")
        .hint(Remedy::HubCa)
}
