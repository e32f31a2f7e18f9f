//! Questions to policies of other contracts, and their answers in our words: one adapter for each contract.
//!
//! Such policies do not know our bounds: messages and warnings are shortened and keys of audit entries are put right.
//! Nothing that decides is guessed. What is missing, undefined, unknown or contradictory is an error, never an allow.

mod answer;
mod difference;
mod gatekeeper;
mod kubewarden;
mod opa;

pub use difference::diff;
pub use gatekeeper::{VIOLATION, check_inventory, gatekeeper_input, gatekeeper_result, inventory, inventory_version};
pub use kubewarden::{
    KUBEWARDEN_CONTRACT, REJECTED, Settings, kubewarden_input, kubewarden_manifest, kubewarden_response,
    kubewarden_settings,
};
pub use opa::{REGO_DENIES, REGO_HOLDS, opa_input, opa_result};
