//! Stories on real clusters: what they share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

use control_plane::Cluster;
use serde_json::Value;

pub mod accept_support;
pub mod join_support;

/// The release of OCM whose images the clusters hold.
pub const BUNDLE: &str = "1.2.0";

/// The command `kubectl ocm VERB` as it is in the sources now, against a cluster.
///
/// # Panics
///
/// When it cannot be built.
pub fn kubectl_ocm(verb: &str, kubeconfig: &Path) -> Command {
    let mut command = Command::new(binary(&format!("kubectl-ocm-{}", verb.replace('-', "_")), verb));
    command.env("KUBECONFIG", kubeconfig).env("KUBECTL_OCM_PROGRESS", "never").stdin(Stdio::null());
    command
}

fn binary(name: &str, verb: &str) -> PathBuf {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(path) = built.get(name) {
        return path.clone();
    }
    // A test is TARGET/debug/deps/NAME-HASH.
    let own = std::env::current_exe().expect("a test knows where it is");
    let profile = own.parent().and_then(Path::parent).expect("a test is in a target directory").to_owned();
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--package"]).arg(format!("kubectl-ocm-{verb}"));
    cargo.arg("--manifest-path").arg(workspace);
    if let Some(target) = profile.parent() {
        cargo.arg("--target-dir").arg(target);
    }
    let done = cargo.status().expect("Cargo is there");
    assert!(done.success(), "building {name} failed");
    let path = profile.join(name);
    built.insert(name.to_owned(), path.clone());
    path
}

/// What a command said, and how it ended.
#[derive(Debug)]
pub struct Said {
    /// The exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// Data.
    pub stdout: String,
    /// Narration.
    pub stderr: String,
}

/// Runs a command to its end.
///
/// # Panics
///
/// When it cannot be started.
pub fn run(command: &mut Command) -> Said {
    let Output { status, stdout, stderr } = command.output().expect("the command starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Said { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

/// Kinds of which the commands of the suite create objects.
const KINDS: &str = "namespaces,customresourcedefinitions,serviceaccounts,secrets,configmaps,services,deployments,\
                     clusterroles,clusterrolebindings,roles,rolebindings,mutatingwebhookconfigurations,\
                     validatingwebhookconfigurations";

/// Every object that has to do with OCM and its resource version, by kind, namespace and name.
///
/// # Panics
///
/// When the cluster cannot be read.
pub fn resource_versions(cluster: &Cluster) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut kinds = vec![KINDS];
    let served =
        cluster.kubectl(&["api-resources", "--output=name", "--api-group=operator.open-cluster-management.io"]);
    let served = served.expect("the cluster tells its kinds").trim().replace('\n', ",");
    if !served.is_empty() {
        kinds.push(&served);
    }
    for kinds in kinds {
        let list =
            cluster.kubectl(&["get", kinds, "--all-namespaces", "--output=json"]).expect("the objects are listed");
        let list: Value = serde_json::from_str(&list).expect("kubectl prints JSON");
        for object in list["items"].as_array().into_iter().flatten() {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
            if namespace.starts_with("open-cluster-management")
                || name.contains("open-cluster-management")
                || name.contains("cluster-manager")
            {
                found.insert(format!("{} {namespace}/{name}", text("/kind")), text("/metadata/resourceVersion"));
            }
        }
    }
    found
}

/// An object as JSON.
///
/// # Panics
///
/// When it is not there.
pub fn object(cluster: &Cluster, words: &[&str]) -> Value {
    let text = cluster.kubectl(&[&["get", "--output=json"], words].concat()).expect("the object is there");
    serde_json::from_str(&text).expect("kubectl prints JSON")
}
