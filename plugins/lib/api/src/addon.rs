//! `addon.open-cluster-management.io`: add-ons of managed clusters, on the hub.
//!
//! What no command looks into is raw JSON.

use serde::Serialize;
use serde_json::Value;

use crate::member::Member;
use crate::names::namespaces;
use crate::{Condition, lenient};

api_object! {
    /// An add-on of one managed cluster, in the cluster's namespace on the hub. Upstream:
    /// `addon/v1alpha1.ManagedClusterAddOn`.
    ManagedClusterAddOn { spec: ManagedClusterAddOnSpec, status: ManagedClusterAddOnStatus }
    group "addon.open-cluster-management.io", version "v1alpha1", plural "managedclusteraddons",
    scope NamespaceResourceScope
}

impl ManagedClusterAddOn {
    /// The namespace of its agent, where the registration agent puts what it comes to the hub with
    /// (`getAddOnInstallationNamespace` of `pkg/registration/spoke/addon`).
    pub fn agent_namespace(&self) -> &str {
        let reported = self.status.as_ref().and_then(|status| status.namespace.as_deref());
        let wanted = || self.spec.install_namespace.as_deref();
        let is_given = |name: &&str| !name.is_empty();
        reported.filter(is_given).or_else(|| wanted().filter(is_given)).unwrap_or(namespaces::AGENT_ADDON)
    }
}

api_object! {
    /// What defines an add-on on the hub: the configurations that it takes, and by which placements it is installed. Upstream:
    /// `addon/v1alpha1.ClusterManagementAddOn`.
    ClusterManagementAddOn { spec: Value, status: Value }
    group "addon.open-cluster-management.io", version "v1alpha1", plural "clustermanagementaddons",
    scope ClusterResourceScope
}

api_object! {
    /// What is put on clusters that have an add-on; it has no status. Upstream: `addon/v1alpha1.AddOnTemplate`.
    AddOnTemplate { spec: Value, status: Value }
    group "addon.open-cluster-management.io", version "v1alpha1", plural "addontemplates", scope ClusterResourceScope
}

api_object! {
    /// Settings of an add-on's agents: variables, images, proxies, where they run; it has no status. Upstream:
    /// `addon/v1alpha1.AddOnDeploymentConfig`.
    AddOnDeploymentConfig { spec: Value, status: Value }
    group "addon.open-cluster-management.io", version "v1alpha1", plural "addondeploymentconfigs",
    scope NamespaceResourceScope
}

/// How the add-on is installed. Upstream: `ManagedClusterAddOnSpec`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterAddOnSpec {
    /// Namespace of the add-on's agent; the server fills in `open-cluster-management-agent-addon`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install_namespace: Option<String>,
    /// Configuration objects that replace the add-on's defaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configs: Vec<AddOnConfig>,
}

/// A configuration object of an add-on. Upstream: `AddOnConfig`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct AddOnConfig {
    /// API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// Plural resource name.
    pub resource: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

/// What is known about an add-on. Upstream: `ManagedClusterAddOnStatus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterAddOnStatus {
    /// Conditions; types are in
    /// [`conditions::managed_cluster_add_on`](crate::conditions::managed_cluster_add_on).
    #[serde(default, deserialize_with = "lenient::conditions", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Namespace of the add-on's agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Identities that the add-on's agent asks the hub for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registrations: Vec<RegistrationConfig>,
    /// How the hub tells whether the add-on is well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<HealthCheck>,
    /// How registrations of type KubeClient prove themselves, `csr` or `token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_client_driver: Option<String>,
    /// Objects that belong to the add-on. Upstream: `ObjectReference`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related_objects: Vec<Value>,
    /// Display name and description. Upstream: `AddOnMeta`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on_meta: Option<Value>,
    /// Deprecated pointer to a configuration. Upstream: `ConfigCoordinates`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on_configuration: Option<Value>,
    /// Kinds of configuration that the add-on takes. Upstream: `ConfigGroupResource`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub supported_configs: Vec<Value>,
    /// Configurations, wanted and applied. Upstream: `ConfigReference`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config_references: Vec<Value>,
}

/// An identity that an add-on's agent asks for. Upstream: `RegistrationConfig`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct RegistrationConfig {
    /// Who signs the certificate.
    pub signer_name: String,
    /// User and groups of the certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
}

/// Subject of a certificate. Upstream: `Subject`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// Common name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Organizations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Organizational units.
    #[serde(rename = "organizationUnit", default, skip_serializing_if = "Vec::is_empty")]
    pub organization_units: Vec<String>,
}

text_enum! {
    /// How the hub tells whether an add-on is well. Upstream: `HealthCheckMode`.
    HealthCheckMode {
        /// By a lease that the add-on's agent renews.
        Lease = "Lease",
        /// By the add-on's own rules.
        Customized = "Customized",
    } default Lease
}

/// How the hub tells whether an add-on is well. Upstream: `HealthCheck`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct HealthCheck {
    /// By lease or by rules; the server fills in `Lease`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<HealthCheckMode>,
}
