//! The wait of a join and `troubleshoot` have a judge each. From the same facts they name the same link of a registration, as far
//! as both of them know it.

mod common;

use common::{FRESH, OLD, agent, condition, healthy, on_hub, on_managed, parse, read, request};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use ocm_api::ManagedCluster;
use ocm_api::parts::{Lease, LeaseSpec};
use ocm_checks::chain::{Step, Way};
use ocm_checks::facts::certificate;
use ocm_checks::finding::Id;
use ocm_checks::judge::judge;
use ocm_checks::registry::checks;
use ocm_checks::snapshot::{Observed, Snapshot};
use ocm_core::csr::Request;
use ocm_core::join::agent::Credential;
use ocm_core::join::lease::LASTS;
use ocm_core::join::progress::{self, Expected, Goal, Link};
use ocm_core::managed::{AgentFacts, ManagedFacts, RegistrationFacts};
use ocm_core::phase::Phase;
use ocm_core::workload::Health;
use serde_json::json;

/// The link that is broken; none: the cluster is available.
fn of_wait(snapshot: &Snapshot) -> Option<Link> {
    let (credential, now) = (Credential::Unknown, snapshot.observed.0);
    let expected = Expected { name: "c1", goal: Goal::Available, credential: &credential, anew: None, moves: None };
    match progress::judge(&seen_by_wait(snapshot), &expected, now) {
        progress::Step::Reached(phase) => {
            assert_eq!(phase, Phase::Available);
            None
        }
        progress::Step::Waiting(all) => Some(all[0].link),
        // Denied: no waiting helps.
        progress::Step::Failed(_) => Some(Link::Acceptance),
    }
}

/// The same by `troubleshoot`, in the words of the wait.
fn of_troubleshoot(snapshot: &Snapshot) -> Option<Link> {
    let report = judge(snapshot, &[]);
    match report.clusters[0].way {
        Way::Done => None,
        Way::StoppedAt(step) => Some(match step {
            Step::Operator => Link::Operator,
            Step::Klusterlet => Link::Klusterlet,
            Step::Agents => Link::Agents,
            Step::Registered => Link::Registration,
            Step::Accepted => Link::Acceptance,
            Step::Certificate | Step::Joined => Link::Joining,
            Step::Available => Link::Availability,
            Step::Works => panic!("a wait knows no works"),
        }),
        other => panic!("{other:?}"),
    }
}

/// What the wait of a join reads of the same clusters.
fn seen_by_wait(snapshot: &Snapshot) -> progress::Snapshot {
    let (hub, managed) = (snapshot.hub.as_ref().expect("it is there"), snapshot.managed.as_ref().expect("it is there"));
    let side = &managed.agents[0];
    let secret = side.identity.read().expect("it was read").as_ref();
    let identity = AgentFacts {
        cluster: secret.and_then(|secret| secret.cluster.clone()),
        name: secret.and_then(|secret| secret.agent.clone()),
        certificate: certificate(side),
        ..AgentFacts::default()
    };
    let deployments = side.deployments.read().expect("it was read").iter();
    let leases = hub.leases.read().expect("it was read");
    let requests: &Vec<CertificateSigningRequest> = hub.requests.read().expect("it was read");
    progress::Snapshot {
        managed: ManagedFacts {
            operator: Ok(managed.operator.read().expect("it was read").health.clone()),
            klusterlet: Ok(managed.klusterlets.read().expect("it was read").first().cloned()),
            agents: Ok(deployments.map(|workload| (workload.name.clone(), workload.health.clone())).collect()),
            identity: Ok(identity),
        },
        hub: RegistrationFacts {
            cluster: Ok(hub.clusters.read().expect("it was read").first().cloned()),
            requests: Ok(requests.iter().map(Request::read).collect()),
            lease: Ok(leases.first().map(|lease| lease_of(lease.renewed.as_ref(), lease.written.as_ref()))),
        },
        registrar: None,
        former: Ok(Vec::new()),
    }
}

/// A lease as its agent renewed it, and as the API server wrote that down.
fn lease_of(renewed: Option<&Time>, written: Option<&Time>) -> Lease {
    let renew_time = renewed.map(|time| MicroTime(time.0));
    let mut lease = Lease { spec: Some(LeaseSpec { renew_time, ..LeaseSpec::default() }), ..Lease::default() };
    let entry = |time: &Time| json!({"time": time, "fieldsV1": {"f:spec": {"f:renewTime": {}}}});
    lease.metadata.managed_fields = written.map(|time| vec![parse(entry(time))]);
    lease
}

fn cluster(snapshot: &mut Snapshot) -> &mut ManagedCluster {
    &mut read(&mut on_hub(snapshot).clusters)[0]
}

fn conditions(snapshot: &mut Snapshot, all: &[(&str, &str)]) {
    let all = all.iter().map(|(kind, status)| parse(condition(kind, status, "R"))).collect();
    cluster(snapshot).status.as_mut().expect("it is there").conditions = all;
}

/// The agents run, and the hub has never heard of them.
fn unregistered(snapshot: &mut Snapshot) {
    let hub = on_hub(snapshot);
    (hub.clusters, hub.requests) = (Observed::Read(Vec::new()), Observed::Read(Vec::new()));
    (hub.leases, hub.works, hub.addons) =
        (Observed::Read(Vec::new()), Observed::Read(Vec::new()), Observed::Read(Vec::new()));
    agent(snapshot).identity = Observed::Read(None);
}

/// The hub has the cluster, and this request of its agent.
fn registered(snapshot: &mut Snapshot, accepted: bool, state: Option<&[&str]>) {
    let known = on_hub(snapshot).clusters.clone();
    unregistered(snapshot);
    on_hub(snapshot).clusters = known;
    cluster(snapshot).spec.hub_accepts_client = Some(accepted);
    conditions(snapshot, &[]);
    let requests = state.map(|state| parse(request("c1-a", "a1", state, OLD)));
    on_hub(snapshot).requests = Observed::Read(requests.into_iter().collect());
}

/// The agent has joined, and was heard of so many seconds ago.
fn heard(snapshot: &mut Snapshot, seconds: i64) {
    let at = snapshot.observed.0 - jiff::SignedDuration::from_secs(seconds);
    read(&mut on_hub(snapshot).leases)[0].renewed = Some(Time(at));
}

/// A step of a registration: what is so, and the link that is broken.
type Case = (&'static str, fn(&mut Snapshot), Option<Link>);

const CASES: [Case; 22] = [
    ("all is well", |_| {}, None),
    (
        "the operator does not run",
        |s| {
            unregistered(s);
            read(&mut on_managed(s).operator).health = Health::not_yet("0 of 1");
        },
        Some(Link::Operator),
    ),
    (
        "there is no Klusterlet",
        |s| {
            unregistered(s);
            s.clusters = vec!["c1".to_owned()];
            on_managed(s).klusterlets = Observed::Read(Vec::new());
        },
        Some(Link::Klusterlet),
    ),
    (
        "the operator has not observed the Klusterlet",
        |s| {
            unregistered(s);
            read(&mut on_managed(s).klusterlets)[0].metadata.generation = Some(2);
        },
        Some(Link::Klusterlet),
    ),
    (
        "the operator could not apply the Klusterlet",
        |s| {
            unregistered(s);
            let status = read(&mut on_managed(s).klusterlets)[0].status.as_mut().expect("it is there");
            status.conditions = vec![parse(condition("Applied", "False", "KlusterletApplyFailed"))];
        },
        Some(Link::Klusterlet),
    ),
    (
        "the operator does not reach the cluster of a hosted agent",
        |s| {
            unregistered(s);
            let status = read(&mut on_managed(s).klusterlets)[0].status.as_mut().expect("it is there");
            status.conditions.push(parse(condition("ReadyToApply", "False", "KlusterletPrepareFailed")));
        },
        Some(Link::Klusterlet),
    ),
    (
        "the operator has made no agents",
        |s| {
            unregistered(s);
            agent(s).deployments = Observed::Read(Vec::new());
        },
        Some(Link::Klusterlet),
    ),
    (
        "the agent does not run",
        |s| {
            unregistered(s);
            read(&mut agent(s).deployments)[0].health = Health::stuck("no nodes");
        },
        Some(Link::Agents),
    ),
    ("the hub does not know the cluster", unregistered, Some(Link::Registration)),
    ("the agent has not asked", |s| registered(s, false, None), Some(Link::Registration)),
    ("the agent asks", |s| registered(s, false, Some(&[])), Some(Link::Acceptance)),
    (
        "the agent registers by AWS",
        |s| {
            registered(s, false, None);
            let driver = json!({"registrationDriver": {"authType": "awsirsa"}});
            read(&mut on_managed(s).klusterlets)[0].spec.registration_configuration = parse(driver);
            let arn = ("agent.open-cluster-management.io/managed-cluster-arn".to_owned(), "arn".to_owned());
            cluster(s).metadata.annotations = Some([arn].into());
        },
        Some(Link::Acceptance),
    ),
    (
        "the hub has denied the cluster",
        |s| {
            registered(s, false, Some(&[]));
            conditions(s, &[("HubAcceptedManagedCluster", "False")]);
        },
        Some(Link::Acceptance),
    ),
    ("the cluster is accepted, and its request is not", |s| registered(s, true, Some(&[])), Some(Link::Joining)),
    ("its request is approved", |s| registered(s, true, Some(&["Approved"])), Some(Link::Joining)),
    ("its certificate is issued", |s| registered(s, true, Some(&["Approved", "Issued"])), Some(Link::Joining)),
    (
        "the agent has joined, and nothing is known of the cluster yet",
        |s| conditions(s, &[("ManagedClusterJoined", "True")]),
        Some(Link::Availability),
    ),
    (
        "the cluster's API server is not well",
        |s| conditions(s, &[("ManagedClusterJoined", "True"), ("ManagedClusterConditionAvailable", "False")]),
        Some(Link::Availability),
    ),
    (
        "the hub has not heard of the agent",
        |s| {
            conditions(s, &[("ManagedClusterJoined", "True"), ("ManagedClusterConditionAvailable", "Unknown")]);
            heard(s, 3600);
        },
        Some(Link::Availability),
    ),
    ("the hub calls a cluster available whose lease is old", |s| heard(s, 3600), Some(Link::Availability)),
    // Then the hub's word is all there is.
    ("nobody has renewed the lease", |s| read(&mut on_hub(s).leases)[0].renewed = None, None),
    (
        "the agent's clock is an hour behind the hub's",
        |s| {
            heard(s, 3600);
            read(&mut on_hub(s).leases)[0].written = Some(parse(json!(FRESH)));
        },
        None,
    ),
];

#[test]
fn the_wait_and_troubleshoot_name_the_same_link() {
    for (name, change, broken) in CASES {
        let mut snapshot = healthy();
        change(&mut snapshot);
        assert_eq!((of_wait(&snapshot), of_troubleshoot(&snapshot)), (broken, broken), "{name}");
    }
}

#[test]
fn only_the_wait_doubts_an_agent_that_may_be_starting_again() {
    // The wait ends when the agent is there for sure; a report does not call a restart broken.
    let at = |seconds: i64| {
        let mut snapshot = healthy();
        heard(&mut snapshot, seconds);
        (of_wait(&snapshot), of_troubleshoot(&snapshot))
    };
    let silent = Some(Link::Availability);
    assert_eq!([119, 120, 222, 223].map(at), [(None, None), (silent, None), (silent, None), (silent, silent)]);
}

#[test]
fn pages_name_the_time_that_a_leader_lease_lasts() {
    let words = format!("{} seconds", LASTS.as_secs());
    let naming: Vec<Id> = checks().filter(|check| check.page.happens.contains(&words)).map(|check| check.id).collect();
    assert_eq!(naming, [Id(1103), Id(2103), Id(2116)]);
}
