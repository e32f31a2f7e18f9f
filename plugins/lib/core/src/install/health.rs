//! Whether a hub is usable: from what it shows to everything that is missing.

use std::fmt;

use ocm_api::conditions::{self, cluster_manager};
use ocm_api::names::{namespaces, operators};
use ocm_api::{ClusterManager, Condition};

use crate::Named;
use crate::join::lease;
use crate::workload::Health;

/// What a hub shows at one moment.
#[derive(Clone, Debug)]
pub struct HubFacts {
    /// The operator's Deployment.
    pub operator: Health,
    /// The pod whose process has ended and still holds the operator's leader lease.
    pub gone_leader: Option<String>,
    /// The ClusterManager.
    pub manager: ClusterManager,
    /// Where the hub's Deployments are.
    pub namespace: String,
    /// The hub's Deployments.
    pub deployments: Vec<(String, Health)>,
    /// The webhook configurations that a hub has; empty for one whose webhooks are on another cluster.
    pub webhooks: Vec<WebhookFacts>,
    /// What became of questions to the webhooks; empty as long as they were not asked.
    pub probes: Vec<Probe>,
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

/// Everything that is missing, from the operator outwards: the first is what holds up the others.
pub fn judge(facts: &HubFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    let deployment =
        |(name, health): (String, &Health)| health.because().map(|because| Finding::Deployment { name, because });
    let operator = format!("{}/{}", namespaces::OPERATOR, operators::CLUSTER_MANAGER);
    findings.extend(deployment((operator, &facts.operator)));
    let named = facts.deployments.iter().map(|(name, health)| (format!("{}/{name}", facts.namespace), health));
    findings.extend(named.filter_map(deployment));
    reported(facts, &mut findings);
    for webhook in &facts.webhooks {
        match webhook.has_ca {
            None => findings.push(Finding::NoWebhook(webhook.name)),
            Some(false) => findings.push(Finding::NoCa(webhook.name)),
            Some(true) => {}
        }
    }
    let silent = facts.webhooks.iter().filter(|webhook| !webhook.has_endpoint);
    findings.extend(silent.map(|webhook| Finding::NoEndpoint { service: webhook.service, webhook: webhook.name }));
    for Probe { kind, answer } in &facts.probes {
        match answer {
            Answer::Answered => {}
            Answer::NotAsked => findings.push(Finding::NotAsked(kind)),
            Answer::Unanswered(because) => findings.push(Finding::Unanswered { kind, because: because.clone() }),
        }
    }
    findings
}

/// What the operator still reports to be missing, for the present generation of its object.
fn reported(facts: &HubFacts, findings: &mut Vec<Finding>) {
    let manager = &facts.manager;
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
    let present = |name: &str| facts.deployments.iter().any(|(known, _)| known == name);
    let missing =
        status.generations.iter().filter(|applied| applied.resource == "deployments" && !present(&applied.name));
    findings.extend(missing.map(|applied| Finding::NoDeployment(applied.name.clone())));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
            operator: Health::Ready,
            gone_leader: None,
            manager,
            namespace: "hub".to_owned(),
            deployments: vec![("d".to_owned(), Health::Ready)],
            webhooks: vec![webhook],
            probes: vec![Probe { kind: "Things", answer: Answer::Answered }],
        }
    }

    #[test]
    fn conditions_count_only_for_the_present_generation() {
        assert_eq!(judge(&facts(manager(2, "False"))), []);
        let none = HubFacts { deployments: Vec::new(), ..facts(manager(2, "False")) };
        assert_eq!(judge(&none), [Finding::NoDeployment("d".to_owned())]);
        let old = judge(&facts(manager(3, "False")));
        assert!(old[0] == Finding::OldCondition("Applied") && old[4] == Finding::NotObserved, "{old:?}");
        assert_eq!(judge(&facts(manager(2, "True")))[0].to_string(), "the operator reports R: m");
    }

    #[test]
    fn everything_that_is_missing_is_found_and_the_operator_comes_first() {
        let mut all = facts(manager(2, "True"));
        all.operator = Health::not_yet("0 of 1");
        all.deployments[0].1 = Health::stuck("crashes");
        all.webhooks[0] = WebhookFacts { has_ca: Some(false), has_endpoint: false, ..all.webhooks[0].clone() };
        all.probes[0].answer = Answer::NotAsked;
        let sentences: Vec<String> = judge(&all).iter().map(ToString::to_string).collect();
        assert_eq!(
            sentences,
            [
                "Deployment open-cluster-management/cluster-manager: 0 of 1",
                "Deployment hub/d: crashes",
                "the operator reports R: m",
                "webhook configuration w has no CA yet",
                "Service s of webhook configuration w has no ready endpoint yet",
                "the API server does not ask the webhook of Things yet",
            ]
        );
    }

    #[test]
    fn an_operator_that_waits_for_a_dead_leader_is_told_from_one_that_is_slow() {
        let silent = ClusterManager { status: None, ..manager(2, "False") };
        assert_eq!(judge(&facts(silent.clone())), [Finding::NotReported]);
        let gone = HubFacts { gone_leader: Some("p".to_owned()), ..facts(silent) };
        assert_eq!(judge(&gone), [Finding::GoneLeader("p".to_owned())]);
    }
}
