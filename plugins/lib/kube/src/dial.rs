//! A client that dials directly or through any kind of proxy: those of the client library show a SOCKS proxy no
//! credentials, tell nobody which proxy refused, and bring a whole HTTP client for each kind.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response, StatusCode, Uri};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::client::retry::RetryPolicy;
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use kube::{Client, Config};
use ocm_core::Failure;
use ocm_core::duration::human;
use ocm_net::proxy::{Proxy, ProxyName};
use ocm_net::{ConnectError, Endpoint, Identity, Stream, Trust, Tunnel, Vantage, client_config};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tower::retry::{Policy, RetryLayer};
use tower::{BoxError, Service, ServiceBuilder, ServiceExt as _, service_fn};

use crate::middleware::Middleware;

/// A server that does not answer the TCP and TLS handshakes for so long is not going to serve a command-line tool.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Shorter, so that a proxy that does not answer is told from a server behind it.
const PROXY_TIMEOUT: Duration = Duration::from_secs(8);

/// There is no connection to the server in time.
#[derive(Debug, thiserror::Error)]
#[error("no connection within {}", human(CONNECT_TIMEOUT))]
pub(crate) struct NotConnected {
    /// The proxy on the way.
    pub(crate) proxy: Option<ProxyName>,
}

/// The client that the library makes of a configuration, but for how it connects and proves who it is. The credentials of the
/// configuration are not looked at: the library would run programs for them, and read them in a language of queries.
pub(crate) fn client(
    proxy: Option<Proxy>,
    from: &Vantage,
    config: &Config,
    identity: Option<Identity>,
    middleware: &Middleware,
    sends_once: bool,
) -> Result<Client, BoxError> {
    let name = proxy.as_ref().map(Proxy::name);
    let trust = match (&config.root_cert, config.accept_invalid_certs) {
        (_, true) => Trust::Anybody,
        (Some(authorities), false) => Trust::Authorities(authorities),
        (None, false) => Trust::System,
    };
    // A proxy need not know who talks to the server behind it.
    let tunnel = proxy.map(|proxy| Tunnel::new(proxy, from.clone(), trust));
    let tunnel = tunnel.transpose()?.map(Arc::new);
    let mut secure = HttpsConnectorBuilder::new().with_tls_config(client_config(trust, identity)?).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let unusable = |_| format!("its tls-server-name {name:?} is no name of a host");
        let name = ServerName::try_from(name.clone()).map_err(unusable)?;
        secure = secure.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let secure = secure.enable_http1().wrap_connector(Dial { tunnel, from: from.clone() });
    let connect = service_fn(move |server: Uri| {
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, secure.clone().oneshot(server));
        let late = NotConnected { proxy: name.clone() };
        Box::pin(async move { connected.await.map_err(|_| BoxError::from(late))? })
    });
    let client: legacy::Client<_, Body> = legacy::Builder::new(TokioExecutor::new()).build(connect);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer((!sends_once).then(|| RetryLayer::new(Retry(RetryPolicy::server_retry()))))
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    Ok(ClientBuilder::new(service, config.default_namespace.clone()).with_layer(middleware).build())
}

/// Sends requests again that the server could not take. Behind a 504 one may still be carried out, or has been: only what reads is
/// sent again then, or an own write would be taken for somebody else's.
#[derive(Clone)]
struct Retry(RetryPolicy);

impl<Res> Policy<Request<Body>, Response<Res>, BoxError> for Retry {
    type Future = <RetryPolicy as Policy<Request<Body>, Response<Res>, BoxError>>::Future;

    fn retry(
        &mut self,
        request: &mut Request<Body>,
        result: &mut Result<Response<Res>, BoxError>,
    ) -> Option<Self::Future> {
        let is_late = result.as_ref().is_ok_and(|response| response.status() == StatusCode::GATEWAY_TIMEOUT);
        if is_late && !request.method().is_safe() {
            return None;
        }
        self.0.retry(request, result)
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        Policy::<_, Response<Res>, BoxError>::clone_request(&mut self.0, request)
    }
}

/// Opens connections to servers.
#[derive(Clone)]
struct Dial {
    /// The proxy on the way.
    tunnel: Option<Arc<Tunnel>>,
    from: Vantage,
}

impl Service<Uri> for Dial {
    type Response = TokioIo<Dialled>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let port = server.port_u16().unwrap_or(if server.scheme_str() == Some("http") { 80 } else { 443 });
        let host = server.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        let (tunnel, from) = (self.tunnel.clone(), self.from.clone());
        Box::pin(async move {
            let opened = match tunnel {
                Some(tunnel) => tunnel.open(&host, port, PROXY_TIMEOUT).await.map_err(|error| error.failure()),
                None => from.open(&host, port).await.map_err(|error| not_opened(&error, &from, &host, port)),
            };
            Ok(TokioIo::new(Dialled(opened.map_err(io::Error::other)?)))
        })
    }
}

/// Why a connection was not opened. From another place the address is told: it is that place's, and not the kubeconfig's.
fn not_opened(error: &ConnectError, from: &Vantage, host: &str, port: u16) -> Failure {
    match Endpoint::of(host, port) {
        Ok(endpoint) if !from.is_here() => error.failure(&endpoint),
        _ => error.unreached(&"the cluster's address"),
    }
}

/// A connection to a server, whatever it leads through.
struct Dialled(Box<dyn Stream>);

impl Connection for Dialled {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Dialled {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Dialled {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_may_have_been_written_is_not_written_again() {
        let is_sent_again = |method: &str, status: u16| {
            let mut request = Request::builder().method(method).uri("/").body(Body::empty()).unwrap();
            let response = Response::builder().status(status).body(()).unwrap();
            let mut policy = Retry(RetryPolicy::server_retry());
            policy.retry(&mut request, &mut Ok::<_, BoxError>(response)).is_some()
        };
        for method in ["POST", "PATCH", "PUT", "DELETE"] {
            assert!(!is_sent_again(method, 504), "{method}");
            assert!(is_sent_again(method, 429) && is_sent_again(method, 503), "{method}");
        }
        assert!(is_sent_again("GET", 504) && !is_sent_again("GET", 500));
    }
}
