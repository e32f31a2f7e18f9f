//! Kubeconfigs with one hub in them, whoever wrote them.

use kube::config::{AuthInfo, Cluster as ClusterEntry, Kubeconfig, NamedCluster};
use ocm_core::certificate;
use ocm_core::kubeconfig::{Bootstrap, HubAddress};
use ocm_kube::kubeconfig;
use secrecy::ExposeSecret as _;

/// Reads a kubeconfig with one hub in it, whoever wrote it: that of its current context, or its only cluster. The
/// token is empty if it has none.
pub fn parse(text: &str) -> Option<Bootstrap> {
    let (cluster, user) = entries(text)?;
    let token = user.and_then(|user| user.token).map(|token| token.expose_secret().to_owned());
    let ca = cluster.certificate_authority_data.as_deref().and_then(|word| certificate::from_base64(word).ok());
    let hub = HubAddress {
        server: cluster.server?,
        ca: ca.unwrap_or_default(),
        proxy: cluster.proxy_url.filter(|proxy| !proxy.is_empty()),
        uid: None,
        entry: entry(text),
    };
    Some(Bootstrap { hub, token: token.unwrap_or_default(), ..Bootstrap::default() })
}

/// Name of the cluster's entry of a kubeconfig with one hub in it.
fn entry(text: &str) -> Option<String> {
    let kubeconfig = kubeconfig::parse(text).ok()?;
    named(&kubeconfig).map(|cluster| cluster.name.clone())
}

/// The entry of the cluster: that of the current context, or the only one.
fn named(kubeconfig: &Kubeconfig) -> Option<&NamedCluster> {
    let current = kubeconfig.current_context.as_deref().unwrap_or_default();
    let context = kubeconfig.contexts.iter().find(|context| context.name == current);
    match context.and_then(|context| context.context.as_ref()) {
        Some(context) => kubeconfig.clusters.iter().find(|cluster| cluster.name == context.cluster),
        None => kubeconfig.clusters.first(),
    }
}

/// The entries of a kubeconfig with one hub in it, as [`parse`] chooses them, with all that they say of the way to it.
pub fn entries(text: &str) -> Option<(ClusterEntry, Option<AuthInfo>)> {
    let kubeconfig = kubeconfig::parse(text).ok()?;
    let current = kubeconfig.current_context.as_deref().unwrap_or_default();
    let context = kubeconfig.contexts.iter().find(|context| context.name == current);
    let context = context.and_then(|context| context.context.as_ref());
    let cluster = named(&kubeconfig)?.cluster.clone()?;
    let user = context.and_then(|context| context.user.as_deref()).unwrap_or_default();
    let user = kubeconfig.auth_infos.iter().find(|entry| entry.name == user).and_then(|entry| entry.auth_info.clone());
    Some((cluster, user))
}

/// Of a cluster's entry in a kubeconfig that somebody else wrote, nothing but the way to the cluster: no file of this machine is
/// read for it.
pub fn way(entry: ClusterEntry) -> ClusterEntry {
    ClusterEntry {
        server: entry.server,
        certificate_authority_data: entry.certificate_authority_data,
        proxy_url: entry.proxy_url.filter(|proxy| !proxy.is_empty()),
        tls_server_name: entry.tls_server_name,
        insecure_skip_tls_verify: entry.insecure_skip_tls_verify,
        ..ClusterEntry::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_a_cluster_names_no_file_and_no_empty_proxy() {
        let text = "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster: {server: 'https://c:6443', \
                    certificate-authority: /etc/passwd, proxy-url: '', tls-server-name: n}\n";
        let (entry, _) = entries(text).unwrap();
        assert_eq!(entry.certificate_authority.as_deref(), Some("/etc/passwd"));
        let way = way(entry);
        assert_eq!((way.certificate_authority, way.proxy_url), (None, None));
        assert_eq!((way.server.as_deref(), way.tls_server_name.as_deref()), (Some("https://c:6443"), Some("n")));
    }

    #[test]
    fn what_we_write_reads_back() {
        let certificate = rcgen::generate_simple_self_signed(vec!["hub".to_owned()]).unwrap().cert.der().to_vec();
        let hub = HubAddress {
            server: "https://hub:6443".to_owned(),
            ca: vec![certificate],
            proxy: Some("http://proxy:3128".to_owned()),
            uid: None,
            entry: Some("hub-2".to_owned()),
        };
        let bootstrap = Bootstrap { hub, token: "to.ken".to_owned(), ..Bootstrap::default() };
        assert_eq!(parse(&bootstrap.to_yaml()), Some(bootstrap.clone()));
    }

    #[test]
    fn a_kubeconfig_without_context_or_user_is_read() {
        let text = "apiVersion: v1\nkind: Config\nclusters:\n- name: \"\"\n  cluster:\n    server: https://hub\n";
        let server = "https://hub".to_owned();
        let hub = HubAddress { server, entry: Some(String::new()), ..HubAddress::default() };
        assert_eq!(parse(text), Some(Bootstrap { hub, ..Bootstrap::default() }));
        assert_eq!(parse("apiVersion: v1\nkind: Config\n"), None);
    }
}
