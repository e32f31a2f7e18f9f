//! Suppressions as they are written: `ID[:CLUSTER]=UNTIL,REASON`.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::finding::{Id, NotAnId};

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

/// The parts of a suppression, of which the id alone is read; whether a check has it is not asked.
pub(super) struct Written<'t> {
    /// Of which check.
    pub(super) id: Id,
    /// Of which cluster.
    pub(super) cluster: Option<&'t str>,
    until: &'t str,
    reason: &'t str,
}

impl<'t> Written<'t> {
    /// Parts a text.
    pub(super) fn part(text: &'t str) -> Result<Self, NotASuppression> {
        let (what, rest) = text.split_once('=').ok_or(NotASuppression::Form)?;
        let (until, reason) = rest.split_once(',').ok_or(NotASuppression::Reason)?;
        let (id, cluster) = match what.split_once(':') {
            Some((id, cluster)) => (id, Some(cluster.trim())),
            None => (what, None),
        };
        Ok(Self { id: id.trim().parse()?, cluster, until: until.trim(), reason: reason.trim() })
    }

    /// Until when.
    pub(super) fn until(&self) -> Result<Timestamp, NotASuppression> {
        if let Ok(time) = self.until.parse::<Timestamp>() {
            return Ok(time);
        }
        // To the end of the day.
        let wrong = || NotASuppression::Until(self.until.to_owned());
        let day: Date = self.until.parse().map_err(|_| wrong())?;
        let next = day.tomorrow().map_err(|_| wrong())?;
        Ok(next.to_zoned(TimeZone::UTC).map_err(|_| wrong())?.timestamp())
    }

    /// Why.
    pub(super) fn reason(&self) -> Result<&'t str, NotASuppression> {
        if self.reason.is_empty() { Err(NotASuppression::Reason) } else { Ok(self.reason) }
    }
}
