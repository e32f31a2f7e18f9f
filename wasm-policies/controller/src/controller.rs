//! The loop: who leads looks at every registration that may have changed, several at a time.

use std::sync::Arc;
use std::time::Duration;

use ocm_core::{Event, Narrator};
use ocm_kube::access;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::auto_approval::AutoApproval;
use crate::clock::Clock;
use crate::effects::Effects;
use crate::emergency::Emergency;
use crate::enforcement;
use crate::hub::{Hub, Wake};
use crate::joins::Joins;
use crate::lease::{Candidate, Leadership};
use crate::log::Log;
use crate::modules::Modules;
use crate::parts::Parts;
use crate::queue::Queue;
use crate::registrations::Registrations;
use crate::report::Report;

/// How many registrations are looked at at once.
const AT_ONCE: usize = 16;
/// How often it is looked whether policies, or what they know, have changed.
const LOOKS: Duration = Duration::from_millis(250);
/// Those that wait are asked about again at most so often, and for at most this part of the time.
const ROUNDS: Duration = Duration::from_secs(1);
const SHARE: u32 = 10;
/// When policies have changed, clusters that wait for nothing are looked at so far apart.
const APART: Duration = Duration::from_millis(5);
/// How long reading what policies ask for may take before work begins all the same: they answer with errors then.
const EVIDENCE: Duration = Duration::from_secs(10);
/// After a failure to begin.
const BEGIN_AGAIN: Duration = Duration::from_secs(2);

/// Approves and accepts what rules and policies allow.
pub struct Controller(Parts);

impl Controller {
    /// A controller of these parts.
    pub fn new(parts: Parts) -> Self {
        Self(parts)
    }

    /// Works until `end`. `looked` hears whenever the hub has answered.
    pub async fn run(&self, end: impl Future<Output = ()>, narrator: &dyn Narrator, looked: &dyn Fn()) {
        let parts = &self.0;
        let mut candidate = Candidate::new(parts.effects.clone(), &parts.lease, &parts.holder);
        let lead = candidate.leadership();
        tokio::select! {
            () = candidate.run(narrator, looked) => {}
            () = self.lead(&lead, narrator) => {}
            () = end => {}
        }
        // Nothing is being written any more: the other tasks ended with the loop.
        candidate.release().await;
    }

    /// Acts whenever this process leads.
    async fn lead(&self, lead: &Leadership, narrator: &dyn Narrator) {
        loop {
            self.0.metrics.leading(false, 0);
            lead.clone().gained().await;
            narrator.tell(Event::done("this controller acts now"));
            let mut until = lead.clone();
            let modules = Arc::new(Modules::new(&self.0, lead));
            let auto_approval = Arc::new(AutoApproval::default());
            let emergency = Arc::new(Emergency::default());
            let report = Report::new(&self.0, lead, &modules, &auto_approval, &emergency);
            tokio::select! {
                () = until.lost() => {}
                () = report.run(narrator) => {}
                () = modules.run(narrator) => {}
                why = self.session(lead, (&auto_approval, &emergency), narrator) => {
                    narrator.tell(Event::warning(why));
                    tokio::time::sleep(BEGIN_AGAIN).await;
                    continue;
                }
            }
            narrator.tell(Event::warning("this controller acts no more"));
        }
    }

    /// Works with what the hub holds from now on: what was read before others acted tells nothing of it. Ends with the
    /// reason why it cannot.
    async fn session(
        &self,
        lead: &Leadership,
        (auto_approval, emergency): (&Arc<AutoApproval>, &Arc<Emergency>),
        narrator: &dyn Narrator,
    ) -> String {
        let parts = &self.0;
        let clock = match tokio::time::timeout(EVIDENCE, access::clock(&parts.hub)).await {
            Ok(Ok(hub)) => Clock::start(hub),
            Ok(Err(failure)) => return format!("the hub does not tell what time it is: {failure}"),
            Err(_) => return "the hub does not tell what time it is".to_owned(),
        };
        if let Some(why) = clock.wrong() {
            return why;
        }
        if let Some(why) = auto_approval.look(&parts.hub).await {
            narrator.tell(Event::warning(why));
        }
        let effects = Effects::new(parts.effects.clone(), lead.clone());
        let registrations = match Registrations::read(&effects).await {
            Ok(registrations) => registrations,
            Err(failed) => return format!("the registrations of the hub cannot be read: {failed}"),
        };
        let (wakes, mut woken) = unbounded_channel();
        let hub = Hub::follow(&parts.hub.client, &wakes);
        // Policies that cannot be told answer with an error until they can.
        let first = tokio::time::timeout(EVIDENCE, hub.first_read());
        let (_, first, seen, mark) = futures::join!(
            parts.knowledge.read_anew(EVIDENCE),
            first,
            enforcement::look(&parts.hub),
            Emergency::mark(&parts.hub)
        );
        emergency.learn(mark, &seen);
        if first.is_err() {
            let why = hub.older_than(EVIDENCE).unwrap_or_else(|| "it has not answered in time".to_owned());
            return format!("the hub cannot be read: {why}");
        }
        let (mut queue, mut tasks) = (Queue::default(), JoinSet::new());
        let now = Instant::now();
        for name in hub.names().into_iter().chain(registrations.names()) {
            queue.push(&name, now);
        }
        let joins = Arc::new(Joins {
            hub,
            registrations,
            effects,
            policies: parts.policies.clone(),
            knowledge: parts.knowledge.clone(),
            metrics: parts.metrics.clone(),
            log: Log(parts.log.clone()),
            holder: parts.holder.0.clone(),
            auto_approval: auto_approval.clone(),
            emergency: emergency.clone(),
            turn: tokio::sync::Mutex::default(),
            attempts: std::sync::Mutex::default(),
            clock,
            unlimited: std::sync::Mutex::default(),
            keyless: std::sync::Mutex::default(),
            unseen: std::sync::Mutex::default(),
        });
        let mut inputs = self.inputs(auto_approval, emergency);
        let mut round = Instant::now();
        let mut ticks = tokio::time::interval(LOOKS);
        loop {
            let now = Instant::now();
            while tasks.len() < AT_ONCE
                && let Some(name) = queue.take(now)
            {
                let joins = joins.clone();
                tasks.spawn(async move {
                    let next = joins.look(&name).await;
                    (name, next)
                });
            }
            parts.metrics.leading(true, queue.waiting());
            let running = tasks.len();
            let next = queue.next().filter(|_| running < AT_ONCE);
            let due = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some(wake) = woken.recv() => match wake {
                    Wake::Name(name) => queue.touch(&name, Instant::now()),
                    Wake::Waiting => queue.touch_asking(Instant::now()),
                },
                Some(done) = tasks.join_next(), if running > 0 => match done {
                    Ok((name, next)) => queue.done(&name, next, Instant::now()),
                    // A task that is gone has lost its name: everything is looked at anew.
                    Err(error) => return format!("a decision was broken off: {error}"),
                },
                () = due => {}
                _ = ticks.tick() => {
                    // What the hub's clock says is asked anew.
                    if let Some(why) = joins.clock.wrong() {
                        return why;
                    }
                    let (now, current) = (Instant::now(), self.inputs(auto_approval, emergency));
                    if current != inputs && now >= round {
                        // Those that wait for nobody may be accepted by the hub from now on.
                        if current.2 != inputs.2 {
                            joins.hub.names().iter().for_each(|name| queue.touch(name, now));
                        }
                        // Another policy may limit acceptances that had no end; nobody waits for that.
                        if current.0 != inputs.0 {
                            let at = (0..).map(|index| now + APART * index);
                            joins.hub.names().iter().zip(at).for_each(|(name, at)| queue.touch_later(name, at));
                        }
                        inputs = current;
                        queue.touch_asking(now);
                        // Asking many takes its time, and the next round has to leave some for those who are new.
                        let cost = Duration::from_millis(1) * u32::try_from(queue.asking()).unwrap_or(u32::MAX);
                        round = now + ROUNDS.max(cost * SHARE);
                    }
                }
            }
        }
    }

    /// Another value as soon as policies, what they know of the hub, what it does by itself, or whether they are in force have changed.
    fn inputs(&self, auto_approval: &AutoApproval, emergency: &Emergency) -> (u64, u64, (bool, bool)) {
        (self.0.policies.generation(), self.0.knowledge.revision(), (auto_approval.is_on(), emergency.is_on()))
    }
}
