//! Deployments and pods.

use std::cell::RefCell;

use futures::{StreamExt as _, TryStreamExt as _};
use kube::Api;
use kube::api::ListParams;
use ocm_api::names::namespaces;
use ocm_api::parts::Deployment;
use ocm_checks::snapshot::{Observed, Trouble, Workload};
use ocm_core::Failure;
use ocm_core::join::lease::Running;
use ocm_core::redact::redact_start;
use ocm_core::workload::{Health, Lack};
use ocm_kube::Cluster;

use super::kinds::{DEPLOYMENTS, PODS};
use super::listing::{AT_ONCE, list, trouble};
use crate::workload;

/// The pods of a namespace, and since when they run.
pub(super) async fn pods(cluster: &Cluster, namespace: &str) -> Result<Vec<Running>, Trouble> {
    let rule = PODS.rule("list", Some(namespace));
    let found = workload::running(cluster, namespace).await;
    found.map_err(|error| trouble(cluster, format_args!("list the pods of {namespace}"), error, rule))
}

/// An operator's Deployment and how it is; one that is missing is not ready.
pub(super) async fn operator(cluster: &Cluster, name: &str) -> Observed<Workload> {
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
            health: Health::stuck("it does not exist"),
            images: Vec::new(),
        }),
    }
}

/// The Deployment of an operator that was installed into another namespace, as by a catalog: one that runs the operator's
/// image, or the only one of the name. Where not all namespaces could be read it may be anywhere.
async fn elsewhere(cluster: &Cluster, name: &str) -> Result<Option<Deployment>, Trouble> {
    let api: Api<Deployment> = Api::all(cluster.client.clone());
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
        (None, Err(trouble)) => Err(trouble),
        (None, Ok(_)) if found.len() == 1 => Ok(found.pop()),
        (None, Ok(_)) => Ok(None),
    }
}

/// The Deployments of a namespace, of those that are wanted.
pub(super) async fn deployments(
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
            Health::NotYet(lack) => Health::NotYet(redacted(lack)),
            Health::Stuck(lack) => Health::Stuck(redacted(lack)),
        },
        images: containers.filter_map(|container| container.image.clone()).collect(),
    })
}

fn redacted(lack: Lack) -> Lack {
    let Lack { count, because, log, cause } = lack;
    Lack { count, because: redact_start(&because), log: log.as_deref().map(redact_start), cause }
}
