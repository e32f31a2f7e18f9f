//! The rules about who may get which certificate, what may stand in a managed cluster, and what agents may write.
//!
//! ```text
//! facts (borrowed) + settings ─▶ rule ─▶ violations: code, field, detail
//! ```
//!
//! The commands and the policies judge by these rules alike. The crate has no dependencies: commands compile it
//! natively and map Kubernetes objects onto the facts, policies compile it to WebAssembly and map what they are asked
//! onto them. Nothing is allocated where nothing is wrong.

pub mod agent;
pub mod aws;
pub mod claim;
pub mod cluster;
mod code;
pub mod csr;
pub mod glob;
pub mod identity;
pub mod name;
mod time;

pub use code::{Code, Violation};
