//! The managed cluster's operator object.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use kube_derive::CustomResource;
use serde::Serialize;

use super::spec::{FeatureGate, NodePlacement, RegistrationAuthType, ResourceRequirement};
use super::status::OperatorStatus;
#[cfg(feature = "schema")]
use crate::field_schema;
use crate::member::Member;

/// What the managed cluster's operator installs. Upstream: `KlusterletSpec`.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", kube(schema = "derived"))]
#[cfg_attr(not(feature = "schema"), kube(schema = "disabled"))]
#[kube(
    group = "operator.open-cluster-management.io",
    version = "v1",
    kind = "Klusterlet",
    plural = "klusterlets",
    status = "OperatorStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "The agent of a managed cluster: its name on the hub, from which images it runs and with which settings."
)]
// Upstream's schema does not require a spec, kube-derive's root does, and `attr` takes no serde attribute as such.
#[kube(attr = "cfg_attr(all(), serde(default))")]
#[kube(crates(kube_core = "kube_core", serde = "crate::member::of_kube"))]
#[serde(rename_all = "camelCase")]
pub struct KlusterletSpec {
    /// Namespace of the agent on the managed cluster; empty means `open-cluster-management-agent`. The operator deletes
    /// the old namespace when this changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(length(max = 57), regex(pattern = r"^open-cluster-management-[-a-z0-9]*[a-z0-9]$"))
    )]
    pub namespace: Option<String>,
    /// Image of the registration agent in modes Default and Hosted. Nothing fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_image_pull_spec: Option<String>,
    /// Image of the work agent in modes Default and Hosted. Nothing fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_image_pull_spec: Option<String>,
    /// Image of the one agent in the Singleton modes. Nothing fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_spec: Option<String>,
    /// Name of the ManagedCluster on the hub; empty lets the agent choose a random one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")))]
    pub cluster_name: Option<String>,
    /// Addresses of the managed cluster's API server that the hub should know.
    #[serde(rename = "externalServerURLs", default, skip_serializing_if = "Vec::is_empty")]
    pub external_server_urls: Vec<ServerUrl>,
    /// Where the agent's pods may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_placement: Option<NodePlacement>,
    /// On which cluster and in how many Deployments the agent runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deploy_option: Option<KlusterletDeployOption>,
    /// Settings of registration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_configuration: Option<RegistrationConfiguration>,
    /// Settings of the work agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_configuration: Option<WorkAgentConfiguration>,
    /// A hosts entry for the hub's API server in the agent's pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub_api_server_host_alias: Option<HubApiServerHostAlias>,
    /// CPU and memory of the agent's pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_requirement: Option<ResourceRequirement>,
    /// PriorityClass of the agent's pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
}

/// Status of a Klusterlet.
pub type KlusterletStatus = OperatorStatus;

/// An address of the managed cluster's API server. Upstream: `ServerURL`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerUrl {
    /// The https URL.
    pub url: String,
    /// PEM certificates of its issuer. Agents ignore them and report the ones of their own kubeconfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "field_schema::bytes"))]
    pub ca_bundle: Option<ByteString>,
}

text_enum! {
    /// On which cluster and in how many Deployments the agent runs. Upstream: `InstallMode`.
    KlusterletMode {
        /// A registration and a work Deployment on the managed cluster.
        Default = "Default",
        /// The two Deployments on a management cluster.
        Hosted = "Hosted",
        /// One Deployment on the managed cluster.
        Singleton = "Singleton",
        /// One Deployment on a management cluster.
        SingletonHosted = "SingletonHosted",
    } default Default
}

impl KlusterletMode {
    /// Whether the agents run on another cluster than the one that they manage.
    pub const fn is_hosted(&self) -> bool {
        matches!(self, Self::Hosted | Self::SingletonHosted)
    }

    /// Whether one agent does everything.
    pub const fn is_singleton(&self) -> bool {
        matches!(self, Self::Singleton | Self::SingletonHosted)
    }
}

impl Klusterlet {
    /// The mode, as the operator reads it.
    pub fn mode(&self) -> KlusterletMode {
        self.spec.deploy_option.as_ref().and_then(|option| option.mode.clone()).unwrap_or_default()
    }

    /// The name that the operator gives to the one agent of a singleton mode: the UID. Of two agents, the one that registers goes on
    /// with the name that it finds in its Secret, or draws one. Upstream: `klusterlet-agent-deployment.yaml`,
    /// `getOrGenerateClusterAgentID`.
    pub fn agent_name(&self) -> Option<&str> {
        self.metadata.uid.as_deref().filter(|_| self.mode().is_singleton())
    }

    /// Names of the Deployments of its agents. Upstream: `manifests/klusterlet/management`.
    pub fn agents(&self) -> Vec<String> {
        let name = self.metadata.name.as_deref().unwrap_or_default();
        match self.mode() {
            KlusterletMode::Singleton | KlusterletMode::SingletonHosted => vec![format!("{name}-agent")],
            _ => vec![format!("{name}-registration-agent"), format!("{name}-work-agent")],
        }
    }
}

/// Mode of the agent. Upstream: `KlusterletDeployOption`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct KlusterletDeployOption {
    /// The mode; empty means Default. Upstream's schema takes any word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub mode: Option<KlusterletMode>,
}

/// A hosts entry for the hub's API server. Upstream: `HubApiServerHostAlias`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HubApiServerHostAlias {
    /// IPv4 address of the hub's API server.
    #[cfg_attr(
        feature = "schema",
        schemars(regex(
            pattern = r"^(?:(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)\.){3}(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)$"
        ))
    )]
    pub ip: String,
    /// Host name that stands in the hub's kubeconfig.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = super::spec::HOST_PATTERN)))]
    pub hostname: String,
}

/// Registration on the managed cluster. Upstream: `RegistrationConfiguration`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegistrationConfiguration {
    /// Life of the client certificate that the agent asks for, in seconds: 0 for the signer's own, else at least 3600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cert_expiration_seconds: Option<i32>,
    /// Feature gates of the registration agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feature_gates: Vec<FeatureGate>,
    /// Annotations that the agent sets when it creates its ManagedCluster; only keys that start with
    /// `agent.open-cluster-management.io` pass.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cluster_annotations: BTreeMap<String, String>,
    /// Labels meant for the ManagedCluster; no known agent reads them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cluster_labels: BTreeMap<String, String>,
    /// Requests per second to the managed cluster's API server; the server fills in 50.
    #[serde(rename = "kubeAPIQPS", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 50)))]
    pub kube_api_qps: Option<i32>,
    /// Requests at once to the managed cluster's API server; the server fills in 100.
    #[serde(rename = "kubeAPIBurst", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 100)))]
    pub kube_api_burst: Option<i32>,
    /// Several hubs to choose from, behind the gate MultipleHubs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_kube_configs: Option<BootstrapKubeConfigs>,
    /// How the agent proves its identity to the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_driver: Option<RegistrationDriver>,
    /// How add-ons of type KubeClient prove their identity to the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on_kube_client_registration_driver: Option<AddOnRegistrationDriver>,
    /// Which ClusterClaims the agent reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_claim_configuration: Option<ClusterClaimConfiguration>,
}

/// Limits of the reported ClusterClaims. Upstream: `ClusterClaimConfiguration`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterClaimConfiguration {
    /// How many claims beside the reserved ones; the server fills in 20.
    #[serde(default = "default_max_custom_cluster_claims")]
    pub max_custom_cluster_claims: i32,
    /// Endings of claim names that are always reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 10), inner(length(min = 1, max = 64))))]
    pub reserved_cluster_claim_suffixes: Vec<String>,
}

impl Default for ClusterClaimConfiguration {
    fn default() -> Self {
        Self {
            max_custom_cluster_claims: default_max_custom_cluster_claims(),
            reserved_cluster_claim_suffixes: Vec::new(),
        }
    }
}

fn default_max_custom_cluster_claims() -> i32 {
    20
}

/// The agent's way of registering. Upstream: `RegistrationDriver`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegistrationDriver {
    /// Which way; the server fills in `csr`.
    #[serde(default)]
    pub auth_type: RegistrationAuthType,
    /// Settings of `awsirsa`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aws_irsa: Option<AwsIrsa>,
}

/// The two EKS clusters of a registration through AWS IAM. Upstream: `AwsIrsa`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AwsIrsa {
    /// ARN of the hub's EKS cluster.
    #[cfg_attr(feature = "schema", schemars(length(min = 1), regex(pattern = super::spec::EKS_ARN_PATTERN)))]
    pub hub_cluster_arn: String,
    /// ARN of the managed EKS cluster.
    #[cfg_attr(feature = "schema", schemars(length(min = 1), regex(pattern = super::spec::EKS_ARN_PATTERN)))]
    pub managed_cluster_arn: String,
}

text_enum! {
    /// How an add-on proves its identity to the hub. Upstream: `AddOnRegistrationDriver.AuthType`.
    AddOnAuthType {
        /// A client certificate from a certificate signing request.
        Csr = "csr",
        /// A token of a ServiceAccount on the hub.
        Token = "token",
    } default Csr
}

/// The add-ons' way of registering. Upstream: `AddOnRegistrationDriver`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AddOnRegistrationDriver {
    /// Which way; empty means csr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_type: Option<AddOnAuthType>,
    /// Settings of `token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenConfig>,
}

/// Tokens of add-ons. Upstream: `TokenConfig`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TokenConfig {
    /// Life of a token in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiration_seconds: Option<i64>,
}

text_enum! {
    /// Where the kubeconfigs of several hubs lie. Upstream: `TypeBootstrapKubeConfigs`.
    BootstrapKubeConfigsType {
        /// There is one hub, whose kubeconfig is in `bootstrap-hub-kubeconfig`.
        None = "None",
        /// In Secrets of the agent's namespace.
        LocalSecrets = "LocalSecrets",
    } default None
}

/// Kubeconfigs of several hubs. Upstream: `BootstrapKubeConfigs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BootstrapKubeConfigs {
    /// Where they lie; the server fills in `None`.
    #[serde(rename = "type", default)]
    pub type_: BootstrapKubeConfigsType,
    /// Settings of `LocalSecrets`.
    #[serde(rename = "localSecretsConfig", default, skip_serializing_if = "Option::is_none")]
    pub local_secrets: Option<LocalSecretsConfig>,
}

/// Secrets with the kubeconfigs of several hubs. Upstream: `LocalSecretsConfig`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LocalSecretsConfig {
    /// The Secrets, in order of preference. The agent wants at least two.
    pub kube_config_secrets: Vec<KubeConfigSecret>,
    /// Seconds without a hub after which the agent tries the next one; the server fills in 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 180), extend("default" = 600)))]
    pub hub_connection_timeout_seconds: Option<i32>,
}

/// A Secret with the kubeconfig of one hub. Upstream: `KubeConfigSecret`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct KubeConfigSecret {
    /// Name of the Secret in the agent's namespace.
    pub name: String,
}

/// The work agent. Upstream: `WorkAgentConfiguration`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkAgentConfiguration {
    /// Feature gates of the work agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feature_gates: Vec<FeatureGate>,
    /// Requests per second to the managed cluster's API server; the server fills in 50.
    #[serde(rename = "kubeAPIQPS", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 50)))]
    pub kube_api_qps: Option<i32>,
    /// Requests at once to the managed cluster's API server; the server fills in 100.
    #[serde(rename = "kubeAPIBurst", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 100)))]
    pub kube_api_burst: Option<i32>,
    /// Requests per second to the hub's API server; the server fills in 50.
    #[serde(rename = "hubKubeAPIQPS", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 50)))]
    pub hub_kube_api_qps: Option<i32>,
    /// Requests at once to the hub's API server; the server fills in 100.
    #[serde(rename = "hubKubeAPIBurst", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 100)))]
    pub hub_kube_api_burst: Option<i32>,
    /// How long applied objects outlive a ManifestWork that has vanished from the hub, for example `60m` (the agent's
    /// own choice when empty).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = r"^([0-9]+(s|m|h))+$")))]
    pub applied_manifest_work_eviction_grace_period: Option<String>,
    /// How often the agent reports the status of applied objects, from `5s` to `1h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = r"^([0-9]+(s|m|h))+$")))]
    pub status_sync_interval: Option<String>,
}
