//! What the cluster that is to join holds.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, NamespaceCondition, Pod, Secret};
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Preconditions};
use ocm_api::Klusterlet;
use ocm_api::names::{namespaces, operators, secrets};
use ocm_core::certificate::{self, Certificate};
use ocm_core::join::Live;
use ocm_core::join::agent::Agent;
use ocm_core::join::lease::{self, stale_holder};
use ocm_core::join::state::{Found, Identity, own};
use ocm_core::kubeconfig::{Bootstrap, EXCLUSIVE_TOKEN, HUB_UID};
use ocm_core::{Event, Failure, Narrator, Reason};
use ocm_kube::wait::{Look, until};
use ocm_kube::{Cluster, explain};
use serde_json::Value;

use crate::hub;

/// What was found.
pub(super) struct Survey {
    /// What decides whether it may join.
    pub(super) found: Found,
    /// What plans build upon.
    pub(super) live: Live,
    /// The agent's namespace.
    pub(super) agent_namespace: String,
    /// Name of the Klusterlet, there or to be.
    pub(super) klusterlet: String,
    /// Whether the agent's namespace is going away.
    pub(super) terminating: bool,
    /// Leader leases whose holder is gone.
    pub(super) stale: Vec<Stale>,
    /// The agent, as far as it has written down who it is.
    pub(super) agent: Agent,
}

/// A leader lease whose holder is gone.
#[derive(Clone, Debug)]
pub(super) struct Stale {
    pub(super) namespace: String,
    name: &'static str,
    /// The pod that held it.
    pod: String,
    uid: Option<String>,
    resource_version: Option<String>,
}

pub(super) async fn survey(managed: &Cluster, name: &str) -> Result<Survey, Failure> {
    let klusterlets = klusterlets(managed).await?;
    let first = own(&klusterlets).next().cloned();
    let named = first.as_ref().and_then(|first| first.spec.namespace.clone()).filter(|name| !name.is_empty());
    let agent_namespace = named.unwrap_or_else(|| namespaces::AGENT.to_owned());
    let klusterlet = first.as_ref().and_then(|first| first.metadata.name.clone());
    let klusterlet = klusterlet.unwrap_or_else(|| operators::KLUSTERLET_OBJECT.to_owned());
    // As it is, unread: what we do not know of it must not get lost.
    let deployments: Api<DynamicObject> =
        Api::namespaced_with(managed.client.clone(), namespaces::OPERATOR, &ApiResource::erase::<Deployment>(&()));
    let spaces: Api<Namespace> = Api::all(managed.client.clone());
    let (operator, bootstrap, identity, namespace, stale, published) = futures::join!(
        deployments.get_opt(operators::KLUSTERLET),
        secret(managed, &agent_namespace, secrets::BOOTSTRAP_HUB_KUBECONFIG),
        secret(managed, &agent_namespace, secrets::HUB_KUBECONFIG),
        spaces.get_opt(&agent_namespace),
        stale_leases(managed, &agent_namespace, &klusterlet),
        hub::cluster_info(managed),
    );
    let operator = operator.map_err(|error| managed.explain("read the operator's Deployment", error))?;
    let namespace = namespace.map_err(|error| managed.explain("read the agent's namespace", error))?;
    let bootstrap = bootstrap?.as_ref().and_then(read_bootstrap);
    let own = identity?;
    let mut identity = own.as_ref().and_then(read_identity);
    if let (Some(identity), Some(bootstrap)) = (&mut identity, &bootstrap)
        && identity.hub.is_at(&bootstrap.hub.server)
    {
        identity.hub.uid.clone_from(&bootstrap.hub.uid);
    }
    let reachable = |url: &String| ocm_net::Endpoint::parse(url, None).is_ok_and(|endpoint| !endpoint.is_loopback());
    Ok(Survey {
        live: Live {
            klusterlet: first.as_ref().map(json).transpose()?,
            operator: operator.as_ref().map(json).transpose()?,
            published: published.ok().flatten().map(|info| info.server).filter(reachable),
        },
        found: Found { klusterlets, bootstrap, identity },
        agent_namespace,
        klusterlet,
        terminating: namespace.is_some_and(|namespace| namespace.metadata.deletion_timestamp.is_some()),
        stale: stale?,
        agent: read_agent(name, own.as_ref()),
    })
}

fn json<T: serde::Serialize>(object: &T) -> Result<Value, Failure> {
    serde_json::to_value(object).map_err(|error| Failure::other("the server's answer cannot be read").because(error))
}

async fn klusterlets(managed: &Cluster) -> Result<Vec<Klusterlet>, Failure> {
    let api: Api<Klusterlet> = Api::all(managed.client.clone());
    match api.list(&ListParams::default()).await {
        Ok(list) => Ok(list.items),
        Err(error) => match explain(&error).reason {
            Reason::KindNotServed | Reason::NotFound => Ok(Vec::new()),
            _ => Err(managed.explain("list Klusterlets", error)),
        },
    }
}

async fn secret(managed: &Cluster, namespace: &str, name: &str) -> Result<Option<Secret>, Failure> {
    let api: Api<Secret> = Api::namespaced(managed.client.clone(), namespace);
    api.get_opt(name).await.map_err(|error| managed.explain(format_args!("read Secret {namespace}/{name}"), error))
}

fn text(secret: &Secret, key: &str) -> Option<String> {
    String::from_utf8(secret.data.as_ref()?.get(key)?.0.clone()).ok()
}

/// The certificate in an agent's Secret.
fn held(secret: &Secret) -> Option<Certificate> {
    Certificate::read(certificate::from_pem(text(secret, secrets::TLS_CERT_KEY)?.as_bytes()).ok()?.first()?)
}

/// The agent's own identity: its Secret is there empty before the hub has let it in.
fn read_identity(secret: &Secret) -> Option<Identity> {
    let expires = Some(held(secret)?.not_after);
    Some(Identity {
        hub: hub::parse(&text(secret, secrets::KUBECONFIG_KEY)?)?.hub,
        cluster: text(secret, secrets::CLUSTER_NAME_KEY)?,
        expires,
    })
}

/// What an agent registers with.
fn read_bootstrap(secret: &Secret) -> Option<Bootstrap> {
    let annotations = secret.metadata.annotations.as_ref();
    let noted = |key: &str| annotations.and_then(|all| all.get(key)).filter(|word| !word.is_empty());
    let mut bootstrap = hub::parse(&text(secret, secrets::KUBECONFIG_KEY)?)?;
    bootstrap.exclusive = noted(EXCLUSIVE_TOKEN).is_some_and(|word| word == "true");
    bootstrap.hub.uid = noted(HUB_UID).cloned();
    Some(bootstrap)
}

/// The agent of cluster `name`, of whose Secret as much is known as it has written.
fn read_agent(name: &str, secret: Option<&Secret>) -> Agent {
    let text = |key: &str| secret.and_then(|secret| text(secret, key)).filter(|text| !text.is_empty());
    let held = secret.and_then(held).filter(|certificate| certificate.not_after > Timestamp::now());
    Agent {
        cluster: name.to_owned(),
        // The names of an earlier life, under another name, are over.
        name: text(secrets::AGENT_NAME_KEY).filter(|_| text(secrets::CLUSTER_NAME_KEY).as_deref() == Some(name)),
        key: held.map(|certificate| certificate.pin.to_string()),
    }
}

/// The agent of cluster `name`, as far as it has written down who it is.
pub(super) async fn agent(managed: &Cluster, namespace: &str, name: &str) -> Result<Agent, Failure> {
    Ok(read_agent(name, secret(managed, namespace, secrets::HUB_KUBECONFIG).await?.as_ref()))
}

/// Leader leases whose holder is gone. Nobody's lease is touched whose holder could still be there.
pub(super) async fn stale_leases(managed: &Cluster, agent: &str, klusterlet: &str) -> Result<Vec<Stale>, Failure> {
    let operator = (namespaces::OPERATOR, vec![(lease::OPERATOR.name, operators::KLUSTERLET.to_owned())]);
    let agents = lease::AGENTS.iter().map(|lock| (lock.name, format!("{klusterlet}{}", lock.of))).collect();
    let mut stale = Vec::new();
    for (namespace, locks) in [operator, (agent, agents)] {
        let leases: Api<Lease> = Api::namespaced(managed.client.clone(), namespace);
        let pods: Api<Pod> = Api::namespaced(managed.client.clone(), namespace);
        let explained = |error| managed.explain(format_args!("read the leader leases of {namespace}"), error);
        let found = leases.list(&ListParams::default()).await.map_err(explained)?;
        let held =
            found.items.iter().any(|lease| locks.iter().any(|(name, _)| lease.metadata.name.as_deref() == Some(*name)));
        if !held {
            continue;
        }
        // The pods are read after the leases: a holder that is not among them was gone by then.
        let pods = pods.list_metadata(&ListParams::default()).await.map_err(explained)?;
        let pods: Vec<String> = pods.items.into_iter().filter_map(|pod| pod.metadata.name).collect();
        for (name, deployment) in locks {
            let lease = found.items.iter().find(|lease| lease.metadata.name.as_deref() == Some(name));
            let Some((lease, pod)) = lease.and_then(|lease| Some((lease, stale_holder(lease, &deployment, &pods)?)))
            else {
                continue;
            };
            stale.push(Stale {
                namespace: namespace.to_owned(),
                name,
                pod,
                uid: lease.metadata.uid.clone(),
                resource_version: lease.metadata.resource_version.clone(),
            });
        }
    }
    Ok(stale)
}

/// Deletes exactly the leases that were looked at; one that somebody has taken since stays.
pub(super) async fn clear(managed: &Cluster, stale: &[Stale], narrator: &dyn Narrator) -> Result<(), Failure> {
    for Stale { namespace, name, pod, uid, resource_version } in stale {
        let api: Api<Lease> = Api::namespaced(managed.client.clone(), namespace);
        let preconditions = Preconditions { uid: uid.clone(), resource_version: resource_version.clone() };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match api.delete(name, &params).await {
            Ok(_) => {
                narrator.tell(Event::done(format!("cleared leader lease {namespace}/{name}")));
                narrator.tell(Event::note(format!(
                    "cleared leader lease {namespace}/{name}: pod {pod}, which held it, is gone, and its successor would \
                     have waited for more than two minutes"
                )));
            }
            Err(error) => {
                let failure = managed.explain(format_args!("clear leader lease {namespace}/{name}"), error);
                match failure.reason {
                    Reason::NotFound | Reason::Conflict => {}
                    // It only costs time.
                    _ => narrator.tell(Event::warning(failure.to_string())),
                }
            }
        }
    }
    Ok(())
}

/// Conditions of a namespace that is going away and is not empty yet.
const REMAINING: [&str; 2] = ["NamespaceContentRemaining", "NamespaceFinalizersRemaining"];

/// Waits until the namespace of an earlier agent is really gone: what is created in it now would go with it.
pub(super) async fn old_namespace_gone(
    managed: &Cluster,
    survey: &Survey,
    timeout: Duration,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let name = &survey.agent_namespace;
    let api: Api<Namespace> = Api::all(managed.client.clone());
    let doing = format!("waiting until namespace {name} of the earlier agent is gone");
    until(&doing, Instant::now() + timeout, Duration::from_secs(1), narrator, async || {
        let found = api.get_opt(name).await.map_err(|error| managed.explain("read the agent's namespace", error))?;
        let Some(found) = found else { return Ok(Look::Ready(())) };
        if found.metadata.deletion_timestamp.is_none() {
            return Ok(Look::Ready(()));
        }
        let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
        let holds_up = |condition: &&NamespaceCondition| {
            condition.status == "True" && REMAINING.contains(&condition.type_.as_str())
        };
        let remaining = conditions.iter().find(holds_up);
        Ok(Look::NotYet(remaining.and_then(|condition| condition.message.clone()).unwrap_or_default()))
    })
    .await
}
