//! A client whose connections go through a SOCKS proxy: those of the client library show one no credentials.

use http::Uri;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::client::retry::RetryPolicy;
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use kube::{Client, Config};
use ocm_core::{Failure, Reason};
use ocm_net::SocksError;
use ocm_net::proxy::Proxy;
use tower::retry::RetryLayer;
use tower::{BoxError, ServiceBuilder, ServiceExt as _, service_fn};

use crate::connect::CONNECT_TIMEOUT;
use crate::middleware::Middleware;

/// The client that the library makes of a configuration, but for how it connects.
pub(crate) fn client(proxy: Proxy, config: &Config, middleware: &Middleware) -> Result<Client, kube::Error> {
    let dial = service_fn(move |server: Uri| {
        let proxy = proxy.clone();
        async move { dial(&proxy, &server).await.map(TokioIo::new) }
    });
    let secure = config.rustls_https_connector_with_connector(dial)?;
    let connect = service_fn(move |server: Uri| {
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, secure.clone().oneshot(server));
        Box::pin(async move { connected.await.map_err(BoxError::from)? })
    });
    let client: legacy::Client<_, Body> = legacy::Builder::new(TokioExecutor::new()).build(connect);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(RetryLayer::new(RetryPolicy::server_retry()))
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    Ok(ClientBuilder::new(service, config.default_namespace.clone()).with_layer(middleware).build())
}

async fn dial(proxy: &Proxy, server: &Uri) -> Result<tokio::net::TcpStream, Failure> {
    let port = server.port_u16().unwrap_or(if server.scheme_str() == Some("http") { 80 } else { 443 });
    proxy.socks(server.host().unwrap_or_default(), port).await.map_err(|error| {
        let what = match error {
            SocksError::Unreachable(_) => "cannot be reached",
            _ => "does not let it through",
        };
        Failure::new(Reason::Unreachable, format!("the proxy {proxy} {what}")).because(error).hint(
            "check the proxy-url of the kubeconfig, or HTTPS_PROXY; addresses that need no proxy belong into NO_PROXY",
        )
    })
}
