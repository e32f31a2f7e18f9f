//! Manifests as administrators apply them.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use control_plane::Cluster;
use kube::api::{Patch, PatchParams};
use kube::core::{DynamicObject, GroupVersionKind, TypeMeta};
use kube::discovery::{Scope, pinned_kind};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::SOON;
use crate::connection::connect;

/// Applies an object, or the items of a List, by server-side apply as kubectl does. Tests do so hundreds of times, and each kubectl
/// is the work of a tenth of a second.
///
/// # Panics
/// When it is refused.
pub fn apply(cluster: &Cluster, object: &Value) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = connect(cluster.kubeconfig()).await.client;
        match object["items"].as_array() {
            Some(items) => {
                for item in items {
                    apply_with(&client, item).await;
                }
            }
            None => apply_with(&client, object).await,
        }
    });
}

/// Applies an object by server-side apply.
///
/// # Panics
/// When it is refused.
pub async fn apply_with(client: &Client, object: &Value) {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let types = TypeMeta {
        api_version: text("/apiVersion").expect("an apiVersion").to_owned(),
        kind: text("/kind").expect("a kind").to_owned(),
    };
    let kind = GroupVersionKind::try_from(&types).expect("an apiVersion");
    let begun = Instant::now();
    let (kind, capabilities) = loop {
        match pinned_kind(client, &kind).await {
            Ok(found) => break found,
            // What was defined just now is told a moment later.
            Err(error) => assert!(begun.elapsed() < SOON, "{kind:?} is not served: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let client = client.clone();
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client, &kind),
        Scope::Namespaced => Api::namespaced_with(client, text("/metadata/namespace").unwrap_or("default"), &kind),
    };
    let name = text("/metadata/name").expect("a name");
    let applied = api.patch(name, &PatchParams::apply("kubectl"), &Patch::Apply(object)).await;
    applied.unwrap_or_else(|error| panic!("{name} cannot be applied: {error}"));
}

/// The same by client-side apply, which is what kubectl does by itself; `name` is that of its file.
///
/// # Panics
/// When it is refused.
pub fn apply_client_side(cluster: &Cluster, name: &str, object: &Value) {
    let file = cluster.dir().expect("a folder").join(format!("{name}.apply.json"));
    fs::write(&file, object.to_string()).expect("it is written");
    cluster.kubectl(&["apply", "--filename", file.to_str().expect("text")]).expect("it can be applied");
}

/// The same of several objects.
///
/// # Panics
/// When one is refused.
pub fn apply_all_client_side(cluster: &Cluster, name: &str, objects: &[Value]) {
    apply_client_side(cluster, name, &json!({"apiVersion": "v1", "kind": "List", "items": objects}));
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
