//! When certificates and tokens expire: a time line over everything in an inventory.

use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use ocm_core::certificate::{Certificate, is_signed_by};
use ocm_core::duration;
use ocm_core::order;
use serde::Serialize;

use super::inventory::{Copy, Inventory, Place, Purpose, Relation, Token, Trust};
use crate::text;

/// The end of a certificate or a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Expiry {
    /// What it is for.
    pub purpose: Purpose,
    /// The managed cluster that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Where it was found.
    pub place: Place,
    /// What it is there.
    pub part: Part,
    /// Who it is of.
    pub subject: String,
    /// Its serial number as hex digits; empty of a token.
    pub serial: String,
    /// The pin of its key, as `--hub-ca-pin` takes it; empty of a token.
    pub pin: String,
    /// Since when it is valid.
    pub not_before: Time,
    /// Until when it is valid.
    pub not_after: Time,
    /// How much of its life is left, in percent; 0 when it is over.
    pub left_percent: u8,
    /// Whether something depends on it: it is presented, or has signed what is.
    pub in_use: bool,
}

/// What a certificate is where it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Part {
    /// The own one of whoever presents it.
    Own,
    /// One that is presented with it.
    Issuer,
    /// An authority that its verifier trusts.
    Trusted,
    /// A token, and no certificate.
    Token,
}

/// So many characters of a name are kept: whoever made the certificate chose it.
const LONGEST: usize = 200;

/// Every certificate that is presented or trusted and every token that ends, what expires first at the front.
pub(super) fn expiries(inventory: &Inventory) -> Vec<Expiry> {
    let now = inventory.observed.0;
    let mut all = Vec::new();
    for relation in &inventory.relations {
        let presented = relation.chain.iter().enumerate();
        let presented = presented.map(|(index, der)| (if index == 0 { Part::Own } else { Part::Issuer }, der));
        let trusted = match &relation.trust {
            Trust::Authorities(authorities) => authorities.as_slice(),
            _ => &[],
        };
        for (part, der) in presented.chain(trusted.iter().map(|der| (Part::Trusted, der))) {
            let in_use = part != Part::Trusted || has_signed(relation, der);
            let found = Found { purpose: relation.purpose, cluster: &relation.cluster, place: &relation.place, part };
            all.extend(found.expiry(der, in_use, now));
        }
    }
    for copy in &inventory.copies {
        let Copy { what, cluster, place, authorities, .. } = copy;
        let purpose = what.purpose();
        // Few relations are of one purpose and one cluster, however large the fleet is.
        let same = |relation: &&Relation| relation.purpose == purpose && relation.cluster == *cluster;
        let verified: Vec<&Relation> = inventory.relations.iter().filter(same).collect();
        for der in authorities {
            let in_use = verified.iter().any(|relation| has_signed(relation, der));
            all.extend(Found { purpose, cluster, place, part: Part::Trusted }.expiry(der, in_use, now));
        }
    }
    all.extend(inventory.tokens.iter().filter_map(|token| of_token(token, now)));
    let key = |expiry: &Expiry| {
        let Expiry { subject, serial, pin, cluster, part, place, .. } = expiry.clone();
        (expiry.not_after.0, subject, serial, pin, cluster, part, !expiry.in_use, place)
    };
    order::sort_by_key(&mut all, key);
    // The same certificate may be verified by several, and an authority may be trusted in many places.
    all.dedup_by(|a, b| {
        let is_same = a.serial == b.serial && a.subject == b.subject && a.pin == b.pin && a.cluster == b.cluster;
        is_same && (a.place == b.place || a.part == Part::Trusted)
    });
    all
}

/// Whether an authority has signed something of what is presented.
fn has_signed(relation: &Relation, der: &ByteString) -> bool {
    relation.chain.iter().any(|one| is_signed_by(&one.0, &der.0))
}

/// A certificate where it was found.
struct Found<'a> {
    purpose: Purpose,
    cluster: &'a Option<String>,
    place: &'a Place,
    part: Part,
}

impl Found<'_> {
    /// Its end; none of what is no certificate.
    fn expiry(self, der: &ByteString, in_use: bool, now: Timestamp) -> Option<Expiry> {
        let certificate = Certificate::read(&der.0)?;
        let Self { purpose, cluster, place, part } = self;
        Some(Expiry {
            in_use,
            purpose,
            cluster: cluster.clone(),
            place: place.clone(),
            part,
            subject: text::head(&certificate.subject, LONGEST),
            serial: text::head(&certificate.serial, LONGEST),
            pin: certificate.pin.to_string(),
            not_before: Time(certificate.not_before),
            not_after: Time(certificate.not_after),
            left_percent: left(certificate.not_before, certificate.not_after, now),
        })
    }
}

/// The end of a token; none of one that does not tell of any. Where it does not tell since when it is valid, its life is taken
/// to begin now.
fn of_token(token: &Token, now: Timestamp) -> Option<Expiry> {
    let Token { purpose, cluster, presenter, place, subject, issued, expires, .. } = token;
    let not_after = expires.clone()?;
    let not_before = issued.clone().unwrap_or(Time(now));
    Some(Expiry {
        in_use: true,
        purpose: *purpose,
        cluster: cluster.clone(),
        place: place.clone(),
        part: Part::Token,
        subject: text::head(subject.as_deref().unwrap_or(presenter), LONGEST),
        serial: String::new(),
        pin: String::new(),
        left_percent: left(not_before.0, not_after.0, now),
        not_before,
        not_after,
    })
}

/// How much of its life is left, in percent.
fn left(not_before: Timestamp, not_after: Timestamp, now: Timestamp) -> u8 {
    let life = not_after.as_second() - not_before.as_second();
    let left = not_after.as_second() - now.as_second();
    let percent = if life > 0 { i128::from(left) * 100 / i128::from(life) } else { 0 };
    u8::try_from(percent.clamp(0, 100)).unwrap_or_default()
}

/// A time before the end of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// So long before.
    Time(SignedDuration),
    /// When so many percent of its life are left.
    Percent(u8),
}

/// Why a text is no [`Within`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is neither a time such as 30d or 12h nor a part such as 20%")]
pub struct NotWithin {
    text: String,
}

impl FromStr for Within {
    type Err = NotWithin;

    fn from_str(text: &str) -> Result<Self, NotWithin> {
        let wrong = || NotWithin { text: text.to_owned() };
        if let Some(percent) = text.trim().strip_suffix('%') {
            let percent = percent.parse().ok().filter(|percent| *percent <= 100);
            return percent.map(Self::Percent).ok_or_else(wrong);
        }
        let time = duration::parse(text).map_err(|_| wrong())?;
        SignedDuration::try_from(time).map(Self::Time).map_err(|_| wrong())
    }
}

impl std::fmt::Display for Within {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Time(time) => write!(f, "{} are left", duration::human(time.unsigned_abs())),
            Self::Percent(percent) => write!(f, "{percent} % of its life are left"),
        }
    }
}

impl Expiry {
    /// Whether no more than that is left.
    pub fn is_within(&self, within: Within, now: Timestamp) -> bool {
        let left = self.not_after.0.duration_since(now);
        match within {
            Within::Time(time) => left <= time,
            Within::Percent(percent) => {
                let life = self.not_after.0.duration_since(self.not_before.0);
                left.as_nanos() * 100 <= life.as_nanos() * i128::from(percent)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_parts_are_read() {
        assert_eq!("30d".parse(), Ok(Within::Time(SignedDuration::from_hours(720))));
        assert_eq!("20%".parse(), Ok(Within::Percent(20)));
        for wrong in ["", "%", "101%", "-1%", "1y", "20 %x"] {
            assert!(wrong.parse::<Within>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_end_of_a_time_belongs_to_it() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let expiry = Expiry {
            purpose: Purpose::Given,
            cluster: None,
            place: Place::Input("-".to_owned()),
            part: Part::Own,
            subject: String::new(),
            serial: String::new(),
            pin: String::new(),
            not_before: Time(at("2026-01-01T00:00:00Z")),
            not_after: Time(at("2026-01-31T00:00:00Z")),
            left_percent: 20,
            in_use: true,
        };
        let day = Within::Time(SignedDuration::from_hours(24));
        assert!(
            expiry.is_within(day, at("2026-01-30T00:00:00Z")) && !expiry.is_within(day, at("2026-01-29T23:59:59Z"))
        );
        let (now, before) = (at("2026-01-25T00:00:00Z"), at("2026-01-24T23:59:59Z"));
        assert!(expiry.is_within(Within::Percent(20), now) && !expiry.is_within(Within::Percent(19), now));
        assert!(!expiry.is_within(Within::Percent(20), before), "a part of a percent more than 20");
    }
}
