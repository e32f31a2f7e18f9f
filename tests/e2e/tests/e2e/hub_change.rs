//! `kubectl ocm join --former-hub-context` on real clusters: a cluster goes to another hub without access to its former one, and comes
//! back with access to both.
//!
//! `cargo test -p e2e-tests --test e2e hub_change::`; it needs root. Commands that are killed at every step, gRPC and the hosted modes
//! are told by `cargo soak --parts stories`. `cargo soak --parts series` waits here until the agent has forgotten its former hub.

use std::time::Duration;

use control_plane::Cluster;
use e2e_tests::hub_change_support::{Hubs, NAME, brought, grace, install};
use e2e_tests::join_support::bring;
use e2e_tests::residue::{nothing_stays, sweep};
use e2e_tests::{Said, kubectl_ocm, object, run, series};
use serde_json::{Value, json};

/// How long what works of a former hub have applied may take to go.
const EVICTION: Duration = Duration::from_secs(240);

fn is_available(said: &Said) {
    assert!(said.code == Some(0) && said.stdout.ends_with("/going available\n"), "{said:?}");
}

/// Registers another cluster under the name on a hub, and forgets it.
fn with_a_stranger(hub: &Cluster, meanwhile: impl FnOnce()) {
    let stranger = json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": NAME}, "spec": {"hubAcceptsClient": false}});
    let file = hub.dir().expect("a folder").join("stranger.json");
    std::fs::write(&file, stranger.to_string()).expect("written");
    hub.kubectl(&["apply", "--filename", file.to_str().expect("text")]).expect("it is stored");
    meanwhile();
    hub.kubectl(&["delete", "managedcluster", NAME]).expect("it goes");
}

/// The UID of the managed cluster on a hub.
fn uid(hub: &Cluster) -> Value {
    object(hub, &["managedcluster", NAME])["metadata"]["uid"].clone()
}

#[test]
fn a_cluster_goes_to_another_hub_and_comes_back_and_what_works_have_applied_stays() {
    let (_values, grace) = grace("90s");
    let hubs = Hubs::start(install, &["--singleton", &grace], (&[], &[]));
    let [one, other] = &hubs.hubs;
    let before = hubs.all().map(sweep);
    let (to_one, to_other) = (hubs.former(0), hubs.former(1));
    let nowhere = run(&mut hubs.to(0, &[&to_other, "--accept"]));
    assert!(nowhere.code == Some(3) && nowhere.stderr.contains("leaves no hub"), "{nowhere:?}");
    is_available(&run(&mut hubs.to(0, &["--accept", "--wait"])));
    bring(one, NAME, "brought");
    let at_first = brought(&hubs.cluster, "brought");

    // Without a word about its former hub it does not go, nor from one that it is not at, nor to a name that somebody else waits for.
    hubs.changes_nothing(hubs.to(1, &["--accept"]), 3, &["has joined another hub", "--former-hub-context"]);
    let refused = |flags: &[&str], code: i32, words: &str| {
        let said = run(&mut hubs.to(1, flags));
        assert!(said.code == Some(code) && said.stderr.contains(words), "{flags:?}: {said:?}");
    };
    refused(&["--former-hub=https://192.0.2.1:6443"], 3, "not the one at https://192.0.2.1:6443");
    refused(&[&to_other], 2, "are one hub");
    with_a_stranger(other, || {
        let stranger = uid(other);
        refused(&[&to_one, "--accept"], 3, "another cluster waits at the hub at");
        assert_eq!(uid(other), stranger);
    });

    // Without access to it, what it has of the cluster stays, and it is told how that goes.
    let own = uid(one);
    let said = run(&mut hubs.to(1, &["--former-hub", one.server(), "--accept", "--wait"]));
    is_available(&said);
    for words in ["stays there: there is no access to it", "kubectl ocm detach going --force"] {
        assert!(said.stderr.contains(words), "no {words:?} in {said:?}");
    }
    hubs.is_at(1);
    assert_eq!(uid(one), own);
    assert_eq!(brought(&hubs.cluster, "brought"), at_first);
    bring(other, NAME, "brought");
    let words = [NAME, "--force", "--yes", "--timeout=10s"];
    let said = run(kubectl_ocm("detach", one.kubeconfig()).args(words));
    assert_eq!(said.code, Some(0), "{said:?}");
    nothing_stays(one, &before[0]);

    // And back, with access to both. A command that does not name the former hub leaves what is noted of it.
    let said = run(&mut hubs.to(0, &[&to_other]));
    assert!(said.code == Some(0) && said.stderr.contains("when it is available at the new one"), "{said:?}");
    is_available(&run(&mut hubs.to(0, &["--accept", "--wait"])));
    let klusterlet = object(&hubs.cluster, &["klusterlet", "klusterlet"]);
    for key in ["moves-to", "moves-from", "former-hub-uid", "former-cluster-uid"] {
        assert!(klusterlet["metadata"]["annotations"][format!("kubectl-ocm/{key}")].is_string(), "no {key}");
    }
    assert!(hubs.is_known(1));
    let said = run(&mut hubs.to(0, &[&to_other, "--accept", "--wait"]));
    is_available(&said);
    let row = "managedcluster.cluster.open-cluster-management.io/going deleted (former hub, ";
    assert!(said.stdout.contains(row), "{said:?}");
    bring(one, NAME, "brought");
    hubs.is_at(0);
    nothing_stays(other, &before[1]);
    let words = ["already; nothing is changed", "is on its way from no other hub"];
    hubs.changes_nothing(hubs.to(0, &[&to_other, "--accept", "--wait"]), 0, &words);
    assert_eq!(brought(&hubs.cluster, "brought"), at_first, "it is the same all along");
    // When the agent forgets its former hub is the agent's own matter, and takes as long as it was told.
    if !series::is_whole() {
        return;
    }
    hubs.forgets_all_but(0, EVICTION);
    assert_eq!(brought(&hubs.cluster, "brought"), at_first, "it stays after that");
    hubs.leaves(0);
    for (cluster, before) in hubs.all().into_iter().zip(&before) {
        nothing_stays(cluster, before);
    }
}
