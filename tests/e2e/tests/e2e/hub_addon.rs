//! `kubectl ocm install hub-addon`, `uninstall hub-addon` and `get hub-addons` on a real hub with a cluster that has joined.
//!
//! `cargo test -p e2e-tests --test e2e hub_addon::`; it needs root.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use control_plane::{Cluster, Spec, shared};
use e2e_tests::join_support::{alone, hub, hub_access, join};
use e2e_tests::residue::{nothing_stays, sweep};
use e2e_tests::roles::user_with;
use e2e_tests::stories::killed;
use e2e_tests::{Said, kubectl_ocm, object, run, until, until_within};
use serde_json::{Value, json};

/// How long agents and pods may take: they may have just been started, on a busy machine.
const SLOW: Duration = Duration::from_secs(120);

const ADDON: &str = "addon.open-cluster-management.io/v1alpha1";
const RBAC: &str = "rbac.authorization.k8s.io/v1";
const TOKEN: &str = "greeting-4711-0815";

/// The cluster that the stories share; it stays joined.
fn cluster() -> &'static Cluster {
    static JOINED: OnceLock<()> = OnceLock::new();
    let cluster = shared(&Spec::node("day"));
    JOINED.get_or_init(|| {
        let said = join(cluster, "day", &[hub_access(hub()).as_str(), "--accept", "--wait", "--timeout=3m"]);
        assert_eq!(said.code, Some(0), "{said:?}");
    });
    cluster
}

/// Somebody on the hub with exactly the documented rights.
fn somebody() -> &'static Path {
    static USER: OnceLock<PathBuf> = OnceLock::new();
    let roles = ["install-hub-addon.yaml", "uninstall-hub-addon.yaml", "addon.yaml", "get.yaml"];
    USER.get_or_init(|| user_with(hub(), "greeter", &roles))
}

fn said(verb: &str, words: &[&str]) -> Said {
    run(kubectl_ocm(verb, somebody()).args(words))
}

fn ends(said: &Said, code: i32, words: &[&str]) {
    assert_eq!(said.code, Some(code), "{words:?}: {said:?}");
    for word in words {
        assert!(said.stdout.contains(word) || said.stderr.contains(word), "no {word:?} in {said:?}");
    }
}

fn file(name: &str, objects: &[Value]) -> String {
    let file = hub().dir().expect("a folder").join(name);
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    std::fs::write(&file, list.to_string()).expect("written");
    file.to_str().expect("text").to_owned()
}

fn is_there(words: &[&str]) -> bool {
    hub().kubectl(&[&["get"], words].concat()).is_ok()
}

/// The hub's side of an add-on, as a chart may give it.
fn greeter(greeting: &str) -> Vec<Value> {
    let labels = json!({"app.kubernetes.io/name": "greeter", "app.kubernetes.io/managed-by": "Helm"});
    let object = |api_version: &str, kind: &str, name: &str| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "labels": labels}});
    let with = |mut object: Value, members: Value| {
        let members = members.as_object().expect("members").clone();
        object.as_object_mut().expect("an object").extend(members);
        object
    };
    let selector = json!({"app": "greeter"});
    let agent = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"},
        "metadata": {"name": "greeter-agent", "namespace": "open-cluster-management-agent-addon"}});
    let mut hook = object("batch/v1", "Job", "greeter-cleanup");
    hook["metadata"]["annotations"] = json!({"helm.sh/hook": "pre-delete"});
    let mut offered = with(
        object(ADDON, "ClusterManagementAddOn", "greeter"),
        json!({"spec": {"addOnMeta": {"displayName": "The greeter"}, "supportedConfigs": [
            {"group": "addon.open-cluster-management.io", "resource": "addontemplates",
                "defaultConfig": {"name": "greeter-1"}}]}}),
    );
    offered["metadata"]["annotations"] = json!({"addon.open-cluster-management.io/lifecycle": "addon-manager"});
    vec![
        offered,
        with(
            object(ADDON, "AddOnTemplate", "greeter-1"),
            json!({"spec": {"addonName": "greeter", "agentSpec": {"workload": {"manifests": [agent]}}}}),
        ),
        with(
            object("apps/v1", "Deployment", "greeter"),
            json!({"spec": {"replicas": 1, "selector": {"matchLabels": selector}, "template": {
                "metadata": {"labels": selector}, "spec": {"serviceAccountName": "greeter", "containers": [
                    {"name": "greeter", "image": "ocm.local/pause:1", "imagePullPolicy": "IfNotPresent"}]}}}}),
        ),
        with(object("v1", "ConfigMap", "greeter"), json!({"data": {"greeting": greeting}})),
        with(object("v1", "Secret", "greeter"), json!({"stringData": {"token": TOKEN}})),
        object("v1", "ServiceAccount", "greeter"),
        with(
            object(RBAC, "ClusterRole", "greeter"),
            json!({"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]}),
        ),
        with(
            object(RBAC, "ClusterRoleBinding", "greeter"),
            json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "greeter"},
                "subjects": [{"kind": "ServiceAccount", "namespace": "greeter", "name": "greeter"}]}),
        ),
        with(
            object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "greetings.example.com"),
            json!({"spec": {"group": "example.com", "scope": "Namespaced",
                "names": {"kind": "Greeting", "listKind": "GreetingList", "plural": "greetings", "singular": "greeting"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}]}}),
        ),
        hook,
    ]
}

/// Whether a command has found everything as it is to be.
fn is_unchanged(said: &Said) -> bool {
    let changed = ["created", "configured", "deleted"];
    let is_told = said.stdout.contains(" unchanged");
    said.code == Some(0) && is_told && !changed.iter().any(|word| said.stdout.contains(word))
}

#[test]
fn the_hubs_side_of_an_add_on_comes_is_enabled_and_goes() {
    let _alone = alone();
    cluster();
    somebody();
    let before = sweep(hub());
    let files = file("greeter.json", &greeter("hello"));
    let install = |more: &[&str]| {
        said("install", &[&["hub-addon", "greeter", "-f", &files, "--namespace=greeter"], more].concat())
    };
    let uninstall = |more: &[&str]| said("uninstall", &[&["hub-addon", "greeter"], more].concat());

    // Nothing is done until it is meant.
    ends(&install(&[]), 1, &["namespaces that are not there", "greeter", "--create-namespace"]);
    for how in ["--dry-run", "--dry-run=server", "--render"] {
        let said = install(&["--create-namespace", how]);
        ends(&said, 0, &["greeter", "left out", "Job greeter-cleanup (pre-delete)"]);
        assert!(!format!("{said:?}").contains(TOKEN), "{said:?}");
    }
    ends(&install(&["--create-namespace", "--diff"]), 3, &["kind: ClusterManagementAddOn"]);
    assert!(!is_there(&["namespace", "greeter"]) && !is_there(&["clustermanagementaddon", "greeter"]));
    ends(&uninstall(&["--yes"]), 0, &["there is no hub add-on \"greeter\""]);

    // It is there, and once more it is as it was.
    let made = ["namespace/greeter created", "deployment.apps/greeter created", "it runs"];
    ends(&install(&["--create-namespace", "--wait", "--timeout=2m"]), 0, &made);
    let deployment = object(hub(), &["deployment", "greeter", "--namespace=greeter"]);
    assert_eq!(deployment["status"]["availableReplicas"], 1, "{deployment}");
    assert_eq!(deployment["metadata"]["labels"]["kubectl-ocm.dev/hub-addon"], "greeter");
    assert_eq!(deployment["metadata"]["labels"]["app.kubernetes.io/managed-by"], "Helm");
    for how in [&[][..], &["--dry-run"], &["--dry-run=server"], &["--create-namespace", "--wait"]] {
        let said = install(how);
        assert!(is_unchanged(&said), "{how:?}: {said:?}");
    }
    ends(&install(&["--diff"]), 0, &[]);

    // Another version changes what differs.
    file("greeter.json", &greeter("good day"));
    ends(&install(&["--dry-run"]), 0, &["configmap/greeter configured", "deployment.apps/greeter unchanged"]);
    ends(&install(&["--diff"]), 3, &["+  greeting: good day"]);
    ends(&install(&[]), 0, &["configmap/greeter configured", "deployment.apps/greeter unchanged"]);

    // It is offered, and enabled on a cluster.
    let line = ["greeter", "The greeter", "Manual", "0/0", "kubectl-ocm (hub-addon greeter)"];
    ends(&said("get", &["hub-addons"]), 0, &line);
    ends(&said("get", &["hub-addons", "greter"]), 1, &["did you mean greeter?"]);
    ends(&said("addon", &["enable", "greeter", "--clusters=day"]), 0, &["greeter -n day created"]);
    let has_agent = || {
        let words = ["get", "configmap", "greeter-agent", "--namespace=open-cluster-management-agent-addon"];
        cluster().kubectl(&words).is_ok()
    };
    until_within(SLOW, "its objects are on the cluster", String::new, has_agent);
    let told = said("get", &["hub-addons", "greeter", "--output=json"]);
    let told: Value = serde_json::from_str(&told.stdout).expect("JSON");
    assert_eq!(told["standing"]["enabled"], json!(["day"]), "{told}");

    // While a cluster has it, it stays.
    let refused = ["enabled on cluster \"day\"", "nothing was deleted", "--force", "kubectl ocm addon disable greeter"];
    ends(&uninstall(&["--yes"]), 3, &refused);
    ends(&uninstall(&["--dry-run"]), 3, &refused);
    assert!(is_there(&["deployment", "greeter", "--namespace=greeter"]));
    ends(&said("addon", &["disable", "greeter", "--clusters=day", "--yes"]), 0, &["greeter -n day deleted"]);
    until_within(SLOW, "its objects go", String::new, || !has_agent());

    // What others have made stays, also with a copy of the label.
    let foreign = ["create", "configmap", "foreign", "--namespace=greeter"];
    hub().kubectl(&foreign).expect("it is created");
    hub().kubectl(&["create", "configmap", "copied", "--namespace=default"]).expect("it is created");
    let label = "kubectl-ocm.dev/hub-addon=greeter";
    hub().kubectl(&["label", "configmap", "copied", label, "--namespace=default"]).expect("it is labelled");
    for how in ["--dry-run", "--dry-run=server"] {
        ends(&uninstall(&[how]), 0, &["deployment.apps/greeter deleted", "configmap/copied kept"]);
    }
    assert!(is_there(&["deployment", "greeter", "--namespace=greeter"]));
    let kept = [
        "clustermanagementaddon.addon.open-cluster-management.io/greeter deleted",
        "configmap/copied kept",
        "customresourcedefinition.apiextensions.k8s.io/greetings.example.com kept",
        "namespace/greeter kept",
        "it also holds configmap/foreign",
        "--delete-crds",
    ];
    ends(&uninstall(&["--yes"]), 0, &kept);
    assert!(is_there(&["configmap", "foreign", "--namespace=greeter"]));
    assert!(is_there(&["configmap", "copied", "--namespace=default"]));
    assert!(!is_there(&["clusterrole", "greeter"]) && !is_there(&["addontemplate", "greeter-1"]));

    // Then nothing is left of it.
    hub().kubectl(&["delete", "configmap", "foreign", "--namespace=greeter"]).expect("it goes");
    hub().kubectl(&["delete", "configmap", "copied", "--namespace=default"]).expect("it goes");
    let last =
        ["customresourcedefinition.apiextensions.k8s.io/greetings.example.com deleted", "namespace/greeter deleted"];
    ends(&uninstall(&["--yes", "--delete-crds"]), 0, &last);
    ends(&uninstall(&["--yes", "--delete-crds"]), 0, &["there is no hub add-on \"greeter\""]);
    nothing_stays(hub(), &before);
}

#[test]
fn what_was_there_before_stays_and_what_makes_up_the_hub_is_refused() {
    let _alone = alone();
    cluster();
    somebody();
    let before = sweep(hub());
    let map = |data: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "before", "namespace": "default"},
            "data": {"a": data}})
    };
    let theirs = file("theirs.json", &[map("theirs")]);
    hub().kubectl(&["apply", "--filename", &theirs]).expect("it can be applied");
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "before"}});
    let install = |files: &str, more: &[&str]| {
        said("install", &[&["hub-addon", "before", "-f", files, "--namespace=default"], more].concat())
    };
    let uninstall = |more: &[&str]| said("uninstall", &[&["hub-addon", "before", "--yes"], more].concat());
    let data = || object(hub(), &["configmap", "before", "--namespace=default"])["data"]["a"].clone();

    // It says something else.
    let other = file("other.json", &[map("ours"), account.clone()]);
    let refused =
        ["ConfigMap default/before was written by", "says something else: nothing was changed", "--overwrite"];
    ends(&install(&other, &[]), 3, &refused);
    assert!(data() == "theirs" && !is_there(&["serviceaccount", "before", "--namespace=default"]));

    // It says the same, and stays as it is.
    let same = file("same.json", &[map("theirs"), account.clone()]);
    ends(&install(&same, &[]), 0, &["configmap/before kept", "serviceaccount/before created"]);
    assert!(is_unchanged(&install(&same, &[])));
    ends(&uninstall(&[]), 0, &["serviceaccount/before deleted"]);
    assert_eq!(data(), "theirs");

    // It is changed if that is meant, and stays all the same.
    ends(&install(&other, &["--overwrite"]), 0, &["configmap/before configured", "serviceaccount/before created"]);
    assert_eq!(data(), "ours");
    assert!(is_unchanged(&install(&other, &[])));
    ends(&uninstall(&[]), 0, &["configmap/before kept", "it was there before", "serviceaccount/before deleted"]);
    assert_eq!(data(), "ours");

    // Of another add-on.
    ends(&install(&file("account.json", std::slice::from_ref(&account)), &[]), 0, &["serviceaccount/before created"]);
    let mut changed = account;
    changed["automountServiceAccountToken"] = false.into();
    let changed = file("changed.json", &[changed]);
    let words = ["hub-addon", "after", "-f", &changed, "--namespace=default", "--overwrite"];
    ends(&said("install", &words), 3, &["belongs to hub add-on \"before\"", "nothing was changed"]);
    ends(&uninstall(&[]), 0, &["serviceaccount/before deleted"]);

    // What is the hub's own.
    let manager = json!({"apiVersion": "operator.open-cluster-management.io/v1", "kind": "ClusterManager",
        "metadata": {"name": "cluster-manager"}, "spec": {}});
    let manager = file("manager.json", &[manager]);
    ends(
        &install(&manager, &[]),
        3,
        &["ClusterManager cluster-manager belongs to the hub itself", "nothing was changed"],
    );
    let unknown = json!({"apiVersion": "example.com/v1", "kind": "Nowhere", "metadata": {"name": "a"}});
    ends(&install(&file("unknown.json", &[unknown]), &[]), 1, &["Nowhere of example.com/v1", "nothing was changed"]);

    // A cluster that is none.
    for verb in ["install", "uninstall"] {
        let mut command = kubectl_ocm(verb, cluster().kubeconfig());
        command.args(["hub-addon", "before"]);
        match verb {
            "install" => command.args(["-f", &same]),
            _ => command.arg("--yes"),
        };
        ends(&run(&mut command), 1, &["no hub"]);
    }
    hub().kubectl(&["delete", "configmap", "before", "--namespace=default"]).expect("it goes");
    nothing_stays(hub(), &before);
}

#[test]
fn a_run_that_was_killed_is_run_again() {
    let _alone = alone();
    cluster();
    somebody();
    let before = sweep(hub());
    let files = file("killed.json", &greeter("hello"));
    let install = ["hub-addon", "greeter", "-f", &files, "--namespace=greeter", "--create-namespace", "--wait"];
    let uninstall = ["hub-addon", "greeter", "--yes", "--delete-crds"];
    let command = |verb: &str, words: &[&str]| -> Command {
        let mut command = kubectl_ocm(verb, somebody());
        command.args(words);
        command
    };
    let (kills, told) = killed::at_every_step(|| command("install", &install));
    assert!(told.code == Some(0) && kills > 3, "killed {kills} times: {told:?}");
    let last = said("install", &install);
    ends(&last, 0, &["it runs"]);
    assert!(is_unchanged(&last), "{last:?}");
    let (kills, told) = killed::at_every_step(|| command("uninstall", &uninstall));
    assert!(kills > 3, "killed {kills} times: {told:?}");
    until("the rest goes", || said("uninstall", &uninstall).code == Some(0));
    nothing_stays(hub(), &before);
}
