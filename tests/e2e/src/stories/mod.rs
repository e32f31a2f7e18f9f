//! Stories that take too long for `cargo verify`: `cargo soak --parts stories` tells them one after the other, and
//! `cargo bench --profile dev -p bench --bench stories -- WORD` those whose names contain a word.

mod balanced;
mod beside;
mod clusteradm;
mod engine;
mod fallback;
mod fleet;
mod grpc;
mod grpc_faults;
mod held;
mod hub_alone;
mod hubs;
pub mod killed;
mod kills;
mod modes;
mod quiet;
mod resting;
mod rights;
mod table;

pub use table::tell;
