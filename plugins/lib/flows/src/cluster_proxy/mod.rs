//! The add-on cluster-proxy: whether clusters can be reached through it, and the way of kubectl to one.
//!
//! ```text
//! kubectl ─ 127.0.0.1 ─▶ port-forward to a proxy server on the hub ─▶ agent of the cluster ─▶ its API server
//!         ╰───────────────────────── TLS, verified by the CA of the cluster ─────────────────────────╯
//! ```

mod health;
mod installed;
mod session;
mod tunnel;

pub use health::{ClusterRow, Health, Ready, health};
pub use session::{Session, session};
pub use tunnel::Tunnel;
