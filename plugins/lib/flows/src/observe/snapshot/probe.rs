//! What the hub answers to the credentials of agents, as seen from here.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::config::{AuthInfo, Cluster as ClusterEntry};
use ocm_api::Klusterlet;
use ocm_api::names::secrets;
use ocm_api::operator::RegistrationAuthType;
use ocm_checks::facts::{driver, is_registered, likeness, noted_hub, registers_as};
use ocm_checks::snapshot::{AgentSide, Answer, Credential, GrpcFacts, HubSide, ManagedSide, Probe, Trouble};
use ocm_core::kubeconfig::Likeness;
use ocm_core::redact::redact;
use ocm_core::{Failure, Narrator, Reason, Role};
use ocm_kube::access::{Right, missing, myself};
use ocm_kube::{Cluster, Connection, connect_to};
use ocm_net::proxy::{Origin, Proxy, of_environment};
use ocm_net::{Endpoint, VERSIONS, Vantage, Way, present_by};
use secrecy::{ExposeSecret as _, SecretString};

use super::kinds::SECRETS;
use crate::hub;
use crate::in_cluster::InCluster;

/// How long the hub may take to answer.
const REQUEST: Duration = Duration::from_secs(8);

/// How many questions are asked at once.
const AT_ONCE: usize = 4;

/// A question that is to be asked.
#[derive(Clone)]
pub struct Question {
    klusterlet: String,
    entry: ClusterEntry,
    token: SecretString,
}

/// The questions that tell something and that a token may be sent for: those of agents of the clusters that were asked about
/// (none: of all) which have to register. A token goes to no other hub than the one that is looked at, if one is.
pub async fn questions(
    managed: &Cluster,
    side: &ManagedSide,
    hub: Option<&HubSide>,
    names: Option<&[String]>,
    now: Timestamp,
) -> Vec<Question> {
    let klusterlets = side.klusterlets.read().map(Vec::as_slice).unwrap_or_default();
    let mut questions = Vec::new();
    for agent in &side.agents {
        let found = |klusterlet: &&Klusterlet| klusterlet.metadata.name.as_deref() == Some(agent.klusterlet.as_str());
        let Some(klusterlet) = klusterlets.iter().find(found) else { continue };
        if !is_wanted(klusterlet, agent, hub, names, now) {
            continue;
        }
        let api: Api<Secret> = Api::namespaced(managed.client.clone(), &agent.namespace);
        // What cannot be read has been told already.
        let Ok(Some(secret)) = api.get_opt(secrets::BOOTSTRAP_HUB_KUBECONFIG).await else { continue };
        let Some((entry, Some(AuthInfo { token: Some(token), .. }))) = entries(&secret) else { continue };
        // It may have changed since the facts were read.
        let server = agent.bootstrap.read().and_then(|secret| secret.as_ref()?.kubeconfig.as_ref());
        let is_known = server.zip(entry.server.as_ref()).is_some_and(|(known, server)| known.server == *server);
        if is_known && !token.expose_secret().is_empty() {
            questions.push(Question { klusterlet: agent.klusterlet.clone(), entry, token });
        }
    }
    questions
}

/// The cluster and the user of the kubeconfig in a Secret.
fn entries(secret: &Secret) -> Option<(ClusterEntry, Option<AuthInfo>)> {
    let text = secret.data.as_ref()?.get(secrets::KUBECONFIG_KEY)?;
    hub::entries(std::str::from_utf8(&text.0).ok()?)
}

/// Whether an agent's token may be sent to the address that the agent has, and whether that tells anything.
fn is_wanted(
    klusterlet: &Klusterlet,
    agent: &AgentSide,
    hub: Option<&HubSide>,
    names: Option<&[String]>,
    now: Timestamp,
) -> bool {
    let is_asked = names.is_none_or(|names| {
        registers_as(klusterlet, agent).is_some_and(|name| names.iter().any(|asked| asked == name))
    });
    let Some(Some(secret)) = agent.bootstrap.read() else { return false };
    let Some(kubeconfig) = &secret.kubeconfig else { return false };
    // A loopback address is another machine's, and a token goes nowhere in the clear.
    let is_remote = Endpoint::parse(&kubeconfig.server, None).is_ok_and(|endpoint| !endpoint.is_loopback());
    // By another address and another CA it may be the same hub all the same: only UIDs tell that it is another one.
    let is_this_hub = |hub: &HubSide| match likeness(hub, secret) {
        None => false,
        Some(Likeness::OtherHub) => noted_hub(secret).is_none() || hub.uid.is_none(),
        Some(_) => true,
    };
    is_asked
        && is_remote
        && driver(klusterlet) != RegistrationAuthType::Grpc
        && is_registered(klusterlet, agent, now) == Some(false)
        && hub.is_none_or(is_this_hub)
}

/// Asks the hub who it takes the agents for.
pub async fn probes(questions: Vec<Question>, narrator: Arc<dyn Narrator>) -> Vec<Probe> {
    let asked = questions.into_iter().map(|question| probe(question, Vantage::default(), narrator.clone()));
    futures::stream::iter(asked).buffered(AT_ONCE).collect().await
}

/// Dials the gRPC servers of agents that have to register over gRPC, of the clusters that were asked about (none: of all), and
/// asks whom they trust. No token is sent: whether the server takes it cannot be asked without an agent.
pub async fn grpc_probes(side: &ManagedSide, names: Option<&[String]>, now: Timestamp) -> Vec<Probe> {
    let klusterlets = side.klusterlets.read().map(Vec::as_slice).unwrap_or_default();
    let wanted = side.agents.iter().filter_map(|agent| {
        let found = |klusterlet: &&Klusterlet| klusterlet.metadata.name.as_deref() == Some(agent.klusterlet.as_str());
        let klusterlet = klusterlets.iter().find(found)?;
        let name = registers_as(klusterlet, agent);
        let is_asked = names.is_none_or(|names| name.is_some_and(|name| names.iter().any(|asked| asked == name)));
        let registers = is_registered(klusterlet, agent, now) == Some(false);
        let grpc = agent.bootstrap.read()?.as_ref()?.grpc.as_ref()?;
        let endpoint = Endpoint::parse(&format!("https://{}", grpc.server), None).ok()?;
        // A loopback address is another machine's.
        let is_grpc = driver(klusterlet) == RegistrationAuthType::Grpc && !endpoint.is_loopback();
        let dialled = Dialled::of_grpc(agent, endpoint, grpc);
        (is_asked && registers && is_grpc).then(|| dial(dialled, Way::Environment))
    });
    futures::stream::iter(wanted.collect::<Vec<_>>()).buffered(AT_ONCE).collect().await
}

/// A server that is dialled without a credential.
struct Dialled {
    klusterlet: String,
    credential: Credential,
    endpoint: Endpoint,
    authorities: Vec<Vec<u8>>,
    /// The address of the server as facts have it; none: no kubeconfig names it.
    of_kubeconfig: Option<String>,
}

impl Dialled {
    fn of_grpc(agent: &AgentSide, endpoint: Endpoint, grpc: &GrpcFacts) -> Self {
        let authorities = grpc.authorities.iter().map(|der| der.0.clone()).collect();
        let klusterlet = agent.klusterlet.clone();
        Self { klusterlet, credential: Credential::Bootstrap, endpoint, authorities, of_kubeconfig: None }
    }

    /// The server that an agent dials: by what it was let in with, or by what it registers with.
    fn of(klusterlet: &Klusterlet, agent: &AgentSide, now: Timestamp) -> Option<Self> {
        let registers = is_registered(klusterlet, agent, now) != Some(true);
        let (secret, credential) = match registers {
            true => (agent.bootstrap.read()?.as_ref()?, Credential::Bootstrap),
            false => (agent.identity.read()?.as_ref()?, Credential::Identity),
        };
        let (server, authorities, of_kubeconfig) = match driver(klusterlet) {
            RegistrationAuthType::Grpc => {
                let grpc = secret.grpc.as_ref()?;
                (format!("https://{}", grpc.server), &grpc.authorities, None)
            }
            _ => {
                let kubeconfig = secret.kubeconfig.as_ref()?;
                (kubeconfig.server.clone(), &kubeconfig.authorities, Some(kubeconfig.server.clone()))
            }
        };
        let endpoint = Endpoint::parse(&server, None).ok().filter(|endpoint| !endpoint.is_loopback())?;
        let authorities = authorities.iter().map(|der| der.0.clone()).collect();
        Some(Self { klusterlet: agent.klusterlet.clone(), credential, endpoint, authorities, of_kubeconfig })
    }

    /// The URL of the proxy that the agent's kubeconfig names, which may hold a password; none: it names none. Facts tell it
    /// only to be shown.
    async fn proxy(&self, managed: &Cluster, agent: &AgentSide) -> Result<Option<String>, Trouble> {
        let Some(server) = &self.of_kubeconfig else { return Ok(None) };
        let (namespace, name) = (
            agent.namespace.as_str(),
            match self.credential {
                Credential::Bootstrap => secrets::BOOTSTRAP_HUB_KUBECONFIG,
                Credential::Identity => secrets::HUB_KUBECONFIG,
            },
        );
        let api: Api<Secret> = Api::namespaced(managed.client.clone(), namespace);
        let found = api.get_opt(name).await;
        let found = found.map_err(|error| managed.explain(format_args!("read Secret {namespace}/{name}"), error));
        let found = found.and_then(|secret| named_proxy(secret.as_ref(), server));
        found.map_err(|failure| {
            let failure = failure.context(format!("the way from Secret {namespace}/{name} is not known"));
            Trouble::of(&failure, Some(SECRETS.rule("get", Some(namespace))))
        })
    }
}

/// The URL of the proxy that the kubeconfig in a Secret names, if the hub still is at the address that facts have.
fn named_proxy(secret: Option<&Secret>, known: &str) -> Result<Option<String>, Failure> {
    let entry = secret.and_then(entries).map(|(entry, _)| hub::way(entry));
    match entry.filter(|entry| entry.server.as_deref().map(redact).as_deref() == Some(known)) {
        Some(entry) => Ok(entry.proxy_url),
        None => Err(Failure::other("it was changed while it was looked at")),
    }
}

/// The proxy of a URL that an agent goes by, which may hold a password and is in no message.
fn agents_proxy(url: &str) -> Result<Proxy, Failure> {
    let text = "the proxy on the agent's way to the hub cannot be used";
    Proxy::parse(url, Origin::Kubeconfig).map_err(|error| Failure::new(Reason::Kubeconfig, text).because(error))
}

/// Why the hub is not asked. No right is missing for it.
fn unasked(failure: Failure) -> Trouble {
    Trouble::of(&failure, None)
}

/// Looks at the way to the hub from pods beside the agents of the clusters that were asked about (none: of all). Agents that
/// have to register have the hub asked with their token, as from here; of the others only who answers there is looked at.
pub async fn in_cluster(
    managed: &Cluster,
    side: &ManagedSide,
    questions: &[Question],
    names: Option<&[String]>,
    now: Timestamp,
    jobs: &InCluster,
    narrator: Arc<dyn Narrator>,
) -> Vec<Probe> {
    let klusterlets = side.klusterlets.read().map(Vec::as_slice).unwrap_or_default();
    let each = side.agents.iter().filter_map(|agent| {
        let found = |klusterlet: &&Klusterlet| klusterlet.metadata.name.as_deref() == Some(agent.klusterlet.as_str());
        let klusterlet = klusterlets.iter().find(found)?;
        let name = registers_as(klusterlet, agent);
        let is_asked = names.is_none_or(|names| name.is_some_and(|name| names.iter().any(|asked| asked == name)));
        let question = questions.iter().find(|question| question.klusterlet == agent.klusterlet).cloned();
        let dialled = Dialled::of(klusterlet, agent, now).filter(|_| is_asked)?;
        Some(beside(managed, agent, question, dialled, jobs, narrator.clone()))
    });
    let probes = futures::stream::iter(each.collect::<Vec<_>>()).buffered(AT_ONCE).collect().await;
    jobs.remove_all(narrator.as_ref()).await;
    probes
}

async fn beside(
    managed: &Cluster,
    agent: &AgentSide,
    question: Option<Question>,
    dialled: Dialled,
    jobs: &InCluster,
    narrator: Arc<dyn Narrator>,
) -> Probe {
    let (klusterlet, credential) = (dialled.klusterlet.clone(), dialled.credential);
    let server = redact(&dialled.endpoint.to_string());
    match ask_beside(managed, agent, question, dialled, jobs, narrator).await {
        Ok(probe) => Probe { is_own_proxy: false, ..probe },
        Err(trouble) => {
            let answer = Answer::NotAsked(trouble);
            Probe { klusterlet, credential, server, proxy: None, is_own_proxy: false, answer }
        }
    }
}

/// Goes the way that the agent goes, or none: what is seen on another one says nothing of the agent.
async fn ask_beside(
    managed: &Cluster,
    agent: &AgentSide,
    question: Option<Question>,
    dialled: Dialled,
    jobs: &InCluster,
    narrator: Arc<dyn Narrator>,
) -> Result<Probe, Trouble> {
    let named = match &question {
        Some(question) => question.entry.proxy_url.clone().filter(|url| !url.is_empty()),
        None => dialled.proxy(managed, agent).await?,
    };
    named.as_deref().map(agents_proxy).transpose().map_err(unasked)?;
    let place = jobs.start(managed, agent, narrator.as_ref()).await?;
    let variable = |name: &str| place.proxies.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let of_pod = |endpoint: &Endpoint| of_environment(variable, true, &endpoint.host, endpoint.port);
    let url = named.or_else(|| of_pod(&dialled.endpoint));
    let proxy = url.as_deref().map(agents_proxy).transpose().map_err(unasked)?;
    Ok(match question {
        Some(Question { klusterlet, entry, token }) => {
            let entry = ClusterEntry { proxy_url: url, ..entry };
            probe(Question { klusterlet, entry, token }, place.from, narrator).await
        }
        None => dial(dialled, Way::From(place.from, proxy)).await,
    })
}

async fn dial(dialled: Dialled, way: Way) -> Probe {
    let Dialled { klusterlet, credential, endpoint, authorities, .. } = dialled;
    let presented = present_by(&endpoint, &way, &VERSIONS, &authorities, REQUEST).await;
    let proxy = presented.as_ref().ok().and_then(|presented| presented.proxy.clone());
    let asked = presented.map_err(|error| error.failure(&endpoint)).and_then(|presented| {
        let verified = match authorities.is_empty() {
            true => presented.verify_by_system(),
            false => presented.verify(&authorities),
        };
        verified.map_err(|fault| fault.failure(&endpoint))
    });
    let answer = match asked {
        Ok(()) => Answer::Known,
        Err(failure) => Answer::Refused(Trouble::of(&failure, None)),
    };
    let is_own_proxy = proxy.is_some();
    let server = redact(&endpoint.to_string());
    Probe { klusterlet, credential, server, proxy, is_own_proxy, answer }
}

async fn probe(question: Question, from: Vantage, narrator: Arc<dyn Narrator>) -> Probe {
    let Question { klusterlet, entry, token } = question;
    let server = redact(entry.server.as_deref().unwrap_or_default());
    // Of the agent's kubeconfig nothing counts but the way to its hub.
    let entry = hub::way(entry);
    let has_proxy = entry.proxy_url.is_some();
    if let Some(Err(failure)) = entry.proxy_url.as_deref().map(agents_proxy) {
        let (credential, answer) = (Credential::Bootstrap, Answer::NotAsked(unasked(failure)));
        return Probe { klusterlet, credential, server, proxy: None, is_own_proxy: false, answer };
    }
    let user = AuthInfo { token: Some(token), ..AuthInfo::default() };
    let connection =
        Connection { request_timeout: Some(REQUEST), sends_once: true, role: Role::Hub, from, ..Connection::default() };
    let mut proxy = None;
    let asked = async {
        let hub = connect_to(entry, user, &connection, narrator).await?;
        proxy.clone_from(&hub.proxy);
        myself(&hub).await?;
        // What an agent has to do first.
        let rights = [
            Right::new("create", "certificates.k8s.io", "certificatesigningrequests"),
            Right::new("create", "cluster.open-cluster-management.io", "managedclusters"),
        ];
        match missing(&hub, &rights).await?.as_slice() {
            [] => Ok(()),
            [right, ..] => Err(Failure::new(Reason::Forbidden, format!("the token may not {right}"))),
        }
    };
    let answer = match asked.await {
        Ok(()) => Answer::Known,
        Err(failure) => Answer::Refused(Trouble::of(&failure, None)),
    };
    let is_own_proxy = !has_proxy && proxy.is_some();
    Probe { klusterlet, credential: Credential::Bootstrap, server, proxy, is_own_proxy, answer }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use ocm_checks::snapshot::{KubeconfigFacts, Observed, SecretFacts};

    use super::*;

    fn kubeconfig(server: &str, proxy: &str) -> Secret {
        let text = format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster: {{server: '{server}', proxy-url: '{proxy}'}}\n"
        );
        let data = [(secrets::KUBECONFIG_KEY.to_owned(), ByteString(text.into_bytes()))].into();
        Secret { data: Some(data), ..Secret::default() }
    }

    #[test]
    fn a_proxy_is_dialled_as_the_secret_names_it() {
        let of = |secret: &Secret| named_proxy(Some(secret), "https://hub:6443").map_err(|failure| failure.to_string());
        let url = "http://me:canary@proxy:3128";
        assert_eq!(of(&kubeconfig("https://hub:6443", url)).unwrap().as_deref(), Some(url));
        let proxy = agents_proxy(url).unwrap();
        assert_eq!((proxy.url().as_str(), proxy.to_string().as_str()), ("http://proxy:3128", "proxy:3128"));
        assert_eq!(of(&kubeconfig("https://hub:6443", "")), Ok(None));
        // What was changed meanwhile, or is gone, says nothing of the address that was looked at.
        for secret in [kubeconfig("https://other:6443", url), Secret::default()] {
            assert!(of(&secret).unwrap_err().contains("changed"));
        }
        assert!(named_proxy(None, "https://hub:6443").is_err());
    }

    #[tokio::test]
    async fn nothing_is_dialled_where_the_proxy_cannot_be_read() {
        let (entry, _) = entries(&kubeconfig("https://192.0.2.1:6443", "me:canary@proxy:3128")).unwrap();
        let question = Question { klusterlet: "k".to_owned(), entry, token: "canary".into() };
        let asked = probe(question, Vantage::default(), Arc::new(ocm_core::Silent)).await;
        assert!(matches!(asked.answer, Answer::NotAsked(_)), "{asked:?}");
        let text = format!("{asked:?}");
        assert!(text.contains("it is not a URL such as") && !text.contains("canary"), "{text}");
    }

    fn agent(server: &str) -> AgentSide {
        let kubeconfig = KubeconfigFacts { server: server.to_owned(), ..KubeconfigFacts::default() };
        let secret = SecretFacts { kubeconfig: Some(kubeconfig), ..SecretFacts::default() };
        AgentSide { bootstrap: Observed::Read(Some(secret)), identity: Observed::Read(None), ..AgentSide::default() }
    }

    #[test]
    fn a_token_is_sent_only_where_its_agent_would_and_somebody_asked() {
        let mut klusterlet = Klusterlet::default();
        klusterlet.spec.cluster_name = Some("c1".to_owned());
        let hub = HubSide { server: "https://hub:6443".to_owned(), ..HubSide::default() };
        let (mine, other) = (["c1".to_owned()], ["c2".to_owned()]);
        let wanted = |agent: &AgentSide, hub, names| is_wanted(&klusterlet, agent, hub, names, Timestamp::UNIX_EPOCH);
        let here = agent("https://hub:6443");
        assert!(wanted(&here, Some(&hub), Some(&mine)));
        assert!(wanted(&here, Some(&hub), None));
        assert!(wanted(&agent("https://elsewhere:6443"), None, None), "without a hub the agent's is all there is");
        assert!(!wanted(&here, Some(&hub), Some(&other)), "nobody asked about that cluster");
        for server in ["https://other:6443", "http://hub:6443", "https://127.0.0.1:6443", "https://localhost", "hub"] {
            assert!(!wanted(&agent(server), Some(&hub), Some(&mine)), "{server}");
        }
        for server in ["http://hub:6443", "https://[::1]:6443", "https://me:word@hub:6443"] {
            assert!(!wanted(&agent(server), None, None), "{server}");
        }
        // What could not be read is not taken for missing.
        assert!(!wanted(&AgentSide { identity: Observed::NotAsked, ..here }, Some(&hub), Some(&mine)));
    }
}
