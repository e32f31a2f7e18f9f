//! Layers, schemas, docs agree with the code.

pub mod sources;
pub mod verifiers;
