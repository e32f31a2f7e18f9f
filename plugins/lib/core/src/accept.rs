//! Whether a cluster may be accepted, and with which certificate request.
//!
//! ```text
//! ManagedCluster ─┐
//!                 ├─▶ decide ─▶ Act { approve, accept } | Settled | NoRequest | Refused { code, detail, … }
//! its requests ───┘
//! ```

use std::collections::BTreeSet;

use jiff::Timestamp;
use ocm_api::Condition;
use ocm_api::cluster::ManagedCluster;
use ocm_api::conditions::{self, managed_cluster};

use crate::csr::{Code, Request, Settings, State};
use crate::name::is_reserved;

/// What the user typed that bears on the decision.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// Who may ask, and for how long a certificate.
    pub settings: Settings,
    /// The fingerprint of the request that is meant, `sha256:` and 64 hex digits.
    pub fingerprint: Option<String>,
    /// Whether a name that a joined cluster holds may go to another key.
    pub replace: bool,
}

/// What the hub has under the name of a cluster before it is accepted: a namespace of that name becomes its agent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// No namespace has the name.
    Free,
    /// The namespace is labelled as this cluster's, perhaps from an earlier registration.
    Own,
    /// The namespace is somebody else's.
    Foreign,
}

/// What is to be done for one cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Approve this request, if any, and then accept the cluster, if it is not yet.
    Act {
        /// Index of the request to approve; none if an approved one is there already.
        approve: Option<usize>,
        /// Index of the request that the decision stands on: the one to approve, or the approved one. None if the
        /// cluster joined before it was denied, so that its agent holds a certificate already.
        stands_on: Option<usize>,
        /// Whether `hubAcceptsClient` is still to be set.
        accept: bool,
    },
    /// It is accepted already and nothing waits for approval.
    Settled,
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
    /// What to type next.
    pub hint: Option<String>,
}

fn refused(code: Code, detail: impl Into<String>, hint: Option<String>) -> Decision {
    Decision::Refused(Refusal { code, detail: detail.into(), hint })
}

/// Decides for the cluster `name`. `requests` are all that carry its label; others' are harmless here.
pub fn decide(name: &str, cluster: Option<&ManagedCluster>, home: Home, requests: &[Request], wish: &Wish) -> Decision {
    let Some(cluster) = cluster else {
        let hint = "its agent registers it: look at the agent on the cluster, or wait for it with --wait".to_owned();
        return refused(Code::NoManagedCluster, "the hub has no managed cluster of this name", Some(hint));
    };
    if cluster.metadata.deletion_timestamp.is_some() {
        return refused(Code::Detaching, "it is being removed from the hub", None);
    }
    if home == Home::Foreign || is_reserved(name) {
        let detail = format!("the hub uses the name {name} for something else, and the agent would get rights to that");
        return refused(Code::NamespaceTaken, detail, Some("join it under another name".to_owned()));
    }
    let mine: Vec<(usize, &Request)> = requests
        .iter()
        .enumerate()
        .filter(|(_, request)| request.cluster_label.as_deref() == Some(name) && !request.is_addons())
        // The hub itself decides about what an agent asks for with its own certificate.
        .filter(|(_, request)| !request.is_renewal(name))
        .collect();
    let accepted = cluster.spec.hub_accepts_client.unwrap_or_default();
    let pending: Vec<(usize, &Request)> =
        mine.iter().filter(|(_, request)| request.state == State::Pending).copied().collect();
    if pending.is_empty() {
        return without_pending(cluster, &mine, name, wish);
    }
    let sound = |request: &Request| request.violations(name, &wish.settings).is_empty();
    let meant: Vec<(usize, &Request)> = match &wish.fingerprint {
        Some(wanted) => {
            pending.iter().filter(|(_, request)| request.fingerprint().as_ref() == Some(wanted)).copied().collect()
        }
        None => pending.clone(),
    };
    if let (true, Some(wanted)) = (meant.is_empty(), &wish.fingerprint) {
        let detail = format!("no pending request has the key {wanted}");
        return refused(Code::NoSuchKey, detail, Some(keys(&pending)));
    }
    // Anybody can ask for something wrong, also with the public key of another's right request; that must not be in
    // the right one's way.
    let good: Vec<(usize, &Request)> = meant.iter().filter(|(_, request)| sound(request)).copied().collect();
    let candidates = if good.is_empty() { meant } else { good };
    let distinct: BTreeSet<Option<String>> = candidates.iter().map(|(_, request)| request.fingerprint()).collect();
    // The newest of equals: an older one may be from a life of the agent that is over.
    let Some(&(index, request)) = candidates.iter().max_by_key(|(_, request)| request.created) else {
        return Decision::NoRequest;
    };
    if let Some(violation) = request.violations(name, &wish.settings).into_iter().next() {
        let detail = format!("request {}: {}", request.name, violation.detail);
        return refused(violation.code, detail, hint_for(violation.code, request));
    }
    if distinct.len() > 1 {
        let detail = format!("{} keys ask for this name", distinct.len());
        return refused(Code::TwoKeys, detail, Some(keys(&candidates)));
    }
    if !wish.replace
        && let Some(holder) = holder(cluster, &mine, request, name, wish)
    {
        return refused(Code::NameTaken, holder, Some(REPLACE.to_owned()));
    }
    Decision::Act { approve: Some(index), stands_on: Some(index), accept: !accepted }
}

/// Nothing waits for approval: an approved request of this registration still lets the cluster in.
fn without_pending(cluster: &ManagedCluster, mine: &[(usize, &Request)], name: &str, wish: &Wish) -> Decision {
    if cluster.spec.hub_accepts_client.unwrap_or_default() {
        return Decision::Settled;
    }
    let recent = mine.iter().filter(|(_, request)| is_of_registration(cluster, request)).copied();
    let matches = |request: &Request| match &wish.fingerprint {
        Some(wanted) => request.fingerprint().as_ref() == Some(wanted),
        None => true,
    };
    let decided: Vec<(usize, &Request)> = recent.filter(|(_, request)| matches(request)).collect();
    let approved: Vec<(usize, &Request)> = decided
        .iter()
        .filter(|(_, request)| matches!(request.state, State::Approved | State::Issued))
        .filter(|(_, request)| request.violations(name, &wish.settings).is_empty())
        .copied()
        .collect();
    let distinct: BTreeSet<Option<String>> = approved.iter().map(|(_, request)| request.fingerprint()).collect();
    if distinct.len() > 1 {
        let detail = format!("{} keys were approved for this name", distinct.len());
        return refused(Code::TwoKeys, detail, Some(keys(&approved)));
    }
    if let Some((index, request)) = approved.iter().max_by_key(|(_, request)| request.created) {
        if !wish.replace && joined(cluster).is_some_and(|joined| request.created > Some(joined)) {
            let detail = format!("it joined before request {} asked for another key", request.name);
            return refused(Code::NameTaken, detail, Some(REPLACE.to_owned()));
        }
        return Decision::Act { approve: None, stands_on: Some(*index), accept: true };
    }
    match decided.iter().max_by_key(|(_, request)| request.created) {
        Some((_, request)) if request.state == State::Denied => refused(
            Code::RequestDenied,
            format!("request {} was denied", request.name),
            Some(format!("to let it ask again: kubectl delete csr {}", request.name)),
        ),
        Some((_, request)) if matches!(request.state, State::Approved | State::Issued) => {
            match request.violations(name, &wish.settings).into_iter().next() {
                Some(violation) => refused(
                    violation.code,
                    format!("request {}, approved by somebody else: {}", request.name, violation.detail),
                    hint_for(violation.code, request),
                ),
                None => Decision::NoRequest,
            }
        }
        Some((_, request)) if request.state == State::Failed => refused(
            Code::RequestFailed,
            format!("request {} was approved, but its signer failed", request.name),
            Some(format!("look at why: kubectl get csr {} -o yaml", request.name)),
        ),
        // Somebody let it in once and then denied it: its agent has a certificate and asks for no other.
        None if was_accepted(cluster) && joined(cluster).is_some() && wish.fingerprint.is_none() => {
            Decision::Act { approve: None, stands_on: None, accept: true }
        }
        _ => Decision::NoRequest,
    }
}

/// Whether a request belongs to this registration: what was asked before belongs to one that is over.
fn is_of_registration(cluster: &ManagedCluster, request: &Request) -> bool {
    request.created >= cluster.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

fn conditions_of(cluster: &ManagedCluster) -> &[Condition] {
    cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default()
}

/// Whether the hub has acted on an acceptance or on its end.
fn was_accepted(cluster: &ManagedCluster) -> bool {
    conditions::find(conditions_of(cluster), managed_cluster::HUB_ACCEPTED).is_some()
}

/// When the cluster's agent joined, if it did.
fn joined(cluster: &ManagedCluster) -> Option<Timestamp> {
    conditions::find(conditions_of(cluster), managed_cluster::JOINED)
        .filter(|condition| condition.status == conditions::TRUE)
        .map(|condition| condition.last_transition_time.0)
}

/// What to type when another key shall have a name that is taken.
const REPLACE: &str = "if the cluster was rebuilt or its agent lost its key, add --replace";

/// Says who holds the name with another key, if anybody does.
fn holder(
    cluster: &ManagedCluster,
    mine: &[(usize, &Request)],
    candidate: &Request,
    name: &str,
    wish: &Wish,
) -> Option<String> {
    let approved: Vec<&Request> = mine
        .iter()
        .map(|(_, request)| *request)
        .filter(|request| matches!(request.state, State::Approved | State::Issued))
        .filter(|request| is_of_registration(cluster, request))
        .collect();
    let joined = joined(cluster);
    // The holder asks again with its own key: it was approved for this name before the cluster joined.
    let is_holder = |request: &&Request| {
        request.fingerprint() == candidate.fingerprint()
            && request.violations(name, &wish.settings).is_empty()
            && joined.is_none_or(|joined| request.created <= Some(joined))
    };
    if approved.iter().any(is_holder) {
        return None;
    }
    if joined.is_some() {
        return Some("a joined cluster holds this name with another key".to_owned());
    }
    // A certificate of this registration went to another key, and whoever holds it may be about to join.
    let rival = approved.iter().find(|request| request.names_agent_of(name))?;
    Some(format!("request {} of this registration was approved for another key", rival.name))
}

fn keys(requests: &[(usize, &Request)]) -> String {
    let mut shown: Vec<String> = Vec::new();
    for (_, request) in requests {
        if let Some(key) = request.fingerprint()
            && !shown.contains(&key)
        {
            shown.push(key);
        }
    }
    match shown.as_slice() {
        [] => "none of them can be read".to_owned(),
        shown => format!("name the one that you mean: --fingerprint {}", shown.join(" or --fingerprint ")),
    }
}

fn hint_for(code: Code, request: &Request) -> Option<String> {
    match code {
        Code::Requester => Some(format!(
            "if {:?} is to register clusters, add --requester {:?}",
            request.asked_by(),
            request.asked_by()
        )),
        Code::Lifetime => Some("if you want that, raise --max-lifetime".to_owned()),
        _ => Some(format!("look at it: kubectl get csr {} -o yaml", request.name)),
    }
}
