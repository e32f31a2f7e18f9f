//! What a managed cluster shows, for checks.

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::Api;
use kube::api::ListParams;
use kube::core::{ApiResource, Object};
use ocm_api::Klusterlet;
use ocm_api::names::{annotations, namespaces, operators, secrets};
use ocm_api::operator::{KlusterletSpec, KlusterletStatus};
use ocm_api::parts::{ClusterRoleBinding, Lease, NetworkPolicy};
use ocm_checks::facts::registers_as;
use ocm_checks::snapshot::{
    AdminFacts, AgentSide, AppliedWorkFacts, LeaseFacts, ManagedSide, NamespaceFacts, NetworkPolicyFacts, Observed,
    SecretFacts, Trouble,
};
use ocm_checks::suppress::ANNOTATION;
use ocm_core::join::lease::{self, Lock};
use ocm_core::order;
use ocm_core::redact::redact;
use ocm_kube::Cluster;
use serde::{Deserialize, Serialize};

use super::facts::{annotations_of, lease_facts, redact_all, strip, version};
use super::hub::terminating;
use super::kinds::{Kind, LEASES, SECRETS};
use super::listing::{AT_ONCE, is_asked, list};
use super::secret::{self, Digests};
use super::storage::storage;
use super::workloads::{deployments, operator, pods};
use crate::hub::uid;

const KLUSTERLETS: Kind = Kind::optional("operator.open-cluster-management.io", "klusterlets");
const APPLIED_WORKS: Kind = Kind::optional("work.open-cluster-management.io", "appliedmanifestworks");
const BINDINGS: Kind = Kind::new("rbac.authorization.k8s.io", "clusterrolebindings");
const NETWORK_POLICIES: Kind = Kind::new("networking.k8s.io", "networkpolicies");

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
    let (mut klusterlets, (operator, leases), terminating, uid, applied_works, admins, storage) = futures::join!(
        klusterlets(managed),
        operator,
        terminating(managed, |_| true),
        uid(managed),
        applied_works(managed),
        admins(managed),
        storage(managed),
    );
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
        storage,
        operator,
        leases,
        klusterlets,
        agents,
        terminating,
        applied_works,
        admins,
    }
}

/// What an agent notes of a work that it has applied.
type AppliedWork = Object<AppliedWorkSpec, AppliedWorkStatus>;

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct AppliedWorkSpec {
    manifest_work_name: String,
    #[serde(rename = "agentID")]
    agent_id: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct AppliedWorkStatus {
    eviction_start_time: Option<Time>,
}

/// What agents have applied, without the lists of objects.
async fn applied_works(managed: &Cluster) -> Observed<Vec<AppliedWorkFacts>> {
    let kind = ApiResource {
        group: APPLIED_WORKS.group.to_owned(),
        version: "v1".to_owned(),
        api_version: format!("{}/v1", APPLIED_WORKS.group),
        kind: "AppliedManifestWork".to_owned(),
        plural: APPLIED_WORKS.resource.to_owned(),
    };
    let api: Api<AppliedWork> = Api::all_with(managed.client.clone(), &kind);
    let facts = |work: AppliedWork| {
        Some(AppliedWorkFacts {
            name: work.metadata.name.unwrap_or_default(),
            work: work.spec.manifest_work_name,
            agent: work.spec.agent_id,
            evicting: work.status.and_then(|status| status.eviction_start_time),
            deleting: work.metadata.deletion_timestamp,
        })
    };
    list(managed, APPLIED_WORKS, None, &api, ListParams::default(), facts).await.into()
}

/// The service accounts in namespaces of Open Cluster Management that may do everything.
async fn admins(managed: &Cluster) -> Observed<Vec<AdminFacts>> {
    let api: Api<ClusterRoleBinding> = Api::all(managed.client.clone());
    let of = |binding: ClusterRoleBinding| {
        let name = binding.metadata.name.unwrap_or_default();
        let subjects = binding.subjects.unwrap_or_default().into_iter();
        let accounts = subjects.filter_map(|subject| {
            let (namespace, account) = match subject.kind.as_str() {
                "ServiceAccount" => (subject.namespace.unwrap_or_default(), subject.name),
                // Every account of a namespace.
                "Group" => (subject.name.strip_prefix("system:serviceaccounts:")?.to_owned(), "*".to_owned()),
                _ => return None,
            };
            Some(AdminFacts { binding: name.clone(), namespace, name: account })
        });
        let accounts: Vec<AdminFacts> = accounts.collect();
        (binding.role_ref.name == "cluster-admin" && !accounts.is_empty()).then_some(accounts)
    };
    let listed = list(managed, BINDINGS, None, &api, ListParams::default(), of).await;
    listed.map(|all| all.into_iter().flatten().collect()).into()
}

/// The NetworkPolicies of a namespace that limit where pods may connect to.
async fn network_policies(managed: &Cluster, namespace: &str) -> Observed<Vec<NetworkPolicyFacts>> {
    let api: Api<NetworkPolicy> = Api::namespaced(managed.client.clone(), namespace);
    list(managed, NETWORK_POLICIES, Some(namespace), &api, ListParams::default(), network_policy).await.into()
}

/// What of a NetworkPolicy tells where pods may connect to; none: it does not limit that.
fn network_policy(policy: NetworkPolicy) -> Option<NetworkPolicyFacts> {
    let spec = policy.spec.unwrap_or_default();
    let limits = spec.policy_types.unwrap_or_default().iter().any(|kind| kind == "Egress");
    let selector = spec.pod_selector.unwrap_or_default();
    let is_for_all = selector.match_labels.is_none_or(|labels| labels.is_empty())
        && selector.match_expressions.is_none_or(|expressions| expressions.is_empty());
    let mut facts =
        NetworkPolicyFacts { name: policy.metadata.name.unwrap_or_default(), is_for_all, ..Default::default() };
    for rule in spec.egress.unwrap_or_default() {
        let ports = rule.ports.unwrap_or_default();
        facts.allows_any |= ports.is_empty();
        for port in ports.into_iter().filter(|port| port.protocol.as_deref().is_none_or(|protocol| protocol == "TCP")) {
            let range = match port.port {
                Some(IntOrString::Int(first)) => {
                    let last = port.end_port.unwrap_or(first);
                    u16::try_from(first).ok().zip(u16::try_from(last).ok())
                }
                // Which number a name stands for is the affair of each pod.
                Some(IntOrString::String(_)) | None => None,
            };
            facts.allows_any |= range.is_none();
            facts.ports.extend(range);
        }
    }
    limits.then_some(facts)
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
    order::sort(&mut names);
    names.dedup();
    names
}

async fn klusterlets(managed: &Cluster) -> Observed<Vec<Klusterlet>> {
    let api: Api<Klusterlet> = Api::all(managed.client.clone());
    let listed = list(managed, KLUSTERLETS, None, &api, ListParams::default(), |mut klusterlet| {
        // Why the removal of a hosted one does not end, and what is known of it.
        let kept = annotations_of(&mut klusterlet.metadata, &[annotations::EVICTION, ANNOTATION]);
        strip(&mut klusterlet.metadata);
        klusterlet.metadata.annotations = kept;
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
    let is_hosted = klusterlet.mode().is_hosted();
    let given = klusterlet.spec.namespace.clone().filter(|namespace| !namespace.is_empty() && !is_hosted);
    let namespace = given.unwrap_or_else(|| if is_hosted { name.clone() } else { namespaces::AGENT.to_owned() });
    // Two Klusterlets may share a namespace, by mistake.
    let own = |deployment: &str| deployment.strip_prefix(&format!("{name}-")).is_some_and(is_agent);
    let locks = lease::of_agents(&name);
    let (deployments, bootstrap, identity, mut leases, network_policies) = futures::join!(
        deployments(managed, &namespace, own),
        read_secret(managed, &namespace, secrets::BOOTSTRAP_HUB_KUBECONFIG, digests),
        read_secret(managed, &namespace, secrets::HUB_KUBECONFIG, digests),
        leases(managed, &namespace, locks.clone()),
        network_policies(managed, &namespace),
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
    AgentSide { klusterlet: name, namespace, deployments, bootstrap, identity, leases, network_policies }
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
        version: version(&lease.metadata),
        ..lease_facts(lease)
    };
    Ok(found.into_iter().map(facts).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_network_policies_the_ports_are_known_that_they_allow() {
        let read = |spec: serde_json::Value| {
            let policy = serde_json::json!({"metadata": {"name": "p"}, "spec": spec});
            network_policy(serde_json::from_value(policy).unwrap())
        };
        let all = serde_json::json!({});
        assert_eq!(read(serde_json::json!({"podSelector": all, "policyTypes": ["Ingress"]})), None);
        let denied = read(serde_json::json!({"podSelector": all, "policyTypes": ["Egress"]})).unwrap();
        assert!(denied.is_for_all && !denied.allows_any && denied.ports.is_empty(), "{denied:?}");
        let some =
            read(serde_json::json!({"podSelector": {"matchLabels": {"a": "b"}}, "policyTypes": ["Egress"], "egress": [
            {"ports": [{"port": 443}, {"port": 53, "protocol": "UDP"}, {"port": 6000, "endPort": 7000}]}]}));
        let some = some.unwrap();
        assert_eq!((some.is_for_all, some.allows_any, some.ports), (false, false, vec![(443, 443), (6000, 7000)]));
        for rule in [serde_json::json!({}), serde_json::json!({"ports": [{"port": "https"}]})] {
            let any = read(serde_json::json!({"podSelector": all, "policyTypes": ["Egress"], "egress": [rule]}));
            assert!(any.unwrap().allows_any);
        }
    }

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
