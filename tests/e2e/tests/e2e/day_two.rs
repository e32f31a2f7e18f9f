//! `kubectl ocm work` and `kubectl ocm addon` on a real hub with a cluster that has joined: what is brought to a cluster, what
//! keeps it from being there, and how it goes.
//!
//! `cargo test -p e2e-tests --test e2e day_two::`; it needs root.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use control_plane::{Cluster, Spec, shared};
use e2e_tests::join_support::{alone, hub, hub_access, join};
use e2e_tests::manifests::apply_client_side;
use e2e_tests::roles::user_with;
use e2e_tests::{Said, kubectl_ocm, object, run, until_within};
use serde_json::{Value, json};

/// How long agents may take: they may have just been started, on a busy machine.
const SLOW: Duration = Duration::from_secs(120);

/// The cluster that all stories share; it stays joined.
fn cluster() -> &'static Cluster {
    static JOINED: OnceLock<()> = OnceLock::new();
    let cluster = shared(&Spec::node("day"));
    JOINED.get_or_init(|| {
        let said = join(cluster, "day", &[hub_access(hub()).as_str(), "--accept", "--wait", "--timeout=3m"]);
        assert_eq!(said.code, Some(0), "{said:?}");
    });
    cluster
}

/// Somebody on the hub with exactly the documented rights of a command.
fn somebody(verb: &'static str) -> &'static Path {
    const VERBS: [&str; 4] = ["work", "addon", "get", "clusterset"];
    static USERS: [OnceLock<PathBuf>; VERBS.len()] = [const { OnceLock::new() }; VERBS.len()];
    let user = &USERS[VERBS.iter().position(|known| *known == verb).expect("a verb of these stories")];
    user.get_or_init(|| user_with(hub(), &format!("{verb}-user"), &[&format!("{verb}.yaml")]))
}

fn command(verb: &'static str, flags: &[&str]) -> Command {
    let mut command = kubectl_ocm(verb, somebody(verb));
    command.args(flags);
    command
}

fn work(flags: &[&str]) -> Said {
    run(&mut command("work", flags))
}

fn addon(flags: &[&str]) -> Said {
    run(&mut command("addon", flags))
}

fn get(flags: &[&str]) -> Said {
    run(&mut command("get", flags))
}

fn succeeds(said: &Said, words: &[&str]) {
    assert_eq!(said.code, Some(0), "{said:?}");
    let all = format!("{}{}", said.stdout, said.stderr);
    for word in words {
        assert!(all.contains(word), "no {word:?} in {said:?}");
    }
}

fn fails(said: &Said, code: i32, words: &[&str]) {
    assert_eq!(said.code, Some(code), "{said:?}");
    for word in words {
        assert!(said.stderr.contains(word), "no {word:?} in {said:?}");
    }
}

fn file(name: &str, objects: &[Value]) -> String {
    let file = hub().dir().expect("a folder").join(name);
    let text: Vec<String> = objects.iter().map(|object| format!("---\n{object}\n")).collect();
    std::fs::write(&file, text.concat()).expect("written");
    file.to_str().expect("text").to_owned()
}

fn map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"a": value}})
}

fn has(kind: &str, name: &str) -> bool {
    cluster().kubectl(&["get", kind, name, "--namespace=default"]).is_ok()
}

fn value(name: &str) -> String {
    object(cluster(), &["configmap", name, "--namespace=default"])["data"]["a"].as_str().unwrap_or_default().to_owned()
}

/// The works of the cluster on the hub, and their versions.
fn versions() -> String {
    let columns = "--output=custom-columns=N:.metadata.name,V:.metadata.generation,U:.metadata.uid";
    hub().kubectl(&["get", "manifestworks", "--namespace=day", "--no-headers", columns]).expect("works are listed")
}

/// Whatever it is, it changes no work on the hub.
fn changes_nothing(said: impl FnOnce() -> Said) -> Said {
    let before = versions();
    let said = said();
    assert_eq!(versions(), before, "{said:?}");
    said
}

#[test]
fn what_is_brought_to_a_cluster_is_there_changes_and_goes() {
    let _alone = alone();
    cluster();
    let secret = "this-is-a-secret-of-the-story";
    let hidden = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hidden", "namespace": "default"},
        "stringData": {"token": secret}, "data": {"other": STANDARD.encode(secret)}});
    let first = file("first.yaml", &[map("one", "1"), map("two", "2"), hidden]);
    let create = |more: &[&str]| {
        let flags = [&["create", "story", "-f", &first, "--clusters=day"], more].concat();
        work(&flags)
    };
    let silent = |said: &Said| {
        assert!(!format!("{said:?}").contains(secret), "{said:?}");
        assert!(!format!("{said:?}").contains(&STANDARD.encode(secret)), "{said:?}");
    };

    // Nothing is done until it is meant.
    for how in ["--dry-run", "--dry-run=server", "--render"] {
        let said = changes_nothing(|| create(&[how]));
        succeeds(&said, &["story"]);
        silent(&said);
    }
    let said = changes_nothing(|| create(&["--diff"]));
    fails(&said, 3, &[]);
    assert!(said.stdout.contains("kind: ManifestWork"), "{said:?}");
    silent(&said);

    // It is there, and once more it is as it was.
    let said = create(&["--wait"]);
    succeeds(&said, &["story -n day created", "3/3"]);
    silent(&said);
    assert_eq!((value("one").as_str(), value("two").as_str()), ("1", "2"));
    for how in [&[][..], &["--dry-run"], &["--dry-run=server"], &["--wait", "--output=json"]] {
        let said = changes_nothing(|| create(how));
        succeeds(&said, &["unchanged"]);
        silent(&said);
    }
    let said = changes_nothing(|| create(&["--diff"]));
    succeeds(&said, &[]);
    let said = work(&["status", "story"]);
    succeeds(&said, &["ConfigMap default/one", "Secret default/hidden"]);
    silent(&said);
    let said = get(&["works", "story", "--output=tree"]);
    let lines = [
        "day/story  Applied: True, Available: True\n",
        "├── ConfigMap default/one  Applied: True, Available: True\n",
        "└── Secret default/hidden  Applied: True, Available: True\n",
    ];
    succeeds(&said, &lines);
    silent(&said);

    // Other content: one changes, one goes, one comes.
    let second = file("second.yaml", &[map("one", "changed"), map("three", "3")]);
    let said = work(&["create", "story", "-f", &second, "--clusters=day", "--wait"]);
    succeeds(&said, &["story -n day configured", "2/2"]);
    assert_eq!((value("one").as_str(), value("three").as_str()), ("changed", "3"));
    until_within(SLOW, "what is not in it any more goes", String::new, || !has("configmap", "two"));

    // It goes, and what it has put there.
    let said = changes_nothing(|| work(&["delete", "story", "--clusters=day", "--dry-run"]));
    succeeds(&said, &["story -n day deleted (dry run)"]);
    let said = changes_nothing(|| work(&["delete", "story", "--clusters=day"]));
    fails(&said, 2, &["cannot prompt", "--yes"]);
    let said = work(&["delete", "story", "other", "--clusters=day", "--yes"]);
    succeeds(&said, &["story -n day deleted", "has no work \"other\""]);
    assert!(!has("configmap", "one") && !has("configmap", "three"));
    let said = work(&["delete", "story", "--clusters=day", "--yes"]);
    succeeds(&said, &["nothing was deleted"]);

    // One that leaves its objects behind, with settings that the hub fills in.
    let keep = file("keep.yaml", &[map("kept", "1")]);
    let create = |more: &[&str]| {
        let flags = ["create", "keep", "-f", &keep, "--clusters=day", "--orphan", "--update-strategy=ServerSideApply"];
        work(&[&flags, more].concat())
    };
    succeeds(&create(&["--wait"]), &["1/1"]);
    for how in [&[][..], &["--dry-run"], &["--dry-run=server"]] {
        succeeds(&changes_nothing(|| create(how)), &["unchanged"]);
    }
    let said = work(&["delete", "keep", "--clusters=day", "--yes"]);
    succeeds(&said, &["what keep has put on cluster \"day\" stays"]);
    assert_eq!(value("kept"), "1");
    cluster().kubectl(&["delete", "configmap", "kept", "--namespace=default"]).expect("it goes");
}

#[test]
fn what_an_object_lacks_is_explained_and_what_a_hub_would_refuse_is_not_sent() {
    let _alone = alone();
    cluster();
    // A kind that the cluster does not know, a namespace that is not there, and one that is well.
    let unknown = json!({"apiVersion": "nobody.example/v1", "kind": "Nothing", "metadata": {"name": "n", "namespace": "default"}});
    let mut nowhere = map("nowhere", "1");
    nowhere["metadata"]["namespace"] = "nowhere".into();
    let bad = file("bad.yaml", &[map("well", "1"), unknown, nowhere]);
    let create = ["create", "bad", "-f", &bad, "--clusters=day"];
    succeeds(&work(&create), &["bad -n day created"]);
    // Before the agent has looked at it, nothing else can be told of it; how long that takes is no matter of the command.
    let told = || work(&["status", "bad", "--output=json"]);
    let is_looked_at = || {
        let document: Value = serde_json::from_str(&told().stdout).unwrap_or_default();
        let objects = document["works"][0]["objects"].as_array().cloned().unwrap_or_default();
        let lacks = |object: &Value| object["why"].as_str().is_some_and(|why| why.contains("AppliedManifestFailed"));
        matches!(objects.as_slice(), [well, others @ ..] if well["available"] == "True" && others.iter().all(lacks))
    };
    until_within(SLOW, "the agent has looked at all of it", || format!("{:?}", told()), is_looked_at);
    let said = work(&[&create[..], &["--wait", "--timeout=5s"]].concat());
    fails(&said, 124, &["Nothing default/n", "(and 1 more)", "kubectl ocm work status bad"]);
    let said = told();
    assert_eq!(said.code, Some(3), "{said:?}");
    let document: Value = serde_json::from_str(&said.stdout).expect("JSON");
    let objects = document["works"][0]["objects"].as_array().expect("objects").clone();
    assert_eq!(objects.len(), 3, "{document}");
    assert!(objects[0].get("why").is_none() && objects[0]["available"] == "True", "{document}");
    for object in &objects[1..] {
        assert!(object["why"].as_str().is_some_and(|why| why.contains("AppliedManifestFailed")), "{document}");
    }
    let said = work(&["status", "-c", "day"]);
    assert!(said.code == Some(3) && said.stdout.contains("ConfigMap nowhere/nowhere"), "{said:?}");
    succeeds(&get(&["works", "bad", "--output=tree"]), &["Nothing default/n  Applied: False", "│   └── WHY: "]);
    for said in [get(&["works", "-c", "day,dax"]), get(&["addons", "-c", "dax"])] {
        fails(&said, 1, &["the hub has no managed cluster \"dax\"", "did you mean day?"]);
    }
    // Who may not list clusters is told no name.
    fails(&work(&["status", "-c", "dax"]), 1, &["the hub has no managed cluster \"dax\""]);
    succeeds(&work(&["delete", "bad", "--clusters=day", "--yes"]), &[]);

    // Nothing of what a hub refuses is sent, and it is told which file it is.
    let refused = |objects: &[Value], words: &[&str]| {
        let path = file("refused.yaml", objects);
        let said = changes_nothing(|| work(&["create", "refused", "-f", &path, "--clusters=day"]));
        fails(&said, 2, words);
    };
    let large = "x".repeat(300 << 10);
    refused(&[map("a", &large), map("b", &large)], &["takes 512000 bytes in one work"]);
    refused(&[map("a", "1"), map("a", "2")], &["ConfigMap default/a is there twice", "refused.yaml, object 2"]);
    let mut generated = map("a", "1");
    generated["metadata"]["generateName"] = "a-".into();
    refused(&[generated], &["generateName"]);
    refused(&[json!({"apiVersion": "v1", "kind": "ConfigMap"})], &["has no name"]);
    // As large as it may be, it is taken.
    let most = "x".repeat((500 << 10) - 150);
    let path = file("most.yaml", &[map("most", &most)]);
    succeeds(&work(&["create", "most", "-f", &path, "--clusters=day"]), &["created"]);
    succeeds(&work(&["delete", "most", "--clusters=day", "--yes"]), &[]);

    // Clusters that are not there or not let in, and placements that select none.
    let one = file("one.yaml", &[map("one", "1")]);
    let said = changes_nothing(|| work(&["create", "one", "-f", &one, "--clusters=day,dax"]));
    fails(&said, 1, &["the hub has no managed cluster \"dax\""]);
    let waiting = json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": "waiting"}, "spec": {"hubAcceptsClient": false}});
    apply_client_side(hub(), "waiting", &waiting);
    let said = changes_nothing(|| work(&["create", "one", "-f", &one, "--clusters=day,waiting"]));
    fails(&said, 3, &["has not accepted cluster \"waiting\"", "kubectl ocm accept waiting"]);
    hub().kubectl(&["delete", "managedcluster", "waiting"]).expect("it goes");
    let said = changes_nothing(|| work(&["create", "one", "-f", &one, "--placement=default/none"]));
    fails(&said, 1, &["no placement default/none"]);
    let set = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSetBinding",
        "metadata": {"name": "default", "namespace": "default"}, "spec": {"clusterSet": "default"}});
    apply_client_side(hub(), "binding", &set);
    let placement = |name: &str, cluster: &str| {
        json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"story": cluster}}}}]}})
    };
    hub().kubectl(&["label", "managedcluster", "day", "story=day"]).expect("it is labelled");
    apply_client_side(hub(), "placement", &placement("days", "day"));
    apply_client_side(hub(), "nobody", &placement("nobody", "nobody"));
    until_within(
        SLOW,
        "the placement has decided",
        || work(&["create", "placed", "-f", &one, "--placement=default/days", "--dry-run"]).stderr,
        || work(&["create", "placed", "-f", &one, "--placement=default/days", "--dry-run"]).code == Some(0),
    );
    let said = changes_nothing(|| work(&["create", "placed", "-f", &one, "--placement=default/nobody"]));
    fails(&said, 3, &["selects no cluster", "kubectl ocm get placements nobody -n default --explain"]);
    let said = work(&["create", "placed", "-f", &one, "--placement=default/days", "--wait"]);
    succeeds(&said, &["placement default/days selects day now", "placed -n day created", "1/1"]);
    succeeds(&work(&["delete", "placed", "--clusters=day", "--yes"]), &[]);
}

#[test]
fn what_somebody_else_has_written_is_not_replaced_unless_it_is_said() {
    let _alone = alone();
    cluster();
    let of = |name: &str, labels: Value| {
        json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": {"name": name, "namespace": "day", "labels": labels},
            "spec": {"workload": {"manifests": [map("theirs", "1")]}}})
    };
    apply_client_side(hub(), "theirs", &of("theirs", json!({})));
    apply_client_side(
        hub(),
        "kept",
        &of("kept-up", json!({"work.open-cluster-management.io/manifestworkreplicaset": "default.set"})),
    );
    let mine = file("mine.yaml", &[map("mine", "1")]);
    let said = changes_nothing(|| work(&["create", "theirs", "-f", &mine, "--clusters=day"]));
    fails(&said, 3, &["was written by kubectl", "nothing was changed", "--overwrite"]);
    let said = changes_nothing(|| work(&["create", "kept-up", "-f", &mine, "--clusters=day"]));
    fails(&said, 3, &["belongs to ManifestWorkReplicaSet default/set"]);
    let said = changes_nothing(|| work(&["delete", "kept-up", "--clusters=day", "--yes"]));
    fails(&said, 3, &["would create it again"]);

    let said = work(&["create", "theirs", "-f", &mine, "--clusters=day", "--overwrite", "--wait"]);
    succeeds(&said, &["theirs -n day configured", "1/1"]);
    assert_eq!(value("mine"), "1");
    // From now on it is ours, until somebody writes it again.
    succeeds(&changes_nothing(|| work(&["create", "theirs", "-f", &mine, "--clusters=day"])), &["unchanged"]);
    let patch = json!({"spec": {"workload": {"manifests": [map("patched", "1")]}}}).to_string();
    hub()
        .kubectl(&["patch", "manifestwork", "theirs", "--namespace=day", "--type=merge", "--patch", &patch])
        .expect("it is patched");
    let said = changes_nothing(|| work(&["create", "theirs", "-f", &mine, "--clusters=day"]));
    fails(&said, 3, &["was written by kubectl"]);
    succeeds(&work(&["delete", "theirs", "--clusters=day", "--yes"]), &[]);
    hub().kubectl(&["delete", "manifestwork", "kept-up", "--namespace=day"]).expect("it goes");
}

#[test]
fn agents_make_the_namespaces_of_a_set_and_leave_them_when_it_manages_them_no_longer() {
    let _alone = alone();
    cluster();
    let set = |flags: &[&str]| run(&mut command("clusterset", flags));
    let is_there = || cluster().kubectl(&["get", "namespace", "of-the-set"]).is_ok();
    // The cluster is in the set into which the hub puts those that nobody has put elsewhere.
    succeeds(&set(&["set", "default", "--namespaces=of-the-set"]), &["/default configured"]);
    until_within(SLOW, "the agent makes the namespace", String::new, is_there);
    let available = || {
        let managed = &object(hub(), &["managedcluster", "day"])["status"]["managedNamespaces"];
        managed[0]["conditions"][0]["status"] == "True"
    };
    until_within(SLOW, "the agent says that it is there", String::new, available);
    succeeds(&set(&["set", "default", "--namespaces=of-the-set"]), &["/default unchanged"]);
    succeeds(&set(&["unset", "default", "--namespaces=of-the-set"]), &["/default configured"]);
    until_within(SLOW, "the hub asks for it no longer", String::new, || {
        object(hub(), &["managedcluster", "day"])["status"]["managedNamespaces"].as_array().is_none_or(Vec::is_empty)
    });
    assert!(is_there(), "nobody deletes it");
    cluster().kubectl(&["delete", "namespace", "of-the-set", "--wait=false"]).expect("it goes");
}

#[test]
fn a_list_that_is_watched_ends_when_it_is_interrupted() {
    let _alone = alone();
    cluster();
    let mut watched = command("get", &["clusters", "day", "--watch"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(watched.stdout.take().expect("its output")).lines();
    assert!(lines.any(|line| line.expect("it can be read").starts_with("day ")), "it shows the cluster");
    let process = watched.id().to_string();
    let said = run(Command::new("kill").args(["-INT", &process]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let ended = watched.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{stderr}");
    assert!(!stderr.contains("error"), "Ctrl-C is how a watch ends: {stderr}");
}

#[test]
fn one_that_is_killed_on_its_way_goes_on_when_it_is_run_again() {
    let _alone = alone();
    cluster();
    // Clusters that are let in and have no agent: their works wait for one.
    let names: Vec<String> = (0..30).map(|number| format!("fleet{number}")).collect();
    for name in &names {
        let cluster = json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": name}, "spec": {"hubAcceptsClient": true}});
        apply_client_side(hub(), "fleet", &cluster);
    }
    until_within(SLOW, "the hub has made their namespaces", String::new, || {
        names.iter().all(|name| hub().kubectl(&["get", "namespace", name]).is_ok())
    });
    let clusters = format!("--clusters={}", names.join(","));
    let path = file("fleet.yaml", &[map("fleet", "1")]);
    let flags = ["create", "fleet", "-f", &path, &clusters, "--concurrency=1"];
    for after in [200, 400, 800] {
        let mut killed =
            command("work", &flags).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        sleep(Duration::from_millis(after));
        let _ = killed.kill();
        killed.wait().expect("it ends");
    }
    let said = work(&flags);
    succeeds(&said, &["fleet -n fleet0 ", "fleet -n fleet29 "]);
    let said = work(&flags);
    succeeds(&said, &[]);
    assert_eq!(said.stdout.matches("unchanged").count(), names.len(), "{said:?}");
    let said = work(&["create", "fleet", "-f", &path, "--clusters=fleet0,fleet1", "--wait", "--timeout=3s"]);
    fails(&said, 124, &["no agent has looked at it yet", "cluster \"fleet0\" is Accepted"]);

    // Nobody has applied anything: there is nothing to clean up, and they go at once.
    let said = work(&["delete", "fleet", &clusters, "--yes"]);
    succeeds(&said, &["fleet -n fleet29 deleted"]);
    // With the finalizer of an agent that never was.
    succeeds(&work(&["create", "fleet", "-f", &path, "--clusters=fleet0"]), &["created"]);
    let patch = r#"{"metadata":{"finalizers":["cluster.open-cluster-management.io/manifest-work-cleanup"]}}"#;
    hub()
        .kubectl(&["patch", "manifestwork", "fleet", "--namespace=fleet0", "--type=merge", "--patch", patch])
        .expect("it is patched");
    let said = work(&["delete", "fleet", "--clusters=fleet0", "--yes"]);
    fails(&said, 3, &["was never heard of", "manifest-work-cleanup", "--force"]);
    let said = work(&["delete", "fleet", "--clusters=fleet0", "--yes", "--force"]);
    succeeds(&said, &["took cluster.open-cluster-management.io/manifest-work-cleanup off work \"fleet\""]);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    hub().kubectl(&[&["delete", "managedcluster", "--wait=false"], &names[..]].concat()).expect("they go");
}

#[test]
fn an_add_on_is_enabled_where_something_defines_it_and_goes_with_what_it_has_brought() {
    let _alone = alone();
    cluster();
    let said = addon(&["enable", "hello", "--clusters=day"]);
    fails(&said, 3, &["no ClusterManagementAddOn \"hello\"", "--without-definition"]);
    let agent = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "hello-agent", "namespace": "open-cluster-management-agent-addon"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "hello-agent"}}, "template": {
            "metadata": {"labels": {"app": "hello-agent"}},
            "spec": {"containers": [{"name": "agent", "image": "ocm.local/pause:1", "imagePullPolicy": "IfNotPresent"}]}}}});
    let template = json!({"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnTemplate",
        "metadata": {"name": "hello"},
        "spec": {"addonName": "hello", "agentSpec": {"workload": {"manifests": [agent]}}}});
    let definition = json!({"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
        "metadata": {"name": "hello", "annotations": {"addon.open-cluster-management.io/lifecycle": "addon-manager"}},
        "spec": {"supportedConfigs": [
            {"group": "addon.open-cluster-management.io", "resource": "addontemplates", "defaultConfig": {"name": "hello"}},
            {"group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs"}]}});
    apply_client_side(hub(), "template", &template);
    apply_client_side(hub(), "definition", &definition);
    let has_agent = || {
        cluster()
            .kubectl(&["get", "deployment", "hello-agent", "--namespace=open-cluster-management-agent-addon"])
            .is_ok()
    };

    fails(&addon(&["enable", "hello", "--clusters=dax"]), 1, &["no managed cluster \"dax\""]);
    let said = addon(&["enable", "hello", "--clusters=day", "--config=configmaps/default/x"]);
    fails(&said, 3, &["takes no configuration of configmaps"]);
    succeeds(&addon(&["enable", "hello", "--clusters=day", "--dry-run"]), &["created (dry run)"]);
    assert!(hub().kubectl(&["get", "managedclusteraddon", "hello", "--namespace=day"]).is_err());
    let said = addon(&["enable", "hello", "--clusters=day", "--labels=story=day", "--wait"]);
    succeeds(&said, &["hello -n day created", "True"]);
    assert!(has_agent());
    succeeds(&get(&["addons", "hello", "--output=tree"]), &["hello\n", "└── day  Available: True\n"]);
    for how in [&[][..], &["--dry-run"], &["--dry-run=server"], &["--wait"]] {
        succeeds(&addon(&[&["enable", "hello", "--clusters=day"], how].concat()), &["unchanged"]);
    }
    // What somebody else has set stays.
    hub().kubectl(&["label", "managedclusteraddon", "hello", "--namespace=day", "theirs=1"]).expect("it is labelled");
    let config = json!({"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnDeploymentConfig",
        "metadata": {"name": "hello", "namespace": "default"}, "spec": {}});
    apply_client_side(hub(), "config", &config);
    let named = "--config=addondeploymentconfigs.addon.open-cluster-management.io/default/hello";
    succeeds(&addon(&["enable", "hello", "--clusters=day", named]), &["configured"]);
    succeeds(&addon(&["enable", "hello", "--clusters=day"]), &["unchanged"]);
    let live = object(hub(), &["managedclusteraddon", "hello", "--namespace=day"]);
    assert_eq!(
        (&live["metadata"]["labels"]["theirs"], &live["metadata"]["labels"]["story"]),
        (&json!("1"), &json!("day"))
    );
    assert_eq!(live["spec"]["configs"][0]["name"], "hello", "{live}");
    let said = addon(&["enable", "hello", "--clusters=day", "--wait"]);
    succeeds(&said, &["unchanged", "True"]);

    succeeds(&addon(&["disable", "hello", "--clusters=day", "--dry-run"]), &["deleted (dry run)"]);
    assert!(has_agent());
    fails(&addon(&["disable", "hello", "--clusters=day"]), 2, &["cannot prompt", "--yes"]);
    let said = addon(&["disable", "hello", "--clusters=day", "--yes"]);
    succeeds(&said, &["hello -n day deleted"]);
    until_within(SLOW, "its agent goes", String::new, || !has_agent());
    succeeds(
        &addon(&["disable", "hello", "--clusters=day", "--yes"]),
        &["has no add-on \"hello\": nothing was deleted"],
    );

    // Where something else installs it, and one whose finalizer nobody takes off in time.
    let said = addon(&["enable", "other", "--clusters=day", "--without-definition"]);
    succeeds(&said, &["unless something else installs it, nothing happens", "other -n day created"]);
    let patch = r#"{"metadata":{"finalizers":["example.com/mine"]}}"#;
    hub()
        .kubectl(&["patch", "managedclusteraddon", "other", "--namespace=day", "--type=merge", "--patch", patch])
        .expect("it is patched");
    let said = addon(&["disable", "other", "--clusters=day", "--yes", "--timeout=3s"]);
    fails(&said, 124, &["waiting for whoever set example.com/mine"]);
    let patch = r#"{"metadata":{"finalizers":null}}"#;
    hub()
        .kubectl(&["patch", "managedclusteraddon", "other", "--namespace=day", "--type=merge", "--patch", patch])
        .expect("it is patched");
    until_within(SLOW, "it is gone", String::new, || {
        hub().kubectl(&["get", "managedclusteraddon", "other", "--namespace=day"]).is_err()
    });
    for (kind, name) in [("clustermanagementaddon", "hello"), ("addontemplate", "hello")] {
        hub().kubectl(&["delete", kind, name]).expect("it goes");
    }
}
