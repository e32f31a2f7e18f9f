//! `kubectl ocm join --fallback-hub-context` on real clusters: a cluster joins one hub, turns to another one when that denies it,
//! and leaves both.
//!
//! `cargo test -p e2e-tests --test e2e_fallback`; it needs root. What becomes of it when its hub does not answer any more is told by
//! `cargo soak --parts stories`.

use std::path::Path;

use e2e_tests::fallback_support::{NAME, Turning};
use e2e_tests::residue::{nothing_stays, sweep};
use e2e_tests::roles::user_with;
use e2e_tests::{Said, kubectl_ocm, run, settled};

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
