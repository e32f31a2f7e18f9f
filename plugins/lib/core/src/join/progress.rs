//! How far a join has come, and what holds it up.
//!
//! ```text
//! operator ─▶ Klusterlet ─▶ agents ─▶ registered ─▶ accepted ─▶ joined ─▶ available
//! ```
//!
//! No single condition of the Klusterlet is believed: they lag, and some say well before anything has happened. Where
//! the hub says that the cluster is available and its lease is fresh, the hub is right. Otherwise the first link of
//! the chain that is missing is what holds the join up, and all of them are found.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use ocm_api::conditions::{self, klusterlet};
use ocm_api::{Klusterlet, ManagedCluster};

use crate::csr::{Request, State};
use crate::phase::{Phase, standing};
use crate::{Failure, Reason};

/// How far a wait goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Goal {
    /// The hub knows the cluster and its request: what is left is the hub's to do.
    Registered,
    /// The hub says that the cluster is available.
    Available,
}

/// What both clusters show at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// What is missing of the operator's Deployment; none: it is ready.
    pub operator: Option<String>,
    /// The Klusterlet.
    pub klusterlet: Option<Klusterlet>,
    /// The agents' Deployments with what is missing of them.
    pub agents: Vec<(String, Option<String>)>,
    /// Whether the agent holds a certificate.
    pub identity: bool,
    /// What the hub says to the kubeconfig that the agent registers with; none: it was not asked just now.
    pub registrar: Option<Failure>,
    /// The cluster on the hub.
    pub cluster: Option<ManagedCluster>,
    /// Its lease on the hub, where we may read it.
    pub lease: Option<Lease>,
    /// Its requests on the hub.
    pub requests: Vec<Request>,
    /// Why the hub could not be looked at, if so.
    pub hub_trouble: Option<String>,
}

/// What a snapshot comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The goal is reached.
    Reached(Phase),
    /// It is on its way. Everything that is missing: what holds it up first, at least one.
    Waiting(Vec<Wait>),
    /// It does not get there by waiting.
    Failed(Failure),
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The link of the chain that is missing.
    pub link: Link,
    /// What it waits for, as a participle.
    pub doing: String,
    /// What holds it up.
    pub because: String,
}

/// The links of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Link {
    /// The operator's Deployment.
    Operator,
    /// The operator's work on the Klusterlet.
    Klusterlet,
    /// The agents' Deployments.
    Agents,
    /// The agent's registration at the hub.
    Registration,
    /// The administrator's word.
    Acceptance,
    /// The agent's certificate and first report.
    Joining,
    /// The hub's judgement that all is well.
    Availability,
}

/// Judges a snapshot, and finds everything that is missing.
pub fn judge(snapshot: &Snapshot, name: &str, goal: Goal, now: Timestamp) -> Step {
    // What the hub lacks, and after it what the managed cluster does.
    let waits = |link: Link, doing: &str, because: String| {
        let mut all = vec![wait(link, doing, because)];
        all.extend(missing(snapshot));
        Step::Waiting(all)
    };
    // Before the hub can say more, the agent has to run.
    let running_first = |link: Link, doing: &str, because: String| {
        let missing = missing(snapshot);
        if missing.is_empty() { Step::Waiting(vec![wait(link, doing, because)]) } else { Step::Waiting(missing) }
    };
    let Some(cluster) = &snapshot.cluster else { return registering(snapshot) };
    let standing = standing(cluster);
    match standing.phase {
        Phase::Denied => Step::Failed(
            Failure::refused(format!("the hub has denied {name:?}"))
                .because(standing.message)
                .hint(format!("an administrator of the hub can change that: kubectl ocm accept {name}")),
        ),
        Phase::Detaching => Step::Failed(
            Failure::refused(format!("the hub is removing {name:?}"))
                .because(standing.message)
                .hint("wait until the hub has no managed cluster of this name, then run this again"),
        ),
        Phase::Pending => {
            if asks(snapshot) {
                if goal == Goal::Registered {
                    return Step::Reached(Phase::Pending);
                }
                let because = format!("an administrator of the hub types: kubectl ocm accept {name}");
                return waits(Link::Acceptance, "acceptance", because);
            }
            registering(snapshot)
        }
        Phase::Accepted | Phase::Joined if goal == Goal::Registered && (asks(snapshot) || snapshot.identity) => {
            Step::Reached(standing.phase)
        }
        Phase::Accepted => waits(Link::Joining, "the agent to join", certificate(snapshot, name)),
        Phase::Joined => waits(Link::Availability, "the cluster to be available", standing.message),
        Phase::Available if is_fresh(snapshot, cluster, now) => Step::Reached(Phase::Available),
        // What the hub says stays true for minutes after the agent has gone.
        Phase::Available => running_first(
            Link::Availability,
            "a sign of life of the agent",
            "the hub still calls the cluster available, but its agent has not reported since it was last started"
                .to_owned(),
        ),
        Phase::Unavailable | Phase::Unknown => {
            running_first(Link::Availability, "the cluster to be available", standing.message)
        }
    }
}

fn wait(link: Link, doing: &str, because: String) -> Wait {
    Wait { link, doing: format!("waiting for {doing}"), because }
}

/// Whether the agent's report is of this life of the cluster. Who may not read leases believes the hub.
fn is_fresh(snapshot: &Snapshot, cluster: &ManagedCluster, now: Timestamp) -> bool {
    let Some(renewed) =
        snapshot.lease.as_ref().and_then(|lease| lease.spec.as_ref()).and_then(|spec| spec.renew_time.as_ref())
    else {
        return true;
    };
    let seconds = cluster.spec.lease_duration_seconds.filter(|seconds| *seconds > 0).unwrap_or(60);
    // Two periods: one may be on its way, and clocks differ.
    now.duration_since(renewed.0) < SignedDuration::from_secs(i64::from(seconds) * 2)
}

/// Whether a request of the agent waits or was granted.
fn asks(snapshot: &Snapshot) -> bool {
    let mut requests = snapshot.requests.iter().filter(|request| !request.is_addons());
    requests.any(|request| matches!(request.state, State::Pending | State::Approved | State::Issued))
}

fn certificate(snapshot: &Snapshot, name: &str) -> String {
    if snapshot.identity {
        return "it has its certificate and starts anew with it".to_owned();
    }
    let newest = snapshot.requests.iter().filter(|request| !request.is_addons()).max_by_key(|request| request.created);
    match newest.map(|request| (request.state, &request.name)) {
        None => "the agent has not asked for a certificate".to_owned(),
        Some((State::Pending, _)) => {
            format!("its certificate request waits: an administrator of the hub types kubectl ocm accept {name}")
        }
        Some((State::Approved, request)) => {
            format!("request {request} is approved, but the hub's signer has not issued the certificate")
        }
        Some((State::Issued, request)) => format!("the certificate of request {request} is there to be fetched"),
        Some((State::Denied, request)) => {
            format!(
                "request {request} was denied; to let the agent ask again: kubectl delete csr {request}, on the hub"
            )
        }
        Some((State::Failed, request)) => format!("the hub's signer refuses request {request}"),
    }
}

/// The chain up to the registration.
fn registering(snapshot: &Snapshot) -> Step {
    // Whatever the pods say: with a token or an address that does not work nobody registers.
    if let Some(failure) = &snapshot.registrar
        && !snapshot.identity
        && !matches!(failure.reason, Reason::Busy)
    {
        return Step::Failed(failure.clone());
    }
    let mut all = missing(snapshot);
    let because = match (&snapshot.hub_trouble, &snapshot.cluster) {
        (Some(trouble), _) => Some(format!("the hub cannot be looked at: {trouble}")),
        // An agent that does not run has not asked either.
        (None, _) if !all.is_empty() => None,
        (None, None) => Some("the agent runs, but the hub has no managed cluster of this name yet".to_owned()),
        (None, Some(_)) => {
            Some("the hub knows the cluster, but its agent has not asked for a certificate yet".to_owned())
        }
    };
    all.extend(because.map(|because| wait(Link::Registration, "the agent to register", because)));
    Step::Waiting(all)
}

/// The links on the managed cluster that are missing, in their order.
fn missing(snapshot: &Snapshot) -> Vec<Wait> {
    let operator = snapshot.operator.iter().map(|because| wait(Link::Operator, "the operator", because.clone()));
    let doing = "the operator to act on the Klusterlet";
    let klusterlet = klusterlet_lacks(snapshot).map(|because| wait(Link::Klusterlet, doing, because));
    let agents = snapshot.agents.iter().filter_map(|(name, because)| {
        Some(wait(Link::Agents, "the agent", format!("Deployment {name}: {}", because.as_ref()?)))
    });
    operator.chain(klusterlet).chain(agents).collect()
}

/// What the operator has not done about the Klusterlet.
fn klusterlet_lacks(snapshot: &Snapshot) -> Option<String> {
    let Some(klusterlet) = &snapshot.klusterlet else { return Some("there is no Klusterlet".to_owned()) };
    let status = klusterlet.status.clone().unwrap_or_default();
    let (seen, wanted) =
        (status.observed_generation.unwrap_or_default(), klusterlet.metadata.generation.unwrap_or_default());
    let applied = conditions::find(&status.conditions, klusterlet::APPLIED);
    match applied.filter(|applied| applied.status == conditions::FALSE) {
        Some(applied) => Some(format!("{}: {}", applied.reason, applied.message)),
        None if seen < wanted => Some("it runs, but has not observed the latest generation".to_owned()),
        None => snapshot.agents.is_empty().then(|| "no agent has been created yet".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan as _;
    use k8s_openapi::api::coordination::v1::LeaseSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_second(1_000_000).unwrap()
    }

    fn cluster(accepted: bool, conditions: &[(&str, &str)]) -> ManagedCluster {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(kind, status)| {
                json!({"type": kind, "status": status, "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"})
            })
            .collect();
        serde_json::from_value(json!({"metadata": {"name": "c1"}, "spec": {"hubAcceptsClient": accepted},
            "status": {"conditions": conditions}}))
        .unwrap()
    }

    fn request(condition: Option<&str>) -> Request {
        let conditions: Vec<_> = condition.into_iter().map(|kind| json!({"type": kind, "status": "True"})).collect();
        let object = json!({"metadata": {"name": "c1-x", "labels": {"open-cluster-management.io/cluster-name": "c1"}},
            "spec": {"request": "", "signerName": "s"}, "status": {"conditions": conditions}});
        Request::read(&serde_json::from_value(object).unwrap())
    }

    /// Everything on the managed cluster is as it should be.
    fn running() -> Snapshot {
        let klusterlet = json!({"metadata": {"name": "klusterlet", "generation": 1}, "spec": {},
            "status": {"observedGeneration": 1}});
        Snapshot {
            klusterlet: Some(serde_json::from_value(klusterlet).unwrap()),
            agents: vec![("klusterlet-registration-agent".to_owned(), None)],
            ..Snapshot::default()
        }
    }

    fn link(snapshot: &Snapshot, goal: Goal) -> (Link, String) {
        match judge(snapshot, "c1", goal, now()) {
            Step::Waiting(all) => (all[0].link, all[0].because.clone()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_first_missing_link_is_named() {
        let mut snapshot = Snapshot { operator: Some("0 of 1".to_owned()), ..Snapshot::default() };
        assert_eq!(link(&snapshot, Goal::Available), (Link::Operator, "0 of 1".to_owned()));
        snapshot.operator = None;
        assert_eq!(link(&snapshot, Goal::Available).0, Link::Klusterlet);
        snapshot.klusterlet = running().klusterlet;
        snapshot.klusterlet.as_mut().unwrap().metadata.generation = Some(2);
        assert!(link(&snapshot, Goal::Available).1.contains("latest generation"));
        let mut snapshot = running();
        snapshot.agents[0].1 = Some("image x cannot be pulled".to_owned());
        let (at, because) = link(&snapshot, Goal::Registered);
        assert!(at == Link::Agents && because.contains("klusterlet-registration-agent: image x"), "{because}");
        assert_eq!(link(&running(), Goal::Registered).0, Link::Registration);
    }

    #[test]
    fn everything_that_is_missing_is_found() {
        let mut snapshot = running();
        snapshot.operator = Some("0 of 1".to_owned());
        snapshot.klusterlet.as_mut().unwrap().metadata.generation = Some(2);
        snapshot.agents =
            ["a", "b", "c"].map(|name| (name.to_owned(), (name != "b").then(|| "0 of 1".to_owned()))).into();
        let links = |snapshot: &Snapshot| match judge(snapshot, "c1", Goal::Available, now()) {
            Step::Waiting(all) => all.iter().map(|wait| wait.link).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        let managed = [Link::Operator, Link::Klusterlet, Link::Agents, Link::Agents];
        assert_eq!(links(&snapshot), managed);
        snapshot.hub_trouble = Some("no route to the host".to_owned());
        assert_eq!(links(&snapshot), [&managed[..], &[Link::Registration]].concat());
        // What the hub waits for comes first once it knows the cluster.
        snapshot.cluster = Some(cluster(true, &[]));
        assert_eq!(links(&snapshot), [&[Link::Joining], &managed[..]].concat());
    }

    #[test]
    fn a_condition_that_failed_is_quoted() {
        let mut snapshot = running();
        let status = json!({"observedGeneration": 1, "conditions": [{"type": "Applied", "status": "False",
            "reason": "CRDApplyFailed", "message": "no", "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
        snapshot.klusterlet.as_mut().unwrap().status = Some(serde_json::from_value(status).unwrap());
        assert_eq!(link(&snapshot, Goal::Available), (Link::Klusterlet, "CRDApplyFailed: no".to_owned()));
    }

    #[test]
    fn a_token_that_does_not_work_ends_the_wait() {
        let failure = Failure::new(Reason::Unauthorized, "the token has expired");
        let snapshot = Snapshot { registrar: Some(failure.clone()), ..running() };
        assert_eq!(judge(&snapshot, "c1", Goal::Registered, now()), Step::Failed(failure));
        let joined = Snapshot { identity: true, ..snapshot };
        assert!(matches!(judge(&joined, "c1", Goal::Registered, now()), Step::Waiting(_)));
    }

    #[test]
    fn registered_is_a_goal_of_its_own() {
        let mut snapshot = Snapshot { cluster: Some(cluster(false, &[])), ..running() };
        assert!(link(&snapshot, Goal::Registered).1.contains("has not asked"));
        snapshot.requests = vec![request(None)];
        assert_eq!(judge(&snapshot, "c1", Goal::Registered, now()), Step::Reached(Phase::Pending));
        let (at, because) = link(&snapshot, Goal::Available);
        assert!(at == Link::Acceptance && because.contains("kubectl ocm accept c1"));
        snapshot.cluster = Some(cluster(true, &[]));
        assert_eq!(judge(&snapshot, "c1", Goal::Registered, now()), Step::Reached(Phase::Accepted));
    }

    #[test]
    fn after_acceptance_the_certificate_is_looked_for() {
        for (requests, text) in [
            (vec![], "has not asked"),
            (vec![request(None)], "waits"),
            (vec![request(Some("Approved"))], "has not issued"),
            (vec![request(Some("Denied"))], "was denied"),
            (vec![request(Some("Failed"))], "refuses"),
        ] {
            let snapshot = Snapshot { cluster: Some(cluster(true, &[])), requests, ..running() };
            let (at, because) = link(&snapshot, Goal::Available);
            assert!(at == Link::Joining && because.contains(text), "{because}");
        }
    }

    #[test]
    fn the_hub_is_right_when_its_lease_is_fresh() {
        let conditions = [("ManagedClusterJoined", "True"), ("ManagedClusterConditionAvailable", "True")];
        let lease = |age: i64| {
            let renew_time = Some(MicroTime(now() - age.seconds()));
            Some(Lease { spec: Some(LeaseSpec { renew_time, ..LeaseSpec::default() }), ..Lease::default() })
        };
        let available = cluster(true, &conditions);
        // Even if everything on the managed cluster still looks half done.
        let mut snapshot = Snapshot {
            cluster: Some(available),
            lease: lease(30),
            operator: Some("0 of 1".to_owned()),
            ..Snapshot::default()
        };
        assert_eq!(judge(&snapshot, "c1", Goal::Available, now()), Step::Reached(Phase::Available));
        snapshot.lease = lease(600);
        assert_eq!(link(&snapshot, Goal::Available).0, Link::Operator);
        let stale = Snapshot { operator: None, ..running() };
        let stale = Snapshot { cluster: snapshot.cluster.clone(), lease: lease(600), ..stale };
        assert!(link(&stale, Goal::Available).1.contains("has not reported"));
    }

    #[test]
    fn denied_and_leaving_clusters_are_not_waited_for() {
        let denied = cluster(false, &[("HubAcceptedManagedCluster", "False")]);
        let snapshot = Snapshot { cluster: Some(denied), ..running() };
        assert!(matches!(judge(&snapshot, "c1", Goal::Available, now()), Step::Failed(_)));
        let mut leaving = cluster(true, &[]);
        leaving.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
        let snapshot = Snapshot { cluster: Some(leaving), ..running() };
        assert!(matches!(judge(&snapshot, "c1", Goal::Registered, now()), Step::Failed(_)));
    }
}
