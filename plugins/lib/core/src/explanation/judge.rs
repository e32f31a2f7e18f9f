//! From facts to an explanation.

use jiff::Timestamp;
use ocm_api::policy::PolicyMode;
use ocm_api::registration::{
    RegistrationExpiry, RegistrationKeeper, RegistrationKeptOutBy, RegistrationKey, RegistrationObligation,
    RegistrationStatus, RegistrationVerdict,
};

use super::approvals::{GivenApproval, approvals};
use super::facts::is_accepted;
use super::opinions::{Doubt, InForce, Opinion, Unasked, opinions, unasked};
use super::{Facts, Finding};
use crate::csr::State;
use crate::phase::{Phase, Standing, standing};
use crate::{Failure, Hint, Reason, Remedy};

/// The code by which the policy `approvals` says that people have to approve.
pub const APPROVALS_MISSING: &str = "ApprovalsMissing";
/// The code by which it says that the hub does not prove who has approved.
pub const APPROVALS_UNPROVED: &str = "ApprovalsUnproved";
/// How many policies are named, each with how to see it.
const NAMED: usize = 3;

/// Why a cluster is let in, or what keeps it out.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Name of the cluster.
    pub name: String,
    /// The answer.
    pub finding: Finding,
    /// Who keeps it out, if that is known.
    pub kept_out_by: Option<RegistrationKeptOutBy>,
    /// Where the cluster stands; none: it is gone, or was not read.
    pub standing: Option<Standing>,
    /// What to do next.
    pub next: Vec<Hint>,
    /// When policies decided last, in RFC 3339.
    pub decided: Option<String>,
    /// What they and the rules said together.
    pub verdict: Option<RegistrationVerdict>,
    /// What each said.
    pub opinions: Vec<Opinion>,
    /// Who judges such requests, and was not asked about this one.
    pub unasked: Vec<Unasked>,
    /// Who asks, and with which request.
    pub asking: Option<Asking>,
    /// How many other requests wait for the name.
    pub others: usize,
    /// Keys that certificates were approved for.
    pub keys: Keys,
    /// People's approvals.
    pub approvals: Vec<GivenApproval>,
    /// Until when the cluster is accepted, and because of which policies, those that end first.
    pub limits: Vec<RegistrationObligation>,
    /// Whether a record of the decision is kept, which can be replayed.
    pub has_record: bool,
    /// What could not be read.
    pub unread: Vec<Unread>,
}

impl Explanation {
    /// Because of what the hub refuses a person, too, who approves the request or accepts the cluster, if policies stand by
    /// their last word. None: they refuse nothing, leave it to a person, are not asked about people, or do not count any more.
    pub fn refused_by_policies(&self) -> Option<String> {
        let by = self.kept_out_by.as_ref();
        let is_by = |who: RegistrationKeeper| by.is_some_and(|by| by.who == who);
        // The words of policies, where they are what it waits for.
        let why = match &self.finding {
            Finding::Waits { .. } | Finding::RequestWaits { .. } if is_by(RegistrationKeeper::Person) => return None,
            Finding::Denied { why } | Finding::Waits { why } | Finding::RequestWaits { why } => {
                Some(why).filter(|_| !is_by(RegistrationKeeper::Hub))
            }
            Finding::Expired { .. } => None,
            _ => return None,
        };
        let last = match &self.verdict {
            Some(RegistrationVerdict::Allow | RegistrationVerdict::NoOpinion) => return None,
            Some(verdict) => verdict,
            None => return why.cloned(),
        };
        let mut counting = self.opinions.iter().filter(|opinion| objects(opinion) && counts(opinion)).peekable();
        match (counting.peek().copied(), why) {
            (Some(first), why) => {
                let is_told = |policy: &String| by.is_some_and(|by| by.policies.contains(policy));
                let told = why.filter(|_| counting.any(|opinion| is_told(&opinion.policy)));
                Some(told.cloned().unwrap_or_else(|| objection(first)))
            }
            (None, _) if self.opinions.iter().any(|opinion| opinion.decides) => None,
            // Where nobody knows who decided, somebody did.
            (None, Some(why)) => Some(why.clone()),
            (None, None) => Some(format!("the verdict of the hub's policies is {last}")),
        }
    }
}

/// Whether a policy did not let the cluster in. It may refuse a person where another one decided.
fn objects(opinion: &Opinion) -> bool {
    !matches!(opinion.verdict, RegistrationVerdict::Allow | RegistrationVerdict::NoOpinion)
}

/// Whether the word of a policy counts for a person. Of what was not read the worse is taken.
fn counts(opinion: &Opinion) -> bool {
    let refuses = |now: &InForce| now.may_judge_people && !matches!(now.mode, PolicyMode::Warn | PolicyMode::Audit);
    opinion.now.as_ref().map_or_else(|| !opinion.doubts.contains(&Doubt::Gone), refuses)
}

/// What a policy objects, as far as it was written down.
fn objection(opinion: &Opinion) -> String {
    let Opinion { policy, verdict, codes, .. } = opinion;
    let says = match verdict {
        RegistrationVerdict::Deny => "denies it",
        RegistrationVerdict::Error => "gives no usable answer",
        _ => "holds it",
    };
    let codes = if codes.is_empty() { String::new() } else { format!(" ({})", codes.join(", ")) };
    format!("policy {policy} {says}{codes}")
}

/// Who asks to register the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asking {
    /// User name.
    pub requester: String,
    /// What they authenticated with.
    pub credential_id: Option<String>,
    /// The certificate request.
    pub request: Option<String>,
    /// What has become of it; none: it is gone, or was not read.
    pub state: Option<State>,
    /// SHA-256 of its public key, lower-case hexadecimal digits.
    pub spki_sha256: Option<String>,
}

/// Keys that certificates were approved for, those that end last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// The keys.
    pub all: Vec<RegistrationKey>,
    /// Whether they are those of an earlier cluster of the name.
    pub of_earlier: bool,
}

/// Something that could not be read.
#[derive(Clone, Debug)]
pub struct Unread {
    /// What, as a plural of Kubernetes.
    pub what: &'static str,
    /// Why.
    pub failure: Failure,
}

/// Explains what was read.
pub fn explain(facts: &Facts) -> Explanation {
    let status = facts.of_cluster();
    let standing = facts.cluster().map(standing);
    let finding = finding(facts, standing.as_ref());
    let (opinions, unasked) = (opinions(facts), unasked(facts));
    let asking = asking(facts);
    let decision = status.and_then(|status| status.decision.as_ref());
    let own = asking.as_ref().and_then(|asking| asking.request.as_ref());
    let others = facts.pending().filter(|request| Some(&request.name) != own).count();
    Explanation {
        name: facts.name.clone(),
        next: next(facts, &finding, &opinions, &unasked),
        kept_out_by: facts.kept_out_by(),
        standing,
        finding,
        decided: decision.map(|decision| decision.at.clone()),
        verdict: decision.and(status).map(|status| status.verdict.clone()),
        opinions,
        unasked,
        approvals: approvals(facts, asking.as_ref().map(|asking| asking.requester.as_str())),
        asking,
        limits: match facts.cluster().is_some_and(is_accepted) {
            true => status.map(|status| status.obligations.clone()).unwrap_or_default(),
            false => Vec::new(),
        },
        others,
        keys: Keys {
            all: facts.written().map(|status| status.keys.clone()).unwrap_or_default(),
            of_earlier: facts.cluster().is_some() && status.is_none(),
        },
        has_record: decision.is_some_and(|decision| decision.record.is_some()),
        unread: unread(facts),
    }
}

fn finding(facts: &Facts, standing: Option<&Standing>) -> Finding {
    let status = facts.of_cluster();
    match (facts.cluster(), standing) {
        (Some(cluster), Some(standing)) => match standing.phase {
            Phase::Detaching => Finding::Detaching,
            _ if is_accepted(cluster) => accepted(facts),
            _ if let Some(expired) = status.and_then(|status| status.expired.clone()) => {
                let RegistrationExpiry { at, policies, reason } = expired;
                Finding::Expired { at, policies, reason }
            }
            Phase::Denied => Finding::NotAccepted,
            _ if facts.was_accepted() => Finding::NotAccepted,
            _ => kept_out(facts),
        },
        _ if facts.cluster.is_ok() => removed(facts.written(), facts.now),
        _ => match status {
            Some(status) if status.removed_at.is_some() && facts.waiting_for().is_none() => {
                removed(Some(status), facts.now)
            }
            Some(status) if status.intent.is_some() || facts.waiting_for().is_some() => kept_out(facts),
            Some(status) if !status.approved_by.is_empty() => let_in(status),
            _ => Finding::Unknown,
        },
    }
}

fn let_in(status: &RegistrationStatus) -> Finding {
    let at = status.decision.as_ref().map(|decision| decision.at.clone());
    Finding::LetIn { policies: status.approved_by.clone(), at }
}

fn accepted(facts: &Facts) -> Finding {
    if let Some(why) = facts.waiting_for() {
        return Finding::RequestWaits { why: why.to_owned() };
    }
    match facts.of_cluster() {
        Some(status) if !status.approved_by.is_empty() => let_in(status),
        _ => Finding::Accepted { is_certain: facts.registration.is_ok() || facts.has_no_engine() },
    }
}

fn kept_out(facts: &Facts) -> Finding {
    let status = facts.of_cluster();
    let lets_in = |status: &RegistrationStatus| status.intent.clone().filter(|intent| !intent.withdraw);
    if let Some((intent, status)) = status.and_then(|status| Some((lets_in(status)?, status))) {
        return Finding::BeingLetIn { policies: status.approved_by.clone(), since: intent.at };
    }
    if let Some(why) = facts.waiting_for() {
        let why = why.to_owned();
        return match status.map(|status| &status.verdict) {
            Some(RegistrationVerdict::Deny) => Finding::Denied { why },
            _ => Finding::Waits { why },
        };
    }
    match &facts.registration {
        _ if facts.requests.is_ok() && facts.pending().next().is_none() => Finding::NoRequest,
        Ok(_) => Finding::NotDecided,
        Err(_) if facts.has_no_engine() => Finding::NoPolicyEngine,
        Err(_) => Finding::Unknown,
    }
}

fn removed(status: Option<&RegistrationStatus>, now: Timestamp) -> Finding {
    let keys = status.map(|status| status.keys.as_slice()).unwrap_or_default();
    // All are written alike, so the latest is the greatest text. What cannot be read is taken for the worse.
    let alive = keys.iter().filter(|key| key.until.parse::<Timestamp>().map_or(true, |until| until > now));
    Finding::Removed {
        at: status.and_then(|status| status.removed_at.clone()),
        until: alive.map(|key| key.until.clone()).max(),
    }
}

/// Who asks: as the controller wrote it down, or else by the newest request that waits.
fn asking(facts: &Facts) -> Option<Asking> {
    let written = facts.waiting_for().and(facts.written()).or_else(|| facts.of_cluster());
    if let Some(requester) = written.and_then(|status| status.requester.as_ref()) {
        let request = written.and_then(|status| status.request.as_ref());
        return Some(Asking {
            requester: requester.username.clone(),
            credential_id: requester.credential_id.clone(),
            request: request.map(|request| request.name.clone()),
            state: request.and_then(|request| facts.state_of(&request.uid)),
            spki_sha256: request.map(|request| request.spki_sha256.clone()).filter(|digest| !digest.is_empty()),
        });
    }
    let newest = facts.pending().max_by_key(|request| request.created)?;
    Some(Asking {
        requester: newest.asked_by().to_owned(),
        credential_id: newest.requester.credential_ids.first().cloned(),
        request: Some(newest.name.clone()),
        state: Some(newest.state),
        spki_sha256: newest.key_digest().map(str::to_owned),
    })
}

fn next(facts: &Facts, finding: &Finding, opinions: &[Opinion], unasked: &[Unasked]) -> Vec<Hint> {
    let name = || facts.name.clone();
    let accept = || Hint::from(Remedy::Accept(name()));
    let requests = || Hint::from(Remedy::SeeRequests(name()));
    match finding {
        Finding::Waits { .. } | Finding::RequestWaits { .. } => {
            let mut next = about_policies(&facts.name, opinions);
            if facts.kept_out_by().is_some_and(|by| by.who == RegistrationKeeper::Person) {
                // Somebody wanted these to let clusters in, and may wonder why they did not.
                let approves = |policy: &&Unasked| policy.now.as_ref().is_some_and(|now| now.auto_approve);
                let look = |policy: &Unasked| Hint::from(Remedy::SeePolicy(policy.policy.clone()));
                next.extend(unasked.iter().filter(approves).take(NAMED).map(look));
                if opinions.is_empty() {
                    next.push(requests());
                }
            }
            next.push(accept());
            next.extend(emergency(&facts.name, opinions));
            next
        }
        Finding::Denied { .. } => {
            let mut next = about_policies(&facts.name, opinions);
            next.extend(emergency(&facts.name, opinions));
            next
        }
        Finding::NotAccepted => vec![accept()],
        Finding::Expired { policies, .. } => {
            let look = |policy: &String| Hint::from(Remedy::SeePolicy(policy.clone()));
            policies.iter().take(NAMED).map(look).chain([accept()]).collect()
        }
        Finding::NotDecided => vec![Remedy::PolicyController.into(), accept()],
        Finding::NoPolicyEngine => vec![requests(), accept()],
        Finding::NoRequest => {
            vec!["its agent asks for a certificate when it registers the cluster: look at the agent there".into()]
        }
        Finding::LetIn { .. }
        | Finding::Accepted { .. }
        | Finding::BeingLetIn { .. }
        | Finding::Detaching
        | Finding::Removed { .. }
        | Finding::Unknown => Vec::new(),
    }
}

/// What to do about the policies that keep a cluster out.
fn about_policies(name: &str, opinions: &[Opinion]) -> Vec<Hint> {
    let mut next = Vec::new();
    let deciding = || opinions.iter().filter(|opinion| opinion.decides);
    let gives = |code: &str| deciding().any(|opinion| opinion.codes.iter().any(|given| given == code));
    if gives(APPROVALS_UNPROVED) {
        next.push(Remedy::InstallBaseline.into());
    }
    if gives(APPROVALS_MISSING) {
        next.push(Remedy::ApproveOnly(name.to_owned()).into());
    }
    next.extend(deciding().take(NAMED).map(|opinion| Remedy::SeePolicy(opinion.policy.clone()).into()));
    next
}

/// What helps past policies whose administrators allow it: past all that keep the cluster out, or it helps nobody.
fn emergency(name: &str, opinions: &[Opinion]) -> Option<Hint> {
    let mut deciding = opinions.iter().filter(|opinion| opinion.decides).peekable();
    deciding.peek()?;
    let passes = |opinion: &Opinion| opinion.now.as_ref().is_some_and(|now| now.break_glass);
    deciding.all(passes).then(|| Remedy::BreakGlass(name.to_owned()).into())
}

/// A hub without a policy engine lacks nothing that could be read.
fn unread(facts: &Facts) -> Vec<Unread> {
    let all = [
        ("managedclusters", facts.cluster.as_ref().err()),
        ("registrations", facts.registration.as_ref().err()),
        ("certificatesigningrequests", facts.requests.as_ref().err()),
        ("hubpolicies", facts.policies.as_ref().err()),
        ("registrationapprovals", facts.approvals.as_ref().err()),
    ];
    let unread = all.into_iter().filter_map(|(what, failure)| Some(Unread { what, failure: failure?.clone() }));
    unread.filter(|unread| unread.failure.reason != Reason::KindNotServed).collect()
}
