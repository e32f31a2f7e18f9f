//! By which driver the agent registers, and over gRPC at which server. Nothing is changed here.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use ocm_api::ClusterManager;
use ocm_api::names::{namespaces, secrets};
use ocm_api::operator::RegistrationAuthType;
use ocm_core::grpc::{self, Address, Server};
use ocm_core::join::membership::Belonging;
use ocm_core::join::{driver_of, registers_anew};
use ocm_core::{Failure, Reason, Remedy, certificate};
use ocm_kube::Cluster;
use ocm_net::Endpoint;

use super::request::GrpcOptions;
use super::session::HubSession;
use super::survey::Survey;
use crate::{grpc_server, hub};

/// The driver by which the agent is to register.
pub(super) struct Chosen {
    /// The driver.
    pub(super) driver: RegistrationAuthType,
    /// The hub's gRPC server, over gRPC; where the driver was typed, it was seen to be vouched for.
    pub(super) grpc: Option<Server>,
    /// Whether an agent that has joined registers anew for it: by another driver, or at another gRPC server.
    pub(super) is_another: bool,
}

impl Chosen {
    /// The driver of a cluster that stands to the hub as `belongs` says. `wanted` is the one that was typed, if one was.
    ///
    /// # Errors
    /// A refusal where the hub does not let clusters register so; when its gRPC server is not known, cannot be reached, or
    /// is not vouched for; the failure of a request.
    pub(super) async fn of(
        wanted: Option<&RegistrationAuthType>,
        options: &GrpcOptions,
        hub: &HubSession,
        survey: &Survey,
        belongs: Belonging,
    ) -> Result<Self, Failure> {
        let former = driver_of(survey.live.klusterlet.as_ref());
        let there = survey.found.bootstrap.as_ref().and_then(|bootstrap| bootstrap.grpc.clone());
        let Some(driver) = wanted else {
            let grpc = match former {
                RegistrationAuthType::Grpc => there,
                _ => None,
            };
            return Ok(Self { driver: former, grpc, is_another: false });
        };
        let manager = match hub.admin() {
            Some(admin) => grpc_server::manager(admin).await?,
            None => None,
        };
        if let Some(manager) = &manager
            && !grpc::offers(manager, driver)
        {
            let server = &hub.address.server;
            return Err(Failure::refused(format!(
                "the hub at {server} does not let clusters register by {driver}: its ClusterManager does not list this \
                 driver; nothing was changed"
            ))
            .hint(Remedy::OfferDriver(driver.to_string())));
        }
        let grpc = match driver {
            RegistrationAuthType::Grpc => Some(server(options, hub, manager.as_ref()).await?),
            _ => None,
        };
        let is_another =
            belongs == Belonging::Joined && registers_anew((&former, there.as_ref()), (driver, grpc.as_ref()));
        if is_another && [driver, &former].contains(&&RegistrationAuthType::AwsIrsa) {
            return Err(Failure::refused(format!(
                "the cluster has joined by {former}, and is not moved to {driver} as it is; nothing was changed"
            ))
            .because("with an identity of AWS it has no certificate that could be replaced")
            .hint(Remedy::Unjoin("CLUSTER".to_owned())));
        }
        Ok(Self { driver: driver.clone(), grpc, is_another })
    }

    /// Whether the agent registers over gRPC.
    pub(super) fn is_grpc(&self) -> bool {
        self.driver == RegistrationAuthType::Grpc
    }
}

/// The hub's gRPC server, with the CA that vouches for it.
async fn server(options: &GrpcOptions, hub: &HubSession, manager: Option<&ClusterManager>) -> Result<Server, Failure> {
    let address = match &options.server {
        Some((host, port)) => Address { host: host.clone(), port: port.unwrap_or(grpc::USUAL_PORT) },
        None => published(hub, manager).await?,
    };
    let endpoint = Endpoint::of(&address.host, address.port).map_err(|error| {
        Failure::usage(format!("no certificate can be for the gRPC server {address}"))
            .because(error)
            .hint(Remedy::GrpcAddress)
    })?;
    if endpoint.is_loopback() {
        return Err(Failure::usage(format!(
            "agents cannot reach the gRPC server at {address}: to a pod that is the pod itself"
        ))
        .hint(Remedy::GrpcAddress));
    }
    let ca = match options.ca.is_empty() {
        false => options.ca.clone(),
        true => authority(hub.client()).await?,
    };
    hub::vouching(&endpoint, &ca).await.map_err(|failure| {
        let remedy = if failure.reason == Reason::Tls { Remedy::GrpcCa } else { Remedy::GrpcAddress };
        failure
            .context(format!("the hub's gRPC server at {address} was not verified; nothing was changed"))
            .hint(remedy)
    })?;
    Ok(Server { address, ca })
}

/// Where the hub says that agents find its gRPC server.
async fn published(hub: &HubSession, manager: Option<&ClusterManager>) -> Result<Address, Failure> {
    let (Some(admin), Some(manager)) = (hub.admin(), manager) else {
        let why = match hub.admin() {
            None => "a token does not say where the hub's gRPC server is",
            Some(_) => "the hub's ClusterManager, which says where its gRPC server is, is not there or may not be read",
        };
        return Err(Failure::usage(why).hint(Remedy::GrpcAddress));
    };
    grpc_server::published(admin, manager).await?.ok_or_else(|| {
        Failure::refused(format!(
            "the hub at {} does not say where agents find its gRPC server; nothing was changed",
            hub.address.server
        ))
        .because(
            "serverConfiguration.endpointsExposure of its ClusterManager names no host, and no load balancer has an address",
        )
        .hint(Remedy::GrpcAddress)
    })
}

/// The authorities that vouch for the hub's servers, and that its gRPC server verifies agents with.
pub(super) async fn authority(hub: &Cluster) -> Result<Vec<Vec<u8>>, Failure> {
    let (namespace, name) = (namespaces::HUB, secrets::CA_BUNDLE_CONFIGMAP);
    let api: Api<ConfigMap> = Api::namespaced(hub.client.clone(), namespace);
    let found = api.get_opt(name).await;
    let found = found.map_err(|error| {
        hub.explain(format_args!("read ConfigMap {namespace}/{name}, the CA of the hub's gRPC server"), error)
            .hint(Remedy::GrpcCa)
    })?;
    let pem = found.and_then(|map| map.data?.remove(secrets::CA_BUNDLE_KEY)).unwrap_or_default();
    let (authorities, _) = certificate::readable(pem.as_bytes());
    if authorities.is_empty() {
        return Err(Failure::new(
            Reason::Tls,
            format!("the hub has no CA for its gRPC server: there is none in ConfigMap {namespace}/{name}"),
        )
        .hint(Remedy::GrpcCa)
        .hint(Remedy::HubStart));
    }
    Ok(authorities)
}
