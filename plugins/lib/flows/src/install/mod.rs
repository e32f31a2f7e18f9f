//! `install hub`, `install baseline`, `install policy-engine`.
//!
//! ```text
//! Options ─▶ survey (what is there) ─▶ former (what is being deleted) ─▶ plan ─▶ render · diff · dry run
//!                                        └──▶ preflight ─▶ apply ─▶ usable
//! ```

mod asking;
mod baseline;
mod carry_out;
mod cert_manager;
mod error;
mod former;
mod gateway;
pub(crate) mod hosted;
mod node_ports;
mod policy_engine;
pub(crate) mod preflight;
pub(crate) mod probe;
mod releases;
pub(crate) mod survey;

pub(crate) use asking::{ask_again, check_asking};
pub use baseline::{BaselineInstalled, BaselineRequest, install_baseline, new_baseline};
pub use carry_out::{Installed, Request, install, new_hub};
pub(crate) use cert_manager::asked_for;
pub use error::InstallError;
pub use policy_engine::{EngineError, EngineInstalled, EngineRequest, install_policy_engine, new_policy_engine};
