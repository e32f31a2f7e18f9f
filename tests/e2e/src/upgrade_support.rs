//! Clusters that run one release or the other, and upgrades of many.

use std::path::{Path, PathBuf};

use control_plane::Cluster;
use serde_json::{Value, json};

use crate::join_support::{hub, hub_access};
use crate::{Said, earlier_bundle, kubectl_ocm, object, run};

/// The namespace of agents.
pub const AGENT: &str = "open-cluster-management-agent";

/// Members of the two kinds that hold images.
const IMAGES: [&str; 5] = [
    "registrationImagePullSpec",
    "workImagePullSpec",
    "placementImagePullSpec",
    "addOnManagerImagePullSpec",
    "imagePullSpec",
];

/// The flag that names a release.
pub fn release(version: &str) -> String {
    format!("--bundle-version={version}")
}

/// What a command has printed as JSON.
///
/// # Panics
///
/// When it is something else.
pub fn document(said: &Said) -> Value {
    serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

/// What has become of each cluster of a fleet: its context, or its name where a file names it, its stage, and the outcome.
///
/// # Panics
///
/// When the command has printed something else.
pub fn outcomes(said: &Said) -> Vec<String> {
    let document = document(said);
    let rows = document["clusters"].as_array().cloned().unwrap_or_default();
    let name = |row: &Value| if row["context"].is_null() { row["cluster"].clone() } else { row["context"].clone() };
    rows.iter().map(|row| format!("{} {} {}", name(row), row["stage"], row["outcome"]).replace('"', "")).collect()
}

/// Writes a fleet file: a hub, and clusters by their names, each with its kubeconfig.
///
/// # Panics
///
/// When it cannot be written.
pub fn fleet_file(folder: &Path, hub: &Path, clusters: &[(&str, &Path)]) -> PathBuf {
    let clusters: Vec<Value> =
        clusters.iter().map(|(name, kubeconfig)| json!({"name": name, "kubeconfig": kubeconfig})).collect();
    let fleet = json!({
        "apiVersion": "kubectl-ocm.dev/v1alpha1", "kind": "Fleet", "hub": {"kubeconfig": hub}, "clusters": clusters,
    });
    let path = folder.join("fleet.yaml");
    std::fs::write(&path, fleet.to_string()).expect("written");
    path
}

/// Upgrades the clusters of a fleet file; nothing but the file says which they are.
pub fn upgrade_by(file: &Path, flags: &[&str]) -> Said {
    let mut command = kubectl_ocm("upgrade", Path::new("/nonexistent"));
    run(command.args(["klusterlet", "--output=json", "--filename"]).arg(file).args(flags))
}

/// The spec of a cluster-wide object without its images.
///
/// # Panics
///
/// When it is not there.
pub fn settings(cluster: &Cluster, kind: &str, name: &str) -> Value {
    let mut spec = object(cluster, &[kind, name])["spec"].clone();
    let members = spec.as_object_mut().expect("a spec is an object");
    IMAGES.iter().for_each(|member| drop(members.remove(*member)));
    spec
}

/// The images that a cluster-wide object names are all of this release.
///
/// # Panics
///
/// When one is not.
pub fn named_are(cluster: &Cluster, kind: &str, name: &str, version: &str) {
    let spec = object(cluster, &[kind, name])["spec"].clone();
    let named: Vec<&str> = IMAGES.iter().filter_map(|member| spec[*member].as_str()).collect();
    let tag = format!(":v{version}");
    assert!(!named.is_empty() && named.iter().all(|image| image.ends_with(&tag)), "{version}: {named:?}");
}

/// The images of the Deployments and of the pods of a namespace, each with its tag.
///
/// # Panics
///
/// When they cannot be listed.
pub fn images(cluster: &Cluster, namespace: &str) -> Vec<String> {
    let space = format!("--namespace={namespace}");
    let mut found = Vec::new();
    for (kind, path) in
        [("deployments", "/spec/template/spec/containers/0/image"), ("pods", "/spec/containers/0/image")]
    {
        let list = object(cluster, &[kind, &space]);
        let items = list["items"].as_array().cloned().unwrap_or_default();
        // What is on its way out is not counted.
        let stays = items.iter().filter(|item| item["metadata"]["deletionTimestamp"].is_null());
        found.extend(stays.filter_map(|item| item.pointer(path)?.as_str().map(str::to_owned)));
    }
    found
}

/// All of them are of this release.
///
/// # Panics
///
/// When one is not.
pub fn all_are(cluster: &Cluster, namespace: &str, version: &str) {
    let found = images(cluster, namespace);
    let tag = format!(":v{version}");
    assert!(!found.is_empty() && found.iter().all(|image| image.ends_with(&tag)), "{namespace} {version}: {found:?}");
}

/// Joins the shared hub with the release before, and waits until the cluster is available.
///
/// # Panics
///
/// When it does not become so.
pub fn joined(cluster: &Cluster, name: &str) {
    let said = run(kubectl_ocm("join", cluster.kubeconfig()).args([
        name,
        &release(earlier_bundle()),
        &hub_access(hub()),
        "--accept",
        "--wait",
        "--timeout=3m",
    ]));
    assert_eq!(said.code, Some(0), "{said:?}");
    all_are(cluster, AGENT, earlier_bundle());
    // It reports more often than usual, so that nobody waits a minute for each report.
    let patch = r#"{"spec": {"leaseDurationSeconds": 5}}"#;
    hub().kubectl(&["patch", "managedcluster", name, "--type=merge", "--patch", patch]).expect("it is patched");
}
