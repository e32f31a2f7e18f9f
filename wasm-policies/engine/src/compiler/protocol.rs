//! What the parent and the compiling subprocess say to each other.

use serde::{Deserialize, Serialize};

use crate::limits::Ceiling;

/// What is compiled, besides the module.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Order {
    /// None: only what the policy says of itself is asked for.
    pub(super) settings: Option<String>,
    pub(super) ceiling: Ceiling,
    pub(super) cpu_seconds: u64,
    pub(super) memory_bytes: u64,
}
