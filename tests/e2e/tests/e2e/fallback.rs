//! `kubectl ocm join --fallback-hub-context` on real clusters: a cluster joins one hub, turns to another one when that denies it,
//! and leaves both.
//!
//! `cargo test -p e2e-tests --test e2e fallback::`; it needs root. What becomes of it when its hub does not answer any more is told by
//! `cargo soak --parts stories`.

use std::path::Path;
use std::time::Duration;

use e2e_tests::fallback_support::{NAME, Turning};
use e2e_tests::residue::{nothing_stays, sweep};
use e2e_tests::roles::user_with;
use e2e_tests::{Said, canaries, kubectl_ocm, run, settled, until_within};
use serde_json::Value;

/// How long the agent may take to start anew: until the leader leases of its former pods have run out.
const STARTS: Duration = Duration::from_secs(300);

const AGENT: &str = "--namespace=open-cluster-management-agent";

fn is(said: &Said, code: i32, words: &[&str]) {
    assert_eq!(said.code, Some(code), "{said:?}");
    for word in words {
        assert!(said.stderr.contains(word), "no {word:?} in {}", said.stderr);
    }
}

/// The Secrets of further hubs that there are.
fn secrets(turning: &Turning) -> Vec<String> {
    let all = turning.cluster.kubectl(&["get", "secrets", AGENT, "--output=name"]).expect("they are listed");
    all.lines().filter(|name| name.contains("bootstrap-hub-kubeconfig-")).map(str::to_owned).collect()
}

fn troubleshoot(turning: &Turning, hub: &Path) -> String {
    let hub = format!("--hub-kubeconfig={}", hub.display());
    let said = run(kubectl_ocm("troubleshoot", turning.cluster.kubeconfig()).args([NAME, &hub]));
    assert!(said.stdout.contains(&format!("{NAME}: ")), "it says where the cluster stands: {said:?}");
    said.stdout
}

/// What the agent has of either hub is judged: who vouches for it, what it presents, and the token that it needs when it starts.
fn both_are_checked(turning: &Turning) {
    let said = run(kubectl_ocm("tls-check", turning.cluster.kubeconfig()).arg("--output=json"));
    let told: Value = serde_json::from_str(&said.stdout).expect("tls-check -o json prints JSON");
    assert_eq!((said.code, told["verdict"].as_str()), (Some(0), Some("ok")), "{said:?}");
    let all = |list: &str| told["inventory"][list].as_array().cloned().unwrap_or_default();
    for (hub, secret) in [(&turning.first, "bootstrap-hub-kubeconfig"), (&turning.second, "bootstrap-hub-kubeconfig-2")]
    {
        let is_of = |one: &Value| one["place"]["object"]["name"] == secret;
        let copy = all("copies").into_iter().find(is_of);
        assert_eq!(copy.expect("its authorities are judged")["server"], hub.server(), "{secret}");
        let token = all("tokens").into_iter().find(is_of);
        assert!(token.expect("its token is judged")["expires"].is_string(), "{secret}");
        let presents = |one: &Value| one["handshake"]["address"].as_str().is_some_and(|at| at == hub.server());
        assert!(all("relations").iter().any(presents), "what {} presents is judged", hub.server());
    }
    for secret in canaries(&turning.cluster) {
        assert!(!said.stdout.contains(&secret), "nothing secret is told");
    }
}

#[test]
fn a_cluster_turns_to_its_second_hub_when_the_first_one_denies_it_and_leaves_both() {
    let turning = Turning::start();
    let clusters = [&turning.first, &turning.second, &turning.cluster];
    let before = clusters.map(sweep);
    let [context, kubeconfig] = turning.further();
    let [same, its] = turning.first_again();

    // What cannot be is refused, and nothing is touched.
    is(&turning.join(&[&same, &its]), 2, &["is named twice"]);
    is(&turning.join(&[&context, &kubeconfig, &context]), 2, &["is named twice"]);
    is(&turning.join(&[&context, &kubeconfig, "--hub-connection-timeout=2m"]), 2, &["180 seconds at least"]);
    let token = ["--hub-token=abcdef.0123456789abcdef", "--hub-apiserver=https://hub.example:6443"];
    let said = run(kubectl_ocm("join", &turning.here).arg(NAME).args(token).args([&context, &kubeconfig]));
    is(&said, 2, &["does not go with a token"]);
    let said = turning.join(&[&context, &kubeconfig, "--accept", "--dry-run=server"]);
    is(&said, 0, &[]);
    assert!(said.stdout.contains("secret/bootstrap-hub-kubeconfig-2 created (server dry run)"), "{said:?}");
    assert_eq!(clusters.map(sweep), before);

    // A cluster that has joined gets the second hub, keeps it, and gives it up again.
    is(&turning.join(&["--accept", "--wait"]), 0, &[]);
    let said = turning.join(&[&context, &kubeconfig]);
    is(&said, 0, &["what its agent knows of its hubs is changed", "is valid until"]);
    assert!(said.stdout.contains("secret/bootstrap-hub-kubeconfig-2 created"), "{said:?}");
    assert_eq!(secrets(&turning), ["secret/bootstrap-hub-kubeconfig-2"]);
    let untouched = settled(&turning.cluster);
    for flags in [Vec::new(), vec![context.as_str(), kubeconfig.as_str()]] {
        is(&turning.join(&flags), 0, &["turns, as before, from the hub at", "nothing is changed"]);
    }
    assert_eq!(settled(&turning.cluster), untouched);
    let remove = format!("--remove-fallback-hub={}", turning.second.server());
    let said = turning.join(&[&remove]);
    is(&said, 0, &["kubectl ocm detach turning"]);
    assert!(said.stdout.contains("secret/bootstrap-hub-kubeconfig-2 deleted"), "{said:?}");
    assert_eq!(secrets(&turning), [""; 0]);
    assert!(turning.hubs().is_empty());
    is(&turning.join(&[&remove]), 0, &["is no hub that the agent of turning turns to", "nothing is changed"]);

    turning.joins();
    let viewer = user_with(&turning.cluster, "hubs-viewer", &["get-info.yaml", "get-info-hubs.yaml"]);
    let said = run(kubectl_ocm("get", &viewer).arg("klusterlet-info"));
    is(&said, 0, &[]);
    assert!(said.stdout.contains(turning.first.server()) && said.stdout.contains(turning.second.server()), "{said:?}");

    // The second hub waits for nobody, whoever looks at it, once the agent has started with its new list.
    let headline = format!("{NAME}: its agent comes to this hub only when {} does not answer", turning.first.server());
    let alone = run(kubectl_ocm("troubleshoot", turning.second.kubeconfig()).arg(NAME));
    assert!(alone.code == Some(0) && alone.stdout.contains(&headline), "{alone:?}");
    let both = || troubleshoot(&turning, turning.second.kubeconfig());
    until_within(STARTS, "the second hub waits for nobody", both, || both().contains(&headline));
    both_are_checked(&turning);

    let said = run(kubectl_ocm("accept", turning.first.kubeconfig()).args([NAME, "--yes", "--deny=moving on"]));
    is(&said, 0, &[]);
    turning.turns_to_second();
    let told = troubleshoot(&turning, turning.second.kubeconfig());
    for wrong in ["OCM2107", "OCM2110", "OCM3107", "registers at another hub"] {
        assert!(!told.contains(wrong), "{told}");
    }
    // The first hub stays the first one.
    let hub = format!("--hub-kubeconfig={}", turning.second.kubeconfig().display());
    let said = run(kubectl_ocm("join", &turning.here).args([NAME, &hub]));
    is(&said, 3, &["when its first hub", "does not answer", "nothing was changed"]);

    turning.leaves();
    // The role of the viewer is none of it.
    let viewers = ["ClusterRole", "ClusterRoleBinding"];
    for role in ["kubectl-ocm-get-info", "kubectl-ocm-get-info-hubs"] {
        let binding = format!("hubs-viewer-{role}");
        for (kind, name) in viewers.into_iter().zip([role, &binding]) {
            turning.cluster.kubectl(&["delete", kind, name]).expect("it is deleted");
        }
    }
    for (cluster, before) in clusters.into_iter().zip(&before) {
        nothing_stays(cluster, before);
    }
}
