//! What a hub shows, for checks.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, ObjectMeta, PartialObjectMeta};
use kube::core::{ApiResource, Object};
use kube::{Api, Resource as _};
use ocm_api::cluster::ClientConfig;
use ocm_api::names::{
    annotations, hub as hub_names, labels, namespaces, operators, secrets, webhooks as webhook_names,
};
use ocm_api::operator::RegistrationAuthType;
use ocm_api::parts::{EndpointSlice, Lease, Namespace, Service};
use ocm_api::work::ManifestWorkStatus;
use ocm_api::{ClusterManager, HubPolicy, ManagedCluster, ManagedClusterAddOn, ManifestWork, Registration, conditions};
use ocm_checks::facts::own_manager;
use ocm_checks::snapshot::{
    HubSide, LeaseFacts, NamespaceFacts, Observed, ServiceFacts, Trouble, WebhookFacts, WorkFacts, Workload,
};
use ocm_checks::suppress::ANNOTATION;
use ocm_core::csr::LONGEST;
use ocm_core::install::mode::{is_hosted, namespace_of};
use ocm_core::join::fallback::FALLBACK_OF;
use ocm_core::join::lease::{Running, stale_holder};
use ocm_core::order::{self, Collect as _};
use ocm_core::redact::{redact, redact_start};
use ocm_core::{Failure, Reason, certificate, policy_engine};
use ocm_kube::Cluster;
use serde::{Deserialize, Serialize};

use super::facts::{annotations_of, lease_facts, redact_all, strip, time, version};
use super::kinds::{Kind, LEASES, NAMESPACES};
use super::listing::{PAGE, if_served, is_asked, list, serves_group, trouble};
use super::storage::storage;
use super::webhooks::{self, SLICES, answers};
use super::workloads::{deployments, operator, pods};
use crate::hub::{root_ca, uid};
use crate::observe::conversion;
use crate::registry::{FEW, fold_requests, pages_of_metadata, some};

const MANAGERS: Kind = Kind::optional("operator.open-cluster-management.io", "clustermanagers");
const CLUSTERS: Kind = Kind::new("cluster.open-cluster-management.io", "managedclusters");
const REQUESTS: Kind = Kind::new("certificates.k8s.io", "certificatesigningrequests");
const DEFINITIONS: Kind = Kind::new("apiextensions.k8s.io", "customresourcedefinitions");
const SERVICES: Kind = Kind::new("", "services");
const WORKS: Kind = Kind::optional("work.open-cluster-management.io", "manifestworks");
const ADDONS: Kind = Kind::optional("addon.open-cluster-management.io", "managedclusteraddons");
const POLICIES: Kind = Kind::optional("policy.kubectl-ocm.dev", "hubpolicies");
const REGISTRATIONS: Kind = Kind::optional("policy.kubectl-ocm.dev", "registrations");
const CONFIG_MAPS: Kind = Kind::new("", "configmaps");

/// How many requests of a cluster are kept of those that wait, of those that were granted, and of those that were refused;
/// as many of its add-ons. Agents stop asking long before.
const MOST_REQUESTS: usize = 25;
/// How many of those that wait are the oldest ones: whoever sends more of them than are kept came after the agent, or before.
const OLDEST_REQUESTS: usize = 15;
/// How many taints of a cluster are kept.
const TAINTS: usize = 10;
/// How many addresses of its API server are kept.
const ADDRESSES: usize = 4;
/// Nobody has a longer name.
const LONGEST_USER: usize = 1024;

/// Reads a hub, for these clusters; none: for all. `registered`: the names that agents register under, whether the hub knows
/// them or not. What cannot be read says why.
pub async fn observe(hub: &Cluster, names: Option<&[String]>, registered: &[String]) -> HubSide {
    let managers = managers(hub).await;
    let known = managers.read().map(Vec::as_slice).unwrap_or_default();
    let elsewhere = managers.read().is_some_and(|managers| managers.iter().all(is_hosted));
    let namespace = own_manager(known).map_or(namespaces::HUB, namespace_of);
    // Those of hubs that are hosted here, too.
    let every: BTreeSet<&str> = known.iter().map(namespace_of).collect_set();
    let operator = async {
        let operator = operator(hub, operators::CLUSTER_MANAGER).await;
        let leader = leader(hub, operator.read().map_or(namespaces::OPERATOR, |found| found.namespace.as_str())).await;
        (operator, leader)
    };
    let control_plane = async {
        futures::join!(
            operator,
            deployments_of(hub, namespace, every),
            // A hosted hub's webhooks are on another cluster than the hub's API, and its ClusterManager may be, too.
            webhooks::observe(hub, !elsewhere),
            // Those of a hosted hub are beside its ClusterManager. Without one, nobody knows where they are.
            async {
                match managers.read().is_some_and(Vec::is_empty) {
                    true => Observed::NotAsked,
                    false => Observed::Read(webhooks::serving(hub, namespace).await),
                }
            },
            async { if elsewhere { Observed::NotAsked } else { conversions(hub).await } },
            grpc_service(hub, known),
            ca_bundle(hub, namespace),
            engine(hub),
            hub_policies(hub),
        )
    };
    let fleet = async {
        futures::join!(
            clusters_and_requests(hub, names, registered),
            leases(hub, names),
            // Those of the hub itself matter to every cluster.
            terminating(hub, |name| is_asked(names, name) || name.starts_with(namespaces::OPERATOR)),
            works(hub, names),
            addons(hub, names),
            registrations(hub, names),
        )
    };
    let itself = async { futures::join!(uid(hub), root_ca(hub), serves(hub), storage(hub)) };
    let (control_plane, fleet, (uid, root, serves, storage)) = futures::join!(control_plane, fleet, itself);
    let (control, deployments, of_webhooks, serving, conversions, grpc_service, ca_bundle, policy_engine, policies) =
        control_plane;
    let ((operator, leader), (webhooks, admission)) = (control, of_webhooks);
    let (deployments, unread_namespaces) = deployments;
    let ((clusters, requests, dropped_requests), leases, terminating, works, addons, registrations) = fleet;
    let mut authorities = hub.ca.clone().unwrap_or_default();
    authorities.extend(root.unwrap_or_default());
    order::sort(&mut authorities);
    authorities.dedup();
    HubSide {
        server: redact(&hub.server),
        context: hub.context.clone(),
        uid,
        authorities: authorities.into_iter().map(ByteString).collect(),
        serves_clusters: serves.ok(),
        storage,
        operator,
        leader,
        managers,
        deployments: deployments.into(),
        unread_namespaces,
        webhooks,
        serving,
        admission,
        conversions,
        grpc_service,
        ca_bundle,
        clusters,
        requests,
        dropped_requests,
        leases,
        terminating,
        works,
        addons,
        policies,
        registrations,
        policy_engine,
    }
}

/// Whether a cluster serves managed clusters.
///
/// # Errors
/// When it cannot be asked.
pub async fn serves(cluster: &Cluster) -> Result<bool, Failure> {
    match cluster.client.list_api_group_resources(&ManagedCluster::api_version(&())).await {
        Ok(found) => Ok(found.resources.iter().any(|resource| resource.name == ManagedCluster::plural(&()))),
        Err(error) => match cluster.explain("ask whether it is a hub", error) {
            failure if matches!(failure.reason, Reason::NotFound | Reason::KindNotServed) => Ok(false),
            failure => Err(failure),
        },
    }
}

async fn managers(hub: &Cluster) -> Observed<Vec<ClusterManager>> {
    let api: Api<ClusterManager> = Api::all(hub.client.clone());
    let listed = list(hub, MANAGERS, None, &api, ListParams::default(), |mut manager| {
        let kept = annotations_of(&mut manager.metadata, &[ANNOTATION]);
        strip(&mut manager.metadata);
        manager.metadata.annotations = kept;
        if let Some(status) = &mut manager.status {
            redact_all(&mut status.conditions);
        }
        Some(manager)
    });
    listed.await.into()
}

/// The operator's leader lease in its namespace, and whether it is held by a process that has ended.
async fn leader(hub: &Cluster, namespace: &str) -> Observed<Option<LeaseFacts>> {
    let api: Api<Lease> = Api::namespaced(hub.client.clone(), namespace);
    let rule = LEASES.rule("get", Some(namespace));
    let lease = match api.get_opt(operators::CLUSTER_MANAGER_LOCK).await {
        Ok(Some(lease)) => lease,
        Ok(None) => return Observed::Read(None),
        Err(error) => return Observed::Trouble(trouble(hub, "read the operator's leader lease", error, rule)),
    };
    // The pods are read after the lease: a holder that is not among them was gone by then.
    let facts = |pods: Vec<Running>| {
        let gone = stale_holder(&lease, operators::CLUSTER_MANAGER, &pods);
        Some(LeaseFacts { gone, version: version(&lease.metadata), ..lease_facts(lease) })
    };
    pods(hub, namespace).await.map(facts).into()
}

/// The Deployments of the policy engine. Where nobody may look for them, what the hub serves tells that there are none.
async fn engine(hub: &Cluster) -> Observed<Vec<Workload>> {
    let found = deployments(hub, policy_engine::NAMESPACE, |_| true).await;
    let is_forbidden = found.as_ref().is_err_and(|trouble| trouble.reason == Reason::Forbidden);
    if is_forbidden && !serves_group(hub, POLICIES.group).await {
        return Observed::Read(Vec::new());
    }
    found.into()
}

/// The definitions whose versions the webhook of add-ons converts. Of a release without conversion there are none.
async fn conversions(hub: &Cluster) -> Observed<Vec<WebhookFacts>> {
    let slices: Api<EndpointSlice> = Api::namespaced(hub.client.clone(), namespaces::HUB);
    let found = futures::future::join_all(webhook_names::CONVERTED.iter().map(async |name| {
        match conversion::webhook(hub, name).await {
            Ok(webhook) => Ok(webhook.map(|webhook| (*name, webhook))),
            Err(error) => {
                Err(trouble(hub, format_args!("read definition {name}"), error, DEFINITIONS.rule("get", None)))
            }
        }
    }));
    let all = ListParams::default();
    let (found, slices) = futures::join!(found, list(hub, SLICES, Some(namespaces::HUB), &slices, all, Some));
    let slices = match slices {
        Ok(slices) => slices,
        Err(trouble) => return Observed::Trouble(trouble),
    };
    let facts = |(name, webhook): (&str, conversion::Webhook)| {
        let service = webhook.service?;
        Some(WebhookFacts {
            name: name.to_owned(),
            service: format!("{}/{}", service.namespace, service.name),
            exists: true,
            has_endpoint: service.namespace != namespaces::HUB || answers(&slices, &service.name),
            authorities: certificate::from_pem(&webhook.ca_bundle.0)
                .unwrap_or_default()
                .into_iter()
                .map(ByteString)
                .collect(),
            ..WebhookFacts::default()
        })
    };
    let found: Result<Vec<Option<_>>, Trouble> = found.into_iter().collect();
    found.map(|found| found.into_iter().flatten().filter_map(facts).collect()).into()
}

/// The Deployments of the hub's own namespace and of others, and which of the others could not be read: they matter to other hubs
/// alone.
async fn deployments_of(
    hub: &Cluster,
    own: &str,
    others: BTreeSet<&str>,
) -> (Result<Vec<Workload>, Trouble>, Vec<String>) {
    let others = others.into_iter().filter(|namespace| *namespace != own);
    let reading = others.map(async |namespace| (namespace, deployments(hub, namespace, |_| true).await));
    let (of_own, of_others) = futures::join!(deployments(hub, own, |_| true), futures::future::join_all(reading));
    let (mut hosted, mut unread) = (Vec::new(), Vec::new());
    for (namespace, found) in of_others {
        match found {
            Ok(found) => hosted.extend(found),
            Err(_) => unread.push(namespace.to_owned()),
        }
    }
    (of_own.map(|own| own.into_iter().chain(hosted).collect()), unread)
}

/// The Service of the gRPC server: of the hub's own, or else of the first one that is hosted here. Without the driver grpc there
/// is none to look for.
async fn grpc_service(hub: &Cluster, managers: &[ClusterManager]) -> Observed<Option<ServiceFacts>> {
    let has_grpc = |manager: &&ClusterManager| {
        let registration = manager.spec.registration_configuration.iter();
        let mut drivers = registration.flat_map(|of| &of.registration_drivers);
        drivers.any(|driver| driver.auth_type == RegistrationAuthType::Grpc)
    };
    let own = own_manager(managers).filter(has_grpc);
    let Some(manager) = own.or_else(|| managers.iter().find(has_grpc)) else { return Observed::NotAsked };
    let namespace = namespace_of(manager);
    let api: Api<Service> = Api::namespaced(hub.client.clone(), namespace);
    let name = format!("{}-grpc-server", manager.metadata.name.as_deref().unwrap_or_default());
    let found = match api.get_opt(&name).await {
        Ok(found) => found,
        Err(error) => {
            let rule = SERVICES.rule("get", Some(namespace));
            return Observed::Trouble(trouble(hub, format_args!("read Service {namespace}/{name}"), error, rule));
        }
    };
    Observed::Read(found.map(|service| {
        let balancer = service.status.and_then(|status| status.load_balancer).and_then(|balancer| balancer.ingress);
        let ingress = balancer.into_iter().flatten();
        ServiceFacts {
            namespace: namespace.to_owned(),
            name,
            type_: service.spec.type_.unwrap_or_default(),
            addresses: ingress.flat_map(|one| [one.hostname, one.ip]).flatten().collect(),
        }
    }))
}

async fn ca_bundle(hub: &Cluster, namespace: &str) -> Observed<Option<Vec<ByteString>>> {
    let api: Api<ConfigMap> = Api::namespaced(hub.client.clone(), namespace);
    let found = api.get_opt(secrets::CA_BUNDLE_CONFIGMAP).await;
    let found = found.map_err(|error| hub.explain("read the ConfigMap with the hub's CA", error));
    let certificates = |map: ConfigMap| {
        let pem = map.data.as_ref().and_then(|data| data.get(secrets::CA_BUNDLE_KEY)).cloned().unwrap_or_default();
        certificate::from_pem(pem.as_bytes()).unwrap_or_default().into_iter().map(ByteString).collect()
    };
    Observed::of(found.map(|found| found.map(certificates)), CONFIG_MAPS.rule("get", Some(namespace)))
}

async fn hub_policies(hub: &Cluster) -> Observed<Vec<HubPolicy>> {
    let api: Api<HubPolicy> = Api::all(hub.client.clone());
    let listed = list(hub, POLICIES, None, &api, ListParams::default(), |mut policy| {
        strip(&mut policy.metadata);
        // Settings are the administrator's own affair.
        policy.spec = Default::default();
        if let Some(status) = &mut policy.status {
            redact_all(&mut status.conditions);
        }
        Some(policy)
    });
    listed.await.into()
}

/// The name, if it is one alone: then what belongs to it is read from its namespace.
fn alone(names: Option<&[String]>) -> Option<&str> {
    match names {
        Some([name]) => Some(name),
        _ => None,
    }
}

/// Managed clusters and certificate requests, and how many of those were left out. Whoever may register clusters may send
/// any number of requests with any label: only those of clusters that there are, or that somebody asks about, are kept.
async fn clusters_and_requests(
    hub: &Cluster,
    names: Option<&[String]>,
    registered: &[String],
) -> (Observed<Vec<ManagedCluster>>, Observed<Vec<CertificateSigningRequest>>, BTreeMap<String, usize>) {
    let clusters = clusters(hub, names).await;
    let listed = clusters.read().into_iter().flatten().filter_map(|cluster| cluster.metadata.name.clone());
    let known = listed.chain(names.unwrap_or_default().iter().cloned()).chain(registered.iter().cloned());
    let known: BTreeSet<String> = known.filter(|name| is_asked(names, name)).collect_set();
    let (requests, dropped) = requests(hub, names, known).await;
    (clusters, requests, dropped)
}

async fn clusters(hub: &Cluster, names: Option<&[String]>) -> Observed<Vec<ManagedCluster>> {
    let slim = |mut cluster: ManagedCluster| {
        // How the cluster registers, which hub its agent is at, where its add-ons' images are, and what is known of it.
        let kept = [annotations::MANAGED_CLUSTER_ARN, FALLBACK_OF, annotations::IMAGE_REGISTRIES, ANNOTATION];
        let kept = annotations_of(&mut cluster.metadata, &kept);
        strip(&mut cluster.metadata);
        cluster.metadata.annotations = kept;
        let addresses = &mut cluster.spec.managed_cluster_client_configs;
        addresses.truncate(ADDRESSES);
        for address in addresses {
            *address = ClientConfig { url: redact_start(&address.url), ca_bundle: None };
        }
        cluster.spec.taints.truncate(TAINTS);
        if let Some(status) = &mut cluster.status {
            (status.capacity, status.allocatable) = Default::default();
            (status.cluster_claims, status.managed_namespaces) = Default::default();
            redact_all(&mut status.conditions);
        }
        is_asked(names, cluster.metadata.name.as_deref().unwrap_or_default()).then_some(cluster)
    };
    let few = names.filter(|names| names.len() <= FEW);
    let listed = match few {
        Some(names) => some::<ManagedCluster>(hub, names, "managed cluster")
            .await
            .map(|found| found.into_iter().filter_map(slim).collect()),
        None => {
            let api: Api<ManagedCluster> = Api::all(hub.client.clone());
            crate::registry::pages(hub, &api, ListParams::default(), || PAGE, "list managed clusters", slim).await
        }
    };
    Observed::of(listed, CLUSTERS.rule(if few.is_some() { "get" } else { "list" }, None))
}

async fn requests(
    hub: &Cluster,
    names: Option<&[String]>,
    known: BTreeSet<String>,
) -> (Observed<Vec<CertificateSigningRequest>>, BTreeMap<String, usize>) {
    let selector = match names.filter(|names| names.len() <= FEW) {
        Some(names) => format!("{} in ({})", labels::CLUSTER_NAME, names.join(",")),
        None => labels::CLUSTER_NAME.to_owned(),
    };
    let params = ListParams::default().labels(&selector);
    let listed = fold_requests(hub, params, Kept::of(known), |kept, request| kept.take(slim(request))).await;
    let (listed, dropped) = match listed.map(Kept::end) {
        Ok((kept, dropped)) => (Ok(kept), dropped),
        Err(failure) => (Err(failure), BTreeMap::new()),
    };
    (Observed::of(listed, REQUESTS.rule("list", None)), dropped)
}

/// A request without what nobody needs and what anybody may have written anything into.
fn slim(mut request: CertificateSigningRequest) -> CertificateSigningRequest {
    let metadata = &mut request.metadata;
    let user = metadata.annotations.take().and_then(|all| all.get(annotations::CSR_USER).cloned());
    let mut labels = metadata.labels.take().unwrap_or_default();
    labels.retain(|name, _| [labels::CLUSTER_NAME, labels::ADDON_NAME].contains(&name.as_str()));
    strip(metadata);
    (metadata.labels, metadata.finalizers) = (Some(labels), None);
    let user = user.map(|user| redact(&user.chars().take(LONGEST_USER).collect::<String>()));
    metadata.annotations = user.map(|user| [(annotations::CSR_USER.to_owned(), user)].into());
    request.spec.extra = None;
    // Whoever may register clusters may create any number of these; longer ones are not read anyway.
    if request.spec.request.0.len() > LONGEST {
        request.spec.request = ByteString::default();
    }
    let conditions = request.status.as_mut().and_then(|status| status.conditions.as_mut());
    for condition in conditions.into_iter().flatten() {
        condition.message = condition.message.as_deref().map(redact_start);
    }
    request
}

/// What has become of a request, as far as it matters for how many are kept: everybody may send any number that waits, and
/// none that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Waits,
    Granted,
    Refused,
}

impl Fate {
    fn of(request: &CertificateSigningRequest) -> Self {
        let conditions = request.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let has = |kind: &str| conditions.iter().any(|condition| condition.type_ == kind);
        match () {
            () if has("Denied") || has("Failed") => Self::Refused,
            () if has("Approved") => Self::Granted,
            () => Self::Waits,
        }
    }
}

/// The requests that tell most of each cluster, and of its add-ons: those that wait and the decided ones do not push each
/// other out, nor do those that came last push out those that came first.
struct Kept {
    known: BTreeSet<String>,
    /// By cluster, whether they are of an add-on, and what has become of them: the oldest first.
    requests: BTreeMap<(String, bool, Fate), Vec<CertificateSigningRequest>>,
    dropped: BTreeMap<String, usize>,
}

impl Kept {
    fn of(known: BTreeSet<String>) -> Self {
        Self { known, requests: BTreeMap::new(), dropped: BTreeMap::new() }
    }

    fn take(&mut self, request: CertificateSigningRequest) {
        let label = |name: &str| request.metadata.labels.as_ref().and_then(|labels| labels.get(name)).cloned();
        let cluster = label(labels::CLUSTER_NAME).unwrap_or_default();
        if !self.known.contains(&cluster) {
            return;
        }
        let fate = Fate::of(&request);
        let of = (cluster.clone(), label(labels::ADDON_NAME).is_some(), fate);
        let kept = self.requests.entry(of).or_default();
        let when = created(&request);
        let at = kept.partition_point(|other| created(other) <= when);
        kept.insert(at, request);
        if kept.len() > MOST_REQUESTS {
            kept.remove(if fate == Fate::Waits { OLDEST_REQUESTS } else { 0 });
            *self.dropped.entry(cluster).or_default() += 1;
        }
    }

    fn end(self) -> (Vec<CertificateSigningRequest>, BTreeMap<String, usize>) {
        (self.requests.into_values().flatten().collect(), self.dropped)
    }
}

fn created(request: &CertificateSigningRequest) -> Option<Timestamp> {
    request.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

async fn leases(hub: &Cluster, names: Option<&[String]>) -> Observed<Vec<LeaseFacts>> {
    let api: Api<Lease> = match alone(names) {
        Some(name) => Api::namespaced(hub.client.clone(), name),
        None => Api::all(hub.client.clone()),
    };
    let params = ListParams::default().fields(&format!("metadata.name={}", hub_names::MANAGED_CLUSTER_LEASE));
    let listed = list(hub, LEASES, alone(names), &api, params, |lease| {
        let facts = lease_facts(lease);
        is_asked(names, &facts.namespace).then_some(facts)
    });
    listed.await.into()
}

/// The namespaces that are being removed, of those that are wanted.
pub(super) async fn terminating(cluster: &Cluster, wanted: impl Fn(&str) -> bool) -> Observed<Vec<NamespaceFacts>> {
    let api: Api<Namespace> = Api::all(cluster.client.clone());
    let params = ListParams::default().fields("status.phase=Terminating");
    let listed = list(cluster, NAMESPACES, None, &api, params, |found| {
        if !wanted(found.metadata.name.as_deref().unwrap_or_default()) {
            return None;
        }
        let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
        let messages = conditions.into_iter().filter(|condition| condition.status == "True");
        Some(NamespaceFacts {
            name: found.metadata.name.unwrap_or_default(),
            since: found.metadata.deletion_timestamp,
            messages: messages.filter_map(|condition| Some(redact_start(&condition.message?))).collect(),
        })
    });
    listed.await.into()
}

/// A work without the objects that it applies.
type Work = Object<WorkSpec, ManifestWorkStatus>;

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct WorkSpec {}

async fn works(hub: &Cluster, names: Option<&[String]>) -> Observed<Vec<WorkFacts>> {
    let kind = ApiResource::erase::<ManifestWork>(&());
    let listed = match alone(names) {
        Some(name) => {
            let api: Api<Work> = Api::namespaced_with(hub.client.clone(), name, &kind);
            list(hub, WORKS, Some(name), &api, ListParams::default(), |work| Some(work_facts(work))).await
        }
        // Works hold whatever they apply: of a fleet only metadata is read.
        None => if_served(hub, WORKS, None, works_by_metadata(hub, names).await).await,
    };
    listed.into()
}

async fn works_by_metadata(hub: &Cluster, names: Option<&[String]>) -> Result<Vec<WorkFacts>, Failure> {
    let api: Api<ManifestWork> = Api::all(hub.client.clone());
    let wanted = |work: PartialObjectMeta<ManifestWork>| {
        let ObjectMeta { namespace, name, creation_timestamp, deletion_timestamp, finalizers, .. } = work.metadata;
        let namespace = namespace.unwrap_or_default();
        is_asked(names, &namespace).then(|| WorkFacts {
            namespace,
            name: name.unwrap_or_default(),
            created: creation_timestamp,
            deleting: deletion_timestamp,
            finalizers: finalizers.unwrap_or_default(),
            ..WorkFacts::default()
        })
    };
    pages_of_metadata(hub, &api, ListParams::default(), "list manifestworks", wanted).await
}

fn work_facts(work: Work) -> WorkFacts {
    let status = work.status.unwrap_or_default();
    let manifests = status.resource_status.map(|status| status.manifests).unwrap_or_default();
    let failed = manifests.into_iter().filter_map(|manifest| {
        let condition = conditions::find(&manifest.conditions, conditions::manifest_work::APPLIED)?;
        let meta = &manifest.resource_meta;
        (condition.status == conditions::FALSE).then(|| {
            let said = redact_start(&format!("{}: {}", condition.reason, condition.message));
            format!("{} {}/{}: {said}", meta.kind, meta.namespace, meta.name)
        })
    });
    let mut conditions = status.conditions;
    redact_all(&mut conditions);
    WorkFacts {
        namespace: work.metadata.namespace.clone().unwrap_or_default(),
        name: work.metadata.name.clone().unwrap_or_default(),
        created: time(work.metadata.creation_timestamp.as_ref()),
        deleting: time(work.metadata.deletion_timestamp.as_ref()),
        finalizers: work.metadata.finalizers.clone().unwrap_or_default(),
        has_status: true,
        failed: failed.collect(),
        conditions,
    }
}

async fn addons(hub: &Cluster, names: Option<&[String]>) -> Observed<Vec<ManagedClusterAddOn>> {
    let api: Api<ManagedClusterAddOn> = match alone(names) {
        Some(name) => Api::namespaced(hub.client.clone(), name),
        None => Api::all(hub.client.clone()),
    };
    let listed = list(hub, ADDONS, alone(names), &api, ListParams::default(), |mut addon| {
        if !is_asked(names, addon.metadata.namespace.as_deref().unwrap_or_default()) {
            return None;
        }
        let kept = annotations_of(&mut addon.metadata, &[annotations::ADDON_HOSTING_CLUSTER]);
        strip(&mut addon.metadata);
        addon.metadata.annotations = kept;
        if let Some(status) = &mut addon.status {
            (status.related_objects, status.config_references, status.supported_configs) = Default::default();
            (status.add_on_meta, status.add_on_configuration) = Default::default();
            redact_all(&mut status.conditions);
        }
        Some(addon)
    });
    listed.await.into()
}

async fn registrations(hub: &Cluster, names: Option<&[String]>) -> Observed<Vec<Registration>> {
    let slim = |mut registration: Registration| {
        if !is_asked(names, registration.metadata.name.as_deref().unwrap_or_default()) {
            return None;
        }
        strip(&mut registration.metadata);
        if let Some(status) = &mut registration.status {
            // Records are long, and hold what policies were asked.
            status.decision = None;
            status.waiting_for = status.waiting_for.as_deref().map(redact_start);
        }
        Some(registration)
    };
    let api: Api<Registration> = Api::all(hub.client.clone());
    let params = match alone(names) {
        Some(name) => ListParams::default().fields(&format!("metadata.name={name}")),
        None => ListParams::default(),
    };
    list(hub, REGISTRATIONS, None, &api, params, slim).await.into()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::certificates::v1::{
        CertificateSigningRequestCondition as Condition, CertificateSigningRequestStatus as Status,
    };
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};

    use super::*;

    /// A request for a cluster, created in some second.
    fn request(cluster: &str, second: i64, decision: Option<&str>) -> CertificateSigningRequest {
        let mut request = CertificateSigningRequest::default();
        request.metadata.name = Some(format!("{cluster}-{second}"));
        request.metadata.creation_timestamp = Timestamp::from_second(second).ok().map(Time);
        request.metadata.labels = Some([(labels::CLUSTER_NAME.to_owned(), cluster.to_owned())].into());
        let condition = |kind: &str| Condition { type_: kind.to_owned(), ..Condition::default() };
        let conditions = decision.map(|kind| vec![condition(kind)]);
        request.status = Some(Status { conditions, ..Status::default() });
        request
    }

    fn kept(requests: impl IntoIterator<Item = CertificateSigningRequest>) -> (Vec<i64>, BTreeMap<String, usize>) {
        let mut kept = Kept::of(["c1".to_owned()].into());
        requests.into_iter().for_each(|request| kept.take(request));
        let (requests, dropped) = kept.end();
        let seconds = requests.iter().filter_map(|request| Some(created(request)?.as_second()));
        (seconds.collect(), dropped)
    }

    #[test]
    fn a_flood_of_requests_pushes_nothing_out_but_itself() {
        // The agent's own came first, or last, and what was granted stays; whatever the order in which they are read.
        let flood = |seconds: std::ops::Range<i64>| seconds.map(|second| request("c1", second, None));
        let granted = || request("c1", 1, Some("Approved"));
        let wanted: Vec<i64> = (100..115).chain(290..300).chain([1]).collect();
        let dropped = BTreeMap::from([("c1".to_owned(), 175)]);
        assert_eq!(kept(flood(100..300).chain([granted()])), (wanted.clone(), dropped.clone()));
        assert_eq!(kept([granted()].into_iter().chain(flood(100..300).rev())), (wanted, dropped));
        // Of the decided ones the newest stay, and those that were denied leave the others alone.
        let denied = (100..200).map(|second| request("c1", second, Some("Denied")));
        let (seconds, _) = kept(denied.chain([granted()]));
        assert_eq!(seconds, [1].into_iter().chain(175..200).collect::<Vec<_>>());
        // Labels that somebody has invented bring nothing in, and are not counted either.
        let invented = (0..1000).map(|number| request(&format!("x{number}"), number, None));
        assert_eq!(kept(invented), (Vec::new(), BTreeMap::new()));
    }

    #[test]
    fn of_a_request_nothing_is_kept_that_its_sender_could_make_large() {
        let large = "canary".repeat(1000);
        let mut request = request("c1", 1, None);
        let metadata = &mut request.metadata;
        metadata.labels.get_or_insert_default().insert("other".to_owned(), large.clone());
        metadata.annotations = Some([("other".to_owned(), large.clone())].into());
        metadata.finalizers = Some(vec![large.clone()]);
        metadata.owner_references = Some(vec![OwnerReference { name: large.clone(), ..OwnerReference::default() }]);
        request.spec.request = ByteString(vec![b'a'; LONGEST + 1]);
        request.spec.extra = Some([("other".to_owned(), vec![large])].into());
        let text = serde_json::to_string(&slim(request)).unwrap();
        assert!(!text.contains("canary") && text.len() < 1000, "{text}");
        assert!(text.contains(labels::CLUSTER_NAME), "{text}");
    }
}
