//! Where the objects of a source are on the hub.

use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};
use ocm_policy_abi::{EvidenceSource, Resource};

use crate::watch::Unserved;

/// Where the objects of a source are, and which of them.
pub(super) fn api(client: Client, source: &EvidenceSource) -> (Api<DynamicObject>, Option<String>) {
    let all =
        |group: &str, version: &str, plural: &str| Api::all_with(client.clone(), &resource(group, version, plural));
    let cluster = "cluster.open-cluster-management.io";
    match source {
        EvidenceSource::Clusters => (all(cluster, "v1", "managedclusters"), None),
        EvidenceSource::ClusterSets => (all(cluster, "v1beta2", "managedclustersets"), None),
        EvidenceSource::Namespaces => (all("", "v1", "namespaces"), None),
        EvidenceSource::Csrs => (all("certificates.k8s.io", "v1", "certificatesigningrequests"), None),
        EvidenceSource::Approvals => (all("policy.kubectl-ocm.dev", "v1alpha1", "registrationapprovals"), None),
        EvidenceSource::Registrations => (all("policy.kubectl-ocm.dev", "v1alpha1", "registrations"), None),
        EvidenceSource::ConfigMap { namespace, name } => {
            let api = Api::namespaced_with(client, namespace, &resource("", "v1", "configmaps"));
            (api, Some(format!("metadata.name={name}")))
        }
        EvidenceSource::Objects { api_version, resource: plural, namespace } => {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            let resource = resource(group, version, plural);
            let api = match namespace {
                Some(namespace) => Api::namespaced_with(client, namespace, &resource),
                None => Api::all_with(client, &resource),
            };
            (api, None)
        }
    }
}

/// Whether objects of an API resource are rows of a source, one each.
pub(super) fn is_of(source: &EvidenceSource, resource: &Resource<'_>) -> bool {
    let place = (&*resource.group, &*resource.version, &*resource.resource);
    let cluster = "cluster.open-cluster-management.io";
    match source {
        EvidenceSource::Clusters => place == (cluster, "v1", "managedclusters"),
        EvidenceSource::ClusterSets => place == (cluster, "v1beta2", "managedclustersets"),
        EvidenceSource::Namespaces => place == ("", "v1", "namespaces"),
        EvidenceSource::Csrs => place == ("certificates.k8s.io", "v1", "certificatesigningrequests"),
        EvidenceSource::Objects { api_version, resource: plural, namespace } => {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            let is_there =
                namespace.as_deref().is_none_or(|namespace| resource.namespace.as_deref() == Some(namespace));
            place == (group, version, plural) && is_there
        }
        // A ConfigMap is many rows, and what approvals and Registrations say counts only as the hub holds it.
        EvidenceSource::ConfigMap { .. } | EvidenceSource::Approvals | EvidenceSource::Registrations => false,
    }
}

/// What it means that the hub does not serve the kind of a source.
pub(super) fn unserved(source: &EvidenceSource) -> Unserved {
    match source {
        // Without a policy controller nobody notes anything.
        EvidenceSource::Registrations => Unserved::Nothing,
        _ => Unserved::Lost,
    }
}

fn resource(group: &str, version: &str, plural: &str) -> ApiResource {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version,
        // Only the words of URLs are used.
        kind: String::new(),
        plural: plural.to_owned(),
    }
}
