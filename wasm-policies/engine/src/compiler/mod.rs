//! From modules to artifacts.

mod cache;
mod local;
mod process;
mod protocol;
mod snapshot;
mod subprocess;

pub use cache::{Cache, CacheError};
pub use local::compile_here;
pub use process::Compiler;
pub use subprocess::serve;
