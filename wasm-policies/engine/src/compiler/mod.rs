//! From modules to artifacts.

mod cache;
mod confine;
mod local;
mod pipes;
mod process;
mod protocol;
mod snapshot;
mod subprocess;

pub use cache::{Cache, CacheError};
pub use local::compile_here;
pub use process::Compiler;
pub use subprocess::{confine_for_tests, serve};
