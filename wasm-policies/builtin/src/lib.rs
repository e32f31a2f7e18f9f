//! The policies that come along, as WebAssembly modules: whoever links this crate needs no registry for them.

mod modules;

pub use modules::{ALL, Builtin, find};
