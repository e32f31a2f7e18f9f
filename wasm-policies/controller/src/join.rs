//! One look at one registration: what the rules say, what the policies say, and what follows.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use ocm_api::ManagedCluster;
use ocm_api::registration::{RegistrationIntent, RegistrationKey, RegistrationStatus, RegistrationVerdict};
use ocm_core::accept::{Chosen, Options, decide, is_denied};
use ocm_core::csr::{Request, State};
use ocm_policy_abi::Operation;
use ocm_policy_engine::Deadline;
use ocm_policy_rules::obligation;
use ocm_policy_rules::review::{self, Asking};
use serde_json::{Value, json};

use crate::expiry::Looked;
use crate::failed::Failed;
use crate::hub::{Asked, Snapshot, are_same};
use crate::joins::{Attempts, DECIDES, Joins, LONGEST, Question, Written};
use crate::queue::Next;
use crate::status::{self, Said, Waiting};
use crate::step::{Judged, Ruled, judged, ruled};

/// What was not read for so long is not known.
const OLDEST: Duration = Duration::from_secs(60);
/// A name that was used is looked at again after this time at the latest.
const TOMBSTONE: Duration = Duration::from_hours(6);
/// Why a cluster is not let in that was accepted before and is not any more, in the words of the rules.
const TAKEN_BACK: &str = "it was denied (DeniedBefore)";

/// A cluster and the request that it is to join with.
struct Subject<'s> {
    snapshot: &'s Snapshot,
    cluster: &'s ManagedCluster,
    object: &'s Arc<Value>,
    asked: &'s Arc<Asked>,
    csr: &'s Arc<Value>,
    approve: bool,
    accept: bool,
}

impl Subject<'_> {
    /// What the question is about: another cluster of the name, or another request, is another one.
    fn about(&self) -> Question {
        (uid(self.cluster), self.asked.request.uid.clone())
    }
}

/// The keys that requests of these were granted. Whoever has one of them keeps it whatever becomes of the cluster.
fn granted(snapshot: &Snapshot, options: &Options, now: Timestamp) -> Vec<RegistrationKey> {
    status::keys(&snapshot.name, snapshot.asked.iter().map(|asked| &asked.request), now, &options.settings)
}

/// What is written of a cluster, with the keys that requests for its name were granted.
fn noted(
    snapshot: &Snapshot,
    cluster: &ManagedCluster,
    before: RegistrationStatus,
    options: &Options,
    now: Timestamp,
) -> RegistrationStatus {
    let created = cluster.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let requests = snapshot.asked.iter().map(|asked| &asked.request);
    let of_another = status::are_of_another(&snapshot.name, requests, created);
    status::with_keys(before, uid(cluster), granted(snapshot, options, now), of_another, now)
}

impl Joins {
    fn attempts(&self) -> MutexGuard<'_, HashMap<String, Attempts>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why nothing can be decided at present.
    pub(crate) fn blind(&self) -> Option<String> {
        if !self.policies.is_complete() {
            return Some("the policies of the hub have not been read yet".to_owned());
        }
        if self.policies.age().is_none_or(|age| age > OLDEST) {
            return Some("the policies of the hub cannot be read".to_owned());
        }
        self.clock.wrong().or_else(|| self.hub.stale())
    }

    /// Whether policies count that are asked about joins.
    fn counts(&self) -> bool {
        self.policies.count(Operation::Join) || self.policies.count(Operation::Accept)
    }

    /// Looks at one name, and does what follows.
    pub(crate) async fn look(&self, name: &str) -> Next {
        match self.try_look(name).await {
            Ok(next) => next,
            Err(failed) => {
                self.metrics.join(match failed {
                    Failed::NotLeading => "NotLeading",
                    Failed::Changed => "Changed",
                    Failed::Late => "Late",
                    Failed::Unseen => "Unseen",
                    Failed::Refused(_) | Failed::Forbidden(_) | Failed::Invalid(_) => "Refused",
                });
                match failed {
                    Failed::Refused(why) | Failed::Forbidden(why) | Failed::Invalid(why) => {
                        self.refused(name, &why).await
                    }
                    Failed::Late => self.log.undone(name, "Late", &failed.to_string()),
                    Failed::Unseen => self.log.undone(name, "Unseen", &failed.to_string()),
                    Failed::NotLeading | Failed::Changed => {}
                }
                Next::Again
            }
        }
    }

    async fn try_look(&self, name: &str) -> Result<Next, Failed> {
        if self.blind().is_some() {
            self.see(&self.hub.snapshot(name));
            return Ok(Next::Again);
        }
        // Whoever counts must see what came of the one before.
        let turn = if self.counts() { Some(self.turn.lock().await) } else { None };
        if self.is_behind(Some(name)).await? {
            return Err(Failed::Unseen);
        }
        let snapshot = self.hub.snapshot(name);
        let Some(cluster) = &snapshot.cluster else {
            return match &snapshot.object {
                Some(object) => self.unreadable(&snapshot, object).await,
                None => self.gone(&snapshot).await,
            };
        };
        self.see(&snapshot);
        let (now, earliest) = (self.clock.now(), self.clock.earliest());
        let before = self.registrations.get(name).unwrap_or_default();
        let options = Options { chosen: Chosen::InBulk, ..Options::default() };
        let requests: Vec<&Request> = snapshot.asked.iter().map(|asked| &asked.request).collect();
        let uid = cluster.metadata.uid.as_ref();
        let accepted = cluster.spec.hub_accepts_client.unwrap_or_default();
        let denied = is_denied(name, &snapshot.found(&requests, &before, earliest), &options);
        let before = status::seen(before, uid, accepted, denied, now);
        let (before, again) = match self.acceptance(&snapshot, cluster, before, now).await? {
            Looked::GoesOn(before, again) => (*before, again),
            Looked::Ends(next) => return Ok(next),
        };
        let (before, later) = self.note_unknown_key(&snapshot, cluster, before, &options.settings, earliest).await?;
        let again = later.map_or(again, |pause| again.within(pause));
        let before = noted(&snapshot, cluster, before, &options, earliest);
        let decision = decide(name, &snapshot.found(&requests, &before, earliest), &options);
        let expired = if accepted { None } else { status::expired(&before, uid).map(status::told) };
        let has_expired = expired.is_some();
        let was_accepted = !accepted && status::was_accepted(&before, uid);
        let next = match (ruled(&decision), expired) {
            (Ruled::Nothing, None) if was_accepted => {
                let waiting = Waiting::for_a_person(TAKEN_BACK);
                Some(self.person(&snapshot, cluster, before, waiting).await?)
            }
            (Ruled::Nothing, _) => Some(self.settled(&snapshot, cluster, before, &options).await?),
            // Whoever gave it no more time is not asked whether it may come back.
            (_, Some(why)) => Some(self.person(&snapshot, cluster, before, Waiting::for_a_person(why)).await?),
            (Ruled::Person(refusal), None) => {
                let waiting = Waiting::for_a_person(format_args!("{} ({})", refusal.detail, refusal.code));
                Some(self.person(&snapshot, cluster, before, waiting).await?)
            }
            (Ruled::Ask { stands_on, approve, accept }, None) => {
                let subject = snapshot.asked.get(stands_on).zip(snapshot.object.as_ref());
                let Some((asked, object)) = subject else { return Ok(Next::Again) };
                match asked.object.as_ref().map(|object| Arc::new(object.read())) {
                    None => {
                        let waiting = Waiting::for_a_person("its request is too large");
                        Some(self.person(&snapshot, cluster, before, waiting).await?)
                    }
                    Some(csr) => {
                        let subject =
                            Subject { snapshot: &snapshot, cluster, object, asked, csr: &csr, approve, accept };
                        self.ask(&subject, before, &options).await?
                    }
                }
            }
        };
        // Who was let in is held by nothing.
        let Some(next) = next else { return Ok(again) };
        let held = self.hold(&snapshot, cluster, has_expired || was_accepted).await?;
        drop(turn);
        Ok(match (next, held, again) {
            (_, Next::Again, _) => Next::Again,
            (Next::Rest, Next::Rest, again) => again,
            (Next::Waits(pause), _, Next::Limited(again) | Next::After(again)) => Next::Waits(pause.min(again)),
            (Next::Rest, held, _) => held,
            (next, ..) => next,
        })
    }

    /// A person has to decide. Of clusters that nobody asks for, and of which nothing is known, nothing is written.
    async fn person(
        &self,
        snapshot: &Snapshot,
        cluster: &ManagedCluster,
        before: RegistrationStatus,
        waiting: Waiting,
    ) -> Result<Next, Failed> {
        let asks = snapshot.asked.iter().filter(|asked| asked.request.state == State::Pending);
        let held = RegistrationStatus { intent: None, approved_by: Vec::new(), ..before.clone() };
        let (new, next) = match asks.max_by_key(|asked| asked.request.created) {
            Some(newest) => {
                let new = RegistrationStatus {
                    verdict: RegistrationVerdict::Hold,
                    // While keys of an earlier cluster may be used, the name is that one's.
                    cluster_uid: status::owner(&before, uid(cluster), self.clock.earliest()),
                    requester: Some(status::requester(&newest.request)),
                    request: Some(status::request(&newest.request)),
                    decision: None,
                    ..held
                };
                (waiting.noted_in(new), Next::Waits(LONGEST))
            }
            None if before == RegistrationStatus::default() => return Ok(Next::Rest),
            // Nobody has to let it in.
            None if cluster.spec.hub_accepts_client.unwrap_or_default() => {
                self.registrations.write(&self.effects, &snapshot.name, before).await?;
                return Ok(Next::Rest);
            }
            None => (waiting.noted_in(held), Next::Rest),
        };
        self.tell(cluster, &before, &new, "Person").await;
        self.registrations.write(&self.effects, &snapshot.name, new).await?;
        Ok(next)
    }

    /// There is nothing to decide: whose keys it has is noted.
    async fn settled(
        &self,
        snapshot: &Snapshot,
        cluster: &ManagedCluster,
        before: RegistrationStatus,
        options: &Options,
    ) -> Result<Next, Failed> {
        let accepted = cluster.spec.hub_accepts_client.unwrap_or_default();
        let now = self.clock.earliest();
        let granted = granted(snapshot, options, now);
        let is_known = before != RegistrationStatus::default();
        if !is_known && (!accepted || granted.is_empty()) {
            return Ok(Next::Rest);
        }
        // What was seen of one that waits is kept.
        let new = if accepted { status::settled(before, uid(cluster), granted, now) } else { before };
        self.registrations.write(&self.effects, &snapshot.name, new).await?;
        Ok(Next::Rest)
    }

    /// The hub has it, and what its agent or somebody else wrote of it cannot be read. It is not let in, and if it was for a time,
    /// that time ends all the same.
    async fn unreadable(&self, snapshot: &Snapshot, object: &Value) -> Result<Next, Failed> {
        let unreadable = || Failed::Invalid("its ManagedCluster cannot be read".to_owned());
        let cluster = essential(object).ok_or_else(unreadable)?;
        if !cluster.spec.hub_accepts_client.unwrap_or_default() {
            return Err(unreadable());
        }
        let (before, now) = (self.registrations.get(&snapshot.name).unwrap_or_default(), self.clock.now());
        let uid = cluster.metadata.uid.as_ref();
        let denied = status::was_denied(&before, uid);
        let before = status::seen(before, uid, true, denied, now);
        match self.acceptance(snapshot, &cluster, before, now).await? {
            Looked::Ends(next) => Ok(next),
            Looked::GoesOn(before, _) => {
                self.registrations.write(&self.effects, &snapshot.name, *before).await?;
                Ok(Next::Waits(LONGEST))
            }
        }
    }

    /// The hub has no such cluster any more.
    async fn gone(&self, snapshot: &Snapshot) -> Result<Next, Failed> {
        let name = &snapshot.name;
        self.forget(name);
        let now = self.clock.earliest();
        self.attempts().remove(name);
        // What was approved and then not accepted may not be noted yet.
        let granted = granted(snapshot, &Options::default(), now);
        let before = match self.written_of_removed(name, now) {
            Some(before) => before,
            None if granted.is_empty() => return Ok(Next::Rest),
            // The hub may have the cluster, and this controller not know it yet.
            None if self.effects.version::<ManagedCluster>(name).await? != 0 => return Ok(Next::Again),
            // Nobody knows whose they are.
            None => RegistrationStatus::default(),
        };
        let keys = status::merged(&before.keys, granted, now);
        let before = RegistrationStatus { keys, ..before };
        let Some(end) = status::last_end(&before.keys, now) else {
            self.registrations.delete(&self.effects, name).await?;
            return Ok(Next::Rest);
        };
        let removed_at = before.removed_at.clone().or_else(|| Some(status::time(now)));
        let new = RegistrationStatus {
            removed_at,
            waiting_for: None,
            kept_out_by: None,
            intent: None,
            obligations: Vec::new(),
            ..before
        };
        self.registrations.write(&self.effects, name, new).await?;
        self.noted(name);
        let left = Duration::try_from(end.duration_since(now)).unwrap_or(TOMBSTONE);
        Ok(Next::After(left.min(TOMBSTONE)))
    }

    /// The hub refused what was to be done.
    async fn refused(&self, name: &str, why: &str) {
        self.log.refused(name, why);
        let Some(before) = self.registrations.get(name) else { return };
        // It may have been carried out all the same, and whose doing that was has to be known.
        let intent = before.intent.clone().filter(|intent| intent.withdraw);
        let new = Waiting::for_the_hub(why).noted_in(RegistrationStatus { intent, ..before });
        // What cannot be written now is written when it is tried again.
        let _ = self.registrations.write(&self.effects, name, new).await;
    }

    /// Asks the policies, and carries out what they say. None: it was let in.
    async fn ask(
        &self,
        subject: &Subject<'_>,
        before: RegistrationStatus,
        options: &Options,
    ) -> Result<Option<Next>, Failed> {
        let name = &subject.snapshot.name;
        let now = self.clock.now();
        // Evidence from before what was written would have those who count let in one too many.
        if self.counts() && self.is_behind(None).await? {
            return Err(Failed::Unseen);
        }
        let said = self.judge(subject, now).await?;
        let request = &subject.asked.request;
        let mut new = RegistrationStatus {
            verdict: status::verdict(said.answer.verdict),
            waiting_for: None,
            kept_out_by: None,
            cluster_uid: uid(subject.cluster),
            requester: Some(status::requester(request)),
            request: Some(status::request(request)),
            keys: status::merged(&before.keys, granted(subject.snapshot, options, now), self.clock.earliest()),
            intent: None,
            approved_by: Vec::new(),
            decision: Some(said.decision(now)),
            removed_at: None,
            obligations: before.obligations.clone(),
            expired: before.expired.clone(),
            accepted_before: before.accepted_before.clone(),
            denied_before: before.denied_before.clone(),
        };
        let policies = match judged(&said.answer, &said.approving.iter().map(String::as_str).collect::<Vec<_>>()) {
            Judged::Carry(policies) => policies,
            Judged::Wait { waiting, again } => {
                let new = waiting.noted_in(new);
                if new.verdict == RegistrationVerdict::Hold {
                    let mut attempts = self.attempts();
                    let known = attempts.entry(name.clone()).or_default();
                    *known = known.held(subject.about());
                }
                self.tell(subject.cluster, &before, &new, new.verdict.clone().as_str()).await;
                self.registrations.write(&self.effects, name, new).await?;
                let again = again.map_or(LONGEST, |seconds| Duration::from_secs(seconds.max(1).into()));
                return Ok(Some(Next::Waits(again.min(LONGEST))));
            }
        };
        // Another key may ask by now.
        if subject.approve && !self.effects.are_all(name, &subject.snapshot.asked).await? {
            return Err(Failed::Changed);
        }
        // What it is let in for is written before it is.
        let uid = subject.cluster.metadata.uid.as_ref();
        let known = status::limits(&before.obligations, uid);
        let limits = obligation::limits(&known, said.allowing.as_deref(), now.as_millisecond());
        new.obligations = status::obligations(&limits, &before.obligations, &said.opinions, uid);
        new.expired = None;
        new.approved_by = policies.clone();
        new.intent = Some(RegistrationIntent {
            approve: subject.approve.then(|| status::bounded(&request.name, 253)),
            accept: subject.accept,
            withdraw: false,
            cluster_version: subject.cluster.metadata.resource_version.clone().unwrap_or_default(),
            holder: status::bounded(&self.holder, 253),
            at: status::time(now),
        });
        self.registrations.write(&self.effects, name, new.clone()).await?;
        let mut carried = Vec::new();
        if subject.approve {
            // A list of several pages is as old as its first one: what was told of meanwhile counts, too.
            if !are_same(&subject.snapshot.asked, &self.hub.asked(name)) {
                return Err(Failed::Changed);
            }
            let key = request.fingerprint().unwrap_or_default();
            let message = format!("allowed by policy {}, key {key}", policies.join(", "));
            let version = self.effects.approve(subject.csr, &status::sentence(&message)).await?;
            carried.push(Written::request(&request.name, version));
        }
        if subject.accept {
            let has_spec = subject.object.get("spec").is_some_and(Value::is_object);
            let accepted = self.effects.accept(subject.cluster, has_spec, &said.answer.patch).await;
            if matches!(accepted, Err(Failed::Late | Failed::Refused(_))) {
                // It may have been accepted all the same, also where the server has failed, and then it counts for those who come
                // after it.
                let version = self.effects.version::<ManagedCluster>(name).await?;
                self.until_shown(&[Written::cluster(name, version)]).await?;
            }
            carried.push(Written::cluster(name, accepted?));
        }
        // It is in by now, whoever takes away what tells it.
        let mut new = status::seen(RegistrationStatus { intent: None, ..new }, uid, true, false, now);
        let key = status::key(request, now, &options.settings);
        new.keys = status::merged(&new.keys, vec![key], self.clock.earliest());
        self.attempts().remove(name);
        self.tell(subject.cluster, &before, &new, "Accepted").await;
        let written = self.registrations.write(&self.effects, name, new).await;
        // Whoever looked at the cluster as it was would take it for one whose acceptance somebody has taken back.
        self.until_shown(&carried).await?;
        written.map(|()| None)
    }

    /// Asks the policies. They compute: other registrations go on meanwhile.
    async fn judge(&self, subject: &Subject<'_>, now: Timestamp) -> Result<Said, Failed> {
        let known = self.attempts().get(&subject.snapshot.name).cloned().unwrap_or_default();
        let attempt = known.about(&subject.about());
        let asking = Asking {
            id: subject.asked.request.uid.clone().unwrap_or_default(),
            now: now.as_millisecond(),
            attempt,
            wants_object: true,
            carries_out: true,
            ..Asking::default()
        };
        let (csr, object) = (subject.csr.clone(), subject.object.clone());
        let policies = self.policies.clone();
        let states = self.policies.states();
        let asked = tokio::task::spawn_blocking(move || {
            let mut question = review::join(&csr, &object, &asking).map_err(|error| error.to_string())?.into_owned();
            question.creator = question.csr.as_ref().map(|csr| csr.requester.clone());
            let made = policies.evaluate(question, &Deadline::after(DECIDES));
            policies.compare(&made);
            policies.count_decisions(&made);
            Ok::<_, String>(Said::of(&made, &states))
        });
        match asked.await {
            Ok(Ok(said)) => Ok(said),
            Ok(Err(why)) => Err(Failed::Refused(format!("its registration cannot be read: {why}"))),
            Err(_) => Err(Failed::Late),
        }
    }

    /// Tells of a change of what was decided, in the log, the metrics and an event.
    async fn tell(&self, cluster: &ManagedCluster, before: &RegistrationStatus, now: &RegistrationStatus, what: &str) {
        self.metrics.join(match what {
            "Accepted" => "Accepted",
            "Person" => "Person",
            _ => "Waits",
        });
        let same = before.verdict == now.verdict
            && before.waiting_for == now.waiting_for
            && before.cluster_uid == now.cluster_uid
            && before.approved_by == now.approved_by;
        if same && before != &RegistrationStatus::default() {
            return;
        }
        self.log.decided(cluster.metadata.name.as_deref().unwrap_or_default(), what, now);
        let (reason, message) = match &now.waiting_for {
            None => {
                let until = now.obligations.first().map(|first| format!(" until {}", first.due)).unwrap_or_default();
                ("JoinAllowed", format!("accepted{until}: allowed by policy {}", now.approved_by.join(", ")))
            }
            Some(why) if now.verdict == RegistrationVerdict::Deny => ("JoinDenied", why.clone()),
            Some(why) => ("JoinHeld", format!("waits for {why}")),
        };
        self.effects.tell(cluster, reason, now.waiting_for.is_none(), &message).await;
    }
}

/// Which cluster it is and whether it is accepted: nothing that is not the API server's own, or a truth value.
fn essential(object: &Value) -> Option<ManagedCluster> {
    let metadata = object.get("metadata")?;
    let own = ["name", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "annotations"];
    let own = own.into_iter().filter_map(|member| Some((member.to_owned(), metadata.get(member)?.clone())));
    let spec = json!({"hubAcceptsClient": object.pointer("/spec/hubAcceptsClient")});
    serde_json::from_value(json!({"metadata": Value::Object(own.collect()), "spec": spec})).ok()
}

fn uid(cluster: &ManagedCluster) -> Option<String> {
    cluster.metadata.uid.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_cluster_that_cannot_be_read_it_is_known_which_it_is_and_whether_it_is_accepted() {
        let object = |accepted: Value| {
            json!({
                "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                "metadata": {"name": "c1", "uid": "u1", "resourceVersion": "7", "annotations": {"a": "b"}},
                "spec": {"hubAcceptsClient": accepted, "leaseDurationSeconds": "soon"},
                "status": {"conditions": "none"},
            })
        };
        assert!(serde_json::from_value::<ManagedCluster>(object(true.into())).is_err(), "it needs none of this");
        let read = |accepted: Value| essential(&object(accepted)).unwrap();
        let cluster = read(true.into());
        assert_eq!((uid(&cluster).as_deref(), cluster.metadata.resource_version.as_deref()), (Some("u1"), Some("7")));
        assert_eq!(cluster.metadata.annotations.unwrap()["a"], "b");
        assert_eq!(cluster.spec.hub_accepts_client, Some(true));
        assert_eq!(read(Value::Null).spec.hub_accepts_client, None);
        assert!(essential(&object("yes".into())).is_none());
    }
}
