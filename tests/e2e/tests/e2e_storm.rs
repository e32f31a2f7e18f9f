//! Many clusters at once, right and hostile ones, before webhook and controllers on a real API server.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use control_plane::Spec;
use e2e_tests::accept_support::Hub;
use e2e_tests::controller_support::{APPROVES, Controller, approving, hub_as, let_in, registrations};
use e2e_tests::roles::user_with;
use e2e_tests::until;
use e2e_tests::webhook_support::{Webhook, policy};
use fleet_sim::Plan;
use kube::Api;
use kube::api::{Patch, PatchParams};
use ocm_api::ManagedCluster;
use serde_json::json;

/// How many requests of clusters are on their way at once.
const AT_ONCE: usize = 32;
/// How long a storm may take: a lease stands for 15 seconds when its holder is gone.
const OVER: Duration = Duration::from_secs(75);

/// A hub that asks the webhook about everything that registers clusters and notes every request.
fn hub(name: &str) -> (Hub, Webhook) {
    let hub = hub_as(&Spec::api(name).audited(true), true);
    policy(&hub.cluster, "cluster-hygiene", json!({"module": {"builtin": "cluster-hygiene"}}));
    let webhook = Webhook::start(&hub.cluster, &[]);
    webhook.configure_and_wait(&hub.cluster);
    (hub, webhook)
}

/// The controller writes of so many registrations at once.
const IN_FLIGHT: usize = 16;

/// Whether nothing was written twice, and nothing but these; `unheard` is how many writes may be missing from the log, which
/// does not tell how a request ended whose client is gone.
#[track_caller]
fn once_each(what: &str, written: &BTreeMap<String, usize>, names: &BTreeSet<String>, unheard: usize) {
    let wrong: Vec<_> = written.iter().filter(|(name, times)| **times != 1 || !names.contains(*name)).collect();
    assert!(wrong.is_empty(), "{what}: {wrong:?}");
    let missing: Vec<_> = names.iter().filter(|name| !written.contains_key(*name)).collect();
    assert!(missing.len() <= unheard, "{what}: not in the log: {missing:?}");
}

#[test]
fn of_two_hundred_every_right_one_is_let_in_once_and_no_hostile_one() {
    let (hub, webhook) = hub("storm");
    // What agents do once they are in is up to the hub's own controllers; here nothing but admission refuses it.
    hub.grant(&json!([
        {"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclusters"], "verbs": ["get"]},
        {"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclusters/status"], "verbs": ["patch"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]},
    ]));
    let user = user_with(&hub.cluster, "controller", &["policy-controller.yaml"]);
    let mut first = Controller::start_as(&hub.cluster, &user);
    until("the first one leads", || first.leads());
    let second = Controller::start_as(&hub.cluster, &user);

    let fleet = hub.fleet(AT_ONCE);
    let plan = Plan { prefix: "c".to_owned(), clusters: 180, hostile: 20, reports: true, seed: 1 };
    let storm = fleet.storm(&plan);
    until("some are in", || storm.accepted() >= 20);
    // Another version of the policy, and another certificate of the webhook.
    let mut other = approving(true);
    other["settings"]["rules"][0]["names"] = json!(["c*"]);
    policy(&hub.cluster, APPROVES, other);
    webhook.rotate();
    until("more are in", || storm.accepted() >= 60);
    first.kill();
    let before = storm.accepted();
    assert!(before < 170, "{before} were in when the leader was killed");
    let report = storm.end(OVER);
    assert!(report.is_right(), "{report}{:#?}", report.hostile);
    assert!(second.leads());

    // Whoever came last is in, so everything that came before has been looked at.
    let last = hub.join("c-last");
    until("the last one is in", || hub.accepts("c-last"));
    let mut right: BTreeSet<String> = report.agents.iter().map(|agent| agent.name.clone()).collect();
    let mut requests: BTreeSet<String> = report.agents.iter().flat_map(|agent| agent.requests.clone()).collect();
    assert_eq!((right.len(), report.hostile.len()), (180, 20));
    right.insert("c-last".to_owned());
    requests.insert(last);
    assert_eq!((hub.accepted(), hub.approved()), (right.clone(), requests.clone()));
    let [approved, accepted] = let_in(&hub);
    once_each("approved", &approved, &requests, IN_FLIGHT);
    once_each("accepted", &accepted, &right, IN_FLIGHT);
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
    let (hub, webhook) = hub("storm-quota");
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
    assert_eq!((hub.accepted().len(), hub.approved().len()), (20, 20));
    let [approved, accepted] = let_in(&hub);
    once_each("approved", &approved, &hub.approved(), 0);
    once_each("accepted", &accepted, &hub.accepted(), 0);

    // Nor does a person get one more in past the webhook.
    let next = (0..50).map(|number| format!("c{number}")).find(|name| !hub.accepts(name)).expect("thirty wait");
    let api: Api<ManagedCluster> = Api::all(hub.admin.clone());
    let patch = Patch::Merge(json!({"spec": {"hubAcceptsClient": true}}));
    let refused = hub.wait(api.patch(&next, &PatchParams::default(), &patch)).expect_err("it is refused").to_string();
    assert!(refused.contains("policy join-quota") && refused.contains("(QuotaTotal)"), "{refused}");
    assert!(!hub.accepts(&next));
}
