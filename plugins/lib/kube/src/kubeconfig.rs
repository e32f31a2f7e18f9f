//! Which cluster and user are meant: kubeconfig files as kubectl merges them, or the pod's service account, with the
//! flags laid over.

use std::collections::HashMap;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use kube::config::{AuthInfo, Cluster as ClusterEntry, Context, Kubeconfig, KubeconfigError};
use kube::config::{NamedAuthInfo, NamedCluster, NamedContext};
use ocm_core::{Failure, Reason, Remedy, certificate, nearest, yaml};
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

/// Checks that the kubeconfig has the context, the cluster and the user that are meant. Nothing of theirs is used yet.
///
/// # Errors
/// A [`Reason::Kubeconfig`] failure that says what is missing, where, and what to type.
pub fn check(connection: &Connection) -> Result<(), Failure> {
    choose(connection).map(drop)
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
        let kubeconfig = read(path).map_err(|error| unreadable(&shown, &error))?;
        return Ok((kubeconfig, shown));
    }
    let paths: Vec<PathBuf> = match std::env::var_os("KUBECONFIG").filter(|list| !list.is_empty()) {
        Some(list) => std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect(),
        None => dirs::home_dir().map(|home| home.join(".kube").join("config")).into_iter().collect(),
    };
    // As kubectl does, files of the list that do not exist are passed over.
    let mut merged: Option<Kubeconfig> = None;
    for path in &paths {
        let shown = path.display().to_string();
        let mut one = match read(path) {
            Err(Unreadable::File(error)) if error.kind() == std::io::ErrorKind::NotFound => continue,
            read => read.map_err(|error| unreadable(&shown, &error))?,
        };
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

/// Why a kubeconfig cannot be read. Nothing of it is quoted: tokens and keys are in it.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The file cannot be read.
    #[error("{0}")]
    File(std::io::Error),
    /// It is neither UTF-8 nor UTF-16.
    #[error("it is neither UTF-8 nor UTF-16")]
    NoText,
    /// It is no YAML, or no kubeconfig.
    #[error("{0}")]
    Content(yaml::Error),
    /// Its documents do not belong together.
    #[error("{}", innermost(.0))]
    Documents(KubeconfigError),
}

/// Reads a kubeconfig; several documents are merged, as by kubectl.
///
/// # Errors
/// What is no kubeconfig.
pub fn parse(text: &str) -> Result<Kubeconfig, Unreadable> {
    let documents = yaml::documents::<Kubeconfig>(text).map_err(Unreadable::Content)?;
    merge(documents)
}

fn merge(documents: Vec<Kubeconfig>) -> Result<Kubeconfig, Unreadable> {
    let mut documents = documents.into_iter();
    let first = documents.next().unwrap_or_default();
    documents.try_fold(first, Kubeconfig::merge).map_err(Unreadable::Documents)
}

/// Reads a file. What is empty in it counts as missing, and paths begin at its folder, as for client-go.
fn read(file: &Path) -> Result<Kubeconfig, Unreadable> {
    let bytes = std::fs::read(file).map_err(Unreadable::File)?;
    let mut kubeconfig = parse(&text(bytes).ok_or(Unreadable::NoText)?)?;
    let without_empty = |text: &mut Option<String>| *text = text.take().filter(|text| !text.is_empty());
    let folder = file.parent().unwrap_or(Path::new(""));
    let absolute = |path: &mut Option<String>| {
        without_empty(path);
        let joined = path.as_deref().map(|path| folder.join(path));
        if let Some(joined) = joined.as_deref().and_then(Path::to_str) {
            *path = Some(joined.to_owned());
        }
    };
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        without_empty(&mut cluster.certificate_authority_data);
        absolute(&mut cluster.certificate_authority);
    }
    for user in kubeconfig.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
        without_empty(&mut user.username);
        without_empty(&mut user.client_certificate_data);
        for path in [&mut user.client_certificate, &mut user.client_key, &mut user.token_file] {
            absolute(path);
        }
        for secret in [&mut user.token, &mut user.client_key_data] {
            *secret = secret.take().filter(|secret| !secret.expose_secret().is_empty());
        }
        // A plugin without a folder is looked for in PATH (client-go: `GetAuthInfoFileReferences`).
        let plugin = user.exec.as_mut().map(|exec| &mut exec.command);
        if let Some(command) =
            plugin.filter(|command| command.as_ref().is_some_and(|word| word.contains(MAIN_SEPARATOR)))
        {
            absolute(command);
        }
    }
    Ok(kubeconfig)
}

/// A file as text: editors of Windows write UTF-16, or mark UTF-8.
fn text(bytes: Vec<u8>) -> Option<String> {
    let units = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes.as_chunks().0.iter().map(|pair| unit(*pair)).collect();
        String::from_utf16(&units).ok()
    };
    match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => units(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => units(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8(rest.to_vec()).ok(),
        _ => String::from_utf8(bytes).ok(),
    }
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
    if cluster.insecure_skip_tls_verify == Some(true) && !connection.authorities.is_empty() {
        cluster.certificate_authority = None;
        cluster.certificate_authority_data = Some(certificate::to_pem_base64(&connection.authorities));
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
    fn a_server_that_nobody_verifies_is_verified_by_whoever_gives_its_ca() {
        let authorities = vec![b"a certificate".to_vec()];
        let of = |insecure: Option<bool>, connection: &Connection| {
            let cluster = ClusterEntry {
                server: Some("https://hub:6443".to_owned()),
                insecure_skip_tls_verify: insecure,
                ..ClusterEntry::default()
            };
            let chosen = choose_from(unnamed(cluster, AuthInfo::default(), None), "it", connection).unwrap();
            (chosen.cluster.insecure_skip_tls_verify, chosen.cluster.certificate_authority_data)
        };
        let given = Connection { authorities: authorities.clone(), ..Connection::default() };
        assert_eq!(of(Some(true), &Connection::default()), (Some(true), None));
        assert_eq!(of(Some(true), &given), (None, Some(certificate::to_pem_base64(&authorities))));
        assert_eq!(of(None, &given), (None, None), "the kubeconfig says how it is verified");
        let typed = Connection { insecure_skip_tls_verify: true, ..given };
        assert_eq!(of(Some(true), &typed), (Some(true), None));
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

    const WITH_FILES: &str = "\
clusters:
- name: a
  cluster: {server: 'https://a', certificate-authority: ca.crt}
- name: b
  cluster: {server: 'https://b', certificate-authority: '', certificate-authority-data: ''}
users:
- name: a
  user: {client-certificate: pki/me.crt, client-key: /etc/me.key, tokenFile: '', token: ''}
- name: b
  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./bin/login, interactiveMode: Never}}
- name: c
  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, interactiveMode: Never}}
";

    #[test]
    fn paths_begin_at_the_folder_of_the_file_and_what_is_empty_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        std::fs::write(&file, WITH_FILES).unwrap();
        let Kubeconfig { clusters, auth_infos, .. } = read(&file).unwrap();
        let inside = |path: &str| folder.path().join(path).to_str().map(str::to_owned);
        let authorities: Vec<_> =
            clusters.into_iter().map(|named| named.cluster.unwrap().certificate_authority).collect();
        assert_eq!(authorities, [inside("ca.crt"), None]);
        let users: Vec<AuthInfo> = auth_infos.into_iter().map(|named| named.auth_info.unwrap()).collect();
        assert_eq!(users[0].client_certificate, inside("pki/me.crt"));
        assert_eq!(users[0].client_key.as_deref(), Some("/etc/me.key"));
        assert!(users[0].token_file.is_none() && users[0].token.is_none());
        let command = |user: &AuthInfo| user.exec.as_ref().unwrap().command.clone();
        assert_eq!(command(&users[1]), inside("./bin/login"));
        assert_eq!(command(&users[2]).as_deref(), Some("aws"), "it is looked for in PATH");
    }

    #[test]
    fn files_of_windows_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        let units = |unit: fn(u16) -> [u8; 2]| -> Vec<u8> {
            format!("\u{feff}{WITH_FILES}").encode_utf16().flat_map(unit).collect()
        };
        for bytes in [format!("\u{feff}{WITH_FILES}").into_bytes(), units(u16::to_le_bytes), units(u16::to_be_bytes)] {
            std::fs::write(&file, bytes).unwrap();
            assert_eq!(read(&file).unwrap().clusters.len(), 2);
        }
        std::fs::write(&file, [0xc3, 0x28]).unwrap();
        assert_eq!(read(&file).unwrap_err().to_string(), "it is neither UTF-8 nor UTF-16");
    }

    #[test]
    fn documents_are_merged_and_nothing_of_a_broken_one_is_quoted() {
        let two = parse("clusters: [{name: a}]\n---\nclusters: [{name: b}]\ncurrent-context: x\n").unwrap();
        assert_eq!((two.clusters.len(), two.current_context.as_deref()), (2, Some("x")));
        assert!(parse("").unwrap().clusters.is_empty());
        let empty =
            parse("users: null\ncontexts:\nclusters: [{name: a, cluster: null, unknown: {x: [1]}}]\nnew: 1\n").unwrap();
        assert!(empty.auth_infos.is_empty() && empty.contexts.is_empty() && empty.clusters[0].cluster.is_none());
        let json =
            parse("{\"clusters\":\t[{\"name\": \"a\", \"cluster\": {\"insecure-skip-tls-verify\": true}}]}").unwrap();
        assert_eq!(json.clusters[0].cluster.as_ref().unwrap().insecure_skip_tls_verify, Some(true));
        for text in ["users:\n- name: a\n  user: [secret]\n", "users:\n- name: a\n  user: {token: \"secret\n"] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains("line ") && !error.contains("secret"), "{error}");
        }
        let error = parse("apiVersion: v1\n---\napiVersion: v2\n").unwrap_err();
        assert!(matches!(error, Unreadable::Documents(_)), "{error}");
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
