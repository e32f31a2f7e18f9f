//! Clusters that are in and of which no key is known: their certificates were approved before anybody noted keys, and the hub
//! has collected the requests since. An unknown key is noted of each, so that its name counts as used after it is removed.

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use ocm_api::ManagedCluster;
use ocm_api::conditions::is_true;
use ocm_api::conditions::managed_cluster::JOINED;
use ocm_api::registration::RegistrationStatus;
use ocm_core::csr::Settings;
use tokio::time::Instant;

use crate::failed::Failed;
use crate::hub::Snapshot;
use crate::joins::{Joins, Keyless, Seen};
use crate::status;

/// For so long a request that tells the key may still be on its way: twice what is known of requests may be old.
const ARRIVES: Duration = Duration::from_mins(2);

/// What follows from what is known of the keys of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    /// It is looked at again after this time.
    Later(Duration),
    /// An unknown key of the cluster of this UID is noted.
    Note(Option<String>),
}

/// `is_noted`: a living key of the name is noted. `is_keyless`: the cluster of this UID, which the hub has, is in, and no
/// request tells its key.
fn step(is_noted: bool, is_keyless: bool, uid: Option<&String>, seen: Option<&Seen>, now: Instant) -> Step {
    match seen {
        _ if is_noted => Step::Nothing,
        // Another cluster has taken the name before anything was noted.
        Some(seen) if seen.uid.as_ref() != uid => Step::Note(seen.uid.clone()),
        _ if !is_keyless => Step::Nothing,
        None => Step::Later(ARRIVES),
        Some(seen) => {
            let left = ARRIVES.saturating_sub(now.saturating_duration_since(seen.since));
            if left.is_zero() { Step::Note(seen.uid.clone()) } else { Step::Later(left) }
        }
    }
}

/// Whether the agent of a cluster has joined, so that it has a certificate. One that is only accepted may never have asked.
fn is_in(cluster: &ManagedCluster) -> bool {
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    is_true(conditions, JOINED)
}

impl Joins {
    fn keyless(&self) -> MutexGuard<'_, Keyless> {
        self.keyless.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a cluster that is in until it is told whether a key of it is known: it may be removed before.
    pub(crate) fn see(&self, snapshot: &Snapshot) {
        if let Some(cluster) = snapshot.cluster.as_ref().filter(|cluster| is_in(cluster)) {
            let new = || Seen { uid: cluster.metadata.uid.clone(), since: Instant::now() };
            self.keyless().entry(snapshot.name.clone()).or_insert_with(new);
        }
    }

    /// Notes an unknown key of a cluster that is in and of which no key is known. What is written of it from now on, and when
    /// it is to be looked at again at the latest.
    pub(crate) async fn note_unknown_key(
        &self,
        snapshot: &Snapshot,
        cluster: &ManagedCluster,
        before: RegistrationStatus,
        settings: &Settings,
        now: Timestamp,
    ) -> Result<(RegistrationStatus, Option<Duration>), Failed> {
        let (name, uid) = (&snapshot.name, cluster.metadata.uid.as_ref());
        let is_noted = status::last_end(&before.keys, now).is_some();
        let is_untold = || {
            let requests = snapshot.asked.iter().map(|asked| &asked.request);
            status::last_end(&status::keys(name, requests, now, settings), now).is_none()
        };
        let is_keyless = !is_noted && is_in(cluster) && is_untold();
        let seen = self.keyless().get(name).cloned();
        match step(is_noted, is_keyless, uid, seen.as_ref(), Instant::now()) {
            Step::Nothing => {
                self.noted(name);
                Ok((before, None))
            }
            Step::Later(pause) => Ok((before, Some(pause))),
            Step::Note(uid) => {
                let new = status::with_unknown_key(before, uid, settings, now);
                self.registrations.write(&self.effects, name, new.clone()).await?;
                self.noted(name);
                Ok((new, None))
            }
        }
    }

    /// What is written of a name that the hub has no cluster of any more, with an unknown key where none was noted in time.
    pub(crate) fn written_of_removed(&self, name: &str, now: Timestamp) -> Option<RegistrationStatus> {
        let written = self.registrations.get(name);
        let is_noted = written.as_ref().is_some_and(|written| status::last_end(&written.keys, now).is_some());
        let seen = self.keyless().get(name).cloned();
        match seen {
            Some(seen) if !is_noted => {
                let written = written.unwrap_or_default();
                Some(status::with_unknown_key(written, seen.uid, &Settings::default(), now))
            }
            _ => written,
        }
    }

    /// What is known of the keys of a name is noted.
    pub(crate) fn noted(&self, name: &str) {
        self.keyless().remove(name);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn of_a_cluster_whose_requests_are_gone_an_unknown_key_is_noted_once_they_cannot_be_on_their_way() {
        let (uid, now) = ("u".to_owned(), Instant::now());
        let of = |is_noted, seen: Option<&Seen>, now| step(is_noted, true, Some(&uid), seen, now);
        assert_eq!(of(false, None, now), Step::Later(ARRIVES));
        let seen = Seen { uid: Some(uid.clone()), since: now };
        let second = Duration::from_secs(1);
        assert_eq!(of(false, Some(&seen), now + second), Step::Later(ARRIVES - second));
        assert_eq!(of(false, Some(&seen), now + ARRIVES), Step::Note(Some(uid.clone())));
        // Once it is noted, no look writes it again.
        assert_eq!(of(true, Some(&seen), now + ARRIVES), Step::Nothing);
        assert_eq!(of(true, None, now), Step::Nothing);
    }

    #[test]
    fn of_a_cluster_that_is_not_in_or_whose_key_a_request_tells_nothing_is_noted() {
        let (uid, now) = ("u".to_owned(), Instant::now());
        let seen = Seen { uid: Some(uid.clone()), since: now };
        for seen in [None, Some(&seen)] {
            assert_eq!(step(false, false, Some(&uid), seen, now + ARRIVES), Step::Nothing);
        }
    }

    #[test]
    fn a_cluster_whose_name_another_one_has_taken_at_once_is_noted_all_the_same() {
        let (uid, now) = ("new".to_owned(), Instant::now());
        let seen = Seen { uid: Some("old".to_owned()), since: now };
        for is_keyless in [true, false] {
            assert_eq!(step(false, is_keyless, Some(&uid), Some(&seen), now), Step::Note(seen.uid.clone()));
            assert_eq!(step(true, is_keyless, Some(&uid), Some(&seen), now), Step::Nothing);
        }
    }

    #[test]
    fn whoever_has_joined_is_in_and_not_who_is_only_accepted() {
        let cluster = |accepted: bool, joined: &str| -> ManagedCluster {
            let condition = json!({
                "type": JOINED, "status": joined, "reason": "Test", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            });
            let object: Value = json!({
                "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                "metadata": {"name": "c1"}, "spec": {"hubAcceptsClient": accepted},
                "status": {"conditions": [condition]},
            });
            serde_json::from_value(object).unwrap()
        };
        assert!(is_in(&cluster(true, "True")) && is_in(&cluster(false, "True")));
        assert!(!is_in(&cluster(true, "False")) && !is_in(&ManagedCluster::default()));
    }
}
