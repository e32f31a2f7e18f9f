//! TLS connections to API servers outside Kubernetes' client: to learn which authority vouches for a server, and to
//! check that one does. No credential ever travels on them. And the way through a proxy, for every connection.
//!
//! ```text
//! Endpoint ─▶ present                 what it presents, and which authorities vouch for it
//!          ─▶ learn(pins, candidates) an authority with a pinned key that vouches for the server
//! Proxy    ─▶ Tunnel::open            a connection to a server through the proxy
//! ```

mod connect;
mod endpoint;
mod learn;
pub mod proxy;
mod socks;
mod tls_error;
mod tunnel;

pub use connect::{ConnectError, Presented, present};
pub use endpoint::Endpoint;
pub use learn::{Learned, Source, learn};
pub use tls_error::tls_failure;
pub use tunnel::{ProxyError, ProxyFault, Stream, Tunnel};
