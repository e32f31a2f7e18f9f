//! Builds policies with the tools that their authors use: cargo, go, opa, npm. The first time needs the network and some
//! minutes; what was built is kept in the folder that the caller names, and tools in the user's cache.

mod command;
mod folders;
mod go;
pub mod node;
mod opa;
mod rust;

pub use folders::{guests, user_cache};
pub use go::{go, go_env, kubewarden_go};
pub use opa::{opa, opa_eval, rego};
pub use rust::{kubewarden, rust};
