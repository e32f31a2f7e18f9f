//! Everything that a cluster holds: what was there before, and what stays of it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use control_plane::Cluster;

use crate::pause_after;

/// What people, controllers and the API server make and forget all the time.
const PASSING: &[&str] =
    &["Event", "EndpointSlice", "Endpoints", "PodMetrics", "ControllerRevision", "Lease kube-node-lease"];

/// What the hub forgets by itself, an hour after it was signed: longer than a test lasts, but not than all stories.
const FORGOTTEN: &str = "CertificateSigningRequest ";

/// Every object of every kind, by kind, namespace and name.
///
/// # Panics
///
/// When the cluster cannot be read.
pub fn sweep(cluster: &Cluster) -> BTreeSet<String> {
    let kinds =
        cluster.kubectl(&["api-resources", "--verbs=list,delete", "--output=name"]).expect("it tells its kinds");
    let kinds: Vec<&str> = kinds.split_whitespace().collect();
    let columns = "--output=custom-columns=KIND:.kind,IN:.metadata.namespace,NAME:.metadata.name";
    let all =
        cluster.kubectl(&["get", &kinds.join(","), "--all-namespaces", "--no-headers", "--ignore-not-found", columns]);
    let all = all.expect("everything can be listed");
    let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    all.lines().map(line).filter(|line| !PASSING.iter().any(|kind| line.starts_with(kind))).collect()
}

/// Waits until there is exactly what there was before.
///
/// # Panics
///
/// When something stays, or something is gone that was there.
pub fn nothing_stays(cluster: &Cluster, before: &BTreeSet<String>) {
    let begun = Instant::now();
    loop {
        let looked = Instant::now();
        let after = sweep(cluster);
        let more: Vec<_> = after.difference(before).collect();
        let less: Vec<_> = before.difference(&after).filter(|line| !line.starts_with(FORGOTTEN)).collect();
        if more.is_empty() && less.is_empty() {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "stays: {more:#?}, gone: {less:#?}");
        pause_after(looked);
    }
}
