//! The tools of this repository: `cargo demo`, `cargo verify`, `cargo xtask generate`.
#![expect(clippy::print_stdout, reason = "a command speaks on its standard streams")]

pub mod demo;
pub mod generate;
pub mod places;
pub mod prepare;
pub mod story;
pub mod verify;
