//! What is wrong with one relation: its chain as its verifier sees it, whom it names, its key, its renewal, its TLS.

use jiff::{SignedDuration, Timestamp};
use ocm_api::names::identity;
use ocm_core::certificate::{Certificate, SignatureAlgorithm};
use ocm_core::duration::human;
use ocm_core::key::Key;

use super::chain::{Question, Refusal, verdict};
use super::client::Client;
use super::inventory::{Purpose, Relation, Renewal, Token, Trust};
use super::profile::{Demands, Version};
use crate::finding::{Finding, Id};
use crate::registry::tls as checks;
use crate::snapshot::Side;
use crate::text::{head, list};

/// What is wrong with a relation at a time, of which its verifier's clock may differ.
pub(super) fn relation(relation: &Relation, now: Timestamp, demands: &Demands<'_>) -> Vec<Finding> {
    let at = now.checked_add(SignedDuration::from_secs(relation.clock_ahead_seconds)).unwrap_or(now);
    let own = relation.chain.first().and_then(|der| Certificate::read(&der.0));
    let mut found = match relation.trust {
        Trust::Nobody => vec![unverified(relation)],
        _ => chain(relation, own.as_ref(), at),
    };
    if let Some(own) = &own {
        found.extend(weak(relation, own));
        found.extend(identity_of(relation, own));
        found.extend(renewal(relation, own, now));
    }
    found.extend(key(relation));
    found.extend(version(relation, demands.minimum));
    found.extend(cipher(relation, demands));
    found
}

/// A finding about a relation.
fn finding(id: Id, relation: &Relation, found: Finding) -> Finding {
    Finding { id, cluster: relation.cluster.clone(), ..found.at(&relation.place) }
}

/// The check that a refusal belongs to.
const fn of(refusal: &Refusal) -> Id {
    match refusal {
        Refusal::UnknownIssuer => checks::ISSUER,
        Refusal::Expired(_) => checks::EXPIRED,
        Refusal::NotYetValid(_) => checks::NOT_YET_VALID,
        Refusal::Name(_) => checks::NAME,
        Refusal::Usage(_) => checks::USAGE,
        Refusal::Algorithm => checks::STRENGTH,
        Refusal::MayNotSign | Refusal::IsAuthority | Refusal::Constrained => checks::AUTHORITY,
        Refusal::Unreadable(_) | Refusal::Other(_) => checks::READABLE,
    }
}

/// A verifier that asks for no authority.
fn unverified(relation: &Relation) -> Finding {
    let words = format!("{} does not verify the certificate of {}", relation.verifier, relation.presenter);
    let found = Finding::warning(words).because("its kubeconfig says insecure-skip-tls-verify");
    finding(checks::ISSUER, relation, found.advise("name the authority of the server in the kubeconfig instead"))
}

/// What the verifier thinks of the chain, and where others think otherwise.
fn chain(relation: &Relation, own: Option<&Certificate>, at: Timestamp) -> Vec<Finding> {
    let chain: Vec<&[u8]> = relation.chain.iter().map(|der| der.0.as_slice()).collect();
    let authorities: Option<Vec<&[u8]>> = match &relation.trust {
        Trust::Authorities(list) => Some(list.iter().map(|der| der.0.as_slice()).collect()),
        _ => None,
    };
    let question = Question {
        chain: &chain,
        authorities: authorities.as_deref(),
        names: &relation.names,
        usage: relation.usage,
        at,
    };
    let decider = relation.client.unwrap_or(Client::Rustls);
    let of = |client: Client| {
        let mut refusals = verdict(client, &question);
        // What the system's authorities say was asked elsewhere, and counts for every client.
        if let Trust::System { refusal: Some(_) } = &relation.trust {
            refusals.push(Refusal::UnknownIssuer);
        }
        refusals
    };
    let verdicts: Vec<(Client, Vec<Refusal>)> = Client::ALL.into_iter().map(|client| (client, of(client))).collect();
    let decided = verdicts.iter().find(|(client, _)| *client == decider).map(|(_, refusals)| refusals.as_slice());
    let decided = decided.unwrap_or_default();
    let mut found: Vec<Finding> = decided
        .iter()
        .map(|refusal| {
            let words = format!("{} refuses the certificate of {}: {refusal}", relation.verifier, relation.presenter);
            explained(relation, refusal, own, at, tell(Finding::error(words), &verdicts))
        })
        .collect();
    // Others refuse for a reason of their own. A chain that the verifier refuses has been told of.
    let is_path = |refusal: &Refusal| !matches!(refusal, Refusal::Name(_));
    let has_path = decided.iter().any(is_path);
    let mut told: Vec<&Refusal> = Vec::new();
    for (_, refusals) in verdicts.iter().filter(|(client, _)| *client != decider) {
        for refusal in refusals {
            if decided.contains(refusal) || told.contains(&refusal) || (has_path && is_path(refusal)) {
                continue;
            }
            told.push(refusal);
            let who: Vec<&str> = verdicts
                .iter()
                .filter(|(_, refusals)| refusals.contains(refusal))
                .map(|(client, _)| client.title())
                .collect();
            let words = format!(
                "{} trusts the certificate of {}, but {} would not: {refusal}",
                relation.verifier,
                relation.presenter,
                who.join(" and ")
            );
            found.push(explained(relation, refusal, own, at, tell(Finding::warning(words), &verdicts)));
        }
    }
    found
}

/// Adds what each client says, where they differ.
fn tell(mut finding: Finding, verdicts: &[(Client, Vec<Refusal>)]) -> Finding {
    if verdicts.windows(2).all(|pair| pair[0].1.is_empty() == pair[1].1.is_empty()) {
        return finding;
    }
    for (client, refusals) in verdicts {
        let words: Vec<String> = refusals.iter().map(ToString::to_string).collect();
        let words = if words.is_empty() { "trusts it".to_owned() } else { words.join("; ") };
        finding = finding.seen(format!("{}: {words}", client.title()));
    }
    finding
}

/// Adds what was seen, the cause where it shows, and what to do.
fn explained(
    relation: &Relation,
    refusal: &Refusal,
    own: Option<&Certificate>,
    at: Timestamp,
    finding: Finding,
) -> Finding {
    let mut finding = self::finding(of(refusal), relation, finding);
    if let Some(handshake) = &relation.handshake {
        let way = handshake.proxy.as_ref().map_or_else(String::new, |proxy| format!(" through the proxy {proxy}"));
        finding = finding.seen(format!("presented at {}{way}", handshake.address));
    }
    if let Some(own) = own {
        finding = finding.seen(format!(
            "{} (serial {}), issued by {}, valid from {} until {}",
            name(&own.subject),
            name(&own.serial),
            name(&own.issuer),
            own.not_before,
            own.not_after
        ));
        finding = match refusal {
            Refusal::UnknownIssuer => issuer(relation, finding),
            Refusal::Name(name) => names(own, name, finding),
            Refusal::Expired(_) | Refusal::NotYetValid(_) => times(relation, own, at, finding),
            _ => finding,
        };
    }
    next(relation, finding)
}

/// Why no authority has signed it, where the authorities tell.
fn issuer(relation: &Relation, mut finding: Finding) -> Finding {
    let authorities = match &relation.trust {
        Trust::Authorities(authorities) => authorities,
        Trust::System { refusal } => {
            let finding = refusal.iter().fold(finding, |finding, words| finding.seen(words));
            return finding.because("the authorities of the system that this runs on do not vouch for it");
        }
        _ => return finding,
    };
    let known: Vec<Certificate> = authorities.iter().filter_map(|der| Certificate::read(&der.0)).collect();
    let Some(last) = relation.chain.iter().rev().find_map(|der| Certificate::read(&der.0)) else { return finding };
    match known.as_slice() {
        [] => finding = finding.seen("it trusts no authority at all"),
        known => {
            for authority in known.iter().take(NAMED) {
                finding = finding.seen(format!("it trusts {} ({})", name(&authority.subject), authority.pin));
            }
            if let Some(more @ 1..) = known.len().checked_sub(NAMED) {
                finding = finding.seen(format!("it trusts {more} more"));
            }
        }
    }
    if known.iter().any(|authority| authority.subject == last.issuer) {
        return finding.because("an authority of that name is trusted, but has another key: it was replaced");
    }
    if let Some(proxy) = relation.handshake.as_ref().and_then(|handshake| handshake.proxy.as_ref()) {
        return finding.because(format!("the proxy {proxy} may present a certificate of its own"));
    }
    if last.is_self_issued() {
        finding.because(format!("it ends at {}, which is not among them", name(&last.subject)))
    } else {
        finding.because(format!(
            "{} is neither presented nor trusted: it is another authority, or an intermediate certificate is missing",
            name(&last.issuer)
        ))
    }
}

/// So many names of a list are told.
const NAMED: usize = 10;

/// So many characters of a name are told: whoever made the certificate chose it.
const LONGEST: usize = 200;

/// A name in a certificate.
fn name(text: &str) -> String {
    head(text, LONGEST)
}

/// The first names of a list.
fn some(names: &[String]) -> String {
    let first = list(names.iter().take(NAMED).map(|one| name(one)));
    match names.len().checked_sub(NAMED) {
        None | Some(0) => first,
        Some(more) => format!("{first} and {more} more"),
    }
}

/// Why it is not for a name.
fn names(own: &Certificate, name: &str, finding: Finding) -> Finding {
    let finding = match own.names.as_slice() {
        [] => finding.seen("it has no alternative names"),
        names => finding.seen(format!("it is valid for {}", some(names))),
    };
    if own.names.iter().any(|own| own == name) {
        finding.because("the address stands there as a DNS name and not as an IP address, so it does not count")
    } else if own.names.is_empty() && own.common_names.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        finding.because("the name stands in the common name only, where Go and rustls do not look")
    } else {
        finding
    }
}

/// By how much a time is missed, and whether a clock is to blame.
fn times(relation: &Relation, own: &Certificate, at: Timestamp, finding: Finding) -> Finding {
    let finding = if at > own.not_after {
        finding.seen(format!("it expired {} ago", span(own.not_after, at)))
    } else if at < own.not_before {
        finding.seen(format!("it will be valid in {}", span(at, own.not_before)))
    } else {
        finding
    };
    match relation.clock_ahead_seconds {
        0 => finding,
        ahead => {
            let way = if ahead > 0 { "ahead" } else { "behind" };
            let by = human(std::time::Duration::from_secs(ahead.unsigned_abs()));
            finding.seen(format!("the clock of {} is {by} {way}", relation.verifier))
        }
    }
}

/// A time from one moment to a later one, in words.
fn span(from: Timestamp, to: Timestamp) -> String {
    human(to.duration_since(from).try_into().unwrap_or_default())
}

/// A short key, or a signature that can be forged.
fn weak(relation: &Relation, own: &Certificate) -> Option<Finding> {
    let why = match (&own.key, &own.signature) {
        (Key::Rsa(bits), _) if *bits < 2048 => format!("its RSA key has {bits} bits, and less than 2048 are too few"),
        (Key::Other(name), _) => format!("its key is of a kind that TLS servers and clients do not take: {name}"),
        // Nobody looks at the signature of an authority that is trusted as it is.
        (_, SignatureAlgorithm::Weak(name)) if !own.is_self_issued() => format!("it is signed with {name}"),
        _ => return None,
    };
    let found = Finding::warning(format!("the certificate of {} is weak: {why}", relation.presenter));
    Some(next(relation, finding(checks::STRENGTH, relation, found)))
}

/// Whether the certificate of an agent, or of an add-on, names its cluster.
fn identity_of(relation: &Relation, own: &Certificate) -> Option<Finding> {
    let wanted = relation.identity.as_ref()?;
    if let Some(add_on) = &wanted.add_on {
        return add_on_of(relation, own, &wanted.cluster, add_on);
    }
    let mut found: Vec<String> = Vec::new();
    let named = own.common_names.iter().find_map(|name| identity::parse_agent_user(name));
    let is_agent = |agent: &str| wanted.agent.as_ref().is_none_or(|wanted| wanted == agent);
    match named {
        Some((cluster, agent)) if cluster == wanted.cluster && is_agent(agent) => {}
        _ => {
            let agent = wanted.agent.as_deref().unwrap_or("AGENT");
            let should = identity::agent_user(&wanted.cluster, agent);
            found.push(format!("its common name is {:?} and should be {should:?}", some(&own.common_names)));
        }
    }
    let group = identity::cluster_group(&wanted.cluster);
    if !own.organizations.contains(&group) {
        found.push(format!("its organizations are {:?} and lack {group:?}", some(&own.organizations)));
    }
    if found.is_empty() {
        return None;
    }
    let words = format!(
        "the certificate of {} does not name the cluster {:?}, so the hub gives it no rights",
        relation.presenter, wanted.cluster
    );
    let found = found.into_iter().fold(Finding::error(words), Finding::seen);
    Some(next(relation, finding(checks::IDENTITY, relation, found)))
}

/// Whether the certificate of an add-on is another cluster's, or another add-on's. Add-ons may ask for names of their own, of which
/// nothing is known; those that they have by default tell of both.
fn add_on_of(relation: &Relation, own: &Certificate, cluster: &str, add_on: &str) -> Option<Finding> {
    let named = own.common_names.iter().find_map(|name| identity::parse_addon_user(name))?;
    if named == (cluster, add_on) {
        return None;
    }
    let words = format!(
        "the certificate of {} is the one of the add-on {:?} of the cluster {:?}, and not of {add_on:?} of {cluster:?}",
        relation.presenter,
        name(named.1),
        name(named.0)
    );
    let found = Finding::error(words).seen(format!("its common name is {:?}", some(&own.common_names)));
    Some(next(relation, finding(checks::IDENTITY, relation, found)))
}

/// Controllers look at certificates at least this often.
const RESYNC: SignedDuration = SignedDuration::from_mins(10);

/// Whether a certificate is past the point at which it is renewed. One that has expired was told of.
fn renewal(relation: &Relation, own: &Certificate, now: Timestamp) -> Option<Finding> {
    let Renewal::AtPercent(percent) = relation.renewal else { return None };
    let life = own.not_after.duration_since(own.not_before);
    let due = own.not_before.checked_add(life / 100 * i32::from(percent)).ok()?;
    let late = due.checked_add(RESYNC).ok()?;
    if now <= late || now > own.not_after {
        return None;
    }
    let words = format!(
        "the certificate of {} should have been renewed {} ago and expires in {}",
        relation.presenter,
        span(due, now),
        span(now, own.not_after)
    );
    let found = Finding::warning(words)
        .seen(format!("valid from {} until {}, renewed at {percent} % of its life", own.not_before, own.not_after));
    Some(next(relation, finding(checks::RENEWED, relation, found)))
}

/// Whether the private key beside it belongs to it.
fn key(relation: &Relation) -> Option<Finding> {
    if relation.holds_key != Some(false) {
        return None;
    }
    let words = format!("the private key of {} does not belong to its certificate", relation.presenter);
    Some(next(relation, finding(checks::KEY, relation, Finding::error(words))))
}

/// Whether a server accepts a version that is too old.
fn version(relation: &Relation, minimum: Version) -> Option<Finding> {
    let handshake = relation.handshake.as_ref()?;
    let accepted = handshake.accepted.iter().chain(&handshake.version).filter(|version| **version < minimum);
    let oldest = accepted.min()?;
    let words = format!("{} accepts {oldest}, and the profile allows nothing older than {minimum}", relation.presenter);
    let found = Finding::warning(words).seen(format!("{} at {}", oldest, handshake.address));
    Some(next(relation, finding(checks::VERSION, relation, found)))
}

/// Whether a server accepts cipher suites of TLS 1.2 that are not among those which it is to have. Where TLS 1.2 is not allowed at
/// all, that is told of.
fn cipher(relation: &Relation, demands: &Demands<'_>) -> Option<Finding> {
    let handshake = relation.handshake.as_ref().filter(|_| demands.minimum <= Version::Tls12)?;
    let agreed = match handshake.version {
        Some(Version::Tls12) => handshake.cipher.as_ref(),
        _ => handshake.older_cipher.as_ref(),
    };
    let mut accepted: Vec<&String> = handshake.suites.iter().collect();
    // It is one of them, unless not all of them could be found.
    accepted.extend(agreed.filter(|agreed| !handshake.suites.contains(agreed)));
    let foreign: Vec<String> = accepted.into_iter().filter(|suite| !demands.allows(suite)).cloned().collect();
    if foreign.is_empty() {
        return None;
    }
    let words = format!("{} accepts {}, which {} does not allow", relation.presenter, some(&foreign), demands.source());
    let allowed: Vec<String> = demands.allowed().into_iter().map(str::to_owned).collect();
    let found =
        Finding::warning(words).seen(format!("TLS 1.2 at {}; allowed are {}", handshake.address, some(&allowed)));
    Some(next(relation, finding(checks::CIPHERS, relation, found)))
}

/// What is wrong with a token. What it tells of itself is taken for true: nobody has a reason to lie about it.
pub(super) fn token(token: &Token, now: Timestamp) -> Option<Finding> {
    let Token { cluster, presenter, verifier, place, subject, issued, expires, renewal, .. } = token;
    let expires = expires.as_ref()?.0;
    let found = if now >= expires {
        let words = format!("{verifier} refuses the token of {presenter}: it expired {} ago", span(expires, now));
        Finding { id: checks::TOKEN, ..Finding::error(words) }
    } else {
        let (Renewal::AtPercent(percent), Some(issued)) = (renewal, issued) else { return None };
        let late = late(issued.0, expires, *percent)?;
        if now <= late {
            return None;
        }
        let words = format!(
            "the token of {presenter} should have been renewed {} ago and expires in {}",
            span(late, now),
            span(now, expires)
        );
        Finding { id: checks::RENEWED, ..Finding::warning(words) }
    };
    let found = subject.iter().fold(found, |found, subject| found.seen(format!("it is of {}", name(subject))));
    let found = found.seen(format!("valid until {expires}"));
    let found = match (renewal, token.purpose, place.side()) {
        (Renewal::AtPercent(_), Purpose::Hosted, Some(side)) => {
            let operator = if side == Side::Hub { "cluster-manager" } else { "klusterlet" };
            found.run(side, "kubectl logs --namespace open-cluster-management deployment/{} --tail 50", &[operator])
        }
        (Renewal::AtPercent(_), ..) => found.advise("look at the log of whatever renews it"),
        (Renewal::Unknown, ..) if cluster.is_none() => found.advise("put a kubeconfig with another token there"),
        (Renewal::Unknown, ..) => found.advise("join the cluster again, which puts another token there"),
    };
    Some(Finding { cluster: cluster.clone(), ..found.at(place) })
}

/// When what is renewed at a percentage of its life is late.
fn late(begin: Timestamp, end: Timestamp, percent: u8) -> Option<Timestamp> {
    let due = begin.checked_add(end.duration_since(begin) / 100 * i32::from(percent)).ok()?;
    due.checked_add(RESYNC).ok()
}

/// What to do about it.
fn next(relation: &Relation, finding: Finding) -> Finding {
    match relation.purpose {
        Purpose::Signer | Purpose::Webhook | Purpose::Grpc | Purpose::Placement
            if !matches!(finding.id, checks::VERSION | checks::CIPHERS) =>
        {
            finding.run(
                Side::Hub,
                "kubectl logs --namespace open-cluster-management deployment/cluster-manager --tail 50",
                &[],
            )
        }
        Purpose::PolicyWebhook if finding.id == checks::ISSUER => {
            finding.run(Side::Hub, "kubectl ocm install policy-engine --wait", &[])
        }
        Purpose::PolicyWebhook => {
            finding.run(Side::Hub, "kubectl get cronjobs,jobs --namespace ocm-policy-engine", &[])
        }
        Purpose::Agent => match &relation.cluster {
            Some(cluster) => finding.run(Side::Hub, "kubectl ocm get csr {} -o wide", &[cluster]),
            None => finding,
        },
        _ => match advice(finding.id) {
            Some(advice) => finding.advise(advice),
            None => finding,
        },
    }
}

/// What to do where no command tells more.
const fn advice(id: Id) -> Option<&'static str> {
    Some(match id {
        checks::ISSUER => {
            "give the verifier the authority that signed it, or the server a certificate of one that it trusts"
        }
        checks::EXPIRED => "renew it, and find out why nobody did",
        checks::NOT_YET_VALID => "compare the clocks of both machines",
        checks::NAME => "dial a name that it is valid for, or have it issued for this one as well",
        checks::USAGE => "have it issued again for serverAuth or clientAuth, whichever it is used for",
        checks::STRENGTH => "have it issued again with RSA of 2048 bits or more, or ECDSA on P-256, and SHA-256",
        checks::AUTHORITY => {
            "have an authority with CA:TRUE and keyCertSign issue a certificate that is no authority itself"
        }
        checks::RENEWED => "look at the log of whatever renews it",
        checks::IDENTITY => "delete the Secret: the registration agent makes it again with a certificate of its own",
        checks::KEY => "put certificate and key there together, from the same request",
        checks::READABLE => "put the certificate there again, as PEM",
        checks::VERSION => "set the oldest version of TLS that the server accepts",
        checks::CIPHERS => "set the cipher suites of the server, and see whether it was restarted since",
        _ => return None,
    })
}
