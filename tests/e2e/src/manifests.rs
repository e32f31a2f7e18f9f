//! Manifests as administrators apply them.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use control_plane::Cluster;
use serde_json::{Value, json};

/// Applies an object by server-side apply; `name` is that of its file.
///
/// # Panics
/// When it is refused.
pub fn apply(cluster: &Cluster, name: &str, object: &Value) {
    put(cluster, name, &["apply", "--server-side"], object);
}

/// The same by client-side apply, which is what kubectl does by itself.
///
/// # Panics
/// When it is refused.
pub fn apply_client_side(cluster: &Cluster, name: &str, object: &Value) {
    put(cluster, name, &["apply"], object);
}

/// The same of several objects.
///
/// # Panics
/// When one is refused.
pub fn apply_all_client_side(cluster: &Cluster, name: &str, objects: &[Value]) {
    apply_client_side(cluster, name, &json!({"apiVersion": "v1", "kind": "List", "items": objects}));
}

fn put(cluster: &Cluster, name: &str, words: &[&str], object: &Value) {
    let file = cluster.dir().expect("a folder").join(format!("{name}.apply.json"));
    fs::write(&file, object.to_string()).expect("it is written");
    cluster.kubectl(&[words, &["--filename", file.to_str().expect("text")]].concat()).expect("it can be applied");
}

/// Has `kubectl apply` read manifests as text; returns whether all were taken.
///
/// # Panics
/// When it cannot be started, or does not read.
pub fn pipe(cluster: &Cluster, flags: &[&str], text: &str) -> bool {
    let mut command = cluster.kubectl_command();
    command.args(["apply", "--filename=-"]).args(flags).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().expect("kubectl starts");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    child.wait().expect("it ends").success()
}
