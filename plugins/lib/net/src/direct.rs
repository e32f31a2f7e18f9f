//! Connections from this machine, without a proxy.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpStream;

use crate::connect_error::ConnectError;

/// Opens a TCP connection to a host, whose name it resolves, and a port.
pub(crate) async fn direct(host: &str, port: u16) -> Result<TcpStream, ConnectError> {
    dial(&resolved(host, port).await?).await
}

/// The addresses of a host.
pub(crate) async fn resolved(host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
    let addresses = tokio::net::lookup_host((host, port)).await;
    Ok(addresses.map_err(|error| ConnectError::Unresolved(error.to_string()))?.collect())
}

/// Opens a TCP connection to the first of these addresses that answers.
pub(crate) async fn dial(addresses: &[SocketAddr]) -> Result<TcpStream, ConnectError> {
    TcpStream::connect(addresses).await.map_err(|error| {
        let kind = match error.kind() {
            io::ErrorKind::ConnectionRefused => ConnectError::Refused,
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => ConnectError::NoRoute,
            _ => ConnectError::Failed,
        };
        kind(error.to_string())
    })
}
