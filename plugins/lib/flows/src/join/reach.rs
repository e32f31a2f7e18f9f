//! The hub: how it is reached, who vouches for it, and whether it lets this cluster register.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::config::Kubeconfig;
use ocm_api::ManagedCluster;
use ocm_api::names::labels;
use ocm_core::csr::{Request, State};
use ocm_core::join::agent::{self, Agent, Credential};
use ocm_core::join::state::Belonging;
use ocm_core::kubeconfig::{Bootstrap, HubAddress};
use ocm_core::phase::{Phase, standing};
use ocm_core::pin::Pin;
use ocm_core::token::{self, Content};
use ocm_core::{Event, Failure, Narrator, Reason};
use ocm_kube::access::{Right, require};
use ocm_kube::apply::FIELD_MANAGER;
use ocm_kube::{Cluster, Connection, connect_with};
use ocm_net::{Endpoint, Source};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use super::{Wish, taken};
use crate::hub::{self, AddressWish, CLUSTER_INFO_PATH, HANDSHAKE};

/// How the hub is reached.
#[derive(Clone)]
pub enum Way {
    /// With a token that somebody else made.
    Token {
        /// The token.
        token: SecretString,
        /// The hub's address as agents dial it.
        server: String,
        /// Why the hub is believed to be the hub.
        trust: Trust,
    },
    /// With access to both clusters: the user holds the hub's kubeconfig too.
    Seat {
        /// The hub.
        hub: Box<Cluster>,
        /// Where agents find it.
        address: AddressWish,
    },
}

/// Why a hub is believed to be the hub. Empty: the system's authorities vouch for it.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// Keys of authorities.
    pub pins: Vec<Pin>,
    /// Certificates of authorities.
    pub ca: Vec<Vec<u8>>,
    /// Nobody: the user typed that verification be skipped.
    pub skip: bool,
}

/// The hub, found and verified.
pub(super) struct Hub {
    /// As agents dial and trust it.
    pub(super) address: HubAddress,
    /// With the user's own rights, with access to both clusters.
    pub(super) admin: Option<Cluster>,
    /// The token that was given.
    pub(super) token: Option<SecretString>,
    /// With that token.
    registrar: Option<Cluster>,
}

/// Finds the hub and who vouches for it.
pub(super) async fn reach(wish: &Wish, narrator: Arc<dyn Narrator>) -> Result<Hub, Failure> {
    match &wish.way {
        Way::Seat { hub, address } => {
            let (place, uid) = futures::join!(hub::address(hub, address, narrator.as_ref()), hub::uid(hub));
            let address = HubAddress { uid, ..place?.address };
            Ok(Hub { address, admin: Some((**hub).clone()), token: None, registrar: None })
        }
        Way::Token { token, server, trust } => {
            token::check(token.expose_secret(), Timestamp::now())?;
            let endpoint = Endpoint::parse(server, None)?;
            if endpoint.is_loopback() && !wish.internal {
                return Err(Failure::usage(format!(
                    "agents cannot reach the hub at {server}: to a pod that is the pod itself"
                ))
                .hint("name the address that this cluster reaches: --hub-apiserver https://HOST:PORT")
                .hint("or use the one that the hub publishes: --force-internal-endpoint-lookup"));
            }
            let ca = authority(&endpoint, trust, narrator.as_ref()).await?;
            let mut address = HubAddress { server: server.clone(), ca, ..HubAddress::default() };
            if trust.skip {
                address.ca = unverified_authority(&address, &endpoint, token, narrator.clone()).await?;
            } else if address.ca.is_empty() {
                address.ca = published_authority(&address, &endpoint, token, narrator.clone()).await?;
            }
            if wish.internal {
                address = internal(address, token, narrator.clone()).await?;
            }
            let bootstrap =
                Bootstrap { hub: address.clone(), token: token.expose_secret().to_owned(), exclusive: false };
            let registrar = client(&bootstrap, narrator).await?;
            Ok(Hub { address, admin: None, token: Some(token.clone()), registrar: Some(registrar) })
        }
    }
}

/// Whether the cluster that is to join is the hub: it has the hub's address, or is the same cluster under another one.
pub async fn is_itself(managed: &Cluster, way: &Way) -> bool {
    match way {
        Way::Token { server, .. } => at(&managed.server).is_at(server),
        Way::Seat { hub, .. } if at(&managed.server).is_at(&hub.server) => true,
        Way::Seat { hub, .. } => {
            let (own, other) = futures::join!(hub::uid(managed), hub::uid(hub));
            own.is_some() && own == other
        }
    }
}

fn at(server: &str) -> HubAddress {
    HubAddress { server: server.to_owned(), ..HubAddress::default() }
}

/// Narrows what a cluster knows of its hub down to the authorities that vouch for it, where the hub can be reached.
pub(super) async fn narrow(known: &mut HubAddress, wanted: &HubAddress) {
    if known.ca.len() > 1
        && !known.is_at(&wanted.server)
        && let Ok(endpoint) = Endpoint::parse(&known.server, None)
    {
        known.ca = hub::vouching(&endpoint, &known.ca).await;
    }
}

/// The certificates that vouch for the endpoint, as the user wishes to trust it; empty: the system's.
async fn authority(endpoint: &Endpoint, trust: &Trust, narrator: &dyn Narrator) -> Result<Vec<Vec<u8>>, Failure> {
    let Trust { pins, ca, skip: _ } = trust;
    if !ca.is_empty() {
        let mut trusted = ca.clone();
        if !pins.is_empty() {
            // Both were said, so both must hold.
            trusted.retain(|certificate| Pin::of(certificate).is_some_and(|pin| pins.contains(&pin)));
            if trusted.is_empty() {
                return Err(Failure::new(Reason::Tls, "the CA that was given does not have the pinned key")
                    .hint("take both from the same line: kubectl ocm token create"));
            }
        }
        ocm_net::verify(endpoint, &trusted, HANDSHAKE).await?;
        return Ok(hub::vouching(endpoint, &trusted).await);
    }
    if !pins.is_empty() {
        let learned = ocm_net::learn(endpoint, pins, CLUSTER_INFO_PATH, hub::published, HANDSHAKE).await?;
        let how = match learned.source {
            Source::Handshake => "presents",
            Source::Published => "publishes",
        };
        narrator.tell(Event::note(format!("{endpoint} {how} the CA with the pinned key")));
        return Ok(learned.authorities);
    }
    Ok(Vec::new())
}

/// The system's authorities vouch for the endpoint, or nobody does. Agents may have none of them, so an authority is
/// looked for that can be written into their kubeconfig.
async fn published_authority(
    address: &HubAddress,
    endpoint: &Endpoint,
    token: &SecretString,
    narrator: Arc<dyn Narrator>,
) -> Result<Vec<Vec<u8>>, Failure> {
    let bootstrap = Bootstrap { hub: address.clone(), token: token.expose_secret().to_owned(), exclusive: false };
    let unverified = |failure: Failure| {
        if failure.reason != Reason::Tls {
            return failure;
        }
        // What to do about a hub of one's own differs from what the certificate's error would suggest.
        Failure {
            hints: Vec::new(),
            causes: failure.causes.into_iter().filter(|cause| !cause.starts_with("cannot")).collect(),
            ..failure
        }
        .context(format!("{endpoint} is not verified, so the token was not sent: nothing says whose hub it is"))
        .hint("with the line of kubectl ocm token create comes a pin: --hub-ca-pin sha256:…")
        .hint("or give the CA: --ca-file FILE")
    };
    let hub = client(&bootstrap, narrator.clone()).await?;
    let info = hub::cluster_info(&hub).await.map_err(unverified)?;
    let mut candidates = vec![info.map(|info| info.ca).unwrap_or_default()];
    candidates.push(hub::root_ca(&hub).await.unwrap_or_default());
    for candidate in candidates.into_iter().filter(|candidate| !candidate.is_empty()) {
        if ocm_net::verify(endpoint, &candidate, HANDSHAKE).await.is_ok() {
            return Ok(hub::vouching(endpoint, &candidate).await);
        }
    }
    narrator.tell(Event::note(format!("agents verify {endpoint} with the authorities of their own system")));
    Ok(Vec::new())
}

/// The authority that whoever answers calls its own. From then on everything is verified with it, also by the agents.
async fn unverified_authority(
    address: &HubAddress,
    endpoint: &Endpoint,
    token: &SecretString,
    narrator: Arc<dyn Narrator>,
) -> Result<Vec<Vec<u8>>, Failure> {
    narrator
        .tell(Event::warning(format!("{endpoint} is not verified, which is vulnerable to man-in-the-middle attacks")));
    let bootstrap = Bootstrap { hub: address.clone(), token: token.expose_secret().to_owned(), exclusive: false };
    let hub = client_of(&bootstrap, true, narrator).await?;
    let info = hub::cluster_info(&hub).await?.map(|info| info.ca).unwrap_or_default();
    for candidate in [info, hub::root_ca(&hub).await?].into_iter().filter(|candidate| !candidate.is_empty()) {
        if ocm_net::verify(endpoint, &candidate, HANDSHAKE).await.is_ok() {
            return Ok(hub::vouching(endpoint, &candidate).await);
        }
    }
    Err(Failure::new(
        Reason::Tls,
        format!("{endpoint} tells no CA that vouches for it, and agents do not join without"),
    )
    .hint("give the CA of that address: --ca-file FILE"))
}

/// The address that the hub publishes for its own network, verified as well as the first one.
async fn internal(
    address: HubAddress,
    token: &SecretString,
    narrator: Arc<dyn Narrator>,
) -> Result<HubAddress, Failure> {
    let bootstrap = Bootstrap { hub: address.clone(), token: token.expose_secret().to_owned(), exclusive: false };
    let hub = client(&bootstrap, narrator.clone()).await?;
    let wish = AddressWish { server: None, internal: true, ca: address.ca, flag: "--hub-apiserver", unverified: false };
    Ok(hub::address(&hub, &wish, narrator.as_ref()).await?.address)
}

/// A client that is what an agent with this kubeconfig is to the hub.
pub(super) async fn client(bootstrap: &Bootstrap, narrator: Arc<dyn Narrator>) -> Result<Cluster, Failure> {
    client_of(bootstrap, false, narrator).await
}

async fn client_of(bootstrap: &Bootstrap, skip: bool, narrator: Arc<dyn Narrator>) -> Result<Cluster, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::other("the hub's address cannot be used").because(error);
    let kubeconfig = Kubeconfig::from_yaml(&bootstrap.to_yaml()).map_err(|error| failed(&error))?;
    let connection = Connection {
        insecure_skip_tls_verify: skip,
        request_timeout: Some(std::time::Duration::from_secs(15)),
        flag_prefix: "hub-",
        ..Connection::default()
    };
    connect_with(kubeconfig, &connection, narrator).await
}

/// Asks the hub for the cluster with the kubeconfig that an agent registers with.
///
/// # Errors
/// A sentence of its own for a token that has expired or is not known, one that may not register clusters, a server
/// that is no hub, a wrong authority and a wrong address.
pub(super) async fn ask(
    bootstrap: &Bootstrap,
    name: &str,
    narrator: Arc<dyn Narrator>,
) -> Result<Option<ManagedCluster>, Failure> {
    registered(&client(bootstrap, narrator).await?, &bootstrap.token, name).await
}

/// The cluster, read by somebody who registers with `token`.
async fn registered(hub: &Cluster, token: &str, name: &str) -> Result<Option<ManagedCluster>, Failure> {
    let api: Api<ManagedCluster> = Api::all(hub.client.clone());
    match api.get_opt(name).await {
        // `get_opt` takes every 404 for an absent object, also that of a kind that is not served.
        Ok(None) => match api.list_metadata(&ListParams::default().limit(1)).await {
            Ok(_) => Ok(None),
            Err(error) => Err(said(hub, token, &error)),
        },
        Ok(found) => Ok(found),
        Err(error) => Err(said(hub, token, &error)),
    }
}

/// What a hub's answer to a registering agent means.
fn said(hub: &Cluster, token: &str, error: &kube::Error) -> Failure {
    let failure = ocm_kube::explain(error);
    let server = &hub.server;
    let now = Timestamp::now();
    match failure.reason {
        Reason::Unauthorized => match token::read(token) {
            Content::Jwt { expires: Some(expires), .. } if expires <= now => token::expired(expires, now),
            Content::Bootstrap(id) => Failure::new(
                Reason::Unauthorized,
                format!("the hub at {server} does not accept bootstrap token {id:?}"),
            )
            .because("it has expired, was revoked, or is of another hub")
            .hint("see what the hub has: kubectl ocm token list; make a new one: kubectl ocm token create"),
            _ => Failure::new(Reason::Unauthorized, format!("the hub at {server} does not accept the token"))
                .because("it was revoked, is of another hub, or was not copied whole")
                .hint("make a new one on that hub: kubectl ocm token create"),
        },
        Reason::Forbidden => {
            let causes = failure.causes.clone();
            let failure = Failure::new(
                Reason::Forbidden,
                format!("the hub at {server} knows the token, but its holder may not register clusters"),
            )
            .hint("on the hub, kubectl ocm install hub restores what registering clusters may do");
            causes.into_iter().fold(failure, Failure::because)
        }
        Reason::NotFound | Reason::KindNotServed => not_a_hub(server),
        _ => failure.context(format!("cannot ask the hub at {server}")),
    }
}

fn not_a_hub(server: &str) -> Failure {
    Failure::new(
        Reason::KindNotServed,
        format!("{server} is a Kubernetes cluster, but no hub: it has no managed clusters"),
    )
    .hint("make it one: kubectl ocm install hub")
}

/// The namespace of the cluster's name on the hub.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HubNamespace {
    /// There is none, or none that may be seen.
    Free,
    /// It was made for a managed cluster of this name.
    Left,
    /// It is nobody's cluster's, and becomes this one's.
    Adopted,
}

/// What a cluster is checked against on the hub.
pub(super) struct Registrant<'a> {
    /// The name that it is to get.
    pub(super) name: &'a str,
    /// How it stands to this hub.
    pub(super) belongs: Belonging,
    /// Its agent, as far as it has written down who it is.
    pub(super) agent: &'a Agent,
    /// What the hub knows the requests of its agent by.
    pub(super) credential: Credential,
    /// Whether the kubeconfig that is there still serves.
    pub(super) serves: bool,
    /// Whether a namespace of its name that is somebody else's becomes its own.
    pub(super) adopt_namespace: bool,
}

impl Hub {
    /// The hub, with whatever rights there are.
    fn eyes(&self) -> Option<&Cluster> {
        self.admin.as_ref().or(self.registrar.as_ref())
    }

    /// The managed cluster on the hub.
    ///
    /// # Errors
    /// What the hub said.
    pub(super) async fn cluster(&self, name: &str) -> Result<Option<ManagedCluster>, Failure> {
        match (&self.admin, &self.registrar, &self.token) {
            (Some(admin), _, _) => cluster(admin, name).await,
            (None, Some(registrar), Some(token)) => registered(registrar, token.expose_secret(), name).await,
            _ => Ok(None),
        }
    }

    /// Checks what can be checked on the hub before anything is touched: that it is one, that the token registers
    /// clusters, and that the name is free. Says who used the name before.
    ///
    /// # Errors
    /// A refusal or what the hub said. Returns whether a namespace is to be adopted.
    pub(super) async fn check(&self, who: &Registrant<'_>, narrator: &dyn Narrator) -> Result<bool, Failure> {
        let Registrant { name, belongs, serves, adopt_namespace, .. } = *who;
        let (cluster, rights, namespace, requests) = futures::join!(
            self.cluster(name),
            self.rights(serves),
            self.namespace_is_free(name, adopt_namespace),
            self.requests(name),
        );
        let cluster = cluster?;
        rights?;
        let namespace = namespace?;
        let adopts = namespace == HubNamespace::Adopted;
        if namespace == HubNamespace::Left && cluster.is_none() {
            narrator.tell(Event::note(format!(
                "the name {name:?} was used on the hub before: certificates of its earlier agents stay valid until they \
                 expire, and get their rights back with the name"
            )));
        }
        if adopts {
            if let Some(hub) = self.eyes() {
                let right = Right::new("patch", "", "namespaces").on(name);
                require(hub, "give the cluster a namespace that is there", &[right]).await?;
            }
            narrator.tell(Event::note(format!(
                "on the hub the namespace {name:?} is there already and becomes the cluster's: its agent gets rights in it"
            )));
        }
        let foreign = |(request, object): &&(Request, CertificateSigningRequest)| {
            let own = who.agent.made(&who.credential, request, object) == Some(true);
            request.state == State::Pending && !request.is_addons() && !own
        };
        let requests = requests?;
        let strangers = agent::describe(requests.iter().filter(foreign).map(|(request, _)| request));
        if !strangers.is_empty() {
            narrator.tell(Event::warning(format!(
                "on the hub somebody else asks for a certificate in the name of {name:?} already: {strangers}"
            )));
        }
        let Some(cluster) = cluster else { return Ok(adopts) };
        let standing = standing(&cluster);
        if belongs == Belonging::Nobody
            && let Some(since) = &cluster.metadata.creation_timestamp
        {
            narrator.tell(Event::warning(format!(
                "the hub has had a managed cluster {name:?} since {}, which this cluster did not register",
                since.0
            )));
        }
        match standing.phase {
            Phase::Detaching => Err(detaching(name, standing.message)),
            Phase::Denied => Err(denied(name)),
            // A join that was begun goes on, and one that waits for acceptance may be anybody's.
            Phase::Pending | Phase::Accepted => Ok(adopts),
            Phase::Joined | Phase::Available | Phase::Unavailable | Phase::Unknown if belongs == Belonging::Begun => {
                Ok(adopts)
            }
            phase => Err(taken(name, &format!("it is {}", phase.to_string().to_ascii_lowercase()))),
        }
    }

    /// Marks the namespace of the cluster's name as its own, as the hub does with those that it makes.
    ///
    /// # Errors
    /// What the hub said.
    pub(super) async fn adopt_namespace(&self, name: &str) -> Result<(), Failure> {
        let Some(hub) = self.eyes() else { return Ok(()) };
        let api: Api<Namespace> = Api::all(hub.client.clone());
        let patch = json!({"metadata": {"labels": {labels::CLUSTER_NAME: name}}});
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let patched = api.patch_metadata(name, &params, &Patch::Merge(patch)).await;
        patched.map_err(|error| hub.explain(format_args!("label namespace {name:?}"), error))?;
        Ok(())
    }

    /// Checks that the hub still knows a cluster that has joined it.
    ///
    /// # Errors
    /// A refusal that says which side forgot the other.
    pub(super) async fn remembers(&self, name: &str, label: &str, klusterlet: &str) -> Result<(), Failure> {
        let Some(cluster) = self.cluster(name).await? else {
            return Err(Failure::refused(format!(
                "{label} has joined the hub at {} as {name:?}, but the hub has no managed cluster of this name: it was \
                 removed there; nothing was changed",
                self.address.server
            ))
            .hint(format!(
                "to register it anew: kubectl delete klusterlet {klusterlet}, on {label}; then run this again"
            )));
        };
        let standing = standing(&cluster);
        match standing.phase {
            Phase::Detaching => Err(detaching(name, standing.message)),
            Phase::Denied => Err(denied(name)),
            _ => Ok(()),
        }
    }

    /// What registering needs of the hub's side.
    async fn rights(&self, serves: bool) -> Result<(), Failure> {
        match (&self.admin, &self.registrar, &self.token) {
            (Some(admin), _, _) => {
                let mut rights = vec![Right::new("get", "cluster.open-cluster-management.io", "managedclusters")];
                if !serves {
                    let mint = Right::new("create", "", "serviceaccounts/token");
                    let mint = mint.within(ocm_api::names::namespaces::OPERATOR);
                    rights.push(mint.on(ocm_api::names::bootstrap::SERVICE_ACCOUNT));
                }
                require(admin, "register clusters on the hub", &rights).await
            }
            (None, Some(registrar), Some(token)) => may_register(registrar, token.expose_secret()).await,
            _ => Ok(()),
        }
    }

    /// The requests in the cluster's name. Who may not list them finds out nothing.
    async fn requests(&self, name: &str) -> Result<Vec<(Request, CertificateSigningRequest)>, Failure> {
        let Some(hub) = self.eyes() else { return Ok(Vec::new()) };
        match requests(hub, name).await {
            Ok(found) => Ok(found),
            Err(error) => {
                let failure = hub.explain("list certificate requests", error);
                if failure.reason == Reason::Forbidden { Ok(Vec::new()) } else { Err(failure) }
            }
        }
    }

    /// What the hub has under the cluster's name. A namespace that is going away, or is somebody
    /// else's, is in the way.
    async fn namespace_is_free(&self, name: &str, adopt: bool) -> Result<HubNamespace, Failure> {
        let Some(hub) = self.eyes() else { return Ok(HubNamespace::Free) };
        let api: Api<Namespace> = Api::all(hub.client.clone());
        let found = match api.get_metadata_opt(name).await {
            Ok(found) => found,
            Err(error) => {
                let failure = hub.explain(format_args!("read namespace {name:?}"), error);
                // Who may not look finds out from the hub's controllers.
                return if failure.reason == Reason::Forbidden { Ok(HubNamespace::Free) } else { Err(failure) };
            }
        };
        let Some(namespace) = found else { return Ok(HubNamespace::Free) };
        if namespace.metadata.deletion_timestamp.is_some() {
            return Err(Failure::refused(format!(
                "on the hub the namespace {name:?} of an earlier cluster is still going away"
            ))
            .hint("wait until it is gone, then run this again"));
        }
        let owner = namespace.metadata.labels.as_ref().and_then(|labels| labels.get(labels::CLUSTER_NAME));
        match owner.map(String::as_str) {
            Some(owner) if owner == name => Ok(HubNamespace::Left),
            _ if adopt => Ok(HubNamespace::Adopted),
            _ => Err(Failure::refused(format!(
                "on the hub a namespace {name:?} exists that is not a managed cluster's, and the cluster's agent would get \
                 rights in it; nothing was changed"
            ))
            .hint("choose another name; or, if that namespace is meant for this cluster, add --adopt-namespace")),
        }
    }
}

fn detaching(name: &str, why: String) -> Failure {
    Failure::refused(format!("the hub is removing managed cluster {name:?}"))
        .because(why)
        .hint("wait until it is gone, then run this again")
}

fn denied(name: &str) -> Failure {
    Failure::refused(format!("the hub has denied {name:?}; nothing was changed"))
        .hint(format!("an administrator of the hub can change that: kubectl ocm accept {name}"))
}

/// The requests on the hub that carry the cluster's label.
pub(super) async fn requests(
    hub: &Cluster,
    name: &str,
) -> Result<Vec<(Request, CertificateSigningRequest)>, kube::Error> {
    let api: Api<CertificateSigningRequest> = Api::all(hub.client.clone());
    let labelled = ListParams::default().labels(&format!("{}={name}", labels::CLUSTER_NAME));
    let list = api.list(&labelled).await?;
    Ok(list.items.into_iter().map(|object| (Request::read(&object), object)).collect())
}

/// The managed cluster, read by somebody with the hub's kubeconfig.
pub(super) async fn cluster(hub: &Cluster, name: &str) -> Result<Option<ManagedCluster>, Failure> {
    let api: Api<ManagedCluster> = Api::all(hub.client.clone());
    match api.get(name).await {
        Ok(found) => Ok(Some(found)),
        Err(error) => {
            let failure = hub.explain(format_args!("read managed cluster {name:?}"), error);
            match failure.reason {
                Reason::NotFound => Ok(None),
                Reason::KindNotServed => Err(not_a_hub(&hub.server)),
                _ => Err(failure),
            }
        }
    }
}

/// Whether the holder of the token may do what an agent does to register.
async fn may_register(hub: &Cluster, token: &str) -> Result<(), Failure> {
    let api: Api<SelfSubjectAccessReview> = Api::all(hub.client.clone());
    let asked = [
        ("create", "cluster.open-cluster-management.io", "managedclusters"),
        ("create", "certificates.k8s.io", "certificatesigningrequests"),
        ("list", "certificates.k8s.io", "certificatesigningrequests"),
    ]
    .map(async |(verb, group, resource)| {
        let attributes = ResourceAttributes {
            verb: Some(verb.to_owned()),
            group: Some(group.to_owned()),
            resource: Some(resource.to_owned()),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        };
        let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
        let answer = api.create(&PostParams::default(), &review).await;
        let answer = answer.map_err(|error| said(hub, token, &error))?;
        if !answer.status.is_some_and(|status| status.allowed) {
            return Err(Failure::new(
                Reason::Forbidden,
                format!("the hub at {} knows the token, but its holder may not register clusters", hub.server),
            )
            .because(format!("may not {verb} {resource}.{group}"))
            .hint("on the hub, kubectl ocm install hub restores what registering clusters may do"));
        }
        Ok(())
    });
    futures::future::try_join_all(asked).await?;
    Ok(())
}
