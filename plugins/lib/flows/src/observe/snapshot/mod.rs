//! Everything that checks look at, in as few requests as there are kinds: none per cluster, but for a single one that is
//! named.

mod hub;
mod managed;
mod probe;
mod secret;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta, Time};
use ocm_api::Condition;
use ocm_checks::snapshot::{LeaseFacts, Observed, PolicyRule, Workload};
use ocm_core::redact::redact;
use ocm_core::workload::Health;
use ocm_core::{Failure, Reason};
use ocm_kube::Cluster;
use serde::de::DeserializeOwned;

use kube::Api;
use kube::api::ListParams;

pub use hub::observe as hub;
pub use managed::{observe as managed, registered_names};
pub use probe::{Question, probes, questions};

use crate::registry::pages;
use crate::workload::{self, Deployment};

/// A kind of objects, as rights name it.
#[derive(Clone, Copy)]
struct Kind {
    group: &'static str,
    resource: &'static str,
}

impl Kind {
    const fn new(group: &'static str, resource: &'static str) -> Self {
        Self { group, resource }
    }

    fn rule(self, verb: &str, namespace: Option<&str>) -> PolicyRule {
        PolicyRule::new(verb, self.group, self.resource, namespace)
    }
}

const DEPLOYMENTS: Kind = Kind::new("apps", "deployments");
const LEASES: Kind = Kind::new("coordination.k8s.io", "leases");
const SECRETS: Kind = Kind::new("", "secrets");
const NAMESPACES: Kind = Kind::new("", "namespaces");

/// How many objects one page holds.
const PAGE: u32 = 500;

/// Lists page by page and keeps what is wanted of each object. A kind that is not served has no objects.
async fn list<K, T>(
    cluster: &Cluster,
    kind: Kind,
    api: &Api<K>,
    params: ListParams,
    wanted: impl Fn(K) -> Option<T>,
) -> Result<Vec<T>, Failure>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    match pages(cluster, api, params, || PAGE, &format!("list {}", kind.resource), wanted).await {
        Err(failure) if matches!(failure.reason, Reason::KindNotServed | Reason::NotFound) => Ok(Vec::new()),
        listed => listed,
    }
}

/// Takes away what nobody needs and what anybody may have written anything into.
fn strip(metadata: &mut ObjectMeta) {
    metadata.managed_fields = None;
    metadata.annotations = None;
}

/// Takes out of conditions what may be a credential.
fn redact_all(conditions: &mut [Condition]) {
    conditions.iter_mut().for_each(|condition| condition.message = redact(&condition.message));
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
        namespace: lease.metadata.namespace.unwrap_or_default(),
        name: lease.metadata.name.unwrap_or_default(),
        renewed: spec.renew_time.map(|time| Time(time.0)),
        written,
        seconds: spec.lease_duration_seconds,
        holder: spec.holder_identity,
        gone: None,
    }
}

/// A time as snapshots have it.
fn time(time: Option<&Time>) -> Option<Time> {
    time.cloned()
}

/// A Deployment and how it is; one that is missing is not ready.
async fn deployment(cluster: &Cluster, namespace: &str, name: &str) -> Observed<Workload> {
    let found = workload::deployments(cluster, namespace).get_opt(name).await;
    let found = match found {
        Ok(Some(found)) => facts(cluster, &found).await,
        Ok(None) => Ok(Workload {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            replicas: 1,
            health: Health::Stuck { because: "it does not exist".to_owned() },
            images: Vec::new(),
        }),
        Err(error) => Err(cluster.explain(format_args!("read Deployment {namespace}/{name}"), error)),
    };
    Observed::of(found, DEPLOYMENTS.rule("get", Some(namespace)))
}

/// The Deployments of a namespace, of those that are wanted.
async fn deployments(cluster: &Cluster, namespace: &str, wanted: impl Fn(&str) -> bool) -> Observed<Vec<Workload>> {
    let api = workload::deployments(cluster, namespace);
    let listed = list(cluster, DEPLOYMENTS, &api, ListParams::default(), |deployment| {
        wanted(deployment.metadata.name.as_deref().unwrap_or_default()).then_some(deployment)
    });
    let read = async {
        let listed = listed.await?;
        futures::future::try_join_all(listed.iter().map(|deployment| facts(cluster, deployment))).await
    };
    Observed::of(read.await, DEPLOYMENTS.rule("list", Some(namespace)))
}

async fn facts(cluster: &Cluster, deployment: &Deployment) -> Result<Workload, Failure> {
    let containers = deployment.spec.template.spec.containers.iter();
    Ok(Workload {
        namespace: deployment.metadata.namespace.clone().unwrap_or_default(),
        name: deployment.metadata.name.clone().unwrap_or_default(),
        replicas: deployment.spec.replicas.unwrap_or(1),
        health: match workload::of(cluster, deployment).await? {
            Health::Ready => Health::Ready,
            Health::NotYet { because } => Health::NotYet { because: redact(&because) },
            Health::Stuck { because } => Health::Stuck { because: redact(&because) },
        },
        images: containers.filter_map(|container| container.image.clone()).collect(),
    })
}
