//! The decision: which request, if any, and whether something stands in the way.

use std::collections::BTreeMap;

use ocm_rules::claim;

use super::admit::admit;
use super::case::{Case, Found, Indexed, Options, holder, keys, settings};
use super::outcome::{Decision, Help, Refusal};
use crate::csr::{Code, Request, State, Violation};
use crate::{name, registration};

/// Decides for the cluster `name`.
pub fn decide(name: &str, found: &Found<'_>, options: &Options) -> Decision {
    let holder = found.cluster.map(|cluster| holder(cluster, found));
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
    if options.uid.is_some() && options.uid != cluster.metadata.uid {
        let detail = "another managed cluster than the one that is meant has the name";
        return Refusal::new(Code::NameUsedBefore, detail, Help::Again).into();
    }
    let case = Case::new(name, cluster, holder, found, options);
    let decision = match &options.fingerprint {
        Some(wanted) => case.with_key(wanted),
        None => case.with_any_key(),
    };
    admit(&case, decision)
}

/// Whether somebody denied a request for the name of the cluster, and nobody let it in all the same. The hub forgets such a
/// request; whoever is to remember it asks in time.
pub fn is_denied(name: &str, found: &Found<'_>, options: &Options) -> bool {
    let case = found.cluster.map(|cluster| Case::new(name, cluster, holder(cluster, found), found, options));
    case.is_some_and(|case| case.denied().is_some())
}

/// How many of the requests that wait for the name break which rule; each counts for the first one that it breaks.
pub fn wrong(name: &str, found: &Found<'_>, options: &Options) -> BTreeMap<Code, usize> {
    let settings = settings(found, options);
    let mut count = BTreeMap::new();
    for request in found.requests {
        if request.state == State::Pending
            && request.facts().is_first_of(name)
            && let Some(violation) = request.violations(name, &settings).first()
        {
            *count.entry(violation.code).or_default() += 1;
        }
    }
    count
}

impl<'a> Case<'a> {
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
        if self.options.without_request && self.holder.accepted {
            return Decision::Settled { stray: pending.into_iter().map(|(index, _)| index).collect() };
        }
        if (pending.is_empty() || self.options.without_request) && !self.holder.accepted {
            return self.without_pending(&is_meant);
        }
        let detail = format!("no pending request has the key {wanted}");
        Refusal::new(Code::NoSuchKey, detail, Help::NameKey(keys(pending))).into()
    }

    fn with_any_key(&self) -> Decision {
        let right: Vec<Indexed<'a>> = self.pending().filter(|(_, request)| self.is_right(request)).collect();
        // A cluster whose key is known, as it is accepted or was, needs nothing of what others ask for. Anybody who may
        // register clusters may ask for its name.
        let is_known = self.holder.joined || (self.holder.accepted && self.granted_now().next().is_some());
        if is_known && !self.options.replace {
            let own = right.iter().filter(|(_, request)| self.rivals(request).is_none());
            match own.max_by_key(|(_, request)| request.created) {
                Some((index, _)) => return self.approve(*index),
                None if self.holder.accepted => {
                    return Decision::Settled { stray: self.pending().map(|(index, _)| index).collect() };
                }
                None if self.holder.accepted_before => return self.without_pending(&|_| true),
                None => {}
            }
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
            (false, Some(_)) => claim::taken(&self.holder, key, self.claimants_but_former()),
            (true, None) => claim::contested(key, self.claimants()),
            (true, Some(_)) => None,
        };
        let Some(Violation { code, detail, .. }) = violation else { return self.approve(index) };
        let help = match code {
            Code::NameTaken if self.options.fingerprint.is_some() => self.replace(request),
            Code::NameTaken => self.taken(candidates.iter().copied(), request),
            _ => Help::NameKey(keys(candidates.iter().copied())),
        };
        Refusal::new(code, detail, help).into()
    }

    /// What helps where another key than the one of `request` holds the name. Where nobody has joined, a person can still
    /// choose either.
    fn taken(&self, candidates: impl Iterator<Item = Indexed<'a>>, request: &Request) -> Help {
        match self.holder.joined || self.holder.accepted {
            true => self.replace(request),
            false => Help::NameKey(keys(self.granted_now().chain(candidates))),
        }
    }

    fn replace(&self, request: &Request) -> Help {
        let asks: Vec<String> = request.fingerprint().into_iter().collect();
        let mut holds = keys(self.granted_now());
        holds.retain(|key| !asks.contains(key));
        Help::Replace { asks, holds }
    }

    fn approve(&self, index: usize) -> Decision {
        Decision::Act { approve: Some(index), stands_on: Some(index), accept: !self.holder.accepted }
    }

    /// Nothing waits for approval: an approved request of this registration still lets the cluster in, unless its key was
    /// also given a certificate that breaks a rule. Its holder has that one in any case, and to accept the cluster adds
    /// rights to the name in it; whether that is meant, a person decides who looks at it, and deletes it if it is.
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
                let candidates = right.iter().copied();
                return Refusal::new(violation.code, detail, self.taken(candidates, request)).into();
            }
            let same = |other: &Request| other.key_digest() == request.key_digest();
            let wrong = granted.iter().filter(|(_, other)| same(other) && !self.is_right(other));
            let wrong = wrong.max_by_key(|(_, other)| other.created);
            if let Some(refusal) = wrong.and_then(|(_, other)| self.approved_wrongly(other)) {
                return refusal.into();
            }
            return act(Some(*index));
        }
        // Whatever the user says: what was approved is somebody's identity, and broke a rule.
        let newest = granted.iter().max_by_key(|(_, request)| request.created);
        if let Some(refusal) = newest.and_then(|(_, request)| self.approved_wrongly(request)) {
            return refusal.into();
        }
        // Somebody let it in once and then denied it: its agent has a certificate and asks for no other. What was denied
        // since is a stranger's, or what the agent can do without.
        if self.options.fingerprint.is_none() && self.holder.accepted_before && self.holder.joined {
            return act(None);
        }
        let decided = self.requests.iter().filter(|(_, request)| {
            let now = claim::is_since(&self.holder, self.decided(request));
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
            // For a signer whose certificates are no identity on the hub, or with another's name.
            Some((_, request)) if !self.options.without_request => {
                if let Some(refusal) = self.approved_wrongly(request) {
                    // Anybody may have asked for it: the agent may still come.
                    return Refusal { is_decided: false, ..refusal }.into();
                }
            }
            _ => {}
        }
        if self.options.fingerprint.is_some() {
            // Whoever holds another certificate of the name would be let in with the one that is meant.
            let others = keys(self.granted_now());
            return match (self.options.without_request, others.is_empty()) {
                (false, _) => Decision::NoRequest,
                (true, true) => act(None),
                (true, false) => {
                    let detail = "another key was approved for this name";
                    Refusal::new(Code::NameTaken, detail, Help::NameKey(others)).into()
                }
            };
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

    /// Why nothing is built on a request that was approved, if it breaks a rule.
    fn approved_wrongly(&self, request: &Request) -> Option<Refusal> {
        let Violation { code, detail, .. } = self.violations(request).into_iter().next()?;
        let detail = format!("request {}, approved by somebody else: {detail}", request.name);
        Some(Refusal { is_decided: true, ..Refusal::new(code, detail, help_for(code, request)) })
    }
}

fn help_for(code: Code, request: &Request) -> Help {
    match code {
        Code::Requester => Help::Requester(request.asked_by().to_owned()),
        Code::Lifetime => Help::Lifetime,
        _ => Help::Request(request.name.clone()),
    }
}
