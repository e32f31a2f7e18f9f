//! What keeps an agent from registering over gRPC is found: the name of the server, its certificate, its port, and the token.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use control_plane::{Cluster, Spec};
use serde_json::{Value, json};

use crate::grpc_hub::{GRPC, node, serve};
use crate::join_support::{hub_access, join};
use crate::trouble_support::{AGENTS, finds, finds_after, forget, is_well, kubectl, report, restart};
use crate::{kubectl_ocm, object, run, until};

/// Its name on the hub.
const NAME: &str = "g2";
/// What the agent registers with.
const SECRET: [&str; 4] = ["secret", "bootstrap-hub-kubeconfig", "--namespace", AGENTS];

/// The agent's configuration with another value of a key.
fn with(config: &str, key: &str, value: &str) -> String {
    let start = format!("{key}: ");
    assert!(config.lines().any(|line| line.starts_with(&start)), "there is a {key}");
    let line = |line: &str| if line.starts_with(&start) { format!("{start}{value}\n") } else { format!("{line}\n") };
    config.lines().map(line).collect()
}

/// Replaces the agent's configuration; none: takes it away.
fn register_with(cluster: &Cluster, config: Option<&str>) {
    let config = config.map(|config| STANDARD.encode(config));
    let patch = format!("--patch={}", json!({"data": {"config.yaml": config}}));
    kubectl(cluster, &[&["patch", "--type=merge", &patch], &SECRET[..]].concat());
}

pub(super) fn grpc_that_does_not_lead_to_the_hub_is_found() {
    let clusters = Cluster::start_all(&["lost-hub", "lost"].map(Spec::node)).expect("the clusters start");
    let [hub, cluster] = clusters.as_slice() else { panic!("two were asked for") };
    serve(hub);
    let said = join(cluster, NAME, &[GRPC, "--wait", "--timeout=8m", &hub_access(hub)]);
    assert!(said.code == Some(0) && said.stdout.ends_with("/g2 registered, pending acceptance\n"), "{said:?}");
    finds(cluster, hub, NAME, "OCM2205");

    let right = object(cluster, &SECRET)["data"]["config.yaml"].as_str().map(str::to_owned);
    let right = STANDARD.decode(right.expect("a configuration")).expect("base64");
    let right = String::from_utf8(right).expect("text");
    let claims = URL_SAFE_NO_PAD.encode(r#"{"exp":1000000000,"sub":"system:serviceaccount:x:y"}"#);
    let closed = format!("\"{}:1\"", node(hub));
    // The name of the Service in the hub's own network, for which the certificate is made, too.
    let internal = "\"cluster-manager-grpc-server.open-cluster-management-hub.svc:8090\"";
    let faults: [(&str, Option<String>); 6] = [
        ("OCM2125", Some(with(&right, "url", "\"elsewhere.invalid:30090\""))),
        ("OCM2125", Some(with(&right, "caData", &STANDARD.encode(cluster.ca_pem())))),
        ("OCM2111", Some(with(&right, "url", internal))),
        ("OCM2111", Some(with(&right, "url", &closed))),
        ("OCM2109", Some(with(&right, "token", &format!("\"e30.{claims}.c2ln\"")))),
        ("OCM2114", None),
    ];
    for (id, config) in faults {
        register_with(cluster, config.as_deref());
        let found = finds_after(cluster, hub, NAME, id, || forget(cluster, hub, NAME));
        let text = |pointer: &str| found.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (headline, summary) = (text("/clusters/0/headline"), text("/findings/0/summary"));
        assert!(!summary.is_empty() && headline.ends_with(summary), "{headline}: {summary}");
        register_with(cluster, Some(&right));
        until("it is no longer found", || !report(cluster, hub, NAME).1.iter().any(|found| found == id));
        // It ends when what it registers with changes: pods that have ended often are started later and later.
        restart(cluster);
    }

    // The agent has started anew, and is let in.
    finds(cluster, hub, NAME, "OCM2205");
    let said = run(kubectl_ocm("accept", hub.kubeconfig()).args([NAME, "--yes", "--wait"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    is_well(cluster, hub, NAME);
}
