//! `addon status`, `addon config` and `addon delete` against a hub that keeps objects and rolls out nothing: what stands between
//! the stages of a rollout, and what is sent.

use std::collections::BTreeMap;
use std::sync::Mutex;

use cli_tests::server::{Asked, Reply, Server};
use cli_tests::{Cli, Run, kubeconfig};
use serde_json::{Value, json};

const ADDONS: &str = "/apis/addon.open-cluster-management.io/v1alpha1";
const CLUSTERS: &str = "/apis/cluster.open-cluster-management.io";
const SETTINGS: &str = "addondeploymentconfigs.addon.open-cluster-management.io";

/// What a hub holds, by path.
type Objects = BTreeMap<String, Value>;

fn hub(objects: Objects) -> Server {
    let objects = Mutex::new(objects);
    Server::start(move |_, asked| reply(&mut objects.lock().expect("nobody panics"), asked))
}

fn reply(objects: &mut Objects, asked: &Asked) -> Reply {
    let (method, target) = asked.line.split_once(' ').expect("a method and a path");
    let path = target.split('?').next().unwrap_or_default();
    let found = |object: &Value| Reply::Json(200, object.to_string());
    let status = |code: u16, reason: &str| {
        let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason,
            "message": format!("{reason} of {path} not found")});
        Reply::Json(code, status.to_string())
    };
    let (parent, last) = path.rsplit_once('/').unwrap_or_default();
    match (method, last) {
        ("POST", "selfsubjectaccessreviews") => found(&json!({"apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview", "metadata": {}, "spec": {}, "status": {"allowed": true}})),
        ("POST", "selfsubjectreviews") => found(&json!({"apiVersion": "authentication.k8s.io/v1",
            "kind": "SelfSubjectReview", "metadata": {"creationTimestamp": "2026-01-01T00:00:30Z"}})),
        (
            "GET",
            "managedclusteraddons"
            | "clustermanagementaddons"
            | "addontemplates"
            | "placementdecisions"
            | "managedclusters",
        ) => {
            let is_in = |key: &str| {
                let of = key.rsplit_once('/').map(|(of, _)| of).unwrap_or_default();
                let in_namespace = format!("{parent}/namespaces/");
                of == path || (of.starts_with(&in_namespace) && of.ends_with(&format!("/{last}")))
            };
            let items: Vec<&Value> = objects.iter().filter(|(key, _)| is_in(key)).map(|(_, value)| value).collect();
            found(&json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"}, "items": items}))
        }
        ("GET", _) => objects.get(path).map_or_else(|| status(404, "NotFound"), found),
        ("DELETE", _) => objects.remove(path).map_or_else(|| status(404, "NotFound"), |object| found(&object)),
        ("PATCH", _) => {
            let patch: Value = serde_json::from_str(&asked.body).expect("a patch");
            let Some(object) = objects.get_mut(path) else { return status(404, "NotFound") };
            for (member, value) in patch["spec"].as_object().expect("a spec") {
                object["spec"][member] = value.clone();
            }
            object["spec"].as_object_mut().expect("a spec").retain(|_, value| !value.is_null());
            object["metadata"]["resourceVersion"] = json!("2");
            found(object)
        }
        _ => status(405, "MethodNotAllowed"),
    }
}

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": "words", "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

/// Who has written the whole spec.
fn written_by(manager: &str) -> Value {
    json!([{"manager": manager, "operation": "Apply", "fieldsV1": {"f:spec": {"f:addonName": {}}}}])
}

fn definition(spec: Value) -> (String, Value) {
    let object = json!({"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
        "metadata": {"name": "hello", "uid": "d1", "resourceVersion": "1", "managedFields": written_by("kubectl-ocm")},
        "spec": spec});
    (format!("{ADDONS}/clustermanagementaddons/hello"), object)
}

fn template(name: &str, manager: &str) -> (String, Value) {
    let object = json!({"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnTemplate",
        "metadata": {"name": name, "uid": name, "resourceVersion": "1", "managedFields": written_by(manager)},
        "spec": {"addonName": "hello"}});
    (format!("{ADDONS}/addontemplates/{name}"), object)
}

/// The add-on of a cluster, told to take one content of its settings, and with one applied.
fn addon(cluster: &str, (desired, applied): (&str, &str)) -> (String, Value) {
    let hash = |hash: &str| json!({"namespace": "default", "name": "all", "specHash": hash});
    let object = json!({"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
        "metadata": {"name": "hello", "namespace": cluster, "uid": format!("a-{cluster}"), "resourceVersion": "1"},
        "spec": {"installNamespace": "agents"},
        "status": {
            "conditions": [condition("Available", "True", "R"), condition("Progressing", "False", "Completed")],
            "configReferences": [{"group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs",
                "desiredConfig": hash(desired), "lastAppliedConfig": hash(applied)}]}});
    (format!("{ADDONS}/namespaces/{cluster}/managedclusteraddons/hello"), object)
}

fn cluster(name: &str) -> (String, Value) {
    let object = json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": name, "uid": name, "resourceVersion": "1"}, "spec": {"hubAcceptsClient": true},
        "status": {"conditions": [condition("ManagedClusterJoined", "True", "R")]}});
    (format!("{CLUSTERS}/v1/managedclusters/{name}"), object)
}

fn settings(name: &str) -> (String, Value) {
    let object = json!({"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnDeploymentConfig",
        "metadata": {"name": name, "namespace": "default"}, "spec": {}});
    (format!("{ADDONS}/namespaces/default/addondeploymentconfigs/{name}"), object)
}

/// What the add-on takes: templates, and settings with a default.
fn kinds() -> Value {
    json!([
        {"group": "addon.open-cluster-management.io", "resource": "addontemplates"},
        {"group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs",
            "defaultConfig": {"namespace": "default", "name": "all"}}])
}

fn manual() -> (String, Value) {
    definition(json!({"supportedConfigs": kinds(), "installStrategy": {"type": "Manual"}}))
}

fn run(server: &Server, words: &[&str]) -> Run {
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    cli.run([&["addon"], words].concat())
}

fn ends(run: &Run, exit: i32, words: &[&str]) {
    assert_eq!(run.exit, exit, "{run}");
    for word in words {
        assert!(run.stdout.contains(word) || run.stderr.contains(word), "no {word:?} in {run}");
    }
}

/// What was asked by this method, without queries: paths.
fn asked(server: &Server, method: &str) -> Vec<String> {
    let of = |line: String| {
        line.strip_prefix(&format!("{method} ")).map(|path| path.split('?').next().unwrap_or_default().to_owned())
    };
    server.lines().into_iter().filter_map(of).collect()
}

#[test]
fn the_stages_of_a_rollout_are_told_with_what_they_wait_for() {
    let strategy = json!({"type": "ProgressivePerGroup", "progressivePerGroup": {
        "mandatoryDecisionGroups": [{"groupName": "canary"}]}});
    let (path, mut definition) = definition(json!({"supportedConfigs": kinds(), "installStrategy": {
        "type": "Placements", "placements": [{"namespace": "team", "name": "web", "rolloutStrategy": strategy}]}}));
    definition["status"] = json!({"installProgressions": [{"namespace": "team", "name": "web",
        "conditions": [condition("Progressing", "True", "Progressing")],
        "configReferences": [{"group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs",
            "desiredConfig": {"namespace": "default", "name": "all", "specHash": "2"}}]}]});
    let decision = |number: &str, name: &str, clusters: &[&str]| {
        let all: Vec<Value> = clusters.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
        let label = |label: &str| format!("cluster.open-cluster-management.io/{label}");
        let object = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
            "metadata": {"name": format!("web-{number}"), "namespace": "team", "labels": {
                (label("placement")): "web", (label("decision-group-index")): number, (label("decision-group-name")): name}},
            "status": {"decisions": all}});
        (format!("{CLUSTERS}/v1beta1/namespaces/team/placementdecisions/web-{number}"), object)
    };
    let server = hub(Objects::from([
        (path, definition),
        decision("0", "", &["c1", "c2"]),
        decision("1", "canary", &["c3"]),
        decision("2", "", &["c4"]),
        addon("c1", ("2", "1")),
        addon("c2", ("1", "1")),
        addon("c3", ("2", "2")),
        addon("c4", ("1", "1")),
    ]));
    let told = run(&server, &["status", "hello"]);
    assert_eq!(told.exit, 3, "not all of them have it: {told}");
    let stages: Vec<String> = told
        .stdout
        .lines()
        .filter(|line| line.starts_with("team/web ") && line.contains(" ProgressivePerGroup "))
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        stages,
        [
            "team/web ProgressivePerGroup 1 group 1 (canary) [##########] 1/1 Completed",
            "team/web ProgressivePerGroup 2 group 0 [----------] 0/2 Progressing c1: an earlier content of it is applied still \
             (and 1 more)",
            "team/web ProgressivePerGroup 3 group 2 [----------] 0/1 Pending stage 2",
        ],
        "{told}"
    );
    assert!(told.stdout.contains("its rollout has not come to the cluster"), "{told}");
    let told = run(&server, &["status", "hello", "-o", "json"]);
    let document: Value = serde_json::from_str(&told.stdout).expect("JSON");
    assert_eq!(
        document["rollout"][0],
        json!({"placement": "team/web", "strategy": "ProgressivePerGroup", "stage": 1, "group": "group 1 (canary)",
            "total": 1, "completed": 1, "state": "Completed"})
    );
    // Of one cluster alone it cannot be told.
    let told = run(&server, &["status", "hello", "--clusters=c3"]);
    assert!(told.exit == 0 && !told.stdout.contains("ROLLOUT"), "{told}");
}

#[test]
fn a_configuration_is_set_where_it_is_said_and_others_stay() {
    let (path, mut own) = addon("c1", ("1", "1"));
    own["spec"]["configs"] = json!([
        {"group": "", "resource": "configmaps", "namespace": "default", "name": "kept"},
        {"group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs", "namespace": "default",
            "name": "old"}]);
    let server = hub(Objects::from([manual(), (path.clone(), own), cluster("c1"), cluster("c2"), settings("new")]));
    let new = format!("--config={SETTINGS}/default/new");
    let set = |words: &[&str]| run(&server, &[&["config", "set", "hello"], words].concat());

    // Nothing is sent that cannot work.
    ends(&set(&["--clusters=c1", "--config=secrets/default/x"]), 3, &["takes no configuration of secrets"]);
    let missing = format!("--config={SETTINGS}/default/none");
    ends(&set(&["--clusters=c1", &missing]), 1, &[&format!("no {SETTINGS} default/none"), "nothing was changed"]);
    ends(
        &set(&["--clusters=c2", &new]),
        3,
        &["cluster \"c2\" has no add-on \"hello\"", "addon enable hello --clusters c2"],
    );
    ends(&set(&["--placement=team/web", &new]), 3, &["does not install add-on \"hello\" by placement team/web"]);
    ends(&run(&server, &["config", "set", "other", "--default", &new]), 3, &["no ClusterManagementAddOn \"other\""]);
    ends(&set(&["--clusters=c1", &new, "--dry-run"]), 0, &["hello -n c1 configured (dry run"]);
    ends(&set(&["--clusters=c1", &new, "--render"]), 0, &["name: kept", "name: new"]);
    assert_eq!(asked(&server, "PATCH"), Vec::<String>::new());

    ends(&set(&["--clusters=c1", &new]), 0, &["hello -n c1 configured", "addon status hello"]);
    ends(&set(&["--clusters=c1", &new, "-o", "json"]), 0, &["\"outcome\": \"unchanged\""]);
    ends(&set(&["--default", &new]), 0, &["/hello configured"]);
    let patches: Vec<Value> = server
        .asked()
        .into_iter()
        .filter(|asked| asked.line.starts_with("PATCH "))
        .map(|asked| serde_json::from_str(&asked.body).expect("JSON"))
        .collect();
    let names: Vec<&Value> =
        patches[0]["spec"]["configs"].as_array().expect("configs").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["kept", "new"], "{patches:?}");
    assert_eq!(
        patches[2]["spec"]["supportedConfigs"],
        json!([{"group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs",
            "defaultConfig": {"namespace": "default", "name": "new"}}])
    );
}

#[test]
fn a_configuration_is_unset_whoever_has_set_it() {
    let (path, mut own) = addon("c1", ("1", "1"));
    own["spec"]["configs"] = json!([{"group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs",
        "namespace": "default", "name": "own"}]);
    let server = hub(Objects::from([manual(), (path.clone(), own), cluster("c1")]));
    let kind = format!("--config={SETTINGS}");
    let unset = |words: &[&str]| run(&server, &[&["config", "unset", "hello"], words].concat());

    let other = format!("{kind}/default/other");
    ends(&unset(&["--clusters=c1", &other, "-o", "json"]), 0, &["\"outcome\": \"unchanged\""]);
    ends(&unset(&["--clusters=c1", &kind, "--dry-run"]), 0, &["hello -n c1 configured (dry run"]);
    let mistyped = unset(&["--clusters=c1", "--config=addondeploymentconfigs"]);
    let told = "neither takes nor has a configuration of addondeploymentconfigs; it takes those of: addontemplates.";
    ends(&mistyped, 0, &[told, &format!(", {SETTINGS}"), "hello -n c1 unchanged"]);
    assert_eq!(asked(&server, "PATCH"), Vec::<String>::new());

    ends(&unset(&["--clusters=c1", &kind]), 0, &["hello -n c1 configured"]);
    ends(&unset(&["--clusters=c1", &kind, "-o", "json"]), 0, &["\"outcome\": \"unchanged\""]);
    ends(&unset(&["--default", &kind]), 0, &["/hello configured"]);
    ends(&unset(&["--default", &kind, "-o", "json"]), 0, &["\"outcome\": \"unchanged\""]);
    let patches: Vec<Asked> = server.asked().into_iter().filter(|asked| asked.line.starts_with("PATCH ")).collect();
    assert_eq!(patches.len(), 2, "{:?}", server.lines());
    assert!(patches.iter().all(|asked| asked.header("content-type") == ["application/merge-patch+json"]));
    assert_eq!(
        serde_json::from_str::<Value>(&patches[0].body).expect("JSON"),
        json!({"metadata": {"resourceVersion": "1"}, "spec": {"configs": null, "installNamespace": "agents"}})
    );
    let left: Value = serde_json::from_str(&patches[1].body).expect("JSON");
    assert_eq!(left["spec"]["supportedConfigs"].as_array().map(Vec::len), Some(2), "{left}");
    assert!(left["spec"]["supportedConfigs"][1].get("defaultConfig").is_none(), "{left}");
}

fn configmap(name: &str) -> (String, Value) {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}});
    (format!("/api/v1/namespaces/default/configmaps/{name}"), object)
}

/// A reference to an object in namespace `default`.
fn reference(resource: &str, name: &str) -> Value {
    let group = if resource == "configmaps" { "" } else { "addon.open-cluster-management.io" };
    json!({"group": group, "resource": resource, "namespace": "default", "name": name})
}

#[test]
fn of_several_configurations_of_a_kind_none_is_dropped() {
    let (path, mut own) = addon("c1", ("1", "1"));
    own["spec"]["configs"] = json!([reference("configmaps", "a"), reference("configmaps", "b")]);
    let mut takes = kinds();
    takes.as_array_mut().expect("kinds").push(json!({"group": "", "resource": "configmaps"}));
    let placements = json!([{"namespace": "team", "name": "web", "configs": own["spec"]["configs"]}]);
    let definition = definition(json!({"supportedConfigs": takes,
        "installStrategy": {"type": "Placements", "placements": placements}}));
    let server =
        hub(Objects::from([definition, (path, own), cluster("c1"), configmap("a"), configmap("b"), configmap("new")]));
    let of = |name: &str| format!("--config=configmaps/default/{name}");
    let told = [
        "several configmaps: default/a, default/b: it was not changed",
        "addon config unset hello --config configmaps/",
    ];
    for words in [
        &["config", "set", "hello", "--clusters=c1"][..],
        &["enable", "hello", "--clusters=c1"],
        &["config", "set", "hello", "--placement=team/web"],
    ] {
        ends(&run(&server, &[words, &[of("new").as_str()]].concat()), 3, &told);
    }
    assert_eq!(asked(&server, "PATCH"), Vec::<String>::new());
    let (a, b, new) = (of("a"), of("b"), of("new"));
    let all = ["config", "set", "hello", "--clusters=c1", a.as_str(), b.as_str(), new.as_str()];
    ends(&run(&server, &all), 0, &["hello -n c1 configured"]);
    let patches: Vec<Asked> = server.asked().into_iter().filter(|asked| asked.line.starts_with("PATCH ")).collect();
    let sent: Value = serde_json::from_str(&patches[0].body).expect("JSON");
    let names: Vec<&Value> =
        sent["spec"]["configs"].as_array().expect("configs").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["a", "b", "new"], "{sent}");
}

#[test]
fn what_others_change_meanwhile_is_planned_with() {
    let (path, mut own) = addon("c1", ("1", "1"));
    own["spec"]["configs"] = json!([reference("addondeploymentconfigs", "old")]);
    let objects = Mutex::new((Objects::from([manual(), (path.clone(), own), cluster("c1"), settings("new")]), false));
    let server = Server::start(move |_, asked| {
        let (objects, is_changed) = &mut *objects.lock().expect("nobody panics");
        if asked.line.starts_with("PATCH ") && !*is_changed {
            *is_changed = true;
            let live = objects.get_mut(&path).expect("it is there");
            live["metadata"]["resourceVersion"] = json!("7");
            live["spec"]["configs"] =
                json!([reference("configmaps", "theirs"), reference("addondeploymentconfigs", "old")]);
            let conflict = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 409,
                "reason": "Conflict", "message": "the object has been modified"});
            return Reply::Json(409, conflict.to_string());
        }
        reply(objects, asked)
    });
    let new = format!("--config={SETTINGS}/default/new");
    let set = ["config", "set", "hello", "--clusters=c1", new.as_str()];
    ends(&run(&server, &set), 0, &["hello -n c1 configured"]);
    let patches: Vec<Asked> = server.asked().into_iter().filter(|asked| asked.line.starts_with("PATCH ")).collect();
    assert_eq!(patches.len(), 2, "{:?}", server.lines());
    let sent: Value = serde_json::from_str(&patches[1].body).expect("JSON");
    assert_eq!(sent["metadata"]["resourceVersion"], "7", "{sent}");
    let names: Vec<&Value> =
        sent["spec"]["configs"].as_array().expect("configs").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["theirs", "new"], "{sent}");
}

#[test]
fn the_last_template_is_not_unset() {
    let template =
        json!({"group": "addon.open-cluster-management.io", "resource": "addontemplates", "name": "hello-1"});
    let (path, mut own) = addon("c1", ("1", "1"));
    own["spec"]["configs"] = json!([template]);
    let mut objects = Objects::from([manual(), (path, own), cluster("c1")]);
    let kind = "--config=addontemplates.addon.open-cluster-management.io";
    let unset = |server: &Server, place: &str| run(server, &["config", "unset", "hello", place, kind]);
    let told = ["no AddOnTemplate on", "nothing was changed", "addon config set hello --config addontemplates."];
    let server = hub(objects.clone());
    ends(&unset(&server, "--clusters=c1"), 3, &told);
    // Nothing is lost where there is none.
    ends(&unset(&server, "--default"), 0, &[]);
    assert_eq!(asked(&server, "PATCH"), Vec::<String>::new());
    let (path, mut with) = manual();
    with["spec"]["supportedConfigs"][0]["defaultConfig"] = json!({"name": "hello-1"});
    objects.insert(path, with);
    let server = hub(objects);
    ends(&unset(&server, "--default"), 3, &told);
    assert_eq!(asked(&server, "PATCH"), Vec::<String>::new());
    ends(&unset(&server, "--clusters=c1"), 0, &["hello -n c1 configured"]);
}

#[test]
fn what_was_unset_is_waited_for_until_the_hub_has_taken_it() {
    let (path, mut own) = addon("c1", ("1", "1"));
    own["spec"]["configs"] = json!([reference("configmaps", "own")]);
    let mut left = reference("configmaps", "own");
    left["desiredConfig"] = json!({"namespace": "default", "name": "own", "specHash": ""});
    left["lastAppliedConfig"] = left["desiredConfig"].clone();
    own["status"]["configReferences"].as_array_mut().expect("references").push(left);
    let server = hub(Objects::from([manual(), (path, own), cluster("c1")]));
    let unset = ["config", "unset", "hello", "--clusters=c1", "--config=configmaps", "--wait", "--timeout=1s"];
    ends(&run(&server, &unset), 124, &["hello of c1: configmaps default/own: it was taken away"]);
    let told = run(&server, &["status", "hello"]);
    ends(&told, 3, &["default/own", "it was taken away, and that has not come to the cluster"]);
    let told = run(&server, &["status", "hello", "-o", "json"]);
    let document: Value = serde_json::from_str(&told.stdout).expect("JSON");
    let all = document["takenAway"].as_array().expect("a list");
    assert_eq!(
        (all.len(), &all[0]["object"], &all[0]["cluster"]),
        (1, &json!("default/own"), &json!("c1")),
        "{document}"
    );
}

#[test]
fn nobody_waits_for_what_placements_say_without_the_right_to_see_it() {
    let strategy = json!({"type": "Placements", "placements": [{"namespace": "team", "name": "web"}]});
    let definition = definition(json!({"supportedConfigs": kinds(), "installStrategy": strategy}));
    let objects = Mutex::new(Objects::from([definition, settings("new"), addon("c1", ("1", "1")), cluster("c1")]));
    let server = Server::start(move |_, asked| {
        let is_asked = asked.line.contains("selfsubjectaccessreviews") && asked.body.contains("placementdecisions");
        match is_asked {
            true => Reply::Json(
                201,
                json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "metadata": {}, "spec": {}, "status": {"allowed": false}})
                .to_string(),
            ),
            false => reply(&mut objects.lock().expect("nobody panics"), asked),
        }
    });
    let new = format!("--config={SETTINGS}/default/new");
    for words in [
        &["config", "set", "hello", "--default", new.as_str()][..],
        &["config", "unset", "hello", "--clusters=c1", new.as_str()],
        &["proxy-config", "hello", "--placement=team/web", "--http-proxy=http://p.example:1"],
    ] {
        let refused = run(&server, &[words, &["--wait", "--timeout=1s"]].concat());
        ends(&refused, 1, &["may not list placementdecisions.cluster.open-cluster-management.io in namespace team"]);
    }
    assert_eq!(asked(&server, "PATCH"), Vec::<String>::new());
    ends(&run(&server, &["config", "set", "hello", "--default", new.as_str()]), 0, &["/hello configured"]);
}

#[test]
fn a_template_of_a_placement_is_kept_and_told() {
    let template =
        json!({"group": "addon.open-cluster-management.io", "resource": "addontemplates", "name": "hello-0.0.1"});
    let placements = json!([{"namespace": "team", "name": "web", "configs": [template]}]);
    let definition = definition(json!({"supportedConfigs": kinds(),
        "installStrategy": {"type": "Placements", "placements": placements}}));
    let placement = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": "web", "namespace": "team"}, "spec": {}});
    let path = format!("{CLUSTERS}/v1beta1/namespaces/team/placements/web");
    let server = hub(Objects::from([definition, (path, placement)]));
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}});
    cli.write("agent.json", &object.to_string());
    let create = |version: &str| {
        let version = format!("--version={version}");
        cli.run(["addon", "create", "hello", "-f", "agent.json", "--placement=team/web", "--dry-run", version.as_str()])
    };
    let word = "placement team/web refers to AddOnTemplate hello-0.0.1";
    ends(&create("0.0.2"), 0, &[word, "/hello-0.0.2 created (dry run"]);
    let same = create("0.0.1");
    assert!(same.exit == 0 && !same.stderr.contains(word), "{same}");
}

#[test]
fn templates_stay_while_a_cluster_has_the_add_on_that_got_it_meanwhile() {
    let objects =
        Objects::from([manual(), template("hello-0.0.1", "kubectl-ocm"), addon("c1", ("1", "1")), cluster("c1")]);
    let objects = Mutex::new(objects);
    let server = Server::start(move |_, asked| {
        let objects = &mut *objects.lock().expect("nobody panics");
        // Somebody enables it there after it was looked, and the agent does not come to clean up.
        if asked.line.starts_with("DELETE ") && asked.line.contains("/clustermanagementaddons/") {
            let (path, late) = addon("c2", ("1", "1"));
            objects.insert(path, late);
        }
        reply(objects, asked)
    });
    let gone = run(&server, &["delete", "hello", "--force", "--yes", "--timeout=1s"]);
    ends(&gone, 124, &["waiting until no cluster has add-on \"hello\"", "these have it still: c2"]);
    assert!(!asked(&server, "DELETE").iter().any(|path| path.contains("/addontemplates/")), "{:?}", server.lines());
}

#[test]
fn an_add_on_is_deleted_with_our_templates_and_not_while_clusters_have_it() {
    let mut objects = Objects::from([
        manual(),
        template("hello-0.0.1", "kubectl-ocm"),
        template("hello-theirs", "helm"),
        addon("c1", ("1", "1")),
        cluster("c1"),
    ]);
    let (other, mut of_other) = template("other-0.0.1", "kubectl-ocm");
    of_other["spec"]["addonName"] = json!("other");
    objects.insert(other, of_other);
    let server = hub(objects.clone());
    let delete = |words: &[&str]| run(&server, &[&["delete", "hello"], words].concat());

    for words in [&["--yes"][..], &["--dry-run"]] {
        let refused = delete(words);
        ends(
            &refused,
            3,
            &["cluster \"c1\" has add-on \"hello\": nothing was deleted", "addon disable hello --clusters c1"],
        );
        assert!(refused.stderr.contains("--force"), "{refused}");
    }
    ends(
        &delete(&["--force", "--dry-run"]),
        0,
        &["hello -n c1 deleted (dry run", "/hello-0.0.1 deleted (dry run", "from the clusters that have it: c1"],
    );
    assert_eq!(asked(&server, "DELETE"), Vec::<String>::new());
    let tried = delete(&["--force", "--dry-run", "-o", "json"]);
    let document: Value = serde_json::from_str(&tried.stdout).expect("JSON");
    assert_eq!(document["addons"][0]["deleted"], json!(false), "{document}");
    // Nobody can be asked here.
    ends(&delete(&["--force"]), 2, &["cannot prompt"]);
    assert_eq!(asked(&server, "DELETE"), Vec::<String>::new());

    let gone = delete(&["--force", "--yes"]);
    ends(
        &gone,
        0,
        &[
            "hello -n c1 deleted",
            "/hello deleted",
            "/hello-0.0.1 deleted",
            "hello-theirs stays as it is: it was written by helm",
        ],
    );
    let all = [
        format!("{ADDONS}/namespaces/c1/managedclusteraddons/hello"),
        format!("{ADDONS}/clustermanagementaddons/hello"),
        format!("{ADDONS}/addontemplates/hello-0.0.1"),
    ];
    assert_eq!(asked(&server, "DELETE"), all);
    // Each as it was looked at.
    let uids: Vec<String> = server
        .asked()
        .into_iter()
        .filter(|asked| asked.line.starts_with("DELETE "))
        .map(|asked| {
            let options: Value = serde_json::from_str(&asked.body).expect("JSON");
            options["preconditions"]["uid"].as_str().unwrap_or_default().to_owned()
        })
        .collect();
    assert_eq!(uids, ["a-c1", "d1", "hello-0.0.1"]);

    // Once more there is nothing.
    let again = delete(&["--yes", "-o", "json"]);
    ends(&again, 0, &["the hub has no ClusterManagementAddOn \"hello\""]);
    let document: Value = serde_json::from_str(&again.stdout).expect("JSON");
    assert_eq!((&document["changed"], &document["addons"][0]["deleted"]), (&json!(false), &json!(false)), "{document}");
    assert_eq!(asked(&server, "DELETE").len(), 3);

    // One that the hub installs would come back: it is not defined any more before it goes from clusters.
    let (path, mut placed) = manual();
    placed["spec"]["installStrategy"] =
        json!({"type": "Placements", "placements": [{"namespace": "team", "name": "web"}]});
    objects.insert(path, placed);
    let server = hub(objects.clone());
    let delete = |words: &[&str]| run(&server, &[&["delete", "hello"], words].concat());
    ends(&delete(&["--yes"]), 3, &["the hub installs it by placements (team/web)", "it comes back"]);
    ends(&delete(&["--yes", "--force"]), 0, &["hello -n c1 deleted"]);
    let gone = asked(&server, "DELETE");
    assert_eq!((&gone[0], &gone[1]), (&all[1], &all[0]));

    // One that belongs to something stays, whatever is forced.
    let (path, mut owned) = manual();
    owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "g/v1", "kind": "App", "name": "x", "uid": "x"}]);
    objects.insert(path, owned);
    let server = hub(objects);
    let refused = run(&server, &["delete", "hello", "--yes", "--force"]);
    ends(&refused, 3, &["ClusterManagementAddOn \"hello\" belongs to App \"x\", which would recreate it"]);
    assert_eq!(asked(&server, "DELETE"), Vec::<String>::new());
}

#[test]
fn what_cannot_be_configured_is_a_usage_error() {
    let cli = Cli::with_kubeconfig(&kubeconfig("https://127.0.0.1:1", &["hub"]));
    for (words, told) in [
        ("set hello --config=x.g/n/a", "--clusters"),
        ("set hello --clusters=c1", "--config"),
        ("set hello --clusters=c1 --default --config=x.g/n/a", "--default"),
        ("set hello --default --config=x.g", "--config \"x.g\" is not RESOURCE.GROUP/NAMESPACE/NAME"),
        ("set hello --default --config=x.g/n/a --config=x.g/n/b", "twice"),
        ("set hello --clusters=c1 --config=x.g/n/a --config=x.g/n/a", "twice"),
        ("set hello --placement=web --config=x.g/n/a", "--placement \"web\" is not NAMESPACE/NAME"),
        ("set Hello --default --config=x.g/n/a", "cannot be the name of an add-on"),
        ("unset hello --default --config=x.g/", "--config \"x.g/\" is not RESOURCE.GROUP[/NAMESPACE/NAME]"),
        ("unset hello --default --config=x.g --timeout=soon", "--timeout"),
    ] {
        let run = cli.run(["addon", "config"].into_iter().chain(words.split_whitespace()));
        assert!(run.exit == 2 && run.stderr.contains(told), "{words}: {run}");
    }
}
