//! The controller on a real API server: whom it lets in, whom it does not, and what becomes of it when it is cut off.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use control_plane::{Answered, Spec};
use e2e_tests::accept_support::{Ask, Hub, Who, managed_cluster};
use e2e_tests::approval_support::guard;
use e2e_tests::controller_support::{
    APPROVES, Controller, FailingProxy, HoldingProxy, approving, hub, hub_as, let_in, registration, shared,
};
use e2e_tests::manifests::apply;
use e2e_tests::roles::{resources, rights, tells_of_policies, unused_rights, user_with, users_without_one_rule};
use e2e_tests::storm_support::{LetIn, Written};
use e2e_tests::webhook_support::{Webhook, policy};
use e2e_tests::{SOON, kubectl_ocm, object, run, series, until, until_within};
use jiff::{SignedDuration, Timestamp};
use ocm_core::csr::Request;
use ocm_core::policy_engine::PROBE;
use serde_json::{Value, json};

/// What keeps a cluster out; empty: nothing was written.
fn waits_for(hub: &Hub, name: &str) -> String {
    registration(hub, name)["waitingFor"].as_str().unwrap_or_default().to_owned()
}

/// The controller has looked at everything that was there before.
fn is_idle(hub: &Hub, last: &str) {
    hub.join(last);
    until("a right request is seen", || hub.accepts(last));
}

#[test]
fn what_policies_approve_joins_without_a_person() {
    let hub = shared(true);
    let controller = Controller::start(&hub);
    let request = hub.join("c1");
    until("c1 is accepted", || hub.accepts("c1"));
    assert!(hub.is("Approved", &request));
    until("the result is written", || registration(&hub, "c1")["keys"].is_array());
    let status = registration(&hub, "c1");
    let read = Request::read(&hub.request(&request));
    assert_eq!((&status["verdict"], &status["approvedBy"]), (&json!("Allow"), &json!([APPROVES])), "{status:#}");
    assert_eq!(status["keys"][0]["spkiSha256"], json!(read.key_digest()), "{status:#}");
    assert_eq!(status["requester"]["username"], json!(read.asked_by()), "{status:#}");
    assert!(status["requester"]["credentialId"].as_str().is_some_and(|id| id.starts_with("JTI=")), "{status:#}");
    assert!(status["intent"].is_null() && status["waitingFor"].is_null(), "{status:#}");
    let record = status["decision"]["record"].as_str().unwrap_or_default();
    let record: Value = serde_json::from_str(record).unwrap_or_default();
    let allows = record["answer"].to_string().contains("\"allow\"");
    assert_eq!((&record["policy"]["name"], allows), (&json!(APPROVES), true), "{record:#}");
    let table = hub.cluster.kubectl(&["get", "hreg"]).expect("it is listed");
    assert!(table.starts_with("NAME") && table.contains("VERDICT") && table.contains("WAITING FOR"), "{table}");
    let viewer = user_with(&hub.cluster, "viewer", &["get.yaml"]);
    let said = run(kubectl_ocm("get", &viewer).args(["registrations", "c1"]));
    let words: Vec<&str> = said.stdout.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    assert_eq!(words[..4], ["c1", "Allow", APPROVES, read.asked_by()], "{said:?}");
    let events = hub.cluster.kubectl(&["get", "events", "--output=jsonpath={.items[*].reason}"]).expect("events");
    assert!(events.contains("JoinAllowed"), "{events}");
    assert!(controller.get("/metrics").contains(r#"ocm_policy_joins_total{outcome="Accepted"} 1"#));
    let log = controller.log.lock().expect("nobody failed");
    assert!(log.iter().any(|line| line["cluster"] == "c1" && line["outcome"] == "Accepted"), "{log:?}");
}

#[test]
fn without_a_policy_that_approves_nobody_is_let_in() {
    let hub = shared(false);
    policy(&hub.cluster, APPROVES, approving(false));
    let _controller = Controller::start(&hub);
    let request = hub.join("c1");
    until("it is said why", || waits_for(&hub, "c1") == "a person: no policy that approves allowed it");
    assert!(!hub.accepts("c1") && !hub.is("Approved", &request));
    // What a person accepts stays accepted, whatever policies say.
    hub.conclude(&request, "approve");
    hub.patch("c1", json!({"spec": {"hubAcceptsClient": true}}));
    let second = hub.join("c2");
    until("it is said why", || !waits_for(&hub, "c2").is_empty());
    assert!(hub.accepts("c1") && !hub.accepts("c2"));
    // As soon as the policy approves, whoever waits joins.
    policy(&hub.cluster, APPROVES, approving(true));
    until("c2 is accepted", || hub.accepts("c2"));
    assert!(hub.is("Approved", &second));
}

#[test]
fn what_is_held_joins_when_what_policies_know_has_changed() {
    let hub = shared(true);
    let inventory = json!({"module": {"builtin": "inventory"}, "settings": {"holdUnknown": true}});
    policy(&hub.cluster, "inventory", inventory);
    let namespace = "--namespace=open-cluster-management";
    let kubectl = |words: &[&str]| hub.cluster.kubectl(words).expect("kubectl does it");
    kubectl(&["create", "configmap", "cluster-inventory", "--from-literal=c9=", namespace]);
    kubectl(&["create", "role", "inventory", "--verb=get,list,watch", "--resource=configmaps", namespace]);
    kubectl(&["create", "rolebinding", "inventory", "--role=inventory", "--user=controller", namespace]);
    let _controller = Controller::start(&hub);
    let request = hub.join("c1");
    until("it is held", || waits_for(&hub, "c1").contains("(NotInInventory)"));
    assert_eq!(registration(&hub, "c1")["verdict"], "Hold");
    assert!(!hub.accepts("c1") && !hub.is("Approved", &request) && !hub.is("Denied", &request));
    kubectl(&["patch", "configmap", "cluster-inventory", "--patch", r#"{"data":{"c1":""}}"#, namespace]);
    until("c1 is accepted", || hub.accepts("c1"));
    assert!(hub.is("Approved", &request));
}

#[test]
fn what_the_rules_of_accept_refuse_is_never_approved() {
    let hub = shared(true);
    // Somebody else with another key wants the name, before anybody is let in.
    hub.join("two-keys");
    hub.ask(&Ask::with("two-keys", &csr_fixtures::Fixture::agent("two-keys", "a2")));
    let mut hostile = Vec::new();
    for (index, who) in Who::ALL.into_iter().enumerate() {
        let name = format!("by-{index}");
        hub.register(&name);
        if let Ok(request) = hub.try_ask(&Ask::agent(&name).by(who)) {
            hostile.extend((who != Who::Bootstrap).then(|| (name.clone(), request.metadata.name.expect("a name"))));
        }
    }
    let wrong = |name: &str, change: &dyn Fn(&mut Ask)| {
        hub.register(name);
        let mut ask = Ask::agent(name);
        change(&mut ask);
        hub.try_ask(&ask).ok().map(|request| (name.to_owned(), request.metadata.name.expect("a name")))
    };
    hostile.extend(wrong("signer", &|ask| ask.signer = "example.com/own".to_owned()));
    hostile.extend(wrong("usage", &|ask| ask.usages.push("server auth".to_owned())));
    hostile.extend(wrong("years", &|ask| ask.seconds = Some(63_072_000)));
    hostile.extend(wrong("other", &|ask| ask.pem = Ask::agent("c2").pem));
    hostile.extend(wrong("claim", &|ask| ask.annotation = Some("system:bootstrap:abcdef".to_owned())));
    // A namespace of something else has the name, and there is no cluster.
    hub.cluster.kubectl(&["create", "namespace", "taken"]).expect("a namespace");
    let taken = hub.join("taken");
    let nobody = hub.ask(&Ask::agent("nobody"));
    assert!(hostile.len() > 10, "{hostile:?}");
    let controller = Controller::start(&hub);
    is_idle(&hub, "right");
    until("those that wait are written", || {
        !waits_for(&hub, "taken").is_empty() && !waits_for(&hub, "two-keys").is_empty()
    });
    assert!(waits_for(&hub, "two-keys").ends_with("(TwoKeys)"), "{}", waits_for(&hub, "two-keys"));
    assert!(waits_for(&hub, "taken").ends_with("(NamespaceTaken)"), "{}", waits_for(&hub, "taken"));
    // Another key for a name that was let in.
    let second = hub.ask(&Ask::with("right", &csr_fixtures::Fixture::agent("right", "a2")));
    // What was judged changes: it is judged anew.
    is_idle(&hub, "right-too");
    let bootstrap = Who::ALL.iter().position(|who| *who == Who::Bootstrap).expect("it asks");
    let right = BTreeSet::from([format!("by-{bootstrap}"), "right".to_owned(), "right-too".to_owned()]);
    // Clusters are judged side by side, so the last one may be through before another one that asked earlier.
    until("whoever is right is accepted", || hub.accepted().is_superset(&right));
    assert_eq!(hub.accepted(), right, "{:?}", controller.log.lock().expect("nobody failed"));
    for (name, request) in hostile.iter().chain(&[("second".to_owned(), second), ("taken".to_owned(), taken)]) {
        assert!(!hub.is("Approved", request), "{name}");
    }
    assert!(!hub.is("Approved", &nobody));
}

#[test]
fn a_name_is_not_given_to_another_while_its_certificates_are_valid() {
    let hub = shared(true);
    let mut controller = Controller::start(&hub);
    let request = hub.join("c1");
    until("it is written", || registration(&hub, "c1")["keys"].is_array());
    // All traces that the hub itself keeps are gone.
    hub.remove("c1");
    hub.cluster.kubectl(&["delete", "csr", &request]).expect("it is deleted");
    until("it is a tombstone", || registration(&hub, "c1")["removedAt"].is_string());
    controller.terminate();
    let _controller = Controller::start_as(&hub.cluster.user_kubeconfig("controller", &[]).expect("a user"));
    let again = hub.join("c1");
    until("it waits", || waits_for(&hub, "c1").ends_with("(NameUsedBefore)"));
    is_idle(&hub, "c2");
    assert!(!hub.accepts("c1") && !hub.is("Approved", &again));
    // accept goes by what the controller has noted, for nothing else is left of the former one.
    let end = registration(&hub, "c1")["keys"][0]["until"].as_str().map(str::to_owned).expect("a key ends");
    let said = hub.accept(&["c1", "--output", "json"]);
    assert_eq!((said.code, said.reason("c1").as_str()), (3, "NameUsedBefore"), "{said:?}");
    assert!(said.row("c1")["detail"].as_str().is_some_and(|detail| detail.ends_with(&end)), "{said:?}");
    assert!(waits_for(&hub, "c1").contains(&end), "{}", waits_for(&hub, "c1"));
    assert!(!hub.accepts("c1") && !hub.is("Approved", &again));
    // A person may.
    let said = hub.accept(&["c1", "--reuse-name"]);
    assert!(said.code == 0 && hub.accepts("c1") && hub.is("Approved", &again), "{said:?}");
    until("it is the new one's", || registration(&hub, "c1")["waitingFor"].is_null());
    assert_eq!(registration(&hub, "c1")["clusterUid"], json!(hub.managed("c1").metadata.uid));
}

#[test]
fn a_key_that_was_approved_of_a_cluster_that_was_never_let_in_keeps_the_name() {
    let hub = shared(true);
    let required = json!({"module": {"builtin": "required-labels"}, "settings": {"required": [{"key": "env"}]}});
    policy(&hub.cluster, "required-labels", required);
    let _controller = Controller::start(&hub);
    let request = hub.join("c1");
    until("it waits for the label", || waits_for(&hub, "c1").contains("LabelMissing"));
    assert!(registration(&hub, "c1")["keys"].as_array().is_none_or(Vec::is_empty));
    hub.cluster.kubectl(&["certificate", "approve", &request]).expect("a person approves it, and accepts nobody");
    until("its key is noted", || registration(&hub, "c1")["keys"][0]["until"].is_string());
    assert!(!hub.accepts("c1"));
    hub.remove("c1");
    hub.cluster.kubectl(&["delete", "csr", &request]).expect("it is deleted");
    until("it is a tombstone", || registration(&hub, "c1")["removedAt"].is_string());
}

#[test]
fn a_persons_no_outlasts_everything_that_the_hub_keeps_of_it() {
    let hub = shared(true);
    let required = json!({"module": {"builtin": "required-labels"}, "settings": {"required": [{"key": "env"}]}});
    policy(&hub.cluster, "required-labels", required);
    let mut controller = Controller::start(&hub);
    let label = |name: &str| {
        hub.cluster.kubectl(&["label", "managedcluster", name, "env=prod"]).expect("an administrator labels it");
    };
    let join = |name: &str| {
        // A hub puts every cluster into a set when it registers; what comes to labels that are there is told apart from them.
        let mut cluster = json!(managed_cluster(name));
        cluster["metadata"]["labels"] = json!({"cluster.open-cluster-management.io/clusterset": "default"});
        let clusters = "/apis/cluster.open-cluster-management.io/v1/managedclusters";
        hub.create(Who::Bootstrap, clusters, &cluster).expect("it is registered");
        hub.ask(&Ask::agent(name))
    };
    let (first, second, wrong) = (join("c1"), join("c2"), join("c4"));
    let names = ["c1", "c2", "c4"];
    until("all wait for the label", || names.iter().all(|name| waits_for(&hub, name).contains("LabelMissing")));
    // One was let in, and nothing but the Registration tells it after somebody has taken that back.
    label("c1");
    until_within(
        SOON,
        "c1 is accepted; it waits for",
        || waits_for(&hub, "c1"),
        || registration(&hub, "c1")["acceptedBefore"].is_object(),
    );
    assert!(hub.accepts("c1"));
    hub.patch("c1", json!({"spec": {"hubAcceptsClient": false}}));
    until("it waits for a person", || waits_for(&hub, "c1").ends_with("(DeniedBefore)"));
    // The request of the other one was denied; nothing else stands in its way when it asks again.
    hub.conclude(&second, "deny");
    until("it is noted", || registration(&hub, "c2")["deniedBefore"].is_object());
    hub.cluster.kubectl(&["delete", "csr", &second]).expect("the hub collects it");
    label("c2");
    let again = hub.ask(&Ask::with("c2", &csr_fixtures::Fixture::agent("c2", "a2")));
    until("it waits for a person", || waits_for(&hub, "c2").ends_with("(DeniedBefore)"));
    // A person approved one key of the third one and denied the other. Nothing waits any more, and the hub collects both.
    let by_hand = hub.ask(&Ask::with("c4", &csr_fixtures::Fixture::agent("c4", "a2")));
    let key = Request::read(&hub.request(&by_hand)).key_digest().map(str::to_owned);
    hub.conclude(&wrong, "deny");
    hub.conclude(&by_hand, "approve");
    until("its key is noted", || registration(&hub, "c4")["keys"][0]["spkiSha256"] == json!(key));
    hub.cluster.kubectl(&["delete", "csr", &wrong, &by_hand]).expect("the hub collects them");
    label("c4");
    let late = hub.ask(&Ask::with("c4", &csr_fixtures::Fixture::agent("c4", "a3")));
    until("it waits for a person", || registration(&hub, "c4")["request"]["name"] == json!(late));
    // Whoever acts next knows no more than what is written.
    assert_eq!(controller.terminate(), Some(0));
    let _controller = Controller::start_as(&hub.cluster.user_kubeconfig("controller", &[]).expect("a user"));
    let third = join("c3");
    label("c3");
    until("c3 is accepted", || hub.accepts("c3"));
    std::thread::sleep(Duration::from_secs(3));
    assert!(!hub.accepts("c1") && !hub.accepts("c2") && !hub.is("Approved", &again));
    assert!(!hub.accepts("c4") && !hub.is("Approved", &late), "{:#}", registration(&hub, "c4"));
    assert!(hub.is("Approved", &first) && hub.is("Approved", &third));
    let said = run(kubectl_ocm("policy", hub.cluster.kubeconfig()).args(["explain", "c1"]));
    assert!(said.stdout.contains("is not accepted any more") && said.stdout.contains("accept c1"), "{said:?}");
    let said = hub.accept(&["--all-pending", "--yes", "--output", "json"]);
    assert_eq!((said.reason("c1").as_str(), said.reason("c2").as_str()), ("DeniedBefore", "DeniedBefore"), "{said:?}");
    // A person may.
    let said = hub.accept(&["c1", "c2"]);
    assert!(said.code == 0 && hub.accepts("c1") && hub.accepts("c2") && hub.is("Approved", &again), "{said:?}");
    until("nothing keeps them out", || ["c1", "c2"].iter().all(|name| waits_for(&hub, name).is_empty()));
    assert!(registration(&hub, "c2")["deniedBefore"].is_null(), "{:#}", registration(&hub, "c2"));
}

#[test]
fn a_name_of_which_no_key_is_known_is_not_given_to_another() {
    let hub = shared(true);
    // It joined before there was a controller, and the hub has collected its request since.
    hub.register("c1");
    hub.patch("c1", json!({"spec": {"hubAcceptsClient": true}}));
    hub.set_conditions("c1", &[("HubAcceptedManagedCluster", "True"), ("ManagedClusterJoined", "True")]);
    let uid = hub.managed("c1").metadata.uid;
    // Another one was approved, and removed again; the next one of its name asks before the hub has collected that.
    let former = hub.join("c4");
    hub.conclude(&former, "approve");
    hub.remove("c4");
    // Times of the API have whole seconds.
    std::thread::sleep(Duration::from_secs(1));
    let next = hub.join("c4");
    // Of a third one only the approved request is there.
    let left = hub.join("c5");
    hub.conclude(&left, "approve");
    hub.remove("c5");
    let _controller = Controller::start(&hub);
    is_idle(&hub, "c2");
    until("it waits", || waits_for(&hub, "c4").ends_with("(NameUsedBefore)"));
    until("what is left is noted", || registration(&hub, "c5")["keys"][0]["until"].is_string());
    for request in [&former, &left] {
        hub.cluster.kubectl(&["delete", "csr", request]).expect("the hub collects it");
    }
    let left = hub.join("c5");
    until("it waits", || waits_for(&hub, "c5").ends_with("(NameUsedBefore)"));
    hub.remove("c1");
    until("it is a tombstone", || registration(&hub, "c1")["removedAt"].is_string());
    let status = registration(&hub, "c1");
    assert_eq!((&status["clusterUid"], &status["keys"][0]["spkiSha256"]), (&json!(uid), &json!("")), "{status:#}");
    let again = hub.join("c1");
    until("it waits", || waits_for(&hub, "c1").ends_with("(NameUsedBefore)"));
    is_idle(&hub, "c3");
    for (name, request) in [("c1", &again), ("c4", &next), ("c5", &left)] {
        assert!(waits_for(&hub, name).ends_with("(NameUsedBefore)"), "{:#}", registration(&hub, name));
        assert!(!hub.accepts(name) && !hub.is("Approved", request), "{name}");
    }
}

/// The last time that RFC 3339 has. Whoever creates an object may say that it was written then.
const LAST: &str = "9999-12-31T23:59:59Z";
/// Times that are none of RFC 3339 any more in UTC, in which API servers write them.
const PAST_THE_LAST: [(&str, &str); 2] =
    [("9999-12-31T23:59:59-12:00", "10000-01-01T11:59:59Z"), ("0000-01-01T00:00:00+12:00", "-0001-12-31T12:00:00Z")];

#[test]
fn an_object_with_a_time_beyond_all_calendars_keeps_no_other_cluster_out() {
    let hub = hub("controller-times", true);
    let _controller = Controller::start(&hub);
    is_idle(&hub, "c1");
    let written = |object: &Value, time: &str, owned: Value| {
        let mut object = object.clone();
        object["metadata"]["managedFields"] = json!([{
            "manager": "a", "operation": "Update", "apiVersion": object["apiVersion"], "time": time,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": owned}},
        }]);
        object
    };
    let cluster = written(&json!(managed_cluster("late")), LAST, json!({"f:zzz": {}}));
    let path = "/apis/cluster.open-cluster-management.io/v1/managedclusters";
    let made = hub.create(Who::Bootstrap, path, &cluster).expect("a cluster registers");
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let request = written(&json!(Ask::agent("late").object()), LAST, json!({"f:zzz": {}}));
    hub.create(Who::Bootstrap, path, &request).expect("it asks");
    // Nobody who judges admission is asked about requests to another signer.
    let mut ask = Ask::agent("stranger");
    ask.signer = "kubernetes.io/kubelet-serving".to_owned();
    let deep = (0..200).fold(json!({}), |inner, _| json!({"f:zzz": inner}));
    for (time, _) in PAST_THE_LAST {
        let request = written(&json!(ask.object()), time, deep.clone());
        hub.create(Who::Bootstrap, path, &request).expect("it asks");
    }
    // The API server keeps it, whatever our clients read.
    let kept = |kind: &str| {
        hub.cluster.kubectl(&["get", kind, "--output=json", "--show-managed-fields"]).expect("it is listed")
    };
    assert!(kept("managedclusters").contains(LAST), "{made}");
    let requests = kept("csr");
    let has_kept = |time: &str| requests.contains(time);
    assert!(has_kept(LAST) && PAST_THE_LAST.iter().all(|(_, kept)| has_kept(kept)), "{requests}");
    assert!(requests.matches("f:zzz").count() > 400, "{requests}");
    // By itself it is in nobody's way, not even in its own.
    let request = hub.join("c2");
    until("c2 is accepted", || hub.accepts("c2"));
    assert!(hub.is("Approved", &request));
    until("late is accepted", || hub.accepts("late"));
    // What an agent says of its own cluster is in nobody's way either.
    let condition = json!({"type": "X", "status": "True", "reason": "X", "message": "", "lastTransitionTime": LAST});
    let status = json!({"status": {"conditions": [condition]}}).to_string();
    let patch = ["patch", "managedcluster", "late", "--subresource=status", "--type=merge", "--patch", &status];
    hub.cluster.kubectl(&patch).expect("an agent may do so");
    hub.join("c3");
    until("c3 is accepted", || hub.accepts("c3"));
    assert!(registration(&hub, "late")["removedAt"].is_null());
    let said = run(kubectl_ocm("get", hub.cluster.kubeconfig()).args(["clusters", "-o", "name"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.stdout.lines().count(), 4, "{said:?}");
    let said = run(kubectl_ocm("get", hub.cluster.kubeconfig()).args(["csr", "-o", "name"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let told = hub.accept(&["late", "c1", "-o", "json"]);
    assert_eq!((told.code, told.reason("late").as_str()), (0, told.reason("c1").as_str()), "{told:?}");
    // Nor does it keep the administrator from taking back what its agent has.
    let webhook = Webhook::start(&hub.cluster, &["--with-controller"]);
    webhook.configure(&hub.cluster);
    hub.patch("late", json!({"spec": {"hubAcceptsClient": false}}));
    hub.remove("late");
    until("policies were asked", || webhook.decisions_of("update") > 0 && webhook.decisions_of("delete") > 0);
}

#[test]
fn labels_that_an_administrator_gives_a_cluster_that_waits_are_no_fault_of_it() {
    let hub = shared(true);
    let required = json!({"module": {"builtin": "required-labels"}, "settings": {"required": [{"key": "env"}]}});
    policy(&hub.cluster, "required-labels", required);
    let _controller = Controller::start(&hub);
    // A hub puts every cluster into a set when it registers.
    let mut cluster = json!(managed_cluster("c1"));
    cluster["metadata"]["labels"] = json!({"cluster.open-cluster-management.io/clusterset": "default"});
    hub.create(Who::Bootstrap, "/apis/cluster.open-cluster-management.io/v1/managedclusters", &cluster).expect("made");
    let request = hub.ask(&Ask::agent("c1"));
    until("it waits for the label", || waits_for(&hub, "c1").contains("LabelMissing"));
    hub.cluster.kubectl(&["label", "managedcluster", "c1", "env=prod"]).expect("an administrator labels it");
    until_within(SOON, "it is accepted; it waits for", || waits_for(&hub, "c1"), || hub.accepts("c1"));
    assert!(hub.is("Approved", &request));
}

#[test]
fn a_quota_is_kept_exactly_however_many_join_at_once() {
    let hub = shared(true);
    let quota = json!({"module": {"builtin": "join-quota"}, "settings": {"total": 10}});
    policy(&hub.cluster, "join-quota", quota);
    let _controller = Controller::start(&hub);
    let names: Vec<String> = (0..50).map(|number| format!("c{number}")).collect();
    hub.join_all(&names);
    let decided = |name: &String| !waits_for(&hub, name).is_empty() || hub.accepts(name);
    until("ten are accepted", || hub.accepted().len() >= 10);
    until("all are decided", || names.iter().all(decided));
    assert_eq!((hub.accepted().len(), hub.approved().len()), (10, 10));
    let waits = names.iter().filter(|name| waits_for(&hub, name).ends_with("(QuotaTotal)")).count();
    assert_eq!(waits, 40);
    // Where one goes, one comes.
    let first = hub.accepted().pop_first().expect("ten");
    hub.remove(&first);
    until("another one joins", || hub.accepted().len() == 10);
}

#[test]
fn a_quota_is_kept_where_the_hub_is_slow_to_tell_what_the_controller_wrote() {
    let hub = shared(true);
    let quota = json!({"module": {"builtin": "join-quota"}, "settings": {"total": 1}});
    policy(&hub.cluster, "join-quota", quota);
    for name in ["c1", "c2"] {
        hub.register(name);
    }
    let user = user_with(&hub.cluster, "controller", &["policy-controller.yaml"]);
    let proxy = HoldingProxy::start(&hub.cluster, &user);
    let mut controller = Controller::spawn(&proxy.kubeconfig);
    until("it leads", || controller.leads());
    // It has read the clusters, and does not hear for longer than it waits that one of them was accepted.
    until("it has read the hub", || controller.get("/readyz").starts_with("HTTP/1.1 200"));
    proxy.hold(true);
    for name in ["c1", "c2"] {
        hub.ask(&Ask::agent(name));
    }
    until("one is accepted", || !hub.accepted().is_empty());
    let unseen = || {
        let log = controller.log.lock().expect("nobody failed");
        log.iter().any(|line| line["outcome"] == "Unseen")
    };
    let out = if hub.accepts("c1") { "c2" } else { "c1" };
    let waits = || waits_for(&hub, out);
    // On a busy machine it may have lost its lease meanwhile, and read the hub anew: then it knows what it has written.
    let goes_on = || unseen() || waits().ends_with("(QuotaTotal)");
    until_within(Duration::from_secs(60), "it waits no more", || format!("{:?}", controller.log.lock()), goes_on);
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!((hub.accepted().len(), hub.approved().len()), (1, 1));
    proxy.hold(false);
    until_within(Duration::from_secs(45), "the other one waits for a place", waits, || {
        waits().ends_with("(QuotaTotal)")
    });
    assert_eq!((hub.accepted().len(), hub.approved().len()), (1, 1));
    assert_eq!(controller.terminate(), Some(0));
}

/// Whether a write of a join is the approval or the acceptance. The Registration and the intent come before them, and the result
/// follows.
fn is_effect(write: &usize) -> bool {
    [3, 4].contains(write)
}

#[test]
fn wherever_it_is_cut_off_the_next_one_comes_to_the_same_end() {
    let hub = shared(true);
    let user = user_with(&hub.cluster, "controller", &["policy-controller.yaml"]);
    let mut ends = Vec::new();
    for writes in series::cases(1..=5, is_effect) {
        let name = format!("c{writes}");
        let request = hub.join(&name);
        let proxy = FailingProxy::start(&hub.cluster, &user, writes);
        let mut first = Controller::spawn(&proxy.kubeconfig);
        until(&format!("write {writes} is the last one"), || proxy.failed());
        first.kill();
        // Nobody gives back the lease of whom the kernel ended.
        let lease = ["delete", "lease", "ocm-policy-controller", "--namespace=ocm-policy-engine"];
        hub.cluster.kubectl(&lease).expect("it is deleted");
        let mut next = Controller::start_as(&user);
        until(&format!("{name} is accepted"), || hub.accepts(&name) && hub.is("Approved", &request));
        until("the result is written", || {
            let status = registration(&hub, &name);
            status["keys"].is_array() && status["intent"].is_null()
        });
        let mut end = registration(&hub, &name);
        for own in ["acceptedBefore", "clusterUid", "request", "decision", "keys"] {
            assert!(!end[own].is_null(), "{own}: {end:#}");
            end[own] = Value::Null;
        }
        let conditions = hub.request(&request).status.and_then(|status| status.conditions).unwrap_or_default();
        ends.push((end, conditions.len()));
        assert_eq!(next.terminate(), Some(0));
    }
    assert!(ends.iter().all(|end| *end == ends[0] && end.1 == 1), "{ends:#?}");
}

#[test]
fn what_the_hub_did_and_did_not_confirm_happens_once() {
    let hub = hub_as(&Spec::api("controller-unconfirmed").audited(true), true);
    let user = user_with(&hub.cluster, "controller", &["policy-controller.yaml"]);
    let mut wanted = LetIn::default();
    for writes in series::cases(1..=5, is_effect) {
        let name = format!("c{writes}");
        let request = hub.join(&name);
        let proxy = FailingProxy::timing_out(&hub.cluster, &user, writes);
        let mut controller = Controller::spawn(&proxy.kubeconfig);
        until(&format!("write {writes} is not confirmed"), || proxy.failed());
        // The same controller goes on.
        until(&format!("{name} is accepted"), || hub.accepts(&name) && hub.is("Approved", &request));
        until("the result is written", || {
            let status = registration(&hub, &name);
            status["keys"].as_array().is_some_and(|keys| keys.len() == 1) && status["intent"].is_null()
        });
        assert_eq!(controller.terminate(), Some(0));
        wanted = wanted.and(&name, request);
    }
    assert_eq!(LetIn::on(&hub), wanted);
    assert_eq!(wanted.written(&hub), Written::default());
}

/// How long a controller sleeps at least.
const ASLEEP: Duration = Duration::from_secs(60);
/// How far the clock of a holder is off, in seconds: farther than a lease stands.
const OFF: i64 = 60;

/// How often a user has written what lets clusters in, or what stands in their Registrations, on an audited hub.
fn written(hub: &Hub, user: &str) -> usize {
    let kinds = ["certificatesigningrequests/approval", "managedclusters", "registrations", "registrations/status"];
    let verbs = ["create", "update", "patch", "delete"];
    let answers = hub.cluster.answers_to(user).expect("the audit log can be read");
    // A dry run of the probe stores nothing.
    let is_write = |one: &&Answered| {
        let is_done = (200..300).contains(&one.code) && verbs.contains(&&*one.verb);
        is_done && kinds.contains(&&*one.resource) && one.name != PROBE
    };
    answers.iter().filter(is_write).count()
}

#[test]
fn of_several_controllers_one_acts_and_those_that_were_asleep_or_cut_off_write_nothing() {
    let hub = hub_as(&Spec::api("controller-several").audited(true), true);
    // Each is a user of its own, so that the API server's log tells them apart.
    let names = ["first", "second", "third"];
    let [first, second, third] = names.map(|user| user_with(&hub.cluster, user, &["policy-controller.yaml"]));
    let first = Controller::start_as(&first);
    until("the first one leads", || first.leads());
    // The second one is cut off as soon as it approves the request of c3.
    let approval = "PUT /apis/certificates.k8s.io/v1/certificatesigningrequests/c3-";
    let wire = FailingProxy::holding(&hub.cluster, &second, approval);
    let second = Controller::start_as(&wire.kubeconfig);
    let mut requests = vec![hub.join("c1")];
    until("c1 is accepted", || hub.accepts("c1"));
    assert!(first.leads() && !second.leads());

    // It sleeps for longer than its lease stands. The other one takes over, and does what came meanwhile.
    first.signal("-STOP");
    let asleep = Instant::now();
    requests.push(hub.join("c2"));
    until("c2 is accepted", || hub.accepts("c2"));
    assert!(asleep.elapsed() > Duration::from_secs(9), "before the lease had ended: {:?}", asleep.elapsed());
    until("the second one leads", || second.leads());
    let mut third = Controller::start_as(&third);
    assert!(!third.leads());

    // A write is on its way while the network falls apart. Whoever has sent it acts no more before the next one does.
    requests.push(hub.join("c3"));
    until("the approval of c3 is on its way", || wire.failed());
    let cut_off = Instant::now();
    until("c3 is accepted", || hub.accepts("c3"));
    assert!(cut_off.elapsed() > Duration::from_secs(9), "before the lease had ended: {:?}", cut_off.elapsed());
    assert!(!second.leads(), "two act");
    until("the third one leads", || third.leads());
    requests.push(hub.join("c4"));
    until("c4 is accepted", || hub.accepts("c4"));
    for (name, request) in ["c1", "c2", "c3", "c4"].iter().zip(&requests) {
        let is_issued = || hub.request(request).status.is_some_and(|status| status.certificate.is_some());
        until(&format!("{name} has its certificate"), is_issued);
        until("the result is written", || {
            registration(&hub, name)["keys"].is_array() && registration(&hub, name)["intent"].is_null()
        });
    }

    // What was on its way arrives, and comes too late.
    let (versions, before) = (hub.versions(), ["first", "second"].map(|user| written(&hub, user)));
    wire.heal();
    let came_late = || {
        let answers = hub.cluster.answers_to("second").expect("the audit log can be read");
        answers.iter().any(|one| {
            (&*one.resource, &*one.name, one.code) == ("certificatesigningrequests/approval", &*requests[2], 409)
        })
    };
    until("the hub has refused the approval of c3", came_late);
    std::thread::sleep(ASLEEP.saturating_sub(asleep.elapsed()));
    first.signal("-CONT");
    until("it knows that it does not lead", || !first.leads());
    std::thread::sleep(Duration::from_secs(3));
    assert!(!first.leads() && !second.leads() && third.leads());
    assert_eq!(hub.versions(), versions);
    assert_eq!(["first", "second"].map(|user| written(&hub, user)), before);

    // Of all of them together each effect is one write.
    let once = |names: &[String]| -> BTreeMap<String, usize> { names.iter().map(|name| (name.clone(), 1)).collect() };
    let clusters = ["c1", "c2", "c3", "c4"].map(str::to_owned);
    assert_eq!(let_in(&hub, &names), [once(&requests), once(&clusters)]);
    for request in &requests {
        let conditions = hub.request(request).status.and_then(|status| status.conditions).unwrap_or_default();
        assert_eq!(conditions.len(), 1, "{request}: {conditions:?}");
    }

    // Who ends gives it back: another one acts at once, and both can again.
    assert_eq!(third.terminate(), Some(0));
    hub.join("c5");
    until("c5 is accepted", || hub.accepts("c5"));
    assert!(first.leads() != second.leads());
}

#[test]
fn a_lease_stands_by_the_clock_of_whoever_looks_and_not_by_that_of_its_holder() {
    let hub = shared(true);
    let lease = ["lease", "ocm-policy-controller", "--namespace=ocm-policy-engine"];
    let holds = |ahead: i64| {
        let time = Timestamp::now() + SignedDuration::from_secs(ahead);
        let time = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string();
        let held = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": lease[1], "namespace": "ocm-policy-engine"},
            "spec": {"holderIdentity": "another", "leaseDurationSeconds": 15, "acquireTime": time, "renewTime": time},
        });
        apply(&hub.cluster, &held);
    };
    let is_anothers = || object(&hub.cluster, &lease)["spec"]["holderIdentity"] == "another";
    // Its clock is behind: by that, whatever it renews has ended before.
    holds(-OFF);
    let controller = Controller::spawn(&user_with(&hub.cluster, "controller", &["policy-controller.yaml"]));
    hub.join("c1");
    let (begun, mut looks) = (Instant::now(), 0);
    while looks < 4 {
        assert!(begun.elapsed() < 2 * SOON, "it is not ready: {}", controller.get("/readyz"));
        holds(-OFF);
        std::thread::sleep(Duration::from_secs(4));
        assert!(is_anothers() && !controller.leads() && !hub.accepts("c1"));
        looks += usize::from(controller.get("/readyz").starts_with("HTTP/1.1 200"));
    }
    // Its clock is ahead, and it is gone: by that, the lease stands for 15 seconds more than a minute.
    let begun = Instant::now();
    holds(OFF);
    until("the lease is taken", || !is_anothers());
    let stood = begun.elapsed();
    assert!((15..60).contains(&stood.as_secs()), "{stood:?}");
    until("c1 is accepted", || hub.accepts("c1"));
}

/// What no policy of this hub asks for, and what only Open Cluster Management's own webhook looks at.
const NOT_HERE: [&str; 4] =
    ["managedclustersets/join", "managedclusters/accept", "registrationapprovals", "validatingadmissionpolicies"];

#[test]
fn without_any_rule_of_its_role_it_lets_nobody_in_and_says_which_right_it_lacks() {
    let hub = shared(true);
    let users = users_without_one_rule(&hub.cluster, "policy-controller.yaml");
    assert!(users.len() >= 12, "{}", users.len());
    let mut joined = 0;
    for (index, (kubeconfig, rule)) in users.iter().enumerate() {
        let resources = resources(rule);
        // What it tells of policies has a story of its own: `policy_status`.
        if tells_of_policies(rule) || resources.iter().any(|resource| NOT_HERE.contains(&resource.as_str())) {
            continue;
        }
        joined += 1;
        let name = format!("c{index}");
        hub.join(&name);
        let mut controller = Controller::spawn(kubeconfig);
        let names_it = || {
            let said = controller.says.lock().expect("nobody failed").clone();
            let log = json!(*controller.log.lock().expect("nobody failed"));
            let said = format!("{said}{}{log}", controller.get("/readyz"));
            // The API server says signerName where the right is about signers.
            let word = |resource: &String| {
                resource.split('/').next_back().unwrap_or(resource).trim_end_matches('s').to_owned()
            };
            resources.iter().any(|resource| said.contains(&word(resource)))
        };
        until(&format!("it names one of {resources:?}"), names_it);
        assert!(!hub.accepts(&name), "without {resources:?}");
        assert_eq!(controller.terminate(), Some(0), "{resources:?}");
    }
    // With all of them it does it.
    let _controller = Controller::start(&hub);
    until("all are accepted", || hub.accepted().len() == joined);
}

/// What the API server's log need not show on this hub: what is asked for within the API server, what Open Cluster Management's own
/// webhooks ask for, of which `auto_join` tells, what is for modules, of which `policy_oci` does, and what is read where the hub
/// does not show for half a minute what was written to it.
const UNLOGGED: [&str; 11] = [
    "approve signers",
    "create certificatesigningrequests",
    "create configmaps in ocm-policy-engine",
    "create managedclusters",
    "create managedclustersets/join",
    "delete configmaps in ocm-policy-engine",
    "get certificatesigningrequests",
    "get configmaps in ocm-policy-engine",
    "list configmaps in ocm-policy-engine",
    "update configmaps in ocm-policy-engine",
    "update managedclusters/accept",
];

#[test]
fn every_right_of_its_role_is_used() {
    let hub = hub_as(&Spec::api("controller-used").audited(true), true);
    // Where a policy lets people break glass, their approvals are read, and what proves whose they are.
    guard(&hub);
    policy(&hub.cluster, "csr-hygiene", json!({"module": {"builtin": "csr-hygiene"}, "breakGlass": "Allowed"}));
    let user = user_with(&hub.cluster, "controller", &["policy-controller.yaml"]);
    // Whoever does not hear what became of a write looks.
    for (name, line) in [
        ("c1", "POST /apis/policy.kubectl-ocm.dev/v1alpha1/registrations"),
        ("c2", "PATCH /apis/cluster.open-cluster-management.io/v1/managedclusters/c2"),
    ] {
        hub.join(name);
        let proxy = FailingProxy::timing_out_at(&hub.cluster, &user, line);
        let mut controller = Controller::spawn(&proxy.kubeconfig);
        until(&format!("{line} is not confirmed"), || proxy.failed());
        until(&format!("{name} is accepted"), || hub.accepts(name));
        until("the result is written", || registration(&hub, name)["keys"].is_array());
        assert_eq!(controller.terminate(), Some(0));
    }
    // Of a cluster that nobody let in nothing stays.
    let _controller = Controller::start_as(&user);
    hub.register("left");
    let request = hub.ask(&Ask::agent("left").by(Who::Token));
    until("it waits", || !waits_for(&hub, "left").is_empty());
    hub.remove("left");
    hub.cluster.kubectl(&["delete", "csr", &request]).expect("it is deleted");
    until("nothing is written of it", || registration(&hub, "left").is_null());

    let unused = || unused_rights(&hub.cluster, "policy-controller.yaml", "controller");
    let unlogged = BTreeSet::from(UNLOGGED.map(str::to_owned));
    until_within(SOON, "every other right is used", || format!("{:#?}", unused()), || unused().is_subset(&unlogged));
    // Of what nobody grants nobody needs to say so.
    let granted = rights("policy-controller.yaml");
    let is_granted = |right: &&str| {
        let mut words = right.split(' ');
        let [verb, resource] = [words.next(), words.next()].map(|word| json!([word]));
        granted.iter().any(|one| one["verbs"] == verb && one["resources"] == resource)
    };
    assert!(UNLOGGED.iter().all(is_granted));
}
