//! What a decision is about: what was typed, what the hub holds of a cluster, and what both say of its requests.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use ocm_api::Condition;
use ocm_api::cluster::ManagedCluster;
use ocm_api::conditions::{self, managed_cluster};
use ocm_api::registration::RegistrationKey;
use ocm_rules::claim::{self, Claimant, Holder, Namespace};
use ocm_rules::cluster as content;

use super::noted::last_end;
use crate::csr::{Code, Request, Settings, State, Violation};
use crate::order::Collect as _;

/// What the user typed that bears on the decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Who may ask, and for how long a certificate.
    pub settings: Settings,
    /// How the cluster was chosen.
    pub chosen: Chosen,
    /// The selector that has chosen it, in kubectl's syntax, if one has: it holds also when the cluster is let in later.
    pub selector: Option<String>,
    /// The fingerprint of the request that is meant, `sha256:` and 64 hex digits.
    pub fingerprint: Option<String>,
    /// Keys of the agent that is meant which were approved before and which it has lost: they stand in the way of no key.
    pub former: Vec<String>,
    /// UID of the managed cluster that is meant; none: whichever has the name.
    pub uid: Option<String>,
    /// Whether a name that another key holds may go to the one that asks.
    pub replace: bool,
    /// Whether a name that was used before may be used again.
    pub reuse_name: bool,
    /// Whether a cluster is accepted though the hub has no request of it any more; where a key is meant, of that key, and
    /// whatever others ask for.
    pub without_request: bool,
    /// Whether labels, taints and the like that the cluster was registered with are meant.
    pub as_registered: bool,
    /// Sets besides `default` that clusters may register into.
    pub cluster_sets: Vec<String>,
}

/// How a cluster was chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Chosen {
    /// By its name.
    #[default]
    ByName,
    /// By a selector, or as one of all: nobody thought of this very cluster.
    InBulk,
}

/// What the hub holds of a cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found<'a> {
    /// The object.
    pub cluster: Option<&'a ManagedCluster>,
    /// The namespace of its name.
    pub namespace: Namespace,
    /// When the ClusterRole of its agents was created, if there is one.
    pub role_created: Option<Timestamp>,
    /// What the policy controller has noted of the name, if anything: see [`noted()`](super::noted()).
    pub registration: Option<claim::Registration<'a>>,
    /// Whether it has noted that the hub accepted this very cluster before.
    pub accepted_before: bool,
    /// Whether it has noted that a request for the name of this very cluster was denied.
    pub denied_before: bool,
    /// The keys that it has noted of the name.
    pub noted_keys: &'a [RegistrationKey],
    /// The requests that carry its label.
    pub requests: &'a [&'a Request],
    /// Users besides the usual ones whom the hub itself lets register clusters: see [`crate::bootstrap`].
    pub bound_accounts: &'a [String],
    /// The time; none where nothing is to be said of what lies in the future.
    pub now: Option<Timestamp>,
}

/// How much the hub's clock may be ahead of ours.
const SKEW: SignedDuration = SignedDuration::from_mins(5);

/// A request with its index among all that were found.
pub(super) type Indexed<'a> = (usize, &'a Request);

/// The settings of the user, with everybody whom the hub lets register clusters.
pub(super) fn settings(found: &Found<'_>, options: &Options) -> Settings {
    let mut settings = options.settings.clone();
    settings.requesters.extend_from_slice(found.bound_accounts);
    settings
}

/// What is decided about.
pub(super) struct Case<'a> {
    pub(super) name: &'a str,
    pub(super) cluster: &'a ManagedCluster,
    pub(super) holder: Holder,
    pub(super) facts: claim::Facts<'a>,
    pub(super) options: &'a Options,
    /// Those of the options, with everybody who may ask.
    pub(super) settings: Settings,
    /// What is said to have happened later has not.
    latest: Option<Timestamp>,
    denied_before: bool,
    noted_keys: &'a [RegistrationKey],
    pub(super) requests: Vec<Indexed<'a>>,
}

impl<'a> Case<'a> {
    /// The case of a cluster that the hub has, under its own name.
    pub(super) fn new(
        name: &'a str,
        cluster: &'a ManagedCluster,
        holder: Holder,
        found: &Found<'a>,
        options: &'a Options,
    ) -> Self {
        let facts = claim::Facts {
            name,
            uid: cluster.metadata.uid.as_deref(),
            holder: Some(holder),
            namespace: found.namespace,
            role_created: millis(found.role_created),
            registration: found.registration,
            now: millis(found.now),
        };
        let requests =
            found.requests.iter().copied().enumerate().filter(|(_, request)| request.facts().is_first_of(name));
        let settings = settings(found, options);
        let latest = found.now.and_then(|now| now.checked_add(SKEW).ok());
        Self {
            name,
            cluster,
            holder,
            facts,
            options,
            settings,
            latest,
            denied_before: found.denied_before,
            noted_keys: found.noted_keys,
            requests: requests.collect(),
        }
    }

    pub(super) fn violations(&self, request: &Request) -> Vec<Violation> {
        request.violations(self.name, &self.settings)
    }

    pub(super) fn is_right(&self, request: &Request) -> bool {
        self.violations(request).is_empty()
    }

    /// The pending requests, right and wrong ones.
    pub(super) fn pending(&self) -> impl Iterator<Item = Indexed<'a>> {
        self.requests.iter().copied().filter(|(_, request)| request.state == State::Pending)
    }

    /// All requests that say something about who holds the name.
    pub(super) fn claimants(&self) -> impl Iterator<Item = Claimant<'a>> + Clone {
        self.requests.iter().filter_map(|(_, request)| self.claimant(request))
    }

    /// The same without the agent's own former keys.
    pub(super) fn claimants_but_former(&self) -> impl Iterator<Item = Claimant<'a>> + Clone {
        let is_former = |request: &Request| request.fingerprint().is_some_and(|key| self.options.former.contains(&key));
        let others = self.requests.iter().filter(move |(_, request)| !is_former(request));
        others.filter_map(|(_, request)| self.claimant(request))
    }

    fn claimant(&self, request: &'a Request) -> Option<Claimant<'a>> {
        let key = request.key_digest().unwrap_or_default();
        claim::claimant(&request.facts(), key, self.state(request), self.name, &self.settings)
    }

    fn state(&self, request: &Request) -> claim::State {
        match request.state {
            State::Pending => claim::State::Pending,
            State::Approved | State::Issued => claim::State::Granted { at: self.decided(request) },
            State::Denied => claim::State::Denied { at: self.decided(request) },
            State::Failed => claim::State::Failed,
        }
    }

    /// When a request was decided about. Whoever may approve may also write when; of the future, nobody can tell.
    pub(super) fn decided(&self, request: &Request) -> Option<i64> {
        millis(request.decided.filter(|decided| self.latest.is_none_or(|latest| *decided <= latest)))
    }

    /// Requests that were approved in this registration and whose certificates are identities on the hub.
    pub(super) fn granted_now(&self) -> impl Iterator<Item = Indexed<'a>> {
        let now = |claimant: Claimant<'_>| claim::is_of_registration(&self.holder, claimant.state);
        self.requests.iter().copied().filter(move |(_, request)| self.claimant(request).is_some_and(now))
    }

    /// Whether somebody denied a request for the name, of those that the hub still has or before, and nobody let the cluster in
    /// all the same.
    pub(super) fn denied(&self) -> Option<Violation> {
        let noted = self.denied_before.then_some(Claimant { key: "", state: claim::State::Denied { at: None } });
        claim::denied(&self.holder, self.claimants().chain(noted))
    }

    /// Whether another key than that of the request of this index was approved in this registration, as far as that was noted: the
    /// hub may not tell it any more, and whoever holds its certificate may be about to join.
    pub(super) fn noted_another(&self, index: Option<usize>) -> Option<Violation> {
        let is_own =
            |noted: claim::Registration<'_>| noted.cluster_uid.is_some() && noted.cluster_uid == self.facts.uid;
        // The keys of another registration are traces of an earlier holder.
        if self.holder.joined || !self.facts.registration.is_some_and(is_own) {
            return None;
        }
        let request = self.requests.iter().find(|(other, _)| Some(*other) == index);
        let key = request.and_then(|(_, request)| request.key_digest());
        // Where nobody knows the time, each counts.
        let is_alive = |noted: &RegistrationKey| millis(last_end([noted.until.as_str()])) > self.facts.now;
        let is_another = |noted: &RegistrationKey| Some(noted.spki_sha256.as_str()) != key;
        self.noted_keys
            .iter()
            .any(|noted| is_alive(noted) && is_another(noted))
            .then(|| Violation::new(Code::NameTaken, "spec.request", "another key was approved for this name"))
    }

    /// Who besides holds the name or waits for it, so that `request` does not simply get it.
    pub(super) fn rivals(&self, request: &Request) -> Option<Violation> {
        claim::rivals(&self.holder, request.key_digest().unwrap_or_default(), self.claimants())
    }
}

/// What the hub says of a cluster itself, with what was noted of it: its agent may take away what the hub says.
pub(super) fn holder(cluster: &ManagedCluster, found: &Found<'_>) -> Holder {
    let joined = conditions::find(conditions_of(cluster), managed_cluster::JOINED)
        .filter(|condition| condition.status == conditions::TRUE);
    Holder {
        created: millis(cluster.metadata.creation_timestamp.as_ref().map(|time| time.0)),
        deleting: cluster.metadata.deletion_timestamp.is_some(),
        accepted: cluster.spec.hub_accepts_client.unwrap_or_default(),
        accepted_by_hub: content::is_accepted_by_hub(
            cluster
                .metadata
                .annotations
                .as_ref()
                .and_then(|annotations| annotations.get(content::ACCEPTED_BY_HUB))
                .map(String::as_str),
        ),
        accepted_before: found.accepted_before
            || conditions::find(conditions_of(cluster), managed_cluster::HUB_ACCEPTED).is_some(),
        joined: joined.is_some(),
        joined_at: millis(joined.map(|condition| condition.last_transition_time.0)),
    }
}

fn millis(time: Option<Timestamp>) -> Option<i64> {
    time.map(Timestamp::as_millisecond)
}

fn conditions_of(cluster: &ManagedCluster) -> &[Condition] {
    cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default()
}

/// The fingerprints of requests, each once; those that cannot be read have none.
pub(super) fn keys<'a>(requests: impl IntoIterator<Item = Indexed<'a>>) -> Vec<String> {
    let distinct: BTreeSet<String> =
        requests.into_iter().filter_map(|(_, request)| request.fingerprint()).collect_set();
    distinct.into_iter().collect()
}
