//! `kubectl ocm work create --replicaset` on a real hub with a cluster that has joined: the hub follows a placement, where its
//! feature gate is on.
//!
//! `cargo test -p e2e-tests --test e2e replica_set::`; it needs root.

use std::time::Duration;

use control_plane::{Spec, shared};
use e2e_tests::join_support::{alone, hub, hub_access, join};
use e2e_tests::roles::user_with;
use e2e_tests::{Said, bundle, kubectl_ocm, object, run, until_within};
use serde_json::json;

/// How long agents may take: they may have just been started, on a busy machine.
const SLOW: Duration = Duration::from_secs(120);

fn ends(said: &Said, code: i32, words: &[&str]) {
    assert_eq!(said.code, Some(code), "{words:?}: {said:?}");
    for word in words {
        assert!(said.stdout.contains(word) || said.stderr.contains(word), "no {word:?} in {said:?}");
    }
}

/// Turns on what has the hub follow placements.
fn turn_gate_on() {
    let bundle = format!("--bundle-version={}", bundle());
    let flags = ["hub", "--wait", &bundle, "--feature-gates=ManifestWorkReplicaSet=true"];
    let said = run(kubectl_ocm("install", hub().kubeconfig()).args(flags));
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn a_set_of_works_follows_a_placement_where_the_hub_does_so() {
    let _alone = alone();
    let hub = hub();
    let day = shared(&Spec::node("day"));
    let said = join(day, "day", &[hub_access(hub).as_str(), "--accept", "--wait", "--timeout=3m"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let user = user_with(hub, "set-of-works-user", &["work.yaml"]);
    let placer = user_with(hub, "set-of-works-placer", &["placement.yaml"]);
    let work = |words: &[&str]| run(kubectl_ocm("work", &user).args(words));
    let placement = |words: &[&str]| run(kubectl_ocm("placement", &placer).args(words));
    let admin = |words: &[&str]| run(kubectl_ocm("clusterset", hub.kubeconfig()).args(words));
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "followed", "namespace": "default"},
        "data": {"a": "1"}});
    let file = hub.dir().expect("a folder").join("followed-work.json");
    std::fs::write(&file, map.to_string()).expect("written");
    let file = file.to_str().expect("text");

    ends(&admin(&["bind", "default", "--namespace=team-follow", "--create-namespace"]), 0, &[]);
    hub.kubectl(&["label", "managedcluster", "day", "follow=yes", "--overwrite"]).expect("it is labelled");
    let select = ["create", "all", "--namespace=team-follow", "-l", "follow=yes", "--wait"];
    ends(&placement(&select), 0, &["day"]);
    let create = |more: &[&str]| {
        work(&[&["create", "follow", "-f", file, "--placement=team-follow/all", "--replicaset"], more].concat())
    };
    let is_there = || hub.kubectl(&["get", "manifestworkreplicaset", "follow", "--namespace=team-follow"]).is_ok();

    // Where the hub does not, it is told before anything is sent.
    ends(&work(&["create", "follow", "-f", file, "--clusters=day", "--replicaset"]), 2, &["--replicaset"]);
    ends(&create(&[]), 3, &["ManifestWorkReplicaSet is off", "--feature-gates ManifestWorkReplicaSet=true"]);
    ends(&create(&["--render"]), 0, &["kind: ManifestWorkReplicaSet"]);
    assert!(!is_there());

    turn_gate_on();
    ends(
        &work(&["create", "follow", "-f", file, "--placement=team-follow/none", "--replicaset"]),
        1,
        &["no placement"],
    );
    for how in ["--dry-run", "--dry-run=server"] {
        ends(&create(&[how]), 0, &["follow -n team-follow created ("]);
        assert!(!is_there(), "{how}");
    }
    ends(&create(&[]), 0, &["follow -n team-follow created", "kubectl ocm work status follow"]);
    let version = || {
        object(hub, &["manifestworkreplicaset", "follow", "--namespace=team-follow"])["metadata"]["generation"]
            .to_string()
    };
    let before = version();
    for how in [&[][..], &["--dry-run"], &["--dry-run=server"]] {
        ends(&create(how), 0, &["follow -n team-follow unchanged"]);
    }
    ends(&create(&["--diff"]), 0, &[]);
    assert_eq!(version(), before);
    until_within(
        SLOW,
        "the hub has made a work of it",
        || format!("{:?}", work(&["status", "follow"])),
        || work(&["status", "follow"]).code == Some(0),
    );
    // Its works are its own, and the placement says what uses it.
    ends(&work(&["delete", "follow", "--clusters=day", "--yes"]), 3, &["ManifestWorkReplicaSet team-follow/follow"]);
    let delete = ["delete", "all", "--namespace=team-follow"];
    ends(
        &placement(&[&delete[..], &["--dry-run"]].concat()),
        0,
        &["is used by ManifestWorkReplicaSet team-follow/follow, on day"],
    );

    // What the placement selects no longer, goes.
    hub.kubectl(&["label", "managedcluster", "day", "follow-"]).expect("it is labelled");
    until_within(SLOW, "the work goes from the cluster", String::new, || {
        day.kubectl(&["get", "configmap", "followed", "--namespace=default"]).is_err()
    });
    hub.kubectl(&["delete", "manifestworkreplicaset", "follow", "--namespace=team-follow"]).expect("it goes");
    ends(&placement(&[&delete[..], &["--yes"]].concat()), 0, &["all -n team-follow deleted"]);
}
