//! Layers, schemas, docs agree with the code.

pub mod verifiers;
