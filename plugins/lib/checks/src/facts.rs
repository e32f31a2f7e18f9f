//! A snapshot in which everything is found by the cluster that it belongs to.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_api::names::{identity, labels, secrets};
use ocm_api::operator::{
    BootstrapKubeConfigsType, FeatureGateMode, KubeConfigSecret, LocalSecretsConfig, RegistrationAuthType,
};
use ocm_api::{ClusterManager, Klusterlet, ManagedCluster, ManagedClusterAddOn, Registration};
use ocm_core::agent_lease;
use ocm_core::certificate::Certificate;
use ocm_core::csr::{Request, State};
use ocm_core::duration::human;
use ocm_core::install::mode;
use ocm_core::join::fallback::FALLBACK_OF;
use ocm_core::join::lease;
use ocm_core::kubeconfig::{HUB_UID, HubAddress, Likeness};
use ocm_core::managed;
use ocm_core::order::{self, Collect as _};
use ocm_core::phase::{Phase, Standing, standing};
use ocm_core::workload::Health;

use crate::snapshot::{
    AgentSide, Credential, HubSide, KubeconfigFacts, LeaseFacts, ManagedSide, NamespaceFacts, Observed, Probe,
    SecretFacts, Snapshot, TokenFacts, WorkFacts,
};
use crate::text;

/// Signers date certificates back by so much: whoever gets one may have a clock that is behind. Upstream: `backdate` of the
/// controller manager.
pub(crate) const BACKDATED: SignedDuration = SignedDuration::from_mins(5);

/// A snapshot, and where in it each cluster is.
pub struct Facts<'a> {
    /// What was observed.
    pub snapshot: &'a Snapshot,
    /// When it was observed.
    pub now: Timestamp,
    /// Every cluster that is looked at.
    pub clusters: BTreeMap<&'a str, Cluster<'a>>,
    /// The clusters that nobody named and that are not looked at, for their agents register with another hub: the address of
    /// that one.
    pub left_out: BTreeMap<&'a str, &'a str>,
}

/// What a snapshot has of one cluster.
#[derive(Default)]
pub struct Cluster<'a> {
    /// Its name.
    pub name: &'a str,
    /// It on the hub.
    pub object: Option<&'a ManagedCluster>,
    /// Requests for the certificate of its agent, the newest first.
    pub requests: Vec<Request>,
    /// Requests of its add-ons, the newest first.
    pub addon_requests: Vec<Request>,
    /// The lease that its agent renews.
    pub lease: Option<&'a LeaseFacts>,
    /// Its namespace on the hub, if that is being removed.
    pub terminating: Option<&'a NamespaceFacts>,
    /// Its works.
    pub works: Vec<&'a WorkFacts>,
    /// Its add-ons.
    pub addons: Vec<&'a ManagedClusterAddOn>,
    /// What the policy controller has written of it.
    pub registration: Option<&'a Registration>,
    /// Its agent; none: the managed cluster was not looked at, or has no agent of this name.
    pub agent: Option<Agent<'a>>,
}

/// What a snapshot has of the agent of a cluster.
#[derive(Clone, Copy)]
pub struct Agent<'a> {
    /// Its Klusterlet.
    pub klusterlet: &'a Klusterlet,
    /// What the Klusterlet has made.
    pub side: &'a AgentSide,
    /// What the hub answered to what it registers with.
    pub bootstrap_probe: Option<&'a Probe>,
    /// What a pod beside it saw of its hub.
    pub in_cluster: Option<&'a Probe>,
}

/// What a list holds, or nothing.
fn all<T>(list: &Observed<Vec<T>>) -> &[T] {
    list.read().map(Vec::as_slice).unwrap_or_default()
}

impl<'a> Facts<'a> {
    /// Puts the parts of a snapshot together.
    pub fn of(snapshot: &'a Snapshot) -> Self {
        let now = snapshot.observed.0;
        let mut clusters: BTreeMap<&str, Cluster<'_>> = BTreeMap::new();
        let is_unnamed = snapshot.unnamed || snapshot.clusters.is_empty();
        let left_out = if is_unnamed { of_other_hubs(snapshot) } else { BTreeMap::new() };
        let asked = snapshot.clusters.iter().map(String::as_str);
        let asked: BTreeSet<&str> = asked.filter(|name| !left_out.contains_key(name)).collect_set();
        let wanted = |name: &str| (asked.is_empty() || asked.contains(name)) && !left_out.contains_key(name);
        for name in asked.iter().copied() {
            clusters.entry(name).or_default();
        }
        if let Some(hub) = &snapshot.hub {
            for object in all(&hub.clusters) {
                let name = object.metadata.name.as_deref().unwrap_or_default();
                if wanted(name) {
                    clusters.entry(name).or_default().object = Some(object);
                }
            }
        }
        if let Some(managed) = &snapshot.managed {
            for (name, agent) in agents(managed, snapshot) {
                if wanted(name) {
                    let known = &mut clusters.entry(name).or_default().agent;
                    // With two hubs a name is registered twice: the agent of the one that is looked at is meant.
                    if known.is_none() || !is_elsewhere(snapshot, &agent) {
                        *known = Some(agent);
                    }
                }
            }
        }
        if let Some(hub) = &snapshot.hub {
            belongings(hub, &mut clusters);
        }
        for (name, cluster) in &mut clusters {
            cluster.name = *name;
            order::sort_by_key(&mut cluster.requests, |request| std::cmp::Reverse(request.created));
            order::sort_by_key(&mut cluster.addon_requests, |request| std::cmp::Reverse(request.created));
        }
        Self { snapshot, now, clusters, left_out }
    }

    /// The pod whose process has ended and holds a lease that still lasts: what has run out is taken over by whoever runs.
    pub fn gone_holder<'l>(&self, lease: &'l LeaseFacts) -> Option<&'l str> {
        let lasts = lease.seconds.map_or(lease::LASTS, |seconds| SignedDuration::from_secs(i64::from(seconds)));
        let renewed = lease.renewed.as_ref()?.0;
        lease.gone.as_deref().filter(|_| self.now.duration_since(renewed) < lasts + lease::RETRY)
    }

    /// How long ago a time was, in words; `a time that is not known` if there is none.
    pub fn ago(&self, time: Option<Timestamp>) -> String {
        match time {
            Some(time) => human(self.now.duration_since(time).try_into().unwrap_or_default()),
            None => "an unknown time".to_owned(),
        }
    }
}

/// Whether an agent is known to register with another hub than the one that was looked at.
fn is_elsewhere(snapshot: &Snapshot, agent: &Agent<'_>) -> bool {
    let secret = agent.side.bootstrap.read().and_then(Option::as_ref);
    let likeness = snapshot.hub.as_ref().zip(secret).and_then(|(hub, secret)| likeness(hub, secret));
    likeness == Some(Likeness::OtherHub)
}

/// The names under which agents register with another hub than the one that was looked at, and its address: none of them if
/// no other agent may be one of this hub, nor those of which this hub has something, or may have.
fn of_other_hubs(snapshot: &Snapshot) -> BTreeMap<&str, &str> {
    let (Some(hub), Some(managed)) = (&snapshot.hub, &snapshot.managed) else { return BTreeMap::new() };
    if hub.clusters.read().is_none() || hub.requests.read().is_none() {
        return BTreeMap::new();
    }
    // None: one of the agents of the name may be of this hub.
    let mut names: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    for (name, agent) in agents(managed, snapshot) {
        let secret = agent.side.bootstrap.read().and_then(Option::as_ref);
        let server = secret.and_then(|secret| secret.kubeconfig.as_ref()).map(|found| found.server.as_str());
        let server = server.filter(|_| !agent.has_several_hubs() && is_elsewhere(snapshot, &agent));
        names.entry(name).and_modify(|known| *known = known.and(server)).or_insert(server);
    }
    if names.values().all(Option::is_some) {
        return BTreeMap::new();
    }
    let is_known = |name: &str| {
        let is_labelled = |request: &CertificateSigningRequest| {
            let labels = request.metadata.labels.as_ref();
            labels.and_then(|labels| labels.get(labels::CLUSTER_NAME)).is_some_and(|label| label == name)
        };
        all(&hub.clusters).iter().any(|cluster| cluster.metadata.name.as_deref() == Some(name))
            || all(&hub.requests).iter().any(is_labelled)
    };
    let others = names.into_iter().filter_map(|(name, server)| Some((name, server?)));
    others.filter(|(name, _)| !is_known(name)).collect_map()
}

/// The ClusterManager of the hub that was looked at. A cluster can run the pods of other hubs, too, which are hosted there:
/// what is hosted is the hub's own only where nothing else is.
pub fn own_manager(managers: &[ClusterManager]) -> Option<&ClusterManager> {
    managers.iter().find(|manager| !mode::is_hosted(manager)).or_else(|| managers.first())
}

/// Whether a ClusterManager is that of the hub that was looked at, and not of another one.
pub(crate) fn is_own_manager(managers: &[ClusterManager], manager: &ClusterManager) -> bool {
    own_manager(managers).is_none_or(|own| own.metadata.name == manager.metadata.name)
}

/// Whether two agents are known to register with different hubs: neither an address nor an authority is the same.
pub fn are_of_two_hubs(one: &AgentSide, other: &AgentSide) -> bool {
    let kubeconfig = |side: &AgentSide| side.bootstrap.read()?.as_ref()?.kubeconfig.clone();
    let (Some(one), Some(other)) = (kubeconfig(one), kubeconfig(other)) else { return false };
    one.server != other.server && !one.authorities.iter().any(|authority| other.authorities.contains(authority))
}

/// Gives every cluster what the hub has of it.
fn belongings<'a>(hub: &'a HubSide, clusters: &mut BTreeMap<&'a str, Cluster<'a>>) {
    for object in all(&hub.requests) {
        let request = Request::read(object);
        let label = request.cluster_label.clone().unwrap_or_default();
        let Some(cluster) = clusters.get_mut(label.as_str()) else { continue };
        let list = if request.is_addons() { &mut cluster.addon_requests } else { &mut cluster.requests };
        list.push(request);
    }
    for lease in all(&hub.leases) {
        if let Some(cluster) = clusters.get_mut(lease.namespace.as_str()) {
            cluster.lease = Some(lease);
        }
    }
    for namespace in all(&hub.terminating) {
        if let Some(cluster) = clusters.get_mut(namespace.name.as_str()) {
            cluster.terminating = Some(namespace);
        }
    }
    for work in all(&hub.works) {
        if let Some(cluster) = clusters.get_mut(work.namespace.as_str()) {
            cluster.works.push(work);
        }
    }
    for addon in all(&hub.addons) {
        let namespace = addon.metadata.namespace.as_deref().unwrap_or_default();
        if let Some(cluster) = clusters.get_mut(namespace) {
            cluster.addons.push(addon);
        }
    }
    for registration in all(&hub.registrations) {
        let name = registration.metadata.name.as_deref().unwrap_or_default();
        if let Some(cluster) = clusters.get_mut(name) {
            cluster.registration = Some(registration);
        }
    }
}

/// The agents of a managed cluster, by the name that each registers under.
fn agents<'a>(managed: &'a ManagedSide, snapshot: &'a Snapshot) -> impl Iterator<Item = (&'a str, Agent<'a>)> {
    managed.agents.iter().filter_map(|side| {
        let found = |klusterlet: &&Klusterlet| klusterlet.metadata.name.as_deref() == Some(side.klusterlet.as_str());
        let klusterlet = all(&managed.klusterlets).iter().find(found)?;
        let of = |probes: &'a [Probe]| probes.iter().find(|probe| probe.klusterlet == side.klusterlet);
        let agent = Agent {
            klusterlet,
            side,
            bootstrap_probe: of(&snapshot.probes).filter(|probe| probe.credential == Credential::Bootstrap),
            in_cluster: of(&snapshot.in_cluster),
        };
        Some((registers_as(klusterlet, side)?, agent))
    })
}

/// The name that an agent registers its cluster under: the Klusterlet's, or the one that it noted.
pub fn registers_as<'a>(klusterlet: &'a Klusterlet, side: &'a AgentSide) -> Option<&'a str> {
    let wanted = klusterlet.spec.cluster_name.as_deref().filter(|name| !name.is_empty());
    let noted = || side.identity.read()?.as_ref()?.cluster.as_deref();
    wanted.or_else(noted)
}

/// The certificate that an agent was let in with.
pub fn certificate(side: &AgentSide) -> Option<Certificate> {
    let secret = side.identity.read()?.as_ref()?;
    Certificate::read(&secret.certificates.get(secrets::TLS_CERT_KEY)?.first()?.0)
}

/// By which driver an agent registers.
pub fn driver(klusterlet: &Klusterlet) -> RegistrationAuthType {
    let registration = klusterlet.spec.registration_configuration.as_ref();
    let driver = registration.and_then(|registration| registration.registration_driver.as_ref());
    driver.map(|driver| driver.auth_type.clone()).unwrap_or_default()
}

/// Whether an agent has what it was let in with: a certificate that is valid, or with AWS IAM a kubeconfig. None: that could
/// not be read.
pub fn is_registered(klusterlet: &Klusterlet, side: &AgentSide, now: Timestamp) -> Option<bool> {
    let identity = side.identity.read()?;
    Some(match driver(klusterlet) {
        RegistrationAuthType::AwsIrsa => identity.as_ref().is_some_and(|secret| secret.kubeconfig.is_some()),
        _ => certificate(side).is_some_and(|certificate| certificate.is_valid(now)),
    })
}

/// The UID of the hub, as it was noted when its Secret was made. Who joined with a token did not know it, and noted nothing.
pub fn noted_hub(secret: &SecretFacts) -> Option<&str> {
    secret.annotations.get(HUB_UID).map(String::as_str).filter(|uid| !uid.is_empty())
}

/// How the hub that an agent registers with compares with the one that was looked at. None: they cannot be compared, for
/// neither UIDs nor authorities are known of both; an address may differ for good reasons, as load balancers and networks.
pub fn likeness(hub: &HubSide, secret: &SecretFacts) -> Option<Likeness> {
    let kubeconfig = secret.kubeconfig.as_ref()?;
    let der = |list: &[k8s_openapi::ByteString]| -> Vec<Vec<u8>> { list.iter().map(|der| der.0.clone()).collect() };
    let address = |server: &str, ca, uid| HubAddress { server: server.to_owned(), ca, uid, ..HubAddress::default() };
    let own = address(&kubeconfig.server, der(&kubeconfig.authorities), noted_hub(secret).map(str::to_owned));
    let wanted = address(&hub.server, der(&hub.authorities), hub.uid.clone());
    let comparable = (own.uid.is_some() && wanted.uid.is_some()) || (!own.ca.is_empty() && !wanted.ca.is_empty());
    (comparable || own.is_at(&wanted.server)).then(|| own.likeness(&wanted))
}

impl Cluster<'_> {
    /// Where it stands on the hub.
    pub fn standing(&self) -> Option<Standing> {
        self.object.map(standing)
    }

    /// Where it stands on the hub, as a word.
    pub fn phase(&self) -> Option<Phase> {
        self.standing().map(|standing| standing.phase)
    }

    /// Whether the hub has let it in.
    pub fn is_accepted(&self) -> bool {
        self.object.is_some_and(|object| object.spec.hub_accepts_client.unwrap_or_default())
    }

    /// Whether it is being removed from the hub.
    pub fn is_leaving(&self) -> bool {
        self.object.is_some_and(|object| object.metadata.deletion_timestamp.is_some())
    }

    /// Time between two renewals of the lease.
    pub fn lease_period(&self) -> SignedDuration {
        self.object.map_or_else(|| agent_lease::lease_period(&ManagedCluster::default()), agent_lease::lease_period)
    }

    /// When the agent last renewed its lease, by its own clock.
    pub fn renewed(&self) -> Option<Timestamp> {
        Some(self.lease?.renewed.as_ref()?.0)
    }

    /// When the hub last heard from the agent, as [`agent_lease::heard`] has it. None: there is no lease, too.
    pub fn heard(&self) -> Option<Timestamp> {
        agent_lease::heard(self.object?, self.renewed(), self.lease?.written.as_ref().map(|time| time.0))
    }

    /// How far the agent's clock is ahead of the hub's; less than nothing if it is behind. None: the lease does not tell.
    pub fn skew(&self) -> Option<SignedDuration> {
        Some(self.renewed()?.duration_since(self.lease?.written.as_ref()?.0))
    }

    /// Whether the agent has renewed its lease of late, as [`agent_lease::is_recent`] has it. None: it has not.
    pub fn is_fresh(&self, now: Timestamp) -> Option<bool> {
        Some(agent_lease::is_recent(self.object?, self.heard()?, now))
    }

    /// Whether the agent has been silent for longer than any restart takes, as [`agent_lease::is_silent`] has it. None: there is no
    /// lease, or it was never renewed.
    pub fn is_silent(&self, now: Timestamp) -> Option<bool> {
        Some(agent_lease::is_silent(self.object?, self.heard()?, now))
    }

    /// The hub that its agent is at, where that one has not come to the hub that was looked at, and does only when its own does not
    /// answer: as the agent's Secrets say, or, of an agent that was not looked at, as it was noted when the cluster was accepted
    /// ahead.
    pub fn elsewhere(&self, facts: &Facts<'_>) -> Option<&str> {
        let hub = facts.snapshot.hub.as_ref()?;
        // What comes here, or has been here, is judged as any other.
        if !self.requests.is_empty() || self.phase() != Some(Phase::Accepted) {
            return None;
        }
        match &self.agent {
            Some(agent) if agent.has_several_hubs() => {
                let identity = agent.side.identity.read()?.as_ref()?;
                let is_other = likeness(hub, identity) == Some(Likeness::OtherHub);
                identity.kubeconfig.as_ref().filter(|_| is_other).map(|kubeconfig| kubeconfig.server.as_str())
            }
            Some(_) => None,
            None => self.object?.metadata.annotations.as_ref()?.get(FALLBACK_OF).map(String::as_str),
        }
    }

    /// Whether it registers by AWS IAM, without certificates.
    pub fn is_aws(&self) -> bool {
        match self.agent {
            Some(agent) => driver(agent.klusterlet) == RegistrationAuthType::AwsIrsa,
            None => self.object.is_some_and(managed::comes_by_aws),
        }
    }

    /// Whether the hub hears from the agent, whatever it looks like from elsewhere: the lease is fresh, or a request of the
    /// agent is there. An agent that has noted no name yet may have sent any of them.
    pub fn is_heard(&self, now: Timestamp) -> bool {
        let noted = self.agent.and_then(|agent| agent.side.identity.read()?.as_ref()?.agent.as_deref());
        let own = |request: &Request| {
            let open = matches!(request.state, State::Pending | State::Approved | State::Issued);
            let user = noted.map(|agent| format!("{}{}:{agent}", identity::PREFIX, self.name));
            let named =
                |user: &String| request.content.as_ref().is_ok_and(|content| content.common_names.contains(user));
            open && user.as_ref().is_none_or(named)
        };
        self.is_fresh(now) == Some(true) || self.requests.iter().any(own)
    }

    /// Whether the hub hears from this agent of its by the way of today: what an agent that has joined asked for before says
    /// nothing of that.
    pub(crate) fn is_there(&self, agent: &Agent<'_>, now: Timestamp) -> bool {
        let asks = || agent.registers(now) && self.is_heard(now);
        self.is_well(now) || self.is_fresh(now) == Some(true) || asks()
    }

    /// Whether the hub hears from the agent and calls the cluster available: what else says otherwise is behind.
    pub fn is_well(&self, now: Timestamp) -> bool {
        self.phase() == Some(Phase::Available) && !self.is_silent(now).unwrap_or_default()
    }
}

impl Agent<'_> {
    /// The certificate that it was let in with.
    pub(crate) fn certificate(&self) -> Option<Certificate> {
        certificate(self.side)
    }

    /// Whether pods of it are known not to be ready.
    pub(crate) fn is_stuck(&self) -> bool {
        self.side.deployments.read().into_iter().flatten().any(|workload| workload.health != Health::Ready)
    }

    /// Whether it has what it was let in with; none: that could not be read.
    pub(crate) fn is_registered(&self, now: Timestamp) -> Option<bool> {
        is_registered(self.klusterlet, self.side, now)
    }

    /// Whether it is known to need what it registers with.
    pub(crate) fn registers(&self, now: Timestamp) -> bool {
        self.is_registered(now) == Some(false)
    }

    /// By which driver it registers.
    pub(crate) fn driver(&self) -> RegistrationAuthType {
        driver(self.klusterlet)
    }

    /// Whether it registers by gRPC.
    pub(crate) fn is_grpc(&self) -> bool {
        self.driver() == RegistrationAuthType::Grpc
    }

    /// Whether it runs on another cluster than the one that it manages.
    pub(crate) fn is_hosted(&self) -> bool {
        self.klusterlet.mode().is_hosted()
    }

    /// Whether it has a list of hubs to register with, one after the other: then its Secrets have other names. Upstream:
    /// `klusterletConfig.populateBootstrap`.
    pub(crate) fn has_several_hubs(&self) -> bool {
        !self.listed().is_empty()
    }

    /// The Secrets of those hubs.
    pub(crate) fn listed(&self) -> &[KubeConfigSecret] {
        let listed = self.hubs_of_spec().filter(|_| self.has_gate_of_hubs());
        listed.map(|listed| listed.kube_config_secrets.as_slice()).unwrap_or_default()
    }

    /// The list of hubs, whether or not it has an effect.
    pub(crate) fn hubs_of_spec(&self) -> Option<&LocalSecretsConfig> {
        let registration = self.klusterlet.spec.registration_configuration.as_ref()?;
        let listed = registration.bootstrap_kube_configs.as_ref()?;
        listed.local_secrets.as_ref().filter(|_| listed.type_ == BootstrapKubeConfigsType::LocalSecrets)
    }

    /// Whether such a list has an effect: the feature gate MultipleHubs, which is off by default. Upstream: `FeatureGateEnabled`
    /// takes the first entry of that name, and knows no AllAlpha.
    pub(crate) fn has_gate_of_hubs(&self) -> bool {
        let registration = self.klusterlet.spec.registration_configuration.iter();
        let mut gates = registration.flat_map(|registration| &registration.feature_gates);
        let gate = gates.find(|gate| gate.feature == "MultipleHubs");
        gate.is_some_and(|gate| gate.mode == Some(FeatureGateMode::Enable))
    }

    /// Whether it works with another hub address or proxy than it registers with: then it registers anew. None: there are no
    /// two kubeconfigs to compare, or it may be at any hub of a list.
    pub(crate) fn has_moved(&self) -> Option<bool> {
        if self.has_several_hubs() {
            return None;
        }
        let works = self.side.identity.read()?.as_ref()?.kubeconfig.as_ref()?;
        let registers = self.kubeconfig()?;
        Some(works.server != registers.server || works.proxy != registers.proxy)
    }

    /// The Secret that it registers with.
    pub(crate) fn bootstrap(&self) -> Option<&SecretFacts> {
        self.side.bootstrap.read()?.as_ref()
    }

    /// The kubeconfig in it.
    pub(crate) fn kubeconfig(&self) -> Option<&KubeconfigFacts> {
        self.bootstrap()?.kubeconfig.as_ref()
    }

    /// The token that it registers with: over gRPC the one of `config.yaml`.
    pub(crate) fn token(&self) -> Option<&TokenFacts> {
        let by_grpc = || self.bootstrap()?.grpc.as_ref()?.token.as_ref();
        let by_api = || self.kubeconfig()?.token.as_ref();
        if self.is_grpc() { by_grpc().or_else(by_api) } else { by_api() }
    }

    /// What its pods dial to register: the proxy, or else the hub.
    pub(crate) fn dials(&self) -> Option<&str> {
        let kubeconfig = self.kubeconfig()?;
        Some(kubeconfig.proxy.as_deref().filter(|proxy| !proxy.is_empty()).unwrap_or(&kubeconfig.server))
    }

    /// Whether its pods have a hosts entry for the address that they dial to register: then DNS need not know the name.
    pub(crate) fn has_hosts_entry(&self) -> bool {
        let alias = self.klusterlet.spec.hub_api_server_host_alias.as_ref();
        let host = self.dials().map(text::host);
        alias.zip(host).is_some_and(|(alias, host)| alias.hostname.eq_ignore_ascii_case(&host))
    }
}
