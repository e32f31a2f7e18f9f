//! What is kept of objects: nothing that may be a credential, and no more than is looked at.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use ocm_api::Condition;
use ocm_api::parts::Lease;
use ocm_checks::snapshot::{LeaseFacts, Version};
use ocm_core::agent_lease::written;
use ocm_core::redact::{LONGEST, redact, redact_start};

/// How many finalizers of an object are kept.
const FINALIZERS: usize = 10;

/// How much is kept of who holds a lease: characters. Pods have shorter names.
const HOLDER: usize = 320;

/// Takes away what nobody needs and what anybody may have written anything into.
pub(super) fn strip(metadata: &mut ObjectMeta) {
    (metadata.managed_fields, metadata.owner_references) = Default::default();
    (metadata.annotations, metadata.labels) = Default::default();
    if let Some(finalizers) = &mut metadata.finalizers {
        finalizers.truncate(FINALIZERS);
    }
}

/// Those annotations of an object that are wanted, without what may be a credential; none of what is longer than anybody
/// writes by hand.
pub(super) fn annotations_of(metadata: &mut ObjectMeta, wanted: &[&str]) -> Option<BTreeMap<String, String>> {
    let mut all = metadata.annotations.take()?;
    all.retain(|name, value| wanted.contains(&name.as_str()) && value.len() <= LONGEST);
    all.values_mut().for_each(|value| *value = redact(value));
    (!all.is_empty()).then_some(all)
}

/// Takes out of conditions what may be a credential, and cuts them short.
pub(super) fn redact_all(conditions: &mut [Condition]) {
    conditions.iter_mut().for_each(|condition| condition.message = redact_start(&condition.message));
}

/// Which object it was, and how.
pub(super) fn version(metadata: &ObjectMeta) -> Option<Version> {
    Some(Version { uid: metadata.uid.clone()?, resource_version: metadata.resource_version.clone()? })
}

/// A lease, of which it is not known whether its holder is gone.
pub(super) fn lease_facts(lease: Lease) -> LeaseFacts {
    let written = written(&lease).map(Time);
    let spec = lease.spec.unwrap_or_default();
    LeaseFacts {
        // The leases of a fleet change all the time, and nobody deletes them.
        version: None,
        namespace: lease.metadata.namespace.unwrap_or_default(),
        name: lease.metadata.name.unwrap_or_default(),
        renewed: spec.renew_time.map(|time| Time(time.0)),
        written,
        seconds: spec.lease_duration_seconds,
        holder: spec.holder_identity.map(|holder| holder.chars().take(HOLDER).collect()),
        gone: None,
    }
}

/// A time as snapshots have it.
pub(super) fn time(time: Option<&Time>) -> Option<Time> {
    time.cloned()
}
