//! A cluster of the file: its entry, checked, as settings of a join.

use std::collections::BTreeMap;

use ocm_api::names::labels;
use ocm_api::operator::{
    AddOnAuthType, AddOnRegistrationDriver, AwsIrsa, HubApiServerHostAlias, KlusterletMode, RegistrationAuthType,
    RegistrationDriver,
};

use super::fields::{
    authorities, bundle, check_access, digests, feature_gates, nodes, pull_credentials, registry_of, resources, values,
};
use super::file::{Access, AddOnAuthWord, DriverWord, Entry, ModeWord};
use super::wrong::Place;
use super::{Files, Wrong};
use crate::Remedy;
use crate::cluster_name::check_new;
use crate::cluster_sets::can_name;
use crate::grpc;
use crate::join::choices::{self, AddOnDriverError};
use crate::join::gates::GATES;
use crate::join::proxy::{AgentProxy, ProxyUrl};
use crate::join::{CertificateLife, Settings, aws};
use crate::release::Component;
use crate::scheduling::{self, Scheduling};
use crate::values::Kind;
use crate::work::is_object_name;

/// A cluster of a fleet.
#[derive(Clone, Debug)]
pub struct Member {
    /// What its join is to come to.
    pub settings: Settings,
    /// How the cluster is reached on which its agents run.
    pub access: Access,
    /// How it is reached itself, where its agents run on another cluster.
    pub managed: Option<Access>,
    /// Whether pods reach it, in the hosted modes, at the address that it publishes for its own network.
    pub internal_managed: bool,
    /// Whether it may be the hub itself.
    pub itself: bool,
    /// Whether it is accepted, too.
    pub accept: bool,
    /// Whether a namespace of its name that is on the hub already becomes its own.
    pub adopt_namespace: bool,
    /// What is to become of the proxy through which its agent reaches the hub.
    pub proxy: AgentProxy,
    /// What is said about the hub's gRPC server.
    pub grpc: GrpcServer,
    /// Labels that the hub's object of it is to have.
    pub labels: BTreeMap<String, String>,
    /// The set of clusters that it is to be in; none: that which it is in.
    pub cluster_set: Option<String>,
}

/// What is said about the hub's gRPC server.
#[derive(Clone, Debug, Default)]
pub struct GrpcServer {
    /// Host, and port if one is given; none: as the hub says.
    pub server: Option<(String, Option<u16>)>,
    /// Certificates (DER) of its CA; empty: as the hub says.
    pub ca: Vec<Vec<u8>>,
}

impl Member {
    /// How the cluster itself is reached.
    pub fn joining(&self) -> &Access {
        self.managed.as_ref().unwrap_or(&self.access)
    }

    /// Whether the file has its agent register over gRPC.
    pub fn by_grpc(&self) -> bool {
        self.settings.driver.as_ref().is_some_and(|driver| driver.auth_type == RegistrationAuthType::Grpc)
    }
}

/// Refuses in the defaults what can only be of one cluster.
pub(super) fn check_defaults(defaults: &Entry) -> Result<(), Wrong> {
    let Entry { name, context, managed, itself, .. } = defaults;
    let own = [
        ("name", name.is_some()),
        ("context", context.is_some()),
        ("managed", managed.is_some()),
        ("self", itself.is_some()),
    ];
    match own.into_iter().find(|(_, is_there)| *is_there) {
        Some((field, _)) => Err(Place::of("defaults", None).wrong(field, "it is of one cluster: write it there")),
        None => Ok(()),
    }
}

/// Refuses a cluster that has no kubeconfig of its own and names no context: the current one of a kubeconfig that many clusters
/// have says nothing of this one.
pub(super) fn check_named(own: &Entry, defaults: &Entry, place: &Place) -> Result<(), Wrong> {
    match own.context.is_none() && own.kubeconfig.is_none() && defaults.kubeconfig.is_some() {
        true => Err(place
            .wrong("context", "in the kubeconfig of all clusters, only a context says which one it is")
            .hint("name its context, or a kubeconfig of its own")),
        false => Ok(()),
    }
}

/// Refuses of a cluster whose agent runs on itself what would have no effect. In the defaults it is for those that are hosted.
pub(super) fn check_hosted(own: &Entry, defaults: &Entry, place: &Place) -> Result<(), Wrong> {
    let is_hosted = own.mode.or(defaults.mode).map(mode).is_some_and(|mode| mode.is_hosted());
    match own.managed_internal_address == Some(true) && !is_hosted {
        true => Err(place
            .wrong("managedInternalAddress", "it goes with mode: hosted and mode: singleton-hosted")
            .hint("leave it out; for the hub's address: internalAddress: true, in hub")),
        false => Ok(()),
    }
}

/// Checks a cluster that has its defaults.
pub(super) fn read(entry: Entry, place: &Place, files: Files<'_>) -> Result<Member, Wrong> {
    let name = cluster_name(entry.name.clone(), place)?;
    let access = Access {
        kubeconfig: entry.kubeconfig.clone(),
        context: entry.context.clone(),
        act_as: entry.act_as.clone(),
        as_groups: entry.as_groups.clone().unwrap_or_default(),
    };
    check_access(&access, "", place)?;
    let mode = entry.mode.map(mode);
    let is_hosted = mode.as_ref().is_some_and(KlusterletMode::is_hosted);
    match (&entry.managed, is_hosted) {
        (Some(managed), true) => check_access(managed, "managed.", place)?,
        (None, false) => {}
        (None, true) => {
            return Err(place
                .wrong("managed", "in the hosted modes the agent runs on another cluster than the one that joins")
                .hint("name the one that joins: managed: {context: NAME}; context is that of the agent"));
        }
        (Some(_), false) => {
            return Err(place
                .wrong("managed", "it goes with mode: hosted and mode: singleton-hosted")
                .hint("with the agent on the cluster itself, that cluster is named by context and kubeconfig"));
        }
    }
    // In the defaults it is for those clusters that are hosted.
    let internal_managed = entry.managed_internal_address.unwrap_or_default();
    let driver = driver(&entry, place)?;
    let accept = entry.accept.unwrap_or(true);
    if accept && driver.as_ref().is_some_and(|driver| driver.auth_type == RegistrationAuthType::AwsIrsa) {
        return Err(place
            .wrong("accept", "it approves a certificate request, and with an identity of AWS there is none")
            .hint(Remedy::AcceptWithRole));
    }
    if let Some(set) = entry.cluster_set.as_ref().filter(|set| !can_name(set)) {
        return Err(place.wrong("clusterSet", format!("{set:?} cannot be the name of a set of clusters")));
    }
    check_labels(&entry.labels, place)?;
    let (grpc, proxy) = (grpc(&entry, place, files)?, proxy(&entry, place, files)?);
    let settings = settings(name, mode, driver, &entry, place, files)?;
    Ok(Member {
        settings,
        access,
        managed: entry.managed,
        internal_managed: internal_managed && is_hosted,
        itself: entry.itself.unwrap_or_default(),
        accept,
        adopt_namespace: entry.adopt_namespace.unwrap_or_default(),
        proxy,
        grpc,
        labels: entry.labels,
        cluster_set: entry.cluster_set,
    })
}

fn cluster_name(wanted: Option<String>, place: &Place) -> Result<String, Wrong> {
    let wanted = wanted.ok_or_else(|| place.wrong("name", "a cluster has a name"))?;
    match check_new(&wanted) {
        Ok(()) => Ok(wanted),
        Err(error) => {
            let why = match error.cause() {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            };
            let wrong = place.wrong("name", why);
            Err(error.hint().into_iter().fold(wrong, Wrong::hint))
        }
    }
}

fn mode(word: ModeWord) -> KlusterletMode {
    match word {
        ModeWord::Default => KlusterletMode::Default,
        ModeWord::Singleton => KlusterletMode::Singleton,
        ModeWord::Hosted => KlusterletMode::Hosted,
        ModeWord::SingletonHosted => KlusterletMode::SingletonHosted,
    }
}

fn settings(
    name: String,
    mode: Option<KlusterletMode>,
    driver: Option<RegistrationDriver>,
    entry: &Entry,
    place: &Place,
    files: Files<'_>,
) -> Result<Settings, Wrong> {
    let certificate_life = match entry.client_cert_expiration_seconds {
        None => None,
        Some(seconds) => Some(CertificateLife::seconds(seconds).ok_or_else(|| {
            let least = CertificateLife::SHORTEST;
            let why = format!("a certificate lives for {least} seconds at least; 0 leaves it to the hub");
            place.wrong("clientCertExpirationSeconds", why)
        })?),
    };
    Ok(Settings {
        name,
        mode,
        bundle: bundle(entry.bundle_version.as_deref(), place)?,
        registry: entry.registry.as_deref().map(|text| registry_of(text, place)).transpose()?,
        pull_credentials: pull_credentials(entry.image_pull_credential_file.as_deref(), place, files)?,
        create_namespace: entry.create_namespace.unwrap_or(true),
        feature_gates: feature_gates(&entry.feature_gates, GATES, place)?,
        certificate_life,
        annotations: entry.klusterlet_annotations.clone(),
        server_urls: Vec::new(),
        resources: resources(entry.resources.as_ref(), place)?,
        scheduling: Scheduling {
            priority_class: priority_class(entry.priority_class.as_ref(), place)?,
            ..nodes(
                entry.node_selector.as_ref().unwrap_or(&BTreeMap::new()),
                entry.tolerations.as_deref().unwrap_or_default(),
                place,
            )?
        },
        enable_sync_labels: entry.enable_sync_labels,
        driver,
        digests: digests(&entry.image_digests, Component::AGENT, place)?,
        values: values(entry.values.as_ref(), Kind::Klusterlet, place)?,
        host_alias: host_alias(entry.host_alias.as_deref(), place)?,
        addon_driver: addons(entry, place)?,
    })
}

fn host_alias(text: Option<&str>, place: &Place) -> Result<Option<HubApiServerHostAlias>, Wrong> {
    let read = |text: &str| {
        choices::host_alias(text).ok_or_else(|| {
            place
                .wrong("hostAlias", format!("{text:?} is not IP=NAME, with an IPv4 address and the name of a host"))
                .hint("write it as 192.0.2.10=hub.example")
        })
    };
    text.map(read).transpose()
}

fn addons(entry: &Entry, place: &Place) -> Result<Option<AddOnRegistrationDriver>, Wrong> {
    let auth = entry.addon_kubeclient_registration_auth.map(|word| match word {
        AddOnAuthWord::Csr => AddOnAuthType::Csr,
        AddOnAuthWord::Token => AddOnAuthType::Token,
    });
    choices::addon_driver(auth, entry.addon_token_expiration_seconds).map_err(|error| {
        let why = match error {
            AddOnDriverError::NotByToken => "it goes with addonKubeclientRegistrationAuth: token".to_owned(),
            AddOnDriverError::TooShort { shortest } => {
                format!("a token lives for {shortest} seconds at least; 0 leaves it to the agent")
            }
        };
        place.wrong("addonTokenExpirationSeconds", why)
    })
}

fn priority_class(name: Option<&String>, place: &Place) -> Result<Option<String>, Wrong> {
    match name.filter(|name| !is_object_name(name)) {
        Some(bad) => Err(place.wrong("priorityClass", format!("{bad:?} cannot be the name of a PriorityClass"))),
        None => Ok(name.cloned()),
    }
}

fn check_labels(wanted: &BTreeMap<String, String>, place: &Place) -> Result<(), Wrong> {
    for (key, value) in wanted {
        if key == labels::CLUSTER_SET {
            return Err(place
                .wrong("labels", format!("{key} is the set of the cluster"))
                .hint("write clusterSet: NAME"));
        }
        if let Err(error) = scheduling::label(&format!("{key}={value}")) {
            return Err(place.wrong("labels", format!("\"{key}: {value}\" cannot be a label: {error}")));
        }
    }
    Ok(())
}

/// By which driver the agent registers; none: as it is.
fn driver(entry: &Entry, place: &Place) -> Result<Option<RegistrationDriver>, Wrong> {
    let driver = entry.registration_auth;
    let fields = [
        ("grpcServer", entry.grpc_server.is_some(), DriverWord::Grpc, "grpc"),
        ("grpcCaFile", entry.grpc_ca_file.is_some(), DriverWord::Grpc, "grpc"),
        ("hubClusterArn", entry.hub_cluster_arn.is_some(), DriverWord::AwsIrsa, "awsirsa"),
        ("managedClusterArn", entry.managed_cluster_arn.is_some(), DriverWord::AwsIrsa, "awsirsa"),
    ];
    if let Some((field, _, _, word)) = fields.into_iter().find(|(_, is_there, of, _)| *is_there && driver != Some(*of))
    {
        return Err(place.wrong(field, format!("it goes with registrationAuth: {word}")));
    }
    let plain = |auth_type| Ok(Some(RegistrationDriver { auth_type, aws_irsa: None }));
    match driver {
        None => Ok(None),
        Some(DriverWord::Csr) => plain(RegistrationAuthType::Csr),
        Some(DriverWord::Grpc) => plain(RegistrationAuthType::Grpc),
        Some(DriverWord::AwsIrsa) => {
            let (Some(hub), Some(managed)) = (&entry.hub_cluster_arn, &entry.managed_cluster_arn) else {
                return Err(place.wrong("registrationAuth", "awsirsa needs hubClusterArn and managedClusterArn"));
            };
            for (field, arn) in [("hubClusterArn", hub), ("managedClusterArn", managed)] {
                if aws::account(arn).is_none() {
                    return Err(place
                        .wrong(field, format!("{arn:?} is no ARN of an EKS cluster"))
                        .hint("write it as arn:aws:eks:REGION:ACCOUNT:cluster/NAME, with an account of 12 digits"));
                }
            }
            if hub == managed {
                return Err(place.wrong("managedClusterArn", "it names the same cluster as hubClusterArn"));
            }
            let clusters = AwsIrsa { hub_cluster_arn: hub.clone(), managed_cluster_arn: managed.clone() };
            let auth_type = RegistrationAuthType::AwsIrsa;
            Ok(Some(RegistrationDriver { auth_type, aws_irsa: Some(clusters) }))
        }
    }
}

fn grpc(entry: &Entry, place: &Place, files: Files<'_>) -> Result<GrpcServer, Wrong> {
    let server = match &entry.grpc_server {
        None => None,
        Some(text) => Some(grpc::Address::parse(text).ok_or_else(|| {
            place
                .wrong("grpcServer", format!("{text:?} is not HOST or HOST:PORT"))
                .hint("write it as hub.example:443; without a port it is 443")
        })?),
    };
    Ok(GrpcServer { server, ca: authorities("grpcCaFile", entry.grpc_ca_file.as_deref(), place, files)? })
}

fn proxy(entry: &Entry, place: &Place, files: Files<'_>) -> Result<AgentProxy, Wrong> {
    let needless = || place.wrong("proxyCaFile", "it goes with an https proxyUrl: agents verify no other proxy");
    let ca = entry.proxy_ca_file.as_deref();
    let url = match entry.proxy_url.as_deref().map(str::trim) {
        None if ca.is_none() => return Ok(AgentProxy::AsItIs),
        Some("") if ca.is_none() => return Ok(AgentProxy::Without),
        None | Some("") => return Err(needless()),
        // The URL may hold a password.
        Some(url) => ProxyUrl::parse(url).map_err(|why| {
            place
                .wrong("proxyUrl", format!("it cannot be the proxy of an agent: {why}"))
                .hint("write it as http://HOST:PORT or https://HOST:PORT, with the address at which pods reach it")
        })?,
    };
    if ca.is_some() && !url.is_https() {
        return Err(needless());
    }
    Ok(AgentProxy::Through { url, ca: authorities("proxyCaFile", ca, place, files)? })
}
