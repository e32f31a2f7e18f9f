//! What each policy said, and whether that still is its word.

use jiff::Timestamp;
use ocm_api::HubPolicy;
use ocm_api::conditions::hub_policy::LOADED;
use ocm_api::conditions::{FALSE, find};
use ocm_api::policy::{BreakGlass, PolicyMode, PolicyOperation};
use ocm_api::registration::{RegistrationNotAsked, RegistrationOpinion, RegistrationVerdict};

use super::Facts;
use crate::Reason;

/// What one policy said in the last decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opinion {
    /// Name of the HubPolicy.
    pub policy: String,
    /// What it said.
    pub verdict: RegistrationVerdict,
    /// The codes of its reasons, or of its error.
    pub codes: Vec<String>,
    /// SHA-256 of the module that said it.
    pub module_sha256: Option<String>,
    /// Whether the decision is what it is because of this opinion.
    pub decides: bool,
    /// The HubPolicy as it is now; none: gone, or not read.
    pub now: Option<InForce>,
    /// Why it may say something else now; nothing: it is what is in force.
    pub doubts: Vec<Doubt>,
}

/// A policy that was not asked, though it judges the registrations of clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unasked {
    /// Name of the HubPolicy.
    pub policy: String,
    /// Names of the conditions of its match that are false. None: its match is about other signers, users or clusters.
    pub unmet: Vec<String>,
    /// The HubPolicy as it is now; none: gone, or not read.
    pub now: Option<InForce>,
    /// Why it may be asked now; nothing: it is what is in force.
    pub doubts: Vec<Doubt>,
}

/// A policy as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InForce {
    /// What its verdict counts for.
    pub mode: PolicyMode,
    /// Whether its allow lets clusters in.
    pub auto_approve: bool,
    /// Whether an approval with breakGlass passes it.
    pub break_glass: bool,
    /// Whether it may be asked about what a person approves or accepts: nothing narrows it to other operations.
    pub may_judge_people: bool,
    /// SHA-256 of the module in force.
    pub sha256: Option<String>,
}

/// Why an opinion may be another one now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The hub has no such policy any more.
    Gone,
    /// The policies of the hub could not be read.
    Unread,
    /// Another module is in force.
    OtherModule,
    /// The HubPolicy has been changed since.
    Changed,
    /// The HubPolicy was created after the decision: another one had the name.
    Newer,
    /// The controller has not told yet what became of the last change of the HubPolicy.
    NotObserved,
    /// The version that is wanted is not in force, for this reason.
    NotLoaded(String),
}

impl Doubt {
    /// The stable word for programs.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Gone => "Gone",
            Self::Unread => "Unread",
            Self::OtherModule => "OtherModule",
            Self::Changed => "Changed",
            Self::Newer => "Newer",
            Self::NotObserved => "NotObserved",
            Self::NotLoaded(_) => "NotLoaded",
        }
    }
}

/// The opinions of the last decision about the cluster.
pub(super) fn opinions(facts: &Facts) -> Vec<Opinion> {
    let Some(status) = facts.of_cluster() else { return Vec::new() };
    let Some(decision) = &status.decision else { return Vec::new() };
    let decides = |opinion: &RegistrationOpinion| match &status.verdict {
        RegistrationVerdict::Allow => status.approved_by.contains(&opinion.policy),
        RegistrationVerdict::NoOpinion => false,
        // What fails may count as if it held.
        RegistrationVerdict::Hold => {
            matches!(opinion.verdict, RegistrationVerdict::Hold | RegistrationVerdict::Error)
        }
        verdict => opinion.verdict == *verdict,
    };
    let one = |opinion: &RegistrationOpinion| {
        let said = Said { generation: opinion.generation, sha256: opinion.module_sha256.as_ref(), at: &decision.at };
        let (now, doubts) = today(facts, &opinion.policy, &said);
        Opinion {
            policy: opinion.policy.clone(),
            verdict: opinion.verdict.clone(),
            codes: opinion.codes.clone(),
            module_sha256: opinion.module_sha256.clone(),
            decides: decides(opinion),
            now,
            doubts,
        }
    };
    decision.policies.iter().map(one).collect()
}

/// The policies that the last decision about the cluster passed over.
pub(super) fn unasked(facts: &Facts) -> Vec<Unasked> {
    let Some(decision) = facts.of_cluster().and_then(|status| status.decision.as_ref()) else { return Vec::new() };
    let one = |unasked: &RegistrationNotAsked| {
        let said = Said { generation: unasked.generation, sha256: None, at: &decision.at };
        let (now, doubts) = today(facts, &unasked.policy, &said);
        Unasked { policy: unasked.policy.clone(), unmet: unasked.unmet_conditions.clone(), now, doubts }
    };
    decision.not_asked.iter().map(one).collect()
}

/// What is known of a policy at the time of a decision.
struct Said<'a> {
    generation: Option<i64>,
    sha256: Option<&'a String>,
    at: &'a str,
}

/// A policy as it is now, and why it may not be any more what it was.
fn today(facts: &Facts, name: &String, said: &Said<'_>) -> (Option<InForce>, Vec<Doubt>) {
    let policy = match &facts.policies {
        Ok(all) => all.iter().find(|policy| policy.metadata.name.as_ref() == Some(name)).ok_or(Doubt::Gone),
        // The hub knows no policies at all any more.
        Err(failure) if failure.reason == Reason::KindNotServed => Err(Doubt::Gone),
        Err(_) => Err(Doubt::Unread),
    };
    match policy {
        Ok(policy) => (Some(in_force(policy)), doubts(policy, said)),
        Err(doubt) => (None, vec![doubt]),
    }
}

fn in_force(policy: &HubPolicy) -> InForce {
    InForce {
        mode: policy.spec.mode.clone(),
        auto_approve: policy.spec.auto_approve,
        break_glass: policy.spec.break_glass == BreakGlass::Allowed,
        may_judge_people: policy.spec.operations.is_empty() || policy.spec.operations.iter().any(is_by_people),
        sha256: policy.status.as_ref().and_then(|status| status.sha256.clone()),
    }
}

/// Whether people do this to clusters that wait, too. What this release does not know may be.
fn is_by_people(operation: &PolicyOperation) -> bool {
    matches!(operation, PolicyOperation::Approve | PolicyOperation::Accept | PolicyOperation::Other(_))
}

fn doubts(policy: &HubPolicy, said: &Said<'_>) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let generation = policy.metadata.generation;
    let status = policy.status.clone().unwrap_or_default();
    if let Some(loaded) = find(&status.conditions, LOADED).filter(|loaded| loaded.status == FALSE) {
        doubts.push(Doubt::NotLoaded(loaded.message.clone()));
    }
    let created = policy.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let decided: Option<Timestamp> = said.at.parse().ok();
    if created.zip(decided).is_some_and(|(created, decided)| created > decided) {
        doubts.push(Doubt::Newer);
    } else if said.generation.is_some() && said.generation != generation {
        doubts.push(Doubt::Changed);
    }
    let tried = status.candidate.as_ref().and_then(|candidate| candidate.sha256.as_ref());
    match (said.sha256, &status.sha256) {
        (Some(said), Some(now)) if said != now && Some(said) != tried => doubts.push(Doubt::OtherModule),
        _ if status.observed_generation != generation => doubts.push(Doubt::NotObserved),
        _ => {}
    }
    doubts
}
