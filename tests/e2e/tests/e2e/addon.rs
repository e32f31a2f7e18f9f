//! `kubectl ocm addon create`, `status`, `config` and `delete` on a real hub with a cluster that has joined: an add-on is made of
//! objects in files, it is told which configuration takes effect, and it goes.
//!
//! `cargo test -p e2e-tests --test e2e addon::`; it needs root.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use control_plane::{Cluster, Spec, shared};
use e2e_tests::join_support::{alone, hub, hub_access, join};
use e2e_tests::manifests::apply_client_side;
use e2e_tests::roles::user_with;
use e2e_tests::{Said, kubectl_ocm, object, run, until_within};
use serde_json::{Value, json};

/// How long agents may take: they may have just been started, on a busy machine.
const SLOW: Duration = Duration::from_secs(120);

const ADDON: &str = "addon.open-cluster-management.io/v1alpha1";

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
    USER.get_or_init(|| {
        user_with(hub(), "addon-maker", &["addon.yaml", "addon-create.yaml", "addon-config.yaml", "addon-delete.yaml"])
    })
}

fn addon(words: &[&str]) -> Said {
    run(kubectl_ocm("addon", somebody()).args(words))
}

fn ends(said: &Said, code: i32, words: &[&str]) {
    assert_eq!(said.code, Some(code), "{words:?}: {said:?}");
    for word in words {
        assert!(said.stdout.contains(word) || said.stderr.contains(word), "no {word:?} in {said:?}");
    }
}

fn file(name: &str, object: &Value) -> String {
    let file = hub().dir().expect("a folder").join(name);
    std::fs::write(&file, object.to_string()).expect("written");
    file.to_str().expect("text").to_owned()
}

fn is_there(kind: &str, name: &str) -> bool {
    hub().kubectl(&["get", kind, name]).is_ok()
}

/// What the add-on's template brings to the cluster.
fn agent(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"},
        "metadata": {"name": name, "namespace": "open-cluster-management-agent-addon"}})
}

/// Versions of the objects of an add-on.
fn versions(name: &str, template: &str) -> String {
    let version = |kind: &str, name: &str| object(hub(), &[kind, name])["metadata"]["generation"].to_string();
    version("clustermanagementaddon", name) + &version("addontemplate", template)
}

fn tells(words: &[&str], what: &str, is: impl Fn(&Said) -> bool) {
    until_within(SLOW, what, || format!("{:?}", addon(words)), || is(&addon(words)));
}

#[test]
fn an_add_on_is_made_of_files_and_its_configuration_is_told() {
    let _alone = alone();
    cluster();
    let objects = file("made.json", &agent("made"));
    let create = |more: &[&str]| addon(&[&["create", "made", "-f", &objects], more].concat());

    // Nothing is done until it is meant.
    for how in ["--dry-run", "--dry-run=server", "--render"] {
        ends(&create(&[how]), 0, &["made-0.0.1"]);
    }
    ends(&create(&["--diff"]), 3, &["kind: AddOnTemplate"]);
    assert!(!is_there("clustermanagementaddon", "made") && !is_there("addontemplate", "made-0.0.1"));
    ends(&create(&["--placement=default/none"]), 1, &["no placement default/none"]);
    ends(&create(&["--cluster-role-bind=view"]), 2, &["--hub-registration"]);
    ends(&create(&["--version=1/2"]), 2, &["cannot be the name of a template"]);
    ends(
        &create(&["--hub-registration", "--cluster-role-bind=nobody", "--dry-run"]),
        0,
        &["the hub has no ClusterRole \"nobody\""],
    );
    ends(&addon(&["status", "made"]), 1, &["no ClusterManagementAddOn \"made\""]);

    // It is there, and once more it is as it was.
    ends(&create(&["--wait"]), 0, &["/made-0.0.1 created", "/made created"]);
    let before = versions("made", "made-0.0.1");
    for how in [&[][..], &["--dry-run"], &["--dry-run=server"], &["--wait"]] {
        ends(&create(how), 0, &["/made-0.0.1 unchanged", "/made unchanged"]);
    }
    ends(&create(&["--diff"]), 0, &[]);
    assert_eq!(versions("made", "made-0.0.1"), before);
    ends(&addon(&["status", "made"]), 0, &["no cluster there has add-on \"made\""]);

    // It comes to the cluster, with what is said of it there.
    let enable = ["enable", "made", "--clusters=day", "--annotate=story=day"];
    ends(&addon(&enable), 0, &["made -n day created"]);
    ends(&addon(&enable), 0, &["made -n day unchanged"]);
    let live = object(hub(), &["managedclusteraddon", "made", "--namespace=day"]);
    assert_eq!(live["metadata"]["annotations"]["story"], "day", "{live}");
    let has_agent =
        || cluster().kubectl(&["get", "configmap", "made", "--namespace=open-cluster-management-agent-addon"]).is_ok();
    until_within(SLOW, "its objects are on the cluster", String::new, has_agent);
    let template = |name: &str| format!("addontemplates.addon.open-cluster-management.io/{name}");
    tells(&["status", "made"], "the template takes effect", |said| {
        said.code == Some(0) && said.stdout.contains("made-0.0.1") && said.stdout.contains("default")
    });

    // A configuration of the cluster, and another version for all.
    let config = json!({"apiVersion": ADDON, "kind": "AddOnDeploymentConfig",
        "metadata": {"name": "made", "namespace": "default"}, "spec": {}});
    apply_client_side(hub(), "config", &config);
    let named = "--config=addondeploymentconfigs.addon.open-cluster-management.io/default/made";
    ends(&addon(&[&enable[..], &[named]].concat()), 0, &["made -n day configured"]);
    ends(&create(&["--version=0.0.2", "--labels=story=day"]), 0, &["/made-0.0.2 created", "/made configured"]);
    for (kind, name) in [("clustermanagementaddon", "made"), ("addontemplate", "made-0.0.2")] {
        assert_eq!(object(hub(), &[kind, name])["metadata"]["labels"]["story"], "day", "{kind}");
    }
    tells(&["status", "made", "-c", "day", "--output=name"], "both take effect", |said| {
        let lines: Vec<&str> = said.stdout.lines().collect();
        said.code == Some(0) && lines == [named.trim_start_matches("--config="), template("made-0.0.2").as_str()]
    });
    let said = addon(&["status", "made", "--output=json"]);
    let told: Value = serde_json::from_str(&said.stdout).expect("JSON");
    let of = |resource: &str| {
        let all = told["configurations"].as_array().expect("configurations");
        all.iter()
            .find(|one| one["resource"].as_str().is_some_and(|word| word.starts_with(resource)))
            .cloned()
            .expect("it")
    };
    assert_eq!(
        of("addondeploymentconfigs")["effective"],
        json!({"object": "default/made", "level": "cluster"}),
        "{told}"
    );
    assert_eq!(of("addontemplates")["effective"], json!({"object": "made-0.0.2", "level": "default"}), "{told}");
    assert!(is_there("addontemplate", "made-0.0.1"));

    // Said for all instead.
    let kind = "--config=addondeploymentconfigs.addon.open-cluster-management.io";
    let unset = ["config", "unset", "made", "--clusters=day", kind];
    ends(&addon(&[&unset[..], &["--diff"]].concat()), 3, &["-  configs:"]);
    ends(&addon(&unset), 0, &["made -n day configured"]);
    ends(&addon(&unset), 0, &["made -n day unchanged"]);
    let set = ["config", "set", "made", "--default", named];
    let missing = format!("{kind}/default/none");
    ends(&addon(&["config", "set", "made", "--default", missing.as_str()]), 1, &["default/none"]);
    ends(&addon(&[&set[..], &["--dry-run=server"]].concat()), 0, &["/made configured"]);
    ends(&addon(&[&set[..], &["--wait", "--timeout=2m"]].concat()), 0, &["/made configured"]);
    ends(&addon(&set), 0, &["/made unchanged"]);
    tells(&["status", "made", "--output=json"], "the default takes effect", |said| {
        let told: Value = serde_json::from_str(&said.stdout).unwrap_or_default();
        let mut all = told["configurations"].as_array().into_iter().flatten();
        said.code == Some(0) && all.any(|one| one["effective"] == json!({"object": "default/made", "level": "default"}))
    });
    let unset = ["config", "unset", "made", "--default", named];
    ends(&addon(&[&unset[..], &["--dry-run=server"]].concat()), 0, &["/made configured"]);
    // Once it has waited, the hub has taken the reference from the cluster.
    ends(&addon(&[&unset[..], &["--wait", "--timeout=2m"]].concat()), 0, &["/made configured"]);
    let live = object(hub(), &["managedclusteraddon", "made", "--namespace=day"]);
    let references = live["status"]["configReferences"].as_array().expect("references");
    assert!(references.iter().all(|one| one["resource"] == "addontemplates"), "{live}");
    ends(&addon(&unset), 0, &["/made unchanged"]);
    // Without a template the hub would not look after it any more.
    let last = ["config", "unset", "made", "--default", "--config=addontemplates.addon.open-cluster-management.io"];
    ends(&addon(&last), 3, &["no AddOnTemplate", "addon config set made"]);
    let live = object(hub(), &["clustermanagementaddon.v1alpha1.addon.open-cluster-management.io", "made"]);
    let defaults: Vec<&Value> = live["spec"]["supportedConfigs"]
        .as_array()
        .expect("kinds")
        .iter()
        .filter_map(|one| one.get("defaultConfig"))
        .collect();
    assert_eq!(defaults, [&json!({"name": "made-0.0.2"})], "{live}");

    // Nothing is written to one that is being deleted.
    let on_day = ["managedclusteraddon", "made", "--namespace=day"];
    let patched = |finalizers: Vec<Value>| {
        let patch = json!({"metadata": {"finalizers": finalizers}}).to_string();
        let words = [&["patch"], &on_day[..], &["--type=merge", "--patch", &patch]].concat();
        hub().kubectl(&words).is_ok()
    };
    let finalizers = || object(hub(), &on_day)["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let kept = json!("example.com/kept");
    assert!(patched(finalizers().into_iter().chain([kept.clone()]).collect()), "it is patched");
    hub().kubectl(&[&["delete"], &on_day[..], &["--wait=false"]].concat()).expect("it is being deleted");
    for how in [&[][..], &["--dry-run"], &["--dry-run=server"], &["--wait"]] {
        ends(&addon(&[&enable[..], how].concat()), 1, &["made is being deleted", "goes with it"]);
    }
    // The hub takes its own off meanwhile.
    let lets_go = || patched(finalizers().into_iter().filter(|one| *one != kept).collect());
    until_within(SLOW, "it is patched", String::new, lets_go);
    let ended = [&["wait", "--for=delete"], &on_day[..], &["--timeout=120s"]].concat();
    hub().kubectl(&ended).expect("it goes");
    ends(&addon(&enable), 0, &["made -n day created"]);
    until_within(SLOW, "its objects are on the cluster", String::new, has_agent);

    // It goes after no cluster has it.
    ends(&addon(&["delete", "made", "--yes"]), 3, &["cluster \"day\" has add-on \"made\"", "--force"]);
    ends(&addon(&["disable", "made", "--clusters=day", "--yes"]), 0, &["made -n day deleted"]);
    until_within(SLOW, "its objects go", String::new, || !has_agent());
    for how in ["--dry-run", "--dry-run=server"] {
        ends(&addon(&["delete", "made", how]), 0, &["/made deleted", "/made-0.0.1 deleted", "/made-0.0.2 deleted"]);
    }
    assert!(is_there("clustermanagementaddon", "made") && is_there("addontemplate", "made-0.0.1"));
    ends(&addon(&["delete", "made", "--yes"]), 0, &["/made deleted", "/made-0.0.1 deleted", "/made-0.0.2 deleted"]);
    assert!(!is_there("clustermanagementaddon", "made") && !is_there("addontemplate", "made-0.0.2"));
    ends(&addon(&["delete", "made", "--yes"]), 0, &["the hub has no ClusterManagementAddOn \"made\""]);
}

#[test]
fn an_add_on_of_a_placement_is_followed_and_one_of_somebody_else_is_not_replaced() {
    let _alone = alone();
    cluster();
    let objects = file("placed.json", &agent("followed"));
    hub().kubectl(&["label", "managedcluster", "day", "addons=followed", "--overwrite"]).expect("it is labelled");
    let set = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSetBinding",
        "metadata": {"name": "default", "namespace": "default"}, "spec": {"clusterSet": "default"}});
    apply_client_side(hub(), "binding", &set);
    let placement = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": "followed", "namespace": "default"}, "spec": {"predicates": [
            {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"addons": "followed"}}}}]}});
    apply_client_side(hub(), "followed", &placement);

    let create = |more: &[&str]| {
        addon(&[&["create", "followed", "-f", &objects, "--placement=default/followed"], more].concat())
    };
    ends(&create(&["--wait"]), 0, &["/followed created"]);
    ends(&create(&["--dry-run"]), 0, &["/followed unchanged"]);
    tells(&["status", "followed"], "the hub has installed it on the clusters of the placement", |said| {
        said.code == Some(0) && said.stdout.contains("default/followed") && said.stdout.contains("[##########] 1/1")
    });
    let config = json!({"apiVersion": ADDON, "kind": "AddOnDeploymentConfig",
        "metadata": {"name": "followed", "namespace": "default"}, "spec": {}});
    apply_client_side(hub(), "config", &config);
    let configs = json!([{"op": "add", "path": "/spec/installStrategy/placements/0/configs", "value": [
        {"group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs",
         "namespace": "default", "name": "followed"}]}]);
    hub()
        .kubectl(&["patch", "clustermanagementaddon", "followed", "--type=json", "--patch", &configs.to_string()])
        .expect("it is patched");
    tells(&["status", "followed", "-o", "wide"], "the configuration of the placement takes effect", |said| {
        said.code == Some(0) && said.stdout.contains("placement default/followed")
    });
    // What somebody else has written goes, too; the hub's writes in between keep nobody from it.
    let kind = "--config=addondeploymentconfigs.addon.open-cluster-management.io";
    let unset = ["config", "unset", "followed", "--placement=default/followed", kind];
    ends(&addon(&[&unset[..], &["--wait", "--timeout=2m"]].concat()), 0, &["/followed configured"]);
    ends(&addon(&unset), 0, &["/followed unchanged"]);
    let live = object(hub(), &["clustermanagementaddon.v1alpha1.addon.open-cluster-management.io", "followed"]);
    assert!(live["spec"]["installStrategy"]["placements"][0]["configs"].is_null(), "{live}");

    // Where it is disabled it would come back; whoever deletes it takes it from the clusters.
    ends(
        &addon(&["delete", "followed", "--yes"]),
        3,
        &["by placements (default/followed)", "it comes back", "--force"],
    );
    let gone = addon(&["delete", "followed", "--yes", "--force", "--timeout=2m"]);
    ends(
        &gone,
        0,
        &["clusters that have it: day", "/followed deleted", "followed -n day deleted", "/followed-0.0.1 deleted"],
    );
    // An add-on manager that has not heard of it yet may make it once more, and then the hub collects what has no owner.
    until_within(SLOW, "it stays gone", String::new, || {
        hub().kubectl(&["get", "managedclusteraddon", "followed", "--namespace=day"]).is_err()
    });
    assert!(!is_there("clustermanagementaddon", "followed") && !is_there("addontemplate", "followed-0.0.1"));

    // Of somebody else.
    let theirs = json!({"apiVersion": ADDON, "kind": "ClusterManagementAddOn", "metadata": {"name": "theirs"},
        "spec": {"installStrategy": {"type": "Manual"}, "addOnMeta": {"displayName": "theirs"}}});
    apply_client_side(hub(), "theirs", &theirs);
    let before = object(hub(), &["clustermanagementaddon", "theirs"])["metadata"]["resourceVersion"].to_string();
    let create = |more: &[&str]| addon(&[&["create", "theirs", "-f", &objects], more].concat());
    ends(
        &create(&[]),
        3,
        &["ClusterManagementAddOn theirs was written by kubectl", "nothing was changed", "--overwrite"],
    );
    assert!(!is_there("addontemplate", "theirs-0.0.1"), "nothing is sent before all is known");
    let live = || object(hub(), &["clustermanagementaddon", "theirs"]);
    assert_eq!(live()["metadata"]["resourceVersion"].to_string(), before);
    ends(&create(&["--overwrite"]), 0, &["/theirs-0.0.1 created", "/theirs configured"]);
    assert!(live()["spec"]["addOnMeta"]["displayName"].is_null(), "{}", live());
    ends(&create(&[]), 0, &["/theirs-0.0.1 unchanged", "/theirs unchanged"]);
    for (kind, name) in [("clustermanagementaddon", "theirs"), ("addontemplate", "theirs-0.0.1")] {
        hub().kubectl(&["delete", kind, name]).expect("it goes");
    }
}
