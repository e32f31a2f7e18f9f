//! A hub that lets clusters register over gRPC, by our own commands, and what an agent shows of how it has registered.

use std::path::Path;

use control_plane::Cluster;
use serde_json::Value;

use crate::{Said, bundle, kubectl_ocm, object, run};

const AGENT: &str = "--namespace=open-cluster-management-agent";
/// The flag that names the namespace of the hub's components.
pub const HUB: &str = "--namespace=open-cluster-management-hub";
/// The flag by which a cluster registers over gRPC.
pub const GRPC: &str = "--registration-auth=grpc";
/// The port of the hub's node that leads to its gRPC server.
pub const PORT: u16 = 30090;

/// The address of the hub's node: a name would have to be known to pods.
///
/// # Panics
///
/// When it has none.
pub fn node(hub: &Cluster) -> String {
    hub.server().trim_start_matches("https://").split(':').next().expect("an address").to_owned()
}

/// The flag that names the hub's gRPC server as it is exposed.
pub fn server(hub: &Cluster) -> String {
    format!("--grpc-server={}:{PORT}", node(hub))
}

/// Runs `kubectl ocm install hub`, with the release that the images are of.
pub fn install(kubeconfig: &Path, flags: &[&str]) -> Said {
    run(kubectl_ocm("install", kubeconfig).args(["hub", "--bundle-version", bundle()]).args(flags))
}

/// The flags by which a hub exposes its gRPC server at a port of its node.
pub fn exposed(hub: &Cluster) -> [String; 3] {
    ["--registration-drivers=csr,grpc".to_owned(), server(hub), "--expose-grpc=nodePort".to_owned()]
}

/// Waits until the gRPC server runs, and the controller that signs what is asked over gRPC.
///
/// # Panics
///
/// When they do not.
pub fn runs(hub: &Cluster) {
    for name in ["grpc-server", "registration-controller"] {
        let what = format!("deployment/cluster-manager-{name}");
        hub.kubectl(&["rollout", "status", &what, HUB, "--timeout=150s"]).expect("it runs");
    }
}

/// Makes a hub of a cluster that lets others register over gRPC.
///
/// # Panics
///
/// When it does not become one.
pub fn serve(hub: &Cluster) {
    let flags = exposed(hub);
    let flags: Vec<&str> = flags.iter().map(String::as_str).chain(["--wait"]).collect();
    let said = install(hub.kubeconfig(), &flags);
    assert_eq!(said.code, Some(0), "{said:?}");
    runs(hub);
}

/// Whether the agent has the file of those who register over gRPC: in what it registers with, and in what it was let in with.
///
/// # Panics
///
/// When it has no such Secrets.
pub fn has_file_for_grpc(cluster: &Cluster) -> [bool; 2] {
    ["bootstrap-hub-kubeconfig", "hub-kubeconfig-secret"].map(|secret| {
        let secret = object(cluster, &["secret", secret, AGENT]);
        secret["data"].as_object().is_some_and(|data| data.contains_key("config.yaml"))
    })
}

/// The driver that the Klusterlet names.
///
/// # Panics
///
/// When there is no Klusterlet.
pub fn driver(cluster: &Cluster) -> Value {
    object(cluster, &["klusterlet", "klusterlet"])["spec"]["registrationConfiguration"]["registrationDriver"].clone()
}

/// How many requests of the agent of a cluster a signer has issued.
///
/// # Panics
///
/// When they cannot be listed.
pub fn issued(hub: &Cluster, cluster: &str, signer: &str) -> usize {
    let selector = format!("--selector=open-cluster-management.io/cluster-name={cluster}");
    let requests = object(hub, &["csr", &selector]);
    let of = |request: &&Value| {
        let spec = &request["spec"];
        spec["signerName"] == signer && request["status"]["certificate"].as_str().is_some()
    };
    requests["items"].as_array().map_or(0, |all| all.iter().filter(of).count())
}

/// The command has made the cluster available, and the hub says so, too.
///
/// # Panics
///
/// When it is not so.
pub fn is_available(hub: &Cluster, name: &str, said: &Said) {
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.ends_with(&format!("/{name} available\n")), "{said:?}");
    let cluster = format!("managedcluster/{name}");
    let wait = ["wait", &cluster, "--for=condition=ManagedClusterConditionAvailable", "--timeout=1s"];
    hub.kubectl(&wait).expect("the hub says so");
}
