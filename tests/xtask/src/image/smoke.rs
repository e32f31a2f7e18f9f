//! Runs an image as a pod on a real node, with as few rights as Kubernetes knows.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use control_plane::{Cluster, Spec};
use serde_json::{Value, json};

/// The namespace of the pods, which gives them no rights.
const NAMESPACE: &str = "image";

/// Imports the archive on a node, runs the image with these arguments, and returns what it says.
///
/// # Errors
/// When the archive is not taken, or the pod does not end well.
pub fn smoke(archive: &Path, reference: &str, arguments: &[&str]) -> Result<String, String> {
    let node = node()?;
    node.import_image(archive).map_err(|error| error.to_string())?;
    pod(&node, "image", reference, "Never", arguments)
}

/// A node for [`pod`].
///
/// # Errors
/// When it does not start.
pub fn node() -> Result<Cluster, String> {
    let node = Cluster::start(&Spec::node("image").ocm_images(false)).map_err(|error| error.to_string())?;
    let namespace = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": NAMESPACE, "labels": { "pod-security.kubernetes.io/enforce": "restricted" } },
    });
    create(&node, &namespace)?;
    Ok(node)
}

/// Runs an image as a pod of this name, with these arguments, and returns what it says. `pull` is the policy by which the
/// image is pulled: `Never` where it was imported.
///
/// # Errors
/// When the pod does not end well.
pub fn pod(node: &Cluster, name: &str, image: &str, pull: &str, arguments: &[&str]) -> Result<String, String> {
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
            "containers": [{
                "name": "image",
                "image": image,
                "imagePullPolicy": pull,
                "args": arguments,
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "readOnlyRootFilesystem": true,
                    "capabilities": { "drop": ["ALL"] },
                },
            }],
        },
    });
    create(node, &pod)?;
    let (get, logs) =
        (["get", "pod", name, "--namespace", NAMESPACE, "--output=json"], ["logs", name, "--namespace", NAMESPACE]);
    let begun = Instant::now();
    loop {
        let pod: Value =
            serde_json::from_str(&kubectl(node, &get)?).map_err(|error| format!("kubectl get pod: {error}"))?;
        let status = &pod["status"];
        match status["phase"].as_str().unwrap_or_default() {
            "Succeeded" => return kubectl(node, &logs),
            "Failed" => {
                let said = kubectl(node, &logs).unwrap_or_default();
                return Err(format!("the pod failed: {}\n{said}", status["containerStatuses"]));
            }
            _ if begun.elapsed() > Duration::from_secs(60) => {
                return Err(format!("the pod does not end: {}", status["containerStatuses"]));
            }
            _ => sleep(Duration::from_millis(200)),
        }
    }
}

fn create(cluster: &Cluster, object: &Value) -> Result<(), String> {
    let file = cluster.dir().ok_or("the cluster has no directory")?.join("object.json");
    std::fs::write(&file, object.to_string()).map_err(|error| format!("{}: {error}", file.display()))?;
    kubectl(cluster, &["create", "--filename", &file.display().to_string()]).map(drop)
}

fn kubectl(cluster: &Cluster, words: &[&str]) -> Result<String, String> {
    cluster.kubectl(words).map_err(|error| error.to_string())
}
