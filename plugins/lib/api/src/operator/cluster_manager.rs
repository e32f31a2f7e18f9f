//! The hub's operator object.

use k8s_openapi::ByteString;
use kube_derive::CustomResource;
use serde::Serialize;

use super::spec::{FeatureGate, NodePlacement, RegistrationAuthType, ResourceRequirement};
use super::status::OperatorStatus;
#[cfg(feature = "schema")]
use crate::field_schema;
use crate::member::Member;

/// What the hub's operator installs. Upstream: `ClusterManagerSpec`.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", kube(schema = "derived"))]
#[cfg_attr(not(feature = "schema"), kube(schema = "disabled"))]
#[kube(
    group = "operator.open-cluster-management.io",
    version = "v1",
    kind = "ClusterManager",
    plural = "clustermanagers",
    status = "OperatorStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "The hub: which controllers run on it, from which images and with which settings. Its name prefixes every hub object."
)]
// Upstream's schema does not require a spec, kube-derive's root does, and `attr` takes no serde attribute as such.
#[kube(attr = "cfg_attr(all(), serde(default))")]
#[kube(crates(kube_core = "kube_core", serde = "crate::member::of_kube"))]
#[serde(rename_all = "camelCase")]
pub struct ClusterManagerSpec {
    /// Image of the registration controller and webhook; the server fills in upstream's image without a tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "quay.io/open-cluster-management/registration")))]
    pub registration_image_pull_spec: Option<String>,
    /// Image of the work controller and webhook; the server fills in upstream's image without a tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "quay.io/open-cluster-management/work")))]
    pub work_image_pull_spec: Option<String>,
    /// Image of the placement controller; the server fills in upstream's image without a tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "quay.io/open-cluster-management/placement")))]
    pub placement_image_pull_spec: Option<String>,
    /// Image of the add-on manager and its conversion webhook; the server fills in upstream's image without a tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "quay.io/open-cluster-management/addon-manager")))]
    pub add_on_manager_image_pull_spec: Option<String>,
    /// Where the hub's pods may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_placement: Option<NodePlacement>,
    /// On which cluster the pods run; the server fills in mode `Default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = {"mode": "Default"})))]
    pub deploy_option: Option<ClusterManagerDeployOption>,
    /// Settings of registration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_configuration: Option<RegistrationHubConfiguration>,
    /// Settings of work distribution; the server fills in driver `kube`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = {"workDriver": "kube"})))]
    pub work_configuration: Option<WorkConfiguration>,
    /// Settings of the add-on manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on_manager_configuration: Option<AddOnManagerConfiguration>,
    /// Settings of placement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_configuration: Option<PlacementConfiguration>,
    /// Settings of the gRPC server, which runs when the grpc registration driver is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_configuration: Option<ServerConfiguration>,
    /// CPU and memory of the hub's pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_requirement: Option<ResourceRequirement>,
}

/// Status of a ClusterManager.
pub type ClusterManagerStatus = OperatorStatus;

text_enum! {
    /// On which cluster the hub's pods run. Upstream: `InstallMode`, as far as the ClusterManager allows it.
    ClusterManagerMode {
        /// On the hub itself.
        Default = "Default",
        /// On a management cluster; APIs and RBAC live on another cluster, the hub.
        Hosted = "Hosted",
    } default Default
}

/// Mode of the hub and the settings of that mode. Upstream: `ClusterManagerDeployOption`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterManagerDeployOption {
    /// The mode; the server fills in `Default`.
    #[serde(default)]
    pub mode: ClusterManagerMode,
    /// Settings of mode `Default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<DefaultClusterManagerConfiguration>,
    /// Settings of mode `Hosted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosted: Option<HostedClusterManagerConfiguration>,
}

/// Webhooks of a hub in mode Default. Upstream: `DefaultClusterManagerConfiguration`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DefaultClusterManagerConfiguration {
    /// Webhook of registration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_webhook_configuration: Option<DefaultWebhookConfiguration>,
    /// Webhook of work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_webhook_configuration: Option<DefaultWebhookConfiguration>,
    /// Conversion webhook of add-ons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addon_webhook_configuration: Option<DefaultWebhookConfiguration>,
}

/// Webhooks of a hub in mode Hosted; add-on conversion is not supported there. Upstream:
/// `HostedClusterManagerConfiguration`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostedClusterManagerConfiguration {
    /// Webhook of registration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_webhook_configuration: Option<HostedWebhookConfiguration>,
    /// Webhook of work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_webhook_configuration: Option<HostedWebhookConfiguration>,
}

/// A webhook server that the hub reaches through a Service. Upstream: `DefaultWebhookConfiguration`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DefaultWebhookConfiguration {
    /// Ports and network of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind_configuration: Option<BindConfiguration>,
}

/// A webhook server that the hub's API server reaches from another cluster. Upstream: `HostedWebhookConfiguration`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostedWebhookConfiguration {
    /// IP address or host name, as seen from the hub's API server.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = super::spec::HOST_PATTERN)))]
    pub address: String,
    /// Port at that address; the server fills in 443.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = 65535), extend("default" = 443)))]
    pub port: Option<i32>,
    /// Ports and network of the server behind the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind_configuration: Option<BindConfiguration>,
}

/// Ports and network of a webhook server. Upstream: `BindConfiguration`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BindConfiguration {
    /// TLS port; the server fills in 9443.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = 65535), extend("default" = 9443)))]
    pub port: Option<i32>,
    /// Port of the health endpoint, 0 or less to switch it off; the server fills in 8000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = 65535), extend("default" = 8000)))]
    pub health_probe_port: Option<i32>,
    /// Port of the metrics endpoint, 0 or less to switch it off; the server fills in 8080.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = 65535), extend("default" = 8080)))]
    pub metrics_port: Option<i32>,
    /// Whether the pods use the network of their node, as some EKS networks need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_network: Option<bool>,
}

/// Registration on the hub. Upstream: `RegistrationHubConfiguration`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegistrationHubConfiguration {
    /// Users whose CSRs are approved at once when the gate ManagedClusterAutoApproval is on. Deprecated: a csr driver's
    /// list replaces this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auto_approve_users: Vec<String>,
    /// Feature gates of registration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feature_gates: Vec<FeatureGate>,
    /// Ways in which clusters may register; none means csr. At most one entry per authType.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "schema",
        schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["authType"]))
    )]
    pub registration_drivers: Vec<RegistrationDriverHub>,
    /// How the hub imports clusters by itself, behind the gate ClusterImporter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importer_configuration: Option<ImporterConfiguration>,
}

/// Cluster import by the hub. Upstream: `ImporterConfiguration`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImporterConfiguration {
    /// Sources of the import configuration, `render-auto` or `render-from-config-secret`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renderers: Vec<String>,
}

/// One way of registering, as the hub accepts it. Upstream: `RegistrationDriverHub`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegistrationDriverHub {
    /// Which way; the server fills in `csr`.
    #[serde(default)]
    pub auth_type: RegistrationAuthType,
    /// Settings of `csr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csr: Option<CsrConfig>,
    /// Settings of `awsirsa`.
    #[serde(rename = "awsirsa", default, skip_serializing_if = "Option::is_none")]
    pub aws_irsa: Option<AwsIrsaConfig>,
    /// Settings of `grpc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grpc: Option<GrpcRegistrationConfig>,
}

/// Registration through CSRs. Upstream: `CSRConfig`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CsrConfig {
    /// Users whose CSRs are approved at once, behind the gate ManagedClusterAutoApproval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auto_approved_identities: Vec<String>,
}

/// Registration through AWS IAM. Upstream: `AwsIrsaConfig`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AwsIrsaConfig {
    /// ARN of the hub's EKS cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = super::spec::EKS_ARN_PATTERN)))]
    pub hub_cluster_arn: Option<String>,
    /// Regular expressions that a managed cluster's ARN must match in full.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auto_approved_identities: Vec<String>,
    /// Tags of the IAM resources that the hub creates, each `key=value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// Registration over gRPC. Upstream: `GRPCRegistrationConfig`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GrpcRegistrationConfig {
    /// Users whose requests over gRPC are approved at once, behind the gate ManagedClusterAutoApproval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auto_approved_identities: Vec<String>,
}

text_enum! {
    /// How the hub carries work to the agents. Upstream: `WorkDriverType`.
    WorkDriver {
        /// Through the hub's API server.
        Kube = "kube",
        /// Through an MQTT broker.
        Mqtt = "mqtt",
        /// Through a gRPC server.
        Grpc = "grpc",
    } default Kube
}

/// Work distribution on the hub. Upstream: `WorkConfiguration`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkConfiguration {
    /// Feature gates of work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feature_gates: Vec<FeatureGate>,
    /// Transport; the server fills in `kube`. The others need the gate CloudEventsDrivers and the Secret
    /// `work-driver-config`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "kube")))]
    pub work_driver: Option<WorkDriver>,
}

/// The add-on manager. Upstream: `AddOnManagerConfiguration`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AddOnManagerConfiguration {
    /// Feature gates of the add-on manager.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feature_gates: Vec<FeatureGate>,
}

/// Placement. Upstream: `PlacementConfiguration`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlacementConfiguration {
    /// Feature gates of placement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feature_gates: Vec<FeatureGate>,
}

/// The gRPC server of the hub. Upstream: `ServerConfiguration`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerConfiguration {
    /// Image of the server; empty means the registration image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_spec: Option<String>,
    /// Feature gates of the server; upstream has none yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feature_gates: Vec<FeatureGate>,
    /// How clients reach the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints_exposure: Vec<EndpointExposure>,
}

text_enum! {
    /// What a client speaks to an endpoint. Upstream: `EndpointExposure.Protocol`.
    EndpointProtocol {
        /// gRPC.
        Grpc = "grpc",
        /// HTTPS.
        Https = "https",
    } default Grpc
}

/// One way to the server. Upstream: `EndpointExposure`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EndpointExposure {
    /// Who uses it, `agentToHub` or `consumer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<String>,
    /// What is spoken; the server fills in `grpc`.
    #[serde(default)]
    pub protocol: EndpointProtocol,
    /// Where a gRPC endpoint is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grpc: Option<Endpoint>,
    /// Where an HTTPS endpoint is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub https: Option<Endpoint>,
}

text_enum! {
    /// How an endpoint is exposed. Upstream: `EndpointExposureType`.
    EndpointType {
        /// A host name that the administrator routes to the Service.
        Hostname = "hostname",
        /// A Service of type LoadBalancer.
        LoadBalancer = "loadBalancer",
        /// An OpenShift route.
        Route = "route",
    } default Hostname
}

/// Address of an endpoint. Upstream: `Endpoint`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// How it is exposed; the server fills in `hostname`.
    #[serde(rename = "type", default)]
    pub type_: EndpointType,
    /// Settings of `hostname`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<HostnameConfig>,
    /// Settings of `loadBalancer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<LoadBalancerConfig>,
    /// Settings of `route`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<RouteConfig>,
}

/// An endpoint behind a host name. Upstream: `HostnameConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostnameConfig {
    /// The host name.
    pub host: String,
    /// PEM certificates that clients should trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "field_schema::bytes"))]
    pub ca_bundle: Option<ByteString>,
}

/// An endpoint behind a load balancer. Upstream: `LoadBalancerConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancerConfig {
    /// Host name of the load balancer, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// PEM certificates that clients should trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "field_schema::bytes"))]
    pub ca_bundle: Option<ByteString>,
}

/// An endpoint behind a route. Upstream: `RouteConfig`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RouteConfig {
    /// Host name of the route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// PEM certificates that clients should trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "field_schema::bytes"))]
    pub ca_bundle: Option<ByteString>,
}
