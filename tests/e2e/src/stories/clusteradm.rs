//! clusteradm and our commands on one hub and one cluster, both ways: what either has begun the other one goes on with, and ends.
//! Its program is built from its Go module.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use control_plane::{Cluster, Spec};

use crate::grpc_hub::{install, is_available};
use crate::join_support::hub_access;
use crate::residue::{nothing_stays, sweep};
use crate::{Said, bundle, kubectl_ocm, run, until};

/// The program, and its version.
const PROGRAM: (&str, &str) = ("open-cluster-management.io/clusteradm/cmd/clusteradm", "v1.3.1");
/// What it publishes of a hub, which our commands leave alone.
const PUBLISHED: &str = "ConfigMap kube-public cluster-info";

/// Runs clusteradm against a cluster.
fn clusteradm(cluster: &Cluster, words: &[&str]) -> Said {
    let (package, version) = PROGRAM;
    let program = control_plane::go_program(package, version).unwrap_or_else(|error| panic!("{error}"));
    let mut command = Command::new(program);
    // It prints its own name as it was called.
    command.arg0("clusteradm").args(words).arg("--kubeconfig").arg(cluster.kubeconfig());
    run(command.env("KUBECONFIG", cluster.kubeconfig()).stdin(Stdio::null()))
}

/// The same, which has to succeed.
fn does(cluster: &Cluster, words: &[&str]) -> Said {
    let said = clusteradm(cluster, words);
    assert_eq!(said.code, Some(0), "{words:?}: {said:?}");
    said
}

/// Runs one of our commands, which has to succeed.
fn ours(verb: &str, kubeconfig: &Path, words: &[&str]) -> Said {
    let said = run(kubectl_ocm(verb, kubeconfig).args(words));
    assert_eq!(said.code, Some(0), "{verb} {words:?}: {said:?}");
    said
}

/// Token and address of the line `clusteradm join --hub-token TOKEN --hub-apiserver ADDRESS …` in what a command has printed.
fn line(said: &Said) -> [String; 2] {
    let found = said.stdout.lines().map(str::trim).find(|line| line.starts_with("clusteradm join "));
    let words: Vec<&str> = found.unwrap_or_else(|| panic!("no line: {said:?}")).split_whitespace().collect();
    let behind = |flag: &str| {
        let at = words.iter().position(|word| *word == flag).unwrap_or_else(|| panic!("no {flag}: {words:?}"));
        words[at + 1].to_owned()
    };
    ["--hub-token", "--hub-apiserver"].map(behind)
}

/// A cluster joins by clusteradm with what a line says, and our command accepts it.
fn joins_by_clusteradm(hub: &Cluster, cluster: &Cluster, name: &str, said: &Said) {
    let [token, server] = line(said);
    let authority = hub.dir().expect("a folder").join("authority.crt");
    fs::write(&authority, hub.ca_pem()).expect("written");
    let authority = authority.to_str().expect("text");
    let words = ["join", "--hub-token", &token, "--hub-apiserver", &server, "--cluster-name", name];
    let more = ["--ca-file", authority, "--bundle-version", bundle()];
    does(cluster, &[&words[..], &more].concat());
    ours("accept", hub.kubeconfig(), &[name, "--yes", "--wait"]);
    // Ours sees that it has joined, and changes nothing.
    let access = hub_access(hub);
    let said = run(kubectl_ocm("join", cluster.kubeconfig()).args([name, &access, "--wait=available"]));
    is_available(hub, name, &said);
}

/// A cluster joins by our command, and clusteradm accepts it.
fn joins_by_ours(hub: &Cluster, cluster: &Cluster, name: &str) {
    let access = hub_access(hub);
    let join = |wait: &str| {
        run(kubectl_ocm("join", cluster.kubeconfig()).args([name, &access, wait, "--bundle-version", bundle()]))
    };
    let said = join("--wait=registered");
    assert_eq!(said.code, Some(0), "{said:?}");
    does(hub, &["accept", "--clusters", name, "--wait"]);
    is_available(hub, name, &join("--wait=available"));
}

/// A cluster leaves by our command, and nothing of it stays on either side, whoever made it join.
fn leaves(hub: &Cluster, cluster: &Cluster, name: &str) {
    ours("unjoin", cluster.kubeconfig(), &[name, "--yes", &hub_access(hub)]);
    for (side, kind, object) in [
        (cluster, "crd", "klusterlets.operator.open-cluster-management.io"),
        (cluster, "namespace", "open-cluster-management-agent"),
        (hub, "managedcluster", name),
        (hub, "namespace", name),
    ] {
        until(&format!("{kind} {object} is gone"), || side.kubectl(&["get", kind, object]).is_err());
    }
}

pub(super) fn what_clusteradm_has_begun_is_gone_on_with_and_the_other_way_round() {
    let clusters = Cluster::start_all(&["mixed-hub", "mixed"].map(Spec::node)).expect("the clusters start");
    let [hub, cluster] = clusters.as_slice() else { panic!("two were asked for") };
    let (before, plain) = (sweep(hub), sweep(cluster));

    // Its hub: clusters come and go by either.
    does(hub, &["init", "--wait", "--bundle-version", bundle()]);
    ours("install", hub.kubeconfig(), &["hub", "--wait"]);
    joins_by_clusteradm(hub, cluster, "m1", &clusteradm(hub, &["get", "token"]));
    leaves(hub, cluster, "m1");
    joins_by_ours(hub, cluster, "m2");
    leaves(hub, cluster, "m2");
    nothing_stays(cluster, &plain);
    // It goes by our command, all but what clusteradm has published.
    ours("uninstall", hub.kubeconfig(), &["hub", "--yes"]);
    let published: Vec<String> = sweep(hub).into_iter().filter(|line| line == PUBLISHED).collect();
    let before = before.into_iter().chain(published).collect();
    nothing_stays(hub, &before);

    // Our hub: the same, with the line as clusteradm prints it.
    let said = install(hub.kubeconfig(), &["--wait"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let printed = ours("token", hub.kubeconfig(), &["create", "--format=clusteradm"]);
    joins_by_clusteradm(hub, cluster, "m3", &printed);
    // clusteradm has it leave, and the hub's side goes by our command.
    does(cluster, &["unjoin", "--cluster-name", "m3"]);
    until("its agent is gone", || cluster.kubectl(&["get", "namespace", "open-cluster-management-agent"]).is_err());
    ours("detach", hub.kubeconfig(), &["m3", "--yes", "--force"]);
    ours("unjoin", cluster.kubeconfig(), &["--yes"]);
    joins_by_ours(hub, cluster, "m4");
    leaves(hub, cluster, "m4");
    ours("uninstall", hub.kubeconfig(), &["hub", "--yes"]);
    nothing_stays(hub, &before);
}
