//! Suppressions: what they are about, and which findings they keep from being reported.

use std::str::FromStr;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;

use super::annotation::{ANNOTATION, KLUSTERLET, Line, MANAGER, lines, stays};
use super::written::{NotASuppression, Written};
use crate::facts::Facts;
use crate::finding::{Finding, Id, ObjectRef};
use crate::registry::{Rule, check};
use crate::text;

/// How much of somebody's words a note holds: characters.
const WORDS: usize = 160;

/// How many suppressions a report tells of that suppress nothing.
const TOLD: usize = 20;

/// Findings that are not to be reported for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    /// Of which check.
    pub id: Id,
    /// Of which cluster; none: of all, or of none where an annotation says it.
    pub cluster: Option<String>,
    /// Until when.
    pub until: Timestamp,
    /// Why.
    pub reason: String,
    /// The object whose annotation says it; none: it was said to the command.
    pub by: Option<ObjectRef>,
}

impl Suppression {
    /// What was written, if there is a check with its id.
    fn read(written: &Written<'_>) -> Result<Self, NotASuppression> {
        if check(written.id).is_none() {
            return Err(NotASuppression::Unknown(written.id));
        }
        Ok(Self {
            id: written.id,
            cluster: written.cluster.map(str::to_owned),
            until: written.until()?,
            reason: written.reason()?.to_owned(),
            by: None,
        })
    }

    /// Whether it is about a finding, whenever it ends.
    fn is_about(&self, finding: &Finding) -> bool {
        let whole = |rule: fn(&Rule) -> bool| check(finding.id).is_some_and(|check| rule(&check.rule));
        self.id == finding.id
            && !(self.is_agents() && finding.consequences.iter().any(|one| stays(one.id)))
            && match (&self.by, &finding.cluster) {
                (None, cluster) => self.cluster.is_none() || self.cluster == *cluster,
                (Some(_), Some(cluster)) => self.cluster.as_ref() == Some(cluster),
                (Some(by), None) if by.kind == MANAGER => whole(|rule| matches!(rule, Rule::Hub(_))),
                (Some(by), None) if by.kind == KLUSTERLET => whole(|rule| matches!(rule, Rule::Managed(_))),
                (Some(_), None) => false,
            }
    }

    /// Whether agents may have written it.
    fn is_agents(&self) -> bool {
        self.by.as_ref().is_some_and(|by| by.kind != MANAGER)
    }

    /// What it suppresses, as it is written.
    fn name(&self) -> String {
        match &self.cluster {
            Some(cluster) => format!("{}:{cluster}", self.id),
            None => self.id.to_string(),
        }
    }
}

impl FromStr for Suppression {
    type Err = NotASuppression;

    fn from_str(text: &str) -> Result<Self, NotASuppression> {
        Self::read(&Written::part(text)?)
    }
}

/// The suppressions in annotations of a snapshot, and what of those is none.
pub(crate) fn annotated(facts: &Facts<'_>) -> (Vec<Suppression>, Vec<String>) {
    let (mut suppressions, mut wrong) = (Vec::new(), Vec::new());
    for line in lines(facts) {
        match said_by(&line) {
            Ok(suppression) => suppressions.push(suppression),
            Err(why) => wrong.push(format!("{} has {:?} in {ANNOTATION}: {why}", line.by, text::head(line.text, 80))),
        }
    }
    (suppressions, wrong)
}

/// The suppression of a line in an annotation.
fn said_by(line: &Line<'_>) -> Result<Suppression, String> {
    let worded = |error: NotASuppression| text::head(&error.to_string(), WORDS);
    let written = Written::part(line.text).map_err(worded)?;
    let said = Suppression::read(&written).map_err(worded)?;
    match line.obstacle(&written) {
        Some(why) => Err(why),
        None => Ok(Suppression { cluster: line.cluster.map(str::to_owned), by: Some(line.by.clone()), ..said }),
    }
}

/// What is to be told of suppressions that suppress nothing: those that have ended, and what is none.
pub(crate) fn idle(suppressions: &[Suppression], wrong: Vec<String>, now: Timestamp) -> Vec<String> {
    let ended = suppressions.iter().filter(|one| one.until <= now).map(|one| {
        let (name, until, reason) = (one.name(), one.until, text::head(&one.reason, WORDS));
        match &one.by {
            Some(by) => format!("the suppression of {name} by {by} ended at {until}: {reason}"),
            None => format!("the suppression of {name} ended at {until}: {reason}"),
        }
    });
    let mut told: Vec<String> = ended.chain(wrong).collect();
    let more = told.len().saturating_sub(TOLD);
    told.truncate(TOLD);
    if more > 0 {
        told.push(format!("{more} more suppressions have ended, or are none"));
    }
    told
}

/// A finding that is not reported, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Suppressed {
    /// The finding.
    pub finding: Finding,
    /// Why it is not reported.
    pub reason: String,
    /// Until when.
    pub until: Time,
    /// The object whose annotation says it; none: it was said to the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<ObjectRef>,
}

impl Suppressed {
    /// Who suppresses it, and why, in words.
    pub fn why(&self) -> String {
        match &self.by {
            Some(by) => format!("{}, says {by}", self.reason),
            None => self.reason.clone(),
        }
    }
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
        let about = |one: &&Suppression| one.until > now && one.is_about(&finding);
        match suppressions.iter().find(about) {
            Some(Suppression { reason, until, by, .. }) => {
                let (reason, by) = (reason.clone(), by.clone());
                suppressed.push(Suppressed { finding, reason, until: Time(*until), by });
            }
            None => left.push(finding),
        }
    }
    (suppressed, left)
}

#[cfg(test)]
mod tests {
    use super::super::annotation::CLUSTER;
    use super::*;
    use crate::snapshot::Side;

    #[test]
    fn what_agents_may_write_hides_no_cause_of_what_stays() {
        let finding = |id: u16| Finding { id: Id(id), cluster: Some("c1".to_owned()), ..Finding::error("words") };
        let cause = |follows: u16| vec![Finding { consequences: vec![finding(follows)], ..finding(2204) }];
        let typed: Suppression = "OCM2204:c1=2026-12-31,known".parse().unwrap();
        let by = ObjectRef { side: Side::Hub, kind: CLUSTER, namespace: None, name: "c1".to_owned() };
        let written = Suppression { by: Some(by), ..typed.clone() };
        for (suppression, follows, count) in [(&written, 2206, 0), (&written, 3101, 1), (&typed, 2206, 1)] {
            let (suppressed, left) = apply(cause(follows), std::slice::from_ref(suppression), Timestamp::UNIX_EPOCH);
            assert_eq!((suppressed.len(), left.len()), (count, 1 - count), "{follows}");
        }
    }
}
