//! What lets bootstrap tokens register clusters, and into which cluster sets.

use ocm_api::Manifest;

use crate::install::rbac;

/// The binding that lets bootstrap tokens register clusters.
pub fn token_binding() -> Manifest {
    Manifest::of(&rbac::token_binding())
}

/// What lets the tokens of a cluster set's group register clusters into it: a role and its binding.
pub fn cluster_set_rights(set: &str) -> [Manifest; 2] {
    [Manifest::of(&rbac::cluster_set_role(set)), Manifest::of(&rbac::cluster_set_binding(set))]
}

/// Whether a bootstrap token can be bound to a cluster set of this name: the name becomes a part of a group's, and those
/// of bootstrap tokens have no dots.
pub fn can_name_set(set: &str) -> bool {
    crate::name::is_dns_label(set)
}
