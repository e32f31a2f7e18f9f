//! What a managed cluster shows, for checks.

use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::ListParams;
use ocm_api::Klusterlet;
use ocm_api::names::{namespaces, operators, secrets};
use ocm_api::operator::{KlusterletMode, KlusterletSpec, KlusterletStatus};
use ocm_checks::facts::registers_as;
use ocm_checks::snapshot::{AgentSide, LeaseFacts, ManagedSide, NamespaceFacts, Observed, SecretFacts, Trouble};
use ocm_core::join::lease::{self, Lock};
use ocm_core::redact::redact;
use ocm_kube::Cluster;

use super::hub::terminating;
use super::secret::Digests;
use super::{
    AT_ONCE, Kind, LEASES, SECRETS, deployments, is_asked, lease_facts, list, operator, pods, redact_all, secret, strip,
};
use crate::hub::uid;

const KLUSTERLETS: Kind = Kind::optional("operator.open-cluster-management.io", "klusterlets");

/// Reads a managed cluster, for these clusters; none: for all that it registers. What cannot be read says why.
pub async fn observe(managed: &Cluster, names: Option<&[String]>) -> ManagedSide {
    // Values of this observation can be compared with each other, and with no others.
    let digests = Digests::new();
    let operator = async {
        let operator = operator(managed, operators::KLUSTERLET).await;
        let namespace = operator.read().map_or(namespaces::OPERATOR, |found| found.namespace.as_str());
        let leases = leases(managed, namespace, lease::of_operator()).await;
        (operator, leases)
    };
    let (mut klusterlets, (operator, leases), terminating, uid) =
        futures::join!(klusterlets(managed), operator, terminating(managed, |_| true), uid(managed));
    let found = klusterlets.read().map(Vec::as_slice).unwrap_or_default();
    let reading: Vec<_> = found
        .iter()
        .filter(|klusterlet| wanted_name(klusterlet).is_none_or(|name| is_asked(names, name)))
        .map(|klusterlet| agent(managed, klusterlet, &digests))
        .collect();
    let mut agents: Vec<AgentSide> = futures::stream::iter(reading).buffered(AT_ONCE).collect().await;
    // An agent that chooses its name itself: what it noted tells whether it is one that was asked about.
    agents.retain(|side| {
        let klusterlet = found.iter().find(|found| found.metadata.name.as_deref() == Some(side.klusterlet.as_str()));
        let name = klusterlet.and_then(|klusterlet| registers_as(klusterlet, side));
        name.is_none_or(|name| is_asked(names, name))
    });
    if let Observed::Read(all) = &mut klusterlets {
        let is_read = |name: Option<&str>| agents.iter().any(|side| Some(side.klusterlet.as_str()) == name);
        all.iter_mut().filter(|found| !is_read(found.metadata.name.as_deref())).for_each(reduce);
    }
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

/// The name that a Klusterlet gives its cluster; none: the agent chooses one.
fn wanted_name(klusterlet: &Klusterlet) -> Option<&str> {
    klusterlet.spec.cluster_name.as_deref().filter(|name| !name.is_empty())
}

/// Leaves of a Klusterlet of another cluster than those that were asked about what tells whether it is in their way.
fn reduce(klusterlet: &mut Klusterlet) {
    let KlusterletSpec { namespace, cluster_name, deploy_option, .. } = std::mem::take(&mut klusterlet.spec);
    klusterlet.spec = KlusterletSpec { namespace, cluster_name, deploy_option, ..KlusterletSpec::default() };
    let seen = klusterlet.status.take().and_then(|status| status.observed_generation);
    klusterlet.status = Some(KlusterletStatus { observed_generation: seen, ..KlusterletStatus::default() });
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
    let listed = list(managed, KLUSTERLETS, None, &api, ListParams::default(), |mut klusterlet| {
        strip(&mut klusterlet.metadata);
        if let Some(registration) = &mut klusterlet.spec.registration_configuration {
            registration.cluster_annotations.clear();
        }
        if let Some(status) = &mut klusterlet.status {
            redact_all(&mut status.conditions);
        }
        Some(klusterlet)
    });
    listed.await.into()
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
    let deployments: Observed<_> = deployments.into();
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
    read_leases(managed, namespace, &locks).await.into()
}

async fn read_leases(managed: &Cluster, namespace: &str, locks: &[Lock]) -> Result<Vec<LeaseFacts>, Trouble> {
    let api: Api<Lease> = Api::namespaced(managed.client.clone(), namespace);
    let found = list(managed, LEASES, Some(namespace), &api, ListParams::default(), |lease| {
        let lock = locks.iter().find(|lock| lease.metadata.name.as_deref() == Some(lock.name))?;
        Some((lock, lease))
    });
    let found = found.await?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    // The pods are read after the leases: a holder that is not among them was gone by then.
    let pods = pods(managed, namespace).await?;
    let facts = |(lock, lease): (&Lock, Lease)| LeaseFacts {
        gone: lease::stale_holder(&lease, &lock.deployment, &pods),
        ..lease_facts(lease)
    };
    Ok(found.into_iter().map(facts).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_klusterlet_that_nobody_asked_about_little_is_kept() {
        let mut klusterlet = Klusterlet::default();
        klusterlet.metadata.name = Some("other".to_owned());
        klusterlet.spec.cluster_name = Some("c2".to_owned());
        klusterlet.spec.namespace = Some("open-cluster-management-two".to_owned());
        klusterlet.spec.image_pull_spec = Some("canary".to_owned());
        klusterlet.status = Some(KlusterletStatus { observed_generation: Some(3), ..KlusterletStatus::default() });
        reduce(&mut klusterlet);
        assert_eq!(wanted_name(&klusterlet), Some("c2"));
        assert_eq!(klusterlet.spec.namespace.as_deref(), Some("open-cluster-management-two"));
        assert_eq!(klusterlet.spec.image_pull_spec, None);
        assert_eq!(klusterlet.status.and_then(|status| status.observed_generation), Some(3));
    }
}
