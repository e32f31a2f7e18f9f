//! What was found of a managed cluster that leaves.

use ocm_api::AppliedManifestWork;
use ocm_api::names::finalizers;
use ocm_core::kubeconfig::HubAddress;
use ocm_core::leave::klusterlet::Known;
use ocm_kube::Cluster;

use super::request::UnjoinRequest;
use crate::leave::hub::Held;

/// What was found.
#[derive(Clone)]
pub struct Seen {
    /// The Klusterlet that goes, if there is one.
    pub known: Option<Known>,
    /// How many others there are.
    pub others: usize,
    /// The records of works of its agent.
    pub applied: Vec<AppliedManifestWork>,
    /// The managed cluster, where it is another one and can be reached.
    pub(super) guest: Option<Cluster>,
    /// The UID of the operator's Deployment.
    pub(super) operator: Option<String>,
    /// Whether something else of the operator is there: a run that was killed leaves it.
    pub(super) residue: bool,
    /// Whether the operator of a hub is on the same cluster.
    pub beside_hub: bool,
    /// Where the hub of its agent is, as far as that can be read.
    pub address: Option<HubAddress>,
    /// What its hub holds of the cluster, with access to it.
    pub held: Option<Held>,
    /// The addresses at which its agent has found that hub, as far as they are known.
    pub(super) addresses: Vec<String>,
    /// By what records name the works that the hub removes with all of their objects.
    pub(super) removed: Vec<String>,
}

impl Seen {
    /// Name of the cluster on its hub.
    pub fn cluster(&self) -> Option<&str> {
        self.known.as_ref().and_then(|known| known.cluster.as_deref())
    }

    /// Whether the operator goes, too.
    pub fn operator_goes(&self, request: &UnjoinRequest) -> bool {
        self.others == 0 && !request.keep_operator
    }

    /// Whether there is nothing at all.
    pub fn is_empty(&self) -> bool {
        self.known.is_none()
            && self.operator.is_none()
            && self.applied.is_empty()
            && !self.residue
            && self.held.as_ref().is_none_or(Held::is_empty)
    }
}

pub(super) const fn own_finalizers() -> [&'static str; 2] {
    [finalizers::KLUSTERLET, finalizers::KLUSTERLET_HOSTED]
}

pub(in crate::leave) fn is_being_deleted(known: &Known) -> bool {
    known.klusterlet.metadata.deletion_timestamp.is_some()
}

pub(super) fn has_own_finalizers(known: &Known) -> bool {
    let all = known.klusterlet.metadata.finalizers.iter().flatten();
    all.into_iter().any(|one| own_finalizers().contains(&one.as_str()))
}
