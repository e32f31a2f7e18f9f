//! What is written down of a registration, within bounds: neither clock nor client.

use std::collections::BTreeMap;
use std::fmt;

use jiff::{SignedDuration, Timestamp};
use ocm_api::registration::{
    MAX_CODES, MAX_KEYS, MAX_POLICIES, MAX_RECORD, MAX_TEXT, RegistrationDecision, RegistrationExpiry,
    RegistrationKeeper, RegistrationKeptOutBy, RegistrationKey, RegistrationNotAsked, RegistrationObligation,
    RegistrationOpinion, RegistrationRequest, RegistrationRequester, RegistrationSeen, RegistrationStatus,
    RegistrationVerdict,
};
use ocm_core::accept;
use ocm_core::csr::{Request, Settings, State};
use ocm_policy_engine::{Final, NotAsked};
use ocm_policy_rules::obligation::{self, Allows, EXPIRE_ACCEPTANCE, Limit};
use ocm_policy_rules::{Answer, Combined, approving, combine};
use ocm_rules::claim::Registration;

/// Ends of certificates are rounded up to full hours: what is known of them is when they were approved.
const HOUR: i64 = 3600;
const MAX_CODE: usize = 64;

/// What a cluster waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// In a sentence.
    pub(crate) why: String,
    /// Who keeps it out.
    pub(crate) by: RegistrationKeptOutBy,
}

impl Waiting {
    /// For a person who decides, for this reason.
    pub(crate) fn for_a_person(why: impl fmt::Display) -> Self {
        Self::of(format!("a person: {why}"), RegistrationKeeper::Person)
    }

    /// For the hub, which refused what was to be done, for this reason.
    pub(crate) fn for_the_hub(why: impl fmt::Display) -> Self {
        Self::of(format!("the hub: {why}"), RegistrationKeeper::Hub)
    }

    /// For these policies, which say this.
    pub(crate) fn for_policies<'a>(names: impl IntoIterator<Item = &'a str>, why: String) -> Self {
        let policies = names.into_iter().take(MAX_POLICIES).map(|name| bounded(name, 63)).collect();
        let by = RegistrationKeptOutBy { who: RegistrationKeeper::Policies, policies };
        Self { why, by }
    }

    fn of(why: String, who: RegistrationKeeper) -> Self {
        Self { why, by: RegistrationKeptOutBy { who, policies: Vec::new() } }
    }

    /// The status of a cluster that waits for it.
    pub(crate) fn noted_in(self, status: RegistrationStatus) -> RegistrationStatus {
        RegistrationStatus { waiting_for: Some(sentence(&self.why)), kept_out_by: Some(self.by), ..status }
    }
}

/// What the policies said, for the controller and for whoever reads it later.
pub(crate) struct Said {
    pub(crate) answer: Combined,
    pub(crate) approving: Vec<String>,
    /// Those that allow it, and for how long; none: together they do not.
    pub(crate) allowing: Option<Vec<Allows>>,
    pub(crate) opinions: Vec<RegistrationOpinion>,
    pub(crate) not_asked: Vec<RegistrationNotAsked>,
    pub(crate) record_sha256: Option<String>,
    pub(crate) record: Option<String>,
}

impl Said {
    /// Where policies cannot be asked.
    pub(crate) fn nothing() -> Self {
        Self {
            answer: Combined { verdict: Answer::Error, ..combine::<ocm_policy_rules::Outcome>(&[]) },
            approving: Vec::new(),
            allowing: None,
            opinions: Vec::new(),
            not_asked: Vec::new(),
            record_sha256: None,
            record: None,
        }
    }

    /// Of a decision of policies that are in this state.
    pub(crate) fn of(made: &Final, states: &BTreeMap<String, ocm_policy_server::State>) -> Self {
        let said = || made.asked().iter().map(|one| (one.enforcement(), one.outcome()));
        let approving: Vec<String> = approving(made.answer.verdict, said()).into_iter().map(str::to_owned).collect();
        let opinions = made.asked().iter().take(MAX_POLICIES).map(|one| {
            let codes = match &one.outcome().result {
                Ok(decision) => decision.reasons.iter().map(|reason| bounded(&reason.code, MAX_CODE)).collect(),
                Err(error) => vec![error.code().to_owned()],
            };
            let state = states.get(one.place());
            RegistrationOpinion {
                policy: bounded(one.place(), 63),
                module_sha256: state.and_then(|state| match &state.candidate {
                    Some(candidate) if one.is_candidate() => candidate.sha256.clone(),
                    _ => state.sha256.clone(),
                }),
                generation: state.map(|state| state.observed.1),
                verdict: verdict(Answer::of(&one.outcome().result).unwrap_or(Answer::NoOpinion)),
                codes: codes.into_iter().take(MAX_CODES).collect(),
            }
        });
        let opinions = opinions.collect();
        // Policies about other operations have nothing to do with it: to list them would hide those that have.
        let concerned = made.not_asked().iter().filter(|(_, why)| *why != NotAsked::OtherOperations);
        let not_asked = concerned.take(MAX_POLICIES).map(|(place, why)| RegistrationNotAsked {
            policy: bounded(place, 63),
            generation: states.get(place).map(|state| state.observed.1),
            unmet_conditions: why.unmet().iter().take(MAX_CODES).map(|name| bounded(name, MAX_CODE)).collect(),
        });
        let not_asked = not_asked.collect();
        let records = made.records();
        // Of an allow, that of a policy that approves: the others only do not object.
        let decides = if approving.is_empty() { &made.answer.deciding } else { &approving };
        let deciding = records.iter().find(|record| decides.contains(&record.policy.name));
        let record = deciding.map(ocm_policy_rules::record::Record::canonical);
        Self {
            answer: made.answer.clone(),
            allowing: obligation::allowing(made.answer.verdict, said()),
            approving,
            opinions,
            not_asked,
            record_sha256: deciding.map(ocm_policy_rules::record::Record::digest),
            record: record.filter(|record| record.chars().count() <= MAX_RECORD),
        }
    }

    pub(crate) fn decision(&self, now: Timestamp) -> RegistrationDecision {
        RegistrationDecision {
            at: time(now),
            policies: self.opinions.clone(),
            not_asked: self.not_asked.clone(),
            record_sha256: self.record_sha256.clone(),
            record: self.record.clone(),
        }
    }
}

pub(crate) fn verdict(answer: Answer) -> RegistrationVerdict {
    match answer {
        Answer::NoOpinion => RegistrationVerdict::NoOpinion,
        Answer::Allow => RegistrationVerdict::Allow,
        Answer::Hold => RegistrationVerdict::Hold,
        Answer::Error => RegistrationVerdict::Error,
        Answer::Deny => RegistrationVerdict::Deny,
    }
}

/// A text of at most so many characters, all of which can be shown.
pub(crate) fn bounded(text: &str, most: usize) -> String {
    text.chars().take(most).map(|character| if character.is_control() { ' ' } else { character }).collect()
}

pub(crate) fn sentence(text: &str) -> String {
    bounded(text, MAX_TEXT)
}

pub(crate) fn time(time: Timestamp) -> String {
    time.round(jiff::Unit::Second).unwrap_or(time).to_string()
}

pub(crate) fn requester(request: &Request) -> RegistrationRequester {
    RegistrationRequester {
        username: sentence(request.asked_by()),
        uid: request.requester.uid.as_deref().map(sentence),
        credential_id: request.requester.credential_ids.first().map(|id| sentence(id)),
    }
}

pub(crate) fn request(request: &Request) -> RegistrationRequest {
    RegistrationRequest {
        name: bounded(&request.name, 253),
        uid: bounded(request.uid.as_deref().unwrap_or_default(), 63),
        spki_sha256: request.key_digest().unwrap_or_default().to_owned(),
    }
}

/// Until when a certificate of a request may be valid that was approved then. A key that cannot be read is one that nobody knows.
pub(crate) fn key(request: &Request, approved: Timestamp, settings: &Settings) -> RegistrationKey {
    let lifetime = request.lifetime_seconds.map_or(settings.signer_default_seconds, i64::from);
    RegistrationKey {
        // An end that cannot be told cannot be read, and so it never comes.
        until: end(approved, lifetime).unwrap_or_default(),
        spki_sha256: request.key_digest().unwrap_or_default().to_owned(),
    }
}

/// The key that nobody knows, of certificates that were approved at this time at the latest: until when they may be valid.
fn unknown_key(approved: Timestamp, settings: &Settings) -> RegistrationKey {
    let longest = settings.max_lifetime_seconds.max(settings.signer_default_seconds);
    // An end that cannot be told cannot be read, and so it never comes.
    RegistrationKey { until: end(approved, longest).unwrap_or_default(), spki_sha256: String::new() }
}

/// When certificates have ended that were approved then and are valid for so long.
fn end(approved: Timestamp, lifetime: i64) -> Option<String> {
    let ends = approved.checked_add(SignedDuration::from_secs(lifetime)).ok()?;
    let until = Timestamp::from_second((ends.as_second() / HOUR + 1) * HOUR).ok()?;
    Some(until.to_string())
}

/// Those of the requests of a cluster whose certificates may have the rights of its agents.
fn granted<'a>(name: &str, requests: impl IntoIterator<Item = &'a Request>) -> impl Iterator<Item = &'a Request> {
    let is_granted = |request: &&Request| matches!(request.state, State::Approved | State::Issued);
    requests.into_iter().filter(is_granted).filter(move |request| request.may_act_for(name))
}

/// The keys that were approved for the agents of a cluster, out of its requests.
pub(crate) fn keys<'a>(
    name: &str,
    requests: impl IntoIterator<Item = &'a Request>,
    now: Timestamp,
    settings: &Settings,
) -> Vec<RegistrationKey> {
    granted(name, requests).map(|request| key(request, request.decided.unwrap_or(now), settings)).collect()
}

/// Whether one of these keys was approved before there was the cluster, and so for another one of its name. What cannot be told
/// is taken for the worse.
pub(crate) fn are_of_another<'a>(
    name: &str,
    requests: impl IntoIterator<Item = &'a Request>,
    created: Option<Timestamp>,
) -> bool {
    granted(name, requests)
        .any(|request| request.decided.zip(created).is_none_or(|(decided, created)| decided < created))
}

/// Both lists as one: each key once, with its later end, and of too many those that end last. Ended ones are left out.
pub(crate) fn merged(known: &[RegistrationKey], new: Vec<RegistrationKey>, now: Timestamp) -> Vec<RegistrationKey> {
    let mut latest: BTreeMap<String, RegistrationKey> = BTreeMap::new();
    for key in known.iter().cloned().chain(new).filter(|key| is_alive(key, now)) {
        let there = latest.entry(key.spki_sha256.clone()).or_insert_with(|| key.clone());
        // Both are written alike, so the later one is the greater text.
        if there.until < key.until {
            *there = key;
        }
    }
    let mut all: Vec<RegistrationKey> = latest.into_values().collect();
    all.sort_by(|one, other| other.cmp(one));
    all.truncate(MAX_KEYS);
    all
}

/// What was written of the cluster of this UID, and the keys of the name as they are known now. What was decided about an
/// earlier cluster of the name does not speak of this one.
fn of_cluster(
    before: RegistrationStatus,
    uid: Option<String>,
    granted: Vec<RegistrationKey>,
    now: Timestamp,
) -> RegistrationStatus {
    let is_other = before.cluster_uid.is_some() && before.cluster_uid != uid;
    let keys = merged(&before.keys, granted, now);
    let mut obligations = before.obligations.clone();
    obligations.retain(|obligation| Some(&obligation.cluster_uid) == uid.as_ref());
    // Each of these says itself which cluster it is about.
    let (accepted_before, denied_before) = (before.accepted_before.clone(), before.denied_before.clone());
    let decided = if is_other { RegistrationStatus::default() } else { before };
    RegistrationStatus {
        cluster_uid: uid,
        keys,
        removed_at: None,
        obligations,
        accepted_before,
        denied_before,
        ..decided
    }
}

/// What is written of the cluster of this UID, with the keys of the name that are granted now. Until the known ones have ended
/// they stay those of the cluster that they are noted for, and all others with them. Of new ones that are another's, as
/// [`are_of_another`] tells, nobody knows whose they are.
pub(crate) fn with_keys(
    before: RegistrationStatus,
    uid: Option<String>,
    granted: Vec<RegistrationKey>,
    are_of_another: bool,
    now: Timestamp,
) -> RegistrationStatus {
    let keys = merged(&before.keys, granted.clone(), now);
    match last_end(&before.keys, now) {
        Some(_) => RegistrationStatus { keys, ..before },
        None if keys.is_empty() => before,
        None => {
            let new = of_cluster(before, uid, granted, now);
            let cluster_uid = new.cluster_uid.clone().filter(|_| !are_of_another);
            RegistrationStatus { cluster_uid, ..new }
        }
    }
}

/// The cluster that the keys of a name are noted for, or, where there are none, this one.
pub(crate) fn owner(before: &RegistrationStatus, uid: Option<String>, now: Timestamp) -> Option<String> {
    match last_end(&before.keys, now) {
        Some(_) => before.cluster_uid.clone(),
        None => uid,
    }
}

/// What is written of the cluster of this UID, with what is seen of it: whether it is accepted, and whether a request for its
/// name was denied and nobody has let it in all the same. That it was accepted stays so, whoever takes away the traces of it.
pub(crate) fn seen(
    before: RegistrationStatus,
    uid: Option<&String>,
    is_accepted: bool,
    is_denied: bool,
    now: Timestamp,
) -> RegistrationStatus {
    let Some(uid) = uid else { return before };
    let new = || RegistrationSeen { cluster_uid: uid.clone(), at: time(now) };
    let own = |known: Option<RegistrationSeen>| known.filter(|known| known.cluster_uid == *uid);
    let accepted_before = own(before.accepted_before).or_else(|| is_accepted.then(new));
    let denied_before = is_denied.then(|| own(before.denied_before).unwrap_or_else(new));
    RegistrationStatus { accepted_before, denied_before, ..before }
}

/// Whether the hub was seen to accept this very cluster.
pub(crate) fn was_accepted(status: &RegistrationStatus, uid: Option<&String>) -> bool {
    is_of(status.accepted_before.as_ref(), uid)
}

/// Whether a request for the name of this very cluster was seen as denied.
pub(crate) fn was_denied(status: &RegistrationStatus, uid: Option<&String>) -> bool {
    is_of(status.denied_before.as_ref(), uid)
}

fn is_of(seen: Option<&RegistrationSeen>, uid: Option<&String>) -> bool {
    seen.is_some_and(|seen| seen.is_of(uid.map(String::as_str)))
}

/// What is written of a cluster about which there is nothing to decide.
pub(crate) fn settled(
    before: RegistrationStatus,
    uid: Option<String>,
    granted: Vec<RegistrationKey>,
    now: Timestamp,
) -> RegistrationStatus {
    RegistrationStatus {
        waiting_for: None,
        kept_out_by: None,
        intent: None,
        // Somebody has accepted it since.
        expired: None,
        ..of_cluster(before, uid, granted, now)
    }
}

/// What is written of a cluster that is in and of which no key is known. Whatever was decided about it stands.
pub(crate) fn with_unknown_key(
    before: RegistrationStatus,
    uid: Option<String>,
    settings: &Settings,
    now: Timestamp,
) -> RegistrationStatus {
    of_cluster(before, uid, vec![unknown_key(now, settings)], now)
}

/// For how long policies have this cluster accepted. A time that cannot be read is over.
pub(crate) fn limits(obligations: &[RegistrationObligation], uid: Option<&String>) -> Vec<Limit> {
    let own = obligations.iter().filter(|one| one.name == EXPIRE_ACCEPTANCE && Some(&one.cluster_uid) == uid);
    own.map(|one| Limit {
        policy: one.policy.clone(),
        seconds: one.within_seconds,
        due: one.due.parse::<Timestamp>().map_or(0, Timestamp::as_millisecond),
        reason: one.reason.clone(),
    })
    .collect()
}

/// What is written of these limits of a cluster. What was written of them before stays as it is.
pub(crate) fn obligations(
    limits: &[Limit],
    before: &[RegistrationObligation],
    opinions: &[RegistrationOpinion],
    uid: Option<&String>,
) -> Vec<RegistrationObligation> {
    let known = self::limits(before, uid);
    let written = |limit: &Limit| {
        let own = before.iter().filter(|one| one.name == EXPIRE_ACCEPTANCE && Some(&one.cluster_uid) == uid);
        own.zip(&known).find(|(_, known)| *known == limit).map(|(one, _)| one.clone())
    };
    let new = |limit: &Limit| {
        let policy = bounded(&limit.policy, 63);
        let opinion = opinions.iter().find(|opinion| opinion.policy == policy);
        RegistrationObligation {
            name: EXPIRE_ACCEPTANCE.to_owned(),
            module_sha256: opinion.and_then(|opinion| opinion.module_sha256.clone()),
            due: time(Timestamp::from_millisecond(limit.due).unwrap_or(Timestamp::MIN)),
            within_seconds: limit.seconds,
            reason: limit.reason.as_deref().map(sentence),
            cluster_uid: uid.cloned().unwrap_or_default(),
            policy,
        }
    };
    limits.iter().map(|limit| written(limit).unwrap_or_else(|| new(limit))).collect()
}

/// What is written of an acceptance whose time is over: those of the obligations that are.
pub(crate) fn expiry(
    obligations: &[RegistrationObligation],
    uid: Option<&String>,
    now: Timestamp,
) -> RegistrationExpiry {
    let mut over = limits(obligations, uid);
    over.retain(|limit| limit.due <= now.as_millisecond());
    over.sort_by(|one, other| (one.due, &one.policy).cmp(&(other.due, &other.policy)));
    let first = over.first();
    let at = first.and_then(|first| Timestamp::from_millisecond(first.due).ok()).unwrap_or(now);
    RegistrationExpiry {
        at: time(at),
        policies: over.iter().map(|limit| bounded(&limit.policy, 63)).collect(),
        reason: first.and_then(|first| first.reason.as_deref().map(sentence)),
    }
}

/// What an acceptance that ended is told as.
pub(crate) fn told(expiry: &RegistrationExpiry) -> String {
    let RegistrationExpiry { at, policies, reason } = expiry;
    let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let word = if policies.len() == 1 { "policy" } else { "policies" };
    format!(
        "its acceptance ended at {at}, {word} {} gave no more time{reason} (AcceptanceExpired)",
        policies.join(", ")
    )
}

/// Whether the acceptance of this very cluster was withdrawn because its time was over.
pub(crate) fn expired<'s>(status: &'s RegistrationStatus, uid: Option<&String>) -> Option<&'s RegistrationExpiry> {
    status.expired.as_ref().filter(|_| status.cluster_uid.as_ref() == uid)
}

/// Whether certificates of a key may be valid. What cannot be read is taken for the worse.
fn is_alive(key: &RegistrationKey, now: Timestamp) -> bool {
    key.until.parse::<Timestamp>().map_or(true, |until| until > now)
}

fn ends(keys: &[RegistrationKey]) -> impl Iterator<Item = &str> {
    keys.iter().map(|key| key.until.as_str())
}

/// When the last certificate has ended; none: all have.
pub(crate) fn last_end(keys: &[RegistrationKey], now: Timestamp) -> Option<Timestamp> {
    accept::last_end(ends(keys)).filter(|end| *end > now)
}

/// What is written of a cluster, as a fact of the rules.
pub(crate) fn noted(status: &RegistrationStatus) -> Registration<'_> {
    accept::noted(status.cluster_uid.as_deref(), ends(&status.keys))
}

/// Whether both say the same, but for when it was said.
pub(crate) fn is_same(one: &RegistrationStatus, other: &RegistrationStatus) -> bool {
    let timeless = |status: &RegistrationStatus| {
        let mut status = status.clone();
        if let Some(decision) = &mut status.decision {
            decision.at.clear();
            // The time is in it.
            decision.record = None;
            decision.record_sha256 = None;
        }
        if let Some(intent) = &mut status.intent {
            intent.at.clear();
        }
        status
    };
    timeless(one) == timeless(other)
}

#[cfg(test)]
mod tests {
    use ocm_core::csr::Unreadable;
    use serde_json::json;

    use super::*;

    fn known(key: &str, until: &str) -> RegistrationKey {
        RegistrationKey { until: until.to_owned(), spki_sha256: key.to_owned() }
    }

    #[test]
    fn keys_are_kept_until_their_last_certificate_has_ended() {
        let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
        let old = [known("a", "2026-07-01T00:00:00Z"), known("ended", "2026-05-01T00:00:00Z"), known("?", "soon")];
        let all = merged(&old, vec![known("a", "2026-08-01T00:00:00Z"), known("b", "2026-06-02T00:00:00Z")], now);
        let names: Vec<&str> = all.iter().map(|key| key.spki_sha256.as_str()).collect();
        assert_eq!(names, ["?", "a", "b"]);
        assert_eq!(all[1].until, "2026-08-01T00:00:00Z");
        assert_eq!(last_end(&all[1..], now), "2026-08-01T00:00:00Z".parse().ok());
        assert_eq!(last_end(&old[1..2], now), None);
        assert_eq!(last_end(&all, now), Some(Timestamp::MAX), "nobody knows");
    }

    #[test]
    fn whoever_asks_often_does_not_make_the_list_longer() {
        let now = Timestamp::UNIX_EPOCH;
        let many =
            (0..100).map(|number| known(&format!("k{number}"), &format!("2026-01-01T00:{:02}:00Z", number % 60)));
        let kept = merged(&[], many.collect(), now);
        assert_eq!(kept.len(), MAX_KEYS);
        assert!(kept.iter().all(|key| key.until.as_str() >= "2026-01-01T00:44:00Z"), "those that end last");
    }

    #[test]
    fn what_strangers_wrote_is_cut_and_can_be_shown() {
        assert_eq!(sentence("a\u{1b}[31mb\n"), "a [31mb ");
        assert_eq!(sentence(&"é".repeat(5000)).chars().count(), MAX_TEXT);
    }

    #[test]
    fn what_was_decided_about_an_earlier_cluster_is_not_said_of_the_one_that_a_person_let_in() {
        let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
        let before = RegistrationStatus {
            verdict: RegistrationVerdict::Allow,
            cluster_uid: Some("old".to_owned()),
            keys: vec![known("a", "2026-07-01T00:00:00Z")],
            approved_by: vec!["approves".to_owned()],
            decision: Some(RegistrationDecision::default()),
            removed_at: Some("2026-05-01T00:00:00Z".to_owned()),
            ..RegistrationStatus::default()
        };
        let uid = |uid: &str| Some(uid.to_owned());
        let same = settled(before.clone(), uid("old"), Vec::new(), now);
        assert_eq!(same, RegistrationStatus { removed_at: None, ..before.clone() });
        let other = settled(before.clone(), uid("new"), Vec::new(), now);
        let nothing = RegistrationStatus::default();
        assert_eq!(other, RegistrationStatus { cluster_uid: uid("new"), keys: before.keys, ..nothing });
    }

    #[test]
    fn a_name_whose_keys_nobody_knows_is_used_until_the_longest_certificate_has_ended() {
        let now: Timestamp = "2026-06-01T00:10:00Z".parse().unwrap();
        let uid = |uid: &str| Some(uid.to_owned());
        let new = with_unknown_key(RegistrationStatus::default(), uid("u"), &Settings::default(), now);
        let keys = vec![known("", "2027-06-01T01:00:00Z")];
        assert_eq!(new, RegistrationStatus { cluster_uid: uid("u"), keys, ..RegistrationStatus::default() });
        // It is its own as long as it is there, and another one's afterwards.
        let until = |uid, now: Timestamp| noted(&new).of_another_until(uid, Some(now.as_millisecond()));
        let end: Timestamp = "2027-06-01T01:00:00Z".parse().unwrap();
        assert_eq!(until(Some("u"), now), None);
        assert_eq!(until(Some("other"), now), Some(end.as_millisecond()));
        assert_eq!(until(Some("other"), end), None);
        // Whoever is looked at again is not written again, and a key that is told later stands beside it.
        assert!(is_same(&new, &settled(new.clone(), uid("u"), Vec::new(), now + SignedDuration::from_hours(5))));
        let told = settled(new.clone(), uid("u"), vec![known("a", "2026-07-01T00:00:00Z")], now);
        assert_eq!(told.keys, [known("", "2027-06-01T01:00:00Z"), known("a", "2026-07-01T00:00:00Z")]);
        let far = with_unknown_key(RegistrationStatus::default(), None, &Settings::default(), Timestamp::MAX);
        assert_eq!(last_end(&far.keys, now), Some(Timestamp::MAX), "nobody can tell");
    }

    #[test]
    fn an_unknown_key_changes_nothing_of_what_was_decided_about_the_same_cluster() {
        let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
        let before = RegistrationStatus {
            cluster_uid: Some("u".to_owned()),
            waiting_for: Some("a person".to_owned()),
            kept_out_by: Some(RegistrationKeptOutBy::default()),
            keys: vec![known("ended", "2026-05-01T00:00:00Z")],
            obligations: vec![obligation("p", "2026-07-01T00:00:00Z", "u")],
            expired: Some(RegistrationExpiry::default()),
            ..RegistrationStatus::default()
        };
        let same = with_unknown_key(before.clone(), before.cluster_uid.clone(), &Settings::default(), now);
        assert_eq!(same.keys, [known("", "2027-06-01T01:00:00Z")]);
        assert_eq!(same, RegistrationStatus { keys: same.keys.clone(), ..before.clone() });
        let other = with_unknown_key(before, Some("new".to_owned()), &Settings::default(), now);
        assert_eq!((other.expired, other.waiting_for, other.kept_out_by), (None, None, None));
        assert_eq!(other.obligations, Vec::new());
    }

    fn obligation(policy: &str, due: &str, uid: &str) -> RegistrationObligation {
        RegistrationObligation {
            name: EXPIRE_ACCEPTANCE.to_owned(),
            policy: policy.to_owned(),
            module_sha256: Some("before".to_owned()),
            due: due.to_owned(),
            within_seconds: 60,
            reason: Some("a trial".to_owned()),
            cluster_uid: uid.to_owned(),
        }
    }

    #[test]
    fn limits_are_those_of_this_very_cluster_and_one_that_cannot_be_read_is_over() {
        let uid = "u1".to_owned();
        let due = "2026-06-01T00:00:00Z";
        let all = [obligation("p", due, "u1"), obligation("q", "soon", "u1"), obligation("r", due, "u2")];
        let read = limits(&all, Some(&uid));
        let due_of: Vec<_> = read.iter().map(|limit| (limit.policy.as_str(), limit.due)).collect();
        assert_eq!(due_of, [("p", due.parse::<Timestamp>().unwrap().as_millisecond()), ("q", 0)]);
        let now = due.parse().unwrap();
        let expiry = expiry(&all, Some(&uid), now);
        assert_eq!(
            (expiry.at.as_str(), expiry.policies.clone()),
            ("1970-01-01T00:00:00Z", vec!["q".to_owned(), "p".to_owned()])
        );
        assert!(told(&expiry).starts_with("its acceptance ended at 1970-01-01T00:00:00Z, policies q, p gave"));
    }

    #[test]
    fn what_stands_is_written_as_it_was_and_what_is_new_with_its_module() {
        let uid = "u1".to_owned();
        let before = [obligation("p", "2026-06-01T00:00:00Z", "u1"), obligation("q", "2026-06-01T00:00:00Z", "u2")];
        let mut limits = limits(&before, Some(&uid));
        limits.push(Limit { policy: "q".to_owned(), seconds: 90, due: 1_780_272_000_400, reason: None });
        let opinion = |policy: &str| RegistrationOpinion {
            policy: policy.to_owned(),
            module_sha256: Some("now".to_owned()),
            ..RegistrationOpinion::default()
        };
        let written = obligations(&limits, &before, &[opinion("p"), opinion("q")], Some(&uid));
        assert_eq!(written[0], before[0]);
        let new = RegistrationObligation {
            within_seconds: 90,
            reason: None,
            module_sha256: Some("now".to_owned()),
            ..obligation("q", "2026-06-01T00:00:00Z", "u1")
        };
        assert_eq!(written[1..], [new]);
    }

    fn approved(name: &str, content: Unreadable, decided: Option<&str>) -> Request {
        let object = json!({
            "metadata": {"name": name, "creationTimestamp": "2026-06-01T00:00:00Z"},
            "spec": {"request": "", "signerName": "kubernetes.io/kube-apiserver-client", "expirationSeconds": 3600},
        });
        let decided = decided.map(|decided| decided.parse().unwrap());
        let read = Request::read(&serde_json::from_value(object).unwrap());
        Request { state: State::Approved, content: Err(content), decided, ..read }
    }

    #[test]
    fn whatever_may_give_the_rights_of_an_agent_is_noted_as_a_key() {
        let now: Timestamp = "2026-06-01T00:30:00Z".parse().unwrap();
        let of = |request: &Request| keys("c1", [request], now, &Settings::default());
        let request = approved("r", Unreadable::Text, Some("2026-06-01T00:10:00Z"));
        assert_eq!(of(&request), [known("", "2026-06-01T02:00:00Z")], "nobody can read its key");
        assert_eq!(of(&Request { decided: None, ..request.clone() }), [known("", "2026-06-01T02:00:00Z")], "by now");
        assert!(of(&Request { state: State::Pending, ..request.clone() }).is_empty());
        assert!(of(&Request { signer: "example.com/s".to_owned(), ..request }).is_empty());
    }

    #[test]
    fn keys_that_were_approved_before_there_was_the_cluster_are_not_its_own() {
        let now: Timestamp = "2026-06-01T00:30:00Z".parse().unwrap();
        let created = "2026-06-01T00:20:00Z".parse().ok();
        let at = |decided| approved("r", Unreadable::Text, decided);
        let of_another = |decided| are_of_another("c1", [&at(decided)], created);
        assert!(of_another(Some("2026-06-01T00:19:59Z")) && of_another(None));
        assert!(!of_another(Some("2026-06-01T00:20:00Z")));
        assert!(are_of_another("c1", [&at(Some("2026-06-01T00:20:00Z"))], None));
        assert!(!are_of_another("c1", [], created));
        let uid = |uid: &str| Some(uid.to_owned());
        let (a, b) = (known("a", "2026-07-01T00:00:00Z"), known("b", "2026-08-01T00:00:00Z"));
        let nothing = RegistrationStatus::default();
        let own = with_keys(nothing.clone(), uid("u"), vec![a.clone()], false, now);
        assert_eq!(own, RegistrationStatus { cluster_uid: uid("u"), keys: vec![a.clone()], ..nothing.clone() });
        let unknown = with_keys(nothing.clone(), uid("u"), vec![a.clone()], true, now);
        assert_eq!(unknown, RegistrationStatus { cluster_uid: None, ..own.clone() });
        assert_eq!(noted(&unknown).of_another_until(Some("u"), Some(now.as_millisecond())), noted(&own).until);
        // Whose they are is known until they have ended; that nobody knows it, too.
        for (known, cluster) in [(&own, uid("u")), (&unknown, None)] {
            for uid in [uid("u"), uid("next")] {
                let more = with_keys(known.clone(), uid.clone(), vec![b.clone()], false, now);
                assert_eq!((&more.cluster_uid, more.keys.len()), (&cluster, 2));
                assert_eq!(owner(&more, uid, now), cluster);
            }
        }
        let later = "2026-07-01T00:00:00Z".parse().unwrap();
        let next = with_keys(unknown, uid("next"), vec![b.clone()], false, later);
        assert_eq!((&next.cluster_uid, &next.keys), (&uid("next"), &vec![b]));
        assert_eq!(with_keys(nothing.clone(), uid("u"), vec![a], true, later), nothing, "it has ended");
        assert_eq!(owner(&nothing, uid("u"), now), uid("u"));
    }

    #[test]
    fn what_was_seen_of_a_cluster_holds_for_it_alone_and_an_acceptance_for_good() {
        let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
        let later = now + SignedDuration::from_hours(1);
        let (own, other) = ("u1".to_owned(), "u2".to_owned());
        let new = seen(RegistrationStatus::default(), Some(&own), true, false, now);
        let mark = RegistrationSeen { cluster_uid: own.clone(), at: "2026-06-01T00:00:00Z".to_owned() };
        assert_eq!(new, RegistrationStatus { accepted_before: Some(mark.clone()), ..RegistrationStatus::default() });
        assert!(was_accepted(&new, Some(&own)) && !was_accepted(&new, Some(&other)) && !was_accepted(&new, None));
        // Nothing that is seen later changes it, not even when.
        assert_eq!(seen(new.clone(), Some(&own), false, false, later), new);
        assert_eq!(seen(new.clone(), Some(&own), true, false, later), new);
        assert_eq!(seen(new.clone(), Some(&other), false, false, later), RegistrationStatus::default());
        // A denial holds until the cluster is let in.
        let denied = seen(RegistrationStatus::default(), Some(&own), false, true, now);
        assert_eq!(denied.denied_before, Some(mark));
        assert!(was_denied(&denied, Some(&own)) && !was_denied(&denied, Some(&other)));
        assert_eq!(seen(denied.clone(), Some(&own), false, true, later), denied);
        assert_eq!(seen(denied, Some(&own), true, false, later).denied_before, None);
        // Whatever else is written of the same cluster, and of the next one of the name.
        let settled = settled(new.clone(), Some(own.clone()), Vec::new(), later);
        assert!(was_accepted(&settled, Some(&own)));
        let of_earlier = RegistrationStatus { cluster_uid: Some(other), ..new };
        let unknown = with_unknown_key(of_earlier, Some(own.clone()), &Settings::default(), later);
        assert!(was_accepted(&unknown, Some(&own)));
    }

    #[test]
    fn time_alone_is_no_news() {
        let said = |at: &str, verdict| RegistrationStatus {
            verdict,
            decision: Some(RegistrationDecision {
                at: at.to_owned(),
                record: Some(at.to_owned()),
                ..Default::default()
            }),
            ..RegistrationStatus::default()
        };
        let hold = || RegistrationVerdict::Hold;
        assert!(is_same(&said("1", hold()), &said("2", hold())));
        assert!(!is_same(&said("1", hold()), &said("1", RegistrationVerdict::Deny)));
    }
}
