//! What the hub is to hold: kept as long as it is good, and made anew.
//!
//! ```text
//! what is there + now ─▶ keep what is good, make what is missing or two thirds old ─▶ bundle: new and former authorities
//! ```
//!
//! A new authority signs nothing before the API server trusts it, so its first certificate comes with a second look, when
//! the bundle has been applied.

use jiff::{SignedDuration, Timestamp};
use ocm_core::certificate::{self, Certificate, is_signed_by, to_pem};
use ocm_core::order;
use ocm_core::pin::Pin;
use ocm_core::policy_engine::{Certificates, Pair, SERVER_NAME};
use ocm_core::{Failure, Reason};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, NameConstraints, PublicKeyData as _,
};
use time::OffsetDateTime;

/// How long an authority lives.
const AUTHORITY: SignedDuration = SignedDuration::from_hours(365 * 24);
/// How long a serving certificate lives.
const SERVING: SignedDuration = SignedDuration::from_hours(90 * 24);
/// Clocks of API servers may differ by so much.
const SKEW: SignedDuration = SignedDuration::from_hours(1);
/// How many authorities the API server trusts at most.
const MOST: usize = 3;
/// The common name of every authority of our make.
const AUTHORITY_NAME: &str = "ocm-policy-engine";

/// What the hub holds.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The authority's Secret. Behind the certificate that signs come those that were trusted when it was made.
    pub authority: Option<Pair>,
    /// The Secret that the webhook serves with.
    pub serving: Option<Pair>,
    /// What each entry has the API server trust, as PEM; none: it does not ask the webhook.
    pub bundles: Vec<Vec<u8>>,
}

/// What the hub is to hold.
///
/// # Errors
/// When a certificate cannot be made.
pub fn renew(found: &Found, now: Timestamp) -> Result<Certificates, Failure> {
    let kept = found.authority.as_ref().filter(|pair| is_fresh(pair, now) && authority_of(pair).is_some());
    let mut authority = match kept {
        Some(pair) => pair.clone(),
        None => new_authority(now)?,
    };
    let trusted: Vec<_> = found.bundles.iter().map(|bundle| read(bundle)).collect();
    let bundle = bundle(&authority, found, &trusted, now);
    if kept.is_none() {
        // Nobody but us writes it: whatever becomes of the bundles, what is served now can be trusted again.
        authority.certificate = to_pem(&bundle);
    }
    let serving = match &found.serving {
        Some(pair) if stays(pair, &authority, &bundle, &trusted, now) => pair.clone(),
        _ => new_serving(&authority, now)?,
    };
    Ok(Certificates { authority, serving, bundle: to_pem(&bundle) })
}

/// Whether a serving certificate stays. One that is old stays as long as the API server does not trust the authority that
/// would sign the next one, if it can be used at all.
fn stays(pair: &Pair, authority: &Pair, bundle: &[Vec<u8>], trusted: &[Vec<Vec<u8>>], now: Timestamp) -> bool {
    let signs = certificates_of(authority).into_iter().next().unwrap_or_default();
    is_usable(pair, bundle, now) && (is_fresh(pair, now) || trusted.iter().any(|bundle| !bundle.contains(&signs)))
}

/// Whether whoever trusts these authorities believes that it is the webhook.
pub(crate) fn is_usable(pair: &Pair, trusted: &[Vec<u8>], now: Timestamp) -> bool {
    let valid = |der: &Vec<u8>| Certificate::read(der).is_some_and(|issuer| issuer.is_valid(now));
    certificate_of(pair).is_some_and(|(der, certificate)| {
        certificate.is_valid(now)
            && certificate.names.iter().any(|name| name == SERVER_NAME)
            && trusted.iter().any(|issuer| valid(issuer) && is_signed_by(&der, issuer))
    })
}

/// The newest authority, and those before it that are of this make and whose certificates may still be served; the one that
/// has signed what is served before all others.
fn bundle(authority: &Pair, found: &Found, trusted: &[Vec<Vec<u8>>], now: Timestamp) -> Vec<Vec<u8>> {
    let mut newest = certificates_of(authority);
    let former = newest.split_off(newest.len().min(1));
    let before = found.authority.iter().flat_map(certificates_of);
    let mut others: Vec<Vec<u8>> = Vec::new();
    for der in trusted.iter().flatten().cloned().chain(former).chain(before) {
        let Some(read) = Certificate::read(&der) else { continue };
        let ours = read.is_ca && read.is_valid(now) && is_ours(&read.subject);
        if ours && !newest.contains(&der) && !others.contains(&der) {
            others.push(der);
        }
    }
    let served = found.serving.as_ref().and_then(|pair| certificates_of(pair).into_iter().next());
    order::sort_by_key(&mut others, |der| !served.as_ref().is_some_and(|served| is_signed_by(served, der)));
    newest.extend(others);
    newest.truncate(MOST);
    newest
}

/// Whether it is the distinguished name of an authority of our make.
pub(crate) fn is_ours(name: &str) -> bool {
    name.strip_prefix("CN=") == Some(AUTHORITY_NAME)
}

/// The certificates of a PEM file in DER; none where it cannot be read.
pub(crate) fn read(pem: &[u8]) -> Vec<Vec<u8>> {
    certificate::from_pem(pem).unwrap_or_default()
}

/// The certificates of a pair, in DER.
pub(crate) fn certificates_of(pair: &Pair) -> Vec<Vec<u8>> {
    read(pair.certificate.as_bytes())
}

/// The certificate of a pair whose key belongs to it.
fn certificate_of(pair: &Pair) -> Option<(Vec<u8>, Certificate)> {
    let der = certificates_of(pair).into_iter().next()?;
    let certificate = Certificate::read(&der)?;
    let key = KeyPair::from_pem(&pair.key).ok()?;
    (Pin::of_key(&key.subject_public_key_info()) == certificate.pin).then_some((der, certificate))
}

fn authority_of(pair: &Pair) -> Option<Certificate> {
    certificate_of(pair).map(|(_, certificate)| certificate).filter(|certificate| certificate.is_ca)
}

/// Whether two thirds of its life have not passed.
fn is_fresh(pair: &Pair, now: Timestamp) -> bool {
    certificate_of(pair).is_some_and(|(_, certificate)| {
        let life = certificate.not_after.duration_since(certificate.not_before);
        certificate.is_valid(now) && now < certificate.not_before + life * 2 / 3
    })
}

fn new_authority(now: Timestamp) -> Result<Pair, Failure> {
    let key = KeyPair::generate().map_err(cannot)?;
    let certificate = authority_params(now)?.self_signed(&key).map_err(cannot)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// What every authority has in common but its key and its days.
fn authority_params(now: Timestamp) -> Result<CertificateParams, Failure> {
    let mut params = params(Vec::new(), AUTHORITY_NAME, now, AUTHORITY)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    // Whoever gets hold of its key can pass for the webhook and for nobody else.
    let permitted_subtrees = vec![GeneralSubtree::DnsName(SERVER_NAME.to_owned())];
    params.name_constraints = Some(NameConstraints { permitted_subtrees, excluded_subtrees: Vec::new() });
    Ok(params)
}

fn new_serving(authority: &Pair, now: Timestamp) -> Result<Pair, Failure> {
    let key = KeyPair::generate().map_err(cannot)?;
    let signs = KeyPair::from_pem(&authority.key).map_err(cannot)?;
    // A certificate that lives longer than its authority is refused with it.
    let ends = authority_of(authority).map_or(SERVING, |of| of.not_after.duration_since(now).min(SERVING));
    let mut params = params(vec![SERVER_NAME.to_owned()], SERVER_NAME, now, ends)?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let certificate = params.signed_by(&key, &Issuer::new(authority_params(now)?, signs)).map_err(cannot)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn params(
    names: Vec<String>,
    common_name: &str,
    now: Timestamp,
    life: SignedDuration,
) -> Result<CertificateParams, Failure> {
    let mut params = CertificateParams::new(names).map_err(cannot)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    (params.not_before, params.not_after) = (time(now - SKEW)?, time(now + life)?);
    Ok(params)
}

fn time(at: Timestamp) -> Result<OffsetDateTime, Failure> {
    OffsetDateTime::from_unix_timestamp(at.as_second()).map_err(|error| cannot_because(&error))
}

fn cannot(error: rcgen::Error) -> Failure {
    cannot_because(&error)
}

fn cannot_because(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Reason::Other, "the webhook's certificates cannot be made").because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: SignedDuration = SignedDuration::from_hours(24);

    fn start() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    /// What the hub holds after everything was applied.
    fn applied(made: &Certificates) -> Found {
        let Certificates { authority, serving, bundle } = made.clone();
        Found { authority: Some(authority), serving: Some(serving), bundles: vec![bundle.into_bytes()] }
    }

    #[test]
    fn what_is_made_is_for_the_service_alone_and_stays_until_two_thirds_of_its_life() {
        let made = renew(&Found::default(), start()).unwrap();
        let (der, serving) = certificate_of(&made.serving).unwrap();
        assert_eq!((serving.names, serving.is_ca), (vec![SERVER_NAME.to_owned()], false));
        assert!(is_signed_by(&der, &read(made.bundle.as_bytes())[0]));
        let authority = authority_of(&made.authority).unwrap();
        assert_eq!(authority.not_after.duration_since(start()), DAY * 365);
        assert_eq!(serving.not_after.duration_since(start()), DAY * 90);
        for day in [0, 1, 59] {
            assert_eq!(renew(&applied(&made), start() + DAY * day).unwrap(), made, "{day}");
        }
        let later = renew(&applied(&made), start() + DAY * 60).unwrap();
        assert_eq!((&later.authority, &later.bundle), (&made.authority, &made.bundle));
        assert_ne!(later.serving, made.serving);
        assert!(!format!("{made:?}").contains("PRIVATE"));
    }

    #[test]
    fn what_cannot_be_used_is_made_anew() {
        let (made, other) = (renew(&Found::default(), start()).unwrap(), renew(&Found::default(), start()).unwrap());
        let good = applied(&made);
        // Another one's key, another authority's certificate, nothing at all.
        let mixed = Pair { key: other.serving.key.clone(), ..made.serving.clone() };
        let garbage = Pair { certificate: "x".to_owned(), key: "y".to_owned() };
        for wrong in [None, Some(mixed), Some(other.serving.clone()), Some(garbage.clone())] {
            let renewed = renew(&Found { serving: wrong.clone(), ..good.clone() }, start()).unwrap();
            assert_ne!(Some(renewed.serving), wrong);
            assert_eq!((&renewed.authority, &renewed.bundle), (&made.authority, &made.bundle));
        }
        for wrong in [None, Some(garbage), Some(made.serving.clone())] {
            let renewed = renew(&Found { authority: wrong, ..good.clone() }, start()).unwrap();
            assert_ne!(renewed.authority, made.authority);
            assert_eq!(renewed.serving, made.serving, "the API server does not trust the new one yet");
            assert!(renewed.bundle.contains(&made.bundle), "what is served stays trusted");
        }
    }

    #[test]
    fn what_others_put_into_the_bundle_is_not_trusted() {
        let made = renew(&Found::default(), start()).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = params(Vec::new(), "somebody else", start(), AUTHORITY).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let foreign = params.self_signed(&key).unwrap().pem();
        let bundles = vec![format!("{foreign}{}", made.bundle).into_bytes()];
        let renewed = renew(&Found { bundles, ..applied(&made) }, start()).unwrap();
        assert_eq!(renewed, made);
    }
}
