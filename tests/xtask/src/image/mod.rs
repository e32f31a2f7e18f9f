//! `cargo xtask image`: a container image of a binary, as an OCI archive, with a list of what is linked beside it.
//!
//! The same sources give the same bytes: nothing in them depends on when, where or by whom they were built.

mod architecture;
mod archive;
mod build;
mod linked;
mod program;
mod run;
mod sbom;
mod smoke;
mod twice;

pub use architecture::Architecture;
pub use archive::{Archive, Image, Platform, USER, archive};
pub use linked::linked;
pub use run::{Arguments, run};
pub use smoke::{node, pod, smoke};
pub use twice::twice;
