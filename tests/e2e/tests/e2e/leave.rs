//! `kubectl ocm unjoin` and `kubectl ocm detach` on real clusters: a cluster leaves from either side, and nothing of it stays.
//!
//! `cargo test -p e2e-tests --test e2e leave::`; it needs root.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use cli_tests::Cli;
use cli_tests::terminal::Terminal;
use control_plane::{Cluster, Spec};
use e2e_tests::join_support::{JoinCommand, alone, hub, hub_access, join};
use e2e_tests::manifests::apply_client_side;
use e2e_tests::residue::{nothing_stays, sweep};
use e2e_tests::roles::user_with;
use e2e_tests::shared_hub::node;
use e2e_tests::{Said, ended, kubectl_ocm, object, run, start, until_within};
use serde_json::{Value, json};

/// How long agents may take to start or to end: a pod that is asked to end while it starts gets half a minute alone for that.
const SLOW: Duration = Duration::from_secs(90);

/// A work that puts a ConfigMap of its name into the namespace `default` of a cluster.
fn work(hub: &Cluster, cluster: &str, name: &str, priority: &str) {
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}});
    apply_client_side(
        hub,
        name,
        &json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": {"name": name, "namespace": cluster, "annotations": {"open-cluster-management.io/cleanup-priority": priority}},
            "spec": {"workload": {"manifests": [manifest]}},
        }),
    );
}

fn has(cluster: &Cluster, kind: &str, name: &str) -> bool {
    cluster.kubectl(&["get", kind, name, "--namespace=default"]).is_ok()
}

fn joined(cluster: &Cluster, name: &str) {
    let said = join(cluster, name, &[hub_access(hub()).as_str(), "--accept", "--wait", "--timeout=3m"]);
    assert_eq!(said.code, Some(0), "{said:?}");
}

fn unjoin<S: AsRef<std::ffi::OsStr>>(cluster: &Cluster, flags: &[S]) -> Said {
    run(kubectl_ocm("unjoin", cluster.kubeconfig()).args(flags))
}

fn detach(flags: &[&str]) -> Said {
    run(kubectl_ocm("detach", hub().kubeconfig()).args(flags))
}

/// Refused with this exit code and these words, and nothing is different on either side.
fn nothing_happens(cluster: &Cluster, code: i32, words: &[&str], command: impl FnOnce() -> Said) {
    let before = (sweep(cluster), sweep(hub()));
    let said = command();
    assert_eq!(said.code, Some(code), "{words:?}: {said:?}");
    for word in words {
        assert!(said.stderr.contains(word), "no {word:?} in {}", said.stderr);
    }
    assert_eq!((sweep(cluster), sweep(hub())), before, "{said:?}");
}

/// The registration agent and the work agent are there no more, and nobody starts them again.
fn agents_end(cluster: &Cluster) {
    let none = |namespace: &str, name: &str| {
        cluster
            .kubectl(&["scale", "deployment", name, "--replicas=0", "--namespace", namespace])
            .expect("it is scaled");
        until_within(SLOW, "the pods end", String::new, || {
            let left = cluster.kubectl(&["get", "pods", "--namespace", namespace, "--output=name"]);
            left.is_ok_and(|left| !left.contains(&format!("pod/{name}-")))
        });
    };
    none("open-cluster-management", "klusterlet");
    none("open-cluster-management-agent", "klusterlet-registration-agent");
    none("open-cluster-management-agent", "klusterlet-work-agent");
}

/// The hub stops to believe in the agent sooner than usual.
fn short_lease(name: &str) {
    let patch = r#"{"spec":{"leaseDurationSeconds":1}}"#;
    hub().kubectl(&["patch", "managedcluster", name, "--type=merge", "--patch", patch]).expect("it is patched");
    sleep(Duration::from_secs(3));
}

/// What a cluster without a node holds when its controllers have made what is theirs: it is ready before they have.
fn at_rest(cluster: &Cluster) -> BTreeSet<String> {
    let mut last = sweep(cluster);
    until_within(SLOW, "its controllers have begun", String::new, || {
        sleep(Duration::from_secs(2));
        let now = sweep(cluster);
        let have_begun = ["default", "kube-system"]
            .iter()
            .all(|namespace| now.contains(&format!("ServiceAccount {namespace} default")));
        let is_at_rest = have_begun && now == last;
        last = now;
        is_at_rest
    });
    last
}

/// Makes a namespace that is being deleted and does not go, until what is returned lets it.
fn hold(cluster: &Cluster, namespace: &str) -> impl FnOnce() {
    cluster.kubectl(&["create", "namespace", namespace]).expect("it is made");
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "held", "namespace": namespace, "finalizers": ["example.com/held"]}});
    apply_client_side(cluster, "held", &held);
    cluster.kubectl(&["delete", "namespace", namespace, "--wait=false"]).expect("it is being deleted");
    move || {
        let within = format!("--namespace={namespace}");
        let patch = r#"{"metadata":{"finalizers":null}}"#;
        cluster.kubectl(&["patch", "configmap", "held", &within, "--type=merge", "--patch", patch]).expect("patched");
        let named = format!("namespace/{namespace}");
        cluster.kubectl(&["wait", "--for=delete", &named, "--timeout=60s"]).expect("it goes");
    }
}

/// What the work `early` has put there stays for as long as somebody holds it, until what is returned lets it go.
fn held_by_somebody(cluster: &Cluster) -> impl FnOnce() {
    let hold = move |finalizers: Value| {
        let patch = json!({"metadata": {"finalizers": finalizers}}).to_string();
        let object = ["patch", "configmap", "early", "--namespace=default"];
        cluster.kubectl(&[&object[..], &["--type=merge", "--patch", &patch]].concat()).expect("it is patched");
    };
    hold(json!(["example.com/held"]));
    move || hold(Value::Null)
}

/// Of the works of `leaving`, each goes once those of lower priority are gone. The command is killed while it waits for the second
/// one, and works go on without it.
fn works_go_in_the_order_of_their_cleanup_priority(cluster: &Cluster, mut leaves: Command, release: impl FnOnce()) {
    // None: it is not there any more.
    let is_leaving = |name: &str| -> Option<bool> {
        let path = "--output=jsonpath={.metadata.deletionTimestamp}";
        let time = hub().kubectl(&["get", "manifestwork", name, "--namespace=leaving", path]).ok()?;
        Some(!time.trim().is_empty())
    };
    let mut leaves = start(&mut leaves);
    until_within(SLOW, "the second one goes", String::new, || is_leaving("early") == Some(true));
    assert_eq!((is_leaving("zero"), has(cluster, "configmap", "zero")), (None, false));
    // The hub looks again and again in this time, and so does the command.
    sleep(Duration::from_secs(10));
    assert_eq!((is_leaving("early"), is_leaving("late")), (Some(true), Some(false)));
    assert!(has(cluster, "configmap", "late"));
    leaves.kill().expect("it still waits");
    let said = ended(leaves);
    assert!(said.stderr.contains("2 works to go, now work \"early\""), "{said:?}");
    release();
    // The agent tries again later and later.
    until_within(SLOW * 2, "the last one goes", String::new, || is_leaving("late").is_none());
    assert!(!has(cluster, "configmap", "early") && !has(cluster, "configmap", "late"));
}

#[test]
fn with_access_to_both_a_cluster_leaves_and_nothing_stays_on_either() {
    let _alone = alone();
    let hub = hub();
    let cluster = node();
    let access = hub_access(hub);
    let before = (sweep(&cluster), sweep(hub));
    // What is created in a namespace that is being deleted would go with it.
    let release = hold(&cluster, "open-cluster-management");
    let said = join(&cluster, "leaving", &[&access, "--timeout=3s"]);
    assert_eq!(said.code, Some(124), "{said:?}");
    assert!(said.stderr.contains("until namespace open-cluster-management of the earlier agent is gone"), "{said:?}");
    let said = join(&cluster, "leaving", &[&access, "--dry-run=server"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("namespace/open-cluster-management is being deleted"), "{said:?}");
    release();
    nothing_stays(&cluster, &before.0);
    joined(&cluster, "leaving");
    let works = [("late", "90"), ("early", "5"), ("zero", "0")];
    works.iter().for_each(|(name, priority)| work(hub, "leaving", name, priority));
    until_within(SLOW, "works are applied", String::new, || {
        works.iter().all(|(name, _)| has(&cluster, "configmap", name))
    });

    // Nothing of it is begun without the hub, with another one, for another cluster, or as a trial.
    let kubeconfig = cluster.kubeconfig();
    let no_hub = ["works of the hub have put objects", "early, late", "--works=delete", "kubectl ocm detach leaving"];
    nothing_happens(&cluster, 3, &no_hub, || unjoin(&cluster, &["leaving", "--yes"]));
    nothing_happens(&cluster, 3, &["no Klusterlet of cluster \"other\"", "of cluster \"leaving\""], || {
        unjoin(&cluster, &["other", "--yes", &access])
    });
    // Another cluster, on which no pod ever runs.
    let wrong = Cluster::start(&Spec::api("wrong")).expect("a cluster");
    let before_wrong = at_rest(&wrong);
    nothing_happens(&cluster, 3, &["belongs to the hub at", "not to"], || {
        unjoin(&cluster, &["leaving", "--yes", &hub_access(&wrong)])
    });
    nothing_happens(&cluster, 3, &["is heard of on its hub", "has no Klusterlet"], || {
        unjoin(&wrong, &["leaving", "--yes", &access])
    });
    // One that only says that it is this cluster takes nothing away from it, and leaves alone.
    let said = join(&wrong, "wrong", &[&access]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let patch = r#"{"spec":{"clusterName":"leaving"}}"#;
    wrong.kubectl(&["patch", "klusterlet", "klusterlet", "--type=merge", "--patch", patch]).expect("it is patched");
    let another = ["was not let in under that name", "it is another one", "hub-kubeconfig-secret names no cluster"];
    nothing_happens(&cluster, 3, &another, || unjoin(&wrong, &["leaving", "--yes", &access]));
    let said = unjoin(&wrong, &["leaving", "--yes"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("namespace/open-cluster-management-agent deleted"), "{said:?}");
    nothing_stays(&wrong, &before_wrong);
    for how in ["--dry-run", "--dry-run=server"] {
        nothing_happens(&cluster, 0, &[], || {
            let said = unjoin(&cluster, &["leaving", &access, how]);
            for row in [
                "managedcluster",
                "manifestwork",
                "klusterlet",
                "deployment.apps/klusterlet",
                "certificatesigningrequest",
            ] {
                assert!(said.stdout.contains(row), "no {row} in {said:?}");
            }
            said
        });
    }
    nothing_happens(&cluster, 2, &["cannot prompt", "--yes"], || unjoin(&cluster, &["leaving", &access]));
    let mut terminal = Terminal::run(
        &Cli::new(),
        &cli_tests::binary("kubectl-ocm-unjoin"),
        &["--kubeconfig", kubeconfig.to_str().expect("text"), &access],
    );
    terminal.wait_for("Delete Klusterlet \"klusterlet\" of cluster \"leaving\"");
    terminal.press("n\n");
    let (exit, seen) = terminal.end();
    assert!(exit == 3 && seen.contains("with 3 works") && seen.contains("The operator goes, too."), "{exit}: {seen}");

    // As somebody with the documented rights, killed again and again.
    let on_hub = user_with(hub, "detacher", &["detach.yaml", "leave-namespaces.yaml"]);
    let here = user_with(&cluster, "unjoiner", &["unjoin.yaml", "leave-namespaces.yaml"]);
    let before_users = (sweep(&cluster), sweep(hub));
    assert!(before_users.0.len() > before.0.len());
    let on_hub = format!("--hub-kubeconfig={}", on_hub.display());
    let command = || {
        let mut command = kubectl_ocm("unjoin", &here);
        command.args(["leaving", "--yes", &on_hub]);
        command
    };
    let killed = |after: u64| {
        let mut killed = command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        sleep(Duration::from_millis(after));
        let _ = killed.kill();
        killed.wait().expect("it ends");
    };
    let release = held_by_somebody(&cluster);
    [300, 900].into_iter().for_each(killed);
    works_go_in_the_order_of_their_cleanup_priority(&cluster, command(), release);
    [1_800, 3_500].into_iter().for_each(killed);
    let said = run(&mut command());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(works.iter().all(|(name, _)| !has(&cluster, "configmap", name)), "{said:?}");
    let rights = |all: &BTreeSet<String>| -> BTreeSet<String> {
        let ours = ["kubectl-ocm-unjoin", "kubectl-ocm-detach", "kubectl-ocm-leave-namespaces"];
        all.iter().filter(|line| ours.iter().any(|name| line.contains(name))).cloned().collect()
    };
    let with = |before: &BTreeSet<String>, now: &BTreeSet<String>| before.union(&rights(now)).cloned().collect();
    nothing_stays(&cluster, &with(&before.0, &before_users.0));
    nothing_stays(hub, &with(&before.1, &before_users.1));

    // Once more, there is nothing.
    let said = run(&mut command());
    assert_eq!((said.code, &*said.stdout), (Some(0), ""), "{said:?}");
    assert!(said.stderr.contains("there is no agent"), "{said:?}");

    // And it can come back at once: nobody waits for the lease of the operator that was there.
    let begun = Instant::now();
    joined(&cluster, "leaving");
    assert!(begun.elapsed() < Duration::from_secs(100), "{:?}", begun.elapsed());

    // As somebody leaves it whose run is killed while the operator works: the hub has heard of the agent a moment ago, and
    // nothing on the cluster says any more at which hub and under which name it was let in.
    agents_end(&cluster);
    hub.kubectl(&["delete", "managedcluster", "leaving"]).expect("it is deleted");
    let secrets = ["hub-kubeconfig-secret", "bootstrap-hub-kubeconfig", "--namespace=open-cluster-management-agent"];
    cluster.kubectl(&[&["delete", "secret"][..], &secrets].concat()).expect("they are deleted");
    cluster.kubectl(&["delete", "klusterlet", "klusterlet", "--wait=false"]).expect("it is being deleted");
    let operator = ["scale", "deployment", "klusterlet", "--replicas=1", "--namespace=open-cluster-management"];
    cluster.kubectl(&operator).expect("it is scaled");
    let said = unjoin(&cluster, &["--yes", &access, "--output=json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let document: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!((&document["cluster"], &document["detached"]), (&json!("leaving"), &json!(true)), "{document}");
    assert_eq!(document["operatorDeleted"], true, "{document}");
    // Where nothing says any more what the cluster was called, the same command ends well.
    let said = unjoin(&cluster, &["--yes", &access, "--output=json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("is not looked at unless you name the cluster"), "{said:?}");
}

#[test]
fn each_side_alone_leaves_and_says_what_the_other_has_to_do() {
    let _alone = alone();
    let hub = hub();
    let cluster = node();
    let before = (sweep(&cluster), sweep(hub));

    // The hub's side first, while the agent is there.
    joined(&cluster, "sides");
    work(hub, "sides", "w", "0");
    until_within(SLOW, "the work is applied", String::new, || has(&cluster, "configmap", "w"));
    let works =
        |flags: &[&str]| run(kubectl_ocm("get", hub.kubeconfig()).args(["works", "--clusters=sides"]).args(flags));
    until_within(
        Duration::from_secs(60),
        "the work is told to be there",
        || works(&[]).stdout,
        || works(&["--no-headers"]).stdout.split_whitespace().take(5).eq(["sides", "w", "True", "True", "1/1"]),
    );
    let bad = json!({"apiVersion": "nobody.example/v1", "kind": "Nothing", "metadata": {"name": "n"}});
    apply_client_side(
        hub,
        "bad",
        &json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "bad", "namespace": "sides"}, "spec": {"workload": {"manifests": [bad]}}}),
    );
    until_within(
        Duration::from_secs(60),
        "it is told what a work lacks",
        || works(&["bad"]).stdout,
        || {
            let said = works(&["bad", "--output=json"]);
            said.code == Some(0) && said.stdout.contains("AppliedManifestFailed")
        },
    );
    let unknown = works(&["wx"]);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("did you mean w?"), "{unknown:?}");
    nothing_happens(&cluster, 0, &["would still run"], || detach(&["sides", "--dry-run"]));
    nothing_happens(&cluster, 2, &["cannot be the name"], || detach(&["Sides", "--yes"]));
    let said = detach(&["sides", "nobody", "--yes"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("the hub holds nothing of a cluster \"nobody\""), "{said:?}");
    assert!(said.stderr.contains("kubectl ocm unjoin sides"), "{said:?}");
    assert!(!has(&cluster, "configmap", "w"));
    nothing_stays(hub, &before.1);
    let said = unjoin(&cluster, &["sides", "--yes"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("kubectl ocm detach sides"), "{said:?}");
    nothing_stays(&cluster, &before.0);

    // What is somebody else's stays, on both sides, and is named.
    joined(&cluster, "sides");
    hub.kubectl(&["create", "configmap", "mine", "--namespace=sides"]).expect("it is made");
    cluster.kubectl(&["create", "configmap", "mine", "--namespace=open-cluster-management"]).expect("it is made");
    let said = unjoin(&cluster, &["--yes", &hub_access(hub)]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.stderr.matches("it also holds configmap/mine").count(), 2, "{said:?}");
    assert!(hub.kubectl(&["get", "configmap", "mine", "--namespace=sides"]).is_ok());
    assert!(cluster.kubectl(&["get", "configmap", "mine", "--namespace=open-cluster-management"]).is_ok());
    assert!(hub.kubectl(&["get", "lease", "managed-cluster-lease", "--namespace=sides"]).is_err());
    let said = unjoin(&cluster, &["sides", "--yes", "--purge", &hub_access(hub)]);
    assert_eq!(said.code, Some(0), "{said:?}");
    nothing_stays(&cluster, &before.0);
    nothing_stays(hub, &before.1);

    // A namespace that was there before is its owner's.
    hub.kubectl(&["create", "namespace", "sides"]).expect("it is made");
    let said = join(&cluster, "sides", &[hub_access(hub).as_str(), "--accept", "--wait", "--adopt-namespace"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = unjoin(&cluster, &["--yes", &hub_access(hub)]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("it was there before the cluster"), "{said:?}");
    hub.kubectl(&["delete", "namespace", "sides"]).expect("it goes");
    nothing_stays(hub, &before.1);

    // One that nobody has let in leaves, too.
    let mut flags = JoinCommand::create(hub, &[]).flags();
    flags.push("--wait".to_owned());
    let said = join(&cluster, "sides", &flags);
    assert_eq!(said.code, Some(0), "{said:?}");
    // Somebody makes another Klusterlet while this one goes: that needs the operator.
    let patch = |kind: &str, name: &str, patch: &str| {
        cluster.kubectl(&["patch", kind, name, "--type=merge", "--patch", patch]).expect("it is patched");
    };
    let own = cluster.kubectl(&["get", "klusterlet", "klusterlet", "--output=jsonpath={.metadata.finalizers}"]);
    let mut finalizers: Vec<String> = serde_json::from_str(&own.expect("it is there")).expect("JSON");
    finalizers.push("example.com/held".to_owned());
    patch("klusterlet", "klusterlet", &json!({"metadata": {"finalizers": finalizers}}).to_string());
    let leaves = start(kubectl_ocm("unjoin", cluster.kubeconfig()).args(["--yes", &hub_access(hub)]));
    until_within(SLOW, "only the finalizer of somebody else is left", String::new, || {
        let left = cluster.kubectl(&["get", "klusterlet", "klusterlet", "--output=jsonpath={.metadata.finalizers}"]);
        left.is_ok_and(|left| left.trim() == r#"["example.com/held"]"#)
    });
    apply_client_side(
        &cluster,
        "second",
        &json!({"apiVersion": "operator.open-cluster-management.io/v1", "kind": "Klusterlet",
            "metadata": {"name": "second"}, "spec": {"clusterName": "second", "namespace": "open-cluster-management-second"}}),
    );
    patch("klusterlet", "klusterlet", r#"{"metadata":{"finalizers":null}}"#);
    let said = ended(leaves);
    assert_eq!(said.code, Some(0), "{said:?}");
    let told = "somebody has made Klusterlet \"second\" meanwhile: the operator stays";
    assert!(said.stderr.contains(told), "{said:?}");
    assert!(cluster.kubectl(&["get", "deployment", "klusterlet", "--namespace=open-cluster-management"]).is_ok());
    // What has gone cannot be named again, and it is told where its hub may still know it.
    let said = unjoin(&cluster, &["sides", "--yes"]);
    assert!(said.code == Some(3) && said.stderr.contains("kubectl ocm detach sides"), "{said:?}");
    let said = unjoin(&cluster, &["second", "--yes"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    nothing_stays(&cluster, &before.0);
    nothing_stays(hub, &before.1);
}

/// The hub does not exist for it: nobody has its works removed.
#[test]
fn without_its_hub_a_cluster_leaves_and_takes_along_what_works_have_put_there() {
    let _alone = alone();
    let hub = hub();
    let cluster = node();
    let before = (sweep(&cluster), sweep(hub));
    joined(&cluster, "alone");
    work(hub, "alone", "gone", "0");
    until_within(SLOW, "the work is applied", String::new, || has(&cluster, "configmap", "gone"));
    let said = unjoin(&cluster, &["alone", "--yes", "--works=delete"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("kubectl ocm detach alone"), "{said:?}");
    assert!(!has(&cluster, "configmap", "gone"), "{said:?}");
    nothing_stays(&cluster, &before.0);
    // The hub still believes in its agent, which gets its time.
    let said = detach(&["alone", "--yes", "--timeout=3s"]);
    assert_eq!(said.code, Some(124), "{said:?}");
    assert!(said.stderr.contains("1 work to go, now work \"gone\""), "{said:?}");
    let said = detach(&["alone", "--yes", "--force", "--timeout=10s"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("off work \"gone\""), "{said:?}");
    nothing_stays(hub, &before.1);
}

#[test]
fn what_nobody_is_there_to_clean_up_goes_by_force_alone() {
    let _alone = alone();
    let hub = hub();
    let cluster = node();
    let before = (sweep(&cluster), sweep(hub));
    joined(&cluster, "silent");
    work(hub, "silent", "left", "0");
    until_within(SLOW, "the work is applied", String::new, || has(&cluster, "configmap", "left"));
    agents_end(&cluster);
    short_lease("silent");
    let words = ["has not been heard of", "1 work", "manifest-work-cleanup", "--force", "nothing was deleted"];
    nothing_happens(&cluster, 3, &words, || detach(&["silent", "--yes"]));
    nothing_happens(&cluster, 3, &words, || unjoin(&cluster, &["--yes", &hub_access(hub)]));
    let said = detach(&["silent", "--yes", "--force"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let told = "took cluster.open-cluster-management.io/manifest-work-cleanup off work \"left\"";
    assert!(said.stderr.contains(told), "{said:?}");
    nothing_stays(hub, &before.1);
    assert!(has(&cluster, "configmap", "left"));

    // The operator is there and does not run: it is waited for, and then it is told.
    let said = unjoin(&cluster, &["silent", "--yes", "--works=keep", "--timeout=3s"]);
    assert_eq!(said.code, Some(124), "{said:?}");
    assert!(said.stderr.contains("is not ready: its Deployment is scaled to no pods"), "{said:?}");
    cluster.kubectl(&["delete", "deployment", "klusterlet", "--namespace=open-cluster-management"]).expect("it goes");
    nothing_happens(&cluster, 3, &["waits for the operator, which is not there", "--force"], || {
        unjoin(&cluster, &["silent", "--yes", "--works=keep"])
    });
    let said = unjoin(&cluster, &["silent", "--yes", "--works=keep", "--force"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(has(&cluster, "configmap", "left"), "{said:?}");
    let owners = cluster.kubectl(&["get", "configmap", "left", "--output=jsonpath={.metadata.ownerReferences}"]);
    assert_eq!(owners.expect("it is there").trim(), "");
    cluster.kubectl(&["delete", "configmap", "left"]).expect("it goes");
    nothing_stays(&cluster, &before.0);
}

#[test]
fn a_hub_becomes_a_plain_cluster_again() {
    let hub = node();
    // Somebody else's, with a label that operators give to what is theirs.
    let theirs = ["secret", "theirs", "--namespace=kube-system"];
    hub.kubectl(&["create", "secret", "generic", "theirs", "--namespace=kube-system"]).expect("it is made");
    hub.kubectl(&[&["label"], &theirs[..], &["app=cluster-manager"]].concat()).expect("it is labelled");
    let before = sweep(&hub);
    let uninstall = |flags: &[&str]| run(kubectl_ocm("uninstall", hub.kubeconfig()).arg("hub").args(flags));
    let refused = |flags: &[&str], words: &[&str]| {
        let before = sweep(&hub);
        let said = uninstall(flags);
        assert_eq!(said.code, Some(3), "{said:?}");
        assert!(words.iter().all(|word| said.stderr.contains(word)), "{words:?}: {said:?}");
        // The hub may still make something, and takes away what agents need once there is no managed cluster any more. Upstream:
        // `clusterrole` of the registration controller.
        let after = sweep(&hub);
        let of_agents = |line: &&String| line.contains("open-cluster-management:managedcluster:");
        let gone: Vec<_> = before.difference(&after).filter(|line| !of_agents(line)).collect();
        assert!(gone.is_empty(), "{gone:?} {said:?}");
    };
    let bundle = format!("--bundle-version={}", e2e_tests::bundle());
    let install = |what: &[&str]| {
        let said = run(kubectl_ocm("install", hub.kubeconfig()).args(what));
        assert_eq!(said.code, Some(0), "{said:?}");
    };
    install(&["hub", "--wait", &bundle]);
    // A hub that has lost its ClusterManager is left to nobody: no operator would take away what is in it.
    let scale = |replicas: &str| {
        let many = format!("--replicas={replicas}");
        hub.kubectl(&["scale", "deployment", "cluster-manager", "--namespace=open-cluster-management", &many])
            .expect("it is scaled");
    };
    scale("0");
    until_within(SLOW, "the operator ends", String::new, || {
        let pods =
            ["get", "pods", "--namespace=open-cluster-management", "--selector=app=cluster-manager", "--output=name"];
        hub.kubectl(&pods).is_ok_and(|names| names.trim().is_empty())
    });
    let forget = r#"{"metadata": {"finalizers": null}}"#;
    hub.kubectl(&["patch", "clustermanager", "cluster-manager", "--type=merge", "--patch", forget]).expect("patched");
    hub.kubectl(&["delete", "clustermanager", "cluster-manager"]).expect("it goes");
    let words = ["there is no ClusterManager", "\"open-cluster-management-hub\" of a hub", "nothing was deleted"];
    refused(&["--yes"], &[&words[..], &["kubectl ocm install hub"]].concat());
    refused(&["--dry-run"], &words);
    scale("1");
    install(&["hub", "--wait", &bundle]);
    // A run that was killed left it to an operator that is gone: nothing is upgraded, and the hub is made anew when that has
    // come to its end.
    let uid = || object(&hub, &["clustermanager", "cluster-manager"])["metadata"]["uid"].clone();
    let former = uid();
    let operator = ["deployment", "cluster-manager", "--namespace=open-cluster-management", "--cascade=foreground"];
    hub.kubectl(&[&["delete"], &operator[..], &["--wait"]].concat()).expect("it goes");
    hub.kubectl(&["delete", "clustermanager", "cluster-manager", "--wait=false"]).expect("it is being deleted");
    let said = run(kubectl_ocm("upgrade", hub.kubeconfig()).args(["hub", &bundle]));
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.stderr.contains("ClusterManager \"cluster-manager\" is being deleted"), "{said:?}");
    let said = run(kubectl_ocm("install", hub.kubeconfig()).args(["hub", "--dry-run=server", &bundle]));
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("cluster-manager is being deleted"), "{said:?}");
    let said = run(kubectl_ocm("install", hub.kubeconfig()).args(["hub", "--wait", &bundle]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("it is put back first"), "{said:?}");
    assert_ne!(uid(), former);
    install(&["baseline", "--wait"]);
    let said =
        run(kubectl_ocm("token", hub.kubeconfig()).args(["create", "--kind=bootstrap", "--cluster-set=default"]));
    assert_eq!(said.code, Some(0), "{said:?}");

    // What is attached to it is in the way, each for itself.
    for name in ["attached", "second"] {
        let cluster = json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": name}, "spec": {}});
        apply_client_side(&hub, name, &cluster);
    }
    apply_client_side(
        &hub,
        "set",
        &json!({"apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSet",
        "metadata": {"name": "mine"}, "spec": {}}),
    );
    refused(
        &["--yes", "--purge"],
        &[
            "2 managed clusters are attached",
            "attached, second; nothing was deleted",
            "kubectl ocm detach attached second",
        ],
    );
    let said = run(kubectl_ocm("detach", hub.kubeconfig()).args(["attached", "second", "--yes"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    refused(&["--yes", "--purge"], &["the baseline of kubectl-ocm", "kubectl ocm uninstall baseline"]);
    let said = run(kubectl_ocm("uninstall", hub.kubeconfig()).args(["baseline", "--yes", "--wait"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    refused(&["--yes"], &["1 managedclustersets", "--purge"]);
    hub.kubectl(&["delete", "managedclusterset", "mine"]).expect("it goes");

    for how in ["--dry-run", "--dry-run=server"] {
        let before = sweep(&hub);
        let said = uninstall(&[how]);
        assert!(said.code == Some(0) && said.stdout.contains("clustermanager.operator"), "{said:?}");
        assert_eq!(sweep(&hub), before, "{said:?}");
    }
    let user = user_with(&hub, "uninstaller", &["uninstall-hub.yaml", "leave-namespaces.yaml"]);
    let rights: BTreeSet<String> = sweep(&hub).into_iter().filter(|line| line.contains("kubectl-ocm-")).collect();
    for after in [300, 1_500] {
        let mut command = kubectl_ocm("uninstall", &user);
        command.args(["hub", "--yes"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut killed = command.spawn().expect("it starts");
        sleep(Duration::from_millis(after));
        let _ = killed.kill();
        killed.wait().expect("it ends");
    }
    let said = run(kubectl_ocm("uninstall", &user).args(["hub", "--yes"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    nothing_stays(&hub, &before.union(&rights).cloned().collect());
    let said = uninstall(&["--yes"]);
    assert!(said.code == Some(0) && said.stderr.contains("there is no hub"), "{said:?}");
    assert_eq!(said.stdout, "");
}

/// Joins `guest` with its agent on `host`, as users with the documented rights.
fn hosted(host: &Path, guest: &Path, words: &[&str]) -> Said {
    let managed = format!("--managed-kubeconfig={}", guest.display());
    let bundle = e2e_tests::bundle();
    let mut command = kubectl_ocm("join", host);
    command.args(["guest", "--mode=hosted", "--singleton", &managed, &hub_access(hub()), "--bundle-version", bundle]);
    run(command.arg("--resource-qos-class=BestEffort").args(words))
}

/// The token with which the operator on `host` manages the hosted cluster.
fn operators_token(host: &Cluster) -> String {
    let secret = ["get", "secret", "external-managed-kubeconfig", "--namespace=klusterlet-hosted-guest"];
    let text = host.kubectl(&[&secret[..], &["--output=jsonpath={.data.kubeconfig}"]].concat()).expect("it is there");
    let text = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text.trim()).expect("base64");
    let text = String::from_utf8(text).expect("text");
    let token = text.lines().find_map(|line| line.trim().strip_prefix("token: "));
    token.expect("it has a token").trim_matches('"').to_owned()
}

fn lets_in(cluster: &Cluster, token: &str) -> bool {
    let config = cluster.dir().expect("a folder").join("of-token.kubeconfig");
    std::fs::write(&config, e2e_tests::accept_support::token_kubeconfig(cluster, token)).expect("written");
    let mut kubectl = cluster.kubectl_command();
    let flag = format!("--kubeconfig={}", config.display());
    run(kubectl.args([flag.as_str(), "get", "namespaces"])).code == Some(0)
}

/// Joins `guest` again, as a user who may have a pod beside the operator look: with a warning as long as the operator's Deployment
/// leads by a proxy that is not there, and then without. It leaves again.
fn what_pods_of_the_hosting_cluster_do_not_reach_is_told(host: &Cluster, guest: &Cluster, managing: &Path) {
    let of_operator = |words: &[&str]| {
        let said = host.kubectl(&[words, &["--namespace=open-cluster-management"]].concat());
        said.expect("it is done in the operator's namespace")
    };
    let looking = user_with(host, "hosting", &["join-hosted-look.yaml"]);
    // The operator itself goes on as it is.
    of_operator(&["rollout", "pause", "deployment/klusterlet"]);
    let node = host.server().trim_start_matches("https://").split(':').next().expect("an address");
    of_operator(&["set", "env", "deployment/klusterlet", &format!("HTTPS_PROXY=http://{node}:1")]);
    let said = hosted(&looking, managing, &["--dry-run=server"]);
    assert!(said.code == Some(0) && !said.stderr.contains("having a pod"), "a dry run starts nothing: {said:?}");
    let said = hosted(&looking, managing, &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    for words in [
        "a pod of ",
        " in the namespace open-cluster-management does not reach ",
        guest.server(),
        "the operator's own pod may",
        "at which pods of the hosting cluster reach it",
    ] {
        assert!(said.stderr.contains(words), "{words}: {said:?}");
    }
    // The Job goes with its pod.
    until_within(SLOW, "the Job is gone", String::new, || {
        of_operator(&["get", "jobs", "--output=name"]).trim().is_empty()
    });
    of_operator(&["set", "env", "deployment/klusterlet", "HTTPS_PROXY-"]);
    of_operator(&["rollout", "resume", "deployment/klusterlet"]);
    let said = hosted(&looking, managing, &["--accept", "--wait", "--timeout=3m"]);
    let is_told = ["was not checked", "does not reach"].into_iter().any(|words| said.stderr.contains(words));
    assert!(said.code == Some(0) && !is_told, "{said:?}");
    let said = unjoin(host, &["guest", "--yes", &hub_access(hub())]);
    assert_eq!(said.code, Some(0), "{said:?}");
    // What somebody has in the operator's namespace would keep it.
    of_operator(&["delete", "rolebinding/hosting-kubectl-ocm-join-hosted-look", "role/kubectl-ocm-join-hosted-look"]);
}

#[test]
fn a_hosted_cluster_joins_and_leaves_and_the_one_that_hosts_it_stays() {
    let _alone = alone();
    let hub = hub();
    let (host, guest) = (node(), Cluster::start(&Spec::node("guest")).expect("a cluster"));
    let access = hub_access(hub);
    let hosting = user_with(&host, "hosting", &["join.yaml"]);
    let managing = user_with(&guest, "managing", &["join-hosted.yaml"]);
    // At the address that it publishes, where that is typed.
    let internal = ["--dry-run=server", "--force-internal-endpoint-lookup-managed"];
    let said = hosted(&hosting, &managing, &internal);
    assert!(said.code == Some(1) && said.stderr.contains("publishes no address for others"), "{said:?}");
    let config = json!({"apiVersion": "v1", "kind": "Config",
        "clusters": [{"name": "", "cluster": {"server": guest.server()}}]});
    let literal = format!("--from-literal=kubeconfig={config}");
    guest.kubectl(&["create", "configmap", "cluster-info", "--namespace=kube-public", &literal]).expect("made");
    let said = hosted(&hosting, &managing, &internal);
    let told = format!("the operator reaches the managed cluster at {}", guest.server());
    assert!(said.code == Some(0) && said.stderr.contains(&told), "{said:?}");
    guest.kubectl(&["delete", "configmap", "cluster-info", "--namespace=kube-public"]).expect("it goes");
    // The operator gets no kubeconfig by which it would verify nobody.
    let shown = guest.kubectl(&["config", "view", "--raw", "--output=json"]).expect("it is shown");
    let mut unverified: Value = serde_json::from_str(&shown).expect("JSON");
    let entry = unverified["clusters"][0]["cluster"].as_object_mut().expect("a cluster");
    entry.retain(|key, _| key == "server");
    entry.insert("insecure-skip-tls-verify".to_owned(), true.into());
    let file = guest.dir().expect("a folder").join("unverified.json");
    std::fs::write(&file, unverified.to_string()).expect("written");
    let said = hosted(&hosting, &file, &["--dry-run=server"]);
    let told = "is not verified: its kubeconfig says insecure-skip-tls-verify";
    assert!(said.code == Some(1) && said.stderr.contains(told), "{said:?}");
    let before = (sweep(&host), sweep(&guest), sweep(hub));
    // The operator is not there yet.
    let said = hosted(&hosting, &managing, &["--dry-run=server"]);
    assert!(said.code == Some(0) && said.stdout.contains("deployment.apps/klusterlet created"), "{said:?}");
    assert_eq!((sweep(&host), sweep(&guest), sweep(hub)), before, "a dry run changes nothing");
    let said = hosted(&hosting, &managing, &["--accept", "--wait", "--timeout=3m"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("managedcluster.cluster.open-cluster-management.io/guest available"), "{said:?}");
    let klusterlet = object(&host, &["klusterlet", "klusterlet-hosted-guest"])["spec"].clone();
    let (mode, class) = (&klusterlet["deployOption"]["mode"], &klusterlet["resourceRequirement"]["type"]);
    assert_eq!((mode, class), (&json!("SingletonHosted"), &json!("BestEffort")), "{klusterlet:#}");
    // Without the right to have a pod look, nobody looks, and it is said.
    assert!(said.stderr.contains("was not checked: you may not create jobs"), "{said:?}");
    // Both clusters have a namespace of that name.
    for place in ["managed cluster", "hosting cluster"] {
        let created = format!("namespace/klusterlet-hosted-guest created ({place}, ");
        assert_eq!(said.stdout.matches(&created).count(), 1, "{said:?}");
    }
    // Again: nothing but a new token, and the former one lets nobody in any more.
    let former = operators_token(&host);
    assert!(lets_in(&guest, &former));
    let said = hosted(&hosting, &managing, &["--wait=available", "--timeout=2m"]);
    assert!(said.code == Some(0) && said.stderr.contains("has joined"), "{said:?}");
    let token = operators_token(&host);
    assert!(token != former && lets_in(&guest, &token), "{said:?}");
    until_within(SLOW, "the former token ends", String::new, || !lets_in(&guest, &former));
    for secret in [&former, &token] {
        assert!(!format!("{said:?}").contains(secret.as_str()));
    }
    // A cluster is managed once: neither from elsewhere, too, nor by agents of its own under another name.
    nothing_happens(&guest, 3, &["have rights on", "klusterlet-hosted-guest"], || {
        let managed = format!("--managed-kubeconfig={}", managing.display());
        run(kubectl_ocm("join", &hosting).args(["other", "--mode=hosted", &managed, &access, "--bundle-version=1.2.0"]))
    });
    // Beside it the hosting cluster joins for itself: both have the same operator.
    joined(&host, "host");
    let said = run(kubectl_ocm("join", host.kubeconfig()).args([
        "third",
        "--mode=hosted",
        "--dry-run=server",
        &format!("--managed-kubeconfig={}", hub.kubeconfig().display()),
        &access,
    ]));
    assert!(said.code == Some(0) && !said.stdout.contains("deployment.apps/klusterlet"), "{said:?}");
    assert!(said.stdout.contains("klusterlet-hosted-third created"), "{said:?}");
    until_within(Duration::from_secs(60), "the work agent runs", String::new, || {
        let lease = ["get", "lease", "work-agent-lock", "--namespace=open-cluster-management-agent"];
        host.kubectl(&lease).is_ok()
    });
    work(hub, "guest", "w", "0");
    until_within(SLOW, "the work is applied", String::new, || has(&guest, "configmap", "w"));
    // Neither of the two is meant.
    nothing_happens(&host, 2, &["several Klusterlets", "\"guest\"", "\"host\""], || unjoin(&host, &["--yes", &access]));
    nothing_happens(&host, 3, &["works of the hub have put objects"], || unjoin(&host, &["guest", "--yes"]));
    let said = unjoin(&host, &["guest", "--yes", &access]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("the operator stays: there is another Klusterlet"), "{said:?}");
    let account = "the operator's account goes last, with its namespace \"klusterlet-hosted-guest\"";
    assert!(said.stderr.contains(account), "{said:?}");
    assert!(!has(&guest, "configmap", "w"));
    what_pods_of_the_hosting_cluster_do_not_reach_is_told(&host, &guest, &managing);
    nothing_stays(&guest, &before.1);
    let host_on_hub =
        hub.kubectl(&["get", "managedcluster", "host", "--output=jsonpath={.metadata.deletionTimestamp}"]);
    assert_eq!(host_on_hub.expect("it is there").trim(), "");
    let said = unjoin(&host, &["host", "--yes", &access]);
    assert_eq!(said.code, Some(0), "{said:?}");
    nothing_stays(&host, &before.0);
    nothing_stays(hub, &before.2);
}
