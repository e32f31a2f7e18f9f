//! Nothing is found in clusters that are well, however they have joined: in each mode, over gRPC, and as the hub itself.

use control_plane::{Cluster, Spec};
use serde_json::{Value, json};

use crate::grpc_hub::{GRPC, serve};
use crate::join_support::{hub_access, join};
use crate::trouble_support::{KNOWN, TIME, look, read};
use crate::{Said, kubectl_ocm, run, until_within};

fn start(name: &str) -> Cluster {
    Cluster::start(&Spec::node(name)).expect("a cluster")
}

fn joins(cluster: &Cluster, hub: &Cluster, name: &str, flags: &[&str]) {
    let access = hub_access(hub);
    let always = ["--accept", "--wait", "--timeout=8m", access.as_str()];
    let said = join(cluster, name, &[&always, flags].concat());
    assert_eq!(said.code, Some(0), "{flags:?}: {said:?}");
    assert!(said.stdout.ends_with(&format!("/{name} available\n")), "{said:?}");
}

fn leaves(cluster: &Cluster, hub: &Cluster, name: &str) {
    let said = run(kubectl_ocm("unjoin", cluster.kubeconfig()).args([name, "--yes", &hub_access(hub)]));
    assert_eq!(said.code, Some(0), "{said:?}");
}

/// The command ends well, everything could be looked at, and nothing is found. Conditions are behind for a while after a join.
fn finds_nothing(what: &str, looked: impl Fn() -> Said) {
    until_within(
        TIME,
        &format!("nothing is found in {what}"),
        || format!("{:?}", looked()),
        || {
            let said = looked();
            said.code == Some(0) && read(&said).0["findings"] == json!([])
        },
    );
}

/// Nothing is found by whoever has both clusters, and by whoever has the hub alone.
fn is_quiet(cluster: &Cluster, hub: &Cluster, name: &str) {
    let flags = ["--output=json", "--fail-on=warning"];
    finds_nothing(name, || look(cluster, hub, name, &flags));
    for whom in [name, "--all-clusters"] {
        let of_hub = || run(kubectl_ocm("troubleshoot", hub.kubeconfig()).args([whom, KNOWN]).args(flags));
        finds_nothing(&format!("{name} by the hub alone"), of_hub);
    }
    let said = look(cluster, hub, name, &flags);
    let headline = read(&said).0.pointer("/clusters/0/headline").and_then(Value::as_str).map(str::to_owned);
    assert!(headline.is_some_and(|headline| headline.starts_with("joined and available, heard of ")), "{said:?}");
}

pub(super) fn clusters_that_are_well_give_no_finding_in_any_mode() {
    let hub = start("quiet-hub");
    serve(&hub);
    let modes: [(&str, &[&str]); 3] =
        [("quiet-default", &["--mode=default"]), ("quiet-singleton", &["--mode=singleton"]), ("quiet-grpc", &[GRPC])];
    for (name, flags) in modes {
        let cluster = start(name);
        joins(&cluster, &hub, name, flags);
        is_quiet(&cluster, &hub, name);
        leaves(&cluster, &hub, name);
    }

    // The agent runs on another cluster.
    let (host, guest) = (start("quiet-host"), start("quiet-guest"));
    let managed = format!("--managed-kubeconfig={}", guest.kubeconfig().display());
    let modes: [(&str, &[&str]); 2] =
        [("quiet-hosted", &["--mode=hosted"]), ("quiet-one-hosted", &["--mode=hosted", "--singleton"])];
    for (name, flags) in modes {
        joins(&host, &hub, name, &[&[managed.as_str()], flags].concat());
        is_quiet(&host, &hub, name);
        leaves(&host, &hub, name);
    }

    // The hub itself.
    joins(&hub, &hub, "quiet-itself", &["--self"]);
    is_quiet(&hub, &hub, "quiet-itself");
}
