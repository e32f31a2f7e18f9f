//! A cluster that is hub and managed cluster. Its kubeconfig names a port of this machine, as those of clusters in containers
//! do, and agents dial the address that the hub publishes for its own network.
//!
//! `cargo test -p e2e-tests --test e2e self_managed::`; it needs root.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cli_tests::terminal::Terminal;
use cli_tests::{Cli, binary};
use control_plane::{Cluster, Spec};
use e2e_tests::join_support::JoinCommand;
use e2e_tests::residue::{nothing_stays, sweep};
use e2e_tests::roles::user_with;
use e2e_tests::{Said, bundle, kubectl_ocm, object, run, settled, unchanged};
use serde_json::json;

const NAME: &str = "itself";

/// A port of this machine that leads to a cluster, until the process ends.
fn relay(cluster: &Cluster) -> String {
    let server = cluster.server().trim_start_matches("https://").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = format!("https://{}", listener.local_addr().expect("it has one"));
    let copy = |mut from: TcpStream, mut to: TcpStream| {
        thread::spawn(move || {
            // Either side may end it at any time.
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
    };
    thread::spawn(move || {
        for here in listener.incoming().flatten() {
            let Ok(there) = TcpStream::connect(&server) else { continue };
            let (Ok(from), Ok(to)) = (here.try_clone(), there.try_clone()) else { continue };
            copy(from, there);
            copy(to, here);
        }
    });
    address
}

/// What the hub publishes for its own network, as installers of clusters write it.
fn publish(hub: &Cluster) {
    let cluster = json!({"server": hub.server(), "certificate-authority-data": STANDARD.encode(hub.ca_pem())});
    let config = json!({"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "", "cluster": cluster}]});
    let literal = format!("--from-literal=kubeconfig={config}");
    hub.kubectl(&["create", "configmap", "cluster-info", "--namespace=kube-public", &literal]).expect("it is made");
}

/// The address in the kubeconfig with which the agent registers.
fn dialled(cluster: &Cluster) -> String {
    let secret = object(cluster, &["secret", "bootstrap-hub-kubeconfig", "--namespace=open-cluster-management-agent"]);
    let text = STANDARD.decode(secret["data"]["kubeconfig"].as_str().expect("a kubeconfig")).expect("base64");
    let kubeconfig = ocm_flows::hub::parse(&String::from_utf8(text).expect("text"));
    kubeconfig.expect("a kubeconfig").hub.server
}

#[test]
fn a_hub_becomes_its_own_managed_cluster_and_a_plain_cluster_again() {
    let hub = Cluster::start(&Spec::node(NAME)).expect("a cluster");
    let installer = user_with(&hub, "self-installer", &["install.yaml"]);
    let before = sweep(&hub);
    let said = run(kubectl_ocm("install", &installer).args(["hub", "--wait", "--bundle-version", bundle()]));
    assert_eq!(said.code, Some(0), "{said:?}");

    let installed = sweep(&hub);
    let here = user_with(&hub, "self-joiner", &["join.yaml"]);
    let on_hub = user_with(&hub, "self-hub-joiner", &["join-hub.yaml", "accept.yaml"]);
    // The rights of the users of this test are not the commands'.
    let mut rights = sweep(&hub);
    rights.retain(|line| line.contains("kubectl-ocm-") && !installed.contains(line));
    let local = hub.dir().expect("a folder").join("local.kubeconfig");
    let kubeconfig = std::fs::read_to_string(&on_hub).expect("it is read");
    std::fs::write(&local, kubeconfig.replace(hub.server(), &relay(&hub))).expect("written");
    let access = format!("--hub-kubeconfig={}", local.display());
    let join = |flags: &[&str]| {
        run(kubectl_ocm("join", &here).args([NAME, &access, "--bundle-version", bundle()]).args(flags))
    };
    let nothing_happens = |flags: &[&str], code: i32, words: &[&str]| {
        let before = settled(&hub);
        let said: Said = join(flags);
        assert_eq!(said.code, Some(code), "{said:?}");
        assert!(words.iter().all(|word| said.stderr.contains(word)), "{words:?}: {said:?}");
        unchanged(&hub, &before, flags);
    };
    let internal = "--force-internal-endpoint-lookup";
    nothing_happens(&["--self"], 2, &["agents cannot reach the hub"]);
    nothing_happens(&["--self", internal], 1, &["publishes no address for use inside its network"]);
    publish(&hub);
    nothing_happens(&[internal], 2, &["is the hub itself", "--self"]);
    // With a token, too, where the cluster's own kubeconfig names a port of this machine.
    let near = hub.dir().expect("a folder").join("near.kubeconfig");
    let kubeconfig = std::fs::read_to_string(&here).expect("it is read");
    std::fs::write(&near, kubeconfig.replace(hub.server(), &relay(&hub))).expect("written");
    let command = JoinCommand::create(&hub, &[]).flags();
    let before_token = settled(&hub);
    let said = run(kubectl_ocm("join", &near).arg(NAME).args(&command));
    let told = ["is the hub itself, and would join itself", "--self"];
    assert!(said.code == Some(2) && told.iter().all(|word| said.stderr.contains(word)), "{said:?}");
    unchanged(&hub, &before_token, &command);
    // On a terminal somebody is asked.
    let settled_before = settled(&hub);
    let words = [NAME, &access, internal, "--bundle-version", bundle()];
    let person = Cli::new().env("KUBECONFIG", &here);
    let mut terminal = Terminal::run(&person, &binary("kubectl-ocm-join"), &words);
    terminal.wait_for(" is the hub itself. Let it manage itself? [y/N] ");
    terminal.press("n\n");
    let (code, shown) = terminal.end();
    assert!(code == 3 && shown.contains("nothing was changed"), "{code}: {shown}");
    unchanged(&hub, &settled_before, words);
    nothing_happens(&["--self", internal, "--dry-run=server"], 0, &["is the hub itself", hub.server()]);

    let said = join(&["--self", internal, "--accept", "--wait"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.ends_with("/itself available\n"), "{said:?}");
    let told = format!("agents dial {}, the address in kube-public/cluster-info", hub.server());
    assert!(said.stderr.contains(&told), "{said:?}");
    assert_eq!(dialled(&hub), hub.server());
    nothing_happens(&["--self", internal, "--accept", "--wait"], 0, &["already; nothing is changed"]);

    // It leaves itself, and then it is no hub any more.
    hub.kubectl(&["delete", "configmap", "cluster-info", "--namespace=kube-public"]).expect("it goes");
    let itself = format!("--hub-kubeconfig={}", hub.kubeconfig().display());
    let said = run(kubectl_ocm("unjoin", hub.kubeconfig()).args([NAME, "--yes", &itself]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = run(kubectl_ocm("uninstall", hub.kubeconfig()).args(["hub", "--yes", "--purge"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    // Those in its namespaces have gone with these.
    let stays = sweep(&hub);
    rights.retain(|line| stays.contains(line));
    nothing_stays(&hub, &before.union(&rights).cloned().collect());
}
