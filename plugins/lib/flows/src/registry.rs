//! What the hub knows of clusters and their requests, read in as few requests as there are kinds.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{ListParams, PartialObjectMeta};
use ocm_api::ManagedCluster;
use ocm_api::names::labels;
use ocm_core::accept::Home;
use ocm_core::csr::Request;
use ocm_core::{Failure, Reason};
use ocm_kube::Cluster;
use serde::de::DeserializeOwned;

/// How many objects one page of a list holds.
const PAGE: u32 = 500;

/// Up to this many names are read one by one; more are read as one list.
const FEW: usize = 8;

/// Which clusters are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// These.
    Names(Vec<String>),
    /// Those whose labels match a selector in kubectl's syntax.
    Selector(String),
    /// All.
    All,
}

/// Clusters with their requests, by name.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// The managed clusters of the scope that exist.
    pub clusters: BTreeMap<String, ManagedCluster>,
    /// The requests that carry a cluster's label, with the objects that they were read from.
    pub requests: BTreeMap<String, Vec<(Request, CertificateSigningRequest)>>,
    /// The namespaces of the hub by name, with the cluster that their label names.
    namespaces: BTreeMap<String, Option<String>>,
}

impl Registry {
    /// Reads the clusters of a scope and the requests that carry their labels.
    ///
    /// # Errors
    /// When the hub cannot be read; [`Reason::KindNotServed`] says that it is no hub.
    pub async fn read(hub: &Cluster, scope: &Scope) -> Result<Self, Failure> {
        let (clusters, requests, namespaces) = match scope {
            Scope::Names(names) if names.len() <= FEW => {
                let selector = format!("{} in ({})", labels::CLUSTER_NAME, names.join(","));
                at_once(some_clusters(hub, names), requests(hub, &selector), some_namespaces(hub, names)).await?
            }
            Scope::Names(names) => {
                let (mut clusters, requests, namespaces) = many(hub, None).await?;
                let wanted: BTreeSet<&String> = names.iter().collect();
                clusters.retain(|cluster| cluster.metadata.name.as_ref().is_some_and(|name| wanted.contains(name)));
                (clusters, requests, namespaces)
            }
            Scope::Selector(selector) => many(hub, Some(selector)).await?,
            Scope::All => many(hub, None).await?,
        };
        let mut registry = Self::default();
        for namespace in namespaces {
            let cluster =
                namespace.metadata.labels.as_ref().and_then(|labels| labels.get(labels::CLUSTER_NAME)).cloned();
            registry.namespaces.insert(namespace.metadata.name.unwrap_or_default(), cluster);
        }
        for cluster in clusters {
            if let Some(name) = cluster.metadata.name.clone() {
                registry.clusters.insert(name, cluster);
            }
        }
        for object in requests {
            let request = Request::read(&object);
            if let Some(name) = request.cluster_label.clone() {
                registry.requests.entry(name).or_default().push((request, object));
            }
        }
        Ok(registry)
    }

    /// Whose namespace the one with a cluster's name is.
    pub fn home_of(&self, name: &str) -> Home {
        match self.namespaces.get(name) {
            None => Home::Free,
            Some(Some(owner)) if owner == name => Home::Own,
            Some(_) => Home::Foreign,
        }
    }

    /// The requests that carry a cluster's label.
    pub fn requests_of(&self, name: &str) -> &[(Request, CertificateSigningRequest)] {
        self.requests.get(name).map(Vec::as_slice).unwrap_or_default()
    }
}

type Lists = (Vec<ManagedCluster>, Vec<CertificateSigningRequest>, Vec<PartialObjectMeta<Namespace>>);

async fn many(hub: &Cluster, selector: Option<&str>) -> Result<Lists, Failure> {
    at_once(clusters(hub, selector), requests(hub, labels::CLUSTER_NAME), namespaces(hub)).await
}

/// Three readings at once. Where several fail, as they do when the hub is not there, the same one always tells why.
async fn at_once<A, B, C>(
    one: impl Future<Output = Result<A, Failure>>,
    two: impl Future<Output = Result<B, Failure>>,
    three: impl Future<Output = Result<C, Failure>>,
) -> Result<(A, B, C), Failure> {
    let (one, two, three) = futures::join!(one, two, three);
    Ok((one?, two?, three?))
}

/// Names and labels of all namespaces; their content is not needed.
async fn namespaces(hub: &Cluster) -> Result<Vec<PartialObjectMeta<Namespace>>, Failure> {
    let api: Api<Namespace> = Api::all(hub.client.clone());
    let mut params = ListParams::default().limit(PAGE);
    let mut items = Vec::new();
    loop {
        let page = api.list_metadata(&params).await.map_err(|error| hub.explain("list namespaces", error))?;
        items.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(items),
        }
    }
}

async fn some_namespaces(hub: &Cluster, names: &[String]) -> Result<Vec<PartialObjectMeta<Namespace>>, Failure> {
    let api: Api<Namespace> = Api::all(hub.client.clone());
    let found: Vec<Option<PartialObjectMeta<Namespace>>> = futures::stream::iter(names)
        .map(|name| {
            let api = api.clone();
            async move {
                let found = api.get_metadata_opt(name).await;
                found.map_err(|error| hub.explain(format_args!("read namespace {name:?}"), error))
            }
        })
        .buffered(FEW)
        .try_collect()
        .await?;
    Ok(found.into_iter().flatten().collect())
}

/// Managed clusters, all or those that match a selector.
///
/// # Errors
/// When the hub cannot be read.
pub async fn clusters(hub: &Cluster, selector: Option<&str>) -> Result<Vec<ManagedCluster>, Failure> {
    let mut params = ListParams::default();
    if let Some(selector) = selector {
        params = params.labels(selector);
    }
    let api: Api<ManagedCluster> = Api::all(hub.client.clone());
    all(hub, &api, params, "list managed clusters").await.map_err(no_hub)
}

/// Certificate signing requests that match a selector.
///
/// # Errors
/// When the hub cannot be read.
pub async fn requests(hub: &Cluster, selector: &str) -> Result<Vec<CertificateSigningRequest>, Failure> {
    let api: Api<CertificateSigningRequest> = Api::all(hub.client.clone());
    all(hub, &api, ListParams::default().labels(selector), "list certificate signing requests").await
}

async fn some_clusters(hub: &Cluster, names: &[String]) -> Result<Vec<ManagedCluster>, Failure> {
    let api: Api<ManagedCluster> = Api::all(hub.client.clone());
    let found: Vec<Option<ManagedCluster>> = futures::stream::iter(names)
        .map(|name| {
            let api = api.clone();
            async move {
                match api.get(name).await {
                    Ok(cluster) => Ok(Some(cluster)),
                    Err(error) => match hub.explain(format_args!("read managed cluster {name:?}"), error) {
                        failure if failure.reason == Reason::NotFound => Ok(None),
                        failure => Err(no_hub(failure)),
                    },
                }
            }
        })
        .buffered(FEW)
        .try_collect()
        .await?;
    Ok(found.into_iter().flatten().collect())
}

/// Lists page by page: a fleet's objects do not fit in one answer.
async fn all<K>(hub: &Cluster, api: &Api<K>, params: ListParams, what: &str) -> Result<Vec<K>, Failure>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let mut params = params.limit(PAGE);
    let mut items = Vec::new();
    loop {
        let page = api.list(&params).await.map_err(|error| hub.explain(what, error))?;
        items.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(items),
        }
    }
}

/// A cluster that does not know managed clusters is no hub.
fn no_hub(failure: Failure) -> Failure {
    match failure.reason {
        Reason::KindNotServed => failure
            .context("this cluster is no Open Cluster Management hub")
            .hint("name the hub with --context, or make this cluster one: kubectl ocm install hub"),
        _ => failure,
    }
}
