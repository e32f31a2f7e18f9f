//! The wait until a hub is usable.

use std::time::{Duration, Instant};

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, MutatingWebhookConfiguration, ValidatingWebhook, ValidatingWebhookConfiguration,
    WebhookClientConfig,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, PostParams, WatchParams};
use ocm_api::conditions::{self, cluster_manager};
use ocm_api::names::{hub, labels, namespaces, operators, webhooks};
use ocm_api::operator::ClusterManagerMode;
use ocm_api::{ClusterManager, Condition};
use ocm_core::install::feature_gates::DEFAULT_CLUSTER_SET;
use ocm_core::join::lease::stale_holder;
use ocm_core::{Failure, Narrator, Reason};
use ocm_kube::changes::{Changes, named};
use ocm_kube::wait::{Look, until_changed};
use ocm_kube::{Cluster, explain};
use serde_json::{Value, json};

use crate::workload;

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// Waits until the hub is usable: its operator, its conditions, every Deployment, and every webhook with an answer.
///
/// # Errors
/// [`Reason::TimedOut`] with what held it up last; or a failure that does not pass by itself.
pub(super) async fn usable(
    cluster: &Cluster,
    hub: &str,
    timeout: Duration,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let deadline = Instant::now() + timeout;
    let again = "what was applied stays: mend it and run the same command again, it goes on from there";
    let doing = "waiting for the hub to be usable";
    until_changed(doing, deadline, PAUSE, changes(cluster, hub), narrator, async || look(cluster, hub).await)
        .await
        .map_err(|failure| failure.hint(again))
}

/// What a look depends on, but for the answers of webhooks.
fn changes(cluster: &Cluster, hub: &str) -> Changes {
    let client = || cluster.client.clone();
    let managers: Api<ClusterManager> = Api::all(client());
    let endpoints: Api<EndpointSlice> = Api::namespaced(client(), namespaces::HUB);
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client());
    Changes::default()
        .of(workload::deployments(cluster, namespaces::OPERATOR), named(operators::CLUSTER_MANAGER))
        .of(managers, named(hub))
        .of(workload::deployments(cluster, namespaces::HUB), WatchParams::default())
        .of(endpoints, WatchParams::default())
        .of(mutating, WatchParams::default())
        .of(validating, WatchParams::default())
}

/// One look at the hub, from the operator outwards: the first thing that is missing is what holds it up.
async fn look(cluster: &Cluster, hub: &str) -> Result<Look<()>, Failure> {
    let health = workload::deployment(cluster, namespaces::OPERATOR, operators::CLUSTER_MANAGER).await?;
    if let Some(because) = health.because() {
        return Ok(not_yet(format!("Deployment {}/{}: {because}", namespaces::OPERATOR, operators::CLUSTER_MANAGER)));
    }
    let managers: Api<ClusterManager> = Api::all(cluster.client.clone());
    let manager = managers.get(hub).await.map_err(|error| cluster.explain("read the ClusterManager", error))?;
    let mode = manager.spec.deploy_option.as_ref().map(|option| option.mode.clone()).unwrap_or_default();
    // In mode Hosted the pods run here, in a namespace of the hub's name, and everything else on another cluster.
    let hosted = mode == ClusterManagerMode::Hosted;
    let namespace = if hosted { hub } else { namespaces::HUB };
    let deployments = workload::deployments(cluster, namespace);
    let listed = deployments.list(&ListParams::default()).await;
    let listed = listed.map_err(|error| cluster.explain(format_args!("list the Deployments of {namespace}"), error))?;
    for deployment in &listed.items {
        if let Some(because) = workload::of(cluster, deployment).await?.because() {
            let name = deployment.metadata.name.as_deref().unwrap_or_default();
            return Ok(not_yet(format!("Deployment {namespace}/{name}: {because}")));
        }
    }
    let present = |name: &str| listed.items.iter().any(|deployment| deployment.metadata.name.as_deref() == Some(name));
    if let Some(because) = reported(&manager, &present) {
        return Ok(not_yet(match (&manager.status, held_up_by_lease(cluster).await) {
            (None, Some(lease)) => lease,
            _ => because,
        }));
    }
    if hosted {
        return Ok(Look::Ready(()));
    }
    if let Some(because) = webhooks_missing(cluster).await? {
        return Ok(not_yet(because));
    }
    Ok(match probes(cluster, has_default_set(&manager)).await? {
        Some(because) => not_yet(because),
        None => Look::Ready(()),
    })
}

fn not_yet(because: String) -> Look<()> {
    Look::NotYet(because)
}

/// What the operator still reports to be missing, for the present generation of its object.
fn reported(manager: &ClusterManager, present: &dyn Fn(&str) -> bool) -> Option<String> {
    let Some(status) = &manager.status else { return Some("the operator has not reported anything yet".to_owned()) };
    let generation = manager.metadata.generation.unwrap_or_default();
    let find = |kind: &str| conditions::find(&status.conditions, kind);
    let about = |condition: &Condition| format!("the operator reports {}: {}", condition.reason, condition.message);
    let is_current = |condition: &Condition| condition.observed_generation.is_none_or(|seen| seen >= generation);
    for (kind, wanted) in [
        (cluster_manager::APPLIED, conditions::TRUE),
        (cluster_manager::PROGRESSING, conditions::FALSE),
        (cluster_manager::HUB_REGISTRATION_DEGRADED, conditions::FALSE),
        (cluster_manager::HUB_PLACEMENT_DEGRADED, conditions::FALSE),
    ] {
        match find(kind) {
            None => return Some(format!("the operator has not reported {kind} yet")),
            Some(condition) if condition.status != wanted => return Some(about(condition)),
            Some(condition) if !is_current(condition) => {
                return Some(format!("the operator has not reported {kind} of the latest generation yet"));
            }
            Some(_) => {}
        }
    }
    if status.observed_generation.unwrap_or_default() < generation {
        return Some("the operator has not observed the latest generation of the ClusterManager yet".to_owned());
    }
    if let Some(condition) =
        find(cluster_manager::VALID_FEATURE_GATES).filter(|gates| gates.status == conditions::FALSE)
    {
        return Some(about(condition));
    }
    let missing =
        status.generations.iter().find(|applied| applied.resource == "deployments" && !present(&applied.name));
    missing.map(|applied| format!("Deployment {} is not there", applied.name))
}

/// An operator whose predecessor was killed waits up to 137 s for a Lease that nobody holds any more.
async fn held_up_by_lease(cluster: &Cluster) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), namespaces::OPERATOR);
    let lease = leases.get_opt(operators::CLUSTER_MANAGER_LOCK).await.ok()??;
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), namespaces::OPERATOR);
    let pods = pods.list_metadata(&ListParams::default()).await.ok()?.items;
    let pods: Vec<String> = pods.into_iter().filter_map(|pod| pod.metadata.name).collect();
    let pod = stale_holder(&lease, operators::CLUSTER_MANAGER, &pods)?;
    Some(format!(
        "the operator waits, for up to 137 s, for Lease {}/{} that the pod {pod} held, which is gone",
        namespaces::OPERATOR,
        operators::CLUSTER_MANAGER_LOCK
    ))
}

/// The first webhook configuration that is not there, trusts nobody, or has nobody behind it.
async fn webhooks_missing(cluster: &Cluster) -> Result<Option<String>, Failure> {
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(cluster.client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client.clone());
    let cannot = |name: &str, error| cluster.explain(format_args!("read webhook configuration {name}"), error);
    let mut found: Vec<(&str, &str, Option<bool>)> = Vec::new();
    for (name, service) in webhooks::MUTATING {
        let one = mutating.get_opt(name).await.map_err(|error| cannot(name, error))?;
        let hooks = one.map(|one| one.webhooks.unwrap_or_default());
        let trusts = |hooks: Vec<_>| hooks_trust(hooks.iter().map(|hook: &MutatingWebhook| &hook.client_config));
        found.push((name, service, hooks.map(trusts)));
    }
    for (name, service) in webhooks::VALIDATING {
        let one = validating.get_opt(name).await.map_err(|error| cannot(name, error))?;
        let hooks = one.map(|one| one.webhooks.unwrap_or_default());
        let trusts = |hooks: Vec<_>| hooks_trust(hooks.iter().map(|hook: &ValidatingWebhook| &hook.client_config));
        found.push((name, service, hooks.map(trusts)));
    }
    for (name, _, trusts) in &found {
        match trusts {
            None => return Ok(Some(format!("webhook configuration {name} is not there yet"))),
            Some(false) => return Ok(Some(format!("webhook configuration {name} has no CA yet"))),
            Some(true) => {}
        }
    }
    let slices: Api<EndpointSlice> = Api::namespaced(cluster.client.clone(), namespaces::HUB);
    let list = slices.list(&ListParams::default()).await;
    let list = list.map_err(|error| cluster.explain("list the endpoints of the webhooks", error))?;
    let answers = |service: &str| {
        let of_service = list.items.iter().filter(|slice| {
            let labels = slice.metadata.labels.as_ref();
            labels.and_then(|labels| labels.get("kubernetes.io/service-name")).is_some_and(|name| name == service)
        });
        of_service
            .flat_map(|slice| &slice.endpoints)
            .any(|endpoint| endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true))
    };
    let silent = found.iter().find(|(_, service, _)| !answers(service));
    Ok(silent.map(|(name, service, _)| {
        format!("Service {service} of webhook configuration {name} has no ready endpoint yet")
    }))
}

/// Whether every webhook of a configuration knows the CA of its server.
fn hooks_trust<'a>(mut clients: impl Iterator<Item = &'a WebhookClientConfig>) -> bool {
    clients.all(|client| client.ca_bundle.as_ref().is_some_and(|bundle| !bundle.0.is_empty()))
}

fn has_default_set(manager: &ClusterManager) -> bool {
    let gates = manager.spec.registration_configuration.iter().flat_map(|registration| &registration.feature_gates);
    let off = Some(ocm_api::operator::FeatureGateMode::Disable);
    !gates.into_iter().any(|gate| gate.feature == DEFAULT_CLUSTER_SET && gate.mode == off)
}

/// Name of the objects that the probes pretend to create.
const PROBE: &str = "kubectl-ocm-probe";

/// Asks every webhook a question by pretending to create an object, and returns what is not answered as it should.
///
/// Nothing is stored: these are server-side dry runs. Whoever may not create such objects is not asked to.
async fn probes(cluster: &Cluster, has_default_set: bool) -> Result<Option<String>, Failure> {
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
    match new_cluster {
        Ok(created) => {
            let set = created.metadata.labels.and_then(|labels| labels.get(labels::CLUSTER_SET).cloned());
            if has_default_set && set.as_deref() != Some(hub::DEFAULT_CLUSTER_SET) {
                return Ok(Some("the API server does not ask the ManagedCluster webhook yet".to_owned()));
            }
        }
        Err(error) => {
            if let Some(because) = unanswered(cluster, "ManagedClusters", error)? {
                return Ok(Some(because));
            }
        }
    }
    for (what, answer) in [("ManagedClusterSetBindings", misnamed), ("ManifestWorks", empty)] {
        match answer {
            Ok(_) => return Ok(Some(format!("the API server does not ask the webhook of {what} yet"))),
            Err(error) => {
                if let Some(because) = unanswered(cluster, what, error)? {
                    return Ok(Some(because));
                }
            }
        }
    }
    Ok(None)
}

/// What an error says about a webhook: that it has answered (none), or why it has not.
fn unanswered(cluster: &Cluster, what: &str, error: kube::Error) -> Result<Option<String>, Failure> {
    let failure = explain(&error);
    match failure.reason {
        // It said no, which is an answer; or we are not the ones who may ask.
        Reason::Admission | Reason::Forbidden | Reason::Invalid | Reason::Conflict => Ok(None),
        Reason::Busy | Reason::KindNotServed | Reason::NotFound => {
            Ok(Some(format!("the webhook of {what} does not answer yet: {failure}")))
        }
        _ => Err(cluster.explain(format_args!("ask the webhook of {what}"), error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_count_only_for_the_present_generation() {
        let manager = |generation: i64, progressing: &str| -> ClusterManager {
            let condition = |kind: &str, status: &str| {
                json!({"type": kind, "status": status, "reason": "R", "message": "m", "observedGeneration": 2,
                    "lastTransitionTime": "2026-01-01T00:00:00Z"})
            };
            serde_json::from_value(json!({
                "apiVersion": "operator.open-cluster-management.io/v1", "kind": "ClusterManager",
                "metadata": {"name": "m", "generation": generation},
                "spec": {},
                "status": {"observedGeneration": 2, "relatedResources": [],
                    "generations": [{"group": "apps", "version": "v1", "resource": "deployments", "name": "d", "lastGeneration": 1}],
                    "conditions": [condition("Applied", "True"), condition("Progressing", progressing),
                        condition("HubRegistrationDegraded", "False"), condition("HubPlacementDegraded", "False")]},
            }))
            .unwrap()
        };
        assert_eq!(reported(&manager(2, "False"), &|_| true), None);
        assert!(reported(&manager(2, "False"), &|_| false).unwrap().contains("Deployment d"));
        assert!(reported(&manager(3, "False"), &|_| true).unwrap().contains("latest generation"));
        assert_eq!(reported(&manager(2, "True"), &|_| true).unwrap(), "the operator reports R: m");
    }
}
