//! Which cluster and user are meant: kubeconfig files as kubectl merges them, or the pod's service account, with the
//! flags laid over.

use std::collections::HashMap;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use kube::config::{AuthInfo, Cluster as ClusterEntry, Context, Kubeconfig, KubeconfigError};
use kube::config::{NamedAuthInfo, NamedCluster, NamedContext};
use ocm_core::{Failure, Reason, Remedy, nearest};
use secrecy::ExposeSecret as _;

use crate::args::Connection;

/// A cluster and a user, with the flags laid over.
pub(crate) struct Chosen {
    /// The context that names them; none when only flags or the pod's service account do.
    pub(crate) context: Option<String>,
    /// How messages name the source.
    pub(crate) origin: String,
    /// The namespace of the context.
    pub(crate) namespace: Option<String>,
    /// The cluster.
    pub(crate) cluster: ClusterEntry,
    /// The user.
    pub(crate) user: AuthInfo,
}

/// The name of the entries that stand for what only flags or the pod's service account say.
const UNNAMED: &str = "<unnamed>";

/// Where a pod finds the credentials of its service account.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Chooses from the kubeconfig that the flags or the environment name.
pub(crate) fn choose(connection: &Connection) -> Result<Chosen, Failure> {
    let (kubeconfig, origin) = load(connection)?;
    // Without a kubeconfig the flags alone may name the server, or the pod that this runs in does.
    if kubeconfig.contexts.is_empty() && connection.context.is_none() {
        if let Some(server) = &connection.server {
            let cluster = ClusterEntry { server: Some(server.clone()), ..ClusterEntry::default() };
            return choose_from(unnamed(cluster, AuthInfo::default(), None), &origin, connection);
        }
        if let Some(kubeconfig) = in_cluster(|name| std::env::var(name).ok(), Path::new(SERVICE_ACCOUNT)) {
            return choose_from(kubeconfig, "the pod's service account", connection);
        }
    }
    choose_from(kubeconfig, &origin, connection)
}

/// Chooses from this kubeconfig, which came from `origin`.
pub(crate) fn choose_from(
    mut kubeconfig: Kubeconfig,
    origin: &str,
    connection: &Connection,
) -> Result<Chosen, Failure> {
    let role = connection.role;
    let Some(context) =
        connection.context.clone().or_else(|| kubeconfig.current_context.clone()).filter(|c| !c.is_empty())
    else {
        return Err(Failure::new(Reason::Kubeconfig, format!("{origin} names no current context"))
            .hint(Remedy::Context { role, known: names(&kubeconfig) }));
    };
    let Some(entry) = kubeconfig.contexts.iter().find(|c| c.name == context).and_then(|c| c.context.clone()) else {
        let names = names(&kubeconfig);
        let failure = Failure::new(Reason::Kubeconfig, format!("{origin} has no context {context:?}"));
        return Err(match nearest(&context, names.iter().map(String::as_str)) {
            Some(near) => failure.hint(Remedy::SimilarContext(role, near.to_owned())),
            None => failure.hint(Remedy::Context { role, known: names }),
        });
    };
    let (user, cluster) = select(connection, &kubeconfig, &entry, origin)?;
    let mut cluster = take_cluster(&mut kubeconfig, &cluster);
    let mut user = user.map(|user| take_user(&mut kubeconfig, &user)).unwrap_or_default();
    overlay(connection, &mut cluster, &mut user);
    Ok(Chosen {
        context: Some(context).filter(|context| context != UNNAMED),
        origin: origin.to_owned(),
        namespace: entry.namespace.filter(|namespace| !namespace.is_empty()),
        cluster,
        user,
    })
}

fn take_cluster(kubeconfig: &mut Kubeconfig, name: &str) -> ClusterEntry {
    let entry = kubeconfig.clusters.iter_mut().find(|known| known.name == name);
    entry.and_then(|entry| entry.cluster.take()).unwrap_or_default()
}

fn take_user(kubeconfig: &mut Kubeconfig, name: &str) -> AuthInfo {
    let entry = kubeconfig.auth_infos.iter_mut().find(|known| known.name == name);
    entry.and_then(|entry| entry.auth_info.take()).unwrap_or_default()
}

fn load(connection: &Connection) -> Result<(Kubeconfig, String), Failure> {
    let hint = Remedy::Kubeconfig(connection.role);
    let unreadable = |path: &str, error: &dyn std::fmt::Display| {
        Failure::new(Reason::Kubeconfig, format!("cannot read the kubeconfig {path}")).because(error).hint(hint.clone())
    };
    if let Some(path) = &connection.kubeconfig {
        let shown = path.display().to_string();
        let kubeconfig = read(path).map_err(|error| unreadable(&shown, &without_content(&error)))?;
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
        let mut one = read(path).map_err(|error| unreadable(&shown, &without_content(&error)))?;
        // An empty current context is none: a later file may name one.
        one.current_context = one.current_context.filter(|context| !context.is_empty());
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

/// Reads a file. What is empty in it counts as missing, as for client-go.
fn read(file: &Path) -> Result<Kubeconfig, KubeconfigError> {
    let mut kubeconfig = Kubeconfig::read_from(file)?;
    let without_empty = |text: &mut Option<String>| *text = text.take().filter(|text| !text.is_empty());
    // The library has made paths absolute: an empty one has become that of the folder.
    let without_folder = |path: &mut Option<String>| *path = path.take().filter(|path| !path.ends_with(MAIN_SEPARATOR));
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        without_empty(&mut cluster.certificate_authority_data);
        without_folder(&mut cluster.certificate_authority);
    }
    for user in kubeconfig.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
        without_empty(&mut user.username);
        without_empty(&mut user.client_certificate_data);
        for path in [&mut user.client_certificate, &mut user.client_key, &mut user.token_file] {
            without_folder(path);
        }
        for secret in [&mut user.token, &mut user.client_key_data] {
            *secret = secret.take().filter(|secret| !secret.expose_secret().is_empty());
        }
    }
    Ok(kubeconfig)
}

/// The kubeconfig that a pod's environment and its service account amount to; none outside of a cluster.
fn in_cluster(get: impl Fn(&str) -> Option<String>, folder: &Path) -> Option<Kubeconfig> {
    let variable = |name: &str| get(name).filter(|value| !value.is_empty());
    let (host, port) = (variable("KUBERNETES_SERVICE_HOST")?, variable("KUBERNETES_SERVICE_PORT")?);
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let file = |name: &str| folder.join(name).display().to_string();
    if !folder.join("token").exists() {
        return None;
    }
    let cluster = ClusterEntry {
        server: Some(format!("https://{host}:{port}")),
        certificate_authority: Some(file("ca.crt")),
        ..ClusterEntry::default()
    };
    let user = AuthInfo { token_file: Some(file("token")), ..AuthInfo::default() };
    let namespace = std::fs::read_to_string(folder.join("namespace")).ok().map(|text| text.trim().to_owned());
    Some(unnamed(cluster, user, namespace))
}

pub(crate) fn unnamed(cluster: ClusterEntry, user: AuthInfo, namespace: Option<String>) -> Kubeconfig {
    let name = || UNNAMED.to_owned();
    Kubeconfig {
        clusters: vec![NamedCluster { name: name(), cluster: Some(cluster), ..NamedCluster::default() }],
        auth_infos: vec![NamedAuthInfo { name: name(), auth_info: Some(user), ..NamedAuthInfo::default() }],
        contexts: vec![NamedContext {
            name: name(),
            context: Some(Context { cluster: name(), user: Some(name()), namespace, ..Context::default() }),
            ..NamedContext::default()
        }],
        current_context: Some(name()),
        ..Kubeconfig::default()
    }
}

fn names(kubeconfig: &Kubeconfig) -> Vec<String> {
    kubeconfig.contexts.iter().map(|context| context.name.clone()).collect()
}

/// Names the user and the cluster that the flags and the context choose. Unknown names are errors: a client that
/// falls back to being anonymous would only see `Forbidden` later.
fn select(
    connection: &Connection,
    kubeconfig: &Kubeconfig,
    entry: &Context,
    origin: &str,
) -> Result<(Option<String>, String), Failure> {
    let user = connection.user.clone().or_else(|| entry.user.clone()).filter(|user| !user.is_empty());
    if let Some(user) = &user
        && !kubeconfig.auth_infos.iter().any(|known| &known.name == user)
    {
        return Err(Failure::new(Reason::Kubeconfig, format!("{origin} has no user {user:?}"))
            .hint(Remedy::User(connection.role)));
    }
    let cluster = connection.cluster.clone().unwrap_or_else(|| entry.cluster.clone());
    if !kubeconfig.clusters.iter().any(|known| known.name == cluster) {
        return Err(Failure::new(Reason::Kubeconfig, format!("{origin} has no cluster {cluster:?}"))
            .hint(Remedy::Cluster(connection.role)));
    }
    Ok((user, cluster))
}

/// Lays the flags over the entries of the kubeconfig that were chosen.
fn overlay(connection: &Connection, cluster: &mut ClusterEntry, user: &mut AuthInfo) {
    let path = |path: &PathBuf| path.display().to_string();
    if let Some(server) = &connection.server {
        cluster.server = Some(server.clone());
        // It was the name of another one.
        cluster.tls_server_name = None;
    }
    if let Some(name) = &connection.tls_server_name {
        cluster.tls_server_name = Some(name.clone());
    }
    if let Some(file) = &connection.certificate_authority {
        cluster.certificate_authority = Some(path(file));
        cluster.certificate_authority_data = None;
        cluster.insecure_skip_tls_verify = None;
    }
    if connection.insecure_skip_tls_verify {
        cluster.insecure_skip_tls_verify = Some(true);
        cluster.certificate_authority = None;
        cluster.certificate_authority_data = None;
    }
    if let Some(token) = &connection.token {
        user.token = Some(token.clone());
        (user.token_file, user.exec, user.auth_provider) = (None, None, None);
        (user.username, user.password) = (None, None);
    }
    if let Some(file) = &connection.client_certificate {
        user.client_certificate = Some(path(file));
        user.client_certificate_data = None;
    }
    if let Some(file) = &connection.client_key {
        user.client_key = Some(path(file));
        user.client_key_data = None;
    }
    if let Some(name) = &connection.act_as {
        user.impersonate = Some(name.clone());
        user.impersonate_groups = Some(connection.as_groups.clone());
        user.impersonate_uid = connection.as_uid.clone();
        let mut extra: HashMap<String, Vec<String>> = HashMap::new();
        for (key, value) in &connection.as_user_extra {
            extra.entry(key.clone()).or_default().push(value.clone());
        }
        user.impersonate_user_extra = (!extra.is_empty()).then_some(extra);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str) -> Option<String> {
        let value = match name {
            "KUBERNETES_SERVICE_HOST" => "fd00::1",
            "KUBERNETES_SERVICE_PORT" => "443",
            _ => return None,
        };
        Some(value.to_owned())
    }

    #[test]
    fn flags_are_laid_over_the_service_account_of_a_pod() {
        let folder = std::env::temp_dir().join(format!("ocm-kube-pod-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        assert!(in_cluster(pod, &folder).is_none(), "a pod without a token has no service account");
        std::fs::write(folder.join("token"), "secret").unwrap();
        std::fs::write(folder.join("namespace"), "ops\n").unwrap();
        let connection = Connection {
            act_as: Some("alice".into()),
            certificate_authority: Some("other.crt".into()),
            client_certificate: Some("me.crt".into()),
            client_key: Some("me.key".into()),
            ..Connection::default()
        };
        let chosen = choose_from(in_cluster(pod, &folder).unwrap(), "the pod", &connection).unwrap();
        assert_eq!(chosen.cluster.server.as_deref(), Some("https://[fd00::1]:443"));
        assert_eq!(chosen.cluster.certificate_authority.as_deref(), Some("other.crt"));
        assert_eq!((chosen.context, chosen.namespace.as_deref()), (None, Some("ops")));
        assert_eq!(chosen.user.impersonate.as_deref(), Some("alice"));
        assert_eq!(chosen.user.client_certificate.as_deref(), Some("me.crt"));
        assert_eq!(chosen.user.token_file, Some(folder.join("token").display().to_string()));
        let connection = Connection { token: Some("typed".to_owned().into()), ..Connection::default() };
        let chosen = choose_from(in_cluster(pod, &folder).unwrap(), "the pod", &connection).unwrap();
        assert!(chosen.user.token.is_some() && chosen.user.token_file.is_none());
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(in_cluster(|_| None, &folder).is_none());
    }

    #[test]
    fn names_are_text_whatever_they_look_like() {
        let text = "current-context: n\ncontexts:\n- name: n\n  context: {cluster: 1234, user: yes}\nclusters:\n- name: 1234\n  \
                    cluster: {server: 'https://c:6443', tls-server-name: n}\nusers:\n- name: yes\n  user: {username: 0x10}\n";
        let file = std::env::temp_dir().join(format!("ocm-kube-names-{}", std::process::id()));
        std::fs::write(&file, text).unwrap();
        let kubeconfig = read(&file);
        std::fs::remove_file(&file).unwrap();
        let chosen = choose_from(kubeconfig.unwrap(), "the file", &Connection::default()).unwrap();
        assert_eq!((chosen.context.as_deref(), chosen.cluster.tls_server_name.as_deref()), (Some("n"), Some("n")));
        assert_eq!(chosen.user.username.as_deref(), Some("0x10"));
    }

    #[test]
    fn another_server_has_no_name_of_the_former() {
        let named = || ClusterEntry { tls_server_name: Some("hub.internal".into()), ..ClusterEntry::default() };
        let server = Connection { server: Some("https://other:6443".into()), ..Connection::default() };
        let both = Connection { tls_server_name: Some("other.internal".into()), ..server.clone() };
        for (connection, name) in
            [(Connection::default(), Some("hub.internal")), (server, None), (both, Some("other.internal"))]
        {
            let mut cluster = named();
            overlay(&connection, &mut cluster, &mut AuthInfo::default());
            assert_eq!(cluster.tls_server_name.as_deref(), name);
        }
    }
}
