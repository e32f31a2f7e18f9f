//! Runs an image as a pod on a real node, with as few rights as Kubernetes knows.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use control_plane::{Cluster, Spec};
use serde_json::{Value, json};

/// Imports the archive on a node, runs the image with these arguments, and returns what it says.
///
/// # Errors
/// When the archive is not taken, or the pod does not end well.
pub fn smoke(archive: &Path, reference: &str, arguments: &[&str]) -> Result<String, String> {
    let cluster = Cluster::start(&Spec::node("image").ocm_images(false)).map_err(|error| error.to_string())?;
    cluster.import_image(archive).map_err(|error| error.to_string())?;
    let namespace = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": "image", "labels": { "pod-security.kubernetes.io/enforce": "restricted" } },
    });
    create(&cluster, &namespace)?;
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "image", "namespace": "image" },
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
            "containers": [{
                "name": "image",
                "image": reference,
                "imagePullPolicy": "Never",
                "args": arguments,
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "readOnlyRootFilesystem": true,
                    "capabilities": { "drop": ["ALL"] },
                },
            }],
        },
    });
    create(&cluster, &pod)?;
    let begun = Instant::now();
    loop {
        let pod = kubectl(&cluster, &["get", "pod", "image", "--namespace=image", "--output=json"])?;
        let pod: Value = serde_json::from_str(&pod).map_err(|error| format!("kubectl get pod: {error}"))?;
        let status = &pod["status"];
        match status["phase"].as_str().unwrap_or_default() {
            "Succeeded" => return kubectl(&cluster, &["logs", "image", "--namespace=image"]),
            "Failed" => {
                let said = kubectl(&cluster, &["logs", "image", "--namespace=image"]).unwrap_or_default();
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
