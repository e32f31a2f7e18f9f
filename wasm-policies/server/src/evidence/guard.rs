//! Approvals count only while, and as far as, the API server proves who wrote them.

use std::sync::Arc;
use std::time::Duration;

use ocm_core::baseline::approvals::{self, GUARD};
use ocm_policy_abi::{EvidenceSource, Table};

use super::store::Store;

/// A source with what has to be known to judge it.
pub(super) fn with(source: &EvidenceSource) -> impl Iterator<Item = EvidenceSource> + use<> {
    let guards = (*source == EvidenceSource::Approvals).then(guards);
    [source.clone()].into_iter().chain(guards.into_iter().flatten())
}

/// The policies of the API server, and their bindings.
fn guards() -> [EvidenceSource; 2] {
    ["validatingadmissionpolicies", "validatingadmissionpolicybindings"].map(|resource| EvidenceSource::Objects {
        api_version: "admissionregistration.k8s.io/v1".to_owned(),
        resource: resource.to_owned(),
        namespace: None,
    })
}

/// Since when approvals are proved, in milliseconds since 1970; none where they are not, or nobody can tell.
pub(super) fn proves_since(find: impl Fn(&EvidenceSource) -> Option<Arc<Store>>, oldest: Duration) -> Option<i64> {
    let [policy, binding] = guards().map(|source| find(&source)?.object_of(GUARD, oldest));
    Some(approvals::proves_since(&policy?, &binding?)?.as_millisecond())
}

/// What is known where they are not: nothing that could be counted.
pub(super) fn nothing(store: &Store) -> Table<'static> {
    Table { revision: store.revision().to_string().into(), complete: false, rows: Vec::new() }
}
