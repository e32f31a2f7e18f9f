//! Many clusters at once, on a thread of their own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures::StreamExt as _;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::Api;
use kube::api::PostParams;
use ocm_api::ManagedCluster;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;

use crate::agent::{self, Agent};
use crate::board::Read;
use crate::error::Error;
use crate::hostile::{Attempt, Hostile};
use crate::hub::{Failed, Hub};
use crate::objects::Who;
use crate::report::{Latencies, Report};

/// How long the hub may take to tell what is there.
const FIRST_READ: Duration = Duration::from_secs(30);
/// How often it is looked whether a storm is over.
const LOOKS: Duration = Duration::from_millis(20);

/// With what clusters reach a hub.
#[derive(Clone, Debug)]
pub struct Access {
    /// The kubeconfig that clusters register with. It may create, list and watch ManagedClusters and certificate requests.
    pub bootstrap: PathBuf,
    /// The kubeconfigs of others who ask for certificates. Ways to be hostile that need somebody else are left out.
    pub others: BTreeMap<Who, PathBuf>,
    /// Who approves renewals in the place of the hub's own controllers; none: those run.
    pub approver: Option<PathBuf>,
    /// How many requests are on their way to the hub at once.
    pub at_once: usize,
}

/// What a storm is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Start of the names of the clusters; a number follows.
    pub prefix: String,
    /// How many right clusters come.
    pub clusters: usize,
    /// How many hostile ones come among them.
    pub hostile: usize,
    /// Whether clusters that have joined write their status and renew their lease.
    pub reports: bool,
    /// Decides who is hostile and in which way, and the order.
    pub seed: u64,
}

impl Plan {
    /// The clusters in the order in which they come: each with its way of being hostile, if it is.
    fn clusters(&self, ways: &[Hostile]) -> Vec<(String, Option<Hostile>)> {
        let hostile = if ways.is_empty() { 0 } else { self.hostile };
        let way = |index: usize| (index < hostile).then(|| ways[index % ways.len()]);
        let mut random = Rng::with_seed(self.seed);
        let mut numbers: Vec<usize> = (0..self.clusters + hostile).collect();
        random.shuffle(&mut numbers);
        let mut all: Vec<_> = numbers
            .iter()
            .enumerate()
            .map(|(index, number)| (format!("{}{number}", self.prefix), way(index)))
            .collect();
        random.shuffle(&mut all);
        all
    }
}

/// What agents did that have joined.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// How many did all of it.
    pub count: usize,
    /// How many of them have a lease.
    pub leases: usize,
    /// How long each took.
    pub took: Latencies,
    /// Who could not, and why.
    pub failures: Vec<String>,
}

/// Simulated clusters of a hub. They end with this.
pub struct Fleet {
    hub: Arc<Hub>,
    ways: Vec<Hostile>,
    at_once: usize,
    handle: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Fleet {
    /// Connects, and begins to follow what the hub tells of clusters and requests.
    ///
    /// # Errors
    /// When a kubeconfig cannot be used, or the hub lets nobody watch.
    pub fn start(access: &Access) -> Result<Self, Error> {
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(|error| Error::Machine(error.to_string()))?;
        let handle = runtime.handle().clone();
        let hub = runtime.block_on(Hub::open(
            &access.bootstrap,
            &access.others,
            access.approver.as_deref(),
            access.at_once,
        ))?;
        let hub = Arc::new(hub);
        let (end, ended) = oneshot::channel::<()>();
        let (reads, mut read) = watch::channel(Read::default());
        let watched = hub.clone();
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                let follow = watched.board.watch(&watched.clients[&Who::Bootstrap], &reads);
                tokio::select! { () = follow => {}, _ = ended => {} }
            });
            // What is still on its way ends with the runtime.
            runtime.shutdown_background();
        });
        let known = |who| who == Who::Bootstrap || access.others.contains_key(&who);
        let ways = Hostile::ALL.into_iter().filter(|way| known(way.requester())).collect();
        let fleet = Self { hub, ways, at_once: access.at_once, handle, end: Some(end), thread: Some(thread) };
        let first = fleet.wait(async move {
            let both = read.wait_for(|read| read.kinds == 2);
            let in_time = tokio::time::timeout(FIRST_READ, both).await.is_ok_and(|both| both.is_ok());
            let failed = read.borrow().failed.clone();
            if in_time { Ok(()) } else { Err(failed.unwrap_or_else(|| "it does not answer".to_owned())) }
        });
        first.unwrap_or_else(|| Err("its runtime ended".to_owned())).map_err(Error::Watch)?;
        Ok(fleet)
    }

    /// Waits for something that the runtime of the fleet does; none: it does nothing any more.
    fn wait<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let (sender, receiver) = mpsc::channel();
        self.handle.spawn(async move { sender.send(work.await) });
        receiver.recv().ok()
    }

    /// Has clusters come, all at once.
    pub fn storm(&self, plan: &Plan) -> Storm {
        let clusters = plan.clusters(&self.ways);
        let begun = Instant::now();
        let right: Vec<String> =
            clusters.iter().filter(|(_, way)| way.is_none()).map(|(name, _)| name.clone()).collect();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let mut random = Rng::with_seed(plan.seed);
        let mut tasks = Vec::new();
        let hostile = clusters.len() - right.len();
        for (name, way) in clusters {
            let (hub, seen, reports) = (self.hub.clone(), seen.clone(), plan.reports);
            let own = Rng::with_seed(random.u64(..));
            let task = match way {
                None => self.handle.spawn(self::right(hub, own, name, seen, reports)),
                Some(way) => {
                    let victim = random.choice(&right).cloned().unwrap_or_default();
                    self.handle.spawn(self::hostile(hub, own, way, name, victim, seen))
                }
            };
            tasks.push(task.abort_handle());
        }
        Storm { hub: self.hub.clone(), right: right.len(), planned: plan.hostile, hostile, seen, tasks, begun }
    }

    /// Each of these writes its status, and renews its lease where the hub has made one.
    pub fn beat(&self, agents: &[Agent]) -> Done {
        let work = |hub: Arc<Hub>, agent: Agent| async move {
            // How long one takes is asked for, and who cannot is told.
            let lease = agent.beat(&hub, &mut Rng::new(), |_| true).await?;
            Ok((agent, lease))
        };
        self.each(agents.to_vec(), work).1
    }

    /// Each of these asks in its own name for another certificate with another key, and takes it.
    pub fn renew(&self, agents: Vec<Agent>) -> (Vec<Agent>, Done) {
        let work = |hub: Arc<Hub>, mut agent: Agent| async move {
            agent.renew(&hub).await?;
            Ok((agent, false))
        };
        self.each(agents, work)
    }

    /// Has each of these do something, several at a time. Those that could, as they are then.
    fn each<W, F>(&self, agents: Vec<Agent>, work: W) -> (Vec<Agent>, Done)
    where
        W: Fn(Arc<Hub>, Agent) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(Agent, bool), Failed>> + Send + 'static,
    {
        let (hub, at_once) = (self.hub.clone(), self.at_once.max(1));
        let all = self.wait(async move {
            let one = |agent: Agent| {
                let (begun, name) = (Instant::now(), agent.name.clone());
                let work = work(hub.clone(), agent);
                async move { (name, work.await, begun.elapsed()) }
            };
            futures::stream::iter(agents).map(one).buffer_unordered(at_once).collect::<Vec<_>>().await
        });
        let (mut left, mut done, mut took) = (Vec::new(), Done::default(), Vec::new());
        for (name, answer, time) in all.unwrap_or_default() {
            match answer {
                Ok((agent, lease)) => {
                    left.push(agent);
                    done.count += 1;
                    done.leases += usize::from(lease);
                    took.push(time);
                }
                Err(failed) => done.failures.push(format!("{name}: {}", failed.why)),
            }
        }
        done.took = Latencies::of(took);
        (left, done)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What has come of a storm so far.
#[derive(Default)]
struct Seen {
    asked: usize,
    accepted: Vec<Duration>,
    /// When the first and the last one were.
    between: Option<(Instant, Instant)>,
    signed: Vec<Duration>,
    agents: Vec<Agent>,
    failures: Vec<String>,
    /// Right clusters of which nothing more comes.
    over: usize,
    attempts: Vec<Attempt>,
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Clusters that are coming.
pub struct Storm {
    hub: Arc<Hub>,
    right: usize,
    /// How many hostile clusters the plan has.
    planned: usize,
    /// How many of them come.
    hostile: usize,
    seen: Arc<Mutex<Seen>>,
    tasks: Vec<AbortHandle>,
    begun: Instant,
}

impl Storm {
    /// How many right clusters have sent their request.
    pub fn asked(&self) -> usize {
        lock(&self.seen).asked
    }

    /// How many right clusters are accepted.
    pub fn accepted(&self) -> usize {
        lock(&self.seen).accepted.len()
    }

    /// Waits until all right clusters have joined and all hostile ones have tried, for so long at most, and ends the rest.
    pub fn end(self, patience: Duration) -> Report {
        let is_over = || {
            let seen = lock(&self.seen);
            seen.over == self.right && seen.attempts.len() == self.hostile
        };
        let deadline = Instant::now() + patience;
        while !is_over() && Instant::now() < deadline {
            thread::sleep(LOOKS);
        }
        self.tasks.iter().for_each(AbortHandle::abort);
        let seen = std::mem::take(&mut *lock(&self.seen));
        let board = &self.hub.board;
        let [first, took] = seen.between.map_or([Duration::ZERO; 2], |(first, last)| {
            [first, last].map(|at| at.saturating_duration_since(self.begun))
        });
        let hostile = seen.attempts.into_iter().map(|attempt| {
            let is_approved = attempt.request.as_deref().is_some_and(|request| board.approved(request));
            Attempt { is_in: is_approved || board.accepted(&attempt.cluster).is_some(), ..attempt }
        });
        Report {
            clusters: self.right,
            accepted: seen.accepted.len(),
            agents: seen.agents,
            to_accepted: Latencies::of(seen.accepted),
            to_certificate: Latencies::of(seen.signed),
            planned_hostile: self.planned,
            hostile: hostile.collect(),
            failures: seen.failures,
            repeated: self.hub.repeated(),
            first,
            took,
        }
    }
}

/// One right cluster.
async fn right(hub: Arc<Hub>, mut random: Rng, name: String, seen: Arc<Mutex<Seen>>, reports: bool) {
    let joined = async {
        agent::register(&hub, &mut random, &name).await?;
        let asked = || lock(&seen).asked += 1;
        let accepted = |took, at| {
            let mut seen = lock(&seen);
            seen.accepted.push(took);
            let (first, last) = seen.between.unwrap_or((at, at));
            seen.between = Some((first.min(at), last.max(at)));
        };
        Agent::join(&hub, &mut random, &name, asked, accepted).await
    };
    let failed = match joined.await {
        Ok((agent, took)) => {
            lock(&seen).signed.push(took);
            // The hub gives it its rights after its certificate, and may be gone for a while.
            let told = if reports { agent.beat(&hub, &mut random, |_| false).await.map(drop) } else { Ok(()) };
            lock(&seen).agents.push(agent);
            told.err()
        }
        Err(failed) => Some(failed),
    };
    let mut seen = lock(&seen);
    seen.failures.extend(failed.map(|failed| format!("{name}: {}", failed.why)));
    seen.over += 1;
}

/// One hostile cluster.
async fn hostile(hub: Arc<Hub>, mut random: Rng, kind: Hostile, own: String, victim: String, seen: Arc<Mutex<Seen>>) {
    let mut attempt = Attempt { kind, cluster: own, request: None, refusals: Vec::new(), is_in: false };
    let bootstrap = &hub.clients[&Who::Bootstrap];
    let clusters: Api<ManagedCluster> = Api::all(bootstrap.clone());
    let cluster = kind.cluster(&attempt.cluster);
    if let Err(failed) = attempted(&hub, &mut random, &clusters, &cluster).await {
        attempt.refusals.push(failed.why);
    }
    if kind == Hostile::SecondKey {
        hub.board.until_accepted(&victim).await;
    }
    let ask = kind.ask(&attempt.cluster, &victim);
    let requests: Api<CertificateSigningRequest> = Api::all(hub.clients[&ask.who].clone());
    match attempted(&hub, &mut random, &requests, &ask.object()).await {
        Ok(request) => attempt.request = request.metadata.name,
        Err(failed) => attempt.refusals.push(failed.why),
    }
    lock(&seen).attempts.push(attempt);
}

/// Creates an object, unless the hub says no.
async fn attempted<K>(hub: &Hub, random: &mut Rng, api: &Api<K>, object: &K) -> Result<K, Failed>
where
    K: Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    let params = PostParams::default();
    hub.insist(random, || api.create(&params, object), |failed| failed.is_refusal || failed.exists).await
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_seed_decides_who_is_hostile_and_all_ways_come() {
        let plan = |seed| Plan { prefix: "c".to_owned(), clusters: 180, hostile: 20, reports: false, seed };
        let all = plan(1).clusters(&Hostile::ALL);
        assert_eq!(all, plan(1).clusters(&Hostile::ALL));
        assert_ne!(all, plan(2).clusters(&Hostile::ALL));
        let names: BTreeSet<&String> = all.iter().map(|(name, _)| name).collect();
        assert_eq!((names.len(), all.iter().filter(|(_, way)| way.is_none()).count()), (200, 180));
        for way in Hostile::ALL {
            assert_eq!(all.iter().filter(|(_, is)| *is == Some(way)).count(), 2, "{way:?}");
        }
        assert_eq!(plan(1).clusters(&[]).len(), 180, "nobody is there who could be hostile");
    }
}
