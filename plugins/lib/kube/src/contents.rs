//! Objects of whatever kind: everything that is in a namespace, everything that carries a label, and what is known of a kind.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, PartialObjectMeta};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiCapabilities, Discovery, Scope, verbs};
use ocm_core::hub_addon::{Kind, Labelled};
use ocm_core::leave::some;
use ocm_core::leave::space::{Content, is_view};
use ocm_core::order;
use ocm_core::{Failure, Reason};

use crate::Cluster;
use crate::pages::paged;

/// How many kinds are listed at once.
const AT_ONCE: usize = 8;
/// How often kinds are asked for that come and go meanwhile.
const TRIES: u32 = 5;
/// How many objects are asked for at once.
const PAGE: u32 = 500;
/// The pause between two tries.
const PAUSE: Duration = Duration::from_secs(1);

/// All objects in a namespace whose kinds can be listed and deleted: what cannot be deleted is a view of something else, and so are some others. They
/// come in no particular order.
///
/// # Errors
/// The failure of a request: where one kind may not be listed, it is not known what there is.
pub async fn of(cluster: &Cluster, namespace: &str) -> Result<Vec<Content>, Failure> {
    let discovery = discover_all(cluster).await?;
    let is_held = |capabilities: &ApiCapabilities| capabilities.scope == Scope::Namespaced && is_kept(capabilities);
    let kinds: Vec<ApiResource> = discovery
        .groups()
        .flat_map(|group| group.resources_by_stability())
        .filter(|(resource, capabilities)| is_held(capabilities) && !is_view(&resource.kind))
        .map(|(resource, _)| resource)
        .collect();
    let each =
        futures::stream::iter(kinds).map(|resource| list(cluster, namespace, resource)).buffer_unordered(AT_ONCE);
    each.try_fold(Vec::new(), async |mut all, some| {
        all.extend(some);
        Ok(all)
    })
    .await
}

/// Whether objects of a kind can be listed and deleted.
fn is_kept(capabilities: &ApiCapabilities) -> bool {
    capabilities.supports_operation(verbs::LIST) && capabilities.supports_operation(verbs::DELETE)
}

/// All objects that a selector of labels finds, in no particular order; but for views of something else.
///
/// # Errors
/// [`Reason::Forbidden`] with every kind that may not be listed: it is not known what there is. The failure of a request.
pub async fn labelled(cluster: &Cluster, selector: &str) -> Result<Vec<Labelled>, Failure> {
    let discovery = discover(cluster).await?;
    let kinds: Vec<ApiResource> = discovery
        .groups()
        .flat_map(|group| group.resources_by_stability())
        .filter(|(resource, capabilities)| is_kept(capabilities) && !is_view(&resource.kind))
        .map(|(resource, _)| resource)
        .collect();
    let mut answers =
        futures::stream::iter(kinds).map(|resource| labelled_of(cluster, selector, resource)).buffer_unordered(AT_ONCE);
    let (mut all, mut forbidden) = (Vec::new(), Vec::new());
    while let Some((resource, answer)) = answers.next().await {
        match answer {
            Ok(found) => all.extend(found),
            Err(failure) if failure.reason == Reason::Forbidden && resource.group.is_empty() => {
                forbidden.push(resource.plural);
            }
            Err(failure) if failure.reason == Reason::Forbidden => {
                forbidden.push(format!("{}.{}", resource.plural, resource.group));
            }
            Err(failure) => return Err(failure),
        }
    }
    if forbidden.is_empty() {
        return Ok(all);
    }
    order::sort(&mut forbidden);
    let sentence = format!("it is not known what carries the label {selector} ({})", cluster.label());
    Err(Failure::new(Reason::Forbidden, sentence)
        .because(format!("your user may not list {}", some(&forbidden)))
        .hint("docs/reference/rbac.md lists a ClusterRole per command; ask an administrator to bind it"))
}

async fn labelled_of(
    cluster: &Cluster,
    selector: &str,
    resource: ApiResource,
) -> (ApiResource, Result<Vec<Labelled>, Failure>) {
    let api: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &resource);
    let doing = format!("list {}", resource.plural);
    let answer = metadata(cluster, &api, ListParams::default().labels(selector), &doing, |metadata| Labelled {
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
        plural: resource.plural.clone(),
        metadata,
    })
    .await;
    (resource, answer)
}

/// What is made of the metadata of all objects of a kind. Of one that was taken away since, or that its server lists for no
/// namespace, there are none.
async fn metadata<T>(
    cluster: &Cluster,
    api: &Api<DynamicObject>,
    params: ListParams,
    doing: &str,
    of: impl Fn(ObjectMeta) -> T,
) -> Result<Vec<T>, Failure> {
    let list = |params: ListParams| async move {
        api.list_metadata(&params).await.map_err(|error| cluster.explain(doing, error))
    };
    let wanted = |item: PartialObjectMeta<DynamicObject>| Some(of(item.metadata));
    match paged(params, || PAGE, list, wanted).await {
        Err(failure) if matches!(failure.reason, Reason::NotFound | Reason::KindNotServed) => Ok(Vec::new()),
        listed => listed,
    }
}

/// What the cluster knows of kinds, each an API version and a kind; none of those that it does not serve.
///
/// # Errors
/// When it cannot be asked.
pub async fn kinds(cluster: &Cluster, wanted: &[(String, String)]) -> Result<Vec<Option<Kind>>, Failure> {
    let discovery = discover(cluster).await?;
    let of = |(api_version, kind): &(String, String)| {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version.as_str()));
        let (resource, capabilities) = discovery.resolve_gvk(&GroupVersionKind::gvk(group, version, kind))?;
        Some(Kind { plural: resource.plural, namespaced: capabilities.scope == Scope::Namespaced })
    };
    Ok(wanted.iter().map(of).collect())
}

/// What the cluster serves. While definitions come and go, a group can be gone between two questions: then it is asked again.
async fn discover(cluster: &Cluster) -> Result<Discovery, Failure> {
    match Discovery::new(cluster.client.clone()).run_aggregated().await {
        Ok(found) => Ok(found),
        Err(_) => group_by_group(cluster).await,
    }
}

/// The same, where a group whose server does not answer is an error: what the API server knew of it at another time, or nothing,
/// does not tell what there is.
async fn discover_all(cluster: &Cluster) -> Result<Discovery, Failure> {
    match is_fresh(cluster).await {
        true => discover(cluster).await,
        false => group_by_group(cluster).await,
    }
}

async fn group_by_group(cluster: &Cluster) -> Result<Discovery, Failure> {
    // API servers before Kubernetes 1.30, and some that stand before others, answer group by group.
    let mut tries = 1;
    loop {
        let error = match Discovery::new(cluster.client.clone()).run().await {
            Ok(found) => return Ok(found),
            Err(error) => error,
        };
        let failure = cluster.explain("find out which kinds of objects there are", error);
        let has_gone = matches!(failure.reason, Reason::NotFound | Reason::KindNotServed);
        if !has_gone || tries == TRIES {
            return Err(failure);
        }
        tries += 1;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Whether the API server knows of every group what there is now. Upstream: `APIVersionDiscovery.freshness`.
async fn is_fresh(cluster: &Cluster) -> bool {
    let Ok(groups) = cluster.client.list_api_groups_aggregated().await else { return false };
    let mut versions = groups.items.iter().flat_map(|group| &group.versions);
    versions.all(|version| version.freshness.as_deref() != Some("Stale"))
}

async fn list(cluster: &Cluster, namespace: &str, resource: ApiResource) -> Result<Vec<Content>, Failure> {
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), namespace, &resource);
    let doing = format!("list {} in namespace {namespace}", resource.plural);
    metadata(cluster, &api, ListParams::default(), &doing, |metadata| Content {
        group: resource.group.clone(),
        kind: resource.kind.clone(),
        plural: resource.plural.clone(),
        metadata,
    })
    .await
}
