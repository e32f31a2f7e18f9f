//! The tools of this repository: `cargo demo`, `cargo verify`, `cargo soak`, `cargo xtask generate`, `cargo xtask package`, `cargo xtask image`.
#![expect(clippy::print_stdout, reason = "a command speaks on its standard streams")]

mod archive;
pub mod demo;
pub mod deny;
pub mod generate;
pub mod image;
pub mod krew;
pub mod package;
pub mod places;
pub mod prepare;
mod processors;
pub mod soak;
pub mod story;
pub mod verify;
