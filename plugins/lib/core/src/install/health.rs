//! Whether a hub is usable: from what it shows to everything that is missing.

use std::fmt;

use ocm_api::conditions::{self, cluster_manager};
use ocm_api::names::{namespaces, operators};
use ocm_api::{ClusterManager, Condition};

use super::mode::namespace_of;
use crate::join::lease;
use crate::workload::Health;
use crate::{Failure, Named};

/// What a hub shows at one moment: facts, each of them or why it could not be read.
#[derive(Clone, Debug)]
pub struct HubFacts {
    /// The operator's Deployment.
    pub operator: Result<Health, Failure>,
    /// The pod whose process has ended and still holds the operator's leader lease.
    pub gone_leader: Option<String>,
    /// The ClusterManager.
    pub manager: Result<ClusterManager, Failure>,
    /// The hub's Deployments; empty where the ClusterManager, which tells where they are, could not be read.
    pub deployments: Result<Vec<(String, Health)>, Failure>,
    /// The webhook configurations that a hub has; empty for one whose webhooks are on another cluster, and where the
    /// ClusterManager, which tells where they are, could not be read.
    pub webhooks: Result<Vec<WebhookFacts>, Failure>,
    /// What became of questions to the webhooks; empty as long as they were not asked.
    pub probes: Vec<Probe>,
}

impl HubFacts {
    /// Why something could not be read, and does not become readable by itself.
    pub fn lasting_trouble(&self) -> Option<&Failure> {
        let Self { operator, manager, deployments, webhooks, gone_leader: _, probes: _ } = self;
        let troubles =
            [operator.as_ref().err(), manager.as_ref().err(), deployments.as_ref().err(), webhooks.as_ref().err()];
        troubles.into_iter().flatten().find(|trouble| !trouble.reason.is_transient())
    }
}

/// One webhook configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookFacts {
    /// Its name.
    pub name: &'static str,
    /// The Service that answers.
    pub service: &'static str,
    /// Whether it knows the CA of its server; none: there is no such configuration.
    pub has_ca: Option<bool>,
    /// Whether the Service has a ready endpoint.
    pub has_endpoint: bool,
}

/// A question to a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The kind of object that it was about, in the plural.
    pub kind: &'static str,
    /// What became of it.
    pub answer: Answer,
}

/// What became of a question to a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It answered, or we are not the ones who may ask.
    Answered,
    /// The API server did not ask it.
    NotAsked,
    /// It was asked and did not answer.
    Unanswered(String),
}

/// What is missing of a usable hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Something could not be read, and why.
    Unread(Failure),
    /// A Deployment is not ready.
    Deployment {
        /// Namespace and name.
        name: String,
        /// What is missing.
        because: String,
    },
    /// The operator waits for a lease that a process of this pod held which has ended.
    GoneLeader(String),
    /// The operator has not reported anything yet.
    NotReported,
    /// The operator has not reported this condition yet.
    NoCondition(&'static str),
    /// The operator reports that something is wrong.
    Condition {
        /// Its word for it.
        reason: String,
        /// Its sentence.
        message: String,
    },
    /// A condition is of an earlier generation.
    OldCondition(&'static str),
    /// The operator has not observed the latest generation.
    NotObserved,
    /// A Deployment that the operator has applied is not there.
    NoDeployment(String),
    /// A webhook configuration is not there.
    NoWebhook(&'static str),
    /// A webhook configuration knows no CA.
    NoCa(&'static str),
    /// Nobody is behind a webhook configuration.
    NoEndpoint {
        /// The Service.
        service: &'static str,
        /// The configuration.
        webhook: &'static str,
    },
    /// The API server does not ask a webhook.
    NotAsked(&'static str),
    /// A webhook does not answer.
    Unanswered {
        /// The kind of object that it was asked about.
        kind: &'static str,
        /// What came instead.
        because: String,
    },
}

impl Finding {
    /// The object that it is about, where it is one.
    pub fn about(&self) -> Option<Named> {
        let Self::Deployment { name, .. } = self else { return None };
        let (namespace, name) = name.split_once('/')?;
        Some(Named { kind: "Deployment".to_owned(), namespace: Some(namespace.to_owned()), name: name.to_owned() })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread(trouble) => trouble.fmt(f),
            Self::Deployment { name, because } => write!(f, "Deployment {name}: {because}"),
            Self::GoneLeader(pod) => write!(
                f,
                "the operator waits, for up to {} s, for Lease {}/{} that a process of pod {pod} held, which has ended",
                lease::LASTS.as_secs(),
                namespaces::OPERATOR,
                operators::CLUSTER_MANAGER_LOCK
            ),
            Self::NotReported => f.write_str("the operator has not reported anything yet"),
            Self::NoCondition(kind) => write!(f, "the operator has not reported {kind} yet"),
            Self::Condition { reason, message } => write!(f, "the operator reports {reason}: {message}"),
            Self::OldCondition(kind) => {
                write!(f, "the operator has not reported {kind} of the latest generation yet")
            }
            Self::NotObserved => {
                f.write_str("the operator has not observed the latest generation of the ClusterManager yet")
            }
            Self::NoDeployment(name) => write!(f, "Deployment {name} is not there"),
            Self::NoWebhook(name) => write!(f, "webhook configuration {name} is not there yet"),
            Self::NoCa(name) => write!(f, "webhook configuration {name} has no CA yet"),
            Self::NoEndpoint { service, webhook } => {
                write!(f, "Service {service} of webhook configuration {webhook} has no ready endpoint yet")
            }
            Self::NotAsked(kind) => write!(f, "the API server does not ask the webhook of {kind} yet"),
            Self::Unanswered { kind, because } => write!(f, "the webhook of {kind} does not answer yet: {because}"),
        }
    }
}

/// Everything that is missing, from the operator outwards: the first is what holds up the others. What could not be read is
/// missing, too.
pub fn judge(facts: &HubFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    let unread = |trouble: &Failure| Finding::Unread(trouble.clone());
    let deployment =
        |(name, health): (String, &Health)| health.because().map(|because| Finding::Deployment { name, because });
    let operator = format!("{}/{}", namespaces::OPERATOR, operators::CLUSTER_MANAGER);
    match &facts.operator {
        Ok(health) => findings.extend(deployment((operator, health))),
        Err(trouble) => findings.push(unread(trouble)),
    }
    let namespace = facts.manager.as_ref().map_or(namespaces::HUB, namespace_of);
    match &facts.deployments {
        Ok(all) => {
            let named = all.iter().map(|(name, health)| (format!("{namespace}/{name}"), health));
            findings.extend(named.filter_map(deployment));
        }
        Err(trouble) => findings.push(unread(trouble)),
    }
    match &facts.manager {
        Ok(manager) => reported(facts, manager, &mut findings),
        Err(trouble) => findings.push(unread(trouble)),
    }
    match &facts.webhooks {
        Ok(webhooks) => lack(webhooks, &mut findings),
        Err(trouble) => findings.push(unread(trouble)),
    }
    for Probe { kind, answer } in &facts.probes {
        match answer {
            Answer::Answered => {}
            Answer::NotAsked => findings.push(Finding::NotAsked(kind)),
            Answer::Unanswered(because) => findings.push(Finding::Unanswered { kind, because: because.clone() }),
        }
    }
    findings
}

/// What webhook configurations lack: first they themselves and their authorities, then whoever answers.
fn lack(webhooks: &[WebhookFacts], findings: &mut Vec<Finding>) {
    for webhook in webhooks {
        match webhook.has_ca {
            None => findings.push(Finding::NoWebhook(webhook.name)),
            Some(false) => findings.push(Finding::NoCa(webhook.name)),
            Some(true) => {}
        }
    }
    let silent = webhooks.iter().filter(|webhook| !webhook.has_endpoint);
    findings.extend(silent.map(|webhook| Finding::NoEndpoint { service: webhook.service, webhook: webhook.name }));
}

/// What the operator still reports to be missing, for the present generation of its object.
fn reported(facts: &HubFacts, manager: &ClusterManager, findings: &mut Vec<Finding>) {
    let Some(status) = &manager.status else {
        // An operator whose predecessor was killed waits for a lease that nobody holds any more.
        findings.push(facts.gone_leader.clone().map_or(Finding::NotReported, Finding::GoneLeader));
        return;
    };
    let generation = manager.metadata.generation.unwrap_or_default();
    let find = |kind: &str| conditions::find(&status.conditions, kind);
    let about = |condition: &Condition| Finding::Condition {
        reason: condition.reason.clone(),
        message: condition.message.clone(),
    };
    for (kind, wanted) in [
        (cluster_manager::APPLIED, conditions::TRUE),
        (cluster_manager::PROGRESSING, conditions::FALSE),
        (cluster_manager::HUB_REGISTRATION_DEGRADED, conditions::FALSE),
        (cluster_manager::HUB_PLACEMENT_DEGRADED, conditions::FALSE),
    ] {
        match find(kind) {
            None => findings.push(Finding::NoCondition(kind)),
            Some(condition) if condition.status != wanted => findings.push(about(condition)),
            Some(condition) if condition.observed_generation.is_some_and(|seen| seen < generation) => {
                findings.push(Finding::OldCondition(kind));
            }
            Some(_) => {}
        }
    }
    if status.observed_generation.unwrap_or_default() < generation {
        findings.push(Finding::NotObserved);
    }
    let gates = find(cluster_manager::VALID_FEATURE_GATES).filter(|gates| gates.status == conditions::FALSE);
    findings.extend(gates.map(about));
    // Which are there is not known where they could not be read.
    let Ok(deployments) = &facts.deployments else { return };
    let present = |name: &str| deployments.iter().any(|(known, _)| known == name);
    let missing =
        status.generations.iter().filter(|applied| applied.resource == "deployments" && !present(&applied.name));
    findings.extend(missing.map(|applied| Finding::NoDeployment(applied.name.clone())));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Reason;

    fn manager(generation: i64, progressing: &str) -> ClusterManager {
        let condition = |kind: &str, status: &str| {
            json!({"type": kind, "status": status, "reason": "R", "message": "m", "observedGeneration": 2,
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        serde_json::from_value(json!({
            "apiVersion": "operator.open-cluster-management.io/v1", "kind": "ClusterManager",
            "metadata": {"name": "m", "generation": generation},
            "spec": {},
            "status": {"observedGeneration": 2, "relatedResources": [],
                "generations": [{"group": "apps", "version": "v1", "resource": "deployments", "name": "d", "lastGeneration": 1}],
                "conditions": [condition("Applied", "True"), condition("Progressing", progressing),
                    condition("HubRegistrationDegraded", "False"), condition("HubPlacementDegraded", "False")]},
        }))
        .unwrap()
    }

    fn facts(manager: ClusterManager) -> HubFacts {
        let webhook = WebhookFacts { name: "w", service: "s", has_ca: Some(true), has_endpoint: true };
        HubFacts {
            operator: Ok(Health::Ready),
            gone_leader: None,
            manager: Ok(manager),
            deployments: Ok(vec![("d".to_owned(), Health::Ready)]),
            webhooks: Ok(vec![webhook]),
            probes: vec![Probe { kind: "Things", answer: Answer::Answered }],
        }
    }

    #[test]
    fn conditions_count_only_for_the_present_generation() {
        assert_eq!(judge(&facts(manager(2, "False"))), []);
        let none = HubFacts { deployments: Ok(Vec::new()), ..facts(manager(2, "False")) };
        assert_eq!(judge(&none), [Finding::NoDeployment("d".to_owned())]);
        let old = judge(&facts(manager(3, "False")));
        assert!(old[0] == Finding::OldCondition("Applied") && old[4] == Finding::NotObserved, "{old:?}");
        assert_eq!(judge(&facts(manager(2, "True")))[0].to_string(), "the operator reports R: m");
    }

    #[test]
    fn everything_that_is_missing_is_found_and_the_operator_comes_first() {
        let mut all = facts(manager(2, "True"));
        all.operator = Ok(Health::not_yet("0 of 1"));
        all.deployments = Ok(vec![("d".to_owned(), Health::stuck("crashes"))]);
        all.webhooks = Ok(vec![WebhookFacts { name: "w", service: "s", has_ca: Some(false), has_endpoint: false }]);
        all.probes[0].answer = Answer::NotAsked;
        let sentences: Vec<String> = judge(&all).iter().map(ToString::to_string).collect();
        assert_eq!(
            sentences,
            [
                "Deployment open-cluster-management/cluster-manager: 0 of 1",
                "Deployment open-cluster-management-hub/d: crashes",
                "the operator reports R: m",
                "webhook configuration w has no CA yet",
                "Service s of webhook configuration w has no ready endpoint yet",
                "the API server does not ask the webhook of Things yet",
            ]
        );
    }

    #[test]
    fn what_could_not_be_read_is_missing_and_hides_nothing_else() {
        let busy = Failure::new(Reason::Busy, "not now");
        let forbidden = Failure::new(Reason::Forbidden, "may not read it");
        let well = facts(manager(2, "False"));
        assert_eq!(well.lasting_trouble(), None);
        let unread = Finding::Unread(busy.clone());
        let all: [HubFacts; 4] = [
            HubFacts { operator: Err(busy.clone()), ..well.clone() },
            HubFacts { manager: Err(busy.clone()), ..well.clone() },
            HubFacts { deployments: Err(busy.clone()), ..well.clone() },
            HubFacts { webhooks: Err(busy.clone()), ..well.clone() },
        ];
        for facts in all {
            assert_eq!(judge(&facts), std::slice::from_ref(&unread));
            assert_eq!(facts.lasting_trouble(), None, "it may be read a moment later");
        }
        let slow = HubFacts { webhooks: Err(busy), operator: Ok(Health::not_yet("0 of 1")), ..well.clone() };
        let sentences: Vec<String> = judge(&slow).iter().map(ToString::to_string).collect();
        assert_eq!(sentences, ["Deployment open-cluster-management/cluster-manager: 0 of 1", "not now"]);
        let hidden = HubFacts { deployments: Err(forbidden.clone()), ..slow };
        assert_eq!(hidden.lasting_trouble(), Some(&forbidden));
    }

    #[test]
    fn an_operator_that_waits_for_a_dead_leader_is_told_from_one_that_is_slow() {
        let silent = ClusterManager { status: None, ..manager(2, "False") };
        assert_eq!(judge(&facts(silent.clone())), [Finding::NotReported]);
        let gone = HubFacts { gone_leader: Some("p".to_owned()), ..facts(silent) };
        assert_eq!(judge(&gone), [Finding::GoneLeader("p".to_owned())]);
    }
}
