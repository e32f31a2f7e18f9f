//! `policy explain CLUSTER` on a real API server: why a cluster is let in, or what keeps it out.

use std::path::Path;

use e2e_tests::accept_support::{Ask, Hub, all_established};
use e2e_tests::approval_support::{approval, approve};
use e2e_tests::controller_support::{APPROVES, Controller, approving, registration, shared};
use e2e_tests::manifests::apply;
use e2e_tests::roles::{resources, user_with, users_without_one_rule};
use e2e_tests::webhook_support::policy;
use e2e_tests::{SOON, Said, kubectl_ocm, run, until_within};
use ocm_api::crds;
use serde_json::{Value, json};

fn until(what: &str, said: impl Fn() -> String, holds: impl Fn() -> bool) {
    until_within(SOON, what, said, holds);
}

fn explain(user: &Path, words: &[&str]) -> Said {
    run(kubectl_ocm("policy", user).arg("explain").args(words))
}

/// The document about a cluster.
fn document(user: &Path, cluster: &str) -> Value {
    let said = explain(user, &[cluster, "-o", "json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    serde_json::from_str(&said.stdout).expect("it prints JSON")
}

fn finding(user: &Path, cluster: &str) -> String {
    document(user, cluster)["finding"].as_str().unwrap_or_default().to_owned()
}

/// What is said of the opinion of a policy.
fn opinion(document: &Value, policy: &str) -> Value {
    let all = document["opinions"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|opinion| opinion["policy"] == policy).unwrap_or_default()
}

/// The definition of approvals, which these hubs do not have by themselves.
fn knows_approvals(hub: &Hub) {
    apply(&hub.cluster, crds::registration_approval_manifest().body());
    all_established(&hub.cluster);
}

#[test]
fn a_cluster_is_explained_from_its_first_word_to_its_tombstone() {
    let hub = shared(false);
    knows_approvals(&hub);
    let kubectl = |words: &[&str]| hub.cluster.kubectl(words).expect("kubectl does it");
    // The policy that approves is a file of somebody's, so that what it said can be replayed with it.
    let modules = cli_tests::guests(&cli_tests::target(), &["allowed-identities"]).expect("they are built");
    let module = modules[0].to_str().expect("the path is text");
    kubectl(&["create", "configmap", APPROVES, &format!("--from-file=policy.wasm={module}")]);
    hub.grant(&json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]));
    let approves = |approves: bool| {
        let mut spec = approving(approves);
        spec["module"] = json!({"configMap": {"namespace": "default", "name": APPROVES, "key": "policy.wasm"}});
        policy(&hub.cluster, APPROVES, spec);
    };
    approves(true);
    let settings = |hold: bool| json!({"module": {"builtin": "inventory"}, "settings": {"holdUnknown": hold}});
    policy(&hub.cluster, "inventory", settings(true));
    let namespace = "--namespace=open-cluster-management";
    kubectl(&["create", "configmap", "cluster-inventory", "--from-literal=c9=", namespace]);
    kubectl(&["create", "role", "inventory", "--verb=get,list,watch", "--resource=configmaps", namespace]);
    kubectl(&["create", "rolebinding", "inventory", "--role=inventory", "--user=controller", namespace]);
    let viewer = user_with(&hub.cluster, "viewer", &["policy-explain.yaml"]);
    let viewer = viewer.as_path();

    let said = explain(viewer, &["c1"]);
    assert!(said.code == Some(1) && said.stderr.contains("the hub has no managed cluster \"c1\""), "{said:?}");
    hub.register("c1");
    let said = explain(viewer, &["c1"]);
    assert!(said.code == Some(0) && said.stdout.contains("its agent has not asked for a certificate"), "{said:?}");
    let request = hub.ask(&Ask::agent("c1"));
    let said = explain(viewer, &["c1"]);
    assert!(said.stdout.starts_with("c1 asks to be let in, and its policies have not been evaluated yet"), "{said:?}");
    assert!(said.stdout.contains("kubectl get pods --namespace ocm-policy-engine"), "{said:?}");

    // Held.
    let mut controller = Controller::start(&hub);
    until("it is held", || format!("{:?}", explain(viewer, &["c1"])), || finding(viewer, "c1") == "Waits");
    let known = || {
        document(viewer, "c1")["opinions"]
            .as_array()
            .is_some_and(|all| all.iter().all(|one| one["doubts"] == json!([])))
    };
    until("the policies are observed", || document(viewer, "c1").to_string(), known);
    let said = explain(viewer, &["c1", "-o", "wide"]);
    let lines: Vec<&str> = said.stdout.lines().collect();
    let why = "c1 waits for policy inventory: the inventory has no cluster of this name (NotInInventory)";
    assert_eq!((said.code, lines[0]), (Some(0), why), "{said:?}");
    assert!(
        said.stdout.contains("  next: a person may let it in, where no policy refuses that: kubectl ocm accept c1\n"),
        "{said:?}"
    );
    let row = |policy: &str| {
        let line = lines.iter().find(|line| line.starts_with(&format!("{policy} "))).copied().unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("inventory")[..5], ["inventory", "Enforce", "Hold", "NotInInventory", "-"], "{said:?}");
    let allowing = row(APPROVES);
    assert_eq!((&allowing[2], &allowing[5], &allowing[7]), (&"Allow".into(), &allowing[6], &"true".into()), "{said:?}");
    assert!(said.stdout.contains("with JTI=") && said.stdout.contains(&format!("{request}, Pending, key sha256:")));
    let names = explain(viewer, &["c1", "-o", "name"]);
    assert_eq!(names.stdout, "hubpolicy.policy.kubectl-ocm.dev/inventory\n", "{names:?}");

    // A person approves it, which no policy of this hub counts.
    let said = approve(&hub, hub.cluster.kubeconfig(), &approval(&hub, "c1", "ann"));
    assert_eq!(said.code, Some(0), "{said:?}");
    let approvals = document(viewer, "c1")["approvals"].clone();
    assert_eq!((&approvals[0]["approver"], &approvals[0]["counted"]), (&json!("ann"), &json!("Yes")), "{approvals}");

    // The policy that holds is asked anew when it has changed, and what it says then is no longer doubted.
    policy(
        &hub.cluster,
        "inventory",
        json!({"module": {"builtin": "inventory"}, "settings": {"holdUnknown": true}, "onError": "Hold"}),
    );
    let now = || document(viewer, "c1");
    let generation = || registration(&hub, "c1")["decision"]["policies"].to_string().contains("\"generation\":2");
    until("it is asked anew", || registration(&hub, "c1").to_string(), generation);
    until("it is in force", || now().to_string(), || opinion(&now(), "inventory")["doubts"] == json!([]));
    // While nobody asks it, its word is an old one.
    controller.terminate();
    policy(&hub.cluster, "inventory", settings(false));
    assert_eq!(opinion(&now(), "inventory")["doubts"], json!(["Changed", "NotObserved"]), "{:#}", now());
    let said = explain(viewer, &["c1"]);
    assert!(said.stdout.contains("the policy was changed since; the last change of the policy was not observed yet"));
    kubectl(&["delete", "hpol", "inventory"]);
    assert_eq!(opinion(&now(), "inventory")["doubts"], json!(["Gone"]), "{:#}", now());

    // Let in.
    let _controller = Controller::start_as(&hub.cluster.user_kubeconfig("controller", &[]).expect("a user"));
    until("c1 is accepted", || now().to_string(), || hub.accepts("c1") && now()["finding"] == "LetIn");
    let said = explain(viewer, &["c1"]);
    assert!(said.stdout.starts_with(&format!("c1 was let in by policy {APPROVES} at 20")), "{said:?}");
    until("its key is written", || now().to_string(), || now()["keys"][0]["until"].is_string());
    let record = explain(viewer, &["c1", "--record"]);
    let value: Value = serde_json::from_str(&record.stdout).expect("a record is JSON");
    assert_eq!((record.code, &value["policy"]["name"]), (Some(0), &json!(APPROVES)), "{record:?}");
    let file = hub.cluster.dir().expect("a folder").join("record.json");
    std::fs::write(&file, &record.stdout).expect("written");
    let said = run(kubectl_ocm("policy", viewer).arg("replay").arg(&file).args(["--policy", module]));
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), "note: 1 record repeated byte for byte\n"), "{said:?}");

    // A person lets another one in.
    approves(false);
    kubectl(&["wait", "--for=jsonpath={.status.observedGeneration}=2", &format!("hpol/{APPROVES}"), "--timeout=90s"]);
    // Two that would let it in, and are about others; and one about other operations, of which nothing is told.
    let others = |name: &str, matches: Value, operations: Value| {
        let spec = approving(true);
        let spec = json!({"module": spec["module"], "settings": spec["settings"], "autoApprove": true,
            "match": matches, "operations": operations});
        policy(&hub.cluster, name, spec);
        let observed = "--for=jsonpath={.status.observedGeneration}=1";
        kubectl(&["wait", observed, &format!("hpol/{name}"), "--timeout=90s"]);
    };
    let in_europe = json!({"name": "in-europe", "expression": "'region' in request.cluster.labels"});
    others("european", json!({"conditions": [in_europe]}), json!(["join"]));
    others("labelled", json!({"clusterSelector": {"matchLabels": {"region": "eu"}}}), json!(["join"]));
    others("removals", json!({}), json!(["create"]));
    let request = hub.join("c2");
    until("it waits for a person", || document(viewer, "c2").to_string(), || finding(viewer, "c2") == "Waits");
    let said = explain(viewer, &["c2"]);
    assert!(said.stdout.starts_with("c2 waits for a person: no policy that approves allowed it"), "{said:?}");
    let row = |policy: &str, said: &Said| {
        let line = said.stdout.lines().find(|line| line.starts_with(&format!("{policy} "))).unwrap_or_default();
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let european = ["european", "Enforce", "not asked", "in-europe is false", "-"];
    assert_eq!(row("european", &said), european, "{said:?}");
    assert_eq!(
        row("labelled", &said)[2..4],
        ["not asked", "its match is about other signers, users or clusters"],
        "{said:?}"
    );
    assert!(row("removals", &said).is_empty(), "{said:?}");
    assert!(said.stdout.contains("next: look at the policy: kubectl ocm policy describe european\n"), "{said:?}");
    let told = document(viewer, "c2")["notAsked"].clone();
    let expected = json!([
        {"policy": "european", "unmetConditions": ["in-europe"], "doubts": []},
        {"policy": "labelled", "unmetConditions": [], "doubts": []},
    ]);
    assert_eq!(told, expected);
    others("labelled", json!({"clusterSelector": {"matchLabels": {"region": "us"}}}), json!(["join", "create"]));
    let doubts = || document(viewer, "c2")["notAsked"][1]["doubts"].clone();
    until("the policy is asked about anew", || doubts().to_string(), || doubts() == json!([]));
    hub.conclude(&request, "approve");
    hub.patch("c2", json!({"spec": {"hubAcceptsClient": true}}));
    until("a person did it", || document(viewer, "c2").to_string(), || finding(viewer, "c2") == "Accepted");

    // Removed.
    hub.remove("c1");
    until("it is a tombstone", || now().to_string(), || now()["finding"] == "Removed");
    until("it is seen", || now().to_string(), || registration(&hub, "c1")["removedAt"].is_string());
    let said = explain(viewer, &["c1"]);
    assert!(said.stdout.starts_with("c1 was removed from the hub at 20"), "{said:?}");
    assert!(said.stdout.contains("until then only a person gives its name away"), "{said:?}");
}

/// A Registration as the controller would have written it.
fn write(hub: &Hub, name: &str, status: &Value) {
    let object = json!({
        "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "Registration", "metadata": {"name": name}, "spec": {},
    });
    apply(&hub.cluster, &object);
    let patch = json!({"status": status}).to_string();
    let words = ["patch", "registration", name, "--subresource=status", "--type=merge", "--patch", &patch];
    hub.cluster.kubectl(&words).expect("it is written");
}

#[test]
fn what_strangers_wrote_steers_no_terminal_and_what_may_not_be_read_is_said() {
    let hub = shared(true);
    knows_approvals(&hub);
    hub.join("c1");
    let uid = hub.managed("c1").metadata.uid;
    let evil = "\u{1b}[31mroot\u{1b}[0m\u{202e}\u{200b}";
    let status = json!({
        "verdict": "Hold", "clusterUid": uid, "waitingFor": format!("policy strict: {evil} (No)"),
        "keptOutBy": {"who": "Policies", "policies": ["strict"]},
        "requester": {"username": evil, "credentialId": evil},
        "request": {"name": evil, "uid": "u", "spkiSha256": "a".repeat(64)},
        "decision": {"at": "2026-01-01T00:00:00Z", "record": evil,
            "policies": [{"policy": "strict", "verdict": "Hold", "codes": [evil]}],
            "notAsked": [{"policy": evil, "unmetConditions": [evil]}]},
    });
    write(&hub, "c1", &status);
    let viewer = user_with(&hub.cluster, "viewer", &["policy-explain.yaml"]);
    for words in [&["c1"][..], &["c1", "-o", "wide"], &["c1", "-o", "name"], &["c1", "--record"]] {
        let said = explain(&viewer, words);
        let printed = format!("{}{}", said.stdout, said.stderr);
        let steers = |c: char| (c.is_control() && c != '\n') || "\u{202e}\u{200b}".contains(c);
        assert!(!printed.contains(steers) && !printed.is_empty(), "{words:?}: {said:?}");
        // What is kept there is no record.
        assert_eq!(said.code, Some(i32::from(words.contains(&"--record"))), "{words:?}: {said:?}");
    }
    let said = explain(&viewer, &["c1\u{1b}[31m"]);
    assert!(said.code == Some(2) && !said.stderr.contains('\u{1b}'), "{said:?}");

    let full = document(&viewer, "c1");
    assert_eq!((&full["finding"], &full["unread"]), (&json!("Waits"), &json!([])), "{full:#}");
    let users = users_without_one_rule(&hub.cluster, "policy-explain.yaml");
    assert_eq!(users.len(), 5);
    for (user, rule) in &users {
        let missing = resources(rule);
        let document = document(user, "c1");
        let unread: Vec<&Value> =
            document["unread"].as_array().expect("a list").iter().map(|one| &one["what"]).collect();
        assert_eq!(unread, [&json!(missing[0])], "{document:#}");
        // Without what the controller wrote it is not known; without anything else that is told.
        let expected = if missing[0] == "registrations" { "Unknown" } else { "Waits" };
        assert_eq!(document["finding"], json!(expected), "{missing:?}: {document:#}");
        let said = explain(user, &["c1"]);
        assert!(said.code == Some(0) && said.stdout.contains(&format!("Not read:  {}: ", missing[0])), "{said:?}");
    }

    // Nothing but what the controller wrote.
    let only =
        json!({"rules": [{"apiGroups": ["policy.kubectl-ocm.dev"], "resources": ["registrations"], "verbs": ["get"]}]});
    let patch = only.to_string();
    let user = user_with(&hub.cluster, "only", &["policy-explain.yaml"]);
    hub.cluster
        .kubectl(&["patch", "clusterrole", "kubectl-ocm-policy-explain", "--type=merge", "--patch", &patch])
        .expect("patched");
    until(
        "the rights are gone",
        || document(&user, "c1").to_string(),
        || document(&user, "c1")["unread"].as_array().is_some_and(|unread| unread.len() == 4),
    );
    assert_eq!(finding(&user, "c1"), "Waits");
    let said = explain(&user, &["c2"]);
    assert!(said.code == Some(1) && said.stderr.contains("permission denied"), "{said:?}");
}

#[test]
fn a_hub_without_a_policy_engine_leaves_it_to_people() {
    let hub = Hub::start("explain-plain");
    let viewer = user_with(&hub.cluster, "viewer", &["policy-explain.yaml"]);
    let request = hub.join("c1");
    let said = explain(&viewer, &["c1"]);
    let first = "c1 waits for a person: this hub has no policy engine, so nobody else decides\n";
    assert!(said.code == Some(0) && said.stdout.starts_with(first) && said.stderr.is_empty(), "{said:?}");
    assert!(said.stdout.contains("kubectl ocm accept c1") && said.stdout.contains(&request), "{said:?}");
    assert!(!said.stdout.contains("Not read"), "{said:?}");
    let said = explain(&viewer, &["c1", "--record"]);
    assert!(said.code == Some(1) && said.stderr.contains("the policy engine is not installed"), "{said:?}");
    hub.conclude(&request, "approve");
    hub.patch("c1", json!({"spec": {"hubAcceptsClient": true}}));
    let said = explain(&viewer, &["c1"]);
    assert!(said.stdout.starts_with("c1 was accepted by a person or by Open Cluster Management"), "{said:?}");
    let said = explain(&viewer, &["c2"]);
    assert!(said.code == Some(1) && said.stderr.contains("the hub has no managed cluster \"c2\""), "{said:?}");
    hub.ask(&Ask::agent("c2"));
    let said = explain(&viewer, &["c2"]);
    assert!(said.code == Some(1) && said.stderr.contains("kubectl ocm get csr c2"), "{said:?}");
}
