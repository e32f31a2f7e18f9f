//! Waiting for clusters that have not registered or asked yet: the hub is watched, not asked again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::runtime::watcher;
use ocm_api::ManagedCluster;
use ocm_api::names::labels;
use ocm_core::accept::{Decision, Found, Options, Refusal, decide};
use ocm_core::csr::{Code, Request};
use ocm_core::{DryRun, Event, Failure, Narrator, Reason};
use ocm_kube::Cluster;
use ocm_kube::wait::{Check, until};
use tokio::time::timeout_at;

use super::carry_out::{LONGEST_PAUSE, one};
use super::{Candidate, Outcome, Row, check_rights, row, survey};
use crate::registry::{FEW, Scope};
use crate::watch::{Changed, changes};

/// Time between two tries while the hub does not answer, at first.
const PAUSE: Duration = Duration::from_secs(1);

/// For so long changes are gathered that are then looked at together.
const GATHER: Duration = Duration::from_millis(300);

/// Does something that only reads, and tries until `deadline`, if any, while the hub does not answer. That it does not is
/// told once.
///
/// # Errors
/// The failure of the work; [`Reason::TimedOut`].
pub async fn patiently<T>(
    deadline: Option<Instant>,
    narrator: &dyn Narrator,
    mut work: impl AsyncFnMut() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Some(deadline) = deadline else { return work().await };
    let mut pause = PAUSE;
    loop {
        let Ok(done) = timeout_at(deadline.into(), work()).await else {
            return Err(Failure::new(Reason::TimedOut, "the hub has not answered in time"));
        };
        match done {
            Err(failure) if failure.reason.is_transient() && Instant::now() + pause < deadline => {
                if pause == PAUSE {
                    narrator.tell(Event::warning(format!("{failure}; trying again")));
                }
            }
            done => return done,
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Looks at the clusters of a scope as [`survey`] does, and tries until `deadline`, if any, while the hub does not answer.
///
/// # Errors
/// When the hub cannot be read; [`Reason::TimedOut`].
pub async fn look(
    hub: &Cluster,
    scope: &Scope,
    options: &Options,
    deadline: Option<Instant>,
    narrator: &dyn Narrator,
) -> Result<Vec<Candidate>, Failure> {
    patiently(deadline, narrator, async || survey(hub, scope, options).await).await
}

/// Whether a later request may change the decision: the agent may register, or ask, and whoever asked wrongly was not
/// the agent.
pub fn still_waits(decision: &Decision) -> bool {
    let Decision::Refused(refusal) = decision else { return not_yet(decision) };
    let wrongly_asked = matches!(refusal.code.rule(), "R1" | "R2" | "R3" | "R4" | "R5")
        || matches!(refusal.code, Code::Requester | Code::Impersonated | Code::NoSuchKey);
    wrongly_asked || not_yet(decision)
}

/// Whether nothing is there yet to decide about.
fn not_yet(decision: &Decision) -> bool {
    match decision {
        Decision::NoRequest => true,
        Decision::Refused(refusal) => refusal.code == Code::NoManagedCluster,
        _ => false,
    }
}

/// Clusters that are waited for, and what the hub shows of them.
///
/// Two watches tell what changes. What they tell is judged as it is; the hub is read again only for a cluster whose
/// decision came out differently, for what was read once is not what an approval may stand on.
pub struct Watch<'a> {
    hub: &'a Cluster,
    options: &'a Options,
    changes: BoxStream<'a, Result<Changed<Seen>, Failure>>,
    /// Lists that have not been read for the first time.
    unlisted: usize,
    clusters: BTreeMap<String, ManagedCluster>,
    /// By cluster, then by name.
    requests: BTreeMap<String, BTreeMap<String, Request>>,
    /// The clusters as they were last looked at.
    waiting: BTreeMap<String, Candidate>,
    /// The decision about each by what the watches told, when it was last looked at.
    judged: BTreeMap<String, Decision>,
    /// The clusters of which something changed.
    changed: BTreeSet<String>,
}

/// What the watches show.
enum Seen {
    Cluster(Box<ManagedCluster>),
    Request(Box<Request>),
}

impl<'a> Watch<'a> {
    /// Begins to watch for clusters that were looked at and still wait.
    pub fn begin(hub: &'a Cluster, options: &'a Options, waiting: Vec<Candidate>, narrator: &dyn Narrator) -> Self {
        waiting.iter().for_each(|candidate| tell_wrong(candidate, narrator));
        let waiting: BTreeMap<String, Candidate> =
            waiting.into_iter().map(|candidate| (candidate.name.clone(), candidate)).collect();
        let (mut clusters, mut requests) = (watcher::Config::default(), labels::CLUSTER_NAME.to_owned());
        let names: Vec<&str> = waiting.keys().map(String::as_str).collect();
        if let [name] = names.as_slice() {
            clusters = clusters.fields(&format!("metadata.name={name}"));
        }
        if names.len() <= FEW {
            requests = format!("{requests} in ({})", names.join(","));
        }
        let clusters = changes(hub, clusters, |object: ManagedCluster| Seen::Cluster(Box::new(object)));
        let requests =
            changes(hub, watcher::Config::default().labels(&requests), |object: CertificateSigningRequest| {
                Seen::Request(Box::new(Request::read(&object)))
            });
        Self {
            hub,
            options,
            changes: stream::select(clusters, requests).boxed(),
            unlisted: 2,
            clusters: BTreeMap::new(),
            requests: BTreeMap::new(),
            judged: waiting.iter().map(|(name, candidate)| (name.clone(), candidate.decision.clone())).collect(),
            waiting,
            changed: BTreeSet::new(),
        }
    }

    /// The next clusters that need not be waited for any longer; none when `deadline` has passed.
    ///
    /// # Errors
    /// When the hub cannot be read or watched, for a reason that does not pass by itself.
    pub async fn next(&mut self, deadline: Instant, narrator: &dyn Narrator) -> Result<Vec<Candidate>, Failure> {
        loop {
            let names: Vec<&str> = self.waiting.keys().map(String::as_str).collect();
            if names.is_empty() {
                return Ok(Vec::new());
            }
            narrator.tell(Event::now(format!("waiting for the certificate requests of {}", some(&names))));
            let changes = self.changes.try_next();
            match timeout_at(deadline.into(), changes).await {
                Ok(change) => self.take(change?.ok_or_else(ended)?, narrator),
                Err(_) => return Ok(Vec::new()),
            }
            if self.unlisted > 0 || !self.differs() {
                continue;
            }
            // What comes together is looked at together.
            let end = (Instant::now() + GATHER).min(deadline).into();
            while let Ok(change) = timeout_at(end, self.changes.try_next()).await {
                self.take(change?.ok_or_else(ended)?, narrator);
            }
            let ready = self.look(deadline, narrator).await?;
            if !ready.is_empty() {
                return Ok(ready);
            }
        }
    }

    /// The clusters that are still waited for, as they were last looked at.
    pub fn into_waiting(self) -> Vec<Candidate> {
        self.waiting.into_values().collect()
    }

    fn take(&mut self, change: Changed<Seen>, narrator: &dyn Narrator) {
        match change {
            Changed::Now(Seen::Cluster(cluster)) => {
                let name = cluster.metadata.name.clone().unwrap_or_default();
                if self.waiting.contains_key(&name) {
                    self.clusters.insert(name.clone(), *cluster);
                    self.changed.insert(name);
                }
            }
            Changed::Gone(Seen::Cluster(cluster)) => {
                let name = cluster.metadata.name.unwrap_or_default();
                self.clusters.remove(&name);
                self.changed.insert(name);
            }
            Changed::Now(Seen::Request(request)) => {
                let name = request.cluster_label.clone().unwrap_or_default();
                if self.waiting.contains_key(&name) {
                    self.requests.entry(name.clone()).or_default().insert(request.name.clone(), *request);
                    self.changed.insert(name);
                }
            }
            Changed::Gone(Seen::Request(request)) => {
                let name = request.cluster_label.unwrap_or_default();
                if let Some(requests) = self.requests.get_mut(&name) {
                    requests.remove(&request.name);
                    self.changed.insert(name);
                }
            }
            Changed::Listed if self.unlisted > 0 => {
                self.unlisted -= 1;
                if self.unlisted == 0 {
                    // What was there before the watch began, or has gone since.
                    self.changed.extend(self.waiting.keys().cloned());
                }
            }
            Changed::Lost(failure) => narrator.tell(Event::warning(format!("{failure}; trying again"))),
            Changed::Back => narrator.tell(Event::note("the hub answers again")),
            Changed::Listed => {}
        }
    }

    /// Whether the decision about a cluster that changed comes out differently than when it was looked at.
    fn differs(&mut self) -> bool {
        let changed = std::mem::take(&mut self.changed);
        let differs = |name: &String| self.judged.get(name).is_some_and(|judged| *judged != self.judge(name));
        self.changed = changed.into_iter().filter(differs).collect();
        !self.changed.is_empty()
    }

    fn judge(&self, name: &str) -> Decision {
        let requests: Vec<Request> = self.requests.get(name).into_iter().flat_map(BTreeMap::values).cloned().collect();
        let found = Found {
            cluster: self.clusters.get(name),
            requests: &requests,
            // As they were read last; who is not among them brings about another look.
            bound_accounts: self
                .waiting
                .get(name)
                .map(|candidate| candidate.bound_accounts.as_slice())
                .unwrap_or_default(),
            ..Found::default()
        };
        decide(name, &found, self.options)
    }

    /// Reads the clusters whose decision came out differently from the hub, and returns those that wait no longer.
    async fn look(&mut self, deadline: Instant, narrator: &dyn Narrator) -> Result<Vec<Candidate>, Failure> {
        if !self.differs() {
            return Ok(Vec::new());
        }
        let names: Vec<String> = std::mem::take(&mut self.changed).into_iter().collect();
        for name in &names {
            self.judged.insert(name.clone(), self.judge(name));
        }
        let found = match look(self.hub, &Scope::Names(names), self.options, Some(deadline), narrator).await {
            Err(failure) if failure.reason == Reason::TimedOut => return Ok(Vec::new()),
            found => found?,
        };
        let (waiting, ready): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|candidate| still_waits(&candidate.decision));
        for candidate in waiting {
            tell_wrong(&candidate, narrator);
            self.waiting.insert(candidate.name.clone(), candidate);
        }
        for candidate in &ready {
            self.waiting.remove(&candidate.name);
            self.judged.remove(&candidate.name);
            self.clusters.remove(&candidate.name);
            self.requests.remove(&candidate.name);
        }
        Ok(ready)
    }
}

/// Tells of a request that is not the one that is waited for.
fn tell_wrong(candidate: &Candidate, narrator: &dyn Narrator) {
    if let Decision::Refused(Refusal { code, detail, .. }) = &candidate.decision
        && !not_yet(&candidate.decision)
    {
        let name = &candidate.name;
        narrator.tell(Event::warning(format!("{name}: {code}, {detail}; waiting for another request")));
    }
}

fn ended() -> Failure {
    Failure::other("the watch of the hub ended")
}

/// Names in a sentence: a few, and how many more.
fn some(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    match names.len().checked_sub(SHOWN) {
        Some(more) if more > 0 => format!("{} and {more} more", names[..SHOWN].join(", ")),
        _ => names.join(", "),
    }
}

/// Accepts one cluster as soon as it has asked, waiting until `deadline`; for callers that already know that they
/// mean it, like a join with access to both clusters.
///
/// # Errors
/// [`Reason::Refused`] with the rule, [`Reason::TimedOut`], or what the hub said.
pub async fn when_asked(
    hub: &Cluster,
    name: &str,
    options: &Options,
    deadline: Instant,
    narrator: Arc<dyn Narrator>,
) -> Result<Row, Failure> {
    let scope = Scope::Names(vec![name.to_owned()]);
    let doing = format!("waiting for the certificate request of {name}");
    let candidate = until(&doing, deadline, PAUSE, narrator.as_ref(), async || {
        let found = survey(hub, &scope, options).await?.into_iter().next();
        Ok(match found {
            Some(candidate) if !may_come(&candidate.decision) => Check::Ready(candidate),
            Some(candidate) => Check::NotYet(row(&candidate).detail),
            None => Check::NotYet(String::new()),
        })
    })
    .await?;
    check_rights(hub, std::slice::from_ref(&candidate)).await?;
    let row = one(hub, candidate, DryRun::No, Some(deadline)).await;
    match row.outcome {
        Outcome::Refused(_) | Outcome::NoRequest => {
            Err(Failure::refused(format!("{name} is not accepted: {}", row.outcome.code()))
                .because(row.detail)
                .hint(format!("look at what is wrong: kubectl ocm accept {name}")))
        }
        Outcome::Failed(reason) => Err(Failure::new(reason, format!("{name} is not accepted")).because(row.detail)),
        _ => Ok(row),
    }
}

/// Whether the one request that is meant may still come.
fn may_come(decision: &Decision) -> bool {
    not_yet(decision) || matches!(decision, Decision::Refused(refusal) if refusal.code == Code::NoSuchKey)
}
