//! What the hub knows of clusters and their requests, read in as few requests as there are kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::Api;
use kube::api::{ListParams, PartialObjectMeta};
use ocm_api::ManagedCluster;
use ocm_api::conditions::{self, managed_cluster};
use ocm_api::names::{hub as hub_names, labels, signers};
use ocm_api::registration::RegisteredKeysStatus;
use ocm_core::csr::{LONGEST, Request, State};
use ocm_core::name::is_cluster_name;
use ocm_core::{Failure, Reason, Remedy, bootstrap};
use ocm_kube::Cluster;
use ocm_rules::claim;
use serde::de::DeserializeOwned;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::registrations::{noted, noted_of};

/// How many objects one page of a list holds.
pub(crate) const PAGE: u32 = 500;

/// How many certificate requests one page holds. Whoever may register clusters may create any number of them of a megabyte
/// each, and a page is in memory as a whole.
pub(crate) const REQUESTS_PAGE: u32 = 100;

/// How many it holds after one of which all were as short as those of agents.
const LARGER_PAGE: u32 = 300;

/// Objects of which everything but the request itself is larger are read again when they are needed.
const LARGEST: usize = 4 << 10;

/// Up to this many names are read one by one; more are read as one list.
pub(crate) const FEW: usize = 8;

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

/// A request, and the object that it was read from while it may have to be sent back.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What was read.
    pub request: Request,
    /// The object of a request that waits, without what the server knows better; none where it is large, for there may be
    /// any number of such.
    pub object: Option<Arc<CertificateSigningRequest>>,
}

impl Asked {
    fn read(mut object: CertificateSigningRequest) -> Self {
        let request = Request::read(&object);
        object.metadata.managed_fields = None;
        let rest = serde_json::to_vec(&object.metadata).map_or(usize::MAX, |metadata| metadata.len());
        let keep = request.state == State::Pending && request.content.is_ok() && rest <= LARGEST;
        Self { request, object: keep.then(|| Arc::new(object)) }
    }
}

/// Clusters with their requests, by name.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// The managed clusters of the scope that exist.
    pub clusters: BTreeMap<String, ManagedCluster>,
    /// The requests that carry a cluster's label, and those that were approved for the name of an agent of it, whatever
    /// their label says.
    pub requests: BTreeMap<String, Vec<Asked>>,
    /// The namespaces of the hub by name.
    namespaces: BTreeMap<String, claim::Namespace>,
    /// When the ClusterRoles of agents were created, by their names.
    roles: BTreeMap<String, Timestamp>,
    /// What the policy controller has noted of the keys of names, by name: of clusters whose agent has joined not always.
    registrations: BTreeMap<String, RegisteredKeysStatus>,
    /// Why that may not be read, in a sentence, where the hub has it.
    pub unread: Option<String>,
    /// Users besides the usual ones whom the hub lets register clusters, where somebody asks of whom only that can tell.
    pub bound_accounts: Vec<String>,
}

impl Registry {
    /// Reads the clusters of a scope and the requests for them.
    ///
    /// # Errors
    /// When the hub cannot be read; [`Reason::KindNotServed`] says that it is no hub.
    pub async fn read(hub: &Cluster, scope: &Scope) -> Result<Self, Failure> {
        let ((clusters, requests, namespaces), roles, noted) = match scope {
            Scope::Names(names) if names.len() <= FEW => {
                let all = names.join(",");
                let selector = format!("{} in ({all})", labels::CLUSTER_NAME);
                let others = format!("{} notin ({all})", labels::CLUSTER_NAME);
                let requests = requests_and(hub, &selector, &others, Some(names));
                let lists = at_once(some_clusters(hub, names), requests, some_namespaces(hub, names));
                let (lists, roles, noted) = futures::join!(lists, some_roles(hub, names), noted_of(hub, names));
                (lists?, roles?, Some(noted?))
            }
            Scope::Names(names) => {
                let ((mut clusters, requests, namespaces), roles) = many(hub, None).await?;
                let wanted: BTreeSet<&String> = names.iter().collect();
                clusters.retain(|cluster| cluster.metadata.name.as_ref().is_some_and(|name| wanted.contains(name)));
                ((clusters, requests, namespaces), roles, None)
            }
            Scope::Selector(selector) => many(hub, Some(selector)).await.map(|(lists, roles)| (lists, roles, None))?,
            Scope::All => many(hub, None).await.map(|(lists, roles)| (lists, roles, None))?,
        };
        // Of a fleet few wait, and only of those it matters.
        let unjoined: Vec<String> =
            clusters.iter().filter(|cluster| !has_joined(cluster)).filter_map(name_of).collect();
        let noted = async {
            match noted {
                Some(noted) => Ok(noted),
                None => noted_of(hub, &unjoined).await,
            }
        };
        let bound = bound_accounts(hub, requests.iter().map(|asked| &asked.request));
        let (bound, noted) = futures::join!(bound, noted);
        let (bound_accounts, (registrations, unread)) = (bound?, noted?);
        let registrations =
            registrations.into_iter().filter_map(|one| Some((one.metadata.name?, one.status))).collect();
        let mut registry = Self { bound_accounts, registrations, unread, ..Self::default() };
        for namespace in namespaces {
            let name = namespace.metadata.name.unwrap_or_default();
            let owner = namespace.metadata.labels.as_ref().and_then(|labels| labels.get(labels::CLUSTER_NAME));
            let created = namespace.metadata.creation_timestamp.map(|time| time.0.as_millisecond());
            let namespace = match owner == Some(&name) {
                true => claim::Namespace::Own { created },
                false => claim::Namespace::Foreign,
            };
            registry.namespaces.insert(name, namespace);
        }
        for role in roles {
            if let (Some(name), Some(created)) = (role.metadata.name, role.metadata.creation_timestamp) {
                registry.roles.insert(name, created.0);
            }
        }
        for cluster in clusters {
            if let Some(name) = cluster.metadata.name.clone() {
                registry.clusters.insert(name, cluster);
            }
        }
        for asked in requests {
            let mut names = clusters_of(&asked.request);
            let last = names.pop_last();
            for name in names {
                registry.requests.entry(name).or_default().push(asked.clone());
            }
            if let Some(name) = last {
                registry.requests.entry(name).or_default().push(asked);
            }
        }
        Ok(registry)
    }

    /// The namespace with a cluster's name.
    pub fn namespace_of(&self, name: &str) -> claim::Namespace {
        self.namespaces.get(name).copied().unwrap_or_default()
    }

    /// When the ClusterRole of a cluster's agents was created, if there is one.
    pub fn role_created(&self, name: &str) -> Option<Timestamp> {
        self.roles.get(&hub_names::managed_cluster_role(name)).copied()
    }

    /// What the policy controller has noted of a name, if anything.
    pub fn registration(&self, name: &str) -> Option<claim::Registration<'_>> {
        self.registrations.get(name).map(noted)
    }
}

type Lists = (Vec<ManagedCluster>, Vec<Asked>, Vec<PartialObjectMeta<Namespace>>);

type Roles = Vec<PartialObjectMeta<ClusterRole>>;

async fn many(hub: &Cluster, selector: Option<&str>) -> Result<(Lists, Roles), Failure> {
    let others = format!("!{}", labels::CLUSTER_NAME);
    let requests = requests_and(hub, labels::CLUSTER_NAME, &others, None);
    let lists = at_once(clusters(hub, selector), requests, metadata(hub, "list namespaces"));
    let (lists, roles) = futures::join!(lists, metadata(hub, "list cluster roles"));
    Ok((lists?, unless_forbidden(roles)?))
}

/// The clusters that a request is for. Anybody may create one with any content; once it was approved, it is somebody's
/// identity, whatever its label says.
fn clusters_of(request: &Request) -> BTreeSet<String> {
    let granted = matches!(request.state, State::Approved | State::Issued);
    let facts = request.facts();
    let named = facts.clusters_of_agents().filter(|_| granted).map(str::to_owned);
    named.chain(request.cluster_label.clone()).collect()
}

/// Requests that match a selector, and those of `others` that were approved for the name of an agent: of these clusters,
/// or of any.
async fn requests_and(
    hub: &Cluster,
    selector: &str,
    others: &str,
    names: Option<&[String]>,
) -> Result<Vec<Asked>, Failure> {
    let names: Option<Arc<[String]>> = names.map(Arc::from);
    let granted = |signer| granted(hub, signer, others, names.clone());
    let labelled = pages_of_requests(hub, ListParams::default().labels(selector), |object| Some(Asked::read(object)));
    let (labelled, api, grpc) =
        at_once(labelled, granted(signers::KUBE_APISERVER_CLIENT), granted(signers::GRPC)).await?;
    Ok(labelled.into_iter().chain(api).chain(grpc).collect())
}

/// Requests for a signer that were approved for the name of an agent. There may be many others: of each page only those
/// stay.
async fn granted(
    hub: &Cluster,
    signer: &str,
    selector: &str,
    names: Option<Arc<[String]>>,
) -> Result<Vec<Asked>, Failure> {
    let params = ListParams::default().labels(selector).fields(&format!("spec.signerName={signer}"));
    pages_of_requests(hub, params, move |object| {
        let conditions = object.status.as_ref().and_then(|status| status.conditions.as_deref());
        // Most of what waits needs no reading.
        conditions.filter(|conditions| conditions.iter().any(|condition| condition.type_ == "Approved"))?;
        let asked = Asked::read(object);
        let clusters = clusters_of(&asked.request);
        let mine = clusters.iter().any(|cluster| names.as_ref().is_none_or(|names| names.contains(cluster)));
        mine.then_some(asked)
    })
    .await
}

/// Lists certificate requests and keeps what is wanted of each.
pub(crate) async fn pages_of_requests<T: Send + 'static>(
    hub: &Cluster,
    params: ListParams,
    wanted: impl Fn(CertificateSigningRequest) -> Option<T> + Send + 'static,
) -> Result<Vec<T>, Failure> {
    fold_requests(hub, params, Vec::new(), move |items: &mut Vec<T>, object| items.extend(wanted(object))).await
}

/// Lists certificate requests and gathers what is wanted of them. Verifying signatures takes time, so each page is looked at
/// on a thread beside while the hub makes the next one. Two pages are in memory at a time, and no more.
pub(crate) async fn fold_requests<S: Send + 'static>(
    hub: &Cluster,
    mut params: ListParams,
    mut gathered: S,
    mut gather: impl Fn(&mut S, CertificateSigningRequest) + Send + 'static,
) -> Result<S, Failure> {
    let api: Api<CertificateSigningRequest> = Api::all(hub.client.clone());
    let list = async |params: &ListParams| {
        let page = api.list(params).await;
        page.map_err(|error| hub.explain("list certificate signing requests", error))
    };
    // Nothing is known before the first page.
    params = params.limit(REQUESTS_PAGE);
    let mut page = list(&params).await?;
    loop {
        let long = page.items.iter().any(|object| object.spec.request.0.len() > LONGEST);
        let token = page.metadata.continue_.take().filter(|token| !token.is_empty());
        let beside = spawn_blocking(move || {
            page.items.into_iter().for_each(|object| gather(&mut gathered, object));
            (gathered, gather)
        });
        let next = match token {
            Some(token) => {
                params = params.limit(if long { REQUESTS_PAGE } else { LARGER_PAGE }).continue_token(&token);
                Some(list(&params).await?)
            }
            None => None,
        };
        (gathered, gather) = result_of(beside).await;
        page = match next {
            Some(next) => next,
            None => return Ok(gathered),
        };
    }
}

/// What a thread comes to. Where it panics, so does whoever waits for it.
async fn result_of<T>(thread: JoinHandle<T>) -> T {
    match thread.await {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Users besides the usual ones whom the hub lets register clusters. It is asked only if some of the requests need that:
/// a hub has a binding for every cluster, too.
///
/// # Errors
/// When the hub cannot be read. Who may not read bindings goes by the usual users.
pub async fn bound_accounts(
    hub: &Cluster,
    requests: impl IntoIterator<Item = &Request>,
) -> Result<Vec<String>, Failure> {
    if !requests.into_iter().any(bootstrap::needs_binding) {
        return Ok(Vec::new());
    }
    unless_forbidden(all_bound_accounts(hub).await)
}

/// The same, whoever asks.
///
/// # Errors
/// When the bindings cannot be read.
pub async fn all_bound_accounts(hub: &Cluster) -> Result<Vec<String>, Failure> {
    let api: Api<ClusterRoleBinding> = Api::all(hub.client.clone());
    let bindings = all(hub, &api, ListParams::default(), "list cluster role bindings").await?;
    Ok(bootstrap::bound_accounts(&bindings).into_iter().collect())
}

/// Roles are one trace of several that a name leaves: who may not read them goes by the others.
fn unless_forbidden<T>(list: Result<Vec<T>, Failure>) -> Result<Vec<T>, Failure> {
    match list {
        Err(failure) if failure.reason == Reason::Forbidden => Ok(Vec::new()),
        list => list,
    }
}

async fn some_roles(hub: &Cluster, names: &[String]) -> Result<Roles, Failure> {
    let api: Api<ClusterRole> = Api::all(hub.client.clone());
    let found: Result<Vec<Option<PartialObjectMeta<ClusterRole>>>, Failure> = futures::stream::iter(names)
        .map(|name| {
            let api = api.clone();
            async move {
                let found = api.get_metadata_opt(&hub_names::managed_cluster_role(name)).await;
                found.map_err(|error| hub.explain(format_args!("read the role of {name:?}"), error))
            }
        })
        .buffered(FEW)
        .try_collect()
        .await;
    unless_forbidden(found.map(|found| found.into_iter().flatten().collect()))
}

/// Whether the agent of a cluster has joined.
pub(crate) fn has_joined(cluster: &ManagedCluster) -> bool {
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let joined = conditions::find(conditions, managed_cluster::JOINED);
    joined.is_some_and(|condition| condition.status == conditions::TRUE)
}

fn name_of(cluster: &ManagedCluster) -> Option<String> {
    cluster.metadata.name.clone()
}

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

/// Three readings at once. Where several fail, as they do when the hub is not there, the same one always tells why.
async fn at_once<A, B, C>(
    one: impl Future<Output = Result<A, Failure>>,
    two: impl Future<Output = Result<B, Failure>>,
    three: impl Future<Output = Result<C, Failure>>,
) -> Result<(A, B, C), Failure> {
    let (one, two, three) = futures::join!(one, two, three);
    Ok((one?, two?, three?))
}

/// Metadata of all objects of a kind; their content is not needed.
async fn metadata<K: OfHub>(hub: &Cluster, what: &str) -> Result<Vec<PartialObjectMeta<K>>, Failure> {
    let api: Api<K> = Api::all(hub.client.clone());
    let mut params = ListParams::default().limit(PAGE);
    let mut items = Vec::new();
    loop {
        let page = api.list_metadata(&params).await.map_err(|error| hub.explain(what, error))?;
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
    pages_of_requests(hub, ListParams::default().labels(selector), Some).await
}

/// Whether a name can stand in the path of a URL as it is.
pub fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':'))
}

/// How many names one selector holds: the address of a request must not grow too long.
const NAMES: usize = 64;

/// Certificate signing requests by names that are [plain](is_plain): those that have such a name, and those that are for
/// the cluster of such a name.
///
/// # Errors
/// When the hub cannot be read.
pub async fn some_requests(hub: &Cluster, names: &[String]) -> Result<Vec<CertificateSigningRequest>, Failure> {
    let api: Api<CertificateSigningRequest> = Api::all(hub.client.clone());
    let names: BTreeSet<&String> = names.iter().collect();
    let named = futures::stream::iter(&names).map(|name| {
        let api = api.clone();
        async move {
            let found = api.get_opt(name).await;
            found.map_err(|error| hub.explain(format_args!("read certificate signing request {name:?}"), error))
        }
    });
    let clusters: Vec<&str> = names.iter().map(|name| name.as_str()).filter(|name| is_cluster_name(name)).collect();
    let of_clusters = futures::stream::iter(clusters.chunks(NAMES).map(|names| async move {
        requests(hub, &format!("{} in ({})", labels::CLUSTER_NAME, names.join(","))).await
    }));
    let (named, of_clusters) =
        futures::join!(named.buffered(FEW).try_collect::<Vec<_>>(), of_clusters.buffered(FEW).try_collect::<Vec<_>>(),);
    Ok(named?.into_iter().flatten().chain(of_clusters?.into_iter().flatten()).collect())
}

/// Managed clusters by their names, those that exist.
///
/// # Errors
/// When the hub cannot be read.
pub async fn some_clusters(hub: &Cluster, names: &[String]) -> Result<Vec<ManagedCluster>, Failure> {
    some(hub, names, "managed cluster").await.map_err(no_hub)
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
    mut params: ListParams,
    limit: impl Fn() -> u32,
    what: &str,
    wanted: impl Fn(K) -> Option<T>,
) -> Result<Vec<T>, Failure>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let mut items = Vec::new();
    loop {
        params = params.limit(limit());
        let page = api.list(&params).await.map_err(|error| hub.explain(what, error))?;
        items.extend(page.items.into_iter().filter_map(&wanted));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(items),
        }
    }
}

/// A cluster that does not know managed clusters is no hub.
fn no_hub(failure: Failure) -> Failure {
    match failure.reason {
        Reason::KindNotServed => {
            failure.context("this cluster is no Open Cluster Management hub").hint(Remedy::NameHub)
        }
        _ => failure,
    }
}
