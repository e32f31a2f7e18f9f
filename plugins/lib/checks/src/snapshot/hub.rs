//! What a hub shows.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use ocm_api::member::Member;
use ocm_api::{ClusterManager, Condition, HubPolicy, ManagedCluster, ManagedClusterAddOn, Registration};
use serde::Serialize;

use super::Observed;
use super::observed::{Version, Workload};

/// What a hub shows. Lists are of the clusters that were asked about where the API can select them, else of all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase", default)]
pub struct HubSide {
    /// Address of its API server.
    pub server: String,
    /// The context of the kubeconfig that names it.
    pub context: Option<String>,
    /// UID of its namespace `kube-system`, which no other cluster has; none where it is not known.
    pub uid: Option<String>,
    /// The authorities that its API server publishes: DER. Empty where they are not known.
    pub authorities: Vec<ByteString>,
    /// Whether its API server serves managed clusters: then it is a hub, wherever its operator is. None: it could not be asked.
    pub serves_clusters: Option<bool>,
    /// What its API servers tell of their storage.
    pub storage: Observed<StorageFacts>,
    /// The operator's Deployment.
    pub operator: Observed<Workload>,
    /// The operator's leader lease; none: there is no such lease.
    pub leader: Observed<Option<LeaseFacts>>,
    /// The ClusterManagers.
    pub managers: Observed<Vec<ClusterManager>>,
    /// The Deployments of the hub's namespace, and of those of other hubs that are hosted there.
    pub deployments: Observed<Vec<Workload>>,
    /// The namespaces of other hubs whose Deployments could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread_namespaces: Vec<String>,
    /// The webhook configurations of Open Cluster Management and of the policy engine that a hub has to have.
    pub webhooks: Observed<Vec<WebhookFacts>>,
    /// The certificates that those webhooks, and the one that converts add-ons, serve with.
    pub serving: Observed<Vec<ServingFacts>>,
    /// The webhooks of others that are asked about registrations, and whose failure refuses them.
    pub admission: Observed<Vec<AdmissionFacts>>,
    /// The definitions whose versions a webhook converts, as if they were webhook configurations.
    pub conversions: Observed<Vec<WebhookFacts>>,
    /// The Service of the gRPC server; none: it is not there. Nobody asks for it on a hub without the driver grpc.
    pub grpc_service: Observed<Option<ServiceFacts>>,
    /// The authorities that the hub's webhooks and its gRPC server are verified with: DER. None: there is no such ConfigMap.
    pub ca_bundle: Observed<Option<Vec<ByteString>>>,
    /// Managed clusters.
    pub clusters: Observed<Vec<ManagedCluster>>,
    /// Certificate requests that carry the label of a cluster: of each the oldest and the newest that wait, and the newest
    /// that were decided.
    pub requests: Observed<Vec<CertificateSigningRequest>>,
    /// How many requests of a cluster were too many to be kept, by its name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub dropped_requests: BTreeMap<String, usize>,
    /// The leases that agents renew.
    pub leases: Observed<Vec<LeaseFacts>>,
    /// The namespaces that are being removed, of clusters and of the hub itself.
    pub terminating: Observed<Vec<NamespaceFacts>>,
    /// Works.
    pub works: Observed<Vec<WorkFacts>>,
    /// Add-ons.
    pub addons: Observed<Vec<ManagedClusterAddOn>>,
    /// The policies of the policy engine; empty without one.
    pub policies: Observed<Vec<HubPolicy>>,
    /// What the policy controller has written of clusters; empty without one.
    pub registrations: Observed<Vec<Registration>>,
    /// The Deployments of the policy engine; empty without one.
    pub policy_engine: Observed<Vec<Workload>>,
}

/// A webhook configuration, and whether something is behind it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase", default)]
pub struct WebhookFacts {
    /// Its name.
    pub name: String,
    /// The Service that it names, as namespace/name.
    pub service: String,
    /// Whether it is there.
    pub exists: bool,
    /// The authorities in it: DER. Empty: none, or they cannot be read.
    pub authorities: Vec<ByteString>,
    /// Whether the Service has a ready endpoint.
    pub has_endpoint: bool,
    /// Whether requests go through when it fails.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fails_open: bool,
    /// Who is asked in place of the Service; none: the Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<String>,
}

/// The certificate that a webhook of the hub serves with, without its key. Without a certificate there is no such webhook.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase", default)]
pub struct ServingFacts {
    /// The namespace of the Secret that holds it.
    pub namespace: String,
    /// The Secret.
    pub secret: String,
    /// The Service of the webhook.
    pub service: String,
    /// The certificate: DER. Nobody asked for it where it may not be read, or a dump does not hold it.
    pub certificate: Observed<ByteString>,
}

/// A webhook that is none of Open Cluster Management, and is asked about registrations: whatever its configuration is asked
/// about is refused while nothing answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase", default)]
pub struct AdmissionFacts {
    /// Its configuration.
    pub configuration: String,
    /// The Service that it names, as namespace/name.
    pub service: String,
    /// The resources of registrations that it is asked about.
    pub about: Vec<String>,
    /// Whether the Service has a ready endpoint.
    pub has_endpoint: bool,
    /// Whether the Service stands for a name outside of the cluster, so that it has no endpoints of its own (type ExternalName).
    /// None: it has one, or that was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_external: Option<bool>,
}

/// A Service, and where it is reached from outside of its cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceFacts {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_: String,
    /// The addresses of its load balancer.
    pub addresses: Vec<String>,
}

/// A lease.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaseFacts {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Which object it was, and how, where somebody may want to delete it: a leader lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// When it was last renewed, by the clock of its holder.
    pub renewed: Option<Time>,
    /// When that was written, by the clock of the API server; none where that is not known.
    pub written: Option<Time>,
    /// How long it lasts: seconds.
    pub seconds: Option<i32>,
    /// Who holds it.
    pub holder: Option<String>,
    /// The holder's pod, if the process in it is known to have ended, while the Deployment that takes the lease is there.
    pub gone: Option<String>,
}

/// What the API servers of a cluster tell of their storage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageFacts {
    /// The leases that they renew, each its own.
    pub leases: Vec<LeaseFacts>,
    /// When another lease of the same namespace was renewed last, as those of controller managers and schedulers are.
    pub others: Option<Time>,
    /// When that was read, by the clock of one of them; none: it does not tell.
    pub now: Option<Time>,
}

impl StorageFacts {
    /// The lease of an API server that was renewed last.
    pub fn newest(&self) -> Option<&LeaseFacts> {
        self.leases.iter().max_by_key(|lease| lease.renewed.as_ref().map(|time| time.0))
    }

    /// For how long no lease was renewed. None: no API server has one, or it does not tell what time it is.
    pub fn silent(&self) -> Option<SignedDuration> {
        let renewed = self.newest()?.renewed.as_ref()?.0;
        let last = self.others.as_ref().map_or(renewed, |others| others.0.max(renewed));
        Some(self.now.as_ref()?.0.duration_since(last))
    }
}

/// A namespace that is being removed.
#[derive(Clone, Debug, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceFacts {
    /// Its name.
    pub name: String,
    /// Since when.
    pub since: Option<Time>,
    /// What the API server says about it.
    #[serde(default)]
    pub messages: Vec<String>,
}

/// A work without what it applies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkFacts {
    /// The namespace, which is its cluster's name.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// When it was created.
    pub created: Option<Time>,
    /// Since when it is being removed.
    pub deleting: Option<Time>,
    /// What has to be done before it is gone.
    pub finalizers: Vec<String>,
    /// Whether its status was read, and not only its metadata.
    pub has_status: bool,
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// The objects that could not be applied: what, and why.
    pub failed: Vec<String>,
}
