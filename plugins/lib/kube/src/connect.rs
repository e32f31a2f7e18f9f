//! From a [`Connection`] to a client, with every mistake in the kubeconfig said in one sentence.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use kube::config::{AuthInfo, Cluster as ClusterEntry, ExecAuthCluster};
use kube::{Client, Config};
use ocm_core::redact::{HIDDEN, redact};
use ocm_core::{Failure, Narrator, Reason, Role};
use ocm_net::proxy::{self, Origin, Proxy, UnusableProxy};
use ocm_net::{Vantage, Way};
use secrecy::{ExposeSecret as _, SecretString};

use crate::args::Connection;
use crate::credentials::{self, Credentials, Unusable};
use crate::dial;
use crate::explain::explain;
use crate::kubeconfig::{self, Chosen};
use crate::middleware::Middleware;

/// A cluster that we talk to, and how we came to it.
#[derive(Clone)]
pub struct Cluster {
    /// The client; clones share connections.
    pub client: Client,
    /// The context that was used; none when only flags or the pod's service account name the server.
    pub context: Option<String>,
    /// The server's address as given, e.g. `https://10.0.0.1:6443`.
    pub server: String,
    /// The namespace of the context, `default` if it names none.
    pub namespace: String,
    /// The CA certificates (DER) that the server is verified with; none: the system's.
    pub ca: Option<Vec<Vec<u8>>>,
    /// Whether the user asked for no verification.
    pub insecure: bool,
    /// The name that the certificate is checked against, where it is not the address's host.
    pub tls_server_name: Option<String>,
    /// The proxy that our own connection goes through, without credentials.
    pub proxy: Option<String>,
    /// How our own connection gets there.
    pub way: Way,
    /// Which cluster it is to the command.
    pub role: Role,
}

impl Cluster {
    /// How messages name this cluster: by its context where there is one, else by its address.
    pub fn label(&self) -> String {
        match &self.context {
            Some(context) => format!("context {context:?}"),
            None => self.server.clone(),
        }
    }

    /// The same cluster by the same way, for whoever holds this client certificate and nothing else: a chain, and its key, both as
    /// PEM.
    ///
    /// # Errors
    /// A [`Reason::Kubeconfig`] failure when they cannot be used.
    pub fn with_certificate(
        &self,
        chain: &[u8],
        key: &SecretString,
        request_timeout: Duration,
        narrator: Arc<dyn Narrator>,
    ) -> Result<Self, Failure> {
        let unusable = |cause: &dyn std::fmt::Display| {
            Failure::new(Reason::Kubeconfig, "the certificate cannot be used").because(cause)
        };
        let user = AuthInfo {
            client_certificate_data: Some(STANDARD.encode(chain)),
            client_key_data: Some(SecretString::from(STANDARD.encode(key.expose_secret()))),
            ..AuthInfo::default()
        };
        let identity = credentials::certificate(&user, &unusable)?;
        let mut config = Config::new(address(Some(&self.server), &unusable)?);
        config.root_cert.clone_from(&self.ca);
        config.accept_invalid_certs = self.insecure;
        config.tls_server_name.clone_from(&self.tls_server_name);
        let (from, proxy) = match &self.way {
            // A cluster is named by a kubeconfig, and not by others.
            Way::Environment | Way::Remote => (Vantage::default(), environment_proxy(&config.cluster_url)?),
            Way::Direct => (Vantage::default(), None),
            Way::Through(proxy) => (Vantage::default(), Some(proxy.clone())),
            Way::From(from, proxy) => (from.clone(), proxy.clone()),
        };
        let name = proxy.as_ref().map(Proxy::name);
        let middleware = Middleware::new(Some(request_timeout), name, Credentials::None, narrator);
        let client =
            dial::client(proxy, &from, &config, identity, &middleware, false).map_err(|error| unusable(&error))?;
        Ok(Self { client, ..self.clone() })
    }

    /// Turns an error of a request to this cluster into the sentence `cannot <what> (<cluster>)` with its cause.
    pub fn explain(&self, what: impl std::fmt::Display, error: kube::Error) -> Failure {
        explain(&error).context(format!("cannot {what} ({})", self.label()))
    }
}

/// Connects as the flags say. Nothing is sent yet: the first request finds out whether the server is there.
///
/// # Errors
/// A [`Reason::Kubeconfig`] failure that says what is missing, where, and what to type.
pub async fn connect(connection: &Connection, narrator: Arc<dyn Narrator>) -> Result<Cluster, Failure> {
    client(kubeconfig::choose(connection)?, connection, narrator).await
}

/// Connects to a cluster that no kubeconfig names.
///
/// # Errors
/// A [`Reason::Kubeconfig`] failure when its address or its CA cannot be used.
pub async fn connect_to(
    cluster: ClusterEntry,
    user: AuthInfo,
    connection: &Connection,
    narrator: Arc<dyn Narrator>,
) -> Result<Cluster, Failure> {
    let kubeconfig = kubeconfig::unnamed(cluster, user, None);
    let chosen = kubeconfig::choose_from(kubeconfig, "the hub's address", connection)?;
    client(Chosen { context: None, ..chosen }, connection, narrator).await
}

async fn client(chosen: Chosen, connection: &Connection, narrator: Arc<dyn Narrator>) -> Result<Cluster, Failure> {
    let Chosen { context, origin, namespace, cluster: entry, mut user } = chosen;
    let of = match &context {
        Some(context) => format!("context {context:?} of {origin}"),
        None => origin,
    };
    let unusable =
        |cause: &dyn std::fmt::Display| Failure::new(Reason::Kubeconfig, format!("{of} cannot be used")).because(cause);
    let seen = ExecAuthCluster::try_from(&entry).map_err(|error| unusable(&error))?;
    let url = address(entry.server.as_deref(), &unusable)?;
    let stays_here = is_this_machine(host(&url)) && !is_proxied(&url, &entry, &connection.from)?;
    if url.scheme_str() == Some("http") && !stays_here && credentials::sends_any(&user) {
        let failure =
            unusable(&"its server has no TLS (http://), and its user's credentials would travel in the clear");
        return Err(failure.hint("reach the server by https://, or as a user without credentials"));
    }
    let credentials = Credentials::of(&mut user, &seen, &unusable).await?;
    let identity = credentials::certificate(&user, &unusable)?;
    let from = &connection.from;
    let (config, proxy) = config(url, entry, user, namespace, seen.certificate_authority_data, from, &unusable)?;
    let mut cluster = Cluster {
        context,
        server: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
        namespace: config.default_namespace.clone(),
        ca: config.root_cert.clone(),
        insecure: config.accept_invalid_certs,
        tls_server_name: config.tls_server_name.clone(),
        proxy: proxy.as_ref().map(ToString::to_string),
        way: match from.is_here() {
            true => proxy.clone().map_or(Way::Direct, Way::Through),
            false => Way::From(from.clone(), proxy.clone()),
        },
        role: connection.role,
        client: Client::new(Nowhere, "default"),
    };
    let name = proxy.as_ref().map(Proxy::name);
    let middleware = Middleware::new(connection.request_timeout, name, credentials, narrator);
    cluster.client = dial::client(proxy, from, &config, identity, &middleware, connection.sends_once)
        .map_err(|error| unusable(&error))?;
    Ok(cluster)
}

/// Whether only this machine is found under a host, whoever answers for names: a DNS server may say anything of names such as
/// `x.localhost`.
fn is_this_machine(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(ip) => ip.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

/// Whether a proxy is on the way. One that the kubeconfig names is asked for addresses of this machine, too.
fn is_proxied(url: &Uri, entry: &ClusterEntry, from: &Vantage) -> Result<bool, Failure> {
    let is_named = entry.proxy_url.as_ref().is_some_and(|proxy| !proxy.is_empty());
    Ok(is_named || (from.is_here() && environment_proxy(url)?.is_some()))
}

/// The client's configuration and its proxy. Put together here and not by the client's own loader, which would choose the proxy by
/// rules that are not kubectl's.
fn config(
    url: Uri,
    entry: ClusterEntry,
    user: AuthInfo,
    namespace: Option<String>,
    ca: Option<Vec<u8>>,
    from: &Vantage,
    unusable: Unusable<'_>,
) -> Result<(Config, Option<Proxy>), Failure> {
    let mut config = Config::new(url);
    let unusable_proxy = |error: UnusableProxy| unusable(&format!("its proxy-url: {error}"));
    let proxy = match entry.proxy_url.filter(|proxy| !proxy.is_empty()) {
        Some(proxy) => Some(Proxy::parse(&proxy, Origin::Kubeconfig).map_err(unusable_proxy)?),
        // Of another place this machine's environment says nothing.
        None if from.is_here() => environment_proxy(&config.cluster_url)?,
        None => None,
    };
    if let Some(ca) = ca {
        if entry.insecure_skip_tls_verify.unwrap_or_default() {
            return Err(unusable(&"its cluster has a CA and insecure-skip-tls-verify, which exclude each other"));
        }
        config.root_cert = Some(ocm_core::certificate::from_pem(&ca).map_err(|error| unusable(&error))?);
    }
    if let Some(namespace) = namespace {
        config.default_namespace = namespace;
    }
    config.accept_invalid_certs = entry.insecure_skip_tls_verify.unwrap_or_default();
    config.disable_compression = entry.disable_compression.unwrap_or_default();
    config.tls_server_name = entry.tls_server_name.filter(|name| !name.is_empty());
    config.auth_info = user;
    Ok((config, proxy))
}

/// The address of a server, which has to say how it is reached.
fn address(server: Option<&str>, unusable: Unusable<'_>) -> Result<Uri, Failure> {
    let server = server.filter(|server| !server.is_empty()).ok_or_else(|| unusable(&"its cluster has no server"))?;
    let shown = without_credentials(server);
    let url: Uri = server.parse().map_err(|error| unusable(&format!("{shown:?} is not a URL: {error}")))?;
    // They would be told wherever the server is, and written to what joins it.
    if url.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        let failure = unusable(&format!("its server {shown:?} holds credentials"));
        return Err(failure.hint("write it as https://HOST:PORT, and the credentials to the kubeconfig's user"));
    }
    match url.scheme_str() {
        Some("https" | "http") => Ok(url),
        _ => Err(unusable(&format!("its server {shown:?} does not begin with https://"))),
    }
}

/// A server as it may be told: it may hold credentials without a scheme, too.
fn without_credentials(server: &str) -> String {
    match server.rsplit_once('@') {
        Some((_, host)) if !server.contains("://") => format!("{HIDDEN}@{host}"),
        _ => redact(server),
    }
}

/// The host of an address, without brackets.
fn host(url: &Uri) -> &str {
    url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
}

/// The proxy that the environment names for a server.
fn environment_proxy(url: &Uri) -> Result<Option<Proxy>, Failure> {
    let is_https = url.scheme_str() != Some("http");
    let host = host(url);
    let port = url.port_u16().unwrap_or(if is_https { 443 } else { 80 });
    proxy::from_environment(is_https, host, port).map_err(|error| {
        let variable = if is_https { "HTTPS_PROXY" } else { "HTTP_PROXY" };
        Failure::new(Reason::Kubeconfig, format!("the proxy of {variable} cannot be used")).because(error)
    })
}

/// Stands in a [`Cluster`] until its client is built; no request ever reaches it.
#[derive(Clone)]
struct Nowhere;

impl tower::Service<http::Request<kube::client::Body>> for Nowhere {
    type Response = http::Response<kube::client::Body>;
    type Error = tower::BoxError;
    type Future = std::future::Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Request<kube::client::Body>) -> Self::Future {
        std::future::ready(Err("the client is not built yet".into()))
    }
}
