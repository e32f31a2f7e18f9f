//! What an upgrade is going to apply.

use ocm_api::Manifest;

use super::parts::Parts;
use crate::Plan;

/// What an upgrade is going to apply: first everything that stands below the custom resource, then this.
#[derive(Clone, Debug)]
pub struct Upgrade {
    /// Name of the ClusterManager or Klusterlet.
    pub name: String,
    /// What runs now.
    pub before: Parts,
    /// The definition, the operator's rights and the operator.
    pub operator: Plan,
    /// The images of the custom resource.
    pub resource: Plan,
    /// The images that Deployments of the operator have afterwards.
    pub images: Vec<String>,
    /// That images were pinned by a digest and are not any more, where it is so.
    pub unpinned: Option<String>,
}

impl Upgrade {
    /// Both plans as one, for whoever only looks.
    pub fn plan(&self) -> Plan {
        Plan::new(self.operator.stages.iter().chain(&self.resource.stages).cloned())
    }

    /// Leaves those objects out of the rights that `keep` does not name: what an installation does not have, an upgrade does
    /// not bring.
    pub fn retain(&mut self, keep: impl Fn(&Manifest) -> bool) {
        for stage in &mut self.operator.stages {
            stage.objects.retain(&keep);
        }
        self.operator.stages.retain(|stage| !stage.objects.is_empty());
    }
}
