//! Reviews as an API server may send them: of forged and unfinished objects, of collections, of two answers at once, and of
//! large objects.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use csr_fixtures::Fixture;
use e2e_tests::accept_support::{Ask, Hub, Who, managed_cluster};
use e2e_tests::refusals::{Answer, CLUSTERS, Call, REQUESTS, Sender};
use e2e_tests::until;
use e2e_tests::webhook_support::{HYGIENE, Webhook, add_ons, policy, prepare};
use kube::Api;
use kube::api::{Patch, PatchParams};
use ocm_api::ManagedCluster;
use serde_json::{Value, json};

/// A hub with the policies that are installed, asked as an installation has it.
fn hub(name: &str) -> (Hub, Webhook) {
    let hub = Hub::start(name);
    add_ons(&hub.cluster);
    prepare(&hub.cluster);
    for name in HYGIENE {
        policy(&hub.cluster, name, json!({"module": {"builtin": name}}));
    }
    let webhook = Webhook::start(&hub.cluster, &[]);
    webhook.configure_and_wait(&hub.cluster);
    hub.grant(&json!([
        {"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclusters"], "verbs": ["*"]},
        {"apiGroups": ["certificates.k8s.io"], "resources": ["*"], "verbs": ["*"]},
    ]));
    (hub, webhook)
}

fn sent(hub: &Hub, who: Who, call: &Call, dry_run: bool) -> Answer {
    Answer::of(&call.path, hub.wait(Sender::new(hub.client(who)).send(call, dry_run)))
}

fn refused(code: &str) -> Answer {
    Answer::Webhook(code.to_owned())
}

#[test]
fn what_clients_write_in_the_servers_place_changes_no_verdict() {
    let (hub, webhook) = hub("reviews-forged");
    hub.register("c1");
    let account = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap";

    // Who asks is who the API server knows, whatever stands in the request.
    let forged = |user: &str, groups: &[&str]| {
        let mut object = json!(Ask { name: Some(format!("forged-{}", groups.len())), ..Ask::agent("c1") }.object());
        object["spec"]["username"] = json!(user);
        object["spec"]["groups"] = json!(groups);
        object["spec"]["uid"] = json!("1");
        object["spec"]["extra"] = json!({"authentication.kubernetes.io/credential-id": ["JTI=1"]});
        Call::create(REQUESTS, object)
    };
    let groups = ["system:serviceaccounts", "system:serviceaccounts:open-cluster-management", "system:authenticated"];
    let as_account = forged(account, &groups);
    assert_eq!(sent(&hub, Who::Eva, &as_account, false), refused("Requester"));
    until("it is in the log", || !webhook.decisions("forged-3").is_empty());
    assert!(webhook.decisions("forged-3").iter().all(|line| line["requester"] == "eva"));
    let as_nobody = forged("eva", &[]);
    assert_eq!(sent(&hub, Who::Bootstrap, &as_nobody, false), Answer::Passed);
    assert_eq!(hub.request("forged-0").spec.username.as_deref(), Some(account));

    // A dry run comes to the same and leaves nothing, and the log tells it from others.
    let before = hub.versions();
    let wrong = |change: &dyn Fn(&mut Value)| {
        let mut object = json!(managed_cluster("wrong"));
        change(&mut object);
        Call::create(CLUSTERS, object)
    };
    let labelled = wrong(&|object| object["metadata"]["labels"] = json!({"env": "prod"}));
    for dry_run in [true, false] {
        assert_eq!(sent(&hub, Who::Bootstrap, &labelled, dry_run), refused("Labels"), "{dry_run}");
    }
    assert_eq!(sent(&hub, Who::Bootstrap, &wrong(&|_| ()), true), Answer::Passed);
    assert_eq!(hub.versions(), before);
    until("all are in the log", || webhook.decisions("wrong").len() >= 3);
    let dry: BTreeSet<String> = webhook.decisions("wrong").iter().map(|line| line["dryRun"].to_string()).collect();
    assert_eq!(dry.len(), 2, "{dry:?}");

    // A name that the API server makes up is judged as every other one.
    let names = json!({"module": {"builtin": "name-pattern"}, "settings": {"patterns": ["edge-*", "c*"]}});
    policy(&hub.cluster, "names", names);
    let generated = |prefix: &str| wrong(&|object| object["metadata"] = json!({"generateName": prefix}));
    until("the names are judged", || sent(&hub, Who::Bootstrap, &generated("dev-"), true) != Answer::Passed);
    until("they are in force", || sent(&hub, Who::Bootstrap, &generated("edge-"), true) == Answer::Passed);
    assert_eq!(sent(&hub, Who::Bootstrap, &generated("dev-"), true), refused("NamePattern"));

    // Server-side apply creates and changes what other requests may, and nothing else.
    let applied = |who: Who, name: &str, object: Value| {
        let api: Api<ManagedCluster> = Api::all(hub.client(who));
        let parameters = PatchParams { dry_run: true, ..PatchParams::apply("test").force() };
        let answer = hub.wait(api.patch(name, &parameters, &Patch::Apply(object)));
        Answer::of("an apply", answer.map(|cluster| json!(cluster)))
    };
    let object = |name: &str, metadata: Value, spec: Value| {
        let mut object = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": metadata, "spec": spec,
        });
        object["metadata"]["name"] = json!(name);
        object
    };
    let none = || json!({"hubAcceptsClient": false});
    assert_eq!(applied(Who::Bootstrap, "c3", object("c3", json!({}), none())), Answer::Passed);
    let labels = json!({"labels": {"env": "prod"}});
    assert_eq!(applied(Who::Bootstrap, "c3", object("c3", labels, none())), refused("Labels"));
    let accepted = object("c3", json!({}), json!({"hubAcceptsClient": true}));
    assert_eq!(applied(Who::Bootstrap, "c3", accepted), refused("AcceptedAtCreation"));
    let other = object("c1", json!({"annotations": {"agent.open-cluster-management.io/x": "y"}}), json!({}));
    assert_eq!(applied(Who::AgentOfC2, "c1", other), refused("OtherCluster"));

    // Of a collection that is deleted, each is judged by its name.
    for name in ["c4", "c5", "c6"] {
        hub.register(name);
        hub.cluster.kubectl(&["label", "managedcluster", name, "batch=1"]).expect("a label");
    }
    let collection = format!("{CLUSTERS}?labelSelector=batch%3D1");
    let delete = Call { method: "DELETE", path: collection, body: json!({}) };
    assert_eq!(sent(&hub, Who::Admin, &delete, false), Answer::Passed);
    for name in ["c4", "c5", "c6"] {
        let is_judged = || webhook.decisions(name).iter().any(|line| line["operation"] == "delete");
        until(&format!("{name} is judged"), is_judged);
    }
}

#[test]
fn of_an_approval_and_a_denial_at_once_one_counts() {
    let (hub, _webhook) = hub("reviews-twice");
    let [admin, other] = [Who::Admin, Who::Eva].map(|who| Sender::new(hub.client(who)));
    for index in 0..20 {
        let request = hub.join(&format!("c{index}"));
        let read = json!(hub.request(&request));
        let calls = ["Approved", "Denied"].map(|condition| {
            let mut call = Call::conclude(read.clone(), condition);
            // Whoever names a version writes only what has not changed since; others write in any case.
            if index % 2 == 0 {
                call.body["metadata"]["resourceVersion"] = read["metadata"]["resourceVersion"].clone();
            }
            call
        });
        let answers = hub.wait(async {
            let (one, two) = futures::join!(admin.send(&calls[0], false), other.send(&calls[1], false));
            [one, two].map(|answer| answer.is_ok())
        });
        let kinds = [hub.is("Approved", &request), hub.is("Denied", &request)];
        assert!(kinds[0] != kinds[1], "{request}: {kinds:?}");
        assert_eq!(answers, kinds, "{request}: who was told that it counts");
    }
    // Neither both in one request, nor the other one later.
    let request = hub.join("both");
    let mut both = Call::conclude(json!(hub.request(&request)), "Approved");
    let denied = json!({"type": "Denied", "status": "True", "reason": "Test", "message": ""});
    both.body["status"]["conditions"].as_array_mut().expect("conditions").push(denied);
    assert!(hub.wait(admin.send(&both, false)).is_err());
    hub.conclude(&request, "deny");
    let late = Call::conclude(json!(hub.request(&request)), "Approved");
    assert!(hub.wait(admin.send(&late, false)).is_err());
    assert_eq!([hub.is("Approved", &request), hub.is("Denied", &request)], [false, true]);
}

#[test]
fn large_objects_are_judged_as_others() {
    let (hub, webhook) = hub("reviews-large");
    let begun = Instant::now();
    let labels: Value =
        (0..10_000).map(|index| (format!("label-{index}"), json!("x"))).collect::<serde_json::Map<_, _>>().into();
    let mut object = json!(managed_cluster("large"));
    object["metadata"]["labels"] = labels;
    let many = Call::create(CLUSTERS, object);
    assert_eq!(sent(&hub, Who::Bootstrap, &many, true), refused("Labels"));
    assert_eq!(sent(&hub, Who::Admin, &many, true), Answer::Passed);
    let mut object = json!(managed_cluster("large"));
    object["metadata"]["annotations"] = json!({"agent.open-cluster-management.io/x": "y".repeat(200 << 10)});
    let long = Call::create(CLUSTERS, object);
    assert_eq!(sent(&hub, Who::Bootstrap, &long, true), Answer::Passed);
    // A request of hundreds of kilobytes, most of them in what no request needs.
    hub.register("c1");
    let fixture = Fixture::agent("c1", "a1").challenge_password(&"x".repeat(500 << 10));
    let large = Call::create(REQUESTS, json!(Ask::with("c1", &fixture).object()));
    assert!(matches!(sent(&hub, Who::Bootstrap, &large, true), Answer::Webhook(_)));
    // A cluster with so many conditions is accepted as every other one.
    let kinds: Vec<String> = (0..64).map(|index| format!("Condition{index}")).collect();
    let conditions: Vec<(&str, &str)> = kinds.iter().map(|kind| (kind.as_str(), "True")).collect();
    hub.set_conditions("c1", &conditions);
    let accept = Call::patch(CLUSTERS, "c1", json!({"spec": {"hubAcceptsClient": true}}));
    assert_eq!(sent(&hub, Who::Admin, &accept, false), Answer::Passed);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    let [_, most] = webhook.memory();
    assert!(most < 1 << 30, "{most} bytes");
}
