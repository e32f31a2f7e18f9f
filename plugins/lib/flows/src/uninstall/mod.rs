//! `uninstall hub`, `uninstall baseline`, `uninstall policy-engine`.

mod baseline;
mod hosted;
mod hub;
mod policy_engine;

pub use baseline::{Request, Uninstalled, find_baseline, uninstall_baseline};
pub use hub::{HubFound, HubUninstalled, find_hub, uninstall_hub};
pub use policy_engine::{EngineFound, EngineRequest, EngineUninstalled, find_policy_engine, uninstall_policy_engine};
