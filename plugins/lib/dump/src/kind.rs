//! The kinds of objects that are kept of a dump: those that somebody may ask a cluster for.

use ocm_api::names::secrets;

/// A kind of objects.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    /// API group; empty: the core group.
    pub(crate) group: &'static str,
    /// The resource, in the plural, as paths of the API have it.
    pub(crate) plural: &'static str,
    /// The kind, as objects name it.
    pub(crate) name: &'static str,
    /// Whether its objects are in namespaces.
    pub(crate) is_namespaced: bool,
}

const fn cluster(group: &'static str, plural: &'static str, name: &'static str) -> Kind {
    Kind { group, plural, name, is_namespaced: false }
}

const fn namespaced(group: &'static str, plural: &'static str, name: &'static str) -> Kind {
    Kind { group, plural, name, is_namespaced: true }
}

const ADMISSION: &str = "admissionregistration.k8s.io";
const OPERATOR: &str = "operator.open-cluster-management.io";
const POLICY: &str = "policy.kubectl-ocm.dev";

pub(crate) static NAMESPACES: Kind = cluster("", "namespaces", "Namespace");
pub(crate) static SECRETS: Kind = namespaced("", "secrets", "Secret");
pub(crate) static PODS: Kind = namespaced("", "pods", "Pod");
pub(crate) static EVENTS: Kind = namespaced("", "events", "Event");
pub(crate) static CONFIG_MAPS: Kind = namespaced("", "configmaps", "ConfigMap");
pub(crate) static LEASES: Kind = namespaced("coordination.k8s.io", "leases", "Lease");
pub(crate) static DEFINITIONS: Kind =
    cluster("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition");
pub(crate) static MUTATING: Kind = cluster(ADMISSION, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration");
pub(crate) static VALIDATING: Kind =
    cluster(ADMISSION, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration");
pub(crate) static REQUESTS: Kind =
    cluster("certificates.k8s.io", "certificatesigningrequests", "CertificateSigningRequest");
pub(crate) static CLUSTERS: Kind = cluster("cluster.open-cluster-management.io", "managedclusters", "ManagedCluster");
pub(crate) static MANAGERS: Kind = cluster(OPERATOR, "clustermanagers", "ClusterManager");
pub(crate) static KLUSTERLETS: Kind = cluster(OPERATOR, "klusterlets", "Klusterlet");
pub(crate) static WORKS: Kind = namespaced("work.open-cluster-management.io", "manifestworks", "ManifestWork");
pub(crate) static ADDONS: Kind =
    namespaced("addon.open-cluster-management.io", "managedclusteraddons", "ManagedClusterAddOn");
static DEPLOYMENTS: Kind = namespaced("apps", "deployments", "Deployment");
static SLICES: Kind = namespaced("discovery.k8s.io", "endpointslices", "EndpointSlice");
static SERVICES: Kind = namespaced("", "services", "Service");
static NETWORK_POLICIES: Kind = namespaced("networking.k8s.io", "networkpolicies", "NetworkPolicy");
static BINDINGS: Kind = cluster("rbac.authorization.k8s.io", "clusterrolebindings", "ClusterRoleBinding");
static APPLIED_WORKS: Kind = cluster("work.open-cluster-management.io", "appliedmanifestworks", "AppliedManifestWork");
static POLICIES: Kind = cluster(POLICY, "hubpolicies", "HubPolicy");
static REGISTRATIONS: Kind = cluster(POLICY, "registrations", "Registration");

static KINDS: [&Kind; 23] = [
    &NAMESPACES,
    &SECRETS,
    &PODS,
    &EVENTS,
    &CONFIG_MAPS,
    &LEASES,
    &DEFINITIONS,
    &MUTATING,
    &VALIDATING,
    &REQUESTS,
    &CLUSTERS,
    &MANAGERS,
    &KLUSTERLETS,
    &WORKS,
    &ADDONS,
    &DEPLOYMENTS,
    &SLICES,
    &SERVICES,
    &NETWORK_POLICIES,
    &BINDINGS,
    &APPLIED_WORKS,
    &POLICIES,
    &REGISTRATIONS,
];

/// The Secrets that are read; the values of others are not kept.
pub(crate) const READ_SECRETS: [&str; 2] = [secrets::BOOTSTRAP_HUB_KUBECONFIG, secrets::HUB_KUBECONFIG];
/// The Secrets of which the certificate alone is read.
pub(crate) const READ_CERTIFICATES: [&str; 3] =
    [secrets::REGISTRATION_WEBHOOK_CERT, secrets::WORK_WEBHOOK_CERT, secrets::ADDON_WEBHOOK_CERT];

impl Kind {
    /// The kind of a resource of a group.
    pub(crate) fn of_resource(group: &str, plural: &str) -> Option<&'static Self> {
        KINDS.iter().copied().find(|kind| kind.group == group && kind.plural == plural)
    }

    /// The kind that an object names.
    pub(crate) fn of_object(api_version: &str, name: &str) -> Option<&'static Self> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        KINDS.iter().copied().find(|kind| kind.group == group && kind.name == name)
    }

    /// Whether a must-gather takes all of them when it takes any: of others, `oc adm inspect` takes those that something
    /// refers to.
    pub(crate) fn is_gathered_whole(&self) -> bool {
        self.group.ends_with(".open-cluster-management.io") || self.group == POLICY || *self == REQUESTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_resource_and_by_object() {
        for kind in KINDS {
            assert_eq!(Kind::of_resource(kind.group, kind.plural), Some(kind));
            let version = if kind.group.is_empty() { "v1".to_owned() } else { format!("{}/v1", kind.group) };
            assert_eq!(Kind::of_object(&version, kind.name), Some(kind));
        }
        assert_eq!(Kind::of_object("events.k8s.io/v1", "Event"), None);
        assert_eq!(Kind::of_resource("extensions", "deployments"), None);
    }
}
