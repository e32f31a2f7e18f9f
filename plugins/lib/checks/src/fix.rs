//! What may be mended on request: an allow-list of checks, and for each what mends its findings, as a value.
//!
//! A change is planned from the snapshot alone. What it deletes or replaces is named by UID and version, so that whoever
//! carries it out meets the object that was looked at, or leaves it alone.

use ocm_api::HubPolicy;
use ocm_api::conditions::{self, hub_policy};
use ocm_api::names::{bootstrap, identity, namespaces, secrets};
use ocm_api::operator::RegistrationAuthType;
use ocm_core::kubeconfig::Likeness;
use ocm_core::workload::Health;
use ocm_core::{Plan, Stage, install, join, policy_engine};
use serde::Serialize;

use crate::causes;
use crate::facts::{self, Cluster, Facts};
use crate::finding::{Finding, Id, ObjectRef};
use crate::judge::Report;
use crate::snapshot::{LeaseFacts, Observed, Side, Snapshot, TokenFacts, Version, Workload};

/// A check whose findings may be mended.
pub struct Fixable {
    /// The check.
    pub id: Id,
    /// What is done, as a sentence without a subject and a final stop.
    pub does: &'static str,
    rule: fn(&Facts<'_>, &Finding) -> Result<Change, String>,
}

/// The allow-list: nothing else is ever changed.
pub const ALLOWED: &[Fixable] = &[
    Fixable { id: Id(1103), does: DELETES, rule: hub_lease },
    Fixable { id: Id(1104), does: OPERATOR, rule: hub_operator_rights },
    Fixable { id: Id(2103), does: DELETES, rule: managed_lease },
    Fixable { id: Id(2105), does: OPERATOR, rule: klusterlet_operator_rights },
    Fixable {
        id: Id(2109),
        does: "makes a new token of the hub's ServiceAccount agent-registration-bootstrap, which is valid for an hour, and puts \
               it into the Secret in the place of the one that has expired",
        rule: new_token,
    },
    Fixable { id: Id(2116), does: DELETES, rule: managed_lease },
    Fixable {
        id: Id(2117),
        does: "applies the role of registering clusters and its binding to the ServiceAccount agent-registration-bootstrap, as \
               `kubectl ocm install hub` makes them",
        rule: bootstrap_rights,
    },
    Fixable {
        id: Id(8103),
        does: "applies the policy engine's webhook configurations as its installation makes them, with the authority by which the \
               webhook serves, where the policy controller reports that the API server does not ask the webhook",
        rule: policy_webhook,
    },
];

const DELETES: &str = "deletes the lease whose holder is gone";
const OPERATOR: &str = "applies the role of the operator and its binding, as its installation makes them, where the operator says \
                        that it lacks a right";

/// What may be done about the findings of a check; none: nothing.
pub fn of(id: Id) -> Option<&'static Fixable> {
    ALLOWED.iter().find(|fixable| fixable.id == id)
}

/// An object as it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// Where it is.
    pub side: Side,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Which it was, and how.
    pub version: Version,
}

/// A change to one of the clusters.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A leader lease is deleted.
    DeleteLease {
        /// The lease.
        lease: Pinned,
        /// The pod whose process holds it and has ended.
        pod: String,
    },
    /// Roles and bindings of our own installations are applied.
    Apply {
        /// Where.
        side: Side,
        /// What.
        plan: Plan,
    },
    /// An agent gets another token to register with.
    ReplaceToken {
        /// The Secret that has the old one.
        secret: Pinned,
        /// The UID of the hub, where it is known.
        hub: Option<String>,
    },
    /// The webhook configurations of the policy engine are applied, with what they need of certificates that are there.
    AskPolicies,
}

impl Change {
    /// The cluster that is changed.
    pub const fn side(&self) -> Side {
        match self {
            Self::DeleteLease { lease, .. } => lease.side,
            Self::Apply { side, .. } => *side,
            Self::ReplaceToken { secret, .. } => secret.side,
            Self::AskPolicies => Side::Hub,
        }
    }

    /// What it does, as a sentence without a subject and a final stop.
    pub fn sentence(&self) -> String {
        match self {
            Self::DeleteLease { lease: Pinned { namespace, name, .. }, pod } => {
                format!("delete Lease {namespace}/{name}, which a process of pod {pod} holds that has ended")
            }
            Self::Apply { plan, .. } => {
                let names: Vec<String> =
                    plan.objects().map(|object| format!("{} {}", object.kind(), object.name())).collect();
                format!("apply {} as an installation makes them", names.join(" and "))
            }
            Self::ReplaceToken { secret: Pinned { namespace, name, .. }, .. } => format!(
                "put a new token of the hub, valid for an hour, into Secret {namespace}/{name} in the place of the one that has \
                 expired"
            ),
            Self::AskPolicies => format!(
                "apply MutatingWebhookConfiguration and ValidatingWebhookConfiguration {} as an installation makes them, so that \
                 the API server asks policies again",
                policy_engine::WEBHOOK
            ),
        }
    }
}

/// A change, and what it mends.
#[derive(Clone, Debug, PartialEq)]
pub struct Fix {
    /// The findings, as [`Finding::name`] has them.
    pub mends: Vec<String>,
    /// The change.
    pub change: Change,
}

/// A finding of the allow-list about which nothing is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Left {
    /// The finding, as [`Finding::name`] has it.
    pub finding: String,
    /// Why.
    pub why: String,
}

/// What is to be done about a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fixes {
    /// The changes, each once, in the order of their findings.
    pub fixes: Vec<Fix>,
    /// What is left alone.
    pub left: Vec<Left>,
}

/// Every finding of a report, with what follows from others: a cause that nobody mends here may have a consequence that can
/// be mended, as an expired certificate has an expired token.
pub fn findings(report: &Report) -> impl Iterator<Item = &Finding> {
    report.findings.iter().flat_map(family)
}

fn family(finding: &Finding) -> impl Iterator<Item = &Finding> {
    std::iter::once(finding).chain(&finding.consequences)
}

/// Plans what mends the findings of a report of this snapshot. `only`: the checks that are meant; empty: all of the allow-list.
pub fn plan(snapshot: &Snapshot, report: &Report, only: &[Id]) -> Fixes {
    let facts = Facts::of(snapshot);
    let mut fixes = Fixes::default();
    for cause in &report.findings {
        let mut is_mended = false;
        for finding in family(cause) {
            let Some(fixable) = of(finding.id).filter(|_| only.is_empty() || only.contains(&finding.id)) else {
                continue;
            };
            match (fixable.rule)(&facts, finding) {
                Ok(change) => {
                    is_mended |= std::ptr::eq(finding, cause);
                    match fixes.fixes.iter_mut().find(|fix| fix.change == change) {
                        Some(known) => known.mends.push(finding.name()),
                        None => fixes.fixes.push(Fix { mends: vec![finding.name()], change }),
                    }
                }
                // What follows from a cause that is mended needs no reason.
                Err(_) if is_mended => {}
                Err(why) => fixes.left.push(Left { finding: finding.name(), why }),
            }
        }
    }
    fixes
}

fn hub_lease(facts: &Facts<'_>, _: &Finding) -> Result<Change, String> {
    let lease = facts.snapshot.hub.as_ref().and_then(|hub| hub.leader.read()?.as_ref());
    delete(facts, Side::Hub, lease)
}

fn managed_lease(facts: &Facts<'_>, finding: &Finding) -> Result<Change, String> {
    let managed = facts.snapshot.managed.as_ref();
    let of_operator = managed.map(|managed| &managed.leases);
    let of_agents = managed.into_iter().flat_map(|managed| &managed.agents).map(|agent| &agent.leases);
    let mut all = of_operator.into_iter().chain(of_agents).filter_map(Observed::read).flatten();
    let is_meant = |lease: &&LeaseFacts| {
        let named = |object: &ObjectRef| {
            object.kind == "Lease" && object.namespace.as_ref() == Some(&lease.namespace) && object.name == lease.name
        };
        finding.objects.iter().any(named)
    };
    delete(facts, Side::Managed, all.find(is_meant))
}

fn delete(facts: &Facts<'_>, side: Side, lease: Option<&LeaseFacts>) -> Result<Change, String> {
    let held = lease.and_then(|lease| Some((lease, facts.gone_holder(lease)?)));
    let Some((lease, pod)) = held else { return Err("the holder of the lease is not known to be gone".to_owned()) };
    let lease = pinned(side, &lease.namespace, &lease.name, lease.version.as_ref())?;
    Ok(Change::DeleteLease { lease, pod: pod.to_owned() })
}

fn pinned(side: Side, namespace: &str, name: &str, version: Option<&Version>) -> Result<Pinned, String> {
    let Some(version) = version else { return Err(format!("it is not known which object {namespace}/{name} was")) };
    Ok(Pinned { side, namespace: namespace.to_owned(), name: name.to_owned(), version: version.clone() })
}

fn apply(side: Side, objects: impl Into<Vec<ocm_api::Manifest>>) -> Change {
    Change::Apply { side, plan: Plan::new([Stage::new("roles and their bindings", objects.into())]) }
}

fn hub_operator_rights(facts: &Facts<'_>, _: &Finding) -> Result<Change, String> {
    let hub = facts.snapshot.hub.as_ref();
    let managers = hub.and_then(|hub| hub.managers.read()).into_iter().flatten();
    let mut said = managers.flat_map(|manager| manager.status.iter().flat_map(|status| &status.conditions));
    is_in_its_place(hub.map(|hub| &hub.operator))?;
    match said.any(|condition| causes::lacks_right(&condition.message, ocm_api::names::operators::CLUSTER_MANAGER)) {
        true => Ok(apply(Side::Hub, install::operator_rights())),
        false => Err(NO_RIGHT.to_owned()),
    }
}

fn klusterlet_operator_rights(facts: &Facts<'_>, finding: &Finding) -> Result<Change, String> {
    let klusterlet = cluster(facts, finding)?.agent.map(|agent| agent.klusterlet);
    is_in_its_place(facts.snapshot.managed.as_ref().map(|managed| &managed.operator))?;
    let said = klusterlet.and_then(|klusterlet| klusterlet.status.as_ref()).map(|status| &status.conditions);
    let mut wrong = said.into_iter().flatten().filter(|condition| condition.status == conditions::FALSE);
    match wrong.any(|condition| causes::lacks_right(&condition.message, ocm_api::names::operators::KLUSTERLET)) {
        true => Ok(apply(Side::Managed, join::operator_rights())),
        false => Err(NO_RIGHT.to_owned()),
    }
}

const NO_RIGHT: &str = "the operator does not say that it lacks a right";

/// Whether an operator is where our installations put it: another one has roles of other names.
fn is_in_its_place(operator: Option<&Observed<Workload>>) -> Result<(), String> {
    match operator.and_then(Observed::read).is_some_and(|operator| operator.namespace == namespaces::OPERATOR) {
        true => Ok(()),
        false => Err(format!("the operator is not in namespace {}, where its roles belong to", namespaces::OPERATOR)),
    }
}

fn cluster<'a, 'f>(facts: &'f Facts<'a>, finding: &Finding) -> Result<&'f Cluster<'a>, String> {
    let named = finding.cluster.as_deref().and_then(|name| facts.clusters.get(name));
    named.ok_or_else(|| "the cluster was not looked at".to_owned())
}

const NO_HUB: &str = "the hub was not looked at, for none was named";

fn new_token(facts: &Facts<'_>, finding: &Finding) -> Result<Change, String> {
    let agent = cluster(facts, finding)?.agent.ok_or("the managed cluster was not looked at")?;
    let hub = facts.snapshot.hub.as_ref().ok_or(NO_HUB)?;
    if facts::driver(agent.klusterlet) != RegistrationAuthType::Csr {
        return Err("the agent does not register by the driver csr".to_owned());
    }
    let secret = agent.side.bootstrap.read().and_then(Option::as_ref).ok_or("there is no Secret with a token")?;
    // A token goes to the hub that it is of, and to nobody who took its place.
    if !matches!(facts::likeness(hub, secret), Some(Likeness::Same | Likeness::OtherAddress)) {
        return Err("the agent's kubeconfig is not known to be one of this hub: join again".to_owned());
    }
    let secret =
        pinned(Side::Managed, &agent.side.namespace, secrets::BOOTSTRAP_HUB_KUBECONFIG, secret.version.as_ref())?;
    Ok(Change::ReplaceToken { secret, hub: hub.uid.clone() })
}

fn bootstrap_rights(facts: &Facts<'_>, finding: &Finding) -> Result<Change, String> {
    let agent = cluster(facts, finding)?.agent.ok_or("the managed cluster was not looked at")?;
    facts.snapshot.hub.as_ref().ok_or(NO_HUB)?;
    let secret = agent.side.bootstrap.read().and_then(Option::as_ref);
    match secret.and_then(|secret| secret.kubeconfig.as_ref()?.token.as_ref()) {
        Some(TokenFacts::ServiceAccount { subject: Some(subject), .. }) if subject == identity::BOOTSTRAP_USER => {
            Ok(apply(Side::Hub, install::bootstrap_rights()))
        }
        _ => Err(format!(
            "the token is none of ServiceAccount {}/{}, and others get no rights",
            namespaces::OPERATOR,
            bootstrap::SERVICE_ACCOUNT
        )),
    }
}

fn policy_webhook(facts: &Facts<'_>, finding: &Finding) -> Result<Change, String> {
    let hub = facts.snapshot.hub.as_ref().ok_or(NO_HUB)?;
    let is_meant = |policy: &&HubPolicy| {
        let named =
            |object: &ObjectRef| object.kind == "HubPolicy" && Some(&object.name) == policy.metadata.name.as_ref();
        finding.objects.iter().any(named)
    };
    let policy = hub.policies.read().into_iter().flatten().find(is_meant);
    let said = policy.and_then(|policy| policy.status.as_ref());
    let enforcing = said.and_then(|status| conditions::find(&status.conditions, hub_policy::ENFORCING));
    let is_asked = enforcing.is_none_or(|enforcing| {
        enforcing.status != conditions::FALSE || !hub_policy::reasons::NOT_ASKED.contains(&enforcing.reason.as_str())
    });
    if is_asked {
        return Err("it is not the API server that fails to ask the policy".to_owned());
    }
    let webhook = hub.policy_engine.read().into_iter().flatten().find(|one| one.name == policy_engine::WEBHOOK);
    match webhook.is_some_and(|webhook| webhook.replicas > 0 && webhook.health == Health::Ready) {
        true => Ok(Change::AskPolicies),
        false => Err("the pods of the webhook are not ready, and the API server would ask in vain".to_owned()),
    }
}
