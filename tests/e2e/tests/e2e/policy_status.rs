//! What the controller tells of policies on a real API server: status, events and metrics.

use std::time::Duration;

use base64::Engine as _;
use e2e_tests::accept_support::{Hub, Who, managed_cluster};
use e2e_tests::controller_support::{Controller, shared};
use e2e_tests::refusals::{Answer, CLUSTERS, Call, Sender};
use e2e_tests::roles::{resources, tells_of_policies, user_with, users_without_one_rule};
use e2e_tests::shared_hub::SharedHub;
use e2e_tests::webhook_support::{Webhook, add_ons, policy};
use e2e_tests::{SOON, series, until, until_within};
use jiff::{SignedDuration, Timestamp};
use ocm_api::names::webhooks::{MANAGED_CLUSTER_MUTATOR, MANAGED_CLUSTER_VALIDATOR};
use ocm_core::policy_engine::{FailurePolicy, webhooks};
use serde_json::{Value, json};

/// A policy that nothing is wrong with.
const GOOD: &str = "csr-hygiene";

fn object(hub: &Hub, name: &str) -> Value {
    e2e_tests::object(&hub.cluster, &["hpol", name])
}

/// Status and reason of a condition.
fn condition(hub: &Hub, name: &str, kind: &str) -> String {
    of(&object(hub, name), kind)
}

/// The same of a policy that was read.
fn of(object: &Value, kind: &str) -> String {
    let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let one = all.into_iter().find(|one| one["type"] == kind).unwrap_or_default();
    let word = |member: &str| one[member].as_str().unwrap_or_default();
    format!("{} {}", word("status"), word("reason"))
}

/// Status and reason of these conditions: Loaded, Enforcing, Degraded.
fn conditions(hub: &Hub, name: &str) -> Vec<String> {
    let object = object(hub, name);
    ["Loaded", "Enforcing", "Degraded"].map(|kind| of(&object, kind)).to_vec()
}

/// Since when a condition is as it is.
fn since(hub: &Hub, name: &str, kind: &str) -> Timestamp {
    let object = object(hub, name);
    let all = object["status"]["conditions"].as_array().expect("conditions");
    let one = all.iter().find(|one| one["type"] == kind).expect("it has this one");
    one["lastTransitionTime"].as_str().and_then(|time| time.parse().ok()).expect("a time")
}

fn becomes(hub: &Hub, name: &str, expected: [&str; 3]) {
    until_within(
        SOON,
        &format!("{name}: {expected:?}"),
        || object(hub, name)["status"].to_string(),
        || conditions(hub, name) == expected,
    );
}

/// How often the reason of an event stands on the hub.
fn events(hub: &Hub, reason: &str) -> usize {
    let path = "--output=jsonpath={range .items[*]}{.reason}{\"\\n\"}{end}";
    let all = hub.cluster.kubectl(&["get", "events", path]).expect("events");
    all.lines().filter(|line| *line == reason).count()
}

/// A hub with the webhook as it is installed, and with one that answers in the place of Open Cluster Management's.
fn installed() -> (SharedHub, Webhook, Webhook) {
    let hub = shared(false);
    let webhook = Webhook::start(&hub.cluster, &[]);
    let own = webhook.another(&hub.cluster, &[]);
    own.stand_in(&hub.cluster);
    webhook.configure_as_installed(&hub.cluster, FailurePolicy::Fail);
    (hub, webhook, own)
}

#[test]
fn enforcing_is_what_the_api_server_was_seen_to_do() {
    let (hub, mut webhook, own) = installed();
    policy(&hub.cluster, "records", json!({"module": {"builtin": "cluster-hygiene"}, "mode": "Audit"}));
    let controller = Controller::start(&hub);
    let well = ["True Loaded", "True Answered", "False AsWanted"];
    becomes(&hub, GOOD, well);
    becomes(&hub, "records", ["True Loaded", "False Mode", "False AsWanted"]);
    let table = hub.cluster.kubectl(&["get", "hpol", GOOD]).expect("it is listed");
    let row: Vec<&str> = table.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    assert_eq!((&row[..5], row[5].len()), (&[GOOD, GOOD, "Enforce", "True", "True"][..], 12), "{table}");
    let status = object(&hub, GOOD)["status"].clone();
    assert_eq!((&status["observedGeneration"], &status["kind"]), (&json!(1), &json!("component")), "{status:#}");
    assert!(controller.get("/metrics").contains("ocm_policy_enforcing 1"));
    // What is as it was is not written again.
    let version = object(&hub, GOOD)["metadata"]["resourceVersion"].clone();
    std::thread::sleep(Duration::from_secs(12));
    assert_eq!(object(&hub, GOOD)["metadata"]["resourceVersion"], version);
    assert_eq!((events(&hub, "NotEnforcing"), events(&hub, "Enforcing")), (0, 0));

    // Nobody is asked any more, which is told within 10 seconds, and twice as many on a machine that others use.
    let kubectl = |words: &[&str]| hub.cluster.kubectl(words).expect("kubectl does it");
    kubectl(&["delete", "validatingwebhookconfiguration", "ocm-policy-webhook"]);
    let deleted = Timestamp::now();
    becomes(&hub, GOOD, ["True Loaded", "False ConfigurationMissing", "True ConfigurationMissing"]);
    let took = since(&hub, GOOD, "Enforcing").duration_since(deleted);
    assert!(took <= SignedDuration::from_secs(20), "{took:?}");
    assert_eq!(conditions(&hub, "records")[1], "False Mode");
    assert!(controller.get("/metrics").contains("ocm_policy_enforcing 0"));
    webhook.configure_as_installed(&hub.cluster, FailurePolicy::Ignore);
    becomes(&hub, GOOD, ["True Loaded", "False FailurePolicyIgnore", "True FailurePolicyIgnore"]);
    webhook.configure_as_installed(&hub.cluster, FailurePolicy::Fail);
    becomes(&hub, GOOD, well);
    assert_eq!((events(&hub, "NotEnforcing"), events(&hub, "Enforcing")), (2, 1));

    // The hub's own webhook is not asked.
    kubectl(&["delete", "mutatingwebhookconfiguration", MANAGED_CLUSTER_MUTATOR]);
    becomes(&hub, GOOD, ["True Loaded", "True Answered", "True ConfigurationMissing"]);
    assert!(controller.get("/metrics").contains("ocm_policy_hub_webhooks_present 0"));
    assert_eq!(events(&hub, "HubWebhookMissing"), 1);
    own.stand_in(&hub.cluster);
    becomes(&hub, GOOD, well);

    // Nobody answers.
    webhook.kill();
    becomes(&hub, GOOD, ["True Loaded", "False NoAnswer", "True NoAnswer"]);
}

/// Changes a configuration by a JSON patch.
fn patched(hub: &Hub, kind: &str, name: &str, patch: &Value) {
    let patch = format!("--patch={patch}");
    hub.cluster.kubectl(&["patch", kind, name, "--type=json", &patch]).expect("it is changed");
}

/// What becomes of an entry of a webhook configuration.
type Change<'c> = &'c dyn Fn(&mut Value);

#[test]
fn a_policy_is_enforced_where_the_entries_are_whole_that_bring_what_it_judges() {
    let (hub, _webhook, _own) = installed();
    let writes = "agent-self-edit";
    policy(&hub.cluster, writes, json!({"module": {"builtin": writes}}));
    let controller = Controller::start(&hub);
    let (well, wrong) = (["True Answered", "False AsWanted"], ["False NotAsked", "True NotAsked"]);
    let are = |[good, written]: [[&str; 2]; 2]| {
        becomes(&hub, GOOD, ["True Loaded", good[0], good[1]]);
        becomes(&hub, writes, ["True Loaded", written[0], written[1]]);
    };
    are([well, well]);
    let ours = ["validatingwebhookconfiguration", "ocm-policy-webhook"];
    let before = e2e_tests::object(&hub.cluster, &ours)["webhooks"].clone();
    // An entry, what becomes of it, of which of both policies it is, and whether it stands for others.
    let never = json!({"name": "never", "expression": "false"});
    let selector = json!({"matchLabels": {"no": "such"}});
    let nowhere = json!("https://127.0.0.1:1/v1/validate");
    let faults: [(&str, Change<'_>, bool, bool); 5] = [
        (webhooks::APPROVE, &|entry| entry["matchConditions"] = json!([never]), true, true),
        (webhooks::REQUEST, &|entry| entry["objectSelector"] = selector.clone(), true, false),
        (webhooks::UPDATE, &|entry| entry["clientConfig"]["url"] = nowhere.clone(), false, true),
        (webhooks::SELF_EDIT, &|entry| entry["rules"][0]["resources"] = json!(["managedclustersets"]), false, false),
        (webhooks::WORK, &|entry| entry["name"] = "another.policy.kubectl-ocm.dev".into(), false, false),
    ];
    for (entry, change, is_of_requests, _) in series::cases(faults, |(.., stands_for_others)| *stands_for_others) {
        let mut changed = before.clone();
        let all = changed.as_array_mut().expect("entries");
        change(all.iter_mut().find(|one| one["name"] == entry).expect("the entry"));
        patched(&hub, ours[0], ours[1], &json!([{"op": "replace", "path": "/webhooks", "value": changed}]));
        are(if is_of_requests { [wrong, well] } else { [well, wrong] });
        assert!(controller.get("/metrics").contains("ocm_policy_enforcing 0"), "{entry}");
        patched(&hub, ours[0], ours[1], &json!([{"op": "replace", "path": "/webhooks", "value": before}]));
        are([well, well]);
    }
    // What was tried is not there.
    let all = hub.cluster.kubectl(&["get", "csr", "--output=name"]).expect("they are listed");
    assert_eq!(all.trim(), "");
}

#[test]
fn evidence_that_cannot_be_read_is_told_by_its_policy_and_keeps_no_server_from_being_ready() {
    let (hub, webhook, _own) = installed();
    let kubectl = |words: &[&str]| hub.cluster.kubectl(words).expect("kubectl does it");
    // A kind that the hub does not serve, and a ConfigMap that nobody may read.
    let addons = "managedclusteraddons.addon.open-cluster-management.io";
    kubectl(&["delete", "crd", addons]);
    policy(&hub.cluster, "inventory", json!({"module": {"builtin": "inventory"}, "onError": "Hold"}));
    let controller = Controller::start(&hub);
    let (well, unread) =
        (["True Loaded", "True Answered", "False AsWanted"], ["True Loaded", "True Answered", "True EvidenceUnread"]);
    let message = |name: &str| {
        let conditions = object(&hub, name)["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let degraded = conditions.into_iter().find(|one| one["type"] == "Degraded").unwrap_or_default();
        degraded["message"].as_str().unwrap_or_default().to_owned()
    };
    for (name, parts) in
        [(GOOD, ["managedclusteraddons", "does not serve"]), ("inventory", ["cluster-inventory", "permission denied"])]
    {
        becomes(&hub, name, unread);
        let message = message(name);
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
    becomes(&hub, "name-claim", well);
    // A webhook that starts is ready, and says so beside.
    let webhook = webhook.restart(&hub.cluster);
    webhook.configure_and_wait(&hub.cluster);
    for ready in [webhook.get("/readyz"), controller.get("/readyz")] {
        assert!(ready.starts_with("HTTP/1.1 200") && ready.contains("evidence: "), "{ready}");
        assert!(ready.contains("managedclusteraddons") && ready.contains("permission denied"), "{ready}");
    }
    // Nobody is let in by what nobody knows, and nobody else is kept out: it holds, so whoever registers may.
    let bootstrap = Sender::new(hub.client(Who::Bootstrap));
    let register = Call::create(CLUSTERS, json!(managed_cluster("c1")));
    assert_eq!(Answer::of("a cluster", hub.wait(bootstrap.send(&register, true))), Answer::Passed);

    add_ons(&hub.cluster);
    let role = ["--verb=get,list,watch", "--resource=configmaps", "--namespace=open-cluster-management"];
    kubectl(&[&["create", "role", "inventory"], &role[..]].concat());
    let users = ["--role=inventory", "--user=controller", "--user=webhook", "--namespace=open-cluster-management"];
    kubectl(&[&["create", "rolebinding", "inventory"], &users[..]].concat());
    for name in [GOOD, "inventory"] {
        becomes(&hub, name, well);
    }
}

#[test]
fn where_the_hubs_own_webhooks_are_not_asked_or_do_not_answer_it_is_told() {
    let (hub, webhook, mut own) = installed();
    let controller = Controller::start(&hub);
    becomes(&hub, GOOD, ["True Loaded", "True Answered", "False AsWanted"]);
    // Ours is asked all the same: of certificate requests nobody else is.
    let told = |expected: &str| becomes(&hub, GOOD, ["True Loaded", "True Answered", expected]);
    let patch = |kind: &str, name: &str, change: Value| patched(&hub, kind, name, &json!([change]));
    let foreign = rcgen::generate_simple_self_signed(vec!["foreign".to_owned()]).expect("a certificate").cert.pem();
    let foreign = base64::engine::general_purpose::STANDARD.encode(foreign);
    let entry =
        |path: &str, value: Value| json!({"op": "replace", "path": format!("/webhooks/0/{path}"), "value": value});
    let (validates, mutates) = ("validatingwebhookconfiguration", "mutatingwebhookconfiguration");
    // Nobody listens at this port.
    let nowhere = "https://127.0.0.1:1/".to_owned();
    let (others, none) = (json!(["managedclustersets"]), json!({"op": "replace", "path": "/webhooks", "value": []}));
    // What is told, of which configuration, what becomes of it, and whether it stands for others.
    let faults: [(&str, &str, &str, Value, bool); 6] = [
        ("NotTrusted", mutates, MANAGED_CLUSTER_MUTATOR, entry("clientConfig/caBundle", foreign.clone().into()), true),
        ("NotTrusted", validates, MANAGED_CLUSTER_VALIDATOR, entry("clientConfig/caBundle", foreign.into()), false),
        ("NoAnswer", validates, MANAGED_CLUSTER_VALIDATOR, entry("clientConfig/url", nowhere.into()), true),
        ("FailurePolicyIgnore", mutates, MANAGED_CLUSTER_MUTATOR, entry("failurePolicy", "Ignore".into()), false),
        ("NotAsked", validates, MANAGED_CLUSTER_VALIDATOR, entry("rules/0/resources", others), false),
        ("NotAsked", mutates, MANAGED_CLUSTER_MUTATOR, none, true),
    ];
    let faults = series::cases(faults, |(.., stands_for_others)| *stands_for_others);
    let count = faults.len();
    for (reason, kind, name, change, _) in faults {
        let before = e2e_tests::object(&hub.cluster, &[kind, name])["webhooks"].clone();
        patch(kind, name, change);
        told(&format!("True {reason}"));
        let conditions = object(&hub, GOOD)["status"]["conditions"].to_string();
        assert!(conditions.contains(name), "{reason}: {conditions}");
        assert!(controller.get("/metrics").contains("ocm_policy_hub_webhooks_present 0"), "{reason}");
        patch(kind, name, json!({"op": "add", "path": "/webhooks", "value": before}));
        told("False AsWanted");
        assert!(controller.get("/metrics").contains("ocm_policy_hub_webhooks_present 1"), "{reason}");
    }
    assert_eq!((events(&hub, "HubWebhookMissing"), events(&hub, "HubWebhookBack")), (count, count));
    assert_eq!((events(&hub, "NotEnforcing"), events(&hub, "Enforcing")), (0, 0));
    own.kill();
    told("True NoAnswer");
    for (kind, name) in [(validates, MANAGED_CLUSTER_VALIDATOR), (mutates, MANAGED_CLUSTER_MUTATOR)] {
        hub.cluster.kubectl(&["delete", kind, name]).expect("it is deleted");
    }
    webhook.stand_in(&hub.cluster);
    becomes(&hub, GOOD, ["True Loaded", "True Answered", "False AsWanted"]);
    // What was tried is not there.
    let all = hub.cluster.kubectl(&["get", "managedclusters", "--output=name"]).expect("they are listed");
    assert_eq!(all.trim(), "");
}

#[test]
fn a_foreign_authority_is_told_and_lets_nobody_in() {
    let (hub, webhook, _own) = installed();
    let _controller = Controller::start(&hub);
    let well = ["True Loaded", "True Answered", "False AsWanted"];
    becomes(&hub, GOOD, well);
    // The API server reaches the webhook and does not believe that it is it.
    let foreign = Webhook::spawn(&hub.cluster, hub.cluster.kubeconfig().to_owned(), &[]);
    foreign.configure_at(&hub.cluster, &webhook.address, FailurePolicy::Fail);
    becomes(&hub, GOOD, ["True Loaded", "False NotTrusted", "True NotTrusted"]);
    let bootstrap = Sender::new(hub.client(Who::Bootstrap));
    let register = Call::create(CLUSTERS, json!(managed_cluster("c1")));
    let answer = || Answer::of("a cluster", hub.wait(bootstrap.send(&register, false)));
    assert_eq!(answer(), Answer::Unanswered("register".to_owned()));
    webhook.configure_as_installed(&hub.cluster, FailurePolicy::Fail);
    becomes(&hub, GOOD, well);
    assert_eq!(answer(), Answer::Passed);
}

#[test]
fn a_version_that_cannot_be_loaded_is_told_and_the_former_one_stays() {
    let (hub, _webhook, _own) = installed();
    let names = |module: &str| json!({"module": {"builtin": module}, "settings": {"patterns": ["prod-*"]}});
    policy(&hub.cluster, "names", names("name-pattern"));
    policy(&hub.cluster, "never", names("no-such"));
    let _controller = Controller::start(&hub);
    becomes(&hub, "names", ["True Loaded", "True Answered", "False AsWanted"]);
    becomes(&hub, "never", ["False LoadFailed", "False NotLoaded", "True LoadFailed"]);
    let before = object(&hub, "names")["status"].clone();
    policy(&hub.cluster, "names", names("no-such"));
    becomes(&hub, "names", ["False LoadFailed", "True Answered", "True LoadFailed"]);
    let status = object(&hub, "names")["status"].clone();
    assert_eq!((&status["sha256"], &status["observedGeneration"]), (&before["sha256"], &json!(2)), "{status:#}");
    let message = status["conditions"][0]["message"].as_str().unwrap_or_default();
    let digest = before["digest"].as_str().unwrap_or_default();
    let expected = format!("module {digest} stays in force");
    assert!(digest.len() == 12 && message.starts_with(&expected) && message.contains("no-such"), "{message}");
    let both = 2;
    until("it is an event", || events(&hub, "LoadFailed") == both);
    policy(&hub.cluster, "names", names("name-pattern"));
    becomes(&hub, "names", ["True Loaded", "True Answered", "False AsWanted"]);
    assert_eq!(events(&hub, "LoadFailed"), both);

    // So does one that fails its test cases.
    assert_eq!(condition(&hub, "names", "TestsPassed"), "Unknown NoTests");
    let tested = |verdict: &str| {
        let case = format!(
            "{{name: c, request: {{operation: create, cluster: {{name: dev-1}}}}, expect: {{verdict: {verdict}}}}}"
        );
        let mut spec = names("name-pattern");
        spec["tests"] = format!("cases:\n- {case}\n").into();
        spec
    };
    policy(&hub.cluster, "names", tested("allow"));
    becomes(&hub, "names", ["False TestsFailed", "True Answered", "True TestsFailed"]);
    assert_eq!(condition(&hub, "names", "TestsPassed"), "False TestsFailed");
    let message = object(&hub, "names")["status"]["conditions"].to_string();
    assert!(message.contains("expected allow, got deny"), "{message}");
    policy(&hub.cluster, "names", tested("deny"));
    becomes(&hub, "names", ["True Loaded", "True Answered", "False AsWanted"]);
    assert_eq!(condition(&hub, "names", "TestsPassed"), "True Passed");

    // What a module says of its settings is for those who may read them.
    let settings = json!({"windows": [{"from": "s3cret", "to": "06:30"}]});
    policy(&hub.cluster, "freeze", json!({"module": {"builtin": "freeze-window"}, "settings": settings}));
    until("it is an event", || events(&hub, "LoadFailed") == both + 1);
    assert!(object(&hub, "freeze")["status"]["conditions"].to_string().contains("s3cret"));
    let all = hub.cluster.kubectl(&["get", "events", "--all-namespaces", "--output=json"]).expect("events");
    assert!(!all.contains("s3cret"), "{all}");
}

#[test]
fn a_version_that_stops_to_judge_is_refused_also_by_pods_that_start() {
    let (hub, webhook, _own) = installed();
    let rights = user_with(&hub.cluster, "controller", &["policy-controller.yaml"]);
    let controller = Controller::start_as(&rights);
    let names = json!({"module": {"builtin": "name-pattern"}, "settings": {"patterns": ["prod-*"]}});
    policy(&hub.cluster, "names", names.clone());
    let well = ["True Loaded", "True Answered", "False AsWanted"];
    becomes(&hub, "names", well);
    let operations = || object(&hub, "names")["status"]["operations"].clone();
    let judged = json!(["create", "request", "approve", "accept", "join"]);
    assert_eq!(operations(), judged);
    let bootstrap = Sender::new(hub.client(Who::Bootstrap));
    let register = |name: &str| {
        let call = Call::create(CLUSTERS, json!(managed_cluster(name)));
        Answer::of("a cluster", hub.wait(bootstrap.send(&call, true)))
    };
    let refuses = |name: &str| matches!(register(name), Answer::Webhook(_));
    until("the webhook has loaded it", || register("prod-1") == Answer::Passed && refuses("dev-1"));

    // While it runs, the former version stays in force.
    policy(&hub.cluster, "names", json!({"module": {"builtin": "agent-self-edit"}}));
    becomes(&hub, "names", ["False StopsToJudge", "True Answered", "True StopsToJudge"]);
    assert_eq!((register("prod-1"), operations()), (Answer::Passed, judged.clone()));
    assert!(refuses("dev-1"));

    // Whoever starts does not know it any more, and puts nothing less in force.
    drop(controller);
    let webhook = webhook.restart(&hub.cluster);
    webhook.configure_and_wait(&hub.cluster);
    let _controller = Controller::start_as(&rights);
    becomes(&hub, "names", ["False StopsToJudge", "False NotLoaded", "True StopsToJudge"]);
    assert!(refuses("prod-1") && refuses("dev-1"));
    assert_eq!(operations(), judged);
    let message = object(&hub, "names")["status"]["conditions"].to_string();
    assert!(message.contains("it would no longer be asked about create, request, approve, join, as"), "{message}");

    // The administrator says what it is asked about.
    let fewer = json!({"module": {"builtin": "agent-self-edit"}, "operations": ["update", "admit"]});
    policy(&hub.cluster, "names", fewer);
    becomes(&hub, "names", well);
    until("the webhook has loaded it", || register("dev-1") == Answer::Passed);
    until("it is told what is judged", || operations() == json!(["update", "accept", "admit"]));
}

#[test]
fn without_any_rule_for_it_it_says_what_it_cannot_tell() {
    let (hub, _webhook, _own) = installed();
    let users = users_without_one_rule(&hub.cluster, "policy-controller.yaml");
    let mut tried = 0;
    for (kubeconfig, rule) in users.iter().filter(|(_, rule)| tells_of_policies(rule)) {
        let mut controller = Controller::start_as(kubeconfig);
        let said = || controller.says.lock().expect("nobody failed").clone();
        let word = resources(rule)[0].split('/').next().unwrap_or_default().to_owned();
        until_within(SOON, &format!("it names {word}"), said, || {
            said().contains(&word) && said().contains("permission denied")
        });
        if word != "hubpolicies" {
            until_within(
                SOON,
                "it is written",
                || object(&hub, GOOD)["status"].to_string(),
                || conditions(&hub, GOOD).get(1).is_some_and(|one| one == "Unknown CannotTell"),
            );
        }
        assert_eq!(controller.terminate(), Some(0), "{rule}");
        tried += 1;
    }
    assert_eq!(tried, 4);
}
