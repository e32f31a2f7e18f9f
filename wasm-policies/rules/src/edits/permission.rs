//! Who may make which change.

use ocm_policy_abi::{Edit, EditGrant, Operation, Request};

use ocm_rules::name::is_system_key;

use super::merge::target;
use crate::error::PolicyError;

/// Checks edits against what the policy's manifest announces and what the administrator permits: both have to cover
/// each edit, and system keys ([`is_system_key`]) have to be named in full by both. The label of the cluster set is
/// reached by [`EditGrant::ClusterSet`] alone.
///
/// Only a ManagedCluster that is about to be written can be edited: with create, update, accept and join, and not
/// through a subresource, which would drop the changes in silence.
///
/// # Errors
/// [`PolicyError::EditRefused`] names the first edit that is not covered.
pub fn check(
    edits: &[Edit],
    request: &Request<'_>,
    manifest: &[EditGrant],
    administrator: &[EditGrant],
) -> Result<(), PolicyError> {
    let Some(first) = edits.first() else { return Ok(()) };
    let writes =
        matches!(request.operation, Operation::Create | Operation::Update | Operation::Accept | Operation::Join);
    if !writes || request.resource.as_ref().is_some_and(|resource| resource.subresource.is_some()) {
        let what = request.operation.word();
        return Err(PolicyError::EditRefused(format!("{}: nothing can be edited with this {what}", target(first))));
    }
    let missing = |edit: &&Edit| !permitted(edit, manifest) || !permitted(edit, administrator);
    match edits.iter().find(missing) {
        None => Ok(()),
        Some(edit) if permitted(edit, manifest) => {
            Err(PolicyError::EditRefused(format!("{}: the administrator does not permit it", target(edit))))
        }
        Some(edit) => Err(PolicyError::EditRefused(format!("{}: its manifest does not announce it", target(edit)))),
    }
}

/// Whether one of these grants reaches the edit.
fn permitted(edit: &Edit, grants: &[EditGrant]) -> bool {
    let system = key(edit).is_some_and(is_system_key);
    grants.iter().any(|grant| grant.covers(edit) && !(system && is_wildcard(grant)))
}

fn is_wildcard(grant: &EditGrant) -> bool {
    match grant {
        EditGrant::Label { key } | EditGrant::Annotation { key } | EditGrant::Taint { key } => key.ends_with('*'),
        EditGrant::ClusterSet | EditGrant::LeaseDuration => false,
    }
}

fn key(edit: &Edit) -> Option<&str> {
    match edit {
        Edit::SetLabel { key, .. }
        | Edit::RemoveLabel { key }
        | Edit::SetAnnotation { key, .. }
        | Edit::RemoveAnnotation { key }
        | Edit::AddTaint { key, .. }
        | Edit::RemoveTaint { key } => Some(key),
        Edit::SetClusterSet { .. } | Edit::SetLeaseDuration { .. } => None,
    }
}
