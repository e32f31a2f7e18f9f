//! Clusters and their certificate requests, for what the hub does by itself.

use ocm_policy_abi::{Csr, EvidenceSource, Query};
use ocm_policy_engine::PolicyError;
use ocm_policy_rules::review;
use serde::Deserialize as _;
use serde_json::Value;

use super::knowledge::{Knowledge, OLDEST};

/// What has to be followed for it.
pub(crate) fn queries() -> Vec<Query> {
    [EvidenceSource::Clusters, EvidenceSource::Csrs].map(|source| Query::new("registering", source, [""; 0])).into()
}

impl Knowledge {
    /// The certificate requests that the agent of a cluster registers with, of which none was denied. One that does not clearly
    /// name its cluster is judged when somebody approves it.
    ///
    /// # Errors
    /// When they cannot be told.
    pub(crate) fn registrations_of(&self, cluster: &str) -> Result<Vec<Csr<'static>>, PolicyError> {
        let is_its = |csr: &Csr<'_>| review::is_registration(csr) && review::agents_cluster(csr) == Some(cluster);
        Ok(self.requests_of("/cluster", cluster)?.into_iter().filter(is_its).collect())
    }

    /// All certificate requests that name a cluster, by whatever means and whatever became of them.
    ///
    /// # Errors
    /// When they cannot be told.
    pub(super) fn requests_naming(&self, cluster: &str) -> Result<Vec<Csr<'static>>, PolicyError> {
        self.requests_of("/clusters", cluster)
    }

    fn requests_of(&self, field: &str, cluster: &str) -> Result<Vec<Csr<'static>>, PolicyError> {
        let unknown = |why: &str| PolicyError::Evidence(format!("the certificate requests of the cluster {why}"));
        let store = self.find(&EvidenceSource::Csrs).ok_or_else(|| unknown("are not followed"))?;
        let rows = store.rows_of(field, cluster, OLDEST).map_err(|why| unknown(&why))?;
        let read =
            |row: &Value| Csr::deserialize(row).map(Csr::into_owned).map_err(|error| unknown(&error.to_string()));
        rows.iter().map(read).collect()
    }

    /// A cluster as the hub has it; none where it has none, or that cannot be told.
    pub(crate) fn cluster(&self, name: &str) -> Option<Value> {
        self.find(&EvidenceSource::Clusters)?.object_of(name, OLDEST)
    }
}
