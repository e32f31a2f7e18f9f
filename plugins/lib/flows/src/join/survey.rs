//! What the cluster that is to join holds, and what of it is in the way.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, PartialObjectMeta};
use ocm_api::names::{namespaces, operators};
use ocm_core::join::Live;
use ocm_core::join::agent::Agent;
use ocm_core::join::fallback::{self, Known, Listing};
use ocm_core::join::handover::issued_at_the_latest;
use ocm_core::join::hosted::of_cluster;
use ocm_core::join::lease::{self, StaleLease, stale};
use ocm_core::join::membership::{Found, own};
use ocm_core::{Applied, DryRun, Event, Failure, Narrator, Outcome};
use ocm_kube::Cluster;
use ocm_kube::remove;
use serde_json::Value;

use crate::hub;
use crate::leave::namespace_gone;
use crate::observe::managed::{self as observe, Names};

/// What was found.
pub(super) struct Survey {
    /// What decides whether it may join.
    pub(super) found: Found,
    /// What plans build upon.
    pub(super) live: Live,
    /// The Klusterlet, there or to be.
    pub(super) names: Names,
    /// The namespaces of operator and agents that are being deleted.
    pub(super) terminating: Vec<String>,
    /// Leader leases whose holder is gone.
    pub(super) stale: Vec<StaleLease>,
    /// The agent, as far as it has written down who it is.
    pub(super) agent: Agent,
    /// When its certificate was issued, if it holds one. One of the hub's gRPC signer was issued a little earlier.
    pub(super) issued: Option<Timestamp>,
    /// Whether it has the file of those who are let in over gRPC.
    pub(super) by_grpc: bool,
    /// The hubs that its Klusterlet lists, if it lists several.
    pub(super) listing: Option<Listing>,
    /// Those of them besides the first one.
    pub(super) further: Vec<Known>,
}

/// Looks at the cluster where the agents run; `guest` is the one that joins, where that is another one.
pub(super) async fn survey(managed: &Cluster, guest: Option<&Cluster>, name: &str) -> Result<Survey, Failure> {
    let klusterlets = observe::klusterlets(managed).await?;
    let is_hosted = guest.is_some();
    let (first, names) = match is_hosted {
        true => (of_cluster(&klusterlets, name).next().cloned(), Names::of_hosted(&klusterlets, name)),
        false => (own(&klusterlets).next().cloned(), Names::of(&klusterlets)),
    };
    // As it is, unread: what we do not know of it must not get lost.
    let deployments: Api<DynamicObject> =
        Api::namespaced_with(managed.client.clone(), namespaces::OPERATOR, &ApiResource::erase::<Deployment>(&()));
    let spaces: Api<Namespace> = Api::all(managed.client.clone());
    let (operator, bootstrap, facts, operators, agents, stale, published) = futures::join!(
        deployments.get_opt(operators::KLUSTERLET),
        observe::bootstrap(managed, &names.namespace),
        observe::identity(managed, &names.namespace),
        spaces.get_metadata_opt(namespaces::OPERATOR),
        spaces.get_metadata_opt(&names.namespace),
        stale_leases(managed, &names),
        hub::cluster_info(guest.unwrap_or(managed)),
    );
    let operator = operator.map_err(|error| managed.explain("read the operator's Deployment", error))?;
    let operators = operators.map_err(|error| managed.explain("read the operator's namespace", error))?;
    let agents = agents.map_err(|error| managed.explain("read the agent's namespace", error))?;
    let (bootstrap, facts) = (bootstrap?, facts?);
    let mut identity = facts.identity();
    if let (Some(identity), Some(bootstrap)) = (&mut identity, &bootstrap)
        && identity.hub.is_at(&bootstrap.hub.server)
    {
        identity.hub.uid.clone_from(&bootstrap.hub.uid);
    }
    let klusterlet = first.as_ref().map(json).transpose()?;
    let listing = klusterlet.as_ref().and_then(fallback::listing);
    let further = observe::further(managed, &names.namespace, listing.as_ref()).await?;
    let reachable = |url: &String| ocm_net::Endpoint::parse(url, None).is_ok_and(|endpoint| !endpoint.is_loopback());
    Ok(Survey {
        live: Live {
            klusterlet,
            operator: operator.as_ref().map(json).transpose()?,
            published: published.ok().flatten().map(|info| info.server).filter(reachable),
            is_shared: is_hosted && operator.is_some() && klusterlets.len() > usize::from(first.is_some()),
        },
        found: Found { klusterlets, bootstrap, identity, is_hosted },
        names,
        terminating: [operators, agents].into_iter().flatten().filter_map(leaving).collect(),
        stale: stale?,
        agent: facts.agent(name, Timestamp::now()),
        issued: facts.certificate.as_ref().map(|certificate| issued_at_the_latest(certificate.not_before)),
        by_grpc: facts.by_grpc,
        listing,
        further,
    })
}

fn json<T: serde::Serialize>(object: &T) -> Result<Value, Failure> {
    serde_json::to_value(object).map_err(|error| Failure::other("the server's answer cannot be read").because(error))
}

/// Leader leases whose holder is gone.
pub(super) async fn stale_leases(managed: &Cluster, names: &Names) -> Result<Vec<StaleLease>, Failure> {
    Ok(observe::leases(managed, names).await?.iter().flat_map(stale).collect())
}

/// Deletes exactly the leases that were looked at; one that somebody has taken since stays.
pub(super) async fn clear(managed: &Cluster, stale: &[StaleLease], narrator: &dyn Narrator) {
    for StaleLease { namespace, name, pod, uid, resource_version } in stale {
        let pin = (uid.as_deref().unwrap_or_default(), resource_version.as_deref().unwrap_or_default());
        match remove::pinned(managed, &lease::manifest(namespace, name), pin, DryRun::No).await {
            Ok(Applied { outcome: Outcome::Deleted, .. }) => {
                narrator.tell(Event::done(format!("cleared leader lease {namespace}/{name}")));
                narrator.tell(Event::note(format!(
                    "cleared leader lease {namespace}/{name}: the process of pod {pod} that held it has ended, and its \
                     successor would have waited for more than two minutes"
                )));
            }
            Ok(_) => {}
            // It only costs time.
            Err(failure) => narrator.tell(Event::warning(failure.to_string())),
        }
    }
}

/// Waits until these namespaces of an earlier agent are really gone: what is created in them now would go with them.
pub(super) async fn old_namespaces_gone(
    cluster: &Cluster,
    names: &[String],
    timeout: Duration,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let deadline = Instant::now() + timeout;
    for name in names {
        let doing = format!("waiting until namespace {name} of the earlier agent is gone");
        namespace_gone(cluster, name, &doing, deadline, narrator).await?;
    }
    Ok(())
}

/// The name of a namespace that is being deleted.
pub(super) fn leaving(space: PartialObjectMeta<Namespace>) -> Option<String> {
    space.metadata.deletion_timestamp.and(space.metadata.name)
}
