//! The name of the contract.

/// Name and version of the contract, as manifests and records state it.
pub const CONTRACT: &str = "ocm:policy@0.1.0";

/// The interface that a component of this contract exports.
pub const INTERFACE: &str = "ocm:policy/policy@0.1.0";
