//! The file as it is written: its fields, and nothing besides.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::Wrong;
use crate::yaml::{Error, ErrorKind, Node};

/// The version of fleet files.
pub const API_VERSION: &str = "kubectl-ocm.dev/v1alpha1";
/// Their kind.
pub const KIND: &str = "Fleet";

/// A fleet file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct File {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) hub: HubEntry,
    #[serde(default)]
    pub(super) defaults: Entry,
    pub(super) clusters: Vec<Entry>,
}

/// How a cluster is reached, and as whom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Access {
    /// File of the kubeconfig, beside the fleet file; none: as for every command.
    pub kubeconfig: Option<String>,
    /// Its context; none: its current one.
    pub context: Option<String>,
    /// User to act as.
    #[serde(rename = "as")]
    pub act_as: Option<String>,
    /// Groups to act as.
    pub as_groups: Vec<String>,
}

impl Access {
    /// What says which cluster it is.
    pub(super) fn place(&self) -> (Option<&str>, Option<&str>) {
        (self.kubeconfig.as_deref(), self.context.as_deref())
    }
}

/// The hub.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct HubEntry {
    pub(super) kubeconfig: Option<String>,
    pub(super) context: Option<String>,
    #[serde(rename = "as")]
    pub(super) act_as: Option<String>,
    #[serde(default)]
    pub(super) as_groups: Vec<String>,
    pub(super) api_server: Option<String>,
    #[serde(default)]
    pub(super) internal_address: bool,
    pub(super) ca_file: Option<String>,
    #[serde(default)]
    pub(super) insecure_skip_tls_verify: bool,
    pub(super) install: Option<InstallEntry>,
}

/// Settings of the hub's installation.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct InstallEntry {
    pub(super) bundle_version: Option<String>,
    pub(super) registry: Option<String>,
    pub(super) images: BTreeMap<String, String>,
    pub(super) image_digests: BTreeMap<String, String>,
    pub(super) values: Option<Value>,
    pub(super) image_pull_credential_file: Option<String>,
    pub(super) feature_gates: BTreeMap<String, bool>,
    pub(super) enable_sync_labels: Option<bool>,
    pub(super) registration_drivers: Vec<DriverWord>,
    pub(super) use_bootstrap_token: bool,
    pub(super) auto_approved_csr_identities: Vec<String>,
    pub(super) auto_approved_arn_patterns: Vec<String>,
    pub(super) auto_approved_grpc_identities: Vec<String>,
    pub(super) grpc_endpoint_type: Option<EndpointWord>,
    pub(super) grpc_server: Option<String>,
    pub(super) expose_grpc: Option<ExposureWord>,
    pub(super) grpc_gateway: Option<String>,
    pub(super) hub_cluster_arn: Option<String>,
    pub(super) aws_resource_tags: Vec<String>,
    pub(super) resources: Option<ResourcesEntry>,
    pub(super) node_selector: BTreeMap<String, String>,
    pub(super) tolerations: Vec<String>,
    pub(super) replicas: Option<i32>,
    pub(super) create_namespace: Option<bool>,
}

/// A cluster, or what all of them have.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Entry {
    pub(super) name: Option<String>,
    pub(super) kubeconfig: Option<String>,
    pub(super) context: Option<String>,
    #[serde(rename = "as")]
    pub(super) act_as: Option<String>,
    pub(super) as_groups: Option<Vec<String>>,
    pub(super) managed: Option<Access>,
    pub(super) managed_internal_address: Option<bool>,
    #[serde(rename = "self")]
    pub(super) itself: Option<bool>,
    pub(super) accept: Option<bool>,
    pub(super) adopt_namespace: Option<bool>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) cluster_set: Option<String>,
    pub(super) mode: Option<ModeWord>,
    pub(super) bundle_version: Option<String>,
    pub(super) registry: Option<String>,
    pub(super) image_digests: BTreeMap<String, String>,
    pub(super) values: Option<Value>,
    pub(super) host_alias: Option<String>,
    pub(super) addon_kubeclient_registration_auth: Option<AddOnAuthWord>,
    pub(super) addon_token_expiration_seconds: Option<i64>,
    pub(super) image_pull_credential_file: Option<String>,
    pub(super) feature_gates: BTreeMap<String, bool>,
    pub(super) client_cert_expiration_seconds: Option<i32>,
    pub(super) klusterlet_annotations: BTreeMap<String, String>,
    pub(super) enable_sync_labels: Option<bool>,
    pub(super) create_namespace: Option<bool>,
    pub(super) registration_auth: Option<DriverWord>,
    pub(super) grpc_server: Option<String>,
    pub(super) grpc_ca_file: Option<String>,
    pub(super) hub_cluster_arn: Option<String>,
    pub(super) managed_cluster_arn: Option<String>,
    pub(super) resources: Option<ResourcesEntry>,
    pub(super) node_selector: Option<BTreeMap<String, String>>,
    pub(super) tolerations: Option<Vec<String>>,
    pub(super) priority_class: Option<String>,
    pub(super) proxy_url: Option<String>,
    pub(super) proxy_ca_file: Option<String>,
}

/// CPU and memory of pods.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct ResourcesEntry {
    pub(super) qos_class: Option<QosWord>,
    pub(super) limits: BTreeMap<String, String>,
    pub(super) requests: BTreeMap<String, String>,
}

/// Classes of resources.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) enum QosWord {
    Default,
    BestEffort,
    ResourceRequirement,
}

/// Modes of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ModeWord {
    Default,
    Singleton,
    Hosted,
    SingletonHosted,
}

/// Ways to register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum DriverWord {
    Csr,
    Grpc,
    AwsIrsa,
}

/// How add-ons register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AddOnAuthWord {
    Csr,
    Token,
}

/// How agents reach the gRPC server.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum EndpointWord {
    Hostname,
    LoadBalancer,
}

/// By what agents reach the gRPC server.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ExposureWord {
    NodePort,
    LoadBalancer,
    Gateway,
}

/// Reads the text: the file, and the line of each of its clusters.
///
/// # Errors
/// Text that is no YAML, fields that are not known, values of another type: each with its line.
pub(super) fn parse(text: &str) -> Result<(File, Vec<u64>), Wrong> {
    let read = || {
        let document = Node::read(text)?;
        Ok((document.to()?, document.lines("clusters")))
    };
    read().map_err(|Error { line, kind }| {
        let why = Wrong::new(kind.to_string());
        let wrong = match kind {
            ErrorKind::UnknownField { field, expected } => why.meant(&field, expected),
            ErrorKind::UnknownVariant { variant, expected } => why.meant(&variant, expected),
            ErrorKind::Other(_) => why,
        };
        Wrong { line, ..wrong }
    })
}

impl Entry {
    /// It, with what it does not say from the defaults. Of maps each key counts for itself.
    pub(super) fn over(self, base: &Self) -> Self {
        let base = &self.fitting(base);
        let kubeconfig = or(self.kubeconfig, base.kubeconfig.as_ref());
        Self {
            name: self.name,
            // A context that stands alone is one of the same kubeconfig.
            managed: self.managed.map(|managed| match managed.context {
                Some(_) => Access { kubeconfig: or(managed.kubeconfig, kubeconfig.as_ref()), ..managed },
                None => managed,
            }),
            kubeconfig,
            context: self.context,
            act_as: or(self.act_as, base.act_as.as_ref()),
            as_groups: or(self.as_groups, base.as_groups.as_ref()),
            managed_internal_address: self.managed_internal_address.or(base.managed_internal_address),
            itself: self.itself,
            accept: self.accept.or(base.accept),
            adopt_namespace: self.adopt_namespace.or(base.adopt_namespace),
            labels: with(self.labels, &base.labels),
            cluster_set: or(self.cluster_set, base.cluster_set.as_ref()),
            mode: self.mode.or(base.mode),
            bundle_version: or(self.bundle_version, base.bundle_version.as_ref()),
            registry: or(self.registry, base.registry.as_ref()),
            image_digests: with(self.image_digests, &base.image_digests),
            values: or(self.values, base.values.as_ref()),
            host_alias: or(self.host_alias, base.host_alias.as_ref()),
            addon_kubeclient_registration_auth: self
                .addon_kubeclient_registration_auth
                .or(base.addon_kubeclient_registration_auth),
            addon_token_expiration_seconds: self.addon_token_expiration_seconds.or(base.addon_token_expiration_seconds),
            image_pull_credential_file: or(self.image_pull_credential_file, base.image_pull_credential_file.as_ref()),
            feature_gates: with(self.feature_gates, &base.feature_gates),
            client_cert_expiration_seconds: self.client_cert_expiration_seconds.or(base.client_cert_expiration_seconds),
            klusterlet_annotations: with(self.klusterlet_annotations, &base.klusterlet_annotations),
            enable_sync_labels: self.enable_sync_labels.or(base.enable_sync_labels),
            create_namespace: self.create_namespace.or(base.create_namespace),
            registration_auth: self.registration_auth.or(base.registration_auth),
            grpc_server: or(self.grpc_server, base.grpc_server.as_ref()),
            grpc_ca_file: or(self.grpc_ca_file, base.grpc_ca_file.as_ref()),
            hub_cluster_arn: or(self.hub_cluster_arn, base.hub_cluster_arn.as_ref()),
            managed_cluster_arn: or(self.managed_cluster_arn, base.managed_cluster_arn.as_ref()),
            resources: or(self.resources, base.resources.as_ref()),
            node_selector: or(self.node_selector, base.node_selector.as_ref()),
            tolerations: or(self.tolerations, base.tolerations.as_ref()),
            priority_class: or(self.priority_class, base.priority_class.as_ref()),
            proxy_url: or(self.proxy_url, base.proxy_url.as_ref()),
            proxy_ca_file: or(self.proxy_ca_file, base.proxy_ca_file.as_ref()),
        }
    }

    /// The defaults without what goes with another choice than this cluster's own.
    fn fitting(&self, base: &Self) -> Self {
        let mut base = base.clone();
        let is_other = |own: Option<DriverWord>, word: DriverWord| own.is_some_and(|own| own != word);
        if is_other(self.registration_auth, DriverWord::Grpc) {
            (base.grpc_server, base.grpc_ca_file) = (None, None);
        }
        if is_other(self.registration_auth, DriverWord::AwsIrsa) {
            (base.hub_cluster_arn, base.managed_cluster_arn) = (None, None);
        }
        if self.addon_kubeclient_registration_auth.is_some_and(|own| own != AddOnAuthWord::Token) {
            base.addon_token_expiration_seconds = None;
        }
        if self.proxy_url.as_ref().is_some_and(|url| !url.trim().to_ascii_lowercase().starts_with("https:")) {
            base.proxy_ca_file = None;
        }
        base
    }
}

fn or<T: Clone>(own: Option<T>, base: Option<&T>) -> Option<T> {
    own.or_else(|| base.cloned())
}

fn with<V: Clone>(mut own: BTreeMap<String, V>, base: &BTreeMap<String, V>) -> BTreeMap<String, V> {
    for (key, value) in base {
        own.entry(key.clone()).or_insert_with(|| value.clone());
    }
    own
}
