//! `kubectl ocm join --filename`: a hub and its clusters on real clusters, by users who hold only the rights that the
//! documentation names.
//!
//! `cargo test -p e2e-tests --test e2e fleet::`; it needs root.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use control_plane::{Cluster, Spec};
use e2e_tests::roles::user_with;
use e2e_tests::{Said, all_settled, bundle, canaries, kubectl_ocm, object, resource_versions, run};
use serde_json::{Value, json};

const SET: &str = "cluster.open-cluster-management.io/clusterset";

/// A hub that is to be, two clusters, and a kubeconfig of one that is not there.
struct Scene {
    clusters: Vec<Cluster>,
    users: Vec<PathBuf>,
    folder: tempfile::TempDir,
}

impl Scene {
    fn start() -> Self {
        let specs = ["fleet-hub", "fleet-one", "fleet-two"].map(Spec::node);
        let clusters = Cluster::start_all(&specs).expect("the clusters start");
        // Roles within the namespace of what is not installed yet.
        clusters[0].kubectl(&["create", "namespace", "open-cluster-management"]).expect("a namespace");
        let hub = ["install.yaml", "join-hub.yaml", "accept.yaml", "clusterset.yaml"];
        let users = vec![
            user_with(&clusters[0], "fleet-admin", &hub),
            user_with(&clusters[1], "fleet-joiner", &["join.yaml"]),
            user_with(&clusters[2], "fleet-joiner", &["join.yaml"]),
        ];
        let folder = tempfile::tempdir().expect("there is room for files");
        let nowhere = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "gone",
            // Nobody listens there.
            "clusters": [{"name": "gone", "cluster": {"server": "https://127.0.0.1:9"}}],
            "users": [{"name": "gone", "user": {"token": "of-nobody"}}],
            "contexts": [{"name": "gone", "context": {"cluster": "gone", "user": "gone"}}],
        });
        fs::write(folder.path().join("gone.yaml"), nowhere.to_string()).expect("written");
        Self { clusters, users, folder }
    }

    /// A file with these clusters, and what the first two have by default.
    fn file(&self, name: &str, clusters: &[Value]) -> PathBuf {
        let fleet = json!({
            "apiVersion": "kubectl-ocm.dev/v1alpha1", "kind": "Fleet",
            "hub": {"kubeconfig": self.users[0], "install": {"bundleVersion": bundle()}},
            "defaults": {"bundleVersion": bundle(), "labels": {"env": "test"}, "clusterSet": "edge"},
            "clusters": clusters,
        });
        let path = self.folder.path().join(name);
        fs::write(&path, fleet.to_string()).expect("written");
        path
    }

    fn two(&self) -> Vec<Value> {
        vec![
            json!({"name": "c1", "kubeconfig": self.users[1], "labels": {"env": "prod"}}),
            json!({"name": "c2", "kubeconfig": self.users[2], "mode": "singleton"}),
        ]
    }

    fn versions(&self) -> Vec<BTreeMap<String, String>> {
        self.clusters.iter().map(resource_versions).collect()
    }
}

fn join(file: &Path, flags: &[&str]) -> Said {
    // Nothing but the file says which clusters there are.
    run(kubectl_ocm("join", Path::new("/nonexistent")).arg("--filename").arg(file).args(flags))
}

fn document(said: &Said) -> Value {
    serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

/// What stands in a member of each cluster, in the order of the file.
fn of_each(document: &Value, member: &str) -> Vec<String> {
    let clusters = document["clusters"].as_array().expect("a list of clusters");
    clusters.iter().map(|cluster| cluster[member].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_hub_and_its_clusters_come_up_together_and_one_that_is_broken_stops_nobody() {
    let scene = Scene::start();
    let [hub, one, two] = scene.clusters.as_slice() else { panic!("three clusters were asked for") };
    let gone = json!({"name": "gone", "kubeconfig": "gone.yaml"});
    let all = scene.file("all.yaml", &[scene.two(), vec![gone]].concat());
    let good = scene.file("good.yaml", &scene.two());
    let mut heard = Vec::new();

    // What is wrong with a file is told with its place, and nothing is done.
    drop(all_settled([hub, one, two]));
    let before = scene.versions();
    let mut typo = scene.two();
    typo[0]["lables"] = json!({"a": "b"});
    let said = join(&scene.file("typo.yaml", &typo), &[]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("there is no field \"lables\"") && said.stderr.contains("did you mean labels?"));
    assert!(said.stderr.contains("line 1:"), "{said:?}");

    // Before there is a hub, it is told what would become of each, and nothing is changed.
    for dry_run in ["--dry-run=client", "--dry-run=server"] {
        let said = join(&all, &[dry_run, "--output=json"]);
        assert_eq!(said.code, Some(1), "{said:?}");
        let told = document(&said);
        assert_eq!(told["hub"]["outcome"], "WouldChange", "{said:?}");
        assert_eq!(of_each(&told, "outcome"), ["WouldChange", "WouldChange", "Failed"], "{said:?}");
        assert_eq!(scene.versions(), before, "{dry_run}");
    }
    let said = join(&good, &["--dry-run"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.stdout.matches("WouldChange").count(), 3, "{said:?}");

    // Manifests for Git hold no secret; where those of one cluster are not known, there are none.
    let said = join(&all, &["--render"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
    let said = join(&good, &["--render"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    for part in ["# the hub: ", "# cluster c1: ", "# cluster c2: ", "kind: ClusterManager\n", "kind: Klusterlet\n"] {
        assert!(said.stdout.contains(part), "{part}: {said:?}");
    }
    assert!(!said.stdout.contains("name: bootstrap-hub-kubeconfig\n"), "{said:?}");
    assert!(said.stderr.contains("open-cluster-management-agent/bootstrap-hub-kubeconfig of c1"), "{said:?}");
    assert_eq!(scene.versions(), before);
    heard.push(said);

    // Killed half-way, it goes on where it stopped.
    for milliseconds in [300, 2_000, 5_000] {
        let mut child = kubectl_ocm("join", Path::new("/nonexistent"))
            .arg("--filename")
            .arg(&all)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        sleep(Duration::from_millis(milliseconds));
        let _ = child.kill();
        child.wait().expect("it ends");
    }
    let said = join(&all, &["--output=json", "--timeout=5m"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let told = document(&said);
    assert_ne!(told["hub"]["outcome"], "Failed", "{said:?}");
    assert_eq!(of_each(&told, "phase"), ["Available", "Available", ""], "{said:?}");
    assert_eq!(of_each(&told, "outcome")[2], "Failed", "{said:?}");
    assert!(said.stderr.contains("1 of 4 did not get there") && said.stderr.contains("gone: "), "{said:?}");
    heard.push(said);

    let labels = |name: &str| object(hub, &["managedcluster", name])["metadata"]["labels"].clone();
    for (name, env) in [("c1", "prod"), ("c2", "test")] {
        assert_eq!((&labels(name)["env"], &labels(name)[SET]), (&json!(env), &json!("edge")), "{name}");
    }
    let mode =
        |cluster: &Cluster| object(cluster, &["klusterlet", "klusterlet"])["spec"]["deployOption"]["mode"].clone();
    assert_eq!((mode(one), mode(two)), (json!("Default"), json!("Singleton")));

    // Once more, everything is as the file has it.
    drop(all_settled([hub, one, two]));
    let before = scene.versions();
    let said = join(&good, &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.stdout.matches("Unchanged").count(), 3, "{said:?}");
    assert_eq!(scene.versions(), before, "a second run changes nothing");
    heard.push(said);

    // A label and a set that change in the file change on the hub; nothing else does.
    let mut other = scene.two();
    other[0]["labels"] = json!({"env": "stage"});
    let said = join(&scene.file("other.yaml", &other), &["--output=json"]);
    assert_eq!(of_each(&document(&said), "outcome"), ["Changed", "Unchanged"], "{said:?}");
    assert_eq!(labels("c1")["env"], "stage");
    // What it says of a cluster that has joined, that one gets, and goes on.
    other[1]["clientCertExpirationSeconds"] = json!(7200);
    other[1]["enableSyncLabels"] = json!(true);
    let said = join(&scene.file("other.yaml", &other), &["--output=json"]);
    assert_eq!(of_each(&document(&said), "outcome"), ["Unchanged", "Changed"], "{said:?}");
    assert_eq!(of_each(&document(&said), "phase"), ["Available", "Available"], "{said:?}");
    let registration = object(two, &["klusterlet", "klusterlet"])["spec"]["registrationConfiguration"].clone();
    assert_eq!(registration["clientCertExpirationSeconds"], 7200);
    let said = join(&scene.file("other.yaml", &other), &["--output=json"]);
    assert_eq!(of_each(&document(&said), "outcome"), ["Unchanged", "Unchanged"], "{said:?}");
    // Out of a set into which somebody has put it, a cluster is not taken by the way.
    other[0]["clusterSet"] = json!("core");
    let said = join(&scene.file("other.yaml", &other), &[]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.stderr.contains("kubectl ocm clusterset set core c1"), "{said:?}");
    assert_eq!(labels("c1")[SET], "edge");

    // One cluster under two names is one too many, and the hub does not manage itself by mistake.
    let copy = scene.folder.path().join("copy.yaml");
    fs::copy(&scene.users[1], &copy).expect("copied");
    let again =
        vec![json!({"name": "again", "kubeconfig": copy}), json!({"name": "itself", "kubeconfig": scene.users[0]})];
    let said = join(&scene.file("twice.yaml", &[scene.two(), again].concat()), &["--output=json"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    let because = of_each(&document(&said), "because");
    assert_eq!(because.iter().filter(|why| why.contains("is the same cluster as that of")).count(), 2, "{said:?}");
    assert!(because[0].contains("\"again\"") && because[2].contains("\"c1\""), "{said:?}");
    assert!(because[3].contains("is the hub itself") && because[1].is_empty(), "{said:?}");
    heard.push(said);

    // Nothing that was said is a secret.
    let secrets: Vec<String> = scene.clusters.iter().flat_map(canaries).collect();
    assert!(!secrets.is_empty());
    for said in &heard {
        let leaked = secrets.iter().any(|secret| said.stdout.contains(secret) || said.stderr.contains(secret));
        assert!(!leaked, "a secret was told");
    }
}

#[test]
fn where_the_hub_is_not_installed_no_cluster_is_touched() {
    let specs = [Spec::api("fleet-guarded"), Spec::api("fleet-idle")];
    let clusters = Cluster::start_all(&specs).expect("the clusters start");
    let visitor = clusters[0].user_kubeconfig("visitor", &[]).expect("a user");
    let folder = tempfile::tempdir().expect("there is room for a file");
    let file = folder.path().join("fleet.yaml");
    let fleet = json!({
        "apiVersion": "kubectl-ocm.dev/v1alpha1", "kind": "Fleet",
        "hub": {"kubeconfig": visitor, "install": {}},
        "clusters": [{"name": "c1", "kubeconfig": clusters[1].kubeconfig()}],
    });
    fs::write(&file, fleet.to_string()).expect("written");
    let before: Vec<_> = clusters.iter().map(resource_versions).collect();
    let said = join(&file, &["--output=json"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let told = document(&said);
    assert_eq!(told["hub"]["outcome"], "Failed", "{said:?}");
    assert!(["Failed", "NotTried"].contains(&of_each(&told, "outcome")[0].as_str()), "{said:?}");
    assert!(said.stderr.contains("lacks rights to install a hub"), "{said:?}");
    assert_eq!(clusters.iter().map(resource_versions).collect::<Vec<_>>(), before);
}
