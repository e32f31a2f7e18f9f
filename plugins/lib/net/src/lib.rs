//! TLS connections outside Kubernetes' client: to API servers, to learn which authority vouches for one, and to check that
//! one does, on which no credential ever travels; and to other servers that an authority vouches for. And the way through a
//! proxy, for every connection.
//!
//! ```text
//! Endpoint ─▶ present                 what it presents, and which authorities vouch for it
//!          ─▶ learn(pins, candidates) an authority with a pinned key that vouches for the server
//!          ─▶ secure                  a connection to a server that an authority vouches for
//! Proxy    ─▶ Tunnel::open            a connection to a server through the proxy
//! Trust    ─▶ client_config           how a client of an HTTP library speaks TLS
//! Vantage  ─▶ open                    a connection from here, or from another place that passes bytes on
//! konnectivity::Client ─▶ open        a connection that the agent of a managed cluster opens, by a proxy server on the hub
//! ```

mod client;
mod connect;
mod connect_error;
mod direct;
mod endpoint;
mod hello;
pub mod key;
pub mod konnectivity;
mod learn;
pub mod proxy;
mod proxy_error;
mod socks;
mod stream;
mod tls_error;
mod tunnel;
mod vantage;

pub use client::{Identity, Trust, UnusableIdentity, UnusableTls, VERSIONS, client_config};
pub use connect::{Presented, Way, plain, present, present_by, secure};
pub use connect_error::ConnectError;
pub use endpoint::Endpoint;
pub use hello::{Suites, accepts, suites};
pub use learn::{Learned, Source, learn};
pub use proxy_error::{ProxyError, ProxyFault};
pub use stream::Stream;
pub use tls_error::tls_failure;
pub use tunnel::Tunnel;
pub use vantage::{Dial, Opening, Vantage};
