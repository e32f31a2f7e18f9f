//! By which way an agent reaches a hub that it has not joined, and whether the kubeconfig that is there serves for it.

use std::sync::Arc;

use jiff::Timestamp;
use ocm_core::join::fallback::lasts;
use ocm_core::join::membership::{Belonging, still_serves};
use ocm_core::kubeconfig::{Bootstrap, HubAddress};
use ocm_core::{Failure, Narrator};

use super::bootstrap::{may_serve, unknown_ca};
use super::known::Known;
use super::on_hub;
use super::request::Request;

/// The way by which the agent reaches the hub.
pub(super) fn way(request: &Request, belongs: Belonging, known: &Known<'_>) -> Result<HubAddress, Failure> {
    let there = known.ways.bootstrap.as_ref().map(|there| &there.hub);
    // What is left of an agent that is not there any more says nothing of this one.
    let before = there.filter(|_| belongs == Belonging::Begun);
    let without = HubAddress { entry: there.and_then(|there| there.entry.clone()), ..known.hub.address.clone() };
    request.proxy.way(before, &without).map_err(unknown_ca)
}

/// The kubeconfig that is there, if it still serves: then agents go on undisturbed, and no token is made for nothing.
pub(super) async fn serving(
    request: &Request,
    known: &Known<'_>,
    way: &HubAddress,
    narrator: Arc<dyn Narrator>,
) -> Option<Bootstrap> {
    let Known { hub, ways, chosen, fallback, .. } = known;
    let (there, token, now) = (ways.bootstrap.as_ref()?, hub.token(), Timestamp::now());
    // An address that agents dial may be out of reach here, and the hub may be busy: neither makes a second key.
    let accepted = !on_hub::refuses(there, &request.settings.name, narrator).await;
    let is_long = !fallback.is_several || token.is_some() || lasts(&there.token, now);
    let serves = is_long
        && may_serve(there, request)
        && there.grpc == chosen.grpc
        && still_serves(there, way, accepted, token, now);
    serves.then(|| there.clone())
}
