//! What a managed cluster shows.

use ocm_api::Klusterlet;
use serde::{Deserialize, Serialize};

use super::Observed;
use super::hub::{LeaseFacts, NamespaceFacts};
use super::observed::Workload;
use super::secret::SecretFacts;

/// What a managed cluster shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedSide {
    /// Address of its API server.
    pub server: String,
    /// The context of the kubeconfig that names it.
    pub context: Option<String>,
    /// UID of its namespace `kube-system`; none where it is not known.
    pub uid: Option<String>,
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
}

/// What a Klusterlet has made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
}
