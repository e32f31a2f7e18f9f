//! `install hub`, `install baseline`.
//!
//! ```text
//! Options ─▶ survey (what is there) ─▶ plan ─▶ render · diff · dry run
//!                                        └──▶ preflight ─▶ apply ─▶ usable (health)
//! ```

mod baseline;
mod carry_out;
mod health;
mod preflight;
pub(crate) mod probe;
mod survey;

pub use baseline::{BaselineInstalled, BaselineRequest, install_baseline, new_baseline};
pub use carry_out::{InstallError, Installed, Request, install, new_hub};
