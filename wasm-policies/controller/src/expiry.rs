//! Acceptances that policies gave for a time: they are asked again before it is over, and withdrawn when it is.
//!
//! ```text
//! accepted ─▶ ask about the acceptance ─▶ obligations of the Registration ─▶ … asked again ─▶ more time, or no limit
//!                                                                                   └──▶ intent ─▶ withdraw ─▶ result
//! ```

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use ocm_api::ManagedCluster;
use ocm_api::registration::{RegistrationIntent, RegistrationObligation, RegistrationStatus};
use ocm_core::policy_engine::{CONTROLLER, NAMESPACE};
use ocm_policy_engine::Deadline;
use ocm_policy_rules::Answer;
use ocm_policy_rules::obligation::{Step, step};
use ocm_policy_rules::review::{self, Asking};

use crate::effects::about;
use crate::failed::Failed;
use crate::held::acceptance;
use crate::hub::Snapshot;
use crate::joins::{DECIDES, Joins, LONGEST, Unlimited, Written};
use crate::queue::Next;
use crate::status::{self, Said, Waiting};

/// For so long after it began to act, the controller does not take a policy that gives no answer for one that gives no more
/// time: what policies ask for may not have arrived yet.
const SETTLES: Duration = Duration::from_secs(60);
/// When they are asked again meanwhile, and when a cluster that was held is looked at again at the latest.
const SOON: Duration = Duration::from_secs(1);

/// It is told of an acceptance that is still there for so long after its end.
const OVERDUE: SignedDuration = SignedDuration::from_secs(30);

/// What follows from the time of an acceptance.
pub(crate) enum Looked {
    /// The look goes on with what is written from now on, and the cluster is looked at again.
    GoesOn(Box<RegistrationStatus>, Next),
    /// It ends here.
    Ends(Next),
}

impl Joins {
    fn unlimited(&self) -> MutexGuard<'_, Unlimited> {
        self.unlimited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing is known of its acceptance any more.
    pub(crate) fn forget(&self, name: &str) {
        self.unlimited().remove(name);
    }

    /// Looks at the acceptance of a cluster.
    pub(crate) async fn acceptance(
        &self,
        snapshot: &Snapshot,
        cluster: &ManagedCluster,
        before: RegistrationStatus,
        now: Timestamp,
    ) -> Result<Looked, Failed> {
        let (name, uid) = (&snapshot.name, cluster.metadata.uid.as_ref());
        if !cluster.spec.hub_accepts_client.unwrap_or_default() {
            self.forget(name);
            let left = self.not_accepted(snapshot, cluster, before, now).await?;
            return Ok(Looked::GoesOn(left.into(), Next::Rest));
        }
        let known = status::limits(&before.obligations, uid);
        let asked = (uid.cloned(), self.policies.generation());
        // Nobody deletes by halves, and what was asked needs not be asked again.
        if cluster.metadata.deletion_timestamp.is_some()
            || (known.is_empty() && self.unlimited().get(name) == Some(&asked))
        {
            return Ok(Looked::GoesOn(before.into(), Next::Rest));
        }
        let said = self.ask_about(snapshot, now).await?;
        match step(&known, said.allowing.as_deref(), now.as_millisecond()) {
            Step::Stand { limits, again } => {
                let obligations = status::obligations(&limits, &before.obligations, &said.opinions, uid);
                let next = match (again, said.answer.verdict) {
                    (Some(again), _) => {
                        self.forget(name);
                        Next::Limited(Duration::from_millis(again.try_into().unwrap_or_default()).min(LONGEST))
                    }
                    // Whoever limits it may not have been able to say so.
                    (None, Answer::Error | Answer::Hold) => Next::After(LONGEST),
                    (None, Answer::Allow | Answer::Deny | Answer::NoOpinion) => {
                        self.unlimited().insert(name.clone(), asked);
                        Next::Rest
                    }
                };
                Ok(Looked::GoesOn(RegistrationStatus { obligations, ..before }.into(), next))
            }
            Step::Withdraw(_) if said.answer.verdict == Answer::Error && self.clock.age() < SETTLES => {
                Ok(Looked::GoesOn(before.into(), Next::Limited(SOON)))
            }
            // What policies do not say while they are out of force on purpose takes nothing away. That end is looked at again.
            Step::Withdraw(_) if self.emergency.is_on() => Ok(Looked::GoesOn(before.into(), Next::Limited(LONGEST))),
            Step::Withdraw(_) => {
                let obligations = before.obligations.clone();
                let withdrawn = self.withdraw(snapshot, cluster, before, &said, now).await;
                if let Err(failed) = &withdrawn {
                    self.overdue(cluster, &obligations, failed, now).await;
                }
                Ok(Looked::Ends(withdrawn?))
            }
        }
    }

    /// What is written of a cluster that is not accepted: whether that was our doing.
    async fn not_accepted(
        &self,
        snapshot: &Snapshot,
        cluster: &ManagedCluster,
        mut before: RegistrationStatus,
        now: Timestamp,
    ) -> Result<RegistrationStatus, Failed> {
        let uid = cluster.metadata.uid.as_ref();
        if before.intent.as_ref().is_some_and(|intent| intent.withdraw) && before.cluster_uid.as_ref() == uid {
            return self.withdrawn(snapshot, cluster, before, now).await;
        }
        // Somebody else took it back. Whoever accepts it again does not do so for a time that is over.
        let over = |due: &str| due.parse::<Timestamp>().map_or(true, |due| due <= now);
        if before.obligations.iter().any(|one| over(&one.due)) {
            before.obligations.retain(|one| !over(&one.due));
            self.registrations.write(&self.effects, &snapshot.name, before.clone()).await?;
        }
        Ok(before)
    }

    /// Asks the policies whether the cluster could be accepted now, as the webhook asks them when the controller accepts it.
    async fn ask_about(&self, snapshot: &Snapshot, now: Timestamp) -> Result<Said, Failed> {
        let object = snapshot.object.clone().ok_or(Failed::Changed)?;
        let (policies, states) = (self.policies.clone(), self.policies.states());
        let asked = tokio::task::spawn_blocking(move || {
            // What policies want to change was changed when it was accepted, so the stage is none that refuses that.
            let asking =
                Asking { now: now.as_millisecond(), wants_object: true, carries_out: true, ..Asking::default() };
            let user = format!("system:serviceaccount:{NAMESPACE}:{CONTROLLER}");
            let review = acceptance(&object, &user, NAMESPACE);
            let question = review::from_admission(&review, &asking).map_err(|error| error.to_string())?.into_owned();
            Ok::<_, String>(Said::of(&policies.evaluate(question, &Deadline::after(DECIDES)), &states))
        });
        match asked.await {
            Ok(Ok(said)) => Ok(said),
            // Of what cannot be read nobody gives more time: what was given ends as it does where policies fail.
            Ok(Err(why)) => {
                self.log.refused(&snapshot.name, &format!("policies cannot be evaluated: it cannot be read: {why}"));
                Ok(Said::nothing())
            }
            Err(_) => Err(Failed::Late),
        }
    }

    /// Withdraws an acceptance whose time is over. It is written down first, so that whoever looks next knows whose doing it
    /// was.
    async fn withdraw(
        &self,
        snapshot: &Snapshot,
        cluster: &ManagedCluster,
        before: RegistrationStatus,
        said: &Said,
        now: Timestamp,
    ) -> Result<Next, Failed> {
        self.hold_first(snapshot, cluster).await?;
        let intent = RegistrationIntent {
            withdraw: true,
            cluster_version: cluster.metadata.resource_version.clone().unwrap_or_default(),
            holder: status::bounded(&self.holder, 253),
            at: status::time(now),
            ..RegistrationIntent::default()
        };
        let new = RegistrationStatus {
            verdict: status::verdict(said.answer.verdict),
            cluster_uid: cluster.metadata.uid.clone(),
            decision: Some(said.decision(now)),
            intent: Some(intent),
            ..before
        };
        self.registrations.write(&self.effects, &snapshot.name, new.clone()).await?;
        let version = self.effects.withdraw(cluster).await?;
        self.withdrawn(snapshot, cluster, new, now).await?;
        // Whoever looked at the cluster as it was would take it for one that somebody has accepted again.
        self.until_shown(&[Written::cluster(&snapshot.name, version)]).await?;
        Ok(Next::Rest)
    }

    /// Tells of an acceptance that could not be withdrawn, and once of one that is there long after its end.
    async fn overdue(
        &self,
        cluster: &ManagedCluster,
        obligations: &[RegistrationObligation],
        failed: &Failed,
        now: Timestamp,
    ) {
        let (name, uid) = (cluster.metadata.name.as_deref().unwrap_or_default(), cluster.metadata.uid.as_ref());
        // What was not seen yet was written.
        if matches!(failed, Failed::NotLeading | Failed::Unseen) {
            return;
        }
        // Of every other reason whoever looked tells.
        if matches!(failed, Failed::Changed) {
            self.log.undone(name, "Changed", &format!("it was not withdrawn: {failed}"));
        }
        let end = status::expiry(obligations, uid, now).at;
        if end.parse::<Timestamp>().is_ok_and(|end| now.duration_since(end) < OVERDUE) {
            return;
        }
        let mark = format!("overdue/{}/{end}", uid.map(String::as_str).unwrap_or_default());
        let mark = ocm_policy_engine::digest(mark.as_bytes());
        let told = format!("its acceptance ended at {end}, and could not be withdrawn so far: {failed}");
        self.effects.tell_once(about(cluster), &mark[..16], "AcceptanceNotWithdrawn", false, &told).await;
    }

    /// Tells of an acceptance that was withdrawn, once, and writes down that it was.
    async fn withdrawn(
        &self,
        snapshot: &Snapshot,
        cluster: &ManagedCluster,
        before: RegistrationStatus,
        now: Timestamp,
    ) -> Result<RegistrationStatus, Failed> {
        let uid = cluster.metadata.uid.as_ref();
        let expiry = status::expiry(&before.obligations, uid, now);
        let told = status::told(&expiry);
        let mark = format!("{}/{}", uid.map(String::as_str).unwrap_or_default(), expiry.at);
        let mark = ocm_policy_engine::digest(mark.as_bytes());
        let new = Waiting::for_a_person(&told).noted_in(RegistrationStatus {
            expired: Some(expiry),
            obligations: Vec::new(),
            approved_by: Vec::new(),
            intent: None,
            ..before
        });
        self.effects.tell_once(about(cluster), &mark[..16], "AcceptanceExpired", false, &told).await;
        self.registrations.write(&self.effects, &snapshot.name, new.clone()).await?;
        self.metrics.join("Expired");
        self.log.decided(&snapshot.name, "Expired", &new);
        Ok(new)
    }
}
