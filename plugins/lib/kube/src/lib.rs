//! The Kubernetes edge: how people point us at a cluster, how we talk to it, and how its errors become sentences.
//!
//! ```text
//! ClientArgs / HubArgs / ManagedArgs ─▶ Connection ─▶ Cluster { client, where it came from }
//!                                                        │
//!              apply(plan) · remove(plan) · access(review) · wait(until) ─▶ Failure, translated once
//! ```

pub mod access;
pub mod admission;
pub mod apply;
mod args;
mod connect;
pub mod contents;
mod credentials;
mod dial;
mod explain;
pub mod forward;
pub mod kubeconfig;
mod middleware;
pub mod pages;
mod readable;
pub mod relay;
pub mod remove;
pub mod triggers;
mod untyped;
pub mod wait;

pub use args::{ClientArgs, Connection, FallbackHubArgs, HubArgs, ManagedArgs};
pub use connect::{Cluster, connect, connect_to};
pub use explain::{explain, may_be_done};
pub use readable::readable;
