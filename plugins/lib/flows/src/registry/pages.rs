//! Objects of a hub, read one by one or page by page.

use futures::{StreamExt as _, TryStreamExt as _};
use kube::Api;
use kube::api::{ListParams, PartialObjectMeta};
use ocm_core::{Failure, Reason};
use ocm_kube::Cluster;
use ocm_kube::pages::paged;
use serde::de::DeserializeOwned;

/// How many objects one page of a list holds.
pub(crate) const PAGE: u32 = 500;

/// Up to this many names are read one by one; more are read as one list.
pub(crate) const FEW: usize = 8;

/// A kind of objects of the hub that have no namespace.
pub(crate) trait OfHub:
    kube::Resource<Scope = kube::core::ClusterResourceScope, DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug
{
}

impl<K> OfHub for K where
    K: kube::Resource<Scope = kube::core::ClusterResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug
{
}

/// Objects of a kind by their names, those that exist.
pub(crate) async fn some<K: OfHub>(hub: &Cluster, names: &[String], what: &str) -> Result<Vec<K>, Failure> {
    let api: Api<K> = Api::all(hub.client.clone());
    let found: Vec<Option<K>> = futures::stream::iter(names)
        .map(|name| {
            let api = api.clone();
            async move {
                match api.get(name).await {
                    Ok(object) => Ok(Some(object)),
                    Err(error) => match hub.explain(format_args!("read {what} {name:?}"), error) {
                        failure if failure.reason == Reason::NotFound => Ok(None),
                        failure => Err(failure),
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
pub(crate) async fn all<K>(hub: &Cluster, api: &Api<K>, params: ListParams, what: &str) -> Result<Vec<K>, Failure>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    pages(hub, api, params, || PAGE, what, Some).await
}

/// Lists page by page, each of at most `limit` objects, and keeps what is wanted of each.
pub(crate) async fn pages<K, T>(
    hub: &Cluster,
    api: &Api<K>,
    params: ListParams,
    limit: impl Fn() -> u32,
    what: &str,
    wanted: impl Fn(K) -> Option<T>,
) -> Result<Vec<T>, Failure>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let list = |params: ListParams| async move { api.list(&params).await.map_err(|error| hub.explain(what, error)) };
    paged(params, limit, list, wanted).await
}

/// Lists metadata page by page and keeps what is wanted of each; the content of the objects is not needed.
pub(crate) async fn pages_of_metadata<K, T>(
    hub: &Cluster,
    api: &Api<K>,
    params: ListParams,
    what: &str,
    wanted: impl Fn(PartialObjectMeta<K>) -> Option<T>,
) -> Result<Vec<T>, Failure>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let list =
        |params: ListParams| async move { api.list_metadata(&params).await.map_err(|error| hub.explain(what, error)) };
    paged(params, || PAGE, list, wanted).await
}

/// Metadata of all objects of a kind; their content is not needed.
pub(super) async fn metadata<K: OfHub>(hub: &Cluster, what: &str) -> Result<Vec<PartialObjectMeta<K>>, Failure> {
    let api: Api<K> = Api::all(hub.client.clone());
    pages_of_metadata(hub, &api, ListParams::default(), what, Some).await
}

/// Roles are one trace of several that a name leaves: who may not read them goes by the others.
pub(super) fn unless_forbidden<T>(list: Result<Vec<T>, Failure>) -> Result<Vec<T>, Failure> {
    match list {
        Err(failure) if failure.reason == Reason::Forbidden => Ok(Vec::new()),
        list => list,
    }
}
