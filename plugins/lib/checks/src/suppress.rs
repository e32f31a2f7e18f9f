//! Findings that somebody knows of: until when, and why they are not to be reported. It is said to a command, or stands in an
//! annotation of what they are about.

use std::collections::BTreeSet;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::Serialize;

use crate::facts::Facts;
use crate::finding::{Finding, Id, NotAnId, ObjectRef};
use crate::registry::{Category, Rule, check};
use crate::snapshot::Side;
use crate::text;

/// The annotation of ManagedClusters, Klusterlets and ClusterManagers that holds suppressions of findings about them, with line
/// breaks or semicolons between.
pub const ANNOTATION: &str = "kubectl-ocm/suppress";

/// What annotations of ManagedClusters and Klusterlets suppress nothing of, besides all that is about safety and policies:
/// agents may write them, and so would whoever registers a cluster, or takes the name of one.
const STAYS: [Id; 5] = [Id(2203), Id(2205), Id(2206), Id(2209), Id(2212)];
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

/// Whether findings of a check are reported whatever agents say.
fn stays(id: Id) -> bool {
    let category = check(id).map(|check| check.category);
    matches!(category, Some(Category::Safety | Category::Policies)) || STAYS.contains(&id)
}

const MANAGER: &str = "ClusterManager";
const CLUSTER: &str = "ManagedCluster";
const KLUSTERLET: &str = "Klusterlet";

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
        if check(id).is_none() {
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
        Ok(Self { id, cluster, until, reason, by: None })
    }
}

/// The suppressions that objects carry, and what of their annotations is none.
#[derive(Default)]
struct Annotated {
    suppressions: Vec<Suppression>,
    wrong: Vec<String>,
}

impl Annotated {
    /// Takes in those of an object, which is about this cluster; none: about the hub as a whole.
    fn take(&mut self, metadata: &ObjectMeta, by: ObjectRef, cluster: Option<&str>) {
        let annotation = metadata.annotations.as_ref().and_then(|all| all.get(ANNOTATION));
        let lines = annotation.map(String::as_str).unwrap_or_default().split([';', '\n']);
        for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
            match said_by(line, &by, cluster) {
                Ok(suppression) => self.suppressions.push(suppression),
                Err(why) => self.wrong.push(format!("{by} has {:?} in {ANNOTATION}: {why}", text::head(line, 80))),
            }
        }
    }
}

/// The suppression of a line in an annotation.
fn said_by(line: &str, by: &ObjectRef, cluster: Option<&str>) -> Result<Suppression, String> {
    let said = line.parse::<Suppression>().map_err(|error| text::head(&error.to_string(), WORDS))?;
    if said.cluster.as_deref().is_some_and(|named| Some(named) != cluster) {
        return Err("it suppresses findings about what carries it, and names another cluster".to_owned());
    }
    if by.kind != MANAGER && stays(said.id) {
        return Err(format!("agents may write it: it suppresses nothing of {}", said.id));
    }
    Ok(Suppression { cluster: cluster.map(str::to_owned), by: Some(by.clone()), ..said })
}

/// The suppressions in annotations of a snapshot, and what of those is none.
pub(crate) fn annotated(facts: &Facts<'_>) -> (Vec<Suppression>, Vec<String>) {
    let object = |side: Side, kind: &'static str, metadata: &ObjectMeta| ObjectRef {
        side,
        kind,
        namespace: None,
        name: metadata.name.clone().unwrap_or_default(),
    };
    let mut found = Annotated::default();
    let managers = facts.snapshot.hub.iter().filter_map(|hub| hub.managers.read()).flatten();
    for manager in managers {
        found.take(&manager.metadata, object(Side::Hub, MANAGER, &manager.metadata), None);
    }
    for cluster in facts.clusters.values() {
        if let Some(managed) = cluster.object {
            found.take(&managed.metadata, object(Side::Hub, CLUSTER, &managed.metadata), Some(cluster.name));
        }
        if let Some(agent) = cluster.agent {
            let metadata = &agent.klusterlet.metadata;
            found.take(metadata, object(Side::Managed, KLUSTERLET, metadata), Some(cluster.name));
        }
    }
    (found.suppressions, found.wrong)
}

/// The clusters whose own annotations suppress findings of a check now.
pub(crate) fn clusters_with(facts: &Facts<'_>, id: Id) -> BTreeSet<String> {
    let (suppressions, _) = annotated(facts);
    let live = suppressions.into_iter().filter(|one| one.id == id && one.until > facts.now);
    live.filter_map(|one| one.cluster).collect()
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
    use super::*;

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
