//! From a [`Connection`] to a client, with every mistake in the kubeconfig said in one sentence.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use kube::client::ClientBuilder;
use kube::config::{AuthInfo, Cluster as ClusterEntry, Context, KubeConfigOptions, Kubeconfig};
use kube::config::{KubeconfigError, NamedAuthInfo, NamedCluster, NamedContext};
use kube::{Client, Config};
use ocm_core::{Failure, Narrator, Reason, nearest};

use crate::args::Connection;
use crate::explain::{explain, kubeconfig_failure};
use crate::layers::Manners;

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
    /// The proxy that our own connection goes through.
    pub proxy: Option<String>,
    /// `--hub-` or nothing: in front of the flag names in hints.
    pub flag_prefix: &'static str,
}

impl Cluster {
    /// How messages name this cluster: by its context where there is one, else by its address.
    pub fn label(&self) -> String {
        match &self.context {
            Some(context) => format!("context {context:?}"),
            None => self.server.clone(),
        }
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
    let prefix = connection.flag_prefix;
    let (mut kubeconfig, origin) = load(connection)?;
    if let Some(server) = &connection.server {
        // Without a kubeconfig the flags alone may name the server.
        if kubeconfig.contexts.is_empty() && connection.context.is_none() {
            kubeconfig = bare(server);
        }
    }
    let Some(context) =
        connection.context.clone().or_else(|| kubeconfig.current_context.clone()).filter(|c| !c.is_empty())
    else {
        if kubeconfig.contexts.is_empty()
            && let Ok(config) = Config::incluster()
        {
            return connect_config(config, None, connection, narrator);
        }
        return Err(Failure::new(Reason::Kubeconfig, format!("{origin} names no current context"))
            .hint(format!("say which cluster: --{prefix}context NAME ({})", known(&kubeconfig))));
    };
    let Some(entry) = kubeconfig.contexts.iter().find(|c| c.name == context).and_then(|c| c.context.clone()) else {
        let names: Vec<&str> = kubeconfig.contexts.iter().map(|c| c.name.as_str()).collect();
        let failure = Failure::new(Reason::Kubeconfig, format!("{origin} has no context {context:?}"));
        return Err(match nearest(&context, names.iter().copied()) {
            Some(near) => failure.hint(format!("did you mean --{prefix}context {near}?")),
            None => failure.hint(known(&kubeconfig)),
        });
    };
    let (user, cluster) = select(connection, &kubeconfig, &entry, &origin)?;
    overlay(connection, &mut kubeconfig, &cluster, user.as_deref(), &context)?;
    let options = KubeConfigOptions {
        context: Some(context.clone()),
        cluster: Some(cluster),
        user: Some(user.unwrap_or_else(|| FLAG_USER.to_owned())),
    };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| kubeconfig_failure(&origin, &context, &error))?;
    let from_flags_only = context == FLAG_USER;
    connect_config(config, (!from_flags_only).then_some(context), connection, narrator)
}

/// Builds the client of a finished configuration with our manners: time limit and warnings.
///
/// # Errors
/// A [`Reason::Kubeconfig`] failure when certificates, keys or a credential plugin cannot be used.
pub fn connect_config(
    mut config: Config,
    context: Option<String>,
    connection: &Connection,
    narrator: Arc<dyn Narrator>,
) -> Result<Cluster, Failure> {
    // A server that does not answer the TCP handshake in ten seconds is not going to serve a command-line tool.
    config.connect_timeout = Some(std::time::Duration::from_secs(10));
    let mut cluster = Cluster {
        context,
        server: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
        namespace: config.default_namespace.clone(),
        ca: config.root_cert.clone(),
        insecure: config.accept_invalid_certs,
        tls_server_name: config.tls_server_name.clone(),
        proxy: config.proxy_url.as_ref().map(ToString::to_string),
        flag_prefix: connection.flag_prefix,
        client: Client::new(Nowhere, "default"),
    };
    let manners = Manners { limit: connection.request_timeout, narrator, told: Arc::default() };
    let failed =
        |error: kube::Error| explain(&error).context(format!("cannot use the credentials of {}", cluster.label()));
    let builder = ClientBuilder::try_from(config).map_err(failed)?;
    cluster.client = builder.with_layer(&manners).build();
    Ok(cluster)
}

/// The name of the entries that stand for what only flags say.
const FLAG_USER: &str = "<flags>";

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

fn load(connection: &Connection) -> Result<(Kubeconfig, String), Failure> {
    let hint = format!("point --{}kubeconfig at the kubeconfig of the cluster", connection.flag_prefix);
    let unreadable = |path: &str, error: &dyn std::fmt::Display| {
        Failure::new(Reason::Kubeconfig, format!("cannot read the kubeconfig {path}")).because(error).hint(hint.clone())
    };
    if let Some(path) = &connection.kubeconfig {
        let shown = path.display().to_string();
        let kubeconfig = Kubeconfig::read_from(path).map_err(|error| unreadable(&shown, &without_content(&error)))?;
        return Ok((kubeconfig, shown));
    }
    let paths: Vec<PathBuf> = match std::env::var_os("KUBECONFIG").filter(|list| !list.is_empty()) {
        Some(list) => std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect(),
        None => dirs::home_dir().map(|home| home.join(".kube").join("config")).into_iter().collect(),
    };
    // As kubectl does, files of the list that do not exist are passed over.
    let mut merged: Option<Kubeconfig> = None;
    for path in paths.iter().filter(|path| path.exists()) {
        let shown = path.display().to_string();
        let one = Kubeconfig::read_from(path).map_err(|error| unreadable(&shown, &without_content(&error)))?;
        merged = Some(match merged {
            None => one,
            Some(before) => before.merge(one).map_err(|error| unreadable(&shown, &error))?,
        });
    }
    let origin = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    match merged {
        Some(kubeconfig) => Ok((kubeconfig, origin)),
        None if connection.server.is_some() || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() => {
            Ok((Kubeconfig::default(), "the command line".to_owned()))
        }
        None => Err(Failure::new(Reason::Kubeconfig, format!("there is no kubeconfig at {origin}")).hint(hint)),
    }
}

fn bare(server: &str) -> Kubeconfig {
    Kubeconfig {
        clusters: vec![NamedCluster {
            name: FLAG_USER.into(),
            cluster: Some(ClusterEntry { server: Some(server.to_owned()), ..ClusterEntry::default() }),
            ..NamedCluster::default()
        }],
        contexts: vec![NamedContext {
            name: FLAG_USER.into(),
            context: Some(Context { cluster: FLAG_USER.into(), ..Context::default() }),
            ..NamedContext::default()
        }],
        current_context: Some(FLAG_USER.into()),
        ..Kubeconfig::default()
    }
}

fn known(kubeconfig: &Kubeconfig) -> String {
    let names: Vec<&str> = kubeconfig.contexts.iter().map(|context| context.name.as_str()).collect();
    match names.as_slice() {
        [] => "it holds no contexts".to_owned(),
        names => format!("it knows: {}", names.join(", ")),
    }
}

/// Names the user and the cluster that the flags and the context choose. Unknown names are errors: a client that
/// falls back to being anonymous would only see `Forbidden` later.
fn select(
    connection: &Connection,
    kubeconfig: &Kubeconfig,
    entry: &Context,
    origin: &str,
) -> Result<(Option<String>, String), Failure> {
    let prefix = connection.flag_prefix;
    let user = connection.user.clone().or_else(|| entry.user.clone()).filter(|user| !user.is_empty());
    if let Some(user) = &user
        && !kubeconfig.auth_infos.iter().any(|known| &known.name == user)
    {
        return Err(Failure::new(Reason::Kubeconfig, format!("{origin} has no user {user:?}"))
            .hint(format!("name one that it has: --{prefix}user NAME")));
    }
    let cluster = connection.cluster.clone().unwrap_or_else(|| entry.cluster.clone());
    if !kubeconfig.clusters.iter().any(|known| known.name == cluster) {
        return Err(Failure::new(Reason::Kubeconfig, format!("{origin} has no cluster {cluster:?}"))
            .hint(format!("name one that it has: --{prefix}cluster NAME")));
    }
    Ok((user, cluster))
}

/// Lays the flags over the entries of the kubeconfig that were chosen.
fn overlay(
    connection: &Connection,
    kubeconfig: &mut Kubeconfig,
    cluster: &str,
    user: Option<&str>,
    context: &str,
) -> Result<(), Failure> {
    let path = |path: &PathBuf| path.display().to_string();
    if let Some(entry) = kubeconfig.clusters.iter_mut().find(|c| c.name == cluster).and_then(|c| c.cluster.as_mut()) {
        if let Some(server) = &connection.server {
            entry.server = Some(server.clone());
        }
        if let Some(name) = &connection.tls_server_name {
            entry.tls_server_name = Some(name.clone());
        }
        if let Some(file) = &connection.certificate_authority {
            entry.certificate_authority = Some(path(file));
            entry.certificate_authority_data = None;
            entry.insecure_skip_tls_verify = None;
        }
        if connection.insecure_skip_tls_verify {
            entry.insecure_skip_tls_verify = Some(true);
            entry.certificate_authority = None;
            entry.certificate_authority_data = None;
        }
    }
    let user = match user {
        Some(user) => user.to_owned(),
        None => {
            // A context without a user is anonymous; flags may still say who we are.
            let name = FLAG_USER.to_owned();
            kubeconfig.auth_infos.push(NamedAuthInfo {
                name: name.clone(),
                auth_info: Some(AuthInfo::default()),
                ..NamedAuthInfo::default()
            });
            name
        }
    };
    let Some(named) = kubeconfig.auth_infos.iter_mut().find(|known| known.name == user) else {
        return Err(Failure::new(Reason::Kubeconfig, format!("context {context:?} has no user")));
    };
    let entry = named.auth_info.get_or_insert_default();
    if let Some(token) = &connection.token {
        entry.token = Some(token.clone());
        (entry.token_file, entry.exec, entry.auth_provider) = (None, None, None);
    }
    if let Some(file) = &connection.client_certificate {
        entry.client_certificate = Some(path(file));
        entry.client_certificate_data = None;
    }
    if let Some(file) = &connection.client_key {
        entry.client_key = Some(path(file));
        entry.client_key_data = None;
    }
    if let Some(name) = &connection.act_as {
        entry.impersonate = Some(name.clone());
        entry.impersonate_groups = Some(connection.as_groups.clone());
        entry.impersonate_uid = connection.as_uid.clone();
        let mut extra: HashMap<String, Vec<String>> = HashMap::new();
        for (key, value) in &connection.as_user_extra {
            extra.entry(key.clone()).or_default().push(value.clone());
        }
        entry.impersonate_user_extra = (!extra.is_empty()).then_some(extra);
    }
    Ok(())
}

/// What is wrong with a kubeconfig, and where. The parser would quote the lines around it too, tokens and keys included.
fn without_content(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::Parse(error) => error.without_snippet().to_string(),
        other => innermost(other),
    }
}

/// The last cause of an error: kube's kubeconfig errors repeat each other on the way out.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
