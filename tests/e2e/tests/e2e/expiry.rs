//! Acceptances that policies give for a time, on a real API server: until when they stand, who gives more time, and what
//! becomes of them when nobody does.

#[path = "../../../../wasm-policies/engine/tests/support/guest.rs"]
mod guest;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use control_plane::{Cluster, Spec};
use e2e_tests::accept_support::{Hub, managed_cluster};
use e2e_tests::connection::connect;
use e2e_tests::controller_support::{APPROVES, Controller, FailingProxy, approving, registration, shared};
use e2e_tests::manifests::apply;
use e2e_tests::roles::user_with;
use e2e_tests::shared_hub::SharedHub;
use e2e_tests::webhook_support::{HYGIENE, Webhook, policy, prepare};
use e2e_tests::{SOON, bundle, kubectl_ocm, object, run, series, until, until_within};
use guest::Guest;
use jiff::{SignedDuration, Timestamp};
use kube::Api;
use kube::api::{Patch, PatchParams};
use ocm_api::ManagedCluster;
use ocm_rules::cluster::{ACCEPTED_BY_HUB, HELD};
use serde_json::{Value, json};

/// The policy that gives acceptances for a time.
const LIMITS: &str = "limits";
/// The least time that a policy may give, and how late what follows from its end may be.
const MINUTE: Duration = Duration::from_secs(60);
const LATE: Duration = Duration::from_secs(10);

/// A hub whose policy lets clusters in for a minute, asked about these operations.
fn limited(operations: &[&str]) -> SharedHub {
    let hub = shared(false);
    modules(&hub.cluster);
    hub.grant(&json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]));
    policy(&hub.cluster, LIMITS, limits("a-minute", operations));
    hub
}

/// Makes the modules of policies that allow everything known to a hub: one for a minute, and one without an end.
fn modules(hub: &Cluster) {
    let obligation = r#"{"name":"expire-acceptance","withinSeconds":60,"params":{"reason":"it is a trial"}}"#;
    for (name, obligations) in [("a-minute", obligation), ("no-end", "")] {
        let answer = format!(r#"{{"verdict":"allow","obligations":[{obligations}]}}"#);
        let manifest = Guest::manifest("limits", "").replace("create\",\"update", "join\",\"accept");
        let module = Guest { manifest, answer, ..Guest::default() }.module();
        let file = hub.dir().expect("it is ours").join(format!("{name}.wasm"));
        std::fs::write(&file, module).expect("it is written");
        let file = format!("--from-file=policy.wasm={}", file.display());
        hub.kubectl(&["create", "configmap", name, &file]).expect("it is created");
    }
}

fn limits(module: &str, operations: &[&str]) -> Value {
    json!({
        "module": {"configMap": {"namespace": "default", "name": module, "key": "policy.wasm"}},
        "operations": operations, "autoApprove": true,
    })
}

/// When the acceptance of a cluster ends; none: nobody limits it.
fn due(hub: &Hub, name: &str) -> Option<Timestamp> {
    registration(hub, name)["obligations"][0]["due"].as_str()?.parse().ok()
}

/// The events about a cluster whose acceptance has ended.
fn ended(hub: &Hub, name: &str) -> Vec<Value> {
    let events = hub.cluster.kubectl(&["get", "events", "--output=json"]).expect("events");
    let events: Value = serde_json::from_str(&events).expect("JSON");
    let about = |event: &&Value| event["reason"] == "AcceptanceExpired" && event["involvedObject"]["name"] == name;
    events["items"].as_array().expect("a list").iter().filter(about).cloned().collect()
}

/// What ends with this: also a story that has failed waits for its threads.
struct Writing<'a>(&'a AtomicBool);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Writes the status of a cluster again and again, from shortly before its end until it is over.
fn writes(kubeconfig: &Path, name: &str, number: usize, end: Timestamp, is_over: &AtomicBool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let client = runtime.block_on(connect(kubeconfig)).client;
    let clusters: Api<ManagedCluster> = Api::all(client);
    let begin = end - SignedDuration::from_secs(3);
    while Timestamp::now() < begin && !is_over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
    }
    for round in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let claim = json!({"status": {"version": {"kubernetes": format!("v1.{number}.{round}")}}});
        let patch = Patch::Merge(claim);
        // Whatever the hub answers: it is written again.
        let _ = runtime.block_on(clusters.patch_status(name, &PatchParams::default(), &patch));
    }
}

fn explain(hub: &Hub, name: &str) -> String {
    let said = run(kubectl_ocm("policy", hub.cluster.kubeconfig()).args(["explain", name]));
    assert_eq!(said.code, Some(0), "{said:?}");
    said.stdout
}

#[test]
fn what_is_given_for_a_time_ends_with_it_and_only_a_person_gives_it_again() {
    let hub = limited(&["join"]);
    let controller = Controller::start(&hub);
    let before = Timestamp::now();
    hub.join("c1");
    until("c1 is accepted", || hub.accepts("c1"));
    // It was written before the cluster was accepted.
    let status = registration(&hub, "c1");
    let obligation = &status["obligations"][0];
    assert_eq!(
        (&obligation["policy"], &obligation["withinSeconds"], &obligation["reason"]),
        (&json!(LIMITS), &json!(60), &json!("it is a trial")),
        "{status:#}"
    );
    assert_eq!(obligation["clusterUid"], json!(hub.managed("c1").metadata.uid), "{status:#}");
    assert!(obligation["moduleSha256"].as_str().is_some_and(|digest| digest.len() == 64), "{status:#}");
    let end = due(&hub, "c1").expect("it has an end");
    assert!(end.duration_since(before).as_secs() >= 59, "{before} {end}");
    // Its agent may write what nobody can read. That gives it no more time.
    let conditions = ["9999-12-29T23:59:59-23:59", "2026-01-01T00:00:00+99:99"].map(|time| {
        let kind = format!("At{}", &time[..4]);
        json!({"type": kind, "status": "True", "reason": "X", "message": "", "lastTransitionTime": time})
    });
    let status = json!({"status": {"conditions": conditions}}).to_string();
    let patch = ["patch", "managedcluster", "c1", "--subresource=status", "--type=merge", "--patch", &status];
    hub.cluster.kubectl(&patch).expect("an agent may do so");
    let said = explain(&hub, "c1");
    let wanted = format!("until {end}, because policy {LIMITS} says so: it is a trial");
    assert!(said.contains(&wanted), "{said}");
    let table = run(kubectl_ocm("get", hub.cluster.kubeconfig()).args(["registrations", "c1", "-o", "wide"])).stdout;
    assert!(table.contains("EXPIRES") && table.contains(&end.to_string()), "{table}");
    let table = hub.cluster.kubectl(&["get", "hreg", "-o", "wide"]).expect("it is listed");
    assert!(table.contains("EXPIRES") && table.contains(&end.to_string()), "{table}");

    // However often its agent writes, as it may: nothing is in its specification.
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (hub, is_over) = (hub.cluster.kubeconfig(), &is_over);
            scope.spawn(move || writes(hub, "c1", number, end, is_over));
        }
        let _writing = Writing(&is_over);
        until_within(
            MINUTE + SOON,
            "c1 is accepted no more",
            || explain(&hub, "c1"),
            || {
                let accepted = hub.accepts("c1");
                assert!(accepted || Timestamp::now() >= end, "before {end}");
                !accepted
            },
        );
    });
    assert!(end.duration_until(Timestamp::now()) < SignedDuration::try_from(LATE).expect("seconds"), "{end}");
    until("it is written", || registration(&hub, "c1")["expired"].is_object());
    let status = registration(&hub, "c1");
    assert_eq!(status["expired"]["policies"], json!([LIMITS]), "{status:#}");
    let waits = format!("a person: its acceptance ended at {end}, policy {LIMITS} gave no more time: it is a trial");
    assert_eq!(status["waitingFor"], json!(format!("{waits} (AcceptanceExpired)")), "{status:#}");
    for gone in ["obligations", "intent", "approvedBy"] {
        assert!(status[gone].is_null(), "{gone}: {status:#}");
    }
    assert!(
        explain(&hub, "c1").contains("is not accepted any more: its acceptance ended at"),
        "{}",
        explain(&hub, "c1")
    );
    let events = ended(&hub, "c1");
    assert_eq!((events.len(), &events[0]["type"]), (1, &json!("Warning")), "{events:?}");
    assert!(controller.get("/metrics").contains(r#"ocm_policy_joins_total{outcome="Expired"} 1"#));
    // Its request is there, and the policy would let in whoever joins. It has ended all the same.
    hub.join("c2");
    until("c2 is accepted", || hub.accepts("c2"));
    policy(&hub.cluster, "another", json!({"module": {"builtin": "freeze-window"}, "mode": "Audit"}));
    std::thread::sleep(Duration::from_secs(3));
    assert!(!hub.accepts("c1"));
    // A person accepts it. The policy judges no acceptances.
    hub.patch("c1", json!({"spec": {"hubAcceptsClient": true}}));
    until("it has not ended any more", || registration(&hub, "c1")["expired"].is_null());
    std::thread::sleep(Duration::from_secs(3));
    assert!(hub.accepts("c1") && due(&hub, "c1").is_none(), "{:#}", registration(&hub, "c1"));
}

#[test]
fn policies_that_allow_it_again_give_more_time_and_those_that_object_do_not() {
    let hub = limited(&["join", "accept"]);
    let _controller = Controller::start(&hub);
    hub.join("c1");
    until("c1 is accepted", || hub.accepts("c1"));
    let first = due(&hub, "c1").expect("it has an end");
    until_within(MINUTE, "it has more time", || explain(&hub, "c1"), || due(&hub, "c1") > Some(first));
    let second = due(&hub, "c1").expect("it has an end");
    assert!(Timestamp::now() < first, "not before the last moment");
    // From now on somebody objects.
    policy(&hub.cluster, "names", json!({"module": {"builtin": "name-pattern"}, "settings": {"patterns": ["prod-*"]}}));
    let left = || format!("{:#}", registration(&hub, "c1"));
    until_within(MINUTE + SOON, "c1 is accepted no more", left, || {
        let accepted = hub.accepts("c1");
        assert!(accepted || Timestamp::now() >= second, "before {second}");
        !accepted
    });
    until("it is written", || registration(&hub, "c1")["expired"].is_object());
    let status = registration(&hub, "c1");
    assert_eq!((&status["verdict"], status["expired"]["at"].as_str()), (&json!("Deny"), Some(&*second.to_string())));
    let policies = status["decision"]["policies"].as_array().cloned().unwrap_or_default();
    let names = policies.iter().find(|one| one["policy"] == "names");
    assert_eq!(names.map(|one| &one["codes"]), Some(&json!(["NamePattern"])), "{status:#}");
}

#[test]
fn what_a_person_accepts_has_the_limits_that_policies_give_acceptances() {
    let hub = limited(&["accept"]);
    let _controller = Controller::start(&hub);
    let accept = |name: &str| {
        let patch = r#"{"spec":{"hubAcceptsClient":true}}"#;
        hub.cluster.kubectl(&["patch", "managedcluster", name, "--type=merge", "--patch", patch])
    };
    hub.register("c1");
    // Without a controller nobody would carry it out.
    let alone = Webhook::start(&hub.cluster, &[]);
    alone.configure(&hub.cluster);
    let said = accept("c1").expect_err("it is refused").to_string();
    assert!(said.contains("wants something to follow that this hub cannot do"), "{said}");
    let webhook = alone.another(&hub.cluster, &["--with-controller"]);
    webhook.configure(&hub.cluster);
    drop(alone);
    accept("c1").expect("it passes");
    until("it has an end", || due(&hub, "c1").is_some());
    // So does what the controller accepts because of a policy that knows no end.
    policy(&hub.cluster, APPROVES, approving(true));
    hub.join("c2");
    until("c2 has an end", || hub.accepts("c2") && due(&hub, "c2").is_some());
    // The policy lifts its own limit, and another one comes.
    policy(&hub.cluster, LIMITS, limits("no-end", &["accept"]));
    until("it has none any more", || due(&hub, "c1").is_none());
    assert!(hub.accepts("c1"));
    policy(&hub.cluster, LIMITS, limits("a-minute", &["accept"]));
    until("it has one again", || due(&hub, "c1").is_some());
    // One that cannot be loaded gives no time, and takes none before the end.
    let end = due(&hub, "c1").expect("it has an end");
    policy(
        &hub.cluster,
        "broken",
        json!({"module": {"configMap": {"namespace": "default", "name": "no", "key": "a"}}}),
    );
    let left = || format!("{:#}", registration(&hub, "c1"));
    until_within(MINUTE + SOON, "c1 is accepted no more", left, || {
        let accepted = hub.accepts("c1");
        assert!(accepted || Timestamp::now() >= end, "before {end}");
        !accepted
    });
    until("it is written", || registration(&hub, "c1")["expired"].is_object());
    assert_eq!((ended(&hub, "c1").len(), &registration(&hub, "c1")["verdict"]), (1, &json!("Error")));
}

#[test]
fn a_hub_that_cannot_keep_account_of_the_time_lets_nobody_in_for_it() {
    let hub = limited(&["join"]);
    let mut older = ocm_api::crds::registration_manifest().body().clone();
    let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
    let fields = older.pointer_mut(status).and_then(Value::as_object_mut).expect("it has a status");
    fields.remove("obligations").expect("it holds obligations");
    apply(&hub.cluster, &older);
    // The API server goes by a new definition a little later.
    std::thread::sleep(Duration::from_secs(2));
    let _controller = Controller::start(&hub);
    hub.join("c1");
    let waits = || registration(&hub, "c1")["waitingFor"].as_str().unwrap_or_default().to_owned();
    until_within(MINUTE, "it is said why", waits, || waits().contains("older than this controller"));
    assert!(!hub.accepts("c1") && hub.approved().is_empty(), "{}", waits());
    apply(&hub.cluster, ocm_api::crds::registration_manifest().body());
    until_within(MINUTE, "c1 is accepted", waits, || hub.accepts("c1"));
    assert!(due(&hub, "c1").is_some());
}

/// Lets the time of a cluster be over that nobody acts on.
fn end(hub: &Hub, name: &str) {
    let patch = r#"[{"op": "replace", "path": "/status/obligations/0/due", "value": "2026-01-01T00:00:00Z"}]"#;
    let words = ["patch", "registration", name, "--subresource=status", "--type=json", "--patch", patch];
    hub.cluster.kubectl(&words).expect("it is written");
}

/// A cluster that the hub would accept again is held, the intent is written, the acceptance withdrawn, and the result written.
const WRITES: usize = 4;

#[test]
fn wherever_a_withdrawal_is_cut_off_it_happens_once() {
    let hub = limited(&["join"]);
    // The hub would accept it again at once, so it is kept from that first.
    let gates = json!([{"feature": "ManagedClusterAutoApproval", "mode": "Enable"}]);
    let manager = json!({
        "apiVersion": "operator.open-cluster-management.io/v1", "kind": "ClusterManager",
        "metadata": {"name": "cluster-manager"}, "spec": {"registrationConfiguration": {"featureGates": gates}},
    });
    apply(&hub.cluster, &manager);
    let user = user_with(&hub.cluster, "controller", &["policy-controller.yaml"]);
    let mut ends = Vec::new();
    let all = (1..=WRITES).flat_map(|writes| [(writes, true), (writes, false)]);
    // The intent and the withdrawal stand for the others.
    for (case, is_killed) in series::cases(all, |case| [(2, true), (3, true), (3, false)].contains(case)) {
        let name = format!("c{case}-{is_killed}");
        let mut first = Controller::start_as(&user);
        hub.join(&name);
        until(&format!("{name} is accepted"), || hub.accepts(&name) && registration(&hub, &name)["intent"].is_null());
        assert_eq!(first.terminate(), Some(0));
        end(&hub, &name);
        // A controller that saw it before it was accepted has kept it from the hub already.
        let held = format!("{ACCEPTED_BY_HUB}-");
        hub.cluster.kubectl(&["annotate", "managedcluster", &name, &held]).expect("it is not held");
        let proxy = match is_killed {
            true => FailingProxy::start(&hub.cluster, &user, case),
            false => FailingProxy::timing_out(&hub.cluster, &user, case),
        };
        let mut cut_off = Controller::spawn(&proxy.kubeconfig);
        until(&format!("write {case} is the last one"), || proxy.failed());
        let mut next = None;
        if is_killed {
            cut_off.kill();
            // Nobody gives back the lease of whom the kernel ended.
            let lease = ["delete", "lease", "ocm-policy-controller", "--namespace=ocm-policy-engine"];
            hub.cluster.kubectl(&lease).expect("it is deleted");
            next = Some(Controller::start_as(&user));
        }
        until(&format!("{name} has ended"), || registration(&hub, &name)["expired"].is_object());
        // Created, accepted, withdrawn: its specification was written three times.
        let cluster = hub.managed(&name);
        assert_eq!((hub.accepts(&name), cluster.metadata.generation), (false, Some(3)), "{name}");
        let held = cluster.metadata.annotations.unwrap_or_default();
        assert!(held.values().any(|value| value == HELD), "{name}: {held:?}");
        assert_eq!(ended(&hub, &name).len(), 1, "{name}");
        let mut status = registration(&hub, &name);
        for own in ["acceptedBefore", "clusterUid", "request", "decision", "keys"] {
            assert!(!status[own].is_null(), "{own}: {status:#}");
            status[own] = Value::Null;
        }
        ends.push(status);
        assert_eq!(next.unwrap_or(cut_off).terminate(), Some(0));
    }
    assert!(ends.iter().all(|end| *end == ends[0]), "{ends:#?}");
}

#[test]
fn a_hub_that_accepts_clusters_by_itself_does_not_give_again_what_has_ended() {
    let hub = Cluster::start(&Spec::node("expiry-hub")).expect("a cluster");
    let gate = "--feature-gates=ManagedClusterAutoApproval=true";
    for words in [&["hub", "--bundle-version", bundle(), "--wait", gate][..], &["baseline", "--wait"]] {
        let said = run(kubectl_ocm("install", hub.kubeconfig()).args(words));
        assert_eq!(said.code, Some(0), "{said:?}");
    }
    prepare(&hub);
    apply(&hub, ocm_api::crds::registration_manifest().body());
    modules(&hub);
    for words in [
        &["wait", "--for=condition=Established", "crd", "--all", "--timeout=90s"][..],
        &["create", "clusterrole", "modules", "--verb=get", "--resource=configmaps"],
        &["create", "clusterrolebinding", "modules", "--clusterrole=modules", "--user=controller", "--user=webhook"],
    ] {
        hub.kubectl(words).expect("kubectl does it");
    }
    for name in HYGIENE {
        policy(&hub, name, json!({"module": {"builtin": name}}));
    }
    policy(&hub, LIMITS, limits("a-minute", &["accept"]));
    let webhook = Webhook::start(&hub, &["--with-controller"]);
    webhook.configure_and_wait(&hub);
    let _controller = Controller::start_as(&user_with(&hub, "controller", &["policy-controller.yaml"]));
    apply(&hub, &json!(managed_cluster("c1")));
    let cluster = || object(&hub, &["managedcluster", "c1"]);
    let accepted = || cluster()["spec"]["hubAcceptsClient"] == true;
    let has_acted = |status: &str| {
        let conditions = cluster()["status"]["conditions"].clone();
        let is = |one: &Value| one["type"] == "HubAcceptedManagedCluster" && one["status"] == status;
        conditions.as_array().is_some_and(|all| all.iter().any(is))
    };
    let due = || {
        let all = object(&hub, &["registrations.policy.kubectl-ocm.dev"])["items"].clone();
        let due = all[0]["status"]["obligations"][0]["due"].as_str().map(str::to_owned);
        due.and_then(|due| due.parse::<Timestamp>().ok())
    };
    until("the hub accepts it", || accepted() && has_acted("True"));
    until("it has an end", || due().is_some());
    // From now on the policy gives no more time, and none of them objects to an acceptance.
    policy(&hub, LIMITS, limits("a-minute", &["join"]));
    let end = due().expect("it has an end");
    until_within(
        MINUTE + SOON,
        "it is accepted no more",
        || format!("{:#}", cluster()),
        || {
            let accepted = accepted();
            assert!(accepted || Timestamp::now() >= end, "before {end}");
            !accepted
        },
    );
    until("the hub has acted", || has_acted("False"));
    std::thread::sleep(LATE);
    assert!(!accepted(), "{:#}", cluster());
    assert!(cluster()["metadata"]["annotations"][ACCEPTED_BY_HUB].is_string(), "{:#}", cluster());
}
