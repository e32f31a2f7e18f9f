//! Copies of authorities and addresses that have to be the same.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use ocm_api::names::namespaces;
use ocm_core::certificate::Certificate;
use ocm_core::kubeconfig::HubAddress;
use ocm_core::order::Collect as _;

use super::inventory::{Copied, Copy, Relation, Use};
use crate::finding::{Finding, Id};
use crate::registry::tls as checks;
use crate::snapshot::Side;
use crate::text::head;

/// How many authorities of one list are named.
const SHOWN: usize = 10;

/// What is wrong with copies, and between them. `relations` tell which certificates servers present.
pub(super) fn judge(copies: &[Copy], relations: &[Relation], now: Timestamp) -> Vec<Finding> {
    let of = |what: Copied| copies.iter().filter(move |copy| copy.what == what);
    let servers = relations.iter().filter(|relation| relation.usage == Use::Server);
    let presented: BTreeSet<&[u8]> =
        servers.filter_map(|relation| relation.chain.first()).map(|der| der.0.as_slice()).collect_set();
    let mut found: Vec<Finding> = copies.iter().flat_map(|copy| clean(copy, &presented, now)).collect();
    // The pods of several hubs may run on one cluster, each hub's in a namespace of its own.
    let beside = |what: Copied, namespace: Option<&str>| of(what).find(|copy| copy.place.namespace() == namespace);
    for signer in of(Copied::Signer) {
        let bundle = beside(Copied::Bundle, signer.place.namespace());
        found.extend(bundle.and_then(|bundle| signed_by_none(signer, bundle)));
    }
    // The webhooks of a hosted hub are known to its own API server, and not to that of the cluster where its pods run.
    if let Some(bundle) = beside(Copied::Bundle, Some(namespaces::HUB)) {
        let signer = beside(Copied::Signer, Some(namespaces::HUB));
        found.extend(of(Copied::WebhookBundle).filter_map(|copy| differs(copy, bundle, signer)));
    }
    for copy in of(Copied::GrpcBundle) {
        // Of which of several hubs an agent is, is not known: one that trusts the signer of any may be of that one.
        let lacking: Option<Vec<Finding>> = of(Copied::Signer).map(|signer| lacks(copy, signer)).collect();
        found.extend(lacking.into_iter().flatten().next());
    }
    for accepted in of(Copied::Accepted) {
        let of_cluster = |copy: &&Copy| copy.cluster == accepted.cluster;
        if let Some(bootstrap) = of(Copied::Bootstrap).find(of_cluster) {
            found.extend(two_hubs(bootstrap, accepted));
        }
    }
    let mut hosted: Vec<&Copy> = Vec::new();
    for copy in copies.iter().filter(|copy| matches!(copy.what, Copied::HostedApi | Copied::HostedHub)) {
        // The first one of a namespace is the one that an operator makes the others of, or another one of those where it could
        // not be read: all of them have to be the same.
        let key = |copy: &Copy| (copy.what, copy.cluster.clone(), copy.place.namespace().map(str::to_owned));
        match hosted.iter().find(|first| key(first) == key(copy)) {
            Some(first) => found.extend(other_than(copy, first)),
            None => hosted.push(copy),
        }
    }
    for reported in of(Copied::Reported) {
        let own = of(Copied::OwnApi).find(|copy| copy.cluster == reported.cluster);
        found.extend(own.and_then(|own| foreign(reported, own)));
    }
    found
}

fn finding(id: Id, copy: &Copy, found: Finding) -> Finding {
    Finding { id, cluster: copy.cluster.clone(), ..found.at(&copy.place) }
}

fn set(copy: &Copy) -> BTreeSet<&[u8]> {
    copy.authorities.iter().map(|der| der.0.as_slice()).collect_set()
}

/// Certificates that are in one list and not in the other, in words.
fn missing(of: &[ByteString], within: &BTreeSet<&[u8]>) -> Vec<String> {
    let missing = of.iter().filter(|der| !within.contains(der.0.as_slice()));
    missing
        .filter_map(|der| Certificate::read(&der.0))
        .map(|certificate| format!("{} ({})", about(&certificate), certificate.pin))
        .collect()
}

/// Subject and serial number, which whoever made the certificate chose.
fn about(certificate: &Certificate) -> String {
    format!("{} (serial {})", head(&certificate.subject, 200), head(&certificate.serial, 50))
}

/// What to do about what stands in a list for nothing.
const TAKE_OUT: &str = "take it out: others in it count without it";

/// What to do about a certificate that is not of an authority, and by which a server may be trusted all the same.
const REPLACE: &str = "put the certificate of the CA there that issued the server's certificate, and only then take \
                       this one out: clients written in Go, and so agents, trust a server that presents exactly \
                       this one";

/// Twice the same, expired, no authority, or not even a certificate.
///
/// A certificate that a server presents is trusted where it stands itself: agents trust such a server by nothing else.
fn clean(copy: &Copy, presented: &BTreeSet<&[u8]>, now: Timestamp) -> Vec<Finding> {
    if copy.what == Copied::Signer {
        return Vec::new();
    }
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for der in &copy.authorities {
        let Some(certificate) = Certificate::read(&der.0) else { continue };
        let about = about(&certificate);
        let is_presented = presented.contains(der.0.as_slice());
        let why = match () {
            () if !seen.insert(&der.0) => (format!("{about} stands there twice"), TAKE_OUT),
            () if now > certificate.not_after => (format!("{about} expired at {}", certificate.not_after), TAKE_OUT),
            () if !certificate.is_ca && !is_presented => (format!("{about} is not of an authority"), REPLACE),
            () => continue,
        };
        found.push(why);
    }
    if copy.unreadable > 0 {
        found.push((format!("{} of its blocks cannot be read", copy.unreadable), TAKE_OUT));
    }
    let finding = |(why, advice): (String, &str)| {
        let words = format!("the authorities in {} are not clean: {why}", copy.place);
        finding(checks::BUNDLE, copy, Finding::warning(words).advise(advice))
    };
    found.into_iter().map(finding).collect()
}

/// The operator puts its present signer and bundle wherever they belong when it starts.
fn restart(finding: Finding) -> Finding {
    finding.run(
        Side::Hub,
        "kubectl rollout restart --namespace open-cluster-management deployment/cluster-manager",
        &[],
    )
}

/// The signer is not in the bundle.
fn signed_by_none(signer: &Copy, bundle: &Copy) -> Option<Finding> {
    let missing = missing(&signer.authorities, &set(bundle));
    let words = format!("the hub signs with an authority that is not in its bundle, {}", bundle.place);
    let found = missing.iter().fold(Finding::error(words), |found, line| found.seen(format!("missing: {line}")));
    (!missing.is_empty()).then(|| restart(finding(checks::SIGNER_IN_BUNDLE, signer, found.at(&bundle.place))))
}

/// A webhook's copy is not the bundle. It matters most where the present signer is missing.
fn differs(copy: &Copy, bundle: &Copy, signer: Option<&Copy>) -> Option<Finding> {
    let (own, wanted) = (set(copy), set(bundle));
    if own == wanted {
        return None;
    }
    let lacks_signer = signer.is_some_and(|signer| !missing(&signer.authorities, &own).is_empty());
    let words = format!("{} has other authorities than the hub's bundle, {}", copy.place, bundle.place);
    let found = if lacks_signer { Finding::error(words) } else { Finding::warning(words) };
    let found =
        missing(&bundle.authorities, &own).iter().fold(found, |found, line| found.seen(format!("lacks {line}")));
    let found = missing(&copy.authorities, &wanted).iter().fold(found, |found, line| found.seen(format!("has {line}")));
    Some(restart(finding(checks::WEBHOOK_BUNDLE, copy, found)))
}

/// An agent that registers over gRPC does not trust the present signer.
fn lacks(copy: &Copy, signer: &Copy) -> Option<Finding> {
    let missing = missing(&signer.authorities, &set(copy));
    let words = format!("{} lacks the authority with which the hub signs now", copy.place);
    let found = missing.iter().fold(Finding::warning(words), |found, line| found.seen(format!("missing: {line}")));
    let found = found.advise("join the cluster again, so that it gets the hub's present bundle");
    (!missing.is_empty()).then(|| finding(checks::GRPC_BUNDLE, copy, found))
}

/// What works on another cluster has not what its operator has.
fn other_than(copy: &Copy, first: &Copy) -> Option<Finding> {
    let (own, wanted) = (set(copy), set(first));
    if own == wanted {
        return None;
    }
    let words = format!("{} has other authorities than {}", copy.place, first.place);
    let lines = missing(&first.authorities, &own);
    let found =
        lines.iter().take(SHOWN).fold(Finding::warning(words), |found, line| found.seen(format!("lacks {line}")));
    let lines = missing(&copy.authorities, &wanted);
    let found = lines.iter().take(SHOWN).fold(found, |found, line| found.seen(format!("has {line}")));
    let (side, operator) = match copy.what {
        Copied::HostedHub => (Side::Hub, "cluster-manager"),
        _ => (Side::Managed, "klusterlet"),
    };
    let log = "kubectl logs --namespace open-cluster-management deployment/{} --tail 50";
    Some(finding(checks::HOSTED_AUTHORITY, copy, found.run(side, log, &[operator]).at(&first.place)))
}

/// Whether what an agent reported of its cluster's API server has nothing of what the cluster itself publishes of it.
pub fn is_foreign(reported: &Copy, own: &Copy) -> bool {
    if (reported.what, own.what) != (Copied::Reported, Copied::OwnApi) || reported.cluster != own.cluster {
        return false;
    }
    let (known, real) = (set(reported), set(own));
    !known.is_empty() && !real.is_empty() && known.is_disjoint(&real)
}

/// What the hub has of a cluster's API server vouches for another one, and not for a load balancer in front of it.
fn foreign(reported: &Copy, own: &Copy) -> Option<Finding> {
    if !is_foreign(reported, own) || reported.vouches == Some(true) {
        return None;
    }
    let (known, real) = (set(reported), set(own));
    let name = reported.cluster.as_deref().unwrap_or_default();
    let words = format!("the hub has no authority of the API server of {name}, but others");
    // What an agent reports may be of any length.
    let listed = |found: Finding, copy: &Copy, without: &BTreeSet<&[u8]>| {
        let lines = missing(&copy.authorities, without);
        lines.iter().take(SHOWN).fold(found, |found, line| found.seen(format!("{}: {line}", copy.place)))
    };
    let found = listed(listed(Finding::warning(words), reported, &real), own, &known);
    let address = head(reported.server.as_deref().unwrap_or("the address there"), 200);
    let found = match reported.vouches {
        Some(_) => found.seen(format!("what the hub has does not vouch for what answers at {address} either")),
        None => found.advise(format!(
            "{address} was not asked, or did not answer: if a load balancer answers there with a certificate of its own, suppress this"
        )),
    };
    let found = found.run(Side::Hub, "kubectl edit managedcluster {}", &[name]);
    Some(finding(checks::REPORTED_AUTHORITY, reported, found.at(&own.place)))
}

/// What an agent registers with and what it was let in with differ.
fn two_hubs(bootstrap: &Copy, accepted: &Copy) -> Vec<Finding> {
    let mut found = Vec::new();
    if set(bootstrap) != set(accepted) {
        let words = format!("{} and {} trust different authorities of the hub", bootstrap.place, accepted.place);
        let lines = missing(&bootstrap.authorities, &set(accepted));
        let warning = lines.iter().fold(Finding::warning(words), |found, line| found.seen(format!("lacks {line}")));
        let warning =
            warning.advise("join the cluster again with the authority that vouches for the hub, and accept it");
        found.push(finding(checks::SAME_AUTHORITY, accepted, warning.at(&bootstrap.place)));
    }
    let at = |copy: &Copy| HubAddress { server: copy.server.clone().unwrap_or_default(), ..HubAddress::default() };
    let same_server = at(bootstrap).is_at(&at(accepted).server);
    if !same_server || bootstrap.proxy != accepted.proxy {
        let words = format!("{} and {} reach the hub in different ways", bootstrap.place, accepted.place);
        let way = |copy: &Copy| {
            let proxy = copy.proxy.as_ref().map_or_else(|| "no proxy".to_owned(), |proxy| format!("the proxy {proxy}"));
            format!("{}: {} by {proxy}", copy.place, copy.server.as_deref().unwrap_or("no address"))
        };
        let warning = Finding::warning(words).seen(way(bootstrap)).seen(way(accepted));
        let name = accepted.cluster.as_deref().unwrap_or_default();
        let warning = warning.run(Side::Hub, "kubectl ocm accept {}", &[name]);
        found.push(finding(checks::SAME_ADDRESS, accepted, warning.at(&bootstrap.place)));
    }
    found
}
