//! Connections through a proxy server of the add-on cluster-proxy: agents of managed clusters have dialled it, and open
//! connections for its clients. Upstream: apiserver-network-proxy in mode grpc, whose clients carry one connection in one
//! stream.
//!
//! ```text
//! client ═ TLS, HTTP/2, gRPC ═ proxy server ═ agent ─ CLUSTER:443, the API server of the managed cluster
//! ```

mod packet;
mod tunnel;

pub use tunnel::{Client, TunnelError};
