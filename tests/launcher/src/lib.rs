//! One line of progress for what takes minutes on a new machine.
//!
//! `cargo demo`, `cargo verify` and `cargo soak` run the program of this crate, which compiles in seconds because it
//! depends on nothing. It builds the real tool, shows how far that is, and becomes it.

mod cargo;
mod progress;

pub use cargo::{BINARIES, cargo};
pub use progress::{Progress, Step};
