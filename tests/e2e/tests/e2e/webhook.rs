//! The webhook on a real API server: what it refuses, what it lets through, and what becomes of a hub without it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use control_plane::Spec;
use e2e_tests::accept_support::{Ask, Hub, Who, know_registrations};
use e2e_tests::approval_support::guard;
use e2e_tests::manifests::apply;
use e2e_tests::refusals::{Call, REQUESTS, Sender};
use e2e_tests::roles::users_without_one_right;
use e2e_tests::shared_hub::SharedHub;
use e2e_tests::webhook_support::{HYGIENE, Webhook, add_ons, policy, prepare, shared};
use e2e_tests::{SOON, until, until_within};
use futures::StreamExt as _;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Error};
use ocm_api::ManagedCluster;
use ocm_core::csr::Request;
use ocm_rules::csr;
use serde_json::{Value, json};

fn hub_with(policies: &[&str]) -> (SharedHub, Webhook) {
    started_with(policies, &[])
}

fn started_with(policies: &[&str], arguments: &[&str]) -> (SharedHub, Webhook) {
    let hub = shared();
    let webhook = webhook(&hub, policies, arguments);
    (hub, webhook)
}

/// A webhook with these policies, which the hub asks.
fn webhook(hub: &Hub, policies: &[&str], arguments: &[&str]) -> Webhook {
    for name in policies {
        policy(&hub.cluster, name, json!({"module": {"builtin": name}}));
    }
    let webhook = Webhook::start(&hub.cluster, arguments);
    webhook.configure(&hub.cluster);
    webhook
}

/// What the webhook said against it: the whole sentence; none: it let it through.
fn refused<T>(answer: Result<T, Error>) -> Option<String> {
    match answer {
        Ok(_) => None,
        Err(Error::Api(status)) if status.message.contains(".policy.kubectl-ocm.dev\" denied the request: ") => {
            assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"), "{status:?}");
            Some(status.message.clone())
        }
        Err(error) => panic!("not by the webhook: {error}"),
    }
}

fn code(sentence: &str) -> &str {
    sentence.trim_end_matches(')').rsplit(['(', ' ']).next().unwrap_or_default()
}

#[test]
fn requests_are_refused_exactly_where_the_rules_refuse_them() {
    let (hub, webhook) = hub_with(&["csr-hygiene"]);
    let asks = Ask::every_way();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let one = async |ask: &Ask| {
        let api: Api<CertificateSigningRequest> = Api::all(hub.client(ask.who));
        api.create(&dry, &ask.object()).await
    };
    let answers: Vec<_> = hub.wait(futures::stream::iter(&asks).map(one).buffered(8).collect());
    let (mut codes, mut passed) = (BTreeSet::new(), 0);
    for (ask, answer) in asks.iter().zip(answers) {
        // What the server stamps is known when it has passed; the rest is what was sent.
        let mut object = ask.object();
        let user = hub.user(ask.who);
        object.spec.username = user.username;
        object.spec.groups = user.groups;
        object.spec.uid = user.uid;
        object.spec.extra = user.extra;
        let request = Request::read(&object);
        let not_enabled = csr::AddonFacts { is_enabled: Some(false), ..csr::AddonFacts::default() };
        let judged = csr::judge(&request.facts(), None, &csr::Settings::default(), not_enabled);
        let violations = judged.map(|judged| judged.violations).unwrap_or_default();
        let expected: BTreeSet<&str> = violations.iter().map(|violation| violation.code.word()).collect();
        let told = refused(answer);
        let said = format!("{told:?} {expected:?}: {:?}", Ask { pem: Vec::new(), ..ask.clone() });
        assert_eq!(told.is_some(), !expected.is_empty(), "{said}");
        match told {
            Some(sentence) => {
                assert!(expected.contains(code(&sentence)), "{said}");
                codes.insert(code(&sentence).to_owned());
            }
            None => passed += 1,
        }
    }
    assert!(codes.len() >= 9 && passed > 5, "{codes:?} {passed}");
    let log = webhook.log.lock().expect("nobody failed");
    assert!(log.iter().all(|line| line["dryRun"] == true || line["stage"] != "validating"), "they were dry runs");
}

#[test]
fn whoever_is_let_in_is_let_in_and_nobody_else() {
    let hub = Hub::start_as(&Spec::api("webhook").audited(true));
    add_ons(&hub.cluster);
    prepare(&hub.cluster);
    let webhook = webhook(&hub, &HYGIENE, &[]);
    // A right join, by hand.
    let request = hub.join("c1");
    hub.conclude(&request, "approve");
    assert!(hub.is("Approved", &request));
    hub.patch("c1", json!({"spec": {"hubAcceptsClient": true}}));
    // The log is written when the answer is on its way.
    until("both are in the log", || webhook.decisions("c1").len() >= 2);
    let decisions = webhook.decisions("c1");
    let words: Vec<&str> = decisions.iter().filter_map(|line| line["operation"].as_str()).collect();
    assert_eq!(words, ["create", "accept"]);

    // Somebody with another key wants its name: refused when it asks, or at the latest when somebody approves it.
    let stranger = hub.try_ask(&Ask::with("c1", &csr_fixtures::Fixture::agent("c1", "a2")));
    let told = match &stranger {
        Ok(stranger) => {
            let name = stranger.metadata.name.clone().expect("a name");
            let error = hub.cluster.kubectl(&["certificate", "approve", &name]).expect_err("it is refused").to_string();
            assert!(!hub.is("Approved", &name));
            // Whoever denies needs no leave.
            hub.conclude(&name, "deny");
            error
        }
        Err(error) => error.to_string(),
    };
    assert!(told.contains("denied by policy name-claim"), "{told}");
    hub.grant(&json!([{"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclusters"], "verbs": ["patch"]}]));
    // The agent of another cluster writes to it, and a cluster brings labels along.
    let agent: Api<ManagedCluster> = Api::all(hub.client(Who::AgentOfC2));
    let labels = Patch::Merge(json!({"metadata": {"labels": {"env": "prod"}}}));
    let told = refused(hub.wait(agent.patch("c1", &PatchParams::default(), &labels)));
    assert!(told.as_deref().is_some_and(|told| told.contains("policy agent-self-edit")), "{told:?}");
    let brings: ManagedCluster = serde_json::from_value(json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": "c9", "labels": {"env": "prod"}}, "spec": {"hubAcceptsClient": false},
    }))
    .expect("a cluster");
    let bootstrap: Api<ManagedCluster> = Api::all(hub.client(Who::Bootstrap));
    let told = refused(hub.wait(bootstrap.create(&PostParams::default(), &brings)));
    assert!(told.as_deref().is_some_and(|told| told.contains("policy cluster-hygiene")), "{told:?}");
    until("it is in the log", || !webhook.decisions("c9").is_empty());
    let line = webhook.decisions("c9").remove(0);
    assert_eq!((&line["refused"], &line["verdict"]), (&json!(true), &json!("deny")));
    // The API server's own log tells of both, under the name of the entry that was asked.
    let noted = |resource: &str, name: &str| -> Vec<[Option<String>; 3]> {
        let all = hub.cluster.audit_annotations(resource, name).expect("the audit log can be read");
        let of = |one: &BTreeMap<String, String>, key: &str| {
            let of_entry = |(name, value): (&String, &String)| {
                let (entry, member) = name.split_once(".policy.kubectl-ocm.dev/")?;
                (["clusters", "requests", "approvals"].contains(&entry) && member == key).then(|| value.clone())
            };
            one.iter().find_map(of_entry)
        };
        let noted = all.iter().map(|one| ["verdict", "policies", "reasons"].map(|key| of(one, key)));
        noted.filter(|one| one[0].is_some()).collect()
    };
    let some = |texts: [&str; 3]| texts.map(|text| (!text.is_empty()).then(|| text.to_owned()));
    until("the refusal is in the audit log", || !noted("managedclusters", "c9").is_empty());
    assert_eq!(noted("managedclusters", "c9"), [some(["deny", "cluster-hygiene", "Labels"])]);
    let of_c1 = noted("managedclusters", "c1");
    let verdicts: Vec<&str> = of_c1.iter().filter_map(|[verdict, ..]| verdict.as_deref()).collect();
    assert_eq!(verdicts, ["allow", "allow", "deny"], "it was registered, accepted, and written to by another agent");
    assert_eq!(of_c1[2], some(["deny", "agent-self-edit", "OtherCluster"]));
    let approvals = noted("certificatesigningrequests", &request);
    assert!(approvals.iter().any(|[verdict, ..]| verdict.as_deref() == Some("allow")), "{approvals:?}");
    let metrics = webhook.get("/metrics");
    assert!(
        metrics.contains(r#"ocm_policy_decisions_total{policy="cluster-hygiene",operation="create",verdict="deny""#)
    );
    the_group_of_an_add_on_is_given_while_no_cluster_has_it(&hub);
    // A cluster leaves.
    hub.remove("c1");
}

/// Certificates of cluster-proxy have the group of the agents of a cluster that is called so.
fn the_group_of_an_add_on_is_given_while_no_cluster_has_it(hub: &Hub) {
    hub.grant(&json!([{"apiGroups": ["certificates.k8s.io"], "resources": ["*"], "verbs": ["*"]}]));
    let label = |cluster: &str| format!("open-cluster-management.io/cluster-name={cluster}");
    let kubectl = |words: &[&str]| hub.cluster.kubectl(words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
    kubectl(&["create", "namespace", "c1"]);
    kubectl(&["label", "namespace", "c1", &label("c1")]);
    let addon = json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
        "metadata": {"name": "cluster-proxy", "namespace": "c1"}, "spec": {},
    });
    apply(&hub.cluster, &addon);
    let group = "open-cluster-management:cluster-proxy";
    let names = csr_fixtures::Fixture::empty().organization(group).common_name(&format!("{group}:addon-agent"));
    let ask = Ask { addon: Some("cluster-proxy".to_owned()), ..Ask::with("c1", &names) };
    let (agent, call) = (Sender::agent(hub.admin.clone(), "c1"), Call::create(REQUESTS, json!(ask.object())));
    let told = || refused(hub.wait(agent.send(&call, true)));
    until("the add-on is enabled", || told().is_none());
    let role = "open-cluster-management:managedcluster:cluster-proxy";
    kubectl(&["create", "clusterrole", role, "--verb=get", "--resource=managedclusters"]);
    kubectl(&["label", "clusterrole", role, &label("cluster-proxy")]);
    until("it is refused", || told().is_some_and(|told| code(&told) == "ForeignOrganization"));
    kubectl(&["delete", "clusterrole", role]);
    until("the cluster is gone", || told().is_none());
}

#[test]
fn a_change_of_policies_is_in_force_at_once_and_loses_no_request() {
    let (hub, webhook) = hub_with(&["name-pattern"]);
    // It refuses settings that it does not have: closed until somebody says what is wanted.
    let create = |name: &str| {
        let api: Api<ManagedCluster> = Api::all(hub.admin.clone());
        let object = e2e_tests::accept_support::managed_cluster(name);
        hub.wait(api.create(&PostParams { dry_run: true, ..PostParams::default() }, &object)).map(drop)
    };
    let in_force = |spec: Value, name: &str, is_refused: bool| {
        policy(&hub.cluster, "name-pattern", spec);
        let begun = Instant::now();
        while refused(create(name)).is_some() != is_refused {
            assert!(begun.elapsed() < Duration::from_secs(10), "{}", webhook.get("/readyz"));
        }
    };
    let with = |pattern: &str| json!({"module": {"builtin": "name-pattern"}, "settings": {"patterns": [pattern]}});
    in_force(with("prod-*"), "dev-1", true);
    assert_eq!(refused(create("prod-1")), None);
    in_force(with("dev-*"), "dev-1", false);
    assert!(refused(create("prod-1")).is_some());

    // Asked about some requests alone; a change of that is in force as every other.
    let narrowed = |part: &str, what: Value| {
        let mut spec = with("dev-*");
        spec[part] = what;
        spec
    };
    let prod = json!({"clusterSelector": {"matchLabels": {"env": "prod"}}});
    in_force(narrowed("match", prod), "prod-1", false);
    let labelled = || {
        let api: Api<ManagedCluster> = Api::all(hub.admin.clone());
        let mut object = e2e_tests::accept_support::managed_cluster("prod-1");
        object.metadata.labels = Some([("env".to_owned(), "prod".to_owned())].into());
        refused(hub.wait(api.create(&PostParams { dry_run: true, ..PostParams::default() }, &object)).map(drop))
    };
    assert!(labelled().is_some());
    in_force(with("dev-*"), "prod-1", true);
    in_force(narrowed("operations", json!(["join", "accept"])), "prod-1", false);
    assert_eq!(labelled(), None);
    in_force(with("dev-*"), "prod-1", true);
    let expression =
        r#"request.cluster.labels["env"] == "prod" && request.requester.groups.exists(one, one == "system:masters")"#;
    let fails = json!({"conditions": [{"name": "prod", "expression": expression}]});
    policy(&hub.cluster, "name-pattern", narrowed("match", fails));
    // Of who has no such label that cannot be told.
    let cannot_be_told =
        |name: &str| refused(create(name)).is_some_and(|why| why.contains("whether the policy is evaluated"));
    // Compiling the interpreter takes seconds without optimisation.
    let compiled = Duration::from_secs(120);
    until_within(compiled, "the condition is in force", || webhook.get("/readyz"), || cannot_be_told("dev-1"));
    assert!(cannot_be_told("prod-1") && labelled().is_some_and(|why| !why.contains("whether the policy is evaluated")));
    let met = json!({"conditions": [
        {"name": "prod", "expression": expression},
        {"name": "labelled", "expression": r#""env" in request.cluster.labels"#},
    ]});
    policy(&hub.cluster, "name-pattern", narrowed("match", met));
    until_within(compiled, "both are in force", || webhook.get("/readyz"), || refused(create("prod-1")).is_none());
    assert!(labelled().is_some());

    // Only told.
    let mut audit = with("dev-*");
    audit["mode"] = json!("Audit");
    in_force(audit, "prod-1", false);
    let mut warn = with("dev-*");
    warn["mode"] = json!("Warn");
    policy(&hub.cluster, "name-pattern", warn);
    let begun = Instant::now();
    let file = hub.cluster.dir().expect("a folder").join("prod-1.json");
    let object = json!(e2e_tests::accept_support::managed_cluster("prod-1")).to_string();
    std::fs::write(&file, object).expect("a file");
    loop {
        let mut create = hub.cluster.kubectl_command();
        let output =
            create.args(["create", "--dry-run=server", "--filename"]).arg(&file).output().expect("kubectl runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if said.contains("Warning: name-pattern: would be denied: ") {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{said}");
    }

    // What cannot be loaded leaves in force what was, and says so.
    in_force(with("prod-*"), "dev-1", true);
    policy(&hub.cluster, "name-pattern", json!({"module": {"builtin": "no-such"}}));
    let begun = Instant::now();
    while !webhook.get("/readyz").contains("policy name-pattern: ") {
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
    assert!(refused(create("dev-1")).is_some() && refused(create("prod-1")).is_none());
    // A policy that never was anything refuses everything, at first because it is being loaded.
    policy(
        &hub.cluster,
        "missing",
        json!({"module": {"configMap": {"namespace": "default", "name": "no", "key": "a"}}}),
    );
    let begun = Instant::now();
    let mut said = String::new();
    while !said.contains("policy missing: the policy cannot be loaded") {
        assert!(begun.elapsed() < Duration::from_secs(10), "{said}");
        let former = said.len();
        said = refused(create("prod-1")).unwrap_or_default();
        assert!(former == 0 || !said.is_empty(), "what was refused passes");
    }
    hub.cluster.kubectl(&["delete", "hubpolicy", "missing"]).expect("it is deleted");
    let begun = Instant::now();
    while refused(create("prod-1")).is_some() {
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn without_the_webhook_nothing_is_granted_and_the_rest_goes_on() {
    let (hub, mut webhook) = hub_with(&HYGIENE);
    let request = hub.join("c1");
    let pending = hub.join("c2");
    hub.conclude(&request, "approve");
    hub.patch("c1", json!({"spec": {"hubAcceptsClient": true}}));
    webhook.kill();
    let error = hub.cluster.kubectl(&["certificate", "approve", &pending]).expect_err("nobody judges").to_string();
    assert!(error.contains("failed calling webhook \"approvals.policy.kubectl-ocm.dev\""), "{error}");
    assert!(!hub.is("Approved", &pending));
    // Status, and clusters of others' kinds, are none of its business.
    hub.set_conditions("c1", &[("ManagedClusterJoined", "True")]);
    let api: Api<ManagedCluster> = Api::all(hub.admin.clone());
    assert!(hub.wait(api.get("c1")).is_ok());
    // The emergency exit needs nobody's leave.
    hub.cluster.kubectl(&["delete", "validatingwebhookconfiguration", "ocm-policy-webhook"]).expect("it is deleted");
    let begun = Instant::now();
    while hub.wait(api.delete("c2", &DeleteParams::default())).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn the_certificate_is_replaced_and_the_end_is_announced() {
    let (hub, mut webhook) = started_with(&["csr-hygiene"], &["--drain", "5s"]);
    let served = || {
        let endpoint = ocm_net::Endpoint::parse(&format!("https://{}", webhook.address), None).expect("an address");
        let presented = hub.wait(ocm_net::present(&endpoint, &[], Duration::from_secs(5)));
        presented.unwrap_or_else(|_| panic!("nobody answers")).chain.remove(0)
    };
    let first = served();
    webhook.rotate();
    let begun = Instant::now();
    while served() == first {
        assert!(begun.elapsed() < Duration::from_secs(20), "it serves with the former certificate");
        std::thread::sleep(Duration::from_millis(100));
    }
    // The API server goes on: the authority is the same.
    hub.join("c1");
    // Reviews come all the time while it ends, and none is lost.
    let asked = std::thread::scope(|scope| {
        let ending = scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            webhook.terminate()
        });
        let mut asked = 0;
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(4) {
            let api: Api<ManagedCluster> = Api::all(hub.admin.clone());
            let object = e2e_tests::accept_support::managed_cluster("c2");
            let answer = hub.wait(api.create(&PostParams { dry_run: true, ..PostParams::default() }, &object));
            answer.unwrap_or_else(|error| panic!("a review was lost after {:?}: {error}", begun.elapsed()));
            asked += 1;
        }
        assert_eq!(ending.join().expect("it ended"), Some(0));
        asked
    });
    assert!(asked > 20, "{asked}");
}

#[test]
fn modules_come_from_objects_of_the_hub_and_have_their_digest() {
    let modules = cli_tests::guests(&cli_tests::target(), &["name-pattern", "freeze-window"]).expect("they are built");
    let [names, other] = [&modules[0], &modules[1]].map(|path| format!("--from-file=policy.wasm={}", path.display()));
    let hub = shared();
    hub.grant(&json!([{"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get"]}]));
    hub.cluster.kubectl(&["create", "configmap", "names", &names]).expect("it is created");
    hub.cluster.kubectl(&["create", "secret", "generic", "names", &names]).expect("it is created");
    let digest = ring::digest::digest(&ring::digest::SHA256, &std::fs::read(&modules[0]).expect("a module"));
    let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let from = |kind: &str, pattern: &str, sha256: &str| {
        json!({
            "module": {kind: {"namespace": "default", "name": "names", "key": "policy.wasm"}}, "sha256": sha256,
            "settings": {"patterns": [pattern]},
        })
    };
    policy(&hub.cluster, "names", from("configMap", "prod-*", &digest));
    let folder = hub.cluster.dir().expect("it is ours").join("modules");
    std::fs::create_dir_all(folder.join("team")).expect("a folder");
    std::fs::copy(&modules[0], folder.join("team/names.wasm")).expect("a module");
    let webhook = Webhook::start(&hub.cluster, &["--module-dir", folder.to_str().expect("text")]);
    webhook.configure(&hub.cluster);
    let passes = |name: &str| {
        let api: Api<ManagedCluster> = Api::all(hub.admin.clone());
        let object = e2e_tests::accept_support::managed_cluster(name);
        refused(hub.wait(api.create(&PostParams { dry_run: true, ..PostParams::default() }, &object))).is_none()
    };
    assert!(passes("prod-1") && !passes("dev-1"), "{}", webhook.get("/readyz"));
    policy(&hub.cluster, "names", from("secret", "dev-*", &digest));
    until("the Secret's module is in force", || passes("dev-1") && !passes("prod-1"));
    // Another digest, and another module in the same place: what was in force stays.
    policy(&hub.cluster, "names", from("secret", "prod-*", &"0".repeat(64)));
    until("it says so", || webhook.get("/readyz").contains("is wanted"));
    assert!(passes("dev-1") && !passes("prod-1"));
    policy(&hub.cluster, "names", from("configMap", "dev-*", &digest));
    until("all is well", || !webhook.get("/readyz").contains("policy names"));
    hub.cluster.kubectl(&["delete", "configmap", "names"]).expect("it is deleted");
    hub.cluster.kubectl(&["create", "configmap", "names", &other]).expect("it is created");
    until("it says so", || webhook.get("/readyz").contains("is wanted"));
    assert!(passes("dev-1") && !passes("prod-1"));
    // A file of its own, and one that is not there.
    let file = |path: &str| json!({"module": {"path": path}, "sha256": digest, "settings": {"patterns": ["test-*"]}});
    policy(&hub.cluster, "names", file("team/other.wasm"));
    until("it says so", || webhook.get("/readyz").contains("team/other.wasm"));
    assert!(passes("dev-1") && !passes("test-1"));
    policy(&hub.cluster, "names", file("team/names.wasm"));
    until("the file's module is in force", || passes("test-1") && !passes("dev-1"));
}

#[test]
fn what_policies_change_passes_and_the_same_from_a_stranger_does_not() {
    let hub = shared();
    policy(&hub.cluster, "cluster-hygiene", json!({"module": {"builtin": "cluster-hygiene"}}));
    let routing = json!({
        "module": {"builtin": "cluster-set-routing"}, "grants": {"edits": [{"edit": "cluster-set"}]},
        "settings": {"rules": [{"clusterSet": "edge", "names": ["edge-*"]}]},
    });
    policy(&hub.cluster, "cluster-set-routing", routing);
    let webhook = Webhook::start(&hub.cluster, &[]);
    webhook.configure_changes(&hub.cluster);
    webhook.configure(&hub.cluster);
    let set = "cluster.open-cluster-management.io/clusterset";
    let create = |name: &str, labels: Value| {
        let object = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": name, "labels": labels}, "spec": {"hubAcceptsClient": false},
        });
        let api: Api<ManagedCluster> = Api::all(hub.client(Who::Bootstrap));
        let object = serde_json::from_value(object).expect("a cluster");
        hub.wait(api.create(&PostParams { dry_run: true, ..PostParams::default() }, &object))
    };
    let labels = |cluster: &ManagedCluster| cluster.metadata.labels.clone().unwrap_or_default();
    let mut routed = None;
    until("it is routed", || {
        routed = create("edge-1", json!({})).ok().map(|cluster| labels(&cluster));
        routed.as_ref().is_some_and(|labels| labels.get(set).is_some_and(|set| set == "edge"))
    });
    // Saying the same is no claim; saying something else is one.
    assert!(create("edge-1", json!({set: "edge"})).is_ok());
    let told = refused(create("edge-1", json!({set: "prod"})));
    assert!(told.as_deref().is_some_and(|told| told.contains("polic")), "{told:?}");
    assert!(refused(create("c1", json!({set: "edge"}))).is_some(), "it is meant for others");
    assert!(refused(create("edge-1", json!({"team": "a"}))).is_some(), "no policy sets this");
    assert!(create("c1", json!({})).is_ok());
    what_policies_change_of_an_acceptance_is_written_with_it(&hub, &webhook);
}

/// A cluster was registered before there were policies that change it. Who accepts it accepts it with their changes.
fn what_policies_change_of_an_acceptance_is_written_with_it(hub: &Hub, webhook: &Webhook) {
    const SET: &str = "cluster.open-cluster-management.io/clusterset";
    hub.join("late-1");
    let routing = json!({
        "module": {"builtin": "cluster-set-routing"}, "grants": {"edits": [{"edit": "cluster-set"}]},
        "settings": {"rules": [{"clusterSet": "edge", "names": ["edge-*", "late-*"]}]},
    });
    policy(&hub.cluster, "cluster-set-routing", routing);
    let team = json!({
        "module": {"builtin": "required-labels"}, "grants": {"edits": [{"edit": "label", "key": "team"}]},
        "operations": ["accept", "update"], "settings": {"required": [{"key": "team", "default": "a"}]},
    });
    policy(&hub.cluster, "team", team);
    // Nobody changes this one: what policies change is no change of whoever accepts.
    let rule = json!({"name": "none", "operations": ["update"], "message": "nothing is changed",
                      "expression": "request.cluster.name != 'late-1'"});
    policy(&hub.cluster, "no-update", json!({"module": {"builtin": "cel"}, "settings": {"rules": [rule]}}));
    webhook.configure_and_wait(&hub.cluster);
    let write = |name: &str, patch: Value, dry_run: bool| {
        let api: Api<ManagedCluster> = Api::all(hub.client(Who::Admin));
        let params = PatchParams { dry_run, ..PatchParams::default() };
        let written = hub.wait(api.patch(name, &params, &Patch::Merge(patch)));
        written.map(|cluster| cluster.metadata.labels.unwrap_or_default())
    };
    let has_both = |labels: &BTreeMap<String, String>| {
        labels.get(SET).is_some_and(|set| set == "edge") && labels.get("team").is_some_and(|team| team == "a")
    };
    let accepts = || json!({"spec": {"hubAcceptsClient": true}});
    let annotates = |name: &str| write(name, json!({"metadata": {"annotations": {"mine": "b"}}}), true);
    until("the policies are in force", || {
        write("late-1", accepts(), true).is_ok_and(|labels| has_both(&labels)) && annotates("late-1").is_err()
    });
    let said = refused(annotates("late-1")).unwrap_or_default();
    assert!(said.contains("nothing is changed"), "{said}");
    let as_before = hub.managed("late-1");
    assert!(
        !hub.accepts("late-1") && !as_before.metadata.labels.is_some_and(|labels| has_both(&labels)),
        "they were dry runs"
    );

    // What else somebody writes with it is theirs, also what policies would write of another cluster.
    for more in [json!({"mine": "b"}), json!({"team": "b"}), json!({"mine": "b", "team": "a", SET: "edge"})] {
        let patch = json!({"metadata": {"labels": more}, "spec": {"hubAcceptsClient": true}});
        let said = refused(write("late-1", patch.clone(), false)).unwrap_or_else(|| panic!("it passes: {patch}"));
        assert!(said.contains("nothing is changed"), "{said}");
    }
    let run = hub.accept(&["late-1", "--yes"]);
    assert_eq!(run.code, 0, "{} {}", run.stdout, run.stderr);
    assert!(hub.accepts("late-1") && has_both(&hub.managed("late-1").metadata.labels.unwrap_or_default()));

    // Who changes one that is accepted changes it with the changes of policies, and takes its acceptance back without.
    hub.join("other-1");
    write("other-1", accepts(), false).expect("it is accepted");
    let without = json!({"metadata": {"labels": {"team": null}}});
    let labels = write("other-1", without, false).expect("a policy puts it back");
    assert_eq!(labels.get("team").map(String::as_str), Some("a"), "{labels:?}");
    write("late-1", json!({"spec": {"hubAcceptsClient": false}}), true)
        .expect_err("a policy denies every update of it");
    write("other-1", json!({"spec": {"hubAcceptsClient": false}}), false).expect("it is taken back");

    // Where the API server asks nobody for changes, it accepts none without them.
    hub.join("late-2");
    hub.cluster.kubectl(&["delete", "mutatingwebhookconfiguration", "ocm-policy-webhook"]).expect("it is deleted");
    let mut said = None;
    until("nobody makes the changes", || {
        said = refused(write("late-2", json!({"spec": {"hubAcceptsClient": true}}), true));
        said.is_some()
    });
    let said = said.unwrap_or_default();
    assert!(said.contains("may not make a change that it wants"), "{said}");
}

#[test]
fn each_right_of_its_roles_is_needed_and_it_says_which_one_it_lacks() {
    let hub = shared();
    // The definition of approvals, and what proves whose they are; and that of Registrations.
    guard(&hub);
    know_registrations(&hub.cluster);
    // What an installation brings, what asks for approvals, and a module that the policy controller would fetch.
    for name in HYGIENE {
        policy(&hub.cluster, name, json!({"module": {"builtin": name}}));
    }
    policy(&hub.cluster, "approvals", json!({"module": {"builtin": "approvals"}, "settings": {"required": 1}}));
    let image = format!("registry.example.com/policies/names@sha256:{}", "0".repeat(64));
    policy(&hub.cluster, "fetched", json!({"module": {"oci": {"image": image}}}));
    let kubeconfig = hub.cluster.kubeconfig();
    let said = |webhook: &Webhook| {
        let says = webhook.says.lock().expect("nobody failed").clone();
        format!("{says}{}", webhook.get("/readyz"))
    };
    // With all of them it lacks none.
    let webhook = Webhook::start(&hub.cluster, &[]);
    let waits = || {
        let said = said(&webhook);
        let failed: Vec<&str> = said.lines().filter(|line| line.starts_with("policy ")).collect();
        failed.len() == 1 && failed[0].starts_with("policy fetched: ")
    };
    until_within(SOON, "it waits for the module alone", || said(&webhook), waits);
    assert!(!said(&webhook).contains("denied") && !said(&webhook).contains("evidence: "), "{}", said(&webhook));
    drop(webhook);
    let users = users_without_one_right(&hub.cluster, "policy-webhook.yaml");
    assert!(users.len() >= 20, "{users:?}");
    let lacks = |(user, missing): &(String, String)| {
        let webhook = Webhook::spawn(&hub.cluster, kubeconfig.to_owned(), &["--as", user]);
        // In the words of the API server: User "x" cannot list resource "managedclusters" in API group "…".
        let (verb, what) = missing.trim_start_matches("may not ").split_once(' ').expect("a verb and a resource");
        let (resource, _) = what.split_once([' ', '.']).unwrap_or((what, ""));
        let words = format!("User \"{user}\" cannot {verb} resource \"{resource}\"");
        until_within(
            SOON,
            &format!("it says that it {missing}"),
            || said(&webhook),
            || said(&webhook).contains(&words),
        );
        if (verb, resource) == ("list", "hubpolicies") {
            assert!(!webhook.get("/readyz").starts_with("HTTP/1.1 200"), "it judges by no policies");
        }
    };
    for some in users.chunks(4) {
        std::thread::scope(|scope| some.iter().for_each(|one| drop(scope.spawn(|| lacks(one)))));
    }
}
