//! What `kubectl ocm troubleshoot` finds on real clusters.

use std::time::{Duration, Instant};

use control_plane::Cluster;
use serde_json::Value;

use crate::join_support::hub_access;
use crate::manifests::pipe;
use crate::{Said, kubectl_ocm, pause_after, run, until_within};

/// The namespace of agents.
pub const AGENTS: &str = "open-cluster-management-agent";
/// How long a fault may take until it shows, and its cure: agents that end by themselves wait for their own leader lease, of 137
/// seconds, and may do so twice.
pub const TIME: Duration = Duration::from_secs(360);

/// The release under test may be one of which everybody is warned.
pub const KNOWN: &str = "--suppress=OCM7102=2999-01-01,the release under test";

/// A look at both clusters.
pub fn look(cluster: &Cluster, hub: &Cluster, name: &str, flags: &[&str]) -> Said {
    run(kubectl_ocm("troubleshoot", cluster.kubeconfig()).args([name, KNOWN, &hub_access(hub)]).args(flags))
}

/// The report of a look at both clusters, and what was found, see [`read`].
///
/// # Panics
/// When it prints no report.
pub fn report(cluster: &Cluster, hub: &Cluster, name: &str) -> (Value, Vec<String>) {
    read(&look(cluster, hub, name, &["--output=json"]))
}

/// A report, and the ids of what was found: of errors, or of warnings where there are no errors.
///
/// # Panics
/// When it is none.
pub fn read(said: &Said) -> (Value, Vec<String>) {
    let value: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    let of = |severity: &str| {
        let found = value["findings"].as_array().into_iter().flatten().filter(|found| found["severity"] == severity);
        let mut ids: Vec<String> = found.map(|found| found["id"].as_str().expect("an id").to_owned()).collect();
        ids.dedup();
        ids
    };
    let errors = of("error");
    let ids = if errors.is_empty() { of("warning") } else { errors };
    (value, ids)
}

/// Waits until exactly this cause is found, and no other.
///
/// # Panics
/// When it is not found in time.
pub fn finds(cluster: &Cluster, hub: &Cluster, name: &str, id: &str) -> Value {
    finds_after(cluster, hub, name, id, || ())
}

/// The same, with something done before each look.
///
/// # Panics
/// When it is not found in time.
pub fn finds_after(cluster: &Cluster, hub: &Cluster, name: &str, id: &str, before: impl Fn()) -> Value {
    let begun = Instant::now();
    loop {
        let looked = Instant::now();
        before();
        let (value, ids) = report(cluster, hub, name);
        if ids == [id] {
            return value;
        }
        assert!(begun.elapsed() < TIME, "{id} is not the one cause: {ids:?} {value:#}");
        pause_after(looked);
    }
}

/// Waits until all is well.
///
/// # Panics
/// When something is.
pub fn is_well(cluster: &Cluster, hub: &Cluster, name: &str) {
    let said = || format!("{:#}", report(cluster, hub, name).0["findings"]);
    until_within(TIME, "nothing is found any more", said, || report(cluster, hub, name).1.is_empty());
}

/// As if the agent of a cluster had never come so far: it may still have registered with what it had before.
///
/// # Panics
/// When what is left of it cannot be removed.
pub fn forget(cluster: &Cluster, hub: &Cluster, name: &str) {
    let label = format!("open-cluster-management.io/cluster-name={name}");
    kubectl(cluster, &["delete", "secret", "hub-kubeconfig-secret", "--ignore-not-found", "--namespace", AGENTS]);
    kubectl(hub, &["delete", "managedcluster", name, "--ignore-not-found", "--wait=true"]);
    kubectl(hub, &["delete", "csr", "--selector", &label]);
}

/// Removes the requests of agents that were replaced: the operator starts an agent anew once it sees other settings, and the one
/// before may have asked with these already, with a key of its own.
///
/// # Panics
/// When they cannot be removed.
pub fn forget_replaced(hub: &Cluster, name: &str) {
    let label = format!("--selector=open-cluster-management.io/cluster-name={name}");
    let by_age = ["get", "csr", &label, "--sort-by=.metadata.creationTimestamp", "--output=name"];
    let requests = hub.kubectl(&by_age).unwrap_or_else(|error| panic!("{by_age:?}: {error}"));
    let requests: Vec<&str> = requests.lines().collect();
    if let Some((_newest, replaced @ [_, ..])) = requests.split_last() {
        kubectl(hub, &[&["delete", "--ignore-not-found"], replaced].concat());
    }
}

/// Has the registration agent start anew: pods that have ended again and again are started later and later.
///
/// # Panics
/// When its pods cannot be removed.
pub fn restart(cluster: &Cluster) {
    kubectl(cluster, &["delete", "pods", "--namespace", AGENTS, "--selector", "app=klusterlet-registration-agent"]);
}

/// Runs kubectl, which has to do it.
///
/// # Panics
/// When it cannot.
pub fn kubectl(cluster: &Cluster, words: &[&str]) {
    cluster.kubectl(words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
}

/// Applies a manifest, whoever else owns what it says.
///
/// # Panics
/// When it is refused.
pub fn apply(cluster: &Cluster, manifest: &Value) {
    let flags = ["--server-side", "--force-conflicts"];
    assert!(pipe(cluster, &flags, &manifest.to_string()), "{manifest}");
}
