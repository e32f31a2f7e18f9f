//! 5xxx: works and add-ons.

use jiff::SignedDuration;
use ocm_api::conditions::{self, managed_cluster_add_on, manifest_work};
use ocm_api::names::{finalizers, identity};
use ocm_api::operator::RegistrationAuthType;
use ocm_api::{Condition, ManagedClusterAddOn};
use ocm_core::csr::State;

use super::subject::staying;
use super::{Category, Check, Input, Page, Rule};
use crate::causes;
use crate::facts::{Cluster, Facts};
use crate::finding::{Finding, Id, Outcome, Severity};
use crate::snapshot::{AppliedWorkFacts, ManagedSide, Side, WorkFacts};
use crate::text;

/// How long works and add-ons may take.
const GRACE: SignedDuration = SignedDuration::from_secs(300);

/// What keeps an agent from being at work.
const AGENT: &[Id] = &[
    Id(2102),
    Id(2105),
    Id(2106),
    Id(2115),
    Id(2116),
    Id(2204),
    Id(2205),
    Id(2206),
    Id(2207),
    Id(2211),
    Id(3101),
    Id(3102),
    Id(3104),
    Id(6101),
    Id(1116),
    Id(1118),
    Id(3111),
];

/// The checks of works and add-ons.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: Id(5101),
        slug: "works-applied",
        title: "the cluster's works are applied",
        category: Category::Works,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::Works],
        after: AGENT,
        rule: Rule::Cluster(works_applied),
        page: Page {
            means: "The agent could not apply objects of a ManifestWork.",
            happens: "The work agent lacks a right on the managed cluster, another manager owns a field, the kind is not served, or \
                      admission refuses the object.",
            mend: "Read the message. Rights: a ClusterRole with the label open-cluster-management.io/aggregate-to-work=true on the \
                   managed cluster, or an executor.",
            mended: "The condition Applied of the work is True.",
        },
    },
    Check {
        id: Id(5102),
        slug: "works-taken-up",
        title: "the agent reports about the cluster's works",
        category: Category::Works,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::Works],
        after: AGENT,
        rule: Rule::Cluster(works_taken_up),
        page: Page {
            means: "A work is five minutes old or more, and the agent has reported nothing about it.",
            happens: "The work agent does not run or still uses a former kubeconfig, while the registration agent is well.",
            mend: "Look at the work agent's log.",
            mended: "The work has a condition Applied.",
        },
    },
    Check {
        id: Id(5103),
        slug: "works-removed",
        title: "deleted works go",
        category: Category::Works,
        severity: Severity::Warning,
        inputs: &[Input::ManagedClusters, Input::Works],
        after: AGENT,
        rule: Rule::Cluster(works_removed),
        page: Page {
            means: "A work is being deleted for five minutes or more. Its finalizer waits until the agent has removed what it \
                    applied.",
            happens: "The agent is offline, or an object on the managed cluster has a finalizer of its own.",
            mend: "Bring the agent back. Only if the cluster is gone for good, take the finalizer away: what was applied stays.",
            mended: "The work is gone.",
        },
    },
    Check {
        id: Id(5104),
        slug: "applied-works-stay",
        title: "what agents have applied belongs to works of the hub",
        category: Category::Works,
        severity: Severity::Warning,
        inputs: &[Input::Klusterlets, Input::AppliedWorks],
        after: &[Id(2103)],
        rule: Rule::Managed(applied_works_stay),
        page: Page {
            means: "The managed cluster has objects that were applied for works of a hub, and the hub no longer has the works, or another \
                    agent applied them. Of the first kind the agent removes what it applied after its time of grace, an hour by \
                    default; of the second nobody does.",
            happens: "The hub was restored or replaced, the cluster was away for long or was imported again under another name, or its \
                      Klusterlet was created again.",
            mend: "To keep the objects, restore the works on the hub before the time is over, or raise \
                   appliedManifestWorkEvictionGracePeriod of the Klusterlet. What a former agent left can be removed by deleting the \
                   AppliedManifestWork; set its works to orphan first if the objects are to stay.",
            mended: "Every AppliedManifestWork is of a Klusterlet that is there, and none has status.evictionStartTime. What hosted \
                     agents apply, which run on another cluster, is on the managed cluster: name that one by `--context`.",
        },
    },
    Check {
        id: Id(5201),
        slug: "add-on-registers",
        title: "the requests of add-ons are approved",
        category: Category::Works,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::Requests, Input::AddOns],
        after: &[Id(1106), Id(1116)],
        rule: Rule::Cluster(addon_registers),
        page: Page {
            means: "A certificate request of an add-on waits for a minute or more. The add-on's manager, or the hub's addon-manager, \
                    approves these.",
            happens: "The manager does not run, or is of another release than the agent: `org count is N, expected 2 or 3`.",
            mend: "Look at the log of the add-on's manager on the hub.",
            mended: "The request is issued, and Secret ADDON-hub-kubeconfig is on the managed cluster.",
        },
    },
    Check {
        id: Id(5202),
        slug: "add-on-available",
        title: "the cluster's add-ons are available",
        category: Category::Works,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::AddOns],
        after: &[
            Id(2102),
            Id(2106),
            Id(2115),
            Id(2116),
            Id(2204),
            Id(2205),
            Id(2206),
            Id(2207),
            Id(2211),
            Id(3101),
            Id(3102),
            Id(3104),
            Id(5101),
            Id(5102),
            Id(5201),
            Id(5203),
            Id(5205),
            Id(5206),
            Id(6101),
            Id(1116),
            Id(3111),
        ],
        rule: Rule::Cluster(addon_available),
        page: Page {
            means: "An add-on does not report, or reports that it is not well.",
            happens: "Its pods do not run on the managed cluster, its registration is not complete, or its lease is in another \
                      namespace than the hub believes.",
            mend: "Look at its pods in the install namespace on the managed cluster. Behind a proxy an add-on needs an \
                   AddOnDeploymentConfig with proxyConfig, whose noProxy has the address of the Service kubernetes, .svc and \
                   .cluster.local, and whose caBundle vouches for an https proxy. Add-ons of clusters that come by gRPC need the \
                   way to the hub's API server, too.",
            mended: "The condition Available of the ManagedClusterAddOn is True.",
        },
    },
];

/// Whether something older than the time that is allowed for it.
pub(super) fn is_old(facts: &Facts<'_>, time: Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>) -> bool {
    time.is_some_and(|time| facts.now.duration_since(time.0) >= GRACE)
}

fn about(work: &WorkFacts, finding: Finding) -> Finding {
    finding.on(Side::Hub, "ManifestWork", Some(&work.namespace), &work.name).run(
        Side::Hub,
        "kubectl describe manifestwork/{} -n {}",
        &[&work.name, &work.namespace],
    )
}

/// Why nothing can be told of the works of a cluster; none: they were read.
fn unread(cluster: &Cluster<'_>) -> Option<Outcome> {
    let is_unread = cluster.works.iter().any(|work| !work.has_status);
    is_unread.then(|| Outcome::skip("of more than one cluster no more of works is read than that they are there"))
}

fn works_applied(_: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let _ = staying!(cluster);
    if let Some(skipped) = unread(cluster) {
        return skipped;
    }
    let failed = cluster.works.iter().filter(|work| work.deleting.is_none());
    let failed = failed.filter_map(|work| {
        let condition = conditions::find(&work.conditions, manifest_work::APPLIED)?;
        (condition.status == conditions::FALSE).then_some((work, condition))
    });
    Outcome::of(
        failed
            .map(|(work, condition)| {
                let finding = Finding::error(format!("work {} is not applied", work.name)).seen(format!(
                    "{}: {}",
                    condition.reason,
                    text::tail(&condition.message, 240)
                ));
                let finding = work.failed.iter().take(5).fold(finding, |finding, line| finding.seen(line));
                let said = || std::iter::once(&condition.message).chain(&work.failed);
                let cause = said().find_map(|words| causes::work(words));
                let cause = cause.unwrap_or("a right, an owner of a field, a kind that is not served, or admission");
                about(work, finding.because(cause))
            })
            .collect(),
    )
}

fn works_taken_up(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let _ = staying!(cluster);
    if let Some(skipped) = unread(cluster) {
        return skipped;
    }
    let silent = cluster
        .works
        .iter()
        .filter(|work| work.deleting.is_none() && work.conditions.is_empty() && is_old(facts, work.created.as_ref()));
    Outcome::of(
        silent
            .map(|work| {
                let since = facts.ago(work.created.as_ref().map(|time| time.0));
                let finding =
                    Finding::error(format!("the agent has reported nothing about work {} since {since}", work.name))
                        .because("the work agent does not run, or uses a former kubeconfig");
                about(work, finding)
            })
            .collect(),
    )
}

fn works_removed(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let _ = staying!(cluster);
    let leaving = cluster.works.iter().filter(|work| is_old(facts, work.deleting.as_ref()));
    Outcome::of(
        leaving
            .map(|work| {
                let since = facts.ago(work.deleting.as_ref().map(|time| time.0));
                let finding = Finding::warning(format!("work {} is being deleted since {since}", work.name))
                    .seen(format!("finalizers: {}", text::list(&work.finalizers)));
                let finding = if work.finalizers.iter().any(|one| one == finalizers::MANIFEST_WORK) {
                    finding
                        .because("the agent has not removed what it applied: it is offline, or an object does not go")
                } else {
                    finding.because("a finalizer of somebody else")
                };
                about(work, finding)
            })
            .collect(),
    )
}

/// Of how many works a finding tells.
const SHOWN: usize = 5;

fn applied_works_stay(facts: &Facts<'_>, managed: &ManagedSide) -> Outcome {
    let klusterlets = managed.klusterlets.read().map(Vec::as_slice).unwrap_or_default();
    // The agents of a hosted Klusterlet apply on another cluster than that on which they and it are.
    let is_elsewhere = klusterlets.iter().all(|klusterlet| klusterlet.mode().is_hosted());
    let works = managed.applied_works.read().into_iter().flatten().filter(|work| work.deleting.is_none());
    let is_own = |work: &&AppliedWorkFacts| {
        klusterlets.iter().any(|klusterlet| klusterlet.metadata.uid.as_ref().is_none_or(|uid| *uid == work.agent))
    };
    let (evicted, others): (Vec<_>, Vec<_>) = works.partition(|work| work.evicting.is_some());
    // Without a Klusterlet here nobody knows which agents there are.
    let is_left = |work: &&AppliedWorkFacts| !klusterlets.is_empty() && !work.agent.is_empty() && !is_own(work);
    let left: Vec<_> = others.into_iter().filter(is_left).collect();
    let about = |text: String, works: &[&AppliedWorkFacts]| {
        let finding = Finding::warning(text);
        works
            .iter()
            .take(SHOWN)
            .fold(finding, |finding, work| finding.on(Side::Managed, "AppliedManifestWork", None, &work.name))
    };
    let mut findings = Vec::new();
    if let Some(since) = evicted.iter().filter_map(|work| work.evicting.as_ref()).map(|time| time.0).min() {
        let count = evicted.len();
        let text = format!("the hub no longer has {count} works, and what they applied will be removed");
        let finding =
            about(text, &evicted).seen(format!("the agent has missed the first since {}", facts.ago(Some(since))));
        let finding = match klusterlets.is_empty() {
            true => {
                finding.seen(
                    "no Klusterlet is here: the agent runs on another cluster, as those in mode Hosted do, or is gone, and then \
                     nothing is removed",
                )
            }
            false => finding,
        };
        findings.push(
            finding
                .seen(format!("works: {}", text::list(evicted.iter().take(SHOWN).map(|work| &work.work))))
                .because("the hub was restored or replaced, or the cluster was imported again")
                .run(Side::Managed, "kubectl get appliedmanifestworks", &[])
                .advise(
                    "to keep the objects, restore the works, or raise appliedManifestWorkEvictionGracePeriod of the Klusterlet",
                ),
        );
    }
    if !left.is_empty() {
        let text = format!("{} works were applied by an agent that is not there any more", left.len());
        findings.push(
            about(text, &left)
                .seen(format!("works: {}", text::list(left.iter().take(SHOWN).map(|work| &work.work))))
                .because("the Klusterlet was created again, or the agent that applied them runs on another cluster")
                .run(Side::Managed, "kubectl get appliedmanifestworks -o yaml", &[]),
        );
    }
    match (findings.is_empty() && is_elsewhere, klusterlets.is_empty()) {
        (true, true) => Outcome::skip("the agent runs on another cluster, or there is none"),
        (true, false) => {
            Outcome::skip("what the agents of hosted Klusterlets apply is on the clusters that they manage")
        }
        (false, _) => Outcome::of(findings),
    }
}

/// Of how many requests of add-ons of one cluster a report tells.
const MANY: usize = 10;

fn addon_registers(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let _ = staying!(cluster);
    let waiting = cluster.addon_requests.iter().filter(|request| {
        let age = request.created.map(|created| facts.now.duration_since(created)).unwrap_or_default();
        request.state == State::Pending && age >= SignedDuration::from_secs(60)
    });
    // What was left behind when a newer one was approved ends by itself.
    let replaced = |request: &&ocm_core::csr::Request| {
        let newer = |other: &ocm_core::csr::Request| {
            matches!(other.state, State::Approved | State::Issued)
                && other.addon_label == request.addon_label
                && other.created > request.created
        };
        cluster.addon_requests.iter().any(newer)
    };
    let own = format!("{}{}:", identity::PREFIX, cluster.name);
    let is_addon = |name: &str| {
        let named = |addon: &&&ManagedClusterAddOn| addon.metadata.name.as_deref() == Some(name);
        cluster.addons.iter().find(named).is_some_and(|addon| addon.metadata.deletion_timestamp.is_none())
    };
    let found = waiting.filter(|request| !replaced(request)).take(MANY).map(|request| {
        let addon = request.addon_label.as_deref().unwrap_or_default();
        let since = facts.ago(request.created);
        // Anybody with a token can write the name of any add-on into a request.
        let finding = match is_addon(addon) && request.asked_by().starts_with(&own) {
            true => Finding::error(format!("the certificate request of add-on {addon} waits since {since}"))
                .because("the manager of the add-on, which approves it, does not run or is of another release"),
            false => Finding::warning(format!("a request in the name of add-on {addon:?} waits since {since}"))
                .because("the cluster has no such add-on, or it is not its agent that asks: somebody else may"),
        };
        finding
            .on(Side::Hub, "CertificateSigningRequest", None, &request.name)
            .seen(format!("asked by {:?}", request.asked_by()))
            .run(Side::Hub, "kubectl describe csr/{}", &[&request.name])
    });
    Outcome::of(found.collect())
}

fn addon_available(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let _ = staying!(cluster);
    let staying = cluster.addons.iter().filter(|addon| addon.metadata.deletion_timestamp.is_none());
    let unwell = staying.filter_map(|addon| {
        let name = addon.metadata.name.as_deref().unwrap_or_default();
        let conditions = addon.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let condition = conditions::find(conditions, managed_cluster_add_on::AVAILABLE);
        let seen = match condition {
            Some(condition) if condition.status == conditions::TRUE => return None,
            Some(condition) => said(condition),
            // Nobody reports whether those are available that have no health check. What cannot be set up is told elsewhere.
            None => said(conditions.iter().find(failed)?),
        };
        let since = condition.map(|condition| condition.last_transition_time.clone());
        // What has only just begun to start is not in trouble.
        if since.is_some_and(|since| !is_old(facts, Some(&since))) {
            return None;
        }
        let parts: Vec<String> = conditions.iter().filter(failed).map(said).filter(|part| *part != seen).collect();
        // What it has not been able to set up says more than that it does not report.
        let cause = parts.iter().chain([&seen]).find_map(|words| causes::addon(words));
        let finding = Finding::error(format!("add-on {name} is not available"))
            .on(Side::Hub, "ManagedClusterAddOn", Some(cluster.name), name)
            .seen(seen);
        let finding = parts.into_iter().fold(finding, Finding::seen);
        let finding = way_of(cluster, addon, finding)
            .because(cause.unwrap_or("its pods do not run, or its registration is not complete"))
            .run(Side::Hub, "kubectl describe managedclusteraddon/{} -n {}", &[name, cluster.name]);
        Some(finding.run(Side::Managed, "kubectl get pods,leases -n {}", &[addon.agent_namespace()]))
    });
    Outcome::of(unwell.collect())
}

/// What an add-on needs before it can report.
const PARTS: [&str; 5] = [
    managed_cluster_add_on::MANIFEST_APPLIED,
    managed_cluster_add_on::REGISTRATION_APPLIED,
    "HostingClusterValidity",
    "TokenInfrastructureReady",
    "TokenRefreshed",
];

/// Whether it is something that an add-on needs, and is not there.
fn failed(condition: &&Condition) -> bool {
    PARTS.contains(&condition.type_.as_str()) && condition.status == conditions::FALSE
}

fn said(condition: &Condition) -> String {
    format!("{}={}: {}: {}", condition.type_, condition.status, condition.reason, condition.message)
}

/// How the agent reaches the hub, where an add-on goes another way unless it is told.
fn way_of(cluster: &Cluster<'_>, addon: &ManagedClusterAddOn, finding: Finding) -> Finding {
    let Some(agent) = cluster.agent else { return finding };
    let finding = match agent.driver() {
        RegistrationAuthType::Grpc => {
            finding.seen("the agent comes by gRPC; add-ons need the way to the hub's API server all the same")
        }
        _ => finding,
    };
    let proxy = agent.kubeconfig().and_then(|kubeconfig| kubeconfig.proxy.as_ref());
    let has_settings = addon.spec.configs.iter().any(|config| config.resource == "addondeploymentconfigs");
    match proxy.filter(|_| !has_settings) {
        Some(proxy) => finding
            .seen(format!("the agent reaches the hub through the proxy {proxy}"))
            .seen("spec.configs names no AddOnDeploymentConfig, which tells an add-on of a proxy and of noProxy"),
        None => finding,
    }
}
