//! Everything that checks look at, in as few requests as there are kinds: none per cluster, but for a single one that is
//! named.

mod hub;
mod managed;
mod probe;
mod secret;
mod webhooks;

use std::cell::RefCell;
use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1 as apps;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta, Time};
use ocm_api::Condition;
use ocm_api::names::namespaces;
use ocm_checks::snapshot::{LeaseFacts, Observed, PolicyRule, StorageFacts, Trouble, Version, Workload};
use ocm_core::join::lease::Running;
use ocm_core::redact::{LONGEST, redact, redact_start};
use ocm_core::workload::Health;
use ocm_core::{Failure, Reason};
use ocm_kube::{Cluster, access, explain};
use serde::de::DeserializeOwned;

use futures::{StreamExt as _, TryStreamExt as _};
use kube::Api;
use kube::api::ListParams;
use kube::core::ApiResource;

pub use hub::{observe as hub, serves};
pub use managed::{observe as managed, registered_names};
pub use probe::{Question, grpc_probes, in_cluster, probes, questions};

use crate::registry::pages;
use crate::workload::{self, Deployment};

/// A kind of objects, as rights name it.
#[derive(Clone, Copy)]
struct Kind {
    group: &'static str,
    resource: &'static str,
    /// Whether a cluster may go without its group.
    is_optional: bool,
}

impl Kind {
    /// A kind that every cluster has.
    const fn new(group: &'static str, resource: &'static str) -> Self {
        Self { group, resource, is_optional: false }
    }

    /// A kind of Open Cluster Management or of the policy engine.
    const fn optional(group: &'static str, resource: &'static str) -> Self {
        Self { group, resource, is_optional: true }
    }

    fn rule(self, verb: &str, namespace: Option<&str>) -> PolicyRule {
        PolicyRule::new(verb, self.group, self.resource, namespace)
    }
}

const DEPLOYMENTS: Kind = Kind::new("apps", "deployments");
const LEASES: Kind = Kind::new("coordination.k8s.io", "leases");
const SECRETS: Kind = Kind::new("", "secrets");
const NAMESPACES: Kind = Kind::new("", "namespaces");
const PODS: Kind = Kind::new("", "pods");

/// How many objects one page holds.
const PAGE: u32 = 500;

/// How many things are looked at at once.
const AT_ONCE: usize = 8;

/// How many finalizers of an object are kept.
const FINALIZERS: usize = 10;

/// How much is kept of who holds a lease: characters. Pods have shorter names.
const HOLDER: usize = 320;

/// Whether a cluster is one of those that were asked about; none: all are.
fn is_asked(names: Option<&[String]>, name: &str) -> bool {
    names.is_none_or(|names| names.iter().any(|asked| asked == name))
}

/// Why a request failed that needs a right.
fn trouble(cluster: &Cluster, what: impl std::fmt::Display, error: kube::Error, rule: PolicyRule) -> Trouble {
    Trouble::of(&cluster.explain(what, error), Some(rule))
}

/// Lists page by page and keeps what is wanted of each object. `namespace`: the one that is listed; none: all, or the kind
/// has none.
async fn list<K, T>(
    cluster: &Cluster,
    kind: Kind,
    namespace: Option<&str>,
    api: &Api<K>,
    params: ListParams,
    wanted: impl Fn(K) -> Option<T>,
) -> Result<Vec<T>, Trouble>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let listed = pages(cluster, api, params, || PAGE, &format!("list {}", kind.resource), wanted).await;
    if_served(cluster, kind, namespace, listed).await
}

/// What a list came to. A kind that is not served has no objects, also for somebody who may not list it: the API server
/// looks for rights before it looks for what it serves.
async fn if_served<T>(
    cluster: &Cluster,
    kind: Kind,
    namespace: Option<&str>,
    listed: Result<Vec<T>, Failure>,
) -> Result<Vec<T>, Trouble> {
    let failure = match listed {
        Ok(listed) => return Ok(listed),
        Err(failure) => failure,
    };
    if matches!(failure.reason, Reason::KindNotServed | Reason::NotFound) {
        return Ok(Vec::new());
    }
    if failure.reason == Reason::Forbidden && kind.is_optional && !serves_group(cluster, kind.group).await {
        return Ok(Vec::new());
    }
    Err(Trouble::of(&failure, Some(kind.rule("list", namespace))))
}

/// Whether a cluster serves a group, as far as that can be known: everybody who is logged in may ask for it.
async fn serves_group(cluster: &Cluster, group: &str) -> bool {
    let Ok(request) = http::Request::get(format!("/apis/{group}")).body(Vec::new()) else { return true };
    match cluster.client.request_text(request).await {
        Ok(_) => true,
        Err(error) => !matches!(explain(&error).reason, Reason::KindNotServed | Reason::NotFound),
    }
}

/// The pods of a namespace, and since when they run.
async fn pods(cluster: &Cluster, namespace: &str) -> Result<Vec<Running>, Trouble> {
    let rule = PODS.rule("list", Some(namespace));
    let found = workload::running(cluster, namespace).await;
    found.map_err(|error| trouble(cluster, format_args!("list the pods of {namespace}"), error, rule))
}

/// Takes away what nobody needs and what anybody may have written anything into.
fn strip(metadata: &mut ObjectMeta) {
    (metadata.managed_fields, metadata.owner_references) = Default::default();
    (metadata.annotations, metadata.labels) = Default::default();
    if let Some(finalizers) = &mut metadata.finalizers {
        finalizers.truncate(FINALIZERS);
    }
}

/// Those annotations of an object that are wanted, without what may be a credential; none of what is longer than anybody
/// writes by hand.
fn annotations_of(metadata: &mut ObjectMeta, wanted: &[&str]) -> Option<BTreeMap<String, String>> {
    let mut all = metadata.annotations.take()?;
    all.retain(|name, value| wanted.contains(&name.as_str()) && value.len() <= LONGEST);
    all.values_mut().for_each(|value| *value = redact(value));
    (!all.is_empty()).then_some(all)
}

/// Takes out of conditions what may be a credential, and cuts them short.
fn redact_all(conditions: &mut [Condition]) {
    conditions.iter_mut().for_each(|condition| condition.message = redact_start(&condition.message));
}

/// Which object it was, and how.
fn version(metadata: &ObjectMeta) -> Option<Version> {
    Some(Version { uid: metadata.uid.clone()?, resource_version: metadata.resource_version.clone()? })
}

/// A lease, of which it is not known whether its holder is gone.
fn lease_facts(lease: Lease) -> LeaseFacts {
    // The API server notes when somebody last changed each of the fields, by its own clock.
    let renews = |entry: &&ManagedFieldsEntry| {
        entry.fields_v1.as_ref().is_some_and(|fields| fields.0.pointer("/f:spec/f:renewTime").is_some())
    };
    let entries = lease.metadata.managed_fields.iter().flatten();
    let written = entries.filter(renews).filter_map(|entry| entry.time.clone()).max_by_key(|time| time.0);
    let spec = lease.spec.unwrap_or_default();
    LeaseFacts {
        // The leases of a fleet change all the time, and nobody deletes them.
        version: None,
        namespace: lease.metadata.namespace.unwrap_or_default(),
        name: lease.metadata.name.unwrap_or_default(),
        renewed: spec.renew_time.map(|time| Time(time.0)),
        written,
        seconds: spec.lease_duration_seconds,
        holder: spec.holder_identity.map(|holder| holder.chars().take(HOLDER).collect()),
        gone: None,
    }
}

/// A time as snapshots have it.
fn time(time: Option<&Time>) -> Option<Time> {
    time.cloned()
}

/// The label of the leases that API servers renew, each its own, and its value: KEP-1965.
const IDENTITY: (&str, &str) = ("apiserver.kubernetes.io/identity", "kube-apiserver");
/// Where they are.
const KUBE_SYSTEM: &str = "kube-system";

/// What the API servers of a cluster tell of their storage.
async fn storage(cluster: &Cluster) -> Observed<StorageFacts> {
    let api: Api<Lease> = Api::namespaced(cluster.client.clone(), KUBE_SYSTEM);
    let facts = |lease: Lease| {
        let label = lease.metadata.labels.as_ref().and_then(|labels| labels.get(IDENTITY.0));
        let is_servers = label.is_some_and(|who| who == IDENTITY.1);
        Some((is_servers, lease_facts(lease)))
    };
    let listed = match list(cluster, LEASES, Some(KUBE_SYSTEM), &api, ListParams::default(), facts).await {
        Ok(listed) => listed,
        Err(trouble) => return Observed::Trouble(trouble),
    };
    let (servers, others): (Vec<_>, Vec<_>) = listed.into_iter().partition(|(is_servers, _)| *is_servers);
    Observed::Read(StorageFacts {
        leases: servers.into_iter().map(|(_, lease)| lease).collect(),
        others: others.into_iter().filter_map(|(_, lease)| lease.renewed).max_by_key(|time| time.0),
        // After the leases: none of them can be from later on.
        now: access::clock(cluster).await.ok().map(Time),
    })
}

/// An operator's Deployment and how it is; one that is missing is not ready.
async fn operator(cluster: &Cluster, name: &str) -> Observed<Workload> {
    let namespace = namespaces::OPERATOR;
    let rule = DEPLOYMENTS.rule("get", Some(namespace));
    let found = match workload::deployments(cluster, namespace).get_opt(name).await {
        Ok(Some(found)) => Some(found),
        Ok(None) => match elsewhere(cluster, name).await {
            Ok(found) => found,
            Err(trouble) => return Observed::Trouble(trouble),
        },
        Err(error) => {
            let what = format!("read Deployment {namespace}/{name}");
            return Observed::Trouble(trouble(cluster, what, error, rule));
        }
    };
    match found {
        Some(found) => Observed::of(facts(cluster, &found).await, rule),
        None => Observed::Read(Workload {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            replicas: 1,
            health: Health::Stuck { because: "it does not exist".to_owned() },
            images: Vec::new(),
        }),
    }
}

/// The Deployment of an operator that was installed into another namespace, as by a catalog: one that runs the operator's
/// image, or the only one of the name. None also where not all namespaces may be read; but what is missing from a dump
/// may be anywhere.
async fn elsewhere(cluster: &Cluster, name: &str) -> Result<Option<Deployment>, Trouble> {
    let kind = ApiResource::erase::<apps::Deployment>(&());
    let api: Api<Deployment> = Api::all_with(cluster.client.clone(), &kind);
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    let found = RefCell::new(Vec::new());
    let listed = list(cluster, DEPLOYMENTS, None, &api, params, |deployment: Deployment| {
        if deployment.metadata.name.as_deref() == Some(name) {
            found.borrow_mut().push(deployment);
        }
        None::<()>
    });
    let listed = listed.await;
    let mut found = found.into_inner();
    let is_operator = |found: &Deployment| {
        let mut images = found.spec.template.spec.containers.iter().filter_map(|container| container.image.as_deref());
        images.any(|image| image.contains("registration-operator"))
    };
    match (found.iter().position(is_operator), listed) {
        (Some(at), _) => Ok(Some(found.swap_remove(at))),
        (None, Err(trouble)) if trouble.reason == Reason::NotInDump => Err(trouble),
        (None, Err(_)) => Ok(None),
        (None, Ok(_)) if found.len() == 1 => Ok(found.pop()),
        (None, Ok(_)) => Ok(None),
    }
}

/// The Deployments of a namespace, of those that are wanted.
async fn deployments(
    cluster: &Cluster,
    namespace: &str,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Workload>, Trouble> {
    let api = workload::deployments(cluster, namespace);
    let listed = list(cluster, DEPLOYMENTS, Some(namespace), &api, ListParams::default(), |deployment| {
        wanted(deployment.metadata.name.as_deref().unwrap_or_default()).then_some(deployment)
    });
    let listed = listed.await?;
    let reading: Vec<_> = listed.iter().map(|deployment| facts(cluster, deployment)).collect();
    let read: Result<Vec<Workload>, Failure> = futures::stream::iter(reading).buffered(AT_ONCE).try_collect().await;
    read.map_err(|failure| Trouble::of(&failure, Some(DEPLOYMENTS.rule("list", Some(namespace)))))
}

async fn facts(cluster: &Cluster, deployment: &Deployment) -> Result<Workload, Failure> {
    let containers = deployment.spec.template.spec.containers.iter();
    Ok(Workload {
        namespace: deployment.metadata.namespace.clone().unwrap_or_default(),
        name: deployment.metadata.name.clone().unwrap_or_default(),
        replicas: deployment.spec.replicas.unwrap_or(1),
        health: match workload::of(cluster, deployment).await? {
            Health::Ready => Health::Ready,
            Health::NotYet { because } => Health::NotYet { because: redact_start(&because) },
            Health::Stuck { because } => Health::Stuck { because: redact_start(&because) },
        },
        images: containers.filter_map(|container| container.image.clone()).collect(),
    })
}
