//! What a hub shows, for checks.

use std::cell::RefCell;
use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::ListParams;
use kube::core::{ApiResource, Object};
use ocm_api::names::{annotations, hub as hub_names, labels, namespaces, operators, secrets, webhooks};
use ocm_api::work::ManifestWorkStatus;
use ocm_api::{ClusterManager, HubPolicy, ManagedCluster, ManagedClusterAddOn, ManifestWork, Registration, conditions};
use ocm_checks::snapshot::{HubSide, LeaseFacts, NamespaceFacts, Observed, WebhookFacts, WorkFacts};
use ocm_core::csr::LONGEST;
use ocm_core::install::health;
use ocm_core::join::lease::stale_holder;
use ocm_core::redact::redact;
use ocm_core::{Failure, Reason, certificate, policy_engine};
use ocm_kube::Cluster;
use serde::{Deserialize, Serialize};

use super::{Kind, LEASES, NAMESPACES, deployment, deployments, lease_facts, list, redact_all, strip, time};
use crate::hub::{root_ca, uid};
use crate::registry::{FEW, pages_of_requests, some};

const MANAGERS: Kind = Kind::new("operator.open-cluster-management.io", "clustermanagers");
const CLUSTERS: Kind = Kind::new("cluster.open-cluster-management.io", "managedclusters");
const REQUESTS: Kind = Kind::new("certificates.k8s.io", "certificatesigningrequests");
const WEBHOOKS: Kind = Kind::new("admissionregistration.k8s.io", "validatingwebhookconfigurations");
const WORKS: Kind = Kind::new("work.open-cluster-management.io", "manifestworks");
const ADDONS: Kind = Kind::new("addon.open-cluster-management.io", "managedclusteraddons");
const POLICIES: Kind = Kind::new("policy.kubectl-ocm.dev", "hubpolicies");
const REGISTRATIONS: Kind = Kind::new("policy.kubectl-ocm.dev", "registrations");
const CONFIG_MAPS: Kind = Kind::new("", "configmaps");

/// How many requests of a cluster are kept, and of its add-ons: agents stop asking long before.
const MOST_REQUESTS: usize = 50;
/// Nobody has a longer name.
const LONGEST_USER: usize = 1024;

/// Reads a hub, for these clusters; none: for all. What cannot be read says why.
pub async fn observe(hub: &Cluster, names: Option<&[String]>) -> HubSide {
    let managers = managers(hub).await;
    let hosted = managers.read().and_then(|managers| managers.iter().find(|manager| health::is_hosted(manager)));
    let hosted = hosted.and_then(|manager| manager.metadata.name.clone());
    let elsewhere = hosted.is_some() || managers.read().is_some_and(Vec::is_empty);
    let namespace = hosted.unwrap_or_else(|| namespaces::HUB.to_owned());
    let control_plane = async {
        futures::join!(
            deployment(hub, namespaces::OPERATOR, operators::CLUSTER_MANAGER),
            leader(hub),
            deployments(hub, &namespace, |_| true),
            // A hosted hub's webhooks are on another cluster than the hub's API, and its ClusterManager may be, too.
            async { if elsewhere { Observed::NotAsked } else { webhook_facts(hub).await } },
            ca_bundle(hub, &namespace),
            deployments(hub, policy_engine::NAMESPACE, |_| true),
            hub_policies(hub),
        )
    };
    let fleet = async {
        futures::join!(
            clusters(hub, names),
            requests(hub, names),
            leases(hub, names),
            terminating(hub),
            works(hub, names),
            addons(hub, names),
            registrations(hub, names),
        )
    };
    let identity = async { futures::join!(uid(hub), root_ca(hub)) };
    let (control_plane, fleet, (uid, root)) = futures::join!(control_plane, fleet, identity);
    let (operator, leader, deployments, webhooks, ca_bundle, policy_engine, policies) = control_plane;
    let (clusters, requests, leases, terminating, works, addons, registrations) = fleet;
    let mut authorities = hub.ca.clone().unwrap_or_default();
    authorities.extend(root.unwrap_or_default());
    authorities.sort();
    authorities.dedup();
    HubSide {
        server: redact(&hub.server),
        context: hub.context.clone(),
        uid,
        authorities: authorities.into_iter().map(ByteString).collect(),
        operator,
        leader,
        managers,
        deployments,
        webhooks,
        ca_bundle,
        clusters,
        requests,
        leases,
        terminating,
        works,
        addons,
        policies,
        registrations,
        policy_engine,
    }
}

async fn managers(hub: &Cluster) -> Observed<Vec<ClusterManager>> {
    let api: Api<ClusterManager> = Api::all(hub.client.clone());
    let listed = list(hub, MANAGERS, &api, ListParams::default(), |mut manager| {
        strip(&mut manager.metadata);
        if let Some(status) = &mut manager.status {
            redact_all(&mut status.conditions);
        }
        Some(manager)
    });
    Observed::of(listed.await, MANAGERS.rule("list", None))
}

/// The operator's leader lease, and whether it is held by a pod that is gone.
async fn leader(hub: &Cluster) -> Observed<Option<LeaseFacts>> {
    let leases: Api<Lease> = Api::namespaced(hub.client.clone(), namespaces::OPERATOR);
    let pods: Api<Pod> = Api::namespaced(hub.client.clone(), namespaces::OPERATOR);
    let read = async {
        let explained = |error| hub.explain("read the operator's leader lease", error);
        let Some(lease) = leases.get_opt(operators::CLUSTER_MANAGER_LOCK).await.map_err(explained)? else {
            return Ok(None);
        };
        // The pods are read after the lease: a holder that is not among them was gone by then.
        let pods = pods.list_metadata(&ListParams::default()).await.map_err(explained)?.items;
        let pods: Vec<String> = pods.into_iter().filter_map(|pod| pod.metadata.name).collect();
        let gone = stale_holder(&lease, operators::CLUSTER_MANAGER, &pods);
        Ok(Some(LeaseFacts { gone, ..lease_facts(lease) }))
    };
    Observed::of(read.await, LEASES.rule("get", Some(namespaces::OPERATOR)))
}

async fn webhook_facts(hub: &Cluster) -> Observed<Vec<WebhookFacts>> {
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(hub.client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(hub.client.clone());
    let slices: Api<EndpointSlice> = Api::namespaced(hub.client.clone(), namespaces::HUB);
    let all = ListParams::default();
    let name = |name: &Option<String>| name.clone().unwrap_or_default();
    let (mutating, validating, slices) = futures::join!(
        list(hub, WEBHOOKS, &mutating, all.clone(), |found| {
            let hooks = found.webhooks.unwrap_or_default();
            let hooks = hooks.into_iter().map(|hook| hook.client_config).collect::<Vec<_>>();
            Some((name(&found.metadata.name), hooks))
        }),
        list(hub, WEBHOOKS, &validating, all.clone(), |found| {
            let hooks = found.webhooks.unwrap_or_default();
            let hooks = hooks.into_iter().map(|hook| hook.client_config).collect::<Vec<_>>();
            Some((name(&found.metadata.name), hooks))
        }),
        list(hub, Kind::new("discovery.k8s.io", "endpointslices"), &slices, all.clone(), Some),
    );
    let read = || {
        let (mutating, validating, slices) = (mutating?, validating?, slices?);
        let answers = |service: &str| {
            let labelled = |slice: &&EndpointSlice| {
                let labels = slice.metadata.labels.as_ref();
                labels.and_then(|labels| labels.get("kubernetes.io/service-name")).is_some_and(|name| name == service)
            };
            let ready = |endpoint: &k8s_openapi::api::discovery::v1::Endpoint| {
                endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true)
            };
            slices.iter().filter(labelled).flat_map(|slice| &slice.endpoints).any(ready)
        };
        let wanted = |wanted: &[(&str, &str)], found: &[(String, Vec<WebhookClientConfig>)]| -> Vec<WebhookFacts> {
            let facts = |(name, service): &(&str, &str)| {
                let hooks = found.iter().find(|(known, _)| known == name).map(|(_, hooks)| hooks);
                WebhookFacts {
                    name: (*name).to_owned(),
                    service: format!("{}/{service}", namespaces::HUB),
                    exists: hooks.is_some(),
                    authorities: hooks.map(|hooks| authorities(hooks)).unwrap_or_default(),
                    has_endpoint: answers(service),
                }
            };
            wanted.iter().map(facts).collect()
        };
        let mut facts = wanted(webhooks::MUTATING, &mutating);
        facts.extend(wanted(webhooks::VALIDATING, &validating));
        Ok(facts)
    };
    Observed::of(read(), WEBHOOKS.rule("list", None))
}

/// The authorities that every webhook of a configuration has; none where one lacks them.
fn authorities(hooks: &[WebhookClientConfig]) -> Vec<ByteString> {
    let of = |hook: &WebhookClientConfig| {
        let bundle = hook.ca_bundle.as_ref()?;
        certificate::from_pem(&bundle.0).ok()
    };
    let mut all = hooks.iter().map(|hook| of(hook).unwrap_or_default());
    let first = all.next().unwrap_or_default();
    let common = all.fold(first, |common, own| common.into_iter().filter(|der| own.contains(der)).collect());
    common.into_iter().map(ByteString).collect()
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
    let listed = list(hub, POLICIES, &api, ListParams::default(), |mut policy| {
        strip(&mut policy.metadata);
        // Settings are the administrator's own affair.
        policy.spec = Default::default();
        if let Some(status) = &mut policy.status {
            redact_all(&mut status.conditions);
        }
        Some(policy)
    });
    Observed::of(listed.await, POLICIES.rule("list", None))
}

/// The name, if it is one alone: then what belongs to it is read from its namespace.
fn alone(names: Option<&[String]>) -> Option<&str> {
    match names {
        Some([name]) => Some(name),
        _ => None,
    }
}

async fn clusters(hub: &Cluster, names: Option<&[String]>) -> Observed<Vec<ManagedCluster>> {
    let slim = |mut cluster: ManagedCluster| {
        let arn =
            cluster.metadata.annotations.take().and_then(|all| all.get(annotations::MANAGED_CLUSTER_ARN).cloned());
        strip(&mut cluster.metadata);
        // It tells how the cluster registers.
        cluster.metadata.annotations = arn.map(|arn| [(annotations::MANAGED_CLUSTER_ARN.to_owned(), arn)].into());
        cluster.spec.managed_cluster_client_configs.clear();
        if let Some(status) = &mut cluster.status {
            (status.capacity, status.allocatable) = Default::default();
            (status.cluster_claims, status.managed_namespaces) = Default::default();
            redact_all(&mut status.conditions);
        }
        Some(cluster)
    };
    let listed = match names.filter(|names| names.len() <= FEW) {
        Some(names) => some::<ManagedCluster>(hub, names, "managed cluster")
            .await
            .map(|found| found.into_iter().filter_map(slim).collect()),
        None => {
            let api: Api<ManagedCluster> = Api::all(hub.client.clone());
            crate::registry::pages(hub, &api, ListParams::default(), || super::PAGE, "list managed clusters", slim)
                .await
        }
    };
    Observed::of(listed, CLUSTERS.rule(if alone(names).is_some() { "get" } else { "list" }, None))
}

async fn requests(hub: &Cluster, names: Option<&[String]>) -> Observed<Vec<CertificateSigningRequest>> {
    let selector = match names.filter(|names| names.len() <= FEW) {
        Some(names) => format!("{} in ({})", labels::CLUSTER_NAME, names.join(",")),
        None => labels::CLUSTER_NAME.to_owned(),
    };
    let newest = Newest::default();
    let listed = pages_of_requests(hub, ListParams::default().labels(&selector), |mut request| {
        let user = request.metadata.annotations.take().and_then(|all| all.get(annotations::CSR_USER).cloned());
        strip(&mut request.metadata);
        let user = user.map(|user| redact(&user.chars().take(LONGEST_USER).collect::<String>()));
        request.metadata.annotations = user.map(|user| [(annotations::CSR_USER.to_owned(), user)].into());
        request.spec.extra = None;
        // Whoever may register clusters may create any number of these; longer ones are not read anyway.
        if request.spec.request.0.len() > LONGEST {
            request.spec.request = ByteString::default();
        }
        newest.take(request);
        None::<()>
    });
    let listed = listed.await.map(|_| newest.all());
    Observed::of(listed, REQUESTS.rule("list", None))
}

/// The newest requests of each cluster, and of its add-ons.
#[derive(Default)]
struct Newest(RefCell<BTreeMap<(String, bool), Vec<CertificateSigningRequest>>>);

impl Newest {
    fn take(&self, request: CertificateSigningRequest) {
        let label = |name: &str| request.metadata.labels.as_ref().and_then(|labels| labels.get(name)).cloned();
        let of = (label(labels::CLUSTER_NAME).unwrap_or_default(), label(labels::ADDON_NAME).is_some());
        let mut all = self.0.borrow_mut();
        let kept = all.entry(of).or_default();
        kept.push(request);
        let age = |request: &&CertificateSigningRequest| request.metadata.creation_timestamp.clone();
        if kept.len() > MOST_REQUESTS
            && let Some(oldest) = kept.iter().min_by_key(age).and_then(|oldest| oldest.metadata.name.clone())
        {
            kept.retain(|request| request.metadata.name.as_ref() != Some(&oldest));
        }
    }

    fn all(self) -> Vec<CertificateSigningRequest> {
        self.0.into_inner().into_values().flatten().collect()
    }
}

async fn leases(hub: &Cluster, names: Option<&[String]>) -> Observed<Vec<LeaseFacts>> {
    let api: Api<Lease> = match alone(names) {
        Some(name) => Api::namespaced(hub.client.clone(), name),
        None => Api::all(hub.client.clone()),
    };
    let params = ListParams::default().fields(&format!("metadata.name={}", hub_names::MANAGED_CLUSTER_LEASE));
    let listed = list(hub, LEASES, &api, params, |lease| Some(lease_facts(lease)));
    Observed::of(listed.await, LEASES.rule("list", alone(names)))
}

/// The namespaces that are being removed.
pub(super) async fn terminating(cluster: &Cluster) -> Observed<Vec<NamespaceFacts>> {
    let api: Api<Namespace> = Api::all(cluster.client.clone());
    let listed = list(cluster, NAMESPACES, &api, ListParams::default().fields("status.phase=Terminating"), |found| {
        let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
        let messages = conditions.into_iter().filter(|condition| condition.status == "True");
        Some(NamespaceFacts {
            name: found.metadata.name.unwrap_or_default(),
            since: found.metadata.deletion_timestamp,
            messages: messages.filter_map(|condition| Some(redact(&condition.message?))).collect(),
        })
    });
    Observed::of(listed.await, NAMESPACES.rule("list", None))
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
            list(hub, WORKS, &api, ListParams::default(), |work| Some(work_facts(work))).await
        }
        // Works hold whatever they apply: of a fleet only metadata is read.
        None => works_by_metadata(hub).await,
    };
    Observed::of(listed, WORKS.rule("list", alone(names)))
}

async fn works_by_metadata(hub: &Cluster) -> Result<Vec<WorkFacts>, Failure> {
    let api: Api<ManifestWork> = Api::all(hub.client.clone());
    let mut params = ListParams::default().limit(super::PAGE);
    let mut found = Vec::new();
    loop {
        let page = match api.list_metadata(&params).await {
            Ok(page) => page,
            Err(error) => match hub.explain("list manifestworks", error) {
                failure if matches!(failure.reason, Reason::KindNotServed | Reason::NotFound) => return Ok(found),
                failure => return Err(failure),
            },
        };
        found.extend(page.items.into_iter().map(|work| WorkFacts {
            namespace: work.metadata.namespace.unwrap_or_default(),
            name: work.metadata.name.unwrap_or_default(),
            created: work.metadata.creation_timestamp,
            deleting: work.metadata.deletion_timestamp,
            finalizers: work.metadata.finalizers.unwrap_or_default(),
            ..WorkFacts::default()
        }));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(found),
        }
    }
}

fn work_facts(work: Work) -> WorkFacts {
    let status = work.status.unwrap_or_default();
    let manifests = status.resource_status.map(|status| status.manifests).unwrap_or_default();
    let failed = manifests.into_iter().filter_map(|manifest| {
        let condition = conditions::find(&manifest.conditions, conditions::manifest_work::APPLIED)?;
        let meta = &manifest.resource_meta;
        (condition.status == conditions::FALSE)
            .then(|| format!("{} {}/{}: {}", meta.kind, meta.namespace, meta.name, redact(&condition.message)))
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
    let listed = list(hub, ADDONS, &api, ListParams::default(), |mut addon| {
        strip(&mut addon.metadata);
        if let Some(status) = &mut addon.status {
            (status.related_objects, status.config_references, status.supported_configs) = Default::default();
            (status.add_on_meta, status.add_on_configuration) = Default::default();
            redact_all(&mut status.conditions);
        }
        Some(addon)
    });
    Observed::of(listed.await, ADDONS.rule("list", alone(names)))
}

async fn registrations(hub: &Cluster, names: Option<&[String]>) -> Observed<Vec<Registration>> {
    let slim = |mut registration: Registration| {
        strip(&mut registration.metadata);
        if let Some(status) = &mut registration.status {
            // Records are long, and hold what policies were asked.
            status.decision = None;
            status.waiting_for = status.waiting_for.as_deref().map(redact);
        }
        Some(registration)
    };
    let api: Api<Registration> = Api::all(hub.client.clone());
    let params = match alone(names) {
        Some(name) => ListParams::default().fields(&format!("metadata.name={name}")),
        None => ListParams::default(),
    };
    Observed::of(list(hub, REGISTRATIONS, &api, params, slim).await, REGISTRATIONS.rule("list", None))
}
