//! Many clusters at once, right and hostile ones, before webhook and controllers on a real API server.

use std::collections::BTreeSet;
use std::time::Duration;

use control_plane::Spec;
use e2e_tests::accept_support::Hub;
use e2e_tests::controller_support::{APPROVES, Controller, registrations};
use e2e_tests::roles::user_with;
use e2e_tests::storm_support::{LetIn, approving_otherwise, hub};
use e2e_tests::until;
use e2e_tests::webhook_support::policy;
use fleet_sim::Plan;
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
    let mut first = Controller::start_as(&hub.cluster, &user);
    until("the first one leads", || first.leads());
    let second = Controller::start_as(&hub.cluster, &user);

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
    assert!(before < 170, "{before} were in when the leader was killed");
    let report = storm.end(OVER);
    assert!(report.is_right(), "{report}{:#?}", report.hostile);
    assert!(second.leads());

    // Whoever came last is in, so everything that came before has been looked at.
    let last = hub.join("c-last");
    until("the last one is in", || hub.accepts("c-last"));
    assert_eq!((report.agents.len(), report.hostile.len()), (180, 20));
    let expected = LetIn::by(&report).and("c-last", last);
    assert_eq!(LetIn::on(&hub), expected);
    // Of what is approved and of what is accepted.
    once_each(&hub, &expected, 2 * IN_FLIGHT);
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
