//! The chain of a registration, and where in it a cluster stands.
//!
//! ```text
//! 1 operator ─▶ 2 Klusterlet ─▶ 3 agents ─▶ 4 registered ─▶ 5 accepted ─▶ 6 certificate ─▶ 7 joined ─▶ 8 available ─▶ 9 works
//! ```

use std::collections::{BTreeMap, BTreeSet};

use ocm_core::csr::State;
use ocm_core::managed::unapplied;
use ocm_core::order::Collect as _;
use ocm_core::phase::Phase;
use ocm_core::workload::Health;
use serde::Serialize;

use crate::facts::{Cluster, Facts};
use crate::finding::{Finding, Severity};
use crate::registry::{Category, Rule, check};
use crate::text::head;

/// How many characters of an address are shown that whoever wrote it chose.
const SHOWN: usize = 200;

/// The steps, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// The operator runs on the managed cluster.
    Operator,
    /// It has applied the Klusterlet.
    Klusterlet,
    /// The agents run.
    Agents,
    /// The agent has registered the cluster and asked for a certificate.
    Registered,
    /// The hub has accepted the cluster.
    Accepted,
    /// The agent's certificate is issued.
    Certificate,
    /// The agent has joined with it.
    Joined,
    /// The hub hears from the agent, and the cluster is well.
    Available,
    /// Works and add-ons are applied.
    Works,
}

impl Step {
    /// Every step.
    pub const ALL: [Self; 9] = [
        Self::Operator,
        Self::Klusterlet,
        Self::Agents,
        Self::Registered,
        Self::Accepted,
        Self::Certificate,
        Self::Joined,
        Self::Available,
        Self::Works,
    ];

    /// Its number, from 1.
    pub fn number(self) -> usize {
        Self::ALL.iter().position(|step| *step == self).unwrap_or_default() + 1
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Klusterlet => "Klusterlet",
            Self::Agents => "agents",
            Self::Registered => "registered",
            Self::Accepted => "accepted",
            Self::Certificate => "certificate",
            Self::Joined => "joined",
            Self::Available => "available",
            Self::Works => "works",
        }
    }

    /// What a cluster waits for before it.
    pub const fn waits(self) -> &'static str {
        match self {
            Self::Operator => "waits for the klusterlet operator",
            Self::Klusterlet => "waits for the operator to apply the Klusterlet",
            Self::Agents => "waits for the agents to run",
            Self::Registered => "waits for the agent to register",
            Self::Accepted => "waits for acceptance on the hub",
            Self::Certificate => "waits for the agent's certificate",
            Self::Joined => "waits for the agent to join",
            Self::Available => "waits for the hub to hear from the agent",
            Self::Works => "waits for works and add-ons",
        }
    }
}

/// How far a cluster is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Way {
    /// All steps are done.
    Done,
    /// It stands before this step.
    StoppedAt(Step),
    /// Done up to here; what comes then cannot be seen without the hub.
    SeenUpTo(Step),
    /// Its agent is at another hub, and comes to the one that was looked at only when that does not answer.
    Elsewhere,
    /// It is being removed from the hub.
    Leaving,
    /// The hub's managed clusters could not be read, so that nothing can be said.
    Unseen,
}

impl Way {
    /// Whether nothing has to be done for it to be available.
    pub const fn is_well(self) -> bool {
        matches!(self, Self::Done | Self::Elsewhere)
    }
}

/// Where a cluster stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    /// Its name.
    pub name: String,
    /// How far it is.
    pub way: Way,
    /// Its phase on the hub, as `kubectl ocm get clusters` has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// What one has to know, in a sentence without a final stop.
    pub headline: String,
}

/// What is wrong, found by cluster.
pub(crate) struct Causes<'f> {
    own: BTreeMap<&'f str, Vec<&'f Finding>>,
    /// Of the hub or of the managed cluster as a whole, with the clusters of which they explain something.
    whole: Vec<(&'f Finding, BTreeSet<&'f str>)>,
}

impl<'f> Causes<'f> {
    /// Those of findings that are errors.
    pub(crate) fn of(findings: &'f [Finding]) -> Self {
        let mut causes = Self { own: BTreeMap::new(), whole: Vec::new() };
        for finding in findings.iter().filter(|finding| finding.severity == Severity::Error) {
            match &finding.cluster {
                Some(cluster) => causes.own.entry(cluster).or_default().push(finding),
                None => {
                    let explained = finding.consequences.iter().filter_map(|follows| follows.cluster.as_deref());
                    causes.whole.push((finding, explained.collect_set()));
                }
            }
        }
        causes
    }

    /// The first cause of what is wrong with a cluster: what is wrong with a side as a whole comes first.
    fn first(&self, facts: &Facts<'_>, cluster: &Cluster<'_>) -> Option<&'f Finding> {
        let is_managed =
            |finding: &Finding| check(finding.id).is_some_and(|check| matches!(check.rule, Rule::Managed(_)));
        let concerns = |(finding, explained): &&(&'f Finding, BTreeSet<&'f str>)| {
            // What is wrong with the hub counts for a cluster as far as it explains something of it.
            explained.contains(cluster.name)
                || (is_managed(finding) && (cluster.agent.is_some() || facts.clusters.len() == 1))
        };
        let whole = self.whole.iter().find(concerns).map(|(finding, _)| *finding);
        whole.or_else(|| self.own.get(cluster.name)?.first().copied())
    }

    /// Whether works or add-ons of a cluster are in trouble.
    fn has_works(&self, cluster: &str) -> bool {
        let works = |finding: &&Finding| check(finding.id).is_some_and(|check| check.category == Category::Works);
        self.own.get(cluster).is_some_and(|own| own.iter().any(works))
    }
}

/// Where a cluster stands, and the sentence about it: the first cause if something stops it.
pub(crate) fn standing(facts: &Facts<'_>, cluster: &Cluster<'_>, causes: &Causes<'_>) -> Standing {
    let way = way(facts, cluster, causes);
    let cause = causes.first(facts, cluster);
    let total = Step::ALL.len();
    let headline = match way {
        Way::StoppedAt(step) => {
            let why = cause.map_or_else(|| step.waits().to_owned(), |cause| cause.summary.clone());
            format!("stopped at step {} of {total}: {why}", step.number())
        }
        Way::Unseen => match cause {
            Some(cause) => cause.summary.clone(),
            None => "where it stands cannot be told: the hub's managed clusters could not be read".to_owned(),
        },
        Way::Elsewhere => {
            let there = cluster.elsewhere(facts).unwrap_or("another hub");
            let noted = if cluster.agent.is_none() { ", as was noted when it was accepted" } else { "" };
            format!("its agent comes to this hub only when {} does not answer{noted}", head(there, SHOWN))
        }
        Way::Leaving => match cause {
            Some(cause) => cause.summary.clone(),
            None => "is being removed from the hub".to_owned(),
        },
        Way::SeenUpTo(step) => {
            let why = cause.map_or_else(
                || "what follows cannot be seen without the hub".to_owned(),
                |cause| cause.summary.clone(),
            );
            format!("steps 1 to {} of {total} are done: {why}", step.number())
        }
        Way::Done => match cause {
            Some(cause) => format!("joined and available, but {}", cause.summary),
            None => match cluster.heard() {
                Some(heard) => format!("joined and available, heard of {} ago", facts.ago(Some(heard))),
                None => "joined and available".to_owned(),
            },
        },
    };
    Standing { name: cluster.name.to_owned(), way, phase: cluster.phase().map(|phase| phase.to_string()), headline }
}

fn way(facts: &Facts<'_>, cluster: &Cluster<'_>, causes: &Causes<'_>) -> Way {
    match cluster.phase() {
        Some(Phase::Detaching) => Way::Leaving,
        Some(_) if causes.first(facts, cluster).is_none() && cluster.elsewhere(facts).is_some() => Way::Elsewhere,
        // A finding may know better than the condition: the lease is old.
        Some(Phase::Available) if cluster.is_silent(facts.now) == Some(true) => Way::StoppedAt(Step::Available),
        Some(Phase::Available) if causes.has_works(cluster.name) => Way::StoppedAt(Step::Works),
        Some(Phase::Available) => Way::Done,
        Some(Phase::Joined | Phase::Unavailable | Phase::Unknown) => Way::StoppedAt(Step::Available),
        Some(Phase::Denied) => Way::StoppedAt(Step::Accepted),
        Some(Phase::Accepted) => {
            let issued = cluster.requests.iter().any(|request| request.state == State::Issued);
            Way::StoppedAt(if issued || cluster.is_aws() { Step::Joined } else { Step::Certificate })
        }
        Some(Phase::Pending) if !cluster.requests.is_empty() || cluster.is_aws() || !requests_were_read(facts) => {
            Way::StoppedAt(Step::Accepted)
        }
        // The agent has not come so far, or the hub does not know it.
        Some(Phase::Pending) | None => before_the_hub(facts, cluster),
    }
}

fn requests_were_read(facts: &Facts<'_>) -> bool {
    facts.snapshot.hub.as_ref().is_some_and(|hub| hub.requests.read().is_some())
}

/// The steps on the managed cluster.
fn before_the_hub(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Way {
    let unread = facts.snapshot.hub.as_ref().is_some_and(|hub| hub.clusters.read().is_none());
    let Some(managed) = &facts.snapshot.managed else {
        return if unread { Way::Unseen } else { Way::StoppedAt(Step::Registered) };
    };
    let Some(agent) = cluster.agent else { return Way::StoppedAt(Step::Klusterlet) };
    let hub_was_read = facts.snapshot.hub.as_ref().is_some_and(|hub| hub.clusters.read().is_some());
    if !hub_was_read && agent.is_registered(facts.now) == Some(true) {
        return Way::SeenUpTo(Step::Certificate);
    }
    if managed.operator.read().is_some_and(|operator| operator.health != Health::Ready || operator.replicas == 0) {
        return Way::StoppedAt(Step::Operator);
    }
    // An operator that has applied the Klusterlet has made Deployments.
    let has_no_agents = agent.side.deployments.read().is_some_and(Vec::is_empty);
    if unapplied(agent.klusterlet).is_some() || has_no_agents {
        return Way::StoppedAt(Step::Klusterlet);
    }
    let runs = agent.side.deployments.read().is_none_or(|deployments| {
        let registers = |name: &str| !name.ends_with("-work-agent");
        let mut own = deployments.iter().filter(|workload| registers(&workload.name)).peekable();
        own.peek().is_some() && own.all(|workload| workload.health == Health::Ready && workload.replicas > 0)
    });
    match () {
        () if !runs => Way::StoppedAt(Step::Agents),
        () if hub_was_read => Way::StoppedAt(Step::Registered),
        () => Way::SeenUpTo(Step::Agents),
    }
}
