//! Following an agent from its operator's first pod to the hub's word that all is well.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use ocm_api::Klusterlet;
use ocm_core::csr::{Request, State};
use ocm_core::duration::human;
use ocm_core::join::agent::{self, Credential, OwnKey};
use ocm_core::join::progress::{Expected, Former, Goal, Link, Snapshot, Step, Wait, judge, last_renewed};
use ocm_core::kubeconfig::HubAddress;
use ocm_core::managed::{AgentFacts, ManagedFacts};
use ocm_core::phase::Phase;
use ocm_core::{Event, Failure, Narrator, Reason, Remedy};
use ocm_kube::triggers::Triggers;
use ocm_kube::wait::{Check, until_triggered};
use ocm_kube::{Cluster, access};
use tokio::time::timeout_at;

use super::moving::Moving;
use super::on_hub;
use super::survey::{self, Survey};
use crate::observe::{managed, registration};

/// Time between two checks where no watch says when to check: a token that registers clusters may not watch them.
const PAUSE: Duration = Duration::from_millis(700);
/// How often the hub is asked whether it still takes the agent's token, and leases are checked.
const SOMETIMES: Duration = Duration::from_millis(2500);

/// The request of the agent itself.
pub(super) struct OwnRequest {
    /// Its key.
    pub(super) key: String,
    /// Whether the hub accepts the cluster and has nothing of this key to decide.
    pub(super) settled: bool,
    /// Whether the hub has a request of this key.
    pub(super) is_known: bool,
    /// The keys that were approved for the agent itself before, and that it has lost.
    pub(super) former: Vec<String>,
}

pub(super) struct Follower<'a> {
    pub(super) managed: &'a Cluster,
    /// The hub, with the user's own rights or those of the token.
    pub(super) hub: &'a Cluster,
    pub(super) name: &'a str,
    /// Who registers as the agent does.
    pub(super) registrar: Option<on_hub::Registrar>,
    pub(super) survey: &'a Survey,
    /// What the hub knows its requests by.
    pub(super) credential: Credential,
    /// The way to the hub by which it has to get its certificate; none: it keeps the one that it has.
    pub(super) way: Option<&'a HubAddress>,
    /// What is known of the certificate that it had before, where it registers anew.
    pub(super) anew: Option<Former>,
    /// The mode to which its cluster moves, and what is known of its former agents.
    pub(super) moving: Option<Moving>,
    /// Whether its pods have to become what is changed of them, though it keeps its certificate and its mode.
    pub(super) settles: bool,
}

impl Follower<'_> {
    /// Follows until the goal is reached, and keeps in mind when the agent reported last with its former certificate.
    ///
    /// # Errors
    /// [`Reason::TimedOut`] with what holds it up; or what no waiting mends.
    pub(super) async fn until(
        &mut self,
        goal: Goal,
        deadline: Instant,
        narrator: &dyn Narrator,
    ) -> Result<Phase, Failure> {
        let started = Instant::now();
        let mut triggers = self.triggers();
        let mut told_to_accept = false;
        let mut last: Option<Wait> = None;
        let mut ahead = None;
        let mut sometimes = started + SOMETIMES;
        loop {
            let is_time = Instant::now() >= sometimes;
            if is_time {
                sometimes = Instant::now() + SOMETIMES;
            }
            let measured = self.ahead(ahead.is_none() && (last.is_none() || is_time));
            let observed = async { futures::join!(self.snapshot(is_time), measured) };
            // What has no answer at the deadline is as if the cluster did not answer.
            let observed = timeout_at(deadline.into(), observed).await;
            let observed = observed.map_err(|_| Failure::new(Reason::Busy, "a cluster has not answered in time"));
            let snapshot = observed.map(|(snapshot, measured)| {
                ahead = ahead.or(measured);
                snapshot
            });
            let snapshot = snapshot.and_then(|snapshot| match snapshot.managed.trouble() {
                Some(trouble) => Err(trouble.clone()),
                None => Ok(snapshot),
            });
            if let (Ok(snapshot), Some(_)) = (&snapshot, self.anew)
                && !self.is_let_in(snapshot)
            {
                self.anew = Some(Former { renewed: last_renewed(snapshot) });
            }
            let mut is_ending = false;
            if let (Ok(snapshot), Some(moving)) = (&snapshot, &mut self.moving)
                && !snapshot.former.as_ref().is_ok_and(Vec::is_empty)
            {
                moving.former = Former { renewed: last_renewed(snapshot) };
                is_ending = true;
            }
            let moves = self.moving.as_ref().map(|moving| moving.former);
            let moves = moves.or(self.settles.then(Former::default));
            let expected = Expected { name: self.name, goal, credential: &self.credential, anew: self.anew, moves };
            let step = match snapshot {
                Ok(snapshot) => judge(&snapshot, &expected, by_hubs_clock(ahead)),
                Err(failure) if failure.reason.is_transient() => match last.clone() {
                    Some(wait) => Step::Waiting(vec![Wait { because: failure.to_string(), ..wait }]),
                    None => Step::Waiting(vec![Wait {
                        link: Link::Operator,
                        doing: "waiting for the cluster to answer".to_owned(),
                        because: failure.to_string(),
                    }]),
                },
                Err(failure) => return Err(failure),
            };
            match step {
                Step::Reached(phase) => return Ok(phase),
                Step::Failed(failure) => return Err(failure.hint(AGAIN)),
                Step::Waiting(all) => {
                    // What holds it up; the rest may well be its consequence.
                    let Some(wait) = all.into_iter().next() else { continue };
                    if wait.link == Link::Acceptance && !told_to_accept {
                        told_to_accept = true;
                        narrator.tell(Event::note(wait.because.clone()));
                    }
                    if Instant::now() + PAUSE > deadline {
                        let waited = human(started.elapsed());
                        return Err(Failure::new(Reason::TimedOut, format!("gave up {} after {waited}", wait.doing))
                            .because(wait.because)
                            .hint(AGAIN));
                    }
                    // A lease whose holder has ended makes everything look well and do nothing.
                    if is_time && matches!(wait.link, Link::Klusterlet | Link::Registration | Link::Availability) {
                        self.clear_leases(narrator).await?;
                    }
                    narrator.tell(Event::blocked(wait.doing.clone(), wait.because.clone()));
                    last = Some(wait);
                    // Nothing tells when a pod has ended.
                    match is_ending {
                        true => triggers.wait_briefly(PAUSE, (deadline - PAUSE).into()).await,
                        false => triggers.wait(PAUSE, (deadline - PAUSE).into()).await,
                    }
                }
            }
        }
    }

    /// The key of the agent that runs on the cluster, as soon as its request is on the hub.
    ///
    /// # Errors
    /// [`Reason::Refused`] where its key cannot be told from others'; [`Reason::TimedOut`]. Both show every key that asks.
    pub(super) async fn own_key(
        &self,
        admin: &Cluster,
        deadline: Instant,
        narrator: &dyn Narrator,
    ) -> Result<OwnRequest, Failure> {
        let name = self.name;
        let doing = format!("waiting for the certificate request of the agent of {name}");
        let mut strangers = String::new();
        let is_grpc = matches!(self.credential, Credential::Grpc { .. });
        let triggers = self.triggers();
        let found = until_triggered(&doing, deadline, PAUSE, triggers, narrator, async || {
            let (facts, klusterlet, requests, cluster) = futures::join!(
                managed::identity(self.managed, &self.survey.names.namespace),
                managed::klusterlet(self.managed, &self.survey.names),
                registration::requests(admin, name),
                registration::cluster(admin, name),
            );
            let klusterlet = klusterlet?;
            let facts = self.counting(facts?, klusterlet.as_ref());
            let agent = facts.agent(name, Timestamp::now());
            let logged = match &klusterlet {
                Some(klusterlet) if is_grpc && agent.key.is_none() => {
                    let namespace = &self.survey.names.namespace;
                    managed::logged_requests(self.managed, namespace, klusterlet).await
                }
                _ => Ok(Vec::new()),
            };
            let mut requests = requests?;
            let all = requests.clone();
            if self.anew.is_some() {
                // Of those it had certificates before.
                requests.retain(|request| request.state != State::Issued);
            }
            let own = match &logged {
                Ok(logged) => agent.own_key(&self.credential, &requests, logged),
                Err(failure) if failure.reason == Reason::Forbidden => {
                    OwnKey::Unclear("the log of its agent, which names its request, may not be read")
                }
                Err(failure) => return Err(failure.clone()),
            };
            let key = match &own {
                OwnKey::Known(key) => Some(key),
                _ => None,
            };
            let foreign = |request: &&Request| {
                request.state == State::Pending && !request.is_addons() && request.fingerprint().as_ref() != key
            };
            strangers = agent::describe(requests.iter().filter(foreign));
            match own {
                OwnKey::Known(key) => {
                    let accepted = cluster?.is_some_and(|cluster| cluster.spec.hub_accepts_client.unwrap_or_default());
                    let asks = |request: &Request| {
                        request.state == State::Pending && request.fingerprint().as_ref() == Some(&key)
                    };
                    let settled = accepted && !requests.iter().any(asks);
                    let is_known = all.iter().any(|request| request.fingerprint().as_ref() == Some(&key));
                    let former = agent.former_keys(&key, &self.credential, &all);
                    Ok(Check::Ready(OwnRequest { key, settled, is_known, former }))
                }
                OwnKey::NotYet => {
                    let others = match strangers.is_empty() {
                        true => String::new(),
                        false => format!("others ask in its name: {strangers}"),
                    };
                    // Nothing tells when a log goes on.
                    Ok(if is_grpc { Check::Unwatched(others) } else { Check::NotYet(others) })
                }
                OwnKey::Unclear(why) => Err(Failure::refused(format!(
                    "which key is that of the agent of {name} cannot be told, so nothing was approved"
                ))
                .because(why)
                .because(format!("there are: {strangers}"))
                .hint(self.compare_key())),
            }
        })
        .await
        .map_err(|failure| match failure.reason {
            // Others ask, and its log names none of their requests.
            Reason::TimedOut if is_grpc => failure.hint(self.compare_key()),
            _ => failure,
        })?;
        if !strangers.is_empty() {
            narrator.tell(Event::warning(format!(
                "somebody else, or its agent before it got a token of its own, asks for a certificate in the name of {name:?} and \
                 was not approved: {strangers}; the agent's own key is {}",
                found.key
            )));
        }
        Ok(found)
    }

    /// Whose key it is, a person finds out.
    fn compare_key(&self) -> Remedy {
        match self.anew {
            Some(_) => Remedy::ReplaceKey(self.name.to_owned(), "KEY".to_owned()),
            None => Remedy::AcceptKey(self.name.to_owned()),
        }
    }

    async fn clear_leases(&self, narrator: &dyn Narrator) -> Result<(), Failure> {
        match survey::stale_leases(self.managed, &self.survey.names).await {
            Ok(stale) => {
                survey::clear(self.managed, &stale, narrator).await;
                Ok(())
            }
            Err(failure) if failure.reason.is_transient() || failure.reason == Reason::Forbidden => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// What the agent has written down of itself, as far as it counts.
    fn counting(&self, facts: AgentFacts, klusterlet: Option<&Klusterlet>) -> AgentFacts {
        let facts = match self.way {
            Some(way) => facts.registered_by(way),
            None => facts,
        };
        match klusterlet.and_then(Klusterlet::agent_name) {
            Some(name) => facts.named(name),
            None => facts,
        }
    }

    /// What a snapshot depends on, as far as we may watch it.
    fn triggers(&self) -> Triggers {
        managed::triggers(self.managed, &self.survey.names).and(registration::triggers(self.hub, self.name))
    }

    /// How far the hub's clock is ahead of this machine's, where it is `wanted` and the hub tells the time.
    async fn ahead(&self, wanted: bool) -> Option<SignedDuration> {
        if !wanted {
            return None;
        }
        let hub = access::clock(self.hub).await.ok()?;
        // As soon as the hub has answered: what is read beside it takes its time.
        Some(hub.duration_since(Timestamp::now()))
    }

    /// What both clusters show just now.
    async fn snapshot(&self, sometimes: bool) -> Snapshot {
        let names = &self.survey.names;
        let former = async {
            match &self.moving {
                Some(moving) => moving.running(self.managed).await,
                None => Ok(Vec::new()),
            }
        };
        let (managed, hub, former) =
            futures::join!(managed::observe(self.managed, names), registration::observe(self.hub, self.name), former);
        let klusterlet = managed.klusterlet.as_ref().ok().and_then(Option::as_ref);
        let identity = managed.identity.map(|facts| self.counting(facts, klusterlet));
        let managed = ManagedFacts { identity, ..managed };
        let mut snapshot = Snapshot { managed, hub, registrar: None, former };
        if !matches!(snapshot.hub.cluster, Ok(Some(_)))
            && !self.is_let_in(&snapshot)
            && sometimes
            && let Some(registrar) = &self.registrar
        {
            let answer = registrar.cluster(self.name).await;
            snapshot.registrar = answer.err().filter(|failure| {
                // Whether we reach the hub says little of whether the agent does.
                !matches!(failure.reason, Reason::Unreachable | Reason::Busy | Reason::Other)
            });
        }
        snapshot
    }

    /// Whether the agent holds a certificate that counts and is valid.
    fn is_let_in(&self, snapshot: &Snapshot) -> bool {
        let identity = snapshot.managed.identity.as_ref();
        identity.is_ok_and(|identity| identity.agent(self.name, Timestamp::now()).key.is_some())
    }
}

/// The time by the clock of the hub, which notes when a lease was renewed: `ahead` of this machine's, as far as that is known.
fn by_hubs_clock(ahead: Option<SignedDuration>) -> Timestamp {
    let now = Timestamp::now();
    ahead.and_then(|ahead| now.checked_add(ahead).ok()).unwrap_or(now)
}

const AGAIN: &str = "what was applied stays: mend it and run the same command again, it goes on from there";
