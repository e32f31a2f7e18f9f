//! From facts to a report: every check is run, what follows from something else is folded under it, and one sentence per
//! cluster says where it stands.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::chain::{self, Causes, Standing};
use crate::facts::{Cluster, Facts};
use crate::finding::{Finding, Id, Outcome, Severity};
use crate::registry::{Check, Input, Rule, check, of_snapshots};
use crate::snapshot::{AgentSide, Answer, Observed, Snapshot, Trouble};
use crate::suppress::{Suppressed, Suppression};
use ocm_core::order::{self, Collect as _};
use ocm_core::phase::Phase;

/// What checks came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Where each cluster stands.
    pub clusters: Vec<Standing>,
    /// What is wrong, each with what follows from it.
    pub findings: Vec<Finding>,
    /// What was found and is not to be reported.
    pub suppressed: Vec<Suppressed>,
    /// How many checks came to what.
    pub counts: Counts,
    /// What could not be checked.
    pub unknown: Vec<Unknown>,
    /// What was left out.
    pub skipped: Vec<Skipped>,
    /// Where a pod beside an agent sees the way to the hub otherwise than this machine, and that is no finding; which clusters
    /// are left out, for they are of another hub; and which suppressions have ended, or are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// How many checks came to what; those of each cluster count on their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// All is well.
    pub passed: usize,
    /// Something was found.
    pub found: usize,
    /// Left out.
    pub skipped: usize,
    /// Could not be checked.
    pub unknown: usize,
}

/// Checks that could not be made, for one reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unknown {
    /// Which.
    pub ids: Vec<Id>,
    /// For how many clusters; 0: about a whole hub or managed cluster.
    pub clusters: usize,
    /// Why not, and which right would allow it.
    pub trouble: Trouble,
}

/// Checks that were left out, for one reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Skipped {
    /// Which.
    pub ids: Vec<Id>,
    /// Why.
    pub why: String,
}

impl Report {
    /// The findings of a severity or worse.
    pub fn at_least(&self, severity: Severity) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.severity >= severity)
    }
}

/// Runs every check over a snapshot. `suppressions`: those that were said, besides those in annotations of the snapshot.
pub fn judge(snapshot: &Snapshot, suppressions: &[Suppression]) -> Report {
    let facts = Facts::of(snapshot);
    let mut all = Vec::new();
    let mut gathered = Gathered::default();
    for check in of_snapshots() {
        for (cluster, outcome) in outcomes(&facts, check) {
            gathered.take(check, cluster, outcome, &mut all);
        }
    }
    let folded = fold(&facts, all);
    let (annotated, wrong) = crate::suppress::annotated(&facts);
    let suppressions = [suppressions, annotated.as_slice()].concat();
    // A cause that is suppressed takes what follows from it along.
    let (suppressed, findings) = crate::suppress::apply(folded, &suppressions, facts.now);
    let causes = Causes::of(&findings);
    let clusters = facts.clusters.values().map(|cluster| chain::standing(&facts, cluster, &causes)).collect();
    let reached = |cluster: &Cluster<'_>| {
        let agent =
            cluster.agent.filter(|agent| agent.in_cluster.is_some_and(|probe| probe.answer == Answer::Known))?;
        Some(format!("{}: {}", cluster.name, crate::registry::difference(&agent)?))
    };
    let mut notes: Vec<String> = facts.clusters.values().filter_map(reached).collect();
    notes.extend(facts.left_out.iter().map(|(name, server)| {
        format!("{name} is left out: its agent registers at another hub, {server}; name it to have it looked at")
    }));
    notes.extend(crate::suppress::idle(&suppressions, wrong, facts.now));
    Report {
        notes,
        clusters,
        findings,
        suppressed,
        counts: gathered.counts,
        unknown: gathered.unknown,
        skipped: gathered
            .skipped
            .into_iter()
            .map(|(why, ids)| Skipped { ids: ids.into_iter().collect(), why })
            .collect(),
    }
}

/// What a check comes to: once, or for each cluster; nothing if it is none of snapshots.
pub fn outcomes<'a>(facts: &Facts<'a>, check: &Check) -> Vec<(Option<&'a str>, Outcome)> {
    let snapshot = facts.snapshot;
    match check.rule {
        Rule::Hub(rule) => {
            let run = || snapshot.hub.as_ref().map_or_else(|| Outcome::skip(NO_HUB), |hub| rule(facts, hub));
            vec![(None, missing(snapshot, check, None).unwrap_or_else(run))]
        }
        Rule::Managed(rule) => {
            let managed = snapshot.managed.as_ref();
            let run = || managed.map_or_else(|| Outcome::skip(NO_MANAGED), |managed| rule(facts, managed));
            vec![(None, missing(snapshot, check, None).unwrap_or_else(run))]
        }
        Rule::Cluster(rule) => {
            let run = |cluster: &Cluster<'a>| {
                let agent = cluster.agent.map(|agent| agent.side);
                let outcome = missing(snapshot, check, agent).unwrap_or_else(|| rule(facts, cluster));
                (Some(cluster.name), outcome)
            };
            // Where nobody knows which clusters there are, none of them is well.
            match snapshot.hub.as_ref().map(|hub| &hub.clusters) {
                Some(Observed::Trouble(trouble)) if facts.clusters.is_empty() => {
                    vec![(None, Outcome::Unknown(trouble.clone()))]
                }
                _ => facts.clusters.values().map(run).collect(),
            }
        }
        Rule::Certificates => Vec::new(),
    }
}

const NO_HUB: &str = "the hub was not looked at";
const NO_MANAGED: &str = "the managed cluster was not looked at";

/// What outcomes come to but for the findings.
#[derive(Default)]
struct Gathered {
    counts: Counts,
    unknown: Vec<Unknown>,
    skipped: BTreeMap<String, BTreeSet<Id>>,
}

impl Gathered {
    fn take(&mut self, check: &'static Check, cluster: Option<&str>, outcome: Outcome, all: &mut Vec<Finding>) {
        match outcome {
            Outcome::Pass => self.counts.passed += 1,
            Outcome::Found(findings) => {
                self.counts.found += 1;
                all.extend(findings.into_iter().map(|finding| Finding {
                    id: check.id,
                    cluster: cluster.map(str::to_owned),
                    ..finding
                }));
            }
            Outcome::Skip(why) => {
                self.counts.skipped += 1;
                self.skipped.entry(why).or_default().insert(check.id);
            }
            Outcome::Unknown(trouble) => {
                self.counts.unknown += 1;
                let known = self.unknown.iter_mut().find(|unknown| unknown.trouble == trouble);
                let unknown = match known {
                    Some(known) => known,
                    None => {
                        self.unknown.push(Unknown { ids: Vec::new(), clusters: 0, trouble });
                        let last = self.unknown.len() - 1;
                        &mut self.unknown[last]
                    }
                };
                if !unknown.ids.contains(&check.id) {
                    unknown.ids.push(check.id);
                    unknown.clusters = 0;
                }
                unknown.clusters += usize::from(cluster.is_some());
            }
        }
    }
}

/// Why a check cannot be run, as an outcome; none if all of its inputs are there.
fn missing(snapshot: &Snapshot, check: &Check, agent: Option<&AgentSide>) -> Option<Outcome> {
    check.inputs.iter().find_map(|input| match state(snapshot, *input, agent) {
        State::Read => None,
        State::Trouble(trouble) => Some(Outcome::Unknown(trouble.clone())),
        State::NotAsked => Some(Outcome::skip("nobody asked for what it looks at")),
        State::NoHub => Some(Outcome::skip(NO_HUB)),
        State::NoManaged => Some(Outcome::skip(NO_MANAGED)),
        State::NoAgent => Some(Outcome::skip("the managed cluster has no Klusterlet of this name")),
    })
}

/// How a part of a snapshot is.
enum State<'a> {
    Read,
    Trouble(&'a Trouble),
    NotAsked,
    NoHub,
    NoManaged,
    NoAgent,
}

fn observed<T>(part: &Observed<T>) -> State<'_> {
    match part {
        Observed::Read(_) => State::Read,
        Observed::Trouble(trouble) => State::Trouble(trouble),
        Observed::NotAsked => State::NotAsked,
    }
}

fn state<'a>(snapshot: &'a Snapshot, input: Input, agent: Option<&'a AgentSide>) -> State<'a> {
    let hub = || snapshot.hub.as_ref();
    let managed = || snapshot.managed.as_ref();
    let hub_state = match input {
        Input::HubStorage => hub().map(|hub| observed(&hub.storage)),
        Input::HubOperator => hub().map(|hub| observed(&hub.operator)),
        Input::HubLeader => hub().map(|hub| observed(&hub.leader)),
        Input::ClusterManagers => hub().map(|hub| observed(&hub.managers)),
        Input::HubDeployments => hub().map(|hub| observed(&hub.deployments)),
        Input::Webhooks => hub().map(|hub| observed(&hub.webhooks)),
        Input::WebhookCertificates => hub().map(|hub| observed(&hub.serving)),
        Input::Conversions => hub().map(|hub| observed(&hub.conversions)),
        Input::Admission => hub().map(|hub| observed(&hub.admission)),
        Input::CaBundle => hub().map(|hub| observed(&hub.ca_bundle)),
        Input::ManagedClusters => hub().map(|hub| observed(&hub.clusters)),
        Input::Requests => hub().map(|hub| observed(&hub.requests)),
        Input::Leases => hub().map(|hub| observed(&hub.leases)),
        Input::HubNamespaces => hub().map(|hub| observed(&hub.terminating)),
        Input::Works => hub().map(|hub| observed(&hub.works)),
        Input::AddOns => hub().map(|hub| observed(&hub.addons)),
        Input::HubPolicies => hub().map(|hub| observed(&hub.policies)),
        Input::Registrations => hub().map(|hub| observed(&hub.registrations)),
        Input::PolicyEngine => hub().map(|hub| observed(&hub.policy_engine)),
        _ => {
            let managed_state = match input {
                Input::ManagedStorage => managed().map(|managed| observed(&managed.storage)),
                Input::Operator => managed().map(|managed| observed(&managed.operator)),
                Input::OperatorLeases => managed().map(|managed| observed(&managed.leases)),
                Input::Klusterlets => managed().map(|managed| observed(&managed.klusterlets)),
                Input::ManagedNamespaces => managed().map(|managed| observed(&managed.terminating)),
                Input::AppliedWorks => managed().map(|managed| observed(&managed.applied_works)),
                Input::Admins => managed().map(|managed| observed(&managed.admins)),
                _ => managed().map(|_| match (agent, input) {
                    (None, _) => State::NoAgent,
                    (Some(agent), Input::Agents) => observed(&agent.deployments),
                    (Some(agent), Input::Bootstrap) => observed(&agent.bootstrap),
                    (Some(agent), Input::Identity) => observed(&agent.identity),
                    (Some(agent), Input::NetworkPolicies) => observed(&agent.network_policies),
                    (Some(agent), _) => observed(&agent.leases),
                }),
            };
            return managed_state.unwrap_or(State::NoManaged);
        }
    };
    hub_state.unwrap_or(State::NoHub)
}

/// Puts every finding that another one explains under it: what is left needs something done.
fn fold(facts: &Facts<'_>, all: Vec<Finding>) -> Vec<Finding> {
    // What is found of the managed cluster as a whole is about the clusters that were looked at there.
    let here: BTreeSet<&str> = match facts.clusters.values().filter(|cluster| cluster.agent.is_some()).count() {
        0 => facts.snapshot.clusters.iter().map(String::as_str).collect_set(),
        _ => {
            facts.clusters.values().filter(|cluster| cluster.agent.is_some()).map(|cluster| cluster.name).collect_set()
        }
    };
    let is_managed = |finding: &Finding| check(finding.id).is_some_and(|check| matches!(check.rule, Rule::Managed(_)));
    let concerns = |cause: &Finding, finding: &Finding| match (&cause.cluster, &finding.cluster) {
        (Some(cause), Some(finding)) => cause == finding,
        (Some(_), None) => false,
        (None, Some(cluster)) => !is_managed(cause) || here.contains(cluster.as_str()),
        (None, None) => true,
    };
    // Where the findings of a check are.
    let mut by_id: BTreeMap<Id, BTreeMap<Option<&str>, Vec<usize>>> = BTreeMap::new();
    for (index, finding) in all.iter().enumerate() {
        by_id.entry(finding.id).or_default().entry(finding.cluster.as_deref()).or_default().push(index);
    }
    let has_joined = |cluster: &Cluster<'_>| cluster.phase() >= Some(Phase::Joined);
    let waits = |finding: &Finding| match &finding.cluster {
        Some(name) => !facts.clusters.get(name.as_str()).is_some_and(has_joined),
        None => !facts.clusters.values().any(has_joined),
    };
    let outweighs =
        |cause: &Finding, finding: &Finding| cause.severity >= finding.severity || (cause.is_coming && waits(finding));
    let known: BTreeMap<Id, Vec<Id>> = by_id.keys().map(|id| (*id, direct(*id))).collect_map();
    let parent = |index: usize| {
        let finding = &all[index];
        known.get(&finding.id)?.iter().find_map(|id| {
            let causes = by_id.get(id)?;
            // Those of a side as a whole, and those of its own cluster.
            let (whole, own) = (causes.get(&None::<&str>), causes.get(&finding.cluster.as_deref()));
            whole.into_iter().chain(own).flatten().copied().find(|cause| {
                let (at, cause) = (*cause, &all[*cause]);
                at != index
                    && !cause.is_apart
                    && !cause.unrelated.contains(&finding.id)
                    && outweighs(cause, finding)
                    && concerns(cause, finding)
            })
        })
    };
    let parents: Vec<Option<usize>> = (0..all.len()).map(parent).collect();
    let root = |mut index: usize| {
        while let Some(parent) = parents[index] {
            index = parent;
        }
        index
    };
    let roots: Vec<usize> = (0..all.len()).map(root).collect();
    let mut consequences: BTreeMap<usize, Vec<Finding>> = BTreeMap::new();
    let mut causes = Vec::new();
    for (index, finding) in all.into_iter().enumerate() {
        if roots[index] == index {
            causes.push((index, finding));
        } else {
            consequences.entry(roots[index]).or_default().push(finding);
        }
    }
    let mut findings: Vec<Finding> = causes
        .into_iter()
        .map(|(index, finding)| {
            let consequences = consequences.remove(&index).unwrap_or_default();
            // What is on its way matters as much as what waits for it.
            let severity = consequences.iter().map(|follows| follows.severity).fold(finding.severity, Severity::max);
            Finding { severity, consequences, ..finding }
        })
        .collect();
    // What may only need time comes after what does not end by itself.
    let rank = |finding: &Finding| (Reverse(finding.severity), finding.is_coming, finding.id);
    order::sort_by_key(&mut findings, rank);
    findings
}

/// The ids of everything that explains findings of a check, near or far: the graph has no circles.
pub fn explainers(id: Id) -> BTreeSet<Id> {
    let mut found: BTreeSet<Id> = BTreeSet::new();
    let mut left = vec![id];
    while let Some(next) = left.pop() {
        let after = check(next).map(|check| check.after).unwrap_or_default();
        left.extend(after.iter().copied().filter(|after| found.insert(*after)));
    }
    found
}

/// The ids that explain findings of a check by themselves, those that nothing explains first. What explains those in turn
/// counts only where they were found, too.
fn direct(id: Id) -> Vec<Id> {
    let mut after = check(id).map(|check| check.after.to_vec()).unwrap_or_default();
    order::sort_by_key(&mut after, |id| (explainers(*id).len(), *id));
    after
}
