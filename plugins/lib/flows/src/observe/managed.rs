//! What a managed cluster shows: its operator, its Klusterlet, its agents' Deployments, their Secrets and leader leases.

use k8s_openapi::api::core::v1::{Pod, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::{ListParams, LogParams, WatchParams};
use ocm_api::Klusterlet;
use ocm_api::names::{namespaces, operators, secrets};
use ocm_api::operator::KlusterletMode;
use ocm_api::parts::Lease;
use ocm_core::certificate::{self, Certificate};
use ocm_core::join::agent::LoggedRequest;
use ocm_core::join::fallback::{Known, Listing};
use ocm_core::join::hosted;
use ocm_core::join::lease::{self, LeaseFacts, Lock, Running, StaleLease};
use ocm_core::join::membership::own;
use ocm_core::kubeconfig::{Bootstrap, EXCLUSIVE_TOKEN, HUB_UID, is_exclusive};
use ocm_core::leave::klusterlet::klusterlet_of_role;
use ocm_core::managed::{AgentFacts, ManagedFacts};
use ocm_core::workload::Health;
use ocm_core::{Failure, Reason, grpc};
use ocm_kube::Cluster;
use ocm_kube::triggers::{Triggers, named};
use secrecy::SecretString;

use crate::registry::{self, pages_of_metadata};
use crate::served::or_nothing;
use crate::tls::{GrpcConfig, grpc_config};
use crate::{hub, workload};

/// What the Klusterlet of a cluster is called, and where its agents are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The Klusterlet, there or to be.
    pub klusterlet: String,
    /// The namespace of its agents.
    pub namespace: String,
}

impl Names {
    /// Those of the cluster's own Klusterlet, or of the one that a join makes.
    pub fn of(klusterlets: &[Klusterlet]) -> Self {
        let own = own(klusterlets).next();
        let namespace = own.and_then(|own| own.spec.namespace.clone()).filter(|name| !name.is_empty());
        let klusterlet = own.and_then(|own| own.metadata.name.clone());
        Self {
            klusterlet: klusterlet.unwrap_or_else(|| operators::KLUSTERLET_OBJECT.to_owned()),
            namespace: namespace.unwrap_or_else(|| namespaces::AGENT.to_owned()),
        }
    }
}

impl Names {
    /// Those of a hosted cluster, on the cluster that hosts it.
    pub fn of_hosted(klusterlets: &[Klusterlet], cluster: &str) -> Self {
        let there = hosted::of_cluster(klusterlets, cluster).next().and_then(|found| found.metadata.name.clone());
        let klusterlet = there.unwrap_or_else(|| hosted::klusterlet_name(cluster));
        Self { namespace: klusterlet.clone(), klusterlet }
    }
}

/// Names of Klusterlets whose agents have rights on a cluster, wherever the Klusterlets are, but for one.
///
/// # Errors
/// The failure of the request.
pub async fn other_agents(cluster: &Cluster, own: Option<&str>) -> Result<Vec<String>, Failure> {
    let api: Api<ClusterRole> = Api::all(cluster.client.clone());
    pages_of_metadata(cluster, &api, ListParams::default(), "list ClusterRoles", |role| {
        let name = role.metadata.name?;
        klusterlet_of_role(&name).filter(|name| Some(*name) != own).map(str::to_owned)
    })
    .await
}

/// Reads everything that a cluster shows of its agent.
pub async fn observe(managed: &Cluster, names: &Names) -> ManagedFacts {
    let (operator, (klusterlet, agents), identity) = futures::join!(
        workload::deployment(managed, namespaces::OPERATOR, operators::KLUSTERLET),
        async {
            let klusterlet = klusterlet(managed, names).await;
            let agents = match &klusterlet {
                Ok(Some(klusterlet)) => agents(managed, klusterlet, names).await,
                Ok(None) | Err(_) => Ok(Vec::new()),
            };
            (klusterlet, agents)
        },
        identity(managed, &names.namespace),
    );
    ManagedFacts { operator, klusterlet, agents, identity }
}

/// Changes of what [`observe`] reads. Why pods are not ready may change without them.
pub fn triggers(managed: &Cluster, names: &Names) -> Triggers {
    let klusterlets: Api<Klusterlet> = Api::all(managed.client.clone());
    let secrets: Api<Secret> = Api::namespaced(managed.client.clone(), &names.namespace);
    Triggers::default()
        .of(workload::deployments(managed, namespaces::OPERATOR), named(operators::KLUSTERLET))
        .of(klusterlets, named(&names.klusterlet))
        .of(workload::deployments(managed, &names.namespace), WatchParams::default())
        .of(secrets, named(secrets::HUB_KUBECONFIG))
}

/// All Klusterlets; none where the kind is not served.
///
/// # Errors
/// The failure of the request.
pub async fn klusterlets(managed: &Cluster) -> Result<Vec<Klusterlet>, Failure> {
    let api: Api<Klusterlet> = Api::all(managed.client.clone());
    // There may be one of every cluster whose agents run here.
    or_nothing(registry::all(managed, &api, ListParams::default(), "list Klusterlets").await)
}

/// The Klusterlet, if it is there.
///
/// # Errors
/// The failure of the request.
pub async fn klusterlet(managed: &Cluster, names: &Names) -> Result<Option<Klusterlet>, Failure> {
    let api: Api<Klusterlet> = Api::all(managed.client.clone());
    let found = api.get_opt(&names.klusterlet).await;
    found.map_err(|error| managed.explain("read the Klusterlet", error))
}

/// The agents' Deployments that the operator has made so far.
async fn agents(managed: &Cluster, klusterlet: &Klusterlet, names: &Names) -> Result<Vec<(String, Health)>, Failure> {
    let api = workload::deployments(managed, &names.namespace);
    let each = klusterlet.agents().into_iter().map(async |name| {
        let found = api.get_opt(&name).await;
        let found = found.map_err(|error| managed.explain(format_args!("read Deployment {name}"), error))?;
        match found {
            Some(deployment) => Ok(Some((name, workload::of(managed, &deployment).await?))),
            None => Ok(None),
        }
    });
    Ok(futures::future::try_join_all(each).await?.into_iter().flatten().collect())
}

async fn secret(managed: &Cluster, namespace: &str, name: &str) -> Result<Option<Secret>, Failure> {
    let api: Api<Secret> = Api::namespaced(managed.client.clone(), namespace);
    api.get_opt(name).await.map_err(|error| managed.explain(format_args!("read Secret {namespace}/{name}"), error))
}

fn text(secret: &Secret, key: &str) -> Option<String> {
    String::from_utf8(secret.data.as_ref()?.get(key)?.0.clone()).ok()
}

/// What the agent in this namespace has written down of itself; nothing where its Secret is not there.
///
/// # Errors
/// The failure of the request.
pub async fn identity(managed: &Cluster, namespace: &str) -> Result<AgentFacts, Failure> {
    let secret = secret(managed, namespace, secrets::HUB_KUBECONFIG).await?;
    let text = |key: &str| secret.as_ref().and_then(|secret| text(secret, key));
    let chain = text(secrets::TLS_CERT_KEY).and_then(|pem| certificate::from_pem(pem.as_bytes()).ok());
    let kubeconfig = text(secrets::KUBECONFIG_KEY).and_then(|text| hub::parse(&text));
    Ok(AgentFacts {
        cluster: text(secrets::CLUSTER_NAME_KEY),
        name: text(secrets::AGENT_NAME_KEY).filter(|name| !name.is_empty()),
        hub: kubeconfig.map(|kubeconfig| kubeconfig.hub),
        certificate: chain.and_then(|chain| Certificate::read(chain.first()?)),
        by_grpc: text(secrets::GRPC_CONFIG_KEY).is_some(),
    })
}

/// How much of an agent's log is looked through: lines, and bytes.
const LOG: (i64, i64) = (5000, 4 << 20);

/// The containers of the agent that registers, and of the one agent that does both. Others may have put their own beside them.
/// Upstream: `klusterlet-registration-deployment.yaml`, `klusterlet-agent-deployment.yaml`.
const CONTAINERS: [&str; 2] = ["registration-controller", "klusterlet-agent"];

/// The certificate requests that the registering agent of a Klusterlet waits for, as the logs of its pods say.
///
/// # Errors
/// The failure of a request; not that a pod has no log yet.
pub async fn logged_requests(
    managed: &Cluster,
    namespace: &str,
    klusterlet: &Klusterlet,
) -> Result<Vec<LoggedRequest>, Failure> {
    let Some(agent) = klusterlet.agents().into_iter().next() else { return Ok(Vec::new()) };
    let container = if klusterlet.mode().is_singleton() { CONTAINERS[1] } else { CONTAINERS[0] };
    let listed = workload::pods(managed, namespace).list(&ListParams::default()).await;
    let listed = listed.map_err(|error| managed.explain(format_args!("list the pods of {namespace}"), error))?;
    let of_agent = |name: &String| name.strip_prefix(&agent).is_some_and(|rest| rest.starts_with('-'));
    let pods: Api<Pod> = Api::namespaced(managed.client.clone(), namespace);
    let each = listed.items.into_iter().filter_map(|pod| pod.metadata.name).filter(of_agent).map(async |pod| {
        let parameters = LogParams {
            container: Some(container.to_owned()),
            timestamps: true,
            tail_lines: Some(LOG.0),
            limit_bytes: Some(LOG.1),
            ..LogParams::default()
        };
        let read = pods.logs(&pod, &parameters).await;
        read.map_err(|error| managed.explain(format_args!("read the log of pod {namespace}/{pod}"), error))
    });
    let (mut requests, mut unread) = (Vec::new(), None);
    for log in futures::future::join_all(each).await {
        match log {
            Ok(log) => requests.extend(LoggedRequest::last_of(&log)),
            Err(failure) if failure.reason == Reason::Forbidden || failure.reason.is_transient() => {
                unread = Some(failure);
            }
            // Its container does not run yet, or the pod is gone.
            Err(_) => {}
        }
    }
    // A pod whose node does not answer need not be the one that asks.
    if let (true, Some(failure)) = (requests.is_empty(), unread) {
        return Err(failure);
    }
    Ok(requests)
}

/// The certificate that the agent in this namespace holds.
#[derive(Debug)]
pub struct Held {
    /// Its chain as DER, its own certificate first.
    pub chain: Vec<Vec<u8>>,
    /// The same as PEM.
    pub pem: Vec<u8>,
    /// Its key, as PEM.
    pub key: SecretString,
    /// What its own certificate says.
    pub certificate: Certificate,
}

impl Held {
    fn read(chain: &str, key: String) -> Option<Self> {
        let chain = certificate::from_pem(chain.as_bytes()).ok()?;
        let certificate = Certificate::read(chain.first()?)?;
        // Written anew: readers of PEM differ about what stands between its parts.
        let pem = certificate::to_pem(&chain).into_bytes();
        Some(Self { pem, key: SecretString::from(key), chain, certificate })
    }
}

/// The certificate of the agent in this namespace with its key; nothing where either is not there, or cannot be read.
///
/// # Errors
/// The failure of the request.
pub async fn certificate(managed: &Cluster, namespace: &str) -> Result<Option<Held>, Failure> {
    let secret = secret(managed, namespace, secrets::HUB_KUBECONFIG).await?;
    let text = |key: &str| secret.as_ref().and_then(|secret| text(secret, key));
    let (Some(chain), Some(key)) = (text(secrets::TLS_CERT_KEY), text(secrets::TLS_KEY_KEY)) else { return Ok(None) };
    Ok(Held::read(&chain, key))
}

/// What the agent in this namespace registers with.
///
/// # Errors
/// The failure of the request.
pub async fn bootstrap(managed: &Cluster, namespace: &str) -> Result<Option<Bootstrap>, Failure> {
    let secret = secret(managed, namespace, secrets::BOOTSTRAP_HUB_KUBECONFIG).await?;
    Ok(secret.as_ref().and_then(read_bootstrap))
}

/// What the Secrets hold that a Klusterlet lists, in their order.
///
/// # Errors
/// The failure of a request; not that a Secret may not be read.
pub async fn listed(managed: &Cluster, namespace: &str, listing: &Listing) -> Result<Vec<Known>, Failure> {
    let each = listing.secrets.iter().map(async |name| {
        let (kubeconfig, is_hidden) = match secret(managed, namespace, name).await {
            Ok(found) => (found.as_ref().and_then(read_bootstrap), false),
            Err(failure) if failure.reason == Reason::Forbidden => (None, true),
            Err(failure) => return Err(failure),
        };
        Ok(Known { secret: name.clone(), kubeconfig, is_hidden })
    });
    futures::future::try_join_all(each).await
}

/// The same, without the first hub of the list, whose kubeconfig is that of every agent.
///
/// # Errors
/// As [`listed`].
pub async fn further(managed: &Cluster, namespace: &str, listing: Option<&Listing>) -> Result<Vec<Known>, Failure> {
    let Some(listing) = listing else { return Ok(Vec::new()) };
    let others = listing.secrets.iter().filter(|name| name.as_str() != secrets::BOOTSTRAP_HUB_KUBECONFIG);
    listed(managed, namespace, &Listing { secrets: others.cloned().collect(), ..listing.clone() }).await
}

fn read_bootstrap(secret: &Secret) -> Option<Bootstrap> {
    let annotations = secret.metadata.annotations.as_ref();
    let noted = |key: &str| annotations.and_then(|all| all.get(key)).filter(|word| !word.is_empty());
    let mut bootstrap = hub::parse(&text(secret, secrets::KUBECONFIG_KEY)?)?;
    bootstrap.exclusive = noted(EXCLUSIVE_TOKEN).is_some_and(|mark| is_exclusive(mark, &bootstrap.token));
    bootstrap.hub.uid = noted(HUB_UID).cloned();
    bootstrap.grpc = text(secret, secrets::GRPC_CONFIG_KEY).and_then(|config| grpc_server(&config));
    Some(bootstrap)
}

/// The server that `config.yaml` of an agent names.
fn grpc_server(config: &str) -> Option<grpc::Server> {
    let GrpcConfig { url, pem, token: _ } = grpc_config(config)?;
    let (host, port) = grpc::Address::parse(&url)?;
    let (ca, _) = certificate::readable(&pem.unwrap_or_default());
    Some(grpc::Server { address: grpc::Address { host, port: port.unwrap_or(grpc::USUAL_PORT) }, ca })
}

/// The leader leases of the operator and of the agents, and the pods beside them.
///
/// # Errors
/// The failure of a request.
pub async fn leases(managed: &Cluster, names: &Names) -> Result<Vec<LeaseFacts>, Failure> {
    let mut all = Vec::new();
    for (namespace, locks) in
        [(namespaces::OPERATOR, lease::of_operator()), (names.namespace.as_str(), lease::of_agents(&names.klusterlet))]
    {
        let leases = held(managed, namespace, locks).await?;
        if leases.is_empty() {
            continue;
        }
        // The pods are read after the leases: a holder that is not among them was gone by then.
        let pods = pods(managed, namespace).await?;
        all.push(LeaseFacts { namespace: namespace.to_owned(), leases, pods });
    }
    Ok(all)
}

/// What there is of the agents that a Klusterlet has in another mode than `mode`.
#[derive(Clone, Debug, Default)]
pub struct OtherAgents {
    /// Their Deployments and pods, in words.
    pub running: Vec<String>,
    /// Those of their leader leases that nobody holds.
    pub leases: Vec<StaleLease>,
}

/// Looks for agents of another mode than this one, and for what they have left.
///
/// # Errors
/// The failure of a request.
pub async fn agents_of_other_mode(
    managed: &Cluster,
    names: &Names,
    mode: &KlusterletMode,
) -> Result<OtherAgents, Failure> {
    let Names { klusterlet, namespace } = names;
    let locks = lease::of_other_agents(klusterlet, mode);
    let deployments = workload::deployments(managed, namespace);
    let mut running = Vec::new();
    for Lock { deployment, .. } in &locks {
        let found = deployments.get_opt(deployment).await;
        let found = found.map_err(|error| managed.explain(format_args!("read Deployment {deployment}"), error))?;
        running.extend(found.map(|_| format!("Deployment {deployment}")));
    }
    let leases = held(managed, namespace, locks.clone()).await?;
    // After the leases, as above.
    let pods = pods(managed, namespace).await?;
    // Of a Deployment with a long name, pods are called as those of the others are: by their names they are of either mode.
    let own: Vec<Lock> = lease::of_agents(klusterlet).into_iter().filter(|lock| !locks.contains(lock)).collect();
    let is_of = |pod: &Running, locks: &[Lock]| locks.iter().any(|lock| lease::is_of(&pod.pod, &lock.deployment));
    let is_of_these = |pod: &&Running| is_of(pod, &locks) && !is_of(pod, &own);
    running.extend(pods.iter().filter(is_of_these).map(|pod| format!("pod {}", pod.pod)));
    let facts = LeaseFacts { namespace: namespace.clone(), leases, pods };
    Ok(OtherAgents { running, leases: lease::unheld(&facts) })
}

/// Those leases of a namespace that are of these locks.
async fn held(managed: &Cluster, namespace: &str, locks: Vec<Lock>) -> Result<Vec<(Lock, Lease)>, Failure> {
    let leases: Api<Lease> = Api::namespaced(managed.client.clone(), namespace);
    let found = leases.list(&ListParams::default()).await;
    let found = found.map_err(|error| unread(managed, namespace, error))?.items;
    let of = |lock: Lock| {
        let lease = found.iter().find(|lease| lease.metadata.name.as_deref() == Some(lock.name))?;
        Some((lock, lease.clone()))
    };
    Ok(locks.into_iter().filter_map(of).collect())
}

/// The pods of a namespace, among which are those that hold its leases.
async fn pods(managed: &Cluster, namespace: &str) -> Result<Vec<Running>, Failure> {
    workload::running(managed, namespace).await.map_err(|error| unread(managed, namespace, error))
}

fn unread(managed: &Cluster, namespace: &str, error: kube::Error) -> Failure {
    managed.explain(format_args!("read the leader leases of {namespace}"), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_only_another_reader_of_pem_would_find_is_not_shown_to_the_hub() {
        let [own, other] = ["own", "other"].map(|name| {
            let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).expect("a certificate");
            made.cert
        });
        let hidden = other.pem().replace("\r\n", "\n").replace('\n', "\r");
        let held = Held::read(&format!("x\r{hidden}\n{}", own.pem()), String::new()).expect("a certificate");
        assert_eq!(held.chain, [own.der().to_vec()]);
        assert_eq!(certificate::from_pem(&held.pem), Ok(held.chain.clone()));
        assert!(!held.pem.contains(&b'\r'));
        assert!(Held::read("", String::new()).is_none());
    }
}
