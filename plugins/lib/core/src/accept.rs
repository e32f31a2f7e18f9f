//! Whether a cluster may be accepted, and with which certificate request.
//!
//! ```text
//! ManagedCluster ─┐
//! its requests ───┼─▶ decide ─▶ Act { approve, accept } | Settled { stray } | NoRequest | Refused { code, detail, help }
//! its namespace ──┘
//! ```

use std::collections::BTreeSet;

use jiff::Timestamp;
use ocm_api::Condition;
use ocm_api::cluster::ManagedCluster;
use ocm_api::conditions::{self, managed_cluster};
use ocm_rules::claim::{self, Claimant, Holder, Namespace};
use ocm_rules::cluster::{self as content};

use crate::csr::{Code, Request, Settings, State, Violation};
use crate::{name, registration};

/// What the user typed that bears on the decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Who may ask, and for how long a certificate.
    pub settings: Settings,
    /// How the cluster was chosen.
    pub chosen: Chosen,
    /// The fingerprint of the request that is meant, `sha256:` and 64 hex digits.
    pub fingerprint: Option<String>,
    /// Whether a name that another key holds may go to the one that asks.
    pub replace: bool,
    /// Whether a name that was used before may be used again.
    pub reuse_name: bool,
    /// Whether a cluster is accepted though the hub has no request of it any more.
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
    /// The requests that carry its label.
    pub requests: &'a [Request],
    /// Users besides the usual ones whom the hub itself lets register clusters: see [`crate::bootstrap`].
    pub bound_accounts: &'a [String],
}

/// What is to be done for one cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Approve this request, if any, and then accept the cluster, if it is not yet.
    Act {
        /// Index of the request to approve; none if an approved one is there already.
        approve: Option<usize>,
        /// Index of the request that the decision is based on: the one to approve, or the approved one. None if the
        /// cluster joined before it was denied, so that its agent holds a certificate already, or if the user accepts
        /// it without a request.
        stands_on: Option<usize>,
        /// Whether `hubAcceptsClient` is still to be set.
        accept: bool,
    },
    /// It is accepted already and nothing of its own waits for approval.
    Settled {
        /// Indexes of pending requests for its name that are not its own, or that break a rule.
        stray: Vec<usize>,
    },
    /// The agent has not asked yet, or what it asked for is gone.
    NoRequest,
    /// It is not accepted.
    Refused(Refusal),
}

/// Why a cluster is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The stable word.
    pub code: Code,
    /// What was found.
    pub detail: String,
    /// What would help.
    pub help: Option<Help>,
}

/// What would help. How to type it is the business of the commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Help {
    /// To name the key that is meant: these are there.
    NameKey(Vec<String>),
    /// To give the name to the key that asks.
    Replace,
    /// To use the name again; until then certificates of the former holder may be valid.
    ReuseName(Option<Timestamp>),
    /// To accept the cluster without a request.
    WithoutRequest,
    /// To accept what the cluster was registered with.
    AsRegistered,
    /// To allow clusters of this set.
    ClusterSet(String),
    /// To let this user register clusters.
    Requester(String),
    /// To allow longer lifetimes.
    Lifetime,
    /// To look at a request.
    Request(String),
    /// To delete a request, so that the agent asks again.
    AskAgain(String),
    /// To name the cluster.
    ByName(String),
    /// To join the cluster under another name.
    OtherName,
    /// To look at the agent, or to wait for it.
    Agent,
    /// To look at it again and repeat the command.
    Again,
}

impl Refusal {
    fn new(code: Code, detail: impl Into<String>, help: impl Into<Option<Help>>) -> Self {
        Self { code, detail: detail.into(), help: help.into() }
    }
}

impl From<Refusal> for Decision {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// A request with its index among all that were found.
type Indexed<'a> = (usize, &'a Request);

/// Decides for the cluster `name`.
pub fn decide(name: &str, found: &Found<'_>, options: &Options) -> Decision {
    let holder = found.cluster.map(holder);
    // Whoever names a cluster that was denied lets it in again; a selector does not, see below.
    let standing = claim::standing(holder.as_ref()).filter(|violation| violation.code != Code::DeniedBefore);
    let (Some(cluster), Some(holder), None) = (found.cluster, holder, &standing) else {
        let help = found.cluster.is_none().then_some(Help::Agent);
        return standing
            .map_or(Decision::NoRequest, |Violation { code, detail, .. }| Refusal::new(code, detail, help).into());
    };
    if let Some(violation) = name::check(name, &[]).or_else(|| claim::namespace(name, found.namespace)) {
        return Refusal::new(violation.code, violation.detail, Help::OtherName).into();
    }
    let facts = claim::Facts {
        name,
        holder: Some(holder),
        namespace: found.namespace,
        role_created: millis(found.role_created),
        recorded: false,
    };
    let requests = found.requests.iter().enumerate().filter(|(_, request)| request.facts().is_first_of(name));
    let mut settings = options.settings.clone();
    settings.requesters.extend_from_slice(found.bound_accounts);
    let case = Case { name, cluster, holder, facts, options, settings, requests: requests.collect() };
    let decision = match &options.fingerprint {
        Some(wanted) => case.with_key(wanted),
        None => case.with_any_key(),
    };
    case.admit(decision)
}

/// What is decided about.
struct Case<'a> {
    name: &'a str,
    cluster: &'a ManagedCluster,
    holder: Holder,
    facts: claim::Facts<'a>,
    options: &'a Options,
    /// Those of the options, with everybody who may ask.
    settings: Settings,
    requests: Vec<Indexed<'a>>,
}

impl<'a> Case<'a> {
    fn violations(&self, request: &Request) -> Vec<Violation> {
        request.violations(self.name, &self.settings)
    }

    fn is_right(&self, request: &Request) -> bool {
        self.violations(request).is_empty()
    }

    /// The pending requests, right and wrong ones.
    fn pending(&self) -> impl Iterator<Item = Indexed<'a>> {
        self.requests.iter().copied().filter(|(_, request)| request.state == State::Pending)
    }

    /// All requests that say something about who holds the name.
    fn claimants(&self) -> impl Iterator<Item = Claimant<'a>> + Clone {
        self.requests.iter().filter_map(|(_, request)| self.claimant(request))
    }

    fn claimant(&self, request: &'a Request) -> Option<Claimant<'a>> {
        let key = request.key_digest().unwrap_or_default();
        claim::claimant(&request.facts(), key, state(request), self.name, &self.settings)
    }

    /// Requests that were approved in this registration and whose certificates are identities on the hub.
    fn granted_now(&self) -> impl Iterator<Item = Indexed<'a>> {
        let now = |claimant: Claimant<'_>| claim::is_of_registration(&self.holder, claimant.state);
        self.requests.iter().copied().filter(move |(_, request)| self.claimant(request).is_some_and(now))
    }

    /// Who besides holds the name or waits for it, so that `request` does not simply get it.
    fn rivals(&self, request: &Request) -> Option<Violation> {
        claim::rivals(&self.holder, request.key_digest().unwrap_or_default(), self.claimants())
    }

    fn with_key(&self, wanted: &str) -> Decision {
        let is_meant = |request: &Request| request.fingerprint().as_deref() == Some(wanted);
        let meant: Vec<Indexed<'a>> = self.pending().filter(|(_, request)| is_meant(request)).collect();
        if !meant.is_empty() {
            return self.pending_request(&meant);
        }
        if self.granted_now().any(|(_, request)| is_meant(request)) {
            return match self.holder.accepted {
                true => Decision::Settled { stray: self.pending().map(|(index, _)| index).collect() },
                false => self.without_pending(&is_meant),
            };
        }
        let pending: Vec<Indexed<'a>> = self.pending().collect();
        if pending.is_empty() && !self.holder.accepted {
            return self.without_pending(&is_meant);
        }
        let detail = format!("no pending request has the key {wanted}");
        Refusal::new(Code::NoSuchKey, detail, Help::NameKey(keys(pending))).into()
    }

    fn with_any_key(&self) -> Decision {
        let right: Vec<Indexed<'a>> = self.pending().filter(|(_, request)| self.is_right(request)).collect();
        // A cluster that is accepted and whose key is known needs nothing. Anybody who may register clusters may ask
        // for its name.
        let has_key = self.holder.joined || self.granted_now().next().is_some();
        if self.holder.accepted && has_key && !self.options.replace {
            let own = right.iter().filter(|(_, request)| self.rivals(request).is_none());
            return match own.max_by_key(|(_, request)| request.created) {
                Some((index, _)) => self.approve(*index),
                None => Decision::Settled { stray: self.pending().map(|(index, _)| index).collect() },
            };
        }
        if right.is_empty() {
            if self.holder.accepted {
                return Decision::Settled { stray: self.pending().map(|(index, _)| index).collect() };
            }
            if self.granted_now().next().is_some() || self.options.without_request {
                return self.without_pending(&|_| true);
            }
            let wrong: Vec<Indexed<'a>> = self.pending().collect();
            return match wrong.is_empty() {
                true => self.without_pending(&|_| true),
                false => self.pending_request(&wrong),
            };
        }
        self.pending_request(&right)
    }

    /// Decides by pending requests, of which there is at least one.
    fn pending_request(&self, candidates: &[Indexed<'a>]) -> Decision {
        // Anybody can ask for something wrong, also with the public key of another's right request; that must not be
        // in the right one's way.
        let right: Vec<Indexed<'a>> =
            candidates.iter().filter(|(_, request)| self.is_right(request)).copied().collect();
        let candidates = if right.is_empty() { candidates } else { &right };
        // The newest of equals: an older one may be from an earlier start of the agent.
        let Some(&(index, request)) = candidates.iter().max_by_key(|(_, request)| request.created) else {
            return Decision::NoRequest;
        };
        if let Some(violation) = self.violations(request).into_iter().next() {
            let detail = format!("request {}: {}", request.name, violation.detail);
            return Refusal::new(violation.code, detail, help_for(violation.code, request)).into();
        }
        let key = request.key_digest().unwrap_or_default();
        let violation = match (self.options.replace, &self.options.fingerprint) {
            (false, None) => self.rivals(request),
            // Who names a key has chosen among those that wait, and who gives the name away says to whom.
            (false, Some(_)) => claim::taken(&self.holder, key, self.claimants()),
            (true, None) => claim::contested(key, self.claimants()),
            (true, Some(_)) => None,
        };
        let Some(Violation { code, detail, .. }) = violation else { return self.approve(index) };
        // Where nobody has joined, a person can still choose either key.
        let chosen = self.holder.joined || self.holder.accepted || self.options.fingerprint.is_some();
        let help = match code {
            Code::NameTaken if chosen => Help::Replace,
            Code::NameTaken => Help::NameKey(keys(self.granted_now().chain(candidates.iter().copied()))),
            _ => Help::NameKey(keys(candidates.iter().copied())),
        };
        Refusal::new(code, detail, help).into()
    }

    fn approve(&self, index: usize) -> Decision {
        Decision::Act { approve: Some(index), stands_on: Some(index), accept: !self.holder.accepted }
    }

    /// Nothing waits for approval: an approved request of this registration still lets the cluster in.
    fn without_pending(&self, is_meant: &dyn Fn(&Request) -> bool) -> Decision {
        if self.holder.accepted {
            return Decision::Settled { stray: Vec::new() };
        }
        let granted: Vec<Indexed<'a>> = self.granted_now().filter(|(_, request)| is_meant(request)).collect();
        let right: Vec<Indexed<'a>> = granted.iter().filter(|(_, request)| self.is_right(request)).copied().collect();
        let distinct = keys(right.iter().copied());
        if distinct.len() > 1 {
            let detail = format!("{} keys were approved for this name", distinct.len());
            return Refusal::new(Code::NameTaken, detail, Help::NameKey(distinct)).into();
        }
        let act = |stands_on| Decision::Act { approve: None, stands_on, accept: true };
        if let Some((index, request)) = right.iter().max_by_key(|(_, request)| request.created) {
            let named = self.options.fingerprint.is_some() && !self.holder.joined;
            if !self.options.replace
                && !named
                && let Some(violation) = self.rivals(request)
            {
                let detail = format!("request {}: {}", request.name, violation.detail);
                return Refusal::new(violation.code, detail, Help::Replace).into();
            }
            return act(Some(*index));
        }
        let decided = self.requests.iter().filter(|(_, request)| {
            let now = claim::is_since(&self.holder, millis(request.decided));
            request.state != State::Pending && is_meant(request) && now
        });
        match decided.max_by_key(|(_, request)| request.created) {
            Some((_, request)) if request.state == State::Denied => {
                let detail = format!("request {} was denied", request.name);
                return Refusal::new(Code::RequestDenied, detail, Help::AskAgain(request.name.clone())).into();
            }
            Some((_, request)) if request.state == State::Failed => {
                let detail = format!("request {} was approved, but its signer failed", request.name);
                return Refusal::new(Code::RequestFailed, detail, Help::Request(request.name.clone())).into();
            }
            Some((_, request)) if !self.options.without_request => {
                if let Some(violation) = self.violations(request).into_iter().next() {
                    let detail = format!("request {}, approved by somebody else: {}", request.name, violation.detail);
                    return Refusal::new(violation.code, detail, help_for(violation.code, request)).into();
                }
            }
            _ => {}
        }
        if self.options.fingerprint.is_some() {
            return Decision::NoRequest;
        }
        // Somebody let it in once and then denied it: its agent has a certificate and asks for no other.
        if self.holder.accepted_before && self.holder.joined && granted.is_empty() {
            return act(None);
        }
        if let Some(identity) = registration::aws_identity(self.cluster) {
            return match identity {
                Err(violation) => Refusal::new(violation.code, violation.detail, Help::Agent).into(),
                Ok(_) if self.options.without_request => act(None),
                Ok(arn) => {
                    let detail = format!("it registers as {arn}, for which the hub has no request to verify");
                    Refusal::new(Code::AwsIdentity, detail, Help::WithoutRequest).into()
                }
            };
        }
        if self.options.without_request { act(None) } else { Decision::NoRequest }
    }

    /// What still keeps a cluster out that would be let in.
    fn admit(&self, decision: Decision) -> Decision {
        let Decision::Act { accept, .. } = decision else { return decision };
        if accept
            && self.options.chosen == Chosen::InBulk
            && let Some(violation) =
                claim::standing(Some(&self.holder)).or_else(|| claim::denied(&self.holder, self.claimants()))
        {
            let help = Help::ByName(self.name.to_owned());
            return Refusal::new(violation.code, violation.detail, help).into();
        }
        if self.holder.joined {
            return decision;
        }
        if !self.options.reuse_name
            && let Some(violation) = claim::used_before(&self.holder, &self.facts, self.claimants())
        {
            return Refusal::new(violation.code, violation.detail, Help::ReuseName(self.old_certificates_end())).into();
        }
        if accept
            && !self.options.as_registered
            && let Some(violation) =
                registration::violations(self.cluster, &self.options.cluster_sets).into_iter().next()
        {
            let help = match violation.code {
                Code::ClusterSet => {
                    let labels = self.cluster.metadata.labels.as_ref();
                    Help::ClusterSet(
                        labels.and_then(|labels| labels.get(content::CLUSTER_SET)).cloned().unwrap_or_default(),
                    )
                }
                _ => Help::AsRegistered,
            };
            let detail = format!("whoever registered it brought what only administrators give: {}", violation.detail);
            return Refusal::new(violation.code, detail, help).into();
        }
        decision
    }

    /// Until when certificates of the former holder may be valid: the last one was given before this registration.
    fn old_certificates_end(&self) -> Option<Timestamp> {
        let longest = self.options.settings.max_lifetime_seconds.max(self.options.settings.signer_default_seconds);
        let created = self.cluster.metadata.creation_timestamp.as_ref()?.0;
        created.checked_add(jiff::SignedDuration::from_secs(longest)).ok()
    }
}

fn holder(cluster: &ManagedCluster) -> Holder {
    let joined = conditions::find(conditions_of(cluster), managed_cluster::JOINED)
        .filter(|condition| condition.status == conditions::TRUE);
    Holder {
        created: millis(cluster.metadata.creation_timestamp.as_ref().map(|time| time.0)),
        deleting: cluster.metadata.deletion_timestamp.is_some(),
        accepted: cluster.spec.hub_accepts_client.unwrap_or_default(),
        accepted_before: conditions::find(conditions_of(cluster), managed_cluster::HUB_ACCEPTED).is_some(),
        joined: joined.is_some(),
        joined_at: millis(joined.map(|condition| condition.last_transition_time.0)),
    }
}

fn state(request: &Request) -> claim::State {
    match request.state {
        State::Pending => claim::State::Pending,
        State::Approved | State::Issued => claim::State::Granted { at: millis(request.decided) },
        State::Denied => claim::State::Denied { at: millis(request.decided) },
        State::Failed => claim::State::Failed,
    }
}

fn millis(time: Option<Timestamp>) -> Option<i64> {
    time.map(Timestamp::as_millisecond)
}

fn conditions_of(cluster: &ManagedCluster) -> &[Condition] {
    cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default()
}

/// The fingerprints of requests, each once; those that cannot be read have none.
fn keys<'a>(requests: impl IntoIterator<Item = Indexed<'a>>) -> Vec<String> {
    let distinct: BTreeSet<String> = requests.into_iter().filter_map(|(_, request)| request.fingerprint()).collect();
    distinct.into_iter().collect()
}

fn help_for(code: Code, request: &Request) -> Help {
    match code {
        Code::Requester => Help::Requester(request.asked_by().to_owned()),
        Code::Lifetime => Help::Lifetime,
        _ => Help::Request(request.name.clone()),
    }
}
