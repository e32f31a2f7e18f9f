//! Clusters with their requests and with the other traces of their names, read in as few requests as there are kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::{ListParams, PartialObjectMeta};
use ocm_api::ManagedCluster;
use ocm_api::names::{hub as hub_names, labels, signers};
use ocm_api::registration::RegisteredKeysStatus;
use ocm_core::Failure;
use ocm_core::csr::{Request, State};
use ocm_core::managed::has_joined;
use ocm_core::order::Collect as _;
use ocm_kube::Cluster;
use ocm_rules::claim;

use super::accounts::bound_accounts;
use super::clusters::{clusters, some_clusters};
use super::noted::{noted, noted_of};
use super::pages::{FEW, metadata, unless_forbidden};
use super::requests::pages_of_requests;

/// Objects of which everything but the request itself is larger are read again when they are needed.
const LARGEST: usize = 4 << 10;

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
    /// What the policy controller has noted of names, by name: of clusters that are in not always.
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
    /// When the hub cannot be read; [`ocm_core::Reason::KindNotServed`] says that it is no hub.
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
                let wanted: BTreeSet<&String> = names.iter().collect_set();
                clusters.retain(|cluster| cluster.metadata.name.as_ref().is_some_and(|name| wanted.contains(name)));
                ((clusters, requests, namespaces), roles, None)
            }
            Scope::Selector(selector) => many(hub, Some(selector)).await.map(|(lists, roles)| (lists, roles, None))?,
            Scope::All => many(hub, None).await.map(|(lists, roles)| (lists, roles, None))?,
        };
        // Of a fleet few wait, and only of those it matters.
        let is_in = |cluster: &ManagedCluster| has_joined(cluster) && cluster.spec.hub_accepts_client == Some(true);
        let waiting: Vec<String> = clusters.iter().filter(|cluster| !is_in(cluster)).filter_map(name_of).collect();
        let noted = async {
            match noted {
                Some(noted) => Ok(noted),
                None => noted_of(hub, &waiting).await,
            }
        };
        let bound = bound_accounts(hub, requests.iter().map(|asked| &asked.request));
        let (bound, noted) = futures::join!(bound, noted);
        let (bound_accounts, (registrations, unread)) = (bound?, noted?);
        let registrations =
            registrations.into_iter().filter_map(|one| Some((one.metadata.name?, one.status))).collect_map();
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

    /// What the policy controller has noted of a name as it is written.
    pub(crate) fn written(&self, name: &str) -> Option<&RegisteredKeysStatus> {
        self.registrations.get(name)
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
    named.chain(request.cluster_label.clone()).collect_set()
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

fn name_of(cluster: &ManagedCluster) -> Option<String> {
    cluster.metadata.name.clone()
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
