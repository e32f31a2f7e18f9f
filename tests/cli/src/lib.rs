//! Running the commands as people do, and looking at exit code, stdout and stderr.
//!
//! ```text
//! Cli::new()            a home of its own, a clean environment, the binaries just built
//!   .kubeconfig(text)   what the commands read
//!   .env(name, value)
//!   .run(["accept", "c1"]) ─▶ Run { exit, stdout, stderr } ─▶ snapshot
//! ```

mod authority;
mod binaries;
mod cli;
pub mod docs;
mod guest;
mod kubeconfig;
pub mod proxy;
#[path = "../../../wasm-policies/builtin/remap.rs"]
mod remap;
mod run;
pub mod server;
mod snapshot;
pub mod terminal;
pub mod tree;

pub use authority::authority;
pub use binaries::{binaries, binary, build, build_some, file_name, folder, root};
pub use cli::Cli;
pub use guest::{guests, target};
pub use kubeconfig::kubeconfig;
pub use launcher::{BINARIES, cargo};
pub use remap::{cargo_home, remap_flag, source_folders};
pub use run::Run;
pub use snapshot::escape;
