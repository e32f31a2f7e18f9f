//! Whether the hub itself says that a cluster has the name under which it has joined. Nothing is changed here.

use std::sync::Arc;

use ocm_api::names::identity;
use ocm_core::certificate::is_signed_by;
use ocm_core::join::handover::{BACKDATE, doubt};
use ocm_core::{Failure, Narrator, Silent};
use ocm_kube::{Cluster, access};
use secrecy::SecretString;

use super::client::{REQUEST, dial};
use super::driver;
use super::session::HubSession;
use super::survey::Survey;
use crate::observe::managed::{self as observe, Held};

/// To whom the name of a cluster goes whose agent asks for a certificate with a new key.
#[derive(Clone, Debug)]
pub(super) enum Handover {
    /// To that key: the hub has said that the cluster has the name, of the managed cluster with this UID.
    ByItself(String),
    /// To whom a person says, for this reason.
    ByPerson(String),
}

/// Asks the hub whose certificate the agent of a cluster holds that has joined as `name`.
///
/// # Errors
/// The failure to read either cluster, or to reach the hub; not that the hub does not let the agent in.
pub(super) async fn of(managed: &Cluster, hub: &HubSession, survey: &Survey, name: &str) -> Result<Handover, Failure> {
    let by_person = |why: String| Ok(Handover::ByPerson(why));
    let Some(held) = observe::certificate(managed, &survey.names.namespace).await? else {
        return by_person("its agent holds no certificate with a key".to_owned());
    };
    let begins = held.certificate.not_before;
    let holder = match holder(hub, &held).await? {
        Ok(user) if is_agents(&user) => Ok((user, begins + BACKDATE)),
        // Whom the hub has let in over gRPC, its API server does not know; and nothing tells that any more when the agent leaves gRPC.
        other => match holder_over_grpc(hub, &held, survey.by_grpc).await? {
            Some(user) => Ok((user, begins)),
            None => other.map(|user| (user, begins + BACKDATE)),
        },
    };
    let (user, issued) = match holder {
        Ok(holder) => holder,
        Err(refused) => {
            return by_person(format!(
                "the hub does not let its agent in with the certificate that it holds: {refused}"
            ));
        }
    };
    let meta = hub.cluster(name).await?.map(|cluster| cluster.metadata).unwrap_or_default();
    let (Some(uid), Some(registered)) = (meta.uid, meta.creation_timestamp) else {
        return by_person(format!("the hub has no managed cluster {name:?}"));
    };
    Ok(doubt(name, &user, issued, registered.0).map_or(Handover::ByItself(uid), Handover::ByPerson))
}

/// Who the hub's API server says that the holder of the certificate is, or why it does not let it in. It is asked by the way that the
/// user has to it, and where something on that way takes the user for somebody by itself, as gateways do, by the one that agents have.
async fn holder(hub: &HubSession, held: &Held) -> Result<Result<String, Failure>, Failure> {
    let narrator: Arc<dyn Narrator> = Arc::new(Silent);
    // What nobody verifies may be anybody's answer.
    let own = hub.admin().filter(|admin| !admin.insecure).cloned();
    // Without a credential, the way that agents have is the same for everybody.
    let agents = dial(&hub.address, SecretString::default(), narrator.clone()).await;
    let mut first = None;
    for way in own.map(Ok).into_iter().chain([agents]) {
        let asked = async {
            let client = way?.with_certificate(&held.pem, &held.key, REQUEST, narrator.clone())?;
            access::who(&client.client).await.map_err(|error| client.explain("ask whose certificate it is", error))
        };
        let answer = asked.await;
        let user = answer.map(|review| review.status.and_then(|status| status.user_info?.username).unwrap_or_default());
        if user.as_ref().is_ok_and(|user| is_agents(user)) {
            return Ok(user);
        }
        first.get_or_insert(user);
    }
    match first {
        Some(Err(failure)) if failure.reason.is_transient() => Err(failure),
        Some(answer) => Ok(answer),
        None => Ok(Err(Failure::other("it was not asked"))),
    }
}

/// Who the holder of a certificate is that the hub's own authority has signed for its gRPC server; none where it has not. Nothing asks
/// that server who somebody is. `is_certain`: the agent was let in over gRPC.
async fn holder_over_grpc(hub: &HubSession, held: &Held, is_certain: bool) -> Result<Option<String>, Failure> {
    // Whoever has copied the certificate alone does not hold it.
    if hub.client().with_certificate(&held.pem, &held.key, REQUEST, Arc::new(Silent)).is_err() {
        return Ok(None);
    }
    let authorities = match driver::authority(hub.client()).await {
        Ok(authorities) => authorities,
        Err(failure) if failure.reason.is_transient() || is_certain => return Err(failure),
        Err(_) => return Ok(None),
    };
    let is_signed = |own: &Vec<u8>| authorities.iter().any(|authority| is_signed_by(own, authority));
    Ok(match (held.chain.first().is_some_and(is_signed), held.certificate.common_names.as_slice()) {
        (true, [user]) => Some(user.clone()),
        _ => None,
    })
}

fn is_agents(user: &str) -> bool {
    identity::parse_agent_user(user).is_some()
}
