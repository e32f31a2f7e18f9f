//! Users who hold the rights that the documentation names, and no others.

use std::path::{Path, PathBuf};

use control_plane::Cluster;
use serde_json::Value;

/// Applies the documented roles of a command and binds them to a new user, whose kubeconfig it returns.
///
/// # Panics
///
/// When a role cannot be read, applied or bound.
pub fn user_with(cluster: &Cluster, user: &str, files: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rbac");
    for file in files {
        let path = folder.join(file);
        let text = path.to_str().expect("the path is text");
        cluster.kubectl(&["apply", "--filename", text]).expect("the documented roles can be applied");
        let listed = cluster.kubectl(&["create", "--dry-run=client", "--output=json", "--filename", text]);
        let listed = listed.expect("the documented roles can be read");
        for role in serde_json::Deserializer::from_str(&listed).into_iter::<Value>() {
            let role = role.expect("kubectl prints JSON");
            let items = role["items"].as_array().cloned().unwrap_or_else(|| vec![role.clone()]);
            for item in items {
                bind(cluster, user, &item);
            }
        }
    }
    cluster.user_kubeconfig(user, &[]).expect("a user can be made")
}

fn bind(cluster: &Cluster, user: &str, role: &Value) {
    let name = role.pointer("/metadata/name").and_then(Value::as_str).expect("a role has a name");
    let user_flag = format!("--user={user}");
    let binding = format!("{user}-{name}");
    let bound = match role["kind"].as_str() {
        Some("ClusterRole") => {
            cluster.kubectl(&["create", "clusterrolebinding", &binding, "--clusterrole", name, &user_flag])
        }
        _ => {
            let namespace =
                role.pointer("/metadata/namespace").and_then(Value::as_str).expect("a Role has a namespace");
            cluster.kubectl(&["create", "rolebinding", &binding, "--role", name, &user_flag, "--namespace", namespace])
        }
    };
    bound.expect("the role can be bound");
}
