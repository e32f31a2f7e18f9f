//! Following an agent from its operator's first pod to the hub's word that all is well.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::WatchParams;
use ocm_api::names::{hub as hub_names, namespaces, operators};
use ocm_api::operator::KlusterletMode;
use ocm_api::{Klusterlet, ManagedCluster};
use ocm_core::csr::{Request, State};
use ocm_core::duration::human;
use ocm_core::join::agent::{self, Credential, OwnKey};
use ocm_core::join::progress::{Goal, Link, Snapshot, Step, Wait, judge};
use ocm_core::phase::Phase;
use ocm_core::{Event, Failure, Narrator, Reason, Remedy};
use ocm_kube::Cluster;
use ocm_kube::changes::{Changes, named};
use ocm_kube::wait::{Look, until_changed};
use tokio::time::timeout_at;

use super::on_hub;
use super::survey::{self, Survey};
use crate::workload;

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(700);
/// Every so many looks the hub is asked whether it still takes the agent's token, and leases are looked at.
const SOMETIMES: u32 = 4;

/// The request of the agent itself.
pub(super) struct OwnRequest {
    /// Its key.
    pub(super) key: String,
    /// Whether the hub accepts the cluster and has nothing of this key to decide.
    pub(super) settled: bool,
}

pub(super) struct Follower<'a> {
    pub(super) managed: &'a Cluster,
    /// The hub, with the user's own rights or those of the token.
    pub(super) hub: &'a Cluster,
    pub(super) name: &'a str,
    /// Who registers as the agent does.
    pub(super) registrar: Option<on_hub::Registrar>,
    pub(super) survey: &'a Survey,
    /// What the hub knows its requests by.
    pub(super) credential: Credential,
}

/// A request, read, and as it is.
type Asked = (Request, CertificateSigningRequest);

impl Follower<'_> {
    /// Follows until the goal is reached.
    ///
    /// # Errors
    /// [`Reason::TimedOut`] with what holds it up; or what no waiting mends.
    pub(super) async fn until(&self, goal: Goal, deadline: Instant, narrator: &dyn Narrator) -> Result<Phase, Failure> {
        let started = Instant::now();
        let mut changes = self.changes();
        let mut told_to_accept = false;
        let mut last: Option<Wait> = None;
        for look in 0u32.. {
            let sometimes = look % SOMETIMES == SOMETIMES - 1;
            // What has no answer at the deadline is as if the cluster did not answer.
            let snapshot = timeout_at(deadline.into(), self.snapshot(sometimes)).await;
            let late = || Failure::new(Reason::Busy, "a cluster has not answered in time");
            let step = match snapshot.unwrap_or_else(|_| Err(late())) {
                Ok(snapshot) => judge(&snapshot, self.name, goal, Timestamp::now()),
                Err(failure) if failure.reason.is_transient() => match last.clone() {
                    Some(wait) => Step::Waiting(vec![Wait { because: failure.to_string(), ..wait }]),
                    None => Step::Waiting(vec![Wait {
                        link: Link::Operator,
                        doing: "waiting for the cluster to answer".to_owned(),
                        because: failure.to_string(),
                    }]),
                },
                Err(failure) => return Err(failure),
            };
            match step {
                Step::Reached(phase) => return Ok(phase),
                Step::Failed(failure) => return Err(failure.hint(AGAIN)),
                Step::Waiting(all) => {
                    // What holds it up; the rest may well be its consequence.
                    let Some(wait) = all.into_iter().next() else { continue };
                    if wait.link == Link::Acceptance && !told_to_accept {
                        told_to_accept = true;
                        narrator.tell(Event::note(wait.because.clone()));
                    }
                    if Instant::now() + PAUSE > deadline {
                        let waited = human(started.elapsed());
                        return Err(Failure::new(Reason::TimedOut, format!("gave up {} after {waited}", wait.doing))
                            .because(wait.because)
                            .hint(AGAIN));
                    }
                    // Whoever holds a lease of a pod that is gone makes everything look well and do nothing.
                    if sometimes && matches!(wait.link, Link::Klusterlet | Link::Registration | Link::Availability) {
                        self.clear_leases(narrator).await?;
                    }
                    narrator.tell(Event::blocked(wait.doing.clone(), wait.because.clone()));
                    last = Some(wait);
                    changes.wait(PAUSE).await;
                }
            }
        }
        Err(Failure::new(Reason::TimedOut, "gave up waiting"))
    }

    /// The key of the agent that runs on the cluster, as soon as its request is on the hub.
    ///
    /// # Errors
    /// [`Reason::Refused`] where its key cannot be told from others'; [`Reason::TimedOut`]. Both show every key that asks.
    pub(super) async fn own_key(
        &self,
        seat: &Cluster,
        deadline: Instant,
        narrator: &dyn Narrator,
    ) -> Result<OwnRequest, Failure> {
        let name = self.name;
        let doing = format!("waiting for the certificate request of the agent of {name}");
        let mut strangers = String::new();
        let changes = self.changes();
        let found = until_changed(&doing, deadline, PAUSE, changes, narrator, async || {
            let (agent, requests, cluster) = futures::join!(
                survey::agent(self.managed, &self.survey.agent_namespace, name),
                on_hub::requests(seat, name),
                on_hub::cluster(seat, name),
            );
            let requests = requests.map_err(|error| seat.explain("list certificate requests", error))?;
            let own = agent?.own_key(&self.credential, &requests);
            let key = match &own {
                OwnKey::Known(key) => Some(key),
                _ => None,
            };
            let foreign = |request: &&Request| {
                request.state == State::Pending && !request.is_addons() && request.fingerprint().as_ref() != key
            };
            strangers = agent::describe(requests.iter().map(|(request, _)| request).filter(foreign));
            match own {
                OwnKey::Known(key) => {
                    let accepted = cluster?.is_some_and(|cluster| cluster.spec.hub_accepts_client.unwrap_or_default());
                    let asks = |(request, _): &(Request, _)| {
                        request.state == State::Pending && request.fingerprint().as_ref() == Some(&key)
                    };
                    let settled = accepted && !requests.iter().any(asks);
                    Ok(Look::Ready(OwnRequest { key, settled }))
                }
                OwnKey::NotYet if strangers.is_empty() => Ok(Look::NotYet(String::new())),
                OwnKey::NotYet => Ok(Look::NotYet(format!("others ask in its name: {strangers}"))),
                OwnKey::Unclear(why) => Err(Failure::refused(format!(
                    "which key is that of the agent of {name} cannot be told, so nothing was approved"
                ))
                .because(why)
                .because(format!("there are: {strangers}"))
                .hint(Remedy::AcceptKey(name.to_owned()))),
            }
        })
        .await?;
        if !strangers.is_empty() {
            narrator.tell(Event::warning(format!(
                "somebody else asks for a certificate in the name of {name:?} and was not approved: {strangers}; the \
                 agent's own key is {}",
                found.key
            )));
        }
        Ok(found)
    }

    async fn clear_leases(&self, narrator: &dyn Narrator) -> Result<(), Failure> {
        match survey::stale_leases(self.managed, &self.survey.agent_namespace, &self.survey.klusterlet).await {
            Ok(stale) => survey::clear(self.managed, &stale, narrator).await,
            Err(failure) if failure.reason.is_transient() || failure.reason == Reason::Forbidden => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// What a look depends on, as far as we may watch it.
    fn changes(&self) -> Changes {
        let klusterlets: Api<Klusterlet> = Api::all(self.managed.client.clone());
        let namespace = &self.survey.agent_namespace;
        let changes = Changes::default()
            .of(workload::deployments(self.managed, namespaces::OPERATOR), named(operators::KLUSTERLET))
            .of(klusterlets, named(&self.survey.klusterlet))
            .of(workload::deployments(self.managed, namespace), WatchParams::default());
        let hub = self.hub;
        let clusters: Api<ManagedCluster> = Api::all(hub.client.clone());
        let leases: Api<Lease> = Api::namespaced(hub.client.clone(), self.name);
        let requests: Api<CertificateSigningRequest> = Api::all(hub.client.clone());
        changes
            .of(clusters, named(self.name))
            .of(leases, named(hub_names::MANAGED_CLUSTER_LEASE))
            .of(requests, WatchParams::default().labels(&on_hub::of_cluster(self.name)))
    }

    /// One look at both clusters.
    async fn snapshot(&self, sometimes: bool) -> Result<Snapshot, Failure> {
        let klusterlets: Api<Klusterlet> = Api::all(self.managed.client.clone());
        let agent = &self.survey.agent_namespace;
        let (operator, klusterlet, identity, hub) = futures::join!(
            workload::deployment(self.managed, namespaces::OPERATOR, operators::KLUSTERLET),
            klusterlets.get_opt(&self.survey.klusterlet),
            survey::agent(self.managed, agent, self.name),
            self.look_at_hub(),
        );
        let (identity, (hub, requests)) = (identity?, hub);
        let klusterlet = klusterlet.map_err(|error| self.managed.explain("read the Klusterlet", error))?;
        let mut snapshot = Snapshot { operator: operator?.because().map(str::to_owned), ..hub };
        snapshot.identity = identity.key.is_some();
        // Anybody with a token can ask in the cluster's name; what counts is what its own agent asks for.
        let own = |(request, object): &(Request, _)| identity.made(&self.credential, request, object) != Some(false);
        snapshot.requests = requests.into_iter().filter(own).map(|(request, _)| request).collect();
        snapshot.agents = self.agents(klusterlet.as_ref()).await?;
        snapshot.klusterlet = klusterlet;
        if snapshot.cluster.is_none()
            && !snapshot.identity
            && sometimes
            && let Some(registrar) = &self.registrar
        {
            let answer = registrar.cluster(self.name).await;
            snapshot.registrar = answer.err().filter(|failure| {
                // Whether we reach the hub says little of whether the agent does.
                !matches!(failure.reason, Reason::Unreachable | Reason::Busy | Reason::Other)
            });
        }
        Ok(snapshot)
    }

    /// The agents' Deployments that the operator has made so far, with what is missing of them.
    async fn agents(&self, klusterlet: Option<&Klusterlet>) -> Result<Vec<(String, Option<String>)>, Failure> {
        let Some(klusterlet) = klusterlet else { return Ok(Vec::new()) };
        let mode = klusterlet.spec.deploy_option.as_ref().and_then(|option| option.mode.clone()).unwrap_or_default();
        let object = &self.survey.klusterlet;
        let names = match mode {
            KlusterletMode::Singleton | KlusterletMode::SingletonHosted => vec![format!("{object}-agent")],
            _ => vec![format!("{object}-registration-agent"), format!("{object}-work-agent")],
        };
        let api = workload::deployments(self.managed, &self.survey.agent_namespace);
        let mut agents = Vec::new();
        for name in names {
            let found = api.get_opt(&name).await;
            let found = found.map_err(|error| self.managed.explain(format_args!("read Deployment {name}"), error))?;
            if let Some(deployment) = found {
                let health = workload::of(self.managed, &deployment).await?;
                agents.push((name, health.because().map(str::to_owned)));
            }
        }
        Ok(agents)
    }

    /// What the hub shows. A hub that cannot be looked at just now holds nothing up by itself.
    async fn look_at_hub(&self) -> (Snapshot, Vec<Asked>) {
        let mut snapshot = Snapshot::default();
        let hub = self.hub;
        let leases: Api<Lease> = Api::namespaced(hub.client.clone(), self.name);
        let (cluster, requests, lease) = futures::join!(
            on_hub::cluster(hub, self.name),
            on_hub::requests(hub, self.name),
            leases.get_opt(hub_names::MANAGED_CLUSTER_LEASE),
        );
        match cluster {
            Ok(cluster) => snapshot.cluster = cluster,
            Err(failure) => snapshot.hub_trouble = Some(failure.to_string()),
        }
        // A registering agent may not read leases; then the hub's word stands alone.
        snapshot.lease = lease.ok().flatten();
        (snapshot, requests.unwrap_or_default())
    }
}

const AGAIN: &str = "what was applied stays: mend it and run the same command again, it goes on from there";
