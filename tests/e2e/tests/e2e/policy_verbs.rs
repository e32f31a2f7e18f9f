//! The verbs of `kubectl ocm policy` that are about the policies of a hub, on a real API server.

use std::path::Path;

use e2e_tests::accept_support::Hub;
use e2e_tests::controller_support::{APPROVES, Controller, registration, shared};
use e2e_tests::roles::{resources, user_with, users_without_one_right, users_without_one_rule};
use e2e_tests::webhook_support::{Webhook, policy};
use e2e_tests::{Said, kubectl_ocm, object, run, settled, until};
use ocm_core::policy_engine::{FailurePolicy, POLICIES};
use serde_json::{Value, json};

/// Runs `kubectl ocm policy` as the user of a kubeconfig.
fn ocm_policy(kubeconfig: &Path, words: &[&str]) -> Said {
    run(kubectl_ocm("policy", kubeconfig).args(words))
}

/// The same as an administrator; it has to end well.
fn right(hub: &Hub, words: &[&str]) -> Said {
    right_as(hub.cluster.kubeconfig(), words)
}

fn right_as(kubeconfig: &Path, words: &[&str]) -> Said {
    let said = ocm_policy(kubeconfig, words);
    assert_eq!(said.code, Some(0), "{words:?}: {said:?}");
    said
}

/// Whether the controller has looked at the newest version of a policy.
fn is_looked_at(hub: &Hub, name: &str) -> bool {
    let policy = object(&hub.cluster, &["hpol", name]);
    policy["status"]["observedGeneration"] == policy["metadata"]["generation"]
}

/// The row of a policy in a table, cell by cell.
fn row(said: &Said, name: &str) -> Vec<String> {
    let line = said.stdout.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap_or_default();
    line.split("   ").map(|cell| cell.trim().to_owned()).filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn policies_are_listed_and_described_with_what_waits_for_them() {
    let hub = shared(true);
    policy(&hub.cluster, "names", json!({"module": {"builtin": "name-pattern"}, "settings": {"patterns": ["prod-*"]}}));
    let entry = json!({"namespace": "default", "name": "quota.v2", "key": "quota.wasm"});
    policy(&hub.cluster, "broken", json!({"module": {"configMap": entry}, "mode": "Audit", "onError": "Hold"}));

    // Nobody has looked at them.
    let said = right(&hub, &["list"]);
    assert_eq!(
        said.stdout.lines().next().map(|line| line.split_whitespace().collect::<Vec<_>>()),
        Some(vec!["NAME", "MODULE", "MODE", "LOADED", "ENFORCING", "DIGEST", "AUTO-APPROVE", "AGE"])
    );
    assert_eq!(
        row(&said, "names")[1..7],
        ["name-pattern", "Enforce", "<none>", "<none>", "<none>", "False"],
        "{said:?}"
    );
    let said = right(&hub, &["describe", "names"]);
    assert!(said.stdout.contains("the policy controller has not looked at it"), "{said:?}");
    assert!(said.stdout.contains("kubectl get pods --namespace ocm-policy-engine"), "{said:?}");

    let controller = Controller::start(&hub);
    for name in ["names", "broken", APPROVES] {
        until("the status is written", || is_looked_at(&hub, name));
    }
    hub.join("test-1");
    hub.join("prod-1");
    until("test-1 is denied", || registration(&hub, "test-1")["verdict"] == "Deny");
    until("prod-1 is accepted", || registration(&hub, "prod-1")["verdict"] == "Allow");
    let said = right(&hub, &["list", "names", "broken", APPROVES, "names", "-o", "wide"]);
    assert_eq!(said.stdout.lines().count(), 4, "{said:?}");
    // No webhook is there.
    assert_eq!(row(&said, "names")[1..5], ["name-pattern", "Enforce", "True", "False"], "{said:?}");
    assert_eq!(row(&said, "broken")[1..7], ["quota.v2", "Audit", "False", "False", "<none>", "False"], "{said:?}");
    assert_eq!((row(&said, "broken")[8].as_str(), row(&said, APPROVES)[6].as_str()), ("Hold", "True"), "{said:?}");
    let named = "hubpolicy.policy.kubectl-ocm.dev/broken\nhubpolicy.policy.kubectl-ocm.dev/names\n";
    assert_eq!(right(&hub, &["list", "names", "broken", "-o", "name"]).stdout, named);
    let one: Value = serde_json::from_str(&right(&hub, &["list", "names", "-o", "json"]).stdout).expect("JSON");
    assert_eq!(one["spec"]["settings"], json!({"patterns": ["prod-*"]}));
    hub.cluster.kubectl(&["label", "hpol", "names", "team=a"]).expect("it is labelled");
    assert_eq!(right(&hub, &["list", "-l", "team=a", "-o", "name"]).stdout.lines().count(), 1);
    let said = ocm_policy(hub.cluster.kubeconfig(), &["list", "nmaes"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("error: the hub has no policy \"nmaes\"\n  hint: did you mean names?"), "{said:?}");

    let said = right(&hub, &["describe", "names"]);
    for words in [
        "Module:           builtin name-pattern\n",
        "Settings:         patterns:\n",
        "May change:       nothing\n",
        "Status:           of the newest version\n",
        "Registrations:    asked about 2 of 2: ",
        "Waiting for it:\n  CLUSTER   VERDICT   REASONS\n  test-1    Deny      ",
    ] {
        assert!(said.stdout.contains(words), "{words}: {}", said.stdout);
    }
    assert!(!said.stdout.contains("of another module"), "{}", said.stdout);
    let described: Value =
        serde_json::from_str(&right(&hub, &["describe", "names", "-o", "json"]).stdout).expect("JSON");
    let of = &described["registrations"];
    assert_eq!((&of["denied"], &of["asked"], &of["waiting"][0]["cluster"]), (&json!(1), &json!(2), &json!("test-1")));
    assert_eq!(described["statusIsCurrent"], json!(true));
    // What joins came to is written with the next change, or once a minute.
    let entry = json!({"namespace": "default", "name": "quota.v2", "key": "quota.wasm"});
    policy(&hub.cluster, "broken", json!({"module": {"configMap": entry}, "mode": "Warn", "onError": "Hold"}));
    until("decisions are counted", || {
        object(&hub.cluster, &["hpol", "names"])["status"]["decisions"]["denied"] != Value::Null
    });
    let decisions = object(&hub.cluster, &["hpol", "names"])["status"]["decisions"].clone();
    let count = |member: &str| decisions[member].as_u64().unwrap_or_default();
    assert!(count("denied") > 0 && count("allowed") > 0 && count("errors") == 0, "{decisions}");
    assert!(count("p50Micros") <= count("p99Micros") && count("p99Fuel") > 1_000, "{decisions}");
    let said = right(&hub, &["describe", "names"]);
    assert!(said.stdout.contains("\nJoins judged:     "), "{}", said.stdout);
    let said = right(&hub, &["describe", "broken"]);
    assert!(said.stdout.contains("key quota.wasm of ConfigMap default/quota.v2"), "{said:?}");
    assert!(said.stdout.contains("Next:             put its module or its settings right"), "{said:?}");

    // What was said of the former version is not taken for the present one.
    drop(controller);
    policy(&hub.cluster, "names", json!({"module": {"builtin": "name-pattern"}, "settings": {"patterns": ["test-*"]}}));
    assert_eq!(row(&right(&hub, &["list", "names"]), "names")[3..5], ["Unknown", "Unknown"]);
    let said = right(&hub, &["describe", "names"]);
    assert!(said.stdout.contains("of generation 1, and the newest is 2"), "{said:?}");
}

#[test]
fn what_another_version_would_have_decided_is_told() {
    let hub = shared(true);
    let viewer = user_with(&hub.cluster, "policy-viewer", &["policy-list.yaml"]);
    let replay = |flags: &[&str]| ocm_policy(&viewer, &[&["replay", "--since", "1h"][..], flags].concat());
    let settings = json!({"patterns": ["prod-*"]});
    policy(&hub.cluster, "names", json!({"module": {"builtin": "name-pattern"}, "settings": settings}));
    let said = replay(&["--policy", "names=name-pattern"]);
    assert!(said.code == Some(0) && said.stderr.contains("nothing was decided in that time"), "{said:?}");
    let controller = Controller::start(&hub);
    hub.join("test-1");
    hub.join("test-2");
    hub.join("prod-1");
    for name in ["test-1", "test-2"] {
        until("it is denied", || registration(&hub, name)["verdict"] == "Deny");
    }
    until("prod-1 is accepted", || registration(&hub, "prod-1")["verdict"] == "Allow");
    drop(controller);
    // As it is: nothing differs, though the pods made a component of the module.
    let same = replay(&["--policy", "names=name-pattern"]);
    assert!(same.code == Some(0) && same.stdout.is_empty(), "{same:?}");
    assert!(same.stderr.contains("all 2 decisions would be the same"), "{same:?}");
    assert!(same.stderr.contains("1 of the decisions are of policies that no module is named for"), "{same:?}");
    // With other settings one of them would not be denied.
    let flags = ["--policy", "names=name-pattern", "--settings", r#"{"patterns": ["prod-*", "*-2"]}"#];
    let said = replay(&flags);
    assert!(said.code == Some(3) && said.stderr.contains("1 of 2 decisions would be others"), "{said:?}");
    let row: Vec<&str> = said.stdout.lines().nth(1).expect("a row").split_whitespace().collect();
    assert_eq!((row[0], row[2], row[3]), ("test-2", "names", "deny:"), "{said:?}");
    assert!(!said.stdout.contains("test-1"), "{said:?}");
    let said = replay(&[&flags[..], &["-o", "json"]].concat());
    let told: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!((&told["decisions"], &told["differ"], &told["ofOtherPolicies"]), (&json!(2), &json!(1), &json!(1)));
    let one = &told["differences"][0];
    assert_eq!((&one["cluster"], &one["recorded"]["verdict"]), (&json!("test-2"), &json!("deny")), "{one}");
    assert_ne!(one["now"]["verdict"], json!("deny"), "{one}");
    assert_eq!(replay(&[&flags[..], &["-o", "name"]].concat()).stdout, "test-2\n");
    // The very module that decided needs no name; another one is of the policy that it names itself.
    assert!(replay(&["--policy", "name-pattern"]).stderr.contains("all 2 decisions would be the same"));
    let said = replay(&["--policy", "join-quota"]);
    assert!(said.code == Some(2) && said.stderr.contains("--policy POLICY=join-quota"), "{said:?}");
    let said = replay(&["--policy", "names=name-pattern", "--settings", r#"{"patterns": 3}"#]);
    assert!(said.code == Some(1) && said.stderr.contains("settings"), "{said:?}");
    let said = ocm_policy(&viewer, &["replay", "records.jsonl", "--policy", "x.wasm", "--as", "ann"]);
    assert_eq!(said.code, Some(2), "{said:?}");
}

#[test]
fn what_would_be_decided_is_told_and_nothing_is_changed() {
    let hub = shared(true);
    let viewer = user_with(&hub.cluster, "policy-planner", &["policy-explain.yaml", "policy-webhook.yaml"]);
    let folder = hub.cluster.dir().expect("a folder").to_owned();
    let written = |name: &str, objects: Value| {
        let file = folder.join(name);
        std::fs::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string())
            .expect("written");
        file.to_str().expect("text").to_owned()
    };
    let names = |patterns: Value, more: Value| {
        let mut spec = json!({"module": {"builtin": "name-pattern"}, "settings": {"patterns": patterns}});
        spec.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        json!({"apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "HubPolicy", "metadata": {"name": "names"}, "spec": spec})
    };
    let cluster = |name: &str| {
        json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
               "metadata": {"name": name}, "spec": {"hubAcceptsClient": false}})
    };
    policy(&hub.cluster, "names", names(json!(["prod-*"]), json!({}))["spec"].clone());
    let controller = Controller::start(&hub);
    let request = hub.join("test-1");
    until("test-1 is denied", || registration(&hub, "test-1")["verdict"] == "Deny");
    drop(controller);
    let before = settled(&hub.cluster);
    let explain = |name: &str, file: &str, flags: &[&str]| {
        ocm_policy(&viewer, &[&["explain", name, "--hypothetical", "-f", file][..], flags].concat())
    };
    let says =
        |said: &Said, words: &str| assert!(said.code == Some(0) && said.stdout.contains(words), "{words}: {said:?}");

    // Other settings would let it in, as long as nobody but this policy objected.
    let looser = written("looser.json", json!([names(json!(["test-*"]), json!({}))]));
    let said = explain("test-1", &looser, &[]);
    says(&said, "test-1 would be let in by approves\n");
    says(&said, "Today: Deny, waits for ");
    assert_eq!(row(&said, "names")[1..4], ["file", "Enforce", "allow"], "{said:?}");
    assert_eq!(row(&said, "approves")[1..4], ["hub", "Enforce", "allow"], "{said:?}");
    let told: Value = serde_json::from_str(&explain("test-1", &looser, &["-o", "json"]).stdout).expect("JSON");
    assert_eq!(
        (&told["verdict"], &told["letInBy"], &told["today"]["verdict"]),
        (&json!("allow"), &json!(["approves"]), &json!("Deny"))
    );
    // A policy that only records says what it would, and decides nothing.
    let audited = written("audited.json", json!([names(json!(["prod-*"]), json!({"mode": "Audit"}))]));
    let said = explain("test-1", &audited, &[]);
    says(&said, "test-1 would be let in by approves\n");
    assert_eq!(row(&said, "names")[2..5], ["Audit", "deny", "NamePattern"], "{said:?}");
    // Whoever is not asked does not object, and the condition that is false is named.
    let by_eva = json!({"name": "by-eva", "expression": r#"request.requester.username == "eva""#});
    let unmet = written("unmet.json", json!([names(json!(["prod-*"]), json!({"match": {"conditions": [by_eva]}}))]));
    let said = explain("test-1", &unmet, &[]);
    says(&said, "test-1 would be let in by approves\n");
    says(&said, "not asked   by-eva is false\n");
    let told: Value = serde_json::from_str(&explain("test-1", &unmet, &["-o", "json"]).stdout).expect("JSON");
    let names_of = |one: &&Value| one["policy"] == "names";
    let not_asked = told["notAsked"].as_array().and_then(|all| all.iter().find(names_of)).expect("it is listed");
    assert_eq!(not_asked["unmetConditions"], json!(["by-eva"]), "{told:#}");
    // What cannot be loaded closes its place, as on the hub.
    let broken = written("broken.json", json!([names(json!(7), json!({}))]));
    says(&explain("test-1", &broken, &[]), "test-1 would wait: names would give no usable answer\n");
    // What policies look at is that of the hub, under the files.
    let quota = json!({"apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "HubPolicy", "metadata": {"name": "quota"},
                       "spec": {"module": {"builtin": "join-quota"}, "settings": {"total": 1}}});
    let one = written("quota.json", json!([names(json!(["test-*"]), json!({})), quota]));
    says(&explain("test-1", &one, &[]), "test-1 would be let in by approves\n");
    let mut accepted = cluster("prod-8");
    accepted["spec"]["hubAcceptsClient"] = json!(true);
    accepted["metadata"]["uid"] = json!("8");
    let two = written("two.json", json!([names(json!(["test-*"]), json!({})), quota, accepted]));
    let said = explain("test-1", &two, &[]);
    assert!(said.stdout.starts_with("test-1 would ") && said.stdout.contains("quota"), "{said:?}");
    assert!(!said.stdout.contains("let in"), "{said:?}");
    // A cluster that is to come.
    let new = written("new.json", json!([cluster("test-9"), cluster("prod-9")]));
    says(&explain("test-9", &new, &[]), "the creation of test-9 would be denied by names\n");
    says(&explain("prod-9", &new, &[]), "prod-9 could be created; ");
    let said = explain("nobody", &new, &[]);
    assert!(said.code == Some(1) && said.stderr.contains("add its ManagedCluster to the files"), "{said:?}");
    let said = explain("test-1", &new, &["--settings", "{}"]);
    assert!(said.code == Some(2) && said.stderr.contains("--settings has no meaning"), "{said:?}");
    let said = ocm_policy(&viewer, &["explain", "test-1", "--hypothetical"]);
    assert!(said.code == Some(2) && said.stderr.contains("--filename"), "{said:?}");
    assert_eq!(settled(&hub.cluster), before);
    assert!(!hub.is("Approved", &request));
}

#[test]
fn whoever_lists_policies_needs_the_documented_rights_and_no_others() {
    let hub = shared(false);
    let all: [&[&str]; 3] = [&["list"], &["list", "csr-hygiene"], &["describe", "csr-hygiene"]];
    let viewer = user_with(&hub.cluster, "policy-viewer", &["policy-list.yaml"]);
    for words in all {
        let said = ocm_policy(&viewer, words);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{words:?}: {said:?}");
    }
    let said = ocm_policy(&viewer, &["describe", "csr-hygiene"]);
    assert!(said.stdout.contains("Registrations:    asked about 0 of 0"), "{said:?}");
    for (kubeconfig, rule) in users_without_one_rule(&hub.cluster, "policy-list.yaml") {
        match resources(&rule)[0].as_str() {
            "hubpolicies" => {
                for words in all {
                    let said = ocm_policy(&kubeconfig, words);
                    assert_eq!(said.code, Some(1), "{words:?}: {said:?}");
                    assert!(said.stderr.contains("hubpolicies"), "{words:?}: {said:?}");
                }
            }
            "registrations" => {
                let said = ocm_policy(&kubeconfig, &["describe", "csr-hygiene"]);
                assert_eq!(said.code, Some(0), "{said:?}");
                assert!(said.stdout.contains("Registrations:    unknown: cannot list registrations"), "{said:?}");
                assert!(said.stdout.contains("Mode:             Enforce"), "{said:?}");
            }
            other => panic!("{other} is tried by no test"),
        }
    }
}

/// The annotation, the mode and whether it approves.
fn switched(hub: &Hub, name: &str) -> (Value, Value, Value) {
    let policy = object(&hub.cluster, &["hpol", name]);
    let note = policy["metadata"]["annotations"]["policy.kubectl-ocm.dev/disabled"].clone();
    (note, policy["spec"]["mode"].clone(), policy["spec"]["autoApprove"].clone())
}

#[test]
fn a_disabled_policy_refuses_and_approves_nothing_until_it_is_enabled() {
    let hub = shared(true);
    let webhook = Webhook::start(&hub.cluster, &[]);
    webhook.configure_as_installed(&hub.cluster, FailurePolicy::Fail);
    policy(&hub.cluster, "names", json!({"module": {"builtin": "name-pattern"}, "settings": {"patterns": ["prod-*"]}}));
    // No version of it could ever be loaded, so it refuses everything.
    policy(&hub.cluster, "never", json!({"module": {"builtin": "name-pattern"}, "settings": {"pattern": "x"}}));
    let registers = |name: &str| {
        let cluster = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": {"name": name},
            "spec": {"hubAcceptsClient": false},
        });
        let file = hub.cluster.dir().expect("a folder").join("cluster.json");
        std::fs::write(&file, cluster.to_string()).expect("it is written");
        let file = file.to_str().expect("text");
        hub.cluster.kubectl(&["create", "--dry-run=server", "--filename", file]).is_ok()
    };
    until("the broken policy refuses", || !registers("prod-1"));
    assert_eq!(ocm_policy(hub.cluster.kubeconfig(), &["disable", "never"]).code, Some(2), "nobody can be asked");
    right(&hub, &["disable", "never", "--yes"]);
    until("the broken policy refuses nothing", || registers("prod-1"));
    until("names refuses", || !registers("dev-1"));

    // Tried only.
    let said = right(&hub, &["disable", "names", APPROVES, "--dry-run"]);
    let rows = format!(
        "hubpolicy.policy.kubectl-ocm.dev/{APPROVES} configured (dry run)\nhubpolicy.policy.kubectl-ocm.dev/names \
         configured (dry run)\n"
    );
    assert_eq!(said.stdout, rows);
    right(&hub, &["disable", "names", APPROVES, "--dry-run=server"]);
    let said = ocm_policy(hub.cluster.kubeconfig(), &["disable", "names", "nmaes", "--yes"]);
    assert!(said.code == Some(1) && said.stderr.contains("the hub has no policy \"nmaes\""), "{said:?}");
    let as_it_was = (Value::Null, json!("Enforce"), Value::Null);
    assert_eq!(switched(&hub, "names"), as_it_was);

    let before = object(&hub.cluster, &["hpol", "names"])["spec"].clone();
    right(&hub, &["disable", "names", APPROVES, "--yes"]);
    let note = json!(r#"{"autoApprove":false,"mode":"Enforce"}"#);
    assert_eq!(switched(&hub, "names"), (note, json!("Audit"), Value::Null));
    let note = json!(r#"{"autoApprove":true,"mode":"Enforce"}"#);
    assert_eq!(switched(&hub, APPROVES), (note, json!("Audit"), Value::Null));
    until("names refuses nothing", || registers("dev-1"));
    assert_eq!(row(&right(&hub, &["list", "names"]), "names")[2], "Audit (disabled)");
    // The same again changes nothing.
    let version = || object(&hub.cluster, &["hpol", "names"])["metadata"]["resourceVersion"].clone();
    let at = version();
    let said = right(&hub, &["disable", "names"]);
    assert_eq!(said.stdout, "hubpolicy.policy.kubectl-ocm.dev/names unchanged\n", "nobody has to be asked");
    assert_eq!(version(), at);

    right(&hub, &["enable", "names", APPROVES]);
    assert_eq!(switched(&hub, "names"), as_it_was);
    assert_eq!(object(&hub.cluster, &["hpol", "names"])["spec"], before);
    assert_eq!(switched(&hub, APPROVES), (Value::Null, json!("Enforce"), json!(true)));
    until("names refuses", || !registers("dev-1"));
    let said = right(&hub, &["enable", "names"]);
    assert!(said.stderr.contains("note: policy names is not disabled: its mode is Enforce"), "{said:?}");

    // What somebody has changed in between stays.
    right(&hub, &["disable", "names", APPROVES, "--yes"]);
    hub.cluster
        .kubectl(&["patch", "hpol", "names", "--type=merge", "--patch", r#"{"spec":{"mode":"Warn"}}"#])
        .expect("patched");
    let said = ocm_policy(hub.cluster.kubeconfig(), &["enable", APPROVES, "names"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(
        said.stderr.contains("\"names\" was changed after it was disabled: mode Warn now, and mode Enforce before"),
        "{said:?}"
    );
    assert_eq!(switched(&hub, "names").1, "Warn");
    assert_eq!(switched(&hub, APPROVES).1, "Audit", "all or none");
}

#[test]
fn what_the_installer_sets_again_is_told() {
    let hub = shared(false);
    let name = "csr-hygiene";
    assert!(POLICIES.contains(&name));
    let said = right(&hub, &["disable", name, "name-claim", "--yes"]);
    assert!(
        said.stderr.contains("the next kubectl ocm install policy-engine sets the mode of csr-hygiene again"),
        "{said:?}"
    );
    policy(&hub.cluster, "own", json!({"module": {"builtin": name}}));
    assert!(!right(&hub, &["disable", "own", "--yes"]).stderr.contains("install policy-engine"));
    // As it does: its own plan, applied as it applies it.
    let outline = ocm_core::policy_engine::outline(&Default::default());
    let planned =
        outline.objects().find(|object| object.kind() == "HubPolicy" && object.name() == name).expect("planned");
    let file = hub.cluster.dir().expect("a folder").join("planned.json");
    std::fs::write(&file, planned.body().to_string()).expect("it is written");
    let file = file.to_str().expect("text");
    let apply = ["apply", "--server-side", "--force-conflicts", "--field-manager=kubectl-ocm", "--filename", file];
    hub.cluster.kubectl(&apply).expect("it is applied");
    assert_eq!(switched(&hub, name).1, "Enforce");
    // What it was is what it is: only the note goes.
    assert_eq!(right(&hub, &["enable", name]).code, Some(0));
    assert_eq!(switched(&hub, name), (Value::Null, json!("Enforce"), Value::Null));
}

#[test]
fn whoever_switches_policies_needs_the_documented_rights_and_no_others() {
    let hub = shared(false);
    let keeper = user_with(&hub.cluster, "policy-keeper", &["policy-enable.yaml"]);
    for words in [&["disable", "csr-hygiene", "--yes"][..], &["enable", "csr-hygiene"]] {
        let said = ocm_policy(&keeper, words);
        assert_eq!(said.code, Some(0), "{words:?}: {said:?}");
    }
    let before = switched(&hub, "csr-hygiene");
    let users = users_without_one_right(&hub.cluster, "policy-enable.yaml");
    assert_eq!(users.len(), 2);
    for (user, missing) in users {
        for words in [&["disable", "csr-hygiene", "--yes"][..], &["enable", "csr-hygiene"]] {
            let said = ocm_policy(hub.cluster.kubeconfig(), &[words, &["--as", &user]].concat());
            assert_eq!(said.code, Some(1), "{words:?}: {said:?}");
            assert!(said.stderr.contains(&format!("{missing} \"csr-hygiene\"")), "{missing}: {said:?}");
        }
    }
    assert_eq!(switched(&hub, "csr-hygiene"), before);
}

/// Writes a file beside the hub and returns its path.
fn file(hub: &Hub, name: &str, text: &str) -> String {
    let path = hub.cluster.dir().expect("a folder").join(name);
    std::fs::write(&path, text).expect("it is written");
    path.to_str().expect("text").to_owned()
}

fn sha256(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn with_module(pattern: &str) -> String {
    format!(
        "apiVersion: policy.kubectl-ocm.dev/v1alpha1\nkind: HubPolicy\nmetadata: {{name: names}}\nspec:\n  module:\n    \
         configMap: {{namespace: default, name: names, key: policy.wasm}}\n  settings: {{patterns: [{pattern}]}}\n"
    )
}

#[test]
fn what_is_applied_is_in_force_and_what_is_broken_never_arrives() {
    let modules = cli_tests::guests(&cli_tests::target(), &["name-pattern", "freeze-window"]).expect("they are built");
    let digests = [&modules[0], &modules[1]].map(|path| sha256(&std::fs::read(path).expect("a module")));
    let hub = shared(false);
    hub.grant(&json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]));
    let controller = Controller::start(&hub);
    let writer = user_with(&hub.cluster, "policy-writer", &["policy-apply.yaml"]);
    let policies = file(&hub, "policies.yaml", &with_module("prod-*"));
    let module = format!("names={}", modules[0].display());
    let all = ["apply", "-f", &policies, "--module", &module];
    let found = || hub.cluster.kubectl(&["get", "hpol,configmap", "--output=name"]).expect("they are listed");
    let before = found();

    // Nothing is changed by looking.
    let rows = "configmap/names created (dry run)\nhubpolicy.policy.kubectl-ocm.dev/names created (dry run)\n";
    assert_eq!(right_as(&writer, &[&all[..], &["--dry-run"]].concat()).stdout, rows);
    let said = ocm_policy(hub.cluster.kubeconfig(), &[&all[..], &["--diff"]].concat());
    assert!(
        said.code == Some(3) && said.stdout.contains("+++ planned/hubpolicy") && said.stdout.len() < 4096,
        "{said:?}"
    );
    right_as(&writer, &[&all[..], &["--dry-run=server"]].concat());
    assert_eq!(found(), before);

    let said = right_as(&writer, &[&all[..], &["--wait"]].concat());
    let rows = "configmap/names created\nhubpolicy.policy.kubectl-ocm.dev/names created\n";
    assert_eq!(said.stdout, rows);
    assert!(said.stderr.contains("note: every policy is in force as it was applied"), "{said:?}");
    let policy = object(&hub.cluster, &["hpol", "names"]);
    assert_eq!((&policy["spec"]["sha256"], &policy["status"]["sha256"]), (&json!(digests[0]), &json!(digests[0])));
    // The same again changes nothing.
    let said = right_as(&writer, &[&all[..], &["--wait"]].concat());
    assert_eq!(said.stdout, rows.replace("created", "unchanged"));

    // Whatever is wrong stops all of it, before anything is written.
    let good = json!({"apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "HubPolicy", "metadata": {"name": "good"},
                      "spec": {"module": {"builtin": "csr-hygiene"}}});
    let with = |spec: Value| {
        let mut other = good.clone();
        (other["metadata"]["name"], other["spec"]) = (json!("wrong"), spec);
        file(&hub, "wrong.json", &json!({"apiVersion": "v1", "kind": "List", "items": [good, other]}).to_string())
    };
    let before = found();
    for (spec, why) in [
        (json!({"module": {"builtin": "name-patern"}}), "hint: did you mean name-pattern?"),
        (json!({"module": {"builtin": "name-pattern"}, "settings": {"pattern": "x"}}), "unknown field `pattern`"),
    ] {
        let said = ocm_policy(hub.cluster.kubeconfig(), &["apply", "-f", &with(spec)]);
        assert!(said.code == Some(2) && said.stderr.contains(why) && said.stdout.is_empty(), "{why}: {said:?}");
    }
    assert_eq!(found(), before);
    // A member that nobody knows is the API server's to refuse.
    let said = ocm_policy(
        hub.cluster.kubeconfig(),
        &["apply", "-f", &with(json!({"module": {"builtin": "name-claim"}, "mod": "x"}))],
    );
    assert!(said.code == Some(1) && said.stderr.contains(".spec.mod"), "{said:?}");

    // Another module: it is in force when the command ends. What the file no longer says is gone.
    let other = format!("names={}", modules[1].display());
    file(
        &hub,
        "policies.yaml",
        &with_module("x").replace("  settings: {patterns: [x]}\n", "  settings: {windows: []}\n"),
    );
    let said = ocm_policy(hub.cluster.kubeconfig(), &["apply", "-f", &policies, "--module", &other, "--wait"]);
    // It judges less than the former one, which the hub does not put in force.
    assert!(said.code == Some(1) || said.code == Some(0), "{said:?}");
    // What others have set in the settings goes, for they are one value.
    let merge = ["patch", "hpol", "names", "--type=merge", "--patch", r#"{"spec":{"settings":{"prefixes":["x"]}}}"#];
    hub.cluster.kubectl(&merge).expect("it is patched");
    file(&hub, "policies.yaml", &with_module("dev-*"));
    right_as(&writer, &[&all[..], &["--wait"]].concat());
    let policy = object(&hub.cluster, &["hpol", "names"]);
    assert_eq!(policy["spec"]["settings"], json!({"patterns": ["dev-*"]}));
    assert_eq!(policy["status"]["sha256"], json!(digests[0]));

    // Disabled, it stays so where the file says nothing about it.
    right(&hub, &["disable", "names", "--yes"]);
    let said = right_as(&writer, &all);
    assert!(said.stderr.contains("names is disabled, and stays so"), "{said:?}");
    file(&hub, "policies.yaml", &(with_module("dev-*") + "  mode: Enforce\n"));
    let said = right_as(&writer, &all);
    assert!(said.stderr.contains("names was disabled, and counts again as the file says"), "{said:?}");

    // Whoever takes autoApprove out of the file takes it away, also after it was put back by another command.
    file(&hub, "policies.yaml", &(with_module("dev-*") + "  mode: Enforce\n  autoApprove: true\n"));
    right_as(&writer, &all);
    right(&hub, &["disable", "names", "--yes"]);
    right(&hub, &["enable", "names"]);
    assert_eq!(switched(&hub, "names").2, json!(true));
    file(&hub, "policies.yaml", &with_module("dev-*"));
    right_as(&writer, &all);
    assert_eq!(switched(&hub, "names").2, json!(false));

    // Nobody is there to put anything in force.
    drop(controller);
    file(&hub, "policies.yaml", &with_module("new-*"));
    let said = ocm_policy(hub.cluster.kubeconfig(), &[&all[..], &["--wait", "--timeout", "2s"]].concat());
    assert_eq!(said.code, Some(124), "{said:?}");
    assert!(said.stderr.contains("the policy controller has not looked at names yet"), "{said:?}");
    assert!(said.stderr.contains("kubectl get pods --namespace ocm-policy-engine"), "{said:?}");
}

#[test]
fn a_version_that_the_hub_cannot_load_is_told_with_its_sentence() {
    let hub = shared(false);
    let _controller = Controller::start(&hub);
    // It is not in the files, so only the hub can tell.
    let elsewhere = file(&hub, "elsewhere.yaml", &with_module("prod-*"));
    let said = ocm_policy(hub.cluster.kubeconfig(), &["apply", "-f", &elsewhere, "--wait"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("note: the module of policy names is not in the files"), "{said:?}");
    assert!(
        said.stderr.contains("error: policy \"names\" is applied, and its new version is not in force"),
        "{said:?}"
    );
    assert!(said.stderr.contains("ConfigMap default/names"), "{said:?}");
    // The module comes later, and the policy is as it was.
    hub.grant(&json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]));
    let modules = cli_tests::guests(&cli_tests::target(), &["name-pattern"]).expect("they are built");
    let from = format!("--from-file=policy.wasm={}", modules[0].display());
    let map = hub.cluster.kubectl(&["create", "configmap", "names", &from, "--dry-run=client", "--output=json"]);
    let mut map: Value = serde_json::from_str(&map.expect("it is printed")).expect("JSON");
    map["metadata"]["namespace"] = json!("default");
    let digest = sha256(&std::fs::read(&modules[0]).expect("a module"));
    let pinned = file(&hub, "pinned.yaml", &(with_module("prod-*") + &format!("  sha256: {digest}\n")));
    hub.cluster
        .kubectl(&[
            "patch",
            "hpol",
            "names",
            "--type=merge",
            "--patch",
            &json!({"spec": {"sha256": digest}}).to_string(),
        ])
        .expect("patched");
    until("it is looked at", || is_looked_at(&hub, "names"));
    let map = file(&hub, "map.json", &map.to_string());
    let said = right(&hub, &["apply", "-f", &pinned, "-f", &map, "--wait"]);
    assert!(said.stdout.contains("configmap/names created"), "{said:?}");
}

#[test]
fn whoever_applies_policies_needs_the_documented_rights_and_no_others() {
    let hub = shared(false);
    let modules = cli_tests::guests(&cli_tests::target(), &["name-pattern"]).expect("they are built");
    let policies = file(&hub, "policies.yaml", &with_module("prod-*"));
    let module = format!("names={}", modules[0].display());
    let all = ["apply", "-f", &policies, "--module", &module];
    let writer = user_with(&hub.cluster, "policy-writer", &["policy-apply.yaml"]);
    let said = ocm_policy(&writer, &all);
    assert_eq!(said.code, Some(0), "{said:?}");
    for (verbs, resource, name) in [
        (["get", "create", "patch"], "hubpolicies.policy.kubectl-ocm.dev", "names"),
        (["get", "create", "patch"], "configmaps", "names"),
    ] {
        for verb in verbs {
            let user = format!("without-{verb}-{}", &resource[..3]);
            let mut rules = Vec::new();
            for (group, plural) in [("policy.kubectl-ocm.dev", "hubpolicies"), ("", "configmaps")] {
                let verbs: Vec<&str> = ["get", "create", "patch"]
                    .into_iter()
                    .filter(|other| *other != verb || !resource.starts_with(plural))
                    .collect();
                rules.push(json!({"apiGroups": [group], "resources": [plural], "verbs": verbs}));
            }
            e2e_tests::roles::bind_rules(&hub.cluster, &user, &rules);
            let said = ocm_policy(hub.cluster.kubeconfig(), &[&all[..], &["--as", &user]].concat());
            assert_eq!(said.code, Some(1), "{said:?}");
            let missing = format!("may not {verb} {resource} \"{name}\"");
            assert!(said.stderr.contains("your user lacks rights to apply policies"), "{said:?}");
            assert!(
                said.stderr.contains(&missing) && said.stderr.matches("because").count() == 1,
                "{missing}: {said:?}"
            );
        }
    }
}
