//! Whether a chain is trusted: what the verifier of rustls says, and what Go and OpenSSL say where they differ from it.
//!
//! What another verifier sees differently is handed to the same library: authorities that it does not use are left out, and
//! what it accepts besides is asked for. `tests/contract/tests/tls_verdicts.rs` compares the answers with those of the programs themselves.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use ocm_core::certificate::{Certificate, is_signed_by};
use rustls_pki_types::{CertificateDer, ServerName, SignatureVerificationAlgorithm, UnixTime};
use webpki::{
    EndEntityCert, Error, ExtendedKeyUsageValidator, KeyPurposeId, KeyPurposeIdIter, KeyUsage,
    RequiredEkuNotFoundContext, anchor_from_trusted_cert,
};

use super::algorithm;
use super::client::Client;
use super::inventory::Use;

/// What is asked about a chain.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The certificates in DER, the own one first.
    pub chain: &'a [&'a [u8]],
    /// Whom the verifier trusts, in DER; none: that is not asked.
    pub authorities: Option<&'a [&'a [u8]]>,
    /// The names that are dialled; each has to be valid.
    pub names: &'a [String],
    /// Who shows it.
    pub usage: Use,
    /// The time of the verifier.
    pub at: Timestamp,
}

/// Why a chain is not trusted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// It is no certificate, or one that cannot be read.
    Unreadable(String),
    /// No authority of the verifier has signed it.
    UnknownIssuer,
    /// A certificate has expired; whose.
    Expired(Whose),
    /// A certificate is not valid yet; whose.
    NotYetValid(Whose),
    /// It is not valid for this name.
    Name(String),
    /// It may not be used for this.
    Usage(Whose),
    /// A certificate in the chain signs others and may not.
    MayNotSign,
    /// The certificate is that of an authority and is used as somebody's own.
    IsAuthority,
    /// An authority may not sign for this name.
    Constrained,
    /// The algorithm of a signature is not supported, or a key is too short.
    Algorithm,
    /// Something else, in the words of the library.
    Other(String),
}

/// Which certificate of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whose {
    /// The own one.
    Own,
    /// One of those that signed it.
    Issuer,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => write!(f, "it cannot be read: {why}"),
            Self::UnknownIssuer => f.write_str("no authority that is trusted has signed it"),
            Self::Expired(Whose::Own) => f.write_str("it has expired"),
            Self::Expired(Whose::Issuer) => f.write_str("a certificate that signed it has expired"),
            Self::NotYetValid(Whose::Own) => f.write_str("it is not valid yet"),
            Self::NotYetValid(Whose::Issuer) => f.write_str("a certificate that signed it is not valid yet"),
            Self::Name(name) => write!(f, "it is not valid for {name}"),
            Self::Usage(Whose::Own) => f.write_str("it may not be used for this (extended key usage)"),
            Self::Usage(Whose::Issuer) => {
                f.write_str("a certificate that signed it may not be used for this (extended key usage)")
            }
            Self::MayNotSign => f.write_str("a certificate that signed it may not sign certificates"),
            Self::IsAuthority => {
                f.write_str("it is the certificate of an authority, which may not be used as a server's")
            }
            Self::Constrained => f.write_str("an authority may not sign for this name (name constraints)"),
            Self::Algorithm => f.write_str("the algorithm of a signature is not supported, or a key is too short"),
            Self::Other(words) => f.write_str(words),
        }
    }
}

/// Why a client does not trust a chain; empty: it does.
///
/// A certificate that is out of its time is asked about once more within it, so that what else is wrong is told, too.
pub fn verdict(client: Client, question: &Question<'_>) -> Vec<Refusal> {
    let own = question.chain.first().and_then(|der| Certificate::read(der));
    let Some(own) = own else {
        return vec![Refusal::Unreadable("it is no X.509 certificate".to_owned())];
    };
    let mut found = Vec::new();
    if let Err(refusal) = path(client, question, &own) {
        let out_of_time = matches!(refusal, Refusal::Expired(_) | Refusal::NotYetValid(_));
        found.push(refusal);
        if out_of_time && !own.is_valid(question.at) {
            let at = if question.at > own.not_after { own.not_after } else { own.not_before };
            let again = path(client, &Question { at, ..*question }, &own);
            found.extend(again.err().filter(|again| !matches!(again, Refusal::Expired(_) | Refusal::NotYetValid(_))));
        }
    }
    if question.usage == Use::Server {
        let leaf = CertificateDer::from(question.chain[0]);
        let wrong = question.names.iter().filter(|name| !is_for(client, &leaf, &own, name));
        found.extend(wrong.cloned().map(Refusal::Name));
    }
    found
}

/// Whether the client finds a way from the certificate to an authority.
fn path(client: Client, question: &Question<'_>, own: &Certificate) -> Result<(), Refusal> {
    match client {
        Client::Rustls => {
            let Some(authorities) = question.authorities else { return properties(client, question, own) };
            let issuers: Vec<&[u8]> = question.chain[1..].iter().take(LONGEST).copied().collect();
            of_library(client, question, authorities, &issuers, own)
        }
        Client::Go | Client::OpenSsl => others(client, question, own),
    }
}

/// What can be said where the authorities are not known.
fn properties(client: Client, question: &Question<'_>, own: &Certificate) -> Result<(), Refusal> {
    in_time(own, question.at, Whose::Own)?;
    if !allows(client, own, question.usage) {
        return Err(Refusal::Usage(Whose::Own));
    }
    if question.authorities.is_none() { issuers_in_time(question) } else { Ok(()) }
}

/// Whether those that signed it, as far as they are presented, have not expired. What has signed itself is passed over: the
/// verifier looks at its own copy of it.
fn issuers_in_time(question: &Question<'_>) -> Result<(), Refusal> {
    let (mut at, mut left) = (question.chain[0], question.chain[1..].iter().take(LONGEST).copied().collect::<Vec<_>>());
    loop {
        let mut signed: Vec<(&[u8], Result<(), Refusal>)> = Vec::new();
        for der in &left {
            let issuer = Certificate::read(der).filter(|issuer| !issuer.is_self_issued() && is_signed_by(at, der));
            signed.extend(issuer.map(|issuer| (*der, in_time(&issuer, question.at, Whose::Issuer))));
        }
        match signed.iter().find(|(_, time)| time.is_ok()).or(signed.first()) {
            None => return Ok(()),
            Some((_, Err(refusal))) => return Err(refusal.clone()),
            Some((next, Ok(()))) => {
                at = next;
                left.retain(|der| der != next);
            }
        }
    }
}

/// The same way through the chain for a client that looks at authorities, too.
fn others(client: Client, question: &Question<'_>, own: &Certificate) -> Result<(), Refusal> {
    if client == Client::OpenSsl && !may_handshake(own, question.usage) {
        return Err(Refusal::Usage(Whose::Own));
    }
    let Some(authorities) = question.authorities else { return properties(client, question, own) };
    let is_usable =
        |der: &&[u8]| Certificate::read(der).is_some_and(|issuer| usable(client, &issuer, question).is_ok());
    let may_sign = |der: &&[u8]| Certificate::read(der).is_some_and(|issuer| signs(&issuer));
    let is_anchor = |der: &&[u8]| {
        client == Client::Go || Certificate::read(der).is_some_and(|certificate| certificate.is_self_issued())
    };
    let anchors: Vec<&[u8]> = authorities.iter().copied().filter(is_anchor).collect();
    let good: Vec<&[u8]> = anchors.iter().copied().filter(is_usable).collect();
    // What OpenSSL finds among its authorities and is not signed by itself leads on to one that is.
    let mut others: Vec<&[u8]> = question.chain[1..].iter().take(LONGEST).copied().collect();
    others.extend(authorities.iter().copied().filter(|der| !is_anchor(der)));
    let issuers: Vec<&[u8]> = others.iter().copied().filter(may_sign).collect();

    if anchors.contains(&question.chain[0]) {
        return properties(client, question, own);
    }
    let ask = |anchors: &[&[u8]], issuers: &[&[u8]]| -> Result<(), Refusal> {
        if own.is_ca {
            return of_authority(client, question, own, anchors, issuers);
        }
        of_library(client, question, anchors, issuers, own)
    };
    let Err(refusal) = ask(&good, &issuers) else { return Ok(()) };
    if refusal != Refusal::UnknownIssuer {
        return Err(refusal);
    }
    // Is it for want of those that were left out?
    for der in &anchors {
        let why = Certificate::read(der).and_then(|issuer| usable(client, &issuer, question).err());
        if let Some(why) = why
            && ask(&[*der], &others).is_ok()
        {
            return Err(why);
        }
    }
    if ask(&good, &others).is_ok() { Err(Refusal::MayNotSign) } else { Err(refusal) }
}

/// So many of the certificates that somebody presents are looked at: more are in no chain that anybody accepts, and
/// whoever presents them chooses how many signatures are verified.
const LONGEST: usize = 16;

/// The certificate of an authority as somebody's own, which the library refuses and the others do not.
fn of_authority(
    client: Client,
    question: &Question<'_>,
    own: &Certificate,
    anchors: &[&[u8]],
    issuers: &[&[u8]],
) -> Result<(), Refusal> {
    properties(client, question, own)?;
    let issuers: Vec<(&[u8], Result<(), Refusal>)> =
        issuers.iter().filter_map(|der| Some((*der, usable(client, &Certificate::read(der)?, question)))).collect();
    let good: Vec<&[u8]> = issuers.iter().filter(|(_, usable)| usable.is_ok()).map(|(der, _)| *der).collect();
    if leads(question.chain[0], anchors, &good) {
        return Ok(());
    }
    let all: Vec<&[u8]> = issuers.iter().map(|(der, _)| *der).collect();
    let refusal = issuers.into_iter().find_map(|(_, usable)| usable.err()).filter(|_| {
        // For want of those that were left out.
        leads(question.chain[0], anchors, &all)
    });
    Err(refusal.unwrap_or(Refusal::UnknownIssuer))
}

/// Whether signatures lead from the certificate to one of the anchors. Each certificate is looked at once, however they
/// sign each other.
fn leads(der: &[u8], anchors: &[&[u8]], issuers: &[&[u8]]) -> bool {
    let (mut frontier, mut left) = (vec![der], issuers.to_vec());
    while let Some(der) = frontier.pop() {
        if anchors.iter().any(|anchor| is_signed_by(der, anchor)) {
            return true;
        }
        let (signed, others): (Vec<&[u8]>, Vec<&[u8]>) = left.into_iter().partition(|issuer| is_signed_by(der, issuer));
        frontier.extend(signed);
        left = others;
    }
    false
}

/// Whether Go and OpenSSL use the certificate of an authority; rustls looks at nothing but its name and its key.
fn usable(client: Client, issuer: &Certificate, question: &Question<'_>) -> Result<(), Refusal> {
    in_time(issuer, question.at, Whose::Issuer)?;
    if !issuer.is_ca || !signs(issuer) {
        return Err(Refusal::MayNotSign);
    }
    if allows(client, issuer, question.usage) { Ok(()) } else { Err(Refusal::Usage(Whose::Issuer)) }
}

fn in_time(certificate: &Certificate, at: Timestamp, whose: Whose) -> Result<(), Refusal> {
    match () {
        () if at > certificate.not_after => Err(Refusal::Expired(whose)),
        () if at < certificate.not_before => Err(Refusal::NotYetValid(whose)),
        () => Ok(()),
    }
}

/// Whether a certificate that says what its key is for lets it sign others.
fn signs(certificate: &Certificate) -> bool {
    certificate.key_usage.is_none_or(|usage| usage.cert_sign)
}

/// Whether its extended key usage allows this. What is allowed for everything counts for Go alone.
fn allows(client: Client, certificate: &Certificate, usage: Use) -> bool {
    certificate.usage.is_none_or(|allowed| match usage {
        _ if client == Client::Go && allowed.any => true,
        Use::Server => allowed.server,
        Use::Client => allowed.client,
        Use::Authority => true,
    })
}

/// Whether its key may take part in a handshake, which only OpenSSL asks.
fn may_handshake(certificate: &Certificate, usage: Use) -> bool {
    certificate.key_usage.is_none_or(|allowed| match usage {
        Use::Server => allowed.digital_signature || allowed.key_encipherment || allowed.key_agreement,
        Use::Client => allowed.digital_signature || allowed.key_agreement,
        Use::Authority => true,
    })
}

/// What the library says with the algorithms of a client. A key that is too short looks like that of a stranger to it.
fn of_library(
    client: Client,
    question: &Question<'_>,
    authorities: &[&[u8]],
    issuers: &[&[u8]],
    own: &Certificate,
) -> Result<(), Refusal> {
    let any = client == Client::Go;
    let Err(error) = ask(question, authorities, issuers, &algorithm::of(client), any) else { return Ok(()) };
    let refusal = refusal(client, &error, question, own);
    let lenient = || ask(question, authorities, issuers, &algorithm::of(Client::Go), any);
    if refusal == Refusal::UnknownIssuer && client != Client::Go && lenient().is_ok() {
        return Err(Refusal::Algorithm);
    }
    Err(refusal)
}

/// Asks the library.
fn ask(
    question: &Question<'_>,
    authorities: &[&[u8]],
    issuers: &[&[u8]],
    algorithms: &[&dyn SignatureVerificationAlgorithm],
    any_usage: bool,
) -> Result<(), Error> {
    let leaf = CertificateDer::from(question.chain[0]);
    let authorities: Vec<CertificateDer<'_>> = authorities.iter().map(|der| CertificateDer::from(*der)).collect();
    let anchors: Vec<_> = authorities.iter().filter_map(|der| anchor_from_trusted_cert(der).ok()).collect();
    let issuers: Vec<CertificateDer<'_>> = issuers.iter().map(|der| CertificateDer::from(*der)).collect();
    let seconds = u64::try_from(question.at.as_second()).unwrap_or_default();
    let time = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    let usage = Usages { wanted: question.usage, any: any_usage };
    let leaf = EndEntityCert::try_from(&leaf)?;
    leaf.verify_for_usage(algorithms, &anchors, &issuers, time, usage, None, None).map(|_| ())
}

/// The extended key usages that a verifier takes.
#[derive(Clone, Copy)]
struct Usages {
    wanted: Use,
    /// Whether `anyExtendedKeyUsage` allows everything, as it does for Go.
    any: bool,
}

/// `anyExtendedKeyUsage`, RFC 5280 section 4.2.1.12.
const ANY: [usize; 5] = [2, 5, 29, 37, 0];

impl ExtendedKeyUsageValidator for Usages {
    fn validate(&self, present: KeyPurposeIdIter<'_, '_>) -> Result<(), Error> {
        let usage = match self.wanted {
            Use::Server => KeyUsage::server_auth(),
            Use::Client | Use::Authority => KeyUsage::client_auth(),
        };
        if !self.any {
            return usage.validate(present);
        }
        let present = present.collect::<Result<Vec<KeyPurposeId<'_>>, Error>>()?;
        let present: Vec<Vec<usize>> = present.iter().map(KeyPurposeId::to_decoded_oid).collect();
        let wanted: Vec<usize> = usage.oid_values().collect();
        if present.is_empty() || present.contains(&wanted) || present.iter().any(|oid| *oid == ANY) {
            return Ok(());
        }
        Err(Error::RequiredEkuNotFoundContext(RequiredEkuNotFoundContext { required: usage, present }))
    }
}

/// What an error of the library means.
fn refusal(client: Client, error: &Error, question: &Question<'_>, own: &Certificate) -> Refusal {
    let whose = |own_is: bool| if own_is { Whose::Own } else { Whose::Issuer };
    match error {
        Error::CertExpired { .. } => Refusal::Expired(whose(question.at > own.not_after)),
        Error::CertNotValidYet { .. } => Refusal::NotYetValid(whose(question.at < own.not_before)),
        Error::UnknownIssuer | Error::InvalidSignatureForPublicKey => Refusal::UnknownIssuer,
        Error::RequiredEkuNotFoundContext(_) | Error::EmptyEkuExtension => {
            Refusal::Usage(whose(!allows(client, own, question.usage)))
        }
        Error::CaUsedAsEndEntity => Refusal::IsAuthority,
        Error::EndEntityUsedAsCa | Error::PathLenConstraintViolated => Refusal::MayNotSign,
        Error::NameConstraintViolation => Refusal::Constrained,
        Error::UnsupportedSignatureAlgorithmContext(_) | Error::UnsupportedSignatureAlgorithmForPublicKeyContext(_) => {
            Refusal::Algorithm
        }
        Error::BadDer | Error::UnsupportedCertVersion | Error::ExtensionValueInvalid => {
            Refusal::Unreadable(error.to_string())
        }
        other => Refusal::Other(other.to_string()),
    }
}

/// Whether the client takes the certificate for one of this name.
fn is_for(client: Client, leaf: &CertificateDer<'_>, own: &Certificate, name: &str) -> bool {
    // What cannot be read was told of.
    let Ok(parsed) = EndEntityCert::try_from(leaf) else { return true };
    let Ok(wanted) = ServerName::try_from(name) else { return false };
    if parsed.verify_is_valid_for_subject_name(&wanted).is_ok() {
        return true;
    }
    let ServerName::DnsName(_) = wanted else { return false };
    let named: Vec<&String> = own.names.iter().filter(|name| is_dns_name(name)).collect();
    match client {
        Client::Rustls => false,
        // Go takes a wildcard for the first label of two.
        Client::Go => named.iter().any(|pattern| has_wildcard(pattern, name, 1, false)),
        // OpenSSL takes the common name where there is no other, and a wildcard for a part of a label.
        Client::OpenSsl => {
            let patterns = if named.is_empty() { own.common_names.iter().collect() } else { named };
            patterns.iter().any(|pattern| pattern.eq_ignore_ascii_case(name) || has_wildcard(pattern, name, 2, true))
        }
    }
}

/// Whether an alternative name is one of DNS: others come with their kind in front, or are addresses.
fn is_dns_name(name: &str) -> bool {
    !name.contains('(') && name.parse::<std::net::IpAddr>().is_err()
}

/// Whether a pattern with a wildcard in its first label, and at least so many labels behind it, is for this name.
fn has_wildcard(pattern: &str, name: &str, labels: usize, in_part: bool) -> bool {
    let (pattern, name) = (pattern.to_ascii_lowercase(), name.to_ascii_lowercase());
    let (Some((first, rest)), Some((label, domain))) = (pattern.split_once('.'), name.split_once('.')) else {
        return false;
    };
    let Some((before, after)) = first.split_once('*') else { return false };
    let fits = label.len() > before.len() + after.len() && label.starts_with(before) && label.ends_with(after);
    rest == domain
        && rest.split('.').count() >= labels
        && fits
        && !after.contains('*')
        && !first.starts_with("xn--")
        && (in_part || first == "*")
}
