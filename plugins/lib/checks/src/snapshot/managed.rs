//! What a managed cluster shows.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use ocm_api::Klusterlet;
use ocm_api::member::Member;
use serde::Serialize;

use super::Observed;
use super::hub::{LeaseFacts, NamespaceFacts, StorageFacts};
use super::observed::Workload;
use super::secret::SecretFacts;

/// What a managed cluster shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedSide {
    /// Address of its API server.
    pub server: String,
    /// The context of the kubeconfig that names it.
    pub context: Option<String>,
    /// UID of its namespace `kube-system`; none where it is not known.
    pub uid: Option<String>,
    /// What its API servers tell of their storage.
    pub storage: Observed<StorageFacts>,
    /// The operator's Deployment.
    pub operator: Observed<Workload>,
    /// The operator's leader lease.
    pub leases: Observed<Vec<LeaseFacts>>,
    /// The Klusterlets; empty where the kind is not served.
    pub klusterlets: Observed<Vec<Klusterlet>>,
    /// The agents of each Klusterlet.
    pub agents: Vec<AgentSide>,
    /// The namespaces that are being removed.
    pub terminating: Observed<Vec<NamespaceFacts>>,
    /// What agents have applied; empty where the kind is not served.
    pub applied_works: Observed<Vec<AppliedWorkFacts>>,
    /// Who is bound to the ClusterRole cluster-admin, as far as service accounts are.
    pub admins: Observed<Vec<AdminFacts>>,
}

/// What an agent has applied for a work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase", default)]
pub struct AppliedWorkFacts {
    /// Its name.
    pub name: String,
    /// The work on the hub.
    pub work: String,
    /// The agent that has applied it: the UID of its Klusterlet.
    pub agent: String,
    /// Since when the agent does not find the work on the hub: after its time of grace it removes what it has applied.
    pub evicting: Option<Time>,
    /// Since when it is being removed.
    pub deleting: Option<Time>,
}

/// A service account that may do everything on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase", default)]
pub struct AdminFacts {
    /// The ClusterRoleBinding.
    pub binding: String,
    /// The namespace of the service account.
    pub namespace: String,
    /// The name of the service account; `*`: every one of the namespace.
    pub name: String,
}

/// A NetworkPolicy that limits where pods may connect to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkPolicyFacts {
    /// Its name.
    pub name: String,
    /// Whether it is for every pod of the namespace.
    pub is_for_all: bool,
    /// The TCP ports that it allows, to somebody at least: the first and the last of each range.
    pub ports: Vec<(u16, u16)>,
    /// Whether it allows every port, or one whose number is not known.
    pub allows_any: bool,
}

/// What a Klusterlet has made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentSide {
    /// Name of the Klusterlet.
    pub klusterlet: String,
    /// The namespace of its agents.
    pub namespace: String,
    /// Their Deployments.
    pub deployments: Observed<Vec<Workload>>,
    /// The Secret that they register with; none: it is not there.
    pub bootstrap: Observed<Option<SecretFacts>>,
    /// The Secret that they were let in with; none: it is not there.
    pub identity: Observed<Option<SecretFacts>>,
    /// Their leader leases.
    pub leases: Observed<Vec<LeaseFacts>>,
    /// The NetworkPolicies of their namespace that limit where pods may connect to.
    pub network_policies: Observed<Vec<NetworkPolicyFacts>>,
}
