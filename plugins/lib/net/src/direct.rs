//! Connections from this machine, without a proxy.

use std::convert::Infallible;
use std::error::Error;
use std::future::ready;
use std::io;
use std::net::SocketAddr;

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use tokio::net::TcpStream;
use tower::{ServiceExt as _, service_fn};

use crate::connect_error::ConnectError;

/// Opens a TCP connection to a host, whose name it resolves, and a port.
pub(crate) async fn direct(host: &str, port: u16) -> Result<TcpStream, ConnectError> {
    dial(resolved(host, port).await?).await
}

/// The addresses of a host.
pub(crate) async fn resolved(host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
    let addresses = tokio::net::lookup_host((host, port)).await;
    Ok(addresses.map_err(|error| ConnectError::Unresolved(error.to_string()))?.collect())
}

/// Opens a TCP connection to the first of these addresses that answers. Those of the other kind, IPv4 or IPv6, are tried beside
/// them as soon as these are late (RFC 8305).
pub(crate) async fn dial(addresses: Vec<SocketAddr>) -> Result<TcpStream, ConnectError> {
    let known = move |_: Name| ready(Ok::<_, Infallible>(addresses.clone().into_iter()));
    let mut connector = HttpConnector::new_with_resolver(service_fn(known));
    // A request that does not fit into one packet must not wait until the server has confirmed the first.
    connector.set_nodelay(true);
    // Without a port of its own, those of the addresses count.
    let opened = connector.oneshot(Uri::from_static("http://known")).await;
    opened.map(hyper_util::rt::TokioIo::into_inner).map_err(|error| unopened(&error))
}

/// Why there is no connection: what the operating system says lies behind it.
fn unopened(error: &(dyn Error + 'static)) -> ConnectError {
    let Some(behind) = behind(error) else { return ConnectError::Failed(error.to_string()) };
    let kind = match behind.kind() {
        io::ErrorKind::ConnectionRefused => ConnectError::Refused,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => ConnectError::NoRoute,
        _ => ConnectError::Failed,
    };
    kind(behind.to_string())
}

fn behind<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e io::Error> {
    error.downcast_ref().or_else(|| behind(error.source()?))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn every_address_is_tried_and_a_refusal_is_told_from_other_failures() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open = listener.local_addr().unwrap();
        let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let closed = gone.local_addr().unwrap();
        drop(gone);
        let opened = dial(vec![closed, open]).await.unwrap();
        assert_eq!(opened.peer_addr().unwrap(), open);
        assert!(opened.nodelay().unwrap());
        let refused = dial(vec![closed]).await.unwrap_err();
        assert!(matches!(&refused, ConnectError::Refused(cause) if cause.contains("os error")), "{refused:?}");
        assert!(matches!(dial(Vec::new()).await, Err(ConnectError::Failed(_))));
        assert_eq!(direct("127.0.0.1", open.port()).await.unwrap().peer_addr().unwrap(), open);
    }

    #[tokio::test]
    async fn an_address_of_the_other_kind_is_tried_beside_one_that_does_not_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open = listener.local_addr().unwrap();
        // RFC 6666: whoever routes it drops what is sent there. Where there is no IPv6, there is no route.
        let silent = SocketAddr::from(([0x100, 0, 0, 0, 0, 0, 0, 1], open.port()));
        let opened = tokio::time::timeout(Duration::from_secs(2), dial(vec![silent, open])).await.unwrap();
        assert_eq!(opened.unwrap().peer_addr().unwrap(), open);
    }

    #[tokio::test]
    async fn a_name_that_does_not_resolve_is_told_from_a_host_that_does_not_answer() {
        // RFC 2606 keeps it from ever being a name.
        let error = direct("name.invalid", 1).await.unwrap_err();
        assert!(matches!(error, ConnectError::Unresolved(_)), "{error:?}");
    }
}
