//! `operator.open-cluster-management.io/v1`: what an installer hands to the two operators.
//!
//! Field by field as upstream's `operator/v1`. Fields that upstream's schema requires are plain values here, all
//! others are optional; a default that the API server fills in is named in the field's comment.

mod cluster_manager;
mod klusterlet;
mod spec;
mod status;

pub use cluster_manager::*;
pub use klusterlet::*;
pub use spec::*;
pub use status::*;
