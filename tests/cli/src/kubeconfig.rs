//! Kubeconfigs.

/// A kubeconfig with one cluster, user and context for each name, all with this server. The first is the current one.
pub fn kubeconfig(server: &str, names: &[&str]) -> String {
    let list = |entry: &dyn Fn(&str) -> String| names.iter().map(|name| entry(name)).collect::<String>();
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: {}\nclusters:\n{}users:\n{}contexts:\n{}",
        names.first().copied().unwrap_or_default(),
        list(&|name| format!("- name: {name}\n  cluster: {{ server: \"{server}\" }}\n")),
        list(&|name| format!("- name: {name}-admin\n  user: {{ token: secret }}\n")),
        list(&|name| format!("- name: {name}\n  context: {{ cluster: {name}, user: {name}-admin }}\n")),
    )
}
