//! How many requests a wait takes: watches say when to look again, so that nothing is asked all the time.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use control_plane::{Cluster, Spec};
use e2e_tests::{bundle, kubectl_ocm, run};

/// A verb of a user of its own, whose requests are counted.
fn command(cluster: &Cluster, verb: &str, flags: &[&str]) -> Command {
    let mut command = kubectl_ocm(verb, &user(cluster, verb));
    command.args(flags).arg(format!("--bundle-version={}", bundle()));
    command
}

fn user(cluster: &Cluster, name: &str) -> std::path::PathBuf {
    cluster.user_kubeconfig(name, &["system:masters"]).expect("a kubeconfig")
}

fn requests(cluster: &Cluster, user: &str) -> Vec<String> {
    cluster.requests_of(user).expect("an audit log")
}

fn count(requests: &[String], words: &str) -> usize {
    requests.iter().filter(|request| request.starts_with(words)).count()
}

#[test]
fn waits_that_nothing_happens_in_ask_little() {
    let hub = Cluster::start(&Spec::node("hub").audited(true)).expect("a cluster");
    let said = run(&mut command(&hub, "install", &["hub", "--wait"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    // Every kind that can be watched is.
    let all = requests(&hub, "install");
    for watched in ["clustermanagers", "deployments", "endpointslices", "mutatingwebhook", "validatingwebhook"] {
        assert!(count(&all, &format!("watch {watched}")) > 0, "{watched}: {all:#?}");
    }

    let cluster = Cluster::start(&Spec::node("c1").audited(true)).expect("a cluster");
    let kubeconfig = format!("--hub-kubeconfig={}", user(&hub, "join").display());
    let mut join = command(&cluster, "join", &["c1", "--wait=available", &kubeconfig]);
    let mut child = join.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines().map(|line| line.expect("text"));
    assert!(lines.any(|line| line.contains("kubectl ocm accept c1")), "it has registered");
    // The agent's pods settle.
    sleep(Duration::from_secs(6));
    let sides = || [requests(&cluster, "join"), requests(&hub, "join")];
    let before = sides();
    sleep(Duration::from_secs(11));
    let after = sides();
    // A look each five seconds, and whatever changed.
    let looks = ["get klusterlets klusterlet", "list certificatesigningrequests"];
    for ((before, after), look) in before.iter().zip(&after).zip(looks) {
        let between = count(after, look) - count(before, look);
        assert!((1..=5).contains(&between), "{between} times: {look}\n{:#?}", &after[before.len()..]);
    }

    // What happens is noticed at once: long before the pause is over.
    let said = run(kubectl_ocm("accept", hub.kubeconfig()).arg("c1"));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}
