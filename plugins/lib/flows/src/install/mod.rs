//! `install hub`.
//!
//! ```text
//! Options ─▶ survey (what is there) ─▶ plan ─▶ render · diff · dry run
//!                                        └──▶ preflight ─▶ apply ─▶ usable (health)
//! ```

mod carry_out;
mod health;
mod preflight;
mod survey;

pub use carry_out::{InstallError, Installed, Request, install, new_hub};
