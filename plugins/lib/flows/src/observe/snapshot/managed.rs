//! What a managed cluster shows, for checks.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::Api;
use kube::api::ListParams;
use ocm_api::Klusterlet;
use ocm_api::names::{namespaces, operators, secrets};
use ocm_api::operator::KlusterletMode;
use ocm_checks::facts::registers_as;
use ocm_checks::snapshot::{AgentSide, LeaseFacts, ManagedSide, NamespaceFacts, Observed, SecretFacts};
use ocm_core::join::lease::{self, Lock};
use ocm_core::redact::redact;
use ocm_kube::Cluster;

use super::hub::terminating;
use super::secret::Digests;
use super::{Kind, LEASES, SECRETS, deployment, deployments, lease_facts, list, redact_all, secret, strip};
use crate::hub::uid;

const KLUSTERLETS: Kind = Kind::new("operator.open-cluster-management.io", "klusterlets");

/// Reads a managed cluster. What cannot be read says why.
pub async fn observe(managed: &Cluster) -> ManagedSide {
    // Values of this observation can be compared with each other, and with no others.
    let digests = Digests::new();
    let (klusterlets, operator, leases, terminating, uid) = futures::join!(
        klusterlets(managed),
        deployment(managed, namespaces::OPERATOR, operators::KLUSTERLET),
        leases(managed, namespaces::OPERATOR, lease::of_operator()),
        terminating(managed),
        uid(managed),
    );
    let found = klusterlets.read().map(Vec::as_slice).unwrap_or_default();
    let agents = futures::future::join_all(found.iter().map(|klusterlet| agent(managed, klusterlet, &digests))).await;
    let ours =
        |name: &str| name.starts_with(namespaces::OPERATOR) || agents.iter().any(|agent| agent.namespace == name);
    let terminating = match terminating {
        Observed::Read(all) => {
            Observed::Read(all.into_iter().filter(|namespace: &NamespaceFacts| ours(&namespace.name)).collect())
        }
        other => other,
    };
    ManagedSide {
        server: redact(&managed.server),
        context: managed.context.clone(),
        uid,
        operator,
        leases,
        klusterlets,
        agents,
        terminating,
    }
}

/// The names that the agents of a managed cluster register under.
pub fn registered_names(managed: &ManagedSide) -> Vec<String> {
    let klusterlets = managed.klusterlets.read().map(Vec::as_slice).unwrap_or_default();
    let names = managed.agents.iter().filter_map(|side| {
        let found = |klusterlet: &&Klusterlet| klusterlet.metadata.name.as_deref() == Some(side.klusterlet.as_str());
        registers_as(klusterlets.iter().find(found)?, side).map(str::to_owned)
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names.dedup();
    names
}

async fn klusterlets(managed: &Cluster) -> Observed<Vec<Klusterlet>> {
    let api: Api<Klusterlet> = Api::all(managed.client.clone());
    let listed = list(managed, KLUSTERLETS, &api, ListParams::default(), |mut klusterlet| {
        strip(&mut klusterlet.metadata);
        if let Some(status) = &mut klusterlet.status {
            redact_all(&mut status.conditions);
        }
        Some(klusterlet)
    });
    Observed::of(listed.await, KLUSTERLETS.rule("list", None))
}

async fn agent(managed: &Cluster, klusterlet: &Klusterlet, digests: &Digests) -> AgentSide {
    let name = klusterlet.metadata.name.clone().unwrap_or_default();
    let mode = klusterlet.spec.deploy_option.as_ref().and_then(|option| option.mode.as_ref());
    let is_hosted = matches!(mode, Some(KlusterletMode::Hosted | KlusterletMode::SingletonHosted));
    let given = klusterlet.spec.namespace.clone().filter(|namespace| !namespace.is_empty() && !is_hosted);
    let namespace = given.unwrap_or_else(|| if is_hosted { name.clone() } else { namespaces::AGENT.to_owned() });
    // Two Klusterlets may share a namespace, by mistake.
    let own = |deployment: &str| deployment.strip_prefix(&format!("{name}-")).is_some_and(is_agent);
    let locks = lease::of_agents(&name);
    let (deployments, bootstrap, identity, mut leases) = futures::join!(
        deployments(managed, &namespace, own),
        read_secret(managed, &namespace, secrets::BOOTSTRAP_HUB_KUBECONFIG, digests),
        read_secret(managed, &namespace, secrets::HUB_KUBECONFIG, digests),
        leases(managed, &namespace, locks.clone()),
    );
    // A lease of agents that are no longer wanted holds nobody up.
    if let (Observed::Read(leases), Some(deployments)) = (&mut leases, deployments.read()) {
        let wanted = |lease: &LeaseFacts| {
            let lock = locks.iter().find(|lock| lock.name == lease.name);
            lock.is_some_and(|lock| deployments.iter().any(|workload| workload.name == lock.deployment))
        };
        leases.iter_mut().filter(|lease| !wanted(lease)).for_each(|lease| lease.gone = None);
    }
    AgentSide { klusterlet: name, namespace, deployments, bootstrap, identity, leases }
}

/// What the names of agents' Deployments end with.
fn is_agent(rest: &str) -> bool {
    matches!(rest, "agent" | "registration-agent" | "work-agent")
}

async fn read_secret(
    managed: &Cluster,
    namespace: &str,
    name: &str,
    digests: &Digests,
) -> Observed<Option<SecretFacts>> {
    let api: Api<Secret> = Api::namespaced(managed.client.clone(), namespace);
    let found = api.get_opt(name).await;
    let found = found.map_err(|error| managed.explain(format_args!("read Secret {namespace}/{name}"), error));
    let facts = |found: Option<Secret>| found.map(|found| secret::facts(&found, digests));
    Observed::of(found.map(facts), SECRETS.rule("get", Some(namespace)))
}

/// Leader leases, and which of them are held by pods that are gone.
async fn leases(managed: &Cluster, namespace: &str, locks: Vec<Lock>) -> Observed<Vec<LeaseFacts>> {
    let api: Api<Lease> = Api::namespaced(managed.client.clone(), namespace);
    let pods: Api<Pod> = Api::namespaced(managed.client.clone(), namespace);
    let read = async {
        let found = list(managed, LEASES, &api, ListParams::default(), |lease| {
            let lock = locks.iter().find(|lock| lease.metadata.name.as_deref() == Some(lock.name))?;
            Some((lock, lease))
        });
        let found = found.await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        // The pods are read after the leases: a holder that is not among them was gone by then.
        let pods = pods.list_metadata(&ListParams::default()).await;
        let pods = pods.map_err(|error| managed.explain(format_args!("list the pods of {namespace}"), error))?;
        let pods: Vec<String> = pods.items.into_iter().filter_map(|pod| pod.metadata.name).collect();
        let facts = |(lock, lease): (&Lock, Lease)| LeaseFacts {
            gone: lease::stale_holder(&lease, &lock.deployment, &pods),
            ..lease_facts(lease)
        };
        Ok(found.into_iter().map(facts).collect())
    };
    Observed::of(read.await, LEASES.rule("list", Some(namespace)))
}
