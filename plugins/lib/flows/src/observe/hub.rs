//! What a hub shows: its operator, its ClusterManager, its Deployments, its webhooks.

use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, PostParams, WatchParams};
use ocm_api::ClusterManager;
use ocm_api::names::{labels, namespaces, operators, webhooks};
use ocm_api::parts::{
    EndpointSlice, Lease, MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClient,
};
use ocm_core::install::feature_gates::is_defaulted;
use ocm_core::install::health::{Answer, HubFacts, Probe, WebhookFacts};
use ocm_core::install::mode::{is_hosted, namespace_of};
use ocm_core::join::lease::stale_holder;
use ocm_core::workload::Health;
use ocm_core::{Failure, Reason};
use ocm_kube::triggers::{Triggers, named};
use ocm_kube::{Cluster, explain};
use serde_json::{Value, json};

use crate::workload;

/// Reads the hub whose ClusterManager has this name. `hub` is the hub itself, where it is hosted on this cluster; without it,
/// nothing is known of the webhooks of such a one. They are not asked anything: [`probes`] does it.
pub async fn observe(cluster: &Cluster, hub: Option<&Cluster>, name: &str) -> HubFacts {
    let managers: Api<ClusterManager> = Api::all(cluster.client.clone());
    let (operator, manager) = futures::join!(
        workload::deployment(cluster, namespaces::OPERATOR, operators::CLUSTER_MANAGER),
        managers.get(name)
    );
    let manager = match manager {
        Ok(manager) => manager,
        Err(error) => {
            let manager = Err(cluster.explain("read the ClusterManager", error));
            let (deployments, webhooks) = (Ok(Vec::new()), Ok(Vec::new()));
            return HubFacts { operator, gone_leader: None, manager, deployments, webhooks, probes: Vec::new() };
        }
    };
    let (deployments, webhooks) = futures::join!(deployments(cluster, namespace_of(&manager)), async {
        match asks_webhooks(cluster, hub, &manager) {
            Some(hub) => webhook_facts(hub, is_hosted(&manager)).await,
            None => Ok(Vec::new()),
        }
    });
    let gone_leader = if manager.status.is_none() { gone_leader(cluster).await } else { None };
    HubFacts { operator, gone_leader, manager: Ok(manager), deployments, webhooks, probes: Vec::new() }
}

/// The cluster whose API server asks the webhooks of a hub: the hub itself. None: it is hosted, and not known here.
pub fn asks_webhooks<'a>(
    cluster: &'a Cluster,
    hub: Option<&'a Cluster>,
    manager: &ClusterManager,
) -> Option<&'a Cluster> {
    if is_hosted(manager) { hub } else { Some(cluster) }
}

/// Changes of what [`observe`] reads, but for the answers of webhooks.
pub fn triggers(cluster: &Cluster, hub: &str) -> Triggers {
    let client = || cluster.client.clone();
    let managers: Api<ClusterManager> = Api::all(client());
    let endpoints: Api<EndpointSlice> = Api::namespaced(client(), namespaces::HUB);
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client());
    Triggers::default()
        .of(workload::deployments(cluster, namespaces::OPERATOR), named(operators::CLUSTER_MANAGER))
        .of(managers, named(hub))
        .of(workload::deployments(cluster, namespaces::HUB), WatchParams::default())
        .of(endpoints, WatchParams::default())
        .of(mutating, WatchParams::default())
        .of(validating, WatchParams::default())
}

/// The Deployments of a namespace, and how they are.
async fn deployments(cluster: &Cluster, namespace: &str) -> Result<Vec<(String, Health)>, Failure> {
    let listed = workload::deployments(cluster, namespace).list(&ListParams::default()).await;
    let listed = listed.map_err(|error| cluster.explain(format_args!("list the Deployments of {namespace}"), error))?;
    let each = listed.items.iter().map(async |deployment| {
        let health = workload::of(cluster, deployment).await?;
        let name = deployment.metadata.name.clone().unwrap_or_default();
        Ok((name, health))
    });
    futures::future::try_join_all(each).await
}

/// The pod whose process has ended and holds the operator's leader lease.
async fn gone_leader(cluster: &Cluster) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), namespaces::OPERATOR);
    let lease = leases.get_opt(operators::CLUSTER_MANAGER_LOCK).await.ok()??;
    let pods = workload::running(cluster, namespaces::OPERATOR).await.ok()?;
    stale_holder(&lease, operators::CLUSTER_MANAGER, &pods)
}

/// The webhook configurations of a hub, and whether somebody is behind them. Of a hosted one that cannot be seen: its webhooks
/// are at addresses of another cluster.
async fn webhook_facts(cluster: &Cluster, is_hosted: bool) -> Result<Vec<WebhookFacts>, Failure> {
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(cluster.client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client.clone());
    let slices: Api<EndpointSlice> = Api::namespaced(cluster.client.clone(), namespaces::HUB);
    let cannot = |name: &str, error| cluster.explain(format_args!("read webhook configuration {name}"), error);
    let all = ListParams::default();
    let (mutating, validating, slices) = futures::join!(
        futures::future::try_join_all(webhooks::MUTATING.iter().map(async |(name, service)| {
            let found = mutating.get_opt(name).await.map_err(|error| cannot(name, error))?;
            let hooks = found.map(|found| found.webhooks);
            Ok((*name, *service, hooks.map(|hooks| hooks_trust(hooks.iter().map(|hook| &hook.client_config)))))
        })),
        futures::future::try_join_all(webhooks::VALIDATING.iter().map(async |(name, service)| {
            let found = validating.get_opt(name).await.map_err(|error| cannot(name, error))?;
            let hooks = found.map(|found| found.webhooks);
            Ok((*name, *service, hooks.map(|hooks| hooks_trust(hooks.iter().map(|hook| &hook.client_config)))))
        })),
        async { if is_hosted { Ok(Vec::new()) } else { slices.list(&all).await.map(|list| list.items) } },
    );
    let slices = slices.map_err(|error| cluster.explain("list the endpoints of the webhooks", error))?;
    let answers = |service: &str| {
        let of_service = slices.iter().filter(|slice| {
            let labels = slice.metadata.labels.as_ref();
            labels.and_then(|labels| labels.get("kubernetes.io/service-name")).is_some_and(|name| name == service)
        });
        of_service
            .flat_map(|slice| &slice.endpoints)
            .any(|endpoint| endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true))
    };
    let found = mutating?.into_iter().chain(validating?);
    let facts = |(name, service, has_ca)| {
        let has_endpoint = is_hosted || answers(service);
        WebhookFacts { name, service, has_ca, has_endpoint }
    };
    Ok(found.map(facts).collect())
}

/// Whether every webhook of a configuration knows the CA of its server.
fn hooks_trust<'a>(mut clients: impl Iterator<Item = &'a WebhookClient>) -> bool {
    clients.all(|client| client.ca_bundle.as_ref().is_some_and(|bundle| !bundle.0.is_empty()))
}

/// Name of the objects that the probes pretend to create.
const PROBE: &str = "kubectl-ocm-probe";

/// Asks every webhook a question by pretending to create an object: only where nothing else is missing of the hub, for they could
/// not answer before.
///
/// Nothing is stored: these are server-side dry runs. Whoever may not create such objects is not asked to.
///
/// # Errors
/// The failure of a request that says nothing of a webhook.
pub async fn probes(cluster: &Cluster, manager: &ClusterManager) -> Result<Vec<Probe>, Failure> {
    let parameters = PostParams { dry_run: true, ..PostParams::default() };
    let client = || cluster.client.clone();
    let resource = |group: &str, version: &str, kind: &str, plural: &str| ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    };
    let object = |resource: &ApiResource, spec: Value| {
        let mut object = DynamicObject::new(PROBE, resource);
        object.data = json!({ "spec": spec });
        object
    };
    let cluster_resource = resource("cluster.open-cluster-management.io", "v1", "ManagedCluster", "managedclusters");
    let binding = resource(
        "cluster.open-cluster-management.io",
        "v1beta2",
        "ManagedClusterSetBinding",
        "managedclustersetbindings",
    );
    let work = resource("work.open-cluster-management.io", "v1", "ManifestWork", "manifestworks");
    let clusters: Api<DynamicObject> = Api::all_with(client(), &cluster_resource);
    let bindings: Api<DynamicObject> = Api::namespaced_with(client(), "default", &binding);
    let works: Api<DynamicObject> = Api::namespaced_with(client(), "default", &work);
    let new_cluster = object(&cluster_resource, json!({ "hubAcceptsClient": false }));
    // Both are wrong in a way that only the webhooks notice.
    let misnamed = object(&binding, json!({ "clusterSet": "kubectl-ocm-other-name" }));
    let empty = object(&work, json!({ "workload": { "manifests": [] } }));
    let (new_cluster, misnamed, empty) = futures::join!(
        clusters.create(&parameters, &new_cluster),
        bindings.create(&parameters, &misnamed),
        works.create(&parameters, &empty),
    );
    let new_cluster = match new_cluster {
        Ok(created) => {
            let set = created.metadata.labels.and_then(|labels| labels.get(labels::CLUSTER_SET).cloned());
            if is_defaulted(manager, set.as_deref()) { Answer::Answered } else { Answer::NotAsked }
        }
        Err(error) => answer(cluster, "ManagedClusters", error)?,
    };
    let mut probes = vec![Probe { kind: "ManagedClusters", answer: new_cluster }];
    for (kind, created) in [("ManagedClusterSetBindings", misnamed), ("ManifestWorks", empty)] {
        let answer = match created {
            Ok(_) => Answer::NotAsked,
            Err(error) => answer(cluster, kind, error)?,
        };
        probes.push(Probe { kind, answer });
    }
    Ok(probes)
}

/// What an error says about a webhook.
fn answer(cluster: &Cluster, kind: &str, error: kube::Error) -> Result<Answer, Failure> {
    let failure = explain(&error);
    match failure.reason {
        // It said no, which is an answer; or we are not the ones who may ask.
        Reason::Admission | Reason::Forbidden | Reason::Invalid | Reason::Conflict => Ok(Answer::Answered),
        Reason::Busy | Reason::KindNotServed | Reason::NotFound => Ok(Answer::Unanswered(failure.to_string())),
        _ => Err(cluster.explain(format_args!("ask the webhook of {kind}"), error)),
    }
}
