//! How each kind of module is run.

pub(crate) mod component;
pub(crate) mod errors;
pub(crate) mod foreign;
mod guest_memory;
mod host_calls;
mod load;
mod machine_code;
pub(crate) mod opa;
mod program;
mod rego;
pub(crate) mod store;
mod wapc;
mod wasi;
mod wasi_imports;

pub(crate) use load::load;
pub(crate) use machine_code::MachineCode;
pub(crate) use program::{Program, Ready};
