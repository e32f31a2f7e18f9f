//! Many clusters at once, right and hostile ones, before webhook and controllers on a real API server.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use control_plane::Spec;
use e2e_tests::accept_support::{Hub, token_kubeconfig, upstream};
use e2e_tests::connection::connect;
use e2e_tests::controller_support::{APPROVES, Controller, approving, hub_as, registrations};
use e2e_tests::roles::user_with;
use e2e_tests::storm_support::{LetIn, approving_otherwise, grant_agents, hub};
use e2e_tests::webhook_support::{HYGIENE, Webhook, policy};
use e2e_tests::{kubectl_ocm, run, until, until_within};
use fleet_sim::{Hostile, Plan};
use kube::Api;
use kube::api::{Patch, PatchParams};
use ocm_api::ManagedCluster;
use serde_json::json;

/// How many requests of clusters are on their way at once.
const AT_ONCE: usize = 32;
/// How long a storm may take: a lease stands for 15 seconds when its holder is gone.
const OVER: Duration = Duration::from_secs(75);

/// The controller writes of so many registrations at once.
const IN_FLIGHT: usize = 16;

/// Whether each was written once and nothing else; so many writes may be missing from the log.
#[track_caller]
fn once_each(hub: &Hub, expected: &LetIn, unheard: usize) {
    let written = expected.written(hub);
    assert!(written.wrong.is_empty() && written.missing.len() <= unheard, "{written:#?}");
}

#[test]
fn of_two_hundred_every_right_one_is_let_in_once_and_no_hostile_one() {
    let (hub, webhook) = hub(&Spec::api("storm").audited(true));
    let user = user_with(&hub.cluster, "controller", &["policy-controller.yaml"]);
    let mut first = Controller::start_as(&user);
    until("the first one leads", || first.leads());
    let second = Controller::start_as(&user);

    let fleet = hub.fleet(AT_ONCE);
    let plan = Plan { prefix: "c".to_owned(), clusters: 180, hostile: 20, reports: true, seed: 1 };
    let storm = fleet.storm(&plan);
    until("some are in", || storm.accepted() >= 20);
    // Another version of the policy, and another certificate of the webhook.
    policy(&hub.cluster, APPROVES, approving_otherwise());
    webhook.rotate();
    until("more are in", || storm.accepted() >= 60);
    first.kill();
    let before = storm.accepted();
    assert!(before < 110, "{before} were in when the leader was killed");
    // The next leader has begun, and loses the API server in the middle of its writes.
    let said = || format!("{} of {}", storm.accepted(), plan.clusters);
    until_within(OVER, "the second one lets clusters in", said, || storm.accepted() >= 120);
    hub.cluster.stop_api_server().expect("it is killed");
    let before = storm.accepted();
    assert!(before < plan.clusters, "all were in when the API server was killed");
    hub.cluster.start_api_server().expect("it starts again");
    let report = storm.end(OVER);
    assert!(report.is_right(), "{report}{:#?}", report.hostile);
    assert!(second.leads());

    // Whoever came last is in, so everything that came before has been looked at.
    let last = hub.join("c-last");
    until("the last one is in", || hub.accepts("c-last"));
    assert_eq!((report.agents.len(), report.hostile.len()), (180, 20));
    assert_eq!(report.tried().len(), Hostile::ALL.len(), "{report}");
    let expected = LetIn::by(&report).and("c-last", last);
    assert_eq!(LetIn::on(&hub), expected);
    // Of what is approved and of what is accepted.
    once_each(&hub, &expected, 2 * 2 * IN_FLIGHT);
    let right = &expected.clusters;
    for attempt in &report.hostile {
        assert!(!right.contains(&attempt.cluster), "{attempt:?}");
        assert!(attempt.request.is_some() || !attempt.refusals.is_empty(), "{attempt:?}");
    }

    // Each was let in by one version of the policy, and both versions let some in.
    let versions: BTreeSet<String> = registrations(&hub)
        .into_iter()
        .filter(|(name, _)| right.contains(name))
        .map(|(name, status)| {
            let policies = status["decision"]["policies"].as_array().cloned().unwrap_or_default();
            let version = policies.into_iter().find(|one| one["policy"] == APPROVES).unwrap_or_default();
            assert_eq!(version["verdict"], "Allow", "{name}: {status:#}");
            version["generation"].to_string()
        })
        .collect();
    assert_eq!(versions, BTreeSet::from(["1".to_owned(), "2".to_owned()]));
}

#[test]
fn of_fifty_that_ask_at_once_as_many_get_in_as_the_quota_has_places() {
    let (hub, webhook) = hub(&Spec::api("storm-quota").audited(true));
    // They are registered before there is a quota: who registers counts with all that are registered.
    for number in 0..50 {
        hub.register(&format!("c{number}"));
    }
    let quota = json!({"module": {"builtin": "join-quota"}, "settings": {"total": 20}});
    policy(&hub.cluster, "join-quota", quota);
    until("the webhook asks it", || webhook.get("/metrics").contains(r#"policy_info{policy="join-quota""#));
    let _controller = Controller::start(&hub);
    let fleet = hub.fleet(50);
    let plan = Plan { prefix: "c".to_owned(), clusters: 50, hostile: 0, reports: false, seed: 2 };
    let storm = fleet.storm(&plan);
    until("twenty are in", || storm.accepted() >= 20);
    let wait = || {
        let all = registrations(&hub);
        all.values().filter(|status| status["waitingFor"].to_string().contains("(QuotaTotal)")).count()
    };
    until("all others wait for a place", || wait() == 30);
    let report = storm.end(Duration::ZERO);
    assert_eq!(report.accepted, 20, "{report}");
    let inside = LetIn::on(&hub);
    assert_eq!((inside.clusters.len(), inside.requests.len()), (20, 20));
    once_each(&hub, &inside, 0);

    // Nor does a person get one more in past the webhook.
    let next = (0..50).map(|number| format!("c{number}")).find(|name| !hub.accepts(name)).expect("thirty wait");
    let api: Api<ManagedCluster> = Api::all(hub.admin.clone());
    let patch = Patch::Merge(json!({"spec": {"hubAcceptsClient": true}}));
    let refused = hub.wait(api.patch(&next, &PatchParams::default(), &patch)).expect_err("it is refused").to_string();
    assert!(refused.contains("policy join-quota") && refused.contains("(QuotaTotal)"), "{refused}");
    assert!(!hub.accepts(&next));
}

/// Clusters that joined while nobody judged anything go on as before when policies and baseline are put in force.
#[test]
fn fifty_that_joined_before_go_on_when_policies_come() {
    let hub = hub_as(&Spec::api("storm-joined"), false);
    for name in ["csr-hygiene", "name-claim"] {
        hub.cluster.kubectl(&["delete", "hubpolicy", name]).expect("it is gone");
    }
    grant_agents(&hub);
    let fleet = hub.fleet(AT_ONCE);
    let plan = Plan { prefix: "c".to_owned(), clusters: 50, hostile: 0, reports: true, seed: 3 };
    let storm = fleet.storm(&plan);
    until("all ask", || storm.asked() == 50);
    let said = hub.accept(&["--all-pending", "--yes"]);
    assert_eq!(said.code, 0, "{said:?}");
    until("all are accepted", || storm.accepted() == 50);
    let report = storm.end(OVER);
    assert!(report.is_right() && report.agents.len() == 50, "{report}");
    let before: BTreeMap<String, String> = hub.versions();

    // Everything comes: the baseline, the policies, the webhook that registrations wait for, and the controller.
    let said = run(kubectl_ocm("install", hub.cluster.kubeconfig()).args(["baseline", "--wait"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    for name in HYGIENE {
        policy(&hub.cluster, name, json!({"module": {"builtin": name}}));
    }
    policy(&hub.cluster, APPROVES, approving(true));
    let webhook = Webhook::start(&hub.cluster, &[]);
    webhook.configure_and_wait(&hub.cluster);
    let controller = Controller::start(&hub);
    until("it leads", || controller.leads());

    // Nobody is asked anew, changed or taken out.
    let last = hub.join("c-last");
    until("a new one is let in", || hub.accepts("c-last") && hub.is("Approved", &last));
    let after = hub.versions();
    let changed: Vec<&String> =
        before.iter().filter(|(name, version)| after.get(*name) != Some(version)).map(|(name, _)| name).collect();
    assert_eq!(changed, Vec::<&String>::new());
    assert_eq!(hub.accepted().len(), 51);

    // They report, take new certificates and report with these.
    let beaten = fleet.beat(&report.agents);
    assert!(beaten.count == 50 && beaten.failures.is_empty(), "{:#?}", beaten.failures);
    let (agents, renewed) = fleet.renew(report.agents.clone());
    assert!(renewed.count == 50 && renewed.failures.is_empty(), "{:#?}", renewed.failures);
    let beaten = fleet.beat(&agents);
    assert!(beaten.count == 50 && beaten.failures.is_empty(), "{:#?}", beaten.failures);

    // What the hub's own controllers write when its release changes: definitions, and every cluster.
    let definitions = ["cluster/v1/0000_00_clusters.open-cluster-management.io_managedclusters.crd.yaml"];
    for definition in definitions {
        let file = upstream(definition);
        hub.cluster
            .kubectl(&["apply", "--server-side", "--force-conflicts", "--filename", file.to_str().expect("text")])
            .expect("it passes");
    }
    let (namespace, account) = ("open-cluster-management-hub", "registration-controller-sa");
    let kubectl = |words: &[&str]| hub.cluster.kubectl(words).expect("kubectl does it");
    kubectl(&["create", "serviceaccount", account, "--namespace", namespace]);
    kubectl(&["create", "clusterrole", "hubs", "--verb=patch", "--resource=managedclusters"]);
    let whose = format!("--serviceaccount={namespace}:{account}");
    kubectl(&["create", "clusterrolebinding", "hubs", "--clusterrole=hubs", &whose]);
    let token = kubectl(&["create", "token", account, "--namespace", namespace]);
    let file = hub.cluster.dir().expect("a folder").join("hubs");
    std::fs::write(&file, token_kubeconfig(&hub.cluster, token.trim())).expect("written");
    let clusters: Api<ManagedCluster> = Api::all(hub.wait(connect(&file)).client);
    let finalizer = "cluster.open-cluster-management.io/api-resource-cleanup";
    let patch = json!({
        "metadata": {"finalizers": [finalizer], "labels": {"feature.open-cluster-management.io/addon-x": "available"}},
        "spec": {"taints": [{"key": "cluster.open-cluster-management.io/unreachable", "effect": "NoSelect",
                             "timeAdded": "2026-01-01T00:00:00Z"}]},
    });
    for number in [0, 24, 49] {
        let name = format!("c{number}");
        let patched = hub.wait(clusters.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)));
        patched.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let beaten = fleet.beat(&agents);
    assert!(beaten.count == 50 && beaten.failures.is_empty(), "{:#?}", beaten.failures);
}
