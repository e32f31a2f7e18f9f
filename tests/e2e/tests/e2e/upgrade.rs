//! `kubectl ocm upgrade` on real clusters: from one release to the next, with every setting kept. The images of both releases
//! hold the same programs, so that pods really change. The story of a fleet is one of `e2e_tests::stories`.
//!
//! `cargo test -p e2e-tests --test e2e upgrade::`; it needs root.

use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use control_plane::{Cluster, Spec};
use e2e_tests::join_support::{alone, hub, hub_access};
use e2e_tests::roles::user_with;
use e2e_tests::upgrade_support::{
    AGENT, all_are, document, fleet_file, joined, named_are, outcomes, release, settings, upgrade_by,
};
use e2e_tests::{Said, bundle, earlier_bundle, kubectl_ocm, object, run, settled, unchanged};
use serde_json::json;

const OPERATORS: &str = "--namespace=open-cluster-management";
const HUB: &str = "open-cluster-management-hub";

/// Everything that promises to change nothing, and how it ends where something would change.
const PROMISES: [(&[&str], i32); 4] =
    [(&["--dry-run=client"], 0), (&["--dry-run=server"], 0), (&["--diff"], 3), (&["--render"], 0)];

fn upgrade(kubeconfig: &Path, what: &str, flags: &[&str]) -> Said {
    run(kubectl_ocm("upgrade", kubeconfig).arg(what).args(flags))
}

/// Nothing of it changes anything.
fn nothing_changes(cluster: &Cluster, commands: impl FnOnce()) {
    let generations = || {
        let path = "--output=jsonpath={.items[*].metadata.generation}";
        cluster.kubectl(&["get", "klusterlets", path]).unwrap_or_default()
    };
    let (before, of_klusterlets) = (settled(cluster), generations());
    commands();
    unchanged(cluster, &before, "nothing is changed");
    assert_eq!(generations(), of_klusterlets);
}

/// It ends with this code and these words.
fn ends(said: &Said, code: i32, words: &[&str]) {
    assert_eq!(said.code, Some(code), "{words:?}: {said:?}");
    for word in words {
        assert!(said.stderr.contains(word), "no {word:?} in {}", said.stderr);
    }
}

/// Begins again and again, and is killed.
fn killed(kubeconfig: &Path, what: &str, flags: &[&str]) {
    for milliseconds in [60, 250, 900] {
        let mut child = kubectl_ocm("upgrade", kubeconfig)
            .arg(what)
            .args(flags)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        sleep(Duration::from_millis(milliseconds));
        let _ = child.kill();
        child.wait().expect("it ends");
    }
}

#[test]
fn a_hub_goes_to_the_next_release_and_back_and_keeps_its_settings() {
    let hub = Cluster::start(&Spec::node("upgraded")).expect("a cluster");
    let (old, new) = (release(earlier_bundle()), release(bundle()));

    // What is no hub is none.
    nothing_changes(&hub, || {
        ends(&upgrade(hub.kubeconfig(), "hub", &[&new]), 3, &["is no hub", "kubectl ocm install hub"]);
    });

    let said = run(kubectl_ocm("install", hub.kubeconfig()).args(["hub", &old]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let mine = json!({
        "metadata": {"labels": {"team": "platform"}},
        "spec": {
            "nodePlacement": {"tolerations": [{"key": "infra", "operator": "Exists"}]},
            "registrationConfiguration": {"autoApproveUsers": ["someone"]},
            "resourceRequirement": {"type": "BestEffort"},
            "workConfiguration": {"featureGates": [{"feature": "ManifestWorkReplicaSet", "mode": "Enable"}]},
        },
    });
    hub.kubectl(&["patch", "clustermanager", "cluster-manager", "--type=merge", "--patch", &mine.to_string()])
        .expect("patched");
    let argument =
        r#"[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--deployment-replicas=1"}]"#;
    hub.kubectl(&["patch", "deployment", "cluster-manager", OPERATORS, "--type=json", "--patch", argument])
        .expect("patched");
    let said = run(kubectl_ocm("install", hub.kubeconfig()).args(["hub", "--wait"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let kept = settings(&hub, "clustermanager", "cluster-manager");
    all_are(&hub, HUB, earlier_bundle());

    let user = user_with(&hub, "upgrader", &["upgrade-hub.yaml"]);
    nothing_changes(&hub, || {
        for (promise, code) in PROMISES {
            let said = upgrade(&user, "hub", &[&[new.as_str()], promise].concat());
            ends(&said, code, &[&format!("runs v{}", earlier_bundle())]);
            assert!(said.stdout.contains("cluster-manager"), "{promise:?}: {said:?}");
        }
    });
    let said = document(&upgrade(&user, "hub", &[&new, "--dry-run", "--output=json"]));
    let back = said["rollback"].as_str().unwrap_or_default();
    assert!(back.starts_with("kubectl ocm upgrade hub ") && back.contains("--allow-downgrade"), "{said}");
    assert!(back.contains(&format!("--bundle-version=v{}", earlier_bundle())), "{said}");
    assert_eq!((&said["changed"], &said["before"][0]["component"]), (&json!(true), &json!("registration-operator")));

    killed(&user, "hub", &["--wait", &new]);
    let said = upgrade(&user, "hub", &["--wait", &new]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains(&format!("runs v{}", bundle())), "{said:?}");
    all_are(&hub, HUB, bundle());
    all_are(&hub, "open-cluster-management", bundle());
    assert_eq!(settings(&hub, "clustermanager", "cluster-manager"), kept);
    let operator = object(&hub, &["deployment", "cluster-manager", OPERATORS]).to_string();
    assert!(operator.contains("--deployment-replicas=1"), "{operator}");

    // Once more, there is nothing to do; and the way back is refused unless it is asked for.
    nothing_changes(&hub, || {
        for flags in [&["--wait"][..], &[]].into_iter().chain(PROMISES.map(|(promise, _)| promise)) {
            let words: &[&str] =
                if flags.contains(&"--diff") || flags.contains(&"--render") { &[] } else { &["is up to date"] };
            ends(&upgrade(&user, "hub", &[&[new.as_str()], flags].concat()), 0, words);
        }
        ends(&upgrade(&user, "hub", &[&old]), 3, &["is older", "--allow-downgrade"]);
    });
    // So is every way to a release that lacks what objects are stored as.
    let addons = "managedclusteraddons.addon.open-cluster-management.io";
    let store = |versions: &[&str]| {
        let patch = json!({"status": {"storedVersions": versions}}).to_string();
        hub.kubectl(&["patch", "crd", addons, "--subresource=status", "--type=merge", "--patch", &patch])
            .expect("patched");
    };
    store(&["v1alpha0", "v1alpha1"]);
    let words = ["may be stored as v1alpha0, which v1.2.0 does not have", "kubectl patch crd managedclusteraddons"];
    nothing_changes(&hub, || ends(&upgrade(&user, "hub", &[&new]), 3, &words));
    store(&["v1alpha1"]);
    let said = upgrade(&user, "hub", &[&old, "--allow-downgrade"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("does not test the way back"), "{said:?}");
    named_are(&hub, "clustermanager", "cluster-manager", earlier_bundle());
    assert_eq!(settings(&hub, "clustermanager", "cluster-manager"), kept);
}

#[test]
fn without_the_rights_a_hub_stays_as_it_is() {
    let hub = Cluster::start(&Spec::api("guarded")).expect("a cluster");
    let said = run(kubectl_ocm("install", hub.kubeconfig()).args(["hub", &release(earlier_bundle())]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let user = hub.user_kubeconfig("visitor", &[]).expect("a user");
    let words = ["lacks rights to upgrade the hub", "may not list clustermanagers.operator.open-cluster-management.io"];
    nothing_changes(&hub, || ends(&upgrade(&user, "hub", &[&release(bundle())]), 1, &words));
}

fn renewed(name: &str) -> String {
    let lease = object(hub(), &["lease", "managed-cluster-lease", "--namespace", name]);
    lease["spec"]["renewTime"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn an_agent_follows_its_hub_and_reports_again() {
    let _alone = alone();
    let cluster = Cluster::start(&Spec::node("follower")).expect("a cluster");
    ends(&upgrade(cluster.kubeconfig(), "klusterlet", &[]), 3, &["is no managed cluster"]);
    joined(&cluster, "follower");
    let mine = json!({"spec": {
        "nodePlacement": {"tolerations": [{"key": "infra", "operator": "Exists"}]},
        "resourceRequirement": {"type": "BestEffort"},
        "workConfiguration": {"kubeAPIQPS": 60, "kubeAPIBurst": 120},
    }});
    cluster
        .kubectl(&["patch", "klusterlet", "klusterlet", "--type=merge", "--patch", &mine.to_string()])
        .expect("patched");
    let kept = settings(&cluster, "klusterlet", "klusterlet");

    let here = user_with(&cluster, "upgrader", &["upgrade-klusterlet.yaml"]);
    let there = user_with(hub(), "looker", &["upgrade-klusterlet-hub.yaml"]);
    let access = format!("--hub-kubeconfig={}", there.display());
    let fleet = |flags: &[&str]| upgrade(&here, "klusterlet", &[&[access.as_str(), "--output=json"], flags].concat());
    let file = fleet_file(cluster.dir().expect("a folder"), &there, &[("follower", &here)]);
    let mode = format!("in mode Default, runs v{}", earlier_bundle());
    nothing_changes(&cluster, || {
        for (promise, code) in PROMISES {
            ends(&upgrade(&here, "klusterlet", &[&[access.as_str()], promise].concat()), code, &[&mode]);
        }
        let newer = ["agents must not be newer than their hub", "kubectl ocm upgrade hub"];
        ends(&upgrade(&here, "klusterlet", &[&access, "--bundle-version=9.9.0"]), 3, &newer);
        let itself = hub_access(&cluster);
        ends(&upgrade(cluster.kubeconfig(), "klusterlet", &[&itself]), 3, &["belongs to the hub at"]);
        ends(&upgrade(&here, "klusterlet", &["other", &access]), 3, &["no Klusterlet of cluster \"other\""]);
        // As a fleet of one; a cluster of which nobody knows anything keeps all from being touched.
        let said = fleet(&["--contexts=follower", "--dry-run"]);
        assert_eq!((said.code, outcomes(&said)), (Some(0), vec!["follower 1 WouldUpgrade".to_owned()]), "{said:?}");
        ends(&fleet(&["--contexts=follower,nobody"]), 2, &["nobody"]);
        // The same by a fleet file, with the rights of those whom it names.
        let said = upgrade_by(&file, &["--dry-run"]);
        assert_eq!((said.code, outcomes(&said)), (Some(0), vec!["follower 1 WouldUpgrade".to_owned()]), "{said:?}");
        ends(&upgrade_by(&file, &["--bundle-version=9.9.0"]), 3, &["agents must not be newer than their hub"]);
    });

    killed(&here, "klusterlet", &["--wait", &access]);
    let before = renewed("follower");
    // Without a release, it is that of the hub.
    let said = upgrade(&here, "klusterlet", &["--wait", &access]);
    assert_eq!(said.code, Some(0), "{said:?}");
    all_are(&cluster, AGENT, bundle());
    all_are(&cluster, "open-cluster-management", bundle());
    assert!(renewed("follower") > before, "{said:?}");
    assert_eq!(settings(&cluster, "klusterlet", "klusterlet"), kept);
    nothing_changes(&cluster, || {
        ends(&upgrade(&here, "klusterlet", &["--wait", &access]), 0, &["is up to date"]);
        let said = fleet(&["--contexts=follower"]);
        assert_eq!((said.code, outcomes(&said)), (Some(0), vec!["follower 1 UpToDate".to_owned()]), "{said:?}");
        let said = upgrade_by(&file, &[]);
        assert_eq!((said.code, outcomes(&said)), (Some(0), vec!["follower 1 UpToDate".to_owned()]), "{said:?}");
        let back = upgrade(&here, "klusterlet", &[&access, &release(earlier_bundle())]);
        ends(&back, 3, &["is older", "--allow-downgrade"]);
    });
    let said = upgrade(&here, "klusterlet", &[&access, "--allow-downgrade", &release(earlier_bundle())]);
    assert_eq!(said.code, Some(0), "{said:?}");
    named_are(&cluster, "klusterlet", "klusterlet", earlier_bundle());
    assert_eq!(settings(&cluster, "klusterlet", "klusterlet"), kept);
}
