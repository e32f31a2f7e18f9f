//! Whoever has the hub alone sees what is wrong on either side, as far as the hub can tell.

use std::time::Instant;

use control_plane::{Cluster, Spec};
use serde_json::{Value, json};

use crate::join_support::{JoinCommand, alone, hub, join};
use crate::trouble_support::{KNOWN, TIME, apply, kubectl, read};
use crate::{kubectl_ocm, object, pause_after, run};

/// Its name on the hub.
const NAME: &str = "far-away";

/// The report of a look at the hub alone, and what is found.
fn report() -> (Value, Vec<String>) {
    read(&run(kubectl_ocm("troubleshoot", hub().kubeconfig()).args([NAME, KNOWN, "--output=json"])))
}

/// Waits until this is the one cause, or, where none is given, until nothing is found. What was found.
fn shows(id: Option<&str>, is_it: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let looked = Instant::now();
        let (value, ids) = report();
        if ids.iter().map(String::as_str).eq(id) && is_it(&value) {
            return value;
        }
        assert!(begun.elapsed() < TIME, "{id:?} is not the one cause: {ids:?} {value:#}");
        pause_after(looked);
    }
}

/// The headline of the cluster names the cause.
fn is_in_headline(value: &Value) -> bool {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (headline, summary) = (text("/clusters/0/headline"), text("/findings/0/summary"));
    !summary.is_empty() && headline.ends_with(summary)
}

fn is_well() {
    shows(None, |_| true);
}

/// The cause is found, and named in the headline.
fn names(id: &str) -> Value {
    shows(Some(id), is_in_headline)
}

pub(super) fn hub_alone_shows_what_is_wrong_on_either_side() {
    let _alone = alone();
    let hub = hub();
    let cluster = Cluster::start(&Spec::node("far-away")).expect("a cluster");
    // Before anybody has come.
    names("OCM2201");

    // Until it is accepted.
    let said = join(&cluster, NAME, &JoinCommand::create(hub, &[]).flags());
    assert_eq!(said.code, Some(0), "{said:?}");
    let waiting = names("OCM2205");
    assert!(waiting["findings"][0]["next"].to_string().contains("kubectl ocm accept far-away"), "{waiting:#}");
    let label = format!("open-cluster-management.io/cluster-name={NAME}");
    let requests = object(hub, &["csr", "--selector", &label]);
    let request = requests.pointer("/items/0/metadata/name").and_then(Value::as_str).expect("a request").to_owned();
    kubectl(hub, &["certificate", "deny", &request]);
    names("OCM2208");
    kubectl(hub, &["delete", "csr", &request]);
    names("OCM2205");
    let accept = |word: &str| format!("--patch={{\"spec\":{{\"hubAcceptsClient\":{word}}}}}");
    kubectl(hub, &["patch", "managedcluster", NAME, "--type=merge", &accept("true")]);
    names("OCM2206");
    let said = run(kubectl_ocm("accept", hub.kubeconfig()).args([NAME, "--yes", "--wait"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    is_well();

    // What the hub has said no to.
    kubectl(hub, &["patch", "managedcluster", NAME, "--type=merge", &accept("false")]);
    names("OCM2204");
    kubectl(hub, &["patch", "managedcluster", NAME, "--type=merge", &accept("true")]);
    is_well();

    // What is wrong with the hub is found by whoever asks about any of its clusters.
    let operator = ["scale", "deployment", "cluster-manager", "--namespace=open-cluster-management"];
    kubectl(hub, &[&operator[..], &["--replicas=0"]].concat());
    shows(Some("OCM1102"), |_| true);
    kubectl(hub, &[&operator[..], &["--replicas=1"]].concat());
    is_well();

    // What the agent reports of its own cluster.
    let work = json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "unknown", "namespace": NAME},
        "spec": {"workload": {"manifests": [
            {"apiVersion": "example.com/v1", "kind": "Nothing", "metadata": {"name": "a", "namespace": "default"}},
        ]}},
    });
    apply(hub, &work);
    names("OCM5101");
    kubectl(hub, &["delete", "manifestwork", "unknown", "--namespace", NAME]);
    is_well();

    // An agent that is silent, and where one has to look for why.
    cluster.pause().expect("paused");
    let silent = names("OCM3101");
    let found = silent["findings"][0].to_string();
    assert!(found.contains("kubectl ocm troubleshoot far-away --context MANAGED --hub-context HUB"), "{silent:#}");
    cluster.resume().expect("resumed");
    is_well();

    // Other stories have the same hub.
    let said = run(kubectl_ocm("detach", hub.kubeconfig()).args([NAME, "--yes"]));
    assert_eq!(said.code, Some(0), "{said:?}");
}
