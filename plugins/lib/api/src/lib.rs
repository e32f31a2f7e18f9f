//! Vocabulary of Open Cluster Management: the objects, names and conditions that every other crate speaks of.
//!
//! Six kinds of words:
//!
//! * **Objects that we install**: [`ClusterManager`] and [`Klusterlet`], complete, because the API server drops every
//!   field that their schema does not name. [`crds`] holds their CustomResourceDefinitions.
//! * **Objects of our own**: [`HubPolicy`], which administrators write, [`RegistrationApproval`], by which a person lets a
//!   cluster join, and [`Registration`], which the policy controller writes.
//! * **Objects that we read and patch**: [`ManagedCluster`], [`ManagedClusterSet`], [`ManagedClusterSetBinding`],
//!   [`Placement`], [`PlacementDecision`], [`ManifestWork`], [`AppliedManifestWork`], [`ManifestWorkReplicaSet`],
//!   [`ManagedClusterAddOn`], [`ClusterManagementAddOn`], [`AddOnTemplate`], [`AddOnDeploymentConfig`]. Their hub owns the
//!   schema, so unknown fields are ignored; write them with patches, never with a replace.
//! * **Objects of others**: [`cert_manager`], and [`parts`] of those of Kubernetes itself.
//! * **Names**: [`names`] and [`conditions`].
//! * **One object of a plan**: [`Manifest`].
//!
//! The crate does no I/O and knows no client. Values come from open-cluster-management.io/api v1.3.0; the contract
//! tests compare every path of the schemas with that module.

// What is derived names this crate, also within it.
extern crate self as ocm_api;

#[macro_use]
mod text_enum;
#[macro_use]
mod object;

pub mod addon;
pub mod approval;
pub mod cert_manager;
pub mod cluster;
pub mod conditions;
pub mod crds;
#[cfg(feature = "schema")]
mod field_schema;
mod lenient;
mod manifest;
pub mod member;
pub mod names;

pub mod operator;
pub mod parts;
pub mod placement;
pub mod policy;
pub mod registration;
#[cfg(feature = "schema")]
pub mod schema;
pub mod work;

pub use addon::{AddOnDeploymentConfig, AddOnTemplate, ClusterManagementAddOn, ManagedClusterAddOn};
pub use approval::RegistrationApproval;
pub use cluster::{ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding};
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
pub use manifest::{Manifest, redacted};
pub use operator::{ClusterManager, Klusterlet};
pub use placement::{Placement, PlacementDecision};
pub use policy::HubPolicy;
pub use registration::Registration;
pub use work::{AppliedManifestWork, ManifestWork, ManifestWorkReplicaSet};
