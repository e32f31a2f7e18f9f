//! `kubectl ocm upgrade` on real clusters: from one release to the next, with every setting kept. The images of both releases
//! hold the same programs, so that pods really change.
//!
//! `cargo test -p e2e-tests --test e2e_upgrade`; it needs root.

use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use control_plane::{Cluster, Spec};
use e2e_tests::join_support::{alone, hub, hub_access};
use e2e_tests::roles::user_with;
use e2e_tests::{Said, bundle, earlier_bundle, kubectl_ocm, object, resource_versions, run, settled, until};
use serde_json::{Value, json};

const OPERATORS: &str = "--namespace=open-cluster-management";
const HUB: &str = "open-cluster-management-hub";
const AGENT: &str = "open-cluster-management-agent";

/// Everything that promises to change nothing, and how it ends where something would change.
const PROMISES: [(&[&str], i32); 4] =
    [(&["--dry-run=client"], 0), (&["--dry-run=server"], 0), (&["--diff"], 3), (&["--render"], 0)];

/// Members of the two kinds that hold images.
const IMAGES: [&str; 5] = [
    "registrationImagePullSpec",
    "workImagePullSpec",
    "placementImagePullSpec",
    "addOnManagerImagePullSpec",
    "imagePullSpec",
];

fn upgrade(kubeconfig: &Path, what: &str, flags: &[&str]) -> Said {
    run(kubectl_ocm("upgrade", kubeconfig).arg(what).args(flags))
}

fn release(version: &str) -> String {
    format!("--bundle-version={version}")
}

fn document(said: &Said) -> Value {
    serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

/// The spec of a cluster-wide object without its images.
fn settings(cluster: &Cluster, kind: &str, name: &str) -> Value {
    let mut spec = object(cluster, &[kind, name])["spec"].clone();
    let members = spec.as_object_mut().expect("a spec is an object");
    IMAGES.iter().for_each(|member| drop(members.remove(*member)));
    spec
}

/// The images that a cluster-wide object names are all of this release.
fn named_are(cluster: &Cluster, kind: &str, name: &str, version: &str) {
    let spec = object(cluster, &[kind, name])["spec"].clone();
    let named: Vec<&str> = IMAGES.iter().filter_map(|member| spec[*member].as_str()).collect();
    let tag = format!(":v{version}");
    assert!(!named.is_empty() && named.iter().all(|image| image.ends_with(&tag)), "{version}: {named:?}");
}

/// The images of the Deployments and of the pods of a namespace, each with its tag.
fn images(cluster: &Cluster, namespace: &str) -> Vec<String> {
    let space = format!("--namespace={namespace}");
    let mut found = Vec::new();
    for (kind, path) in
        [("deployments", "/spec/template/spec/containers/0/image"), ("pods", "/spec/containers/0/image")]
    {
        let list = object(cluster, &[kind, &space]);
        let items = list["items"].as_array().cloned().unwrap_or_default();
        // What is on its way out is not counted.
        let stays = items.iter().filter(|item| item["metadata"]["deletionTimestamp"].is_null());
        found.extend(stays.filter_map(|item| item.pointer(path)?.as_str().map(str::to_owned)));
    }
    found
}

fn all_are(cluster: &Cluster, namespace: &str, version: &str) {
    let found = images(cluster, namespace);
    let tag = format!(":v{version}");
    assert!(!found.is_empty() && found.iter().all(|image| image.ends_with(&tag)), "{namespace} {version}: {found:?}");
}

/// Nothing of it changes anything.
fn nothing_changes(cluster: &Cluster, commands: impl FnOnce()) {
    let generations = || {
        let path = "--output=jsonpath={.items[*].metadata.generation}";
        cluster.kubectl(&["get", "klusterlets", path]).unwrap_or_default()
    };
    let before = (settled(cluster), generations());
    commands();
    assert_eq!((resource_versions(cluster), generations()), before);
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

/// Joins with the release before, and waits until the cluster is available.
fn joined(cluster: &Cluster, name: &str) {
    let said = run(kubectl_ocm("join", cluster.kubeconfig()).args([
        name,
        &release(earlier_bundle()),
        &hub_access(hub()),
        "--accept",
        "--wait",
        "--timeout=3m",
    ]));
    assert_eq!(said.code, Some(0), "{said:?}");
    all_are(cluster, AGENT, earlier_bundle());
    // It reports more often than usual, so that nobody waits a minute for each report.
    let patch = r#"{"spec": {"leaseDurationSeconds": 5}}"#;
    hub().kubectl(&["patch", "managedcluster", name, "--type=merge", "--patch", patch]).expect("it is patched");
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
        let back = upgrade(&here, "klusterlet", &[&access, &release(earlier_bundle())]);
        ends(&back, 3, &["is older", "--allow-downgrade"]);
    });
    let said = upgrade(&here, "klusterlet", &[&access, "--allow-downgrade", &release(earlier_bundle())]);
    assert_eq!(said.code, Some(0), "{said:?}");
    named_are(&cluster, "klusterlet", "klusterlet", earlier_bundle());
    assert_eq!(settings(&cluster, "klusterlet", "klusterlet"), kept);
}

#[test]
fn a_fleet_stops_at_the_first_stage_that_does_not_get_there_and_goes_on_from_it() {
    let _alone = alone();
    let clusters = ["fleet-a", "fleet-b"].map(|name| Cluster::start(&Spec::node(name)).expect("a cluster"));
    let [a, b] = &clusters;
    joined(a, "fleet-a");
    joined(b, "fleet-b");
    // Users of kubeconfigs that are used together have names of their own.
    let admin = |cluster: &Cluster, user: &str| cluster.user_kubeconfig(user, &["system:masters"]).expect("a user");
    let both = format!("{}:{}", admin(a, "admin-a").display(), admin(b, "admin-b").display());
    let access = hub_access(hub());
    let fleet = |flags: &[&str]| {
        let mut command = kubectl_ocm("upgrade", a.kubeconfig());
        command.env("KUBECONFIG", &both).args(["klusterlet", "--stage=1", "--output=json", &access]).args(flags);
        run(&mut command)
    };
    let outcomes = |said: &Said| -> Vec<String> {
        let document = document(said);
        let rows = document["clusters"].as_array().cloned().unwrap_or_default();
        rows.iter()
            .map(|row| format!("{} {} {}", row["context"], row["stage"], row["outcome"]).replace('"', ""))
            .collect()
    };
    let order = "--contexts=fleet-b,fleet-a";
    let said = fleet(&[order, "--dry-run"]);
    assert_eq!(
        (said.code, outcomes(&said)),
        (Some(0), ["fleet-b 1 WouldUpgrade", "fleet-a 2 WouldUpgrade"].map(str::to_owned).to_vec())
    );
    all_are(a, AGENT, earlier_bundle());

    // One of which nobody knows anything keeps all from being touched.
    let said = fleet(&["--contexts=fleet-a,nobody"]);
    assert_eq!(said.code, Some(2), "{said:?}");

    b.kubectl(&["taint", "node", "--all", "test=busy:NoSchedule"]).expect("no pod is scheduled there any more");
    let said = fleet(&[order, "--timeout=15s"]);
    assert_eq!(said.code, Some(124), "{said:?}");
    assert_eq!(outcomes(&said), ["fleet-b 1 Failed", "fleet-a 2 NotTried"], "{said:?}");
    assert!(said.stderr.contains("one cluster of a later stage was not touched"), "{said:?}");
    all_are(a, AGENT, earlier_bundle());

    b.kubectl(&["taint", "node", "--all", "test-"]).expect("pods are scheduled there again");
    let said = fleet(&[order]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(outcomes(&said), ["fleet-b 1 Upgraded", "fleet-a 2 Upgraded"], "{said:?}");
    all_are(a, AGENT, bundle());
    until("the pods of before have ended", || images(b, AGENT).iter().all(|image| image.ends_with(bundle())));

    // By sets of the hub, of which one is left out.
    let set = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSet",
        "metadata": {"name": "canary"}, "spec": {}});
    let file = a.dir().expect("a folder").join("set.json");
    std::fs::write(&file, set.to_string()).expect("written");
    hub().kubectl(&["apply", "--filename", file.to_str().expect("text")]).expect("made");
    let label = "cluster.open-cluster-management.io/clusterset=canary";
    hub().kubectl(&["label", "--overwrite", "managedcluster", "fleet-a", label]).expect("labelled");
    let said = fleet(&[order, "--cluster-sets=canary"]);
    assert_eq!((said.code, outcomes(&said)), (Some(0), vec!["fleet-a 1 UpToDate".to_owned()]), "{said:?}");
    assert!(said.stderr.contains("fleet-b is in none of the sets"), "{said:?}");
}
