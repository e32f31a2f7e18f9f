//! Findings that somebody knows of: until when, and why they are not to be reported.

use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::finding::{Finding, Id, NotAnId};

/// Findings that are not to be reported for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    /// Of which check.
    pub id: Id,
    /// Of which cluster; none: of all.
    pub cluster: Option<String>,
    /// Until when.
    pub until: Timestamp,
    /// Why.
    pub reason: String,
}

/// Why a text is no suppression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotASuppression {
    /// It has not the form.
    #[error("it is not ID[:CLUSTER]=UNTIL,REASON such as OCM3105:c1=2026-12-31,renewed by hand")]
    Form,
    /// No id.
    #[error(transparent)]
    Id(#[from] NotAnId),
    /// An id that no check has.
    #[error("there is no check {0}")]
    Unknown(Id),
    /// No time.
    #[error("{0:?} is no date such as 2026-12-31 and no time such as 2026-12-31T12:00:00Z")]
    Until(String),
    /// No reason.
    #[error("it gives no reason")]
    Reason,
}

impl FromStr for Suppression {
    type Err = NotASuppression;

    fn from_str(text: &str) -> Result<Self, NotASuppression> {
        let (what, rest) = text.split_once('=').ok_or(NotASuppression::Form)?;
        let (until, reason) = rest.split_once(',').ok_or(NotASuppression::Reason)?;
        let (id, cluster) = match what.split_once(':') {
            Some((id, cluster)) => (id, Some(cluster.trim().to_owned())),
            None => (what, None),
        };
        let id: Id = id.trim().parse()?;
        if crate::registry::check(id).is_none() {
            return Err(NotASuppression::Unknown(id));
        }
        let until = until.trim();
        let wrong = || NotASuppression::Until(until.to_owned());
        let until = match until.parse::<Timestamp>() {
            Ok(time) => time,
            // To the end of the day.
            Err(_) => {
                let day: Date = until.parse().map_err(|_| wrong())?;
                let next = day.tomorrow().map_err(|_| wrong())?;
                next.to_zoned(TimeZone::UTC).map_err(|_| wrong())?.timestamp()
            }
        };
        let reason = reason.trim().to_owned();
        if reason.is_empty() {
            return Err(NotASuppression::Reason);
        }
        Ok(Self { id, cluster, until, reason })
    }
}

/// A finding that is not reported, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Suppressed {
    /// The finding.
    pub finding: Finding,
    /// Why it is not reported.
    pub reason: String,
}

/// Parts what is suppressed from what is not. A suppression that has ended counts no more.
pub(crate) fn apply(
    findings: Vec<Finding>,
    suppressions: &[Suppression],
    now: Timestamp,
) -> (Vec<Suppressed>, Vec<Finding>) {
    let mut suppressed = Vec::new();
    let mut left = Vec::new();
    for finding in findings {
        let about = |one: &&Suppression| {
            one.id == finding.id && one.until > now && (one.cluster.is_none() || one.cluster == finding.cluster)
        };
        match suppressions.iter().find(about) {
            Some(one) => suppressed.push(Suppressed { finding, reason: one.reason.clone() }),
            None => left.push(finding),
        }
    }
    (suppressed, left)
}
