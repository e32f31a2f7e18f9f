//! `kubectl ocm clusterset`, `get clustersets` and `get placements` on a real hub: sets are made, filled, bound and deleted, and
//! what placements lack is told.
//!
//! `cargo test -p e2e-tests --test e2e clusterset::`; it needs root.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use control_plane::Cluster;
use e2e_tests::join_support::{alone, hub};
use e2e_tests::manifests::apply_all_client_side;
use e2e_tests::roles::user_with;
use e2e_tests::{Said, kubectl_ocm, object, run, until_within};
use serde_json::{Value, json};

/// How long the hub's controllers may take.
const SLOW: Duration = Duration::from_secs(60);

const SET: &str = "cluster.open-cluster-management.io/clusterset";

/// A cluster that has registered and of which nothing was heard: the hub gives it a taint.
fn cluster(name: &str, story: &str, env: &str) -> Value {
    json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": name, "labels": {"story": story, "env": env}}, "spec": {"hubAcceptsClient": false}})
}

fn placement(namespace: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"namespace": namespace, "name": name}, "spec": spec})
}

/// The same, which selects clusters whatever taints they have.
fn tolerant(namespace: &str, name: &str, mut spec: Value) -> Value {
    spec["tolerations"] = json!([{"operator": "Exists"}]);
    placement(namespace, name, spec)
}

fn set_of(hub: &Cluster, cluster: &str) -> Option<String> {
    object(hub, &["managedcluster", cluster])["metadata"]["labels"][SET].as_str().map(str::to_owned)
}

/// What somebody has written of an object: the hub counts clusters in the status of a set at any time.
fn written(hub: &Cluster, words: &[&str]) -> [Option<Value>; 4] {
    let object = object(hub, words);
    ["/spec", "/metadata/uid", "/metadata/labels", "/metadata/annotations"].map(|at| object.pointer(at).cloned())
}

fn is_there(hub: &Cluster, words: &[&str]) -> bool {
    hub.kubectl(&[&["get"], words].concat()).is_ok()
}

/// The clusters of a story are on the hub, in the set default, and the hub has given them its taint.
fn registered(hub: &Cluster, clusters: &[Value]) {
    apply_all_client_side(hub, "objects", clusters);
    for cluster in clusters {
        let name = cluster["metadata"]["name"].as_str().expect("a name");
        assert_eq!(set_of(hub, name).as_deref(), Some("default"), "the hub's webhook puts it there");
        until_within(
            SLOW,
            "the hub gives a cluster of which nothing was heard a taint",
            || object(hub, &["managedcluster", name]).to_string(),
            || object(hub, &["managedcluster", name])["spec"]["taints"].to_string().contains("unreachable"),
        );
    }
}

struct As(PathBuf);

impl As {
    fn clusterset(&self, words: &[&str]) -> Said {
        run(kubectl_ocm("clusterset", &self.0).args(words))
    }

    fn get(&self, words: &[&str]) -> Said {
        run(kubectl_ocm("get", &self.0).args(words))
    }

    /// It is told what a placement lacks, and nothing is missed on the way.
    fn why(&self, namespace: &str, name: &str, why: &str) {
        let words = ["placements", name, "--namespace", namespace, "--output=json"];
        until_within(
            SLOW,
            why,
            || format!("{:?}", self.get(&words)),
            || {
                let said = self.get(&words);
                assert!(said.code == Some(0) && said.stderr.is_empty(), "{said:?}");
                let told: Value = serde_json::from_str(&said.stdout).expect("JSON");
                told["standing"]["why"].as_str().unwrap_or_default().contains(why)
            },
        );
    }

    /// A placement selects these clusters, and as many as it is to.
    fn selects(&self, namespace: &str, name: &str, clusters: &[&str]) {
        let words = ["placements", name, "--namespace", namespace, "--output=json"];
        until_within(
            SLOW,
            "it selects them",
            || format!("{clusters:?} {:?}", self.get(&words)),
            || {
                let told: Value = serde_json::from_str(&self.get(&words).stdout).expect("JSON");
                told["standing"]["clusters"] == json!(clusters) && told["standing"]["why"].is_null()
            },
        );
    }
}

fn ends(said: &Said, code: i32, words: &[&str]) {
    assert_eq!(said.code, Some(code), "{words:?}: {said:?}");
    for word in words {
        assert!(said.stdout.contains(word) || said.stderr.contains(word), "no {word:?} in {said:?}");
    }
}

/// A list that is watched, and the file that it writes.
struct Watch {
    child: Child,
    file: PathBuf,
}

impl Watch {
    fn start(kubeconfig: &Path, hub: &Cluster, words: &[&str]) -> Self {
        let file = hub.dir().expect("a folder").join(format!("{}.watched", words[0]));
        let out = Stdio::from(File::create(&file).expect("a file"));
        let mut command = kubectl_ocm("get", kubeconfig);
        let child = command.args(words).arg("--watch").stdout(out).stderr(Stdio::null()).spawn().expect("it starts");
        Self { child, file }
    }

    fn tells(&self, what: &str, is: impl Fn(&[&str]) -> bool) {
        let said = || std::fs::read_to_string(&self.file).expect("it can be read");
        until_within(SLOW, what, said, || said().lines().any(|line| is(&line.split_whitespace().collect::<Vec<_>>())));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn sets_are_made_filled_bound_and_deleted() {
    let _alone = alone();
    let hub = hub();
    let setter = As(user_with(hub, "setter", &["clusterset.yaml"]));
    let viewer = As(user_with(hub, "set-viewer", &["get.yaml"]));
    registered(hub, &[cluster("s1", "sets", "prod"), cluster("s2", "sets", "dev"), cluster("s3", "other", "dev")]);
    let watch = Watch::start(&viewer.0, hub, &["clustersets"]);

    // Made, once.
    for how in ["--dry-run", "--dry-run=server"] {
        ends(&setter.clusterset(&["create", "prod", how]), 0, &["/prod created ("]);
        assert!(!is_there(hub, &["managedclusterset", "prod"]), "{how}");
    }
    ends(&setter.clusterset(&["create", "prod", "staging"]), 0, &["/prod created", "/staging created"]);
    let before = written(hub, &["managedclusterset", "prod"]);
    ends(&setter.clusterset(&["create", "prod"]), 0, &["/prod unchanged"]);
    assert_eq!(written(hub, &["managedclusterset", "prod"]), before);
    let global = written(hub, &["managedclusterset", "global"]);
    ends(&setter.clusterset(&["create", "global"]), 0, &["/global stays as it is", "by labels"]);
    assert_eq!(written(hub, &["managedclusterset", "global"]), global);
    ends(&setter.clusterset(&["create", "Prod"]), 2, &["cannot be the name of a set"]);

    // Filled, out of the set default without a question, as nothing is lost by that.
    for how in ["--dry-run", "--dry-run=server"] {
        ends(&setter.clusterset(&["set", "prod", "s1", how]), 0, &["/s1 configured ("]);
        assert_eq!(set_of(hub, "s1").as_deref(), Some("default"), "{how}");
    }
    ends(&setter.clusterset(&["set", "prod", "s1", "--clusters=s2"]), 0, &["/s1 configured", "/s2 configured"]);
    let before = written(hub, &["managedcluster", "s1"]);
    ends(&setter.clusterset(&["set", "prod", "-l", "story=sets"]), 0, &["/s1 unchanged", "/s2 unchanged"]);
    assert_eq!(written(hub, &["managedcluster", "s1"]), before);
    ends(&setter.clusterset(&["set", "prod", "-l", "story=none"]), 0, &["no cluster has such labels"]);
    ends(&setter.clusterset(&["set", "prod"]), 2, &["which clusters?", "-l SELECTOR"]);
    ends(&setter.clusterset(&["set", "prod", "s11"]), 1, &["no managed cluster \"s11\"", "did you mean s1?"]);
    ends(&setter.clusterset(&["set", "prodd", "s1"]), 1, &["no set of clusters \"prodd\"", "did you mean prod?"]);
    ends(&setter.clusterset(&["set", "global", "s1", "--yes"]), 3, &["chooses its clusters by labels"]);
    ends(&setter.clusterset(&["unset", "default", "s3", "--yes"]), 3, &["only for another one"]);
    watch.tells("the watch tells that clusters are in the set", |cells| {
        matches!(cells, ["prod", "2", "False", "ExclusiveClusterSetLabel", ..])
    });

    // Listed: the clusters of a set, also of one that chooses them by labels, and what belongs to what.
    let names = |words: &[&str]| {
        let said = viewer.get(&[&["clusters", "--output=name"], words].concat());
        ends(&said, 0, &[]);
        said.stdout.lines().filter_map(|line| line.rsplit('/').next().map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(names(&["--cluster-set=prod"]), ["s1", "s2"]);
    assert_eq!(names(&["--clusterset=prod", "-l", "env=dev"]), ["s2"]);
    assert_eq!(names(&["--cluster-set=global", "-l", "story=other"]), ["s3"]);
    assert!(names(&["--cluster-set=staging"]).is_empty());
    ends(&viewer.get(&["clusters", "--cluster-set=staging"]), 0, &["no such cluster is in set staging"]);
    let said = viewer.get(&["clusters", "--cluster-set=prodd"]);
    ends(&said, 1, &["no set of clusters \"prodd\"", "did you mean prod?"]);
    ends(&viewer.get(&["clustersets", "prod", "--output=tree"]), 0, &["CLUSTERS (2)", "├── s1\n", "└── s2\n"]);
    ends(&viewer.get(&["clusters", "s1", "--output=tree"]), 0, &["s1  ", "├── CLUSTERSET: prod"]);

    // Namespaces that it manages: the hub tells the agents of its clusters.
    let managed = || object(hub, &["managedclusterset", "prod"])["spec"]["managedNamespaces"].clone();
    for how in ["--dry-run", "--dry-run=server"] {
        ends(&setter.clusterset(&["set", "prod", "--namespaces=team-m", how]), 0, &["/prod configured ("]);
        assert!(managed().is_null(), "{how}");
    }
    ends(&setter.clusterset(&["set", "prod", "--namespaces=team-m,team-o"]), 0, &["/prod configured"]);
    let before = written(hub, &["managedclusterset", "prod"]);
    ends(&setter.clusterset(&["set", "prod", "s1", "--namespaces=team-o"]), 0, &["/prod unchanged", "/s1 unchanged"]);
    assert_eq!(written(hub, &["managedclusterset", "prod"]), before);
    let told = || object(hub, &["managedcluster", "s2"])["status"]["managedNamespaces"].to_string();
    until_within(SLOW, "the hub tells the agents", told, || told().contains("team-m") && told().contains("team-o"));
    let said = setter.clusterset(&["unset", "prod", "--namespaces=team-m,nowhere", "--output=json"]);
    ends(&said, 0, &[]);
    let document: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!(document["managedNamespaces"], json!(["team-o"]), "{document}");
    assert_eq!(managed(), json!([{"name": "team-o"}]));
    ends(&viewer.get(&["clustersets", "prod", "-o", "tree"]), 0, &["MANAGED NAMESPACES (1)", "team-o"]);
    ends(&setter.clusterset(&["set", "prod", "--namespaces=Team"]), 2, &["cannot be the name of a namespace"]);
    ends(&setter.clusterset(&["set", "prodd", "--namespaces=a"]), 1, &["no set of clusters \"prodd\""]);

    // Bound, to namespaces that are there, or are to be made.
    ends(&setter.clusterset(&["bind", "prod", "-n", "team-s"]), 1, &["no namespace \"team-s\"", "--create-namespace"]);
    let make = ["bind", "prod", "-n", "team-s,default", "--create-namespace"];
    for how in ["--dry-run", "--dry-run=server"] {
        ends(&setter.clusterset(&[&make[..], &[how]].concat()), 0, &["namespace/team-s created ("]);
        assert!(!is_there(hub, &["namespace", "team-s"]), "{how}");
    }
    ends(&setter.clusterset(&make), 0, &["namespace/team-s created", "/prod created"]);
    let before = written(hub, &["managedclustersetbinding", "prod", "--namespace=team-s"]);
    ends(&setter.clusterset(&["bind", "prod", "--namespace=team-s"]), 0, &["/prod unchanged"]);
    assert_eq!(written(hub, &["managedclustersetbinding", "prod", "--namespace=team-s"]), before);
    watch.tells("the watch tells of bindings", |cells| cells.ends_with(&["default,", "team-s"]));

    // What a placement would lose is told, and somebody has to agree.
    apply_all_client_side(hub, "objects", &[tolerant("team-s", "web", json!({}))]);
    viewer.selects("team-s", "web", &["s1", "s2"]);
    let lost = "placement team-s/web selects s1 no longer";
    ends(&setter.clusterset(&["set", "staging", "s1"]), 2, &[lost, "cannot prompt", "--yes"]);
    for how in ["--dry-run", "--dry-run=server"] {
        ends(&setter.clusterset(&["set", "staging", "s1", how]), 0, &[lost, "/s1 configured ("]);
        assert_eq!(set_of(hub, "s1").as_deref(), Some("prod"), "{how}");
    }
    let said = setter.clusterset(&["set", "staging", "s1", "--yes", "--output=json"]);
    ends(&said, 0, &[]);
    let told: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!(told["lost"], json!([{"placement": "team-s/web", "clusters": ["s1"]}]), "{told}");
    assert_eq!(told["clusters"], json!([{"name": "s1", "from": "prod", "clusterSet": "staging"}]), "{told}");
    viewer.selects("team-s", "web", &["s2"]);
    ends(
        &setter.clusterset(&["unset", "staging", "s1", "s2", "--yes"]),
        0,
        &["s1 is now in set default", "/s2 unchanged"],
    );
    assert_eq!(set_of(hub, "s1").as_deref(), Some("default"));

    // Unbound.
    ends(&setter.clusterset(&["unbind", "prod", "-n", "team-s"]), 2, &["web selects s2 no longer", "cannot prompt"]);
    ends(&setter.clusterset(&["unbind", "prod", "-n", "team-s", "--dry-run"]), 0, &["/prod deleted (dry run)"]);
    ends(&setter.clusterset(&["unbind", "prod", "-n", "team-s", "--yes"]), 0, &["/prod deleted"]);
    ends(&setter.clusterset(&["unbind", "prod", "-n", "team-s"]), 0, &["is not bound to namespace team-s"]);
    viewer.why("team-s", "web", "no set is bound to namespace team-s");

    // Deleted, and only with all that uses it.
    let said = setter.clusterset(&["delete", "prod", "staging", "--yes"]);
    ends(&said, 3, &["the set prod is in use", "in it: s2", "namespaces: default", "--force"]);
    ends(&setter.clusterset(&["delete", "default", "--force", "--yes"]), 3, &["the hub itself creates it"]);
    ends(&setter.clusterset(&["delete", "global", "--yes"]), 3, &["the hub itself creates it"]);
    ends(
        &setter.clusterset(&["delete", "prod", "--force", "--dry-run=server"]),
        0,
        &["/prod deleted (server dry run)"],
    );
    assert!(is_there(hub, &["managedclusterset", "staging"]) && set_of(hub, "s2").as_deref() == Some("prod"));
    ends(&setter.clusterset(&["delete", "prod", "--force"]), 2, &["cannot prompt"]);
    let said = setter.clusterset(&["delete", "prod", "staging", "--force", "--yes"]);
    ends(
        &said,
        0,
        &["/s2 configured", "setbinding.cluster.open-cluster-management.io/prod deleted", "/staging deleted"],
    );
    assert!(!is_there(hub, &["managedclusterset", "prod"]) && set_of(hub, "s2").as_deref() == Some("default"));
    assert!(!is_there(hub, &["managedclustersetbinding", "prod", "--namespace=default"]));
    ends(&setter.clusterset(&["delete", "prod"]), 0, &["the hub has no set of clusters \"prod\""]);
    watch.tells("the watch tells that a set is gone", |cells| matches!(cells, ["prod", .., "(removed)"]));
}

#[test]
fn placements_say_what_keeps_them_from_selecting_more() {
    let _alone = alone();
    let hub = hub();
    let viewer = As(user_with(hub, "placement-viewer", &["get.yaml"]));
    let admin = As(hub.kubeconfig().to_owned());
    registered(hub, &[cluster("w1", "why", "prod"), cluster("w2", "why", "dev")]);
    let prod = |key: &str| json!({"requiredClusterSelector": {"labelSelector": {"matchLabels": {key: "prod"}}}});
    hub.kubectl(&["create", "namespace", "team-w"]).expect("it is made");
    apply_all_client_side(
        hub,
        "objects",
        &[
            placement("team-w", "tainted", json!({})),
            tolerant("team-w", "all", json!({})),
            tolerant("team-w", "none", json!({"predicates": [prod("nowhere")]})),
            tolerant("team-w", "some", json!({"predicates": [prod("env")]})),
            tolerant("team-w", "foreign", json!({"clusterSets": ["why-empty"]})),
            tolerant("team-w", "many", json!({"numberOfClusters": 5})),
            tolerant(
                "team-w",
                "cel",
                json!({"predicates": [{"requiredClusterSelector": {"celSelector": {
                "celExpressions": ["managedCluster.metadata.name == \"w2\""]}}}]}),
            ),
            placement("team-w", "wrong", json!({"tolerations": [{"operator": "Equal"}]})),
        ],
    );
    let watch = Watch::start(&viewer.0, hub, &["placements", "--all-namespaces"]);
    ends(&admin.clusterset(&["create", "why", "why-empty"]), 0, &[]);
    viewer.why("team-w", "all", "no set is bound to namespace team-w");
    ends(&admin.clusterset(&["bind", "why", "--namespace=team-w"]), 0, &[]);
    viewer.why("team-w", "all", "no cluster is in the sets that it may select from (why)");
    // Whoever registers a cluster chooses its labels.
    let stay = "w1, w2 stay where they are: the hub has not accepted them";
    ends(&admin.clusterset(&["set", "why", "-l", "story=why"]), 0, &[stay]);
    assert_eq!(set_of(hub, "w1").as_deref(), Some("default"));
    ends(&admin.clusterset(&["set", "why", "w1", "w2"]), 0, &[]);
    ends(&admin.clusterset(&["set", "why", "-l", "story=why"]), 0, &["/w1 unchanged", "/w2 unchanged"]);

    viewer.selects("team-w", "all", &["w1", "w2"]);
    viewer.selects("team-w", "some", &["w1"]);
    viewer.selects("team-w", "cel", &["w2"]);
    viewer.why(
        "team-w",
        "tainted",
        "2 have taints that it does not tolerate (w1: cluster.open-cluster-management.io/unreachable:NoSelect)",
    );
    viewer.why("team-w", "none", "2 match no predicate (w1: it has no label nowhere)");
    viewer.why(
        "team-w",
        "foreign",
        "of the sets that it names (why-empty) none is bound to namespace team-w, only why",
    );
    viewer.why("team-w", "many", "it wants 5; of 2 clusters in why: all are selected");
    viewer.why("team-w", "wrong", "Misconfigured: TaintToleration");
    watch.tells("the watch tells of placements", |cells| matches!(cells, ["team-w", "all", "True", "2", ..]));

    // As tables, and for each cluster.
    let said = viewer.get(&["placements", "all", "-n", "team-w", "--output=wide", "--no-headers"]);
    ends(&said, 0, &["AllDecisionsScheduled", "0 (2)", "w1, w2"]);
    let said = viewer.get(&["placements", "some", "-n", "team-w", "--explain"]);
    ends(&said, 0, &["it matches no predicate: label env is \"dev\", not \"prod\""]);
    let row = |name: &str| said.stdout.lines().find(|line| line.starts_with(&format!("{name} "))).map(str::to_owned);
    assert!(row("w1").is_some_and(|row| row.contains("True")), "{said:?}");
    assert!(row("w2").is_some_and(|row| row.contains("False")), "{said:?}");
    ends(&viewer.get(&["placements", "--explain", "-n", "team-w"]), 2, &["--explain is about one placement"]);
    let said = viewer.get(&["placements", "all", "-n", "team-w", "--output=tree"]);
    ends(&said, 0, &["team-w/all\n", "├── SATISFIED: True\n", "CLUSTERS (2)", "├── w1\n", "└── w2\n"]);
    ends(&viewer.get(&["placements", "al", "-n", "team-w"]), 1, &["has no placement \"al\"", "did you mean all?"]);
    ends(&viewer.get(&["placements", "-n", "nowhere-w"]), 0, &["--all-namespaces"]);
    let said = viewer.get(&["clustersets", "why", "--output=json"]);
    let told: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!(told["standing"], json!({"clusters": ["w1", "w2"], "namespaces": ["team-w"]}), "{told}");
    ends(&viewer.get(&["clustersets", "wy"]), 1, &["no set of clusters \"wy\"", "did you mean why?"]);

    // Somebody of the namespace alone is told what the placement controller says.
    let words = ["create", "role", "placer", "--namespace=team-w", "--verb=list"];
    hub.kubectl(&[&words[..], &["--resource=placements,placementdecisions"]].concat()).expect("it is made");
    hub.kubectl(&["create", "rolebinding", "placer", "--namespace=team-w", "--role=placer", "--user=placer"])
        .expect("it is made");
    let placer = As(hub.user_kubeconfig("placer", &[]).expect("a user"));
    until_within(SLOW, "the role counts", String::new, || placer.get(&["placements", "-n", "team-w"]).code == Some(0));
    let said = placer.get(&["placements", "none", "-n", "team-w"]);
    ends(&said, 0, &["NoManagedClusterMatched", "WHY is only what the placement controller says"]);
}

#[test]
fn whoever_may_not_join_or_bind_sets_is_told_before_anything_happens() {
    let _alone = alone();
    let hub = hub();
    let admin = As(hub.kubeconfig().to_owned());
    registered(hub, &[cluster("r1", "rights", "prod")]);
    ends(&admin.clusterset(&["create", "rights"]), 0, &[]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "nearly"},
    "rules": [
        {"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclusters", "managedclustersets"],
            "verbs": ["get", "list", "patch"]},
        {"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclustersetbindings"],
            "verbs": ["get", "list", "create", "patch"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
    ]});
    apply_all_client_side(hub, "objects", &[role]);
    hub.kubectl(&["create", "clusterrolebinding", "nearly", "--clusterrole=nearly", "--user=nearly"])
        .expect("it is made");
    let nearly = As(hub.user_kubeconfig("nearly", &[]).expect("a user"));
    let (set, bind) = (["set", "rights", "r1", "--yes"], ["bind", "rights", "--namespace=default"]);

    until_within(SLOW, "the role counts", String::new, || !nearly.clusterset(&set).stderr.contains("cannot list"));
    ends(&nearly.clusterset(&set), 1, &["may not create managedclustersets/join", "\"rights\"", "\"default\""]);
    ends(&nearly.clusterset(&bind), 1, &["may not create managedclustersets/bind", "\"rights\""]);
    // The hub's webhooks are asked by a trial on the server.
    let said = nearly.clusterset(&[&set[..], &["--dry-run=server"]].concat());
    ends(&said, 1, &["it cannot be told which placements", "admission on the cluster refused it"]);
    ends(&nearly.clusterset(&[&bind[..], &["--dry-run=server"]].concat()), 1, &["admission on the cluster refused it"]);
    assert_eq!(set_of(hub, "r1").as_deref(), Some("default"));
    assert!(!is_there(hub, &["managedclustersetbinding", "rights", "--namespace=default"]));

    // The rights to join both sets are what is missing.
    let join = [
        "create",
        "clusterrole",
        "joins",
        "--verb=create",
        "--resource=managedclustersets.cluster.open-cluster-management.io/join",
    ];
    hub.kubectl(&[&join[..], &["--resource-name=rights", "--resource-name=default"]].concat()).expect("it is made");
    hub.kubectl(&["create", "clusterrolebinding", "joins", "--clusterrole=joins", "--user=nearly"])
        .expect("it is made");
    until_within(SLOW, "the rights count", String::new, || nearly.clusterset(&set).code == Some(0));
    assert_eq!(set_of(hub, "r1").as_deref(), Some("rights"));
}
